"""The effects of a change step by step, and the cheapest changes of a pod's rank, in words and rows.

Not here: the sections of a preview (effects.py), and how they look (tui/).
"""

from collections.abc import Iterator, Sequence
from math import inf
from typing import Final, NamedTuple

from kubectl_qos.analysis.deaths import DeathRow
from kubectl_qos.analysis.pod_table import PodRow
from kubectl_qos.edit import compare
from kubectl_qos.edit.fixes import same_of_pod
from kubectl_qos.edit.preview import Effects, When
from kubectl_qos.edit.strategy import replaced_pods, rollout_plan
from kubectl_qos.k8s.objects import Json, Pod
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present.effects import OF_FILE, edits_text, effect_moment
from kubectl_qos.present.format import UNKNOWN, binary, count, escape, full_name
from kubectl_qos.present.next_death import distance, killer_words, turn, victim
from kubectl_qos.present.output import ARROW, Line, Section, ValueChange, sentences
from kubectl_qos.qos.oom_score import is_mirror, is_static
from kubectl_qos.qos.restart import oom_loops
from kubectl_qos.qos.simulation.next_death import NextDeath, deaths_of
from kubectl_qos.qos.simulation.node_state import NO_GROWTH, Growth, NodeState

_AFTER: Final = "after"


def heading(effects: Effects, when: When | None) -> str:
    """Return the heading of a step: `before` (None) and `after`, or `at once` and `when c restarts`."""
    steps = compare.moments(effects)
    if when is None:
        return "before" if steps else "now"
    if when is When.NOW:
        return _AFTER if steps[-1:] == (When.NOW,) else "at once"
    return effect_moment(effects, when)


class MomentRow(NamedTuple):
    """A value at present, then after each step of the change; `delta` is the whole difference of numbers."""

    label: str
    cells: tuple[str, ...]
    delta: str = ""


def moment_table(effects: Effects) -> tuple[tuple[str, ...], list[MomentRow]]:
    """Return headings and rows: class, ranks and each container's numbers, at present and at each moment."""
    when = compare.moments(effects)
    return tuple(heading(effects, at) for at in (None, *when)), list(_rows(effects, when))


def _rows(effects: Effects, when: Sequence[When]) -> Iterator[MomentRow]:
    def row(label: str, before: object, after: object, since: When) -> MomentRow:
        values = (before, *(after if compare.is_reached(since, at) else before for at in when))
        cells = tuple(UNKNOWN if value is None else str(value) for value in values)
        is_moved = isinstance(before, int) and isinstance(after, int) and before != after
        return MomentRow(label, cells, f"{after - before:+d}" if is_moved else "")  # type: ignore[operator]

    yield row("class", effects.before.qos_class.value, effects.after.qos_class.value, effects.when)
    ranks = [effects.rank_before]
    for at in when:
        is_last = compare.is_reached(effects.rank_when, at)
        ranks.append(effects.rank_after if is_last else effects.rank_now)
    of = f" of {effects.ranked}"
    yield MomentRow("kill rank", tuple(UNKNOWN if rank is None else f"{rank}{of}" for rank in ranks))
    for container in effects.containers:
        name = f"{escape(container.name)} " if len(effects.containers) > 1 else ""
        adj, score = container.oom_score_adj, container.oom_score
        yield row(f"{name}oom_score_adj", adj.before, adj.after, container.when)
        yield row(f"{name}oom_score", score.before, score.after, container.when)
    before, after = effects.eviction_ranks
    if before is not None or after is not None:
        yield row("eviction rank", before, after, effects.when)


def deaths_section(effects: Effects, own_bytes: int | None, growth: Growth = NO_GROWTH) -> Section | None:
    """Show the nearest deaths of a changed pod's node, before and from each step on; None if unknown."""
    at_moments = compare.deaths_at_moments(effects, own_bytes, growth)
    if not at_moments or (effects.row_before.usage is None and not at_moments[0].of_pod):
        return None
    before, last = at_moments[0], at_moments[-1]
    nothing = _nothing(before.state, effects.before.pod)
    steps: dict[str, str] = {}
    for at in at_moments:
        steps.setdefault(_same_first(before.of_pod, at.of_pod, nothing), heading(effects, at.when))
    whose = _whose(before.of_pod[0], before.of_pod) if before.of_pod else ""
    answer, since = f"of this pod {whose}{f' {ARROW} '.join(steps)}", [*steps.values()][-1]
    if len(steps) == 1:
        answer += ", stays"
    elif since != _AFTER:
        answer += f" {since}"
    answer += _then_first(before.of_pod, last.of_pod)
    lines = []
    for loop in oom_loops(effects.before.pod):
        end = "could not start within its limit" if loop.never_ran else "was OOMKilled, and may be again"
        lines.append(f"{escape(loop.container)} uses nothing while it waits for its next start; it {end}")
    lines += map(_is_enough, filter(_is_raised, last.of_pod))
    shown = set[NextDeath]()
    for at in at_moments:
        since_then = heading(effects, at.when)
        new = [_death(death) for death in at.deaths if death not in shown]
        rest = ["the others as before"] if len(new) < len(at.deaths) else []
        lines += [f"{since_then}: {'; '.join([*new, *rest])}"] if at.deaths else []
        in_turn = (death for death in at.of_pod if death.before and death not in shown)
        later = [f"{distance(death)} {killer_words(death)}{turn(death)}" for death in in_turn]
        lines += [f"of this pod {since_then}: {'; '.join(later)}"] if later else []
        shown = {*at.deaths, *at.of_pod}
    return Section("Next death", answer, sentences(*lines), changed=len(at_moments) > 1)


def node_deaths_sections(comparison: compare.Comparison, own_bytes: int | None) -> tuple[Section, ...]:
    """Show the next deaths by the killers of the whole node if they change, and how the first does."""
    moments = compare.node_wide_deaths(comparison, own_bytes)
    before, after = (
        {killer_words(death): f"{distance(death)} {victim(death)}" for death in deaths} for deaths in moments
    )
    changes = (
        ValueChange(killer, before.get(killer, "none"), after.get(killer, "none"))
        for killer in {**before, **after}
    )
    changed = tuple(change for change in changes if change.changed)
    nearest, then = (min((death.distance_bytes for death in deaths), default=inf) for deaths in moments)
    answer = "sooner" if then < nearest else "later" if then > nearest else "of others"
    return (Section("Next deaths on the node", answer, changes=changed, changed=True),) if changed else ()


def goal_limits(effects: Effects, own_bytes: int | None, growth: Growth = NO_GROWTH) -> Iterator[str]:
    """Say that the pod's own limit kills it before the node is full, and by how little it keeps its rank."""
    later = compare.deaths_at_moments(effects, own_bytes, growth)
    first = next(iter(later[-1].of_pod), None) if later else None
    if first is not None and not first.killer.is_node_wide:
        yield f"it still dies before the node is full: {distance(first)} {killer_words(first)}"
    rows = [row for row in effects.ranking_after.pods if row.rank is not None]
    place = next((index for index, row in enumerate(rows) if row is effects.row_after), 0)
    if not place:
        return
    scores = [row.worst.oom_score for row in rows[place - 1 : place + 1] if row.worst is not None]
    if len(scores) == 2 and None not in scores:
        higher, own = scores
        margin = count((higher or 0) - (own or 0), "point")
        other = full_name(rows[place - 1].pod.namespace, rows[place - 1].pod.name)
        yield f"its margin changes with usage: {margin} of oom_score, {own} against {higher} of {other}"


def death_change(before: NodeState, after: NodeState, pod: Pod) -> tuple[str, str]:
    """Return the first death of a pod, `+118Mi own limit 94%` or `unknown`, and what becomes of it."""
    old, new = (compare.without_repeated(deaths_of(state, {pod.key})) for state in (before, after))
    return _change(old, new, _nothing(before, pod))


def _nothing(state: NodeState, pod: Pod) -> str:
    return "unknown" if state.lacks_usage(pod.key) else "none"


def _change(
    before: Sequence[NextDeath], after: Sequence[NextDeath], nothing: str = "none"
) -> tuple[str, str]:
    """Return the first death before a change; the same one after it, and which one is then the first."""
    old, then = _same_first(before, before, nothing), _same_first(before, after, nothing)
    named = f"{_whose(before[0], before) if before else ''}{old}"
    return named, f"{named if then == old else then}{_then_first(before, after)}"


def _same_first(before: Sequence[NextDeath], after: Sequence[NextDeath], nothing: str) -> str:
    """Return the first death of `before` as it is in `after`."""
    if not before or not after:
        return _of_pod(after[0]) if after else nothing
    same = _same(before[0], after)
    return _of_pod(same) if same is not None else "never"


def _then_first(before: Sequence[NextDeath], after: Sequence[NextDeath]) -> str:
    """Say which death is the first after a change, if another one was before, and what it was then.

    One that is further away than the former first death is only named if there is evidence that it comes.
    """
    same = _same(before[0], after) if before else None
    if not before or not after or after[0] == same:
        return ""
    first, old = after[0], _same(after[0], before)
    if same is not None and first.distance_bytes > same.distance_bytes:
        is_behind = same.killer.is_node_wide and first.killer.is_node_wide
        if is_behind or not DeathRow("", first).is_expected:
            return ""
    text, was = _of_pod(first), _of_pod(old) if old is not None else ""
    becomes = f"{text}, as before" if was == text else f"{was} {ARROW} {text}" if was else text
    return f"; first is then {_whose(first, after)}{becomes}"


def _same(death: NextDeath, deaths: Sequence[NextDeath]) -> NextDeath | None:
    """Return a death after a change, or before it; a killer of the node may have another victim there."""
    of_node = death.killer.is_node_wide
    return same_of_pod([other for other in deaths if of_node or other.key == death.key], death)


def _of_pod(death: NextDeath) -> str:
    """Return a death without its pod: `+118Mi own limit 94%`."""
    if _is_raised(death):
        return f"{distance(death)} above that limit"
    after = f" (after {count(death.before, 'other death')})" if death.before else ""
    return f"{distance(death)} {killer_words(death)}{after}"


def _is_raised(death: NextDeath) -> bool:
    return death.waits and death.distance_bytes > 0


def _is_enough(death: NextDeath) -> str:
    """Say what is known of a limit that was raised because the old one was too small."""
    limit, old = (binary((death.limit_bytes or 0) - less) for less in (0, death.distance_bytes))
    return f"{old} was too small for {escape(death.container)}; whether {limit} is enough is unknown"


def _whose(death: NextDeath, deaths: Sequence[NextDeath]) -> str:
    """Return the container of a death if limits of several containers of its pod are reached: `a: `."""
    limits = [other for other in deaths if other.key == death.key and not other.killer.is_node_wide]
    is_clear = death.killer.is_node_wide or len({other.container for other in limits}) < 2
    return "" if is_clear else f"{escape(death.container)}: "


def _death(death: NextDeath) -> str:
    return f"{distance(death)} {victim(death)}, {killer_words(death)}"


def _turns(deaths: Sequence[NextDeath]) -> dict[str, str]:
    """Return the distance of the first death by each killer, and its turn: `+118Mi, after 2 other deaths`."""
    turns: dict[str, str] = {}
    for death in deaths:
        of = "" if death.killer.is_node_wide else f" of {escape(death.container)}"
        killer = killer_words(death._replace(limit_bytes=None, waits=False, starts=False))
        turns.setdefault(f"{killer}{of}", f"{distance(death)}{turn(death)}")
    return turns


MOST_NODES: Final = 10
"""How many nodes of a workload are shown: the JSON has the rest."""


def replicas_section(nodes: Sequence[compare.NodeReplicas]) -> Section:
    """Show the kill ranks of a workload's pods and the next deaths, by node."""
    pods = sum(len(node.effects) for node in nodes)
    shown = tuple(
        change for node in nodes[:MOST_NODES] for change in _node_changes(node, is_first=node is nodes[0])
    )
    first = nodes[0].first.before.pod
    lines = [f"the sections below are about {full_name(first.namespace, first.name)}, which dies first"]
    if len(nodes) > MOST_NODES:
        lines.insert(0, f"{count(len(nodes) - MOST_NODES, 'more node')}: see -o json")
    raised = (death for node in nodes for death in node.own_deaths_after if _is_raised(death))
    lines += dict.fromkeys(map(_is_enough, raised))
    answer = f"{count(pods, 'pod')} on {count(len(nodes), 'node')}, once all are recreated"
    return Section("Pods", answer, sentences(*lines), shown, any(change.changed for change in shown))


def _ranks(node: compare.NodeReplicas) -> tuple[list[int], list[int]]:
    """Return the ranks of the workload's pods on a node, before and after."""
    before = [effects.rank_before for effects in node.effects]
    after = [effects.rank_after for effects in node.effects]
    return sorted(filter(None, before)), sorted(filter(None, after))


def _node_changes(node: compare.NodeReplicas, *, is_first: bool) -> Iterator[ValueChange]:
    name, (old, new) = escape(node.setup.node.name), _ranks(node)
    if old and new:
        label = "kill rank" if len(new) == 1 else "kill ranks"
        before, after = (", ".join(map(str, ranks)) for ranks in (old, new))
        yield ValueChange(f"{name}: {label} of {node.effects[0].ranked}", before, after)
    deaths = node.deaths_before, node.deaths_after
    own_deaths = node.own_deaths_before, node.own_deaths_after
    if any(own_deaths):
        yield ValueChange(f"{name}: next death of these", *_change(*own_deaths))
        old_turns, new_turns = map(_turns, own_deaths)
        first_killers = {*list(old_turns)[:1], *list(new_turns)[:1]}
        for killer, turn_before in old_turns.items():
            turn_after = new_turns.get(killer, "none")
            is_in_first_line = first_killers == {killer}
            if not is_in_first_line and (is_first or turn_before != turn_after):
                yield ValueChange(f"{name}: of these, {killer}", turn_before, turn_after)
    if any(deaths):
        yield ValueChange(f"{name}: next death", *(_death(side[0]) if side else "none" for side in deaths))


def rollout_section(nodes: Sequence[compare.NodeReplicas], workload: Json) -> Section | None:
    """Compare the extra and missing pods of a rollout with the room on the nodes that run them."""
    if replaced_pods(str(workload.get("kind")), workload) == 0:
        return None
    plan = rollout_plan(workload)
    rooms = [(node, node.room) for node in nodes if node.room is not None]
    answer = f"up to {count(plan.surge, 'extra pod')} and {plan.missing} missing at a time"
    lines = [
        f"{escape(node.setup.node.name)}: room for {count(room, 'new pod')} now, "
        f"for {node.room_later} without the old ones"
        for node, room in rooms[:MOST_NODES]
    ]
    needs_other = bool(rooms) and plan.surge > 0 and not plan.missing and not any(room for _, room in rooms)
    if needs_other:
        lines.append("none of these nodes has room for a new pod: the rollout waits until a node has")
    return Section("Rollout", answer, sentences(*lines), warns=needs_other)


def cheapest_section(pod: Pod, row: PodRow | None, snapshot: Snapshot) -> Section | None:
    """Show the least memory requests to outlive the next pods, and the way to Guaranteed.

    The search takes some 100 ms for a node with 500 pods. Return None if nothing helps; for a static pod say
    where to change it.
    """
    if is_static(pod) or is_mirror(pod):
        return Section("Where to change it", lines=sentences(OF_FILE))
    if row is None or row.rank is None or pod.kind != "Pod":
        return None
    changes = (_change_line(pod, change) for change in compare.cheapest_changes(pod, snapshot))
    lines = {line.text: line for line in changes}  # of equal edits, the last outlives most pods
    return Section("Cheapest changes for a full node", lines=tuple(lines.values())) if lines else None


def _change_line(pod: Pod, change: compare.RankChange) -> Line:
    effects, outlived = change.effects, change.outlives
    what = "is Guaranteed" if outlived is None else f"outlives {full_name(outlived.namespace, outlived.name)}"
    when = effect_moment(effects, effects.rank_when)
    return Line(edits_text(pod, change.edits), f"{what}: rank {effects.rank_after} {when}")

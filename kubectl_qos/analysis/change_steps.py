"""A change step by step: when values change, ranks and next deaths from then on, the cheapest changes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

from kubectl_qos.edit.edits import Edit
from kubectl_qos.edit.goals import outlive, reach_class
from kubectl_qos.edit.preview import Effects, When, preview
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import RankedPod, Ranking, with_adj
from kubectl_qos.qos.simulation.next_death import NextDeath, deaths_of, next_deaths
from kubectl_qos.qos.simulation.node_state import NO_GROWTH, Growth, NodeState, ranked_node_state

_OTHERS: Final = (1, 4)
"""How many pods further on in the kill order those are that are outlived."""


def moments(effects: Effects) -> tuple[When, ...]:
    """The moments at which something changes, from the first to the last."""
    moments = {container.when for container in effects.containers if container.changed}
    moments |= {file.when for file in effects.files}
    ranks_before, ranks_after = effects.eviction_ranks
    if effects.before.qos_class is not effects.after.qos_class or ranks_before != ranks_after:
        moments.add(effects.when)
    if effects.rank_now != effects.rank_before:
        moments.add(When.NOW)
    if effects.rank_after != effects.rank_now:
        moments.add(effects.rank_when)
    return tuple(sorted(moments, key=list(When).index))


def is_reached(when: When, at: When) -> bool:
    """Whether one moment has come at another."""
    order = list(When).index
    return order(when) <= order(at)


class LadderRow(NamedTuple):
    """A pod in kill order; the changed pod has a row for each of its ranks, with the moment of that rank.

    `is_last` is the rank that it has in the end, `skipped` how many pods are left out above it, `used` the
    bytes of memory that it uses, None where that is unknown.
    """

    rank: int
    pod: Pod
    qos: QosClass
    score: int | None
    is_changed: bool = False
    when: When | None = None
    is_last: bool = True
    skipped: int = 0
    used: int | None = None


def ladder(effects: Effects, most: int) -> tuple[LadderRow, ...]:
    """The pods around a changed one's ranks, at `most` so many, the next victim first; none without ranks.

    The others have the ranks that they have in the end.
    """
    before, after = effects.rank_before, effects.rank_after
    if before is None or after is None:
        return ()
    ranked = [row for row in effects.ranking_after.pods if row.rank is not None]
    end = ranked.index(effects.mine_after)
    later = effects.rank_when if before != after else None
    rows = [_rung(row) for row in ranked]
    rows[end] = rows[end]._replace(is_changed=True, when=later)
    focus = {end}
    if before != after:
        rows_before = [row for row in effects.ranking_before.pods if row.rank is not None]
        start = rows_before.index(effects.mine_before)
        start += start > end
        today = _rung(effects.mine_before)._replace(is_changed=True, is_last=False)
        rows.insert(start, today)
        focus = {start, end + (start <= end)}
    return tuple(_window(rows, focus, most))


def _rung(row: RankedPod) -> LadderRow:
    assert row.rank is not None, "a pod with a rank"
    score = row.worst.oom_score if row.worst is not None else None
    used = row.usage.working_set_bytes if row.usage is not None else None
    return LadderRow(row.rank, row.pod, row.qos, score, used=used)


def _window(rows: Sequence[LadderRow], focus: set[int], most: int) -> Iterator[LadderRow]:
    """The rows nearest to those in focus, in their order."""
    nearest = sorted(range(len(rows)), key=lambda index: min(abs(index - place) for place in focus))
    last = -1
    for index in sorted(nearest[:most]):
        yield rows[index]._replace(skipped=index - last - 1)
        last = index


class DeathsAt(NamedTuple):
    """The next deaths by a changed pod's own limits and by its node's killers, from a moment on; None is now.

    `of_pod` are all deaths that wait for the pod itself, also those by killers that end others before it.
    """

    when: When | None
    state: NodeState
    deaths: tuple[NextDeath, ...]
    of_pod: tuple[NextDeath, ...]


def deaths_at_moments(
    effects: Effects, own_bytes: int | None, growth: Growth = NO_GROWTH
) -> tuple[DeathsAt, ...]:
    """The next deaths at present, and from each moment on at which they become other ones.

    `own_bytes` is what the node uses itself, None where unknown, `growth` that of its pods. No moments
    without a node, or where nothing can be said of it.
    """
    setup = effects.before.setup
    if not effects.before.pod.node_name:
        return ()
    last = max([effects.when, *(file.when for file in effects.files)], key=list(When).index)
    later = [at for at in moments(effects) if at is not When.NEVER and is_reached(last, at)]
    rankings = [effects.ranking_before, *(_ranking_at(effects, at) for at in later)]
    try:
        states = [
            ranked_node_state(ranking, setup, own_bytes=own_bytes).require_capacity() for ranking in rankings
        ]
    except InputError:
        return ()
    deaths = [
        _deaths(at, replace(state, growth=growth), effects)
        for at, state in zip([None, *later], states, strict=True)
    ]
    changed = [new for old, new in pairwise(deaths) if (new.deaths, new.of_pod) != (old.deaths, old.of_pod)]
    return (deaths[0], *changed)


def _ranking_at(effects: Effects, at: When) -> Ranking:
    """The order in which containers that have not restarted yet keep their oom_score_adj."""
    waiting = (change for change in effects.containers if not is_reached(change.when, at))
    kept = {change.name: change.oom_score_adj.before for change in waiting}
    return with_adj(effects.ranking_after, effects.after.pod, kept)


def _deaths(when: When | None, state: NodeState, effects: Effects) -> DeathsAt:
    pod, nearest = effects.before.pod, next_deaths(state)
    key = pod.namespace, pod.name
    shown = [death for death in nearest if death.killer.picks_among_pods or death.key == key]
    shown.sort(key=lambda death: death.distance_bytes)
    return DeathsAt(when, state, tuple(shown), tuple(deaths_of(state, {key})))


class RankChange(NamedTuple):
    """Edits with their effects: the pod outlives another one, or is Guaranteed where that is None."""

    edits: tuple[Edit, ...]
    effects: Effects
    outlives: Pod | None


def cheapest_changes(pod: Pod, snapshot: Snapshot) -> Iterator[RankChange]:
    """Find the least requests with which a ranked pod outlives the next ones, and a way to Guaranteed."""
    setup, neighbours = snapshot.setup(pod.node_name), snapshot.by_node().get(pod.node_name, ())
    effects = preview(pod, (), setup, neighbours, snapshot.usage).effects
    ranked = [row.pod for row in effects.ranking_before.pods if row.rank is not None]
    place = next(index for index, other in enumerate(ranked) if other.metadata == pod.metadata)
    for other in [ranked[place + further] for further in _OTHERS if place + further < len(ranked)]:
        goal = outlive(pod, other, setup, neighbours, snapshot.usage)
        if goal.obstacle is None and goal.edits:
            then = preview(pod, goal.edits, setup, neighbours, snapshot.usage)
            yield RankChange(tuple(goal.edits), then.effects, other)
    goal = reach_class(pod, QosClass.GUARANTEED, setup.release)
    if goal.edits and not goal.to_choose:
        then = preview(pod, goal.edits, setup, neighbours, snapshot.usage)
        yield RankChange(tuple(goal.edits), then.effects, None)

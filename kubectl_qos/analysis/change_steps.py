"""What a change does over time: when values change, the kill order around the pod, and the next deaths."""

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
"""Offsets in the kill order of the pods that a change is offered to outlive."""


def moments(effects: Effects) -> tuple[When, ...]:
    """Return the times at which something changes, first to last."""
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
    """Return whether `when` has happened by `at`."""
    order = list(When).index
    return order(when) <= order(at)


class LadderRow(NamedTuple):
    """A line of the kill order before and after a change; the changed pod has a line for each rank."""

    rank: int
    pod: Pod
    qos: QosClass
    score: int | None
    is_changed: bool = False
    when: When | None = None
    """When the changed pod gets this rank."""
    is_last: bool = True
    """Final rank of its pod."""
    skipped: int = 0
    """Pods omitted above this line."""
    used: int | None = None
    """Memory in use, in bytes."""


def ladder(effects: Effects, max_lines: int) -> tuple[LadderRow, ...]:
    """Return up to `max_lines` lines around the changed pod's ranks, next victim first; empty without ranks.

    Other pods have their final rank.
    """
    before, after = effects.rank_before, effects.rank_after
    if before is None or after is None:
        return ()
    ranked = [row for row in effects.ranking_after.pods if row.rank is not None]
    end = ranked.index(effects.row_after)
    later = effects.rank_when if before != after else None
    rows = [_ladder_row(row) for row in ranked]
    rows[end] = rows[end]._replace(is_changed=True, when=later)
    focus = {end}
    if before != after:
        rows_before = [row for row in effects.ranking_before.pods if row.rank is not None]
        start = rows_before.index(effects.row_before)
        start += start > end
        today = _ladder_row(effects.row_before)._replace(is_changed=True, is_last=False)
        rows.insert(start, today)
        focus = {start, end + (start <= end)}
    return tuple(_window(rows, focus, max_lines))


def _ladder_row(row: RankedPod) -> LadderRow:
    assert row.rank is not None, "a pod with a rank"
    score = row.worst.oom_score if row.worst is not None else None
    used = row.usage.working_set_bytes if row.usage is not None else None
    return LadderRow(row.rank, row.pod, row.qos, score, used=used)


def _window(rows: Sequence[LadderRow], focus: set[int], max_lines: int) -> Iterator[LadderRow]:
    """Yield the rows nearest to `focus`, in their order."""
    nearest = sorted(range(len(rows)), key=lambda index: min(abs(index - place) for place in focus))
    last = -1
    for index in sorted(nearest[:max_lines]):
        yield rows[index]._replace(skipped=index - last - 1)
        last = index


class DeathsAt(NamedTuple):
    """The next deaths from a step of a change on: by the pod's own limits and by its node's killers."""

    when: When | None
    """None: today."""
    state: NodeState
    deaths: tuple[NextDeath, ...]
    of_pod: tuple[NextDeath, ...]
    """All deaths of the changed pod, including those by killers that end other pods first."""


def deaths_at_moments(
    effects: Effects, own_bytes: int | None, growth: Growth = NO_GROWTH
) -> tuple[DeathsAt, ...]:
    """Return the next deaths today, and after each step that changes them.

    `own_bytes` is the memory used outside pods, None if unknown. Empty without a node, or if the node's
    memory is unknown.
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
    """Rank the node while containers that have not restarted keep their old oom_score_adj."""
    waiting = (change for change in effects.containers if not is_reached(change.when, at))
    kept = {change.name: change.oom_score_adj.before for change in waiting}
    return with_adj(effects.ranking_after, effects.after.pod, kept)


def _deaths(when: When | None, state: NodeState, effects: Effects) -> DeathsAt:
    pod, nearest = effects.before.pod, next_deaths(state)
    key = pod.key
    shown = [death for death in nearest if death.killer.is_node_wide or death.key == key]
    shown.sort(key=lambda death: death.distance_bytes)
    return DeathsAt(when, state, tuple(shown), tuple(deaths_of(state, {key})))


class RankChange(NamedTuple):
    """Edits with which a pod outlives another, or becomes Guaranteed (`outlives` is None)."""

    edits: tuple[Edit, ...]
    effects: Effects
    outlives: Pod | None


def cheapest_changes(pod: Pod, snapshot: Snapshot) -> Iterator[RankChange]:
    """Yield the least requests with which a ranked pod outlives the next ones, and edits for Guaranteed."""
    setup, neighbours = snapshot.setup(pod.node_name), snapshot.by_node().get(pod.node_name, ())
    effects = preview(pod, (), setup, neighbours, snapshot.usage).effects
    ranked = [row.pod for row in effects.ranking_before.pods if row.rank is not None]
    place = next(index for index, other in enumerate(ranked) if other.metadata == pod.metadata)
    others = [ranked[place + further] for further in _OTHERS if place + further < len(ranked)]
    goals = [
        *((outlive(pod, other, setup, neighbours, snapshot.usage), other) for other in others),
        (reach_class(pod, QosClass.GUARANTEED, setup.release), None),
    ]
    for goal, outlived in goals:
        if goal.edits and goal.obstacle is None and not goal.to_choose:
            then = preview(pod, goal.edits, setup, neighbours, snapshot.usage)
            yield RankChange(goal.edits, then.effects, outlived)

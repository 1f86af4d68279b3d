"""Priorities that hold: the fewest requests with which no pod dies before one of lower priority.

Neither killer goes by priority first: the kernel does not know it, and the kubelet first evicts pods that
exceed their requests. Requests are only raised, so ranks only move later. Pods are placed from the lowest
priority up, each by the smallest raise, which is optimal if each pod has one container.

On several nodes at once, the pods of a workload get the same values, by its template: all get what one of
them needs, and the nodes are planned again with that, until nothing is added. A workload stays as it is if
a node cannot take its values (no room, a pod of higher priority overtaken, another class). The wording of
the output is in present/.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final, NamedTuple

from kubectl_qos.edit.edits import (
    POD_LEVEL,
    Edit,
    Side,
    apply_edits,
    current_value,
    effective_edits,
    memory_value,
    own_edits,
)
from kubectl_qos.edit.fixes import NodeModel, strategy_for, times_requested
from kubectl_qos.edit.goals import (
    UNIT_BYTES,
    Obstacle,
    ObstacleReason,
    drop_redundant,
    keep_burstable,
    least_units,
    raise_request,
    score_at_most,
)
from kubectl_qos.edit.preview import Effects, Preview, StrategyKind, When, preview
from kubectl_qos.k8s.kinds import WORKLOADS, Workload, find_workload
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.resources import is_sidecar
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.k8s.validation import pod_refusals
from kubectl_qos.qos.eviction import evicts_for_memory
from kubectl_qos.qos.killers import BY_RANK, EVICTING, Killer
from kubectl_qos.qos.oom_score import GUARANTEED_ADJ, badness, is_critical, is_mirror, is_static
from kubectl_qos.qos.qos_class import QosClass, computed_class, is_decided_at_pod_level
from kubectl_qos.qos.ranking import rank_node


class Inversion(NamedTuple):
    """A pod that a killer of the node ends before one of lower priority."""

    killer: Killer
    higher: PodKey
    lower: PodKey
    priorities: tuple[int, int]
    """Of both."""


class Exposure(NamedTuple):
    """How near a pod is to both killers: its badness in pages, and whether it exceeds its request.

    None if that killer ignores the pod, or usage is unknown to the kubelet.
    """

    points: int | None
    exceeds: bool | None


@dataclass(frozen=True)
class Move:
    """The edits of one pod, and the inversions that end with them; its class stays.

    All pods of a `workload` get the same values, by its template.
    """

    pod: Pod
    edits: tuple[Edit, ...]
    solves: tuple[Inversion, ...]
    more_bytes: int
    preview: Preview = field(repr=False)
    strategy: StrategyKind
    workload: Workload | None = None

    @property
    def effects(self) -> Effects:
        """Return the effects with the times of the strategy."""
        return self.preview.effects_of(self.strategy)

    @property
    def when(self) -> When:
        """Return when the last of the inversions ends."""
        is_eviction = all(inversion.killer.evicts for inversion in self.solves)
        return self.effects.when if is_eviction else self.effects.scores_when

    @property
    def times_usage(self) -> int:
        """Return how many times its usage (bytes) the pod would request, 0 if unknown or less than twice."""
        usage = self.effects.row_before.usage
        return times_requested(self.preview.after, usage.working_set_bytes if usage is not None else 0)


class Unsolved(NamedTuple):
    """An inversion that stays, and what prevents a solution for the pod of higher priority."""

    inversion: Inversion
    obstacle: Obstacle


@dataclass(frozen=True, slots=True)
class PriorityPlan:
    """The moves on one node, of the highest priority first, and the inversions that stay.

    `free_bytes` is what the node has for further requests, None if unknown; `without_usage` counts the pods
    that the kernel can kill and whose usage is unknown.
    """

    node: str
    moves: tuple[Move, ...]
    unsolved: tuple[Unsolved, ...]
    free_bytes: int | None
    without_usage: int = 0


def priority_of(pod: Pod) -> int:
    """Return the priority as both killers and the scheduler count it: 0 without one."""
    return pod.spec.priority or 0


def exposure(model: NodeModel, pod: Pod, edits: Sequence[Edit] = ()) -> Exposure:
    """Return how near a pod with edits is to both killers, as if recreated with any pending resize."""
    setup = model.setup
    [row] = rank_node([model.recreated(pod, edits)], setup.node, setup.release, model.usage).pods
    points = row.worst.points if row.worst is not None else None
    if row.worst is None or row.usage is None or is_critical(pod) or not evicts_for_memory(setup):
        return Exposure(points, None)
    return Exposure(points, row.usage.working_set_bytes * _NANO > row.profile.eviction_request.nano)


def inversions(priorities: Mapping[PodKey, int], exposures: Mapping[PodKey, Exposure]) -> list[Inversion]:
    """Return every pair of pods of a node that a killer ends in the wrong order; ties do not count."""
    return [inversion for key in priorities for inversion in inverted(key, priorities, exposures)]


def inverted(
    higher: PodKey, priorities: Mapping[PodKey, int], exposures: Mapping[PodKey, Exposure]
) -> Iterator[Inversion]:
    """Yield the pods of lower priority that outlive this one."""
    priority, (points, exceeds) = priorities[higher], exposures[higher]
    for lower, of_lower in priorities.items():
        if of_lower < priority:
            other = exposures[lower]
            if points is not None and other.points is not None and points > other.points:
                yield Inversion(BY_RANK, higher, lower, (priority, of_lower))
            if exceeds and other.exceeds is False:
                yield Inversion(EVICTING, higher, lower, (priority, of_lower))


def plan_priorities(
    model: NodeModel,
    keys: Collection[PodKey] | None = None,
    fixed: Mapping[PodKey, ObstacleReason] | None = None,
    max_more_bytes: Mapping[PodKey, int] | None = None,
) -> PriorityPlan:
    """Return the fewest edits to the pods in `keys` (None: all) that end their inversions.

    `fixed` pods are not edited; `max_more_bytes` limits by how much a pod's requests may grow. If the node
    has not enough room for all, pods of the highest priority come first, and the number is not proven the
    least. No edit makes a new inversion.
    """
    search = _PlanSearch(model, keys, fixed or {}, max_more_bytes or {})
    placed = search.find()
    left = inversions(search.priorities, placed.exposures)
    left = [inversion for inversion in left if inversion in search.requested]
    unsolved = [Unsolved(item, placed.obstacles[item.killer, item.higher]) for item in left]
    order = sorted(placed.moved, key=lambda key: -search.priorities[key])
    values, before, after = search.priorities, search.before, placed.exposures
    moved = ((search.pods[key], placed.moved[key].edits) for key in order)
    moves = [build_move(model, pod, edits, values, before, after) for pod, edits in moved]
    return PriorityPlan(
        model.setup.node.name, tuple(moves), tuple(unsolved), search.free_bytes, search.without_usage
    )


_NANO: Final = 10**9
_FIXED_CLASSES: Final = {
    QosClass.BEST_EFFORT: ObstacleReason.BEST_EFFORT,
    QosClass.GUARANTEED: ObstacleReason.GUARANTEED,
}
"""Requests do not matter for these classes, or would change them."""


class _Target(NamedTuple):
    """What a pod should reach: at most this badness (None is any), and no use beyond its request."""

    points: int | None
    within_request: bool


class _Reached(NamedTuple):
    edits: tuple[Edit, ...]
    exposure: Exposure
    more_bytes: int


@dataclass
class _Bounds:
    """The exposures of the pods of lower, or of higher priority than the pod that is placed."""

    points: list[int] = field(default_factory=list)
    any_within: bool = False
    any_exceeds: bool = False

    def add(self, exposures: Iterable[Exposure]) -> None:
        for points, exceeds in exposures:
            if points is not None:
                insort(self.points, points)
            self.any_within = self.any_within or exceeds is False
            self.any_exceeds = self.any_exceeds or exceeds is True

    def copy(self) -> _Bounds:
        return replace(self, points=[*self.points])

    def overtakes(self, before: Exposure, after: Exposure) -> bool:
        """Return whether a pod would outlive one of these, which now outlives it."""
        outliving = bisect_right(self.points, before.points) if before.points is not None else 0
        is_past = after.points is not None and outliving > 0 and after.points < self.points[outliving - 1]
        return is_past or (self.any_exceeds and after.exceeds is False)


@dataclass
class _Placed:
    """All pods of the node in their places; obstacles are by killer and pod.

    `free_bytes` is None if room is not limited.
    """

    exposures: dict[PodKey, Exposure]
    free_bytes: int | None = None
    moved: dict[PodKey, _Reached] = field(default_factory=dict)
    obstacles: dict[tuple[Killer, PodKey], Obstacle] = field(default_factory=dict)
    more_bytes: int = 0


class _PlanSearch:
    def __init__(
        self,
        model: NodeModel,
        keys: Collection[PodKey] | None,
        fixed: Mapping[PodKey, ObstacleReason],
        max_more_bytes: Mapping[PodKey, int],
    ) -> None:
        self._max_more_bytes = max_more_bytes
        self.model = model
        self._release = model.setup.release
        alive = [pod for pod in model.pods if not pod.is_terminal]
        alive.sort(key=lambda pod: (priority_of(pod), pod.key))
        self.pods = {pod.key: pod for pod in alive}
        self.priorities = {key: priority_of(pod) for key, pod in self.pods.items()}
        self.before = {key: exposure(model, pod) for key, pod in self.pods.items()}
        self.all_before = set(inversions(self.priorities, self.before))
        selected = self.pods if keys is None else keys
        self.requested = {inversion for inversion in self.all_before if inversion.higher in selected}
        self._fixed = dict(fixed)
        for key, pod in self.pods.items():
            if is_static(pod) or is_mirror(pod):
                self._fixed[key] = ObstacleReason.STATIC
            elif key not in selected:
                self._fixed[key] = ObstacleReason.NOT_SELECTED
            elif (qos := model.qos_class(pod)) in _FIXED_CLASSES:
                self._fixed[key] = _FIXED_CLASSES[qos]
        groups = groupby(self.pods, key=self.priorities.__getitem__)
        self._groups = [list(group) for _, group in groups]
        self._reached: dict[tuple[PodKey, _Target], _Reached | Obstacle] = {}
        ranked = [key for key, exposed in self.before.items() if exposed.points is not None]
        self.without_usage = sum(key not in model.usage for key in ranked)
        self.free_bytes = model.free_bytes

    def find(self) -> _Placed:
        """Return the places of all pods, without a new inversion."""
        # Place each pod after those of lower priority, as if there were room for all.
        placed, lower, fixed, above = _Placed(dict(self.before)), _Bounds(), _Bounds(), list[_Bounds]()
        for group in reversed(self._groups):
            above.append(fixed.copy())
            fixed.add(self.before[key] for key in group if key in self._fixed)
        for group, higher in zip(self._groups, reversed(above), strict=True):
            for key in group:
                self._place(placed, key, lower, higher)
            lower.add(placed.exposures[key] for key in group)
        is_short = self.free_bytes is not None and placed.more_bytes > self.free_bytes
        has_new = not self.all_before.issuperset(inversions(self.priorities, placed.exposures))
        return self._downwards(placed.moved) if is_short or has_new else placed

    def _downwards(self, moved: Collection[PodKey]) -> _Placed:
        """Place the highest priority first while there is room, none past a higher one that outlived it.

        Each target is lowered by a step of the score for each lower priority that will also move, so that its
        pods still fit in between.
        """
        node = self.model.setup.node
        total = (node.memory_capacity_bytes or 0) + node.swap_capacity_bytes
        step = badness(0, 1, total // node.page_size_bytes)
        # For each group: the bounds of those below it, and the points left to those of them that move.
        below = list[tuple[_Bounds, int]]()
        lower, reserve = _Bounds(), 0
        for group in self._groups:
            below.append((lower.copy(), reserve))
            lower.add(self.before[key] for key in group)
            reserve += 0 if set(moved).isdisjoint(group) else step
        placed, higher = _Placed(dict(self.before), self.free_bytes), _Bounds()
        for group, (lower, reserve) in zip(reversed(self._groups), reversed(below), strict=True):
            for key in group:
                self._place(placed, key, lower, higher, reserve)
            higher.add(placed.exposures[key] for key in group)
        return placed

    def _place(self, placed: _Placed, key: PodKey, lower: _Bounds, higher: _Bounds, reserve: int = 0) -> None:
        """Place a pod by the least edits with which it outlives those of lower priority, or most of them."""
        points, exceeds = self.before[key]
        targets: list[int | None] = [None]
        if points is not None:
            due = lower.points[: bisect_left(lower.points, points)]
            targets = [*(point - reserve for point in due), None]
        within = lower.any_within and exceeds is True

        def reach(points: int | None) -> _Reached | Obstacle:
            return self._reach(key, _Target(points, within), higher, placed)

        if within:
            reached = reach(None)
            if isinstance(reached, Obstacle):
                placed.obstacles[EVICTING, key] = reached
                within = False
        reached = reach(targets[0])
        if isinstance(reached, Obstacle):
            placed.obstacles[BY_RANK, key] = reached
            # What is too much for a target is so for every lower one.
            place = bisect_left(targets, True, key=lambda target: isinstance(reach(target), _Reached))
            reached = reach(targets[place])
        if isinstance(reached, _Reached) and reached.edits:
            placed.exposures[key], placed.moved[key] = reached.exposure, reached
            placed.more_bytes += reached.more_bytes

    def _reach(self, key: PodKey, target: _Target, higher: _Bounds, placed: _Placed) -> _Reached | Obstacle:
        """Return the least edits to a target, or why there are none."""
        if self._holds(self.before[key], target):
            return _Reached((), self.before[key], 0)
        if key in self._fixed:
            return Obstacle(self._fixed[key], least=GUARANTEED_ADJ)
        reached = self._reached.get((key, target))
        if reached is None:
            reached = self._reached[key, target] = self._search(key, target)
        if isinstance(reached, Obstacle):
            return reached
        free = None if placed.free_bytes is None else placed.free_bytes - placed.more_bytes
        rooms = free, self._max_more_bytes.get(key)
        if any(room is not None and reached.more_bytes > room for room in rooms):
            return Obstacle(ObstacleReason.NO_ROOM)
        overtakes = higher.overtakes(self.before[key], reached.exposure)
        return Obstacle(ObstacleReason.ANOTHER_FIRST) if overtakes else reached

    @staticmethod
    def _holds(exposure: Exposure, target: _Target) -> bool:
        points = target.points
        is_late = points is None or (exposure.points is not None and exposure.points <= points)
        return is_late and not (target.within_request and exposure.exceeds)

    def _search(self, key: PodKey, target: _Target) -> _Reached | Obstacle:
        model, pod, edits = self.model, self.pods[key], list[Edit]()
        if target.points is not None:
            goal = score_at_most(pod, target.points, model.setup, model.usage)
            if goal.obstacle is not None:
                return goal.obstacle
            edits = list(goal.edits)
        if self._holds(exposure(model, pod, edits), target):
            return self._reached_by(pod, edits)
        qos = model.qos_class(pod)

        def suffices(subset: Sequence[Edit]) -> bool:
            changed = model.recreated(pod, subset)
            if computed_class(changed, self._release) is not qos or pod_refusals(changed, self._release):
                return False
            return self._holds(exposure(model, pod, subset), target)

        def cost(reached: _Reached) -> tuple[int, int, int]:
            # Among equally few edits the earliest place in the kill order constrains other pods least.
            return len(reached.edits), -(reached.exposure.points or 0), reached.more_bytes

        running = self.model.recreated(pod, edits)
        sidecars = (init for init in running.init_containers if is_sidecar(init, self._release))
        owners = [container.name for container in (*running.containers, *sidecars)]
        if is_decided_at_pod_level(running, self._release):
            owners = [POD_LEVEL]
        candidates = filter(None, (self._edits_within_request(pod, edits, owner) for owner in owners))
        least = (drop_redundant(candidate, suffices) for candidate in filter(suffices, candidates))
        reached = [self._reached_by(pod, sufficient) for sufficient in least]
        return min(reached, key=cost) if reached else Obstacle(ObstacleReason.NOT_BY_REQUESTS)

    def _reached_by(self, pod: Pod, edits: Sequence[Edit]) -> _Reached:
        more_bytes = self.model.more_bytes(pod, edits)
        return _Reached(effective_edits(pod, edits), exposure(self.model, pod, edits), more_bytes)

    def _edits_within_request(self, pod: Pod, edits: Sequence[Edit], owner: str) -> list[Edit]:
        running = self.model.recreated(pod, edits)
        request = memory_value(running, owner, Side.REQUESTS) // UNIT_BYTES
        most_units = request + self.model.usage[pod.key].working_set_bytes // UNIT_BYTES + 1

        def edits_for(units: int) -> list[Edit]:
            return [*edits, *raise_request(running, owner, units * UNIT_BYTES)]

        units = least_units(
            request, most_units, lambda units: not exposure(self.model, pod, edits_for(units)).exceeds
        )
        if units is None:
            return []
        return keep_burstable(pod, list(effective_edits(pod, edits_for(units))), self._release)


def build_move(
    model: NodeModel,
    pod: Pod,
    edits: tuple[Edit, ...],
    priorities: Mapping[PodKey, int],
    before: Mapping[PodKey, Exposure],
    after: Mapping[PodKey, Exposure],
) -> Move:
    """Return the edits of a pod with the inversions that end with them, once all pods have theirs."""
    left = set(inverted(pod.key, priorities, after))
    unmoved = inverted(pod.key, priorities, {**after, pod.key: before[pod.key]})
    solves = tuple(inversion for inversion in unmoved if inversion not in left)
    # Without neighbours, which take long: what the node has room for is known.
    seen = preview(pod, edits, model.setup, (), model.usage)
    return Move(pod, edits, solves, model.more_bytes(pod, edits), seen, strategy_for(pod, seen))


ROLLED_OUT: Final = WORKLOADS.keys() - {"Job", "CronJob"}
"""Kinds whose running pods follow the template."""
_MOST_ROUNDS: Final = 10
_Values = dict[Workload, tuple[Edit, ...]]


def plan_nodes(
    models: Sequence[NodeModel], keys: Sequence[Collection[PodKey] | None]
) -> tuple[PriorityPlan, ...]:
    """Return the plan of each node, of some pods or all, with the same values for pods of a workload.

    A workload whose values do not fit a node is limited to an equal share of the node's free memory for each
    of its pods there, and gets nothing if that is too much as well. Nodes that only have other pods of the
    workloads have an empty collection in `keys` (None means all pods).
    """
    search = _WorkloadSearch(models, keys)
    while True:
        values, plans = search.common_values()
        too_much, planned = set[Workload](), list[PriorityPlan]()
        for model, plan in zip(models, plans, strict=True):
            # A copy of the model, whose caches end with this node.
            refused, with_templates = _with_templates(replace(model), plan, values)
            too_much |= refused
            planned.append(with_templates)
        if not too_much:
            return tuple(planned)
        for workload in too_much:
            search.restrict(workload)


class _WorkloadSearch:
    def __init__(self, models: Sequence[NodeModel], keys: Sequence[Collection[PodKey] | None]) -> None:
        self._models, self._keys = models, keys
        self._workloads = {pod.key: find_workload(pod) for model in models for pod in model.pods}
        self._fixed: dict[PodKey, ObstacleReason] = {}
        self._max_more_bytes: dict[Workload, int] = {}

    def restrict(self, workload: Workload) -> None:
        """Limit a workload to a fair share of each node's free memory; the second time forbid any growth."""
        keys = [key for key, owner in self._workloads.items() if owner == workload]
        if workload in self._max_more_bytes or workload.kind not in ROLLED_OUT:
            self._fixed |= dict.fromkeys(keys, ObstacleReason.REPLICAS)
            return
        shares = []
        for model in self._models:
            count = sum(self._workloads[pod.key] == workload for pod in model.pods)
            if count and model.free_bytes is not None:
                shares.append(model.free_bytes // count)
        self._max_more_bytes[workload] = min(shares, default=0)

    def common_values(self) -> tuple[_Values, list[PriorityPlan]]:
        """Return the values of the templates, and the plans of the nodes with them."""
        values: _Values = {}
        for _ in range(_MOST_ROUNDS):
            plans = [
                self._plan(model, keys, values) for model, keys in zip(self._models, self._keys, strict=True)
            ]
            moves = [(self._workloads[move.pod.key], move) for plan in plans for move in plan.moves]
            new_edits = [(workload, move.edits) for workload, move in moves if workload.kind in ROLLED_OUT]
            if not new_edits:
                return values, plans
            for workload, edits in new_edits:
                nodes = ((model, pod) for model in self._models for pod in model.pods)
                pods = [model.recreated(pod) for model, pod in nodes if self._workloads[pod.key] == workload]
                values[workload] = tuple(_largest(pods, [*values.get(workload, ()), *edits]))
        for workload in {workload for workload, _ in new_edits}:
            self.restrict(workload)
        return self.common_values()

    def _plan(self, model: NodeModel, keys: Collection[PodKey] | None, values: _Values) -> PriorityPlan:
        edits = {pod.key: _edits(pod, values) for pod in model.pods}
        edited = replace(model, pods=[apply_edits(pod, edits[pod.key]) for pod in model.pods])
        max_more_bytes = {}
        for pod in model.pods:
            limit = self._max_more_bytes.get(self._workloads[pod.key])
            if limit is not None:
                max_more_bytes[pod.key] = limit - model.more_bytes(pod, edits[pod.key])
        return plan_priorities(edited, keys, self._fixed, max_more_bytes)


def _largest(pods: Sequence[Pod], edits: Iterable[Edit]) -> Iterator[Edit]:
    """Return the largest value of the edits and of any pod; no limit is the largest."""
    wanted: dict[tuple[str, Side, str], list[Edit]] = {}
    for edit in edits:
        wanted.setdefault(edit.target, []).append(edit)
    for target, same_target in wanted.items():
        now = [current_value(pod, *target) for pod in pods if own_edits(pod, same_target[:1])]
        sizes = [edit.quantity for edit in same_target]
        amounts = [amount for amount in (*sizes, *now) if amount is not None]
        is_unlimited = target[1] is Side.LIMITS and None in now
        yield Edit(*target, None if is_unlimited or None in sizes else max(amounts))


def _edits(pod: Pod, values: Mapping[Workload, Sequence[Edit]]) -> tuple[Edit, ...]:
    return effective_edits(pod, own_edits(pod, values.get(find_workload(pod), ())))


def _with_templates(
    model: NodeModel, plan: PriorityPlan, values: _Values
) -> tuple[set[Workload], PriorityPlan]:
    """Return the workloads whose values a node cannot take, and its plan with the moves by templates."""
    pods = sorted(model.pods, key=lambda pod: (priority_of(pod), pod.key))
    by_key = {pod.key: pod for pod in pods if not pod.is_terminal}
    own = {move.pod.key: move for move in plan.moves}
    edits = {key: own[key].edits if key in own else _edits(pod, values) for key, pod in by_key.items()}
    changed = {key: find_workload(by_key[key]) for key, some in edits.items() if some}
    templates = {key: workload for key, workload in changed.items() if workload in values}
    more = {key: model.more_bytes(by_key[key], edits[key]) for key in changed}
    priorities = {key: priority_of(pod) for key, pod in by_key.items()}
    before = {key: exposure(model, pod) for key, pod in by_key.items()}
    after = {key: exposure(model, pod, edits[key]) for key, pod in by_key.items()}
    new = set(inversions(priorities, after)) - set(inversions(priorities, before))
    refused = {templates[inversion.lower] for inversion in new if inversion.lower in templates}
    for key, workload in templates.items():
        pod, edited = by_key[key], model.recreated(by_key[key], edits[key])
        is_other = computed_class(edited, model.setup.release) is not model.qos_class(pod)
        if is_other or more[key] < 0 or pod_refusals(edited, model.setup.release):
            refused.add(workload)
    if templates and model.free_bytes is not None and sum(more.values()) > model.free_bytes:
        refused.add(templates[min(templates, key=lambda key: (priorities[key], key))])
    moves = []
    for key in sorted(changed, key=lambda key: -priorities[key]) if not refused else ():
        move = own.get(key)
        if move is None:
            move = build_move(model, by_key[key], edits[key], priorities, before, after)
            move = replace(move, strategy=StrategyKind.TEMPLATE, workload=changed[key])
        moves.append(move)
    return refused, replace(plan, moves=tuple(moves), free_bytes=model.free_bytes)

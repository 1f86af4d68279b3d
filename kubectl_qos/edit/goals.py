"""Goals and the fewest edits that reach them: another QoS class, or a later place in the kill order.

A later place needs larger memory requests: the kernel decides by usage and oom_score_adj, and the kubelet
computes the oom_score_adj of Burstable containers from their memory requests.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from kubectl_qos.edit.edits import POD_LEVEL, Edit, Side, apply_edits, current_value, memory_value
from kubectl_qos.edit.preview import as_recreated, neighbours_without
from kubectl_qos.k8s.allocation import resized_pod
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import CPU, MEMORY, Container, Pod
from kubectl_qos.k8s.quantity import Quantity, in_bytes
from kubectl_qos.k8s.releases import Change, Release
from kubectl_qos.k8s.resources import is_sidecar
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.k8s.validation import pod_refusals
from kubectl_qos.qos import oom_score
from kubectl_qos.qos.qos_class import (
    SPEC_RESOURCES,
    ClassStep,
    ClassStepKind,
    QosClass,
    computed_class,
    is_decided_at_pod_level,
    steps_to,
)
from kubectl_qos.qos.ranking import Basis, RankedPod, rank_node

UNIT_BYTES: Final = 1 << 20
"""Requests are raised to whole Mi: users write no finer values, which rarely change a score."""
_RESOURCES: Final = (CPU, MEMORY)

Usage = Mapping[PodKey, PodUsage]


class ObstacleReason(StrEnum):
    """Why no memory request reaches a goal."""

    NO_CAPACITY = "no capacity"
    NO_PROCESSES = "no processes"
    NO_USAGE = "no usage"
    OTHER_NOT_THERE = "other pod not on the node"
    OTHER_HAS_NO_PROCESSES = "other pod has no processes"
    TOO_FEW_PODS = "too few pods"
    CRITICAL = "critical"
    GUARANTEED = "guaranteed"
    BEYOND_BURSTABLE = "beyond burstable"
    RESTRICTED = "restricted by containerd"
    NOT_BY_REQUESTS = "not by requests"
    BEST_EFFORT = "besteffort"
    STATIC = "static"
    NOT_SELECTED = "not selected"
    NO_ROOM = "no room"
    REPLICAS = "other pods of its workload"
    ANOTHER_FIRST = "another would be killed first"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What prevents a goal, in a container or ("") in the whole pod.

    `needed` is the highest oom_score_adj that suffices for the container, `least` the lowest that it can
    have, `ranked` the number of pods of the node with a rank.
    """

    reason: ObstacleReason
    container: str = ""
    needed: int | None = None
    least: int | None = None
    ranked: int | None = None


@dataclass(frozen=True, slots=True)
class Goal:
    """The edits towards a goal; for the steps in `to_choose` the user has to choose a number.

    Without `to_choose` and `obstacle` the edits reach the goal, and all of them are needed.
    """

    edits: tuple[Edit, ...]
    to_choose: tuple[ClassStep, ...] = ()
    obstacle: Obstacle | None = None


def highest_goal(goals: Iterable[Goal]) -> Goal:
    """Return one goal for all pods of a template: the highest of their values, or the first obstacle."""
    highest: dict[tuple[str, Side, str], Edit] = {}
    for goal in goals:
        if goal.obstacle is not None or goal.to_choose:
            return goal
        for edit in goal.edits:
            other = highest.get(edit.target)
            if other is None or (other.quantity and edit.quantity and edit.quantity > other.quantity):
                highest[edit.target] = edit
    return Goal(tuple(highest.values()))


class RankGoal(NamedTuple):
    """A requested kill rank: after the pod `outlive` (its namespace may be ""), or at least `rank`."""

    outlive: PodKey | None = None
    rank: int = 0


def reach_class(pod: Pod, target: QosClass, release: Release) -> Goal:
    """Return the smallest change after which a pod, as stored or written, has the class once recreated."""

    def suffice(subset: Sequence[Edit]) -> bool:
        changed = default_pod(apply_edits(pod, subset), release)
        return computed_class(changed, release) is target and not pod_refusals(changed, release)

    edits: list[Edit] = []
    while True:
        changed = apply_edits(pod, edits)
        steps = steps_to(default_pod(changed, release), target, release)
        more = [edit for step in steps for edit in edits_for_step(step, changed, release)]
        if not more:
            # Zeros count as absent and may stay unless defaulting changes them. Once spec.resources are
            # empty (1.37), only the containers count.
            return Goal(tuple(edits if steps else drop_redundant(edits, suffice)), tuple(steps))
        edits += more


def drop_redundant(edits: list[Edit], suffice: Callable[[Sequence[Edit]], bool]) -> list[Edit]:
    """Return the edits without those that can be left out, the last ones first."""
    for edit in reversed(edits):
        others = [other for other in edits if other is not edit]
        if suffice(others):
            return drop_redundant(others, suffice)
    return edits


def edits_for_step(step: ClassStep, pod: Pod, release: Release) -> Iterator[Edit]:
    """Return the edits of a step; none if the user has to choose a number."""
    owner = POD_LEVEL if step.owner == SPEC_RESOURCES else step.owner
    if step.kind is ClassStepKind.SET_LIMIT:
        yield Edit(owner, Side.LIMITS, step.resource, _limit(step, owner, pod))
    elif step.kind is ClassStepKind.SET_REQUEST:
        yield Edit(owner, Side.REQUESTS, step.resource, step.value)
    elif step.kind is ClassStepKind.LOWER_A_REQUEST:
        yield from _remove_one_limit(pod, release)
    elif step.kind is ClassStepKind.REMOVE_ALL:
        for side in Side:
            for resource in _RESOURCES:
                if current_value(pod, owner, side, resource) is not None:
                    yield Edit(owner, side, resource, None)


def _limit(step: ClassStep, owner: str, pod: Pod) -> Quantity | None:
    """Return the limit of a step; for a pod at least that of each container, or a server refuses it."""
    if owner != POD_LEVEL or step.value is None:
        return step.value
    limits = (container.limits.get(step.resource) for container in pod.containers)
    return max([step.value, *(limit for limit in limits if limit is not None)])


def _remove_one_limit(pod: Pod, release: Release) -> Iterator[Edit]:
    """Remove the first limit that keeps a pod Guaranteed, of CPU rather than of memory.

    Removing a CPU limit kills nothing. A limit next to an explicit request is preferred: without one the
    request is defaulted from the limit, and would be removed with it.
    """
    owners = [POD_LEVEL] if pod.spec.resources is not None else []
    owners += [container.name for container in (*pod.containers, *pod.init_containers)]
    candidates = [Edit(owner, Side.LIMITS, resource, None) for resource in _RESOURCES for owner in owners]
    candidates = [edit for edit in candidates if current_value(pod, *edit.target) is not None]
    candidates.sort(key=lambda edit: current_value(pod, edit.owner, Side.REQUESTS, edit.resource) is None)
    for edit in candidates:
        changed = default_pod(apply_edits(pod, [edit]), release)
        if computed_class(changed, release) is QosClass.BURSTABLE:
            yield edit
            return


def outlive(
    pod: Pod, other: Pod, setup: NodeSetup, neighbours: Sequence[Pod], usage: Usage | None = None
) -> Goal:
    """Return the least memory requests with which a pod is killed after another one of its node.

    After means a higher kill rank: pods that share a rank do not outlive each other. Usage is assumed to stay
    the same. Each container's request is raised to the least sufficient whole Mi (`UNIT_BYTES`); if
    spec.resources decides the pod's class, only its request is raised, which the containers share. A limit is
    raised if the request would exceed it, and to one Mi above the request if the pod would become Guaranteed
    otherwise. Nothing is lowered. The preview checks whether the node has room.

    `pod` is as stored or written, not defaulted by us. The neighbours are the pods of the node, with `other`
    and perhaps the pod itself. Pods without usage count as 0.
    """
    others = neighbours_without(pod, neighbours, setup.release)
    if not setup.node.memory_capacity_bytes:
        return _impossible(ObstacleReason.NO_CAPACITY)
    rows = rank_node(others, setup.node, setup.release, usage).pods
    key = (other.kind, other.namespace, other.name)
    row = next((row for row in rows if (row.pod.kind, row.pod.namespace, row.pod.name) == key), None)
    if row is None:
        return _impossible(ObstacleReason.OTHER_NOT_THERE)
    if row.worst is None or row.worst.points is None:
        return _impossible(ObstacleReason.OTHER_HAS_NO_PROCESSES)
    return _RankSearch(pod, setup, others, usage, row.worst.points).find()


def rank_at_least(
    pod: Pod, rank: int, setup: NodeSetup, neighbours: Sequence[Pod], usage: Usage | None = None
) -> Goal:
    """Return the least memory requests with which a pod gets the kill rank `rank` or a higher one.

    Rank 1 is the next victim: with rank 10 or more at least nine pods are killed before it. The rest is as
    in `outlive`.
    """
    others = neighbours_without(pod, neighbours, setup.release)
    if not setup.node.memory_capacity_bytes:
        return _impossible(ObstacleReason.NO_CAPACITY)
    rows = rank_node(others, setup.node, setup.release, usage).pods
    points = [row.worst.points for row in rows if row.worst is not None and row.worst.points is not None]
    if rank <= 1:
        return Goal(())
    if rank > len(points) + 1:
        return Goal((), obstacle=Obstacle(ObstacleReason.TOO_FEW_PODS, ranked=len(points) + 1))
    return _RankSearch(pod, setup, others, usage, sorted(points, reverse=True)[rank - 2]).find()


def score_at_most(pod: Pod, points: int, setup: NodeSetup, usage: Usage) -> Goal:
    """Return the least memory requests with which no container has more badness than `points`, in pages.

    The rest is as in `outlive`.
    """
    return _RankSearch(pod, setup, (), usage, points + 1).find()


def _impossible(
    reason: ObstacleReason, container: str = "", needed: int | None = None, least: int | None = None
) -> Goal:
    return Goal((), obstacle=Obstacle(reason, container, needed, least))


class _RankSearch:
    def __init__(
        self, pod: Pod, setup: NodeSetup, others: Sequence[Pod], usage: Usage | None, points: int
    ) -> None:
        self._pod = pod
        self._setup = setup
        self._others = others
        self._usage = usage
        self._points = points
        self._release = setup.release
        self._capacity = setup.node.memory_capacity_bytes or 0
        self._recreated = default_pod(as_recreated(pod), setup.release)
        self._is_pod_level = is_decided_at_pod_level(self._recreated, setup.release)

    def find(self) -> Goal:
        running = default_pod(resized_pod(self._pod), self._release)
        ranking = rank_node([running, *self._others], self._setup.node, self._release, self._usage)
        ranked = next(row for row in ranking.pods if row.pod is running)
        if ranked.worst is None:
            return _impossible(ObstacleReason.NO_PROCESSES)
        if ranking.basis is Basis.USAGE and ranked.usage is None:
            return _impossible(ObstacleReason.NO_USAGE)
        if self._is_reached(ranked):
            return Goal(())
        node = self._setup.node
        page, kernel = node.page_size_bytes, oom_score.kernel_formula(node.kernel)
        total = ((node.memory_capacity_bytes or 0) + node.swap_capacity_bytes) // page
        highest = {}
        for score in ranked.alive:
            pages = score.usage.scored_bytes // page if score.usage else 0
            highest[score.name] = oom_score.most_adj(pages, self._points - 1, total, kernel)
        name, needed = min(highest.items(), key=lambda item: item[1])
        qos = computed_class(self._recreated, self._release)
        fixed = oom_score.PodAdj(self._recreated, qos, self._capacity, self._release).fixed
        if fixed is not None and fixed.adj != oom_score.BEST_EFFORT_ADJ:
            reason = ObstacleReason.GUARANTEED if qos is QosClass.GUARANTEED else ObstacleReason.CRITICAL
            return _impossible(reason, name, needed, fixed.adj)
        least = oom_score.restrict_adj(oom_score.LOWEST_BURSTABLE_ADJ, self._setup.node.runtime_oom_score_adj)
        if needed < least:
            by_runtime = needed >= oom_score.LOWEST_BURSTABLE_ADJ
            reason = ObstacleReason.RESTRICTED if by_runtime else ObstacleReason.BEYOND_BURSTABLE
            return _impossible(reason, name, needed, least)
        requests = {name: oom_score.least_request(adj, self._capacity) for name, adj in highest.items()}
        edits = self._raise_pod() if self._is_pod_level else self._raise(self._sizes_of_containers(requests))
        if not self._suffice(edits):
            return _impossible(ObstacleReason.NOT_BY_REQUESTS, name, needed)
        # An omitted request equals its limit.
        return Goal(tuple(drop_redundant(edits, self._suffice)))

    def _raise(self, sizes: Mapping[str, int]) -> list[Edit]:
        raised = {owner: to for owner, to in sizes.items() if to > self._request(owner)}
        if not raised:
            # The least possible request makes a BestEffort pod Burstable.
            first = self._recreated.containers[0].name
            raised = {first: _whole_units(self._request(first) + 1)}
        owners = raised.items()
        edits = [edit for owner, to in owners for edit in raise_request(self._recreated, owner, to)]
        return keep_burstable(self._pod, edits, self._release)

    def _raise_pod(self) -> list[Edit]:
        """Raise the pod's request; its containers share equally what they do not request themselves."""

        def raised(units: int) -> list[Edit]:
            return self._raise({POD_LEVEL: units * UNIT_BYTES})

        containers = len(self._recreated.containers) + len(self._recreated.init_containers)
        now, most = self._request(POD_LEVEL), (containers + 1) * self._capacity
        units = least_units(now // UNIT_BYTES, most // UNIT_BYTES, lambda units: self._suffice(raised(units)))
        return raised(units) if units is not None else []

    def _suffice(self, edits: Iterable[Edit]) -> bool:
        changed = default_pod(as_recreated(apply_edits(self._pod, edits)), self._release)
        if pod_refusals(changed, self._release):
            return False
        if computed_class(changed, self._release) is QosClass.GUARANTEED:
            return False
        [row] = rank_node([changed], self._setup.node, self._release, self._usage).pods
        return self._is_reached(row)

    def _is_reached(self, ranked: RankedPod) -> bool:
        points = ranked.worst.points if ranked.worst is not None else None
        return points is not None and points < self._points

    def _request(self, owner: str) -> int:
        return memory_value(self._recreated, owner, Side.REQUESTS)

    def _counts_as_app(self, container: Container) -> bool:
        if not self._release.has(Change.SIDECAR_OOM_SCORE) or not is_sidecar(container, self._release):
            return False
        return any(container.name == init.name for init in self._recreated.init_containers)

    def _sizes_of_containers(self, needed: Mapping[str, int]) -> dict[str, int]:
        """Return requests of containers with the fewest bytes in total.

        The value of a sidecar follows from its own request or from those of all app containers, so both are
        tried.
        """
        sidecars = [init.name for init in self._recreated.init_containers if self._counts_as_app(init)]
        floors = {0, *(needed.get(name, 0) for name in sidecars)}
        candidates = [self._sizes_with_floor(needed, floor) for floor in sorted(floors)]
        return min(candidates, key=lambda sizes: sum(sizes.values()))

    def _sizes_with_floor(self, needed: Mapping[str, int], floor: int) -> dict[str, int]:
        sizes = {}
        for app in self._recreated.containers:
            sizes[app.name] = self._at_least(app.name, max(needed.get(app.name, 0), floor))
        least = min(sizes.values())
        for init in self._recreated.init_containers:
            of_init = needed.get(init.name, 0)
            is_enough = self._counts_as_app(init) and least >= of_init
            sizes[init.name] = self._at_least(init.name, 0 if is_enough else of_init)
        return sizes

    def _at_least(self, owner: str, needed: int) -> int:
        request = self._request(owner)
        return _whole_units(needed) if needed > request else request


def raise_request(pod: Pod, owner: str, to_bytes: int) -> Iterator[Edit]:
    """Return the memory request, and the limit if it would be below; a limit of 0 is removed.

    `pod` is defaulted.
    """
    quantity = in_bytes(to_bytes)
    yield Edit(owner, Side.REQUESTS, MEMORY, quantity)
    limit = current_value(pod, owner, Side.LIMITS, MEMORY)
    if limit is not None and limit < quantity:
        yield Edit(owner, Side.LIMITS, MEMORY, None if limit.is_zero else quantity)


def keep_burstable(pod: Pod, edits: list[Edit], release: Release) -> list[Edit]:
    """Return the raised requests, with one limit above its own if the pod would become Guaranteed."""
    changed = default_pod(as_recreated(apply_edits(pod, edits)), release)
    if computed_class(changed, release) is not QosClass.GUARANTEED:
        return edits
    last = next(edit for edit in reversed(edits) if edit.side is Side.REQUESTS)
    assert last.quantity is not None, "requests are raised, never removed"
    above = Edit(last.owner, Side.LIMITS, MEMORY, in_bytes(last.quantity.value() + UNIT_BYTES))
    return [edit for edit in edits if edit.target != above.target] + [above]


def least_units(low: int, high: int, works: Callable[[int], bool], guess: int | None = None) -> int | None:
    """Return the least number above `low`, up to `high`, that works, if all larger numbers work too.

    The search is by bisection; from a guess, its steps double first.
    """
    fails, least, step = low, high + 1, 1
    number = high if guess is None else min(max(guess, low + 1), high)
    while least - fails > 1:
        if works(number):
            least = number
        elif number == high:
            return None
        else:
            fails = number
        if guess is None or (least <= high and fails > low):
            number = (fails + least) // 2
        else:
            number = max(least - step, fails + 1) if least <= high else min(fails + step, high)
        step *= 2
    return least if least <= high else None


def _whole_units(size: int) -> int:
    return -(-size // UNIT_BYTES) * UNIT_BYTES

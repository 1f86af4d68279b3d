"""The input of a simulation: a node's pods and containers with their memory and limits, and the scenario.

Building a NodeState evaluates every rule for every pod; simulating on it (engine.py) is then fast enough to
follow a slider. Bytes throughout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Final, NamedTuple, Self

import msgspec
from msgspec import structs

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.allocation import running_pod
from kubectl_qos.k8s.kubelet import ENFORCE_PODS, MEMORY_AVAILABLE, NodeSetup
from kubectl_qos.k8s.objects import Container, Pod
from kubectl_qos.k8s.quantity import Quantity, parse_duration, parse_time
from kubectl_qos.k8s.selectors import DisruptionBudget, Selector
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import ContainerKey, ContainerUsage, PodKey, PodUsage
from kubectl_qos.qos.cgroup.memory import container_swap
from kubectl_qos.qos.cgroup.pod import sets_oom_group
from kubectl_qos.qos.eviction import Due, evictable_capacity, eviction_due, memory_threshold
from kubectl_qos.qos.oom_score import OOM_SCORE_ADJ_MIN, Kernel, is_critical, kernel_formula
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import (
    ContainerScore,
    ProfileCache,
    Profiles,
    RankedPod,
    Ranking,
    rank_node,
)
from kubectl_qos.qos.restart import Restart, may_be_killed_again, restart_after_kill, was_killed_since_resize

IMPORTANT_PRIORITY: Final = 1_000_000_000
"""The highest that a person can give (HighestUserDefinablePriority); above are those of the system."""


class ContainerGrowth(NamedTuple):
    """What a container grows to, by its index in `NodeState.containers`.

    None is the node itself: a further process with oom_score_adj 0, which holds what has grown.
    """

    container: int | None
    to_bytes: int


@dataclass(frozen=True, slots=True)
class Scenario:
    """What to simulate: one of the first four; without any, only evictions that are due already.

    With `eviction` the kubelet evicts before the kernel kills; with `restarts` a container that is restarted
    has its memory again at once, so that its death frees nothing lasting.
    """

    free_bytes: int | None = None
    growth: tuple[ContainerGrowth, ...] = ()
    until_oom: bool = False
    all_at_limit: bool = False
    eviction: bool = False
    restarts: bool = False


class Importance(StrEnum):
    """What makes a pod important."""

    PRIORITY = "priority"
    STATIC = "static pod"
    LABELS = "labels"
    BUDGET = "disruption budget"


class ImportanceReason(msgspec.Struct, frozen=True):
    """Why a pod is important: by its priority, a selector or a budget, which `message` names."""

    reason: Importance
    message: str


@dataclass(frozen=True, slots=True)
class ImportanceRules:
    """Which pods are important beside those of high priority: by labels and disruption budgets."""

    selector: Selector | None = None
    selector_text: str = ""
    budgets: Sequence[DisruptionBudget] = ()


NO_RULES: Final = ImportanceRules()


class SimulatedPod(msgspec.Struct, frozen=True):
    """A pod with processes. `limit_bytes` is the memory.max of its own cgroup, 0 without one."""

    pod: Pod
    qos: QosClass
    limit_bytes: int
    request: Quantity
    critical: bool
    important: tuple[ImportanceReason, ...]

    @property
    def key(self) -> PodKey:
        """Namespace and name."""
        return self.pod.metadata.namespace, self.pod.metadata.name


class SimulatedContainer(msgspec.Struct, frozen=True):
    """A container as the kernel scores it: by its largest process, which holds all of its memory at most.

    `processes` is how many it has, 0 if unknown, `beside_bytes` what is not in the largest one, where known.
    `used_bytes` is what badness counts, `working_set_bytes` what the kubelet counts, both 0 where usage is
    unknown (`has_usage`). `limit_bytes` is its memory.max, 0 without one, `swap_bytes` what it may swap on
    top. `was_killed` is whether it was OOMKilled there, and may be again. `pod_index` is into
    `NodeState.pods`.
    """

    pod_index: int
    name: str
    adj: int
    used_bytes: int
    working_set_bytes: int
    limit_bytes: int = 0
    swap_bytes: int = 0
    restart: Restart = Restart.CONTAINER
    has_usage: bool = True
    processes: int = 1
    beside_bytes: int = 0
    was_killed: bool = False

    def least_bytes(self, used_bytes: int) -> int:
        """What its largest process holds at least, of so much."""
        return used_bytes // self.processes if self.processes else 0

    @property
    def most_bytes(self) -> int:
        """What it may hold, RAM and swap, 0 if that is not limited."""
        return self.limit_bytes + self.swap_bytes if self.limit_bytes else 0


class NodeProcess(NamedTuple):
    """A process of the node itself, outside of all pods."""

    name: str
    adj: int
    used_bytes: int


class AllowedDisruptions(NamedTuple):
    """How many of these pods a disruption budget allows to be disrupted now."""

    name: str
    allowed: int
    pods: frozenset[PodKey]


class Growth(NamedTuple):
    """How many bytes a second memory grows by: of the node, and of each pod and container that grows.

    `starting` are the containers that grow as they start, which is no trend. `peaks` is the most that a store
    of metrics has seen containers use, in bytes.
    """

    node: float = 0.0
    pods: Mapping[PodKey, float] = MappingProxyType({})
    containers: Mapping[ContainerKey, float] = MappingProxyType({})
    starting: frozenset[ContainerKey] = frozenset()
    peaks: Mapping[ContainerKey, int] = MappingProxyType({})


NO_GROWTH: Final = Growth()
START_SECONDS: Final = 300
"""For how long growth may be that of a start, unless the container was OOMKilled at this limit before."""


def growth_on(snapshot: Snapshot, node: str) -> Growth:
    """How fast the pods of a node grow, by a store of metrics, or by samples since the program was started.

    Where usage is a statistic of a time, nothing is reached from there at the growth of today.
    """
    pods = [pod for pod in snapshot.by_node().get(node, ()) if not pod.is_terminal]
    seen = snapshot.history.of(pods)
    if snapshot.history.stat:
        return NO_GROWTH
    if seen:
        rates = {key: past.rate for key, past in seen.items() if past.rate > 0}
    else:
        rates = dict(snapshot.rates([(pod.namespace, pod.name) for pod in pods]))
    peaks = {key: past.peak_bytes for key, past in seen.items()}
    of_node = snapshot.node_rates.get(node, 0.0)
    if not rates and not peaks and not of_node:
        return NO_GROWTH
    starting = {key for pod in pods for key in _starting(pod, snapshot.usage_of(pod)) if key in rates}
    growth = growth_of({key: rate for key, rate in rates.items() if key not in starting})
    return growth._replace(node=growth.node + of_node, starting=frozenset(starting), peaks=peaks)


def growth_of(rates: Mapping[ContainerKey, float]) -> Growth:
    """How fast the pods of one node grow, by the rates of their containers."""
    pods: dict[PodKey, float] = {}
    for (pod, _), rate in rates.items():
        pods[pod] = pods.get(pod, 0.0) + rate
    return Growth(sum(pods.values()), pods, rates) if pods else NO_GROWTH


def _starting(pod: Pod, usage: PodUsage | None) -> Iterator[ContainerKey]:
    """The containers that had just been started as they were sampled, and were not OOMKilled before.

    A container is as old as its pod, or as the end of the run before it.
    """
    sampled = parse_time(usage.timestamp) if usage is not None else None
    for status in pod.status.every_container if sampled is not None else ():
        ends = [end.finished_at for end in status.ends if end.finished_at]
        started = parse_time(ends[0] if ends else pod.metadata.creation_timestamp)
        if started is None or sampled is None or (sampled - started).total_seconds() >= START_SECONDS:
            continue
        if not was_killed_since_resize(pod, status.name):
            yield (pod.namespace, pod.name), status.name


class Thresholds(NamedTuple):
    """Below how much available memory the kubelet evicts (None is never), and the minimum reclaim on top.

    `hugepages_bytes` come off what is available (1.37 and later); `soft_bytes` is of the soft threshold,
    which must be crossed for `soft_grace_seconds`.
    """

    node_bytes: int | None
    kubepods_bytes: int | None
    reclaim_bytes: int
    hugepages_bytes: int = 0
    soft_bytes: int | None = None
    soft_grace_seconds: int = 0


class MemoryUse(NamedTuple):
    """What is in use on a node now, in bytes: by the kernel's count, as working sets, and by the node.

    `members` are the containers of each pod by their index, `unmeasured` those of unknown usage, `immune`
    those that the kernel never kills. `pod_swap` is what the containers of each pod may swap. `most_bytes` is
    what the node holds at most, in RAM and in the swap that its containers and its own processes may use.
    """

    containers: list[int]
    working_sets: list[int]
    members: list[list[int]]
    pods: list[int]
    pod_working_sets: list[int]
    pod_swap: list[int]
    total: int
    working_set: int
    own: int
    may_swap: int
    most_bytes: int
    unmeasured: frozenset[int]
    immune: frozenset[int]

    @classmethod
    def of(cls, state: NodeState) -> Self:
        """Add up the containers of a node."""
        members: list[list[int]] = [[] for _ in state.pods]
        pods, working, swap = ([0] * len(state.pods) for _ in range(3))
        for index, container in enumerate(state.containers):
            place = container.pod_index
            members[place].append(index)
            pods[place] += container.used_bytes
            working[place] += container.working_set_bytes
            swap[place] += container.swap_bytes
        may_swap, own = min(sum(swap), state.swap_bytes), state.own_bytes or 0
        every = list(enumerate(state.containers))
        return cls(
            [container.used_bytes for container in state.containers],
            [container.working_set_bytes for container in state.containers],
            members,
            pods,
            working,
            [min(size, state.swap_bytes) for size in swap],
            sum(pods),
            sum(working),
            own,
            may_swap,
            state.capacity_bytes + min(may_swap + own, state.swap_bytes),
            frozenset([index for index, container in every if not container.has_usage]),
            frozenset([index for index, container in every if container.adj == OOM_SCORE_ADJ_MIN]),
        )

    @property
    def free_bytes(self) -> int:
        """What is free by the kernel's count."""
        return self.most_bytes - self.own - self.total


@dataclass(frozen=True)
class NodeState:
    """One node, its pods in kill order.

    `total_bytes` is RAM and swap, by which oom_score_adj is scaled, `capacity_bytes` RAM alone, both 0 if
    unknown: then only own limits are known.
    `kubepods_bytes` is memory.max of the cgroup of all pods, None where there is none. `has_oom_group` is
    whether containers have memory.oom.group set, `by_working_set` whether RSS is unknown for some of them.
    `own_bytes` is what the node itself uses, its known `own_processes` included; None is unknown. `due` is
    whether it says that its kubelet evicts now. `growth` is how fast pods grow, where that is known.
    """

    setup: NodeSetup
    pods: tuple[SimulatedPod, ...]
    containers: tuple[SimulatedContainer, ...]
    total_bytes: int
    capacity_bytes: int
    kubepods_bytes: int | None
    thresholds: Thresholds
    has_oom_group: bool
    without_usage: int
    by_working_set: bool
    own_bytes: int | None = None
    own_processes: tuple[NodeProcess, ...] = ()
    due: Due = Due.NO
    budgets: tuple[AllowedDisruptions, ...] = ()
    growth: Growth = NO_GROWTH

    @cached_property
    def kernel(self) -> Kernel:
        """Which formula the node's kernel uses."""
        return kernel_formula(self.setup.node.kernel)

    @property
    def swap_bytes(self) -> int:
        """All swap of the machine."""
        return self.total_bytes - self.capacity_bytes

    @cached_property
    def use(self) -> MemoryUse:
        """What is in use now."""
        return MemoryUse.of(self)

    @property
    def used_bytes(self) -> int:
        """What containers use, by the kernel's count."""
        return sum(container.used_bytes for container in self.containers)

    @property
    def is_unmeasured(self) -> bool:
        """Whether the usage of none of its containers is known."""
        return bool(self.containers) and not any(container.has_usage for container in self.containers)

    @property
    def is_known(self) -> bool:
        """Whether the node's memory, and the usage of some container, are known: then its killers wait."""
        return self.capacity_bytes > 0 and any(container.has_usage for container in self.containers)

    def require_capacity(self) -> NodeState:
        """Return the state. Raises InputError if nothing says when the node is full."""
        if not self.capacity_bytes:
            raise InputError(
                f"the memory capacity of {self.setup.node.name or 'the node'} is unknown:"
                " when it is full cannot be computed",
                hint="--node-memory 16Gi assumes one",
            )
        return self

    def lacks_usage(self, key: PodKey) -> bool:
        """Whether the usage of any container of a pod is unknown."""
        return any(self.pod_for(self.containers[index]).key == key for index in self.use.unmeasured)

    def may_swap(self, containers: Iterable[SimulatedContainer]) -> int:
        """How much of the swap these can use."""
        return min(sum([container.swap_bytes for container in containers]), self.swap_bytes)

    def pod_for(self, container: SimulatedContainer) -> SimulatedPod:
        """The pod that a container belongs to."""
        return self.pods[container.pod_index]

    def find_container(self, pod: str, container: str = "", namespace: str | None = None) -> int:
        """The index of a container. Raises InputError where none or several match."""
        matches = [
            index
            for index, candidate in enumerate(self.containers)
            if self.pod_for(candidate).pod.name == pod
            and namespace in {None, self.pod_for(candidate).pod.namespace}
            and container in {"", candidate.name}
        ]
        if len(matches) == 1:
            return matches[0]
        if not matches:
            what = f"container {container} of pod {pod}" if container else f"pod {pod}"
            raise InputError(
                f"{what} has no processes on {self.setup.node.name or 'the node'}",
                hint="kubectl qos top --containers --node lists what runs there",
            )
        candidates = [self.containers[index] for index in matches]
        namespaces = sorted({self.pod_for(candidate).key[0] for candidate in candidates})
        if len(namespaces) > 1:
            raise InputError(
                f"pod {pod} is in several namespaces: {', '.join(namespaces)}", hint="-n has its namespace"
            )
        raise InputError(
            f"pod {pod} has several containers: {', '.join(candidate.name for candidate in candidates)}",
            hint=f"say which one grows: pod/{pod}:{candidates[0].name}=SIZE",
        )


def build_node_state(
    pods: Iterable[Pod],
    setup: NodeSetup,
    usage: Mapping[PodKey, PodUsage],
    rules: ImportanceRules = NO_RULES,
    *,
    own_bytes: int | None = None,
    own_processes: Sequence[NodeProcess] = (),
) -> NodeState:
    """The node's pods (defaulted) with their present usage; a pod without usage counts as using nothing."""
    ranking = rank_node(pods, setup.node, setup.release, usage)
    return ranked_node_state(ranking, setup, rules, own_bytes=own_bytes, own_processes=own_processes)


def state_of_node(
    snapshot: Snapshot,
    node: str,
    rules: ImportanceRules = NO_RULES,
    pods: Iterable[Pod] | None = None,
    profiles: ProfileCache | None = None,
) -> NodeState:
    """A node of a snapshot with what its pods, or these instead, were allocated, and what it uses itself.

    `profiles` are shared by the nodes of a snapshot. Raises InputError for a node that runs Windows.
    """
    setup = snapshot.setup(node)
    key = setup.node.memory_capacity_bytes, setup.release
    alike = ({} if profiles is None else profiles).setdefault(key, Profiles(*key))
    pods = snapshot.by_node().get(node, ()) if pods is None else pods
    running = [running_pod(pod, setup.release) for pod in pods]
    ranking = rank_node(running, setup.node, setup.release, snapshot.usage, alike)
    state = ranked_node_state(ranking, setup, rules, own_bytes=snapshot.own_bytes(node))
    return replace(state, growth=growth_on(snapshot, node))


BuiltPods = dict[int, tuple[tuple[ContainerScore, ...], SimulatedPod, list[SimulatedContainer]]]
"""Parts of states of one node under the same rules, by the id of a pod's scores."""


def ranked_node_state(
    ranking: Ranking,
    setup: NodeSetup,
    rules: ImportanceRules = NO_RULES,
    *,
    own_bytes: int | None = None,
    own_processes: Sequence[NodeProcess] = (),
    built: BuiltPods | None = None,
) -> NodeState:
    """As `build_node_state`, of pods that are ranked already; `built` keeps parts for the next such state.

    Raises InputError for a node that runs Windows.
    """
    node, kubelet = setup.node, setup.kubelet
    capacity = node.memory_capacity_bytes or 0
    if capacity < node.page_size_bytes:
        capacity = 0
    if node.is_windows:
        raise InputError(
            f"{node.name or 'the node'} runs Windows, which has no OOM killer: nothing is killed there",
            hint="kubectl qos top pods --sort-by eviction shows the order in which its kubelet evicts",
        )
    simulated: list[SimulatedPod] = []
    containers: list[SimulatedContainer] = []
    built = {} if built is None else built
    for row in ranking.pods:
        if row.worst is None:
            continue
        key, index = id(row.containers), len(simulated)
        if key not in built:
            # The scores are kept, so that no others get their id.
            parts = _build_containers(row, index, setup)
            built[key] = row.containers, _build_pod(row, setup, rules), parts
        scores, pod, of_pod = built[key]
        if of_pod and of_pod[0].pod_index != index:
            of_pod = [structs.replace(container, pod_index=index) for container in of_pod]
            built[key] = scores, pod, of_pod
        simulated.append(pod)
        containers += of_pod
    is_enforced = ENFORCE_PODS in kubelet.enforce_node_allocatable and kubelet.cgroups_per_qos
    kubepods = node.allocatable_memory_bytes if is_enforced else None
    return NodeState(
        setup=setup,
        pods=tuple(simulated),
        containers=tuple(containers),
        total_bytes=capacity + node.swap_capacity_bytes if capacity else 0,
        capacity_bytes=capacity,
        kubepods_bytes=kubepods,
        thresholds=_thresholds(setup, capacity, kubepods),
        has_oom_group=sets_oom_group(setup),
        without_usage=ranking.without_usage,
        by_working_set=any(
            score.usage is not None and score.usage.rss_bytes is None
            for row in ranking.pods
            for score in row.alive
        ),
        own_bytes=own_bytes,
        own_processes=tuple(own_processes),
        due=eviction_due(node, ((row.pod, row.usage) for row in ranking.pods), own_bytes),
        budgets=tuple(_allowed_disruptions(budget, simulated) for budget in rules.budgets),
    )


def _build_containers(row: RankedPod, pod_index: int, setup: NodeSetup) -> list[SimulatedContainer]:
    profiles = {profile.name: profile for profile in row.profile.containers}
    containers = []
    for score in row.alive:
        name, usage, profile = score.name, score.usage, profiles[score.name]
        containers.append(
            SimulatedContainer(
                pod_index=pod_index,
                name=name,
                adj=score.adj or 0,
                used_bytes=usage.kernel_bytes if usage is not None else 0,
                working_set_bytes=usage.working_set_bytes if usage is not None else 0,
                limit_bytes=profile.limit_bytes,
                swap_bytes=_swap_bytes(row, profile.container, profile.limit_bytes, setup),
                restart=restart_after_kill(row.pod, profile.container, profile.kind, setup.release),
                has_usage=usage is not None,
                processes=_count_processes(row, usage),
                beside_bytes=usage.kernel_bytes - usage.scored_bytes if usage is not None else 0,
                was_killed=row.usage is not None and may_be_killed_again(row.pod, name, row.usage.timestamp),
            )
        )
    return containers


def _count_processes(row: RankedPod, usage: ContainerUsage | None) -> int:
    """How many processes share its memory at most: 1 where the largest is known, 0 where nothing is."""
    if usage is None or usage.largest_bytes is not None:
        return 1
    of_pod = row.usage.details.processes if row.usage is not None else 0
    return max(of_pod - len(row.alive) + 1, 1) if of_pod else 0


def _swap_bytes(row: RankedPod, container: Container, limit: int, setup: NodeSetup) -> int:
    total = setup.node.swap_capacity_bytes
    if not total:
        return 0
    swap = container_swap(row.pod, container, row.qos, limit, setup)
    if swap.swap_max is not None:
        return total if swap.swap_max == "max" else min(int(swap.swap_max), total)
    if swap.memory_and_swap > 0:
        return min(max(swap.memory_and_swap - limit, 0), total)
    return total


def _build_pod(row: RankedPod, setup: NodeSetup, rules: ImportanceRules) -> SimulatedPod:
    pod = row.pod
    important = []
    priority = pod.spec.priority or 0
    critical = is_critical(pod)
    if priority >= IMPORTANT_PRIORITY:
        important.append(ImportanceReason(Importance.PRIORITY, pod.spec.priority_class_name or str(priority)))
    elif critical:
        important.append(ImportanceReason(Importance.STATIC, ""))
    if rules.selector is not None and rules.selector.matches(pod.metadata.labels):
        important.append(ImportanceReason(Importance.LABELS, rules.selector_text))
    # Without the node's capacity nobody knows which of several containers dies there.
    is_ordered = len(row.alive) == 1 or all(score.adj is not None for score in row.alive)
    limit = row.profile.limit_bytes if setup.kubelet.cgroups_per_qos and is_ordered else 0
    return SimulatedPod(pod, row.qos, limit, row.profile.eviction_request, critical, tuple(important))


def _allowed_disruptions(budget: DisruptionBudget, pods: Iterable[SimulatedPod]) -> AllowedDisruptions:
    """A manifest without a status allows none, as no controller has counted its pods."""
    covered = frozenset(pod.key for pod in pods if budget.covers(pod.pod))
    return AllowedDisruptions(budget.metadata.name, budget.status.disruptions_allowed or 0, covered)


def _thresholds(setup: NodeSetup, capacity: int, kubepods: int | None) -> Thresholds:
    """The hard thresholds of memory.available and allocatableMemory.available, and the minimum reclaim.

    The second signal copies both from the first; percentages are of its own capacity.
    Source: pkg/kubelet/eviction/helpers.go (ParseThresholdConfig, addAllocatableThresholds).
    """
    kubelet = setup.kubelet
    text = kubelet.eviction_hard.get(MEMORY_AVAILABLE)
    reclaim = kubelet.eviction_minimum_reclaim.get(MEMORY_AVAILABLE)
    evictable = evictable_capacity(setup) or 0
    grace = kubelet.eviction_soft_grace_period.get(MEMORY_AVAILABLE)
    return Thresholds(
        memory_threshold(text, evictable),
        memory_threshold(text, kubepods) if kubepods is not None else None,
        memory_threshold(reclaim, evictable) or 0,
        capacity - evictable,
        memory_threshold(kubelet.eviction_soft.get(MEMORY_AVAILABLE), evictable),
        parse_duration(grace) // 10**9 if grace else 0,
    )

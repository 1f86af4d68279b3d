"""Input of a simulation: a node's pods and containers with memory and limits, and the scenario.

Building a NodeState evaluates every rule for every pod; simulating on it (engine.py) is fast enough to follow
a slider. Bytes throughout. Source of priorities: pkg/apis/scheduling/types.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple, Self

import msgspec
from msgspec import structs

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.allocation import limit_in_force, running_pod
from kubectl_qos.k8s.kubelet import ENFORCE_PODS, NodeSetup, hugepages_bytes
from kubectl_qos.k8s.objects import Container, Pod
from kubectl_qos.k8s.quantity import Quantity, parse_time
from kubectl_qos.k8s.selectors import DisruptionBudget, Selector
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import ContainerKey, ContainerUsage, PodKey, PodUsage, ended_after
from kubectl_qos.qos.cgroup.pod import sets_oom_group
from kubectl_qos.qos.cgroup.values import container_swap
from kubectl_qos.qos.eviction import (
    Due,
    Thresholds,
    eviction_due,
    evicts_for_memory,
    is_without_stats,
    thresholds_on,
)
from kubectl_qos.qos.oom_score import OOM_SCORE_ADJ_MIN, Kernel, is_critical, kernel_formula
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import ContainerScore, ProfileCache, RankedPod, Ranking, rank_node
from kubectl_qos.qos.restart import (
    LOOP_RESTARTS,
    Restart,
    may_be_killed_again,
    oom_loops,
    restart_after_kill,
    stated_limit,
    stopped_statuses,
    was_killed_since_resize,
)

IMPORTANT_PRIORITY: Final = 1_000_000_000
"""Highest priority that users can set; system priorities are higher."""


class Importance(StrEnum):
    """Criterion by which a pod is important."""

    PRIORITY = "priority"
    STATIC = "static pod"
    LABELS = "labels"
    BUDGET = "disruption budget"


class ImportanceReason(msgspec.Struct, frozen=True):
    """Why a pod is important: by its priority, a selector or a budget, which `message` names."""

    reason: Importance
    message: str


class ImportanceRules(msgspec.Struct, frozen=True):
    """Criteria for important pods other than high priority: labels and disruption budgets."""

    selector: Selector | None = None
    selector_text: str = ""
    budgets: Sequence[DisruptionBudget] = ()


NO_RULES: Final = ImportanceRules()


class SimulatedPod(msgspec.Struct, frozen=True):
    """A pod with processes.

    `limit_bytes` is the memory.max of its own cgroup, 0 without one; `left_bytes` are volumes in memory that
    no running container counts.
    """

    pod: Pod
    qos: QosClass
    limit_bytes: int
    request: Quantity
    critical: bool
    important: tuple[ImportanceReason, ...]
    left_bytes: int = 0

    @property
    def key(self) -> PodKey:
        """Namespace and name."""
        return self.pod.key


class SimulatedContainer(msgspec.Struct, frozen=True):
    """A container as the kernel scores it: by its largest process, which holds at most all of its memory."""

    pod_index: int
    """Index in `NodeState.pods`."""
    name: str
    adj: int
    used_bytes: int
    """Memory that badness counts; 0 if unknown."""
    working_set_bytes: int
    """Memory that the kubelet counts; 0 if unknown."""
    limit_bytes: int = 0
    """memory.max, 0 without one."""
    swap_bytes: int = 0
    """Swap that it may use in addition."""
    restart: Restart = Restart.CONTAINER
    has_usage: bool = True
    processes: int = 1
    """0 if unknown."""
    others_bytes: int = 0
    """Known memory outside its largest process."""
    was_killed: bool = False
    """OOMKilled at this limit, and may be again."""
    is_looping: bool = False
    """`was_killed`, not for the first time."""

    def least_bytes(self, used_bytes: int) -> int:
        """Return the least memory of its largest process if it uses `used_bytes`."""
        return used_bytes // self.processes if self.processes else 0

    @property
    def most_bytes(self) -> int:
        """RAM and swap that it may use, 0 if unlimited."""
        return self.limit_bytes + self.swap_bytes if self.limit_bytes else 0


class KilledContainer(NamedTuple):
    """A container that was OOMKilled at its limit and waits to restart, or runs again with unknown usage."""

    pod: Pod
    qos: QosClass
    name: str
    limit_bytes: int
    is_of_pod: bool
    """Whether the limit is that of the pod's cgroup."""
    is_own: bool
    """Whether no other container uses memory below the limit."""
    is_looping: bool
    starts: bool
    """Whether it waits to restart."""


class NodeProcess(NamedTuple):
    """A process of the node itself, outside all pods."""

    name: str
    adj: int
    used_bytes: int


class AllowedDisruptions(NamedTuple):
    """A disruption budget: how many of its pods may be disrupted now."""

    name: str
    allowed: int
    pods: frozenset[PodKey]


class Growth(NamedTuple):
    """Growth of memory in bytes per second, of the node, and of pods and containers that grow."""

    node: float = 0.0
    pods: Mapping[PodKey, float] = MappingProxyType({})
    containers: Mapping[ContainerKey, float] = MappingProxyType({})
    starting: frozenset[ContainerKey] = frozenset()
    """Containers that grow only because they have just started."""
    peaks: Mapping[ContainerKey, int] = MappingProxyType({})
    """Peak usage of containers in the metrics history, in bytes."""


NO_GROWTH: Final = Growth()
START_SECONDS: Final = 300
"""Growth within this time after a start does not count, unless the limit OOMKilled the container before."""


def growth_on(snapshot: Snapshot, node: str) -> Growth:
    """Return the growth on a node, from the metrics history or from samples since the program was started.

    There is none if usage is a statistic of the past, such as a peak.
    """
    pods = [pod for pod in snapshot.by_node().get(node, ()) if not pod.is_terminal]
    seen = snapshot.history.of(pods)
    if snapshot.history.stat:
        return NO_GROWTH
    if seen:
        rates = {key: past.rate for key, past in seen.items() if past.rate > 0}
    else:
        rates = dict(snapshot.rates([pod.key for pod in pods]))
    peaks = {key: past.peak_bytes for key, past in seen.items()}
    of_node = snapshot.node_rates.get(node, 0.0)
    if not rates and not peaks and not of_node:
        return NO_GROWTH
    ooms = snapshot.system_ooms.get(node, ())
    starting = {key for pod in pods for key in _starting(pod, snapshot.usage_of(pod), ooms) if key in rates}
    steady = {key: rate for key, rate in rates.items() if key not in starting}
    of_pods: dict[PodKey, float] = {}
    for (key, _), rate in steady.items():
        of_pods[key] = of_pods.get(key, 0.0) + rate
    return Growth(sum(of_pods.values()) + of_node, of_pods, steady, frozenset(starting), peaks)


def _starting(pod: Pod, usage: PodUsage | None, ooms: Collection[str]) -> Iterator[ContainerKey]:
    """Yield containers that had just started when they were sampled, unless they were OOMKilled before.

    A container started when its pod was created, or when its previous run ended.
    """
    sampled = parse_time(usage.timestamp) if usage is not None else None
    for status in pod.status.every_container if sampled is not None else ():
        ends = [end.finished_at for end in status.ends if end.finished_at]
        started = parse_time(ends[0] if ends else pod.metadata.creation_timestamp)
        if started is None or sampled is None or (sampled - started).total_seconds() >= START_SECONDS:
            continue
        if sampled < started or not was_killed_since_resize(pod, status.name, ooms):
            yield pod.key, status.name


class MemoryUse(NamedTuple):
    """Memory in use on a node, in bytes, by the kernel's count and as working sets (the kubelet's count).

    Lists are in the order of `NodeState.containers` and `NodeState.pods`, and containers are their indices.
    """

    containers: list[int]
    working_sets: list[int]
    members: list[list[int]]
    """The containers of each pod."""
    pods: list[int]
    pod_working_sets: list[int]
    pod_swap: list[int]
    """Swap that each pod may use."""
    total: int
    working_set: int
    own: int
    """Usage outside pods."""
    may_swap: int
    most_bytes: int
    """RAM without hugepages, and the swap that containers and the node's own processes may use."""
    unmeasured: frozenset[int]
    """Containers of unknown usage."""
    immune: frozenset[int]
    """Containers that the kernel never kills."""

    @classmethod
    def of(cls, state: NodeState) -> Self:
        """Add up the containers of a node."""
        members: list[list[int]] = [[] for _ in state.pods]
        pods, working = ([pod.left_bytes for pod in state.pods] for _ in range(2))
        swap = [0] * len(state.pods)
        every = list(enumerate(state.containers))
        used = [container.used_bytes for container in state.containers]
        working_sets = [container.working_set_bytes for container in state.containers]
        for index, container in every:
            pod = container.pod_index
            members[pod].append(index)
            pods[pod] += container.used_bytes
            working[pod] += container.working_set_bytes
            swap[pod] += container.swap_bytes
        # Volumes in memory count for pods, but for no container.
        left = sum([pod.left_bytes for pod in state.pods])
        may_swap, own = min(sum(swap), state.swap_bytes), max((state.own_bytes or 0) - left, 0)
        return cls(
            containers=used,
            working_sets=working_sets,
            members=members,
            pods=pods,
            pod_working_sets=working,
            pod_swap=[min(size, state.swap_bytes) for size in swap],
            total=left + sum(used),
            working_set=left + sum(working_sets),
            own=own,
            may_swap=may_swap,
            most_bytes=state.regular_bytes + min(may_swap + own, state.swap_bytes),
            unmeasured=frozenset([index for index, container in every if not container.has_usage]),
            immune=frozenset([index for index, container in every if container.adj == OOM_SCORE_ADJ_MIN]),
        )

    @property
    def free_bytes(self) -> int:
        """Free memory by the kernel's count."""
        return self.most_bytes - self.own - self.total


@dataclass(frozen=True)
class NodeState:
    """One node, its pods in kill order."""

    setup: NodeSetup
    pods: tuple[SimulatedPod, ...]
    containers: tuple[SimulatedContainer, ...]
    total_bytes: int
    """RAM and swap, which scale oom_score_adj; 0 if unknown: then only own limits are known."""
    capacity_bytes: int
    """RAM; 0 if unknown."""
    kubepods_bytes: int | None
    """memory.max of the cgroup of all pods, None without one."""
    thresholds: Thresholds
    has_oom_group: bool
    """Containers have memory.oom.group set."""
    without_usage: int
    by_working_set: bool
    """RSS is unknown for some containers."""
    own_bytes: int | None = None
    """Usage outside pods, including `own_processes`; None if unknown."""
    own_processes: tuple[NodeProcess, ...] = ()
    due: Due = Due.NO
    """Whether the node reports that its kubelet evicts now."""
    budgets: tuple[AllowedDisruptions, ...] = ()
    growth: Growth = NO_GROWTH
    without_stats: tuple[SimulatedPod, ...] = ()
    """Other pods, which the kubelet evicts first; that frees nothing."""
    killed: tuple[KilledContainer, ...] = ()

    @cached_property
    def kernel(self) -> Kernel:
        """Formula of the node's kernel."""
        return kernel_formula(self.setup.node.kernel)

    @property
    def regular_bytes(self) -> int:
        """RAM without hugepages, which no memory cgroup counts."""
        return max(self.capacity_bytes - hugepages_bytes(self.setup.node.capacity), 0)

    @property
    def swap_bytes(self) -> int:
        """All swap of the machine."""
        return self.total_bytes - self.capacity_bytes

    @cached_property
    def use(self) -> MemoryUse:
        """The memory in use now."""
        return MemoryUse.of(self)

    @property
    def used_bytes(self) -> int:
        """Usage of containers, by the kernel's count."""
        return sum(container.used_bytes for container in self.containers)

    @cached_property
    def is_node_measured(self) -> bool:
        """Whether the usage of the whole node is known, with that of containers of unknown usage.

        A container that has restarted since the node was sampled is not in it.
        """
        sampled_at, unmeasured = (
            self.setup.node.sampled_at,
            map(self.containers.__getitem__, self.use.unmeasured),
        )
        return self.own_bytes is not None and not any(
            container.name in ended_after(self.pod_for(container).pod, sampled_at) for container in unmeasured
        )

    @property
    def is_unmeasured(self) -> bool:
        """Whether no container has known usage."""
        return bool(self.containers) and not any(container.has_usage for container in self.containers)

    @property
    def is_known(self) -> bool:
        """Whether the node's memory and the usage of some container are known."""
        return self.capacity_bytes > 0 and any(container.has_usage for container in self.containers)

    def outline(self) -> NodeState:
        """Return the node with only one container, if possible of known usage.

        Notes about many nodes need no more, and it takes a hundredth of the memory.
        """
        measured = (container for container in self.containers if container.has_usage)
        container = next(measured, self.containers[0] if self.containers else None)
        if container is None:
            return replace(self, pods=self.pods[:1])
        return replace(
            self, pods=(self.pod_for(container),), containers=(structs.replace(container, pod_index=0),)
        )

    def require_capacity(self) -> NodeState:
        """Return the state. Raises InputError if the node's capacity is unknown."""
        if not self.capacity_bytes:
            raise InputError(
                f"the memory capacity of {self.setup.node.name or 'the node'} is unknown,"
                " so a full node cannot be predicted",
                hint="--node-memory 16Gi assumes one",
            )
        return self

    def lacks_usage(self, key: PodKey) -> bool:
        """Return whether a container of the pod has unknown usage."""
        return any(self.pod_for(self.containers[index]).key == key for index in self.use.unmeasured)

    def pod_for(self, container: SimulatedContainer) -> SimulatedPod:
        """Return the pod of a container."""
        return self.pods[container.pod_index]

    def find_container(self, pod: str, container: str = "", namespace: str | None = None) -> int:
        """Return the index of a container. Raises InputError if none or several match."""
        of_pod = []
        for index, other in enumerate(self.containers):
            own_namespace, owner = self.pod_for(other).key
            if owner == pod and namespace in {None, own_namespace}:
                of_pod.append(index)
        matches = [index for index in of_pod if container in {"", self.containers[index].name}]
        if len(matches) == 1:
            return matches[0]
        if not matches and of_pod:
            running = dict.fromkeys(self.containers[index].name for index in of_pod)
            raise InputError(
                f"pod {pod} has no running container {container}", hint=f"it has {', '.join(running)}"
            )
        if not matches:
            raise InputError(
                f"pod {pod} has no processes on {self.setup.node.name or 'the node'}",
                hint="kubectl qos top --containers --node lists what runs there",
            )
        namespaces = sorted({self.pod_for(self.containers[index]).key[0] for index in matches})
        if len(namespaces) > 1:
            raise InputError(
                f"pod {pod} is in several namespaces: {', '.join(namespaces)}", hint="choose one with -n"
            )
        names = [self.containers[index].name for index in matches]
        raise InputError(
            f"pod {pod} has several containers: {', '.join(names)}",
            hint=f"name the container that grows: pod/{pod}:{names[0]}=SIZE",
        )


def state_of_node(
    snapshot: Snapshot,
    node: str,
    rules: ImportanceRules = NO_RULES,
    pods: Iterable[Pod] | None = None,
    profiles: ProfileCache | None = None,
) -> NodeState:
    """Build the state of a node of a snapshot with allocated resources; `pods` replaces its pods.

    Nodes of a snapshot share `profiles`. Raises InputError for a node that runs Windows.
    """
    setup = snapshot.setup(node)
    shared = (profiles or ProfileCache()).for_node(setup)
    pods = snapshot.by_node().get(node, ()) if pods is None else pods
    running = [running_pod(pod, setup.release) for pod in pods]
    ranking = rank_node(running, setup.node, setup.release, snapshot.usage, shared)
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
    """Build the state from a ranking; `built` caches parts between calls.

    Raises InputError for a node that runs Windows.
    """
    node, kubelet = setup.node, setup.kubelet
    if node.is_windows:
        sentence = f"{node.name or 'the node'} runs Windows, which has no OOM killer"
        if not evicts_for_memory(setup):
            raise InputError(
                f"{sentence}, and its kubelet does not evict for memory: nothing is killed there"
            )
        raise InputError(
            f"{sentence}: only its kubelet ends pods",
            hint="kubectl qos top pods --sort-by eviction shows the order in which it evicts",
        )
    capacity = node.memory_capacity_bytes or 0
    if capacity < node.page_size_bytes:
        capacity = 0
    simulated, containers = _build_parts(ranking, setup, rules, {} if built is None else built)
    is_enforced = ENFORCE_PODS in kubelet.enforce_node_allocatable and kubelet.cgroups_per_qos
    kubepods = node.allocatable_memory_bytes if is_enforced else None
    usages = (score.usage for row in ranking.pods for score in row.alive if score.usage is not None)
    return NodeState(
        setup=setup,
        pods=tuple(simulated),
        containers=tuple(containers),
        total_bytes=capacity + node.swap_capacity_bytes if capacity else 0,
        capacity_bytes=capacity,
        kubepods_bytes=kubepods,
        thresholds=thresholds_on(setup, capacity, kubepods),
        has_oom_group=sets_oom_group(setup),
        without_usage=ranking.without_usage,
        by_working_set=any(usage.rss_bytes is None for usage in usages),
        own_bytes=own_bytes,
        own_processes=tuple(own_processes),
        due=eviction_due(setup, ((row.pod, row.usage) for row in ranking.pods), own_bytes),
        budgets=tuple(
            AllowedDisruptions(
                budget.metadata.name,
                # A budget in a manifest has no status: it allows no disruption.
                budget.status.disruptions_allowed or 0,
                frozenset(pod.key for pod in simulated if budget.covers(pod.pod)),
            )
            for budget in rules.budgets
        ),
        without_stats=_without_stats(ranking, setup, rules),
        killed=tuple(chain.from_iterable(_killed(row, setup) for row in ranking.pods)),
    )


def with_ranking(state: NodeState, ranking: Ranking, built: BuiltPods) -> NodeState:
    """Return the state with other specs of its pods, such as edited ones, and the same usage."""
    pods, containers = _build_parts(ranking, state.setup, NO_RULES, built)
    return replace(
        state,
        pods=tuple(pods),
        containers=tuple(containers),
        without_usage=ranking.without_usage,
        without_stats=_without_stats(ranking, state.setup, NO_RULES),
    )


def _without_stats(ranking: Ranking, setup: NodeSetup, rules: ImportanceRules) -> tuple[SimulatedPod, ...]:
    pods = [_build_pod(row, setup, rules) for row in ranking.pods if is_without_stats(row)]
    return tuple(sorted(pods, key=lambda pod: pod.pod.spec.priority or 0))


def _killed(row: RankedPod, setup: NodeSetup) -> Iterator[KilledContainer]:
    """Yield the containers that reach the limit that killed them when they use as much as before."""
    pod, measured = row.pod, {score.name for score in row.alive if score.usage is not None}
    stopped = () if pod.is_terminal else stopped_statuses(pod)
    if not stopped:
        return
    waiting = {loop.container for loop in oom_loops(pod)}
    for status in stopped:
        name = status.name
        is_again = name in waiting or (status.has_processes and name not in measured)
        limit = limit_in_force(pod, name, setup.release) if is_again else 0
        if limit and was_killed_since_resize(pod, name, setup.node.full_at):
            of_pod = row.profile.limit_bytes if setup.kubelet.cgroups_per_qos else 0
            is_of_pod = 0 < of_pod <= limit
            is_own = not is_of_pod or (len(row.profile.containers) == 1 and of_pod == stated_limit(pod, name))
            is_looping = name in waiting or status.restart_count >= LOOP_RESTARTS
            starts = name in waiting
            yield KilledContainer(pod, row.qos, name, limit, is_of_pod, is_own, is_looping, starts)


def _build_parts(
    ranking: Ranking, setup: NodeSetup, rules: ImportanceRules, built: BuiltPods
) -> tuple[list[SimulatedPod], list[SimulatedContainer]]:
    """Return the pods with processes and their containers, from `built` if they are there."""
    pods: list[SimulatedPod] = []
    containers: list[SimulatedContainer] = []
    for row in ranking.pods:
        if row.worst is None:
            continue
        key, index = id(row.containers), len(pods)
        if key not in built:
            # Keep the scores, so that no others get their id.
            parts = _build_containers(row, index, setup)
            built[key] = row.containers, _build_pod(row, setup, rules), parts
        scores, pod, of_pod = built[key]
        if of_pod and of_pod[0].pod_index != index:
            of_pod = [structs.replace(container, pod_index=index) for container in of_pod]
            built[key] = scores, pod, of_pod
        pods.append(pod)
        containers += of_pod
    return pods, containers


def _build_containers(row: RankedPod, pod_index: int, setup: NodeSetup) -> list[SimulatedContainer]:
    profiles = {profile.name: profile for profile in row.profile.containers}
    stopped = {status.name: status for status in stopped_statuses(row.pod)}
    sampled_at = row.usage.timestamp if row.usage is not None else ""
    containers = []
    for score in row.alive:
        name, usage, profile = score.name, score.usage, profiles[score.name]
        # The most processes that share its memory: 1 if the largest is known, 0 if the count is unknown.
        processes = row.usage.details.processes if row.usage is not None else 0
        processes = max(processes - len(row.alive) + 1, 1) if processes else 0
        if usage is None or usage.largest_bytes is not None:
            processes = 1
        was_killed = (
            row.usage is not None
            and name in stopped
            and may_be_killed_again(row.pod, name, sampled_at, setup.node.full_at)
        )
        containers.append(
            SimulatedContainer(
                pod_index=pod_index,
                name=name,
                adj=score.adj or 0,
                used_bytes=usage.kernel_bytes if usage is not None else 0,
                working_set_bytes=usage.working_set_bytes if usage is not None else 0,
                limit_bytes=profile.limit_bytes,
                swap_bytes=_swap_bytes(row, profile.container, profile.limit_bytes, usage, setup),
                restart=restart_after_kill(row.pod, profile.container, profile.kind, setup.release),
                has_usage=usage is not None,
                processes=processes,
                others_bytes=usage.kernel_bytes - usage.scored_bytes if usage is not None else 0,
                was_killed=was_killed,
                is_looping=was_killed and stopped[name].restart_count >= LOOP_RESTARTS,
            )
        )
    return containers


def _swap_bytes(
    row: RankedPod, container: Container, limit: int, usage: ContainerUsage | None, setup: NodeSetup
) -> int:
    """Return how much a container may swap, at least what it has in swap now."""
    total = setup.node.swap_capacity_bytes
    used = usage.swap_bytes or 0 if usage is not None and setup.node.cgroup_version != 1 else 0
    if not total:
        return used
    swap = container_swap(row.pod, container, row.qos, limit, setup)
    if swap.swap_max is not None:
        return total if swap.swap_max == "max" else max(min(int(swap.swap_max), total), used)
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
    # Without the node's capacity, it is unknown which of several containers dies at the pod's limit.
    is_ordered = len(row.alive) == 1 or all(score.adj is not None for score in row.alive)
    limit = row.profile.limit_bytes if setup.kubelet.cgroups_per_qos and is_ordered else 0
    request = row.profile.eviction_request
    return SimulatedPod(pod, row.qos, limit, request, critical, tuple(important), _left_bytes(row))


def _left_bytes(row: RankedPod) -> int:
    """Return the pod's usage above that of its containers, at most the size of its volumes in memory.

    The kubelet measures a pod and its containers at different times, so the difference has other causes too.
    """
    if row.usage is None or not row.usage.details.volumes:
        return 0
    details, volumes = row.usage.details, row.pod.memory_volumes
    in_memory = sum(size for name, size in details.volumes if name in volumes)
    return max(min(details.working_set_bytes - row.usage.working_set_bytes, in_memory), 0)

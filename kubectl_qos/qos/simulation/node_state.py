"""A node as a simulation starts from it: who uses how much memory, below which limits, and who matters.

Making one asks every rule about every pod; simulating on it (simulation.py) is then fast enough to follow a
slider. Bytes throughout. Not here: what happens next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import Container, Pod
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.selectors import DisruptionBudget, Selector
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.qos.cgroup.container import sends_oom_group
from kubectl_qos.qos.cgroup.memory import container_swap
from kubectl_qos.qos.cgroup.node import PODS
from kubectl_qos.qos.node_memory import SIGNAL, memory_threshold
from kubectl_qos.qos.oom_score import Kernel, is_critical, kernel_formula
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import ContainerKind, RankedPod, container_kinds, rank_node

IMPORTANT_PRIORITY: Final = 1_000_000_000
"""The highest that a person can give (HighestUserDefinablePriority); above are those of the system."""
_NEVER: Final = "Never"


class Importance(StrEnum):
    """What makes a pod important."""

    PRIORITY = "priority"
    STATIC = "static pod"
    LABELS = "labels"
    BUDGET = "disruption budget"


class ImportanceReason(NamedTuple):
    """Why a pod is important; `what` is the priority, the selector or the budget."""

    why: Importance
    what: str


@dataclass(frozen=True, slots=True)
class SimulatedPod:
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


@dataclass(frozen=True, slots=True)
class SimulatedContainer:
    """A container as the kernel meets it: one process that holds all of its memory.

    `used_bytes` is what badness counts, `working_set_bytes` what the kubelet does. `limit_bytes` is its
    memory.max, 0 without one, `swap_bytes` what it may swap on top. `tenant` is the place of its pod.
    """

    tenant: int
    container: str
    adj: int
    used_bytes: int
    working_set_bytes: int
    limit_bytes: int = 0
    swap_bytes: int = 0
    restarts: bool = True

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
    """How many of these pods may be disrupted now."""

    name: str
    allowed: int
    pods: frozenset[PodKey]


class Thresholds(NamedTuple):
    """Below how much available memory the kubelet evicts, and how much more it then wants; None is never."""

    node_bytes: int | None
    kubepods_bytes: int | None
    reclaim_bytes: int


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node, the next victim first. `total_bytes` is RAM and swap, by which oom_score_adj is scaled.

    `kubepods_bytes` is memory.max of the cgroup of all pods, None where there is none. `own_bytes` is what
    the node itself uses, `own` those of its processes that are known, which are part of that.
    """

    setup: NodeSetup
    tenants: tuple[SimulatedPod, ...]
    members: tuple[SimulatedContainer, ...]
    total_bytes: int
    capacity_bytes: int
    kubepods_bytes: int | None
    thresholds: Thresholds
    whole_containers: bool
    without_usage: int
    by_working_set: bool
    own_bytes: int = 0
    own: tuple[NodeProcess, ...] = ()
    budgets: tuple[AllowedDisruptions, ...] = ()

    @property
    def kernel(self) -> Kernel:
        """Which formula the node's kernel uses."""
        return kernel_formula(self.setup.node.kernel)

    @property
    def swap_bytes(self) -> int:
        """All swap of the machine."""
        return self.total_bytes - self.capacity_bytes

    def may_swap(self, members: Iterable[SimulatedContainer]) -> int:
        """How much of the swap these can use."""
        return min(sum([one.swap_bytes for one in members]), self.swap_bytes)

    @property
    def used_bytes(self) -> int:
        """What containers use, by the kernel's count."""
        return sum(one.used_bytes for one in self.members)

    def find(self, name: str, container: str = "", namespace: str | None = None) -> int:
        """The place of a container among the members. Raises InputError where that is nobody or several."""
        places = [
            index
            for index, one in enumerate(self.members)
            if self.tenants[one.tenant].pod.name == name
            and namespace in {None, self.tenants[one.tenant].pod.namespace}
            and container in {"", one.container}
        ]
        if len(places) == 1:
            return places[0]
        node = self.setup.node.name
        if not places:
            what = f"container {container} of pod {name}" if container else f"pod {name}"
            raise InputError(
                f"{what} has no processes on {node or 'the node'}",
                hint="kubectl qos top --containers --node lists what runs there",
            )
        keys = {self.tenants[self.members[index].tenant].key for index in places}
        if len(keys) > 1:
            raise InputError(
                f"pod {name} is in several namespaces: {', '.join(sorted(key[0] for key in keys))}",
                hint="-n has its namespace",
            )
        names = ", ".join(self.members[index].container for index in places)
        raise InputError(
            f"pod {name} has several containers: {names}",
            hint=f"say which one grows: pod/{name}:{self.members[places[0]].container}=SIZE",
        )


@dataclass(frozen=True, slots=True)
class ImportanceRules:
    """Whose loss matters, beside pods of high priority: labels, and budgets of disruptions."""

    selector: Selector | None = None
    selector_text: str = ""
    budgets: Sequence[DisruptionBudget] = ()


NO_RULES: Final = ImportanceRules()


def build_node_state(
    pods: Iterable[Pod],
    setup: NodeSetup,
    usage: Mapping[PodKey, PodUsage],
    care: ImportanceRules = NO_RULES,
    *,
    own_bytes: int = 0,
    own: Sequence[NodeProcess] = (),
) -> NodeState:
    """The node's pods (defaulted) as they are now.

    A pod without usage counts as using nothing. Raises InputError without the node's memory capacity.
    """
    node, kubelet = setup.node, setup.kubelet
    capacity = node.memory_capacity_bytes
    if not capacity:
        raise InputError(
            f"the memory capacity of {node.name or 'the node'} is unknown: nothing says when it is full",
            hint="--node-memory 16Gi assumes one",
        )
    ranking = rank_node(pods, node, setup.release, usage)
    tenants: list[SimulatedPod] = []
    members: list[SimulatedContainer] = []
    for row in ranking.pods:
        alive = row.alive()
        if alive:
            members += _members(row, len(tenants), setup)
            tenants.append(_tenant(row, setup, care))
    enforced = PODS in kubelet.enforce_node_allocatable and kubelet.cgroups_per_qos
    swap = node.swap_capacity_bytes
    kubepods = node.allocatable_memory_bytes if enforced else None
    every_pod = [one.pod for one in tenants]
    return NodeState(
        setup=setup,
        tenants=tuple(tenants),
        members=tuple(members),
        total_bytes=capacity + swap,
        capacity_bytes=capacity,
        kubepods_bytes=kubepods,
        thresholds=_thresholds(setup, capacity, kubepods),
        whole_containers=sends_oom_group(setup),
        without_usage=ranking.without_usage,
        by_working_set=any(
            one.usage is not None and one.usage.rss_bytes is None
            for row in ranking.pods
            for one in row.alive()
        ),
        own_bytes=own_bytes,
        own=tuple(own),
        budgets=tuple(_budget(one, every_pod) for one in care.budgets),
    )


def _members(row: RankedPod, tenant: int, setup: NodeSetup) -> list[SimulatedContainer]:
    limits = {one.name: one.limit_bytes for one in row.profile.containers}
    kinds = {one.name: (one, kind) for one, kind in container_kinds(row.pod, setup.release)}
    waiting = {
        one.name
        for one in row.pod.status.every_container
        if one.state is not None and one.state.waiting is not None
    }
    found = []
    for one in row.alive():
        if one.name in waiting and one.usage is None:
            continue  # between two restarts it has no process
        container, kind = kinds[one.name]
        limit = limits[one.name]
        used = one.usage.kernel_bytes if one.usage is not None else 0
        found.append(
            SimulatedContainer(
                tenant=tenant,
                container=one.name,
                adj=one.adj or 0,
                used_bytes=used,
                working_set_bytes=one.usage.working_set_bytes if one.usage is not None else 0,
                limit_bytes=limit,
                swap_bytes=_swap_room(row, container, limit, setup),
                restarts=_restarts(row.pod, container, kind),
            )
        )
    return found


def _swap_room(row: RankedPod, container: Container, limit: int, setup: NodeSetup) -> int:
    """How much a container may swap, however full its limit is."""
    total = setup.node.swap_capacity_bytes
    if not total:
        return 0
    swap = container_swap(row.pod, container, row.qos, limit, setup)
    if swap.swap_max is not None:
        return total if swap.swap_max == "max" else min(int(swap.swap_max), total)
    if swap.memory_and_swap > 0:
        return min(max(swap.memory_and_swap - limit, 0), total)
    return total


def _restarts(pod: Pod, container: Container, kind: ContainerKind) -> bool:
    """Whether the kubelet starts it again after a kill, which is a failure (`ShouldContainerBeRestarted`).

    A container's own policy counts before the pod's; an absent one is Always. Ephemeral ones stay dead.
    """
    if kind is ContainerKind.EPHEMERAL:
        return False
    return (container.restart_policy or pod.spec.restart_policy) != _NEVER


def _tenant(row: RankedPod, setup: NodeSetup, care: ImportanceRules) -> SimulatedPod:
    pod = row.pod
    important = []
    priority = pod.spec.priority or 0
    critical = is_critical(pod)
    if priority >= IMPORTANT_PRIORITY:
        important.append(ImportanceReason(Importance.PRIORITY, pod.spec.priority_class_name or str(priority)))
    elif critical:
        important.append(ImportanceReason(Importance.STATIC, ""))
    if care.selector is not None and care.selector.matches(pod.metadata.labels):
        important.append(ImportanceReason(Importance.LABELS, care.selector_text))
    limit = row.profile.limit_bytes if setup.kubelet.cgroups_per_qos else 0
    return SimulatedPod(pod, row.qos, limit, row.profile.eviction_request, critical, tuple(important))


def _budget(found: DisruptionBudget, pods: Iterable[Pod]) -> AllowedDisruptions:
    """A manifest without a status allows none: nobody has counted."""
    covered = frozenset((one.namespace, one.name) for one in pods if found.covers(one))
    return AllowedDisruptions(found.metadata.name, found.status.disruptions_allowed or 0, covered)


def _thresholds(setup: NodeSetup, capacity: int, kubepods: int | None) -> Thresholds:
    """The hard thresholds of memory.available and allocatableMemory.available, and the minimum reclaim.

    The second signal copies both from the first; percentages are of its own capacity.
    Source: pkg/kubelet/eviction/helpers.go (ParseThresholdConfig, addAllocatableThresholds).
    """
    kubelet = setup.kubelet
    text = kubelet.eviction_hard.get(SIGNAL)
    reclaim = kubelet.eviction_minimum_reclaim.get(SIGNAL)
    return Thresholds(
        memory_threshold(text, capacity),
        memory_threshold(text, kubepods) if kubepods is not None else None,
        memory_threshold(reclaim, capacity) or 0,
    )

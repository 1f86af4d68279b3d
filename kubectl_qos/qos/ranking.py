"""The kill order of a node's pods when its memory runs out, and flags of pods.

The kernel scores processes, not pods. A container counts as one process that holds all its memory, which is
right for single-process containers and an upper bound for others; a pod ranks by its highest container.
Source: Linux mm/oom_kill.c (select_bad_process, oom_evaluate_task).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cached_property
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from kubectl_qos.k8s import resources
from kubectl_qos.k8s.allocation import ResizingPod, other_pod_limit
from kubectl_qos.k8s.kubelet import Node, NodeSetup
from kubectl_qos.k8s.objects import MEMORY, Container, Pod
from kubectl_qos.k8s.quantity import ZERO, Quantity
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.usage import ContainerUsage, PodKey, PodUsage, usage_of_runs
from kubectl_qos.qos.oom_score import (
    LOWEST_BURSTABLE_ADJ,
    PodAdj,
    badness,
    is_mirror,
    is_node_critical,
    is_static,
    kernel_formula,
    proc_oom_score,
    restrict_adj,
)
from kubectl_qos.qos.qos_class import QosClass, computed_class, qos_class

NEAR_LIMIT_PERCENT: Final = 90


class ContainerKind(StrEnum):
    """Kind of a container; decides when it has processes."""

    APP = "app"
    INIT = "init"
    SIDECAR = "sidecar"
    EPHEMERAL = "ephemeral"


class Basis(StrEnum):
    """Basis of an order; without usage it is the order of oom_score_adj."""

    USAGE = "memory usage and oom_score_adj"
    ADJ = "oom_score_adj alone"
    NOTHING = "nothing: the node's memory capacity is unknown"
    NO_KERNEL_ORDER = "nothing: Windows has no OOM killer"


class ContainerScore(msgspec.Struct, frozen=True):
    """Score of one container."""

    name: str
    kind: ContainerKind
    adj: int | None
    """None without the node's capacity."""
    usage: ContainerUsage | None
    points: int | None
    """Badness in pages, by which the kernel chooses; a lower bound without usage."""
    least_score: int | None
    """Score in /proc; a lower bound without usage."""

    @property
    def oom_score(self) -> int | None:
        """Score in /proc; None without usage."""
        return self.least_score if self.usage is not None else None


class ContainerProfile(msgspec.Struct, frozen=True):
    """A container's spec on a node; `limit_bytes` is 0 without a limit."""

    container: Container
    name: str
    kind: ContainerKind
    adj: int | None
    limit_bytes: int


@dataclass(eq=False)
class Profile:
    """A pod's spec on a node, independent of usage and status. Memory in bytes.

    The kill order needs class and containers; the totals are computed when first read.
    """

    pod: Pod
    qos: QosClass
    containers: tuple[ContainerProfile, ...]
    release: Release

    @cached_property
    def computed_class(self) -> QosClass:
        """QoS class of the spec."""
        return computed_class(self.pod, self.release)

    @cached_property
    def request_bytes(self) -> int:
        """Total memory request."""
        return resources.pod_requests(self.pod, self.release).get(MEMORY, ZERO).value()

    @cached_property
    def limit_bytes(self) -> int:
        """Memory limit of the pod's cgroup, 0 unless every container has a limit."""
        if (limit := other_pod_limit(self.pod)) is not None:
            return limit.value()
        if not resources.declared_limits(self.pod, self.release).memory:
            return 0
        return resources.pod_limits(self.pod, self.release).get(MEMORY, ZERO).value()

    @cached_property
    def pod_level_limit_bytes(self) -> int:
        """Limit that the containers share, 0 without one."""
        at_pod_level = resources.pod_level_limits(self.pod, self.release)
        return (other_pod_limit(self.pod) or at_pod_level.get(MEMORY, ZERO)).value()

    @cached_property
    def eviction_request(self) -> Quantity:
        """Request that node-pressure eviction compares usage with."""
        return resources.eviction_request(self.pod, self.release, MEMORY)


class RankedPod(msgspec.Struct, frozen=True):
    """A pod in the kill order of its node."""

    pod: Pod
    qos: QosClass
    rank: int | None
    """1 is the next victim; None without processes on the node, or if nothing is known."""
    tied: bool
    """Other pods have equal points and share the rank."""
    worst: ContainerScore | None
    containers: tuple[ContainerScore, ...]
    alive: Sequence[ContainerScore]
    """Containers that have processes."""
    usage: PodUsage | None
    profile: Profile

    @property
    def lacks_usage(self) -> bool:
        """Whether a process has unknown usage."""
        if self.usage is not None and len(self.usage.names) == len(self.containers):
            return False
        return any(score.usage is None for score in self.alive)


class Ranking(NamedTuple):
    """The pods of a node, next victim first, then those without a rank."""

    node: Node
    basis: Basis
    pods: tuple[RankedPod, ...]
    without_usage: int


UNKNOWN_BURSTABLE_ADJ = (LOWEST_BURSTABLE_ADJ, 999)
"""Bounds of a Burstable container's oom_score_adj if the node's capacity is unknown."""


def rank_node(
    pods: Iterable[Pod],
    node: Node,
    release: Release,
    usage: Mapping[PodKey, PodUsage] | None = None,
    profiles: Profiles | None = None,
) -> Ranking:
    """Return the kill order of the node's pods (defaulted), as for a node-wide OOM.

    Pods without usage count as using nothing, so they may rank too low; `without_usage` counts pods with
    such containers. Calls for nodes of the same memory and release can share `profiles`.
    """
    usage = usage or {}
    scorer = _Scorer(node)
    profile_for = (profiles or Profiles(node.memory_capacity_bytes, release)).profile_for
    rows = [scorer.pod(pod, profile_for(pod), usage.get(pod.key)) for pod in pods]
    return _ranking(scorer, rows)


def with_pods(ranking: Ranking, pods: Mapping[PodKey, Pod], release: Release) -> Ranking:
    """Return the ranking with these pods (defaulted) in place of pods with the same key; usage stays."""
    scorer = _Scorer(ranking.node)
    profile_for = Profiles(ranking.node.memory_capacity_bytes, release).profile_for
    changed = ((row, pods.get(row.pod.key)) for row in ranking.pods)
    rows = [scorer.pod(pod, profile_for(pod), row.usage) if pod is not None else row for row, pod in changed]
    return _ranking(scorer, rows)


def with_pod(
    ranking: Ranking, pod: Pod, release: Release, usage: Mapping[PodKey, PodUsage] | None
) -> Ranking:
    """Return the ranking with another pod (defaulted); it replaces a pod of the same kind and name."""
    scorer, key = _Scorer(ranking.node), (pod.kind, pod.namespace, pod.name)
    profile = Profiles(ranking.node.memory_capacity_bytes, release).profile_for(pod)
    row = scorer.pod(pod, profile, (usage or {}).get(pod.key))
    others = [row for row in ranking.pods if (row.pod.kind, *row.pod.key) != key]
    return _ranking(scorer, [row, *others])


def with_adj(ranking: Ranking, pod: Pod, adj: Mapping[str, int | None]) -> Ranking:
    """Return the ranking with other oom_score_adj of containers of one pod; usage stays."""
    pod_row = next(row for row in ranking.pods if row.pod is pod)
    profile = copy(pod_row.profile)
    containers = profile.containers
    profile.containers = tuple([structs.replace(old, adj=adj.get(old.name, old.adj)) for old in containers])
    changed = _Scorer(ranking.node).pod(pod, profile, pod_row.usage)
    rows = [changed if row is pod_row else row for row in ranking.pods]
    return ranking._replace(pods=tuple(_in_order(rows)))


def container_kinds(pod: Pod, release: Release) -> list[tuple[Container, ContainerKind]]:
    """Return containers with their kind in start order: init and sidecar, app, ephemeral."""
    sidecar, plain, is_sidecar = ContainerKind.SIDECAR, ContainerKind.INIT, resources.is_sidecar
    kinds = [(init, sidecar if is_sidecar(init, release) else plain) for init in pod.init_containers]
    kinds += [(container, ContainerKind.APP) for container in pod.containers]
    kinds += [(container, ContainerKind.EPHEMERAL) for container in pod.ephemeral_containers]
    return kinds


def has_processes(pod: Pod) -> bool:
    """Return whether the pod can have processes: bound, started, and not ended.

    A manifest has no phase yet and counts as running.
    """
    phase = pod.status.phase
    if not phase:
        return True
    is_started = phase != "Pending" or bool(pod.status.every_container)
    return is_started and bool(pod.spec.node_name) and not pod.is_terminal


def _ranking(scorer: _Scorer, rows: list[RankedPod]) -> Ranking:
    running = [row for row in rows if row.worst is not None]
    if scorer.node.is_windows:
        basis = Basis.NO_KERNEL_ORDER
    elif not scorer.total_pages:
        basis = Basis.NOTHING
    elif any(row.usage is not None for row in running):
        basis = Basis.USAGE
    else:
        basis = Basis.ADJ
    without_usage = sum(1 for row in running if row.lacks_usage)
    return Ranking(scorer.node, basis, tuple(_in_order(rows)), without_usage)


MOST_PROFILES: Final = 3_000
"""With more profiles than this all are forgotten: of 50,000 pods that all differ they take 38 MB."""


class Profiles:
    """Profiles of pods for one memory capacity and release, each built once.

    Pods share a profile if their specs hold the same objects: k8s/interning.py sees to that for the pods of a
    workload. Equal quantities are not enough, because they may be written, and overflow, differently.
    """

    __slots__ = ("_by_spec", "_capacity", "_is_reusable", "_release")

    def __init__(self, memory_capacity_bytes: int | None, release: Release) -> None:
        self._capacity = memory_capacity_bytes
        self._release = release
        self._by_spec: dict[tuple[object, ...], Profile] = {}
        self._is_reusable = resources.kubelet_count(release) is resources.Count.SPEC

    def profile_for(self, pod: Pod) -> Profile:
        """Return the profile of a defaulted pod."""
        if not self._is_reusable:
            return self._build(pod)
        spec, annotations, at_pod_level = pod.spec, pod.metadata.annotations, pod.spec.resources
        key = (
            id(spec.containers),
            id(spec.init_containers),
            id(spec.ephemeral_containers),
            at_pod_level and (id(at_pod_level.requests), id(at_pod_level.limits)),
            id(spec.overhead),
            spec.priority,
            spec.priority_class_name,
            pod.status.qos_class,
            other_pod_limit(pod),
            annotations and (annotations.config_source, annotations.config_mirror),
        )
        profile = self._by_spec.get(key)
        if profile is None:
            if len(self._by_spec) >= MOST_PROFILES:
                self._by_spec.clear()
            # It keeps its pod, so that no other object gets one of these ids.
            profile = self._by_spec[key] = self._build(pod)
        return profile

    def _build(self, pod: Pod) -> Profile:
        release = self._release
        qos = qos_class(pod, release)
        adj = PodAdj(pod, qos, self._capacity, release)
        containers = tuple([self._container(item, kind, adj) for item, kind in container_kinds(pod, release)])
        return Profile(pod, qos, containers, release)

    def _container(self, container: Container, kind: ContainerKind, adj: PodAdj) -> ContainerProfile:
        steps = adj.steps_for(container) if self._capacity else adj.fixed
        limit = container.limits.get(MEMORY, ZERO).value()
        adj_of = steps.adj if steps is not None else None
        return ContainerProfile(container, container.name, kind, adj_of, limit)


class ProfileCache:
    """Shares profiles between nodes of the same memory and release."""

    def __init__(self) -> None:
        self._profiles: dict[tuple[int | None, Release], Profiles] = {}

    def for_node(self, setup: NodeSetup) -> Profiles:
        """Return the profiles for a node."""
        key = setup.node.memory_capacity_bytes, setup.release
        return self._profiles.setdefault(key, Profiles(*key))


class _Scorer:
    __slots__ = ("_kernel", "_page", "_runtime_adj", "node", "total_pages")

    def __init__(self, node: Node) -> None:
        self.node = node
        self._page = node.page_size_bytes
        self._runtime_adj = node.runtime_oom_score_adj
        self._kernel = kernel_formula(node.kernel)
        self.total_pages = ((node.memory_capacity_bytes or 0) + node.swap_capacity_bytes) // self._page

    def pod(self, pod: Pod, profile: Profile, usage: PodUsage | None) -> RankedPod:
        usage = usage_of_runs(pod, usage)
        is_windows = pod.spec.is_windows
        has_adj = not (is_windows or self.node.is_windows)
        scores = tuple([self._container(container, usage, has_adj) for container in profile.containers])
        never_starts = is_windows and not self.node.is_windows
        alive = _alive(pod, scores) if has_processes(pod) and not never_starts else ()
        worst = max(alive, key=_danger, default=None)
        return RankedPod(pod, profile.qos, None, False, worst, scores, alive, usage, profile)

    def _container(
        self, container: ContainerProfile, usage: PodUsage | None, has_adj: bool
    ) -> ContainerScore:
        name, kind, adj = container.name, container.kind, container.adj if has_adj else None
        if adj is not None and self._runtime_adj is not None:
            adj = restrict_adj(adj, self._runtime_adj)
        used = usage.of(name) if usage is not None else None
        if adj is None or not self.total_pages:
            return ContainerScore(name, kind, adj, used, None, None)
        pages = used.scored_bytes // self._page if used is not None else 0
        points = badness(pages, adj, self.total_pages, self._kernel)
        score = proc_oom_score(points, self.total_pages, self._kernel)
        return ContainerScore(name, kind, adj, used, points, score)


def _danger(score: ContainerScore) -> int:
    """Return a sort key, higher is killed earlier; an unknown Burstable adj is below BestEffort."""
    return score.points if score.points is not None else score.adj or 0


def _alive(pod: Pod, scores: tuple[ContainerScore, ...]) -> tuple[ContainerScore, ...]:
    """Return the containers that have processes: not those that wait or have ended.

    A manifest has no statuses, so every container that keeps running counts.
    """
    runs = {status.name: status.has_processes for status in pod.status.every_container}
    alive = [score for score in scores if runs.get(score.name, score.kind is not ContainerKind.INIT)]
    return scores if len(alive) == len(scores) else tuple(alive)


def _in_order(rows: list[RankedPod]) -> list[RankedPod]:
    ranked: dict[int, list[RankedPod]] = {}
    others: list[RankedPod] = []
    for row in rows:
        points = row.worst.points if row.worst is not None else None
        (others if points is None else ranked.setdefault(points, [])).append(row)
    result: list[RankedPod] = []
    for points in sorted(ranked, reverse=True):
        alike = ranked[points]
        rank, tied = len(result) + 1, len(alike) > 1
        if tied:
            alike.sort(key=lambda row: row.pod.key)
        for row in alike:
            is_same = row.rank == rank and row.tied == tied
            result.append(row if is_same else structs.replace(row, rank=rank, tied=tied))
    others.sort(key=lambda row: (row.worst is None, -_danger(row.worst) if row.worst else 0, row.pod.key))
    return result + others


class Flag(StrEnum):
    """A property of a pod to notice, in one word."""

    CRITICAL = "CRITICAL"
    """system-node-critical: class and requests do not affect its oom_score_adj."""
    PRIORITY = "PRIORITY"
    """A higher priority than a pod that outlives it: the kernel ignores priority."""
    NEAR_LIMIT = "NEAR-LIMIT"
    """Uses at least 90 % of a memory limit, which may kill it although the node has memory left."""
    OVER_REQUEST = "OVER-REQUEST"
    """Uses more memory than it requests: it is evicted before pods that do not."""
    RESIZING = "RESIZING"
    """A resize is pending or in progress: the node runs other values than the spec."""
    STATIC = "STATIC"
    """From a file on the node: never evicted, and the API cannot change it."""
    CLASS_DIFFERS = "CLASS≠SPEC"
    """The stored class differs from the class of the spec."""


RISKS: Final = frozenset({Flag.PRIORITY, Flag.NEAR_LIMIT, Flag.OVER_REQUEST})
"""The flags that make a pod "at risk"."""


def flags(row: RankedPod, percent: float | None, lowest_priority_after: int | None) -> list[Flag]:
    """Return the flags of a pod as its node runs it (`running_pod`), the most severe first.

    `percent` is from `limit_percent`, `lowest_priority_after` from `lowest_priorities_after`.
    """
    pod, profile = row.pod, row.profile
    raised = []
    if is_node_critical(pod):
        raised.append(Flag.CRITICAL)
    if is_inverted(row, lowest_priority_after):
        raised.append(Flag.PRIORITY)
    if percent is not None and percent >= NEAR_LIMIT_PERCENT:
        raised.append(Flag.NEAR_LIMIT)
    if row.usage is not None and 0 < profile.eviction_request.value() < row.usage.working_set_bytes:
        raised.append(Flag.OVER_REQUEST)
    if isinstance(pod, ResizingPod):
        raised.append(Flag.RESIZING)
    if is_static(pod) or is_mirror(pod):
        raised.append(Flag.STATIC)
    stored = pod.status.qos_class
    if stored and stored != profile.computed_class:
        raised.append(Flag.CLASS_DIFFERS)
    return raised


def is_inverted(row: RankedPod, lowest_priority_after: int | None) -> bool:
    """Return True if the pod is killed before one of lower priority."""
    if row.rank is None or lowest_priority_after is None:
        return False
    return (row.pod.spec.priority or 0) > lowest_priority_after


def limit_percent(row: RankedPod) -> tuple[float | None, str]:
    """Return the highest usage in percent of a memory limit, and the container's name if it has several.

    The limit is a container's or the pod-level one, never a sum of limits. Without limit or usage: None.
    """
    usage, profile = row.usage, row.profile
    if usage is None:
        return None, ""
    percents = []
    if profile.pod_level_limit_bytes:
        percents.append((100 * usage.working_set_bytes / profile.pod_level_limit_bytes, ""))
    for container, score in zip(profile.containers, row.containers, strict=True):
        used = score.usage
        if container.limit_bytes and used is not None:
            name = container.name if len(profile.containers) > 1 else ""
            percents.append((100 * used.working_set_bytes / container.limit_bytes, name))
    return max(percents, key=itemgetter(0), default=(None, ""))


def lowest_priorities_after(ranked: Sequence[RankedPod]) -> list[int | None]:
    """Return for each ranked pod the lowest priority of the pods with a later rank."""
    lowest: list[int | None] = []
    after: int | None = None
    least: int | None = None
    rank: int | None = None
    for row in reversed(ranked):
        if row.rank != rank:
            rank, after = row.rank, least
        lowest.append(after)
        priority = row.pod.spec.priority or 0
        least = priority if least is None else min(least, priority)
    lowest.reverse()
    return lowest


class Risk(IntEnum):
    """How close a pod is to being killed; higher is closer."""

    NONE = 0
    """No processes: it has ended, or is not bound yet."""
    LOW = 1
    """No risk flag."""
    MEDIUM = 2
    """PRIORITY or OVER-REQUEST: killed before something less important, or evicted early."""
    HIGH = 3
    """NEAR-LIMIT: its own limit may kill it although the node has memory left."""
    NEXT = 4
    """Rank 1: killed first when the node runs out of memory."""

    @property
    def word(self) -> str:
        """Name on the command line and in tables."""
        return self.name.lower()


WORDS: Final = tuple(level.word for level in Risk)


def risk(flags: Collection[Flag], rank: int | None, *, has_processes: bool) -> Risk:
    """Return the highest level that applies."""
    if not has_processes:
        return Risk.NONE
    if rank == 1:
        return Risk.NEXT
    if Flag.NEAR_LIMIT in flags:
        return Risk.HIGH
    return Risk.LOW if RISKS.isdisjoint(flags) else Risk.MEDIUM

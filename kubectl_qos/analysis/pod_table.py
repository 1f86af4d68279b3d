"""Rows of pods or containers of a snapshot in kill order."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from operator import is_
from typing import Final, TypeVar

import msgspec

from kubectl_qos.k8s.allocation import ResizingPod, desired_pod, running_pod
from kubectl_qos.k8s.kinds import Workload, find_workload
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import MEMORY, Pod, all_containers
from kubectl_qos.k8s.quantity import ZERO
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.resources import declared_limits, pod_limits, pod_requests
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import NO_PSI, PodKey, PodUsage, PsiData, Sampled, memory_psi, sampled
from kubectl_qos.qos.eviction import evicts_for_memory, node_eviction_ranks
from kubectl_qos.qos.oom_score import GUARANTEED_ADJ
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import (
    NEAR_LIMIT_PERCENT,
    RISKS,
    UNKNOWN_BURSTABLE_ADJ,
    Basis,
    ContainerScore,
    Flag,
    ProfileCache,
    Profiles,
    RankedPod,
    Ranking,
    Risk,
    flags,
    has_processes,
    limit_percent,
    lowest_priorities_after,
    rank_node,
    risk,
)

T = TypeVar("T")

FILTER_TEXT: Final = property(lambda row: " ".join((*row.own_words, *row.common_words)).casefold())
"""The text of a row that a filter searches, in lower case; for typed tuples no attribute may be one."""


class PastUsage(msgspec.Struct, frozen=True, gc=False):
    """Metrics history of a pod: bytes, bytes per second, and seconds; None: unknown."""

    peak: int | None = None
    p99: int | None = None
    growth: float | None = None
    eta: float | None = None


NO_PAST: Final = PastUsage()


class PodRow(msgspec.Struct, frozen=True, gc=False):
    """Values of a pod, or of one of its containers; amounts in bytes.

    A pod that has ended has a score but no processes. A row without the other pods of its node is
    provisional: it has no rank.
    """

    pod: Pod
    node: str
    """Name of its node, "" before scheduling."""
    namespace: str
    """Here like the node, because looking into 150,000 pods takes longer than searching these texts."""
    name: str
    """The pod's; kind and name of a workload's template."""
    qos: QosClass
    rank: int | None
    tied: bool
    adj: int | None
    """oom_score_adj; None: unknown, bounded by `adj_range`."""
    score: int | None
    least_score: int | None
    """Lower bound of the score without usage; orders rows."""
    ended: bool
    memory: int | None
    """Working set."""
    rss: int | None
    swap: int | None
    request: int | None
    limit: int | None
    limit_percent: float | None
    limit_container: str
    """Container of `limit_percent`, if the pod has several; empty for the pod's limit."""
    restarts: int
    oom_kills: int
    """Containers that last ended as OOMKilled."""
    flags: tuple[Flag, ...]
    eviction_rank: int | None = None
    """None also for pods that are never evicted."""
    is_evictable: bool = True
    """Its node's kubelet evicts for memory."""
    desired: tuple[int | None, int | None] = (None, None)
    """Request and limit of the spec during a resize."""
    worst: str = ""
    """Container that decides the rank and is killed."""
    frees: int | None = None
    """Memory freed by that kill."""
    nearest: bool = False
    """No other limit of a pod on its node is fuller."""
    container: str = ""
    windows: bool = False
    psi: PsiData = NO_PSI
    past: PastUsage = NO_PAST

    @property
    def adj_range(self) -> tuple[int, int] | None:
        """Bounds of oom_score_adj; None on Windows, which has none."""
        unknown = None if self.windows else UNKNOWN_BURSTABLE_ADJ
        return (self.adj, self.adj) if self.adj is not None else unknown

    @property
    def is_next_victim(self) -> bool:
        """Whether it has rank 1 and its usage is known."""
        return self.rank == 1 and self.memory is not None

    @property
    def is_provisional(self) -> bool:
        """Whether its rank needs the other pods of its node."""
        return self.rank is None and self.least_score is not None

    @property
    def key(self) -> tuple[str, str, str]:
        """Namespace, name, container: stay the same when values change."""
        return self.namespace, self.name, self.container

    @property
    def words(self) -> str:
        """Filter text, in lower case; not cached, because 150,000 rows would take 18 MB."""
        flags = " ".join(self.flags)
        return f"{self.namespace}/{self.name} {self.node} {self.qos} {flags} {self.container}".casefold()

    @property
    def own_words(self) -> tuple[str, ...]:
        """Names among its words."""
        names = (f"{self.namespace}/{self.name}", self.name)
        return (*names, self.container) if self.container else names

    @property
    def common_words(self) -> tuple[str, ...]:
        """Words that many rows share."""
        return self.node, self.qos.value, *self.flags


class RankedNode(msgspec.Struct, frozen=True, gc=False):
    """A node's rows in kill order, with the objects that they are made from."""

    setup: NodeSetup
    basis: Basis
    ranked: int
    without_usage: int
    rows: tuple[PodRow, ...]
    made_from: tuple[object, ...] = ()


class PodRows(msgspec.Struct, frozen=True):
    """Rows in kill order, and their nodes."""

    rows: tuple[PodRow, ...]
    nodes: Mapping[str, RankedNode] = msgspec.field(default_factory=dict)
    sampled: Sampled | None = None


def build_rows(
    snapshot: Snapshot,
    scope: Scope,
    *,
    containers: bool = False,
    provisional: bool = False,
    before: PodRows | None = None,
) -> PodRows:
    """Return the rows in scope by score, within a node by rank among all its pods.

    Rows of a `provisional` snapshot, which may lack pods of a node, have no rank. Unchanged rows are the same
    objects as in `before`, which must have the same scope.
    """
    nodes: dict[str, RankedNode] = {}
    cached = before.nodes if before is not None else {}
    profiles = ProfileCache()
    for name, pods in snapshot.by_node().items():
        node_and_kubelet = snapshot.nodes.get(name), snapshot.kubelets.get(name)
        setup_from = (*node_and_kubelet, snapshot.overrides, snapshot.server_version)
        made_from = (*setup_from, pods, snapshot.usage, snapshot.history, provisional)
        node = cached.get(name)
        if node is None or not all(map(is_, node.made_from, made_from)):
            if not any(map(scope.matches, pods)):
                continue
            same_setup = node is not None and all(map(is_, node.made_from, setup_from))
            setup = node.setup if node is not None and same_setup else snapshot.setup(name)
            shared = profiles.for_node(setup)
            shown = pods if name else _without_templates_of_pods(pods, snapshot)
            new = _rank_node(shown, setup, snapshot.usage, scope, shared, containers=containers)
            new = msgspec.structs.replace(new, made_from=made_from)
            if snapshot.history.containers:
                new = _with_history(new, snapshot, name)
            if provisional:
                unranked = {"rank": None, "tied": False, "eviction_rank": None}
                rows = tuple(msgspec.structs.replace(row, **unranked) for row in new.rows)
                new = msgspec.structs.replace(new, rows=rows)
            node = _reuse_rows(new, node) if node is not None else new
        nodes[name] = node
    usage = sampled(snapshot.usage, before.sampled if before is not None else None)
    return PodRows(_in_kill_order(nodes), nodes, usage)


def _with_history(node: RankedNode, snapshot: Snapshot, name: str) -> RankedNode:
    from kubectl_qos.qos.simulation.next_death import seconds_by_victim

    times, rows = seconds_by_victim(snapshot, name), []
    for row in node.rows:
        key = row.pod.key
        of_pod = snapshot.history.of([row.pod])
        histories = [history for (_, name), history in of_pod.items() if row.container in {"", name}]
        past = PastUsage(
            peak=sum(history.peak_bytes for history in histories),
            p99=sum(history.p99_bytes or 0 for history in histories),
            growth=sum(history.rate for history in histories),
            eta=times.get((key, row.container)),
        )
        rows.append(msgspec.structs.replace(row, past=past if histories else NO_PAST))
    return msgspec.structs.replace(node, rows=tuple(rows))


def _reuse_rows(new: RankedNode, before: RankedNode) -> RankedNode:
    old_rows = {row.key: row for row in before.rows}
    rows = []
    for row in new.rows:
        old = old_rows.get(row.key)
        rows.append(old if old is not None and old.pod is row.pod and old == row else row)
    return msgspec.structs.replace(new, rows=tuple(rows))


def _in_kill_order(nodes: Mapping[str, RankedNode]) -> tuple[PodRow, ...]:
    by_danger: dict[tuple[int, int, int, int], list[PodRow]] = {}
    for name in sorted(nodes):
        for row in nodes[name].rows:
            by_danger.setdefault(_danger(row), []).append(row)
    return tuple(chain.from_iterable(by_danger[danger] for danger in sorted(by_danger)))


def kill_order(row: PodRow) -> tuple[object, ...]:
    """Return the default sort key: highest score first, within a node by rank, then by name."""
    return (*_danger(row), row.node, row.rank or 0, row.pod.key, *row.key)


def _danger(row: PodRow) -> tuple[int, int, int, int]:
    """Return the part of the sort key that holds across nodes; the lowest is first."""
    if row.least_score is None:
        middle = -(row.adj if row.adj is not None else UNKNOWN_BURSTABLE_ADJ[1])
        return 1, middle, 0 if row.adj is not None else 1, row.request or 0
    return 0, -row.least_score, 0, 0


def _without_templates_of_pods(unplaced: Sequence[Pod], snapshot: Snapshot) -> Sequence[Pod]:
    """Drop the workloads of a dump that has their pods too."""
    if all(pod.kind == "Pod" for pod in unplaced):
        return unplaced
    with_pods = set[Workload]()
    for pod in snapshot.pods:
        if pod.kind == "Pod":
            owners = pod.metadata.owner_references or ()
            with_pods.update(Workload(owner.kind, pod.namespace, owner.name) for owner in owners)
            with_pods.add(find_workload(pod))
    return [pod for pod in unplaced if pod.kind == "Pod" or find_workload(pod) not in with_pods]


def _rank_node(
    pods: Iterable[Pod],
    setup: NodeSetup,
    usage: Mapping[PodKey, PodUsage],
    scope: Scope,
    profiles: Profiles,
    *,
    containers: bool,
) -> RankedNode:
    running = [running_pod(pod, setup.release) for pod in pods]
    ranking = rank_node(running, setup.node, setup.release, usage, profiles)
    evicted, evicts = node_eviction_ranks(ranking, setup), evicts_for_memory(setup)
    container_ranks = _container_ranks(ranking) if containers else {}
    rows: list[PodRow] = []
    percents = list(map(limit_percent, ranking.pods))
    fullest = max((percent or 0 for percent, _ in percents), default=0)
    lowest = lowest_priorities_after(ranking.pods)
    for row, after, percent in zip(ranking.pods, lowest, percents, strict=True):
        if scope.matches(row.pod):
            eviction_rank = evicted.get(row.pod.key)
            is_nearest = 0 < fullest == percent[0]
            pod_row = _pod_row(row, setup, after, eviction_rank, percent, nearest=is_nearest)
            if not evicts:
                pod_row = msgspec.structs.replace(pod_row, is_evictable=False)
            if containers:
                rows += [_container_row(pod_row, row, score, container_ranks) for score in row.containers]
            else:
                rows.append(pod_row)
    rows.sort(key=kill_order)
    ranked = sum(1 for row in ranking.pods if row.rank is not None)
    return RankedNode(setup, ranking.basis, ranked, ranking.without_usage, tuple(rows))


def to_own_limit(row: RankedPod) -> int | None:
    """Return the bytes left until the pod's or a container's own limit; None without a limit or usage."""
    limits = {container.name: container.limit_bytes for container in row.profile.containers}
    alive = row.alive
    used = {score.name: size for score in alive if (size := _frees(score)) is not None}
    left = [limits[name] - size for name, size in used.items() if limits.get(name)]
    if used and len(used) == len(alive) and row.profile.limit_bytes:
        left.append(row.profile.limit_bytes - sum(used.values()))
    return min(left, default=None)


def _pod_row(
    row: RankedPod,
    setup: NodeSetup,
    lowest_after: int | None,
    eviction_rank: int | None,
    limit: tuple[float | None, str],
    *,
    nearest: bool,
) -> PodRow:
    pod, (percent, limited) = row.pod, limit
    worst = row.worst or max(
        row.containers, key=lambda score: 999 if score.adj is None else score.adj, default=None
    )
    statuses = pod.status.every_container
    usage = row.usage
    pod_flags = _interned(tuple(flags(row, percent, lowest_after)))
    desired = _desired(pod, setup.release) if isinstance(pod, ResizingPod) else (None, None)
    return PodRow(
        pod=pod,
        node=pod.node_name,
        namespace=pod.namespace,
        name=pod.title,
        qos=row.qos,
        rank=row.rank,
        tied=row.tied,
        adj=worst.adj if worst is not None else None,
        score=_interned(row.worst.oom_score) if row.worst is not None else None,
        least_score=_interned(row.worst.least_score) if row.worst is not None else None,
        ended=row.rank is None and worst is not None and worst.points is not None,
        memory=usage.working_set_bytes if usage is not None else None,
        rss=usage.rss_bytes if usage is not None else None,
        swap=usage.swap_bytes if usage is not None else None,
        request=row.profile.request_bytes or None,
        limit=row.profile.limit_bytes or None,
        limit_percent=percent,
        limit_container=limited,
        restarts=sum([status.restart_count for status in statuses]),
        oom_kills=sum([status.was_oom_killed for status in statuses]),
        flags=pod_flags,
        eviction_rank=eviction_rank,
        desired=desired,
        worst=worst.name if worst is not None else "",
        nearest=nearest,
        frees=_frees(worst) if row.rank is not None and worst is not None else None,
        windows=setup.node.is_windows or pod.spec.is_windows,
        psi=memory_psi(usage.details.pressure) if usage is not None else NO_PSI,
    )


def _desired(pod: Pod, release: Release) -> tuple[int | None, int | None]:
    """Return request and limit of the spec while the node runs other values."""
    spec = desired_pod(pod)
    requests, limits = pod_requests(spec, release), pod_limits(spec, release)
    limit = limits.get(MEMORY, ZERO).value() if declared_limits(spec, release).memory else 0
    return requests.get(MEMORY, ZERO).value() or None, limit or None


def _container_row(
    pod_row: PodRow,
    row: RankedPod,
    score: ContainerScore,
    ranks: Mapping[tuple[str, str, str], tuple[int, bool]],
) -> PodRow:
    pod = row.pod
    request, limit = _amounts(pod, score.name)
    desired = _amounts(desired_pod(pod), score.name) if isinstance(pod, ResizingPod) else (None, None)
    statuses = [status for status in pod.status.every_container if status.name == score.name]
    usage = score.usage
    percent = 100 * usage.working_set_bytes / limit if limit and usage is not None else None
    rank, tied = ranks.get((pod.namespace, pod.name, score.name), (None, False))
    own_flags = {
        Flag.NEAR_LIMIT: not pod_row.limit_container or (percent or 0) >= NEAR_LIMIT_PERCENT,
        Flag.OVER_REQUEST: usage is not None and usage.working_set_bytes > (request or 0),
    }
    return msgspec.structs.replace(
        pod_row,
        flags=tuple(flag for flag in pod_row.flags if own_flags.get(flag, True)),
        rank=rank,
        tied=tied,
        adj=score.adj,
        score=_interned(score.oom_score) if rank is not None else None,
        least_score=_interned(score.least_score) if rank is not None else None,
        ended=rank is None and score.points is not None,
        memory=usage.working_set_bytes if usage is not None else None,
        rss=usage.rss_bytes if usage is not None else None,
        swap=usage.swap_bytes if usage is not None else None,
        request=request,
        limit=limit,
        limit_percent=percent,
        limit_container="",
        desired=desired,
        restarts=sum([status.restart_count for status in statuses]),
        oom_kills=sum([status.was_oom_killed for status in statuses]),
        worst=score.name,
        frees=_frees(score) if rank is not None else None,
        container=score.name,
        psi=memory_psi(usage.pressure) if usage is not None else NO_PSI,
    )


def _frees(score: ContainerScore) -> int | None:
    return score.usage.kernel_bytes if score.usage is not None else None


def _amounts(pod: Pod, name: str) -> tuple[int | None, int | None]:
    container = next(container for container in all_containers(pod) if container.name == name)
    request, limit = container.requests.get(MEMORY, ZERO), container.limits.get(MEMORY, ZERO)
    return request.value() or None, limit.value() or None


@lru_cache(maxsize=4096)
def _interned(value: T) -> T:
    """Return the same object for equal values, because many rows share few scores and flags."""
    return value


def is_at_risk(row: PodRow) -> bool:
    """Return whether a pod is a next victim, or has a risk flag that matters soon.

    A pod with the lowest oom_score_adj is at risk only by its own limit, and by the kubelet at rank 1.
    """
    if row.nearest or row.is_next_victim or row.eviction_rank == 1 or Flag.NEAR_LIMIT in row.flags:
        return True
    return row.adj != GUARANTEED_ADJ and not RISKS.isdisjoint(row.flags)


def row_risk(row: PodRow) -> Risk:
    """Return the risk of a pod or container, by its rank and the pod's flags."""
    rank = row.rank if row.rank != 1 or row.is_next_victim else None
    return risk(row.flags, rank, has_processes=has_processes(row.pod) and not row.ended)


def _container_ranks(ranking: Ranking) -> dict[tuple[str, str, str], tuple[int, bool]]:
    alive = (((*row.pod.key, score.name), score.points) for row in ranking.pods for score in row.alive)
    points = [(key, value) for key, value in alive if value is not None]
    ordered = sorted((value for _, value in points), reverse=True)
    first: dict[int, int] = {}
    for place, value in enumerate(ordered, start=1):
        first.setdefault(value, place)
    counts = Counter(ordered)
    return {key: (first[value], counts[value] > 1) for key, value in points}

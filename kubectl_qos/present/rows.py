"""One row per pod (or container) of a ranking: values only, in the units that columns print.

The road from a snapshot to rows is the same for the command line and the terminal UI.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import MEMORY, ContainerState, ContainerStatus, Pod
from kubectl_qos.k8s.quantity import ZERO
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.snapshot import Missing, Scope, Snapshot
from kubectl_qos.k8s.usage import PodUsage
from kubectl_qos.present.amounts import binary
from kubectl_qos.qos import eviction, flags
from kubectl_qos.qos.flags import Flag
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import (
    UNKNOWN_BURSTABLE_ADJ,
    Basis,
    ContainerScore,
    Profiles,
    RankedPod,
    Ranking,
    has_processes,
    rank_node,
)


@dataclass(frozen=True, slots=True)
class PodRow:
    """What the tables show of a pod, or of one container of it. Bytes are bytes.

    `adj` is None where it is not known; `adj_range` then bounds it.
    """

    pod: Pod
    node: str
    qos: QosClass
    rank: int | None
    tied: bool
    adj: int | None
    score: int | None
    points: int | None
    memory: int | None
    request: int | None
    limit: int | None
    limit_percent: float | None
    restarts: int
    oom_kills: int
    flags: tuple[Flag, ...]
    eviction_rank: int | None = None
    container: str = ""

    @property
    def name(self) -> str:
        """The pod's name; a workload's template is named by kind and name."""
        pod = self.pod
        return pod.name if pod.kind == "Pod" else f"{pod.kind.lower()}/{pod.name}"

    @property
    def adj_range(self) -> tuple[int, int]:
        """Where oom_score_adj lies."""
        return (self.adj, self.adj) if self.adj is not None else UNKNOWN_BURSTABLE_ADJ

    @property
    def key(self) -> tuple[str, str, str]:
        """What stays the same when values change: namespace, name, container."""
        return self.pod.namespace, self.name, self.container


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in kill order with what a reader has to know about them."""

    rows: tuple[PodRow, ...]
    rankings: Mapping[str, Ranking] = field(default_factory=dict)
    setups: Mapping[str, NodeSetup] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def rows_of(snapshot: Snapshot, scope: Scope, *, containers: bool = False) -> Rows:
    """The rows in scope, each ranked among every known pod of its node.

    In kill order: by printed score over all nodes, and within a node by rank.
    """
    rows: list[PodRow] = []
    rankings, setups = {}, {}
    profiles: dict[tuple[int | None, Release], Profiles] = {}
    for node_name, pods in snapshot.by_node().items():
        wanted = [pod for pod in pods if scope.matches(pod)]
        if not wanted:
            continue
        setup = snapshot.setup(node_name)
        release = setup.release
        capacity = setup.node.memory_capacity_bytes
        alike = profiles.setdefault((capacity, release), Profiles(capacity, release))
        defaulted = [default_pod(pod, release) for pod in pods]
        ranking = rank_node(defaulted, setup.node, release, snapshot.usage, alike)
        rankings[node_name], setups[node_name] = ranking, setup
        rows.extend(_rows_of_node(ranking, setup, scope, containers=containers))
    rows.sort(key=kill_order)
    return Rows(tuple(rows), rankings, setups, tuple(_notes(snapshot, rankings, setups)))


def kill_order(row: PodRow) -> tuple[object, ...]:
    """The default order: highest score first, within a node by rank, then by name."""
    if row.score is None:
        middle = -(row.adj if row.adj is not None else UNKNOWN_BURSTABLE_ADJ[1])
        unknown_below = 0 if row.adj is not None else 1
        return (1, middle, unknown_below, row.request or 0, row.node, *row.key)
    if row.rank is None:
        return (2, 0, 0, 0, row.node, *row.key)
    return (0, -row.score, 0, 0, row.node, row.rank, *row.key)


def _rows_of_node(ranking: Ranking, setup: NodeSetup, scope: Scope, *, containers: bool) -> Iterable[PodRow]:
    after = flags.lowest_priorities_after(ranking.pods)
    evicted = _eviction_ranks(ranking, setup)
    container_ranks = _container_ranks(ranking) if containers else {}
    for row, lowest in zip(ranking.pods, after, strict=True):
        if not scope.matches(row.pod):
            continue
        pod_row = _pod_row(row, setup, lowest, evicted.get((row.pod.namespace, row.pod.name)))
        if not containers:
            yield pod_row
            continue
        for score in row.containers:
            yield _container_row(pod_row, row, score, container_ranks)


def _pod_row(row: RankedPod, setup: NodeSetup, lowest_after: int | None, evicted: int | None) -> PodRow:
    pod = row.pod
    percent = flags.limit_percent(row)
    worst = row.worst or _highest(row.containers)
    statuses = all_statuses(pod)
    return PodRow(
        pod=pod,
        node=setup.node.name,
        qos=row.qos,
        rank=row.rank,
        tied=row.tied,
        adj=worst.adj if worst is not None else None,
        score=worst.oom_score if row.worst is not None and worst is not None else None,
        points=worst.points if worst is not None else None,
        memory=row.usage.memory_bytes if row.usage is not None else None,
        request=row.profile.request_bytes or None,
        limit=row.profile.limit_bytes or None,
        limit_percent=percent,
        restarts=sum([status.restart_count for status in statuses]),
        oom_kills=sum(map(was_oom_killed, statuses)),
        flags=tuple(flags.flags(row, percent, lowest_after)),
        eviction_rank=evicted,
    )


def _container_row(
    pod_row: PodRow,
    row: RankedPod,
    score: ContainerScore,
    ranks: Mapping[tuple[str, str, str], tuple[int, bool]],
) -> PodRow:
    pod = row.pod
    found = next(
        one
        for one in (*pod.init_containers, *pod.containers, *pod.ephemeral_containers)
        if one.name == score.name
    )
    statuses = [status for status in all_statuses(pod) if status.name == score.name]
    limit = found.limits.get(MEMORY, ZERO).value()
    percent = None
    if limit and score.memory_bytes is not None:
        percent = 100 * score.memory_bytes / limit
    rank, tied = ranks.get((pod.namespace, pod.name, score.name), (None, False))
    return PodRow(
        pod=pod,
        node=pod_row.node,
        qos=row.qos,
        rank=rank,
        tied=tied,
        adj=score.adj,
        score=score.oom_score if rank is not None else None,
        points=score.points,
        memory=score.memory_bytes,
        request=_known(found.requests.get(MEMORY)),
        limit=_known(found.limits.get(MEMORY)),
        limit_percent=percent,
        restarts=sum([status.restart_count for status in statuses]),
        oom_kills=sum(map(was_oom_killed, statuses)),
        flags=pod_row.flags,
        eviction_rank=pod_row.eviction_rank,
        container=score.name,
    )


def _highest(scores: tuple[ContainerScore, ...]) -> ContainerScore | None:
    return max(scores, key=lambda score: score.adj if score.adj is not None else 999, default=None)


def _known(quantity: object) -> int | None:
    """The bytes of a quantity; absent and zero are both "none"."""
    value = getattr(quantity, "value", None)
    return (value() or None) if value is not None else None


def all_statuses(pod: Pod) -> list[ContainerStatus]:
    """The statuses of init, app and ephemeral containers."""
    status = pod.status
    return [
        *(status.init_container_statuses or ()),
        *(status.container_statuses or ()),
        *(status.ephemeral_container_statuses or ()),
    ]


def was_oom_killed(status: ContainerStatus) -> bool:
    """Whether the container's present or last end is reported as OOMKilled.

    A hint in both directions: with the systemd driver such ends are often reported as plain errors.
    """
    return _ended_for_memory(status.state) or _ended_for_memory(status.last_state)


def _ended_for_memory(state: ContainerState | None) -> bool:
    return state is not None and state.terminated is not None and state.terminated.reason == "OOMKilled"


def _container_ranks(ranking: Ranking) -> dict[tuple[str, str, str], tuple[int, bool]]:
    """Each container's rank among those of the node that have processes, and whether it shares it."""
    points = [
        ((row.pod.namespace, row.pod.name, score.name), score.points)
        for row in ranking.pods
        for score in row.alive()
        if score.points is not None
    ]
    ordered = sorted((value for _, value in points), reverse=True)
    first: dict[int, int] = {}
    for place, value in enumerate(ordered, start=1):
        first.setdefault(value, place)
    counts: dict[int, int] = {}
    for value in ordered:
        counts[value] = counts.get(value, 0) + 1
    return {key: (first[value], counts[value] > 1) for key, value in points}


def _eviction_ranks(ranking: Ranking, setup: NodeSetup) -> dict[tuple[str, str], int]:
    """The kubelet's order under memory pressure, where usage is known."""
    running = [row for row in ranking.pods if has_processes(row.pod)]
    if ranking.basis is not Basis.USAGE:
        return {}
    order = eviction.rank_memory(
        [row.pod for row in running],
        [_for_eviction(row.usage) for row in running],
        setup.release,
        [row.profile.eviction_request for row in running],
    )
    found = {}
    for one in order:
        pod = running[one.pod_index].pod
        found[pod.namespace, pod.name] = one.position
    return found


def _for_eviction(usage: PodUsage | None) -> eviction.PodUsage | None:
    return None if usage is None else eviction.PodUsage(working_set_bytes=usage.memory_bytes)


def _notes(
    snapshot: Snapshot, rankings: Mapping[str, Ranking], setups: Mapping[str, NodeSetup]
) -> Iterable[str]:
    """What was missing, assumed or estimated, one sentence each."""
    for missing in snapshot.missing:
        yield missing_sentence(missing)
    bases = {ranking.basis for ranking in rankings.values()}
    if Basis.ADJ in bases:
        yield "RANK is by oom_score_adj alone: no memory usage is known"
    elif Basis.USAGE in bases:
        partly = sum(ranking.without_usage for ranking in rankings.values())
        if partly:
            yield f"{_count(partly, 'pod')} without usage counted as using nothing"
    unknown = [
        name
        for name, setup in setups.items()
        if not setup.node.memory_capacity_bytes and (name or not snapshot.nodes)
    ]
    if unknown:
        named = [name for name in unknown if name]
        of = f" of {', '.join(sorted(named)[:3])}" if named else ""
        yield (
            f"the memory capacity{of} is unknown: oom_score_adj of Burstable pods is a range and they"
            " have no rank (--node-memory 16Gi assumes one)"
        )
    elif snapshot.known.memory_bytes and any(name not in snapshot.nodes for name in rankings):
        yield f"nodes that are not known are assumed to have {binary(snapshot.known.memory_bytes)}"
    outside = {str(setup.release) for setup in setups.values() if setup.release.assumed}
    if outside:
        stand_in = ", ".join(sorted(outside))
        yield f"some nodes run a release outside 1.20 to 1.37; they are predicted as {stand_in}"


def missing_sentence(missing: Missing) -> str:
    """One line: what is missing, why, and the remedy."""
    remedy = f" ({missing.remedy})" if missing.remedy else ""
    return f"{missing.what} is missing: {missing.why}{remedy}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")

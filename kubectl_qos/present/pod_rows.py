"""One row per pod (or container) of a ranking: values only, in the units that columns print.

The road from a snapshot to rows is the same for the command line and the terminal UI.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from operator import is_
from typing import TypeVar

import msgspec

from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import MEMORY, ContainerState, ContainerStatus, Pod
from kubectl_qos.k8s.quantity import ZERO
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import PodKey, PodUsage, Sampled, sampled
from kubectl_qos.present.notes import ranking_notes
from kubectl_qos.qos import flags
from kubectl_qos.qos.eviction import eviction_ranks
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

T = TypeVar("T")


class PodRow(msgspec.Struct, frozen=True, gc=False):
    """What the tables show of a pod, or of one container of it. Bytes are bytes.

    `name` is the pod's; a workload's template is named by kind and name. `adj` is None where it is not known;
    `adj_range` then bounds it. `memory` is the working set; `worst` is the container that the pod is ranked
    by; `words` are those that a filter looks in, whatever their case. Whoever has `ended` could be scored and
    has no processes any more.
    """

    pod: Pod
    name: str
    node: str
    qos: QosClass
    rank: int | None
    tied: bool
    adj: int | None
    score: int | None
    ended: bool
    memory: int | None
    rss: int | None
    swap: int | None
    request: int | None
    limit: int | None
    limit_percent: float | None
    restarts: int
    oom_kills: int
    flags: tuple[Flag, ...]
    eviction_rank: int | None = None
    worst: str = ""
    container: str = ""
    words: str = ""

    @property
    def adj_range(self) -> tuple[int, int]:
        """Where oom_score_adj lies."""
        return (self.adj, self.adj) if self.adj is not None else UNKNOWN_BURSTABLE_ADJ

    @property
    def key(self) -> tuple[str, str, str]:
        """What stays the same when values change: namespace, name, container."""
        return self.pod.metadata.namespace, self.name, self.container

    @property
    def own_words(self) -> tuple[str, ...]:
        """The names among its words, one by one."""
        names = (f"{self.pod.metadata.namespace}/{self.name}", self.name)
        return (*names, self.container) if self.container else names

    @property
    def common_words(self) -> tuple[str, ...]:
        """Those among its words that many rows have."""
        return self.node, self.qos.value, *self.flags


class RankedNode(msgspec.Struct, frozen=True, gc=False):
    """A node's rows in scope, in kill order, and what that rests on; `ranked` counts every pod with a rank.

    `made_of` is what all of it was worked out from; the setup from all but the last two.
    """

    setup: NodeSetup
    basis: Basis
    ranked: int
    without_usage: int
    rows: tuple[PodRow, ...]
    made_of: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class PodRows:
    """Rows in kill order with what a reader has to know about them."""

    rows: tuple[PodRow, ...]
    nodes: Mapping[str, RankedNode] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    sampled: Sampled | None = None


def build_rows(
    snapshot: Snapshot, scope: Scope, *, containers: bool = False, before: PodRows | None = None
) -> PodRows:
    """The rows in scope, each ranked among every known pod of its node.

    In kill order: by printed score over all nodes, and within a node by rank. Of rows made `before` for the
    same scope, those about which nothing has changed are the very same objects in both.
    """
    nodes: dict[str, RankedNode] = {}
    known = before.nodes if before is not None else {}
    profiles: dict[tuple[int | None, Release], Profiles] = {}
    for name, pods in snapshot.by_node().items():
        about = (
            snapshot.nodes.get(name),
            snapshot.kubelets.get(name),
            snapshot.overrides,
            snapshot.server_version,
        )
        made_of = (*about, pods, snapshot.usage)
        found = known.get(name)
        if found is None or not all(map(is_, found.made_of, made_of)):
            if not any(map(scope.matches, pods)):
                continue
            same = found is not None and all(map(is_, found.made_of, about))
            setup = found.setup if found is not None and same else snapshot.setup(name)
            key = setup.node.memory_capacity_bytes, setup.release
            alike = profiles.setdefault(key, Profiles(*key))
            again = _ranked_node(pods, setup, snapshot.usage, scope, alike, made_of, containers=containers)
            found = _taken_over(again, found) if found is not None else again
        nodes[name] = found
    when = sampled(snapshot.usage, before.sampled if before is not None else None)
    return PodRows(_in_kill_order(nodes), nodes, tuple(ranking_notes(snapshot, nodes)), when)


def _taken_over(found: RankedNode, before: RankedNode) -> RankedNode:
    """The node with the rows of before, wherever nothing about a row has changed."""
    known = {row.key: row for row in before.rows}
    rows = []
    for row in found.rows:
        old = known.get(row.key)
        rows.append(old if old is not None and old.pod is row.pod and old == row else row)
    return msgspec.structs.replace(found, rows=tuple(rows))


def _in_kill_order(nodes: Mapping[str, RankedNode]) -> tuple[PodRow, ...]:
    """The rows of all nodes. Those of one node are in order already, so rows are only dealt out by danger."""
    dealt: dict[tuple[int, int, int, int], list[PodRow]] = {}
    for name in sorted(nodes):
        for row in nodes[name].rows:
            dealt.setdefault(_danger(row), []).append(row)
    return tuple(chain.from_iterable(dealt[danger] for danger in sorted(dealt)))


def kill_order(row: PodRow) -> tuple[object, ...]:
    """The default order: highest score first, within a node by rank, then by name."""
    return (*_danger(row), row.node, row.rank or 0, *row.key)


def _danger(row: PodRow) -> tuple[int, int, int, int]:
    """What of the kill order holds between nodes; least is first."""
    if row.score is None:
        middle = -(row.adj if row.adj is not None else UNKNOWN_BURSTABLE_ADJ[1])
        return 1, middle, 0 if row.adj is not None else 1, row.request or 0
    if row.rank is None:
        return 2, 0, 0, 0
    return 0, -row.score, 0, 0


def _ranked_node(
    pods: Iterable[Pod],
    setup: NodeSetup,
    usage: Mapping[PodKey, PodUsage],
    scope: Scope,
    alike: Profiles,
    made_of: tuple[object, ...],
    *,
    containers: bool,
) -> RankedNode:
    defaulted = [default_pod(pod, setup.release) for pod in pods]
    ranking = rank_node(defaulted, setup.node, setup.release, usage, alike)
    rows = tuple(sorted(_rows_of_node(ranking, setup, scope, containers=containers), key=kill_order))
    ranked = sum(1 for row in ranking.pods if row.rank is not None)
    return RankedNode(setup, ranking.basis, ranked, ranking.without_usage, rows, made_of)


def _rows_of_node(ranking: Ranking, setup: NodeSetup, scope: Scope, *, containers: bool) -> Iterable[PodRow]:
    after = flags.lowest_priorities_after(ranking.pods)
    evicted = _eviction_ranks(ranking)
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
    usage = row.usage
    found = _one(tuple(flags.flags(row, percent, lowest_after)))
    named = pod.name if pod.kind == "Pod" else f"{pod.kind}/{pod.name}"
    words = " ".join((f"{pod.namespace}/{named}", setup.node.name, row.qos.value, *found))
    return PodRow(
        pod=pod,
        name=pod.name if pod.kind == "Pod" else f"{pod.kind.lower()}/{pod.name}",
        node=setup.node.name,
        qos=row.qos,
        rank=row.rank,
        tied=row.tied,
        adj=worst.adj if worst is not None else None,
        score=_one(worst.oom_score) if row.worst is not None and worst is not None else None,
        ended=row.rank is None and worst is not None and worst.points is not None,
        memory=usage.working_set_bytes if usage is not None else None,
        rss=usage.rss_bytes if usage is not None else None,
        swap=usage.swap_bytes if usage is not None else None,
        request=row.profile.request_bytes or None,
        limit=row.profile.limit_bytes or None,
        limit_percent=percent,
        restarts=sum([status.restart_count for status in statuses]),
        oom_kills=sum(map(was_oom_killed, statuses)),
        flags=found,
        eviction_rank=evicted,
        worst=worst.name if worst is not None else "",
        words=words.casefold(),
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
    usage = score.usage
    if limit and usage is not None:
        percent = 100 * usage.working_set_bytes / limit
    rank, tied = ranks.get((pod.namespace, pod.name, score.name), (None, False))
    return PodRow(
        pod=pod,
        name=pod_row.name,
        node=pod_row.node,
        qos=row.qos,
        rank=rank,
        tied=tied,
        adj=score.adj,
        score=_one(score.oom_score) if rank is not None else None,
        ended=rank is None and score.points is not None,
        memory=usage.working_set_bytes if usage is not None else None,
        rss=usage.rss_bytes if usage is not None else None,
        swap=usage.swap_bytes if usage is not None else None,
        request=_known(found.requests.get(MEMORY)),
        limit=_known(found.limits.get(MEMORY)),
        limit_percent=percent,
        restarts=sum([status.restart_count for status in statuses]),
        oom_kills=sum(map(was_oom_killed, statuses)),
        flags=pod_row.flags,
        eviction_rank=pod_row.eviction_rank,
        worst=score.name,
        container=score.name,
        words=f"{pod_row.words} {score.name}",
    )


@lru_cache(maxsize=4096)
def _one(value: T) -> T:
    """The first value that equals this one: very many rows have very few scores and flags."""
    return value


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


def _eviction_ranks(ranking: Ranking) -> dict[tuple[str, str], int]:
    """The kubelet's order under memory pressure, where usage is known."""
    running = [row for row in ranking.pods if has_processes(row.pod)]
    if ranking.basis is not Basis.USAGE:
        return {}
    ranks = eviction_ranks(
        [row.pod for row in running],
        [row.usage.working_set_bytes if row.usage is not None else None for row in running],
        [row.profile.eviction_request for row in running],
    )
    return {(row.pod.namespace, row.pod.name): rank for row, rank in zip(running, ranks, strict=True)}

"""What differs for one pod between two predictions: scores, rank, cgroup files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from kubectl_qos.edit.edits import Edit, apply, effective
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import CPU, MEMORY, Pod
from kubectl_qos.k8s.quantity import ZERO
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.resources import pod_requests
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.k8s.validation import Refusal, pod_refusals
from kubectl_qos.qos.prediction import Prediction, predict
from kubectl_qos.qos.ranking import RankedPod, Ranking, rank_node
from kubectl_qos.qos.resize import ResizeOutcome, ResizeStatus, resize_outcome, resize_refusals, restarting


@dataclass(frozen=True, slots=True)
class FileChange:
    """One cgroup file whose content changes; None where the file is not written.

    `container` is whose file it is, empty for the pod's own.
    """

    path: str
    name: str
    before: str | None
    after: str | None
    container: str = ""


@dataclass(frozen=True, slots=True)
class ContainerChange:
    """A container's oom_score_adj and oom_score before and after; None is not known."""

    name: str
    adj_before: int | None
    adj_after: int | None
    score_before: int | None
    score_after: int | None

    @property
    def changed(self) -> bool:
        """Whether one of the two numbers differs."""
        return (self.adj_before, self.score_before) != (self.adj_after, self.score_after)


@dataclass(frozen=True, slots=True)
class Effects:
    """A pod before and after.

    `rank_*` are kill ranks on the node, None without one; `mine_*` the pod's rows in the two rankings.
    """

    before: Prediction
    after: Prediction
    containers: tuple[ContainerChange, ...]
    rank_before: int | None
    rank_after: int | None
    files: tuple[FileChange, ...]
    ranking_before: Ranking = field(compare=False, repr=False)
    ranking_after: Ranking = field(compare=False, repr=False)
    mine_before: RankedPod = field(compare=False, repr=False)
    mine_after: RankedPod = field(compare=False, repr=False)

    @property
    def ranked(self) -> int:
        """How many pods of the node have a rank."""
        return sum(1 for row in self.ranking_after.pods if row.rank is not None)

    @property
    def overtaken_by(self) -> tuple[PodKey, ...]:
        """The pods that were killed after this one and would be killed before it."""
        return _passed(self.ranking_after, self.mine_after, self.ranking_before, self.mine_before)

    @property
    def overtakes(self) -> tuple[PodKey, ...]:
        """The pods that were killed before this one and would be killed after it."""
        return _passed(self.ranking_before, self.mine_before, self.ranking_after, self.mine_after)

    @property
    def changes_class(self) -> bool:
        """Whether the pod is of another class."""
        return self.before.qos_class is not self.after.qos_class

    @property
    def changes_path(self) -> bool:
        """Whether the pod or a container is at another place in the cgroup tree."""
        pairs = zip(self.before.containers, self.after.containers, strict=True)
        return self.before.cgroup.path != self.after.cgroup.path or any(
            old.process_path != new.process_path for old, new in pairs
        )

    @property
    def changes_anything(self) -> bool:
        """Whether anything at all differs, the rank included."""
        return (
            self.changes_class
            or self.changes_path
            or bool(self.files)
            or self.rank_before != self.rank_after
            or any(one.changed for one in self.containers)
        )


def build_effects(
    pairs: Iterable[tuple[Prediction, Prediction]], ranking_before: Ranking, ranking_after: Ranking
) -> list[Effects]:
    """What differs for each pair; the pods of all predictions must be among those of their ranking."""
    rows_before, rows_after = _by_pod(ranking_before), _by_pod(ranking_after)
    found = []
    for before, after in pairs:
        mine_before, mine_after = rows_before[id(before.pod)], rows_after[id(after.pod)]
        found.append(
            Effects(
                before=before,
                after=after,
                containers=tuple(_containers(mine_before, mine_after)),
                rank_before=mine_before.rank,
                rank_after=mine_after.rank,
                files=tuple(_files(before, after)),
                ranking_before=ranking_before,
                ranking_after=ranking_after,
                mine_before=mine_before,
                mine_after=mine_after,
            )
        )
    return found


def _by_pod(ranking: Ranking) -> Mapping[int, RankedPod]:
    """Rows by the identity of their pod: names may occur twice in files."""
    return {id(row.pod): row for row in ranking.pods}


def _passed(
    now_before: Ranking, mine_now: RankedPod, was: Ranking, mine_was: RankedPod
) -> tuple[PodKey, ...]:
    """Pods that are killed strictly before mine in one ranking and were not in the other."""
    if mine_now.rank is None or mine_was.rank is None:
        return ()
    earlier = _earlier(was, mine_was.rank)
    return tuple(key for key in _earlier(now_before, mine_now.rank) if key not in earlier)


def _earlier(ranking: Ranking, rank: int) -> dict[PodKey, None]:
    return {
        (row.pod.namespace, row.pod.name): None
        for row in ranking.pods
        if row.rank is not None and row.rank < rank
    }


def _containers(before: RankedPod, after: RankedPod) -> Iterable[ContainerChange]:
    held = {score.name: score for score in before.containers}
    for score in after.containers:
        was = held.get(score.name)
        yield ContainerChange(
            score.name,
            was.adj if was is not None else None,
            score.adj,
            was.oom_score if was is not None else None,
            score.oom_score,
        )


def _files(before: Prediction, after: Prediction) -> Iterable[FileChange]:
    """The files of the pod's and the containers' cgroups that differ; a new class moves them all."""
    pairs = [("", before.cgroup, after.cgroup)]
    pairs += [
        (new.name, old.cgroup, new.cgroup)
        for old, new in zip(before.containers, after.containers, strict=True)
    ]
    for container, old, new in pairs:
        for name in {**old.files, **new.files}:
            was, now = old.files.get(name), new.files.get(name)
            if was != now:
                yield FileChange(new.path, name, was, now, container)


class StrategyKind(StrEnum):
    """How a change of this kind of object takes effect."""

    IN_PLACE = "in place"
    TEMPLATE = "new pods from the template"
    RECREATE = "the pod has to be created anew"
    NEVER = "not at all"


@dataclass(frozen=True, slots=True)
class NodeFit:
    """Whether the node could hold the changed pod: what is free without it, and what it requests.

    In bytes or millicores.
    """

    resource: str
    free: int
    needed: int

    @property
    def fits(self) -> bool:
        """Whether the request is within what is free."""
        return self.needed <= self.free


@dataclass(frozen=True, slots=True)
class Preview:
    """A change and its effects.

    `refusals` are what a server would answer to the pod, `resize_refusals` what to the change in place of a
    running one; `restarts` and `outcome` are what the kubelet makes of the latter.
    """

    effects: Effects
    edits: tuple[Edit, ...]
    room: tuple[NodeFit, ...]
    refusals: tuple[Refusal, ...]
    resize_refusals: tuple[Refusal, ...]
    restarts: tuple[str, ...]
    outcome: ResizeOutcome
    strategy_kind: StrategyKind

    @property
    def before(self) -> Prediction:
        """The pod as it is."""
        return self.effects.before

    @property
    def after(self) -> Prediction:
        """The pod as it would be created anew."""
        return self.effects.after


def preview(
    pod: Pod,
    edits: Iterable[Edit],
    setup: NodeSetup,
    neighbours: Sequence[Pod] = (),
    usage: Mapping[PodKey, PodUsage] | None = None,
) -> Preview:
    """The effects of edits on a pod as it would be created anew with them.

    Args:
        pod: as stored or written, not defaulted by us.
        edits: the values to change; those that change nothing are dropped.
        setup: the pod's node.
        neighbours: every other pod of the node.
        usage: memory by pod, for the ranks.
    """
    edits = effective(pod, edits)
    changed = as_new(apply(pod, edits)) if edits else pod
    before = predict(pod, setup.node, kubelet=setup.kubelet, release=setup.release)
    after = predict(changed, setup.node, kubelet=setup.kubelet, release=setup.release)
    key = (pod.namespace, pod.name)
    others = neighbours_without(pod, neighbours, setup.release)
    ranking_before = rank_node([before.pod, *others], setup.node, setup.release, usage)
    ranking_after = rank_node([after.pod, *others], setup.node, setup.release, usage)
    refused = resize_refusals(before.pod, after.pod, setup.release, setup.node)
    in_place = strategy_kind(pod, before, refused) is StrategyKind.IN_PLACE
    return Preview(
        effects=build_effects([(before, after)], ranking_before, ranking_after)[0],
        edits=edits,
        room=tuple(_room(after.pod, others, setup)),
        refusals=tuple(pod_refusals(after.pod, setup.release)),
        resize_refusals=tuple(refused),
        restarts=tuple(restarting(before.pod, after.pod)) if in_place else (),
        outcome=resize_outcome(before.pod, after.pod, setup, others, (usage or {}).get(key))
        if in_place
        else _DONE,
        strategy_kind=strategy_kind(pod, before, refused),
    )


_DONE = ResizeOutcome(ResizeStatus.ACTUATED)


def neighbours_without(pod: Pod, neighbours: Iterable[Pod], release: Release) -> list[Pod]:
    """The neighbours of a pod without the pod itself, defaulted."""
    key = (pod.namespace, pod.name)
    return [
        default_pod(one, release)
        for one in neighbours
        if (one.namespace, one.name) != key or one.kind != pod.kind
    ]


def strategy_kind(pod: Pod, before: Prediction, refused: Sequence[Refusal]) -> StrategyKind:
    """How the change can take effect, in place unless a server would refuse the resize."""
    if pod.kind == "Job":
        return StrategyKind.NEVER
    if pod.kind != "Pod":
        return StrategyKind.TEMPLATE
    if before.static or before.mirror:
        return StrategyKind.NEVER
    return StrategyKind.RECREATE if refused else StrategyKind.IN_PLACE


def as_new(pod: Pod) -> Pod:
    """The pod without a stored class: created anew, the server computes it from the spec."""
    status = msgspec.structs.replace(pod.status, qos_class="")
    return msgspec.structs.replace(pod, status=status)


def _room(pod: Pod, others: Sequence[Pod], setup: NodeSetup) -> Iterable[NodeFit]:
    """Allocatable minus the requests of the others, against the pod's own request."""
    requests = pod_requests(pod, setup.release)
    for resource in (CPU, MEMORY):
        allocatable = setup.node.status_allocatable.get(resource)
        if allocatable is None:
            continue
        milli = resource == CPU
        free = allocatable.milli_value() if milli else allocatable.value()
        for one in others:
            if not one.is_terminal:
                held = pod_requests(one, setup.release).get(resource, ZERO)
                free -= held.milli_value() if milli else held.value()
        needed = requests.get(resource, ZERO)
        yield NodeFit(resource, free, needed.milli_value() if milli else needed.value())

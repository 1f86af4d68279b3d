"""The effects of edits on one pod: class, scores, kill rank, cgroup files, and how the change is applied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from kubectl_qos.edit.edits import Edit, apply_edits, effective_edits
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import CPU, MEMORY, Pod
from kubectl_qos.k8s.quantity import ZERO, Quantity
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

    `container` is empty for the pod's own files.
    """

    path: str
    name: str
    before: str | None
    after: str | None
    container: str = ""


@dataclass(frozen=True, slots=True)
class ContainerChange:
    """A container's oom_score_adj and oom_score before and after; None where unknown."""

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
        """The pods that were killed after this one and would now be killed before it."""
        before, after = self._killed_earlier()
        return tuple(key for key in after if key not in before)

    @property
    def overtakes(self) -> tuple[PodKey, ...]:
        """The pods that were killed before this one and would now be killed after it."""
        before, after = self._killed_earlier()
        return tuple(key for key in before if key not in after)

    def _killed_earlier(self) -> Iterator[dict[PodKey, None]]:
        """The pods that are killed before this one, in both rankings; none where it has no rank in one."""
        is_ranked = self.rank_before is not None and self.rank_after is not None
        for ranking, rank in ((self.ranking_before, self.rank_before), (self.ranking_after, self.rank_after)):
            earlier = [row.pod for row in ranking.pods if is_ranked and 0 < (row.rank or 0) < (rank or 0)]
            yield {(pod.namespace, pod.name): None for pod in earlier}

    @property
    def changes_path(self) -> bool:
        """Whether the pod or a container moves in the cgroup tree."""
        pairs = zip(self.before.containers, self.after.containers, strict=True)
        return self.before.cgroup.path != self.after.cgroup.path or any(
            old.process_path != new.process_path for old, new in pairs
        )

    @property
    def changes_anything(self) -> bool:
        """Whether anything at all differs, the rank included."""
        return (
            self.before.qos_class is not self.after.qos_class
            or self.changes_path
            or bool(self.files)
            or self.rank_before != self.rank_after
            or any(one.changed for one in self.containers)
        )


def build_effects(
    pairs: Iterable[tuple[Prediction, Prediction]], ranking_before: Ranking, ranking_after: Ranking
) -> list[Effects]:
    """The differences of each pair (before, after); the rankings must have the pods of all predictions."""
    # By the identity of pods: in files two may have one name.
    rows_before = {id(row.pod): row for row in ranking_before.pods}
    rows_after = {id(row.pod): row for row in ranking_after.pods}
    effects = []
    for before, after in pairs:
        mine_before, mine_after = rows_before[id(before.pod)], rows_after[id(after.pod)]
        effects.append(
            Effects(
                before=before,
                after=after,
                containers=tuple(_container_changes(mine_before, mine_after)),
                rank_before=mine_before.rank,
                rank_after=mine_after.rank,
                files=tuple(_file_changes(before, after)),
                ranking_before=ranking_before,
                ranking_after=ranking_after,
                mine_before=mine_before,
                mine_after=mine_after,
            )
        )
    return effects


def _container_changes(before: RankedPod, after: RankedPod) -> Iterable[ContainerChange]:
    old_scores = {score.name: score for score in before.containers}
    for new in after.containers:
        old = old_scores.get(new.name)
        adj, oom_score = (old.adj, old.oom_score) if old is not None else (None, None)
        yield ContainerChange(new.name, adj, new.adj, oom_score, new.oom_score)


def _file_changes(before: Prediction, after: Prediction) -> Iterable[FileChange]:
    """The files of the pod's and the containers' cgroups that differ, at their new paths."""
    pairs = [("", before.cgroup, after.cgroup)]
    pairs += [
        (new.name, old.cgroup, new.cgroup)
        for old, new in zip(before.containers, after.containers, strict=True)
    ]
    for container, old, new in pairs:
        for name in {**old.files, **new.files}:
            old_value, new_value = old.files.get(name), new.files.get(name)
            if old_value != new_value:
                yield FileChange(new.path, name, old_value, new_value, container)


class StrategyKind(StrEnum):
    """How a change of an object is applied."""

    IN_PLACE = "in place"
    TEMPLATE = "new pods from the template"
    RECREATE = "the pod must be recreated"
    NEVER = "impossible"


@dataclass(frozen=True, slots=True)
class NodeFit:
    """Whether the changed pod fits its node: what is free without it, and what it requests.

    In bytes or millicores.
    """

    resource: str
    free: int
    needed: int

    @property
    def fits(self) -> bool:
        """Whether enough is free."""
        return self.needed <= self.free


@dataclass(frozen=True, slots=True)
class Preview:
    """A change and its effects.

    `refusals` are a server's answers to the changed pod, `resize_refusals` those to the change in place;
    `restarts` are the containers that the kubelet restarts for a change in place, `outcome` its answer.
    """

    effects: Effects
    edits: tuple[Edit, ...]
    node_fit: tuple[NodeFit, ...]
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
        """The pod as if recreated with the edits."""
        return self.effects.after


def preview(
    pod: Pod,
    edits: Iterable[Edit],
    setup: NodeSetup,
    neighbours: Sequence[Pod] = (),
    usage: Mapping[PodKey, PodUsage] | None = None,
) -> Preview:
    """The effects of edits on a pod, as if it were recreated with them; edits without effect are dropped.

    `pod` is as stored or written, not defaulted by us; `neighbours` are every other pod of its node. `usage`
    is memory by pod, for the ranks.
    """
    edits = effective_edits(pod, edits)
    changed = as_recreated(apply_edits(pod, edits)) if edits else pod
    before = predict(pod, setup.node, kubelet=setup.kubelet, release=setup.release)
    after = predict(changed, setup.node, kubelet=setup.kubelet, release=setup.release)
    key = (pod.namespace, pod.name)
    others = neighbours_without(pod, neighbours, setup.release)
    ranking_before = rank_node([before.pod, *others], setup.node, setup.release, usage)
    ranking_after = rank_node([after.pod, *others], setup.node, setup.release, usage)
    refusals = resize_refusals(before.pod, after.pod, setup.release, setup.node)
    kind = _strategy_kind(pod, before, refusals)
    in_place = kind is StrategyKind.IN_PLACE
    return Preview(
        effects=build_effects([(before, after)], ranking_before, ranking_after)[0],
        edits=edits,
        node_fit=tuple(_node_fit(after.pod, others, setup)),
        refusals=tuple(pod_refusals(after.pod, setup.release)),
        resize_refusals=tuple(refusals),
        restarts=tuple(restarting(before.pod, after.pod)) if in_place else (),
        outcome=resize_outcome(before.pod, after.pod, setup, others, (usage or {}).get(key))
        if in_place
        else ResizeOutcome(ResizeStatus.ACTUATED),
        strategy_kind=kind,
    )


def neighbours_without(pod: Pod, neighbours: Iterable[Pod], release: Release) -> list[Pod]:
    """The neighbours of a pod, defaulted, without the pod itself."""
    key = (pod.namespace, pod.name)
    return [
        default_pod(one, release)
        for one in neighbours
        if (one.namespace, one.name) != key or one.kind != pod.kind
    ]


def _strategy_kind(pod: Pod, before: Prediction, resize_refused: Sequence[Refusal]) -> StrategyKind:
    if pod.kind == "Job":
        return StrategyKind.NEVER
    if pod.kind != "Pod":
        return StrategyKind.TEMPLATE
    if before.static or before.mirror:
        return StrategyKind.NEVER
    return StrategyKind.RECREATE if resize_refused else StrategyKind.IN_PLACE


def as_recreated(pod: Pod) -> Pod:
    """The pod without its stored class, which the server computes again for a recreated pod."""
    status = msgspec.structs.replace(pod.status, qos_class="")
    return msgspec.structs.replace(pod, status=status)


def _node_fit(pod: Pod, others: Sequence[Pod], setup: NodeSetup) -> Iterable[NodeFit]:
    """Allocatable minus the requests of the others, against the pod's own request."""
    needed = pod_requests(pod, setup.release)
    used = [pod_requests(one, setup.release) for one in others if not one.is_terminal]
    for resource, read in ((CPU, Quantity.milli_value), (MEMORY, Quantity.value)):
        allocatable = setup.node.status_allocatable.get(resource)
        if allocatable is not None:
            free = read(allocatable) - sum(read(requests.get(resource, ZERO)) for requests in used)
            yield NodeFit(resource, free, read(needed.get(resource, ZERO)))

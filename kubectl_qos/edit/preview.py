"""What a change does before it is made: class, scores, rank, cgroup files, room on the node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from kubectl_qos.edit.change import Edit, apply, effective
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import CPU, MEMORY, Pod
from kubectl_qos.k8s.quantity import ZERO
from kubectl_qos.k8s.resources import pod_requests
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.k8s.validation import Refusal, pod_refusals
from kubectl_qos.qos.prediction import Prediction, predict
from kubectl_qos.qos.ranking import RankedPod, Ranking, rank_node
from kubectl_qos.qos.resize import Answer, Outcome, outcome, resize_refusals, restarting


class Landing(StrEnum):
    """How a change of this kind of object takes effect."""

    IN_PLACE = "in place"
    TEMPLATE = "new pods from the template"
    RECREATE = "the pod has to be created anew"
    NEVER = "not at all"


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


@dataclass(frozen=True, slots=True)
class Room:
    """Whether the node could hold the changed pod: what is free without it, and what it requests."""

    resource: str
    free: int
    needed: int

    @property
    def fits(self) -> bool:
        """Whether the request is within what is free; in bytes or millicores."""
        return self.needed <= self.free


@dataclass(frozen=True, slots=True)
class Preview:
    """A change and its effects.

    `rank_*` are kill ranks on the node, None without one; `overtaken_by` were killed after this pod and now
    before it, `overtakes` the other way round. `refusals` are what a server would answer to the pod,
    `resize_refusals` what to the change in place of a running one; `restarts` and `outcome` are what the
    kubelet makes of the latter.
    """

    before: Prediction
    after: Prediction
    edits: tuple[Edit, ...]
    containers: tuple[ContainerChange, ...]
    rank_before: int | None
    rank_after: int | None
    ranked: int
    overtaken_by: tuple[PodKey, ...]
    overtakes: tuple[PodKey, ...]
    files: tuple[FileChange, ...]
    room: tuple[Room, ...]
    refusals: tuple[Refusal, ...]
    resize_refusals: tuple[Refusal, ...]
    restarts: tuple[str, ...]
    outcome: Outcome
    landing: Landing

    @property
    def changes_class(self) -> bool:
        """Whether the changed spec is of another class."""
        return self.before.computed_class is not self.after.computed_class


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
    changed = _as_new(apply(pod, edits)) if edits else pod
    before = predict(pod, setup.node, kubelet=setup.kubelet, release=setup.release)
    after = predict(changed, setup.node, kubelet=setup.kubelet, release=setup.release)
    key = (pod.namespace, pod.name)
    others = [
        default_pod(one, setup.release)
        for one in neighbours
        if (one.namespace, one.name) != key or one.kind != pod.kind
    ]
    ranking_before = rank_node([before.pod, *others], setup.node, setup.release, usage)
    ranking_after = rank_node([after.pod, *others], setup.node, setup.release, usage)
    mine_before = _mine(ranking_before, before.pod)
    mine_after = _mine(ranking_after, after.pod)
    refused = resize_refusals(before.pod, after.pod, setup.release, setup.node.status_allocatable)
    in_place = landing(pod, before, refused) is Landing.IN_PLACE
    return Preview(
        before=before,
        after=after,
        edits=edits,
        containers=tuple(_containers(mine_before, mine_after)),
        rank_before=mine_before.rank,
        rank_after=mine_after.rank,
        ranked=sum(1 for row in ranking_after.pods if row.rank is not None),
        overtaken_by=_passed(ranking_after, mine_after, ranking_before, mine_before),
        overtakes=_passed(ranking_before, mine_before, ranking_after, mine_after),
        files=tuple(_files(before, after)),
        room=tuple(_room(after.pod, others, setup)),
        refusals=tuple(pod_refusals(after.pod, setup.release)),
        resize_refusals=tuple(refused),
        restarts=tuple(restarting(before.pod, after.pod)) if in_place else (),
        outcome=outcome(before.pod, after.pod, setup, others, (usage or {}).get(key)) if in_place else _DONE,
        landing=landing(pod, before, refused),
    )


_DONE = Outcome(Answer.ACTUATED)


def landing(pod: Pod, before: Prediction, refused: Sequence[Refusal]) -> Landing:
    """How the change can take effect, in place unless a server would refuse the resize."""
    if pod.kind == "Job":
        return Landing.NEVER
    if pod.kind != "Pod":
        return Landing.TEMPLATE
    if before.static or before.mirror:
        return Landing.NEVER
    return Landing.RECREATE if refused else Landing.IN_PLACE


def _as_new(pod: Pod) -> Pod:
    """The pod without a stored class: created anew, the server computes it from the spec."""
    status = msgspec.structs.replace(pod.status, qos_class="")
    return msgspec.structs.replace(pod, status=status)


def _mine(ranking: Ranking, pod: Pod) -> RankedPod:
    return next(row for row in ranking.pods if row.pod is pod)


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


def _room(pod: Pod, others: Sequence[Pod], setup: NodeSetup) -> Iterable[Room]:
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
        yield Room(resource, free, needed.milli_value() if milli else needed.value())

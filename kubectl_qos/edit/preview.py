"""What a change does before it is made: class, scores, rank, cgroup files, room on the node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from kubectl_qos.edit.change import Edit, apply, effective
from kubectl_qos.edit.effects import Effects, effects_of
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import CPU, MEMORY, Pod
from kubectl_qos.k8s.quantity import ZERO
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.resources import pod_requests
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.k8s.validation import Refusal, pod_refusals
from kubectl_qos.qos.prediction import Prediction, predict
from kubectl_qos.qos.ranking import rank_node
from kubectl_qos.qos.resize import Answer, Outcome, outcome, resize_refusals, restarting


class Landing(StrEnum):
    """How a change of this kind of object takes effect."""

    IN_PLACE = "in place"
    TEMPLATE = "new pods from the template"
    RECREATE = "the pod has to be created anew"
    NEVER = "not at all"


@dataclass(frozen=True, slots=True)
class Room:
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
    room: tuple[Room, ...]
    refusals: tuple[Refusal, ...]
    resize_refusals: tuple[Refusal, ...]
    restarts: tuple[str, ...]
    outcome: Outcome
    landing: Landing

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
    others = others_of(pod, neighbours, setup.release)
    ranking_before = rank_node([before.pod, *others], setup.node, setup.release, usage)
    ranking_after = rank_node([after.pod, *others], setup.node, setup.release, usage)
    refused = resize_refusals(before.pod, after.pod, setup.release, setup.node)
    in_place = landing(pod, before, refused) is Landing.IN_PLACE
    return Preview(
        effects=effects_of([(before, after)], ranking_before, ranking_after)[0],
        edits=edits,
        room=tuple(_room(after.pod, others, setup)),
        refusals=tuple(pod_refusals(after.pod, setup.release)),
        resize_refusals=tuple(refused),
        restarts=tuple(restarting(before.pod, after.pod)) if in_place else (),
        outcome=outcome(before.pod, after.pod, setup, others, (usage or {}).get(key)) if in_place else _DONE,
        landing=landing(pod, before, refused),
    )


_DONE = Outcome(Answer.ACTUATED)


def others_of(pod: Pod, neighbours: Iterable[Pod], release: Release) -> list[Pod]:
    """The neighbours of a pod without the pod itself, defaulted."""
    key = (pod.namespace, pod.name)
    return [
        default_pod(one, release)
        for one in neighbours
        if (one.namespace, one.name) != key or one.kind != pod.kind
    ]


def landing(pod: Pod, before: Prediction, refused: Sequence[Refusal]) -> Landing:
    """How the change can take effect, in place unless a server would refuse the resize."""
    if pod.kind == "Job":
        return Landing.NEVER
    if pod.kind != "Pod":
        return Landing.TEMPLATE
    if before.static or before.mirror:
        return Landing.NEVER
    return Landing.RECREATE if refused else Landing.IN_PLACE


def as_new(pod: Pod) -> Pod:
    """The pod without a stored class: created anew, the server computes it from the spec."""
    status = msgspec.structs.replace(pod.status, qos_class="")
    return msgspec.structs.replace(pod, status=status)


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

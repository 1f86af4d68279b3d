"""What a goal of a person takes in edits, and the edits that give a pod another QoS class: as few as do it.

Not here: goals about the kill order (rank_goals.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kubectl_qos.edit.edits import POD_LEVEL, Edit, Side, apply, current
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.objects import CPU, MEMORY, Pod
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.releases import Release
from kubectl_qos.qos.qos_class import (
    SPEC_RESOURCES,
    ClassStep,
    ClassStepKind,
    QosClass,
    computed_class,
    steps_to,
)

_RESOURCES: Final = (CPU, MEMORY)


class ObstacleReason(StrEnum):
    """Why no memory request reaches a goal."""

    NO_CAPACITY = "the node's memory is not known"
    NO_PROCESSES = "the pod has no processes on a node"
    NO_USAGE = "the pod's usage is not known, that of others is"
    OTHER_NOT_THERE = "the other pod is not on that node"
    OTHER_HAS_NO_PROCESSES = "the other pod has no processes there"
    TOO_FEW_PODS = "the node has not so many pods that can be killed"
    CRITICAL = "the value of critical pods is fixed"
    GUARANTEED = "the value of Guaranteed pods is fixed"
    BEYOND_BURSTABLE = "no Burstable container is spared that much"
    BEYOND_GUARANTEED = "not even a Guaranteed pod is spared that much"
    RESTRICTED = "containerd sets nothing below its own value"
    NOT_BY_REQUESTS = "requests do not count here"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What stands in the way of a goal, with its numbers.

    Attributes:
        why: what it is.
        container: which one it is about, empty for the whole pod.
        needed: the highest oom_score_adj with which that container would be killed late enough.
        least: the least that it can have.
        ranked: how many pods of the node have a rank.
    """

    why: ObstacleReason
    container: str = ""
    needed: int | None = None
    least: int | None = None
    ranked: int | None = None


@dataclass(frozen=True, slots=True)
class Goal:
    """The edits towards a goal; `to_choose` are the steps of which only a person knows the number.

    Where nothing is left to choose and nothing stands in the way (`obstacle`), the edits reach the goal, and
    none of them can be left out.
    """

    edits: tuple[Edit, ...]
    to_choose: tuple[ClassStep, ...] = ()
    obstacle: Obstacle | None = None


def goal(pod: Pod, target: QosClass, release: Release) -> Goal:
    """The smallest change that makes the pod, created anew, one of the target class.

    Args:
        pod: as stored or written, not defaulted by us.
        target: the class.
        release: the server's.
    """
    edits: list[Edit] = []
    while True:
        changed = apply(pod, edits)
        steps = steps_to(default_pod(changed, release), target, release)
        more = [edit for step in steps for edit in edits_for_step(step, changed, release)]
        if not more:
            return Goal(tuple(edits if steps else _needed(pod, edits, target, release)), tuple(steps))
        edits += more


def _needed(pod: Pod, edits: list[Edit], target: QosClass, release: Release) -> list[Edit]:
    """Without those that need not be.

    A zero counts as absent and may stay, unless defaulting makes more of it; and once spec.resources are
    empty (1.37), the containers count alone.
    """
    for edit in edits:
        others = [one for one in edits if one is not edit]
        if computed_class(default_pod(apply(pod, others), release), release) is target:
            return _needed(pod, others, target, release)
    return edits


def edits_for_step(step: ClassStep, pod: Pod, release: Release) -> Iterator[Edit]:
    """The edits that take a step; none where a number has to be chosen."""
    if step.kind is ClassStepKind.SET_LIMIT:
        yield Edit(_owner(step), Side.LIMITS, step.resource, _limit(step, pod))
    elif step.kind is ClassStepKind.SET_REQUEST:
        yield Edit(_owner(step), Side.REQUESTS, step.resource, step.value)
    elif step.kind is ClassStepKind.LOWER_A_REQUEST:
        yield from _one_limit_less(pod, release)
    elif step.kind is ClassStepKind.REMOVE_ALL:
        for side in Side:
            for resource in _RESOURCES:
                if current(pod, _owner(step), side, resource) is not None:
                    yield Edit(_owner(step), side, resource, None)


def _owner(step: ClassStep) -> str:
    return POD_LEVEL if step.owner == SPEC_RESOURCES else step.owner


def _limit(step: ClassStep, pod: Pod) -> Quantity | None:
    """The limit of a step; a pod's own holds that of each container, or a server refuses it."""
    if _owner(step) != POD_LEVEL or step.value is None:
        return step.value
    held = (container.limits.get(step.resource) for container in pod.containers)
    return max([step.value, *(limit for limit in held if limit is not None)])


def _one_limit_less(pod: Pod, release: Release) -> Iterator[Edit]:
    """The first limit without which a Guaranteed pod is Burstable, of CPU sooner than of memory.

    Without a CPU limit nothing dies that would not die with it. A limit whose request is written is taken
    sooner than one that the request is a copy of: the request would go with it.
    """
    owners = [POD_LEVEL] if pod.spec.resources is not None else []
    owners += [container.name for container in (*pod.containers, *pod.init_containers)]
    places = [(owner, resource) for resource in _RESOURCES for owner in owners]
    places.sort(key=lambda place: current(pod, place[0], Side.REQUESTS, place[1]) is None)
    for owner, resource in places:
        if current(pod, owner, Side.LIMITS, resource) is None:
            continue
        edit = Edit(owner, Side.LIMITS, resource, None)
        if computed_class(default_pod(apply(pod, [edit]), release), release) is QosClass.BURSTABLE:
            yield edit
            return

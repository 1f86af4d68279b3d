"""Goals and the fewest edits that reach them; here: another QoS class. The kill order is in rank_goals.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kubectl_qos.edit.edits import POD_LEVEL, Edit, Side, apply_edits, current_value
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

    NO_CAPACITY = "no capacity"
    NO_PROCESSES = "no processes"
    NO_USAGE = "no usage"
    OTHER_NOT_THERE = "other pod not on the node"
    OTHER_HAS_NO_PROCESSES = "other pod has no processes"
    TOO_FEW_PODS = "too few pods"
    CRITICAL = "critical"
    GUARANTEED = "guaranteed"
    BEYOND_BURSTABLE = "beyond burstable"
    RESTRICTED = "restricted by containerd"
    NOT_BY_REQUESTS = "not by requests"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What stands in the way of a goal, with its numbers.

    Attributes:
        reason: what it is.
        container: the container concerned, empty for the whole pod.
        needed: the highest oom_score_adj with which that container would be killed late enough.
        least: the lowest oom_score_adj that it can have.
        ranked: how many pods of the node have a rank.
    """

    reason: ObstacleReason
    container: str = ""
    needed: int | None = None
    least: int | None = None
    ranked: int | None = None


@dataclass(frozen=True, slots=True)
class Goal:
    """The edits towards a goal; `to_choose` are the steps for which a person has to choose a number.

    Without `to_choose` and `obstacle` the edits reach the goal, and none of them can be left out.
    """

    edits: tuple[Edit, ...]
    to_choose: tuple[ClassStep, ...] = ()
    obstacle: Obstacle | None = None


def reach_class(pod: Pod, target: QosClass, release: Release) -> Goal:
    """The smallest change with which the recreated pod is of the target class.

    Args:
        pod: as stored or written, not defaulted by us.
        target: the class.
        release: the server's.
    """

    def suffice(some: Sequence[Edit]) -> bool:
        return computed_class(default_pod(apply_edits(pod, some), release), release) is target

    edits: list[Edit] = []
    while True:
        changed = apply_edits(pod, edits)
        steps = steps_to(default_pod(changed, release), target, release)
        more = [edit for step in steps for edit in edits_for_step(step, changed, release)]
        if not more:
            # A zero counts as absent and may stay, unless defaulting makes more of it; and once
            # spec.resources are empty (1.37), the containers count alone.
            return Goal(tuple(edits if steps else drop_redundant(edits, suffice)), tuple(steps))
        edits += more


def drop_redundant(edits: list[Edit], suffice: Callable[[Sequence[Edit]], bool]) -> list[Edit]:
    """The edits without those that can be left out."""
    for edit in edits:
        others = [one for one in edits if one is not edit]
        if suffice(others):
            return drop_redundant(others, suffice)
    return edits


def edits_for_step(step: ClassStep, pod: Pod, release: Release) -> Iterator[Edit]:
    """The edits that take a step; none where a person has to choose a number."""
    owner = POD_LEVEL if step.owner == SPEC_RESOURCES else step.owner
    if step.kind is ClassStepKind.SET_LIMIT:
        yield Edit(owner, Side.LIMITS, step.resource, _limit(step, owner, pod))
    elif step.kind is ClassStepKind.SET_REQUEST:
        yield Edit(owner, Side.REQUESTS, step.resource, step.value)
    elif step.kind is ClassStepKind.LOWER_A_REQUEST:
        yield from _remove_one_limit(pod, release)
    elif step.kind is ClassStepKind.REMOVE_ALL:
        for side in Side:
            for resource in _RESOURCES:
                if current_value(pod, owner, side, resource) is not None:
                    yield Edit(owner, side, resource, None)


def _limit(step: ClassStep, owner: str, pod: Pod) -> Quantity | None:
    """The limit of a step; a pod's own is not below that of any container, which a server would refuse."""
    if owner != POD_LEVEL or step.value is None:
        return step.value
    limits = (container.limits.get(step.resource) for container in pod.containers)
    return max([step.value, *(limit for limit in limits if limit is not None)])


def _remove_one_limit(pod: Pod, release: Release) -> Iterator[Edit]:
    """The first limit without which a Guaranteed pod is Burstable, of CPU rather than of memory.

    Removing a CPU limit kills nothing. A limit with an explicit request is preferred to one that the request
    is defaulted from: the request would go with it.
    """
    owners = [POD_LEVEL] if pod.spec.resources is not None else []
    owners += [container.name for container in (*pod.containers, *pod.init_containers)]
    candidates = [(owner, resource) for resource in _RESOURCES for owner in owners]
    candidates.sort(key=lambda one: current_value(pod, one[0], Side.REQUESTS, one[1]) is None)
    for owner, resource in candidates:
        if current_value(pod, owner, Side.LIMITS, resource) is None:
            continue
        edit = Edit(owner, Side.LIMITS, resource, None)
        changed = default_pod(apply_edits(pod, [edit]), release)
        if computed_class(changed, release) is QosClass.BURSTABLE:
            yield edit
            return

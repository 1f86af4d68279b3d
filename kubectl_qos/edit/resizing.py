"""How far a resize in place has come, as the kubelet reports it in the pod's status.

From 1.33 on by conditions (pkg/kubelet/status/status_manager.go, SetPodResizePendingCondition and
SetPodResizeInProgressCondition), before by status.resize. Without either it is done when the values are
allocated and actual: containerStatuses[].allocatedResources and .resources (pkg/kubelet/kubelet_pods.go,
convertToAPIContainerStatuses). The pod's own status.resources are read back from cgroup files, where they are
rounded, and old requests stay; they decide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_qos.edit.change import POD_LEVEL, Edit, Side
from kubectl_qos.edit.progress import Progress, Stage, conditions, number, text
from kubectl_qos.edit.request import Request
from kubectl_qos.edit.undo import value_now
from kubectl_qos.k8s.objects import CPU, ContainerStatus, Pod
from kubectl_qos.k8s.quantity import Quantity

PENDING: Final = "PodResizePending"
IN_PROGRESS: Final = "PodResizeInProgress"
_PENDING: Final = {"Deferred": Stage.DEFERRED, "Infeasible": Stage.INFEASIBLE}
_BEFORE_CONDITIONS: Final = {"Proposed": Stage.WAITING, "InProgress": Stage.IN_PROGRESS, **_PENDING}
_LEAST_CPU_MILLI: Final = {Side.REQUESTS: 2, Side.LIMITS: 10}
"""Below this cgroups hold no smaller value, and what is read back of them is not what was asked for."""


def resize_progress(request: Request, pod: Pod, now: Mapping[str, Any]) -> Progress:
    """Where a resize stands.

    Args:
        request: what was sent.
        pod: the pod as it is.
        now: the same as plain JSON.
    """
    if pod.is_terminal:
        return Progress(Stage.GONE, settled=True, message=f"the pod has ended: {pod.status.phase}")
    if not pod.node_name:
        return Progress(
            Stage.DONE, settled=True, message="the pod is on no node yet: it will start with the values"
        )
    reported = _by_conditions(now) or _by_status(pod)
    if reported is not None:
        return reported
    observed = number(now, "status", "observedGeneration")
    is_observed = observed is None or observed >= (number(now, "metadata", "generation") or 0)
    if not is_observed or not all(_is_allocated(pod, edit) for edit in request.edits):
        return Progress(Stage.WAITING, settled=False)
    if not all(_is_actual(pod, edit) for edit in request.edits):
        return Progress(Stage.IN_PROGRESS, settled=False)
    return Progress(Stage.DONE, settled=True)


def _by_conditions(now: Mapping[str, Any]) -> Progress | None:
    """What a condition says of this version of the pod; one of an earlier version says nothing."""
    generation = number(now, "metadata", "generation") or 0
    found = {
        kind: one
        for kind, one in conditions(now).items()
        if text(one, "status") == "True" and (number(one, "observedGeneration") or generation) >= generation
    }
    pending, in_progress = found.get(PENDING), found.get(IN_PROGRESS)
    if pending is not None:
        stage = _PENDING.get(text(pending, "reason"), Stage.WAITING)
        return Progress(stage, settled=stage is Stage.INFEASIBLE, message=text(pending, "message"))
    if in_progress is not None:
        stage = Stage.ERROR if text(in_progress, "reason") == "Error" else Stage.IN_PROGRESS
        return Progress(stage, settled=False, message=text(in_progress, "message"))
    return None


def _by_status(pod: Pod) -> Progress | None:
    stage = _BEFORE_CONDITIONS.get(pod.status.resize)
    return None if stage is None else Progress(stage, settled=stage is Stage.INFEASIBLE)


def _is_allocated(pod: Pod, edit: Edit) -> bool:
    """Whether the kubelet has set aside what a request asks for; limits are not allocated."""
    if edit.side is Side.LIMITS:
        return True
    if edit.owner == POD_LEVEL:
        allocated = pod.status.allocated_resources
        return allocated is None or allocated.get(edit.resource) == value_now(pod, edit)
    status = _status(pod, edit.owner)
    if status is None:
        return False
    return status.allocated_resources is None or (
        status.allocated_resources.get(edit.resource) == value_now(pod, edit)
    )


def _is_actual(pod: Pod, edit: Edit) -> bool:
    """Whether the container runs with the value; one that does not run starts with what is allocated."""
    if edit.owner == POD_LEVEL:
        return True
    status = _status(pod, edit.owner)
    if status is None or not _runs(status) or status.resources is None:
        return status is not None
    actual = (getattr(status.resources, edit.side.value) or {}).get(edit.resource)
    return _as_held(edit, actual) == _as_held(edit, value_now(pod, edit))


def _as_held(edit: Edit, quantity: Quantity | None) -> Quantity | int | None:
    if quantity is None or edit.resource != CPU:
        return quantity
    return max(quantity.milli_value(), _LEAST_CPU_MILLI[edit.side])


def _runs(status: ContainerStatus) -> bool:
    state = status.state
    return state is not None and state.terminated is None and state.waiting is None


def _status(pod: Pod, name: str) -> ContainerStatus | None:
    return next((one for one in pod.status.every_container if one.name == name), None)

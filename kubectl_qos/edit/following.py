"""What has become of a write: whether its object and its values are still there, and how far they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_qos.edit.progress import Progress, Stage, text
from kubectl_qos.edit.request import Request
from kubectl_qos.edit.resizing import resize_progress
from kubectl_qos.edit.rollout import rollout_progress
from kubectl_qos.edit.undo import value_now
from kubectl_qos.k8s.kinds import pod_of_workload
from kubectl_qos.k8s.objects import Pod, convert

Json = Mapping[str, Any]


def progress_of(request: Request, written: Json, now: Json | None) -> Progress:
    """How far a change has come.

    Args:
        request: what was sent.
        written: the object as the server answered.
        now: the object as it is; None where there is none of that name any more.

    Raises:
        msgspec.ValidationError: an object that is no such object.
    """
    if now is None:
        return Progress(Stage.GONE, settled=True, message=f"{request.reference} is not there any more")
    if text(now, "metadata", "uid") != request.uid:
        sentence = f"{request.reference} was deleted, and made anew by someone else"
        return Progress(Stage.GONE, settled=True, message=sentence)
    pod = pod_in(request, now)
    stored = pod_in(request, written)
    if any(value_now(pod, edit) != value_now(stored, edit) for edit in request.edits):
        return Progress(Stage.OVERTAKEN, settled=True)
    if text(now, "metadata", "deletionTimestamp"):
        return Progress(Stage.GONE, settled=True, message=f"{request.reference} is being deleted")
    if request.kind == "Pod":
        return resize_progress(request, pod, now)
    return rollout_progress(request.kind, now)


def pod_in(request: Request, raw: Json) -> Pod:
    """The pod, or the one of a workload's template. Raises msgspec.ValidationError."""
    return convert(raw, Pod) if request.kind == "Pod" else pod_of_workload(request.kind, raw)

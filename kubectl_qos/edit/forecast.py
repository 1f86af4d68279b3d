"""What an API server would answer to the request that lands a change, before it is asked.

The answer is the server's to the word, as far as it follows from what was read: the object, its namespace's
LimitRanges and ResourceQuotas, and the node. Sources: edit/admission.py, and for how the sentences are put
together k8s.io/apimachinery/pkg/api/errors (NewInvalid, NewForbidden, NewConflict, NewNotFound) and
pkg/util/errors (Aggregate).

Not here, because nothing that is read tells: rights (401, 403), webhooks and admission policies, and whether
the object has changed since. The refusals of a Job's template, and of a pod's own spec, quote whole objects
as Go prints them; in their place is `…`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kubectl_qos.edit.admission import (
    Target,
    as_created,
    as_resized,
    claim_of,
    creation_quota,
    priority_refusal,
    range_refusals,
    target_of,
)
from kubectl_qos.edit.preview import Landing, Preview
from kubectl_qos.edit.request import Request
from kubectl_qos.edit.surroundings import Surroundings
from kubectl_qos.k8s.kinds import WORKLOADS, template_path
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.resource_quota import quota_refusals
from kubectl_qos.k8s.validation import Refusal, pod_refusals
from kubectl_qos.qos.resize import beyond_node, invalid_resize, resize_is_unknown

ELIDED: Final = "…"
"""Stands where the server prints a whole object."""
_NO_RESOURCE: Final = "the server could not find the requested resource"
_ONLY: Final = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
    "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)


@dataclass(frozen=True, slots=True)
class Refused:
    """A server's answer to a request that it does not carry out: HTTP status, reason and message."""

    status: int
    reason: str
    message: str


def forecast(
    preview: Preview, surroundings: Surroundings, road: Landing, request: Request | None = None
) -> Refused | None:
    """What the server would answer to the request of a road; None where it would accept.

    Args:
        preview: the change of a pod, or of a workload under its own kind.
        surroundings: what was read for it; with an empty `raw` the object is gone.
        road: in place, through the template, or as a new pod made from the manifest.
        request: the one that would be sent, where it is there already: an older version of the object than
            `surroundings.raw` is refused.
    """
    target = target_of(preview, surroundings, road)
    if not target.raw:
        return Refused(404, "NotFound", f'{_resource(target.old)} "{target.old.name}" not found')
    if request is not None and _is_stale(request, target):
        sentence = (
            "the object has been modified; please apply your changes to the latest version and try again"
        )
        what = f'{_resource(target.old)} "{target.old.name}"'
        return Refused(409, "Conflict", f"Operation cannot be fulfilled on {what}: {sentence}")
    setup = preview.before.setup
    if road is Landing.RECREATE:
        return _creation(target, surroundings, setup)
    if not target.edits:
        return None
    if target.old.kind in WORKLOADS:
        return _template(target, setup)
    if road is Landing.TEMPLATE:
        return _invalid(target.old, [Refusal("spec", f"{_ONLY}\n{ELIDED}")])
    return _resize(target, surroundings, setup)


def _resize(target: Target, surroundings: Surroundings, setup: NodeSetup) -> Refused | None:
    release = setup.release
    if resize_is_unknown(release):
        return Refused(404, "NotFound", _NO_RESOURCE)
    new = as_resized(target, surroundings.limit_ranges, release)
    invalid = invalid_resize(target.old, new, release)
    if invalid:
        return _invalid(target.old, invalid)
    for _, sentences in range_refusals(new, surroundings.limit_ranges, release):
        return _forbidden(target.old, _aggregated(sentences))
    for refusal in beyond_node(target.old, new, release, setup.node):
        return _forbidden(target.old, str(refusal))
    before, after = claim_of(target.old, target, release), claim_of(new, target, release)
    for refused in quota_refusals(after, surroundings.quotas, release, before):
        return _forbidden(target.old, refused.message)
    return None


def _creation(target: Target, surroundings: Surroundings, setup: NodeSetup) -> Refused | None:
    release = setup.release
    priority = priority_refusal(target.new)
    if priority and not target.old.metadata.uid:
        return _forbidden(target.old, priority)
    new = as_created(target.new, surroundings.limit_ranges, release)
    invalid = pod_refusals(new, release)
    if invalid:
        return _invalid(target.old, invalid)
    for _, sentences in range_refusals(new, surroundings.limit_ranges, release):
        return _forbidden(target.old, _aggregated(sentences))
    quotas = creation_quota(target, surroundings.quotas, release)
    for refused in quota_refusals(claim_of(new, target, release), quotas, release):
        return _forbidden(target.old, refused.message)
    return None


def _template(target: Target, setup: NodeSetup) -> Refused | None:
    """Only validation bears on a template: LimitRanges and quotas look at the pods that are made of it."""
    if target.old.kind == "Job":
        sentence = f"Invalid value: {ELIDED}: field is immutable"
        return _invalid(target.old, [Refusal("spec.template", sentence)])
    where = ".".join(template_path(target.old.kind))
    found = [
        Refusal(f"{where}.{one.path}", one.message)
        for one in pod_refusals(target.new, setup.release)
        if one.path
    ]
    return _invalid(target.old, found) if found else None


def _is_stale(request: Request, target: Target) -> bool:
    held = str((target.raw.get("metadata") or {}).get("resourceVersion", ""))
    return bool(request.resource_version and held) and request.resource_version != held


def _invalid(pod: Pod, refusals: Sequence[Refusal]) -> Refused:
    sentences = [f"{one.path or '[]'}: {one.message}" for one in refusals]
    kind = ".".join(filter(None, (pod.kind, _group(pod))))
    return Refused(422, "Invalid", f'{kind} "{pod.name}" is invalid: {_aggregated(sentences)}')


def _forbidden(pod: Pod, sentence: str) -> Refused:
    return Refused(403, "Forbidden", f'{_resource(pod)} "{pod.name}" is forbidden: {sentence}')


def _aggregated(sentences: Iterable[str]) -> str:
    """One sentence as it is, several in brackets, none twice."""
    found = list(dict.fromkeys(sentences))
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]"


def _resource(pod: Pod) -> str:
    return ".".join(filter(None, (f"{pod.kind.lower()}s", _group(pod))))


def _group(pod: Pod) -> str:
    path = WORKLOADS[pod.kind].group if pod.kind in WORKLOADS else ""
    return path.removeprefix("/apis/").partition("/")[0] if path.startswith("/apis/") else ""

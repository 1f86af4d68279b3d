"""What an API server would answer to the request that makes a change, before it is sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from kubectl_qos.edit.edits import POD_LEVEL, Edit, apply, effective
from kubectl_qos.edit.patch import PatchRequest
from kubectl_qos.edit.preview import Preview, StrategyKind
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.k8s.defaulting import SYSTEM_PRIORITIES, default_pod
from kubectl_qos.k8s.kinds import WORKLOADS, pod_from_workload, template_path
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.limit_range import LimitRange, limit_range_refusals, with_limit_ranges
from kubectl_qos.k8s.objects import Json, Pod, PodStatus, ResourceList, convert
from kubectl_qos.k8s.quota import (
    QuotaPod,
    ResourceQuota,
    crosses_namespaces,
    is_terminating,
    matches,
    quota_refusals,
    quota_usage,
)
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.validation import Refusal, pod_refusals
from kubectl_qos.qos.qos_class import QosClass, qos_class
from kubectl_qos.qos.resize import beyond_node, invalid_resize, resize_is_unknown


@dataclass(frozen=True, slots=True)
class ChangedObject:
    """The object that a request changes on one road, before and after.

    Attributes:
        raw: the object as the server has it: the pod, or the workload whose template is changed.
        old: the pod, or the pod of the template, as stored.
        new: the same with the edits, not defaulted.
        edits: those that change something of it; what a template does not have is left out.
    """

    raw: Json
    old: Pod
    new: Pod
    edits: tuple[Edit, ...]

    @property
    def raw_spec(self) -> Json:
        """The pod spec inside the object."""
        place: Any = self.raw
        for key in (*template_path(self.old.kind), "spec"):
            place = (place.get(key) if isinstance(place, Mapping) else None) or {}
        return place if isinstance(place, Mapping) else {}


def changed_object(preview: Preview, related: RelatedObjects, road: StrategyKind) -> ChangedObject:
    """What is changed on a road; through the template it is that of the topmost owner that has one."""
    stored = preview.before.pod
    if road is StrategyKind.TEMPLATE:
        for owner in reversed(related.owners):
            if owner.template is not None and owner.kind in WORKLOADS:
                return _target(owner.raw, owner.template, preview.edits)
    return _target(related.raw, _written(stored, related.raw), preview.edits)


def _target(raw: Json, old: Pod, edits: Iterable[Edit]) -> ChangedObject:
    names = {POD_LEVEL, *(one.name for one in (*old.containers, *old.init_containers))}
    found = effective(old, [edit for edit in edits if edit.owner in names])
    return ChangedObject({"kind": old.kind, **raw} if raw else raw, old, apply(old, found), found)


def _written(pod: Pod, raw: Json) -> Pod:
    """The pod without our defaulting: in templates and manifests a request follows its limit still.

    What a server has stored is defaulted already.
    """
    try:
        if pod.kind in WORKLOADS:
            return pod_from_workload(pod.kind, raw) if raw else pod
        if not pod.metadata.uid and (raw.get("spec") or {}).get("containers"):
            return convert(raw, Pod)
    except msgspec.ValidationError:
        pass
    return pod


def as_created(pod: Pod, ranges: Sequence[LimitRange], release: Release) -> Pod:
    """A pod, or a template's, as a server stores it when it is created, its LimitRanges included."""
    return with_limit_ranges(default_pod(_as_new(pod), release), ranges)


def as_resized(target: ChangedObject, ranges: Sequence[LimitRange], release: Release) -> Pod:
    """The pod as a server stores it after a resize: LimitRanges fill in what it has not (1.32 and later)."""
    return with_limit_ranges(default_pod(target.new, release), ranges)


def _as_new(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, status=PodStatus())


def quota_pod(pod: Pod, target: ChangedObject, release: Release) -> QuotaPod:
    """The pod as quotas look at it."""
    spec = target.raw_spec
    best_effort = qos_class(pod, release) is QosClass.BEST_EFFORT
    return QuotaPod(pod, best_effort, is_terminating(spec), crosses_namespaces(spec))


def range_refusals(
    pod: Pod, ranges: Sequence[LimitRange], release: Release
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The LimitRanges that refuse a pod, with their sentences; a server says those of the first alone."""
    for limit_range in ranges:
        sentences = limit_range_refusals(pod, [limit_range], release)
        if sentences:
            yield limit_range.metadata.name, tuple(sentences)


def creation_quota(
    target: ChangedObject, quotas: Iterable[ResourceQuota], release: Release
) -> list[ResourceQuota]:
    """The quotas as they stand once the old pod is gone, for one that takes its place.

    A pod that no server has made yet (a manifest: it has no uid) is charged by none of them.
    """
    if target.old.kind != "Pod" or not target.old.metadata.uid:
        return list(quotas)
    claim = quota_pod(target.old, target, release)
    return [freed(quota, claim, release) for quota in quotas]


def freed(quota: ResourceQuota, claim: QuotaPod, release: Release) -> ResourceQuota:
    """A quota without what it counts for a pod."""
    if not matches(quota, claim):
        return quota
    usage = quota_usage(claim.pod, release)
    used = {
        name: amount - usage[name] if name in usage else amount for name, amount in quota.status.used.items()
    }
    status = msgspec.structs.replace(quota.status, used=ResourceList(used))
    return msgspec.structs.replace(quota, status=status)


def priority_refusal(pod: Pod) -> str:
    """What the Priority plugin says to a manifest that writes another priority than its class has.

    Source: plugin/pkg/admission/priority/admission.go; known of the classes of every cluster only.
    """
    computed = SYSTEM_PRIORITIES.get(pod.spec.priority_class_name)
    if computed is None or pod.spec.priority is None or pod.spec.priority == computed:
        return ""
    return (
        f"the integer value of priority ({pod.spec.priority}) must not be provided in pod spec; "
        f"priority admission controller computed {computed} from the given PriorityClass name"
    )


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
class ServerRefusal:
    """A server's answer to a request that it does not carry out: HTTP status, reason and message."""

    status: int
    reason: str
    message: str


def expected_response(
    preview: Preview, related: RelatedObjects, road: StrategyKind, request: PatchRequest | None = None
) -> ServerRefusal | None:
    """What the server would answer to the request of a road; None where it would accept.

    Args:
        preview: the change of a pod, or of a workload under its own kind.
        related: what was read for it; with an empty `raw` the object is gone.
        road: in place, through the template, or as a new pod made from the manifest.
        request: the one that would be sent, where it is there already: an older version of the object than
            `surroundings.raw` is refused.
    """
    target = changed_object(preview, related, road)
    if not target.raw:
        return ServerRefusal(404, "NotFound", f'{_resource(target.old)} "{target.old.name}" not found')
    if request is not None and _is_stale(request, target):
        sentence = (
            "the object has been modified; please apply your changes to the latest version and try again"
        )
        what = f'{_resource(target.old)} "{target.old.name}"'
        return ServerRefusal(409, "Conflict", f"Operation cannot be fulfilled on {what}: {sentence}")
    setup = preview.before.setup
    if road is StrategyKind.RECREATE:
        return _creation(target, related, setup)
    if not target.edits:
        return None
    if target.old.kind in WORKLOADS:
        return _template(target, setup)
    if road is StrategyKind.TEMPLATE:
        return _invalid(target.old, [Refusal("spec", f"{_ONLY}\n{ELIDED}")])
    return _resize(target, related, setup)


def _resize(target: ChangedObject, related: RelatedObjects, setup: NodeSetup) -> ServerRefusal | None:
    release = setup.release
    if resize_is_unknown(release):
        return ServerRefusal(404, "NotFound", _NO_RESOURCE)
    new = as_resized(target, related.limit_ranges, release)
    invalid = invalid_resize(target.old, new, release)
    if invalid:
        return _invalid(target.old, invalid)
    for _, sentences in range_refusals(new, related.limit_ranges, release):
        return _forbidden(target.old, _aggregated(sentences))
    for refusal in beyond_node(target.old, new, release, setup.node):
        return _forbidden(target.old, str(refusal))
    before, after = quota_pod(target.old, target, release), quota_pod(new, target, release)
    for refused in quota_refusals(after, related.quotas, release, before):
        return _forbidden(target.old, refused.message)
    return None


def _creation(target: ChangedObject, related: RelatedObjects, setup: NodeSetup) -> ServerRefusal | None:
    release = setup.release
    priority = priority_refusal(target.new)
    if priority and not target.old.metadata.uid:
        return _forbidden(target.old, priority)
    new = as_created(target.new, related.limit_ranges, release)
    invalid = pod_refusals(new, release)
    if invalid:
        return _invalid(target.old, invalid)
    for _, sentences in range_refusals(new, related.limit_ranges, release):
        return _forbidden(target.old, _aggregated(sentences))
    quotas = creation_quota(target, related.quotas, release)
    for refused in quota_refusals(quota_pod(new, target, release), quotas, release):
        return _forbidden(target.old, refused.message)
    return None


def _template(target: ChangedObject, setup: NodeSetup) -> ServerRefusal | None:
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


def _is_stale(request: PatchRequest, target: ChangedObject) -> bool:
    held = str((target.raw.get("metadata") or {}).get("resourceVersion", ""))
    return bool(request.resource_version and held) and request.resource_version != held


def _invalid(pod: Pod, refusals: Sequence[Refusal]) -> ServerRefusal:
    sentences = [f"{one.path or '[]'}: {one.message}" for one in refusals]
    kind = ".".join(filter(None, (pod.kind, _group(pod))))
    return ServerRefusal(422, "Invalid", f'{kind} "{pod.name}" is invalid: {_aggregated(sentences)}')


def _forbidden(pod: Pod, sentence: str) -> ServerRefusal:
    return ServerRefusal(403, "Forbidden", f'{_resource(pod)} "{pod.name}" is forbidden: {sentence}')


def _aggregated(sentences: Iterable[str]) -> str:
    """One sentence as it is, several in brackets, none twice."""
    found = list(dict.fromkeys(sentences))
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]"


def _resource(pod: Pod) -> str:
    return ".".join(filter(None, (f"{pod.kind.lower()}s", _group(pod))))


def _group(pod: Pod) -> str:
    path = WORKLOADS[pod.kind].group if pod.kind in WORKLOADS else ""
    return path.removeprefix("/apis/").partition("/")[0] if path.startswith("/apis/") else ""

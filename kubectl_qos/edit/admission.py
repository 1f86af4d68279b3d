"""What an API server makes of the object that a request changes: how it would store it, and what refuses it.

Both the forecast of one request (forecast.py) and the verdicts (verdicts.py) are made of these. Sources:
apiserver/pkg/registry/generic/registry/store.go (mutating admission, then validation, then validating
admission), pkg/kubeapiserver/options/plugins.go (the order of the plugins: LimitRanger first, what the node
does, ResourceQuota last).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kubectl_qos.edit.change import POD_LEVEL, Edit, apply, effective
from kubectl_qos.edit.preview import Landing, Preview
from kubectl_qos.edit.surroundings import Json, Surroundings
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kinds import WORKLOADS, pod_of_workload, template_path
from kubectl_qos.k8s.limit_range import limit_range_refusals, with_limit_ranges
from kubectl_qos.k8s.objects import LimitRange, Pod, PodStatus, ResourceList, convert
from kubectl_qos.k8s.priority import SYSTEM_PRIORITIES
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.resource_quota import (
    Claim,
    ResourceQuota,
    crosses_namespaces,
    is_terminating,
    matches,
    usage_of,
)
from kubectl_qos.qos.qos_class import QosClass, qos_class


@dataclass(frozen=True, slots=True)
class Target:
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


def target_of(preview: Preview, surroundings: Surroundings, road: Landing) -> Target:
    """What is changed on a road; through the template it is that of the topmost owner that has one."""
    stored = preview.before.pod
    if road is Landing.TEMPLATE:
        for owner in reversed(surroundings.owners):
            if owner.template is not None and owner.kind in WORKLOADS:
                return _target(owner.raw, owner.template, preview.edits)
    return _target(surroundings.raw, _written(stored, surroundings.raw), preview.edits)


def _target(raw: Json, old: Pod, edits: Iterable[Edit]) -> Target:
    names = {POD_LEVEL, *(one.name for one in (*old.containers, *old.init_containers))}
    found = effective(old, [edit for edit in edits if edit.owner in names])
    return Target({"kind": old.kind, **raw} if raw else raw, old, apply(old, found), found)


def _written(pod: Pod, raw: Json) -> Pod:
    """The pod without our defaulting: in templates and manifests a request follows its limit still.

    What a server has stored is defaulted already.
    """
    try:
        if pod.kind in WORKLOADS:
            return pod_of_workload(pod.kind, raw) if raw else pod
        if not pod.metadata.uid and (raw.get("spec") or {}).get("containers"):
            return convert(raw, Pod)
    except msgspec.ValidationError:
        pass
    return pod


def as_created(pod: Pod, ranges: Sequence[LimitRange], release: Release) -> Pod:
    """A pod, or a template's, as a server stores it when it is created, its LimitRanges included."""
    return with_limit_ranges(default_pod(_as_new(pod), release), ranges)


def as_resized(target: Target, ranges: Sequence[LimitRange], release: Release) -> Pod:
    """The pod as a server stores it after a resize: LimitRanges fill in what it has not (1.32 and later)."""
    return with_limit_ranges(default_pod(target.new, release), ranges)


def _as_new(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, status=PodStatus())


def claim_of(pod: Pod, target: Target, release: Release) -> Claim:
    """The pod as quotas look at it."""
    spec = target.raw_spec
    best_effort = qos_class(pod, release) is QosClass.BEST_EFFORT
    return Claim(pod, best_effort, is_terminating(spec), crosses_namespaces(spec))


def range_refusals(
    pod: Pod, ranges: Sequence[LimitRange], release: Release
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The LimitRanges that refuse a pod, with their sentences; a server says those of the first alone."""
    for limit_range in ranges:
        sentences = limit_range_refusals(pod, [limit_range], release)
        if sentences:
            yield limit_range.metadata.name, tuple(sentences)


def creation_quota(target: Target, quotas: Iterable[ResourceQuota], release: Release) -> list[ResourceQuota]:
    """The quotas as they stand once the old pod is gone, for one that takes its place.

    A pod that no server has made yet (a manifest: it has no uid) is charged by none of them.
    """
    if target.old.kind != "Pod" or not target.old.metadata.uid:
        return list(quotas)
    claim = claim_of(target.old, target, release)
    return [freed(quota, claim, release) for quota in quotas]


def freed(quota: ResourceQuota, claim: Claim, release: Release) -> ResourceQuota:
    """A quota without what it counts for a pod."""
    if not matches(quota, claim):
        return quota
    usage = usage_of(claim.pod, release)
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

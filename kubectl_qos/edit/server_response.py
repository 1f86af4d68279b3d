"""The expected response of an API server to the request that makes a change."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from kubectl_qos.edit.edits import (
    Edit,
    PatchRequest,
    apply_edits,
    edits_between,
    effective_edits,
    own_edits,
)
from kubectl_qos.edit.preview import Preview, StrategyKind
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.k8s.allocation import desired_pod
from kubectl_qos.k8s.defaulting import SYSTEM_PRIORITIES, default_pod
from kubectl_qos.k8s.kinds import (
    WORKLOADS,
    CustomWorkload,
    has_fixed_template,
    pod_from_workload,
    template_path,
)
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import Json, Pod, PodStatus, ResourceList, convert, nested
from kubectl_qos.k8s.quota import (
    LimitRange,
    QuotaCharge,
    QuotaPod,
    QuotaRefusal,
    ResourceQuota,
    charges,
    crosses_namespaces,
    is_terminating,
    limit_range_refusals,
    matches,
    quota_refusals,
    quota_usage,
    with_limit_ranges,
)
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.validation import Refusal, pod_refusals
from kubectl_qos.qos.qos_class import QosClass, qos_class
from kubectl_qos.qos.resize import beyond_node, invalid_resize, why_unavailable


class ChangedObject(msgspec.Struct, frozen=True):
    """The pod, or the workload whose template a request changes, on the server (`raw`).

    `old` is the stored pod, or that of the template; `new` is the same with the edits, not defaulted.
    `edits` are those that change a value; edits of containers that the template lacks are left out.
    """

    raw: Json
    old: Pod
    new: Pod
    edits: tuple[Edit, ...]


def changed_object(preview: Preview, related: RelatedObjects, kind: StrategyKind) -> ChangedObject:
    """Return the object that a strategy changes; for templates the topmost owner that has one."""
    raw, old = related.raw, _as_written(desired_pod(preview.before.pod), related.raw)
    if kind is StrategyKind.TEMPLATE:
        for owner in related.owners:
            if owner.template is not None and owner.kind in WORKLOADS:
                raw, old = owner.raw, owner.template
    edits = effective_edits(old, own_edits(old, preview.edits))
    return ChangedObject({"kind": old.kind, **raw} if raw else raw, old, apply_edits(old, edits), edits)


def _as_written(pod: Pod, raw: Json) -> Pod:
    """Return the pod without our defaulting: in templates and manifests a missing request follows the limit.

    Pods that a server has stored are defaulted already.
    """
    try:
        if isinstance(pod, CustomWorkload):
            return pod
        if pod.kind in WORKLOADS:
            return pod_from_workload(pod.kind, raw) if raw else pod
        if not pod.metadata.uid and nested(raw, "spec").get("containers"):
            return convert(raw, Pod)
    except msgspec.ValidationError:
        pass
    return pod


def as_created(pod: Pod, ranges: Sequence[LimitRange], release: Release) -> Pod:
    """Return the pod as a server stores it when it is created, with what LimitRanges add."""
    without_status = msgspec.structs.replace(pod, status=PodStatus())
    return with_limit_ranges(default_pod(without_status, release), ranges)


def created_change(
    pod: Pod, edits: Iterable[Edit], ranges: Sequence[LimitRange], release: Release
) -> tuple[Pod, list[Edit]]:
    """Return a manifest's pod as created, and the edits that make it the pod of the edited manifest.

    A value that a LimitRange gave may be another one, or none, after the edits.
    """
    before = as_created(pod, ranges, release)
    return before, [*edits_between(before, as_created(apply_edits(pod, edits), ranges, release))]


def quota_pod(pod: Pod, target: ChangedObject, release: Release) -> QuotaPod:
    """Return the pod as quotas count it."""
    spec = nested(target.raw, *template_path(target.old.kind), "spec")
    best_effort = qos_class(pod, release) is QosClass.BEST_EFFORT
    return QuotaPod(pod, best_effort, is_terminating(spec), crosses_namespaces(spec))


def _without_pod(quota: ResourceQuota, claim: QuotaPod, release: Release) -> ResourceQuota:
    if not matches(quota, claim):
        return quota
    usage = quota_usage(claim.pod, release)
    now = quota.status.used.items()
    used = {name: amount - usage[name] if name in usage else amount for name, amount in now}
    status = msgspec.structs.replace(quota.status, used=ResourceList(used))
    return msgspec.structs.replace(quota, status=status)


def _priority_refusal(pod: Pod) -> str:
    """Return the Priority plugin's refusal of a manifest whose priority differs from its class, or "".

    Only for the classes that every cluster has. Source: plugin/pkg/admission/priority/admission.go.
    """
    computed = SYSTEM_PRIORITIES.get(pod.spec.priority_class_name)
    if computed is None or pod.spec.priority is None or pod.spec.priority == computed:
        return ""
    return (
        f"the integer value of priority ({pod.spec.priority}) must not be provided in pod spec; "
        f"priority admission controller computed {computed} from the given PriorityClass name"
    )


class ServerChecks(msgspec.Struct, frozen=True):
    """A changed pod as the server would store it, with values of LimitRanges, and what refuses it.

    The fields are in the order of the server's checks.
    """

    pod: Pod
    claim: QuotaPod
    """The pod as quotas count it."""
    priority: str
    """The sentence of the Priority plugin, or empty."""
    invalid: tuple[Refusal, ...]
    ranges: tuple[tuple[str, list[str]], ...]
    """LimitRanges with their sentences; a server reports only those of the first LimitRange."""
    node: tuple[Refusal, ...]
    """Why the node of a resized pod refuses the change."""
    quotas: tuple[QuotaRefusal, ...]
    charges: tuple[QuotaCharge, ...]
    """What quotas would count in addition."""


def server_checks(
    target: ChangedObject, related: RelatedObjects, setup: NodeSetup, *, in_place: bool
) -> ServerChecks:
    """Return the checks of a resize in place, or of a new pod."""
    release, before = setup.release, None
    quotas: Sequence[ResourceQuota] = related.quotas
    if in_place:
        pod = with_limit_ranges(default_pod(target.new, release), related.limit_ranges)
        before = quota_pod(target.old, target, release)
        invalid = invalid_resize(default_pod(target.old, release), pod, release)
    else:
        pod = as_created(target.new, related.limit_ranges, release)
        invalid = pod_refusals(pod, release)
        if target.old.kind == "Pod" and target.old.metadata.uid:
            # The new pod replaces the old one; no quota counts a manifest (it has no uid) yet.
            replaced = quota_pod(target.old, target, release)
            quotas = [_without_pod(quota, replaced, release) for quota in quotas]
    claim = quota_pod(pod, target, release)
    ranges = {item.metadata.name: limit_range_refusals(pod, [item], release) for item in related.limit_ranges}
    return ServerChecks(
        pod,
        claim,
        "" if in_place or target.old.metadata.uid else _priority_refusal(target.new),
        tuple(invalid),
        tuple((name, sentences) for name, sentences in ranges.items() if sentences),
        tuple(beyond_node(target.old, pod, release, setup.node)) if in_place else (),
        tuple(quota_refusals(claim, quotas, release, before)),
        tuple(charges(claim, quotas, release, before)),
    )


ELIDED: Final = "…"
"""Stands for a whole object that the server prints."""
_NO_RESOURCE: Final = "the server could not find the requested resource"
_ONLY: Final = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
    "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)


class ServerRefusal(NamedTuple):
    """A server's refusal of a request: HTTP status, reason and message."""

    status: int
    reason: str
    message: str


def expected_response(
    preview: Preview, related: RelatedObjects, kind: StrategyKind, request: PatchRequest | None = None
) -> ServerRefusal | None:
    """Return the server's refusal of the request of a strategy; None if it would accept it.

    `preview` is of a pod, or of a workload under its own kind. An empty `related.raw` means that the object
    is gone. A `request` for an older version of the object is refused.
    """
    target = changed_object(preview, related, kind)
    name = f'{_resource(target.old)} "{target.old.name}"'
    if not target.raw:
        return ServerRefusal(404, "NotFound", f"{name} not found")
    version = str(nested(target.raw, "metadata").get("resourceVersion", ""))
    if request is not None and version and request.resource_version not in {"", version}:
        sentence = (
            "the object has been modified; please apply your changes to the latest version and try again"
        )
        return ServerRefusal(409, "Conflict", f"Operation cannot be fulfilled on {name}: {sentence}")
    setup = preview.before.setup
    is_change = bool(target.edits) or kind is StrategyKind.RECREATE
    return change_refusal(target, related, setup, kind) if is_change else None


def change_refusal(
    target: ChangedObject, related: RelatedObjects, setup: NodeSetup, kind: StrategyKind
) -> ServerRefusal | None:
    """Return the refusal of the changed spec: in place, through the object's path, or as a new pod."""
    if kind is StrategyKind.RECREATE:
        return _first_refusal(target.old, server_checks(target, related, setup, in_place=False))
    if target.old.kind in WORKLOADS:
        # LimitRanges and quotas apply only to the pods of a template.
        if has_fixed_template(target.old, setup.release):
            sentence = f"Invalid value: {ELIDED}: field is immutable"
            return _invalid(target.old, [Refusal("spec.template", sentence)])
        where = ".".join(template_path(target.old.kind))
        of_pods = (refusal for refusal in pod_refusals(target.new, setup.release) if refusal.path)
        refusals = [Refusal(f"{where}.{refusal.path}", refusal.message) for refusal in of_pods]
        return _invalid(target.old, refusals) if refusals else None
    if kind is StrategyKind.TEMPLATE:
        return _invalid(target.old, [Refusal("spec", f"{_ONLY}\n{ELIDED}")])
    if why_unavailable(setup.release):
        return ServerRefusal(404, "NotFound", _NO_RESOURCE)
    return _first_refusal(target.old, server_checks(target, related, setup, in_place=True))


def _first_refusal(pod: Pod, checks: ServerChecks) -> ServerRefusal | None:
    if checks.invalid and not checks.priority:
        return _invalid(pod, checks.invalid)
    forbidden = [
        *filter(None, [checks.priority]),
        *(_aggregated(sentences) for _, sentences in checks.ranges),
        *map(str, checks.node),
        *(refused.message for refused in checks.quotas),
    ]
    if not forbidden:
        return None
    return ServerRefusal(403, "Forbidden", f'{_resource(pod)} "{pod.name}" is forbidden: {forbidden[0]}')


def _invalid(pod: Pod, refusals: Sequence[Refusal]) -> ServerRefusal:
    sentences = [f"{refusal.path or '[]'}: {refusal.message}" for refusal in refusals]
    name = f'{with_group(pod.kind, pod.kind)} "{pod.name}"'
    return ServerRefusal(422, "Invalid", f"{name} is invalid: {_aggregated(sentences)}")


def _aggregated(sentences: Iterable[str]) -> str:
    """Join sentences without duplicates; several are put into brackets (`utilerrors.Aggregate`)."""
    unique = list(dict.fromkeys(sentences))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def _resource(pod: Pod) -> str:
    return with_group(f"{pod.kind.lower()}s", pod.kind)


def with_group(name: str, kind: str) -> str:
    """Return a name with the API group of a kind if it has one: `deployments.apps`, `pods`."""
    path = WORKLOADS[kind].group if kind in WORKLOADS else ""
    return f"{name}.{path.split('/')[2]}" if path.startswith("/apis/") else name

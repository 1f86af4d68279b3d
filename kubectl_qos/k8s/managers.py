"""VerticalPodAutoscalers as far as they bear on requests: whose pods, and whether they are changed.

Source: autoscaling.k8s.io/v1 (kubernetes/autoscaler, vertical-pod-autoscaler/pkg/apis).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

from kubectl_qos.k8s.kinds import template_path
from kubectl_qos.k8s.objects import ObjectMeta


class _VpaObject(msgspec.Struct, frozen=True, rename="camel", gc=False, kw_only=True):
    """Frozen, unknown fields skipped."""


class TargetRef(_VpaObject, frozen=True):
    """The workload whose pods are meant."""

    api_version: str = ""
    kind: str = ""
    name: str = ""


class UpdatePolicy(_VpaObject, frozen=True):
    """`update_mode`: Off, Initial, Recreate, InPlaceOrRecreate, or Auto, which is the default."""

    update_mode: str | None = None


class VerticalAutoscalerSpec(_VpaObject, frozen=True):
    """What a VerticalPodAutoscaler is told."""

    target_ref: TargetRef = TargetRef()
    update_policy: UpdatePolicy | None = None


class VerticalAutoscaler(_VpaObject, frozen=True):
    """One VerticalPodAutoscaler."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VerticalAutoscalerSpec = VerticalAutoscalerSpec()

    @property
    def mode(self) -> str:
        """How it changes pods; `Off` only recommends."""
        policy = self.spec.update_policy
        return (policy.update_mode if policy is not None else None) or "Auto"


Json = Mapping[str, Any]


class ManagerKind(StrEnum):
    """What kind of thing keeps the object."""

    ARGO_CD = "Argo CD application"
    FLUX_KUSTOMIZATION = "Flux Kustomization"
    FLUX_HELM_RELEASE = "Flux HelmRelease"
    HELM = "Helm release"
    OPERATOR = "operator"
    APPLIER = "server-side apply"
    CLIENT_APPLIER = "kubectl apply"
    VERTICAL_AUTOSCALER = "VerticalPodAutoscaler"


class Manager(NamedTuple):
    """One of them.

    `name` is its own (`shop`, `flux-system/apps`), for an operator that of its resource (`Prometheus k8s`),
    for an applier that of its field manager; empty where nothing says it. `evidence` is the label, annotation
    or field that tells, `mode` the update mode of a VerticalPodAutoscaler.
    """

    kind: ManagerKind
    name: str
    evidence: str
    mode: str = ""


class ManagedValue(NamedTuple):
    """A value of requests or limits that changes; `container` is empty for the pod's own."""

    container: str
    side: str
    resource: str


def managers(raw: Json, fields: Collection[ManagedValue], ours: str = "") -> tuple[Manager, ...]:
    """Who would put these fields of an object back, as far as the object itself says so.

    Args:
        raw: the object as the server has it.
        fields: what changes.
        ours: our own field manager, which keeps nothing.
    """
    found = [*_argo_cd(raw), *_flux(raw)]
    if not found:
        found += _helm(raw)
    found += _operator(raw)
    by_hand = not found
    for manager in _appliers(raw, fields, ours):
        known = _CONTROLLERS.get(manager.name)
        if known is None:
            found.append(manager)
        elif not any(one.kind in known for one in found):
            found.append(Manager(known[0], "", manager.evidence))
    if by_hand and not any(one.kind is ManagerKind.APPLIER for one in found):
        found += _client_applier(raw, fields)
    return tuple(found)


def matching_autoscalers(
    chain: Sequence[Json], autoscalers: Iterable[VerticalAutoscaler]
) -> tuple[Manager, ...]:
    """The VerticalPodAutoscalers that change the pods of an object or of one of its owners.

    `Off` only recommends and is left out; `Initial` changes pods when they are created.
    """
    named = {(str(raw.get("kind", "")), _name(raw)) for raw in chain}
    named |= {
        (str(owner.get("kind", "")), str(owner.get("name", "")))
        for raw in chain
        for owner in _controllers(raw)
    }
    return tuple(
        Manager(
            ManagerKind.VERTICAL_AUTOSCALER,
            found.metadata.name,
            f"spec.targetRef {found.spec.target_ref.kind} {found.spec.target_ref.name}",
            found.mode,
        )
        for found in autoscalers
        if (found.spec.target_ref.kind, found.spec.target_ref.name) in named and found.mode != "Off"
    )


_ARGO_TRACKING: Final = "argocd.argoproj.io/tracking-id"
_INSTANCE: Final = "app.kubernetes.io/instance"
_ARGO_MANAGER: Final = "argocd-controller"
_FLUX: Final = (
    ("kustomize.toolkit.fluxcd.io", ManagerKind.FLUX_KUSTOMIZATION),
    ("helm.toolkit.fluxcd.io", ManagerKind.FLUX_HELM_RELEASE),
)
_FLUX_OFF: Final = "kustomize.toolkit.fluxcd.io/reconcile"
_HELM_RELEASE: Final = "meta.helm.sh/release-name"
_HELM_NAMESPACE: Final = "meta.helm.sh/release-namespace"
_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_CONTROLLERS: Final[Mapping[str, tuple[ManagerKind, ...]]] = {
    _ARGO_MANAGER: (ManagerKind.ARGO_CD,),
    "kustomize-controller": (ManagerKind.FLUX_KUSTOMIZATION,),
    "helm-controller": (ManagerKind.FLUX_HELM_RELEASE, ManagerKind.HELM),
    "helm": (ManagerKind.HELM, ManagerKind.FLUX_HELM_RELEASE),
}
"""The field managers of those that also leave labels."""

_BUILT_IN: Final = ("apps", "batch", "autoscaling")
"""API groups whose controllers make pods from templates; the core group has no name."""


def _argo_cd(raw: Json) -> Iterator[Manager]:
    """The tracking annotation where it names this very object, or the instance label and Argo's manager.

    The annotation says whose it is (`app:group/kind:namespace/name`): operators copy annotations to what they
    make, and Argo CD ignores such copies. The label is a common one and proves nothing by itself.
    """
    tracked = str(_metadata(raw, "annotations").get(_ARGO_TRACKING, ""))
    application, _, what = tracked.partition(":")
    kind, _, where = what.partition(":")
    if application and kind.rpartition("/")[2] == raw.get("kind") and where.rpartition("/")[2] == _name(raw):
        yield Manager(ManagerKind.ARGO_CD, application, _ARGO_TRACKING)
        return
    instance = str(_metadata(raw, "labels").get(_INSTANCE, ""))
    if instance and any(entry.get("manager") == _ARGO_MANAGER for entry in _managed(raw)):
        yield Manager(ManagerKind.ARGO_CD, instance, _INSTANCE)


def _flux(raw: Json) -> Iterator[Manager]:
    """Both of Flux's labels, unless the object opts out."""
    labels = _metadata(raw, "labels")
    if _metadata(raw, "annotations").get(_FLUX_OFF) == "disabled" or labels.get(_FLUX_OFF) == "disabled":
        return
    for group, kind in _FLUX:
        name, namespace = labels.get(f"{group}/name"), labels.get(f"{group}/namespace")
        if name and namespace:
            yield Manager(kind, f"{namespace}/{name}", f"{group}/name")


def _helm(raw: Json) -> Iterator[Manager]:
    """Helm's own annotation; `managed-by: Helm` is in what charts write, also without any release."""
    annotations = _metadata(raw, "annotations")
    name = annotations.get(_HELM_RELEASE)
    if name and _metadata(raw, "labels").get(_MANAGED_BY, "Helm") == "Helm":
        namespace = annotations.get(_HELM_NAMESPACE)
        yield Manager(ManagerKind.HELM, f"{namespace}/{name}" if namespace else str(name), _HELM_RELEASE)


def _operator(raw: Json) -> Iterator[Manager]:
    """A controller owner of a kind that is not Kubernetes' own."""
    for owner in _controllers(raw):
        version = str(owner.get("apiVersion", ""))
        group = version.rpartition("/")[0]
        if group and group not in _BUILT_IN:
            yield Manager(ManagerKind.OPERATOR, f"{owner.get('kind', '')} {owner.get('name', '')}", version)


def _appliers(raw: Json, fields: Collection[ManagedValue], ours: str) -> Iterator[Manager]:
    """Managers that own one of the fields by server-side apply: their next one sets it or conflicts."""
    for entry in _managed(raw):
        manager = str(entry.get("manager", ""))
        if entry.get("operation") != "Apply" or manager == ours:
            continue
        owned = [field for field in fields if _owns(raw, entry.get("fieldsV1") or {}, field)]
        if owned:
            yield Manager(ManagerKind.APPLIER, manager, _dotted(owned[0]))


def _owns(raw: Json, owned: Json, field: ManagedValue) -> bool:
    """Whether a set of fields (FieldsV1) has this one, or the whole map that it is in."""
    place: Any = owned
    for key in (*template_path(str(raw.get("kind", ""))), "spec"):
        place = _inner(place, f"f:{key}")
    if not field.container:
        places = [_inner(place, "f:resources")]
    else:
        key = f'k:{{"name":{json.dumps(field.container)}}}'
        lists = ("f:containers", "f:initContainers")
        places = [_inner(_inner(_inner(place, one), key), "f:resources") for one in lists]
    for resources in places:
        side = _inner(resources, f"f:{field.side}")
        if f"f:{field.resource}" in side:
            return True
    return False


def _client_applier(raw: Json, fields: Collection[ManagedValue]) -> Iterator[Manager]:
    """`kubectl apply` of old, which notes what it applied: the next one sets each of these values."""
    text = _metadata(raw, "annotations").get(_LAST_APPLIED)
    try:
        applied = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        return
    place: Any = applied
    for key in (*template_path(str(raw.get("kind", ""))), "spec"):
        place = _inner(place, key)
    if any(_is_applied(place, field) for field in fields):
        yield Manager(ManagerKind.CLIENT_APPLIER, "", _LAST_APPLIED)


def _is_applied(spec: Json, field: ManagedValue) -> bool:
    owners: list[Any] = [spec]
    if field.container:
        owners = [
            one
            for kind in ("containers", "initContainers")
            for one in spec.get(kind) or ()
            if isinstance(one, Mapping) and one.get("name") == field.container
        ]
    return any(field.resource in _inner(_inner(owner, "resources"), field.side) for owner in owners)


def _inner(place: Any, key: str) -> Json:
    found = place.get(key) if isinstance(place, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _dotted(field: ManagedValue) -> str:
    owner = f"{field.container}." if field.container else ""
    return f"{owner}{field.side}.{field.resource}"


def _name(raw: Json) -> str:
    return str(_inner(raw, "metadata").get("name", ""))


def _metadata(raw: Json, name: str) -> Json:
    return _inner(_inner(raw, "metadata"), name)


def _entries(raw: Json, name: str) -> list[Json]:
    found = _inner(raw, "metadata").get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _managed(raw: Json) -> list[Json]:
    return _entries(raw, "managedFields")


def _controllers(raw: Json) -> list[Json]:
    return [owner for owner in _entries(raw, "ownerReferences") if owner.get("controller")]

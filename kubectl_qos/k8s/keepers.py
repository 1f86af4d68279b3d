"""Who keeps an object as it is: whatever would change requests and limits back.

Read from what the object says of itself: labels, annotations, owner references and managedFields. Sources:
argo-cd docs/user-guide/resource_tracking.md, fluxcd kustomize-controller and helm-controller (labels of the
objects they own), helm pkg/action/validate.go (ownership metadata), k8s.io/apimachinery
(metav1.ManagedFieldsEntry, FieldsV1). A label alone is no proof where pods inherit it from their template;
each rule says what it takes for one.

Not here: whether a keeper is at work right now (a paused Argo CD application, a suspended Kustomization),
which no field of the object tells.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from kubectl_qos.k8s.kinds import template_path
from kubectl_qos.k8s.vertical_autoscaler import VerticalAutoscaler

Json = Mapping[str, Any]


class KeeperKind(StrEnum):
    """What kind of thing keeps the object."""

    ARGO_CD = "Argo CD application"
    FLUX_KUSTOMIZATION = "Flux Kustomization"
    FLUX_HELM_RELEASE = "Flux HelmRelease"
    HELM = "Helm release"
    OPERATOR = "operator"
    APPLIER = "server-side apply"
    CLIENT_APPLIER = "kubectl apply"
    VERTICAL_AUTOSCALER = "VerticalPodAutoscaler"


class Keeper(NamedTuple):
    """One of them.

    `name` is its own (`shop`, `flux-system/apps`), for an operator that of its resource (`Prometheus k8s`),
    for an applier that of its field manager; empty where nothing says it. `evidence` is the label, annotation
    or field that tells, `mode` the update mode of a VerticalPodAutoscaler.
    """

    kind: KeeperKind
    name: str
    evidence: str
    mode: str = ""


class Field(NamedTuple):
    """A value of requests or limits that changes; `container` is empty for the pod's own."""

    container: str
    side: str
    resource: str


def keepers(raw: Json, fields: Collection[Field], ours: str = "") -> tuple[Keeper, ...]:
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
    for keeper in _appliers(raw, fields, ours):
        known = _CONTROLLERS.get(keeper.name)
        if known is None:
            found.append(keeper)
        elif not any(one.kind in known for one in found):
            found.append(Keeper(known[0], "", keeper.evidence))
    if by_hand and not any(one.kind is KeeperKind.APPLIER for one in found):
        found += _client_applier(raw, fields)
    return tuple(found)


def autoscalers_of(chain: Sequence[Json], autoscalers: Iterable[VerticalAutoscaler]) -> tuple[Keeper, ...]:
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
        Keeper(
            KeeperKind.VERTICAL_AUTOSCALER,
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
    ("kustomize.toolkit.fluxcd.io", KeeperKind.FLUX_KUSTOMIZATION),
    ("helm.toolkit.fluxcd.io", KeeperKind.FLUX_HELM_RELEASE),
)
_FLUX_OFF: Final = "kustomize.toolkit.fluxcd.io/reconcile"
_HELM_RELEASE: Final = "meta.helm.sh/release-name"
_HELM_NAMESPACE: Final = "meta.helm.sh/release-namespace"
_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_CONTROLLERS: Final[Mapping[str, tuple[KeeperKind, ...]]] = {
    _ARGO_MANAGER: (KeeperKind.ARGO_CD,),
    "kustomize-controller": (KeeperKind.FLUX_KUSTOMIZATION,),
    "helm-controller": (KeeperKind.FLUX_HELM_RELEASE, KeeperKind.HELM),
    "helm": (KeeperKind.HELM, KeeperKind.FLUX_HELM_RELEASE),
}
"""The field managers of those that also leave labels."""

_BUILT_IN: Final = ("apps", "batch", "autoscaling")
"""API groups whose controllers make pods from templates; the core group has no name."""


def _argo_cd(raw: Json) -> Iterator[Keeper]:
    """The tracking annotation where it names this very object, or the instance label and Argo's manager.

    The annotation says whose it is (`app:group/kind:namespace/name`): operators copy annotations to what they
    make, and Argo CD ignores such copies. The label is a common one and proves nothing by itself.
    """
    tracked = str(_metadata(raw, "annotations").get(_ARGO_TRACKING, ""))
    application, _, what = tracked.partition(":")
    kind, _, where = what.partition(":")
    if application and kind.rpartition("/")[2] == raw.get("kind") and where.rpartition("/")[2] == _name(raw):
        yield Keeper(KeeperKind.ARGO_CD, application, _ARGO_TRACKING)
        return
    instance = str(_metadata(raw, "labels").get(_INSTANCE, ""))
    if instance and any(entry.get("manager") == _ARGO_MANAGER for entry in _managed(raw)):
        yield Keeper(KeeperKind.ARGO_CD, instance, _INSTANCE)


def _flux(raw: Json) -> Iterator[Keeper]:
    """Both of Flux's labels, unless the object opts out."""
    labels = _metadata(raw, "labels")
    if _metadata(raw, "annotations").get(_FLUX_OFF) == "disabled" or labels.get(_FLUX_OFF) == "disabled":
        return
    for group, kind in _FLUX:
        name, namespace = labels.get(f"{group}/name"), labels.get(f"{group}/namespace")
        if name and namespace:
            yield Keeper(kind, f"{namespace}/{name}", f"{group}/name")


def _helm(raw: Json) -> Iterator[Keeper]:
    """Helm's own annotation; `managed-by: Helm` is in what charts write, also without any release."""
    annotations = _metadata(raw, "annotations")
    name = annotations.get(_HELM_RELEASE)
    if name and _metadata(raw, "labels").get(_MANAGED_BY, "Helm") == "Helm":
        namespace = annotations.get(_HELM_NAMESPACE)
        yield Keeper(KeeperKind.HELM, f"{namespace}/{name}" if namespace else str(name), _HELM_RELEASE)


def _operator(raw: Json) -> Iterator[Keeper]:
    """A controller owner of a kind that is not Kubernetes' own."""
    for owner in _controllers(raw):
        version = str(owner.get("apiVersion", ""))
        group = version.rpartition("/")[0]
        if group and group not in _BUILT_IN:
            yield Keeper(KeeperKind.OPERATOR, f"{owner.get('kind', '')} {owner.get('name', '')}", version)


def _appliers(raw: Json, fields: Collection[Field], ours: str) -> Iterator[Keeper]:
    """Managers that own one of the fields by server-side apply: their next one sets it or conflicts."""
    for entry in _managed(raw):
        manager = str(entry.get("manager", ""))
        if entry.get("operation") != "Apply" or manager == ours:
            continue
        owned = [field for field in fields if _owns(raw, entry.get("fieldsV1") or {}, field)]
        if owned:
            yield Keeper(KeeperKind.APPLIER, manager, _dotted(owned[0]))


def _owns(raw: Json, owned: Json, field: Field) -> bool:
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


def _client_applier(raw: Json, fields: Collection[Field]) -> Iterator[Keeper]:
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
        yield Keeper(KeeperKind.CLIENT_APPLIER, "", _LAST_APPLIED)


def _is_applied(spec: Json, field: Field) -> bool:
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


def _dotted(field: Field) -> str:
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

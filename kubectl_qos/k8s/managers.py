"""Field managers and autoscalers that would revert an edit, and utilization targets, which requests scale.

Sources: metav1.ManagedFieldsEntry (fieldsV1), autoscaling.k8s.io/v1 (kubernetes/autoscaler,
vertical-pod-autoscaler/pkg/apis), autoscaling/v2, and the labels and annotations that Argo CD, Flux and Helm
document.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from kubectl_qos.k8s.kinds import find_controller, template_path
from kubectl_qos.k8s.objects import (
    EMPTY_RESOURCES,
    ApiStruct,
    Json,
    ObjectMeta,
    ResourceList,
    nested,
    nested_list,
)


class _TargetRef(ApiStruct, frozen=True):
    kind: str = ""
    name: str = ""


class _UpdatePolicy(ApiStruct, frozen=True):
    """`update_mode`: Off, Initial, Recreate, InPlaceOrRecreate, or Auto, which is the default."""

    update_mode: str | None = None


class _ContainerPolicy(ApiStruct, frozen=True):
    """`controlled_values`: RequestsOnly, or RequestsAndLimits, which is the default; `*` is any container."""

    container_name: str = ""
    controlled_values: str = ""


class _ResourcePolicy(ApiStruct, frozen=True):
    container_policies: tuple[_ContainerPolicy, ...] = ()


class _VerticalAutoscalerSpec(ApiStruct, frozen=True):
    target_ref: _TargetRef = _TargetRef()
    update_policy: _UpdatePolicy | None = None
    resource_policy: _ResourcePolicy | None = None


class RecommendedResources(ApiStruct, frozen=True):
    """The requests that a VerticalPodAutoscaler recommends for a container, and their bounds."""

    container_name: str = ""
    target: ResourceList = EMPTY_RESOURCES
    lower_bound: ResourceList = EMPTY_RESOURCES
    upper_bound: ResourceList = EMPTY_RESOURCES


class _Recommendation(ApiStruct, frozen=True):
    container_recommendations: tuple[RecommendedResources, ...] = ()


class _VerticalAutoscalerStatus(ApiStruct, frozen=True):
    recommendation: _Recommendation | None = None


class ManagedValue(NamedTuple):
    """A value of requests or limits (`side`); `container` is empty for the pod's own."""

    container: str
    side: str
    resource: str

    def __str__(self) -> str:
        return ".".join(filter(None, self))


class VerticalAutoscaler(ApiStruct, frozen=True):
    """A VerticalPodAutoscaler."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _VerticalAutoscalerSpec = _VerticalAutoscalerSpec()
    status: _VerticalAutoscalerStatus = _VerticalAutoscalerStatus()

    @property
    def recommended(self) -> tuple[RecommendedResources, ...]:
        """Return the recommendation for each container; empty until it has enough samples."""
        recommendation = self.status.recommendation
        return recommendation.container_recommendations if recommendation is not None else ()

    def keeps_limits(self, container: str) -> bool:
        """Return whether it sets only requests; otherwise limits change in proportion."""
        policy = self.spec.resource_policy
        policies = policy.container_policies if policy else ()
        values = {policy.container_name: policy.controlled_values for policy in policies}
        return values.get(container, values.get("*")) == "RequestsOnly"

    def leaves(self, values: Collection[ManagedValue]) -> bool:
        """Return whether it changes none of these values: all are limits, and it sets only requests."""
        kept = (value.side == "limits" and self.keeps_limits(value.container) for value in values)
        return bool(values) and all(kept)

    @property
    def mode(self) -> str:
        """Return how it changes pods; `Off` only recommends."""
        policy = self.spec.update_policy
        return (policy.update_mode if policy is not None else None) or "Auto"


class _MetricTarget(ApiStruct, frozen=True):
    average_utilization: int | None = None


class _ResourceMetric(ApiStruct, frozen=True):
    """`container` is empty for all containers of a pod together."""

    name: str = ""
    container: str = ""
    target: _MetricTarget = _MetricTarget()


class _Metric(ApiStruct, frozen=True):
    resource: _ResourceMetric | None = None
    container_resource: _ResourceMetric | None = None


class _HorizontalAutoscalerSpec(ApiStruct, frozen=True):
    scale_target_ref: _TargetRef = _TargetRef()
    metrics: tuple[_Metric, ...] = ()


class HorizontalAutoscaler(ApiStruct, frozen=True):
    """A HorizontalPodAutoscaler."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _HorizontalAutoscalerSpec = _HorizontalAutoscalerSpec()


class UtilizationTarget(NamedTuple):
    """A target in percent of a request: of one container, or of the pod if `container` is empty."""

    autoscaler: str
    resource: str
    container: str
    percent: int


class ManagerKind(StrEnum):
    """The kinds of managers."""

    ARGO_CD = "Argo CD application"
    FLUX_KUSTOMIZATION = "Flux Kustomization"
    FLUX_HELM_RELEASE = "Flux HelmRelease"
    HELM = "Helm release"
    OPERATOR = "operator"
    OLM = "Operator Lifecycle Manager"
    APPLIER = "server-side apply"
    CLIENT_APPLIER = "kubectl apply"
    VERTICAL_AUTOSCALER = "VerticalPodAutoscaler"


class Manager(NamedTuple):
    """A manager of an object.

    `name` is its name (`shop`, `flux-system/apps`), of an operator its resource's (`Prometheus k8s`), of an
    applier its field manager's; empty if unknown. `evidence` is the label, annotation or field that names it,
    `mode` the update mode of a VerticalPodAutoscaler.
    """

    kind: ManagerKind
    name: str
    evidence: str
    mode: str = ""


def find_managers(raw: Json, values: Collection[ManagedValue], ours: str = "") -> tuple[Manager, ...]:
    """Return the managers that the object names and that would set these values again."""
    managers = [*_argo_cd(raw), *_flux(raw)] or [*_helm(raw)]
    managers += _operator(raw)
    is_by_hand = not managers
    for applier in _appliers(raw, values, ours):
        kinds = _CONTROLLERS.get(applier.name)
        if kinds is None:
            managers.append(applier)
        elif not any(manager.kind in kinds for manager in managers):
            managers.append(Manager(kinds[0], "", applier.evidence))
    if is_by_hand and not any(manager.kind is ManagerKind.APPLIER for manager in managers):
        managers += _client_applier(raw, values)
    return tuple(managers)


def matching_autoscalers(
    chain: Sequence[Json], autoscalers: Iterable[VerticalAutoscaler], values: Collection[ManagedValue]
) -> tuple[Manager, ...]:
    """Return the VerticalPodAutoscalers that change these values of an object or of one of its owners.

    `Off` only recommends and is left out; `Initial` changes pods when they are created.
    """
    targets = _targets(chain)
    refs = ((vpa, vpa.spec.target_ref) for vpa in autoscalers if vpa.mode != "Off" and not vpa.leaves(values))
    return tuple(as_manager(vpa) for vpa, ref in refs if (ref.kind, ref.name) in targets)


def as_manager(autoscaler: VerticalAutoscaler) -> Manager:
    """Return a VerticalPodAutoscaler as the manager of its target's pods."""
    target, name = autoscaler.spec.target_ref, autoscaler.metadata.name
    where = f"spec.targetRef {target.kind} {target.name}"
    return Manager(ManagerKind.VERTICAL_AUTOSCALER, name, where, autoscaler.mode)


def find_recommending(
    chain: Sequence[Json], autoscalers: Iterable[VerticalAutoscaler]
) -> VerticalAutoscaler | None:
    """Return the VerticalPodAutoscaler of an object or its owners, in any mode, if it recommends anything."""
    targets = _targets(chain)
    refs = ((vpa, vpa.spec.target_ref) for vpa in autoscalers if vpa.recommended)
    return next((vpa for vpa, ref in refs if (ref.kind, ref.name) in targets), None)


def utilization_targets(
    chain: Sequence[Json], autoscalers: Iterable[HorizontalAutoscaler]
) -> Iterator[UtilizationTarget]:
    """Yield the targets by which an object or one of its owners is scaled."""
    targets = _targets(chain)
    for autoscaler in autoscalers:
        target = autoscaler.spec.scale_target_ref
        if (target.kind, target.name) not in targets:
            continue
        for metric in autoscaler.spec.metrics:
            measured = metric.resource or metric.container_resource
            percent = measured.target.average_utilization if measured is not None else None
            if measured is not None and percent is not None:
                name = autoscaler.metadata.name
                yield UtilizationTarget(name, measured.name, measured.container, percent)


def _targets(chain: Sequence[Json]) -> set[tuple[str, str]]:
    named = {(str(raw.get("kind", "")), _name(raw)) for raw in chain}
    return named | {(owner.get("kind", ""), owner.get("name", "")) for raw in chain for owner in _owner(raw)}


def managed_fields(raw: Json) -> list[Json]:
    """Return the entries of metadata.managedFields."""
    return nested_list(raw, "metadata", "managedFields")


def owns_value(entry: Json, kind: str, value: ManagedValue) -> bool:
    """Return whether an entry of managedFields has this value of an object of this kind."""
    spec = nested(entry, "fieldsV1", *(f"f:{key}" for key in (*template_path(kind), "spec")))
    owners = [spec]
    if value.container:
        key = f'k:{{"name":{json.dumps(value.container)}}}'
        owners = [nested(spec, f"f:{name}", key) for name in _CONTAINERS]
    name = f"f:{value.resource}"
    return any(name in nested(owner, "f:resources", f"f:{value.side}") for owner in owners)


_CONTAINERS: Final = ("containers", "initContainers")
_ARGO_TRACKING: Final = "argocd.argoproj.io/tracking-id"
_INSTANCE: Final = "app.kubernetes.io/instance"
_ARGO_MANAGER: Final = "argocd-controller"
_FLUX: Final = (
    ("kustomize.toolkit.fluxcd.io", ManagerKind.FLUX_KUSTOMIZATION),
    ("helm.toolkit.fluxcd.io", ManagerKind.FLUX_HELM_RELEASE),
)
_FLUX_OFF: Final = "kustomize.toolkit.fluxcd.io/reconcile"
_OLM: Final = "olm.owner"
_HELM_RELEASE: Final = "meta.helm.sh/release-name"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_CONTROLLERS: Final[Mapping[str, tuple[ManagerKind, ...]]] = {
    _ARGO_MANAGER: (ManagerKind.ARGO_CD,),
    "kustomize-controller": (ManagerKind.FLUX_KUSTOMIZATION,),
    "helm-controller": (ManagerKind.FLUX_HELM_RELEASE, ManagerKind.HELM),
    "helm": (ManagerKind.HELM, ManagerKind.FLUX_HELM_RELEASE),
}
"""The field managers of controllers that also set labels."""
_BUILT_IN: Final = ("apps", "batch", "autoscaling")
"""API groups whose controllers create pods from templates; the core group has no name."""


def _argo_cd(raw: Json) -> Iterator[Manager]:
    """Find Argo CD by its tracking annotation of this object, or by the instance label and field manager.

    The annotation is `app:group/kind:namespace/name`. Operators copy annotations to the objects that they
    create, and Argo CD ignores these copies. The label is common and proves nothing by itself.
    """
    tracking = str(nested(raw, "metadata", "annotations").get(_ARGO_TRACKING, ""))
    application, _, target = tracking.partition(":")
    kind, _, path = target.partition(":")
    if application and kind.rpartition("/")[2] == raw.get("kind") and path.rpartition("/")[2] == _name(raw):
        yield Manager(ManagerKind.ARGO_CD, application, _ARGO_TRACKING)
        return
    instance = str(nested(raw, "metadata", "labels").get(_INSTANCE, ""))
    if instance and any(entry.get("manager") == _ARGO_MANAGER for entry in managed_fields(raw)):
        yield Manager(ManagerKind.ARGO_CD, instance, _INSTANCE)


def _flux(raw: Json) -> Iterator[Manager]:
    """Find Flux by its labels, unless the object opts out."""
    labels = nested(raw, "metadata", "labels")
    if "disabled" in (labels.get(_FLUX_OFF), nested(raw, "metadata", "annotations").get(_FLUX_OFF)):
        return
    for group, kind in _FLUX:
        name, namespace = labels.get(f"{group}/name"), labels.get(f"{group}/namespace")
        if name and namespace:
            yield Manager(kind, f"{namespace}/{name}", f"{group}/name")


def _helm(raw: Json) -> Iterator[Manager]:
    """Find Helm by its own annotation; charts set `managed-by: Helm` without a release too."""
    annotations = nested(raw, "metadata", "annotations")
    name = annotations.get(_HELM_RELEASE)
    if name and nested(raw, "metadata", "labels").get("app.kubernetes.io/managed-by", "Helm") == "Helm":
        namespace = annotations.get("meta.helm.sh/release-namespace")
        yield Manager(ManagerKind.HELM, f"{namespace}/{name}" if namespace else str(name), _HELM_RELEASE)


def _operator(raw: Json) -> Iterator[Manager]:
    """Find a controller of a foreign kind, or the installer of an operator."""
    if installed := str(nested(raw, "metadata", "labels").get(_OLM, "")):
        yield Manager(ManagerKind.OLM, installed, _OLM)
    for owner in _owner(raw):
        version = str(owner.get("apiVersion", ""))
        group = version.rpartition("/")[0]
        if group and group not in _BUILT_IN:
            yield Manager(ManagerKind.OPERATOR, f"{owner.get('kind', '')} {owner.get('name', '')}", version)


def _appliers(raw: Json, values: Collection[ManagedValue], ours: str) -> Iterator[Manager]:
    """Find managers that own a value by server-side apply: their next apply sets it again or conflicts."""
    for entry in managed_fields(raw):
        name = str(entry.get("manager", ""))
        if entry.get("operation") == "Apply" and name != ours:
            owned = [value for value in values if owns_value(entry, str(raw.get("kind", "")), value)]
            if owned:
                yield Manager(ManagerKind.APPLIER, name, str(owned[0]))


def _client_applier(raw: Json, values: Collection[ManagedValue]) -> Iterator[Manager]:
    """Find client-side `kubectl apply` by its annotation: the next apply sets the values again."""
    text = nested(raw, "metadata", "annotations").get(_LAST_APPLIED)
    try:
        applied = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        return
    spec = nested(applied, *template_path(str(raw.get("kind", ""))), "spec")
    if any(_is_applied(spec, value) for value in values):
        yield Manager(ManagerKind.CLIENT_APPLIER, "", _LAST_APPLIED)


def _is_applied(spec: Json, value: ManagedValue) -> bool:
    owners: list[Any] = [spec]
    if value.container:
        containers = (container for name in _CONTAINERS for container in spec.get(name) or ())
        owners = [container for container in containers if nested(container).get("name") == value.container]
    return any(value.resource in nested(owner, "resources", value.side) for owner in owners)


def _name(raw: Json) -> str:
    return str(nested(raw, "metadata").get("name", ""))


def _owner(raw: Json) -> Iterator[Json]:
    owner = find_controller(raw)
    if owner is not None and owner.get("controller"):
        yield owner

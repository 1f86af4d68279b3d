"""The objects that matter for a change of a pod, as values; cluster/live.py reads them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

import msgspec

from kubectl_qos.edit.edits import FIELD_MANAGER, Edit, PatchRequest, Side
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.kinds import WORKLOADS, find_controller, is_workload, pod_from_workload
from kubectl_qos.k8s.managers import (
    HorizontalAutoscaler,
    ManagedValue,
    VerticalAutoscaler,
    managed_fields,
    owns_value,
)
from kubectl_qos.k8s.objects import CPU, Json, ObjectMeta, Pod, all_containers, convert, nested
from kubectl_qos.k8s.quantity import Quantity, in_bytes
from kubectl_qos.k8s.quota import LimitRange, ResourceQuota
from kubectl_qos.k8s.selectors import DisruptionBudget
from kubectl_qos.k8s.snapshot import Missing

MAX_OWNERS: Final = 5
OWNER: Final = "the owner"
"""The start of `Missing.what` for a controller that could not be read."""

T = TypeVar("T")


class Owner(msgspec.Struct, frozen=True):
    """A workload on the server that owns the pod, directly or not, with the pod of its template.

    `template` is None for kinds without a known pod template, such as an operator's resource.
    """

    raw: Json
    template: Pod | None

    @property
    def kind(self) -> str:
        """Return the kind: `Deployment`."""
        return str(self.raw.get("kind", ""))

    @property
    def name(self) -> str:
        """Return the name."""
        return str(nested(self.raw, "metadata").get("name", ""))


class RelatedObjects(msgspec.Struct, frozen=True):
    """A pod or workload on the server, its owners, and related objects of its namespace.

    `owners` is the chain of controllers, the nearest first: ReplicaSet, Deployment. It ends at an object
    without a controller, or with one that could not be read. `missing` says what could not be read, and why.
    """

    raw: Json
    owners: tuple[Owner, ...] = ()
    limit_ranges: tuple[LimitRange, ...] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    autoscalers: tuple[VerticalAutoscaler, ...] = ()
    scalers: tuple[HorizontalAutoscaler, ...] = ()
    budgets: tuple[DisruptionBudget, ...] = ()
    missing: tuple[Missing, ...] = ()

    @property
    def chain(self) -> tuple[Json, ...]:
        """Return the object and its owners, the nearest first."""
        return self.raw, *(owner.raw for owner in self.owners)


class RelatedKind(msgspec.Struct, Generic[T], frozen=True):
    """A kind of objects that matter for a change, and their field in `RelatedObjects`.

    A server may lack an `optional` kind.
    """

    field: str
    kind: str
    item_type: type[T]
    group: str = "/api/v1"
    optional: bool = False

    @property
    def resource(self) -> str:
        """Return the name in paths: `limitranges`."""
        return f"{self.kind.lower()}s"


LIMIT_RANGES: Final = RelatedKind("limit_ranges", "LimitRange", LimitRange)
QUOTAS: Final = RelatedKind("quotas", "ResourceQuota", ResourceQuota)
AUTOSCALERS: Final = RelatedKind(
    "autoscalers", "VerticalPodAutoscaler", VerticalAutoscaler, "/apis/autoscaling.k8s.io/v1", optional=True
)
SCALERS: Final = RelatedKind(
    "scalers", "HorizontalPodAutoscaler", HorizontalAutoscaler, "/apis/autoscaling/v2", optional=True
)
BUDGETS: Final = RelatedKind(
    "budgets", "PodDisruptionBudget", DisruptionBudget, "/apis/policy/v1", optional=True
)

RELATED: Final[Mapping[str, RelatedKind[Any]]] = {
    kind.kind: kind for kind in (LIMIT_RANGES, QUOTAS, AUTOSCALERS, SCALERS, BUDGETS)
}


def related_in_files(raw: Json, near: Sequence[Json]) -> RelatedObjects:
    """Choose the related objects from an object's namespace (`near`); nothing is reported missing."""
    by_name = {(str(other.get("kind")), _text(other, "name")): other for other in reversed(near)}

    def read(reference: Json) -> Owner | None:
        other = by_name.get((str(reference.get("kind")), str(reference.get("name"))))
        try:
            return None if other is None else parse_owner(other)
        except (QosError, msgspec.MsgspecError, RecursionError):
            return Owner(other or {}, None)

    lists = {kind.field: convert_all(near, kind) for kind in RELATED.values()}
    return RelatedObjects(raw, tuple(walk_owners(raw, read)), **lists)


def recommended_edits(pod: Pod, autoscaler: VerticalAutoscaler) -> Iterator[Edit]:
    """Return the requests that a VerticalPodAutoscaler recommends, with limits in proportion.

    A missing request counts as equal to the limit. Source: kubernetes/autoscaler,
    vertical-pod-autoscaler/pkg/utils/vpa/limit_and_request_scaling.go (getProportionalResourceLimit).
    """
    containers = {container.name: container for container in all_containers(pod)}
    for recommendation in autoscaler.recommended:
        container = containers.get(recommendation.container_name)
        if container is None:
            continue
        for resource, target in recommendation.target.items():
            yield Edit(container.name, Side.REQUESTS, resource, target)
            limit, request = container.limits.get(resource), container.requests.get(resource)
            if limit is None or limit.is_zero or autoscaler.keeps_limits(container.name):
                continue
            scaled = target
            if request is not None and not request.is_zero and request != limit:
                nano = limit.nano * target.nano // request.nano
                of_cpu, of_bytes = Quantity(nano // 10**6, -3), in_bytes(nano // 10**9)
                scaled = of_cpu if resource == CPU else of_bytes
            yield Edit(container.name, Side.LIMITS, resource, scaled)


def _text(raw: Json, field: str) -> str:
    return str(nested(raw, "metadata").get(field) or "")


def walk_owners(raw: Json, read: Callable[[Json], Owner | None]) -> Iterator[Owner]:
    """Yield the controllers above an object, nearest first; one that `read` cannot read has only a name."""
    for _ in range(MAX_OWNERS):
        reference = find_controller(raw)
        if reference is None:
            return
        owner = read(reference)
        if owner is None:
            named = {"apiVersion": reference.get("apiVersion", ""), "kind": reference.get("kind")}
            yield Owner({**named, "metadata": {"name": reference.get("name")}}, None)
            return
        yield owner
        raw = owner.raw


def parse_owner(raw: Json) -> Owner:
    """Return an owner with the pod of its template. Raises MsgspecError or QosError if unreadable."""
    kind = str(raw.get("kind", ""))
    is_known = is_workload(kind, str(raw.get("apiVersion", "")))
    return Owner(raw, pod_from_workload(kind, raw) if is_known else None)


def convert_all(objects: Sequence[Json], kind: RelatedKind[T]) -> tuple[T, ...]:
    """Return the readable objects of a kind as values."""
    readable = []
    for raw in objects:
        if raw.get("kind") == kind.kind:
            with suppress(QosError, msgspec.MsgspecError, RecursionError):
                readable.append(convert(raw, kind.item_type))
    return tuple(readable)


def decode_pod(kind: str, raw: Json) -> Pod:
    """Return the pod, or the pod of a workload's template. Raises msgspec.ValidationError."""
    return pod_from_workload(kind, raw) if kind in WORKLOADS else convert(raw, Pod)


def pod_from_raw(kind: str, raw: Json) -> Pod:
    """Return the pod of `decode_pod`. Raises QosError for an unreadable object."""
    try:
        return decode_pod(kind, raw)
    except msgspec.ValidationError as error:
        raise QosError(f"the server's {kind.lower()} cannot be read: {error}") from None


def pod_reference(kind: str, namespace: str, name: str) -> Pod:
    """Return a pod or workload with only a name, to read its related objects."""
    return Pod(kind=kind, metadata=ObjectMeta(name=name, namespace=namespace))


def is_managed_by_us(raw: Json, request: PatchRequest, stored: Iterable[Edit]) -> bool:
    """Return whether we manage the stored values of a request, through the same subresource.

    Removed values have no manager; False if there are only removed values.
    """
    values = [ManagedValue(*edit.target) for edit in stored if edit.quantity is not None]
    all_ours = (entry for entry in managed_fields(raw) if entry.get("manager") == FIELD_MANAGER)
    ours = [entry for entry in all_ours if (entry.get("subresource") or "") == request.subresource]
    owned = (any(owns_value(entry, request.kind, value) for entry in ours) for value in values)
    return bool(values) and all(owned)

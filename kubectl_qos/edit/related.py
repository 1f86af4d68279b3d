"""The objects that matter for a change of a pod, as values; cluster/related.py reads them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from kubectl_qos.edit.edits import Edit
from kubectl_qos.edit.patch import FIELD_MANAGER, PatchRequest
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.kinds import WORKLOADS, pod_from_workload
from kubectl_qos.k8s.managers import ManagedValue, VerticalAutoscaler, managed_fields, owns_value
from kubectl_qos.k8s.objects import Json, ObjectMeta, Pod, convert, nested
from kubectl_qos.k8s.quota import LimitRange, ResourceQuota
from kubectl_qos.k8s.snapshot import Missing

OWNER: Final = "the owner"
"""The start of `Missing.what` for a controller that could not be read."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A workload that owns the pod, directly or not: as the server has it, and the pod of its template.

    `template` is None for kinds without a known pod template, such as an operator's resource.
    """

    raw: Json
    template: Pod | None

    @property
    def kind(self) -> str:
        """Its kind: `Deployment`."""
        return str(self.raw.get("kind", ""))

    @property
    def name(self) -> str:
        """Its name."""
        return str(nested(self.raw, "metadata").get("name", ""))


@dataclass(frozen=True, slots=True)
class RelatedObjects:
    """A pod or workload as the server has it, with the objects around it; the lists are of its namespace.

    `owners` is its chain of controllers, the nearest first: ReplicaSet, Deployment. It ends where there is no
    controller, or where that could not be read: then `missing` says why, as it does of all else.
    """

    raw: Json
    owners: tuple[Owner, ...] = ()
    limit_ranges: tuple[LimitRange, ...] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    autoscalers: tuple[VerticalAutoscaler, ...] = ()
    missing: tuple[Missing, ...] = ()


def decode_pod(kind: str, raw: Json) -> Pod:
    """The pod, or that of a workload's template. Raises msgspec.ValidationError."""
    return pod_from_workload(kind, raw) if kind in WORKLOADS else convert(raw, Pod)


def pod_from_raw(kind: str, raw: Json) -> Pod:
    """As `decode_pod`. Raises QosError for an unreadable object."""
    try:
        return decode_pod(kind, raw)
    except msgspec.ValidationError as error:
        raise QosError(f"the server's {kind.lower()} cannot be read: {error}") from None


def pod_reference(kind: str, namespace: str, name: str) -> Pod:
    """A pod or workload of which only the name is known, to read its related objects."""
    return Pod(kind=kind, metadata=ObjectMeta(name=name, namespace=namespace))


def is_managed_by_us(raw: Json, request: PatchRequest, stored: Iterable[Edit]) -> bool:
    """Whether we manage the stored values of a request, through the same subresource.

    A removed value has no manager: who removed it is unknown, unless another value was set along with it.
    """
    values = [ManagedValue(*edit.target) for edit in stored if edit.quantity is not None]
    ours = [
        entry
        for entry in managed_fields(raw)
        if entry.get("manager") == FIELD_MANAGER and (entry.get("subresource") or "") == request.subresource
    ]
    return bool(values) and all(
        any(owns_value(entry, request.kind, value) for entry in ours) for value in values
    )

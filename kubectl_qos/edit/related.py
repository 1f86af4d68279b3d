"""What else a server has that bears on a change of a pod: values, read by cluster/surroundings.py."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kubectl_qos.edit.edits import Edit
from kubectl_qos.edit.patch import FIELD_MANAGER, PatchRequest
from kubectl_qos.k8s.limit_range import LimitRange
from kubectl_qos.k8s.managers import ManagedValue, VerticalAutoscaler, managed_fields, owns_value
from kubectl_qos.k8s.objects import Json, Pod
from kubectl_qos.k8s.quota import ResourceQuota
from kubectl_qos.k8s.snapshot import Missing

OWNER: Final = "the owner"
"""How `Missing.what` begins where a controller could not be read."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A workload above the pod: as the server has it, and the pod that its template makes.

    `template` is None for what has no pod template, an operator's own resource say.
    """

    raw: Json
    template: Pod | None

    @property
    def kind(self) -> str:
        """Such as `Deployment`."""
        return str(self.raw.get("kind", ""))

    @property
    def name(self) -> str:
        """Its name."""
        return str((self.raw.get("metadata") or {}).get("name", ""))


@dataclass(frozen=True, slots=True)
class RelatedObjects:
    """What was read for one pod or workload.

    Attributes:
        raw: the object itself as the server has it.
        owners: the chain of controllers above it, the nearest first: ReplicaSet, Deployment. It ends where
            there is no controller, or where that may not be read (then `missing` says so).
        limit_ranges: of its namespace.
        quotas: of its namespace.
        autoscalers: the VerticalPodAutoscalers of its namespace; none where the cluster has no such kind.
        missing: what could not be read, and why.
    """

    raw: Json
    owners: tuple[Owner, ...] = ()
    limit_ranges: tuple[LimitRange, ...] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    autoscalers: tuple[VerticalAutoscaler, ...] = ()
    missing: tuple[Missing, ...] = ()


def is_managed_by_us(raw: Json, request: PatchRequest, stored: Iterable[Edit]) -> bool:
    """Whether the values that a request leads to are set by us, through the same road.

    A value that is removed has no manager any more: who removed it cannot be told, unless something is set
    along with it.
    """
    values = [
        ManagedValue(edit.owner, edit.side.value, edit.resource)
        for edit in stored
        if edit.quantity is not None
    ]
    ours = [
        entry
        for entry in managed_fields(raw)
        if entry.get("manager") == FIELD_MANAGER and (entry.get("subresource") or "") == request.subresource
    ]
    return bool(values) and all(
        any(owns_value(entry, request.kind, value) for entry in ours) for value in values
    )

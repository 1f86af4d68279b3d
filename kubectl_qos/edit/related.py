"""What else a server has that bears on a change of a pod: values, read by cluster/surroundings.py."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubectl_qos.edit.edits import POD_LEVEL, Edit
from kubectl_qos.edit.patch import FIELD_MANAGER, PatchRequest
from kubectl_qos.k8s.kinds import template_path
from kubectl_qos.k8s.limit_range import LimitRange
from kubectl_qos.k8s.managers import VerticalAutoscaler
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quota import ResourceQuota
from kubectl_qos.k8s.snapshot import Missing

Json = Mapping[str, Any]

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


def find_controller(raw: Json) -> Json | None:
    """The reference to the controller of an object, else to its only owner, as plain JSON."""
    found = (raw.get("metadata") or {}).get("ownerReferences")
    references = [one for one in found or () if isinstance(one, Mapping)]
    controller = next((one for one in references if one.get("controller") is True), None)
    return controller if controller is not None or len(references) != 1 else references[0]


def is_managed_by_us(raw: Mapping[str, Any], request: PatchRequest, stored: Iterable[Edit]) -> bool:
    """Whether the values that a request leads to are set by us, through the same road.

    A value that is removed has no manager any more: who removed it cannot be told, unless something is set
    along with it.
    """
    values = [edit for edit in stored if edit.quantity is not None]
    entries = [
        entry.get("fieldsV1") or {}
        for entry in (raw.get("metadata") or {}).get("managedFields") or ()
        if entry.get("manager") == FIELD_MANAGER and (entry.get("subresource") or "") == request.subresource
    ]
    return bool(values) and all(
        any(_has(fields, list(_path(request, edit))) for fields in entries) for edit in values
    )


def _path(request: PatchRequest, edit: Edit) -> Iterator[tuple[str, ...]]:
    """The keys on the way to a value; where two are possible, either."""
    for name in (*template_path(request.kind), "spec"):
        yield (f"f:{name}",)
    if edit.owner != POD_LEVEL:
        yield "f:containers", "f:initContainers"
        yield (f"k:{json.dumps({'name': edit.owner}, separators=(',', ':'))}",)
    for name in ("resources", edit.side.value, edit.resource):
        yield (f"f:{name}",)


def _has(fields: Any, path: list[tuple[str, ...]]) -> bool:
    if not path:
        return True
    if not isinstance(fields, Mapping):
        return False
    keys, *rest = path
    return any(key in fields and _has(fields[key], rest) for key in keys)

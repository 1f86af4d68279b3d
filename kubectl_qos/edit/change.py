"""Edits of requests and limits, and the pod that they make."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from kubectl_qos.errors import InputError, QuantityError
from kubectl_qos.k8s.objects import (
    Container,
    Pod,
    ResourceList,
    ResourceRequirements,
)
from kubectl_qos.k8s.quantity import Quantity

POD_LEVEL = ""
"""The owner of edits to spec.resources."""


class Side(StrEnum):
    """Which of the two maps an edit is in."""

    REQUESTS = "requests"
    LIMITS = "limits"


@dataclass(frozen=True, slots=True)
class Edit:
    """One value of one container (or of the pod, `POD_LEVEL`); None removes it."""

    owner: str
    side: Side
    resource: str
    quantity: Quantity | None

    @property
    def target(self) -> tuple[str, Side, str]:
        """What is edited, whatever the value."""
        return self.owner, self.side, self.resource


def parse_quantity(text: str) -> Quantity | None:
    """What a person typed: a quantity, or None for nothing. Raises QuantityError with the reason."""
    text = text.strip()
    if not text:
        return None
    quantity = Quantity.parse(text)
    if quantity.sign < 0:
        raise QuantityError("must be greater than or equal to 0")
    return quantity


def current(pod: Pod, owner: str, side: Side, resource: str) -> Quantity | None:
    """The value that an edit would replace. Raises InputError for a container that is not there."""
    resources = pod.spec.resources if owner == POD_LEVEL else _container(pod, owner).resources
    held = getattr(resources, side.value) if resources is not None else None
    found: Quantity | None = (held or {}).get(resource)
    return found


def apply(pod: Pod, edits: Iterable[Edit]) -> Pod:
    """The pod with the edits made. Raises InputError for a container that is not there."""
    for edit in edits:
        pod = _apply_one(pod, edit)
    return pod


def effective(pod: Pod, edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """The edits that change something, the last of several for the same value."""
    last = {edit.target: edit for edit in edits}
    return tuple(
        edit
        for edit in last.values()
        if not _same(current(pod, edit.owner, edit.side, edit.resource), edit.quantity)
    )


def _same(left: Quantity | None, right: Quantity | None) -> bool:
    if left is None or right is None:
        return left is right
    return left == right and str(left) == str(right)


def _apply_one(pod: Pod, edit: Edit) -> Pod:
    if edit.owner == POD_LEVEL:
        if edit.quantity is None and pod.spec.resources is None:
            return pod
        resources = _with(pod.spec.resources or ResourceRequirements(), edit)
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, resources=resources))
    _container(pod, edit.owner)
    spec = msgspec.structs.replace(
        pod.spec,
        containers=_each(pod.spec.containers, edit),
        init_containers=_each(pod.spec.init_containers, edit),
    )
    return msgspec.structs.replace(pod, spec=spec)


def _each(containers: tuple[Container, ...] | None, edit: Edit) -> tuple[Container, ...] | None:
    if containers is None:
        return None
    return tuple(
        msgspec.structs.replace(container, resources=_with(container.resources, edit))
        if container.name == edit.owner
        else container
        for container in containers
    )


def _with(resources: ResourceRequirements, edit: Edit) -> ResourceRequirements:
    held = dict(getattr(resources, edit.side.value) or {})
    held.pop(edit.resource, None)
    if edit.quantity is not None:
        held[edit.resource] = edit.quantity
    return msgspec.structs.replace(resources, **{edit.side.value: ResourceList(held)})


def _container(pod: Pod, name: str) -> Container:
    for container in (*pod.containers, *pod.init_containers):
        if container.name == name:
            return container
    names = ", ".join(container.name for container in (*pod.init_containers, *pod.containers))
    raise InputError(f"container {name} is not valid for pod {pod.name}", hint=f"its containers are: {names}")

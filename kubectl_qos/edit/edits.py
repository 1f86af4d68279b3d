"""Edits of requests and limits: the edited pod, and the same as flags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple

import msgspec

from kubectl_qos.errors import InputError, QuantityError, UsageError
from kubectl_qos.k8s.defaulting import with_containers
from kubectl_qos.k8s.objects import EMPTY_RESOURCES, Container, Pod, ResourceList, ResourceRequirements
from kubectl_qos.k8s.quantity import ZERO, Quantity, parse_typed, quantity_hint
from kubectl_qos.k8s.resources import is_container_resource
from kubectl_qos.k8s.validation import odd_size
from kubectl_qos.qos.qos_class import SPEC_RESOURCES

POD_LEVEL = ""
"""The owner of edits to spec.resources."""


class Side(StrEnum):
    """One of the two maps of a container's resources."""

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
        """Return which value the edit sets."""
        return self.owner, self.side, self.resource

    @property
    def warning(self) -> str:
        """Return what is odd about a size that a server accepts, or ""."""
        return odd_size(self.resource, self.quantity) if self.quantity is not None else ""


def parse_quantity(text: str, stored: Quantity | None = None) -> Quantity | None:
    """Parse a typed quantity, "" as None; `+1Gi` adds to what is stored. Raises QuantityError."""
    text = text.strip()
    if not text:
        return None
    quantity = parse_typed(text)
    if quantity.sign < 0:
        raise QuantityError("must be greater than or equal to 0")
    if not text.startswith("+"):
        return quantity
    if stored is None:
        raise QuantityError(f"there is no value to add {text[1:]} to")
    return stored + quantity


def current_value(pod: Pod, owner: str, side: Side, resource: str) -> Quantity | None:
    """Return the value that an edit would replace. Raises InputError for a missing container."""
    resources = pod.spec.resources if owner == POD_LEVEL else _find_container(pod, owner).resources
    quantities: ResourceList | None = getattr(resources, side.value) if resources is not None else None
    return (quantities or EMPTY_RESOURCES).get(resource)


def value_now(pod: Pod, edit: Edit) -> Quantity | None:
    """Return the value at the edit's target; None also without the container."""
    try:
        return current_value(pod, *edit.target)
    except InputError:
        return None


def apply_edits(pod: Pod, edits: Iterable[Edit]) -> Pod:
    """Return the edited pod. Raises InputError for a container that does not exist."""
    for edit in edits:
        pod = _apply_edit(pod, edit)
    return pod


def effective_edits(pod: Pod, edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Return the edits that change something, even if only the spelling; the last one of a target counts."""
    last = {edit.target: edit for edit in edits}.values()
    return tuple(edit for edit in last if str(current_value(pod, *edit.target)) != str(edit.quantity))


def own_edits(pod: Pod, edits: Iterable[Edit]) -> list[Edit]:
    """Return the edits of the pod itself and of containers that it has."""
    names = {POD_LEVEL, *(container.name for container in (*pod.containers, *pod.init_containers))}
    return [edit for edit in edits if edit.owner in names]


def _apply_edit(pod: Pod, edit: Edit) -> Pod:
    if edit.owner == POD_LEVEL:
        if edit.quantity is None and pod.spec.resources is None:
            return pod
        resources = _edit_resources(pod.spec.resources or ResourceRequirements(), edit)
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, resources=resources))
    _find_container(pod, edit.owner)
    return msgspec.structs.replace(pod, spec=with_containers(pod.spec, partial(_edit_container, edit=edit)))


def _edit_container(container: Container, edit: Edit) -> Container:
    if container.name != edit.owner:
        return container
    return msgspec.structs.replace(container, resources=_edit_resources(container.resources, edit))


def _edit_resources(resources: ResourceRequirements, edit: Edit) -> ResourceRequirements:
    quantities = dict(getattr(resources, edit.side.value) or {})
    quantities.pop(edit.resource, None)
    if edit.quantity is not None:
        quantities[edit.resource] = edit.quantity
    return msgspec.structs.replace(resources, **{edit.side.value: ResourceList(quantities)})


def _find_container(pod: Pod, name: str) -> Container:
    for container in (*pod.containers, *pod.init_containers):
        if container.name == name:
            return container
    names = ", ".join(container.name for container in (*pod.init_containers, *pod.containers))
    raise InputError(f"container {name} is not valid for pod {pod.name}", hint=f"its containers are: {names}")


class Amount(NamedTuple):
    """A value of one resource, for any of the selected containers: None removes it, `+1Gi` adds to it."""

    resource: str
    quantity: Quantity | None
    is_more: bool = False

    def edit(self, pod: Pod, owner: str, side: Side) -> Edit:
        """Return the edit of one container, or of the pod. Raises InputError without a value to add to."""
        text = "" if self.quantity is None else f"{'+' * self.is_more}{self.quantity}"
        try:
            quantity = parse_quantity(text, current_value(pod, owner, side, self.resource))
        except QuantityError as error:
            place = f"{pod.title}: {owner or SPEC_RESOURCES}: {side.value}.{self.resource}"
            raise InputError(f"{place}: {error}", hint=f"write {self.resource}={self.quantity}") from None
        return Edit(owner, side, self.resource, quantity)


def parse_amounts(text: str, flag: str) -> tuple[Amount, ...]:
    """Parse the amounts of a flag such as `cpu=250m,memory-`, in order.

    Raises UsageError, which names the flag.
    """
    amounts: dict[str, Amount] = {}
    for part in text.split(","):
        amount = _parse_amount(part, flag)
        if amount.resource in amounts:
            raise UsageError(f"{flag} {text}: {amount.resource} is given twice")
        amounts[amount.resource] = amount
    return tuple(amounts.values())


def format_amounts(amounts: Iterable[Amount]) -> str:
    """Return the text that `parse_amounts` reads as these amounts."""
    return ",".join(
        f"{resource}-" if quantity is None else f"{resource}={'+' * is_more}{quantity}"
        for resource, quantity, is_more in amounts
    )


def as_flags(edits: Sequence[Edit]) -> list[str]:
    """Return the edits as flags, one line for each container and for the pod."""
    lines = []
    for owner in dict.fromkeys(edit.owner for edit in edits):
        words = ["--pod-level" if owner == POD_LEVEL else f"-c {owner}"]
        for side in Side:
            of_side = [edit for edit in edits if (edit.owner, edit.side) == (owner, side)]
            if of_side:
                amounts = format_amounts(Amount(edit.resource, edit.quantity) for edit in of_side)
                words.append(f"--{side.value} {amounts}")
        lines.append(" ".join(words))
    return lines


def select_containers(pod: Pod, patterns: Sequence[str]) -> list[str]:
    """Return the names of the containers that the patterns select, app containers first as in kubectl.

    `*` in a pattern stands for any text; without patterns all are selected. Raises InputError for a pattern
    that matches no container.
    """
    names = [container.name for container in (*pod.containers, *pod.init_containers)]
    selected: set[str] = set()
    for pattern in patterns or ("*",):
        regex = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
        matching = [name for name in names if regex.fullmatch(name)]
        if not matching:
            raise InputError(
                f"unable to find container named {pattern} in {pod.kind.lower()}/{pod.name}",
                hint=f"its containers are: {', '.join(names)}",
            )
        selected.update(matching)
    return [name for name in names if name in selected]


def _parse_amount(part: str, flag: str) -> Amount:
    resource, equals, text = part.partition("=")
    if not equals and part.endswith("-") and len(part) > 1:
        return Amount(_parse_resource(part.removesuffix("-"), part, flag), None)
    if not resource or not text or "=" in text:
        raise UsageError(
            f"{flag}: invalid argument syntax {part}, expected <resource>=<value>",
            hint=f"{flag} cpu=250m,memory=1Gi sets two values, {flag} memory- removes one",
        )
    resource = _parse_resource(resource, part, flag)
    try:
        is_more = text.startswith("+")
        return Amount(resource, parse_quantity(text, ZERO if is_more else None), is_more)
    except QuantityError as error:
        raise UsageError(f"{flag} {part}: {error}", hint=quantity_hint(text)) from None


_QUALIFIED: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def _parse_resource(name: str, part: str, flag: str) -> str:
    """Return a resource that containers may request (`validateContainerResourceName`)."""
    if is_container_resource(name) and ("/" not in name or _QUALIFIED.fullmatch(name)):
        return name
    raise UsageError(
        f'{flag} {part}: "{name}" must be a standard resource for containers or fully qualified',
        hint="cpu, memory, ephemeral-storage, hugepages-2Mi, or a name with its domain: example.com/device",
    )

"""Edits of requests and limits, how they are written as flags, and the pod that they make."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from kubectl_qos.errors import InputError, QuantityError, UsageError
from kubectl_qos.k8s.objects import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGEPAGES_PREFIX,
    MEMORY,
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


EVERY: Final = "*"
"""The pattern of all containers."""


class Amount(NamedTuple):
    """A value of one resource for whatever container is selected; None removes it."""

    resource: str
    quantity: Quantity | None


def parse_amounts(text: str, flag: str) -> tuple[Amount, ...]:
    """What a flag says, in its order.

    Raises UsageError for what is no list of values, InputError for a resource or a quantity that no server
    would take; both name the flag.
    """
    found: dict[str, Amount] = {}
    for part in text.split(","):
        amount = _amount(part, flag)
        if amount.resource in found:
            raise UsageError(f"{flag} {text}: {amount.resource} is there twice")
        found[amount.resource] = amount
    return tuple(found.values())


def format_amounts(amounts: Iterable[Amount]) -> str:
    """The text that `parse_amounts` reads as these."""
    return ",".join(
        f"{resource}-" if quantity is None else f"{resource}={quantity}" for resource, quantity in amounts
    )


def as_flags(edits: Sequence[Edit]) -> list[str]:
    """The flags that say the same as the edits, one line for each container and for the pod."""
    lines = []
    for owner in dict.fromkeys(edit.owner for edit in edits):
        words = ["--pod-level" if owner == POD_LEVEL else f"-c {owner}"]
        for side in Side:
            amounts = [
                Amount(edit.resource, edit.quantity)
                for edit in edits
                if (edit.owner, edit.side) == (owner, side)
            ]
            if amounts:
                words.append(f"--{side.value} {format_amounts(amounts)}")
        lines.append(" ".join(words))
    return lines


def select_containers(pod: Pod, patterns: Sequence[str]) -> list[str]:
    """The names of the containers that the patterns select, app containers first as kubectl has them.

    `*` in a pattern stands for any text; without patterns all are selected. Raises InputError for a pattern
    that no container has.
    """
    names = [container.name for container in (*pod.containers, *pod.init_containers)]
    found: dict[str, None] = {}
    for pattern in patterns or (EVERY,):
        form = re.compile(".*".join(map(re.escape, pattern.split(EVERY))), re.DOTALL)
        matching = [name for name in names if form.fullmatch(name)]
        if not matching:
            raise InputError(
                f"unable to find container named {pattern} in {pod.kind.lower()}/{pod.name}",
                hint=f"its containers are: {', '.join(names)}",
            )
        found.update(dict.fromkeys(matching))
    return [name for name in names if name in found]


def _amount(part: str, flag: str) -> Amount:
    resource, equals, text = part.partition("=")
    if not equals and part.endswith("-") and len(part) > 1:
        return Amount(_resource(part.removesuffix("-"), part, flag), None)
    if not resource or not text or "=" in text:
        raise UsageError(
            f"{flag}: invalid argument syntax {part}, expected <resource>=<value>",
            hint=f"{flag} cpu=250m,memory=1Gi sets two values, {flag} memory- removes one",
        )
    resource = _resource(resource, part, flag)
    try:
        return Amount(resource, parse_quantity(text))
    except QuantityError as error:
        raise InputError(
            f"{flag} {part}: {error}", hint="write a quantity such as 250m, 1.5 or 512Mi"
        ) from None


_QUALIFIED: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_STANDARD: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})


def _resource(name: str, part: str, flag: str) -> str:
    """A name that containers may request (`validateContainerResourceName`)."""
    if name in _STANDARD or name.startswith(HUGEPAGES_PREFIX) or _QUALIFIED.fullmatch(name):
        return name
    raise InputError(
        f'{flag} {part}: "{name}" must be a standard resource for containers or fully qualified',
        hint="cpu, memory, ephemeral-storage, hugepages-2Mi, or a name with its domain: example.com/device",
    )

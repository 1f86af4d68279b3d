"""Changes as they are written on a command line: `cpu=250m,memory=1Gi`, and `memory-` for a value to remove.

The syntax of values is that of `kubectl set resources` (pkg/generate/versioned/run.go,
populateResourceListV1), that of removals the one of `kubectl set env`; containers are selected as by
pkg/cmd/set/helper.go (selectContainers).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kubectl_qos.edit.change import POD_LEVEL, Edit, Side, parse_quantity
from kubectl_qos.errors import InputError, QuantityError, UsageError
from kubectl_qos.k8s.objects import CPU, EPHEMERAL_STORAGE, HUGEPAGES_PREFIX, MEMORY, Pod
from kubectl_qos.k8s.quantity import Quantity

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


def spelled(amounts: Iterable[Amount]) -> str:
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
                words.append(f"--{side.value} {spelled(amounts)}")
        lines.append(" ".join(words))
    return lines


def selected(pod: Pod, patterns: Sequence[str]) -> list[str]:
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

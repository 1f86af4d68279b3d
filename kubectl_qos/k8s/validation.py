"""What an API server refuses about a pod and its resources, in its own words.

Source: pkg/apis/core/validation/validation.go (ValidatePodCreate, validateResourceRequirements,
validatePodResourceConsistency). Only what concerns resources, and what makes a pod one that no prediction
is about, is looked at; images, volumes and the like are not read at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kubectl_qos.errors import QuantityError
from kubectl_qos.k8s.objects import (
    CPU,
    EMPTY_RESOURCES,
    HUGEPAGES_PREFIX,
    MEMORY,
    Pod,
    ResourceRequirements,
)
from kubectl_qos.k8s.quantity import ZERO, Quantity
from kubectl_qos.k8s.releases import Change, Gate, Release
from kubectl_qos.k8s.resources import aggregate_limits, aggregate_requests, is_supported_at_pod_level


class Refusal(NamedTuple):
    """One field error: its path, what is wrong with it, and whose it is (a container, "" for the pod)."""

    path: str
    message: str
    owner: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def pod_refusals(pod: Pod, release: Release) -> list[Refusal]:
    """Every reason for which a server would refuse a defaulted pod, in the order of its fields."""
    found: list[Refusal] = []
    mirror = pod.annotations.config_mirror
    if mirror is not None and not pod.node_name:
        found.append(
            Refusal(
                "metadata.annotations[kubernetes.io/config.mirror]",
                f"{_invalid(mirror)}: must set spec.nodeName if mirror pod annotation is set",
            )
        )
    if not pod.containers:
        found.append(Refusal("spec.containers", "Required value"))
    for kind, containers in (
        ("containers", pod.containers),
        ("initContainers", pod.init_containers),
    ):
        for index, container in enumerate(containers):
            path = f"spec.{kind}[{index}].resources"
            found += _requirements(path, container.resources, container.name, release)
    if pod.spec.resources is not None and release.enabled(Gate.POD_LEVEL_RESOURCES):
        found += _unsupported(pod.spec.resources, release)
        found += _requirements("spec.resources", pod.spec.resources, "", release)
        found += _pod_level(pod, pod.spec.resources, release)
    return found


def _invalid(value: object) -> str:
    return f'Invalid value: "{value}"'


def _requirements(
    path: str, resources: ResourceRequirements, owner: str, release: Release
) -> Iterator[Refusal]:
    requests = resources.requests or EMPTY_RESOURCES
    limits = resources.limits or EMPTY_RESOURCES
    for side, quantities in (("limits", limits), ("requests", requests)):
        for name, quantity in quantities.items():
            for message in _bad_value(name, quantity):
                yield Refusal(f"{path}.{side}[{name}]", f"{_invalid(quantity)}: {message}", owner)
    for name, request in requests.items():
        limit = limits.get(name)
        if limit is None:
            if not _may_be_overcommitted(name):
                message = "Required value: Limit must be set for non overcommitable resources"
                yield Refusal(f"{path}.limits", message, owner)
            continue
        if request != limit and not _may_be_overcommitted(name):
            must = "equal to"
        elif request > limit:
            must = "less than or equal to"
        else:
            continue
        of = f" of {limit}" if release.has(Change.REFUSAL_NAMES_LIMIT) else ""
        yield Refusal(f"{path}.requests", f"{_invalid(request)}: must be {must} {name} limit{of}", owner)
    names = {*requests, *limits}
    if any(name.startswith(HUGEPAGES_PREFIX) for name in names) and not names & {CPU, MEMORY}:
        yield Refusal(path, "Forbidden: HugePages require cpu or memory", owner)


def _bad_value(name: str, quantity: Quantity) -> Iterator[str]:
    """What is wrong with one quantity by itself (`ValidateResourceQuantityValue`)."""
    if quantity.sign < 0:
        yield "must be greater than or equal to 0"
    if _is_extended(name) and quantity.milli_value() % 1000:
        yield "must be an integer"
    if name.startswith(HUGEPAGES_PREFIX) and not _is_whole_number_of_pages(name, quantity):
        yield f"{quantity} is not positive integer multiple of {name}"


def _is_whole_number_of_pages(name: str, quantity: Quantity) -> bool:
    try:
        page = Quantity.parse(name.removeprefix(HUGEPAGES_PREFIX))
    except QuantityError:
        return False
    return page.sign > 0 and page.milli_value() % 1000 == 0 and quantity.value() % page.value() == 0


def _is_extended(name: str) -> bool:
    """A device or another resource outside of kubernetes.io: never shared, never fractional."""
    return "/" in name and "kubernetes.io/" not in name


def _may_be_overcommitted(name: str) -> bool:
    """`IsOvercommitAllowed`: whether requests below limits mean anything for that resource."""
    return not _is_extended(name) and not name.startswith(HUGEPAGES_PREFIX)


def _unsupported(resources: ResourceRequirements, release: Release) -> Iterator[Refusal]:
    """Resources that cannot be set for a whole pod."""
    supported = '"cpu", "hugepages-", "memory"'
    if not release.has(Change.POD_LEVEL_HUGEPAGES):
        supported = '"cpu", "memory"'
    for side, quantities in (("limits", resources.limits), ("requests", resources.requests)):
        for name in quantities or EMPTY_RESOURCES:
            if not is_supported_at_pod_level(name, release):
                shown = f'"{name}"' if release.has(Change.REFUSAL_QUOTES_NAMES) else name
                yield Refusal(
                    f"spec.resources.{side}[{name}]",
                    f"Unsupported value: {shown}: supported values: {supported}",
                )


def _pod_level(pod: Pod, resources: ResourceRequirements, release: Release) -> Iterator[Refusal]:
    """Pod-level requests hold the sum, limits each container (`validatePodResourceConsistency`)."""
    requests = resources.requests or EMPTY_RESOURCES
    limits = resources.limits or EMPTY_RESOURCES
    for name, total in aggregate_requests(pod, release).items():
        if name not in requests and release.has(Change.POD_REQUEST_MAY_BE_MISSING):
            continue
        request = requests.get(name, ZERO)
        if request < total:
            yield _too_small("requests", name, request, total)
    if release.has(Change.POD_REQUEST_MAY_BE_MISSING):
        for name, total in aggregate_limits(pod, release).items():
            if name.startswith(HUGEPAGES_PREFIX) and name in limits and limits[name] < total:
                yield _too_small("limits", name, limits[name], total)
    for index, container in enumerate(pod.containers):
        for name, limit in container.limits.items():
            if name in limits and limit > limits[name]:
                yield Refusal(
                    f"spec.resources.containers[{index}][{name}].limits",
                    f"{_invalid(limit)}: must be less than or equal to pod limits of {limits[name]}",
                    container.name,
                )


def _too_small(side: str, name: str, held: Quantity, needed: Quantity) -> Refusal:
    return Refusal(
        f"spec.resources.{side}[{name}]",
        f"{_invalid(held)}: must be greater than or equal to aggregate container {side} of {needed}",
    )

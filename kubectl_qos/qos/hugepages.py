"""Hugepage limits by page size, as cgroup files name the sizes.

Sources: pkg/kubelet/cm/helpers_linux.go (HugePageLimits), kuberuntime_container_linux.go
(GetHugepageLimitsFromResources). Bytes throughout.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubectl_qos.errors import InputError, QuantityError
from kubectl_qos.k8s.kubelet import hugepage_size_name
from kubectl_qos.k8s.objects import HUGEPAGES_PREFIX, Container, Pod
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.releases import Change, Gate, Release
from kubectl_qos.k8s.resources import Totals, has_pod_level_resources

UNBOUNDED = 1 << 62


def page_size_bytes(resource_name: str) -> int:
    """2097152 for `hugepages-2Mi`; 0 for a size that does not parse, as upstream."""
    try:
        return Quantity.parse(resource_name.removeprefix(HUGEPAGES_PREFIX)).value()
    except QuantityError:
        return 0


def limits_by_size(resources: Mapping[str, Quantity]) -> dict[int, int]:
    """Page size in bytes to limit in bytes, for every hugepages entry (`HugePageLimits`)."""
    found: dict[int, int] = {}
    for name, quantity in resources.items():
        if name.startswith(HUGEPAGES_PREFIX):
            size = page_size_bytes(name)
            found[size] = found.get(size, 0) + quantity.value()
    return found


def pod_limits(pod: Pod, requests: Totals, release: Release) -> dict[int, int]:
    """The pod cgroup's limits: from its total requests; up to 1.26 summed over the containers."""
    if release.has(Change.HUGEPAGES_FROM_POD_REQUESTS):
        return limits_by_size(requests)
    found: dict[int, int] = {}
    for container in pod.containers:
        for size, limit in limits_by_size(container.requests).items():
            found[size] = found.get(size, 0) + limit
    if release.has(Change.INIT_CONTAINERS_DECLARE_LIMITS):
        for container in pod.init_containers:
            for size, limit in limits_by_size(container.requests).items():
                found[size] = max(found.get(size, limit), limit)
    return found


def container_limits(
    pod: Pod, container: Container, sizes: tuple[str, ...], release: Release
) -> dict[str, int]:
    """Every page size of the node to the container's limit, 0 unless one is set.

    From 1.34 the pod-level limit applies where the container has none.
    """
    wanted: dict[str, int] = {}
    if (
        release.has(Change.POD_LEVEL_HUGEPAGE_LIMITS)
        and release.enabled(Gate.POD_LEVEL_RESOURCES)
        and has_pod_level_resources(pod, release)
        and pod.spec.resources is not None
    ):
        wanted.update(_named(pod.spec.resources.limits or {}))
    wanted.update(_named(container.limits))
    return {size: wanted.get(size, 0) for size in sizes}


def by_file_name(limits: Mapping[int, int], sizes: tuple[str, ...]) -> dict[str, int]:
    """Limits under the names of cgroup files; sizes of the node that are not limited get 0."""
    named = {}
    for size, limit in limits.items():
        try:
            named[hugepage_size_name(size)] = limit
        except InputError:
            continue
    return {**named, **{size: 0 for size in sizes if size not in named}}


def _named(resources: Mapping[str, Quantity]) -> dict[str, int]:
    return by_file_name(limits_by_size(resources), ())

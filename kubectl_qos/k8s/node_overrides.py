"""Settings of a node or of its kubelet, given as `KEY=VALUE` for a what-if prediction.

A kubelet's settings have their names in a KubeletConfiguration (kubelet/config/v1beta1/types.go), the node's
are named after nodeInfo or the file that holds them. Not here: values that are read (kubelet.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, TypeVar

from kubectl_qos.errors import QosError, UsageError
from kubectl_qos.k8s.kubelet import (
    DEFAULT_PAGE_SIZE,
    MAX_CFS_PERIOD_US,
    MIN_CFS_PERIOD_US,
    CgroupDriver,
    Kubelet,
    MemoryReservationPolicy,
    Node,
    NodeSetup,
    Origin,
    with_origin,
)
from kubectl_qos.k8s.objects import MEMORY, ResourceList
from kubectl_qos.k8s.quantity import MAX_INT64, Format, Quantity, parse_duration
from kubectl_qos.k8s.releases import NEWEST_MINOR, OLDEST_MINOR, Gate, OciRuntime, Release

FEATURE_GATES: Final = "featureGates."
_EXAMPLES: Final = ("cgroupDriver", "cgroupVersion", "featureGates.MemoryQoS", "ociRuntime", "memory")


class NodeOverride(NamedTuple):
    """A key and the text of its value."""

    key: str
    text: str

    @staticmethod
    def parse(assignment: str) -> NodeOverride:
        """`cgroupDriver=cgroupfs` or `featureGates.MemoryQoS=true`. Raises UsageError."""
        key, equals, text = (part.strip() for part in assignment.partition("="))
        if not equals or not key or not text or not assignment.isprintable():
            raise UsageError(f"{assignment!r} is not KEY=VALUE", hint="write it as cgroupVersion=1")
        override = NodeOverride(key, text)
        override.value()
        return override

    def value(self) -> object:
        """The value as predictions take it. Raises UsageError for an unknown key or a wrong text."""
        field = _FIELDS.get(self.key)
        if field is None:
            is_gate = self.key.startswith(FEATURE_GATES)
            keys = [key for key in _FIELDS if not is_gate or key.startswith(FEATURE_GATES)]
            near = get_close_matches(self.key, sorted(keys), n=3, cutoff=0.5) or _EXAMPLES
            raise UsageError(
                f"unknown node setting {self.key!r}", hint=f"write one such as {', '.join(near)}"
            )
        try:
            return field.parse(self.text)
        except QosError as error:
            raise UsageError(f"{self}: {error}", hint=error.hint) from None
        except ValueError as error:
            raise UsageError(f"{self}: {error}") from None

    def __str__(self) -> str:
        return f"{self.key}={self.text}"


def apply_overrides(
    setup: NodeSetup, overrides: Iterable[NodeOverride], release: str | None = None
) -> NodeSetup:
    """The same node with other settings and, if given, its kubelet on another release.

    Assumed values become those of the new release, as in an upgrade. Raises InputError for what is not a
    release, UsageError for an unknown release or setting, or a gate that the release does not have.
    """
    kubelet_changes: dict[str, Any] = {}
    node_changes: dict[str, Any] = {}
    gates = dict(setup.kubelet.feature_gates)
    for override in overrides:
        value = override.value()
        if override.key.startswith(FEATURE_GATES):
            gates[override.key.removeprefix(FEATURE_GATES)] = bool(value)
        elif override.key in _KUBELET:
            kubelet_changes[_KUBELET[override.key].name] = value
        else:
            node_changes[_NODE[override.key].name] = value
    after = _release(setup, gates, release)
    node, kubelet = setup.node, setup.kubelet
    if kubelet.origin("memory_throttling_factor") is Origin.ASSUMED:
        kubelet = replace(kubelet, memory_throttling_factor=Kubelet.defaults(after).memory_throttling_factor)
    if gates:
        kubelet_changes["feature_gates"] = gates
    if release is not None:
        node_changes["kubelet_version"] = str(after)
    if "memory_capacity_bytes" in node_changes:
        node_changes |= _with_memory(node, node_changes["memory_capacity_bytes"])
    return NodeSetup(
        with_origin(node, Origin.GIVEN, **node_changes),
        with_origin(kubelet, Origin.GIVEN, **kubelet_changes),
        after,
    )


def _release(setup: NodeSetup, gates: Mapping[str, bool], version: str | None) -> Release:
    """The release with these gates; configured gates that it does not have are dropped, as in an upgrade."""
    now = setup.release
    release = Release.of(version or (f"{now}.{now.patch}" if now.patch is not None else str(now)))
    if release.assumed and version is not None:
        raise UsageError(
            f"unknown release {version}", hint=f"write a release from 1.{OLDEST_MINOR} to 1.{NEWEST_MINOR}"
        )
    before = setup.kubelet.feature_gates
    for name, reason in release.ignored_gates(gates).items():
        if gates[name] != before.get(name):
            words = "locked to its default" if reason == "locked" else "not among the feature gates"
            raise UsageError(f"{FEATURE_GATES}{name} is {words} of Kubernetes {release}")
    return release.with_gates(gates)


def _with_memory(node: Node, size: int) -> dict[str, object]:
    """The fields that change with the size of the memory: the reserved part stays the same."""
    changes: dict[str, object] = {
        "capacity": ResourceList({**node.capacity, MEMORY: Quantity(size, 0, Format.BINARY_SI)})
    }
    if node.allocatable_memory_bytes is not None and node.memory_capacity_bytes is not None:
        reserved = node.memory_capacity_bytes - node.allocatable_memory_bytes
        changes["allocatable_memory_bytes"] = max(size - reserved, 0)
    return changes


T = TypeVar("T")


def _checked(parse: Callable[[str], T], is_valid: Callable[[T], object], needs: str) -> Callable[[str], T]:
    """`parse`, with a ValueError that says what is needed; a QosError of `parse` stays."""

    def checked(text: str) -> T:
        with suppress(ValueError):
            value = parse(text)
            if is_valid(value):
                return value
        raise ValueError(f"must be {needs}")

    return checked


def _number(minimum: int, maximum: int) -> Callable[[str], int]:
    needs = f"a whole number from {minimum} to {maximum}"
    return _checked(int, lambda number: minimum <= number <= maximum, needs)


def _choice(*values: str) -> Callable[[str], str]:
    return _checked(str, values.__contains__, " or ".join(values))


def _switch(text: str) -> bool:
    return _choice("true", "false")(text.lower()) == "true"


_bytes = _checked(
    lambda text: Quantity.parse(text).value(), lambda size: size > 0, "a size above zero, such as 16Gi"
)
_page_size = _checked(
    _bytes,
    lambda size: size >= DEFAULT_PAGE_SIZE and size.bit_count() == 1,
    "a power of two, 4Ki or more",
)
_period = _checked(
    lambda text: parse_duration(text) // 1000,
    lambda period_us: MIN_CFS_PERIOD_US <= period_us <= MAX_CFS_PERIOD_US,
    "a duration from 1ms to 1s",
)
_factor = _checked(float, lambda factor: 0 < factor <= 1, "a number above 0 and up to 1")
_kernel = _checked(str, re.compile(r"[0-9]+\.[0-9]+").match, "a kernel version, such as 6.1")
_runtime = _checked(
    str,
    lambda text: text.partition(":")[0] in {"containerd", "cri-o", "docker"},
    "containerd, cri-o or docker, as in containerd://2.1.4",
)


class _Field(NamedTuple):
    name: str
    parse: Callable[[str], object]


_KUBELET: Final[Mapping[str, _Field]] = {
    "cgroupDriver": _Field("cgroup_driver", lambda text: CgroupDriver(_choice(*CgroupDriver)(text))),
    "cgroupRoot": _Field("cgroup_root", str),
    "cgroupsPerQOS": _Field("cgroups_per_qos", _switch),
    "cpuCFSQuota": _Field("cpu_cfs_quota", _switch),
    "cpuCFSQuotaPeriod": _Field("cpu_cfs_quota_period_us", _period),
    "cpuManagerPolicy": _Field("cpu_manager_policy", _choice("none", "static")),
    "podPidsLimit": _Field("pod_pids_limit", _number(-1, MAX_INT64)),
    "memoryThrottlingFactor": _Field("memory_throttling_factor", _factor),
    "memoryReservationPolicy": _Field(
        "memory_reservation_policy",
        lambda text: MemoryReservationPolicy(_choice("None", "TieredReservation")(text)),
    ),
    "memorySwap.swapBehavior": _Field(
        "memory_swap_behavior", _choice("NoSwap", "LimitedSwap", "UnlimitedSwap")
    ),
    "singleProcessOOMKill": _Field("single_process_oom_kill", _switch),
}

_NODE: Final[Mapping[str, _Field]] = {
    "cgroupVersion": _Field("cgroup_version", lambda text: int(_choice("1", "2")(text))),
    "runtime": _Field("runtime", _runtime),
    "ociRuntime": _Field("oci_runtime", OciRuntime.parse),
    "runtimeOOMScoreAdj": _Field("runtime_oom_score_adj", _number(-1000, 1000)),
    "kernel": _Field("kernel", _kernel),
    "memory": _Field("memory_capacity_bytes", _bytes),
    "swap": _Field("swap_capacity_bytes", _bytes),
    "pageSize": _Field("page_size_bytes", _page_size),
}

_GATES: Final = {FEATURE_GATES + gate: _Field(gate, _switch) for gate in Gate}
_FIELDS: Final = {**_KUBELET, **_NODE, **_GATES}

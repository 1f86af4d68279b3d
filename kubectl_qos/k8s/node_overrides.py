"""One setting of a node or of its kubelet by name, as `KEY=VALUE`: for questions of the kind "what if".

A kubelet's settings have their names in a KubeletConfiguration (kubelet/config/v1beta1/types.go); what is
not the kubelet's is named after nodeInfo or the file that holds it. Not here: where settings come from by
themselves (kubelet.py, configz.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from kubectl_qos.errors import QosError, UsageError
from kubectl_qos.k8s.kubelet import (
    DEFAULT_PAGE_SIZE,
    CgroupDriver,
    Kubelet,
    MemoryReservationPolicy,
    Node,
    NodeSetup,
    Origin,
    parse_duration_us,
)
from kubectl_qos.k8s.kubelet_validation import LEAST_PERIOD_US, MOST_PERIOD_US
from kubectl_qos.k8s.objects import MEMORY, ResourceList
from kubectl_qos.k8s.quantity import MAX_INT64, Format, Quantity
from kubectl_qos.k8s.releases import NEWEST_MINOR, OLDEST_MINOR, Gate, OciRuntime, Release

FEATURE_GATES: Final = "featureGates."
_EXAMPLES: Final = ("cgroupDriver", "cgroupVersion", "featureGates.MemoryQoS", "ociRuntime", "memory")


class NodeOverride(NamedTuple):
    """A key and the text of its value."""

    key: str
    text: str

    @staticmethod
    def parse(assignment: str) -> NodeOverride:
        """`cgroupDriver=cgroupfs` or `featureGates.MemoryQoS=true`. Raises UsageError with what there is."""
        key, equals, text = (part.strip() for part in assignment.partition("="))
        if not equals or not key or not text or not assignment.isprintable():
            raise UsageError(f"{assignment!r} is no setting", hint="write KEY=VALUE, such as cgroupVersion=1")
        found = NodeOverride(key, text)
        found.value()
        return found

    def value(self) -> object:
        """The value as predictions take it. Raises UsageError for a key or text that they do not know."""
        if self.key.startswith(FEATURE_GATES):
            _gate(self.key.removeprefix(FEATURE_GATES))
            return _read(self, _switch)
        for fields in (_KUBELET, _NODE):
            if self.key in fields:
                return _read(self, fields[self.key][1])
        raise _unknown(self.key, [*_KUBELET, *_NODE, *(FEATURE_GATES + gate for gate in Gate)])

    def __str__(self) -> str:
        return f"{self.key}={self.text}"


def apply_overrides(
    setup: NodeSetup, settings: Iterable[NodeOverride], release: str | None = None
) -> NodeSetup:
    """The same node with other settings and, if given, its kubelet on another release.

    Settings that nobody gave become those of the new release, as they do in an upgrade. Raises InputError
    for a release that is none, UsageError for a setting that is none or that the release does not have.
    """
    kubelet_changes: dict[str, Any] = {}
    node_changes: dict[str, Any] = {}
    gates = dict(setup.kubelet.feature_gates)
    for setting in settings:
        value = setting.value()
        if setting.key.startswith(FEATURE_GATES):
            gates[setting.key.removeprefix(FEATURE_GATES)] = bool(value)
        elif setting.key in _KUBELET:
            kubelet_changes[_KUBELET[setting.key][0]] = value
        else:
            node_changes[_NODE[setting.key][0]] = value
    after = _release(setup, gates, release)
    kubelet = setup.kubelet
    if kubelet.origin("memory_throttling_factor") is Origin.ASSUMED:
        kubelet = replace(kubelet, memory_throttling_factor=Kubelet.defaults(after).memory_throttling_factor)
    if release is not None:
        node_changes["kubelet_version"] = str(after)
    if "memory_capacity_bytes" in node_changes:
        node_changes |= _with_memory(setup.node, node_changes["memory_capacity_bytes"])
    return NodeSetup(
        _given(setup.node, node_changes),
        _given(kubelet, {**kubelet_changes, "feature_gates": gates} if gates else kubelet_changes),
        after,
    )


def _release(setup: NodeSetup, gates: Mapping[str, bool], release: str | None) -> Release:
    """The release with these gates; those that only an old one had are dropped in an upgrade."""
    now = setup.release
    found = Release.of(release or (f"{now}.{now.patch}" if now.patch is not None else str(now)))
    if found.assumed and release is not None:
        raise UsageError(
            f"Kubernetes {release} is not known", hint=f"1.{OLDEST_MINOR} to 1.{NEWEST_MINOR} are"
        )
    before = setup.kubelet.feature_gates
    for name, reason in found.ignored_gates(gates).items():
        if gates[name] != before.get(name):
            words = "locked to its default" if reason == "locked" else "not among the feature gates"
            raise UsageError(f"{FEATURE_GATES}{name} is {words} of Kubernetes {found}")
    return found.with_gates(gates)


def _with_memory(node: Node, size: int) -> dict[str, object]:
    """What goes along with another size of memory: as much as before stays reserved."""
    changes: dict[str, object] = {
        "capacity": ResourceList({**node.capacity, MEMORY: Quantity(size, 0, Format.BINARY_SI)})
    }
    if node.allocatable_memory_bytes is not None and node.memory_capacity_bytes is not None:
        reserved = node.memory_capacity_bytes - node.allocatable_memory_bytes
        changes["allocatable_memory_bytes"] = max(size - reserved, 0)
    return changes


def _gate(name: str) -> None:
    if name not in set(Gate):
        raise _unknown(FEATURE_GATES + name, [FEATURE_GATES + gate for gate in Gate])


def _unknown(key: str, known: Iterable[str]) -> UsageError:
    every = sorted(known)
    near = get_close_matches(key, every, n=3, cutoff=0.5) or _EXAMPLES
    return UsageError(
        f"there is no setting {key!r} that changes a prediction", hint=f"such as {', '.join(near)}"
    )


def _read(setting: NodeOverride, reader: Callable[[str], object]) -> object:
    try:
        return reader(setting.text)
    except QosError as error:
        raise UsageError(f"{setting}: {error}", hint=error.hint) from None
    except ValueError as error:
        raise UsageError(f"{setting}: {error}") from None


def _switch(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError("true or false is needed")
    return text.lower() == "true"


def _within(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            found = int(text)
        except ValueError:
            raise ValueError("a whole number is needed") from None
        if not least <= found <= most:
            raise ValueError(f"a whole number from {least} to {most} is needed")
        return found

    return read


def _period(text: str) -> int:
    found = parse_duration_us(text)
    if not LEAST_PERIOD_US <= found <= MOST_PERIOD_US:
        raise ValueError("a duration from 1ms to 1s is needed")
    return found


def _page(text: str) -> int:
    found = _bytes(text)
    if found < DEFAULT_PAGE_SIZE or found.bit_count() != 1:
        raise ValueError("a power of two from 4Ki on is needed")
    return found


def _kernel(text: str) -> str:
    if re.match(r"[0-9]+\.[0-9]+", text) is None:
        raise ValueError("a kernel version is needed, such as 6.1 or 5.4.0-150-generic")
    return text


def _among(*known: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in known:
            raise ValueError(f"one of {', '.join(known)} is needed")
        return text

    return read


def _factor(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 < found <= 1:
        raise ValueError("a number above 0 and up to 1 is needed")
    return found


def _bytes(text: str) -> int:
    found = Quantity.parse(text).value()
    if found <= 0:
        raise ValueError("a size above zero is needed, such as 16Gi")
    return found


def _runtime(text: str) -> str:
    if text.partition(":")[0] not in {"containerd", "cri-o", "docker"}:
        raise ValueError("containerd, cri-o or docker is needed, as nodeInfo has it: containerd://2.1.4")
    return text


_Field = tuple[str, Callable[[str], object]]

_KUBELET: Final[Mapping[str, _Field]] = {
    "cgroupDriver": ("cgroup_driver", lambda text: CgroupDriver(_among(*CgroupDriver)(text))),
    "cgroupRoot": ("cgroup_root", str),
    "cgroupsPerQOS": ("cgroups_per_qos", _switch),
    "cpuCFSQuota": ("cpu_cfs_quota", _switch),
    "cpuCFSQuotaPeriod": ("cpu_cfs_quota_period_us", _period),
    "cpuManagerPolicy": ("cpu_manager_policy", _among("none", "static")),
    "podPidsLimit": ("pod_pids_limit", _within(-1, MAX_INT64)),
    "memoryThrottlingFactor": ("memory_throttling_factor", _factor),
    "memoryReservationPolicy": (
        "memory_reservation_policy",
        lambda text: MemoryReservationPolicy(_among(*MemoryReservationPolicy)(text)),
    ),
    "memorySwap.swapBehavior": (
        "memory_swap_behavior",
        _among("NoSwap", "LimitedSwap", "UnlimitedSwap"),
    ),
    "singleProcessOOMKill": ("single_process_oom_kill", _switch),
}

_NODE: Final[Mapping[str, _Field]] = {
    "cgroupVersion": ("cgroup_version", lambda text: int(_among("1", "2")(text))),
    "runtime": ("runtime", _runtime),
    "ociRuntime": ("oci_runtime", OciRuntime.parse),
    "runtimeOOMScoreAdj": ("runtime_oom_score_adj", _within(-1000, 1000)),
    "kernel": ("kernel", _kernel),
    "memory": ("memory_capacity_bytes", _bytes),
    "swap": ("swap_capacity_bytes", _bytes),
    "pageSize": ("page_size_bytes", _page),
}


def _given(facts: Any, changes: Mapping[str, object]) -> Any:
    if not changes:
        return facts
    return replace(facts, **changes, origins={**facts.origins, **dict.fromkeys(changes, Origin.GIVEN)})

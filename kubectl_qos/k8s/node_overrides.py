"""Settings of a node or of its kubelet, given as `KEY=VALUE` for a what-if prediction.

Settings of a kubelet are named as in a KubeletConfiguration (kubelet/config/v1beta1/types.go), settings of
the node as in nodeInfo or after their file. kubelet.py has the values that are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import structs

from kubectl_qos.errors import QosError, UsageError
from kubectl_qos.k8s.kubelet import (
    DEFAULT_PAGE_SIZE,
    LINUX,
    MAX_CFS_PERIOD_US,
    MEMORY_AVAILABLE,
    MIN_CFS_PERIOD_US,
    WINDOWS,
    CgroupDriver,
    Kubelet,
    MemoryReservationPolicy,
    Node,
    NodeSetup,
    Origin,
    hugepages_bytes,
    kubepods_memory,
    threshold_bytes,
    with_deduced,
    with_origin,
)
from kubectl_qos.k8s.objects import EMPTY_RESOURCES, MEMORY, ResourceList, resource_list
from kubectl_qos.k8s.quantity import MAX_INT64, in_bytes, parse_duration, parse_typed
from kubectl_qos.k8s.releases import NEWEST_MINOR, OLDEST_MINOR, Gate, OciRuntime, Release

FEATURE_GATES: Final = "featureGates."
OCI_RUNTIME_OF_CLASS: Final = "ociRuntime."
KUBELET_VERSION: Final = "kubeletVersion"
PROFILE: Final = "profile"
USERSPACE_OOM_KILLER: Final = "userspaceOOMKiller"
"""The key whose values are in qos/killers/, which also parses them."""
_EXAMPLES: Final = ("cgroupDriver", "cgroupVersion", "featureGates.MemoryQoS", "ociRuntime", "memory")


class NodeOverride(NamedTuple):
    """A key and the text of its value."""

    key: str
    text: str

    @staticmethod
    def parse(assignment: str) -> NodeOverride:
        """Parse `cgroupDriver=cgroupfs` or `featureGates.MemoryQoS=true`. Raises UsageError."""
        key, equals, text = (part.strip() for part in assignment.partition("="))
        if not equals or not key or not text or not assignment.isprintable():
            hint = "add =true or =false" if key.startswith(FEATURE_GATES) else "write it as cgroupVersion=1"
            raise UsageError(f"{assignment!r} is not KEY=VALUE", hint)
        override = NodeOverride(key, text)
        override.value()
        return override

    def value(self) -> Any:
        """Return the parsed value. Raises UsageError for an unknown key or an invalid text."""
        field = FIELDS.get(self.key)
        if self.key.startswith(OCI_RUNTIME_OF_CLASS):
            field = FIELDS["ociRuntime"]
        if field is None:
            from difflib import get_close_matches

            is_gate = self.key.startswith(FEATURE_GATES)
            keys = [key for key in FIELDS if not is_gate or key.startswith(FEATURE_GATES)]
            near = get_close_matches(self.key, sorted(keys), n=3, cutoff=0.5) or _EXAMPLES
            raise UsageError(
                f"unknown node setting {self.key!r}", hint=f"write one such as {', '.join(near)}"
            )
        if self.text.startswith("+"):
            raise UsageError(f"{self}: there is no value to add to", hint=f"write {self.key}={self.text[1:]}")
        try:
            return field.parse(self.text)
        except QosError as error:
            raise UsageError(f"{self}: {error}", hint=error.hint) from None
        except ValueError as error:
            raise UsageError(f"{self}: {error}") from None

    def __str__(self) -> str:
        return f"{self.key}={self.text}"


def apply_overrides(
    setup: NodeSetup, overrides: Iterable[NodeOverride], release: str | None = None, *, stated: bool = False
) -> NodeSetup:
    """Return the same node with other settings and, if given, its kubelet on another release.

    Assumed values become those of the new release, as in an upgrade. `stated`: the node already has the
    settings, so its status.allocatable stays valid; otherwise they change the node. Raises InputError if the
    text is not a release, UsageError for an unknown release or setting, or for a gate that the release lacks.
    """
    settings = {override.key: override.value() for override in overrides}
    gates = {**setup.kubelet.feature_gates, **_below(settings, FEATURE_GATES)}
    kubelet_changes = {_KUBELET[key].name: value for key, value in settings.items() if key in _KUBELET}
    node_changes = {_NODE[key].name: value for key, value in settings.items() if key in _NODE}
    runtimes = _below(settings, OCI_RUNTIME_OF_CLASS)
    if runtimes:
        node_changes["oci_runtimes"] = {**setup.node.oci_runtimes, **runtimes}
    release = release or settings.get(KUBELET_VERSION)
    after = _release(setup, gates, release)
    node, kubelet = setup.node, setup.kubelet
    defaults = Kubelet.defaults(after, node_changes.get("operating_system", node.operating_system))
    for name in ("memory_throttling_factor", "eviction_hard"):
        if kubelet.origin(name) is Origin.ASSUMED and name not in kubelet.basis:
            kubelet = structs.replace(kubelet, **{name: getattr(defaults, name)})
    if gates:
        kubelet_changes["feature_gates"] = gates
    if release is not None:
        node_changes["kubelet_version"] = str(after)
    if "memory_capacity_bytes" in node_changes:
        # The reserved part of the memory keeps its size.
        size = node_changes["memory_capacity_bytes"]
        changes: dict[str, object] = {"capacity": ResourceList({**node.capacity, MEMORY: in_bytes(size)})}
        if node.allocatable_memory_bytes is not None and node.memory_capacity_bytes is not None:
            reserved = node.memory_capacity_bytes - node.allocatable_memory_bytes
            changes["allocatable_memory_bytes"] = max(size - reserved, 0)
        if MEMORY in node.status_allocatable and node.memory_capacity_bytes is not None:
            left = node.status_allocatable[MEMORY].value() + size - node.memory_capacity_bytes
            changes["status_allocatable"] = ResourceList(
                {**node.status_allocatable, MEMORY: in_bytes(max(left, 0))}
            )
        node_changes |= changes
    node = with_origin(node, Origin.GIVEN, **node_changes)
    if not {"runtime", "kernel"}.isdisjoint(node_changes):
        node = with_deduced(node)
    changed = NodeSetup(node, with_origin(kubelet, Origin.GIVEN, **kubelet_changes), after)
    changed = _with_profile(changed, settings.get(PROFILE, ""))
    return _with_reservations(changed, setup.kubelet, stated=stated)


def _below(settings: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)}


def distribution(node: Node) -> tuple[NodeOverride, ...]:
    """Return the profile of the distribution that a kubelet's version names: `v1.34.2+k3s1`.

    It matters for kills: k3s, and RKE2 with the agent of k3s, set no threshold of memory.available. A node
    that reports MemoryPressure has one.
    """
    is_k3s = any(name in node.kubelet_version for name in ("+k3s", "+rke2"))
    return (NodeOverride(PROFILE, "k3s"),) if is_k3s and not node.reports_pressure else ()


def _with_profile(setup: NodeSetup, name: str) -> NodeSetup:
    """Set the unknown values of a node to the published defaults of a kind of cluster."""
    profile = PROFILES.get(name)
    if profile is None:
        return setup
    if profile.before is not None and setup.release.minor < profile.since:
        profile = profile.before
    kubelet, node, basis = setup.kubelet, setup.node, f"profile {name}"
    overrides = map(NodeOverride.parse, profile.settings.split())
    changes = {FIELDS[override.key].name: override.value() for override in overrides}
    if profile.reserved is not None and node.memory_capacity_bytes and node.allocatable_memory_bytes is None:
        most_pods = node.capacity["pods"].value() if "pods" in node.capacity else DEFAULT_MAX_PODS
        reserved = profile.reserved(node.memory_capacity_bytes, most_pods)
        changes["kube_reserved"] = ResourceList({MEMORY: in_bytes(reserved)})
    for field, value in changes.items():
        if hasattr(node, field) and node.origin(field) is Origin.ASSUMED:
            node = with_origin(node, Origin.ASSUMED, basis, **{field: value})
        elif (
            hasattr(kubelet, field) and kubelet.origin(field) is Origin.ASSUMED and field not in kubelet.basis
        ):
            kubelet = with_origin(kubelet, Origin.ASSUMED, basis, **{field: value})
    return NodeSetup(node, kubelet, setup.release)


def _with_reservations(setup: NodeSetup, before: Kubelet, *, stated: bool) -> NodeSetup:
    """Compute allocatable memory and CPU after a change of reservations or of the eviction threshold.

    Given reservations that are larger than what the node keeps from its pods can only be a change.
    """
    node, kubelet = setup.node, setup.kubelet
    memory, kubepods = node.memory_capacity_bytes, node.allocatable_memory_bytes
    reserved = kubelet.kube_reserved, kubelet.system_reserved
    other_reserved = reserved != (before.kube_reserved, before.system_reserved)
    if memory is None or not (other_reserved or kubelet.eviction_hard != before.eviction_hard):
        return setup
    if stated and kubepods is not None and MEMORY in node.status_allocatable:
        kubepods = kubepods_memory(node.capacity, node.status_allocatable, kubelet)
    rest = max(memory - kubelet.reserved_memory_bytes, 0)
    is_given = Origin.GIVEN in {kubelet.origin(name) for name in ("kube_reserved", "system_reserved")}
    other_reserved &= kubepods is None or not stated or (is_given and rest < kubepods)
    if other_reserved:
        kubepods = rest
    allocatable = node.status_allocatable
    if kubepods is not None and (other_reserved or not stated):
        threshold = threshold_bytes(kubelet.eviction_hard.get(MEMORY_AVAILABLE), memory)
        left = in_bytes(max(kubepods - threshold - hugepages_bytes(node.capacity), 0))
        allocatable = ResourceList({**allocatable, MEMORY: left})
    node = structs.replace(node, allocatable_memory_bytes=kubepods, status_allocatable=allocatable)
    return NodeSetup(node, kubelet, setup.release)


def _release(setup: NodeSetup, gates: Mapping[str, bool], version: str | None) -> Release:
    """Return the release with these gates; gates that it lacks are dropped, as in an upgrade."""
    now = setup.release
    release = Release.of(version or (f"{now}.{now.patch}" if now.patch is not None else str(now)))
    release = release if version is not None else release._replace(assumed=now.assumed)
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


class NodeProfile(NamedTuple):
    """The published defaults of one kind of cluster, with their source and date.

    `settings` are overrides, separated by spaces. `reserved` computes the reserved bytes from the machine's
    memory and the node's maximum of pods; None if `settings` has them. `before` is the profile for minors
    before `since`.
    """

    settings: str
    source: str
    date: str
    reserved: Callable[[int, int], int] | None = None
    since: int = 0
    before: NodeProfile | None = None


DEFAULT_MAX_PODS: Final = 110
_GKE_TIERS: Final = ((4, 25), (8, 20), (16, 10), (128, 6), (1 << 40, 2))
"""Pairs of GiB of memory and the percentage that is reserved up to there."""


def _reserved_by_tiers(memory: int, _: int) -> int:
    """Return the bytes that GKE reserves, and AKS reserved before 1.29."""
    if memory < 1 << 30:
        return 255 << 20
    ends = [0, *(end << 30 for end, _ in _GKE_TIERS)]
    parts = zip(pairwise(ends), _GKE_TIERS, strict=True)
    return sum(max(min(memory, end) - begin, 0) * share // 100 for (begin, end), (_, share) in parts)


_AKS_SOURCE: Final = (
    "https://learn.microsoft.com/en-us/azure/aks/node-resource-reservations, and its driver by"
    " https://github.com/Azure/AgentBaker/blob/main/parts/linux/cloud-init/artifacts/cse_main.sh"
)
PROFILES: Final[Mapping[str, NodeProfile]] = {
    "gke": NodeProfile(
        "evictionHard=memory.available<100Mi cgroupVersion=2",
        "https://cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes",
        "2026-08",
        _reserved_by_tiers,
    ),
    "eks": NodeProfile(
        "cgroupDriver=systemd evictionHard=memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%",
        "https://github.com/awslabs/amazon-eks-ami/blob/main/nodeadm/internal/kubelet/config.go",
        "2026-07-23",
        lambda _, most_pods: (255 + 11 * most_pods) << 20,
    ),
    "aks": NodeProfile(
        "cgroupDriver=systemd evictionHard=memory.available<100Mi",
        _AKS_SOURCE,
        "2026-08-21",
        lambda memory, most_pods: min((20 * most_pods + 50) * 1_000_000, memory // 4),
        since=29,
        before=NodeProfile(
            "cgroupDriver=systemd evictionHard=memory.available<750Mi",
            _AKS_SOURCE,
            "2026-08-21",
            _reserved_by_tiers,
        ),
    ),
    "openshift": NodeProfile(
        "cgroupDriver=systemd podPidsLimit=4096 systemReserved=cpu=500m,memory=1Gi ociRuntime=crun"
        " memorySwap.swapBehavior=NoSwap",
        "https://github.com/openshift/machine-config-operator/tree/main/templates/worker",
        "2026-08-20",
    ),
    "k3s": NodeProfile(
        "cgroupDriver=systemd evictionHard=imagefs.available<5%,nodefs.available<5%",
        "https://github.com/k3s-io/k3s/tree/main/pkg/daemons/agent",
        "2026-09",
    ),
    "talos": NodeProfile(
        "cgroupDriver=cgroupfs systemReserved=cpu=50m,memory=384Mi userspaceOOMKiller=talos",
        "https://github.com/siderolabs/talos/blob/main/pkg/machinery/constants/constants.go",
        "2026-08-21",
    ),
}
"""Profiles by their names in --assume profile=; with the values of workers if control planes differ."""

T = TypeVar("T")


def _checked(parse: Callable[[str], T], is_valid: Callable[[T], object], needs: str) -> Callable[[str], T]:
    """Return `parse` with a ValueError that says what is needed; a QosError of `parse` stays."""

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


_bytes = _checked(
    lambda text: parse_typed(text).value(), lambda size: size > 0, "a size above zero, such as 16Gi"
)
_memory = _checked(_bytes, lambda size: size >= 1 << 20, "a size of at least 1Mi, such as 16Gi")
_page_size = _checked(
    _bytes, lambda size: size >= DEFAULT_PAGE_SIZE and size.bit_count() == 1, "a power of two, 4Ki or more"
)
_period = _checked(
    lambda text: parse_duration(text) // 1000,
    lambda period_us: MIN_CFS_PERIOD_US <= period_us <= MAX_CFS_PERIOD_US,
    "a duration from 1ms to 1s",
)
_THRESHOLD: Final = re.compile(r"(?P<signal>[a-zA-Z]+\.[a-zA-Z]+)[<=](?P<value>[0-9.]+%|[0-9][0-9a-zA-Z.]*)")


def _thresholds(text: str) -> Mapping[str, str]:
    """Parse `memory.available<500Mi,nodefs.available<10%` like the kubelet's flag; `none` is empty."""
    thresholds: dict[str, str] = {}
    for statement in text.split(",") if text != "none" else ():
        match = _THRESHOLD.fullmatch(statement.strip())
        if match is None:
            raise ValueError("must be thresholds such as memory.available<500Mi, or none")
        threshold_bytes(match["value"], 1 << 30)
        thresholds[match["signal"]] = match["value"]
    return thresholds


def _reservation(text: str) -> ResourceList:
    """Parse `cpu=100m,memory=1Gi` like the kubelet's flag; `none` is empty."""
    if text == "none":
        return EMPTY_RESOURCES
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name.strip() and amount.strip() for name, _, amount in pairs):
        raise ValueError("must be resources such as memory=1Gi,cpu=100m, or none")
    return resource_list({name.strip(): amount.strip() for name, _, amount in pairs})


def _version(text: str) -> str:
    Release.of(text)
    return text


_factor = _checked(float, lambda factor: 0 < factor <= 1, "a number above 0 and up to 1")
_kernel = _checked(str, re.compile(r"[0-9]+\.[0-9]+").match, "a kernel version, such as 6.1")
_runtime = _checked(
    str,
    lambda text: text.partition(":")[0] in {"containerd", "cri-o", "docker"},
    "containerd, cri-o or docker, as in containerd://2.1.4",
)


class Field(NamedTuple):
    """A setting: its field in Kubelet or Node, its parser, and its values or how they begin."""

    name: str
    parse: Callable[[str], object]
    begins: tuple[str, ...] = ()


def _one_of(name: str, *values: str) -> Field:
    return Field(name, _choice(*values), values)


def _on_off(name: str) -> Field:
    options = "true", "false"
    return Field(name, lambda text: _choice(*options)(text.lower()) == "true", options)


_KUBELET: Final[Mapping[str, Field]] = {
    "cgroupDriver": Field(
        "cgroup_driver", lambda text: CgroupDriver(_choice(*CgroupDriver)(text)), ("cgroupfs", "systemd")
    ),
    "cgroupRoot": Field("cgroup_root", str),
    "cgroupsPerQOS": _on_off("cgroups_per_qos"),
    "cpuCFSQuota": _on_off("cpu_cfs_quota"),
    "cpuCFSQuotaPeriod": Field("cpu_cfs_quota_period_us", _period),
    "cpuManagerPolicy": _one_of("cpu_manager_policy", "none", "static"),
    "memoryManagerPolicy": _one_of("memory_manager_policy", "None", "Static"),
    "podPidsLimit": Field("pod_pids_limit", _number(-1, MAX_INT64)),
    "memoryThrottlingFactor": Field("memory_throttling_factor", _factor),
    "memoryReservationPolicy": Field(
        "memory_reservation_policy",
        lambda text: MemoryReservationPolicy(_choice("None", "TieredReservation")(text)),
        ("None", "TieredReservation"),
    ),
    "memorySwap.swapBehavior": _one_of("memory_swap_behavior", "NoSwap", "LimitedSwap", "UnlimitedSwap"),
    "singleProcessOOMKill": _on_off("single_process_oom_kill"),
    "evictionHard": Field("eviction_hard", _thresholds, ("memory.available<",)),
    "evictionSoft": Field("eviction_soft", _thresholds, ("memory.available<",)),
    "kubeReserved": Field("kube_reserved", _reservation, ("memory=",)),
    "systemReserved": Field("system_reserved", _reservation, ("memory=",)),
}

_NODE: Final[Mapping[str, Field]] = {
    "cgroupVersion": Field("cgroup_version", lambda text: int(_choice("1", "2")(text)), ("1", "2")),
    "runtime": Field("runtime", _runtime, ("containerd://", "cri-o://", "docker://")),
    "ociRuntime": Field("oci_runtime", OciRuntime.parse, ("runc-", "crun-")),
    "runtimeOOMScoreAdj": Field("runtime_oom_score_adj", _number(-1000, 1000)),
    "kernel": Field("kernel", _kernel),
    "osImage": Field("os_image", str),
    "operatingSystem": _one_of("operating_system", LINUX, WINDOWS),
    USERSPACE_OOM_KILLER: Field("userspace_oom_killer", str),
    "memory": Field("memory_capacity_bytes", _memory),
    "swap": Field("swap_capacity_bytes", _bytes),
    "pageSize": Field("page_size_bytes", _page_size, ("4Ki", "16Ki", "64Ki")),
}

FIELDS: Final = {
    **_KUBELET,
    **_NODE,
    KUBELET_VERSION: Field("", _version, ("1.",)),
    PROFILE: _one_of("", *PROFILES),
    **{FEATURE_GATES + gate: _on_off(gate) for gate in Gate},
}
"""Every key of a setting except `ociRuntime.NAME`, which is for RuntimeClasses."""

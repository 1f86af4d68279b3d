"""The cgroups of a node: kubepods, classes, pods, containers, and reserved cgroups.

The first part computes what the kubelet writes above the pods; the second builds the tree with the files of
kubelet and runtime as they read back. "Allocatable" here is capacity minus reserved, the limit of kubepods,
before eviction thresholds. Not here: cgroups of pause containers, whose ids no API returns, and the words
(present/tree.py).

Sources: pkg/kubelet/cm/node_container_manager_linux.go and qos_container_manager_linux.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from kubectl_qos.k8s.allocation import running_pod
from kubectl_qos.k8s.kubelet import ENFORCE_PODS, CgroupDriver, Kubelet, Node, NodeSetup, Origin
from kubectl_qos.k8s.objects import CPU, HUGEPAGES_PREFIX, MEMORY, Pod
from kubectl_qos.k8s.quantity import MILLI, ZERO, Quantity, in_bytes, truncating_div, wrap
from kubectl_qos.k8s.releases import Change, Gate, Release
from kubectl_qos.k8s.resources import Totals, pod_requests
from kubectl_qos.qos.cgroup import names, values
from kubectl_qos.qos.cgroup.values import MEMORY_MIN, class_memory_qos, has_memory_qos, hugepage_limits
from kubectl_qos.qos.prediction import (
    Assumption,
    ContainerPrediction,
    Prediction,
    assumptions,
    predict_running,
)
from kubectl_qos.qos.qos_class import QosClass, qos_class

PID: Final = "pid"
"""Resource whose capacity is the kernel's maximum of process IDs."""

_COMPRESSIBLE: Final = "-compressible"
_UNBOUNDED: Final = 1 << 62
_UNITS: Final = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}


class CgroupWrite(NamedTuple):
    """A cgroup and what the kubelet writes to it."""

    name: names.CgroupName
    settings: values.CgroupSettings


def allocatable(capacity: Mapping[str, Quantity], kubelet: Kubelet) -> Totals:
    """Return capacity minus reserved, never below zero (`GetNodeAllocatableAbsolute`)."""
    left = {}
    for name, quantity in capacity.items():
        rest = quantity - kubelet.system_reserved.get(name, ZERO)
        rest = rest - kubelet.kube_reserved.get(name, ZERO)
        left[name] = rest if rest.sign >= 0 else Quantity(0, 0, rest.format)
    return left


def kubepods(capacity: Mapping[str, Quantity], cores: int, kubelet: Kubelet, release: Release) -> CgroupWrite:
    """Return the cgroup of all pods, limited to capacity minus reserved if `pods` is enforced.

    `capacity` is the node's, with `pid` if the kernel's maximum is known; `cores` are the machine's CPUs.
    """
    is_enforced = kubelet.cgroups_per_qos and ENFORCE_PODS in kubelet.enforce_node_allocatable
    resources = allocatable(capacity, kubelet) if is_enforced else capacity
    return CgroupWrite(names.kubepods_name(kubelet), _settings(resources, cores, release))


def reserved(cores: int, kubelet: Kubelet, release: Release) -> list[CgroupWrite]:
    """Return the kube-reserved and system-reserved cgroups that are enforced."""
    parse = names.parse_systemd if kubelet.cgroup_driver is CgroupDriver.SYSTEMD else names.parse_cgroupfs
    suffixes = ("", _COMPRESSIBLE) if release.has(Change.RESERVED_COMPRESSIBLE) else ("",)
    writes = []
    for suffix in suffixes:
        for key, path, resources in (
            ("system-reserved", kubelet.system_reserved_cgroup, kubelet.system_reserved),
            ("kube-reserved", kubelet.kube_reserved_cgroup, kubelet.kube_reserved),
        ):
            if f"{key}{suffix}" not in kubelet.enforce_node_allocatable:
                continue
            settings = _settings(resources, cores, release, only_cpu=bool(suffix))
            if release.enabled(Gate.MEMORY_QOS) and settings.memory_limit_bytes is not None:
                settings.unified[MEMORY_MIN] = str(settings.memory_limit_bytes)
            writes.append(CgroupWrite(parse(path), settings))
    return writes


def classes(pods: Iterable[Pod], setup: NodeSetup) -> tuple[CgroupWrite, CgroupWrite, CgroupWrite]:
    """Return kubepods, besteffort and burstable as the kubelet updates them every minute (`UpdateCgroups`).

    `pods` are the node's pods that have not ended, defaulted.
    """
    kubelet = setup.kubelet
    cpu_milli, burstable_memory, guaranteed_memory = _sum_requests(pods, setup.release)
    kubepods_unified, burstable_unified = dict[str, str](), dict[str, str]()
    # A kubelet without the gate MemoryQoS writes zeros: the values without a policy.
    is_reset = setup.node.cgroup_version != 1 and setup.release.has(Change.MEMORY_QOS_IS_RESET)
    if has_memory_qos(setup) or is_reset:
        kubepods_unified, burstable_unified = class_memory_qos(guaranteed_memory, burstable_memory, setup)
    burstable_limit, best_effort_limit = _qos_reserved_limits(burstable_memory, guaranteed_memory, setup)
    unbounded = unbounded_hugepages(setup.node)
    kubepods_settings = values.CgroupSettings(hugepage_limits=unbounded, unified=kubepods_unified)
    best_effort = values.CgroupSettings(
        cpu_shares=values.MIN_SHARES, hugepage_limits=unbounded, memory_limit_bytes=best_effort_limit
    )
    burstable = values.CgroupSettings(
        cpu_shares=values.milli_to_shares(cpu_milli),
        hugepage_limits=unbounded,
        memory_limit_bytes=burstable_limit,
        unified=burstable_unified,
    )
    return (
        CgroupWrite(names.kubepods_name(kubelet), kubepods_settings),
        CgroupWrite(names.class_name(QosClass.BEST_EFFORT, kubelet), best_effort),
        CgroupWrite(names.class_name(QosClass.BURSTABLE, kubelet), burstable),
    )


def unbounded_hugepages(node: Node) -> dict[int, int]:
    """Return the limit above the pods for each of the node's page sizes."""
    return {int(size[:-2]) * _UNITS[size[-2:]]: _UNBOUNDED for size in node.hugepage_sizes}


def _sum_requests(pods: Iterable[Pod], release: Release) -> tuple[int, int, int]:
    """Return the CPU of Burstable pods in millicores, and memory of Burstable and Guaranteed pods in bytes.

    The memory sums count pod-level resources even with the gate off, as upstream.
    """
    cpu_milli = burstable = guaranteed = 0
    for pod in pods:
        qos = qos_class(pod, release)
        if qos is QosClass.BEST_EFFORT:
            continue
        pod_level = True if release.has(Change.STATUS_RESOURCES) else None
        memory = pod_requests(pod, release, pod_level=pod_level).get(MEMORY, ZERO).value()
        if qos is QosClass.GUARANTEED:
            guaranteed = wrap(guaranteed + memory)
        else:
            burstable = wrap(burstable + memory)
            cpu_milli = wrap(cpu_milli + pod_requests(pod, release).get(CPU, ZERO).milli_value())
    return cpu_milli, burstable, guaranteed


def _qos_reserved_limits(burstable: int, guaranteed: int, setup: NodeSetup) -> tuple[int | None, int | None]:
    """Return memory limits of burstable and besteffort under QOSReserved (`setMemoryReserve`)."""
    percent = setup.kubelet.qos_reserved_percent.get(MEMORY)
    available = setup.node.allocatable_memory_bytes
    if percent is None or not available or not setup.release.enabled(Gate.QOS_RESERVED):
        return None, None
    burstable_limit = wrap(available - truncating_div(wrap(guaranteed * percent), 100))
    return burstable_limit, wrap(burstable_limit - truncating_div(wrap(burstable * percent), 100))


def _settings(
    resources: Mapping[str, Quantity], cores: int, release: Release, *, only_cpu: bool = False
) -> values.CgroupSettings:
    """Return the settings of a resource list (`getCgroupConfig`)."""
    cpus = ""
    if release.has(Change.KUBEPODS_CPUSET):
        cpus = f"0-{cores - 1}" if cores > 1 else "0"
    shares = values.milli_to_shares(resources[CPU].milli_value()) if CPU in resources else None
    if only_cpu:
        return values.CgroupSettings(cpu_shares=shares, cpus=cpus)
    return values.CgroupSettings(
        cpu_shares=shares,
        memory_limit_bytes=resources[MEMORY].value() if MEMORY in resources else None,
        pids_limit=resources[PID].value() if PID in resources else None,
        hugepage_limits=hugepage_limits(resources),
        cpus=cpus,
    )


# -- the tree --------------------------------------------------------------------------------------------


class CgroupLevel(StrEnum):
    """Kind of a directory."""

    RESERVED = "reserved"
    KUBEPODS = "kubepods"
    CLASS = "class"
    POD = "pod"
    CONTAINER = "container"
    PROCESSES = "processes"
    """With crun, below a container's scope; crun tells systemd only some of the values."""


class Directory(msgspec.Struct, frozen=True):
    """A cgroup: path below the mount, files in reading order, class and pod.

    On cgroup v1, names of files begin with the controller. `qos` is set for classes and pods, `pod` for pods
    and containers.
    """

    path: str
    level: CgroupLevel
    files: Mapping[str, str]
    children: tuple[Directory, ...] = ()
    qos: QosClass | None = None
    pod: Pod | None = None
    container: ContainerPrediction | None = None

    def walk(self) -> Iterator[Directory]:
        """Yield this directory and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


class CgroupTree(msgspec.Struct, frozen=True):
    """The cgroups of one node.

    `unknown` are files of kubepods with unknown content. `left_out` pods are not shown, but count in the
    values of kubepods and the classes.
    """

    setup: NodeSetup
    roots: tuple[Directory, ...]
    unknown: tuple[str, ...]
    left_out: int
    assumptions: tuple[Assumption, ...]

    def walk(self) -> Iterator[Directory]:
        """Yield every directory, parents first."""
        for root in self.roots:
            yield from root.walk()


def cgroup_tree(
    pods: Iterable[Pod], setup: NodeSetup, is_shown: Callable[[Pod], bool] = lambda _: True
) -> CgroupTree:
    """Build the tree of a node with all its pods; only shown pods get directories.

    Raises InputError if a pod has no containers, or its UID cannot be part of a cgroup name.
    """
    living = [pod for pod in pods if not (pod.is_terminal or pod.spec.is_windows)]
    shown = [pod for pod in living if is_shown(pod)]
    if setup.node.is_windows:
        return CgroupTree(setup, (), (), 0, tuple(assumptions(setup)))
    roots = [
        _directory(name, CgroupLevel.RESERVED, _without_cpuset(settings, setup), setup)
        for name, settings in reserved(_cores(setup.node), setup.kubelet, setup.release)
        if any(part.strip("/") for part in name)  # A kubelet refuses to enforce a cgroup without a name.
    ]
    unknown: tuple[str, ...] = ()
    if setup.kubelet.cgroups_per_qos:
        above_pods, unknown = _kubepods(living, setup)
        # By namespace and name; Guaranteed ones are directly below kubepods.
        below: dict[QosClass | None, list[Directory]] = {qos: [] for qos in QosClass}
        for pod in sorted(shown, key=lambda pod: (pod.namespace, pod.name, pod.metadata.uid)):
            prediction = predict_running(pod, setup)
            below[prediction.qos_class].append(_pod(prediction))
        classes = (structs.replace(child, children=tuple(below[child.qos])) for child in above_pods.children)
        roots.append(structs.replace(above_pods, children=(*classes, *below[QosClass.GUARANTEED])))
    assumed, kubelet = list(assumptions(setup)), setup.kubelet
    if kubelet.origin("enforce_node_allocatable") is Origin.ASSUMED:
        assumed.append(Assumption("enforce_node_allocatable", kubelet.enforce_node_allocatable))
    if setup.assumes_no_reservations and not has_memory_qos(setup):
        assumed.append(Assumption("kube_reserved", kubelet.kube_reserved))
    left_out = len(living) - len(shown)
    return CgroupTree(setup, tuple(roots), unknown, left_out, tuple(assumed))


def path_to(pod: Pod, pods: Iterable[Pod], setup: NodeSetup) -> CgroupTree:
    """Build a tree with only one pod and the directories above it. Raises as `cgroup_tree`."""
    tree = cgroup_tree(pods, setup, lambda other: other is pod)
    roots = [
        structs.replace(root, children=tuple(child for child in root.children if child.children))
        for root in tree.roots
        if root.level is CgroupLevel.KUBEPODS
    ]
    return structs.replace(tree, roots=tuple(roots))


def _directory(
    name: names.CgroupName,
    level: CgroupLevel,
    settings: values.CgroupSettings,
    setup: NodeSetup,
    qos: QosClass | None = None,
) -> Directory:
    path = names.literal(name, setup.kubelet.cgroup_driver)
    return Directory(path, level, values.files_on_node(settings, setup), qos=qos)


def _kubepods(pods: Iterable[Pod], setup: NodeSetup) -> tuple[Directory, tuple[str, ...]]:
    """Return kubepods with both class cgroups, and its files that are unknown.

    The kubelet creates kubepods with the node's amounts and updates it with the classes; the files have the
    values of both.
    """
    node = setup.node
    defaulted = [running_pod(pod, setup.release) for pod in pods]
    created = kubepods(_amounts(setup), _cores(node), setup.kubelet, setup.release).settings
    updated, best_effort, burstable = classes(defaulted, setup)
    settings = structs.replace(
        _without_cpuset(created, setup),
        hugepage_limits=updated.settings.hugepage_limits,
        unified={**created.unified, **updated.settings.unified},
    )
    if node.cgroup_version == 1:
        files = ("cpu/cpu.shares", "memory/memory.limit_in_bytes", "pids/pids.max")
    else:
        files = ("cpu.weight", "memory.max", "pids.max")
    amounts = (settings.cpu_shares, settings.memory_limit_bytes, settings.pids_limit)
    unknown = tuple(name for name, amount in zip(files, amounts, strict=True) if amount is None)
    directory = _directory(updated.name, CgroupLevel.KUBEPODS, settings, setup)
    return structs.replace(
        directory,
        files={name: value for name, value in directory.files.items() if name not in unknown},
        children=tuple(
            _directory(write.name, CgroupLevel.CLASS, write.settings, setup, qos)
            for qos, write in ((QosClass.BURSTABLE, burstable), (QosClass.BEST_EFFORT, best_effort))
        ),
    ), unknown


def _pod(prediction: Prediction) -> Directory:
    """Return a pod with its containers that have not ended, so without completed init containers."""
    pod = prediction.pod
    ended = {status.name for status in pod.status.every_container if status.state and status.state.terminated}
    return Directory(
        prediction.cgroup.path,
        CgroupLevel.POD,
        prediction.cgroup.files,
        children=tuple(
            _container(container, pod) for container in prediction.containers if container.name not in ended
        ),
        qos=prediction.qos_class,
        pod=pod,
    )


def _container(container: ContainerPrediction, pod: Pod) -> Directory:
    below: tuple[Directory, ...] = ()
    if container.has_process_cgroup:
        process = container.process_cgroup
        below = (Directory(process.path, CgroupLevel.PROCESSES, values.in_reading_order(process.files)),)
    return Directory(
        container.cgroup.path,
        CgroupLevel.CONTAINER,
        values.in_reading_order(container.cgroup.files),
        children=below,
        pod=pod,
        container=container,
    )


def _without_cpuset(settings: values.CgroupSettings, setup: NodeSetup) -> values.CgroupSettings:
    """Drop the CPU set if a CPU manager policy leaves it alone, or the CPUs are unknown.

    Source: pkg/kubelet/cm/node_container_manager_linux.go (getCgroupConfigInternal, "Only do so on None
    policy").
    """
    if setup.kubelet.cpu_manager_policy == "none" and _cores(setup.node):
        return settings
    return structs.replace(settings, cpus="")


def _cores(node: Node) -> int:
    """Return the machine's CPUs, 0 if unknown."""
    return -(-node.capacity[CPU].milli_value() // 1000) if CPU in node.capacity else 0


def _amounts(setup: NodeSetup) -> Totals:
    """Return the amounts from which the kubelet subtracts reservations.

    If no configuration has the reservations, the memory is what the node says is left, with the ones that are
    subtracted; so is CPU unless reservations are given.
    """
    node, kubelet = setup.node, setup.kubelet
    amounts: Totals = {
        name: amount
        for name, amount in node.capacity.items()
        if name in {CPU, MEMORY} or name.startswith(HUGEPAGES_PREFIX)
    }
    if node.memory_capacity_bytes is not None:
        amounts[MEMORY] = in_bytes(node.memory_capacity_bytes)
    origins = {kubelet.origin("kube_reserved"), kubelet.origin("system_reserved")}
    if Origin.CONFIGZ not in origins and ENFORCE_PODS in kubelet.enforce_node_allocatable:
        if node.allocatable_memory_bytes is not None:
            amounts[MEMORY] = in_bytes(node.allocatable_memory_bytes + kubelet.reserved_memory_bytes)
        if node.allocatable_cpu_milli is not None and origins == {Origin.ASSUMED}:
            sides = kubelet.kube_reserved, kubelet.system_reserved
            reserved = sum(side.get(CPU, ZERO).milli_value() for side in sides)
            amounts[CPU] = Quantity(node.allocatable_cpu_milli + reserved, MILLI)
    return amounts

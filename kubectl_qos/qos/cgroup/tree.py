"""The cgroup tree of a node as values: kubepods, its classes, pods and containers, and the reserved cgroups.

Each directory has the files that the kubelet or the runtime writes, as they read back on the node. Not here:
the cgroups of pause containers, whose ids are in no API, and the words (present/tree.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup, Origin
from kubectl_qos.k8s.objects import CPU, HUGEPAGES_PREFIX, MEMORY, Pod
from kubectl_qos.k8s.quantity import MILLI, Format, Quantity
from kubectl_qos.k8s.resources import Totals
from kubectl_qos.qos.cgroup import node as node_cgroups
from kubectl_qos.qos.cgroup.names import CgroupName, literal
from kubectl_qos.qos.cgroup.values import CgroupSettings, files_on_node, in_reading_order
from kubectl_qos.qos.prediction import Assumption, ContainerPrediction, Prediction, assumptions, predict
from kubectl_qos.qos.qos_class import QosClass

NO_CPU_MANAGER: Final = "none"


class CgroupLevel(StrEnum):
    """What a directory is for."""

    RESERVED = "reserved"
    KUBEPODS = "kubepods"
    CLASS = "class"
    POD = "pod"
    CONTAINER = "container"
    PROCESSES = "processes"
    """Below a container's scope with crun; the limits stay on the scope."""


@dataclass(frozen=True, slots=True)
class Directory:
    """One cgroup: its path below the mount, its files in reading order, and which pod's or class's it is.

    On cgroup v1 the names of files begin with the controller. `qos` is that of a class or pod, `pod` that of
    a pod or container.
    """

    path: str
    level: CgroupLevel
    files: Mapping[str, str]
    children: tuple[Directory, ...] = ()
    qos: QosClass | None = None
    pod: Pod | None = None
    container: ContainerPrediction | None = None

    def walk(self) -> Iterator[Directory]:
        """This directory and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class CgroupTree:
    """The cgroups of one node.

    `unknown` names the files of kubepods whose content is not known. `left_out` is how many pods count in the
    values of kubepods and the classes without being shown.
    """

    setup: NodeSetup
    roots: tuple[Directory, ...]
    unknown: tuple[str, ...]
    left_out: int
    assumptions: tuple[Assumption, ...]

    def walk(self) -> Iterator[Directory]:
        """Every directory, parents first."""
        for root in self.roots:
            yield from root.walk()


def cgroup_tree(
    pods: Iterable[Pod], setup: NodeSetup, is_shown: Callable[[Pod], bool] = lambda _: True
) -> CgroupTree:
    """The tree of a node.

    Args:
        pods: all known pods of this node; those that have ended have no cgroup any more.
        setup: the node's facts and its kubelet's configuration.
        is_shown: which pods get directories. The values above them count every pod.

    Raises:
        InputError: a pod has no containers, or its UID cannot be part of a cgroup name.
    """
    living = [pod for pod in pods if not pod.is_terminal]
    shown = [pod for pod in living if is_shown(pod)]
    roots = list(_reserved(setup))
    unknown: tuple[str, ...] = ()
    if setup.kubelet.cgroups_per_qos:
        kubepods, unknown = _kubepods(living, setup)
        roots.append(_with_pods(kubepods, shown, setup))
    return CgroupTree(
        setup=setup,
        roots=tuple(roots),
        unknown=unknown,
        left_out=len(living) - len(shown),
        assumptions=(*assumptions(setup), *_kubepods_assumptions(setup)),
    )


def path_to(pod: Pod, pods: Iterable[Pod], setup: NodeSetup) -> CgroupTree:
    """The tree with nothing but one pod and the directories above it. Raises InputError as above."""
    tree = cgroup_tree(pods, setup, lambda other: other is pod)
    roots = [
        replace(root, children=tuple(child for child in root.children if child.children))
        for root in tree.roots
        if root.level is CgroupLevel.KUBEPODS
    ]
    return replace(tree, roots=tuple(roots))


def with_cgroup_version(setup: NodeSetup, version: int) -> NodeSetup:
    """The same node with this cgroup version."""
    origins = {**setup.node.origins, "cgroup_version": Origin.GIVEN}
    return replace(setup, node=replace(setup.node, cgroup_version=version, origins=origins))


def _directory(
    name: CgroupName,
    level: CgroupLevel,
    settings: CgroupSettings,
    setup: NodeSetup,
    qos: QosClass | None = None,
) -> Directory:
    path = literal(name, setup.kubelet.cgroup_driver)
    return Directory(path, level, files_on_node(settings, setup), qos=qos)


def _reserved(setup: NodeSetup) -> Iterator[Directory]:
    """The reserved cgroups that are enforced; a kubelet refuses to enforce one that has no name."""
    for name, settings in node_cgroups.reserved(_cores(setup.node), setup.kubelet, setup.release):
        if any(part.strip("/") for part in name):
            yield _directory(name, CgroupLevel.RESERVED, _without_cpuset(settings, setup), setup)


def _kubepods(pods: Iterable[Pod], setup: NodeSetup) -> tuple[Directory, tuple[str, ...]]:
    """Kubepods with both class cgroups, and which of its files are not known.

    The kubelet creates kubepods with the node's amounts and updates it whenever it updates the classes; its
    files have the values of both.
    """
    node = setup.node
    defaulted = [default_pod(pod, setup.release) for pod in pods]
    created = node_cgroups.kubepods(_amounts(setup), _cores(node), setup.kubelet, setup.release).settings
    updated, best_effort, burstable = node_cgroups.classes(defaulted, setup)
    settings = replace(
        _without_cpuset(created, setup),
        hugepage_limits=updated.settings.hugepage_limits,
        unified={**created.unified, **updated.settings.unified},
    )
    unknown = _unknown_files(settings, node.cgroup_version)
    kubepods = _directory(updated.name, CgroupLevel.KUBEPODS, settings, setup)
    return replace(
        kubepods,
        files={name: value for name, value in kubepods.files.items() if name not in unknown},
        children=tuple(
            _directory(write.name, CgroupLevel.CLASS, write.settings, setup, qos)
            for qos, write in ((QosClass.BURSTABLE, burstable), (QosClass.BEST_EFFORT, best_effort))
        ),
    ), unknown


def _unknown_files(settings: CgroupSettings, cgroup_version: int) -> tuple[str, ...]:
    """The files of kubepods that the kubelet writes with amounts that are not known here."""
    names = {
        1: ("cpu/cpu.shares", "memory/memory.limit_in_bytes", "pids/pids.max"),
        2: ("cpu.weight", "memory.max", "pids.max"),
    }[cgroup_version]
    amounts = (settings.cpu_shares, settings.memory_limit_bytes, settings.pids_limit)
    return tuple(name for name, amount in zip(names, amounts, strict=True) if amount is None)


def _with_pods(kubepods: Directory, pods: Iterable[Pod], setup: NodeSetup) -> Directory:
    """Pods below their class by namespace and name; Guaranteed ones directly below kubepods."""
    below: dict[QosClass | None, list[Directory]] = {qos: [] for qos in QosClass}
    for pod in sorted(pods, key=lambda pod: (pod.namespace, pod.name, pod.metadata.uid)):
        prediction = predict(pod, setup.node, kubelet=setup.kubelet, release=setup.release)
        below[prediction.qos_class].append(_pod(prediction))
    classes = tuple(replace(child, children=tuple(below[child.qos])) for child in kubepods.children)
    return replace(kubepods, children=(*classes, *below[QosClass.GUARANTEED]))


def _pod(prediction: Prediction) -> Directory:
    """A pod with those of its containers that have not ended, as init containers that are done have."""
    pod = prediction.pod
    ended = {
        status.name
        for status in pod.status.every_container
        if status.state is not None and status.state.terminated is not None
    }
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
    if container.process_path != container.cgroup.path:
        below = (Directory(container.process_path, CgroupLevel.PROCESSES, {}),)
    return Directory(
        container.cgroup.path,
        CgroupLevel.CONTAINER,
        in_reading_order(container.cgroup.files),
        children=below,
        pod=pod,
        container=container,
    )


def _without_cpuset(settings: CgroupSettings, setup: NodeSetup) -> CgroupSettings:
    """Without the CPU set where a CPU manager policy does not touch it, or the CPUs are not known.

    Source: pkg/kubelet/cm/node_container_manager_linux.go (getCgroupConfigInternal, "Only do so on None
    policy").
    """
    if setup.kubelet.cpu_manager_policy == NO_CPU_MANAGER and _cores(setup.node):
        return settings
    return replace(settings, cpus="")


def _kubepods_assumptions(setup: NodeSetup) -> Iterator[Assumption]:
    """What only kubepods depends on, as far as it is not configured."""
    kubelet = setup.kubelet
    if kubelet.origin("enforce_node_allocatable") is Origin.ASSUMED:
        yield Assumption("enforce_node_allocatable", kubelet.enforce_node_allocatable, Origin.ASSUMED)
    if not _knows_reservations(kubelet) and setup.node.allocatable_memory_bytes is None:
        yield Assumption("kube_reserved", kubelet.kube_reserved, Origin.ASSUMED)


def _cores(node: Node) -> int:
    """The machine's CPUs, 0 where they are not known."""
    return -(-node.capacity[CPU].milli_value() // 1000) if CPU in node.capacity else 0


def _amounts(setup: NodeSetup) -> Totals:
    """The node's amounts, from which the kubelet subtracts what is reserved.

    Where the reservations are not known, status.allocatable has what is left of CPU and memory.
    """
    node, kubelet = setup.node, setup.kubelet
    amounts: Totals = {
        name: amount
        for name, amount in node.capacity.items()
        if name in {CPU, MEMORY} or name.startswith(HUGEPAGES_PREFIX)
    }
    if node.memory_capacity_bytes is not None:
        amounts[MEMORY] = Quantity(node.memory_capacity_bytes, 0, Format.BINARY_SI)
    if not _knows_reservations(kubelet) and node_cgroups.PODS in kubelet.enforce_node_allocatable:
        if node.allocatable_memory_bytes is not None:
            amounts[MEMORY] = Quantity(node.allocatable_memory_bytes, 0, Format.BINARY_SI)
        if node.allocatable_cpu_milli is not None:
            amounts[CPU] = Quantity(node.allocatable_cpu_milli, MILLI)
    return amounts


def _knows_reservations(kubelet: Kubelet) -> bool:
    return {kubelet.origin("kube_reserved"), kubelet.origin("system_reserved")} != {Origin.ASSUMED}

"""Where a pod and its containers are in the cgroup tree, for both drivers and each runtime.

Sources: pkg/kubelet/cm/cgroup_manager_linux.go (CgroupName, ToSystemd, ToCgroupfs and their parsers),
pod_container_manager_linux.go (GetPodContainerName), helpers_linux.go (NodeAllocatableRoot);
opencontainers/cgroups systemd/common.go (ExpandSlice). Paths are below the cgroup mount.
"""

from __future__ import annotations

import posixpath
from typing import Final

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kubelet import CgroupDriver, Kubelet, Node
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.qos.qos_class import QosClass

CgroupName = tuple[str, ...]
"""The kubelet's internal name: the components from the root, before any driver has spelled them."""

KUBEPODS: Final = "kubepods"
_SLICE: Final = ".slice"


def compose(base: CgroupName, *components: str) -> CgroupName:
    """`NewCgroupName`. Raises InputError where the kubelet panics: `/` or `_` in a component."""
    for component in components:
        if "/" in component or "_" in component:
            raise InputError(f'invalid character in component ["{component}"] of CgroupName')
    return base + components


def to_systemd(name: CgroupName) -> str:
    """The nested slices of a name. Raises InputError for what systemd cannot spell."""
    if not name or name == ("",):
        return "/"
    joined = "-".join(part.replace("-", "_") for part in name)
    if joined == "-":
        return "/"
    path = prefix = ""
    for component in joined.split("-"):
        if not component or "/" in joined:
            raise InputError(
                f"error converting cgroup name [{' '.join(name)}] to systemd format: "
                f"invalid slice name: {joined}{_SLICE}"
            )
        path += f"/{prefix}{component}{_SLICE}"
        prefix += component + "-"
    return path


def to_cgroupfs(name: CgroupName) -> str:
    """The plain path of a name."""
    parts = [part for part in name if part]
    cleaned = posixpath.normpath(posixpath.join(*parts)) if parts else ""
    return "/" + ("" if cleaned == "." else cleaned)


def parse_systemd(path: str) -> CgroupName:
    """The name that a slice path spells; `_` was `-` once, or always: it is not told apart."""
    base = posixpath.basename(path.rstrip("/")) or "/"
    return tuple(part.replace("_", "-") for part in base.removesuffix(_SLICE).split("-"))


def parse_cgroupfs(path: str) -> CgroupName:
    """The name that a plain path spells."""
    components = tuple(path.removeprefix("/").split("/"))
    return () if components == ("",) else components


def literal(name: CgroupName, driver: CgroupDriver) -> str:
    """The path of a name under a driver."""
    return to_systemd(name) if driver is CgroupDriver.SYSTEMD else to_cgroupfs(name)


def systemd_unit(name: CgroupName) -> tuple[str, str]:
    """The parent slice and the slice itself, as systemctl knows them."""
    directory, unit = posixpath.split(to_systemd(name))
    return posixpath.basename(directory) if directory != "/" else "-.slice", unit


def kubepods_name(kubelet: Kubelet) -> CgroupName:
    """The cgroup of all pods, below --cgroup-root; without cgroupsPerQOS that root itself."""
    root = parse_cgroupfs(kubelet.cgroup_root)
    return compose(root, KUBEPODS) if kubelet.cgroups_per_qos else root


def class_name(qos: QosClass, kubelet: Kubelet) -> CgroupName:
    """The cgroup of a class; Guaranteed pods sit directly under kubepods."""
    root = kubepods_name(kubelet)
    if qos is QosClass.GUARANTEED or not kubelet.cgroups_per_qos:
        return root
    return compose(root, qos.value.lower())


def pod_uid(pod: Pod) -> str:
    """The UID in the path: of a mirror pod that of the static pod, which its annotation holds."""
    if pod.annotations.config_mirror is not None:
        return pod.annotations.config_hash or pod.annotations.config_mirror
    return pod.metadata.uid


def pod_name(uid: str, qos: QosClass, kubelet: Kubelet) -> CgroupName:
    """The pod's cgroup; without cgroupsPerQOS there is none but the root."""
    if not kubelet.cgroups_per_qos:
        return kubepods_name(kubelet)
    return compose(class_name(qos, kubelet), f"pod{uid}")


def container_path(pod_path: str, container_id: str, kubelet: Kubelet, runtime: str) -> str:
    """The container's cgroup below its pod's, as the runtime names it.

    Args:
        pod_path: the pod's literal path.
        container_id: `containerd://<hex>` as in status, or the hex alone.
        kubelet: its driver decides between scopes and plain folders.
        runtime: `containerd://2.3.4` or `cri-o://1.36.0` as in nodeInfo; the scheme decides.
    """
    hex_id = container_id.rpartition("://")[2]
    scheme = (container_id if "://" in container_id else runtime).partition(":")[0]
    prefix = {"containerd": "cri-containerd", "cri-o": "crio", "docker": "docker"}.get(
        scheme, "cri-containerd"
    )
    if kubelet.cgroup_driver is CgroupDriver.SYSTEMD:
        return f"{pod_path}/{prefix}-{hex_id}.scope"
    return f"{pod_path}/crio-{hex_id}" if prefix == "crio" else f"{pod_path}/{hex_id}"


def process_path(container_path: str, kubelet: Kubelet, node: Node) -> str:
    """Where the container's processes are: below its own cgroup with crun, systemd and cgroup v2.

    crun puts them into a `container` child of the scope, so that systemd keeps the scope to itself; limits
    stay on the scope (libcrun cgroup-systemd.c, setup_subcgroup).
    """
    delegates = node.oci_runtime.has_process_cgroup and node.cgroup_version == 2
    if delegates and kubelet.cgroup_driver is CgroupDriver.SYSTEMD:
        return f"{container_path}/container"
    return container_path

"""Cgroup paths of pods and containers, and the pod and container of a path.

Source: pkg/kubelet/cm/cgroup_manager_linux.go (NewCgroupName, ToSystemd).
"""

import posixpath
import re
from enum import Enum
from typing import Final

import msgspec

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kubelet import CgroupDriver, Kubelet
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.qos.qos_class import QosClass

CgroupName = tuple[str, ...]
"""The kubelet's internal name: components from the root, the same for both drivers."""

CUT: Final = "…"
"""Marks the end of a truncated path."""
KUBEPODS: Final = "kubepods"
_SLICE: Final = ".slice"


def compose(base: CgroupName, *components: str) -> CgroupName:
    """Build a name (`NewCgroupName`). Raises InputError if the kubelet panics: `/` or `_` in a component."""
    for component in components:
        if "/" in component or "_" in component:
            raise InputError(f'invalid character in component ["{component}"] of CgroupName')
    return base + components


def to_systemd(name: CgroupName) -> str:
    """Return the nested slices of a name. Raises InputError if no slice can have it."""
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
    """Return the cgroupfs path of a name."""
    parts = [part for part in name if part]
    cleaned = posixpath.normpath(posixpath.join(*parts)) if parts else ""
    return "/" + ("" if cleaned == "." else cleaned)


def parse_systemd(path: str) -> CgroupName:
    """Parse a slice's path; every `_` becomes `-`, because `to_systemd` writes both as `_`."""
    base = posixpath.basename(path.rstrip("/")) or "/"
    return tuple(part.replace("_", "-") for part in base.removesuffix(_SLICE).split("-"))


def parse_cgroupfs(path: str) -> CgroupName:
    """Parse a cgroupfs path."""
    components = tuple(path.removeprefix("/").split("/"))
    return () if components == ("",) else components


def literal(name: CgroupName, driver: CgroupDriver) -> str:
    """Return the path of a name under a driver."""
    return to_systemd(name) if driver is CgroupDriver.SYSTEMD else to_cgroupfs(name)


def kubepods_name(kubelet: Kubelet) -> CgroupName:
    """Return the cgroup of all pods, below --cgroup-root; without cgroupsPerQOS the root itself."""
    root = parse_cgroupfs(kubelet.cgroup_root)
    return compose(root, KUBEPODS) if kubelet.cgroups_per_qos else root


def class_name(qos: QosClass, kubelet: Kubelet) -> CgroupName:
    """Return the cgroup of a class; Guaranteed pods are directly under kubepods."""
    root = kubepods_name(kubelet)
    if qos is QosClass.GUARANTEED or not kubelet.cgroups_per_qos:
        return root
    return compose(root, qos.value.lower())


def pod_uid(pod: Pod) -> str:
    """Return the UID in the path: for a mirror pod, the static pod's from the annotation."""
    if pod.annotations.config_mirror is not None:
        return pod.annotations.config_hash or pod.annotations.config_mirror
    return pod.metadata.uid


def pod_name(uid: str, qos: QosClass, kubelet: Kubelet) -> CgroupName:
    """Return the pod's cgroup; without cgroupsPerQOS the root."""
    if not kubelet.cgroups_per_qos:
        return kubepods_name(kubelet)
    return compose(class_name(qos, kubelet), f"pod{uid}")


def container_path(pod_path: str, container_id: str, kubelet: Kubelet, runtime: str) -> str:
    """Return the container's cgroup below its pod's, as the runtime names it.

    `container_id` is `containerd://<hex>` as in status, or the hex alone; then `runtime`, the
    containerRuntimeVersion of nodeInfo, has the scheme.
    """
    hex_id = container_id.rpartition("://")[2]
    scheme = (container_id if "://" in container_id else runtime).partition(":")[0]
    prefix = {"cri-o": "crio", "docker": "docker"}.get(scheme, "cri-containerd")
    if kubelet.cgroup_driver is CgroupDriver.SYSTEMD:
        return f"{pod_path}/{prefix}-{hex_id}.scope"
    return f"{pod_path}/crio-{hex_id}" if prefix == "crio" else f"{pod_path}/{hex_id}"


class PathLevel(Enum):
    """What a cgroup contains, from the outside in."""

    ABOVE = "a cgroup that holds all pods and more"
    PODS = "all pods"
    QOS_CLASS = "the pods of a class"
    POD = "a pod"
    CONTAINER = "a container"
    OTHER = "no pods"


class PodCgroup(msgspec.Struct, frozen=True):
    """The pod and container of a path; `container_id` is "" for the pod's own cgroup.

    `qos` is the class by which the kubelet placed the pod; directly below kubepods is Guaranteed. `is_mixed`:
    the kubelet uses the systemd driver and the runtime cgroupfs, so the pod's limits do not apply. `inside`
    is the path of a cgroup in the container's.
    """

    pod_uid: str
    container_id: str
    qos: QosClass
    runtime: str = ""
    is_mixed: bool = False
    inside: str = ""

    @property
    def level(self) -> PathLevel:
        """Whether it is a container's or a pod's cgroup, or that of programs in a container."""
        if self.inside not in {"", _OF_CRUN}:
            return PathLevel.OTHER
        return PathLevel.CONTAINER if self.container_id else PathLevel.POD


_OF_CRUN: Final = "container"
"""The cgroup into which crun moves a container's processes, below the one with the limit."""
_QOS: Final = {"burstable": QosClass.BURSTABLE, "besteffort": QosClass.BEST_EFFORT, None: QosClass.GUARANTEED}
_RUNTIMES: Final = {"cri-containerd": "containerd", "crio": "cri-o", "docker": "docker", "libpod": "cri-o"}

# A UID is a UUID, or a hash of 32 digits for a static pod; other UIDs that a server stored are accepted too.
_SYSTEMD: Final = re.compile(
    r"/(?:[^/]*-)?kubepods(?:-(?P<qos>burstable|besteffort))?-pod(?P<uid>[^/:]+?)\.slice"
    r"(?:(?P<mark>[/:])(?P<rest>.*))?$"
)
_CGROUPFS: Final = re.compile(
    r"/kubepods(?:/(?P<qos>burstable|besteffort))?/pod(?P<uid>[^/]+)(?:/(?P<rest>.*))?$"
)
_SCOPE: Final = re.compile(
    r"(?:(?P<runtime>cri-containerd|crio|docker|libpod)-)?(?:conmon-)?(?P<id>[0-9a-f]{6,128})(?:\.scope)?"
)
_UID: Final = re.compile(r"[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE)
_OF_CLASS: Final = re.compile(
    r"(?:kubepods(?:\.slice)?(?:/kubepods)?[-/]|^(?:\.{2,}|…)/(?=burst|beste))(?P<qos>burstable|besteffort)?"
)
_CLASS: Final = re.compile(
    r"/(?:[^/]*-)?kubepods-(?:burstable|besteffort)\.slice$|/kubepods/(?:burstable|besteffort)$"
)
_ALL_PODS: Final = re.compile(r"/(?:[^/]*-)?kubepods(?:\.slice)?$")


def pod_cgroup(path: str) -> PodCgroup | None:
    """Return the pod, and the container if any, of a path; None outside pods.

    The last directory that a kubelet could have made counts, because a kubelet in a container (kind,
    minikube) nests its cgroups in that container's. A cgroup below a container's belongs to the container.
    In a truncated path, which ends in `…`, only whole directories count.
    """
    if path.endswith(CUT):
        path = path.rpartition("/")[0]
    systemd = _SYSTEMD.search(path)
    match = systemd or _CGROUPFS.search(path)
    if match is None:
        return None
    uid, qos = match["uid"], _QOS[match["qos"]]
    if systemd:
        uid = uid.replace("_", "-")  # UIDs have no `_`
    is_mixed = systemd is not None and systemd["mark"] == ":"
    scope, _, inside = (match["rest"] or "").partition("/")
    container = _SCOPE.fullmatch(scope.replace(":", "-") if is_mixed else scope)
    if container is None:
        return PodCgroup(uid, "", qos)
    runtime = _RUNTIMES.get(container["runtime"] or "", "")
    return PodCgroup(uid, container["id"], qos, runtime, is_mixed, inside)


def container_of_unit(unit: str) -> str:
    """Return the container ID in the name of a scope of a Kubernetes runtime, else ""."""
    scope = _SCOPE.fullmatch(unit)
    return scope["id"] if scope is not None and scope["runtime"] in {"cri-containerd", "crio"} else ""


def is_uid(text: str) -> bool:
    """Return whether the text is a UID of an API server, or a static pod's hash of 32 digits."""
    return _UID.fullmatch(text) is not None


def class_of_path(path: str) -> QosClass | None:
    """Return the class of the pod in a path, which may lack its beginning and its UID; None outside pods."""
    match = _OF_CLASS.search(path)
    return (
        _QOS[match["qos"]] if match is not None and (match["qos"] or "pod" in path[match.end() :]) else None
    )


def path_level(path: str, below: str = "") -> PathLevel:
    """Return what a cgroup contains; `/` is the machine.

    `below` is the path of a process: a pod's process shows that the cgroups above it contain pods.
    """
    pod = pod_cgroup(path)
    if pod is not None:
        return pod.level
    if _CLASS.search(path):
        return PathLevel.QOS_CLASS
    if _ALL_PODS.search(path):
        return PathLevel.PODS
    is_machine = path in {"", "/"}
    holds_pods = below.startswith(path.rstrip("/") + "/") and pod_cgroup(below) is not None
    return PathLevel.ABOVE if is_machine or holds_pods else PathLevel.OTHER


def memory_path(text: str) -> str:
    """Return the path in the hierarchy that counts memory, from /proc/PID/cgroup (cgroups(7)).

    `4:memory:/a` on v1 and hybrid systems, `0::/a` on v2. A path may contain colons.
    """
    unified = ""
    for line in text.split("\n"):
        hierarchy, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if colon and "memory" in controllers.split(","):
            return path
        if colon and hierarchy == "0" and not controllers:
            unified = path
    return unified

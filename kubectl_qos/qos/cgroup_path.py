"""Which pod and container a cgroup path belongs to: the way back from cgroup_names.py.

Sources: pkg/kubelet/cm/cgroup_manager_linux.go and pod_container_manager_linux.go (paths of pods);
containerd internal/cri/server/helpers_linux.go, CRI-O internal/config/cgmgr, cri-dockerd (names of scopes).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from kubectl_qos.k8s.kubelet import CgroupDriver
from kubectl_qos.qos.qos_class import QosClass


class Level(Enum):
    """What a cgroup holds, from the outside in."""

    ABOVE = "a cgroup that holds all pods and more"
    PODS = "all pods"
    QOS_CLASS = "the pods of a class"
    POD = "a pod"
    CONTAINER = "a container"
    OTHER = "no pods"


@dataclass(frozen=True, slots=True)
class PodCgroup:
    """What a path says; ids are empty above their level.

    A pod directly below kubepods is Guaranteed. A path names the class by which the kubelet placed the pod.
    """

    pod_uid: str
    container_id: str
    qos: QosClass
    driver: CgroupDriver
    runtime: str = ""

    @property
    def level(self) -> Level:
        """Whether it is a container's, or its pod's."""
        return Level.CONTAINER if self.container_id else Level.POD


_QOS: Final = {
    "burstable": QosClass.BURSTABLE,
    "besteffort": QosClass.BEST_EFFORT,
    None: QosClass.GUARANTEED,
}
_RUNTIMES: Final = {"cri-containerd": "containerd", "crio": "cri-o", "docker": "docker", "libpod": "cri-o"}

# A UID is a UUID or, of a static pod, a hash of 32 digits; anything else that a server stored is taken too.
_SYSTEMD: Final = re.compile(
    r"/(?:[^/]*-)?kubepods(?:-(?P<qos>burstable|besteffort))?-pod(?P<uid>[^/]+?)\.slice"
    r"(?:/(?P<rest>.*))?$"
)
_CGROUPFS: Final = re.compile(
    r"/kubepods(?:/(?P<qos>burstable|besteffort))?/pod(?P<uid>[^/]+)(?:/(?P<rest>.*))?$"
)
_SCOPE: Final = re.compile(
    r"(?:(?P<runtime>cri-containerd|crio|docker|libpod)-)?(?:conmon-)?(?P<id>[0-9a-f]{12,128})(?:\.scope)?"
)
_CLASS_ENDS: Final = re.compile(r"/(?:[^/]*-)?kubepods-(?:burstable|besteffort)\.slice$")
_CLASS_FOLDERS: Final = re.compile(r"/kubepods/(?:burstable|besteffort)$")
_ALL_PODS: Final = re.compile(r"/(?:[^/]*-)?kubepods(?:\.slice)?$")


def pod_cgroup(path: str) -> PodCgroup | None:
    """The pod, and the container if it is one, of a path; None for a cgroup that is no pod's.

    The last folder that a kubelet could have made counts: a kubelet in a container (kind, minikube) has its
    own below that of its container. A cgroup that a container made for itself is the container's.
    """
    driver, found = CgroupDriver.SYSTEMD, _SYSTEMD.search(path)
    if found is None:
        driver, found = CgroupDriver.CGROUPFS, _CGROUPFS.search(path)
    if found is None:
        return None
    uid = found["uid"]
    if driver is CgroupDriver.SYSTEMD:
        # The driver spells `-` as `_`; a UID that a server made has none of its own.
        uid = uid.replace("_", "-")
    container = _SCOPE.fullmatch((found["rest"] or "").partition("/")[0])
    if container is None:
        return PodCgroup(uid, "", _QOS[found["qos"]], driver)
    runtime = _RUNTIMES.get(container["runtime"] or "", "")
    return PodCgroup(uid, container["id"], _QOS[found["qos"]], driver, runtime)


def level_of(path: str, below: str = "") -> Level:
    """What a cgroup holds; `below` is the path of a process, which tells what is above all pods.

    `/` is the machine, which is above all.
    """
    found = pod_cgroup(path)
    if found is not None:
        return found.level
    if _CLASS_ENDS.search(path) or _CLASS_FOLDERS.search(path):
        return Level.QOS_CLASS
    if _ALL_PODS.search(path):
        return Level.PODS
    holds = path in {"", "/"} or below.startswith(path.rstrip("/") + "/")
    return Level.ABOVE if holds and (pod_cgroup(below) is not None or path in {"", "/"}) else Level.OTHER

"""Who kills for memory on a node: the kernel, the kubelet's eviction, and a userspace OOM killer where known.

A userspace killer acts before the kernel, on whole cgroups and in its own order. Sources: Talos' oom.go (in
internal/app/machined/pkg/controllers/runtime/internal/oom) and its DefaultOOM constants; systemd-oomd(8),
oomd.conf(5), systemd.resource-control(5). Not here: eviction (eviction.py) and the words (present/).
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

from kubectl_qos.k8s.kubelet import NodeSetup, Origin
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.qos.qos_class import QosClass


class UserspaceKiller(StrEnum):
    """A daemon of the node that kills before the kernel does."""

    TALOS = "talos"
    SYSTEMD_OOMD = "systemd-oomd"


class Killers(NamedTuple):
    """Who kills on a node, beside the kubelet's eviction; limits are the kernel's.

    `strict` is whether Talos takes a class after the other, as its newer releases do; `is_assumed` whether
    the userspace killer was given, not read from the node's status.
    """

    kernel: bool
    userspace: UserspaceKiller | None = None
    strict: bool = False
    is_assumed: bool = False


_TALOS: Final = re.compile(r"talos(?: \(v|-)(\d+)\.(\d+)(?:\.(\d+))?", re.ASCII | re.IGNORECASE)
_TALOS_KILLS_SINCE: Final = (1, 12, 0)
_STRICT_SINCE: Final = {12: 9, 13: 4}
"""The first patches of Talos' older minors that take a class after the other; 1.14 always does."""
_NEWEST: Final = 1 << 16


def killers(setup: NodeSetup) -> Killers:
    """By what is given, else by the operating system and its image in nodeInfo."""
    node = setup.node
    if node.is_windows:
        return Killers(kernel=False)
    given = node.userspace_oom_killer
    if given == UserspaceKiller.SYSTEMD_OOMD:
        return Killers(True, UserspaceKiller.SYSTEMD_OOMD, is_assumed=True)
    match = _TALOS.match(given) or (_TALOS.match(node.os_image) if given in {"", "talos"} else None)
    if given == "none" or (match is None and given != "talos"):
        return Killers(kernel=True)
    version = tuple(int(part or _NEWEST) for part in match.groups()) if match is not None else (_NEWEST, 0, 0)
    if version < _TALOS_KILLS_SINCE:
        return Killers(kernel=True)
    strict = version >= (1, version[1], _STRICT_SINCE.get(version[1], 0))
    from_status = (
        match is not None and match.string == node.os_image and node.origin("os_image") is Origin.API
    )
    return Killers(True, UserspaceKiller.TALOS, strict, is_assumed=not from_status)


class Candidate(NamedTuple):
    """A pod with processes: whether its cgroup has a memory.max, and its working set, None if unknown."""

    key: PodKey
    qos: QosClass
    is_limited: bool
    used_bytes: int | None


_TALOS_WEIGHTS: Final = {QosClass.BEST_EFFORT: 2, QosClass.BURSTABLE: 1, QosClass.GUARANTEED: 0}


def userspace_order(found: Killers, pods: Iterable[Candidate]) -> list[PodKey] | None:
    """The pods that the userspace killer may kill, the first one first; None where that is not known.

    Talos ranks the cgroups of pods by class and memory.current, for which the working set stands; those with
    a memory.max and Guaranteed ones are never killed. systemd-oomd goes by swap, and by reclaim, of which no
    API tells.
    """
    scores: dict[PodKey, tuple[int, int]] = {}
    for pod in pods:
        if found.userspace is not UserspaceKiller.TALOS or pod.used_bytes is None:
            return None
        weight = 0 if pod.is_limited else _TALOS_WEIGHTS[pod.qos]
        if weight and pod.used_bytes:
            scores[pod.key] = (weight if found.strict else 0, weight * pod.used_bytes)
    return sorted(scores, key=lambda key: scores[key], reverse=True)

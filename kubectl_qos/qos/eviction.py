"""The kubelet's order of eviction under node pressure. It is not the kernel's order and knows no class.

Source: pkg/kubelet/eviction/helpers.go (rankMemoryPressure, rankPIDPressure, rankDiskPressureFunc),
unchanged in shape from 1.20 to 1.36; what counts as the request changed in 1.34 (k8s/resources.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from kubectl_qos.k8s.objects import EPHEMERAL_STORAGE, MEMORY, Pod, Volume
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.resources import eviction_request

_NANO = 10**9


class EvictionStats(NamedTuple):
    """What the kubelet measured of a pod; None counts as zero, a missing PodUsage ranks first."""

    working_set_bytes: int | None = None
    processes: int | None = None
    container_disk_bytes: int = 0
    volume_disk_bytes: Mapping[str, int] = MappingProxyType({})


class EvictionRank(NamedTuple):
    """A pod's place: pods of one `position` compare equal. `over_request` is in units of 1e-9."""

    pod_index: int
    position: int
    exceeds_request: bool
    priority: int
    over_request: int | None


_Key = tuple[int, int, int, int]


def rank_memory(
    pods: Sequence[Pod],
    usage: Sequence[EvictionStats | None],
    release: Release,
    requests: Sequence[Quantity] | None = None,
) -> list[EvictionRank]:
    """First evicted first: usage over request, then lower priority, then the larger excess.

    `requests` are the pods' `eviction_request`s where the caller has them already.
    """
    if requests is None:
        requests = [eviction_request(pod, release, MEMORY) for pod in pods]
    nano = [request.nano for request in requests]

    def excess(index: int, found: EvictionStats) -> tuple[int, int]:
        over = (found.working_set_bytes or 0) * _NANO - nano[index]
        return over, over

    return _rank(pods, usage, excess)


def measured_key(over: int, priority: int, amount: int) -> tuple[int, int, int, int]:
    """What a pod with stats sorts by, the least first: over its request, then its priority, then how far."""
    return 1 if over > 0 else 2, priority, 1, -amount


def rank_disk(
    pods: Sequence[Pod], usage: Sequence[EvictionStats | None], release: Release
) -> list[EvictionRank]:
    """As for memory, with writable layers, logs and local volumes against ephemeral-storage."""

    def excess(index: int, found: EvictionStats) -> tuple[int, int]:
        pod = pods[index]
        local = [volume.name for volume in pod.spec.volumes or () if is_local(volume)]
        used = found.container_disk_bytes
        used += sum(found.volume_disk_bytes.get(name, 0) for name in local)
        over = used * _NANO - eviction_request(pod, release, EPHEMERAL_STORAGE).nano
        return over, over

    return _rank(pods, usage, excess)


def rank_pids(pods: Sequence[Pod], usage: Sequence[EvictionStats | None]) -> list[EvictionRank]:
    """First evicted first: lower priority, then more processes."""

    def excess(_: int, found: EvictionStats) -> tuple[int, int]:
        return 0, found.processes or 0

    return _rank(pods, usage, excess, missing_first=False)


def is_local(volume: Volume) -> bool:
    """Whether the volume's files lie on the node's own disk."""
    disk_empty_dir = volume.empty_dir is not None and volume.empty_dir.medium == ""
    return (
        volume.host_path is not None
        or disk_empty_dir
        or volume.config_map is not None
        or volume.git_repo is not None
    )


def _rank(
    pods: Sequence[Pod],
    usage: Sequence[EvictionStats | None],
    excess: Callable[[int, EvictionStats], tuple[int, int]],
    *,
    missing_first: bool = True,
) -> list[EvictionRank]:
    """Sort by the comparators in turn; a pod without stats comes first where stats are asked for first."""
    rows = []
    for index, (pod, found) in enumerate(zip(pods, usage, strict=True)):
        priority = pod.spec.priority or 0
        if found is None:
            key: _Key = (0 if missing_first else 1, priority, 0, 0)
            rows.append(
                (key, EvictionRank(index, 0, exceeds_request=False, priority=priority, over_request=None))
            )
            continue
        over, amount = excess(index, found)
        key = (1, priority, 1, -amount) if not missing_first else measured_key(over, priority, amount)
        rows.append((key, EvictionRank(index, 0, over > 0, priority, amount)))
    rows.sort(key=lambda row: row[0])
    ranked: list[EvictionRank] = []
    for place, (key, row) in enumerate(rows):
        same = place > 0 and rows[place - 1][0] == key
        position = ranked[-1].position if same else place + 1
        ranked.append(row._replace(position=position))
    return ranked

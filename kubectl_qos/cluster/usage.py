"""The metrics API's samples as usage by container."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_qos.k8s.metrics import PodMetrics
from kubectl_qos.k8s.usage import ContainerUsage, PodKey, PodUsage


def usage_by_pod(samples: Iterable[PodMetrics]) -> dict[PodKey, PodUsage]:
    """Usage by namespace and name; what many samples spell alike is held once."""
    held: dict[str, str] = {}
    found = {}
    for sample in samples:
        containers = {
            held.setdefault(container.name, container.name): ContainerUsage(container.usage.memory)
            for container in sample.containers
            if container.usage.memory is not None
        }
        namespace = held.setdefault(sample.metadata.namespace, sample.metadata.namespace)
        timestamp = held.setdefault(sample.timestamp, sample.timestamp)
        found[namespace, sample.metadata.name] = PodUsage(containers, timestamp=timestamp)
    return found

"""Parts that many pods have in common, held once: a list of 20,000 pods then fits into half the memory.

Not here: resource lists and label sets, which are shared while they are decoded (objects.py).
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from kubectl_qos.k8s.objects import Container, ContainerStatus, Pod

T = TypeVar("T")
_ContainerKey = tuple[str, int, int, str | None, object]


class Sharing:
    """What the pods of one list share. Pods of one workload get the very same tuple of containers."""

    __slots__ = ("_containers", "_held")

    def __init__(self) -> None:
        self._held: dict[object, object] = {}
        self._containers: dict[tuple[_ContainerKey, ...], tuple[Container, ...]] = {}

    def pod(self, pod: Pod) -> Pod:
        """An equal pod whose common parts are those of the pods before it."""
        metadata, spec, status, one = pod.metadata, pod.spec, pod.status, self._one
        return msgspec.structs.replace(
            pod,
            metadata=msgspec.structs.replace(
                metadata,
                namespace=one(metadata.namespace),
                creation_timestamp=one(metadata.creation_timestamp),
                annotations=one(metadata.annotations),
                owner_references=one(metadata.owner_references),
            ),
            spec=msgspec.structs.replace(
                spec,
                containers=self._same_containers(spec.containers),
                init_containers=self._same_containers(spec.init_containers),
                node_name=one(spec.node_name),
                priority_class_name=one(spec.priority_class_name),
                restart_policy=one(spec.restart_policy),
            ),
            status=msgspec.structs.replace(
                status,
                phase=one(status.phase),
                qos_class=one(status.qos_class),
                conditions=one(status.conditions),
                container_statuses=self._statuses(status.container_statuses),
                init_container_statuses=self._statuses(status.init_container_statuses),
            ),
        )

    def _one(self, part: T) -> T:
        """The first part that equals this one."""
        return self._held.setdefault(part, part)  # type: ignore[return-value]

    def _statuses(self, statuses: tuple[ContainerStatus, ...] | None) -> tuple[ContainerStatus, ...] | None:
        one = self._one
        return statuses and tuple(
            [
                msgspec.structs.replace(
                    status,
                    name=one(status.name),
                    state=one(status.state),
                    last_state=one(status.last_state),
                )
                for status in statuses
            ]
        )

    def _same_containers(self, containers: tuple[Container, ...] | None) -> tuple[Container, ...] | None:
        """Compared by the identity of their resources: equal quantities may be spelled differently."""
        if containers is None:
            return None
        key = tuple(
            (
                container.name,
                id(container.resources.requests),
                id(container.resources.limits),
                container.restart_policy,
                container.resize_policy,
            )
            for container in containers
        )
        return self._containers.setdefault(key, containers)

"""Interning: equal parts of pods become one object, which saves two thirds of the memory of a list.

Resource lists and label sets are shared already when they are decoded (objects.py).
"""

from collections.abc import Hashable
from sys import intern
from typing import Final, Literal, TypeVar

import msgspec

from kubectl_qos.k8s.allocation import RESIZE_IN_PROGRESS, RESIZE_PENDING
from kubectl_qos.k8s.objects import (
    DISRUPTION_TARGET,
    NO_RESOURCES,
    Container,
    ContainerState,
    ContainerStatus,
    NodeObject,
    Pod,
    PodStatus,
    ResourceRequirements,
    Volume,
)

T = TypeVar("T")

MOST_PARTS: Final = 10_000
"""With more parts than this, all are dropped: also those of deleted pods, and of pods that all differ, for
which they cost more memory than they save. Lists are sorted by name: a workload's pods still share parts."""
_CONDITIONS: Final = frozenset({DISRUPTION_TARGET, RESIZE_PENDING, RESIZE_IN_PROGRESS})
"""The conditions of pods that are kept. All conditions have times, so pods cannot share the others."""


Ids = Literal["all", "pods", "none"]
"""The ids that pods of a list keep, although pods cannot share them. IDs of containers are needed only for
cgroup paths and kernel logs. "none" also drops messages of container states, which explanations need."""


class Interner:
    """The shared parts of the pods of a list. Pods of one workload get the same tuple of containers."""

    __slots__ = ("_has_messages", "_ids", "_parts", "_uids")

    def __init__(self, *, ids: Ids = "all") -> None:
        self._ids = ids == "all"
        self._uids = self._has_messages = ids != "none"
        self._parts: dict[Hashable, object] = {}

    def pod(self, pod: Pod) -> Pod:
        """Return an equal pod that shares its parts with earlier pods."""
        if len(self._parts) > MOST_PARTS:
            self._parts.clear()
        metadata, spec, shared = pod.metadata, pod.spec, self._shared
        # Volumes with only a name here, such as claims, are not needed.
        needed_volumes = tuple([item for item in spec.volumes or () if item != Volume(name=item.name)])
        return msgspec.structs.replace(
            pod,
            metadata=msgspec.structs.replace(
                metadata,
                uid=metadata.uid if self._uids else "",
                resource_version="",
                namespace=intern(metadata.namespace),
                creation_timestamp=shared(metadata.creation_timestamp),
                annotations=shared(metadata.annotations),
                owner_references=shared(metadata.owner_references),
                managed_fields=tuple(
                    [entry for entry in metadata.managed_fields or () if entry.subresource == "resize"]
                ),
            ),
            spec=msgspec.structs.replace(
                spec,
                containers=self._containers(spec.containers),
                init_containers=self._containers(spec.init_containers),
                node_name=intern(spec.node_name),
                priority_class_name=intern(spec.priority_class_name),
                restart_policy=intern(spec.restart_policy),
                volumes=spec.volumes and shared(needed_volumes),
                os=shared(spec.os),
                node_selector=shared(spec.node_selector),
            ),
            status=self._pod_status(pod.status),
        )

    def node(self, node: NodeObject) -> NodeObject:
        """Return an equal node without the version and times that change at every heartbeat."""
        metadata = msgspec.structs.replace(node.metadata, resource_version="", managed_fields=None)
        conditions = tuple(
            item if item.is_memory_pressure else msgspec.structs.replace(item, last_heartbeat_time=None)
            for item in node.status.conditions or ()
        )
        status = msgspec.structs.replace(node.status, conditions=node.status.conditions and conditions)
        return msgspec.structs.replace(node, metadata=metadata, status=status)

    def _shared(self, part: T, key: Hashable = None) -> T:
        """Return the first part that is equal, or that has the same `key`."""
        return self._parts.setdefault(part if key is None else key, part)  # type: ignore[return-value]

    def _pod_status(self, status: PodStatus) -> PodStatus:
        shared, has_failed = self._shared, status.phase == "Failed"
        needed = [
            item
            for item in status.conditions or ()
            if item.type in _CONDITIONS
            or (item.status == "False" and (item.is_unscheduled or (has_failed and item.is_unready)))
        ]
        conditions = status.conditions and shared(tuple(needed))
        containers = self._container_statuses(status.container_statuses)
        init_containers = self._container_statuses(status.init_container_statuses)
        parts = id(conditions), id(containers), id(init_containers)
        texts = status.phase, status.qos_class, status.reason, status.message, status.resize
        others = status.ephemeral_container_statuses, status.resources, status.allocated_resources
        key = None if self._ids or any(others) else (*texts, *parts)
        if (shared_before := self._parts.get(key)) is not None:
            return shared_before  # type: ignore[return-value]
        interned = msgspec.structs.replace(
            status,
            phase=intern(status.phase),
            qos_class=intern(status.qos_class),
            conditions=conditions,
            container_statuses=containers,
            init_container_statuses=init_containers,
        )
        return interned if key is None else shared(interned, key)

    def _container_statuses(
        self, statuses: tuple[ContainerStatus, ...] | None
    ) -> tuple[ContainerStatus, ...] | None:
        if not statuses:
            return statuses
        interned = tuple(map(self._container_status, statuses))
        return interned if self._ids else self._shared(interned, (ContainerStatus, *map(id, interned)))

    def _container_status(self, status: ContainerStatus) -> ContainerStatus:
        shared, resources = self._shared, self._resources(status.resources)
        state, last_state = self._state(status.state), self._state(status.last_state)
        lists = id(status.allocated_resources), id(resources)
        key = None if self._ids else (status.name, status.restart_count, state, last_state, *lists)
        if (shared_before := self._parts.get(key)) is not None:
            return shared_before  # type: ignore[return-value]
        interned = msgspec.structs.replace(
            status,
            name=intern(status.name),
            state=shared(state),
            last_state=shared(last_state),
            resources=resources,
            container_id=status.container_id if self._ids else "",
        )
        return interned if key is None else shared(interned, key)

    def _state(self, state: ContainerState | None) -> ContainerState | None:
        if self._ids or state is None:
            return state
        ended, waiting = state.terminated, state.waiting
        if ended is not None:
            message = ended.message if self._has_messages else ""
            return ContainerState(terminated=msgspec.structs.replace(ended, container_id="", message=message))
        if waiting is None or self._has_messages:
            return state
        return ContainerState(waiting=type(waiting)(reason=waiting.reason))

    def _resources(self, resources: ResourceRequirements | None) -> ResourceRequirements | None:
        """Share requirements by the identity of their lists: equal quantities may have different texts."""
        if resources is None or resources is NO_RESOURCES:
            return resources
        return self._shared(resources, (id(resources.requests), id(resources.limits)))

    def _containers(self, containers: tuple[Container, ...] | None) -> tuple[Container, ...] | None:
        if containers is None:
            return None
        key = [
            (
                container.name,
                id(container.resources.requests),
                id(container.resources.limits),
                container.restart_policy,
                container.restart_policy_rules,
                container.resize_policy,
            )
            for container in containers
        ]
        return self._shared(containers, tuple(key))

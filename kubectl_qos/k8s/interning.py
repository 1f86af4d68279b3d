"""Parts that many pods have in common, held once: a list of 20,000 pods then fits into a third of the memory.

Not here: resource lists and label sets, which are shared while they are decoded (objects.py).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, TypeVar

import msgspec

from kubectl_qos.k8s.objects import (
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

MOST_PARTS: Final = 200_000
"""So many parts are remembered: a watch sees new ones all day, and those of lost pods must go too."""


class Interner:
    """What the pods of one list share. Pods of one workload get the very same tuple of containers.

    Without `ids` the uids of pods and containers are dropped, which nothing but cgroup paths needs and no
    two pods share.
    """

    __slots__ = ("_held", "_ids")

    def __init__(self, *, ids: bool = True) -> None:
        self._ids = ids
        self._held: dict[Hashable, object] = {}

    def pod(self, pod: Pod) -> Pod:
        """An equal pod whose common parts are those of the pods before it."""
        if len(self._held) > MOST_PARTS:
            self._held.clear()
        metadata, spec, one = pod.metadata, pod.spec, self._one
        return msgspec.structs.replace(
            pod,
            metadata=msgspec.structs.replace(
                metadata,
                uid=metadata.uid if self._ids else "",
                resource_version="",
                namespace=one(metadata.namespace),
                creation_timestamp=one(metadata.creation_timestamp),
                annotations=one(metadata.annotations),
                owner_references=one(metadata.owner_references),
            ),
            spec=msgspec.structs.replace(
                spec,
                containers=self._containers(spec.containers),
                init_containers=self._containers(spec.init_containers),
                node_name=one(spec.node_name),
                priority_class_name=one(spec.priority_class_name),
                restart_policy=one(spec.restart_policy),
                volumes=self._volumes(spec.volumes),
            ),
            status=self._pod_status(pod.status),
        )

    def node(self, node: NodeObject) -> NodeObject:
        """An equal node without what changes at every heartbeat."""
        metadata = msgspec.structs.replace(node.metadata, resource_version="")
        return msgspec.structs.replace(node, metadata=metadata)

    def _one(self, part: T) -> T:
        """The first part that equals this one."""
        return self._held.setdefault(part, part)  # type: ignore[return-value]

    def _same(self, key: Hashable, part: T) -> T:
        """The first part with this key, which names the part's own parts by their identity."""
        return self._held.setdefault(key, part)  # type: ignore[return-value]

    def _volumes(self, volumes: tuple[Volume, ...] | None) -> tuple[Volume, ...] | None:
        """The volumes of which more is known than the name: tokens and claims are nothing to a prediction."""
        return volumes and self._one(tuple([one for one in volumes if one != Volume(name=one.name)]))

    def _pod_status(self, status: PodStatus) -> PodStatus:
        one = self._one
        parts = (
            one(status.phase),
            one(status.qos_class),
            one(status.conditions),
            self._statuses(status.container_statuses),
            self._statuses(status.init_container_statuses),
        )
        phase, qos_class, conditions, containers, init_containers = parts
        found = msgspec.structs.replace(
            status,
            phase=phase,
            qos_class=qos_class,
            conditions=conditions,
            container_statuses=containers,
            init_container_statuses=init_containers,
        )
        others = status.ephemeral_container_statuses, status.resources, status.allocated_resources
        if self._ids or any(others):
            return found
        return self._same((status.reason, status.message, status.resize, *map(id, parts)), found)

    def _statuses(self, statuses: tuple[ContainerStatus, ...] | None) -> tuple[ContainerStatus, ...] | None:
        if not statuses:
            return statuses
        shared = tuple(map(self._status, statuses))
        return shared if self._ids else self._same((ContainerStatus, *map(id, shared)), shared)

    def _status(self, status: ContainerStatus) -> ContainerStatus:
        one = self._one
        resources = self._resources(status.resources)
        states = self._state(status.state), self._state(status.last_state)
        parts = one(status.name), *map(one, states), status.allocated_resources
        name, state, last_state, _ = parts
        found = msgspec.structs.replace(
            status,
            name=name,
            container_id=status.container_id if self._ids else "",
            state=state,
            last_state=last_state,
            resources=resources,
        )
        if self._ids:
            return found
        return self._same((status.restart_count, *map(id, parts), id(resources)), found)

    def _state(self, state: ContainerState | None) -> ContainerState | None:
        ended = state.terminated if state is not None else None
        if self._ids or ended is None:
            return state
        return ContainerState(terminated=msgspec.structs.replace(ended, container_id=""))

    def _resources(self, resources: ResourceRequirements | None) -> ResourceRequirements | None:
        """Compared by the identity of their lists: equal quantities may be spelled differently."""
        if resources is None or resources is NO_RESOURCES:
            return resources
        return self._same((id(resources.requests), id(resources.limits)), resources)

    def _containers(self, containers: tuple[Container, ...] | None) -> tuple[Container, ...] | None:
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
        return self._same(key, containers)

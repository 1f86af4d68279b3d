"""The pods of a node as they would be with changed manifests: for questions of the kind "what if"."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.owners import workload_of
from kubectl_qos.k8s.priority import with_system_priority


class Replaced(NamedTuple):
    """The pods with the changes, and which of those are about no pod of the node."""

    pods: tuple[Pod, ...]
    unused: tuple[Pod, ...]


def replaced(pods: Iterable[Pod], changes: Sequence[Pod]) -> Replaced:
    """Each pod as the change for it has it: one of its own name, or the template of its workload.

    A change without a namespace is about any. A pod keeps its name, node and statuses, so its usage too; its
    class is worked out anew. The number of a PriorityClass that only a server knows is kept where the class
    stays, and is 0 for another.
    """
    used: set[int] = set()
    found = []
    for pod in pods:
        place = next((place for place, change in enumerate(changes) if _is_about(change, pod)), None)
        if place is None or pod.is_terminal:
            found.append(pod)
        else:
            used.add(place)
            found.append(_changed(pod, changes[place]))
    return Replaced(tuple(found), tuple(one for place, one in enumerate(changes) if place not in used))


def _is_about(change: Pod, pod: Pod) -> bool:
    if change.namespace and pod.namespace and change.namespace != pod.namespace:
        return False
    if change.kind == pod.kind and change.name == pod.name:
        return True
    owners = {(one.kind, one.name) for one in pod.metadata.owner_references or ()}
    workload = workload_of(pod)
    return (change.kind, change.name) in owners | {(workload.kind, workload.name)}


def _changed(pod: Pod, change: Pod) -> Pod:
    spec = change.spec
    priority = spec.priority
    if priority is None and spec.priority_class_name == pod.spec.priority_class_name:
        priority = pod.spec.priority
    spec = msgspec.structs.replace(
        spec,
        node_name=pod.spec.node_name,
        priority=priority,
        ephemeral_containers=pod.spec.ephemeral_containers,
    )
    metadata = msgspec.structs.replace(pod.metadata, labels=change.metadata.labels or pod.metadata.labels)
    status = msgspec.structs.replace(pod.status, qos_class="")
    return with_system_priority(msgspec.structs.replace(pod, metadata=metadata, spec=spec, status=status))

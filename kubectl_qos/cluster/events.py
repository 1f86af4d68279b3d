"""The events of a live cluster: about one pod and the memory of its node, or all of a namespace or of all."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from kubectl_qos.cluster.http import RestClient
from kubectl_qos.cluster.pager import PAGE_SIZE, Future, Pager
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.events import (
    NODE_EVENTS_NAMESPACE,
    Event,
    EventList,
    in_order,
    is_of_node_memory,
    reported_uid,
)
from kubectl_qos.k8s.kinds import path_segment
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Missing

NODE_SECONDS: Final = 2.0
"""So long after the pod's events those of its node are waited for."""

_events = Pager(Event)


def read_pod_events(answers: RestClient, pod: Pod) -> tuple[Event, ...]:
    """The events about a pod and its node's memory, the newest last.

    The questions are those of `kubectl describe` (k8s.io/kubectl/pkg/describe/describe.go searchEvents), in
    pages; the node's are asked for meanwhile, and left out where they cannot be had soon.

    Raises QosError where the pod's cannot be had.
    """
    of_node: list[Event] = []
    meanwhile = Future(lambda: of_node.extend(_of_node(answers, pod.node_name)))
    of_pod = _of_pod(answers, pod)
    # Not for its result: a refusal is nothing to the pod's own events.
    meanwhile.wait(NODE_SECONDS)
    return in_order((*of_pod, *of_node))


def read_events(answers: RestClient, namespace: str | None) -> EventList:
    """All events of a namespace, or of all, and those of nodes; what cannot be had is said in the result."""
    try:
        found = _asked(answers, namespace, {})
    except QosError as error:
        return EventList(of_nodes=False, missing=_missing("events", error, namespace))
    if namespace in {None, NODE_EVENTS_NAMESPACE}:
        return EventList(in_order(found))
    try:
        of_nodes = _asked(answers, NODE_EVENTS_NAMESPACE, {"involvedObject.kind": "Node"})
    except QosError as error:
        missing = _missing("the nodes' events", error, NODE_EVENTS_NAMESPACE)
        return EventList(in_order(found), of_nodes=False, missing=missing)
    return EventList(in_order((*found, *of_nodes)))


def _missing(what: str, error: QosError, namespace: str | None) -> Missing:
    remedy = error.hint
    if isinstance(error, ApiError) and error.status == HTTPStatus.FORBIDDEN:
        where = f"in the namespace {namespace}" if namespace is not None else "in all namespaces"
        remedy = f"grant list on events {where}, as docs/rbac/events.yaml does"
    return Missing(f"the list of {what}", str(error), remedy)


def _of_pod(answers: RestClient, pod: Pod) -> list[Event]:
    uid = reported_uid(pod)
    fields = {"involvedObject.name": pod.name}
    fields |= {"involvedObject.uid": uid} if uid else {"involvedObject.kind": pod.kind}
    try:
        return _asked(answers, pod.namespace, fields)
    except ApiError as error:
        if error.status == HTTPStatus.FORBIDDEN:
            error.hint = (
                f"grant list on events in the namespace {pod.namespace}, as docs/rbac/events.yaml does"
            )
        raise


def _of_node(answers: RestClient, name: str) -> list[Event]:
    """A kubelet names its node by the name alone, a controller by the uid too: asked for by the name."""
    if not name:
        return []
    fields = {"involvedObject.kind": "Node", "involvedObject.name": name}
    return [
        event for event in _asked(answers, NODE_EVENTS_NAMESPACE, fields) if is_of_node_memory(event, name)
    ]


def _asked(answers: RestClient, namespace: str | None, fields: dict[str, str]) -> list[Event]:
    query = {"fieldSelector": ",".join(f"{name}={value}" for name, value in fields.items())} if fields else {}
    place = f"namespaces/{path_segment(namespace)}/events" if namespace is not None else "events"
    path = f"/api/v1/{place}"
    # No server keeps events in its watch cache.
    return _events.fetch(answers, path, query, consistent=True, page_size=PAGE_SIZE).items

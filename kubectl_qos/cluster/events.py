"""The events of a live cluster: about one pod and the memory of its node, or all of a namespace or of all."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from kubectl_qos.cluster.background import Future
from kubectl_qos.cluster.http import RestClient
from kubectl_qos.cluster.kube_api import list_path
from kubectl_qos.cluster.pager import Pager
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.events import (
    NODE_EVENTS_NAMESPACE,
    Event,
    EventList,
    in_order,
    is_of_node_memory,
    reported_uid,
)
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Missing

NODE_SECONDS: Final = 2.0
"""How long the node's events are waited for after the pod's."""

_events = Pager(Event)


def read_pod_events(client: RestClient, pod: Pod) -> tuple[Event, ...]:
    """The events about a pod and its node's memory, the newest last.

    The requests are those of `kubectl describe` (k8s.io/kubectl/pkg/describe/describe.go searchEvents), in
    pages. The node's events are read at the same time, and left out where they fail or come late.

    Raises QosError where the pod's cannot be read.
    """
    of_node: list[Event] = []
    node_events = Future(lambda: of_node.extend(_of_node(client, pod.node_name)))
    uid = reported_uid(pod)
    fields = {"involvedObject.name": pod.name}
    fields |= {"involvedObject.uid": uid} if uid else {"involvedObject.kind": pod.kind}
    try:
        of_pod = _list(client, pod.namespace, fields)
    except ApiError as error:
        error.hint = _remedy(error, pod.namespace)
        raise
    node_events.wait(NODE_SECONDS)
    return in_order((*of_pod, *of_node))


def read_events(client: RestClient, namespace: str | None) -> EventList:
    """All events of a namespace, or of all, and those of nodes; the result names what is missing."""
    try:
        events = _list(client, namespace, {})
    except QosError as error:
        return EventList(of_nodes=False, missing=_missing("events", error, namespace))
    if namespace in {None, NODE_EVENTS_NAMESPACE}:
        return EventList(in_order(events))
    try:
        of_nodes = _list(client, NODE_EVENTS_NAMESPACE, {"involvedObject.kind": "Node"})
    except QosError as error:
        missing = _missing("the nodes' events", error, NODE_EVENTS_NAMESPACE)
        return EventList(in_order(events), of_nodes=False, missing=missing)
    return EventList(in_order((*events, *of_nodes)))


def _missing(what: str, error: QosError, namespace: str | None) -> Missing:
    return Missing(f"the list of {what}", str(error), _remedy(error, namespace))


def _remedy(error: QosError, namespace: str | None) -> str:
    if not isinstance(error, ApiError) or error.status != HTTPStatus.FORBIDDEN:
        return error.hint
    where = f"in the namespace {namespace}" if namespace is not None else "in all namespaces"
    return f"grant list on events {where}, as docs/rbac/events.yaml does"


def _of_node(client: RestClient, name: str) -> list[Event]:
    """A kubelet names its node by the name alone, a controller by the uid too: selected by the name."""
    if not name:
        return []
    fields = {"involvedObject.kind": "Node", "involvedObject.name": name}
    return [event for event in _list(client, NODE_EVENTS_NAMESPACE, fields) if is_of_node_memory(event, name)]


def _list(client: RestClient, namespace: str | None, fields: dict[str, str]) -> list[Event]:
    query = {"fieldSelector": ",".join(f"{name}={value}" for name, value in fields.items())}
    # No server keeps events in its watch cache.
    return _events.list_all(client, list_path("events", namespace), query, consistent=True).items

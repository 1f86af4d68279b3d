"""The requests for predictions, usage, versions, completion, events and permissions, as decoded values.

The metrics API returns the working sets of all pods in one answer. Only the kubelets' summaries have swap,
which the kernel counts, the number of processes of a pod, and pressure stall information. They need the node
proxy, which allows far more than reading (docs/rights.md).

Permissions are SelfSubjectAccessReviews: k8s.io/api/authorization/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from http import HTTPStatus
from itertools import starmap
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from kubectl_qos.cluster.background import Future, run_all
from kubectl_qos.cluster.documents import metadata_text
from kubectl_qos.cluster.http import (
    Pager,
    Progress,
    RestClient,
    decode_body,
    decode_error,
    read_body,
    retrying,
)
from kubectl_qos.errors import ApiError, QosError, ServerUnreachable
from kubectl_qos.k8s.events import (
    NODE_EVENTS_NAMESPACE,
    Event,
    EventList,
    in_order,
    is_of_node_memory,
    last_shortages,
    reported_uid,
    system_ooms,
)
from kubectl_qos.k8s.interning import Ids, Interner
from kubectl_qos.k8s.kinds import api_path, path_segment
from kubectl_qos.k8s.kubelet import Kubelet, kubelet_from_configz
from kubectl_qos.k8s.objects import JsonDecoder, NodeObject, Pod
from kubectl_qos.k8s.rbac import AccessReview, Permission
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.selectors import field_term
from kubectl_qos.k8s.snapshot import NO_USAGE, Missing, Usage
from kubectl_qos.k8s.usage import (
    NodeMetrics,
    PodKey,
    PodMetrics,
    PodUsage,
    Pressure,
    Summary,
    sampled_by_node,
    usage_by_node,
    usage_by_pod,
    usage_from_summary,
)
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.client import REVIEWS, Connection

MAX_CONFIGZ_NODES: Final = 8
"""With more nodes, no configurations are read, because each takes a request."""
REVIEWS_AT_ONCE: Final = 8
"""Fewer than the connections of the pool."""

_METRICS: Final = "/apis/metrics.k8s.io"
_METRICS_VERSIONS: Final = ("v1", "v1beta1")
_AS_TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
_SOFTWARE_COLUMNS: Final = ("Version", "OS-Image", "Kernel-Version", "Container-Runtime")

Named = TypeVar("Named", Pod, NodeObject)


class _TableColumn(msgspec.Struct, frozen=True):
    name: str = ""


class _TableRow(msgspec.Struct, frozen=True):
    cells: list[Any] = []


class ServerTable(msgspec.Struct, frozen=True, rename="camel"):
    """metav1.Table: rows of cells, as the server formats them for kubectl."""

    column_definitions: list[_TableColumn] = []
    rows: list[_TableRow] | None = None

    def objects(self) -> Iterator[dict[str, str]]:
        """Yield the cells of each object by the names of their columns."""
        names = [column.name for column in self.column_definitions]
        for row in self.rows or ():
            yield dict(zip(names, map(str, row.cells), strict=False))


class NodeSoftware(NamedTuple):
    """The software of one node; empty texts are unknown."""

    kubelet: str
    os_image: str
    kernel: str
    runtime: str

    @classmethod
    def from_node(cls, node: NodeObject) -> NodeSoftware:
        """Read the node's status."""
        info = node.status.node_info
        return cls(info.kubelet_version, info.os_image, info.kernel_version, info.container_runtime_version)


_nodes = Pager(NodeObject)
_metrics = Pager(PodMetrics)
_node_metrics = Pager(NodeMetrics)
_pod = JsonDecoder(Pod)
_node = JsonDecoder(NodeObject)
_summary = JsonDecoder(Summary)
_object = msgspec.json.Decoder(dict[str, Any])
_table = msgspec.json.Decoder(ServerTable)


class KubeApi:
    """An API server and its watch cache; `ids` says which ids of listed pods are kept."""

    def __init__(self, connection: Connection, *, ids: Ids = "all", retries: bool = True) -> None:
        self.client = RestClient(connection, retries=retries)
        self._connection = connection
        self.ids = ids
        self._metrics_versions: Sequence[str] = _METRICS_VERSIONS

    def version(self) -> dict[str, Any]:
        """Return the server's version: `gitVersion`, `platform` and more."""
        return self._plain("/version", "the version")

    def server_version(self) -> str:
        """Return the server's version such as `v1.36.2`, empty if it cannot be read."""
        try:
            return str(self.version().get("gitVersion", ""))
        except QosError:
            return ""

    def pods(
        self,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        progress: Progress | None = None,
    ) -> list[Pod]:
        """List the pods of a namespace, or of the whole cluster."""
        path = list_path("pods", namespace)
        query = {"labelSelector": label_selector, "fieldSelector": field_selector}
        pager = Pager(Pod, Interner(ids=self.ids).pod)
        return pager.list_all(self.client, path, query, progress=progress).items

    def pod(self, namespace: str, name: str) -> Pod:
        """Read one pod."""
        return self._named(_pod, api_path("Pod", namespace, name), "pod", name)

    def nodes(self) -> list[NodeObject]:
        """List all nodes."""
        return _nodes.list_all(self.client, "/api/v1/nodes", {}).items

    def node(self, name: str) -> NodeObject:
        """Read one node."""
        return self._named(_node, f"/api/v1/nodes/{path_segment(name)}", "node", name)

    def node_software(self) -> list[NodeSoftware]:
        """Read the software of each node: four columns instead of whole nodes."""
        table = self.table("/api/v1/nodes", {"resourceVersion": "0"})
        return [
            NodeSoftware(*(cells.get(name, "") for name in _SOFTWARE_COLUMNS)) for cells in table.objects()
        ]

    def table(self, path: str, query: Mapping[str, str]) -> ServerTable:
        """Read one page of a list as the table that kubectl prints."""
        query = {**query, "includeObject": "None"}
        response = self._connection.request("GET", path, query, accept=_AS_TABLE)
        return decode_body(_table, read_body(response, self._connection.server), f"the table of {path}")

    def configz(self, node: str) -> dict[str, Any]:
        """Read the configuration of a node's kubelet, through the node proxy."""
        path = f"/api/v1/nodes/{path_segment(node)}/proxy/configz"
        return self._plain(path, f"the configuration of {node}'s kubelet")

    def summary(self, node: str) -> Summary:
        """Read the measurements of a node's kubelet, through the node proxy."""
        path = f"/api/v1/nodes/{path_segment(node)}/proxy/stats/summary"
        return decode_body(_summary, self.client.whole(path, {}), f"the summary of {node}'s kubelet")

    def node_metrics(self) -> Iterator[NodeMetrics]:
        """List the metrics API's samples of whole nodes, in the version that `pod_metrics` found."""
        path = f"{_METRICS}/{self._metrics_versions[0]}/nodes"
        return (sample for items, *_ in _node_metrics.stream(self.client, path, {}) for sample in items)

    def pod_metrics(self, namespace: str | None = None) -> Iterator[PodMetrics]:
        """List the samples of the metrics API, in the newest version of the server; there are no pages."""
        while True:
            version, *older = self._metrics_versions
            path = list_path("pods", namespace, f"{_METRICS}/{version}")
            try:
                for items, *_ in _metrics.stream(self.client, path, {}):
                    yield from items
            except ApiError as error:
                if error.status != HTTPStatus.NOT_FOUND or not older:
                    raise
                self._metrics_versions = older
            else:
                return

    def _plain(self, path: str, what: str) -> dict[str, Any]:
        return decode_body(_object, self.client.whole(path, {}), what)

    def _named(self, decoder: JsonDecoder[Named], path: str, kind: str, name: str) -> Named:
        what = f"{kind} {name}"
        item = decode_body(decoder, self.client.whole(path, {}), what)
        if item.metadata.name != name:
            raise decode_error(what, ValueError(f"it is about {item.metadata.name or 'another object'}"))
        return item


class KubeletConfigs:
    """The kubelets' configurations, each read once."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._tried: set[str] = set()
        self._by_node: dict[str, Kubelet] = {}
        self._forbidden = False

    @property
    def by_node(self) -> Mapping[str, Kubelet]:
        """Return what has been read so far, by node name."""
        return dict(self._by_node)

    def read(self, nodes: Mapping[str, NodeObject]) -> None:
        """Read the configurations of these nodes, each node once; none if there are too many nodes."""
        if len(nodes) > MAX_CONFIGZ_NODES:
            log.log(
                log.DECISIONS, f"configz is not read: {len(nodes)} nodes are more than {MAX_CONFIGZ_NODES}"
            )
            return
        for name, node in nodes.items():
            if name in self._tried or self._forbidden:
                continue
            self._tried.add(name)
            release = Release.of_kubelet(node.status.node_info.kubelet_version)
            try:
                self._by_node[name] = kubelet_from_configz(self._api.configz(name), release)
            except (QosError, msgspec.ValidationError, ValueError) as error:
                self._forbidden = isinstance(error, ApiError) and error.status == HTTPStatus.FORBIDDEN
                log.log(log.DECISIONS, f"configz of {name} is not known: {error}")
            else:
                log.log(log.DECISIONS, f"configz of {name} is read")


def list_path(resource: str, namespace: str | None = None, group: str = "/api/v1") -> str:
    """Return the path of a list in a namespace, or in all."""
    inside = "" if namespace is None else f"/namespaces/{path_segment(namespace)}"
    return f"{group}{inside}/{resource}"


def read_object(client: RestClient, kind: str, namespace: str, name: str) -> dict[str, Any]:
    """Read a whole pod or workload as plain JSON with its kind. Raises QosError for anything else."""
    what = f"{kind} {name}"
    raw = decode_body(_object, client.whole(api_path(kind, namespace, name), {}), what)
    check_object(raw, kind, name, what)
    return raw


def check_object(raw: Mapping[str, Any], kind: str, name: str, what: str) -> None:
    """Raise QosError for an object of another kind or name."""
    actual = str(raw.get("kind") or ""), metadata_text(raw, "name")
    if actual != (kind, name):
        about = " ".join(filter(None, actual)) or "something else"
        raise decode_error(what, ValueError(f"it is about {about}"))


LOG_LINES: Final = 200
MAX_LOG_BYTES: Final = 1 << 20


def read_log(client: RestClient, pod: Pod, container: str, *, is_previous: bool) -> str:
    """Read the last lines of a container's log, as `kubectl logs` requests them. Raises QosError."""
    query = {"container": container, "tailLines": str(LOG_LINES), "limitBytes": str(MAX_LOG_BYTES)}
    if is_previous:
        query["previous"] = "true"
    try:
        log_bytes = client.whole(f"{api_path('Pod', pod.namespace, pod.name)}/log", query)
        return log_bytes.decode(errors="replace")
    except ApiError as error:
        if error.status == HTTPStatus.FORBIDDEN:
            where = f"in the namespace {pod.namespace}"
            error.hint = f"grant get on pods/log {where}, as docs/rbac/logs.yaml does"
        raise


NODE_SECONDS: Final = 2.0
"""How long to wait for the node's events after the pod's."""

_events = Pager(Event)


def read_pod_events(client: RestClient, pod: Pod) -> tuple[Event, ...]:
    """Read the events about a pod and its node's memory, the newest last. Raises QosError.

    Late events of the node are left out. Source: k8s.io/kubectl/pkg/describe/describe.go (searchEvents).
    """
    of_node: list[Event] = []
    pending = Future(lambda: of_node.extend(_node_events(client, pod.node_name)))
    uid = reported_uid(pod)
    fields = {"involvedObject.name": pod.name}
    fields |= {"involvedObject.uid": uid} if uid else {"involvedObject.kind": pod.kind}
    try:
        of_pod = _list_events(client, pod.namespace, fields)
    except ApiError as error:
        error.hint = _events_remedy(error, pod.namespace)
        raise
    pending.wait(NODE_SECONDS)
    return in_order((*of_pod, *of_node))


def read_events(client: RestClient, namespace: str | None) -> EventList:
    """Read the events of a namespace, or of all, and of nodes; the result says what is missing."""

    def listed(what: str, where: str | None, fields: dict[str, str]) -> tuple[list[Event], Missing | None]:
        try:
            return _list_events(client, where, fields), None
        except QosError as error:
            return [], Missing(f"the list of {what}", str(error), _events_remedy(error, where))

    events, missing = listed("events", namespace, {})
    if missing is None and namespace not in {None, NODE_EVENTS_NAMESPACE}:
        fields = {"involvedObject.kind": "Node"}
        of_nodes, missing = listed("the nodes' events", NODE_EVENTS_NAMESPACE, fields)
        events += of_nodes
    return EventList(in_order(events), of_nodes=missing is None, missing=missing)


def _events_remedy(error: QosError, namespace: str | None) -> str:
    if not isinstance(error, ApiError) or error.status != HTTPStatus.FORBIDDEN:
        return error.hint
    where = f"in the namespace {namespace}" if namespace is not None else "in all namespaces"
    return f"grant list on events {where}, as docs/rbac/events.yaml does"


def _node_events(client: RestClient, name: str) -> list[Event]:
    """Read a node's events, selected by its name: a kubelet's events lack the node's uid."""
    fields = {"involvedObject.kind": "Node", "involvedObject.name": name}
    events = _list_events(client, NODE_EVENTS_NAMESPACE, fields) if name else ()
    return [event for event in events if is_of_node_memory(event, name)]


def _list_events(client: RestClient, namespace: str | None, fields: dict[str, str]) -> list[Event]:
    query = {"fieldSelector": ",".join(starmap(field_term, fields.items()))}
    # No server keeps events in its watch cache.
    return _events.list_all(client, list_path("events", namespace), query, revision="").items


class _Attributes(msgspec.Struct, frozen=True, omit_defaults=True):
    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    namespace: str = ""


class _ReviewStatus(msgspec.Struct, rename="camel"):
    allowed: bool
    reason: str = ""
    evaluation_error: str = ""


class _Review(msgspec.Struct):
    status: _ReviewStatus


_review = msgspec.json.Decoder(_Review)


def review_access(
    connection: Connection, permissions: Iterable[Permission], namespace: str | None
) -> dict[Permission, AccessReview]:
    """Ask the server about each permission, in this namespace (None: all) if it is namespaced.

    A server that refuses one review refuses all, so the first is sent alone. Raises QosError.
    """
    requested = {
        item: _Attributes(
            item.verb, item.resource, item.group, item.subresource, item.namespace(namespace) or ""
        )
        for item in permissions
    }
    first, *others = dict.fromkeys(requested.values())
    try:
        reviews: dict[_Attributes, AccessReview | QosError] = {first: _review_one(connection, first)}
    except ServerUnreachable:
        raise
    except QosError as error:
        if isinstance(error, ApiError) and error.status == HTTPStatus.UNAUTHORIZED:
            raise
        return dict.fromkeys(requested, AccessReview(None, str(error)))
    reviews |= run_all(partial(_review_one, connection), others, at_once=REVIEWS_AT_ONCE)
    answers = {permission: reviews[attributes] for permission, attributes in requested.items()}
    return {
        permission: AccessReview(None, str(answer)) if isinstance(answer, QosError) else answer
        for permission, answer in answers.items()
    }


def _review_one(connection: Connection, attributes: _Attributes) -> AccessReview:
    request = msgspec.json.encode(
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
    )

    def send() -> bytes:
        return read_body(connection.request("POST", REVIEWS, body=request), connection.server)

    status = decode_body(_review, retrying(send, "the access review"), "the access review").status
    return AccessReview(status.allowed, "; ".join(filter(None, (status.reason, status.evaluation_error))))


NODES_AT_ONCE: Final = 8

_GRANT_PROXY: Final = (
    "grant get on nodes/proxy, which also allows commands in any container; or --usage=metrics"
)


class UsageChoice(StrEnum):
    """Where to read usage from."""

    METRICS = "metrics"
    SUMMARY = "summary"
    PROMETHEUS = "prometheus"
    NONE = "none"


UsageReader = Callable[[], Usage]
"""Reads usage elsewhere than from the cluster, such as from Prometheus."""


class UsageSource(NamedTuple):
    """Where usage is read: from a cluster's APIs, or from elsewhere by a `reader`.

    `shortages`: also read from events when memory was last short on nodes, which only distances need.
    """

    api: KubeApi
    choice: UsageChoice
    reader: UsageReader | None = None
    shortages: bool = False

    def read(
        self, namespace: str | None, nodes: Collection[str], of: Container[PodKey] | None = None
    ) -> Usage:
        """Read the usage of all pods, which ranks need, or of `namespace` if other namespaces are forbidden.

        With `of`, only these pods are kept from sources that return pods of all nodes.
        """
        api, by_metrics = self.api, self.choice is UsageChoice.METRICS
        if self.choice is UsageChoice.NONE:
            usage = NO_USAGE
        elif self.reader is not None:
            usage = self.reader()
            if of is not None:
                usage = usage._replace(by_pod={key: pod for key, pod in usage.by_pod.items() if key in of})
            if not usage.by_pod and by_metrics:
                usage = _from_metrics(api, namespace, of)._replace(missing=usage.missing)
        else:
            usage = _from_metrics(api, namespace, of) if by_metrics else _from_summaries(api, nodes)
        gap = usage.missing
        why = f", and not known: {gap.what}: {gap.why}" if gap is not None else ""
        log.log(log.DECISIONS, f"usage from {self.choice}: of {len(usage.by_pod)} pods{why}")
        return self._with_shortages(usage) if self.shortages and usage.by_pod else usage

    def _with_shortages(self, usage: Usage) -> Usage:
        fields = {"involvedObject.kind": "Node", "type": "Warning"}
        try:
            events = _list_events(self.api.client, NODE_EVENTS_NAMESPACE, fields)
        except QosError as error:
            log.log(log.DECISIONS, f"the events of nodes are not known: {error}")
            return usage
        return usage._replace(shortages=last_shortages(events), system_ooms=system_ooms(events))


def _from_metrics(api: KubeApi, namespace: str | None, of: Container[PodKey] | None) -> Usage:
    try:
        return _with_nodes(api, Usage(usage_by_pod(api.pod_metrics(), of)))
    except ApiError as error:
        if error.status in {HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE}:
            remedy = "install metrics-server; without it the order is by oom_score_adj alone"
            return Usage({}, Missing("memory usage", "Metrics API not available", remedy))
        if error.status != HTTPStatus.FORBIDDEN or namespace is None:
            return Usage({}, Missing("memory usage", str(error), _grant_metrics("in all namespaces")))
        grant = _grant_metrics("in all namespaces")
        of_others = Missing("the memory usage of other namespaces", str(error), grant)
    except QosError as error:
        return Usage({}, Missing("memory usage", str(error)))
    try:
        return _with_nodes(api, Usage(usage_by_pod(api.pod_metrics(namespace), of), of_others))
    except QosError as error:
        remedy = ""
        if isinstance(error, ApiError) and error.status == HTTPStatus.FORBIDDEN:
            remedy = _grant_metrics(f"in the namespace {namespace}, or in all")
        return Usage({}, Missing("memory usage", str(error), remedy))


def _with_nodes(api: KubeApi, usage: Usage) -> Usage:
    """Add the usage of whole nodes, if it can be read; without it distances are upper bounds."""
    try:
        samples = list(api.node_metrics())
        return usage._replace(by_node=usage_by_node(samples), node_sampled=sampled_by_node(samples))
    except QosError as error:
        log.log(log.DECISIONS, f"the usage of whole nodes is not known: {error}")
        return usage


def _grant_metrics(where: str) -> str:
    return f"grant list on pods in the API group metrics.k8s.io {where}"


def _from_summaries(api: KubeApi, nodes: Collection[str]) -> Usage:
    first, *others = sorted(nodes) or [""]
    if not first:
        return NO_USAGE
    summaries = run_all(api.summary, [first], at_once=1)
    refused = summaries[first]
    if isinstance(refused, ApiError) and refused.status == HTTPStatus.FORBIDDEN:
        return Usage({}, Missing("memory usage", str(refused), _GRANT_PROXY))
    summaries |= run_all(api.summary, others, at_once=NODES_AT_ONCE)
    by_pod: dict[PodKey, PodUsage] = {}
    pressure: dict[str, Pressure] = {}
    by_node: dict[str, int] = {}
    node_swap: dict[str, int] = {}
    failed: dict[str, QosError] = {}
    for node, summary in summaries.items():
        if isinstance(summary, QosError):
            failed[node] = summary
        else:
            by_pod |= usage_from_summary(summary)
            if summary.node.working_set_bytes is not None:
                by_node[node] = summary.node.working_set_bytes
            if summary.node.pressure is not None:
                pressure[node] = summary.node.pressure
            if summary.node.swap_capacity_bytes is not None:
                node_swap[node] = summary.node.swap_capacity_bytes
    missing = None
    if failed:
        more = f" and {len(failed) - 1} more nodes" if len(failed) > 1 else ""
        missing = Missing(f"the memory usage of {min(failed)}{more}", str(failed[min(failed)]))
    return Usage(by_pod, missing, pressure, by_node, node_swap=node_swap)

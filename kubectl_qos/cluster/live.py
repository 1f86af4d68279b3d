"""A live cluster as a source; a snapshot names what is missing, such as pods that the user may not list.

Also what a change of an object depends on: its owners, and quotas and limits of its namespace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kubectl_qos.cluster import kube_api
from kubectl_qos.cluster.background import Future
from kubectl_qos.cluster.documents import metadata_text
from kubectl_qos.cluster.http import UNDECODABLE, Pager, Progress, RestClient, decode_error
from kubectl_qos.cluster.informer import POLL_SECONDS, Informer, no_capacity, no_neighbours
from kubectl_qos.cluster.kube_api import KubeApi, KubeletConfigs, UsageChoice, UsageReader, UsageSource
from kubectl_qos.cluster.source import Source, UpdateStream
from kubectl_qos.edit.related import (
    AUTOSCALERS,
    OWNER,
    RELATED,
    Owner,
    RelatedKind,
    RelatedObjects,
    parse_owner,
    walk_owners,
)
from kubectl_qos.errors import ApiError, InputError, QosError
from kubectl_qos.k8s.events import Event, EventList
from kubectl_qos.k8s.interning import Ids
from kubectl_qos.k8s.kinds import WORKLOADS, is_workload, path_segment, pod_from_workload
from kubectl_qos.k8s.kubelet import Kubelet
from kubectl_qos.k8s.objects import Json, NodeObject, Pod
from kubectl_qos.k8s.selectors import field_term
from kubectl_qos.k8s.snapshot import (
    NO_OVERRIDES,
    NO_USAGE,
    Arrived,
    Missing,
    NodeOverrides,
    Scope,
    Snapshot,
    Usage,
)
from kubectl_qos.k8s.usage import usage_by_pod
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.client import Connection

if TYPE_CHECKING:
    from kubectl_qos.cluster.writer import Writer

MAX_NODES_ONE_BY_ONE: Final = 8
"""The pods of more nodes than this are read with all pods of the cluster, not node by node."""

CONFIGZ_SECONDS: Final = 2.0
"""How long to wait for kubelets' configurations; then they are assumed."""


class LiveSource(Source):
    """The cluster behind a connection.

    `ids` says which ids listed pods keep; `configz` reads the kubelets' configurations, which a ranking does
    not need. A `reader` reads usage elsewhere than from the cluster. What cannot be watched is read every
    `refresh_seconds`, 15 if None. Without `may_write` there is no writer. `show_first` gets the pods of a
    whole cluster that have arrived so far. With `watch_seconds` snapshots are taken at intervals and the last
    is returned; `add_growth` adds how memory grew meanwhile.
    """

    is_live = True

    def __init__(  # noqa: PLR0913 - what a cluster can be read and written with
        self,
        connection: Connection,
        *,
        usage: UsageChoice = UsageChoice.METRICS,
        reader: UsageReader | None = None,
        ids: Ids = "all",
        configz: bool = True,
        overrides: NodeOverrides = NO_OVERRIDES,
        progress: Progress | None = None,
        refresh_seconds: float | None = None,
        may_write: bool = False,
        show_first: Callable[[Snapshot, Arrived], bool] | None = None,
        watch_seconds: int = 0,
        add_growth: Callable[[Snapshot], Snapshot] = lambda snapshot: snapshot,
    ) -> None:
        self._connection = connection
        self._api = KubeApi(connection, ids=ids)
        self._usage = UsageSource(self._api, usage, reader, shortages=configz)
        self._configs = KubeletConfigs(self._api) if configz else None
        self._overrides = overrides
        self._progress = progress
        self._refresh_seconds = refresh_seconds
        self._may_write = may_write
        self._show_first = show_first
        self._watch_seconds, self._add_growth = watch_seconds, add_growth

    @property
    def title(self) -> str:
        """Return the context's name."""
        return self._connection.context

    @property
    def default_namespace(self) -> str | None:
        """Return the context's namespace, or that of --namespace."""
        return self._connection.namespace

    def now(self) -> datetime:
        """Return the present by the server's clock."""
        return self._api.client.now()

    def snapshot(self, scope: Scope) -> Snapshot:
        """Read pods, nodes and usage. Raises QosError if the requested pods cannot be listed."""
        snapshot, left = self._read(scope), float(self._watch_seconds)
        while left > 0:
            self._add_growth(snapshot)
            time.sleep(min(left, POLL_SECONDS))
            left -= POLL_SECONDS
            snapshot = self._read(scope)
        return self._add_growth(snapshot) if self._watch_seconds else snapshot

    def _read(self, scope: Scope) -> Snapshot:
        missing: list[Missing] = []
        at_once = self._usage.choice in {UsageChoice.METRICS, UsageChoice.PROMETHEUS}
        metrics = Future(lambda: self._usage.read(scope.namespace, ())) if at_once else None
        progress, every_node = self._progress, None
        if self._show_first is not None and scope == Scope():
            every_node = Future(self._api.nodes)
            progress = self._first_pods(self._show_first, every_node, metrics)
        pods = self._pods(scope, missing, progress)
        names = {pod.node_name for pod in pods if pod.node_name}
        nodes = self._nodes(scope, names, missing, every_node)
        kubelets = self._kubelets(nodes)
        usage = NO_USAGE
        if pods:
            usage = metrics.result() if metrics is not None else self._usage.read(scope.namespace, names)
        if usage.missing is not None:
            missing.append(usage.missing)
        snapshot = Snapshot(
            pods=tuple(pods),
            nodes=nodes,
            kubelets=kubelets,
            missing=tuple(missing),
            overrides=self._overrides,
            server_version="" if nodes else self._api.server_version(),
        )
        return snapshot.with_usage(usage).with_missing_releases()

    def follow(self, scope: Scope) -> UpdateStream:
        """Follow the scope by watches."""
        return Informer(
            scope,
            usage=self._usage,
            configs=self._configs,
            default_namespace=self.default_namespace,
            overrides=self._overrides,
            refresh_seconds=self._refresh_seconds,
        )

    def members(self, kind: str, namespace: str, name: str) -> Snapshot:
        """Read a pod, or the pods with the labels of a workload's template, and their usage."""
        pods = [self.find(kind, namespace, name)]
        if kind != "Pod":
            labels = ",".join(f"{key}={value}" for key, value in (pods[0].metadata.labels or {}).items())
            pods = self._api.pods(namespace=namespace, label_selector=labels)
        try:
            if self._usage.choice is UsageChoice.SUMMARY:
                usage = self._usage.read(None, {pod.node_name for pod in pods} - {""}).by_pod
            else:
                usage = usage_by_pod(self._api.pod_metrics(namespace))
        except QosError:
            usage = {}
        return Snapshot(pods=tuple(pods), usage=usage)

    def find(self, kind: str, namespace: str | None, name: str) -> Pod:
        """Read a pod, or the pod of a workload's template. Raises ApiError (NotFound), InputError."""
        namespace = namespace or self.default_namespace or "default"
        if kind == "Pod":
            return self._api.pod(namespace, name)
        if kind not in WORKLOADS:
            raise InputError(f"{kind} has no pod template")
        return pod_from_workload(kind, kube_api.read_object(self._api.client, kind, namespace, name))

    def has(self, resource: str, name: str) -> bool:
        """Return whether there is a node or namespace; True also if this user may not ask."""
        try:
            self._api.client.whole(f"/api/v1/{resource}/{path_segment(name)}", {})
        except ApiError as error:
            return error.reason != "NotFound"
        return True

    def raw(self, pod: Pod) -> dict[str, Any]:
        """Read the whole object."""
        return kube_api.read_object(self._api.client, pod.kind, pod.namespace, pod.name)

    def raw_node(self, name: str) -> dict[str, Any]:
        """Read the whole node."""
        return kube_api.read_object(self._api.client, "Node", "", name)

    def events(self, pod: Pod) -> tuple[Event, ...]:
        """Read the events that the cluster still has, by default those of the last hour."""
        return kube_api.read_pod_events(self._api.client, pod)

    def log(self, pod: Pod, container: str, *, is_previous: bool) -> str:
        """Read what `kubectl logs -p --tail=200` prints. Raises ApiError."""
        return kube_api.read_log(self._api.client, pod, container, is_previous=is_previous)

    def event_list(self, namespace: str | None) -> EventList:
        """Read all events of a namespace, or of all, and those of nodes."""
        return kube_api.read_events(self._api.client, namespace)

    def related(self, pod: Pod) -> RelatedObjects:
        """Read the object, its owners, and the limits of its namespace."""
        client = self._api.client.without_retries()
        end = time.monotonic() + RELATED_SECONDS
        lists = _Lists(client, pod.namespace, end, RELATED.values())
        raw = kube_api.read_object(client, pod.kind, pod.namespace, pod.name)
        chain = _OwnerChain(client, pod.namespace)
        done = Future(lambda: chain.read(raw)).wait(end - time.monotonic())
        if not done:
            chain.miss(f"the server did not answer within {RELATED_SECONDS:g} seconds")
        objects = {kind.field: lists.take(kind) for kind in RELATED.values()}
        return RelatedObjects(raw, tuple(chain.owners), **objects, missing=(*chain.missing, *lists.missing))

    def with_autoscalers(self, snapshot: Snapshot, namespace: str | None) -> Snapshot:
        """Add the autoscalers that the server has."""
        lists = _Lists(self._api.client, namespace, time.monotonic() + RELATED_SECONDS, [AUTOSCALERS])
        autoscalers = lists.take(AUTOSCALERS)
        return replace(snapshot, autoscalers=autoscalers, missing=(*snapshot.missing, *lists.missing))

    def writer(self) -> Writer:
        """Return the writer of this cluster. Raises QosError in read-only mode."""
        if not self._may_write:
            raise QosError(
                f"nothing is written: {self.title} is read-only here",
                hint="by --readonly, or by readonly in the settings, for all contexts or for this one",
            )
        from kubectl_qos.cluster.writer import Writer

        return Writer(self._connection)

    def _first_pods(
        self,
        show: Callable[[Snapshot, Arrived], bool],
        every_node: Future[list[NodeObject]],
        metrics: Future[Usage] | None,
    ) -> Progress:
        """Return a progress callback that shows the pods so far, from the second part of the list on.

        The first part may be the whole list, which would only flash by. After it has shown pods, it does so
        again at eight times as many; after `show` did nothing, at twice as many.
        """
        pods: list[Pod] = []
        due = 0

        def arrive(new: Sequence[Pod], arrived: Arrived) -> None:
            nonlocal due
            pods.extend(new)
            if self._progress is not None:
                self._progress(new, arrived)
            if not due or len(pods) < due:
                due = due or len(pods) + 1
                return
            due = 2 * len(pods)
            with suppress(QosError):  # raised again, or noted, when all pods are there
                node_names = {pod.node_name for pod in pods}
                usage = metrics.result() if metrics is not None and metrics.wait(0) else NO_USAGE
                snapshot = Snapshot(
                    pods=tuple(pods),
                    nodes={node.name: node for node in every_node.result() if node.name in node_names},
                    overrides=self._overrides,
                )
                if show(snapshot.with_usage(usage).with_missing_releases(), arrived):
                    due = 8 * len(pods)

        return arrive

    def _pods(self, scope: Scope, missing: list[Missing], progress: Progress | None) -> list[Pod]:
        fields = [field_term("spec.nodeName", scope.node)] if scope.node else []
        all_namespaces = scope.namespace is None or scope.node is not None
        if all_namespaces and not scope.selector_text and not scope.fields.text and not scope.names:
            return self._all_pods(",".join(fields), scope, missing, progress)
        fields += filter(None, [scope.fields.text])
        if len(scope.names) == 1:
            fields.append(field_term("metadata.name", next(iter(scope.names))))
        requested = self._api.pods(
            namespace=scope.namespace,
            label_selector=scope.selector_text,
            field_selector=",".join(fields),
            progress=progress,
        )
        return self._with_neighbours([pod for pod in requested if scope.matches(pod)], missing)

    def _all_pods(
        self, fields: str, scope: Scope, missing: list[Missing], progress: Progress | None
    ) -> list[Pod]:
        try:
            return self._api.pods(field_selector=fields, progress=progress)
        except ApiError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            if scope.namespace is None:
                error.hint = "name a namespace that you may read with -n"
                raise
            missing.append(no_neighbours(error))
            return self._api.pods(namespace=scope.namespace, field_selector=fields)

    def _with_neighbours(self, requested: list[Pod], missing: list[Missing]) -> list[Pod]:
        nodes = {pod.node_name for pod in requested if pod.node_name}
        try:
            if len(nodes) > MAX_NODES_ONE_BY_ONE:
                pods = [pod for pod in self._api.pods(progress=self._progress) if pod.node_name in nodes]
            else:
                selectors = [field_term("spec.nodeName", node) for node in sorted(nodes)]
                pods = [pod for fields in selectors for pod in self._api.pods(field_selector=fields)]
        except ApiError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            missing.append(no_neighbours(error))
            return requested
        seen = {pod.key for pod in pods}
        return pods + [pod for pod in requested if pod.key not in seen]

    def _nodes(
        self,
        scope: Scope,
        names: Collection[str],
        missing: list[Missing],
        every_node: Future[list[NodeObject]] | None,
    ) -> dict[str, NodeObject]:
        """Read the nodes of these names, and the requested one; a pod may outlive its node for a while."""
        try:
            if scope == Scope() or len(names) > MAX_NODES_ONE_BY_ONE:
                nodes = every_node.result() if every_node is not None else self._api.nodes()
                return {node.name: node for node in nodes}
            requested = {*names, scope.node or ""} - {""}
            named = {}
            for name in sorted(requested):
                try:
                    named[name] = self._api.node(name)
                except ApiError as error:
                    if error.status != HTTPStatus.NOT_FOUND:
                        raise
        except QosError as error:
            missing.append(no_capacity(error))
            return {}
        return named

    def _kubelets(self, nodes: Mapping[str, NodeObject]) -> Mapping[str, Kubelet]:
        """Read the configurations that come soon: that of a node in trouble may never come."""
        configs = self._configs
        if configs is None:
            log.log(log.DECISIONS, "configz is not read: a ranking does not depend on it")
            return {}
        Future(lambda: configs.read(nodes)).wait(CONFIGZ_SECONDS)
        return configs.by_node


RELATED_SECONDS: Final = 5.0
"""How long to wait for everything but the object itself."""

T = TypeVar("T")


class _Lists:
    """Lists of several kinds, which are read at the same time until a monotonic `end`."""

    def __init__(
        self, client: RestClient, namespace: str | None, end: float, kinds: Iterable[RelatedKind[Any]]
    ) -> None:
        self.missing: list[Missing] = []
        self._namespace = namespace
        self._end = end
        self._futures = {kind.kind: Future(partial(self._list, client, kind)) for kind in kinds}

    def _list(self, client: RestClient, kind: RelatedKind[T]) -> list[T]:
        path = kube_api.list_path(kind.resource, self._namespace, kind.group)
        return Pager(kind.item_type).list_all(client.without_retries(), path, {}, revision="").items

    def take(self, kind: RelatedKind[T]) -> tuple[T, ...]:
        what, future = f"the list of {kind.kind}s {_where(self._namespace)}", self._futures[kind.kind]
        if not future.wait(self._end - time.monotonic()):
            self.missing.append(Missing(what, "the server did not answer in time"))
            return ()
        try:
            return tuple(future.result())
        except QosError as error:
            if not (kind.optional and isinstance(error, ApiError) and error.status == HTTPStatus.NOT_FOUND):
                remedy = _remedy("list", kind.group, kind.resource, self._namespace, error)
                self.missing.append(Missing(what, str(error), remedy))
        return ()


class _OwnerChain:
    """The controllers above an object, as read so far: they can be taken at any time."""

    def __init__(self, client: RestClient, namespace: str) -> None:
        self.owners: list[Owner] = []
        self.missing: list[Missing] = []
        self._client = client
        self._namespace = namespace
        self._kind = self._name = ""

    def read(self, raw: Json) -> None:
        try:
            for owner in walk_owners(raw, self._read):
                self.owners.append(owner)
        except QosError as error:
            group = WORKLOADS[self._kind].group
            self.miss(str(error), _remedy("get", group, f"{self._kind.lower()}s", self._namespace, error))

    def miss(self, why: str, remedy: str = "") -> None:
        self.missing.append(Missing(f"{OWNER} {self._kind.lower()}/{self._name}", why, remedy))

    def _read(self, reference: Json) -> Owner | None:
        self._kind, self._name = str(reference.get("kind", "")), str(reference.get("name", ""))
        if not is_workload(self._kind, str(reference.get("apiVersion", ""))):
            # Its path would take a discovery, and only its name is needed.
            return None
        raw = kube_api.read_object(self._client, self._kind, self._namespace, self._name)
        if reference.get("uid") not in {None, metadata_text(raw, "uid")}:
            raise QosError("another object has its name now: it was deleted and recreated")
        try:
            return parse_owner(raw)
        except UNDECODABLE as error:
            raise decode_error(f"{self._kind.lower()}/{self._name}", error) from None


def _where(namespace: str | None) -> str:
    return "in all namespaces" if namespace is None else f"in the namespace {namespace}"


def _remedy(verb: str, group: str, resource: str, namespace: str | None, error: QosError) -> str:
    if not isinstance(error, ApiError) or error.status != HTTPStatus.FORBIDDEN:
        return ""
    name = f"{resource}.{group.split('/')[2]}" if group.startswith("/apis") else resource
    return f"grant {verb} on {name} {_where(namespace)}"

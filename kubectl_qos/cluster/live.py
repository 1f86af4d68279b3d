"""A live cluster as a source: the pods asked for, what they are ranked against, and what is missing.

A rank needs every pod of a node. Where the user may not list them, the rank is among those that can be
seen, and the snapshot says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from kubectl_qos.cluster.api_errors import no_capacity, no_neighbours
from kubectl_qos.cluster.events import read_events, read_pod_events
from kubectl_qos.cluster.informer import Informer, UpdateStream
from kubectl_qos.cluster.kube_api import KubeApi, KubeletConfigurations
from kubectl_qos.cluster.pager import Future, Progress
from kubectl_qos.cluster.usage import NO_USAGE, Usage, UsageChoice, read_usage
from kubectl_qos.errors import ApiError, InputError, QosError
from kubectl_qos.k8s.events import Event, EventList
from kubectl_qos.k8s.kinds import WORKLOADS, api_path, pod_from_workload
from kubectl_qos.k8s.kubelet import Kubelet
from kubectl_qos.k8s.objects import NodeObject, Pod
from kubectl_qos.k8s.snapshot import NO_OVERRIDES, Missing, NodeOverrides, Scope, Snapshot
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.client import Connection

if TYPE_CHECKING:
    from kubectl_qos.cluster.writer import Writer
    from kubectl_qos.edit.related import RelatedObjects

NODES_ONE_BY_ONE: Final = 8
"""Up to so many nodes, their pods are listed node by node instead of all pods of the cluster."""

CONFIGURATION_SECONDS: Final = 2.0
"""So long kubelets are waited for; what they are configured with is then assumed."""


class LiveSource:
    """The cluster behind a connection.

    With `only_ranking` what only single pods are explained by is left out: their ids, and what their kubelet
    is configured with. Followed, usage and what cannot be watched are asked for every `refresh_seconds`, 15
    if that is None. Without `may_write` nobody gets a writer: the cluster can only be read.
    """

    is_live = True

    def __init__(
        self,
        connection: Connection,
        *,
        usage: UsageChoice = UsageChoice.METRICS,
        only_ranking: bool = False,
        known: NodeOverrides = NO_OVERRIDES,
        progress: Progress | None = None,
        refresh_seconds: float | None = None,
        may_write: bool = False,
    ) -> None:
        self._connection = connection
        self._may_write = may_write
        self._refresh_seconds = refresh_seconds
        self._only_ranking = only_ranking
        self._api = KubeApi(connection, ids=not only_ranking)
        self._usage = usage
        self._configurations = None if only_ranking else KubeletConfigurations(self._api)
        self._known = known
        self._progress = progress

    @property
    def title(self) -> str:
        """The context's name."""
        return self._connection.context

    @property
    def default_namespace(self) -> str | None:
        """The context's namespace, or the one given."""
        return self._connection.namespace

    def now(self) -> datetime:
        """The present by the server's clock."""
        return self._api.answers.now()

    def snapshot(self, scope: Scope) -> Snapshot:
        """Pods, nodes and usage as they are now.

        Raises QosError where the pods asked for cannot be listed; nodes, usage and the pods of other
        namespaces may be missing.
        """
        missing: list[Missing] = []
        by_metrics = self._usage is UsageChoice.METRICS
        later = Future(lambda: self._read_usage(scope, ())) if by_metrics else None
        pods = self._pods(scope, missing)
        names = {pod.node_name for pod in pods if pod.node_name}
        nodes = self._nodes(scope, names, missing)
        kubelets = self._kubelets(nodes)
        usage = NO_USAGE
        if pods:
            usage = later.result() if later is not None else self._read_usage(scope, names)
        if usage.missing is not None:
            missing.append(usage.missing)
        return Snapshot(
            pods=tuple(pods),
            nodes=nodes,
            usage=usage.by_pod,
            kubelets=kubelets,
            missing=tuple(missing),
            overrides=self._known,
            server_version="" if nodes else self._server_version(),
        )

    def follow(self, scope: Scope) -> UpdateStream:
        """What is known from now on, as it changes."""
        return Informer(
            self._api.answers,
            scope,
            now=self.now,
            read_usage=lambda asked, store: self._read_usage(asked, store.nodes()),
            read_version=self._api.server_version,
            configurations=self._configurations,
            asks_nodes=self._usage is UsageChoice.SUMMARY,
            own_namespace=self.default_namespace,
            known=self._known,
            ids=not self._only_ranking,
            refresh_seconds=self._refresh_seconds,
        )

    def workload(self, kind: str, namespace: str, name: str) -> Pod:
        """The pod that a workload would make. Raises InputError for a kind that makes none, and ApiError."""
        if kind not in WORKLOADS:
            raise InputError(f"{kind} has no pod template")
        return pod_from_workload(kind, self._api.plain(api_path(kind, namespace, name), f"{kind} {name}"))

    def pod(self, namespace: str, name: str) -> Pod:
        """One pod. Raises ApiError (NotFound) in kubectl's words."""
        return self._api.pod(namespace, name)

    def raw(self, pod: Pod) -> dict[str, Any]:
        """The whole object as the server has it now."""
        path = api_path(pod.kind, pod.namespace, pod.name)
        return {"kind": pod.kind, **self._api.plain(path, f"{pod.kind} {pod.name}")}

    def events(self, pod: Pod) -> tuple[Event, ...]:
        """What the cluster's events say now; they are kept for an hour by default."""
        return read_pod_events(self._api.answers, pod)

    def event_list(self, namespace: str | None) -> EventList:
        """All events of a namespace, or of all, and those of nodes."""
        return read_events(self._api.answers, namespace)

    def related(self, pod: Pod) -> RelatedObjects:
        """The object as the server has it now, its owners, and what limits its namespace."""
        from kubectl_qos.cluster.related import read_related

        return read_related(self._api.answers, pod)

    def writer(self) -> Writer:
        """Who changes this cluster. Raises QosError in read-only mode."""
        if not self._may_write:
            raise QosError(
                f"nothing is written: {self.title} is read-only here",
                hint="by --readonly, or by readonly in the settings, for all contexts or for this one",
            )
        from kubectl_qos.cluster.writer import Writer

        return Writer(self._connection)

    def _pods(self, scope: Scope, missing: list[Missing]) -> list[Pod]:
        """The pods asked for, and those that share a node with them."""
        fields = [f"spec.nodeName={scope.node}"] if scope.node else []
        whole_cluster = scope.namespace is None or scope.node is not None
        if whole_cluster and not scope.selector_text and not scope.names:
            return self._whole(",".join(fields), scope, missing)
        if len(scope.names) == 1:
            fields.append(f"metadata.name={next(iter(scope.names))}")
        asked = self._api.pods(
            namespace=scope.namespace,
            label_selector=scope.selector_text,
            field_selector=",".join(fields),
            progress=self._progress,
        )
        return self._with_neighbours([pod for pod in asked if scope.matches(pod)], missing)

    def _whole(self, fields: str, scope: Scope, missing: list[Missing]) -> list[Pod]:
        """Every pod of the cluster or node; with fewer rights, of the namespace."""
        try:
            return self._api.pods(field_selector=fields, progress=self._progress)
        except ApiError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            if scope.namespace is None:
                error.hint = "name a namespace that you may read with -n"
                raise
            missing.append(no_neighbours(error))
            return self._api.pods(namespace=scope.namespace, field_selector=fields)

    def _with_neighbours(self, asked: list[Pod], missing: list[Missing]) -> list[Pod]:
        names = {pod.node_name for pod in asked if pod.node_name}
        if not names:
            return asked
        try:
            if len(names) > NODES_ONE_BY_ONE:
                everything = self._api.pods(progress=self._progress)
                others = [pod for pod in everything if pod.node_name in names]
            else:
                others = [
                    pod
                    for name in sorted(names)
                    for pod in self._api.pods(field_selector=f"spec.nodeName={name}")
                ]
        except ApiError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            missing.append(no_neighbours(error))
            return asked
        seen = {(pod.namespace, pod.name) for pod in others}
        return others + [pod for pod in asked if (pod.namespace, pod.name) not in seen]

    def _nodes(self, scope: Scope, names: Collection[str], missing: list[Missing]) -> dict[str, NodeObject]:
        """The nodes of these names, and those asked for; one that is gone is left out.

        A pod may outlive its node for a while, and a node may have no pod.
        """
        try:
            if scope == Scope() or len(names) > NODES_ONE_BY_ONE:
                return {node.name: node for node in self._api.nodes()}
            asked = {*names, scope.node} - {None}
            found = (self._node(name) for name in sorted(filter(None, asked)))
            return {node.name: node for node in found if node is not None}
        except QosError as error:
            missing.append(no_capacity(error))
            return {}

    def _kubelets(self, nodes: Mapping[str, NodeObject]) -> Mapping[str, Kubelet]:
        """The configurations that can be read soon: that of a node in trouble may never come."""
        configurations = self._configurations
        if configurations is None:
            log.log(log.DECISIONS, "configz is not read: a ranking does not depend on it")
            return {}
        Future(lambda: configurations.read(nodes)).wait(CONFIGURATION_SECONDS)
        return configurations.found

    def _node(self, name: str) -> NodeObject | None:
        try:
            return self._api.node(name)
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return None

    def _read_usage(self, scope: Scope, nodes: Collection[str]) -> Usage:
        return read_usage(self._api, self._usage, scope.namespace, nodes)

    def _server_version(self) -> str:
        try:
            return self._api.server_version()
        except QosError:
            return ""

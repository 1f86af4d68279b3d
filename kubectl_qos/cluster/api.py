"""The few requests that predictions need, each returning decoded values.

Not here: how a list arrives (lists.py), what a refusal is called (refusals.py), what a list is for (live.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any, Final, TypeVar

import msgspec

from kubectl_qos.cluster.access.connection import Connection
from kubectl_qos.cluster.answers import Answers, decoded, unreadable
from kubectl_qos.cluster.lists import PAGE_SIZE, Lister, Progress
from kubectl_qos.errors import ApiError
from kubectl_qos.k8s.kinds import path_of, segment
from kubectl_qos.k8s.metrics import PodMetrics
from kubectl_qos.k8s.objects import NodeObject, Pod, decoder_of
from kubectl_qos.k8s.sharing import Sharing
from kubectl_qos.k8s.summary import Summary

_nodes = Lister(NodeObject)
_metrics = Lister(PodMetrics)
Named = TypeVar("Named", Pod, NodeObject)

_METRICS: Final = "/apis/metrics.k8s.io"
_METRICS_VERSIONS: Final = ("v1", "v1beta1")
_summary = decoder_of(Summary)
_pod = decoder_of(Pod)
_node = decoder_of(NodeObject)
_object = msgspec.json.Decoder(dict[str, Any])


class Api:
    """An API server; what it has of lists comes from its watch cache."""

    def __init__(self, connection: Connection, *, page_size: int = PAGE_SIZE, ids: bool = True) -> None:
        self.answers = Answers(connection)
        self._page_size = page_size
        self._ids = ids
        self._metrics_versions: Sequence[str] = _METRICS_VERSIONS

    def server_version(self) -> str:
        """The API server's version such as `v1.36.2`."""
        return str(self.plain("/version", "the version").get("gitVersion", ""))

    def pods(
        self,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        progress: Progress | None = None,
    ) -> list[Pod]:
        """Pods of a namespace or of the whole cluster."""
        path = "/api/v1/pods" if namespace is None else f"/api/v1/namespaces/{segment(namespace)}/pods"
        query = {"labelSelector": label_selector, "fieldSelector": field_selector}
        pods = Lister(Pod, Sharing(ids=self._ids).pod)
        return pods.fetch(self.answers, path, query, page_size=self._page_size, progress=progress).items

    def pod(self, namespace: str, name: str) -> Pod:
        """One pod."""
        body = self.answers.whole(path_of("Pod", namespace, name), {})
        return _of_that_name(decoded(_pod, body, f"pod {name}"), f"pod {name}")

    def plain(self, path: str, what: str) -> dict[str, Any]:
        """Any object as plain JSON, nothing left out."""
        return decoded(_object, self.answers.whole(path, {}), what)

    def nodes(self) -> list[NodeObject]:
        """Every node."""
        return _nodes.fetch(self.answers, "/api/v1/nodes", {}, page_size=self._page_size).items

    def node(self, name: str) -> NodeObject:
        """One node."""
        body = self.answers.whole(f"/api/v1/nodes/{segment(name)}", {})
        return _of_that_name(decoded(_node, body, f"node {name}"), f"node {name}")

    def configz(self, node: str) -> dict[str, Any]:
        """The configuration that a node's kubelet runs with, through the node proxy."""
        path = f"/api/v1/nodes/{segment(node)}/proxy/configz"
        return self.plain(path, f"the configuration of {node}'s kubelet")

    def summary(self, node: str) -> Summary:
        """What a node's kubelet measured of its pods, through the node proxy."""
        path = f"/api/v1/nodes/{segment(node)}/proxy/stats/summary"
        return decoded(_summary, self.answers.whole(path, {}), f"the summary of {node}'s kubelet")

    def pod_metrics(self, namespace: str | None = None) -> Iterator[PodMetrics]:
        """Samples of the metrics API, of its newest version that the server has; it knows no pages."""
        place = "pods" if namespace is None else f"namespaces/{segment(namespace)}/pods"
        while True:
            version, *older = self._metrics_versions
            try:
                for items, _ in _metrics.stream(self.answers, f"{_METRICS}/{version}/{place}", {}):
                    yield from items
            except ApiError as error:
                if error.status != HTTPStatus.NOT_FOUND or not older:
                    raise
                self._metrics_versions = older
            else:
                return


def _of_that_name(found: Named, what: str) -> Named:
    """What was asked for: any object decodes as one, even if it says nothing that we read."""
    if found.metadata.name != what.partition(" ")[2]:
        raise unreadable(what, ValueError(f"it is about {found.metadata.name or 'something else'}"))
    return found

"""The few requests that predictions need, each returning decoded values; kubelets' configurations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, TypeVar

import msgspec

from kubectl_qos.cluster.http import RestClient, decode_body, decode_error
from kubectl_qos.cluster.pager import PAGE_SIZE, Pager, Progress
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.interning import Interner
from kubectl_qos.k8s.kinds import api_path, path_segment
from kubectl_qos.k8s.kubelet import Kubelet, kubelet_from_configz
from kubectl_qos.k8s.objects import NodeObject, Pod, json_decoder
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.usage import PodMetrics, Summary
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.client import Connection

MOST_NODES: Final = 8
"""The configuration of more nodes than this is not asked for, one request each."""


class KubeletConfigurations:
    """The configurations that were readable; each kubelet is asked once."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._asked: set[str] = set()
        self._found: dict[str, Kubelet] = {}
        self._forbidden = False

    @property
    def found(self) -> Mapping[str, Kubelet]:
        """By node name; what has been read so far."""
        return dict(self._found)

    def read(self, nodes: Mapping[str, NodeObject]) -> None:
        """Ask the kubelets of these nodes that were not asked before, unless there are too many."""
        if len(nodes) > MOST_NODES:
            log.log(log.DECISIONS, f"configz is not read: {len(nodes)} nodes are more than {MOST_NODES}")
            return
        for name, node in nodes.items():
            if name not in self._asked and not self._forbidden:
                self._asked.add(name)
                self._read(name, Release.of(node.status.node_info.kubelet_version or "1.36", {}))

    def _read(self, name: str, release: Release) -> None:
        try:
            self._found[name] = kubelet_from_configz(self._api.configz(name), release)
        except ApiError as error:
            self._forbidden = error.status == HTTPStatus.FORBIDDEN
            log.log(log.DECISIONS, f"configz of {name} is not known: {error}")
        except (QosError, msgspec.ValidationError, ValueError) as error:
            log.log(log.DECISIONS, f"configz of {name} is not known: {error}")
        else:
            log.log(log.DECISIONS, f"configz of {name} is read")


_nodes = Pager(NodeObject)
_metrics = Pager(PodMetrics)
Named = TypeVar("Named", Pod, NodeObject)

_METRICS: Final = "/apis/metrics.k8s.io"
_METRICS_VERSIONS: Final = ("v1", "v1beta1")
_summary = json_decoder(Summary)
_pod = json_decoder(Pod)
_node = json_decoder(NodeObject)
_object = msgspec.json.Decoder(dict[str, Any])


class KubeApi:
    """An API server; what it has of lists comes from its watch cache."""

    def __init__(self, connection: Connection, *, page_size: int = PAGE_SIZE, ids: bool = True) -> None:
        self.answers = RestClient(connection)
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
        path = "/api/v1/pods" if namespace is None else f"/api/v1/namespaces/{path_segment(namespace)}/pods"
        query = {"labelSelector": label_selector, "fieldSelector": field_selector}
        pods = Pager(Pod, Interner(ids=self._ids).pod)
        return pods.fetch(self.answers, path, query, page_size=self._page_size, progress=progress).items

    def pod(self, namespace: str, name: str) -> Pod:
        """One pod."""
        body = self.answers.whole(api_path("Pod", namespace, name), {})
        return _of_that_name(decode_body(_pod, body, f"pod {name}"), f"pod {name}")

    def plain(self, path: str, what: str) -> dict[str, Any]:
        """Any object as plain JSON, nothing left out."""
        return decode_body(_object, self.answers.whole(path, {}), what)

    def nodes(self) -> list[NodeObject]:
        """Every node."""
        return _nodes.fetch(self.answers, "/api/v1/nodes", {}, page_size=self._page_size).items

    def node(self, name: str) -> NodeObject:
        """One node."""
        body = self.answers.whole(f"/api/v1/nodes/{path_segment(name)}", {})
        return _of_that_name(decode_body(_node, body, f"node {name}"), f"node {name}")

    def configz(self, node: str) -> dict[str, Any]:
        """The configuration that a node's kubelet runs with, through the node proxy."""
        path = f"/api/v1/nodes/{path_segment(node)}/proxy/configz"
        return self.plain(path, f"the configuration of {node}'s kubelet")

    def summary(self, node: str) -> Summary:
        """What a node's kubelet measured of its pods, through the node proxy."""
        path = f"/api/v1/nodes/{path_segment(node)}/proxy/stats/summary"
        return decode_body(_summary, self.answers.whole(path, {}), f"the summary of {node}'s kubelet")

    def pod_metrics(self, namespace: str | None = None) -> Iterator[PodMetrics]:
        """Samples of the metrics API, of its newest version that the server has; it knows no pages."""
        place = "pods" if namespace is None else f"namespaces/{path_segment(namespace)}/pods"
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
        raise decode_error(what, ValueError(f"it is about {found.metadata.name or 'something else'}"))
    return found

"""What a server and its nodes run, and how many nodes and pods there are: one small request for each.

Sources: k8s.io/apimachinery/pkg/version/types.go, pkg/printers/internalversion/printers.go (the columns of
nodes).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from kubectl_qos.cluster.access.connection import Connection
from kubectl_qos.cluster.answers import Answers, decoded
from kubectl_qos.cluster.lists import ListMeta
from kubectl_qos.cluster.tables import ask_table
from kubectl_qos.k8s.objects import NodeObject


class NodeSoftware(NamedTuple):
    """What one node runs; empty where nobody says so."""

    kubelet: str
    os_image: str
    kernel: str
    runtime: str


class _Page(msgspec.Struct):
    items: list[msgspec.Raw]
    metadata: ListMeta = ListMeta()


_page = msgspec.json.Decoder(_Page)
_object = msgspec.json.Decoder(dict[str, Any])
_COLUMNS: Final = ("Version", "OS-Image", "Kernel-Version", "Container-Runtime")


def server_version(connection: Connection) -> dict[str, Any]:
    """All that the server says of its version, `gitVersion` and `platform` among it. Raises QosError."""
    return decoded(_object, Answers(connection).whole("/version", {}), "the version")


def software_of_nodes(connection: Connection) -> list[NodeSoftware]:
    """What each node runs, by its status. Raises QosError."""
    table = ask_table(connection, "/api/v1/nodes", {"resourceVersion": "0"})
    return [NodeSoftware(*(cells.get(name, "") for name in _COLUMNS)) for cells, _ in table.each()]


def software_of(nodes: Mapping[str, NodeObject]) -> list[NodeSoftware]:
    """The same of nodes that are known already."""
    return [
        NodeSoftware(info.kubelet_version, info.os_image, info.kernel_version, info.container_runtime_version)
        for info in (node.status.node_info for node in nodes.values())
    ]


def count_of_pods(connection: Connection) -> int:
    """How many pods there are in all namespaces. Raises QosError."""
    page = decoded(_page, Answers(connection).whole("/api/v1/pods", {"limit": "1"}), "the pods")
    return len(page.items) + (page.metadata.remaining_item_count or 0)

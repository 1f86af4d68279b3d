"""What a server and its nodes run, and how many nodes and pods there are: one small request for each.

Nodes are asked for as a table without the objects, some 300 bytes a node in place of some 15,000.

Sources: k8s.io/apimachinery/pkg/version/types.go, k8s.io/apimachinery/pkg/apis/meta/v1/types.go (Table),
pkg/printers/internalversion/printers.go (the columns of nodes).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec

from kubectl_qos.cluster.access.connection import Connection, unreachable
from kubectl_qos.cluster.answers import Answers, decoded
from kubectl_qos.cluster.lists import ListMeta
from kubectl_qos.cluster.refusals import refusal
from kubectl_qos.k8s.objects import NodeObject

_TABLE: Final = "application/json;as=Table;g=meta.k8s.io;v=v1"


class NodeSoftware(NamedTuple):
    """What one node runs; empty where nobody says so."""

    kubelet: str
    os_image: str
    kernel: str
    runtime: str


class _Column(msgspec.Struct):
    name: str


class _Row(msgspec.Struct):
    cells: list[Any]


class _Table(msgspec.Struct, rename="camel"):
    column_definitions: list[_Column]
    rows: list[_Row] | None = None


class _Page(msgspec.Struct):
    items: list[msgspec.Raw]
    metadata: ListMeta = ListMeta()


_table = msgspec.json.Decoder(_Table)
_page = msgspec.json.Decoder(_Page)
_object = msgspec.json.Decoder(dict[str, Any])
_COLUMNS: Final = ("Version", "OS-Image", "Kernel-Version", "Container-Runtime")


def server_version(connection: Connection) -> dict[str, Any]:
    """All that the server says of its version, `gitVersion` and `platform` among it. Raises QosError."""
    return decoded(_object, Answers(connection).whole("/version", {}), "the version")


def software_of_nodes(connection: Connection) -> list[NodeSoftware]:
    """What each node runs, by its status. Raises QosError."""
    query = {"resourceVersion": "0", "includeObject": "None"}
    response = connection.request("GET", "/api/v1/nodes", query, accept=_TABLE)
    try:
        said = response.read(decode_content=True)
    except Exception as error:
        raise unreachable(error, connection.server) from error
    finally:
        response.release_conn()
    if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        raise refusal(response.status, said, response.headers.get("Content-Type", ""))
    return list(_software(decoded(_table, said, "the table of nodes")))


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


def _software(table: _Table) -> Iterator[NodeSoftware]:
    names = [column.name for column in table.column_definitions]
    for row in table.rows or ():
        cells = dict(zip(names, map(str, row.cells), strict=False))
        yield NodeSoftware(*(cells.get(name, "") for name in _COLUMNS))

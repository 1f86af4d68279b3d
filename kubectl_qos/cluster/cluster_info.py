"""What a server and its nodes run, how many there are, and lists as the tables that kubectl prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec

from kubectl_qos.cluster.api_errors import refusal
from kubectl_qos.cluster.http import RestClient, decode_body
from kubectl_qos.cluster.pager import ListMeta
from kubectl_qos.k8s.objects import NodeObject
from kubectl_qos.transport.client import Connection
from kubectl_qos.transport.net_errors import unreachable_error

_ACCEPT: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"


class _Column(msgspec.Struct, frozen=True):
    name: str = ""
    format: str = ""


class _Metadata(msgspec.Struct, frozen=True):
    labels: dict[str, str] | None = None


class _PartialObject(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


class _TableRow(msgspec.Struct, frozen=True):
    cells: list[Any] = []
    object: _PartialObject | None = None


class ServerTable(msgspec.Struct, frozen=True, rename="camel"):
    """Rows of cells, as the server spells them."""

    column_definitions: list[_Column] = []
    rows: list[_TableRow] | None = None

    @property
    def name_column(self) -> str:
        """The column that has the names of the objects."""
        return next((column.name for column in self.column_definitions if column.format == "name"), "Name")

    def each(self) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
        """Of each object its cells by the names of their columns, and its labels if they were asked for."""
        names = [column.name for column in self.column_definitions]
        for row in self.rows or ():
            labels = row.object.metadata.labels if row.object is not None else None
            yield dict(zip(names, map(str, row.cells), strict=False)), labels or {}


_decoder = msgspec.json.Decoder(ServerTable)


def fetch_table(
    connection: Connection, path: str, query: Mapping[str, str], *, labels: bool = False
) -> ServerTable:
    """One list as a table, asked for once. Raises QosError where there is none."""
    parts = {**query, "includeObject": "Metadata" if labels else "None"}
    response = connection.request("GET", path, parts, accept=_ACCEPT)
    try:
        said = response.read(decode_content=True)
    except Exception as error:
        raise unreachable_error(error, connection.server) from error
    finally:
        response.release_conn()
    if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        raise refusal(response.status, said, response.headers.get("Content-Type", ""))
    return decode_body(_decoder, said, f"the table of {path}")


class NodeSoftware(NamedTuple):
    """What one node runs; empty where nobody says so."""

    kubelet: str
    os_image: str
    kernel: str
    runtime: str


class _CountPage(msgspec.Struct):
    items: list[msgspec.Raw]
    metadata: ListMeta = ListMeta()


_page = msgspec.json.Decoder(_CountPage)
_object = msgspec.json.Decoder(dict[str, Any])
_COLUMNS: Final = ("Version", "OS-Image", "Kernel-Version", "Container-Runtime")


def server_version(connection: Connection) -> dict[str, Any]:
    """All that the server says of its version, `gitVersion` and `platform` among it. Raises QosError."""
    return decode_body(_object, RestClient(connection).whole("/version", {}), "the version")


def list_node_software(connection: Connection) -> list[NodeSoftware]:
    """What each node runs, by its status. Raises QosError."""
    table = fetch_table(connection, "/api/v1/nodes", {"resourceVersion": "0"})
    return [NodeSoftware(*(cells.get(name, "") for name in _COLUMNS)) for cells, _ in table.each()]


def node_software(nodes: Mapping[str, NodeObject]) -> list[NodeSoftware]:
    """The same of nodes that are known already."""
    return [
        NodeSoftware(info.kubelet_version, info.os_image, info.kernel_version, info.container_runtime_version)
        for info in (node.status.node_info for node in nodes.values())
    ]


def count_pods(connection: Connection) -> int:
    """How many pods there are in all namespaces. Raises QosError."""
    page = decode_body(_page, RestClient(connection).whole("/api/v1/pods", {"limit": "1"}), "the pods")
    return len(page.items) + (page.metadata.remaining_item_count or 0)

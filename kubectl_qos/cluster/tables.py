"""Lists as the tables that kubectl prints: names and a few words about each object, without the objects.

They are a small part of what the objects are: some 300 bytes a node in place of some 15,000.

Source: k8s.io/apimachinery/pkg/apis/meta/v1/types.go (Table, TableOptions).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from kubectl_qos.cluster.access.connection import Connection, unreachable
from kubectl_qos.cluster.answers import decoded
from kubectl_qos.cluster.refusals import refusal

_ACCEPT: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"


class _Column(msgspec.Struct, frozen=True):
    name: str = ""
    format: str = ""


class _Metadata(msgspec.Struct, frozen=True):
    labels: dict[str, str] | None = None


class _PartialObject(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


class _Row(msgspec.Struct, frozen=True):
    cells: list[Any] = []
    object: _PartialObject | None = None


class Table(msgspec.Struct, frozen=True, rename="camel"):
    """Rows of cells, as the server spells them."""

    column_definitions: list[_Column] = []
    rows: list[_Row] | None = None

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


_decoder = msgspec.json.Decoder(Table)


def ask_table(connection: Connection, path: str, query: Mapping[str, str], *, labels: bool = False) -> Table:
    """One list as a table, asked for once. Raises QosError where there is none."""
    parts = {**query, "includeObject": "Metadata" if labels else "None"}
    response = connection.request("GET", path, parts, accept=_ACCEPT)
    try:
        said = response.read(decode_content=True)
    except Exception as error:
        raise unreachable(error, connection.server) from error
    finally:
        response.release_conn()
    if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        raise refusal(response.status, said, response.headers.get("Content-Type", ""))
    return decoded(_decoder, said, f"the table of {path}")

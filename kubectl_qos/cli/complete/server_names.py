"""The names of a live cluster: one small request for each question, and no second try.

Servers are asked for tables, which hold names and a few words about each object, and not the objects.

Source: k8s.io/apimachinery/pkg/apis/meta/v1/types.go (Table, TableOptions).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, Final

import msgspec

from kubectl_qos.cli.complete.place import Named, container_names
from kubectl_qos.cluster.access import kubeconfig
from kubectl_qos.cluster.access.connection import Connection, ConnectionOptions, connect
from kubectl_qos.k8s.kinds import WORKLOADS, path_of, pod_of_workload, segment
from kubectl_qos.k8s.objects import Pod, convert

PAGE_SIZE: Final = 500
_AS_TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
_TELLING: Final = ("Status", "Node")
"""The columns that say something about an object in a word."""


class ServerNames:
    """Names of a live cluster."""

    def __init__(self, options: argparse.Namespace, seconds: float) -> None:
        self._options = options
        self._seconds = seconds

    def of(self, kind: str, *, node: str | None, labels: bool) -> list[Named]:
        """The first few hundred, in the server's order."""
        connection = connect(connection_options(self._options, self._seconds))
        query = {"limit": str(PAGE_SIZE), "includeObject": "Metadata" if labels else "None"}
        if kind == "Pod" and node:
            query["fieldSelector"] = f"spec.nodeName={node}"
        namespace = None if _is_everywhere(self._options) else connection.namespace
        body = _body(connection, _list_path(kind, namespace), query, _AS_TABLE)
        return list(_rows(msgspec.json.decode(body, type=_Table)))

    def containers(self, kind: str, name: str) -> list[str]:
        """Of the object itself: tables do not have them."""
        connection = connect(connection_options(self._options, self._seconds))
        body = _body(connection, path_of(kind, connection.namespace, name), {}, "application/json")
        raw = msgspec.json.decode(body, type=dict[str, Any])
        return container_names(convert(raw, Pod) if kind == "Pod" else pod_of_workload(kind, raw))


def kubeconfig_names(options: argparse.Namespace, entries: str) -> tuple[str, ...]:
    """The names of its `contexts`, `clusters` or `users`. Raises QosError for a file that cannot be used."""
    return kubeconfig.entry_names(connection_options(options), entries)


def connection_options(options: argparse.Namespace, seconds: float = 0) -> ConnectionOptions:
    """The flags of a connection, with a limit of time in place of theirs."""
    known = [field.name for field in fields(ConnectionOptions)]
    given = {name: getattr(options, name) for name in known if hasattr(options, name)}
    given |= {"as_groups": tuple(given.get("as_groups", ())), "request_timeout": f"{seconds}s"}
    return ConnectionOptions(**given)


def _is_everywhere(options: argparse.Namespace) -> bool:
    """Whether pods of every namespace are meant, as commands take it."""
    return hasattr(options, "all_namespaces") or (
        hasattr(options, "node") and not hasattr(options, "namespace")
    )


def _list_path(kind: str, namespace: str | None) -> str:
    group = WORKLOADS[kind].group if kind in WORKLOADS else "/api/v1"
    is_within = namespace is not None and kind not in {"Node", "Namespace"}
    place = f"/namespaces/{segment(namespace or '')}" if is_within else ""
    return f"{group}{place}/{kind.lower()}s"


def _body(connection: Connection, path: str, query: Mapping[str, str], accept: str) -> bytes:
    """The body of the answer; that of a refusal is an object without names. Raises QosError for none."""
    return connection.request("GET", path, query, accept=accept).read(decode_content=True)


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


class _Table(msgspec.Struct, rename="camel"):
    column_definitions: list[_Column] = []
    rows: list[_Row] = []


def _rows(table: _Table) -> Iterator[Named]:
    """Each row's object: the column whose format is `name` has its name."""
    columns = table.column_definitions
    name_at = next((place for place, column in enumerate(columns) if column.format == "name"), 0)
    telling_at = [place for place, column in enumerate(columns) if column.name in _TELLING]
    for row in table.rows:
        cells = [str(cell) for cell in row.cells]
        about = ", ".join(cells[place] for place in telling_at if not cells[place].startswith("<"))
        labels = row.object.metadata.labels if row.object is not None else None
        yield Named(cells[name_at], about, labels or {})

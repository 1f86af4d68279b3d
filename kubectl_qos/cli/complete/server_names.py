"""The names of a live cluster: one small request for each question, and no second try.

Servers are asked for tables, which hold names and a few words about each object, and not the objects.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, Final

import msgspec

from kubectl_qos.cli.complete.place import Named, container_names
from kubectl_qos.cluster.access import kubeconfig
from kubectl_qos.cluster.access.connection import ConnectionOptions, connect
from kubectl_qos.cluster.answers import Answers
from kubectl_qos.cluster.tables import ask_table
from kubectl_qos.k8s.kinds import WORKLOADS, path_of, pod_of_workload, segment
from kubectl_qos.k8s.objects import Pod, convert

PAGE_SIZE: Final = 500
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
        query = {"limit": str(PAGE_SIZE)}
        if kind == "Pod" and node:
            query["fieldSelector"] = f"spec.nodeName={node}"
        namespace = None if _is_everywhere(self._options) else connection.namespace
        table = ask_table(connection, _list_path(kind, namespace), query, labels=labels)
        name = table.name_column
        return [Named(cells[name], ", ".join(_told(cells)), found) for cells, found in table.each()]

    def containers(self, kind: str, name: str) -> list[str]:
        """Of the object itself: tables do not have them."""
        connection = connect(connection_options(self._options, self._seconds))
        path = path_of(kind, connection.namespace, name)
        raw = msgspec.json.decode(Answers(connection, patient=False).whole(path, {}), type=dict[str, Any])
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


def _told(cells: Mapping[str, str]) -> Iterator[str]:
    """What there is to say about an object in a word."""
    yield from (cells[name] for name in _TELLING if not cells.get(name, "<none>").startswith("<"))

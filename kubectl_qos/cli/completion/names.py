"""What a place of names is asked, and what it answers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Final, NamedTuple, Protocol, TypeVar

from kubectl_qos.cluster.demo import DEMO_FILE
from kubectl_qos.cluster.files import STANDARD_INPUT, FileSource
from kubectl_qos.cluster.kube_api import KubeApi, list_path, read_object
from kubectl_qos.k8s.kinds import WORKLOADS, pod_from_workload
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.transport import kubeconfig
from kubectl_qos.transport.client import connect
from kubectl_qos.transport.options import ConnectionOptions


class NamedObject(NamedTuple):
    """An object's name, with a few words about it."""

    name: str
    about: str = ""
    labels: Mapping[str, str] = {}


class NameSource(Protocol):
    """Where names come from. Each question may raise whatever a server or a file makes it raise."""

    def of(self, kind: str, *, node: str | None, labels: bool) -> list[NamedObject]:
        """The objects of a kind in scope, pods only of a node if one is given; with their labels if asked."""

    def containers(self, kind: str, name: str) -> list[str]:
        """The names of the containers of a pod or workload, init containers too."""


def container_names(pod: Pod) -> list[str]:
    """Of a pod or a template: its containers, then its init containers."""
    return [one.name for one in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))]


T = TypeVar("T")


class NameSources:
    """The names where the flags lead; nothing is read or asked before there is a question.

    What cannot be had is nothing, for there may be other candidates. Why goes to stderr: a log, if anything.
    """

    def __init__(self, options: argparse.Namespace, seconds: float) -> None:
        self._options = options
        self._seconds = seconds

    def of(self, kind: str, *, node: str | None = None, labels: bool = False) -> list[NamedObject]:
        """The objects of a kind in scope; pods only of a node if one is given here or by --node."""
        node = node or getattr(self._options, "node", None)
        return self._or_nothing(lambda place: place.of(kind, node=node, labels=labels))

    def containers(self, kind: str, name: str) -> list[str]:
        """The names of the containers of a pod or workload, init containers too."""
        return self._or_nothing(lambda place: place.containers(kind, name))

    def _or_nothing(self, question: Callable[[NameSource], list[T]]) -> list[T]:
        try:
            return question(self._place())
        except Exception:  # noqa: BLE001 - whatever a server, a kubeconfig or a file makes it raise
            import traceback

            traceback.print_exc()
            return []

    def _place(self) -> NameSource:
        if getattr(self._options, "demo", False) or getattr(self._options, "filename", None):
            return FileNames(self._options)

        return ServerNames(self._options, self._seconds)


class FileNames:
    """Names of the demo or of files."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options

    def of(self, kind: str, *, node: str | None, labels: bool) -> list[NamedObject]:
        """All of them; labels are always there."""
        del labels
        snapshot = self._snapshot()
        if kind == "Namespace":
            return [NamedObject(name) for name in sorted({pod.namespace for pod in snapshot.pods})]
        if kind == "Node":
            return [NamedObject(name, "", one.metadata.labels or {}) for name, one in snapshot.nodes.items()]
        return [
            NamedObject(pod.name, pod.node_name, pod.metadata.labels or {})
            for pod in snapshot.pods
            if pod.kind == kind and self._is_in_scope(pod) and node in {None, pod.node_name}
        ]

    def containers(self, kind: str, name: str) -> list[str]:
        """Of the first pod or workload of that name in scope."""
        for pod in self._snapshot().pods:
            if (pod.kind, pod.name) == (kind, name) and self._is_in_scope(pod):
                return container_names(pod)
        return []

    def _snapshot(self) -> Snapshot:
        given = getattr(self._options, "filename", [])
        if STANDARD_INPUT in given:
            # It is the shell's: what the command will be given there is not there yet.
            return Snapshot()
        recursive = getattr(self._options, "recursive", False)
        return FileSource(given or [str(DEMO_FILE)], recursive=recursive).snapshot(Scope())

    def _is_in_scope(self, pod: Pod) -> bool:
        namespace = getattr(self._options, "namespace", None)
        everywhere = getattr(self._options, "all_namespaces", False)
        return everywhere or namespace in {None, pod.namespace}


PAGE_SIZE: Final = 500
_TELLING: Final = ("Status", "Node")
"""The columns that say something about an object in a word."""


class ServerNames:
    """Names of a live cluster."""

    def __init__(self, options: argparse.Namespace, seconds: float) -> None:
        self._options = options
        self._seconds = seconds

    def of(self, kind: str, *, node: str | None, labels: bool) -> list[NamedObject]:
        """The first few hundred, in the server's order."""
        connection = connect(connection_options(self._options, self._seconds))
        query = {"limit": str(PAGE_SIZE)}
        if kind == "Pod" and node:
            query["fieldSelector"] = f"spec.nodeName={node}"
        namespace = None if _is_everywhere(self._options) else connection.namespace
        api = KubeApi(connection, retries=False)
        table = api.table(_list_path(kind, namespace), query, labels=labels)
        name = table.name_column
        return [NamedObject(cells[name], ", ".join(_told(cells)), found) for cells, found in table.objects()]

    def containers(self, kind: str, name: str) -> list[str]:
        """Of the object itself: tables do not have them."""
        connection = connect(connection_options(self._options, self._seconds))
        client = KubeApi(connection, retries=False).client
        raw = read_object(client, kind, connection.namespace, name)
        return container_names(convert(raw, Pod) if kind == "Pod" else pod_from_workload(kind, raw))


def kubeconfig_names(options: argparse.Namespace, entries: str) -> tuple[str, ...]:
    """The names of its `contexts`, `clusters` or `users`. Raises QosError for a file that cannot be used."""
    return kubeconfig.entry_names(connection_options(options))[entries]


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
    return list_path(f"{kind.lower()}s", namespace if is_within else None, group)


def _told(cells: Mapping[str, str]) -> Iterator[str]:
    """What there is to say about an object in a word."""
    yield from (cells[name] for name in _TELLING if not cells.get(name, "<none>").startswith("<"))

"""Manifests, dumps and standard input as a source. What is in their documents is documents.py's affair."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kubectl_qos.cluster.documents import ParsedObjects, plain_documents, plain_objects, read_documents
from kubectl_qos.errors import InputError, QosError
from kubectl_qos.k8s.events import Event, EventList, in_order, is_about, is_of_node_memory
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import NO_OVERRIDES, NodeOverrides, Scope, Snapshot

if TYPE_CHECKING:
    from kubectl_qos.cluster.informer import UpdateStream
    from kubectl_qos.cluster.writer import Writer
    from kubectl_qos.edit.related import RelatedObjects

EXTENSIONS: Final = (".json", ".yaml", ".yml")
STANDARD_INPUT: Final = "-"


class FileSource:
    """Manifests and dumps, read once."""

    is_live = False
    default_namespace = None

    def __init__(
        self, paths: Sequence[str], *, recursive: bool = False, known: NodeOverrides = NO_OVERRIDES
    ) -> None:
        self._paths = tuple(paths)
        self._recursive = recursive
        self._known = known
        self._given = sys.stdin.buffer.read() if STANDARD_INPUT in paths else b""
        self._found = _read(self.contents())

    @property
    def title(self) -> str:
        """The names that were given."""
        return ", ".join("standard input" if path == STANDARD_INPUT else path for path in self._paths)

    @property
    def problems(self) -> list[InputError]:
        """The documents that could not be used."""
        return self._found.problems

    def now(self) -> datetime:
        """The present: a dump does not say when it was made."""
        return datetime.now(UTC)

    def snapshot(self, scope: Scope) -> Snapshot:
        """All that was read; the scope is applied by whoever shows it."""
        del scope
        return Snapshot(
            pods=tuple(self._found.pods),
            nodes=self._found.nodes,
            usage=self._found.usage,
            overrides=self._known,
        )

    def follow(self, scope: Scope) -> UpdateStream:
        """All of it, once, and again whenever it is asked for."""
        from kubectl_qos.cluster.informer import Poller

        return Poller(self.snapshot, scope, self.now)

    def contents(self) -> Iterator[tuple[str, bytes]]:
        """Every file with its name, read again but for standard input. Raises InputError."""
        for path in self._paths:
            if path == STANDARD_INPUT:
                yield "standard input", self._given
            else:
                yield from _contents(path, recursive=self._recursive)

    def raw(self, pod: Pod) -> dict[str, Any]:
        """The object as it is written, read again. Raises InputError if it is no longer there."""
        for name, content in self.contents():
            for raw in plain_objects(content, name):
                if is_named(raw, pod):
                    return raw
        raise InputError(f"{pod.kind.lower()} {pod.name} is no longer in {self.title}")

    def places(self, pods: Collection[Pod]) -> list[str]:
        """Where the objects behind pods are: file, document and item."""
        return [
            document.place_of(path)
            for name, content in self.contents()
            for document in plain_documents(content, name)
            for path, raw in document.objects()
            if any(is_named(raw, pod) for pod in pods)
        ]

    def events(self, pod: Pod) -> tuple[Event, ...]:
        """Those of a dump; manifests have none."""
        return in_order(
            event
            for event in self._found.events
            if is_about(event, pod) or is_of_node_memory(event, pod.node_name)
        )

    def event_list(self, namespace: str | None) -> EventList:
        """Those of a dump; whether of all of them, it does not say."""
        del namespace
        events = self._found.events
        return EventList(in_order(events), of_nodes=any(event.is_of_node for event in events))

    def related(self, pod: Pod) -> RelatedObjects:
        """The object as it is written, and what the same files say of its owners and its namespace.

        Raises InputError where it is no longer there.
        """
        from kubectl_qos.cluster.related import related_in_files

        objects = [raw for name, content in self.contents() for raw in plain_objects(content, name)]
        found = next((raw for raw in objects if is_named(raw, pod)), None)
        if found is None:
            raise InputError(f"{pod.kind.lower()} {pod.name} is no longer in {self.title}")
        return related_in_files(found, objects, pod.namespace)

    def writer(self) -> Writer:
        """Nobody: files are no cluster. Raises QosError."""
        raise QosError(
            f"nothing is sent: {self.title} is no cluster",
            hint="kubectl qos set -f FILE --write changes the file itself",
        )


def _read(contents: Iterable[tuple[str, bytes]]) -> ParsedObjects:
    """Everything in files; problems of documents are in the result.

    Raises InputError where nothing in them is a pod or node; problems after the first are its notes.
    """
    found = ParsedObjects()
    names = []
    for name, content in contents:
        names.append(name)
        read_documents(content, name, found)
    if found.pods or found.nodes:
        return found
    if found.problems:
        first, *others = found.problems
        for other in others:
            first.add_note(str(other))
        raise first
    no_pods = found.others + len(found.events)
    what = f"{no_pods} other objects" if no_pods else "nothing"
    raise InputError(
        f"{', '.join(names) or 'the input'}: no pods found, {what}",
        hint="give manifests of pods or workloads, or the output of kubectl get pods,nodes -A -o json",
    )


def pod_from_yaml(text: str) -> Pod:
    """The first pod (or pod template) of a YAML or JSON text. Raises InputError if there is none."""
    found = ParsedObjects()
    if "kind:" not in text and '"kind"' not in text:
        text = f"kind: Pod\n{text}"
    read_documents(text.encode(), "text", found)
    if found.problems:
        raise found.problems[0]
    if not found.pods:
        raise InputError("the text holds no pod")
    return found.pods[0]


def _contents(path: str, *, recursive: bool) -> Iterator[tuple[str, bytes]]:
    place = Path(path)
    if not place.exists():
        raise InputError(f'the path "{path}" does not exist')
    if not place.is_dir():
        yield path, _content_of(place)
        return
    pattern = "**/*" if recursive else "*"
    files = sorted(file for file in place.glob(pattern) if file.suffix in EXTENSIONS and file.is_file())
    if not files:
        raise InputError(
            f'the folder "{path}" holds no {", ".join(EXTENSIONS)} files',
            hint="" if recursive else "-R looks into the folders below it too",
        )
    for file in files:
        yield str(file), _content_of(file)


def _content_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


def is_named(raw: Mapping[str, Any], pod: Pod) -> bool:
    """Whether this is the object behind a pod: its kind, name and namespace."""
    metadata = raw.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        return False
    named = (raw.get("kind"), metadata.get("name") or "", metadata.get("namespace") or "")
    return named == (pod.kind, pod.name, pod.namespace)

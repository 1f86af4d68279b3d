"""Manifests, dumps, standard input and the demo as sources, and the public API's functions for objects."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from kubectl_qos.atomic_file import replace_file
from kubectl_qos.cluster.documents import (
    FileDocument,
    ParsedObjects,
    ReadObject,
    completed,
    metadata_text,
    plain_documents,
)
from kubectl_qos.cluster.inputs import (
    KUSTOMIZATIONS,
    PACKED,
    STANDARD_INPUT,
    is_utf16,
    read_kustomization,
    read_path,
)
from kubectl_qos.cluster.source import Source
from kubectl_qos.errors import ApiError, InputError, first_few, without_secrets
from kubectl_qos.k8s.events import (
    Event,
    EventList,
    in_order,
    is_about,
    is_of_node_memory,
    last_shortages,
    system_ooms,
)
from kubectl_qos.k8s.kinds import is_named, object_name
from kubectl_qos.k8s.kubelet import Kubelet, Node, kubelet_from_configz, node_from_object
from kubectl_qos.k8s.objects import UNKNOWN_CONTAINER, NodeObject, Pod, convert
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.selectors import DisruptionBudget
from kubectl_qos.k8s.snapshot import NO_OVERRIDES, NodeOverrides, Scope, Snapshot
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.qos.process_order import with_largest
from kubectl_qos.unpacking import packed_by

if TYPE_CHECKING:
    from kubectl_qos.edit.edits import Edit, FileEdit
    from kubectl_qos.edit.related import RelatedObjects


_WRITABLE: Final = 0o222
_CHARTS: Final = "templates of Helm charts are skipped (helm template DIR | kubectl qos check - checks them)"
_WHOSE_CONFIGZ: Final = (
    "Warning: the configuration of a kubelet (configz) counts only if the files have one node and one"
    " configuration: it does not name its node"
)
_LEFT_OUT: Final = "Warning: the answer leaves out what could not be read"
_MOST_NAMES: Final = 3
_WANTED: Final = "give manifests of pods or workloads, or the output of kubectl get pods,nodes -A -o json"
_THEIR_PODS: Final = "a controller creates their pods: add the output of kubectl get pods -A -o json"
_PACKED: Final = "packed files of a folder are skipped, each needs its own -f"
_PARTS: Final = "parts of manifests are skipped (kubectl qos check -f FILE checks them)"
_PATCHES: Final = "patches of kustomizations are skipped (kubectl qos check -k DIR checks them)"
T = TypeVar("T", Pod, NodeObject)


class FileSource(Source):
    """Manifests and dumps, read once. Raises InputError if there is no object."""

    is_live = False
    is_recording = True
    default_namespace: str | None = None
    has_manifests = True
    has_usage = True
    """True if the usage in the files is used."""
    _may_be_empty = False

    def __init__(
        self,
        paths: Sequence[str],
        *,
        kustomize: str | None = None,
        recursive: bool = False,
        overrides: NodeOverrides = NO_OVERRIDES,
        keep_objects: bool = False,
        any_files: Sequence[str] = (),
    ) -> None:
        self.objects: list[ReadObject] = []
        """Every object with its location, if objects are kept."""
        self.texts: dict[str, bytes] = {}
        """The content of each file, if objects are kept."""
        self.skipped: dict[str, None] = {}
        """Sentences about skipped files of folders, and how to check them."""
        self._any_files = any_files
        """Paths whose documents need not be objects, like files of a folder."""
        self._in_folders: set[Path] = set()
        self._keeps = keep_objects
        self._paths = tuple(paths)
        self._kustomize = kustomize
        self._built_name = without_secrets(f"kustomize {kustomize}")
        self._recursive = recursive
        self._overrides = overrides
        self._piped: dict[str, tuple[str, bytes]] = {}
        """Content that cannot be read again: standard input, and pipes such as <(kubectl get …)."""
        if STANDARD_INPUT in paths:
            self._piped[STANDARD_INPUT] = "standard input", sys.stdin.buffer.read()
        self._parsed = self._parse()

    @property
    def title(self) -> str:
        """Return the paths, or `standard input`; URLs without secrets."""
        paths = (*self._paths, *((self._kustomize,) if self._kustomize is not None else ()))
        return without_secrets(
            ", ".join("standard input" if path == STANDARD_INPUT else path for path in paths)
        )

    @property
    def problems(self) -> Sequence[InputError]:
        """Return why documents could not be read."""
        return self._parsed.problems

    @property
    def is_refused(self) -> bool:
        """Return whether a server would refuse an object as it is written."""
        return bool(self._parsed.refused)

    @property
    def unread(self) -> tuple[str, ...]:
        """Return why documents could not be read, and what that means; none if objects are kept."""
        if self._keeps or not self.problems:
            return ()
        errors = (f"error: {sentence}" for sentence in _first_problems(self.problems))
        return (*errors, _LEFT_OUT)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return errors and warnings about the files, with file and line, in kubectl's form."""
        parsed = self._parsed
        if self._keeps:
            kinds, errors = _counted(parsed.made_by_controllers), list[str]()
            left = f"not checked: {kinds}: {_THEIR_PODS}" if kinds else ""
            for problem in parsed.problems:
                errors += [f"error: {problem}", *([f"hint: {problem.hint}"] if problem.hint else [])]
        else:
            errors = [*self.unread]
            left = f"ignored, without pods: {_counted(parsed.ignored)}" if parsed.ignored else ""
        return (
            *errors,
            *(f"error: {problem}" for problem in parsed.refused),
            *(f"Warning: {warning}" for warning in parsed.warnings),
            *(() if self._keeps else self.skipped),
            *([_WHOSE_CONFIGZ] if parsed.configz and not dict(self._kubelets()) else ()),
            *filter(None, [left]),
        )

    def now(self) -> datetime:
        """Return the present time, because a dump does not say when it was made."""
        return datetime.now(UTC)

    def snapshot(self, scope: Scope) -> Snapshot:
        """Return all objects, also those out of scope."""
        parsed = self._parsed
        return Snapshot(
            pods=tuple(parsed.pods),
            nodes=parsed.nodes,
            usage=with_largest(_named(parsed), parsed.pods, parsed.processes) if self.has_usage else {},
            pressure=parsed.pressure if self.has_usage else {},
            node_usage=parsed.node_usage if self.has_usage else {},
            node_sampled=parsed.node_sampled if self.has_usage else {},
            node_swap=parsed.node_swap,
            kubelets=dict(self._kubelets()),
            shortages=last_shortages(parsed.events),
            system_ooms=system_ooms(parsed.events),
            overrides=self._overrides,
        ).with_missing_releases(scope)

    def _kubelets(self) -> Iterator[tuple[str, Kubelet]]:
        """Yield the configuration if there is one node, perhaps unknown: `/configz` does not name it."""
        nodes, configz = self._parsed.nodes, self._parsed.configz
        names = {*nodes} or {pod.node_name for pod in self._parsed.pods}
        if len(names) == len(configz) == 1:
            (name,) = names
            version = nodes[name].status.node_info.kubelet_version if name in nodes else ""
            yield name, kubelet_from_configz(configz[0], Release.of_kubelet(version))

    def partial_pods(self) -> Sequence[Pod]:
        """Return the pods of texts that show only their status."""
        return self._parsed.partial_pods

    def find(self, kind: str, namespace: str | None, name: str) -> Pod:
        """Return a pod or a workload's template. Raises ApiError (NotFound)."""
        for pod in self._parsed.pods:
            is_in_namespace = namespace is None or pod.namespace in {namespace, ""}
            if is_in_namespace and is_named(pod, kind, name):
                return pod
        from kubectl_qos.edit.server_response import with_group

        hint = f"kubectl qos top lists what there is in {self.title}" if self._parsed.pods else ""
        namesakes = sorted({pod.namespace for pod in self._parsed.pods if is_named(pod, kind, name)})
        if namesakes:
            hint = f"there is one in namespace {first_few(namesakes)}: -n {namesakes[0]}"
        raise ApiError.not_found(with_group(f"{kind.lower().removesuffix('s')}s", kind), name, hint=hint)

    def has(self, resource: str, name: str) -> bool:
        """Return whether the files have a node, or pods in a namespace; pods without one fit any."""
        if resource == "nodes":
            return name in self._parsed.nodes or any(pod.node_name == name for pod in self._parsed.pods)
        return any(pod.namespace in {name, ""} for pod in self._parsed.pods)

    def raw(self, pod: Pod) -> dict[str, Any]:
        """Read the object again, as it is written. Raises InputError if it is gone."""
        return self._find_raw(self.raw_objects(), pod)

    def raw_node(self, name: str) -> dict[str, Any]:
        """Return the node as it is written. Raises InputError if the files have none of that name."""
        for raw in self.raw_objects():
            if raw.get("kind") == "Node" and metadata_text(raw, "name") == name:
                return raw
        raise InputError(f"node {name} is not in {self.title}")

    def events(self, pod: Pod) -> tuple[Event, ...]:
        """Return the events of a pod; only dumps have events."""
        return in_order(
            event
            for event in self._parsed.events
            if is_about(event, pod) or is_of_node_memory(event, pod.node_name)
        )

    def event_list(self, namespace: str | None) -> EventList:
        """Return the events of all namespaces in the dump."""
        events = self._parsed.events
        return EventList(in_order(events), of_nodes=any(event.is_of_node for event in events))

    def related(self, pod: Pod) -> RelatedObjects:
        """Return the object with its owners and its namespace's limits in the files. Raises InputError."""
        return self.related_reader()(pod)

    def related_reader(self) -> Callable[[Pod], RelatedObjects]:
        """Return `related` for many pods, of the files as they are at the first of them."""
        from kubectl_qos.edit.related import related_in_files

        near: dict[str, list[dict[str, Any]]] = {}

        def read(pod: Pod) -> RelatedObjects:
            for raw in () if near else self.raw_objects():
                near.setdefault(metadata_text(raw, "namespace"), []).append(raw)
            objects = near.get(pod.namespace, [])
            return related_in_files(self._find_raw(objects, pod), objects)

        return read

    def with_autoscalers(self, snapshot: Snapshot, namespace: str | None) -> Snapshot:
        """Add the autoscalers in the files, of all namespaces."""
        from kubectl_qos.edit.related import AUTOSCALERS, convert_all

        return replace(snapshot, autoscalers=convert_all([*self.raw_objects()], AUTOSCALERS))

    def disruption_budgets(self) -> Sequence[DisruptionBudget]:
        """Return the PodDisruptionBudgets in the files."""
        from kubectl_qos.edit.related import BUDGETS, convert_all

        return convert_all([*self.raw_objects(BUDGETS.kind)], BUDGETS)

    def locations(self, pods: Collection[Pod]) -> list[str]:
        """Return file, document and item of each pod."""
        return [
            str(document.location.item(*numbers))
            for _, document, numbers, raw in self._objects()
            if any(_is_object_of(raw, pod) for pod in pods)
        ]

    def is_repeated(self, pod: Pod) -> bool:
        """Return whether the files have several objects of this kind, namespace and name."""
        return (pod.kind, *pod.key) in self._parsed.replaced

    def change_file(self, pod: Pod, edits: Sequence[Edit], *, dry_run: bool = False) -> FileEdit:
        """Make edits in an object's file. Raises InputError if it is gone or not writable."""
        from kubectl_qos.cluster.yaml_patch import patch_object
        from kubectl_qos.edit.edits import FileEdit

        matches = [match for match in self._objects() if _is_object_of(match[-1], pod)]
        if len(matches) != 1:
            there = f"there {len(matches)} times" if matches else "no longer there"
            raise InputError(f"{pod.kind.lower()}/{pod.name} is {there}", hint="run the command again")
        content, document, numbers, raw = matches[0]
        if not numbers and "spec" in raw and "spec" not in document.value:
            raise document.location.error(
                "only a part of a manifest", "write apiVersion, kind and spec above it"
            )
        changed = patch_object(content, document, numbers, pod, edits)
        name = document.location.name
        if not dry_run:
            replace_manifest(Path(name), changed, name)
        return FileEdit(name, content, changed)

    def _contents(self, problems: list[InputError] | None = None) -> Iterator[tuple[str, bytes]]:
        """Yield every file. Raises InputError for an unreadable path, unless `problems` collect it."""
        built = [(self._built_name, self._kustomize)] if self._kustomize is not None else []
        named = [Path(path) for path in self._any_files if Path(path).is_file()]
        left_out = self._left_out(named)
        for name, folder in (*((path, None) for path in self._paths if Path(path) not in left_out), *built):
            try:
                if folder is not None:
                    yield name, read_kustomization(folder)
                elif name in self._piped:
                    yield self._piped[name]
                else:
                    for content in read_path(name, recursive=self._recursive, left_out=self._left_out):
                        if Path(name).is_fifo():
                            self._piped[name] = content
                        yield content
            except InputError as error:
                if problems is None:
                    raise
                problems.append(error.at(without_secrets(name)))

    def _left_out(self, files: Sequence[Path]) -> Collection[Path]:
        """Return the files that are no objects (Helm charts, patches) or packed; note them as skipped."""
        names: set[Path] = set()
        folders: dict[str, dict[str, None]] = {}
        above = {folder for file in files for folder in file.parents}
        patches = {
            os.path.normpath(folder / patch)
            for folder in above
            for name in KUSTOMIZATIONS
            for patch in _patches(folder / name)
        }
        for file in files:
            charts = (folder for folder in reversed(file.parents) if (folder / "Chart.yaml").is_file())
            chart = next(charts, None)
            part = file.relative_to(chart).parts[0] if chart is not None else ""
            if part in {"Chart.yaml", "charts", "files", "templates"} or part.startswith("values"):
                folders.setdefault(_CHARTS, {})[str(chart)] = None
            elif os.path.normpath(file) in patches:
                folders.setdefault(_PATCHES, {})[str(file.parent)] = None
            elif file.name.endswith(PACKED) and file not in map(Path, self._any_files):
                folders.setdefault(_PACKED, {})[str(file)] = None
            else:
                self._in_folders.add(file)
                continue
            names.add(file)
        self.skipped |= {f"{text}: {first_few([*paths])}": None for text, paths in folders.items()}
        return names

    def _objects(
        self, word: str = ""
    ) -> Iterator[tuple[bytes, FileDocument, tuple[int, ...], dict[str, Any]]]:
        """Yield every object as plain JSON, after its file's content, document and indexes in Lists.

        With a word, only objects of files that have it.
        """
        for name, content in self._contents():
            for document in plain_documents(content, name) if word.encode() in content else ():
                for numbers, raw in document.objects():
                    yield content, document, numbers, raw if numbers else completed(raw)

    def raw_objects(self, word: str = "") -> Iterator[dict[str, Any]]:
        """Yield every object as it is written; with a word, such as a kind, only of files that have it."""
        return (raw for *_, raw in self._objects(word))

    def _find_raw(self, objects: Iterable[dict[str, Any]], pod: Pod) -> dict[str, Any]:
        *_, raw = (None, *(raw for raw in objects if _is_object_of(raw, pod)))
        if raw is None:
            raise InputError(f"{pod.kind.lower()} {pod.name} is no longer in {self.title}")
        return raw

    def _parse(self) -> ParsedObjects:
        """Parse all files. Raises InputError if there is no object; its notes have further problems."""
        parsed = ParsedObjects(objects=self.objects if self._keeps else None)
        names = []
        for name, content in self._contents(parsed.problems if self._keeps else None):
            parsed.is_of_folder = Path(name) in self._in_folders
            parsed.is_named = name in self._any_files
            names.append(name)
            if self._keeps:
                self.texts[name] = content
            parsed.add_file(content, name)
        if not self._keeps:
            parsed.drop_replaced()
        parsed.admit()
        if parsed.skipped:
            what = "documents without apiVersion and kind, so no objects, are skipped"
            self.skipped[f"{what}: {parsed.skipped}"] = None
        if parsed.parts:
            self.skipped[f"{_PARTS}: {first_few([*parsed.parts])}"] = None
        objects = parsed.pods or parsed.nodes or parsed.events or parsed.partial_pods
        if self._keeps or objects or (self._may_be_empty and not parsed.problems):
            return parsed
        if parsed.problems:
            first, *others = parsed.problems
            for sentence in _first_problems(others):
                first.add_note(sentence)
            raise first
        usage = {"PodMetrics": len(parsed.usage), "NodeMetrics": len(parsed.node_usage)}
        read = parsed.ignored + Counter(Event=len(parsed.events), **usage)
        raise InputError(
            f"{first_few(names) or 'the input'}: no pods found, {_counted(read) or 'nor other objects'}",
            hint=_THEIR_PODS if parsed.made_by_controllers else _WANTED,
        )


def _named(parsed: ParsedObjects) -> dict[PodKey, PodUsage]:
    """Add namespaces and the names of single containers to samples of kubectl top, which lacks both."""
    usage, names = dict(parsed.usage), Counter(pod.name for pod in parsed.pods)
    for pod in parsed.pods:
        sample = usage.get(pod.key) or (usage.get(("", pod.name)) if names[pod.name] == 1 else None)
        if sample is not None and sample.names == (UNKNOWN_CONTAINER,) and len(pod.containers) == 1:
            sample = msgspec.structs.replace(sample, names=(pod.containers[0].name,))
        if sample is not None:
            usage[pod.key] = sample
    return usage


def _patches(file: Path) -> Iterator[str]:
    """Yield the files that a kustomization lists as patches; nothing if it cannot be read."""
    content = b""
    with suppress(OSError):
        content = file.read_bytes()
    for document in plain_documents(content, str(file)):
        raw = document.value if isinstance(document.value, dict) else {}
        listed = (raw.get("patches"), raw.get("patchesStrategicMerge"))
        for entry in chain.from_iterable(patches for patches in listed if isinstance(patches, list)):
            path = entry.get("path") if isinstance(entry, dict) else entry
            if isinstance(path, str):
                yield path


def _first_problems(problems: Sequence[InputError]) -> Iterator[str]:
    """Yield the first sentences, and how many more there are."""
    yield from map(str, problems[:_MOST_NAMES])
    if len(problems) > _MOST_NAMES:
        yield f"and {len(problems) - _MOST_NAMES:,} more like these"


def _counted(kinds: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))


def _is_object_of(raw: Mapping[str, Any], pod: Pod) -> bool:
    name, prefix = metadata_text(raw, "name"), metadata_text(raw, "generateName")
    own = object_name(pod)
    # The name of an object with a generateName ends in a number.
    is_named = name == own if name or not prefix else own.rstrip("0123456789") == prefix.rstrip("0123456789")
    return is_named and (raw.get("kind"), metadata_text(raw, "namespace")) == (pod.kind, pod.namespace)


def manifests_of(source: Source) -> FileSource | None:
    """Return a source of manifests that can be changed, None for a cluster, the demo or a bundle."""
    return source if isinstance(source, FileSource) and source.has_manifests else None


def replace_manifest(path: Path, content: bytes, name: str) -> None:
    """Write a manifest that was read. Raises InputError with its `name` if it cannot be written."""
    file = path.resolve()
    try:
        if is_utf16(before := file.read_bytes()) or packed_by(before):
            raise InputError(f"{name}: only plain UTF-8 is written", hint="save the file as UTF-8")
        if not file.stat().st_mode & _WRITABLE or not os.access(file, os.W_OK):
            raise InputError(f"{name}: the file is read-only", hint="allow writing to it: chmod u+w")
        replace_file(file, content, keep_rights=True)
    except OSError as error:
        raise InputError(f"{name}: cannot be written: {error.strerror}") from None


def pod_from_yaml(text: str) -> Pod:
    """Return the first pod (or pod template) of a YAML or JSON text. Raises InputError if there is none."""
    if "kind:" not in text and '"kind"' not in text:
        text = f"kind: Pod\n{text}"
    parsed = ParsedObjects()
    parsed.add_file(text.encode(), "text")
    if parsed.problems:
        raise parsed.problems[0]
    if not parsed.pods:
        raise InputError("the text holds no pod")
    return parsed.pods[0]


def pod_from_client(pod: Any) -> Pod:
    """Convert a `V1Pod` of the official client (kubernetes.client). Raises InputError for anything else."""
    return _from_client(pod, Pod, "V1Pod")


def node_from_client(node: Any) -> Node:
    """Convert a `V1Node` of that client, with the default kubelet. Raises InputError for anything else."""
    raw = _from_client(node, NodeObject, "V1Node")
    release = Release.of_kubelet(raw.status.node_info.kubelet_version)
    return node_from_object(raw, Kubelet.defaults(release))


def _from_client(value: Any, object_type: type[T], name: str) -> T:
    from kubernetes.client import ApiClient

    if type(value).__name__ != name:
        raise InputError(f"a kubernetes.client.{name} was expected, not {type(value).__name__}")
    try:
        return convert(ApiClient().sanitize_for_serialization(value), object_type)
    except msgspec.ValidationError as error:
        raise InputError(f"{name}: {error}") from None


DEMO_FILE: Final = Path(__file__).with_name("demo.json")
DEMO_TIME: Final = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
"""The frozen time of the demo; ages count from it."""
FIRST_REVISION: Final = "500"
"""The resourceVersion of the demo's recorded objects."""


class DemoSource(FileSource):
    """The first moment of the demo: four nodes and some sixty pods (tests/recordings/make_demo.py)."""

    title = "demo"
    has_manifests = is_recording = False

    def __init__(self, overrides: NodeOverrides = NO_OVERRIDES, *, has_usage: bool = True) -> None:
        super().__init__([str(DEMO_FILE)], overrides=overrides)
        self.has_usage = has_usage

    def now(self) -> datetime:
        """Return the demo's frozen time."""
        return DEMO_TIME

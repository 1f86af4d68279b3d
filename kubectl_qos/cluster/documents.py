"""Read YAML and JSON files as documents, Lists and objects. A problem is one sentence with its location."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import PurePath
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import structs

from kubectl_qos.cluster.inputs import KUSTOMIZATIONS
from kubectl_qos.errors import InputError, QosError, QuantityError, first_few
from kubectl_qos.k8s.defaulting import admitted
from kubectl_qos.k8s.events import Event
from kubectl_qos.k8s.interning import Interner
from kubectl_qos.k8s.kinds import (
    dotted,
    is_custom_with_resources,
    is_workload,
    object_name,
    pod_from_workload,
    pods_from_custom,
    spec_path,
)
from kubectl_qos.k8s.kubelet import kubelet_from_configz
from kubectl_qos.k8s.objects import (
    QUANTITY_MAPS,
    UNKNOWN_CONTAINER,
    Json,
    JsonDecoder,
    NodeObject,
    Pod,
    PodSpec,
    ResourceList,
    convert,
    nested,
    nested_list,
)
from kubectl_qos.k8s.quantity import Quantity, quantity_hint
from kubectl_qos.k8s.releases import DEFAULT_RELEASE, Release
from kubectl_qos.k8s.usage import (
    NodeMetrics,
    PodKey,
    PodMetrics,
    PodUsage,
    Pressure,
    Summary,
    sampled_by_node,
    usage_by_node,
    usage_by_pod,
    usage_from_summary,
)
from kubectl_qos.qos.process_order import HostProcess, HostView
from kubectl_qos.yaml_loader import YamlDocument, read_yaml

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_DOCUMENT_START = re.compile(rb"^---(?:[ \t].*)?\r?$", re.MULTILINE)
_MANIFEST: Final = re.compile(rb"(?:apiVersion|^(?:kind|metadata|spec):)(?!.*,\s*$)", re.MULTILINE)
"""The beginnings of manifests, but not of a truncated JSON object."""
_FENCE: Final = re.compile(rb"^(?:`{3}|~{3})[\w ]{0,20}\r?$", re.MULTILINE)
_FENCED: Final = re.compile(
    rb"^(?:`{3}|~{3})[\w ]{0,20}\r?\n(?:(?!`{3}|~{3}).*\n)*(?:`{3}|~{3})\s*$", re.MULTILINE
)
_AROUND: Final = re.compile(
    rb"\s*(?:\[?(?:\.{3,}|\xe2\x80\xa6)\]?|[^\s:]{0,40}[$#%>]? ?(?:kubectl|oc|k) [^:]{1,200})\s*"
)
_BLANK: Final = re.compile(rb"[ \t\r\n-]*")
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_LOG: Final = re.compile(
    rb"invoked oom-killer: |oom-kill:constraint=|out of memory: Kill|\bsystemd-oomd\[|OOM event in container "
    rb"|Got sys oom event|container oom [\da-f]{64}|TaskOOM event |sending SIG\w+ to process "
    rb"|OOM kill of PID |\b(?:kubelet|k3s|crio|conmon|containerd|dockerd)\[\d+\]: "
    rb"|\b[IWEF]\d{4} [\d:.]{8,15} +\d+ \w+\.go:\d+\]|^time=\"[\dT:.Z+-]{19,40}\" level=|^oom_kill \d",
    re.MULTILINE,
)
"""Lines of kernel logs, and of programs that log kills, for which there is --kernel-log."""
_OF_OBJECT: Final = re.compile(rb"\b(?:apiVersion|kind|metadata|spec)\b")
_NOT_JSON: Final = (msgspec.DecodeError, UnicodeError, RecursionError)
_START: Final = 4096
_LONGEST_MANIFEST: Final = 1 << 20
_SUMMARY: Final = "Summary"
"""Our name for a kubelet's `/stats/summary`, which has no kind."""
_CONFIGZ: Final = "kubeletconfig"
"""The only field of a kubelet's `/configz`, which has no kind."""
_KUBELET_FILE: Final = "KubeletConfiguration"
_OF_END: Final = re.compile(rb"xitCode|OOMKilled")
_OF_OBJECTS: Final = b"apiVersion", b"kind", b"nodeName", b"kubeletconfig"
"""A file of a folder is read only if it has one of these words; the last two are of kubelets' answers."""

_OF_PARTS: Final = b"containers", b"resources"
"""A named file is read if it has one of these words too, because it may be a part of a manifest."""
_TEXT: Final = "manifests are UTF-8 YAML or JSON"
_PARTS: Final = (("Pod", "v1", ("spec",)), ("Deployment", "apps/v1", ("spec", "template", "spec")))
"""Objects that people quote without apiVersion and kind, and where their containers are."""
_Json = memoryview | msgspec.Raw


class DocumentLocation(msgspec.Struct, frozen=True):
    """The place of a document, or of an item of a List in it.

    `number` is 0 if the file has one document, `path` is the path of the item, `yaml` is None if lines are
    unknown.
    """

    name: str
    number: int = 0
    line: int = 1
    path: str = ""
    yaml: YamlDocument | None = None

    def item(self, *numbers: int) -> DocumentLocation:
        """Return the location of an item of the List at this location."""
        path = ".".join((self.path, *(f"items[{number}]" for number in numbers)))
        return structs.replace(self, path=path.removeprefix("."))

    def field(self, path: str) -> str:
        """Return file, document and line of a field of this object."""
        place = self.position(path)
        return str(self) if place is None else self.at_line(place[0])

    def position(self, path: str) -> tuple[int, int] | None:
        """Return line and column, from 1, of a field of this object; None if lines are unknown."""
        if self.yaml is None:
            return None
        line, column = self.yaml.position(f"{self.path}.{path}")
        return self.line + line, column + 1

    def error(self, message: str, hint: str = "") -> InputError:
        """Return an error about the whole object."""
        return InputError(f"{self}: {message}", hint).at(self.name, *self.position("") or (self.line,))

    def at_line(self, line: int, column: str = "") -> str:
        """Return file, document and line for a message."""
        document = f"document {self.number}, " if self.number else ""
        return f"{self.name}: {document}line {line}{column}"

    def __str__(self) -> str:
        document = f": document {self.number} (line {self.line})" if self.number else ""
        return f"{self.name}{document}{f': {self.path}' if self.path else ''}"


class FileDocument(NamedTuple):
    """One document of a file: its location, its text and its value; `begin` counts bytes."""

    location: DocumentLocation
    begin: int
    text: str
    value: Any
    is_json: bool = False

    def objects(self) -> Iterator[tuple[tuple[int, ...], dict[str, Any]]]:
        """Yield every object as plain JSON, after its indexes in the nested Lists, outermost first."""
        yield from _objects(self.value, ())


def _objects(value: Any, numbers: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], dict[str, Any]]]:
    if not isinstance(value, dict):
        return
    kind, items = str(value.get("kind") or ""), value.get("items")
    if not kind.endswith("List") or not isinstance(items, list):
        yield numbers, value
        return
    for number, item in enumerate(items):
        if isinstance(item, dict):
            yield from _objects({"kind": kind.removesuffix("List"), **item}, (*numbers, number))


def _described_objects(content: bytes) -> list[dict[str, Any]]:
    """Return the objects of a text that kubectl prints for people, beside manifests in Markdown."""
    content = _FENCED.sub(lambda block: b"" if _MANIFEST.search(block[0]) else block[0], content)
    if _MANIFEST.search(content) is not None:
        return []
    from kubectl_qos.cluster.described import described_objects

    return described_objects(content)


def plain_documents(content: bytes, name: str) -> Iterator[FileDocument]:
    """Yield every document of a file as plain JSON, without those that cannot be read."""
    if not _is_json(content):
        if described := _described_objects(content):
            yield FileDocument(DocumentLocation(name), 0, "", {"kind": "List", "items": described})
        if not described or _MANIFEST.search(content) is not None:
            yield from _yaml_documents(content, name, lambda _: None)
        return
    begin = len(BYTE_ORDER_MARK) if content.startswith(BYTE_ORDER_MARK) else 0
    for location, part in _split_json(content[begin:], name):
        with suppress(*_NOT_JSON):
            yield FileDocument(location, begin, bytes(part).decode(), json_value(part), is_json=True)
        begin += len(part)


def metadata_text(raw: Json, field: str) -> str:
    """Return a text of an object's metadata such as `uid`; empty if it is absent."""
    return str(nested(raw, "metadata").get(field) or "")


def yaml_value(text: str, location: DocumentLocation) -> Any:
    """Return one YAML document as plain values. Raises InputError."""
    document = _read_yaml(text, location)
    return document.value if document is not None else None


def _read_yaml(text: str, location: DocumentLocation) -> YamlDocument | None:
    import yaml

    try:
        return read_yaml(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark is not None else (0, 0)
        place = location.at_line(location.line + line, f", column {column + 1}")
        # The place may be behind the last line.
        is_tab = any(there.startswith("\t", column) for there in text.split("\n")[line : line + 1])
        hint = "YAML is indented with spaces, not with tabs" if is_tab else ""
        problem = InputError(f"{place}: {error.problem}", _RENDERED if "{{" in text else hint)
        raise problem.at(location.name, location.line + line, column + 1) from None
    except yaml.YAMLError as error:
        raise location.error(f"not valid YAML: {' '.join(str(error).split())}") from None


def _is_json(content: bytes) -> bool:
    begin = content[:_START].removeprefix(BYTE_ORDER_MARK).lstrip()
    return begin.startswith(b"{") and b"\n---" not in content


def _yaml_documents(
    content: bytes, name: str, on_problem: Callable[[InputError], object], *, strict: bool = False
) -> Iterator[FileDocument]:
    """Yield the documents of a YAML stream, which is split first: an invalid one must not hide others.

    `strict`: what people write around a manifest is a problem too, as for kubectl.
    """
    begin, line, number = len(BYTE_ORDER_MARK) if content.startswith(BYTE_ORDER_MARK) else 0, 1, 0
    starts = (match.start() for match in _DOCUMENT_START.finditer(content, begin))
    for end in chain(starts, [len(content)]):
        part = content[begin:end]
        if not _BLANK.fullmatch(part):
            number += 1
            is_only = number == 1 and _BLANK.fullmatch(content, end)
            location = DocumentLocation(name, 0 if is_only else number, line)
            try:
                text = part.decode()
                yaml = _read_yaml(text, location)
                if yaml is not None:
                    yield FileDocument(structs.replace(location, yaml=yaml), begin, text, yaml.value)
            except UnicodeDecodeError as error:
                problem = f"{name}: not a text file (byte {begin + error.start})"
                on_problem(InputError(problem, _TEXT).at(name))
            except InputError as error:
                unquoted = _unquoted(part)
                inner = [*_yaml_documents(unquoted, name, lambda _: None)] if unquoted != part else []
                for document in inner:
                    place = structs.replace(document.location, line=line + document.location.line - 1)
                    yield document._replace(location=place, begin=begin + document.begin)
                if strict or not inner:
                    on_problem(error)
        line += part.count(b"\n")
        begin = end


def _unquoted(content: bytes) -> bytes:
    """Blank out what people write around a manifest: Markdown, a command, dots in place of lines.

    Every other byte keeps its place, so that lines and columns are those of the file.
    """
    lines, is_inside = content.split(b"\n"), _FENCE.search(content) is None
    for number, line in enumerate(lines):
        if _FENCE.fullmatch(line) is not None:
            lines[number] = b"---".ljust(len(line)) if is_inside else b" " * len(line)
            is_inside = not is_inside
        elif not is_inside or _AROUND.fullmatch(line) is not None:
            lines[number] = b" " * len(line)
    return b"\n".join(lines)


def _split_json(content: bytes, name: str) -> Iterator[tuple[DocumentLocation, memoryview]]:
    rest, line = memoryview(content), 1
    for number in count(1):
        end = _end_of_first(rest)
        yield DocumentLocation(name, number if number > 1 or end else 0, line), rest[: end or len(rest)]
        if not end:
            return
        line += bytes(rest[:end]).count(b"\n")
        rest = rest[end:]


def _end_of_first(content: memoryview) -> int | None:
    """Return the length of the first of several JSON texts; None for a single text and for invalid JSON."""
    try:
        _raw.decode(content)
    except _NOT_JSON as error:
        # The error names the byte after the start of the next text.
        trailing = _TRAILING.search(str(error))
        return int(trailing[1]) - 1 if trailing is not None else None
    return None


class ReadObject(NamedTuple):
    """An object as written, its location, and its pods; `kind` of an item may come from its List."""

    kind: str
    raw: Json
    location: DocumentLocation
    pods: Sequence[Pod]


_NO_OBJECTS: Final = (
    "kubectl get pods,nodes,events -A -o json > FILE has what is needed, and with podmetrics,nodemetrics"
    " usage; of kubectl's text describe, get and top are read"
)
_SUMS: Final = (
    "; pods of a described node count as one container each, and those of kube-system have no rank, as they"
    " may be critical"
)
_NO_KIND: Final = "Object 'Kind' is missing", "every document needs apiVersion and kind"
_COMPOSE: Final = (
    "services of Compose are not objects of Kubernetes",
    "kompose convert makes manifests of them",
)
_RENDERED: Final = "helm template renders templates: helm template CHART | kubectl qos check -f -"
_VALUES: Final = "values of a Helm chart are not objects", _RENDERED


@dataclass
class ParsedObjects:
    """The objects of documents, and the problems of documents that cannot be read."""

    partial_pods: list[Pod] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    nodes: dict[str, NodeObject] = field(default_factory=dict)
    usage: dict[PodKey, PodUsage] = field(default_factory=dict)
    pressure: dict[str, Pressure] = field(default_factory=dict)
    node_usage: dict[str, int] = field(default_factory=dict)
    node_sampled: dict[str, str] = field(default_factory=dict)
    node_swap: dict[str, int] = field(default_factory=dict)
    processes: list[HostProcess] = field(default_factory=list)
    configz: list[Mapping[str, Any]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    problems: list[InputError] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    generated: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Numbers of objects by kind, namespace and generateName."""
    made_by_controllers: Counter[str] = field(default_factory=Counter)
    """Custom resources with requests or limits, but without a pod template, by kind."""
    priorities: dict[str, int] = field(default_factory=dict)
    overheads: dict[str, ResourceList] = field(default_factory=dict)
    replaced: dict[object, str] = field(default_factory=dict)
    """Names of objects that a later object replaces, by kind, namespace and name."""
    interner: Interner = field(default_factory=Interner)
    objects: list[ReadObject] | None = None
    is_of_folder: bool = False  # files of a folder that are no manifests are skipped
    is_named: bool = False  # such a file, but named: a binary one is a mistake
    skipped: int = 0
    parts: dict[str, None] = field(default_factory=dict)
    """Named files with parts of manifests, which are skipped."""

    def add_file(self, content: bytes, name: str) -> None:
        """Add every object of a file; problems of documents are collected."""
        is_known = PurePath(name).name in KUSTOMIZATIONS
        if not self.is_of_folder and not content.removeprefix(BYTE_ORDER_MARK).strip():
            self.problems.append(InputError(f"{name}: empty", _NO_OBJECTS).at(name))
        elif self.is_named and b"\0" in content:
            problem = f"{name}: not a text file (byte {content.index(0)})"
            self.problems.append(InputError(problem, _TEXT).at(name))
        elif self.is_of_folder and not (is_known or any(word in content for word in self._words(name))):
            self.skipped += 1
        elif _is_json(content) and not (_OF_END.search(content) and b'"kind"' not in content):
            for location, part in _split_json(content.removeprefix(BYTE_ORDER_MARK), name):
                self._add_json_document(part, location)
        else:
            self._add_text(content, name)

    def _words(self, name: str) -> tuple[bytes, ...]:
        return _OF_OBJECTS + (_OF_PARTS if self.is_named and name.endswith((".yaml", ".yml")) else ())

    def _add_text(self, content: bytes, name: str) -> None:
        described = [] if self.is_of_folder else _described_objects(content)
        for raw in described:
            if "containers" in raw.get("spec", "containers"):
                self._add(raw, DocumentLocation(name))
            else:
                try:
                    self.partial_pods.append(convert(raw, Pod))
                except (msgspec.ValidationError, QosError) as error:
                    self.problems += _bad_fields(DocumentLocation(name), "pod", raw, error)
        if described:
            from kubectl_qos.cluster.described import MORE, PODS_OF_NODE

            sums = _SUMS if PODS_OF_NODE in content else ""
            self.warnings.append(f"{name}: this text is only a part: {MORE} gives everything{sums}")
        elif b"apiVersion" not in content and _LOG.search(content) is not None:
            hint = "kubectl qos kills --kernel-log FILE reads OOM kills from it"
            self.problems.append(
                InputError(f"{name}: a log without an eviction, not an object", hint).at(name)
            )
            return
        if not described or _MANIFEST.search(content) is not None:
            before = len(self.problems)
            strict = self.objects is not None
            for document in _yaml_documents(content, name, self.problems.append, strict=strict):
                if document.value is not None:
                    self._add_document(document.value, document.location)
            is_manifest = _OF_OBJECT.search(content) is not None or name.endswith((".yaml", ".yml"))
            for problem in self.problems[before:] if not is_manifest else ():
                problem.hint = problem.hint or _NO_OBJECTS

    def _add_json_document(self, content: memoryview, location: DocumentLocation) -> None:
        """Read a manifest as YAML, which shows lines and duplicate keys, and a dump by the faster parser."""
        if len(content) <= _LONGEST_MANIFEST and b'"uid"' not in bytes(content):
            with suppress(InputError, *_NOT_JSON):
                value, yaml = json_value(content), _read_yaml(bytes(content).decode(), location)
                self._add_document(value, structs.replace(location, yaml=yaml))
                return
        self._add_json(content, location)

    def _add_document(self, value: Any, location: DocumentLocation) -> None:
        yaml = location.yaml if self.objects is None else None
        for path, line in yaml.duplicates() if yaml is not None else ():
            place = location.at_line(location.line + line)
            self.warnings.append(f'{place}: duplicate field "{path}": the last one counts')
        # Kustomize recognizes its own file by the name.
        kind = "Kustomization" if PurePath(location.name).name in KUSTOMIZATIONS else ""
        self._add(value, location, kind)

    def _add_json(self, content: _Json, location: DocumentLocation, default_kind: str = "") -> None:
        """Add one JSON object or List; large dumps are decoded item by item into the fields that we read."""
        envelope = _Envelope()
        try:
            with suppress(msgspec.ValidationError):
                envelope = _envelope.decode(content)
            kind = envelope.kind or default_kind
            if envelope.items is not None and kind.endswith("List"):
                for number, item in enumerate(envelope.items):
                    self._add_json(item, location.item(number), kind.removesuffix("List"))
                return
            if kind == "Pod" and self.objects is None:
                # The slow path below finds what is wrong.
                with suppress(*_NOT_JSON, QosError):
                    pod = _pod.decode(content)
                    if pod.metadata.uid:
                        self._add_pod(pod)
                        return
            self._add(json_value(content), location, kind)
        except _NOT_JSON as error:
            self.problems.append(_bad_json(error, content, location))

    def _add(self, raw: Any, location: DocumentLocation, default_kind: str = "") -> None:
        raw = self._whole(_unwrapped(raw), location, default_kind)
        words = {*raw} if isinstance(raw, Mapping) else set()
        is_of_helm = "values" in PurePath(location.name).name and "apiVersion" not in words
        needed = {"apiVersion"} if is_of_helm else {"apiVersion", "kind"}
        of_kubelet = _SUMMARY if {"node", "pods"} <= words else _CONFIGZ if _CONFIGZ in words else ""
        of_kubelet = of_kubelet if self.objects is None else ""
        looks_like_object = bool(of_kubelet) or (not words.isdisjoint(needed) and "$patch" not in words)
        if self.is_of_folder and not (default_kind or location.path or looks_like_object):
            self._skip(raw, location)
            return
        if not isinstance(raw, Mapping):
            actual = {list: "a list", str: "a text", type(None): "null"}.get(type(raw), repr(raw))
            self.problems.append(location.error(f"an object was expected, not {actual}"))
            return
        kind = raw.get("kind") or default_kind or of_kubelet
        if not isinstance(kind, str) or not kind:
            other = _COMPOSE if {"services"} <= words else _NO_KIND
            self.problems.append(location.error(*(_VALUES if is_of_helm else other)))
            return
        items = raw.get("items")
        if kind.endswith("List") and (items is None or isinstance(items, list)):
            for number, item in enumerate(items or ()):
                self._add(item, location.item(number), kind.removesuffix("List"))
            return
        name = metadata_text(raw, "name")
        subject = f"{kind.lower()}/{name}" if name else kind
        try:
            pods = self._add_object(kind, raw if name else self._generate_name(kind, raw))
        except (msgspec.ValidationError, QosError) as error:
            self.problems += _bad_fields(location, subject, raw, error)
            return
        if self.objects is not None:
            self.objects.append(ReadObject(kind, raw, location, pods))
        elif pods and not metadata_text(raw, "uid"):
            from kubectl_qos.k8s.validation import manifest_mistakes

            for mistake in chain.from_iterable(manifest_mistakes(raw, pod) for pod in pods):
                texts = self.refused if mistake.is_refused else self.warnings
                texts.append(f"{location.field(mistake.path)}: {subject}: {mistake.message}")

    def _skip(self, raw: Any, location: DocumentLocation) -> None:
        if self.is_named and completed(raw) is not raw:
            self.parts[location.name] = None
        else:
            self.skipped += 1

    def _whole(self, raw: Any, location: DocumentLocation, default_kind: str) -> Any:
        """Return the object of which a file has only a part, with a warning; anything else unchanged."""
        is_of_other = self.is_of_folder or default_kind or location.path
        whole = completed(raw) if not (is_of_other or "values" in PurePath(location.name).name) else raw
        if whole is not raw:
            kind = whole["kind"]
            self.warnings.append(f"{location}: no apiVersion and kind, so it is read as a part of a {kind}")
        return whole

    def _generate_name(self, kind: str, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an object with a name made of its generateName and a number."""
        prefix = metadata_text(raw, "generateName")
        if not prefix:
            return raw
        key = kind, metadata_text(raw, "namespace"), prefix
        self.generated[key] += 1
        return {**raw, "metadata": {**nested(raw, "metadata"), "name": f"{prefix}{self.generated[key]}"}}

    def _add_of_kubelet(self, kind: str, raw: Mapping[str, Any]) -> None:
        if kind != _SUMMARY:
            kubelet_from_configz(raw, Release.of(DEFAULT_RELEASE))  # finds what is wrong
            self.configz.append(raw)
            return
        summary = msgspec.convert(raw, Summary, strict=False)
        node = summary.node
        self.usage |= usage_from_summary(summary)
        self.node_usage[node.node_name] = node.working_set_bytes or 0
        self.node_sampled.pop(node.node_name, None)
        if node.swap_capacity_bytes is not None:
            self.node_swap[node.node_name] = node.swap_capacity_bytes
        if node.pressure is not None:
            self.pressure[node.node_name] = node.pressure

    def _add_object(self, kind: str, raw: Mapping[str, Any]) -> Sequence[Pod]:
        if kind == "Pod":
            return [self._add_pod(convert({**raw, "kind": kind}, Pod))]
        if is_workload(kind, str(raw.get("apiVersion") or "")):
            return [self._add_pod(pod_from_workload(kind, raw))]
        if kind == "Node":
            node = convert(raw, NodeObject)
            self.nodes[node.name] = node
        elif kind == "PodMetrics":
            self.usage |= usage_by_pod([convert(raw, PodMetrics)])
        elif kind == "NodeMetrics":
            sample = convert(raw, NodeMetrics)
            self.node_usage |= usage_by_node([sample])
            self.node_sampled |= sampled_by_node([sample])
        elif kind in {_SUMMARY, _CONFIGZ} or (kind == _KUBELET_FILE and self.objects is None):
            self._add_of_kubelet(kind, raw)
        elif kind == "HostView" and self.objects is None:
            self.processes += msgspec.convert(raw, HostView).processes
        elif kind == "Event" and raw.get("apiVersion", "v1") == "v1":
            # Events of events.k8s.io are the same ones; other groups may also have a kind Event.
            self.events.append(convert(raw, Event))
        else:
            pods = pods_from_custom(kind, raw)
            if not pods and not self._affects_pods(kind, raw):
                self.ignored[kind] += 1
                self.made_by_controllers.update([kind] * is_custom_with_resources(raw))
            return [self._add_pod(pod) for pod in pods]
        return ()

    def _affects_pods(self, kind: str, raw: Json) -> bool:
        """Return whether the object affects pods; keep the values of PriorityClasses and RuntimeClasses."""
        from kubectl_qos.edit.related import RELATED

        name, value = metadata_text(raw, "name"), raw.get("value")
        if kind in RELATED:
            convert(raw, RELATED[kind].item_type)
        elif kind == "RuntimeClass":
            fixed = convert({"overhead": nested(raw, "overhead").get("podFixed")}, PodSpec).overhead
            self.overheads |= {name: fixed} if fixed is not None else {}
        elif kind == "PriorityClass" and isinstance(value, int):
            self.priorities |= {name: value, **({"": value} if raw.get("globalDefault") is True else {})}
        return kind in {*RELATED, "PriorityClass", "RuntimeClass"}

    def drop_replaced(self) -> None:
        """Keep the last of several objects with the same kind, namespace and name; add a warning."""
        last = dict[object, Pod]()
        for number, pod in enumerate(self.pods):
            name = object_name(pod)
            key = (pod.kind, *pod.key) if name else number
            if key in last:
                self.replaced[key] = "/".join(filter(None, (pod.namespace, pod.kind.lower(), name)))
            last[key] = pod
        if self.replaced:
            self.pods = [*last.values()]
            names = first_few([*self.replaced.values()])
            self.warnings.append(f"{names}: there more than once; the last one counts, as for kubectl apply")

    def admit(self) -> None:
        """Give manifests the values of the PriorityClasses and RuntimeClasses among the objects."""
        if not (self.priorities or self.overheads):
            return
        written = (pod for pod in self.pods if not pod.metadata.uid)
        changed = {id(pod): admitted(pod, self.priorities, self.overheads) for pod in written}
        self.pods = [changed.get(id(pod), pod) for pod in self.pods]
        if self.objects is not None:
            for number, read in enumerate(self.objects):
                self.objects[number] = read._replace(pods=[changed.get(id(pod), pod) for pod in read.pods])

    def _add_pod(self, pod: Pod) -> Pod:
        if not pod.containers:
            path = dotted((*spec_path(pod), "containers"))
            raise InputError(
                f"{path}: Required value", hint="kubectl qos check -k DIR reads a patch with its base"
            )
        self.pods.append(self.interner.pod(pod if pod.metadata.uid else admitted(pod)))
        return self.pods[-1]


def completed(raw: Any) -> Any:
    """Return a part of a manifest as the pod or Deployment that it is of; anything else unchanged."""
    keys = {*nested(raw)}
    if not keys or {"apiVersion", "kind"} & keys:
        return raw
    part = {"containers": [{"name": UNKNOWN_CONTAINER, **raw}]} if keys == {"resources"} else raw
    part = {"spec": part} if nested_list(part, "containers") else part
    for kind, version, path in _PARTS:
        if nested_list(part, *path, "containers"):
            metadata = {"name": UNKNOWN_CONTAINER, **nested(part, "metadata")}
            return {**part, "apiVersion": version, "kind": kind, "metadata": metadata}
    return raw


def _unwrapped(raw: Any) -> Any:
    """Return the object in an event of `kubectl get -w --output-watch-events -o json` or an event router."""
    if not isinstance(raw, Mapping) or "kind" in raw:
        return raw
    watched, routed = raw.get("object"), raw.get("event")
    if isinstance(routed, Mapping) and "involvedObject" in routed:
        return {"kind": "Event", **routed}
    return watched if isinstance(watched, Mapping) and "type" in raw else raw


class _Envelope(msgspec.Struct):
    # Items stay bytes until each is decoded by its kind.
    kind: str = ""
    items: list[msgspec.Raw] | None = None


_raw = msgspec.json.Decoder(msgspec.Raw)
_envelope = msgspec.json.Decoder(_Envelope)
_pod = JsonDecoder(Pod)
json_value = msgspec.json.Decoder(float_hook=str).decode
"""Decode one JSON text into plain values; numbers with a point or exponent stay text."""


def _bad_json(error: Exception, content: _Json, location: DocumentLocation) -> InputError:
    message = " ".join(str(error).split())
    match = re.search(r" \(byte (\d+)\)", message)
    if match is None:
        return location.error(f"not valid JSON: {message}")
    line = location.line + bytes(content)[: int(match[1])].count(b"\n")
    problem = f"{location.name}: line {line}: not valid JSON: {message[: match.start()]}"
    return InputError(problem).at(location.name, line)


def _bad_fields(
    location: DocumentLocation, subject: str, raw: Mapping[str, Any], error: Exception
) -> Iterator[InputError]:
    """Yield an error for each invalid quantity of an object, or the only error."""
    problems = [("", str(error), error.hint if isinstance(error, QosError) else "")]
    if isinstance(error, QuantityError) and (quantities := [*_bad_quantities(raw, "")]):
        problems = quantities
    elif isinstance(error, msgspec.ValidationError):
        message, _, path = str(error).replace(" | null", "").partition(" - at `$")
        problems = [(path.rstrip("`").lstrip("."), message, "")]
    for path, message, hint in problems:
        problem = f"{location.field(path)}: {subject}: {f'{path}: ' if path else ''}{message}"
        yield InputError(problem, hint).at(location.name, *location.position(path) or (location.line,))


def _bad_quantities(raw: Any, path: str) -> Iterator[tuple[str, str, str]]:
    """Yield the path of each invalid quantity, what is wrong, and how to write it."""
    if isinstance(raw, Mapping):
        for key, value in raw.items():
            inner = f"{path}.{key}" if path else str(key)
            if key in QUANTITY_MAPS and isinstance(value, Mapping):
                for name, text in value.items():
                    try:
                        Quantity.from_json(text)
                    except QuantityError as error:
                        shown = repr(text) if isinstance(text, str) else msgspec.json.encode(text).decode()
                        hint = quantity_hint(str(text), name)
                        yield f"{inner}.{name}", f"Invalid value: {shown}: {error}", hint
            else:
                yield from _bad_quantities(value, inner)
    elif isinstance(raw, list):
        for index, value in enumerate(raw):
            yield from _bad_quantities(value, f"{path}[{index}]")

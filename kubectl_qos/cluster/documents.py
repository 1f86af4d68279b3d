"""What is wrong with a document, in one sentence: the place, the field and the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from kubectl_qos.errors import InputError, QosError, QuantityError
from kubectl_qos.k8s.defaulting import with_system_priority
from kubectl_qos.k8s.events import Event
from kubectl_qos.k8s.interning import Interner
from kubectl_qos.k8s.kinds import WORKLOADS, pod_from_workload, template_path
from kubectl_qos.k8s.objects import NodeObject, Pod, convert, json_decoder
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.usage import PodKey, PodMetrics, PodUsage, usage_by_pod
from kubectl_qos.yaml_loader import MAX_DEPTH, is_too_deep, yaml_loader

if TYPE_CHECKING:
    import yaml


_QUANTITY_MAPS: Final = frozenset({"requests", "limits", "overhead", "capacity", "allocatable", "usage"})


@dataclass(frozen=True, slots=True)
class DocumentLocation:
    """Where a document or an item of a List is; `number` is 0 where the file holds one document only."""

    name: str
    number: int = 0
    line: int = 1
    path: str = ""

    def item(self, number: int) -> DocumentLocation:
        """An item of the List that is here."""
        return replace(self, path=f": items[{number}]")

    def __str__(self) -> str:
        document = f": document {self.number} (line {self.line})" if self.number else ""
        return f"{self.name}{document}{self.path}"


def empty(name: str) -> InputError:
    """A file without content."""
    return InputError(f"{name}: empty", hint="kubectl get pods,nodes -A -o json gives a file to read")


def not_text(name: str, byte: int) -> InputError:
    """A file that is not UTF-8."""
    return InputError(f"{name}: not a text file (byte {byte})", hint="manifests are UTF-8 YAML or JSON")


def not_an_object(place: str, raw: object) -> InputError:
    """A document that is a list, a text or a number."""
    found = "a list" if isinstance(raw, list) else "a text" if isinstance(raw, str) else f"{raw!r}"
    return InputError(f"{place}: an object was expected, not {found}")


def no_kind(place: str) -> InputError:
    """An object without a kind, in Kubernetes' words."""
    return InputError(f"{place}: Object 'Kind' is missing", hint="every document needs apiVersion and kind")


def bad_yaml(error: yaml.MarkedYAMLError, place: DocumentLocation) -> InputError:
    """YAML that cannot be parsed, with the line in the file."""
    mark = error.problem_mark or error.context_mark
    line = place.line + (mark.line if mark is not None else 0)
    column = mark.column + 1 if mark is not None else 1
    document = f"document {place.number}, " if place.number else ""
    return InputError(f"{place.name}: {document}line {line}, column {column}: {error.problem}")


def bad_json(error: Exception, content: memoryview | msgspec.Raw, place: DocumentLocation) -> InputError:
    """JSON that cannot be parsed; msgspec's byte offset is turned into a line of the file."""
    message = " ".join(str(error).split())
    match = re.search(r" \(byte (\d+)\)", message)
    if match is None:
        return InputError(f"{place}: not valid JSON: {message}")
    line = place.line + bytes(content)[: int(match[1])].count(b"\n")
    return InputError(f"{place.name}: line {line}{place.path}: not valid JSON: {message[: match.start()]}")


def reference(kind: str, raw: Mapping[str, Any]) -> str:
    """`pod/web-0`, or the kind alone for an object without a name."""
    metadata = raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return f"{kind.lower()}/{name}" if name else kind


def bad_field(where: str, raw: Mapping[str, Any], error: Exception) -> InputError:
    """An object with a field that cannot be used: the field's path and the reason."""
    if isinstance(error, QuantityError):
        for path, value, reason in _bad_quantities(raw, ""):
            return InputError(
                f"{where}: {path}: Invalid value: {value!r}: {reason}",
                hint="write a quantity such as 250m, 1.5 or 512Mi",
            )
    if isinstance(error, msgspec.ValidationError):
        message, _, path = str(error).replace(" | null", "").partition(" - at `$")
        field_path = path.rstrip("`").lstrip(".")
        return InputError(f"{where}: {field_path + ': ' if field_path else ''}{message}")
    return InputError(f"{where}: {error}", hint=error.hint if isinstance(error, QosError) else "")


def _bad_quantities(raw: Any, path: str) -> Iterator[tuple[str, object, str]]:
    if isinstance(raw, Mapping):
        for key, value in raw.items():
            inner = f"{path}.{key}" if path else str(key)
            if key in _QUANTITY_MAPS and isinstance(value, Mapping):
                for name, text in value.items():
                    try:
                        Quantity.from_json(text)
                    except QuantityError as error:
                        yield f"{inner}.{name}", text, str(error)
            else:
                yield from _bad_quantities(value, inner)
    elif isinstance(raw, list):
        for index, value in enumerate(raw):
            yield from _bad_quantities(value, f"{path}[{index}]")


@dataclass
class ParsedObjects:
    """What the documents held, and what was wrong with others."""

    pods: list[Pod] = field(default_factory=list)
    nodes: dict[str, NodeObject] = field(default_factory=dict)
    usage: dict[PodKey, PodUsage] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    problems: list[InputError] = field(default_factory=list)
    others: int = 0
    sharing: Interner = field(default_factory=Interner)


def read_documents(content: bytes, name: str, found: ParsedObjects) -> None:
    """Put every document of a file where it belongs; what is wrong with it goes to the problems."""
    content = content.removeprefix(BYTE_ORDER_MARK)
    if not content.strip():
        found.problems.append(empty(name))
    elif _is_json(content):
        for place, document in _json_documents(content, name):
            _read_json(document, place, found)
    else:
        _read_yaml(content, name, found)


class Document(NamedTuple):
    """One document of a file: where it is, its text and what that says; `begin` counts characters."""

    place: DocumentLocation
    begin: int
    text: str
    value: Any
    is_json: bool

    def objects(self) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
        """Every object as plain JSON with its path in the document: Lists are taken apart."""
        if not isinstance(self.value, dict):
            return
        kind = str(self.value.get("kind") or "")
        items = self.value.get("items")
        if kind.endswith("List") and isinstance(items, list):
            of_list = kind.removesuffix("List")
            for number, item in enumerate(items):
                if isinstance(item, dict):
                    yield ("items", number), {"kind": of_list, **item}
        else:
            yield (), self.value

    def place_of(self, path: tuple[str | int, ...]) -> str:
        """The place of an object in words."""
        return str(self.place.item(int(path[1])) if path else self.place)


def plain_objects(content: bytes, name: str) -> Iterator[dict[str, Any]]:
    """Every object of a file as plain JSON, Lists taken apart; documents that cannot be read are left out."""
    for document in plain_documents(content, name):
        for _, found in document.objects():
            yield found


def plain_documents(content: bytes, name: str) -> Iterator[Document]:
    """Every document of a file as plain JSON; those that cannot be read are left out."""
    content = content.removeprefix(BYTE_ORDER_MARK)
    if _is_json(content):
        begin = 0
        for place, part in _json_documents(content, name):
            text = bytes(part).decode(errors="replace")
            with suppress(*_NOT_JSON):
                yield Document(place, begin, text, json_value(part), is_json=True)
            begin += len(text)
        return
    for place, begin, text in _yaml_documents(content.decode(errors="replace"), name):
        with suppress(InputError):
            yield Document(place, begin, text, yaml_value(text, place), is_json=False)


def json_value(text: bytes | memoryview) -> Any:
    """One JSON text as plain values; numbers with a point or exponent keep their spelling."""
    return _plain.decode(text)


BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_DOCUMENT_START = re.compile(r"^---(?:[ \t].*)?\r?$", re.MULTILINE)
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_NOT_JSON: Final = (msgspec.DecodeError, UnicodeError, RecursionError)
_Json = memoryview | msgspec.Raw


class _Envelope(msgspec.Struct):
    """The outside of an object; items stay bytes until each is decoded into what it is."""

    kind: str = ""
    items: list[msgspec.Raw] | None = None


_text = msgspec.json.Decoder(msgspec.Raw)
_envelopes = msgspec.json.Decoder(_Envelope)
_pods = json_decoder(Pod)
_plain = msgspec.json.Decoder(float_hook=str)


def _is_json(content: bytes) -> bool:
    return content.lstrip().startswith(b"{") and b"\n---" not in content


def _json_documents(content: bytes, name: str) -> Iterator[tuple[DocumentLocation, memoryview]]:
    """One JSON text after another, as two kubectl commands write them into one pipe."""
    rest, line = memoryview(content), 1
    for number in count(1):
        end = _end_of_first(rest)
        yield DocumentLocation(name, number if number > 1 or end else 0, line), rest[: end or len(rest)]
        if not end:
            return
        line += bytes(rest[:end]).count(b"\n")
        rest = rest[end:]


def _end_of_first(content: memoryview) -> int | None:
    """Where the first of several texts ends; None for a single one, and for what is no JSON."""
    try:
        _text.decode(content)
    except msgspec.DecodeError as error:
        trailing = _TRAILING.search(str(error))
        # The byte that is named is the one after the first that is too many.
        return int(trailing[1]) - 1 if trailing is not None else None
    except (UnicodeError, RecursionError):
        return None
    return None


def _read_json(content: memoryview, place: DocumentLocation, found: ParsedObjects) -> None:
    """One JSON object or List; large dumps are decoded item by item into the fields we read."""
    try:
        envelope = _envelopes.decode(content)
    except msgspec.ValidationError:
        _read_json_object(content, place, "", found)
        return
    except _NOT_JSON as error:
        found.problems.append(bad_json(error, content, place))
        return
    if envelope.items is None or not envelope.kind.endswith("List"):
        _read_json_object(content, place, envelope.kind, found)
        return
    of_list = envelope.kind.removesuffix("List")
    for number, item in enumerate(envelope.items):
        try:
            kind = _envelopes.decode(item).kind or of_list
        except _NOT_JSON:
            kind = of_list
        _read_json_object(item, place.item(number), kind, found)


def _read_json_object(content: _Json, place: DocumentLocation, kind: str, found: ParsedObjects) -> None:
    if kind == "Pod":
        try:
            _add_pod(_pods.decode(content), found)
        except (*_NOT_JSON, QosError):
            # The slow road finds what is wrong.
            pass
        else:
            return
    try:
        raw = _plain.decode(content)
    except _NOT_JSON as error:
        found.problems.append(bad_json(error, content, place))
    else:
        _take(raw, str(place), found, kind)


def _read_yaml(content: bytes, name: str, found: ParsedObjects) -> None:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        found.problems.append(not_text(name, error.start))
        return
    for place, _, document in _yaml_documents(text, name):
        try:
            raw = yaml_value(document, place)
        except InputError as error:
            found.problems.append(error)
        else:
            if raw is not None:
                _take(raw, str(place), found)


def _yaml_documents(text: str, name: str) -> Iterator[tuple[DocumentLocation, int, str]]:
    """The documents of a YAML stream, split so that a broken one does not take the others with it."""
    starts = [match.start() for match in _DOCUMENT_START.finditer(text)]
    bounds = [0, *[start for start in starts if start], len(text)]
    parts = [(begin, text[begin:end]) for begin, end in pairwise(bounds) if text[begin:end].strip(" \t\r\n-")]
    for number, (begin, part) in enumerate(parts, start=1):
        line = text.count("\n", 0, begin) + 1
        yield DocumentLocation(name, number if len(parts) > 1 else 0, line), begin, part


def yaml_value(text: str, place: DocumentLocation) -> Any:
    """One YAML document as plain values. Raises InputError."""
    import yaml

    if is_too_deep(text):
        raise InputError(f"{place}: not valid YAML: nested more than {MAX_DEPTH:,} deep")
    try:
        return yaml.load(text, Loader=yaml_loader())  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as error:
        raise bad_yaml(error, place) from None
    except (yaml.YAMLError, ValueError, KeyError, RecursionError) as error:
        raise InputError(f"{place}: not valid YAML: {' '.join(str(error).split())}") from None


def _take(raw: Any, place: str, found: ParsedObjects, kind_of_items: str = "") -> None:
    """Put one object, or every item of a List, where it belongs."""
    if not isinstance(raw, Mapping):
        found.problems.append(not_an_object(place, raw))
        return
    kind = raw.get("kind") or kind_of_items
    if not isinstance(kind, str) or not kind:
        found.problems.append(no_kind(place))
        return
    items = raw.get("items")
    if kind.endswith("List") and (items is None or isinstance(items, list)):
        for number, item in enumerate(items or ()):
            _take(item, f"{place}: items[{number}]", found, kind.removesuffix("List"))
        return
    try:
        _take_object(kind, raw, found)
    except (msgspec.ValidationError, QosError) as error:
        found.problems.append(bad_field(f"{place}: {reference(kind, raw)}", raw, error))


def _take_object(kind: str, raw: Mapping[str, Any], found: ParsedObjects) -> None:
    if kind == "Pod":
        _add_pod(convert({**raw, "kind": kind}, Pod), found)
    elif kind in WORKLOADS:
        _add_pod(pod_from_workload(kind, raw), found)
    elif kind == "Node":
        node = convert(raw, NodeObject)
        found.nodes[node.name] = node
    elif kind == "PodMetrics":
        found.usage |= usage_by_pod([convert(raw, PodMetrics)])
    elif kind == "Event" and raw.get("apiVersion", "v1") == "v1":
        # Those of events.k8s.io are the same in other words; a resource of one's own may be called so too.
        found.events.append(convert(raw, Event))
    else:
        found.others += 1


def _add_pod(pod: Pod, found: ParsedObjects) -> None:
    if not pod.containers:
        path = ".".join((*template_path(pod.kind), "spec.containers"))
        raise InputError(f"{path}: Required value", hint="a pod needs at least one container")
    found.pods.append(found.sharing.pod(pod if pod.metadata.uid else with_system_priority(pod)))

"""What is wrong with a document, in one sentence: the place, the field and the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kubectl_qos.errors import InputError, QosError, QuantityError
from kubectl_qos.k8s.quantity import Quantity

if TYPE_CHECKING:
    import yaml

_QUANTITY_MAPS: Final = frozenset({"requests", "limits", "overhead", "capacity", "allocatable", "usage"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a document or an item of a List is; `number` is 0 where the file holds one document only."""

    name: str
    number: int = 0
    line: int = 1
    path: str = ""

    def item(self, number: int) -> Place:
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


def bad_yaml(error: yaml.MarkedYAMLError, place: Place) -> InputError:
    """YAML that cannot be parsed, with the line in the file."""
    mark = error.problem_mark or error.context_mark
    line = place.line + (mark.line if mark is not None else 0)
    column = mark.column + 1 if mark is not None else 1
    document = f"document {place.number}, " if place.number else ""
    return InputError(f"{place.name}: {document}line {line}, column {column}: {error.problem}")


def bad_json(error: Exception, content: memoryview | msgspec.Raw, place: Place) -> InputError:
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

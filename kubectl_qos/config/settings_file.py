"""A file of settings: its values with their types, and errors that name the line.

msgspec checks the types. Its own errors have no lines, and leave out the keys of mappings.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, Self, get_args, get_type_hints

import msgspec

from kubectl_qos.errors import InputError, QuantityError, did_you_mean, nearest
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.yaml_loader import YamlDocument, read_yaml

MAX_BYTES: Final = 1 << 20
MAX_CHOICES: Final = 24
_MAX_SHOWN: Final = 40
_HINTS: Final = {
    "tab character": "indent with spaces, not with tabs",
    "cannot start any token": "put the value in quotes",
    "not allowed in this context": "put a value with such a character in quotes, and align the lines",
    "could not find expected ':'": "each line has the form NAME: VALUE",
    "found another document": "write one document",
}
"""Hints for frequent mistakes, by a part of PyYAML's message."""
_TYPES: Final = {
    "object": "a mapping (NAME: VALUE)",
    "array": "a list",
    "bool": "true or false",
    "str": "a text",
}
"""Words for the types in msgspec's messages."""
Field = tuple[str, ...]
"""The names and indexes that lead to a value from the top of the file."""


class StrictStruct(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A mapping that has only these fields. `Meta(description=…)` says what a field must be."""


def stated(struct: msgspec.Struct) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in msgspec.structs.asdict(struct).items() if value is not None}


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The one document of a file; None if the file is empty."""

    path: Path
    document: YamlDocument | None

    @classmethod
    def read(cls, path: Path, *, as_text: bool = False) -> Self:
        """Read a file, with `as_text` numbers as text. Raises InputError, or OSError."""
        with path.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise InputError(f"{path} is larger than 1 MiB", "settings need a few lines")
        file = cls(path, _parse(path, content, as_text=as_text))
        for field, line in file.document.duplicates() if file.document is not None else ():
            raise _error(path, line, f"{field} occurs twice", "keep one")
        return file

    def place(self, *field: str) -> str:
        """Return `FILE:LINE` of a field."""
        return f"{self.path}:{self._line(field) + 1}"

    def error(self, field: Field, message: str, hint: str = "") -> InputError:
        """Return an error with the line of a field."""
        return _error(self.path, self._line(field), message, hint)

    def convert(self, type_: Any, *field: str) -> Any:
        """Return the value of a field, or of the whole file, as this type. Raises InputError."""
        try:
            return msgspec.convert(self._value(field), type_, dec_hook=_quantity)
        except msgspec.ValidationError as wrong:
            message, _, inner = str(wrong).partition(" - at `$")
        # msgspec writes [...] for any key of a mapping.
        steps = re.findall(r"[^.\[\]]+", inner.rstrip("`").partition("[...]")[0])
        if unknown := re.match("Object contains unknown field `(.*)`$", message):
            names = [
                item.encode_name for struct in _structs(type_) for item in msgspec.structs.fields(struct)
            ]
            return self.choice(unknown[1], names, "setting", *field, unknown[1])
        if missing := re.match("Object missing required field `(.*)`$", message):
            raise self.error(field, f"{_text(field)} needs {missing[1]}")
        if not message.startswith(("Expected", "Invalid enum value")):
            raise self.error((*field, *steps), f"{_text((*field, *steps))}: {message}")
        whole = (*field, *steps[:1])
        shown = msgspec.json.encode(self._value(whole)).decode()
        if len(shown) > _MAX_SHOWN:
            shown = {"[": "a list", "{": "a mapping"}.get(shown[0], shown[:_MAX_SHOWN] + "…")
        must_be = f"{_text(whole)} must be {_description(type_, message, *steps[:1])}, not {shown}"
        raise self.error((*field, *steps), must_be)

    def choice(self, word: str, words: Collection[str], kind: str, *field: str) -> str:
        """Return the word of a field if it is one of these words. Raises InputError with a suggestion."""
        if word in words:
            return word
        more = ", …" if len(words) > MAX_CHOICES else ""
        all_words = f"one of: {', '.join(islice(words, MAX_CHOICES))}{more}"
        hint = did_you_mean(nearest(word.lower(), words)) or all_words
        raise self.error(field, f"unknown {kind} {word!r}", hint)

    def _line(self, field: Field) -> int:
        return self.document.position(field)[0] if self.document is not None else 0

    def _value(self, field: Field) -> Any:
        if self.document is None or self.document.value is None:
            return {}
        value = self.document.value
        for step in field:
            value = value[int(step) if isinstance(value, list) else step]
        return value


def _parse(path: Path, content: bytes, *, as_text: bool) -> YamlDocument | None:
    import yaml

    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start)
        raise _error(path, line, "this is not UTF-8", "save the file as UTF-8") from None
    try:
        return read_yaml(text, as_text=as_text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = " ".join(filter(None, (error.context, error.problem)))
        hint = next((hint for part, hint in _HINTS.items() if part in message), "")
        raise _error(path, mark.line if mark else 0, f"invalid YAML: {message}", hint) from None
    except yaml.reader.ReaderError as error:
        line = text.encode().count(b"\n", 0, error.position)
        raise _error(path, line, f"the character {chr(error.character)!r} is not allowed in YAML") from None
    except yaml.YAMLError as error:
        raise InputError(f"{path}: invalid YAML: {error}") from None


def _error(path: Path, line: int, message: str, hint: str = "") -> InputError:
    return InputError(f"{path}, line {line + 1}: {message}", hint)


def _text(field: Field) -> str:
    """Format a path such as `exceptions[0].rules`."""
    text = "".join(f"[{step}]" if step.isdecimal() else f".{step}" for step in field)
    return text.removeprefix(".") or "the file"


def _structs(type_: Any) -> list[type[msgspec.Struct]]:
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return [type_]
    return [struct for argument in get_args(type_) for struct in _structs(argument)]


def _description(type_: Any, message: str, *name: str) -> str:
    """Return what a type, or the field of a struct, must be: in its own words, or by msgspec's message."""
    for struct in _structs(type_) if name else ():
        hints = get_type_hints(struct, include_extras=True)
        names = {field.encode_name: field.name for field in msgspec.structs.fields(struct)}
        type_ = hints[names[name[0]]]
    for meta in getattr(type_, "__metadata__", ()):
        return str(meta.description)
    expected = message.partition(", got")[0]
    return next(words for name, words in _TYPES.items() if f"`{name}" in expected)


def _quantity(_: Any, value: object) -> Quantity:
    try:
        return Quantity.from_json(value)
    except QuantityError as wrong:
        raise ValueError(str(wrong)) from None

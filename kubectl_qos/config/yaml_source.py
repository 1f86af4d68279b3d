"""A YAML file as values that know their lines, so that each error names its place.

Errors of msgspec would not do: they have no lines, and no keys of mappings by which one could be found.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from kubectl_qos.errors import InputError
from kubectl_qos.yaml_loader import is_too_deep, yaml_loader

MAX_BYTES: Final = 1 << 20
MAX_CHOICES: Final = 24
"""Longer lists of valid words are cut in hints."""
_FLAGS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_HINTS: Final = {
    "tab character": "indent with spaces, not with tabs",
    "cannot start any token": "put the value in quotes",
    "not allowed in this context": "put a value with such a character in quotes, and align the lines",
    "could not find expected ':'": "each line has the form NAME: VALUE",
}
"""What helps against the most frequent mistakes, by a part of PyYAML's message."""


@dataclass(frozen=True, slots=True)
class YamlValue:
    """A value of the file: `name` is what messages call it, `node` what PyYAML composed."""

    file: Path
    name: str
    node: Any

    def error(self, message: str, hint: str = "") -> InputError:
        """An error with the place of this value."""
        return _error(self.file, self.node.start_mark.line + 1, message, hint)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing after the colon, or only comments."""
        return self.node.id == "scalar" and not (self.node.value or self.node.style)

    def text(self) -> str:
        """A scalar as it is written: `1` and `true` are texts too. Raises InputError."""
        if self.node.id != "scalar":
            raise self.error(f"{self.name} is one value, not {self._description()}")
        return str(self.node.value)

    def choice(self, words: Collection[str]) -> str:
        """One of these words. Raises InputError."""
        text = self.text()
        if text not in words:
            raise self.error(f"{self.name}: unknown value {text!r}", _suggestion(text, words))
        return text

    def flag(self) -> bool:
        """True or false. Raises InputError."""
        flag = _FLAGS.get(self.text().lower())
        if flag is None:
            raise self.error(f"{self.name} is true or false, not {self.text()!r}")
        return flag

    def items(self) -> list[YamlValue]:
        """The values of a list. Raises InputError."""
        if self.node.id != "sequence":
            raise self.error(f"{self.name} is a list, not {self._description()}", "such as [a, b]")
        return [YamlValue(self.file, self.name, node) for node in self.node.value]

    def entries(self, kind: str, names: Collection[str] | None = None) -> dict[str, YamlValue]:
        """The values of a mapping by their names, which are of this kind; `names` None means any.

        Raises InputError.
        """
        if self.node.id != "mapping":
            raise self.error(f"{self.name} has entries of the form NAME: VALUE, not {self._description()}")
        entries: dict[str, YamlValue] = {}
        lines: dict[str, int] = {}
        for key_node, node in self.node.value:
            key = YamlValue(self.file, f"the name of a {kind}", key_node)
            name = key.text()
            if names is not None and name not in names:
                raise key.error(f"unknown {kind} {name!r}", _suggestion(name, names))
            if name in entries:
                raise key.error(f"{name!r} is there twice, first in line {lines[name]}", "keep one")
            entries[name], lines[name] = YamlValue(self.file, name, node), key_node.start_mark.line + 1
        return entries

    def _description(self) -> str:
        return {"sequence": "a list", "mapping": "a mapping"}.get(self.node.id) or repr(self.node.value)


def read_yaml(file: Path) -> YamlValue | None:
    """The one document of a YAML file; None if there is no such file, or nothing in it.

    Raises InputError with the line for a file that cannot be read or is not YAML.
    """
    text = _read(file)
    if text is None or not text.strip():
        return None
    if is_too_deep(text):
        raise InputError(f"{file}: brackets are nested too deeply", "settings need three levels")
    import yaml

    try:
        nodes = list(islice(yaml.compose_all(text, Loader=yaml_loader()), 2))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = " ".join(filter(None, (error.context, error.problem)))
        hint = next((hint for part, hint in _HINTS.items() if part in message), "")
        raise _error(file, mark.line + 1 if mark else 1, f"invalid YAML: {message}", hint) from None
    except yaml.reader.ReaderError as error:
        line = text.encode().count(b"\n", 0, error.position) + 1
        raise _error(file, line, f"the character {chr(error.character)!r} is not allowed in YAML") from None
    values = [YamlValue(file, "the file", node) for node in nodes]
    if len(values) > 1:
        raise values[1].error("a second document begins here", "write one document")
    return None if not values or values[0].is_empty else values[0]


def _read(file: Path) -> str | None:
    """What is in the file, None if there is no such file. Raises InputError."""
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        hint = "KUBECTL_QOS_CONFIG= (empty) goes without settings"
        raise InputError(f"{file} cannot be read: {reason}", hint) from None
    if len(content) > MAX_BYTES:
        raise InputError(f"{file} is larger than 1 MiB", "settings need a few lines")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _error(file, line, "this is not UTF-8", "save the file as UTF-8") from None


def _suggestion(word: str, words: Collection[str]) -> str:
    """The similar one of the valid words, else all of them."""
    from difflib import get_close_matches

    similar = get_close_matches(word.lower(), words, n=1)
    if similar:
        return f"did you mean {similar[0]}?"
    more = ", …" if len(words) > MAX_CHOICES else ""
    return f"one of: {', '.join(islice(words, MAX_CHOICES))}{more}"


def _error(file: Path, line: int, message: str, hint: str = "") -> InputError:
    return InputError(f"{file}, line {line}: {message}", hint)

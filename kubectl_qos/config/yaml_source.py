"""A YAML file as values that remember their lines, so that every refusal names its place."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from kubectl_qos.errors import InputError

MAX_BYTES: Final = 1 << 20
MOST_NAMED: Final = 24
"""So many of the words that there are fit into a remedy."""
_TRUE: Final = ("true", "yes", "on")
_FALSE: Final = ("false", "no", "off")


@dataclass(frozen=True, slots=True)
class YamlValue:
    """A value of the file: `name` is what sentences call it, `node` what PyYAML composed."""

    file: Path
    name: str
    node: Any

    def wrong(self, sentence: str, hint: str = "") -> InputError:
        """The error that says what is wrong here."""
        return _wrong(self.file, self.node.start_mark.line + 1, sentence, hint)

    @property
    def is_empty(self) -> bool:
        """Whether nothing stands after the colon, as where all of it is commented out."""
        return self.node.id == "scalar" and not self.node.value and self.node.style is None

    @property
    def is_mapping(self) -> bool:
        """Whether it has entries of its own."""
        return bool(self.node.id == "mapping")

    def text(self) -> str:
        """One word or line, as it was written: `1` and `true` are texts too. Raises InputError."""
        if self.node.id != "scalar":
            raise self.wrong(f"{self.name} is one value, not a {_kind(self.node)}")
        return str(self.node.value)

    def one_of(self, known: Collection[str]) -> str:
        """One of these words. Raises InputError."""
        text = self.text()
        if text not in known:
            raise self.wrong(f"{self.name}: there is no {text!r}", hint=_nearest(text, known))
        return text

    def flag(self) -> bool:
        """Yes or no. Raises InputError."""
        word = self.text().lower()
        if word not in _TRUE + _FALSE:
            raise self.wrong(f"{self.name} is true or false, not {self.text()!r}")
        return word in _TRUE

    def items(self) -> list[YamlValue]:
        """The values of a list. Raises InputError."""
        if self.node.id != "sequence":
            raise self.wrong(f"{self.name} is a list, not {_one(self.node)}", hint="such as [a, b]")
        return [YamlValue(self.file, self.name, node) for node in self.node.value]

    def entries(self, singular: str, known: Collection[str] | None = None) -> dict[str, YamlValue]:
        """The values of a mapping by their names. Raises InputError.

        Args:
            singular: what an entry is, for sentences.
            known: the names that there are; None for any.
        """
        if not self.is_mapping:
            raise self.wrong(f"{self.name} has entries of the form NAME: VALUE, not {_one(self.node)}")
        found: dict[str, YamlValue] = {}
        lines: dict[str, int] = {}
        for key, node in self.node.value:
            name = YamlValue(self.file, f"the name of a {singular}", key)
            text, line = name.text(), key.start_mark.line + 1
            if known is not None and text not in known:
                raise name.wrong(f"there is no {singular} {text!r}", _nearest(text, known))
            if text in found:
                raise name.wrong(
                    f"{text!r} stands here a second time, first in line {lines[text]}", "keep one"
                )
            found[text], lines[text] = YamlValue(self.file, text, node), line
        return found


def read_yaml(file: Path) -> YamlValue | None:
    """The one document of a YAML file; None if there is no such file or nothing in it.

    Raises InputError for a file that cannot be read or is no YAML, with the line.
    """
    text = _text(file)
    if text is None or not text.strip():
        return None
    import yaml

    try:
        # PyYAML's own parser and not libyaml's: that one overflows the stack on deeply nested brackets.
        nodes = list(islice(yaml.compose_all(text, Loader=yaml.SafeLoader), 2))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(filter(None, (error.context, error.problem)))
        raise _wrong(file, mark.line + 1 if mark else 1, f"this is no YAML: {said}", _remedy(said)) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _wrong(file, line, f"the character {chr(error.character)!r} cannot stand in YAML") from None
    except RecursionError:
        raise InputError(
            f"{file}: brackets are nested too deeply", hint="settings need three levels"
        ) from None
    values = [YamlValue(file, "the file", node) for node in nodes]
    if len(values) > 1:
        raise values[1].wrong("a second document begins here", "one file has one document")
    return None if not values or values[0].is_empty else values[0]


def _nearest(word: str, known: Collection[str]) -> str:
    """The remedy for a word that is not known: the one that looks like it, or those that there are."""
    from difflib import get_close_matches

    close = get_close_matches(word.lower(), known, n=1)
    if close:
        return f"did you mean {close[0]}?"
    more = ", …" if len(known) > MOST_NAMED else ""
    return f"there are: {', '.join(islice(known, MOST_NAMED))}{more}"


def _text(file: Path) -> str | None:
    """What is in the file, None if there is no such file. Raises InputError."""
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IsADirectoryError:
        raise InputError(f"{file} is a folder", hint="settings are in a file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        hint = "KUBECTL_QOS_CONFIG= (empty) goes without settings"
        raise InputError(f"{file} cannot be read: {reason}", hint) from None
    if len(content) > MAX_BYTES:
        raise InputError(f"{file} is larger than 1 MiB", hint="settings need a few lines")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _wrong(file, line, "this is not UTF-8", "save the file as UTF-8") from None


def _wrong(file: Path, line: int, sentence: str, hint: str = "") -> InputError:
    return InputError(f"{file}, line {line}: {sentence}", hint)


def _remedy(problem: str) -> str:
    """What helps against the mistakes that are made most."""
    remedies: Mapping[str, str] = {
        "'\\t'": "indent with spaces, not with tabs",
        "cannot start any token": "put the value in quotes",
        "not allowed here": "put a value that has such a sign in it in quotes, and align the lines",
        "could not find expected ':'": "each line has the form NAME: VALUE",
    }
    return next((remedy for sign, remedy in remedies.items() if sign in problem), "")


def _kind(node: Any) -> str:
    return {"sequence": "list", "mapping": "mapping"}.get(node.id, "value")


def _one(node: Any) -> str:
    return f"a {_kind(node)}" if node.id != "scalar" else repr(node.value)

"""A person's settings: their defaults, and the YAML file that overrides them, whose errors name the line.

Errors of msgspec would not do: they have no line, and no keys of mappings by which one could be found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from kubectl_qos.config.keys import textual_key
from kubectl_qos.errors import InputError
from kubectl_qos.transport import StoreOptions
from kubectl_qos.yaml_loader import is_too_deep, yaml_loader

MAX_BYTES: Final = 1 << 20
MAX_CHOICES: Final = 24
_FLAGS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_HINTS: Final = {
    "tab character": "indent with spaces, not with tabs",
    "cannot start any token": "put the value in quotes",
    "not allowed in this context": "put a value with such a character in quotes, and align the lines",
    "could not find expected ':'": "each line has the form NAME: VALUE",
}
"""What helps against the most frequent mistakes, by a part of PyYAML's message."""
MIN_REFRESH_SECONDS: Final = 2
MAX_REFRESH_SECONDS: Final = 24 * 60 * 60
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})
_Readers = Mapping[str, Callable[["YamlValue"], Any]]


@dataclass(frozen=True, slots=True)
class StartScope:
    """What is shown first; the UI decides where nothing is set."""

    namespace: str | None = None
    node: str | None = None
    all_namespaces: bool = False


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """Whether nothing is written to a context, whether its name must be typed before, and its Prometheus.

    None if not set.
    """

    readonly: bool | None = None
    confirm: Literal["name", "key"] | None = None
    prometheus: StoreOptions | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting with its default; None leaves the decision to the UI.

    `refresh_seconds` is how often usage is read, and what of a cluster cannot be watched. `ascii` None looks
    at the terminal. `keys` has Textual's names of keys by the action.
    """

    theme: str | None = None
    columns: tuple[str, ...] | None = None
    scope: StartScope = StartScope()
    view: str | None = None
    readonly: bool = False
    contexts: Mapping[str, ContextSettings] = field(default_factory=lambda: _EMPTY)
    refresh_seconds: float | None = None
    ascii: bool | None = None
    motion: Literal["full", "reduced"] = "full"
    mouse: bool = True
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _EMPTY)

    def for_context(self, name: str) -> ContextSettings:
        """A context's settings: of its own entry, else of the last pattern, else of the file."""
        forms = {key: ".*".join(map(re.escape, key.split("*"))) for key in self.contexts if "*" in key}
        patterns = [key for key, form in forms.items() if re.fullmatch(form, name, re.DOTALL)]
        entries = [self.contexts[key] for key in (name, *reversed(patterns)) if key in self.contexts]
        readonly = (entry.readonly for entry in entries if entry.readonly is not None)
        confirm = (entry.confirm for entry in entries if entry.confirm is not None)
        stores = (entry.prometheus for entry in entries if entry.prometheus is not None)
        return ContextSettings(next(readonly, self.readonly), next(confirm, "key"), next(stores, None))


@dataclass(frozen=True, slots=True)
class AllowedNames:
    """The words that settings may use: keys of columns, and names of themes, lists and actions.

    An action is named `group.verb`, and has its default keys in Textual's names. `active_together` has sets
    of binding groups in which a key can have one meaning only.
    """

    columns: Collection[str]
    themes: Collection[str]
    views: Collection[str]
    actions: Mapping[str, Sequence[str]]
    active_together: Collection[Collection[str]] = ()


def read_settings(path: Path | None, allowed: AllowedNames | None = None) -> Settings:
    """The settings of a file; without allowed names `readonly` and `contexts` alone. Raises InputError."""
    document = None if path is None else read_yaml(path)
    if document is None:
        return Settings()
    readers: _Readers = {"readonly": YamlValue.flag, "contexts": _contexts}
    if allowed is not None:
        readers = {
            "theme": lambda value: value.choice(allowed.themes),
            "columns": lambda value: _columns(value, allowed.columns),
            "scope": _scope,
            "view": lambda value: value.choice(allowed.views),
            **readers,
            "refresh": _refresh_seconds,
            "ascii": _ascii,
            "motion": lambda value: value.choice(("full", "reduced")),
            "mouse": YamlValue.flag,
            "keys": lambda value: _keys(value, allowed),
        }
    settings = _read_entries(document.entries("setting", None if allowed is None else readers), readers)
    if "refresh" in settings:
        settings["refresh_seconds"] = settings.pop("refresh")
    return Settings(**settings)


def _read_entries(entries: Mapping[str, YamlValue], readers: _Readers) -> dict[str, Any]:
    stated = {name: value for name, value in entries.items() if name in readers and not value.is_empty}
    return {name: readers[name](value) for name, value in stated.items()}


def _columns(value: YamlValue, allowed: Collection[str]) -> tuple[str, ...]:
    columns: list[str] = []
    for item in value.items():
        column = item.choice(allowed)
        if column in columns:
            raise item.error(f"the column {column} is in the list twice", "keep one")
        columns.append(column)
    if not columns:
        raise value.error("columns is an empty list", "name some, or leave the setting out")
    return tuple(columns)


def _scope(value: YamlValue) -> StartScope:
    if value.node.id == "mapping":
        entries = value.entries("part of a scope", ("namespace", "node"))
        names = {kind: _name(item) for kind, item in entries.items()}
        return StartScope(names.get("namespace"), names.get("node"))
    if value.text() != "all":
        hint = "write all, {namespace: NAME}, {node: NAME} or {namespace: NAME, node: NAME}"
        raise value.error(f"invalid scope {value.text()!r}", hint)
    return StartScope(all_namespaces=True)


def _name(value: YamlValue) -> str:
    if not _NAME.fullmatch(value.text()):
        hint = "names have small letters, digits, - and ."
        raise value.error(f"invalid name of a {value.name}: {value.text()!r}", hint)
    return value.text()


def _contexts(value: YamlValue) -> Mapping[str, ContextSettings]:
    readers: _Readers = {
        "readonly": YamlValue.flag,
        "confirm": lambda item: item.choice(("name", "key")),
        "prometheus": _store,
    }
    return MappingProxyType(
        {
            name: ContextSettings(**_read_entries(item.entries("setting of a context", readers), readers))
            for name, item in value.entries("context").items()
            if not item.is_empty
        }
    )


def _store(value: YamlValue) -> StoreOptions:
    """`auto`, a URL, a service, or a mapping of the fields of StoreOptions."""
    if value.node.id != "mapping":
        return StoreOptions(url=value.text())
    readers: _Readers = {
        option.name: YamlValue.flag if option.name == "insecure_skip_verify" else YamlValue.text
        for option in fields(StoreOptions)
    }
    entries = _read_entries(value.entries("setting of a Prometheus", readers), readers)
    if not entries.get("url"):
        raise value.error("prometheus has no url", "write url: auto, or its address")
    return StoreOptions(**entries)


def _refresh_seconds(value: YamlValue) -> float:
    from kubectl_qos.k8s.quantity import parse_duration

    hint = "write a time such as 15s, 1m or 1m30s"
    try:
        seconds = parse_duration(value.text()) / 1e9
    except InputError:
        raise value.error(f"invalid refresh {value.text()!r}", hint) from None
    if not MIN_REFRESH_SECONDS <= seconds <= MAX_REFRESH_SECONDS:
        raise value.error(f"refresh is at least 2s and at most 24h, not {value.text()}", hint)
    return seconds


def _ascii(value: YamlValue) -> bool | None:
    if value.text() == "auto":
        return None
    try:
        return value.flag()
    except InputError:
        raise value.error(f"ascii is true, false or auto, not {value.text()!r}") from None


def _keys(value: YamlValue, allowed: AllowedNames) -> Mapping[str, tuple[str, ...]]:
    entries = value.entries("action", allowed.actions)
    # A key is free if this file takes it away from its action, wherever in the file.
    taken = {action: keys for action, keys in allowed.actions.items() if action not in entries}
    changed: dict[str, tuple[str, ...]] = {}
    for action, entry in entries.items():
        written = dict(_action_keys(entry))
        group = action.partition(".")[0]
        groups = {group}.union(*(together for together in allowed.active_together if group in together))
        for other in [other for other in taken if other.partition(".")[0] in groups]:
            for key in [key for key in written if key in taken[other]]:
                raise entry.error(
                    f"{action} and {other} would both have the key {written[key]}",
                    "give one of them another key",
                )
        changed[action] = taken[action] = tuple(written)
    return MappingProxyType(changed)


def _action_keys(value: YamlValue) -> Iterator[tuple[str, str]]:
    items = value.items() if value.node.id == "sequence" else [value]
    if not items:
        raise value.error(f"{value.name} has no key", "name one, or leave the line out")
    for item in items:
        if not item.text():
            raise item.error(f"{value.name} has an empty key", "name a key, or leave the line out")
        try:
            yield textual_key(item.text()), item.text()
        except InputError as error:
            raise item.error(f"{value.name}: {error}", error.hint) from None


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
            raise self.error(f"{self.name}: unknown value {text!r}", suggestion(text, words))
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
        """The values of a mapping by their names of this kind; None allows any name. Raises InputError."""
        if self.node.id != "mapping":
            raise self.error(f"{self.name} has entries of the form NAME: VALUE, not {self._description()}")
        entries: dict[str, YamlValue] = {}
        lines: dict[str, int] = {}
        for key_node, node in self.node.value:
            key = YamlValue(self.file, f"the name of a {kind}", key_node)
            name = key.text()
            if names is not None and name not in names:
                raise key.error(f"unknown {kind} {name!r}", suggestion(name, names))
            if name in entries:
                raise key.error(f"{name!r} is there twice, first in line {lines[name]}", "keep one")
            entries[name], lines[name] = YamlValue(self.file, name, node), key_node.start_mark.line + 1
        return entries

    def _description(self) -> str:
        return {"sequence": "a list", "mapping": "a mapping"}.get(self.node.id) or repr(self.node.value)


def read_yaml(file: Path) -> YamlValue | None:
    """The one document of a YAML file, None if there is nothing in it. Raises InputError with the line."""
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


def suggestion(word: str, words: Collection[str]) -> str:
    """What was meant instead of a word, or which words there are."""
    from difflib import get_close_matches

    similar = get_close_matches(word.lower(), words, n=1)
    if similar:
        return f"did you mean {similar[0]}?"
    more = ", …" if len(words) > MAX_CHOICES else ""
    return f"one of: {', '.join(islice(words, MAX_CHOICES))}{more}"


def _error(file: Path, line: int, message: str, hint: str = "") -> InputError:
    return InputError(f"{file}, line {line}: {message}", hint)

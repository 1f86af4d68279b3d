"""A person's settings: their defaults, and the file that says otherwise."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from kubectl_qos.config.keys import textual_key
from kubectl_qos.config.yaml_source import YamlValue, read_yaml
from kubectl_qos.errors import InputError

SHORTEST_REFRESH_SECONDS: Final = 2
LONGEST_REFRESH_SECONDS: Final = 24 * 60 * 60
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class StartScope:
    """What is shown first; without anything said, the UI decides."""

    namespace: str | None = None
    node: str | None = None
    all_namespaces: bool = False


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """What an entry of `contexts` says; None where it says nothing."""

    readonly: bool | None = None
    confirm: Literal["name", "key"] | None = None


@dataclass(frozen=True, slots=True)
class WriteRules:
    """What holds in one context: whether anything is written at all, and whether its name must be typed."""

    readonly: bool
    confirm_by_name: bool


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting with its default. None means that the UI decides as if there were no such setting.

    `refresh_seconds` is how often usage is asked for, and what of a cluster cannot be watched. `ascii` None
    looks at the terminal. `keys` has Textual's names of keys by the action.
    """

    theme: str | None = None
    columns: tuple[str, ...] | None = None
    scope: StartScope = StartScope()
    view: str | None = None
    readonly: bool = False
    contexts: Mapping[str, ContextSettings] = field(default_factory=lambda: _NOTHING)
    refresh_seconds: float | None = None
    ascii: bool | None = None
    motion: Literal["full", "reduced"] = "full"
    mouse: bool = True
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NOTHING)

    def for_context(self, name: str) -> WriteRules:
        """What holds in the context of this name.

        Each of the two is said by the most specific entry that says it: the one of exactly this name, then
        the last pattern that matches, then `readonly` of the whole file.
        """
        matching = [entry for pattern, entry in self.contexts.items() if _is_pattern_of(pattern, name)]
        exact = self.contexts.get(name)
        entries = [*([exact] if exact is not None else []), *reversed(matching)]
        readonly = (entry.readonly for entry in entries if entry.readonly is not None)
        confirm = (entry.confirm for entry in entries if entry.confirm is not None)
        return WriteRules(next(readonly, self.readonly), next(confirm, "key") == "name")

    def keymap(self) -> dict[str, str]:
        """The keys in the form of Textual's `set_keymap`."""
        return {action: ",".join(keys) for action, keys in self.keys.items()}


@dataclass(frozen=True, slots=True)
class AllowedNames:
    """The words that settings may use.

    Attributes:
        columns: the keys of the columns of pods.
        themes: the names of themes.
        views: the names of lists.
        actions: the names of actions, `room.verb`, each with its own keys in Textual's names.
        rooms_together: sets of rooms whose keys are heard at the same time, so that one key means one thing
            in all of them; in one room it does anyway.
    """

    columns: Collection[str]
    themes: Collection[str]
    views: Collection[str]
    actions: Mapping[str, Sequence[str]]
    rooms_together: Collection[Collection[str]] = ()


def read_settings(path: Path | None, known: AllowedNames) -> Settings:
    """The settings of a file; the defaults if there is none.

    Raises InputError for the first thing in it that cannot be used, with the file and the line.
    """
    document = None if path is None else read_yaml(path)
    if document is None:
        return Settings()
    readers: Mapping[str, Callable[[YamlValue], Any]] = {
        "theme": lambda value: value.one_of(known.themes),
        "columns": lambda value: _columns(value, known.columns),
        "scope": _scope,
        "view": lambda value: value.one_of(known.views),
        "readonly": YamlValue.flag,
        "contexts": _contexts,
        "refresh": _refresh_seconds,
        "ascii": _ascii,
        "motion": lambda value: value.one_of(("full", "reduced")),
        "mouse": YamlValue.flag,
        "keys": lambda value: _keys(value, known),
    }
    fields = {"refresh": "refresh_seconds"}
    entries = document.entries("setting", readers)
    found = {
        fields.get(name, name): readers[name](value) for name, value in entries.items() if not value.is_empty
    }
    return Settings(**found)


def read_write_settings(path: Path | None) -> Settings:
    """What a file says about writing, all else at its default: commands need no more, and know no themes.

    Raises InputError for what of that cannot be used.
    """
    document = None if path is None else read_yaml(path)
    if document is None:
        return Settings()
    entries = document.entries("setting")
    readonly, contexts = entries.get("readonly"), entries.get("contexts")
    return Settings(
        readonly=readonly is not None and not readonly.is_empty and readonly.flag(),
        contexts=_NOTHING if contexts is None or contexts.is_empty else _contexts(contexts),
    )


def _columns(value: YamlValue, known: Collection[str]) -> tuple[str, ...]:
    found: list[str] = []
    for item in value.items():
        key = item.one_of(known)
        if key in found:
            raise item.wrong(f"the column {key} stands in the list twice", "keep one")
        found.append(key)
    if not found:
        raise value.wrong("columns is an empty list", "name some, or leave the setting out")
    return tuple(found)


def _scope(value: YamlValue) -> StartScope:
    if not value.is_mapping:
        if value.text() != "all":
            hint = "write all, {namespace: NAME}, {node: NAME} or {namespace: NAME, node: NAME}"
            raise value.wrong(f"scope cannot be {value.text()!r}", hint)
        return StartScope(all_namespaces=True)
    parts = value.entries("part of a scope", ("namespace", "node"))
    named = {part: _name(entry) for part, entry in parts.items()}
    return StartScope(namespace=named.get("namespace"), node=named.get("node"))


def _name(value: YamlValue) -> str:
    text = value.text()
    if not _NAME.fullmatch(text):
        raise value.wrong(
            f"{text!r} cannot be the name of a {value.name}", "names have small letters, digits, - and ."
        )
    return text


def _contexts(value: YamlValue) -> Mapping[str, ContextSettings]:
    readers: Mapping[str, Callable[[YamlValue], Any]] = {
        "readonly": YamlValue.flag,
        "confirm": lambda entry: entry.one_of(("name", "key")),
    }
    return MappingProxyType(
        {
            name: ContextSettings(
                **{
                    key: readers[key](said)
                    for key, said in entry.entries("setting of a context", readers).items()
                    if not said.is_empty
                }
            )
            for name, entry in value.entries("context").items()
            if not entry.is_empty
        }
    )


def _is_pattern_of(pattern: str, name: str) -> bool:
    """Only `*` stands for something: names of contexts are full of other signs."""
    return "*" in pattern and bool(
        re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL)
    )


def _refresh_seconds(value: YamlValue) -> float:
    from kubectl_qos.k8s.quantity import parse_duration

    hint = "write a time such as 15s, 1m or 1m30s"
    try:
        seconds = parse_duration(value.text()) / 1e9
    except InputError:
        raise value.wrong(f"refresh cannot be {value.text()!r}", hint) from None
    if not SHORTEST_REFRESH_SECONDS <= seconds <= LONGEST_REFRESH_SECONDS:
        raise value.wrong(f"refresh is at least 2s and at most 24h, not {value.text()}", hint)
    return seconds


def _ascii(value: YamlValue) -> bool | None:
    return None if value.text() == "auto" else _flag_or_auto(value)


def _flag_or_auto(value: YamlValue) -> bool:
    try:
        return value.flag()
    except InputError:
        raise value.wrong(f"ascii is true, false or auto, not {value.text()!r}") from None


def _keys(value: YamlValue, known: AllowedNames) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    taken = {action: tuple(keys) for action, keys in known.actions.items()}
    entries = value.entries("action", known.actions)
    for action in entries:
        # What this file moves away from a key leaves it free, wherever in the file that stands.
        del taken[action]
    for action, entry in entries.items():
        written = dict(_named_keys(entry))
        keys = tuple(written)
        for other, key in _shared(action, keys, taken, known.rooms_together):
            raise entry.wrong(
                f"{action} and {other} would both have the key {written[key]}", "give one of them another key"
            )
        found[action] = taken[action] = keys
    return MappingProxyType(found)


def _named_keys(value: YamlValue) -> Iterator[tuple[str, str]]:
    """The keys of one action: Textual's name of each, and what stands in the file. Raises InputError."""
    items = value.items() if value.node.id == "sequence" else [value]
    if not items:
        raise value.wrong(f"{value.name} has no key", "name one, or leave the line out")
    for item in items:
        if not item.text():
            raise item.wrong(f"{value.name} has an empty key", "name a key, or leave the line out")
        try:
            yield textual_key(item.text()), item.text()
        except InputError as error:
            raise item.wrong(f"{value.name}: {error}", error.hint) from None


def _shared(
    action: str,
    keys: Sequence[str],
    taken: Mapping[str, Sequence[str]],
    rooms_together: Collection[Collection[str]],
) -> Iterator[tuple[str, str]]:
    """Other actions that are heard where this one is, with a key that both have."""
    room = action.partition(".")[0]
    rooms = {room, *(other for together in rooms_together if room in together for other in together)}
    for other, theirs in taken.items():
        if other.partition(".")[0] in rooms:
            yield from ((other, key) for key in keys if key in theirs)

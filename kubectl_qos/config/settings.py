"""Settings files with errors that name the line, and a person's settings with defaults and names of keys.

msgspec checks the types of a file's values, but its errors have no lines and omit the keys of mappings.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self, get_args, get_type_hints

import msgspec
from msgspec import Meta

from kubectl_qos.errors import InputError, QuantityError, did_you_mean, nearest
from kubectl_qos.k8s.quantity import Quantity, parse_duration
from kubectl_qos.transport import StoreOptions
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
    """A mapping with only these fields. `Meta(description=…)` describes a field's values in errors."""


def stated(struct: msgspec.Struct) -> dict[str, Any]:
    """Return the fields whose value is not None."""
    return {name: value for name, value in msgspec.structs.asdict(struct).items() if value is not None}


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A file with one document, which is None if the file is empty."""

    path: Path
    document: YamlDocument | None

    @classmethod
    def read(cls, path: Path, *, as_text: bool = False) -> Self:
        """Read a file; `as_text` leaves numbers as text. Raises InputError, or OSError."""
        with path.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise InputError(f"{path} is larger than 1 MiB", "settings need a few lines")
        file = cls(path, _parse(path, content, as_text=as_text))
        for name, line in file.document.duplicates() if file.document is not None else ():
            raise _error(path, line, f"{name} occurs twice", "keep one")
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
        # msgspec writes [...] in place of a mapping's key.
        steps = re.findall(r"[^.\[\]]+", inner.rstrip("`").partition("[...]")[0])
        if unknown := re.match("Object contains unknown field `(.*)`$", message):
            names = [name for struct in _structs(type_) for name in struct.__struct_encode_fields__]
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
        """Return the word of a field. Raises InputError with a suggestion if it is none of `words`."""
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
    """Describe a type, or the field of a struct: by its Meta, else in the words of msgspec's message."""
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


_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class StartScope:
    """The scope of the first view; the UI chooses values that are not set."""

    namespace: str | None = None
    node: str | None = None
    all_namespaces: bool = False


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """The settings of a context; None if not set."""

    readonly: bool | None = None
    confirm: Literal["name", "key"] | None = None
    prometheus: StoreOptions | None = None


@dataclass(frozen=True, slots=True)
class ThemeColours:
    """A theme of a file: the theme that it is based on, and the colours that differ, by their names."""

    start: str
    colours: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UserSettings:
    """Every setting with its default; None leaves the decision to the UI.

    Usage, and lists that cannot be watched, are read every `refresh_seconds`. With `ascii` None the terminal
    decides. `keys` has Textual's names of keys by action, `themes` the themes of the folder next to the file.
    """

    theme: str | None = None
    themes: Mapping[str, ThemeColours] = field(default_factory=lambda: _EMPTY)
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
        """Return the settings of a context: its entry's, the last matching pattern's, or the file's own."""
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

    A theme of a file may be based on one of `starts`. `actions` maps a name `group.verb` to its default keys,
    by Textual's names. In each set of binding groups of `active_together` a key can have only one meaning.
    """

    columns: Collection[str]
    themes: Collection[str]
    starts: Collection[str]
    views: Collection[str]
    actions: Mapping[str, Sequence[str]]
    active_together: Collection[Collection[str]] = ()


_Named = Annotated[str, Meta(pattern=r"\A[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z")]
_Name = Annotated[_Named | None, Meta(description="a name of small letters, digits, - and .")]
_Columns = Annotated[tuple[str, ...], Meta(min_length=1)]
_Keys = Annotated[
    Annotated[str, Meta(min_length=1)] | Annotated[tuple[str, ...], Meta(min_length=1)],
    Meta(description="a key or a list of keys"),
]
_Store = Annotated[str | dict[str, Any], Meta(description="auto, a URL, a service, or a mapping with url")]


class _Scope(StrictStruct, frozen=True):
    namespace: _Name = None
    node: _Name = None


_ScopeOrAll = Annotated[
    _Scope | Literal["all"],
    Meta(description="all, {namespace: NAME}, {node: NAME} or {namespace: NAME, node: NAME}"),
]


class _Context(StrictStruct, frozen=True):
    readonly: bool | None = None
    confirm: Annotated[Literal["name", "key"] | None, Meta(description="name or key")] = None
    prometheus: Any = None


_Colour = Annotated[
    str, Meta(pattern=r"\A#?[0-9a-fA-F]{6}\Z", description="a colour in quotes such as '#5aa9e6'")
]


_COLOURS: Final = (
    *("background", "foreground", "primary", "secondary", "accent", "warning", "error", "success"),
    *("surface", "panel", "cursor", "flash"),
)
_START: Final = ("start", str, msgspec.field(name="from", default="qos-dark"))
_Theme = msgspec.defstruct(
    "_Theme", [_START, *((name, _Colour, "") for name in _COLOURS)], bases=(StrictStruct,), frozen=True
)


class _CommandSettings(msgspec.Struct, frozen=True):
    """The settings that apply to commands as well as to the UI."""

    readonly: bool | None = None
    contexts: dict[str, Any] | None = None


class _AllSettings(_CommandSettings, frozen=True, forbid_unknown_fields=True):
    theme: str | None = None
    columns: Annotated[_Columns | None, Meta(description="a list of columns, such as [pod, memory]")] = None
    scope: Any = None
    view: str | None = None
    refresh: str | None = None
    ascii: Annotated[bool | Literal["auto"] | None, Meta(description="true, false or auto")] = None
    motion: Annotated[Literal["full", "reduced"] | None, Meta(description="full or reduced")] = None
    mouse: bool | None = None
    keys: dict[str, Any] | None = None


def read_settings(path: Path | None, allowed: AllowedNames | None = None) -> UserSettings:
    """Read the settings of a file; without `allowed`, only those of commands. Raises InputError."""
    if path is None:
        return UserSettings()
    themes = dict(_read_themes(path.parent / "themes", allowed)) if allowed is not None else {}
    file = _read(path)
    if file is None:
        return UserSettings(themes=themes)
    values = stated(file.convert(_CommandSettings if allowed is None else _AllSettings))
    if "contexts" in values:
        values["contexts"] = MappingProxyType(dict(_read_contexts(file, values["contexts"])))
    if allowed is not None:
        values["themes"] = themes
        _check_names(file, values, allowed)
    if "scope" in values:
        scope = file.convert(_ScopeOrAll, "scope")
        values["scope"] = StartScope(all_namespaces=True) if scope == "all" else StartScope(**stated(scope))
    if "refresh" in values:
        values["refresh_seconds"] = _read_refresh(file, values.pop("refresh"))
    if values.get("ascii") == "auto":
        del values["ascii"]
    if "keys" in values and allowed is not None:
        values["keys"] = _read_keys(file, values["keys"], allowed)
    return UserSettings(**values)


def _read(path: Path) -> SettingsFile | None:
    try:
        return SettingsFile.read(path, as_text=True)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        hint = "KUBECTL_QOS_CONFIG= (empty) goes without settings"
        raise InputError(f"{path} cannot be read: {reason}", hint) from None


def _read_themes(folder: Path, allowed: AllowedNames) -> Iterator[tuple[str, ThemeColours]]:
    for path in sorted(folder.glob("*.yaml")):
        if (file := _read(path)) is not None:
            values = stated(file.convert(_Theme))
            start = file.choice(values.pop("start"), allowed.starts, "theme", "from")
            colours = {name: f"#{text[-6:]}" for name, text in values.items() if text}
            yield path.stem, ThemeColours(start, colours)


def _check_names(file: SettingsFile, values: Mapping[str, Any], allowed: AllowedNames) -> None:
    """Raise InputError for an unknown theme, list or column, and for a column that is named twice."""
    themes = [*allowed.themes, *values["themes"]]
    for name, words in (("theme", themes), ("view", allowed.views)):
        if name in values:
            file.choice(values[name], words, name, name)
    columns = values.get("columns", ())
    for index, column in enumerate(columns):
        file.choice(column, allowed.columns, "column", "columns", str(index))
        if column in columns[:index]:
            raise file.error(("columns", str(index)), f"column {column} occurs twice", "keep one")


def _read_contexts(file: SettingsFile, names: Collection[str]) -> Iterator[tuple[str, ContextSettings]]:
    for name in names:
        context: _Context | None = file.convert(_Context | None, "contexts", name)
        if context is not None:
            store = None if context.prometheus is None else _read_store(file, "contexts", name, "prometheus")
            yield name, ContextSettings(context.readonly, context.confirm, store)


def _read_store(file: SettingsFile, *where: str) -> StoreOptions:
    entry = file.convert(_Store, *where)
    if isinstance(entry, str):
        return StoreOptions(url=entry)
    for name in entry:
        file.choice(name, StoreOptions._fields, "setting", *where, name)
    types = StoreOptions.__annotations__
    store = StoreOptions(**{name: file.convert(types[name], *where, name) for name in entry})
    if not store.url:
        raise file.error(where, "prometheus needs url", "write url: auto, or its address")
    return store


def _read_refresh(file: SettingsFile, text: str) -> float:
    try:
        seconds = parse_duration(text) / 1e9
    except InputError:
        seconds = 0.0
    if not 2 <= seconds <= 24 * 60 * 60:
        must_be = f"refresh must be a time from 2s to 24h, such as 15s or 1m30s, not {text!r}"
        raise file.error(("refresh",), must_be)
    return seconds


def _read_keys(
    file: SettingsFile, actions: Collection[str], allowed: AllowedNames
) -> Mapping[str, tuple[str, ...]]:
    # A key is free if any line of the file gives its action other keys.
    taken = {action: keys for action, keys in allowed.actions.items() if action not in actions}
    changed: dict[str, tuple[str, ...]] = {}
    for action in actions:
        file.choice(action, allowed.actions, "action", "keys", action)
        entry = file.convert(_Keys, "keys", action)
        keys: dict[str, str] = {}
        for index, key in enumerate([entry] if isinstance(entry, str) else entry):
            try:
                keys[textual_key(key)] = key
            except InputError as error:
                where = ("keys", action, str(index))
                raise file.error(where, f"{action}: {error}", error.hint) from None
        group = action.partition(".")[0]
        groups = {group}.union(*(together for together in allowed.active_together if group in together))
        for other in [other for other in taken if other.partition(".")[0] in groups]:
            for key in [key for key in keys if key in taken[other]]:
                problem = f"{action} and {other} would both have the key {keys[key]}"
                raise file.error(("keys", action), problem, "give one of them another key")
        changed[action] = taken[action] = tuple(keys)
    return MappingProxyType(changed)


_NAMED: Final = frozenset(
    {
        *("up", "down", "left", "right", "home", "end", "pageup", "pagedown"),
        *("space", "enter", "tab", "escape", "backspace", "insert", "delete"),
        *(f"f{number}" for number in range(1, 25)),
    }
)
_ALIASES: Final = {
    "esc": "escape",
    "return": "enter",
    "ins": "insert",
    "del": "delete",
    "pgup": "pageup",
    "pgdn": "pagedown",
    " ": "space",
    "↑": "up",
    "↓": "down",
    "←": "left",
    "→": "right",
}
_SHORTER_NAMES: Final = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}
"""The characters whose names in Textual differ from their Unicode names."""

_SAME_IN_A_TERMINAL: Final = {"i": "tab", "m": "enter", "h": "backspace", "[": "esc"}
_MODIFIER: Final = re.compile(r"(ctrl|alt|shift)[-+](?=.)", re.IGNORECASE)
_HINT: Final = (
    "write a key as the help screen does: f, S, /, ctrl-f, alt-x, shift-tab, f5, space, esc, pageup"
)


def textual_key(shown: str) -> str:
    """Return Textual's name of a key: `ctrl+f` for `ctrl-f`. Raises InputError if it cannot be bound."""
    modifiers, key = set(), shown
    while match := _MODIFIER.match(key):
        modifiers.add(match[1].lower())
        key = key[match.end() :]
    key = _ALIASES.get(key.lower(), key)
    if len(key) == 1 and key.isprintable():
        modifiers, key = _character_key(shown, modifiers, key)
    elif key.lower() not in _NAMED:
        raise InputError(f"unknown key {shown!r}", hint=_HINT)
    return "+".join([*sorted(modifiers), key if len(key) == 1 else key.lower()])


def _character_key(shown: str, modifiers: set[str], character: str) -> tuple[set[str], str]:
    if "ctrl" in modifiers:
        _check_control_key(shown, modifiers, character.lower())
        return modifiers, _name(character.lower())
    if "shift" in modifiers:
        if not (character.isascii() and character.isalpha()):
            message = f"what shift makes of {character} depends on the keyboard"
            raise InputError(message, hint="write the character that it types")
        character = character.upper()
    if "alt" not in modifiers:
        return set(), _name(character)
    if not re.fullmatch("[A-Zac-eg-z]", character):
        message = f"many terminals send something else for {shown}"
        raise InputError(message, hint="alt goes with letters other than b and f")
    return {"alt", *(["shift"] if character.isupper() else [])}, character.lower()


def _check_control_key(shown: str, modifiers: set[str], character: str) -> None:
    if character in "kd":
        message = f"{shown} is not bound: k9s users press ctrl-k to kill and ctrl-d to delete by reflex"
        raise InputError(message, hint="choose another key")
    if modifiers != {"ctrl"}:
        message = f"many terminals send {shown} as ctrl-{character}"
        raise InputError(message, hint="choose a key with one of ctrl, alt, shift")
    if character in _SAME_IN_A_TERMINAL:
        same = _SAME_IN_A_TERMINAL[character]
        raise InputError(f"to a terminal {shown} and {same} are the same key", hint=f"write {same}")
    if not re.fullmatch(r"[a-z\\\]^_]", character):
        hint = r"ctrl goes with a to z, \, ], ^, _, f1 to f24 and arrows"
        raise InputError(f"terminals do not send {shown}", hint)


def _name(character: str) -> str:
    if character.isalnum():
        return character
    name = unicodedata.name(character, character).lower().replace("-", "_").replace(" ", "_")
    return _SHORTER_NAMES.get(name, name)

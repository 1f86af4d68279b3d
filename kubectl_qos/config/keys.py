"""Keys as the help screen shows them (`ctrl-f`, `/`, `esc`, `S`), and as Textual names them."""

import re
import unicodedata
from typing import Final

from kubectl_qos.errors import InputError

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
"""Where Textual's name of a character is not Unicode's."""

_SAME_IN_A_TERMINAL: Final = {"i": "tab", "m": "enter", "h": "backspace", "[": "esc"}
_MODIFIER: Final = re.compile(r"(ctrl|alt|shift)[-+](?=.)", re.IGNORECASE)
_HINT: Final = (
    "write a key as the help screen does: f, S, /, ctrl-f, alt-x, shift-tab, f5, space, esc, pageup"
)


def textual_key(shown: str) -> str:
    """Textual's name of a key: `ctrl+f` for `ctrl-f`. Raises InputError for one that cannot be bound."""
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

"""Keys as people see them in the help screen (`ctrl-f`, `/`, `esc`, `S`), and as Textual names them."""

from __future__ import annotations

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
_OTHER_NAMES: Final = {
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
_SHORTER: Final = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}
"""Where Textual's name of a character is not Unicode's."""

_SAME_IN_A_TERMINAL: Final = {"i": "tab", "m": "enter", "h": "backspace", "[": "esc"}
_MODIFIED: Final = re.compile(r"(ctrl|alt|shift)[-+](?=.)", re.IGNORECASE)
_HINT: Final = (
    "write a key as the help screen does: f, S, /, ctrl-f, alt-x, shift-tab, f5, space, esc, pageup"
)


def textual_key(shown: str) -> str:
    """Textual's name of a key: `ctrl+f` for `ctrl-f`, `slash` for `/`, `S` for `S` and `shift-s`.

    Raises InputError for what is no key, for what terminals do not tell apart or do not send, and for the
    keys that stay without a meaning.
    """
    modifiers, key = set(), shown
    while found := _MODIFIED.match(key):
        modifiers.add(found[1].lower())
        key = key[found.end() :]
    key = _OTHER_NAMES.get(key.lower(), key)
    if len(key) == 1:
        modifiers, key = _typed(shown, modifiers, key)
    else:
        key = key.lower()
        if key not in _NAMED:
            raise InputError(f"there is no key {shown!r}", hint=_HINT)
    return "+".join([*sorted(modifiers), key])


def _typed(shown: str, modifiers: set[str], character: str) -> tuple[set[str], str]:
    """The same for a key that types a character. Raises InputError."""
    if not character.isprintable():
        raise InputError(f"there is no key {shown!r}", hint=_HINT)
    if "ctrl" in modifiers:
        _refuse_control(shown, modifiers, character.lower())
        return modifiers, _name(character.lower())
    if "shift" in modifiers:
        if not (character.isascii() and character.isalpha()):
            raise InputError(
                f"what shift makes of {character} depends on the keyboard",
                hint="write the character that it types",
            )
        character = character.upper()
    if "alt" not in modifiers:
        return set(), _name(character)
    if not re.fullmatch("[A-Zac-eg-z]", character):
        raise InputError(
            f"many terminals send something else for {shown}", hint="alt goes with letters other than b and f"
        )
    return {"alt", *(["shift"] if character.isupper() else [])}, character.lower()


def _refuse_control(shown: str, modifiers: set[str], character: str) -> None:
    """Raise InputError for what cannot or must not be bound with ctrl."""
    if character in "kd":
        raise InputError(
            f"{shown} stays free: in k9s ctrl-k kills and ctrl-d deletes, and hands remember",
            hint="choose another key",
        )
    if modifiers != {"ctrl"}:
        raise InputError(
            f"many terminals send {shown} as ctrl-{character}",
            hint="choose a key with one of ctrl, alt, shift",
        )
    if character in _SAME_IN_A_TERMINAL:
        same = _SAME_IN_A_TERMINAL[character]
        raise InputError(f"to a terminal {shown} and {same} are the same key", hint=f"write {same}")
    if not re.fullmatch(r"[a-z\\\]^_]", character):
        raise InputError(
            f"terminals do not send {shown}", hint=r"ctrl goes with a to z, \, ], ^, _, f1 to f24 and arrows"
        )


def _name(character: str) -> str:
    if character.isalnum():
        return character
    name = unicodedata.name(character, character).lower().replace("-", "_").replace(" ", "_")
    return _SHORTER.get(name, name)

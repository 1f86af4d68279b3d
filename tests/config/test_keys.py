"""Keys have Textual's names, which are asked from Textual itself, and mean what a person set them to."""

import string
from pathlib import Path
from typing import ClassVar

import pytest
from textual import events
from textual._xterm_parser import XTermParser
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.keys import _character_to_key
from textual.widgets import Input

from kubectl_qos.config.keys import textual_key
from kubectl_qos.errors import InputError
from kubectl_qos.tui.actions import ACTIONS, shown_key
from tests.config.known import settings_of

CONTROL = {
    f"ctrl-{letter}": chr(ord(letter) - 96) for letter in string.ascii_lowercase if letter not in "himkd"
}
SENT = {
    **CONTROL,
    **{sign: sign for sign in string.digits + string.ascii_letters + string.punctuation + "éЖ§"},
    **{f"alt-{sign}": f"\x1b{sign}" for sign in "aegzBFS"},
    "shift-s": "S",
    "alt-shift-b": "\x1bB",
    "ctrl-\\": "\x1c",
    "ctrl-]": "\x1d",
    "ctrl-^": "\x1e",
    "ctrl-_": "\x1f",
    "space": " ",
    " ": " ",
    "enter": "\r",
    "tab": "\t",
    "shift-tab": "\x1b[Z",
    "backspace": "\x7f",
    "up": "\x1b[A",
    "↓": "\x1b[B",
    "ctrl-right": "\x1b[1;5C",
    "shift-left": "\x1b[1;2D",
    "alt-up": "\x1b[1;3A",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "pgup": "\x1b[5~",
    "pagedown": "\x1b[6~",
    "ins": "\x1b[2~",
    "del": "\x1b[3~",
    "f1": "\x1bOP",
    "F5": "\x1b[15~",
    "f12": "\x1b[24~",
    "ctrl-f5": "\x1b[15;5~",
}


def parsed(sequence: str) -> list[str]:
    parser = XTermParser()
    found = [*parser.feed(sequence), *parser.feed("")]
    return [event.key for event in found if isinstance(event, events.Key)]


def test_a_key_has_the_name_that_textual_gives_to_what_terminals_send() -> None:
    for shown, sequence in SENT.items():
        assert parsed(sequence) == [textual_key(shown)], shown


def test_the_escape_key() -> None:
    assert textual_key("esc") == textual_key("escape") == textual_key("Esc") == "escape"


def test_signs_have_textuals_names() -> None:
    for sign in string.punctuation:
        assert textual_key(sign) == _character_to_key(sign), sign


def test_what_the_help_screen_shows_can_be_written() -> None:
    for key in sorted({key for action in ACTIONS for key in action.keys}):
        assert textual_key(shown_key(key)) == key, key


@pytest.mark.parametrize(
    ("shown", "sentence", "hint"),
    [
        (
            "ctrl-k",
            "ctrl-k is not bound: k9s users press ctrl-k to kill and ctrl-d to delete",
            "choose another",
        ),
        ("Ctrl-D", "Ctrl-D is not bound: k9s users press", "choose another"),
        ("ctrl+d", "ctrl+d is not bound", "choose another"),
        ("ctrl-i", "to a terminal ctrl-i and tab are the same key", "write tab"),
        ("ctrl-m", "to a terminal ctrl-m and enter are the same key", "write enter"),
        ("ctrl-[", "to a terminal ctrl-[ and esc are the same key", "write esc"),
        ("ctrl-shift-s", "many terminals send ctrl-shift-s as ctrl-s", "choose a key with one of"),
        ("ctrl-alt-s", "many terminals send ctrl-alt-s as ctrl-s", "choose a key with one of"),
        ("ctrl-1", "terminals do not send ctrl-1", "ctrl goes with"),
        ("ctrl-/", "terminals do not send ctrl-/", "ctrl goes with"),
        ("alt-/", "many terminals send something else for alt-/", "alt goes with letters other"),
        ("alt-1", "many terminals send something else for alt-1", "alt goes with letters other"),
        ("alt-f", "many terminals send something else for alt-f", "alt goes with letters other"),
        ("shift-/", "what shift makes of / depends on the keyboard", "write the character"),
        ("strg-f", "unknown key 'strg-f'", "write a key as"),
        ("ctrl-", "unknown key 'ctrl-'", "write a key as"),
        ("f25", "unknown key 'f25'", "write a key as"),
        ("ab", "unknown key 'ab'", "write a key as"),
        ("", "unknown key ''", "write a key as"),
        ("\x1b", "unknown key '\\x1b'", "write a key as"),
    ],
)
def test_what_is_no_key_is_refused(shown: str, sentence: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        textual_key(shown)
    assert str(caught.value).startswith(sentence)
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ("pods.explian: i", "line 2: unknown action 'pods.explian'"),
        ("pods.explain: ''", "line 2: pods.explain has an empty key"),
        ("pods.explain: []", "line 2: pods.explain has no key"),
        ("pods.explain:\n  - i\n  - ctrl-d", "line 4: pods.explain: ctrl-d is not bound: k9s users"),
        ("pods.explain: {a: b}", "line 2: pods.explain is one value, not a mapping"),
        ("pods.explain: e", "line 2: pods.explain and pods.edit would both have the key e"),
        ("pods.explain: '/'", "line 2: pods.explain and pods.filter would both have the key /"),
        (
            "pods.explain: i\n  pods.edit: [f, i]",
            "line 3: pods.edit and pods.explain would both have the key i",
        ),
        ("pods.explain: j", "line 2: pods.explain and table.down would both have the key j"),
        ("app.quit: e", "line 2: app.quit and pods.edit would both have the key e"),
    ],
)
def test_mistakes_in_keys(tmp_path: Path, keys: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        settings_of(tmp_path, f"keys:\n  {keys}")
    assert str(caught.value).removeprefix(f"{tmp_path / 'config.yaml'}, ").startswith(sentence)


def test_keys_may_be_swapped_and_shared_by_rooms_that_are_not_heard_together(tmp_path: Path) -> None:
    found = settings_of(tmp_path, "keys: {pods.explain: [e, e], pods.edit: d, nodes.explain: e}")
    assert found.keys == {"pods.explain": ("e",), "pods.edit": ("d",), "nodes.explain": ("e",)}


class Listening(App[None]):
    """Notes which actions its keys start."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "note('explain')", "explain", id="pods.explain"),
        Binding("e", "note('edit')", "edit", id="pods.edit"),
        Binding("up,k", "note('up')", "up", id="table.up"),
        Binding("slash", "note('filter')", "filter", id="pods.filter"),
    ]

    def __init__(self, *, with_input: bool = False) -> None:
        super().__init__()
        self.with_input = with_input
        self.noted: list[str] = []

    def compose(self) -> ComposeResult:
        if self.with_input:
            yield Input()

    def action_note(self, name: str) -> None:
        self.noted.append(name)


async def test_textual_hears_every_kind_of_key_that_is_set() -> None:
    app = Listening()
    shown = [*"iS/?:[]-,.+", "space", "f5", "ctrl-f", "alt-s", "alt-S", "pageup", "esc", "ctrl-]"]
    async with app.run_test() as pilot:
        for key in map(textual_key, shown):
            app.set_keymap({"pods.explain": key})
            app.noted.clear()
            await pilot.press("d", key)
            assert app.noted == ["explain"], key


async def test_textual_swaps_keys_and_takes_several() -> None:
    app = Listening()
    async with app.run_test() as pilot:
        app.set_keymap({"pods.explain": "e", "pods.edit": "d", "table.up": "i,slash", "pods.filter": "f"})
        await pilot.press("e", "d", "i", "slash", "up", "k", "f")
    assert app.noted == ["explain", "edit", "up", "up", "filter"]


async def test_a_key_that_is_set_to_a_letter_still_types_it() -> None:
    app = Listening(with_input=True)
    async with app.run_test() as pilot:
        app.set_keymap({"pods.explain": "i"})
        await pilot.press("i", "d")
        assert app.query_one(Input).value == "id"
    assert app.noted == []

"""A person's settings: what a file says, its mistakes, names of keys, and the page of docs."""

import os
import re
import string
from dataclasses import fields
from pathlib import Path

import pytest
from textual import events
from textual._xterm_parser import XTermParser
from textual.keys import _character_to_key

from kubectl_qos.config.settings import (
    AllowedNames,
    ContextSettings,
    StartScope,
    ThemeColours,
    UserSettings,
    read_settings,
    textual_key,
)
from kubectl_qos.errors import InputError
from kubectl_qos.present.pod_columns import BY_KEY
from kubectl_qos.transport import StoreOptions
from kubectl_qos.tui.actions import ACTIONS, shown_key
from kubectl_qos.tui.themes import ANSI, COLOURS

KNOWN = AllowedNames(
    columns=("rank", "pod", "memory", "flags"),
    themes=("qos-dark", "qos-light", "qos-ansi"),
    starts=("qos-dark", "qos-light", "nord"),
    views=("cluster", "namespaces", "workloads", "pods", "containers"),
    actions={
        "pods.explain": ("d",),
        "pods.edit": ("e",),
        "pods.filter": ("slash",),
        "nodes.explain": ("d",),
        "table.down": ("down", "j"),
        "app.quit": ("q", "ctrl+c"),
    },
    active_together=({"app", "table", "pods"}, {"app", "table", "nodes"}),
)


def settings_of(folder: Path, text: str | bytes, allowed: AllowedNames | None = KNOWN) -> UserSettings:
    """Read a file with this text."""
    file = folder / "config.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_settings(file, allowed)


EVERYTHING = """\
# what one person likes
theme: qos-light
columns: [pod, memory]
scope:
  namespace: shop
  node: worker-1.example.com
view: workloads
readonly: yes
contexts:
  prod: {confirm: name}
refresh: 1m30s
ascii: true
motion: reduced
mouse: off
keys:
  pods.explain: i
  table.down: [down, n, f5]
"""


REFRESH = "refresh must be a time from 2s to 24h, such as 15s or 1m30s"
BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 30)
)


def test_everything_is_read(tmp_path: Path) -> None:
    found = settings_of(tmp_path, EVERYTHING)
    assert found == UserSettings(
        theme="qos-light",
        columns=("pod", "memory"),
        scope=StartScope(namespace="shop", node="worker-1.example.com"),
        view="workloads",
        readonly=True,
        contexts={"prod": ContextSettings(confirm="name")},
        refresh_seconds=90,
        ascii=True,
        motion="reduced",
        mouse=False,
        keys={"pods.explain": ("i",), "table.down": ("down", "n", "f5")},
    )
    assert found.for_context("prod") == ContextSettings(readonly=True, confirm="name")


@pytest.mark.parametrize(
    "text", ["", "\n \n", "# nothing\n", "---\n", "theme:\nkeys:\ncontexts:\n", b"\xef\xbb\xbf"]
)
def test_what_says_nothing_is_all_defaults(tmp_path: Path, text: str | bytes) -> None:
    assert settings_of(tmp_path, text) == UserSettings()


def test_a_file_that_is_not_there_is_all_defaults(tmp_path: Path) -> None:
    assert read_settings(None, KNOWN) == UserSettings()
    assert read_settings(tmp_path / "none.yaml", KNOWN) == UserSettings()
    (tmp_path / "file").touch()
    assert read_settings(tmp_path / "file" / "config.yaml", KNOWN) == UserSettings()


@pytest.mark.parametrize(("said", "seconds"), [("2s", 2), ("2500ms", 2.5), ("1m", 60), ("24h", 24 * 60 * 60)])
def test_how_often_a_cluster_is_polled(tmp_path: Path, said: str, seconds: float) -> None:
    assert settings_of(tmp_path, f"refresh: {said}").refresh_seconds == seconds


def test_a_mark_of_windows_editors_is_no_part_of_the_first_word(tmp_path: Path) -> None:
    assert settings_of(tmp_path, b"\xef\xbb\xbftheme: qos-light\r\n").theme == "qos-light"


def test_words_are_words_whatever_yaml_takes_them_for(tmp_path: Path) -> None:
    text = """\
scope: {namespace: 0x12}
contexts: {a.b: {prometheus: {url: auto, org_id: 007, insecure_skip_verify: yes}}}
keys: {pods.edit: 1, pods.explain: ~}
"""
    found = settings_of(tmp_path, text)
    assert found.scope.namespace == "0x12"
    store = StoreOptions(url="auto", org_id="007", insecure_skip_verify=True)
    assert found.for_context("a.b").prometheus == store
    assert dict(found.keys) == {"pods.edit": ("1",), "pods.explain": ("tilde",)}


def test_all_namespaces_and_auto(tmp_path: Path) -> None:
    found = settings_of(tmp_path, "scope: all\nascii: auto\n")
    assert found.scope == StartScope(all_namespaces=True)
    assert found.ascii is None


MISTAKES = {
    "mouse: true\n\nthme: x": ("line 3: unknown setting 'thme'", "did you mean theme?"),
    "a: 1": ("line 1: unknown setting 'a'", "one of: readonly, contexts, theme,"),
    "theme: qos-drak": ("line 1: unknown theme 'qos-drak'", "did you mean qos-dark?"),
    "theme: [qos-dark]": ('line 1: theme must be a text, not ["qos-dark"]', ""),
    "theme: qos-dark\ntheme: qos-light": ("line 2: theme occurs twice", "keep one"),
    "columns: []": ("line 1: columns must be a list of columns, such as [pod, memory], not []", ""),
    f"columns: {{a: {'x' * 40}}}": (
        "line 1: columns must be a list of columns, such as [pod, memory], not a mapping",
        "",
    ),
    "columns:\n- pod\n- [a]": (
        'line 3: columns must be a list of columns, such as [pod, memory], not ["pod",["a"]]',
        "",
    ),
    "columns:\n- pod\n- memry": ("line 3: unknown column 'memry'", "did you mean memory?"),
    "columns:\n- pod\n- pod": ("line 3: column pod occurs twice", "keep one"),
    "scope: shop": (
        "line 1: scope must be all, {namespace: NAME}, {node: NAME} or {namespace: NAME, node: NAME}, not",
        "",
    ),
    "scope:\n  pod: a": ("line 2: unknown setting 'pod'", "one of: namespace, node"),
    "scope: {namespace: A b}": (
        'line 1: scope.namespace must be a name of small letters, digits, - and ., not "A b"',
        "",
    ),
    "view: pod": ("line 1: unknown view 'pod'", "did you mean pods?"),
    "readonly: maybe": ('line 1: readonly must be true or false, not "maybe"', ""),
    f"mouse: {'x' * 50}": (f'line 1: mouse must be true or false, not "{"x" * 39}…', ""),
    "contexts:\n  pr.od: true": ("line 2: contexts.pr.od must be a mapping (NAME: VALUE), not true", ""),
    "contexts:\n  prod:\n    confirm: yes": (
        "line 3: contexts.prod.confirm must be name or key, not true",
        "",
    ),
    "contexts:\n  prod:\n    readOnly: true": (
        "line 3: unknown setting 'readOnly'",
        "did you mean readonly?",
    ),
    "contexts:\n  prod:\n    prometheus: {}": (
        "line 3: prometheus needs url",
        "write url: auto, or its address",
    ),
    "contexts: {a: {prometheus: {url: auto, toke: x}}}": (
        "line 1: unknown setting 'toke'",
        "did you mean token?",
    ),
    "contexts: {a: {prometheus: {url: [x]}}}": (
        'line 1: contexts.a.prometheus.url must be a text, not ["x"]',
        "",
    ),
    "refresh: 15": (f"line 1: {REFRESH}, not '15'", ""),
    "refresh: 1s": (f"line 1: {REFRESH}, not '1s'", ""),
    "refresh: 86401s": (f"line 1: {REFRESH}, not '86401s'", ""),
    f"refresh: {'9' * 400}h": (f"line 1: {REFRESH}, not '{'9' * 400}h'", ""),
    "ascii: no idea": ('line 1: ascii must be true, false or auto, not "no idea"', ""),
    "- theme": ('line 1: the file must be a mapping (NAME: VALUE), not ["theme"]', ""),
    "keys:\n  pods.explian: i": ("line 2: unknown action 'pods.explian'", "did you mean pods.explain?"),
    "keys:\n  pods.explain: []": (
        "line 2: keys.pods.explain must be a key or a list of keys, not []",
        "",
    ),
    "keys:\n  pods.explain:\n  - i\n  - ctrl-d": (
        "line 4: pods.explain: ctrl-d is not bound: k9s users press ctrl-k",
        "choose another key",
    ),
    "keys:\n  pods.explain: '/'": (
        "line 2: pods.explain and pods.filter would both have the key /",
        "give one of them another key",
    ),
    "keys:\n  pods.explain: i\n  pods.edit: [f, i]": (
        "line 3: pods.edit and pods.explain would both have the key i",
        "give one of them another key",
    ),
    "keys: {pods.explain: j}": ("line 1: pods.explain and table.down would both have the key j", "give one"),
    # What is not YAML.
    "mouse: true\n\ttheme: x": ("line 2: invalid YAML: while scanning", "indent with spaces"),
    "mouse: *x": ("line 1: invalid YAML: found undefined alias", ""),
    "theme: x\n---\ntheme: y": ("line 3: invalid YAML: but found another document", "write one document"),
    "mouse: true\ntheme: \x07": ("line 2: the character '\\x07' is not allowed in YAML", ""),
    b"mouse: true\ntheme: \xff": ("line 2: this is not UTF-8", "save the file as UTF-8"),
    "[" * 100_000: (": invalid YAML: exceeded max depth of 200", ""),
    BOMB: (": invalid YAML: document contains excessive aliasing", ""),
    b"#" * ((1 << 20) + 1): (" is larger than 1 MiB", "settings need a few lines"),
}


@pytest.mark.parametrize("text", MISTAKES, ids=lambda text: repr(text)[:50])
def test_every_mistake_has_one_sentence_with_its_line(tmp_path: Path, text: str | bytes) -> None:
    sentence, hint = MISTAKES[text]
    with pytest.raises(InputError) as caught:
        settings_of(tmp_path, text)
    said = str(caught.value).removeprefix(str(tmp_path / "config.yaml")).removeprefix(", ")
    assert said.startswith(sentence)
    assert caught.value.hint.startswith(hint)
    assert bool(caught.value.hint) == bool(hint)
    assert "\n" not in said


def theme_of(folder: Path, text: str) -> UserSettings:
    (folder / "themes").mkdir()
    (folder / "themes" / "evening.yaml").write_text(text)
    return settings_of(folder, "theme: evening")


@pytest.mark.parametrize(
    ("text", "colours"),
    [
        ("", ThemeColours("qos-dark", {})),
        ("from: nord", ThemeColours("nord", {})),
        (
            "accent: '#FFaf00'\npanel: 204060",
            ThemeColours("qos-dark", {"accent": "#FFaf00", "panel": "#204060"}),
        ),
    ],
)
def test_a_theme_has_a_file(tmp_path: Path, text: str, colours: ThemeColours) -> None:
    settings = theme_of(tmp_path, text)
    assert (settings.theme, settings.themes) == ("evening", {"evening": colours})


@pytest.mark.parametrize(
    ("text", "sentence", "hint"),
    [
        (
            "# mine\naccent: amber",
            "line 2: accent must be a colour in quotes such as '#5aa9e6', not \"amber\"",
            "",
        ),
        ("accent: '#fff'", "line 1: accent must be a colour in quotes such as '#5aa9e6', not \"#fff\"", ""),
        ("from: nrod", "line 1: unknown theme 'nrod'", "did you mean nord?"),
        ("acent: '#ffaf00'", "line 1: unknown setting 'acent'", "did you mean accent?"),
    ],
)
def test_mistakes_of_a_theme_have_its_file_and_line(
    tmp_path: Path, text: str, sentence: str, hint: str
) -> None:
    with pytest.raises(InputError) as caught:
        theme_of(tmp_path, text)
    assert str(caught.value) == f"{tmp_path / 'themes' / 'evening.yaml'}, {sentence}"
    assert caught.value.hint == hint


def test_a_large_file_is_read(tmp_path: Path) -> None:
    assert settings_of(tmp_path, b"#" * (1 << 20)) == UserSettings()


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"^{tmp_path} cannot be read: Is a directory$"):
        read_settings(tmp_path, KNOWN)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("theme: qos-dark")
    file.chmod(0)
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        read_settings(file, KNOWN)


def test_why_a_file_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: File name too long") as caught:
        read_settings(tmp_path / ("x" * 300), KNOWN)
    assert "KUBECTL_QOS_CONFIG=" in caught.value.hint


def test_what_a_context_allows(tmp_path: Path) -> None:
    found = settings_of(
        tmp_path,
        """\
readonly: true
contexts:
  "*": {confirm: name}
  dev-*: {readonly: false, confirm: key}
  "*-eu": {readonly: true}
  dev-eu: {readonly: false}
  arn:aws:eks:eu-1:1:cluster/[x]*: {readonly: false}
  nothing:
""",
    )
    rules = {name: found.for_context(name) for name in ("other", "dev-us", "dev-fr-eu", "dev-eu", "nothing")}
    assert rules == {
        "other": ContextSettings(readonly=True, confirm="name"),
        "dev-us": ContextSettings(readonly=False, confirm="key"),
        "dev-fr-eu": ContextSettings(readonly=True, confirm="key"),
        "dev-eu": ContextSettings(readonly=False, confirm="key"),
        "nothing": ContextSettings(readonly=True, confirm="name"),
    }
    assert not found.for_context("arn:aws:eks:eu-1:1:cluster/[x]prod").readonly
    assert found.for_context("arn:aws:eks:eu-1:1:cluster/x").readonly
    assert UserSettings().for_context("any") == ContextSettings(readonly=False, confirm="key")


@pytest.mark.parametrize(
    ("text", "readonly", "by_name"),
    [
        ("", False, False),
        ("readonly: true", True, False),
        ("readonly:", False, False),
        ("contexts:", False, False),
        ("contexts: {prod: {readonly: true}}", True, False),
        ("contexts: {'pr*': {readonly: true, confirm: name}}", True, True),
        ("readonly: true\ncontexts: {prod: {readonly: false, confirm: name}}", False, True),
        ("theme: no-such\nkeys: {nothing: 1}\nreadonly: true", True, False),
    ],
)
def test_what_is_said_about_writing(tmp_path: Path, text: str, readonly: bool, by_name: bool) -> None:
    assert settings_of(tmp_path, text, None).for_context("prod") == ContextSettings(
        readonly, "name" if by_name else "key"
    )


@pytest.mark.parametrize(
    "text",
    ["readonly: maybe", "contexts: {prod: {readonly: 3}}", "- readonly", "readonly: true\nreadonly: false"],
)
def test_what_cannot_be_used_stops(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"config\.yaml, line"):
        settings_of(tmp_path, text, None).for_context("prod")


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


def test_keys_may_be_swapped_and_shared_by_rooms_that_are_not_heard_together(tmp_path: Path) -> None:
    found = settings_of(tmp_path, "keys: {pods.explain: [e, e], pods.edit: d, nodes.explain: e}")
    assert found.keys == {"pods.explain": ("e",), "pods.edit": ("d",), "nodes.explain": ("e",)}


PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
SHIPPED = AllowedNames(
    columns=tuple(BY_KEY),
    themes=(*COLOURS, ANSI.name),
    starts=tuple(COLOURS),
    views=("cluster", "namespaces", "workloads", "pods", "containers"),
    actions={action.name: action.keys for action in ACTIONS},
)
SETTINGS = [field.name.removesuffix("_seconds") for field in fields(UserSettings) if field.name != "themes"]


def test_the_example_is_valid_and_shows_every_setting(tmp_path: Path) -> None:
    example, theme = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "themes").mkdir()
    (tmp_path / "themes" / "evening.yaml").write_text(theme)
    found = settings_of(tmp_path, example, SHIPPED)
    assert found.themes["evening"].start == "nord"
    shown = set(re.findall(r"^(\w+):", example, re.MULTILINE))
    assert set(SETTINGS) == shown
    assert found.for_context("prod-1").readonly
    assert not found.for_context("prod-maintenance").readonly
    assert found.for_context("prod-maintenance").confirm == "name"


def test_the_table_has_every_setting_in_its_order() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| .* \|$", PAGE, re.MULTILINE)
    assert rows == SETTINGS


def test_the_words_that_settings_take_are_all_named() -> None:
    for word in (*SHIPPED.themes, *SHIPPED.views, "KUBECTL_QOS_CONFIG", "KUBECTL_QOS_STATE"):
        assert f"`{word}" in PAGE


def test_the_error_of_the_page_is_what_is_said(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("\n\n\nthme: x")
    with pytest.raises(InputError) as caught:
        read_settings(file, SHIPPED)
    assert str(caught.value).removeprefix(str(file)) in PAGE
    assert f"hint: {caught.value.hint}" in PAGE

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubectl_qos.config.settings import ContextSettings, Settings, StartScope, read_settings
from kubectl_qos.errors import InputError
from tests.config.known import KNOWN, settings_of

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


def refusal(folder: Path, text: str | bytes) -> tuple[str, str]:
    """What follows the name of the file, and the remedy."""
    with pytest.raises(InputError) as caught:
        settings_of(folder, text)
    file = str(folder / "config.yaml")
    assert str(caught.value).startswith(file)
    return str(caught.value).removeprefix(file).removeprefix(", "), caught.value.hint


def test_everything_is_read(tmp_path: Path) -> None:
    found = settings_of(tmp_path, EVERYTHING)
    assert found == Settings(
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
    assert settings_of(tmp_path, text) == Settings()


def test_a_file_that_is_not_there_is_all_defaults(tmp_path: Path) -> None:
    assert read_settings(None, KNOWN) == Settings()
    assert read_settings(tmp_path / "none.yaml", KNOWN) == Settings()
    (tmp_path / "file").touch()
    assert read_settings(tmp_path / "file" / "config.yaml", KNOWN) == Settings()


@pytest.mark.parametrize(("said", "seconds"), [("2s", 2), ("2500ms", 2.5), ("1m", 60), ("24h", 24 * 60 * 60)])
def test_how_often_a_cluster_is_polled(tmp_path: Path, said: str, seconds: float) -> None:
    assert settings_of(tmp_path, f"refresh: {said}").refresh_seconds == seconds


def test_a_mark_of_windows_editors_is_no_part_of_the_first_word(tmp_path: Path) -> None:
    assert settings_of(tmp_path, b"\xef\xbb\xbftheme: qos-light\r\n").theme == "qos-light"


def test_words_are_words_whatever_yaml_takes_them_for(tmp_path: Path) -> None:
    found = settings_of(
        tmp_path, "scope: {namespace: 1234}\nascii: 'true'\nkeys: {pods.edit: 1, pods.explain: ~}"
    )
    assert found.scope.namespace == "1234"
    assert found.ascii is True
    assert dict(found.keys) == {"pods.edit": ("1",), "pods.explain": ("tilde",)}


def test_all_namespaces_and_auto(tmp_path: Path) -> None:
    found = settings_of(tmp_path, "scope: all\nascii: auto\n")
    assert found.scope == StartScope(all_namespaces=True)
    assert found.ascii is None


@pytest.mark.parametrize(
    ("text", "sentence", "hint"),
    [
        ("a: 1", "line 1: unknown setting 'a'", "one of: theme, columns, scope, view, readonly,"),
        ("mouse: true\n\nthme: x", "line 3: unknown setting 'thme'", "did you mean theme?"),
        ("theme: qos-drak", "line 1: theme: unknown value 'qos-drak'", "did you mean qos-dark?"),
        ("theme: zzz", "line 1: theme: unknown value 'zzz'", "one of: qos-dark, qos-light"),
        ("theme: [qos-dark]", "line 1: theme is one value, not a list", ""),
        ("theme:\n  {a: b}", "line 2: theme is one value, not a mapping", ""),
        ("theme: qos-dark\ntheme: qos-light", "line 2: 'theme' is there twice, first in line 1", "keep one"),
        ("columns: pod", "line 1: columns is a list, not 'pod'", "such as [a, b]"),
        ("columns: {pod: 1}", "line 1: columns is a list, not a mapping", "such as [a, b]"),
        ("columns: []", "line 1: columns is an empty list", "name some, or leave"),
        ("columns:\n- pod\n- memry", "line 3: columns: unknown value 'memry'", "did you mean memory?"),
        ("columns:\n- pod\n- pod", "line 3: the column pod is in the list twice", "keep one"),
        ("columns:\n- [pod]", "line 2: columns is one value, not a list", ""),
        ("scope: shop", "line 1: invalid scope 'shop'", "write all, {namespace: NAME}"),
        ("scope: [shop]", "line 1: scope is one value, not a list", ""),
        ("scope: {pod: a}", "line 1: unknown part of a scope 'pod'", "one of: namespace, node"),
        ("scope: {namespace: A b}", "line 1: invalid name of a namespace: 'A b'", "names have small letters"),
        ("scope:\n  node:", "line 2: invalid name of a node: ''", "names have small letters"),
        ("view: pod", "line 1: view: unknown value 'pod'", "did you mean pods?"),
        ("readonly: maybe", "line 1: readonly is true or false, not 'maybe'", ""),
        ("contexts: prod", "line 1: contexts has entries of the form NAME: VALUE, not 'prod'", ""),
        ("contexts:\n  prod: true", "line 2: prod has entries of the form NAME: VALUE, not 'true'", ""),
        ("contexts:\n  prod: {confirm: yes}", "line 2: confirm: unknown value 'yes'", "one of: name, key"),
        (
            "contexts:\n  prod:\n    readOnly: true",
            "line 3: unknown setting of a context 'readOnly'",
            "did you mean readonly?",
        ),
        ("contexts:\n  ? [a]\n  : {}", "line 2: the name of a context is one value, not a list", ""),
        ("refresh: 15", "line 1: invalid refresh '15'", "write a time such as 15s, 1m or 1m30s"),
        ("refresh: 1s", "line 1: refresh is at least 2s and at most 24h, not 1s", "write a time"),
        ("refresh: 25h", "line 1: refresh is at least 2s and at most 24h, not 25h", "write a time"),
        (f"refresh: {'9' * 400}h", f"line 1: invalid refresh '{'9' * 400}h'", "write a time"),
        ("ascii: no idea", "line 1: ascii is true, false or auto, not 'no idea'", ""),
        ("motion: none", "line 1: motion: unknown value 'none'", "one of: full, reduced"),
        ("just words", "line 1: the file has entries of the form NAME: VALUE, not 'just words'", ""),
        ("- theme", "line 1: the file has entries of the form NAME: VALUE, not a list", ""),
        (
            "theme: qos-dark\n---\ntheme: qos-light",
            "line 3: a second document begins here",
            "write one document",
        ),
    ],
)
def test_every_mistake_is_named_with_its_line(tmp_path: Path, text: str, sentence: str, hint: str) -> None:
    found, remedy = refusal(tmp_path, text)
    assert found == sentence
    assert remedy.startswith(hint)
    assert bool(remedy) == bool(hint)


@pytest.mark.parametrize(
    ("text", "sentence", "hint"),
    [
        ("theme: 'x\nview: pods\n", "line 3: invalid YAML: while scanning a quoted scalar", ""),
        ("mouse: true\n\ttheme: x", "line 2: invalid YAML: while scanning", "indent with spaces"),
        ("mouse: true\ntheme: @x", "line 2: invalid YAML: while scanning", "put the value in quotes"),
        (
            "keys:\n  pods.edit: -",
            "line 2: invalid YAML: block sequence entries are not allowed in this context",
            "put a value",
        ),
        (
            "mouse: true\ntheme\n",
            "line 3: invalid YAML: while scanning a simple key",
            "each line has the form",
        ),
        ("mouse: *x", "line 1: invalid YAML: found undefined alias", ""),
        ("mouse: true\ntheme: \x07", "line 2: the character '\\x07' is not allowed in YAML", ""),
        (b"mouse: true\ntheme: \xff", "line 2: this is not UTF-8", "save the file as UTF-8"),
        ("theme: x".encode("utf-16"), "line 1: this is not UTF-8", "save the file as UTF-8"),
    ],
)
def test_what_is_no_yaml_is_named_with_its_line(
    tmp_path: Path, text: str | bytes, sentence: str, hint: str
) -> None:
    found, remedy = refusal(tmp_path, text)
    assert found.startswith(sentence)
    assert remedy.startswith(hint)
    assert "\n" not in found


@pytest.mark.parametrize("brackets", ["[", "{a: ", "- "])
def test_deep_brackets_do_not_end_the_process(tmp_path: Path, brackets: str) -> None:
    found, _ = refusal(tmp_path, f"theme: {brackets * 100_000}" if brackets == "[" else brackets * 100_000)
    assert found == ": brackets are nested too deeply"


def test_aliases_of_aliases_are_not_unfolded(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x]\n" + "".join(
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 30)
    )
    assert refusal(tmp_path, f"theme: qos-dark\n{bomb}")[0] == "line 2: unknown setting 'a0'"
    columns = bomb.replace("a0: ", "columns: ", 1).replace("\n", "\n  ")
    assert refusal(tmp_path, f"contexts:\n  {columns}")[0].startswith("line 2: columns has entries")


def test_a_file_that_is_too_large_is_not_parsed(tmp_path: Path) -> None:
    assert settings_of(tmp_path, b"#" * (1 << 20)) == Settings()
    assert refusal(tmp_path, b"#" * ((1 << 20) + 1)) == (" is larger than 1 MiB", "settings need a few lines")


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
    assert Settings().for_context("any") == ContextSettings(readonly=False, confirm="key")


def test_no_module_that_takes_time_is_imported_without_a_file(tmp_path: Path) -> None:
    code = f"""\
import sys
from pathlib import Path
import kubectl_qos.config
from kubectl_qos.config.settings import AllowedNames, Settings, read_settings
assert "platformdirs" not in sys.modules
known = AllowedNames(columns=(), themes=("a",), views=(), actions={{}})
assert read_settings(Path({str(tmp_path / "none.yaml")!r}), known) == Settings()
slow = {{"yaml", "textual", "rich", "kubernetes", "msgspec", "difflib"}} & set(sys.modules)
assert not slow, slow
path = Path({str(tmp_path / "config.yaml")!r})
path.write_text("theme: a")
assert read_settings(path, known).theme == "a"
assert "yaml" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)

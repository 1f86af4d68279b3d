import json
import os
import stat
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.config import config_file, state_dir, state_path
from kubectl_qos.config.state import UiState, load_state, save_state

FULL = UiState(
    theme="qos-light",
    view={"list": "pods", "filter": "/web"},
    sort={"pods": ("memory", True), "nodes": ("name", False)},
    wide=True,
    columns={"pods": ("rank", "pod", "age"), "nodes": ()},
    filters=("web", "-l app=web"),
    places=("nodes", "pods shop"),
    views={"dev": {"list": "pods"}, "prod": {"list": "nodes"}},
)


def written(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "folder" / "state.json"
    assert save_state(path, FULL)
    assert load_state(path) == FULL
    assert list(load_state(path).views) == ["dev", "prod"]
    assert all(getattr(FULL, one.name) != getattr(UiState(), one.name) for one in fields(UiState))


def test_nothing_said_is_nothing_kept(tmp_path: Path) -> None:
    assert load_state(None) == UiState()
    assert load_state(tmp_path / "none.json") == UiState()
    assert save_state(None, FULL) is False


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "kubectl-qos" / "state.json"
    before = os.umask(0)
    try:
        assert save_state(path, FULL)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'"text"',
        b'{"theme": "qos-light"}',
        b'{"version": 2, "theme": "qos-light"}',
        b'{"version": "1", "theme": "qos-light"}',
        b"[" * 100_000,
        b'{"version": 1, "view": ' + b'{"a": ' * 100_000,
        b'{"version": 1, "wide": ' + b"9" * 10_000 + b"}",
        b'{"version": 1, "theme": "' + b"x" * (1 << 20) + b'"}',
    ],
    ids=lambda content: content[:30].decode(errors="replace"),
)
def test_what_is_no_state_of_ours_is_left_out(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content)
    assert load_state(path) == UiState()


@pytest.mark.parametrize("name", [one.name for one in fields(UiState)])
@pytest.mark.parametrize(
    "wrong", [None, 7, "text", True, [1, None], {"a": 1}, {"pods": ["memory"]}, [[]], {"pods": {}}]
)
def test_a_field_that_cannot_be_used_is_left_out_and_the_others_stay(
    tmp_path: Path, name: str, wrong: object
) -> None:
    path = tmp_path / "state.json"
    assert save_state(path, FULL)
    found = load_state(written(path, {**json.loads(path.read_text()), name: wrong}))
    for other in fields(UiState):
        if other.name != name:
            assert getattr(found, other.name) == getattr(FULL, other.name)
    assert type(getattr(found, name)) in {type(getattr(UiState(), name)), type(getattr(FULL, name))}
    assert save_state(path, found)
    assert load_state(path) == found


BAD_PARTS: dict[str, list[Any]] = {
    "sort": [{"a": item} for item in (["x", 1], ["x"], "x", [1, True], ["x", True, 1])],
    "columns": [{"a": ["x", 1]}, {"a": [None]}, {"a": "x"}, {"a": {"x": 1}}],
    "filters": [["a", 1], [None], {"a": "b"}],
    "views": [{"a": []}, {"a": None}, {"a": "x"}],
}


@pytest.mark.parametrize("name", BAD_PARTS)
def test_a_field_with_a_part_that_cannot_be_used_is_left_out(tmp_path: Path, name: str) -> None:
    for bad in BAD_PARTS[name]:
        content = {"version": 1, "theme": "x", "unknown": 1, name: bad}
        assert load_state(written(tmp_path / "state.json", content)) == UiState(theme="x")


def test_only_the_last_lines_and_contexts_are_kept(tmp_path: Path) -> None:
    lines = tuple(str(number) for number in range(60))
    state = UiState(filters=lines, places=lines, views={line: {} for line in lines})
    assert save_state(tmp_path / "state.json", state)
    found = json.loads((tmp_path / "state.json").read_text())
    for name in ("filters", "places", "views"):
        assert list(found[name]) == list(lines[10:])
    content = {"version": 1, "filters": lines, "views": {line: {} for line in lines}}
    loaded = load_state(written(tmp_path / "state.json", content))
    assert loaded.filters == lines[10:]
    assert list(loaded.views) == list(lines[10:])


def test_the_context_that_was_left_last_is_the_last_to_be_forgotten() -> None:
    state = UiState()
    for number in range(50):
        state = state.with_view(f"c{number}", {"n": number})
    state = state.with_view("c0", {"n": 100}).with_view("new", {})
    assert list(state.views)[-2:] == ["c0", "new"]
    assert len(state.views) == 50
    assert "c1" not in state.views
    assert state.views["c0"] == {"n": 100}
    assert state.view == {}


def test_odd_text_survives(tmp_path: Path) -> None:
    state = UiState(filters=("\udcff", "界\n\x1b"))
    assert save_state(tmp_path / "state.json", state)
    assert load_state(tmp_path / "state.json") == state


@pytest.mark.parametrize("view", [{"a": float("nan")}, {"a": object()}])
def test_a_view_that_is_no_json_is_a_mistake_of_the_caller_and_harms_nothing(
    tmp_path: Path, view: dict[str, Any]
) -> None:
    path = tmp_path / "state.json"
    assert save_state(path, FULL)
    with pytest.raises((TypeError, ValueError)):
        save_state(path, UiState(view=view))
    assert load_state(path) == FULL


def test_where_nothing_can_be_written_nothing_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    assert save_state(tmp_path / "file" / "state.json", FULL) is False
    (tmp_path / "state.json").mkdir()
    (tmp_path / "state.json" / "full").touch()
    assert save_state(tmp_path / "state.json", FULL) is False
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "state.json"]
    assert load_state(tmp_path / "state.json") == UiState()
    assert load_state(tmp_path / "file" / "state.json") == UiState()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_home_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert save_state(tmp_path / "state.json", FULL) is False
    assert save_state(tmp_path / "new" / "state.json", FULL) is False


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBECTL_QOS_CONFIG", "KUBECTL_QOS_STATE", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.skipif(sys.platform != "linux", reason="the folders of Linux")
def test_the_folders_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert config_file() == Path("/home/ada/.config/kubectl-qos/config.yaml")
    assert state_dir() == Path("/home/ada/.local/state/kubectl-qos")
    assert state_path("state.json") == Path("/home/ada/.local/state/kubectl-qos/state.json")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/etc/ada")
    monkeypatch.setenv("XDG_STATE_HOME", "/var/ada")
    assert config_file() == Path("/etc/ada/kubectl-qos/config.yaml")
    assert state_dir() == Path("/var/ada/kubectl-qos")


def test_other_places_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("USERPROFILE", "/home/ada")
    monkeypatch.setenv("KUBECTL_QOS_CONFIG", "~/mine.yaml")
    monkeypatch.setenv("KUBECTL_QOS_STATE", "/tmp/here")
    assert config_file() == Path("/home/ada/mine.yaml")
    assert state_path("state.json") == Path("/tmp/here/state.json")


def test_empty_means_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECTL_QOS_CONFIG", "")
    monkeypatch.setenv("KUBECTL_QOS_STATE", "")
    assert config_file() is None
    assert state_dir() is None
    assert state_path("state.json") is None


def test_without_a_home_nothing_is_made_where_we_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_config_path", lambda *_, **__: Path("~/.config/kubectl-qos"))
    monkeypatch.setattr("platformdirs.user_state_path", lambda *_, **__: Path("~/.local/state/kubectl-qos"))
    assert config_file() is None
    assert state_path("state.json") is None


def test_a_home_of_someone_unknown_is_taken_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECTL_QOS_CONFIG", "~no-one-has-this-name/config.yaml")
    assert config_file() == Path("~no-one-has-this-name/config.yaml")

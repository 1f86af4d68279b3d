"""Files that are saved from the UI."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_qos.errors import InputError
from kubectl_qos.tui.screens.dialogs import parse_path, save


def test_a_new_file_is_written(tmp_path: Path) -> None:
    save(tmp_path / "a.yaml", "a: 1\n")
    assert (tmp_path / "a.yaml").read_bytes() == b"a: 1\n"


def test_a_file_that_is_there_is_kept_unless_it_is_said_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("old")
    with pytest.raises(FileExistsError):
        save(path, "new")
    assert path.read_text() == "old"
    save(path, "new", overwrite=True)
    assert path.read_text() == "new"


@pytest.mark.parametrize("name", ["missing/a.yaml", ".", "nul\0byte"])
def test_what_cannot_be_written_is_named_with_the_reason(tmp_path: Path, name: str) -> None:
    with pytest.raises((InputError, FileExistsError)) as caught:
        save(tmp_path / name, "x", overwrite=True)
    assert isinstance(caught.value, InputError)
    assert str(tmp_path) in str(caught.value)


def test_names_are_made_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert parse_path(" a.yaml ") == tmp_path / "a.yaml"
    assert parse_path("~/a.yaml") == tmp_path / "home" / "a.yaml"
    assert parse_path("/x/a.yaml") == Path("/x/a.yaml")
    with pytest.raises(InputError, match="a file name is needed"):
        parse_path("  ")

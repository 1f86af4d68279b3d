from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from kubectl_qos.atomic_file import replace_file


@pytest.mark.parametrize(("keep_rights", "mode"), [(False, 0o600), (True, 0o664)])
def test_a_file_is_replaced_with_its_rights_or_for_its_owner(
    tmp_path: Path, keep_rights: bool, mode: int
) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o664)
    with path.open() as opened:
        replace_file(path, b"new", keep_rights=keep_rights)
        assert opened.read() == "old"
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("function", ["fsync", "replace", "chmod"])
def test_what_cannot_be_written_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, function, full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(path, b"new", keep_rights=True)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_it_is_on_disk_before_it_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda _: synced.append(path.exists()))
    replace_file(path, b"new")
    assert synced == [False]


def test_a_file_that_is_not_there_has_no_rights_to_keep(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "none", b"new", keep_rights=True)
    assert list(tmp_path.iterdir()) == []


def test_who_writes_and_reads_at_once_has_whole_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replace_file(path, b"a" * 50_000)

    def work(letter: bytes) -> None:
        for _ in range(50):
            replace_file(path, letter * 50_000)

    writers = [threading.Thread(target=work, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        content = path.read_bytes()
        assert content == content[:1] * 50_000
    assert list(tmp_path.iterdir()) == [path]

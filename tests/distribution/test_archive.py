"""The archive of the binary: what krew takes, and the same bytes from the same files."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from release import archive

SCRIPT = Path(archive.__file__)
EPOCH = 1_580_601_600


def made(parent: Path) -> Path:
    """A folder as PyInstaller makes one: with links to a file and to a folder, and modes of all kinds."""
    folder = parent / "kubectl-qos"
    (folder / "_internal" / "lib").mkdir(parents=True)
    (folder / "_internal" / "empty").mkdir()
    (folder / "kubectl-qos").write_bytes(b"\x7fELF")
    (folder / "kubectl-qos").chmod(0o711)
    (folder / "LICENSE").write_text("free\n")
    (folder / "LICENSE").chmod(0o600)
    (folder / "_internal" / "lib" / "libz.so.1").write_bytes(b"z" * 1000)
    (folder / "_internal" / "lib" / "libz.so.1").chmod(0o775)
    (folder / "_internal" / "libz.so").symlink_to(Path("lib") / "libz.so.1")
    (folder / "_internal" / "current").symlink_to("lib", target_is_directory=True)
    return folder


def written(folder: Path, into: Path) -> Path:
    path = into / archive.file_name()
    archive.write(folder, path, EPOCH)
    return path


@pytest.fixture
def entries(tmp_path: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(written(made(tmp_path), tmp_path)) as tar:
        return {entry.name: entry for entry in tar.getmembers()}


def test_there_is_one_folder_with_everything_in_order(entries: dict[str, tarfile.TarInfo]) -> None:
    assert list(entries) == [
        "kubectl-qos",
        "kubectl-qos/LICENSE",
        "kubectl-qos/_internal",
        "kubectl-qos/_internal/current",
        "kubectl-qos/_internal/current/libz.so.1",
        "kubectl-qos/_internal/empty",
        "kubectl-qos/_internal/lib",
        "kubectl-qos/_internal/lib/libz.so.1",
        "kubectl-qos/_internal/libz.so",
        "kubectl-qos/kubectl-qos",
    ]


def test_krew_takes_every_entry(entries: dict[str, tarfile.TarInfo]) -> None:
    """Regular files and folders, nothing absolute, no two dots (internal/download/downloader.go)."""
    assert {entry.type for entry in entries.values()} == {tarfile.REGTYPE, tarfile.DIRTYPE}
    assert not [name for name in entries if name.startswith("/") or ".." in name]


def test_a_link_is_what_it_leads_to(tmp_path: Path) -> None:
    with tarfile.open(written(made(tmp_path), tmp_path)) as tar:
        for name in ("libz.so", "current/libz.so.1"):
            file = tar.extractfile(f"kubectl-qos/_internal/{name}")
            assert file is not None
            assert file.read() == b"z" * 1000


def test_of_the_modes_only_what_can_be_run_is_kept(entries: dict[str, tarfile.TarInfo]) -> None:
    modes = {name: oct(entry.mode) for name, entry in entries.items() if entry.isfile()}
    assert modes == {
        "kubectl-qos/LICENSE": "0o644",
        "kubectl-qos/_internal/current/libz.so.1": "0o755",
        "kubectl-qos/_internal/lib/libz.so.1": "0o755",
        "kubectl-qos/_internal/libz.so": "0o755",
        "kubectl-qos/kubectl-qos": "0o755",
    }
    assert {entry.mode for entry in entries.values() if entry.isdir()} == {0o755}


def test_nobody_and_no_time_is_in_it(tmp_path: Path, entries: dict[str, tarfile.TarInfo]) -> None:
    owners = {(entry.uid, entry.gid, entry.uname, entry.gname) for entry in entries.values()}
    assert owners == {(0, 0, "", "")}
    assert {entry.mtime for entry in entries.values()} == {EPOCH}
    header = (tmp_path / archive.file_name()).read_bytes()[:10]
    flags, time = header[3], header[4:8]
    assert (header[:2], flags, time) == (b"\x1f\x8b", 0, bytes(4))


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    found = []
    for number, name in enumerate(("here", "elsewhere")):
        (tmp_path / name).mkdir()
        folder = made(tmp_path / name)
        for path in folder.rglob("*"):
            os.utime(path, (number, 1000 * number))
        found.append(written(folder, tmp_path / name).read_bytes())
    (tmp_path / "here" / "kubectl-qos" / "LICENSE").write_text("not free\n")
    changed = written(tmp_path / "here" / "kubectl-qos", tmp_path / "here").read_bytes()
    assert found[0] == found[1] != changed
    assert gzip.decompress(changed)


def test_the_digest_is_in_the_form_of_sha256sum(tmp_path: Path) -> None:
    path = written(made(tmp_path), tmp_path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert (tmp_path / f"{path.name}.sha256").read_bytes() == f"{digest}  {path.name}\n".encode()


def test_it_is_named_as_go_names_systems() -> None:
    assert re.fullmatch(r"kubectl-qos_(linux|darwin|windows)_(amd64|arm64)\.tar\.gz", archive.file_name())


def run(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment | variables,
    )


def test_the_script_writes_both_files_and_says_so(tmp_path: Path) -> None:
    folder, into = made(tmp_path), tmp_path / "dist"
    into.mkdir()
    done = run(folder, into, SOURCE_DATE_EPOCH=str(EPOCH))
    assert (done.returncode, done.stderr) == (0, "")
    name = archive.file_name()
    assert sorted(path.name for path in into.iterdir()) == [name, f"{name}.sha256"]
    digest = (into / f"{name}.sha256").read_text().split()[0]
    assert done.stdout == f"{into / name}: 0.0 MB, sha256 {digest}\n"


def test_the_script_needs_the_time(tmp_path: Path) -> None:
    done = run(made(tmp_path), tmp_path)
    assert done.returncode == 2
    assert "error: SOURCE_DATE_EPOCH is not set" in done.stderr


def test_a_name_that_krew_refuses_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path)
    (folder / "a..b").touch()
    done = run(folder, tmp_path, SOURCE_DATE_EPOCH=str(EPOCH))
    assert done.returncode == 2
    assert "error: krew takes no name with two dots in a row; leave it out of the" in done.stderr
    assert not (tmp_path / archive.file_name()).exists()

"""Archives the folder of a binary for krew, and writes its digest.

    SOURCE_DATE_EPOCH=1580601600 python release/archive.py dist/kubectl-qos dist

writes dist/kubectl-qos_linux_amd64.tar.gz, named after the current system, and its digest. The same files
give the same bytes: owners, times and all modes except the executable bit are left out. krew refuses links,
so their targets are archived instead.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import platform
import stat
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_SYSTEMS: Final = {"Linux": "linux", "Darwin": "darwin", "Windows": "windows"}
_MACHINES: Final = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
"""What Python calls them, and what Go and so krew does."""


class Refused(Exception):
    """The folder cannot be archived; the message has the remedy."""


def file_name() -> str:
    """The name of the archive for this system."""
    return f"kubectl-qos_{_SYSTEMS[platform.system()]}_{_MACHINES[platform.machine().lower()]}.tar.gz"


def write(folder: Path, archive: Path, seconds: int) -> str:
    """Write the folder's archive and, next to it, its digest, which is returned.

    Args:
        folder: is in the archive under its own name.
        archive: the file to write.
        seconds: the time of every file in it, since 1970.

    Raises:
        Refused: a name in it that krew doesn't take.
    """
    paths = {path.relative_to(folder.parent).as_posix(): path for path in [folder, *_below(folder)]}
    if refused := [name for name in paths if ".." in name]:
        raise Refused(f"krew takes no name with two dots in a row; leave it out of the binary: {refused[0]}")
    with (
        archive.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name, path in sorted(paths.items()):
            _add(tar, path, name, seconds)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    archive.with_name(f"{archive.name}.sha256").write_bytes(f"{digest}  {archive.name}\n".encode())
    return digest


def _below(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder, followlinks=True):
        yield from (Path(place, name) for name in (*folders, *files))


def _add(tar: tarfile.TarFile, path: Path, name: str, seconds: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.mtime = seconds
    if path.is_dir():
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(entry)
        return
    status = path.stat()
    entry.size, entry.mode = status.st_size, 0o755 if status.st_mode & stat.S_IXUSR else 0o644
    with path.open("rb") as content:
        tar.addfile(entry, content)


def main(arguments: list[str]) -> int:
    """Write the archive and print its size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="what PyInstaller has made")
    parser.add_argument("into", type=Path, help="the folder to write the archive and its digest into")
    options = parser.parse_args(arguments)
    if "SOURCE_DATE_EPOCH" not in os.environ:
        parser.error("SOURCE_DATE_EPOCH is not set: it is the time of every file in the archive")
    archive = options.into / file_name()
    try:
        digest = write(options.folder, archive, int(os.environ["SOURCE_DATE_EPOCH"]))
    except Refused as refused:
        parser.error(str(refused))
    print(f"{archive}: {archive.stat().st_size / 1e6:.1f} MB, sha256 {digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

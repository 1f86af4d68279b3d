"""What krew does with a manifest and an archive, step by step, where krew itself is not at hand.

From krew's internal/download/downloader.go (what it unpacks and what it refuses) and internal/installation
(install.go, move.go, upgrade.go): the same order, the same places, the same refusals.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.distribution.krew_rules import selects

LICENSES: Final = re.compile(r"licenses?(\.txt|\.md)?|copying(\.txt)?", re.IGNORECASE)


class Refused(Exception):
    """krew does not install it, in its words."""


@dataclass(frozen=True, slots=True)
class Krew:
    """A $KREW_ROOT on a system; `pair` is what $KREW_OS and $KREW_ARCH are there."""

    root: Path
    pair: tuple[str, str]
    staging: Path

    def link(self, manifest: dict[str, Any]) -> Path:
        suffix = ".exe" if self.pair[0] == "windows" else ""
        return self.root / "bin" / f"kubectl-{manifest['metadata']['name'].replace('-', '_')}{suffix}"

    def store(self, manifest: dict[str, Any]) -> Path:
        return self.root / "store" / str(manifest["metadata"]["name"])

    def install(self, manifest: dict[str, Any], archive: Path) -> Path:
        """Install an archive, and return its link on the PATH."""
        platforms = [each for each in manifest["spec"]["platforms"] if selects(each["selector"], self.pair)]
        if not platforms:
            raise Refused("plugin does not offer installation for this platform")
        platform = platforms[0]
        content = archive.read_bytes()
        if hashlib.sha256(content).hexdigest() != platform["sha256"]:
            raise Refused("checksum does not match")
        unpacked = self.staging / "krew-downloads"
        unpack(content, unpacked)
        installed = self.store(manifest) / manifest["spec"]["version"]
        installed.parent.mkdir(parents=True, exist_ok=True)
        unpacked.rename(installed)
        binary = Path(os.path.normpath(installed / platform["bin"]))
        if not binary.is_relative_to(installed):
            raise Refused("the fullPath does not extend the sub-fullPath")
        link = self.link(manifest)
        link.parent.mkdir(parents=True, exist_ok=True)
        if not binary.exists():
            raise Refused("can't create symbolic link, source binary cannot be found in extracted archive")
        link.symlink_to(binary)
        return link


def licenses(installed: Path) -> list[Path]:
    """The files by which the index' checks recognise a licence."""
    return [path for path in installed.rglob("*") if path.is_file() and LICENSES.fullmatch(path.name)]


def unpack(content: bytes, folder: Path) -> None:
    """Unpack an archive as krew does, which refuses much that tar does not."""
    folder.mkdir(parents=True)
    if not content.startswith(b"\x1f\x8b\x08"):
        raise Refused("mime type for archive file is not a supported archive format")
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as tar:
        for entry in tar:
            path = folder / _unsuspicious(entry.name)
            if entry.isdir():
                path.mkdir(entry.mode, parents=True, exist_ok=True)
            elif entry.type in {tarfile.REGTYPE, tarfile.AREGTYPE}:
                file = tar.extractfile(entry)
                assert file is not None
                _write(path, file.read(), entry.mode)
            else:
                raise Refused(f"unable to handle file type {ord(entry.type)} for {entry.name!r} in tar")


def _write(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode & 0o777)


def _unsuspicious(name: str) -> str:
    if ".." in name:
        raise Refused(f"refusing to unpack archive with suspicious entry {name!r}")
    if name.startswith(("/", "\\")):
        raise Refused(f"refusing to unpack archive with absolute entry {name!r}")
    return name

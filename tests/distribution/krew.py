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

LICENSES: Final = re.compile(r"licenses?(\.txt|\.md)?|copying(\.txt)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Krew:
    """A $KREW_ROOT on a system; `pair` is what $KREW_OS and $KREW_ARCH are there."""

    root: Path
    pair: tuple[str, str]
    staging: Path

    def install(self, manifest: dict[str, Any], archive: Path) -> Path:
        """Install an archive, and return its link on the PATH."""
        labels = dict(zip(("os", "arch"), self.pair, strict=True))
        [platform] = [
            each for each in manifest["spec"]["platforms"] if each["selector"]["matchLabels"] == labels
        ]
        content = archive.read_bytes()
        assert hashlib.sha256(content).hexdigest() == platform["sha256"]
        name, version = manifest["metadata"]["name"], manifest["spec"]["version"]
        unpacked = self.staging / "krew-downloads"
        unpack(content, unpacked)
        installed = self.root / "store" / name / version
        installed.parent.mkdir(parents=True, exist_ok=True)
        unpacked.rename(installed)
        binary = Path(os.path.normpath(installed / platform["bin"]))
        suffix = ".exe" if self.pair[0] == "windows" else ""
        link: Path = self.root / "bin" / f"kubectl-{name}{suffix}"
        link.parent.mkdir(parents=True, exist_ok=True)
        assert binary.exists()
        link.symlink_to(binary)
        return link


def licenses(installed: Path) -> list[Path]:
    """The files by which the index' checks recognise a licence."""
    return [path for path in installed.rglob("*") if path.is_file() and LICENSES.fullmatch(path.name)]


def unpack(content: bytes, folder: Path) -> None:
    """Unpack an archive as krew does, which refuses much that tar does not."""
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as tar:
        for entry in tar:
            assert ".." not in entry.name
            assert not entry.name.startswith(("/", "\\"))
            path = folder / entry.name
            if entry.isdir():
                path.mkdir(entry.mode, parents=True, exist_ok=True)
            else:
                assert entry.type in {tarfile.REGTYPE, tarfile.AREGTYPE}, entry.name
                file = tar.extractfile(entry)
                assert file is not None
                path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                path.write_bytes(file.read())
                path.chmod(entry.mode & 0o777)

"""The licences of the packages in the binary, without our own."""

from __future__ import annotations

import platform
import re
import sys
import sysconfig
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution, packages_distributions
from pathlib import Path
from typing import Final

BOOTLOADER: Final = "PyInstaller"
"""Its bootloader is what the executable starts with."""
_FILE: Final = re.compile(r"(licen[cs]e|copying|notice)[^/]*", re.IGNORECASE)
_LINKED: Final = """\
Python is linked to OpenSSL and other libraries, whose licences and acknowledgements are listed at
https://docs.python.org/3/license.html
"""


def texts(packages: Iterable[str]) -> str:
    """The licences of the packages with these names, as imported, and of Python, each below a heading."""
    distributions = packages_distributions()
    names = {name for package in [*packages, BOOTLOADER] for name in distributions[package]}
    parts = [_part(f"Python {platform.python_version()}", f"{_of_python()}\n{_LINKED}")]
    for name in sorted(names, key=str.lower):
        found = distribution(name)
        parts.append(_part(f"{found.name} {found.version}", _of(found)))
    return "\n\n".join(parts)


def _part(heading: str, text: str) -> str:
    return f"{heading}\n{'=' * len(heading)}\n\n{text.strip()}\n"


def _of(package: Distribution) -> str:
    files = [file for file in package.files or () if _FILE.fullmatch(file.name)]
    if not files:
        raise FileNotFoundError(f"{package.name} has no file with its licence: leave it out, or name it here")
    return "\n\n".join(file.read_text(encoding="utf-8").strip() for file in files)


def _of_python() -> str:
    folders = (sysconfig.get_path("stdlib"), sys.base_prefix)
    for folder in folders:
        path = Path(folder, "LICENSE.txt")
        if path.exists():
            return path.read_text(encoding="utf-8")
    raise FileNotFoundError(f"Python's LICENSE.txt is in none of {' and '.join(folders)}")

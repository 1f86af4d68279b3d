"""Checks a tag before a release: a semantic version, on the main branch, the same as that of the wheel.

    python release/tag.py v0.1.0 [WHEEL]

Prints `prerelease=true` or `prerelease=false`, as a workflow step's output.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from packaging.utils import parse_wheel_filename
from packaging.version import Version

MAIN: Final = "origin/main"
_NUMBER = r"(?:0|[1-9]\d*)"
TAG: Final = re.compile(rf"v{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?P<pre>-(?:alpha|beta|rc)\.{_NUMBER})?")
"""v1.2.3 or v1.2.3-rc.1: a semantic version with a v, as krew wants it, and one that PyPI takes."""


class Refused(Exception):
    """The tag cannot be released; the message has the remedy."""


def is_prerelease(tag: str) -> bool:
    """Whether the tag is a pre-release.

    Raises Refused if it is not a semantic version with a v.
    """
    found = TAG.fullmatch(tag)
    if found is None:
        raise Refused(f"the tag {tag!r} is not of the form v1.2.3 or v1.2.3-rc.1: tag again")
    return found["pre"] is not None


def check_branch(tag: str) -> None:
    """Raise Refused where the tagged commit is not on the main branch."""
    checked = subprocess.run(["git", "merge-base", "--is-ancestor", tag, MAIN], check=False)
    if checked.returncode:
        raise Refused(f"{tag} is not on {MAIN}: merge first, then tag what was merged")


def check_wheel(tag: str, wheel: Path) -> None:
    """Raise Refused if the wheel has another version than the tag."""
    version = parse_wheel_filename(wheel.name)[1]
    if version != Version(tag):
        raise Refused(f"{wheel.name} is {version} and not {tag}: was it built from the clean tag?")


def main(arguments: list[str]) -> int:
    """Print whether the tag is a pre-release; return 1 with a message if it may not be released."""
    tag, *wheels = arguments
    try:
        prerelease = is_prerelease(tag)
        check_branch(tag)
        for wheel in wheels:
            check_wheel(tag, Path(wheel))
    except Refused as refused:
        print(f"error: {refused}", file=sys.stderr)
        return 1
    print(f"prerelease={str(prerelease).lower()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

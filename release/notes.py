"""The notes of a release: its section of CHANGELOG.md, with links that work anywhere.

python release/notes.py v0.1.0        the section "## 0.1.0", whatever follows the version in that line
python release/notes.py v0.1.0-rc.1   the same
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

CHANGELOG: Final = Path(__file__).parents[1] / "CHANGELOG.md"
PAGES: Final = "https://github.com/kubectl-qos/kubectl-qos/blob"
_RELATIVE_LINK: Final = re.compile(r"\]\((?!https?:|#)")


class NoNotes(Exception):
    """The changelog has no entry for a version."""


def notes(changelog: str, tag: str) -> str:
    """Return the changelog's section of a tag's version, without its heading.

    Raises NoNotes if there is no such section or it is empty.
    """
    version = tag.removeprefix("v").partition("-")[0]
    for section in re.split(r"(?m)^## ", changelog)[1:]:
        heading, _, text = section.partition("\n")
        if heading.split()[:1] == [version]:
            if not text.strip():
                raise NoNotes(f'CHANGELOG.md: the section "## {version}" is empty: say what changed')
            return _RELATIVE_LINK.sub(f"]({PAGES}/{tag}/", text.strip()) + "\n"
    raise NoNotes(f'CHANGELOG.md has no section "## {version}": add it above the others')


def main(arguments: list[str]) -> int:
    """Print the notes of the tag; return 1 with a message if there are none."""
    (tag,) = arguments
    try:
        sys.stdout.write(notes(CHANGELOG.read_text(encoding="utf-8"), tag))
    except NoNotes as missing:
        print(f"error: {missing}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

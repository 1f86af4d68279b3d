"""Texts that were looked at once, kept in snapshots/text, and compared from then on."""

from __future__ import annotations

import os
from difflib import unified_diff
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "snapshots" / "text"
UPDATE = "UPDATE_TEXTS"


def assert_as_kept(name: str, text: str) -> None:
    """The text is the one that is kept under this name; with UPDATE_TEXTS=1 it becomes that."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get(UPDATE):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        return
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    difference = "\n".join(unified_diff(kept.splitlines(), text.splitlines(), "kept", "now", lineterm=""))
    assert text == kept, (
        f"{difference}\n{path.name} differs; if the new text is right, look at it and run"
        f" {UPDATE}=1 make tests, then commit snapshots/text"
    )

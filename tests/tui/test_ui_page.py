"""docs/ui.md and docs/keys.md say what the UI does."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from kubectl_qos.tui.filters import RowFilter

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_table_of_keys_is_the_one_of_the_program() -> None:
    text = (DOCS / "keys.md").read_text(encoding="utf-8")
    assert runpy.run_path(str(DOCS / "make_keys.py"))["page"]() == text, "make pictures renews it"


def test_the_filters_of_the_page_are_filters() -> None:
    text = (DOCS / "ui.md").read_text(encoding="utf-8")
    table = text[text.index("| filter |") : text.index("`tab` completes")]
    rows = [line.split("|") for line in table.splitlines()[2:] if line]
    filters = [one for row in rows for one in re.findall(r"`([^`]+)`", row[1])]
    assert len(filters) > 6
    for one in filters:
        assert RowFilter.parse(one)

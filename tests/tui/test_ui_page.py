"""docs/ui.md says what the UI does."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from kubectl_qos.tui.filters import RowFilter

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_table_of_keys_is_the_one_of_the_program() -> None:
    spec = importlib.util.spec_from_file_location("make_keys", DOCS / "make_keys.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (DOCS / "ui.md").read_text(encoding="utf-8")
    assert module.page(text) == text, "make pictures renews it"


def test_the_filters_of_the_page_are_filters() -> None:
    text = (DOCS / "ui.md").read_text(encoding="utf-8")
    table = text[text.index("| filter |") : text.index("`tab` completes")]
    rows = [line.split("|") for line in table.splitlines()[2:] if line]
    filters = [one for row in rows for one in re.findall(r"`([^`]+)`", row[1])]
    assert len(filters) > 6
    for one in filters:
        assert RowFilter.parse(one)

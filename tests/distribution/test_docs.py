"""What the documentation shows is what the code does, and its tables are those of the code."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from kubectl_qos.k8s.releases import _CHANGES, _GATES, _LAST_MINOR, NEWEST_MINOR, SUPPORTED_MINORS, _Span

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
RULES = (ROOT / "docs" / "rules.md").read_text()
LINK = re.compile(r"\]\((?P<target>[^)#\s]+)?(?:#(?P<anchor>[^)\s]+))?\)")


def python_lines(text: str) -> str:
    """The lines of the fenced python blocks, every other line empty, so that line numbers stay."""
    kept, inside = [], False
    for line in text.splitlines():
        if line.startswith("```"):
            inside = line == "```python"
            kept.append("")
        else:
            kept.append(line if inside else "")
    return "\n".join(kept)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_gives_what_it_shows(page: Path) -> None:
    source = python_lines(page.read_text())
    example = doctest.DocTestParser().get_doctest(source, {}, page.name, str(page), 0)
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=report.append)
    assert "".join(report) == ""


def test_the_examples_of_the_rules_are_run() -> None:
    assert len(doctest.DocTestParser().get_examples(python_lines(RULES))) > 60


def test_the_library_example_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(python_lines((ROOT / "README.md").read_text()), {})
    assert capsys.readouterr().out.startswith("Burstable 938 {'cpu.weight': '1'")


def releases_of(span: _Span) -> str:
    """How a table of the rules names the releases that have a change."""
    if span.last != NEWEST_MINOR:
        if span.last == span.since:
            return f"1.{span.since} only"
        return f"1.{span.since} to 1.{span.last}"
    return ", ".join([f"1.{span.since}", *(f"1.{minor}.{patch}" for minor, patch in span.patches.items())])


def test_every_change_of_the_supported_releases_is_in_one_table() -> None:
    wanted = [
        (releases_of(span), change.value)
        for change, span in _CHANGES.items()
        if span.since > min(SUPPORTED_MINORS)
    ]
    tables = re.findall(r"^\| since \| change \|\n\|---\|---\|\n((?:\|.*\n)+)", RULES, re.MULTILINE)
    rows = [
        tuple(map(str.strip, row.strip("|").split("|"))) for table in tables for row in table.splitlines()
    ]
    assert sorted(rows) == sorted(wanted)


def test_the_table_of_gates_is_that_of_the_code() -> None:
    wanted = []
    for gate, stages in _GATES.items():
        last = _LAST_MINOR.get(gate)
        exists = f"1.{stages[0].since}" + (f" to 1.{last}" if last is not None else "")
        on = next((f"1.{stage.since}" for stage in stages if stage.default), "")
        locked = next((f"1.{stage.since}" for stage in stages if stage.locked), "")
        wanted.append((gate.value, exists, on, locked))
    (table,) = re.findall(r"^\| gate \|.*\n\|.*\n((?:\|.*\n)+)", RULES, re.MULTILINE)
    assert [tuple(map(str.strip, row[1:-1].split("|"))) for row in table.splitlines()] == wanted


def anchors(text: str) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "page",
    [*PAGES, ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"],
    ids=lambda page: page.name,
)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in LINK.finditer(page.read_text()):
        target, anchor = link["target"], link["anchor"]
        if target is not None and "://" in target:
            continue
        found = page.parent / target if target else page
        assert found.exists(), link[0]
        assert anchor is None or anchor in anchors(found.read_text()), link[0]


def test_every_module_that_the_rules_name_exists() -> None:
    ours = re.findall(r"Ours:\s(.*?)\n\n", RULES + "\n", re.DOTALL)
    modules = [name for line in ours for name in re.findall(r"`(\w+/\w+\.py)`", line)]
    assert len(modules) > 20
    assert all((ROOT / "kubectl_qos" / name).exists() for name in modules)

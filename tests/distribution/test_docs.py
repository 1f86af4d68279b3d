"""What the documentation shows is what the code does, and its tables are those of the code."""

from __future__ import annotations

import doctest
import json
import re
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from kubectl_qos.k8s.releases import _LAST_MINOR, _NEVER, _PATCHES, SUPPORTED_MINORS, Change, Gate
from tests.distribution.shell_examples import blocks

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
ALL_PAGES = [*PAGES, *sorted(ROOT.glob("*.md"))]
BUILT_SITE = ROOT / "build" / "site"
RULE_PAGES = [DOCS / "rules.md", *sorted(DOCS.glob("rules-*.md"))]
RULES = "\n".join(page.read_text(encoding="utf-8") for page in RULE_PAGES)
MOST_WORDS = 2400
LINK = re.compile(r"\]\((?P<target>[^)#\s]+)?(?:#(?P<anchor>[^)\s]+))?\)")
URL = re.compile(r"https?://[^\s)>\]`'\"]+")
REPOSITORY = "https://github.com/kubectl-qos/kubectl-qos"
SITE = "https://kubectl-qos.github.io/kubectl-qos/"
HOSTS = {
    "docs.kernel.org",
    "docs.pypi.org",
    "github.com",
    "cloud.google.com",
    "k9scli.io",
    "learn.microsoft.com",
    "kubectl-qos.github.io",
    "krew.sigs.k8s.io",
    "kubernetes.io",
    "semver.org",
}
"""Where links may lead, so that a mistyped host is found."""


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


def test_every_example_gives_what_it_shows() -> None:
    report: list[str] = []
    for page in PAGES:
        source = python_lines(page.read_text())
        if page in RULE_PAGES[1:]:  # they use the node and functions of the first
            source = python_lines(RULES.partition("## QoS class")[0]) + source
        example = doctest.DocTestParser().get_doctest(source, {}, page.name, str(page), 0)
        doctest.DocTestRunner(verbose=False).run(example, out=report.append)
    assert "".join(report) == ""


def test_the_examples_of_the_rules_are_run() -> None:
    assert len(doctest.DocTestParser().get_examples(python_lines(RULES))) > 60


def releases_of(change: Change) -> str:
    """How a table of the rules names the releases that have a change."""
    last = _LAST_MINOR.get(change)
    if last is not None:
        return f"1.{change.since} only" if last == change.since else f"1.{change.since} to 1.{last}"
    patches = (f"1.{minor}.{patch}" for minor, patch in _PATCHES.get(change, {}).items())
    return ", ".join([f"1.{change.since}", *patches])


def test_every_change_of_the_supported_releases_is_in_one_table() -> None:
    wanted = [
        (releases_of(change), change.value) for change in Change if change.since > min(SUPPORTED_MINORS)
    ]
    tables = re.findall(r"^\| since \| change \|\n\|---\|---\|\n((?:\|.*\n)+)", RULES, re.MULTILINE)
    rows = [
        tuple(map(str.strip, row.strip("|").split("|"))) for table in tables for row in table.splitlines()
    ]
    assert sorted(rows) == sorted(wanted)


def test_the_table_of_gates_is_that_of_the_code() -> None:
    wanted = []
    for gate in Gate:
        last = _LAST_MINOR.get(gate)
        exists = f"1.{gate.since}"
        exists += f" to 1.{last}" if last is not None else ""
        on, locked = ("" if minor == _NEVER else f"1.{minor}" for minor in (gate.on, gate.locked))
        wanted.append((gate.value, exists, on, locked))
    (table,) = re.findall(r"^\| gate \|.*\n\|.*\n((?:\|.*\n)+)", RULES, re.MULTILINE)
    assert [tuple(map(str.strip, row[1:-1].split("|"))) for row in table.splitlines()] == wanted


def prose(text: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^(`{3,})[^`]*?^\1$|^ {4}[^\n]*$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """The anchors that GitHub makes of a page's headings, and the site of those down to the fourth level."""
    headings = re.findall(r"^#{1,4} (.*)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_no_page_is_too_long_to_read() -> None:
    words = {page.name: re.findall(r"\S*\w\S*", page.read_text(encoding="utf-8")) for page in PAGES}
    assert {name: len(in_page) for name, in_page in words.items() if len(in_page) > MOST_WORDS} == {}


def test_every_page_with_commands_says_what_they_need() -> None:
    navigation = (DOCS / "index.md").read_text(encoding="utf-8").partition(":caption: Commands\n\n")[2]
    names = re.findall(r"^[^<`\n]+<([\w-]+)>$", navigation.partition("```")[0], re.MULTILINE)
    assert len(names) > 20
    for name in {"runbook", "start", *names} - {"keys", "reference", "output"}:
        assert "\nNeeds: " in (DOCS / f"{name}.md").read_text(encoding="utf-8")[:200], name


def test_every_link_leads_somewhere() -> None:
    """Those of the documentation stay within it, as the site has nothing else."""
    for page in ALL_PAGES:
        for link in LINK.finditer(prose(page.read_text(encoding="utf-8"))):
            target, anchor = link["target"], link["anchor"]
            if target is not None and "://" in target:
                continue
            path = page.parent / target if target else page
            assert path.exists(), f"{page}: {link[0]}"
            assert page not in PAGES or path.resolve().is_relative_to(DOCS), f"{page}: {link[0]}"
            assert anchor is None or anchor in anchors(path.read_text(encoding="utf-8")), f"{page}: {link[0]}"


def test_every_link_to_the_world_is_well_formed_and_of_a_known_host() -> None:
    for page in ALL_PAGES:
        for url in URL.findall(prose(page.read_text(encoding="utf-8"))):
            parts = urlsplit(url)
            assert parts.scheme == "https", f"{page}: {url}"
            assert parts.hostname in HOSTS, f"{page}: {url}"


def test_links_to_our_repository_and_site_name_what_is_there() -> None:
    for page in ALL_PAGES:
        for url in URL.findall(page.read_text(encoding="utf-8")):
            if url.startswith((f"{REPOSITORY}/blob/", f"{REPOSITORY}/tree/")):
                path = re.sub(r"^/[^/]+/[^/]+/(blob|tree)/main/?", "", urlsplit(url).path)
                assert (ROOT / path).exists(), f"{page}: {url}"
            elif url.startswith(SITE):
                name = urlsplit(url).path.removeprefix(urlsplit(SITE).path).removesuffix(".html") or "index"
                assert (DOCS / f"{name}.md").exists(), f"{page}: {url}"


def test_what_is_shown_as_yaml_json_or_python_is_that() -> None:
    for page in ALL_PAGES:
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.kind == "yaml":
                assert list(yaml.load_all(block.text, Loader=yaml.CSafeLoader)), page
            elif block.kind == "json":
                json.loads(block.text)
            elif block.kind == "python" and ">>>" not in block.text:
                compile(block.text, str(page), "exec")


BUILDS = """
import sys
from sphinx.cmd.build import build_main

docs, folder = sys.argv[1:]
for builder in ("dummy", "man"):
    if build_main(["-W", "-n", "--keep-going", "-q", "-b", builder, "-d", "doctrees", docs, folder]):
        sys.exit(1)
"""
"""All pages are read and their links resolved, as for the site; the man pages are written too."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The man pages; a warning of Sphinx is an error."""
    folder = tmp_path_factory.mktemp("built")
    # From 3.13 on, Python takes the text of -c for the source of what dataclasses generate.
    (folder / "build.py").write_text(BUILDS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "build.py", str(DOCS), str(folder / "man")],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.mark.skipif(not (BUILT_SITE / "index.html").exists(), reason="`make site` builds it")
def test_the_site_loads_nothing_from_elsewhere() -> None:
    pages = list(BUILT_SITE.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"<(?:script|img|iframe|source)[^>]+(?:src|srcset)=\"(?:https?:)?//", text)
        assert not re.search(r"<link(?![^>]+rel=\"canonical\")[^>]+href=\"(?:https?:)?//", text)
    for stylesheet in [*BUILT_SITE.rglob("*.css"), *BUILT_SITE.rglob("*.svg")]:
        assert not re.search(
            r"(?:url\([\"']?|@import\s+[\"'])(?:https?:)?//", stylesheet.read_text(encoding="utf-8")
        )


def test_every_page_of_the_reference_is_a_man_page(built: Path) -> None:
    found = {path.name for path in (built / "man").glob("*.1")}
    names = {path.stem for path in (DOCS / "reference").glob("*.md")} - {"index"}
    assert found == {"kubectl-qos.1", *(f"kubectl-qos-{name}.1" for name in names)}
    for path in (built / "man").glob("*.1"):
        text = path.read_text(encoding="utf-8")
        assert re.search(r"^\.SH NAME\n" + re.escape(path.stem) + r" \\- \S", text, re.MULTILINE)
        assert "<>" not in text


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_groff_has_nothing_to_say_of_the_man_pages(built: Path) -> None:
    for path in (built / "man").glob("*.1"):
        done = subprocess.run(
            ["groff", "-Kutf8", "-ww", "-t", "-man", "-Tutf8", "-z", path], capture_output=True, check=True
        )
        assert done.stderr == b"", path.name


def test_every_module_that_the_rules_name_exists() -> None:
    ours = re.findall(r"Ours:\s(.*?)\n\n", RULES + "\n", re.DOTALL)
    modules = [name for line in ours for name in re.findall(r"`((?:\w+/)+\w+\.py)`", line)]
    assert len(modules) >= 20
    assert all((ROOT / "kubectl_qos" / name).exists() for name in modules)


def sentences() -> str:
    """Every text in the program's code, in parts where values are put in."""
    left: list[Any] = [
        SourceFileLoader(path.stem, str(path)).get_code(path.stem)
        for path in (ROOT / "kubectl_qos").rglob("*.py")
    ]
    found = []
    while left:
        constant = left.pop()
        if isinstance(constant, CodeType):
            left += constant.co_consts
        elif isinstance(constant, tuple | frozenset):
            left += constant
        elif isinstance(constant, str):
            found.append(constant)
    return "\n".join(found)


def test_every_message_that_is_explained_is_one_of_the_program() -> None:
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| (?:message|what is seen) \|.*\n\|.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    messages = [message for table in tables for message in re.findall(r"^\| `([^`]*)`", table, re.MULTILINE)]
    assert len(messages) > 15
    said = sentences()
    for message in messages:
        for part in re.split("…|: | is missing", message.replace('"prod"', '"…"')):
            assert part.strip(" ():,.") in said, f"{message}: nothing says {part!r}"

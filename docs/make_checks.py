"""Write docs/check-rules: a page for each rule of `check`, from its words and its tests: `make reference`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from kubectl_qos.check.rule import Rule
from kubectl_qos.check.rules import RULES

FOLDER: Final = Path(__file__).parent / "check-rules"
EXAMPLES: Final = Path(__file__).parents[1] / "tests" / "check" / "rules.yaml"
GENERATED: Final = "<!-- Made from the program by docs/make_checks.py: make reference -->"


def pages() -> dict[str, str]:
    """The text of each page by its file's name."""
    examples = yaml.safe_load(EXAMPLES.read_text(encoding="utf-8"))
    made = {f"{name}.md": "\n".join(_page(rule, examples[name])) for name, rule in RULES.items()}
    return {"index.md": "\n".join(_index()), **made}


def _page(rule: Rule, example: dict[str, Any]) -> Iterator[str]:
    flags = " ".join(example.get("flags", ()))
    yield from (f"# {rule.id}: {rule.title}", "", GENERATED, "", f"Level: {rule.level}.", "", rule.why, "")
    yield from ("## What to do", "", rule.remedy, "")
    if rule.parameter is not None:
        yield from ("## Parameter", "", f"{rule.parameter.help}.", "")
    policy = f"None: {rule.no_policy}." if rule.no_policy else "`kubectl qos check --to-policy` has one."
    yield from ("## Policy", "", policy, "")
    for title, name in (("Found here", "fails"), ("Not found here", "passes")):
        yield from (f"## {title}", "", *([f"With `{flags}`:", ""] if flags else []))
        yield from ("```yaml", example[name].rstrip("\n"), "```", "")
    yield "[All rules](index.md), [check](../check.md)\n"


def _index() -> Iterator[str]:
    yield from ("# The rules of check", "", GENERATED, "", "| rule | level | what is found | policy |")
    yield "|---|---|---|---|"
    for name, rule in RULES.items():
        policy = "" if rule.no_policy else "yes"
        yield f"| [{name}]({name}.md) | {rule.level} | {rule.title} | {policy} |"
    yield from ("", "```{toctree}", ":hidden:", "", *RULES, "```", "")


def main() -> None:
    """Write every page, and remove those of rules that are gone."""
    FOLDER.mkdir(exist_ok=True)
    made = pages()
    for path in FOLDER.glob("*.md"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()

"""Write docs/check-rules: a page for each rule of `check`, from its words and its tests: `make reference`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from kubectl_qos.check.findings import rule_texts
from kubectl_qos.check.settings import RuleId

FOLDER: Final = Path(__file__).parent / "check-rules"
EXAMPLES: Final = Path(__file__).parents[1] / "tests" / "check" / "rules.yaml"
GENERATED: Final = "<!-- Made from the program by docs/make_checks.py: make reference -->"


def pages() -> dict[str, str]:
    """The text of each page by its file's name."""
    examples = yaml.safe_load(EXAMPLES.read_text(encoding="utf-8"))
    made = {f"{rule}.md": "\n".join(_page(rule, examples[rule])) for rule in RuleId}
    return {"index.md": "\n".join(_index()), **made}


def _page(rule: RuleId, example: dict[str, Any]) -> Iterator[str]:
    text, flags = rule_texts()[rule], " ".join(example.get("flags", ()))
    yield from (f"# {rule}: {text.title}", "", GENERATED, "", f"Level: {rule.level}.", "", text.why, "")
    yield from ("## What to do", "", text.remedy, "")
    if text.parameter:
        yield from ("## Parameter", "", f"{text.parameter}.", "")
    policy = f"None: {text.no_policy}." if text.no_policy else "`kubectl qos check --to-policy` has one."
    yield from ("## Policy", "", policy, "")
    for title, name in (("Found here", "fails"), ("Not found here", "passes")):
        yield from (f"## {title}", "", *([f"With `{flags}`:", ""] if flags else []))
        yield from ("```yaml", example[name].rstrip("\n"), "```", "")
    yield "[All rules](index.md), [check](../check.md)\n"


def _index() -> Iterator[str]:
    yield from ("# The rules of check", "", GENERATED, "", "| rule | level | what is found | policy |")
    yield "|---|---|---|---|"
    for rule, text in rule_texts().items():
        policy = "" if text.no_policy else "yes"
        yield f"| [{rule}]({rule}.md) | {rule.level} | {text.title} | {policy} |"
    yield from ("", "```{toctree}", ":hidden:", "", *RuleId, "```", "")


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

"""Write the table of keys at the end of docs/ui.md from the actions of the UI: `make pictures`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kubectl_qos.tui.actions import BindingGroup, Keys, actions_in_group

PAGE = Path(__file__).parent / "ui.md"
HEADING = "## Keys\n"


def key_lines() -> Iterator[str]:
    """Every action of every group, in Markdown."""
    keys = Keys()
    for group in BindingGroup:
        yield f"\n### {group.value}\n"
        yield "| key | what it does | name for [keys](configuration.md) |"
        yield "|---|---|---|"
        for action in actions_in_group(group):
            shown = " ".join(f"`{key}`" for key in keys.shown(action).split())
            yield f"| {shown} | {action.meaning} | `{action.name}` |"


def page(text: str) -> str:
    """The page with its table as it has to be."""
    before = text[: text.index(HEADING) + len(HEADING)]
    return before + "\n".join(key_lines()) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

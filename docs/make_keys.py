"""Write docs/keys.md from the actions of the UI: `make pictures`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kubectl_qos.tui.actions import BindingGroup, Keys, actions_in_group

PAGE = Path(__file__).parent / "keys.md"
TITLE = "# Keys of the terminal UI"
NEEDS = """Needs: the terminal UI: `kubectl qos`, or `kubectl qos --demo`.

[`keys`](configuration.md#keys) in the settings takes the names."""


def page() -> str:
    """Return the page: every action of every group, in Markdown."""
    return "\n".join([TITLE, "", NEEDS, *_lines()]) + "\n"


def _lines() -> Iterator[str]:
    keys = Keys()
    for group in BindingGroup:
        yield f"\n## {group.value}\n"
        yield "| key | action | name |"
        yield "|---|---|---|"
        for action in actions_in_group(group):
            shown = " ".join(f"`{key}`" for key in keys.shown(action).split())
            yield f"| {shown} | {action.meaning} | `{action.name}` |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

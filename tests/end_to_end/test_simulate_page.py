"""Every example of docs/simulate.md prints what the page shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.end_to_end.command import Run

PAGE = (Path(__file__).parents[2] / "docs" / "simulate.md").read_text()
BLOCK = re.compile(r"^```(yaml|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_example_prints_what_is_shown(run: Run, tmp_path: Path) -> None:
    commands = 0
    for kind, text in BLOCK.findall(PAGE):
        if kind == "yaml":
            (tmp_path / "change.yaml").write_text(text)
            continue
        line, _, shown = text.removeprefix("$ ").partition("\n")
        commands += 1
        words = shlex.split(line)
        assert words[:3] == ["kubectl", "qos", "simulate"]
        done = run(*words[2:])
        assert done.out + done.err == shown, line
    assert commands == 6

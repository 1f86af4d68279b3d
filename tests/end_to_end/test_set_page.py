"""Every example of docs/set.md prints what the page shows, one after the other in one folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.cluster.serving import Serve
from tests.end_to_end.changing import Cluster
from tests.end_to_end.command import Run

PAGE = (Path(__file__).parents[2] / "docs" / "set.md").read_text()
BLOCK = re.compile(r"^```(yaml|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_example_prints_what_is_shown(run: Run, serve: Serve, tmp_path: Path) -> None:
    cluster = Cluster(serve, run)
    blocks = BLOCK.findall(PAGE)
    commands = 0
    for kind, text in blocks:
        if kind == "yaml":
            (tmp_path / "deploy.yaml").write_text(text)
            continue
        for example in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            line, _, shown = example.partition("\n")
            commands += 1
            words = shlex.split(line)
            if words == ["cat", "deploy.yaml"]:
                assert (tmp_path / "deploy.yaml").read_text() == shown
                continue
            assert words[:3] == ["kubectl", "qos", "set"]
            done = run(*words[2:])
            assert done.out + done.err == shown, line
    assert commands > 8
    assert "real" not in cluster.sent

"""Every example of the pages that need a cluster, files or logs of their own prints what the page shows."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.serving import Serve
from tests.distribution.shell_examples import blocks, examples, with_shown
from tests.end_to_end import verifying
from tests.end_to_end.changing import Cluster
from tests.end_to_end.command import Run
from tests.end_to_end.golden_text import UPDATE
from tests.end_to_end.stages import node_oom

DOCS = Path(__file__).parents[2] / "docs"


def kills(run: Run, serve: Serve) -> None:
    node_oom(run.home, serve)
    shutil.move(run.home / "global-A.log", run.home / "oom.log")


def verify(run: Run, serve: Serve) -> None:
    (changed,) = verifying.recorded("bu-mem-req-64mi")
    changed["pod"]["metadata"]["name"] = "changed"
    container = verifying.container_of(changed, "c")
    container["processes"][0] |= {"pid": 7, "comm": "app", "oom_score_adj": 1000}
    server = serve(verifying.Cluster([*verifying.recorded("bu-multi"), changed]))
    write(run.home / ".kube" / "config", kubeconfig(server, namespace="default"))


PAGES: Final = MappingProxyType(
    {
        "kills": ("dump.json", 3),
        "set": ("deploy.yaml", 8),
        "simulate": ("change.yaml", 5),
        "verify": ("", 2),
    }
)
"""The file that the page's YAML is written to, and how many examples it has."""
STAGES: Final[dict[str, Callable[[Run, Serve], object]]] = {
    "kills": kills,
    "set": lambda run, serve: Cluster(run.home, serve),
    "verify": verify,
}


@pytest.mark.parametrize("name", PAGES)
def test_every_example_of_a_page_prints_what_is_shown(run: Run, serve: Serve, name: str) -> None:
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    file, count = PAGES[name]
    found = STAGES[name](run, serve) if name in STAGES else None
    yaml = [(page.count("\n", 0, block.start), block.text) for block in blocks(page) if block.kind == "yaml"]
    commands = [example for example in examples(page) if example.shown is not None]
    assert len(commands) == count
    outputs: dict[int, str] = {}
    for example in commands:
        while yaml and yaml[0][0] < example.line:
            (run.home / file).write_text(yaml.pop(0)[1])
        command, piped, tail = example.command.partition(" | tail -n ")
        command, quiet, _ = command.partition(" 2> /dev/null")
        words = shlex.split(command)
        if words[0] == "cat":
            assert (run.home / words[1]).read_text() == example.shown
            continue
        assert words[:3] == ["kubectl", "qos", name]
        done = run(*words[2:])
        printed = "\n".join(done.lines[-int(tail) :]) + "\n" if piped else done.out + done.err * (not quiet)
        outputs[example.line] = printed
    if os.environ.get(UPDATE):
        (DOCS / f"{name}.md").write_text(with_shown(page, outputs), encoding="utf-8")
    else:
        assert with_shown(page, outputs) == page, f"if it is right: {UPDATE}=1 pytest {Path(__file__).name}"
    assert not isinstance(found, Cluster) or "write" not in found.sent()

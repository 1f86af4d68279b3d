"""Every example of docs/kills.md prints what the page shows, of the demo and of the recorded node OOM."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

from tests.end_to_end.command import Run
from tests.host.kernel_logs import RECORDED, recorded_run

PAGE = (Path(__file__).parents[2] / "docs" / "kills.md").read_text()
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_example_prints_what_is_shown(run: Run) -> None:
    said = recorded_run("global-A")
    items = [{**pod, "kind": "Pod"} for pod in said["pods_after"].values()]
    items += [said["node_after"], *({**event, "kind": "Event"} for event in said["events"])]
    (run.home / "dump.json").write_text(json.dumps({"kind": "List", "items": items}))
    shutil.copy(RECORDED / "oom-global-A.dmesg.txt", run.home / "oom.log")
    commands = 0
    for block in BLOCK.findall(PAGE):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, shown = example.partition("\n")
            commands += 1
            words = shlex.split(line)
            assert words[:3] == ["kubectl", "qos", "kills"]
            done = run(*words[2:])
            assert done.out + done.err == shown, line
    assert commands == 4

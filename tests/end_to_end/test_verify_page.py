"""Every example of docs/verify.md prints what the page shows; its list of causes is that of the code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.serving import Serve
from tests.end_to_end.command import Run
from tests.end_to_end.verifying import Cluster, container_of, recorded

PAGE = (Path(__file__).parents[2] / "docs" / "verify.md").read_text()
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_example_prints_what_is_shown(run: Run, serve: Serve) -> None:
    (changed,) = recorded("bu-mem-req-64mi")
    changed["pod"]["metadata"]["name"] = "changed"
    container = container_of(changed, "c")
    container["processes"][0] |= {"pid": 7, "comm": "app", "oom_score_adj": 1000}
    server = serve(Cluster([*recorded("bu-multi"), changed]))
    write(run.home / ".kube" / "config", kubeconfig(server, namespace="default"))
    commands = 0
    for text in BLOCK.findall(PAGE):
        for example in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            line, _, shown = example.partition("\n")
            line, piped, tail = line.partition(" | tail -n ")
            words = shlex.split(line)
            assert words[:3] == ["kubectl", "qos", "verify"]
            done = run(*words[2:])
            if piped:
                assert "\n".join(done.lines[-int(tail) :]) + "\n" == shown
            else:
                assert done.out + done.err == shown, line
            commands += 1
    assert commands == 3

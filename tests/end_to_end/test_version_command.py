"""`version` without a kubeconfig, and what it loads; what it prints is in test_transcripts.py."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.serving import Serve
from tests.end_to_end.command import Run
from tests.end_to_end.stages import VersionServer
from tests.end_to_end.test_process import with_modules


def test_without_a_kubeconfig(run: Run) -> None:
    done = run("version")
    assert (done.code, len(done.lines)) == (1, 2)
    assert done.err.splitlines()[0] == "error: no kubeconfig found and this is not a pod"
    assert run("version", "--client", variables={"KUBECONFIG": "/none"}) == (0, done.out, "")


def test_no_more_is_loaded_than_is_needed(serve: Serve, tmp_path: Path) -> None:
    config = write(tmp_path / "config", kubeconfig(serve(VersionServer("v1.36.2", []))))
    done = with_modules(tmp_path, "version", "--kubeconfig", str(config))
    assert done.returncode == 0
    assert set(done.stderr.splitlines()[-1].split()) & {"textual", "rich", "kubernetes"} == set()

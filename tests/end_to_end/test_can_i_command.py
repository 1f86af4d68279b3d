"""`can-i`: what it requests, and what it loads; what it prints is in test_transcripts.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.reviewer import READER, Reviewer, reviewed_right
from tests.cluster.serving import Serve
from tests.end_to_end.command import Run
from tests.end_to_end.stages import EVERYTHING
from tests.end_to_end.test_process import with_modules


@pytest.mark.parametrize("rights", [[], EVERYTHING, READER], ids=["nothing", "everything", "a reader"])
def test_the_table_fits_into_80_columns(run: Run, serve: Serve, rights: list[str]) -> None:
    write(run.home / ".kube" / "config", kubeconfig(serve(Reviewer(rights)), namespace="shop"))
    assert max(map(len, run("can-i").lines)) <= 80


@pytest.mark.parametrize(
    ("flags", "namespaces"),
    [([], {"", "shop"}), (["-n", "web"], {"", "web"}), (["-A"], {""}), (["-A", "-n", "web"], {""})],
)
def test_the_namespace_of_the_reviews(run: Run, serve: Serve, flags: list[str], namespaces: set[str]) -> None:
    server = serve(Reviewer())
    write(run.home / ".kube" / "config", kubeconfig(server, namespace="shop"))
    run("can-i", *flags)
    assert {reviewed_right(request).partition(" in ")[2] for request in server.requests} == namespaces


def test_no_more_is_loaded_than_for_a_list(serve: Serve, tmp_path: Path) -> None:
    config = write(tmp_path / "config", kubeconfig(serve(Reviewer(READER)), namespace="shop"))
    done = with_modules(tmp_path, "can-i", "--kubeconfig", str(config))
    assert done.returncode == 0
    assert set(done.stderr.splitlines()[-1].split()) & {"textual", "rich", "kubernetes"} == set()

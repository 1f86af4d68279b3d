"""Whatever is wrong is one clear sentence on stderr, exit code 1, nothing on stdout, and no traceback."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cluster.cluster_objects import node, pod
from tests.cluster.https_server import Answer
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import ObjectServer, status
from tests.cluster.serving import Serve
from tests.end_to_end.command import Done, Run


def sentences(done: Done) -> list[str]:
    """The lines of stderr that are no hint."""
    return [line for line in done.err.splitlines() if not line.startswith("hint: ")]


def fails_with(done: Done, sentence: str) -> None:
    assert (done.code, done.out, sentences(done)) == (1, "", [sentence])


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_kubeconfig_that_may_not_be_read(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "config", kubeconfig("https://127.0.0.1:1"))
    path.chmod(0)
    fails_with(
        run("top", "--kubeconfig", path),
        f'error: error loading config file "{path}": open {path}: permission denied',
    )


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            status(401, "Unauthorized", "Unauthorized"),
            "error: You must be logged in to the server (Unauthorized)",
        ),
        (
            Answer(503, b""),
            "Error from server (ServiceUnavailable): the server is currently unable to handle the request",
        ),
        (Answer(200, b"{}", promised_bytes=9), "Unable to connect to the server: unexpected EOF"),
    ],
    ids=["401", "503", "cut off"],
)
def test_a_server_that_refuses(run: Run, serve: Serve, tmp_path: Path, answer: Answer, sentence: str) -> None:
    """As the sources report it; every answer is in test_http.py and test_pager_faults.py."""
    objects = ObjectServer(pods=[pod("web", namespace="default")], nodes=[node()], metrics=[])
    objects.faults["/api/v1/namespaces/default/pods"] = answer
    path = write(tmp_path / "config", kubeconfig(serve(objects)))
    fails_with(run("top", "--kubeconfig", path), sentence)


def test_a_pod_that_is_not_there(run: Run, serve: Serve, tmp_path: Path) -> None:
    path = write(tmp_path / "config", kubeconfig(serve(ObjectServer(metrics=[]))))
    sentence = 'Error from server (NotFound): pods "none" not found'
    fails_with(run("top", "--kubeconfig", path, "none"), sentence)
    fails_with(run("explain", "pod/none", "--kubeconfig", path), sentence)


def test_a_certificate_that_nobody_vouches_for(run: Run, serve: Serve, tmp_path: Path) -> None:
    path = write(tmp_path / "config", kubeconfig(serve(ObjectServer()), cluster={}))
    done = run("top", "--kubeconfig", path)
    assert (done.code, done.out) == (1, "")
    (sentence,) = sentences(done)
    assert sentence.startswith("Unable to connect to the server: tls: failed to verify certificate: ")


def test_a_traceback_at_a_high_verbosity(run: Run) -> None:
    for flag in ("-v=9", "-v9", "--v=9"):
        done = run("top", "-f", "none.yaml", flag)
        assert done.code == 1
        assert "Traceback (most recent call last)" in done.err, flag


def test_a_huge_dump_of_nonsense_is_one_sentence(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"kind": "List", "items": ' + "[" * 100_000)
    done = run("top", "-f", "x.json")
    assert done.code == 1
    assert len(sentences(done)) == 1
    (tmp_path / "x.json").write_text(json.dumps({"kind": "List", "items": [None, 7, [], "a", {}]}))
    done = run("top", "-f", "x.json")
    assert (done.code, len(sentences(done))) == (1, 5)

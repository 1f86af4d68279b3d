"""Whatever is wrong is one clear sentence on stderr, exit code 1, nothing on stdout, and no traceback."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.cluster_objects import node, pod
from tests.cluster.https_server import Answer
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import ObjectServer, status
from tests.cluster.serving import Serve
from tests.end_to_end.command import Done, Run

GOOD = "kind: Pod\nmetadata: {name: good}\nspec: {containers: [{name: a}]}\n"


def sentences(done: Done) -> list[str]:
    """The lines of stderr that are no hint."""
    return [line for line in done.err.splitlines() if not line.startswith("hint: ")]


def fails_with(done: Done, sentence: str) -> None:
    assert (done.code, done.out, sentences(done)) == (1, "", [sentence])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "error: x.yaml: empty"),
        (
            "kind: Pod\nmetadata:\n  name: [a\n",
            "error: x.yaml: line 4, column 1: did not find expected ',' or ']'",
        ),
        (
            "kind: Pod\nmetadata: {name: web}\nspec: {containers: [{resources: {limits: {memory: 1Gx}}}]}\n",
            (
                "error: x.yaml: pod/web: spec.containers[0].resources.limits.memory: Invalid value: '1Gx':"
                " quantities must match the regular expression"
                " '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ),
        ),
        (
            "kind: Pod\nmetadata: {name: web}\nspec: {}\n",
            "error: x.yaml: pod/web: spec.containers: Required value",
        ),
        ("kind: Service\n", "error: x.yaml: no pods found, 1 other objects"),
        ("{", "error: x.yaml: not valid JSON: Input data was truncated"),
    ],
)
@pytest.mark.parametrize("command", ["top", "explain"])
def test_a_file_that_cannot_be_used(run: Run, tmp_path: Path, command: str, text: str, sentence: str) -> None:
    (tmp_path / "x.yaml").write_text(text)
    fails_with(run(command, "-f", "x.yaml"), sentence)


def test_a_file_that_is_not_there(run: Run) -> None:
    fails_with(run("top", "-f", "none.yaml"), 'error: the path "none.yaml" does not exist')


def test_nothing_on_standard_input(run: Run) -> None:
    fails_with(run("top", "-f", "-"), "error: standard input: empty")


def test_of_several_documents_the_bad_ones_are_named_and_the_good_ones_answer(
    run: Run, tmp_path: Path
) -> None:
    text = f"{GOOD}---\nkind: Pod\nmetadata: {{name: [}}\n---\n{GOOD.replace('good', 'last')}---\n- 1\n"
    (tmp_path / "x.yaml").write_text(text)
    done = run("top", "-f", "x.yaml", "-o", "name")
    assert (done.code, done.lines) == (1, ["pod/good", "pod/last"])
    first, second, *notes = sentences(done)
    assert first.startswith("error: x.yaml: document 2, line 6, column ")
    assert second == "error: x.yaml: document 4 (line 11): an object was expected, not a list"
    assert all(note.startswith(("the memory capacity", "RANK is by")) for note in notes)


def test_only_bad_documents_are_all_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("a: 1\n---\nkind: Pod\n")
    done = run("top", "-f", "x.yaml")
    assert (done.code, done.out) == (1, "")
    assert sentences(done) == [
        "error: x.yaml: document 1 (line 1): Object 'Kind' is missing",
        "error: x.yaml: document 2 (line 2): Pod: spec.containers: Required value",
    ]


def test_no_kubeconfig(run: Run) -> None:
    fails_with(run("top"), "error: no kubeconfig found and this is not a pod")


def test_a_kubeconfig_that_is_not_there(run: Run) -> None:
    fails_with(run("top", "--kubeconfig", "none"), "error: stat none: no such file or directory")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_kubeconfig_that_may_not_be_read(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "config", kubeconfig("https://127.0.0.1:1"))
    path.chmod(0)
    fails_with(
        run("top", "--kubeconfig", path),
        f'error: error loading config file "{path}": open {path}: permission denied',
    )


def test_a_kubeconfig_that_is_broken(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("clusters: [\n")
    done = run("top", "--kubeconfig", path)
    assert done.code == 1
    assert sentences(done) == [
        f'error: error loading config file "{path}": yaml: line 1: did not find expected node content'
    ]


def test_an_unknown_context(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "config", kubeconfig("https://127.0.0.1:1"))
    done = run("top", "--kubeconfig", path, "--context", "none")
    fails_with(done, 'error: context "none" does not exist')
    assert "hint: --context takes one of: test\n" in done.err


def test_a_refused_connection(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "config", kubeconfig("https://127.0.0.1:1"))
    fails_with(
        run("top", "--kubeconfig", path),
        "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?",
    )


def deny_pods(objects: ObjectServer) -> None:
    objects.forbidden = {"/api/v1/namespaces/default/pods"}


def fault(answer: Answer) -> Callable[[ObjectServer], None]:
    def set_it(objects: ObjectServer) -> None:
        objects.faults["/api/v1/namespaces/default/pods"] = answer

    return set_it


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            deny_pods,
            (
                'Error from server (Forbidden): pods is forbidden: User "viewer" cannot list resource "pods"'
                ' in API group "" in the namespace "default"'
            ),
        ),
        (
            fault(status(401, "Unauthorized", "Unauthorized")),
            "error: You must be logged in to the server (Unauthorized)",
        ),
        (
            fault(Answer(404, b"404 page not found", "text/plain")),
            "Error from server (NotFound): the server could not find the requested resource",
        ),
        (
            fault(Answer(500, b"boom", "text/plain")),
            (
                'Error from server (InternalError): an error on the server ("boom") has prevented the'
                " request from succeeding"
            ),
        ),
        (
            fault(Answer(503, b"")),
            "Error from server (ServiceUnavailable): the server is currently unable to handle the request",
        ),
        (
            fault(Answer(200, b"<html>", "text/html")),
            (
                "error: the server's answer for /api/v1/namespaces/default/pods cannot be read: JSON is"
                " malformed: invalid character (byte 0)"
            ),
        ),
        (
            fault(Answer(200, b"{}", promised_bytes=9)),
            "Unable to connect to the server: unexpected EOF",
        ),
    ],
    ids=["403", "401", "404", "500", "503", "html", "cut off"],
)
def test_a_server_that_refuses(
    run: Run, serve: Serve, tmp_path: Path, change: Callable[[ObjectServer], None], sentence: str
) -> None:
    objects = ObjectServer(pods=[pod("web", namespace="default")], nodes=[node()], metrics=[])
    change(objects)
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


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["top", "--demo", "--sort-by", "none"], "error: there is no column 'none' to sort by"),
        (["top", "--demo", "-l", "a=b", "web"], "error: only one of NAME or selector can be provided"),
        (["top", "--demo", "-f", "x"], "error: --demo and -f cannot be used together"),
        (["top", "-f", "-", "-f", "-"], "error: standard input cannot be used for multiple arguments"),
        (["top", "--node-memory", "lots", "--demo"], "error: --node-memory 'lots': quantities must match"),
        (["top", "--node-memory", "-1Gi", "--demo"], "error: argument --node-memory: expected one argument"),
        (["top", "--node-memory", "0", "--demo"], "error: --node-memory '0' must be positive"),
        (["top", "-o", "xml"], "error: argument -o/--output: invalid choice: 'xml'"),
        (["top", "-n"], "error: argument -n/--namespace: expected one argument"),
        (["none"], "error: argument COMMAND: invalid choice: 'none'"),
        (["top", "--no-such-flag"], "error: unrecognized arguments: --no-such-flag"),
        (["explain"], "error: You must provide one or more resources by argument or filename."),
    ],
)
def test_a_wrong_command_line_is_exit_code_2(run: Run, arguments: list[str], sentence: str) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(sentence)


def test_a_selector_that_no_server_would_take(run: Run) -> None:
    done = run("top", "--demo", "-l", "a in b")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: unable to parse label selector 'a in b' at ")


def test_a_traceback_is_there_for_who_asks_for_it(run: Run) -> None:
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

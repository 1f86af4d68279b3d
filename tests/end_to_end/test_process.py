"""The command as a process: its streams, its end, and what it loads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.cluster.cluster_objects import pod
from tests.cluster.https_server import Answer, Request
from tests.cluster.object_server import ObjectServer
from tests.cluster.reviewer import READER, Reviewer
from tests.cluster.serving import Serve
from tests.end_to_end.command import TIMEOUT_SECONDS, Run, command, environment, signals_arrive
from tests.end_to_end.conftest import Live
from tests.end_to_end.stages import VersionServer, contexts, small_node
from tests.end_to_end.verifying import Cluster, recorded

SERVER = ["aiohttp", "textual_serve"]
NEVER = {"textual", "rich", "kubernetes", "urllib3", *SERVER}
LOADED = """
import contextlib, io, json, shlex, sys
from kubectl_qos.__main__ import main
for line in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            code = main(shlex.split(line))
        except SystemExit as end:
            code = end.code
    print(json.dumps([line, code or 0, said.getvalue(), sorted(sys.modules)]))
"""
"""Runs one command line after the other; what a later one must not load, an earlier one has not loaded."""


def started(home: Path, *arguments: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=home,
        env=environment(home),
    )


def check_modules(home: Path, lines: Iterable[str], never: set[str], code: int = 0) -> None:
    """Run command lines in one interpreter of their own, which loads none of these modules."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *lines],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
        cwd=home,
        env=environment(home),
    )
    for line, ended, said, loaded in map(json.loads, done.stdout.splitlines()):
        assert ended == code, f"{line}: {said}"
        assert "kubectl_qos.cli.main" in loaded
        assert never.isdisjoint(loaded), f"{line} loads {never.intersection(loaded)}"


def test_the_help_is_data(run: Run) -> None:
    for arguments in (["--help"], ["top", "--help"], ["explain", "-h"]):
        done = run(*arguments)
        assert (done.code, done.err) == (0, "")
        assert "\nusage:\n  kubectl" in done.out


def test_a_reader_that_went_away_is_no_error(tmp_path: Path) -> None:
    process = started(tmp_path, "top", "--demo")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(TIMEOUT_SECONDS) == 0
    assert all(line.startswith((b"MEMORY and RANK are by", b"RANK 1 of")) for line in said.splitlines())


def test_a_reader_that_reads_one_line_of_many(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"kind": "List", "items": [pod(f"p{number}") for number in range(1500)]}))
    process = started(tmp_path, "top", "-f", path)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"RANK")
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(TIMEOUT_SECONDS) == 0
    assert "Broken" not in said
    assert "Traceback" not in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command("top", "--demo"),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=TIMEOUT_SECONDS,
            check=False,
            env=environment(tmp_path),
        )
    assert done.returncode == 1
    assert done.stderr == b"error: standard output cannot be written: No space left on device\n"


def test_ctrl_c_ends_at_once_and_quietly(live: Live, tmp_path: Path) -> None:
    objects = ObjectServer()
    objects.faults["/api/v1/namespaces/default/pods"] = Answer(delay_seconds=20)
    server = live(objects)
    with signals_arrive():
        process = started(tmp_path, "top")
    while not server.requests and process.poll() is None:
        os.sched_yield()
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=60)
    assert (process.returncode, out, said) == (130, b"", b"")


OF_A_PAST = "kubectl_qos.present.pod_history kubectl_qos.qos.kills.analyze kubectl_qos.cluster.described"
MANIFEST = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: web, image: w}]}\n"
OF_JSON = "top --demo;explain pod/db-0 -n data --demo;top -f x.json;explain -f x.json"
OF_YAML = "top -f x.yaml;explain -f x.yaml -o yaml;set -f x.yaml --limits memory=5Gi --write"


@pytest.mark.parametrize(
    ("more", "lines"),
    [
        ("yaml msgspec ssl", "--version;version --client;--help;top --help;set --help"),
        ("dataclasses inspect", "--version;version --client;--help;top --help;next --help;explain --help"),
        ("yaml jsonpath ssl", f"{OF_JSON};set -f x.json --limits memory=5Gi -o json"),
        ("yaml jsonpath", "kills --demo -o json"),
        ("ssl", OF_YAML),
        ("kubectl_qos.edit.preview kubectl_qos.qos.kills.evidence", "next --demo"),
        (OF_A_PAST, "explain -f manifest.yaml --node-memory 16Gi"),
    ],
)
def test_nothing_slow_is_loaded_until_it_is_needed(tmp_path: Path, more: str, lines: str) -> None:
    for name in ("x.json", "x.yaml"):
        prefix = "" if name.endswith("json") else "---\n"
        (tmp_path / name).write_text(prefix + json.dumps(pod("web")))
    (tmp_path / "manifest.yaml").write_text(MANIFEST)
    check_modules(tmp_path, lines.split(";"), {*NEVER, *more.split()})


def test_a_manifest_is_explained_with_few_dataclasses(tmp_path: Path) -> None:
    """To define a frozen one takes half a millisecond; a struct of msgspec takes a fortieth of that."""
    (tmp_path / "manifest.yaml").write_text(MANIFEST)
    count = """
import dataclasses
define, defined = dataclasses._process_class, []
dataclasses._process_class = lambda class_, *how: defined.append(class_.__module__) or define(class_, *how)
"""
    code = f"{count}{LOADED}print(*(name for name in defined if name.startswith('kubectl_qos')))"
    done = subprocess.run(
        [sys.executable, "-c", code, "explain -f manifest.yaml"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
        cwd=tmp_path,
        env=environment(tmp_path),
    )
    assert len(done.stdout.splitlines()[-1].split()) <= 12


def test_a_cluster_is_reached_without_the_kubernetes_package(serve: Serve, tmp_path: Path) -> None:
    """It is 180 ms and 20 MB, and only credential plugins need it."""
    answers: dict[str, Callable[[Request], Answer]] = {
        "top": ObjectServer(metrics=[]),
        "can-i -n shop": Reviewer(READER),
        "version": VersionServer("v1.36.2", []),
        "verify pod/be-plain -n default": Cluster(recorded("be-plain")),
    }
    contexts(tmp_path, serve, answers)
    lines = [f"{line} --context '{line}'" for line in answers]
    check_modules(tmp_path, lines, {"textual", "rich", "kubernetes"})


@pytest.mark.parametrize(
    ("line", "code", "more"),
    [
        ("host --proc-root node/proc --cgroup-root node/cgroup", 0, ["urllib3", "yaml"]),
        ("web --help", 0, SERVER),
        ("web -f none", 1, SERVER),
    ],
)
def test_a_node_is_read_and_a_page_refused_without_what_serves(
    tmp_path: Path, line: str, code: int, more: list[str]
) -> None:
    small_node(tmp_path)
    check_modules(tmp_path, [line], {"textual", "rich", "kubernetes", *more}, code)


def test_a_huge_dump_of_nonsense_is_one_sentence(run: Run, tmp_path: Path) -> None:
    nested = '{"kind": "List", "items": ' + "[" * 100_000
    for text, count in ((nested, 1), (json.dumps({"kind": "List", "items": [None, 7, [], "a", {}]}), 5)):
        (tmp_path / "x.json").write_text(text)
        done = run("top", "-f", "x.json")
        assert done[:2] == (1, "")
        assert len([line for line in done.err.splitlines() if not line.startswith("hint: ")]) == count

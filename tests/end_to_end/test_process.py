"""The command as a process: its streams, its end, and what it loads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster_objects import pod
from tests.cluster.https_server import Answer
from tests.cluster.object_server import ObjectServer
from tests.cluster.reviewer import READER, Reviewer
from tests.end_to_end.command import TIMEOUT_SECONDS, Run, command, environment, signals_arrive
from tests.end_to_end.conftest import Live
from tests.end_to_end.stages import VersionServer, small_node
from tests.end_to_end.verifying import Cluster, recorded

SERVER = ["aiohttp", "textual_serve"]
NEVER = {"textual", "rich", "kubernetes", "urllib3", *SERVER}
LOADED = """
import sys
from kubectl_qos.__main__ import main
try:
    code = main(sys.argv[1:])
except SystemExit as end:
    code = end.code
print(*sys.modules, file=sys.stderr)
sys.exit(code)
"""


def started(home: Path, *arguments: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=home,
        env=environment(home),
    )


def with_modules(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it in an interpreter that says at its end, on stderr, what it has loaded."""
    return subprocess.run(
        [sys.executable, "-c", LOADED, *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
        cwd=home,
        env=environment(home),
    )


def test_the_help_is_data(run: Run) -> None:
    for arguments in (["--help"], ["top", "--help"], ["explain", "-h"]):
        done = run(*arguments)
        assert (done.code, done.err) == (0, "")
        assert "\nusage:\n  kubectl" in done.out


@pytest.mark.parametrize(
    "arguments",
    [["top", "--demo"], ["top", "--demo", "-o", "json"], ["explain", "pod/db-0", "-n", "data", "--demo"]],
)
def test_a_reader_that_went_away_is_no_error(tmp_path: Path, arguments: list[str]) -> None:
    process = started(tmp_path, *arguments)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(TIMEOUT_SECONDS) == 0
    assert all(line.startswith((b"MEMORY and RANK are by", b"RANK 1 of")) for line in said.splitlines())


def test_a_reader_that_reads_one_line_of_many(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"kind": "List", "items": [pod(f"p{number}") for number in range(5000)]}))
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


@pytest.mark.parametrize(
    ("arguments", "more"),
    [
        (["--version"], ["yaml", "msgspec", "ssl"]),
        (["version", "--client"], ["yaml", "msgspec", "ssl"]),
        (["--help"], ["yaml", "msgspec", "ssl"]),
        (["top", "--help"], ["yaml", "msgspec", "ssl"]),
        (["top", "--demo"], ["yaml", "ssl"]),
        (["explain", "pod/db-0", "-n", "data", "--demo"], ["yaml", "ssl"]),
        (["set", "--help"], ["yaml", "msgspec", "ssl"]),
        (["kills", "--demo", "-o", "json"], ["yaml", "jsonpath"]),
        (["set", "-f", "x.json", "--limits", "memory=5Gi", "-o", "json"], ["yaml", "jsonpath", "ssl"]),
        (["set", "-f", "x.yaml", "--limits", "memory=5Gi", "--write"], ["ssl"]),
        (["top", "-f", "x.json"], ["yaml", "ssl"]),
        (["explain", "-f", "x.json"], ["yaml", "ssl"]),
        (["top", "-f", "x.yaml"], ["ssl"]),
        (["explain", "-f", "x.yaml", "-o", "yaml"], ["ssl"]),
    ],
    ids=" ".join,
)
def test_nothing_slow_is_loaded_until_it_is_needed(
    tmp_path: Path, arguments: list[str], more: list[str]
) -> None:
    for name in ("x.json", "x.yaml"):
        prefix = "" if name.endswith("json") else "---\n"
        (tmp_path / name).write_text(prefix + json.dumps(pod("web")))
    done = with_modules(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "kubectl_qos.cli.main" in loaded
    assert loaded & {*NEVER, *more} == set()


@pytest.mark.parametrize(
    ("line", "answer", "more"),
    [
        ("top", ObjectServer(metrics=[]), []),
        ("can-i -n shop", Reviewer(READER), []),
        ("version", VersionServer("v1.36.2", []), []),
        ("verify pod/be-plain -n default", Cluster(recorded("be-plain")), []),
        ("host --proc-root node/proc --cgroup-root node/cgroup", None, ["urllib3", "yaml"]),
        ("web -f none", None, SERVER),
        ("web --help", None, SERVER),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_cluster_is_reached_without_the_kubernetes_package(
    live: Live, tmp_path: Path, line: str, answer: Any, more: list[str]
) -> None:
    """It is 180 ms and 20 MB, and only credential plugins need it."""
    small_node(tmp_path)
    if answer is not None:
        live(answer)
    done = with_modules(tmp_path, *line.split())
    assert done.returncode == (line == "web -f none"), done.stderr
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "kubectl_qos.cli.main" in loaded
    assert loaded & {"textual", "rich", "kubernetes", *more} == set()


def test_a_huge_dump_of_nonsense_is_one_sentence(run: Run, tmp_path: Path) -> None:
    nested = '{"kind": "List", "items": ' + "[" * 100_000
    for text, count in ((nested, 1), (json.dumps({"kind": "List", "items": [None, 7, [], "a", {}]}), 5)):
        (tmp_path / "x.json").write_text(text)
        done = run("top", "-f", "x.json")
        assert done[:2] == (1, "")
        assert len([line for line in done.err.splitlines() if not line.startswith("hint: ")]) == count

"""`host` with dumps, clusters and permissions; the rest is in test_transcripts.py."""

from __future__ import annotations

import csv
import ctypes
import io
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kubectl_qos.cli.commands import host
from tests.cluster.cluster_objects import pod
from tests.cluster.object_server import ObjectServer
from tests.end_to_end.command import TIMEOUT_SECONDS, Done, Run, command, environment
from tests.end_to_end.conftest import Live
from tests.end_to_end.stages import ID, UID, small_node
from tests.host.fake_node import FakeNode, recorded_node


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    return small_node(tmp_path)


def roots(node: FakeNode) -> list[str | Path]:
    return ["--proc-root", node.proc, "--cgroup-root", node.cgroup]


@pytest.mark.parametrize("source", ["file", "-"])
def test_a_dump_shows_elsewhere_what_the_node_showed(run: Run, node: FakeNode, source: str) -> None:
    there = run("host", *roots(node), "--all")
    dump = run("host", *roots(node), "-o", "json")
    path = run.home / "dump.json"
    path.write_text(dump.out)
    words = ["--from-dump", "-" if source == "-" else path]
    here = run("host", *words, "--all", given=dump.out)
    assert here == there
    again = run("host", *words, "-o", "json", given=dump.out)
    assert again.out == dump.out
    assert len(json.loads(dump.out)["processes"]) == 5


def test_a_recorded_node_goes_through_a_dump(run: Run, tmp_path: Path) -> None:
    node, recorded, _ = recorded_node(tmp_path / "recorded", "systemd")
    dump = run("host", *roots(node), "-o", "json").out
    rows = list(csv.DictReader(io.StringIO(run("host", "--from-dump", "-", "-o", "csv", given=dump).out)))
    ranked = [row for row in rows if row["rank"]]
    assert len(ranked) >= 70
    for row in ranked:
        found = recorded[int(row["pid"])]
        assert abs(int(row["expectedOOMScore"]) - found["oom_score"]) <= 2
        assert (row["command"], row["oomScoreAdj"]) == (found["comm"], str(found["oom_score_adj"]))


def a_pod() -> dict[str, object]:
    found = pod("web", request="1Gi")
    found["metadata"]["uid"] = UID
    status = {"name": "app", "containerID": f"containerd://{ID}", "state": {"running": {}}}
    found["status"]["containerStatuses"] = [status]
    return found


def test_names_come_from_a_cluster_or_files(run: Run, node: FakeNode, live: Live, tmp_path: Path) -> None:
    objects = ObjectServer(pods=[a_pod(), pod("other", node="worker-2")], nodes=[], metrics=[])
    live(objects, namespace="elsewhere")
    done = run("host", *roots(node), "--names")
    assert done.lines[1].split()[-5:] == ["app", "shop/web", "Burstable", "web", "server"]
    path = tmp_path / "pod.json"
    path.write_text(json.dumps(a_pod()))
    assert run("host", *roots(node), "-f", path).out == done.out
    dump = run("host", *roots(node), "-f", path, "-o", "json").out
    assert run("host", "--from-dump", "-", given=dump).out == done.out, "a dump keeps the names"
    path.write_text(json.dumps({"kind": "List", "items": [a_pod(), {"kind": "Pod", "metadata": "web"}]}))
    failed = run("host", *roots(node), "-f", path)
    assert (failed.code, failed.out) == (1, done.out), "names may be missing"


def test_what_a_node_says_cannot_write_to_the_terminal(run: Run, node: FakeNode) -> None:
    node.process(72, "e\x1b[2Jvil\x9b", cmdline="a\x07 \u202eb", cgroup="0::/kubepods/pod\x1bx/abcdefabcdef")
    for words in ([], ["-o", "wide"], ["-o", "json"], ["-o", "csv"]):
        done = run("host", *roots(node), *words)
        assert not set(done.out + done.err) & set("\x1b\x07\x9b\u202e"), words
        assert done.code == 0


def without_override() -> None:
    """Root that files forbid something to, as to anybody else (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH)."""
    if not os.geteuid():
        for capability in (1, 2):
            ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)


def as_anybody(run: Run, *words: str | Path) -> Done:
    done = subprocess.run(
        command(*words),
        capture_output=True,
        text=True,
        check=False,
        cwd=run.home,
        env=environment(run.home),
        preexec_fn=without_override,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.skipif(sys.platform != "linux", reason="permissions of Linux")
def test_what_may_not_be_read(run: Run, node: FakeNode) -> None:
    for pid in (60, 70):
        (node.proc / f"{pid}/status").chmod(0)
    done = as_anybody(run, "host", *roots(node))
    assert done.code == 0
    assert [line.split()[1] for line in done.lines[1:]] == ["71", "1"]
    assert done.err.splitlines()[0] == "no permission to read 2 processes: run as root"
    node.proc.chmod(0)
    try:
        done = as_anybody(run, "host", *roots(node))
    finally:
        node.proc.chmod(0o700)
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines() == [f"error: {node.proc} may not be read", "hint: run as root"]


def test_what_changes_follows(run: Run, node: FakeNode) -> None:
    words = command("host", "-w", "--no-headers", *roots(node))
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += f"from kubectl_qos.__main__ import main; sys.exit(main({words[3:]!r}))"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(run.home),
    ) as process:
        assert process.stdout is not None
        guard = threading.Timer(TIMEOUT_SECONDS, process.kill)
        guard.start()
        first = [process.stdout.readline().split()[1] for _ in range(4)]
        node.process(80, "newcomer", adj=1000, cgroup="0::/")
        node.end(71)
        seen = process.stdout.readline().split()[:2]
        process.send_signal(signal.SIGINT)
        rest, said = process.communicate()
        guard.cancel()
    assert first == ["70", "71", "60", "1"]
    assert seen == ["2", "80"], "the others keep their places, so that they are not said again"
    assert rest == ""
    assert process.returncode == 130
    assert said.count("RANK is for a full node") == 1


def test_the_node_is_found_where_a_debug_pod_has_it(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    here = (Path("/proc"), Path("/sys/fs/cgroup"))
    assert host.roots(None, None, mounted=str(tmp_path)) == here, "an empty folder is no node"
    (tmp_path / "proc" / "meminfo").touch()
    assert host.roots(None, None, mounted=str(tmp_path)) == (tmp_path / "proc", tmp_path / "sys/fs/cgroup")
    assert host.roots("/p", None, mounted=str(tmp_path)) == (Path("/p"), tmp_path / "sys/fs/cgroup")

"""Views of nodes: of recorded ones, of odd ones, and of this one."""

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_qos.cli.commands.host import pod_names_by_uid
from kubectl_qos.errors import InputError, QosError
from kubectl_qos.host.procfs import find_hierarchy, from_json, read_host, with_parents
from kubectl_qos.k8s.objects import JsonDecoder, Pod
from kubectl_qos.present.measured import host_columns, host_notes
from kubectl_qos.present.output import table
from kubectl_qos.qos.cgroup.names import memory_path
from kubectl_qos.qos.oom_score import Kernel
from kubectl_qos.qos.process_order import (
    HostProcess,
    HostView,
    NotRanked,
    RankedProcess,
    build_process_rows,
    formula_in_use,
    process_order,
)
from tests.host.fake_node import VARIANTS, FakeNode, recorded_node, write

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    node = FakeNode(tmp_path)
    node.machine()
    return node


def read(node: FakeNode) -> HostView:
    return read_host(node.proc, node.cgroup)


def order(view: HostView) -> tuple[RankedProcess, ...]:
    kernel = formula_in_use(view.processes, view.kernel_release, view.total_pages, view.page_size)
    return process_order(view.processes, view.total_pages, view.page_size, kernel, is_whole=view.is_whole)


def process(node: FakeNode, pid: int = 9) -> HostProcess:
    return next(one for one in read(node).processes if one.pid == pid)


def notes_of(view: HostView) -> list[str]:
    return list(host_notes(view, [], Kernel.SIGNED, all_shown=False))


Recorded = tuple[HostView, dict[int, dict[str, Any]], dict[str, Any]]


@pytest.fixture(scope="module", params=VARIANTS)
def a_recorded_node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """What is read of a recorded node, its processes as recorded, and the pods by UID."""
    node, processes, pods = recorded_node(tmp_path_factory.mktemp("node"), request.param)
    return read(node), processes, pods


def test_a_recorded_node_has_the_recorded_order_and_scores(a_recorded_node: Recorded) -> None:
    view, recorded, _ = a_recorded_node
    assert {one.pid for one in view.processes} == set(recorded)
    rows = order(view)
    ranked = [row for row in rows if row.rank is not None]
    assert len(ranked) >= 25
    assert [row for row in ranked if row.differs] == []
    scores = [recorded[row.process.pid]["oom_score"] for row in ranked]
    for before, after in pairwise(scores):
        assert after <= before + 2, "the kernel's own scores fall as RANK rises, apart from its approximation"
    assert {row.not_ranked for row in rows if row.rank is None} <= {NotRanked.ADJ, NotRanked.INIT}
    assert all(row.process.score == 0 for row in rows if row.not_ranked)


def test_a_recorded_node_has_the_recorded_pods_and_containers(a_recorded_node: Recorded) -> None:
    view, _, pods = a_recorded_node
    names = pod_names_by_uid(
        JsonDecoder(Pod).decode(msgspec.json.encode(one["pod"])) for one in pods.values()
    )
    groups = {path for path, files in view.cgroups.items() if files.get("memory.oom.group") == "1"}
    rows = {row.process.pid: row for row in build_process_rows(order(view), names, groups)}
    compared = 0
    for uid, one in pods.items():
        for container in one["containers"]:
            for recorded in container["processes"]:
                row = rows[recorded["pid"]]
                if row.process.comm != recorded["comm"]:
                    continue  # its id was another's when the daemons were recorded
                compared += 1
                assert row.names is not None
                expected = container["id" if container["name"] == "POD" else "name"]
                assert (row.names.name, row.container) == (one["pod"]["metadata"]["name"], expected)
                assert row.pod is not None
                assert row.pod.qos.value == one["pod"]["status"]["qosClass"], uid
                dying = len(container["processes"]) if container["cgroup"]["memory.oom.group"] == "1" else 1
                assert row.killed_together == (dying if row.ranked.rank else 0)
    assert compared >= 13
    daemons = [row for row in rows.values() if row.process.cgroup.startswith("0::/system") or row.pod is None]
    assert len(daemons) >= 15


def test_only_what_has_memory_is_a_process(node: FakeNode) -> None:
    node.process(1, "init", ppid=0)
    node.kernel_thread(77, "kworker/0:1-events")
    node.process(80, "dead", status={"State": "Z (zombie)", "VmRSS": ""})
    view = read(node)
    assert [one.pid for one in view.processes] == [1]
    assert view.is_whole


def test_where_the_first_thread_has_ended_the_memory_is_the_others(node: FakeNode) -> None:
    node.process(80, "app", status={"State": "Z (zombie)", "VmRSS": "", "Threads": "3"})
    write(node.proc / "80/task/80/status", "State:\tZ (zombie)\n")
    write(node.proc / "80/task/81/status", "State:\tS\nVmRSS:\t 4096 kB\nVmPTE:\t 8 kB\n")
    assert (process(node, 80).rss_bytes, process(node, 80).page_table_bytes) == (4096 << 10, 8 << 10)


@pytest.mark.parametrize(
    "comm", ["a b", "(sd-pam)", "a) S 1 (b", "tab\there", "new\nline", "ends in \n", "ünï", "", "  "]
)
def test_a_name_may_hold_anything(node: FakeNode, comm: str) -> None:
    node.process(9, comm)
    assert process(node).comm == comm


def test_odd_bytes_are_escaped(node: FakeNode) -> None:
    node.process(9)
    (node.proc / "9/comm").write_bytes(b"\xff\x1b\n")
    (node.proc / "9/cmdline").write_bytes(b"/bin/a\0--b\0\xfe\0")
    assert (process(node).comm, process(node).cmdline) == ("\\xff\x1b", "/bin/a --b \\xfe")


def test_a_child_of_vfork_is_skipped(node: FakeNode) -> None:
    alike: dict[str, Any] = {"VmPeak": 9000, "VmSize": 9000, "VmRSS": 800_000, "VmData": 5, "VmPTE": 64}
    node.process(20, "waits", status={"State": "D (disk sleep)"}, score=700, **alike)
    node.process(21, "runs", ppid=20, score=0, **alike)
    node.process(30, "idle", status={"State": "S (sleeping)"}, **alike)
    node.process(31, "forked", ppid=30, **alike)
    assert {one.pid for one in read(node).processes if one.borrows} == {21}
    spared = {row.process.pid: row.not_ranked for row in order(read(node))}
    assert spared == {20: None, 21: NotRanked.VFORK, 30: None, 31: None}


def test_all_of_its_memory_counts(node: FakeNode) -> None:
    node.process(9, VmRSS=100, RssAnon=60, VmSwap=40, VmPTE=8, VmPMD=4)
    one = process(node)
    sizes = (one.rss_bytes, one.anon_bytes, one.swap_bytes, one.page_table_bytes)
    assert sizes == (100 << 10, 60 << 10, 40 << 10, 12 << 10)


@pytest.mark.parametrize(
    ("lines", "path"),
    [
        ("0::/kubepods.slice/x.scope", "/kubepods.slice/x.scope"),
        ("11:cpu,cpuacct:/a\n4:memory:/kubepods/pod1/c\n1:name=systemd:/b", "/kubepods/pod1/c"),
        ("4:memory:/v1\n1:name=systemd:/b\n0::/unified", "/v1"),
        ("2:hugetlb,memory:/both\n0::/", "/both"),
        ("9:name=systemd:/a\n0::/docker:x:y", "/docker:x:y"),
        ("0::/with space\x0b\u2028", "/with space\x0b\u2028"),
        ("9:name=memory:/no\n0::/yes", "/yes"),
        ("0::/../../init.scope", "/../../init.scope"),
        ("", ""),
        ("garbage\n::\n0:", ""),
    ],
)
def test_which_cgroup_counts_its_memory(lines: str, path: str) -> None:
    assert memory_path(lines) == path


def test_the_cgroups_of_either_version(node: FakeNode) -> None:
    node.process(9, cgroup="0::/pods/one")
    write(node.cgroup / "pods/memory.max", "max\n")
    write(node.cgroup / "pods/one/memory.oom.group", "1\n")
    assert read(node).cgroups == {"/pods": {"memory.max": "max"}, "/pods/one": {"memory.oom.group": "1"}}
    assert read(node).cgroup_version == 2
    write(node.cgroup / "memory/cgroup.procs", "")
    write(node.cgroup / "memory/pods/one/memory.limit_in_bytes", "4096\n")
    (node.cgroup / "cgroup.controllers").rename(node.cgroup / "unified")
    assert read(node).cgroups == {"/pods/one": {"memory.limit_in_bytes": "4096"}}
    assert read(node).cgroup_version == 1
    assert find_hierarchy(node.cgroup / "nothing") is None


def test_nothing_outside_of_the_hierarchy_is_read() -> None:
    assert with_parents("/a/b") == ["/a", "/a/b"]
    assert (
        with_parents("/../x") == with_parents("/a/../../etc") == with_parents("") == with_parents("a") == []
    )


@pytest.fixture
def opening(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Path], object]], None]:
    """Has a function called with each path before it is opened."""
    really = Path.open

    def install(before: Callable[[Path], object]) -> None:
        def opened(path: Path, *rest: Any, **more: Any) -> Any:
            before(path)
            return really(path, *rest, **more)

        monkeypatch.setattr(Path, "open", opened)

    return install


def test_processes_vanish_while_they_are_read(node: FakeNode, opening: Callable[..., None]) -> None:
    files = ["status", "oom_score_adj", "comm", "cmdline", "oom_score", "cgroup"]
    for pid, _ in enumerate(files, 100):
        node.process(pid)

    def vanish(path: Path) -> None:
        if path.parent.name.isdecimal() and int(path.parent.name) >= 100:
            gone = files[int(path.parent.name) - 100]
            if files.index(path.name) >= files.index(gone):
                raise ProcessLookupError if path.name == gone else FileNotFoundError

    opening(vanish)
    view = read(node)
    assert view.denied == 0
    assert [(one.pid, one.comm, one.score) for one in view.processes] == [
        *((pid, "app", None) for pid in (102, 103, 104)),
        (105, "app", 666),
    ], "without status or adj nothing is known"


def test_what_may_not_be_read_is_counted(node: FakeNode, opening: Callable[..., None]) -> None:
    for pid in (100, 101, 102):
        node.process(pid)

    def deny(path: Path) -> None:
        if path.parent.name == "101" or (path.parent.name, path.name) == ("102", "cmdline"):
            raise PermissionError

    opening(deny)
    view = read(node)
    assert view.denied == 1
    assert [one.pid for one in view.processes] == [100, 102], "a command line is not needed"


@pytest.mark.parametrize(
    ("options", "uid", "is_hidden"),
    [
        ("rw,hidepid=2,gid=4", 1000, True),
        ("rw,hidepid=invisible", 1000, True),
        ("rw,hidepid=0", 1000, False),
        ("rw,nosuid", 1000, False),
        ("rw,hidepid=2", 0, False),
    ],
)
def test_hidden_processes_are_noted(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch, options: str, uid: int, *, is_hidden: bool
) -> None:
    node.process(100)
    write(node.proc / "self/mounts", f"tmpfs /tmp tmpfs rw,hidepid=2 0 0\nproc /proc proc {options} 0 0\n")
    monkeypatch.setattr("os.geteuid", lambda: uid, raising=False)
    view = read(node)
    assert view.is_hidden is is_hidden
    assert any("hidepid" in note for note in notes_of(view)) is is_hidden


def test_the_init_of_a_namespace_may_be_killed(tmp_path: Path) -> None:
    inside = FakeNode(tmp_path)
    inside.machine()
    inside.end(2)
    inside.process(1, "app", score=666)
    view = read(inside)
    assert not view.is_whole
    assert [row.rank for row in order(view)] == [1]
    assert any("PID namespace" in note for note in notes_of(view))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("vm/panic_on_oom", 1, "vm.panic_on_oom is 1: the node panics when it runs out"),
        ("vm/panic_on_oom", 2, "vm.panic_on_oom is 2: any OOM, even of one cgroup"),
        ("vm/oom_kill_allocating_task", 1, "the allocating process is killed"),
        ("vm/overcommit_memory", 2, "allocations fail before memory runs out"),
        ("vm/overcommit_memory", 1, None),
        ("vm/panic_on_oom", 0, None),
    ],
)
def test_sysctls_that_change_the_victim_are_noted(
    node: FakeNode, name: str, value: int, words: str | None
) -> None:
    node.process(100)
    before = notes_of(read(node))
    node.sysctl(name, value)
    added = [note for note in notes_of(read(node)) if note not in before]
    assert len(added) == (words is not None)
    assert words is None or words in added[0]


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (lambda node: (node.proc / "meminfo").unlink(), "has no memory size"),
        (lambda node: write(node.proc / "meminfo", "MemTotal: 0 kB\n"), "has no memory size"),
        (lambda node: [node.end(int(one.name)) for one in node.proc.glob("[0-9]*")], "has no processes"),
        (lambda node: node.proc.rename(node.root / "other"), "cannot be read: "),
    ],
)
def test_what_is_no_proc_is_an_error_with_a_hint(
    node: FakeNode, break_it: Callable[[FakeNode], object], words: str
) -> None:
    break_it(node)
    with pytest.raises(InputError, match=words) as caught:
        read(node)
    assert caught.value.hint


_SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
FILES = ["status", "comm", "cmdline", "oom_score", "oom_score_adj", "cgroup"]
READ = [*(f"9/{name}" for name in FILES), "meminfo", "self/mounts", "sys/kernel/osrelease", "version"]
TEXTS = st.text("0123456789-: \n\tkBVmRSSPTE/.,=xZ", max_size=200).map(str.encode)
NUMBERS = [b"VmRSS:9223372036854775808", b"9" * 400, b"-" + b"9" * 18, b"memory:::::\n0::"]
NUMBERS += [b"VmRSS: 99999999999999999999999 kB"]


@settings(suppress_health_check=_SLOW)
@given(st.sampled_from(READ), st.binary(max_size=300) | TEXTS | st.sampled_from(NUMBERS))
def test_garbage_in_any_file_never_raises(tmp_path: Path, name: str, garbage: bytes) -> None:
    node = FakeNode(tmp_path)
    node.machine()
    node.process(1, "init", ppid=0)
    node.process(9, ppid=1, cgroup="0::/a")
    path = node.proc / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(garbage)
    try:
        view = read(node)
    except InputError:
        assert name == "meminfo"
        return
    rows = build_process_rows(order(view), {}, set())
    text = "\n".join(table(rows, host_columns(every=True), NOW))
    assert text.replace("\n", "").isprintable()
    list(host_notes(view, rows, Kernel.SIGNED, all_shown=True))
    assert from_json(msgspec.json.encode(view), "it") == view


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode(errors="replace")))
def test_garbage_is_no_dump(garbage: bytes) -> None:
    with pytest.raises(QosError, match="is not a dump of a node"):
        from_json(garbage, "it")


@pytest.mark.parametrize(
    "change",
    [
        {"pageSizeBytes": 0},
        {"meminfoBytes": {}},
        {"meminfoBytes": {"MemTotal": -5}},
        {"kind": "List"},
        {"processes": [{"pid": 1, "ppid": 0, "command": "x", "oomScoreAdj": -1001, "rssBytes": 1}]},
        {"processes": [{"pid": 1, "ppid": 0, "command": "x", "oomScoreAdj": 0, "rssBytes": -1}]},
        {"processes": [{"pid": "1"}]},
    ],
)
def test_a_dump_with_impossible_values_is_refused(node: FakeNode, change: dict[str, Any]) -> None:
    node.process(9)
    values = msgspec.to_builtins(read(node)) | change
    with pytest.raises(InputError, match="is not a dump of a node"):
        from_json(msgspec.json.encode(values), "it")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such a /proc")
def test_this_machine_while_processes_come_and_go() -> None:
    with subprocess.Popen(["sh", "-c", "while :; do true & sleep 0.001; done"]) as storm:
        try:
            views = [read_host() for _ in range(20)]
        finally:
            storm.kill()
    for view in views:
        assert {storm.pid} <= {one.pid for one in view.processes}
        assert view.total_pages > 0
        off = [row for row in order(view) if row.differs]
        assert len(off) <= len(view.processes) / 10, "the scores of this kernel are not those of the formula"

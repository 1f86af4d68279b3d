"""Kernel logs: recorded reports, those of other kernels, every format of a log, and other lines."""

import gzip
import io
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_qos.errors import InputError
from kubectl_qos.host import kernel_log
from kubectl_qos.host.kernel_log import read_file, read_kmsg, read_log
from kubectl_qos.host.log_lines import parse_line
from kubectl_qos.host.log_text import LONGEST, messages, read_lines
from kubectl_qos.qos.cgroup.names import pod_cgroup
from kubectl_qos.qos.kills.choice import Unranked, VictimChoice, explain_choice
from kubectl_qos.qos.kills.report import Constraint, Invoker, KernelLog, OomReport, distinct_reports
from kubectl_qos.qos.oom_score import Kernel
from tests.host.kernel_logs import BOOTED, FORMS, RUNS, first_reports, recorded_log, recorded_run, rewritten
from tests.host.wrapped_logs import LOGS

REPORTS = {
    path.stem.removeprefix("linux-"): path.read_text(encoding="utf-8")
    for path in sorted(Path(__file__).parent.glob("linux-*.txt"))
}
"""Reports in the words of other kernels, after mm/oom_kill.c and mm/memcontrol.c of their version."""
POD = "/kubepods/burstable/podaf389229-5fc5-4617-ae95-9160d576eb49"
CONTAINER = f"{POD}/3b3d031aca1bab63c359a8aac8c18e373ac90373faf12c69e5225aec01fc9c84"


NOW = datetime(2026, 11, 21, tzinfo=UTC)
MACHINE = 3984140 * 1024


KILLED = "Out of memory: Killed process 7 (x) total-vm:1kB, anon-rss:1kB, file-rss:0kB"


def parsed(text: str) -> tuple[OomReport, ...]:
    return read_log(text.splitlines(), NOW).reports


@cache
@cache
def recorded_reports(run: str) -> tuple[OomReport, ...]:
    return read_log(recorded_log(run), NOW).reports


def without_prefix(lines: Iterable[str]) -> list[OomReport]:
    """The reports in a log without what the prefixes of its lines say."""
    return list(map(bare, read_log(lines, NOW).reports))


def bare(report: OomReport) -> OomReport:
    """Without what prefixes say, and without what their times do: whether the next line is of that moment."""
    return replace(report, time="", uptime=None, node="", line=0, is_alone=False, year_is_guessed=False)


def choice_of(report: OomReport, machine: int | None = None) -> VictimChoice:
    choice = explain_choice(report, machine)
    assert isinstance(choice, VictimChoice)
    return choice


# --- recorded


@pytest.mark.parametrize("run", RUNS)
def test_recorded_victims_pods_containers_and_constraints(run: str) -> None:
    reports = recorded_reports(run)
    said = recorded_run(run)
    summaries = [line for line in said["kill_lines"] if "oom-kill:" in line]
    killed = {line.split("Killed process ")[1].split()[0] for line in said["kill_lines"] if "Killed" in line}
    assert len(reports) == len(summaries) > 4
    assert {str(one.pid) for report in reports for one in report.processes} == killed
    pods = {pod["metadata"]["uid"]: pod for pod in said["pods_after"].values()}
    for report, summary in zip(reports, summaries, strict=True):
        fields = dict(part.split("=", 1) for part in summary.split("oom-kill:")[1].split(",") if "=" in part)
        assert report.constraint == fields["constraint"]
        assert report.oom_memcg == fields.get("oom_memcg", "")
        assert report.task_memcg == fields["task_memcg"]
        assert report.victim is not None
        assert (str(report.victim.pid), report.victim.comm) == (fields["pid"], fields["task"])
        assert not report.incomplete
        assert report.kernel == "6.1.0-50-cloud-amd64"
        assert bool(report.group_kill) == (run != "memcg-singleprocess")
        assert report.group_kill in {"", report.task_memcg}
        cgroup = pod_cgroup(report.task_memcg)
        assert cgroup is not None
        pod = pods[cgroup.pod_uid]
        assert cgroup.qos == pod["status"]["qosClass"]
        ids = [
            (state.get("terminated") or {}).get("containerID", one.get("containerID", ""))
            for one in pod["status"]["containerStatuses"]
            for state in (one["state"], one["lastState"])
        ]
        # Of a container that restarted often only the last two ends are kept.
        assert any(one.endswith(cgroup.container_id) for one in ids) or pod["metadata"]["name"] == "m-restart"


@pytest.mark.parametrize("run", RUNS)
def test_the_victim_has_the_most_points_and_the_recorded_score(run: str) -> None:
    said = recorded_run(run)
    snapshots = said["before"].get("snapshots") or [said["before"]["pods"]]
    measured = {
        process["pid"]: process
        for snapshot in snapshots
        for pod in snapshot.values()
        for container in pod["containers"]
        for process in container["processes"]
    }
    compared = 0
    for report in recorded_reports(run):
        choice = choice_of(report, MACHINE)
        assert choice.chosen.place == 1
        assert not choice.tied
        for one in choice.ranked:
            process = measured.get(one.task.pid)
            resident = int(process["VmRSS"].split()[0]) if process is not None else 0
            if process is not None and abs(resident - one.task.rss * 4) <= 2048:
                compared += 1
                assert one.task.adj == process["oom_score_adj"]
                assert one.score is not None
                assert abs(one.score - process["oom_score"]) <= 2, (one, process)
    assert compared >= (20 if run in {"global-A", "kubepods-C"} else 1)


def test_the_memory_of_the_machine_and_of_a_cgroup() -> None:
    first = recorded_reports("global-A")[0]
    assert first.memory.total_ram_pages == MACHINE // 4096
    assert first.memory.total_swap_kb == 0
    assert first.invoker == Invoker("memhog", 16862, 996)
    assert len(first.tasks) == 33
    pods = recorded_reports("kubepods-C")[0]
    assert pods.oom_memcg == "/kubepods.slice"
    assert (pods.memory.limit_kb, pods.memory.usage_kb) == (3472140, 3472140)
    assert pods.memory.swap_limit_kb == 9007199254740988


def test_a_group_is_counted_once() -> None:
    group = next(report for report in recorded_reports("memcg-oomgroup") if len(report.tasks) == 5)
    assert [one.comm for one in group.processes] == ["memhog", "sh", "sleep"]
    assert len(group.victims) == 4
    assert group.freed_kb == 80788 + 644 + 64 + 4


# --- other kernels


def test_a_kernel_of_2013() -> None:
    (report,) = parsed(REPORTS["3.10"])
    assert (report.constraint, report.oom_memcg, report.task_memcg) == (Constraint.MEMCG, POD, CONTAINER)
    assert report.kernel == "3.10.0-957.el7.x86_64"
    assert report.invoker == Invoker("java", 8310, 968)
    assert report.victim is not None
    assert (report.victim.uid, report.victim.score, report.victim.rss_kb) == (1000, 1894, 128000)
    java = report.tasks[1]
    assert (java.name, java.pgtables_pages, java.counted_pages(4096)) == ("java", 120, 32160)
    choice = choice_of(report)
    assert choice.kernel is Kernel.MINUS_30
    assert (choice.total_pages, choice.swap_is_assumed) == (131072 // 4 + 40, True)
    assert not report.incomplete


def test_a_child_instead_of_the_process_with_the_most_points() -> None:
    (report,) = parsed(REPORTS["4.4"])
    assert report.victim is not None
    assert (report.victim.pid, report.victim.comm, report.chosen) == (8400, "sh -c x y", 8308)
    assert report.victim.shmem_rss_kb is None
    assert report.tasks[0].pgtables_pages == 125
    choice = choice_of(report)
    assert (choice.child, choice.chosen.task.pid, choice.chosen.place) == (True, 8308, 1)


def test_a_node_of_2018_with_swap_a_tie_and_the_reaper() -> None:
    (report,) = parsed(REPORTS["4.19"])
    assert (report.constraint, report.reaped) == (Constraint.NONE, (117,))
    choice = choice_of(report)
    assert choice.total_pages == 1048440 - 52405 + 524284 // 4
    assert choice.kernel is Kernel.FLOORED
    assert (choice.chosen.place, len(choice.tied), choice.immune) == (1, 1, 1)
    assert [one.place for one in choice.ranked] == [1, 1, 3]


def test_names_with_colons_and_spaces() -> None:
    (report,) = parsed(REPORTS["5.4"])
    assert report.invoker == Invoker("nginx: worker p", 63635, 986)
    assert report.victim is not None
    assert (report.victim.comm, report.victim.shmem_rss_kb) == ("nginx: worker p", 92)
    assert report.chosen == 63214
    assert [task.name for task in report.tasks] == ["nginx: worker p"] * 2
    assert report.page_bytes == 4096
    choice = choice_of(report)
    assert not choice.swap_is_assumed, "memory and swap have the same limit"


def test_a_table_of_2024() -> None:
    (report,) = parsed(REPORTS["6.8"])
    (task,) = report.tasks
    assert (task.rss, task.pgtables_bytes, task.adj) == (14530, 180224, 200)
    assert report.kernel == "6.12.0-50-generic"
    assert report.invoker == Invoker("python3", 483880, 200)


def test_a_page_of_64_ki() -> None:
    text = REPORTS["6.8"].replace("14530    12706     1824", "908      794      114")
    (report,) = parsed(text.replace("73357", "4584"))
    assert report.page_bytes == 65536
    assert report.tasks[0].counted_pages(report.page_bytes) == 908 + 180224 // 65536


def test_a_vendors_word_for_the_node() -> None:
    text = REPORTS["4.4"].replace(f"limit of {CONTAINER}", "limit of host")
    (report,) = parsed(text.replace("Memory cgroup o", "O"))
    assert (report.constraint, report.oom_memcg, report.task_memcg) == (Constraint.NONE, "", CONTAINER)


def test_no_task_table() -> None:
    lines = [line for line in REPORTS["5.4"].splitlines() if not line.startswith(("[", "Tasks"))]
    (report,) = read_log(lines).reports
    assert (report.tasks, report.incomplete) == ((), False)
    assert explain_choice(report) is Unranked.NO_TABLE


def test_the_allocating_process_was_killed() -> None:
    (report,) = parsed(REPORTS["4.19"].replace("Out of memory:", "Out of memory (oom_kill_allocating_task):"))
    assert explain_choice(report) is Unranked.ALLOCATING


def test_a_line_that_was_too_long_continues_on_the_next() -> None:
    for part in ("task_memcg=", "task="):
        assert parsed(REPORTS["5.4"].replace(f",{part}", f",\n{part}")) == parsed(REPORTS["5.4"])


def test_no_killable_process() -> None:
    head = REPORTS["5.4"].split("oom-kill:", maxsplit=1)[0]
    (report,) = parsed(head + "Out of memory and no killable processes...\n")
    assert (report.victims, report.incomplete) == ((), False)
    assert explain_choice(report) is Unranked.NO_VICTIM


# --- rate limits, other lines, two at once


def test_the_kernels_rate_limit_leaves_the_victims_alone() -> None:
    line = "Memory cgroup out of memory: Killed process {} (a) total-vm:1kB, anon-rss:{}kB, file-rss:0kB"
    group = "Tasks in /kubepods/pod1/c are going to be killed due to memory.oom.group set"
    text = [line.format(1, 10), line.format(2, 20), group, line.format(2, 20), line.format(3, 5), group]
    reports = read_log(text).reports
    freed = [(report.freed_kb, report.group_kill[-6:]) for report in reports]
    assert freed == [(10, ""), (20, "pod1/c"), (5, "pod1/c")]
    assert all(report.incomplete and report.constraint is Constraint.MEMCG for report in reports)


def test_a_victim_of_the_node_is_not_one_of_the_group_before() -> None:
    text = "\n".join(recorded_log("memcg-oomgroup")[:85])
    constraints = [report.constraint for report in parsed(f"{text}\n{KILLED}")]
    assert constraints == [Constraint.MEMCG, Constraint.NONE]


def test_summaries_alone() -> None:
    lines = [line for run in RUNS for line in recorded_log(run) if "oom-kill:" in line]
    reports = read_log(lines).reports
    assert len(reports) == len(lines)
    assert all(report.incomplete and report.task_memcg for report in reports)
    old = [line for line in REPORTS["3.10"].splitlines() if "Task in" in line]
    assert read_log([*old * 2, "eth0: link up"]).reports[1].oom_memcg == POD
    assert read_log(old).reports[0].oom_memcg == f"{POD}…", "the last line may be cut"


@given(st.sampled_from(RUNS), st.integers(0, 999))
@settings(max_examples=20, deadline=None)
def test_other_lines_between(run: str, seed: int) -> None:
    random = Random(seed)
    others = [
        "[ 1470.4] eth0: link up",
        "[ 1470.4] audit: type=1400",
        "",
        "[ 1470.4] [UFW BLOCK] IN=eth0",
        "Nov 20 21:22:40 node1 kubelet[77]: Killed process 1 (x) total-vm:1kB, anon-rss:1kB",
    ]
    mixed = []
    for line in recorded_log(run):
        while random.random() < 0.2 and not line.startswith(" "):
            mixed.append(random.choice(others))
        mixed.append(line)
    assert without_prefix(mixed) == list(map(bare, recorded_reports(run)))


def test_two_at_once_with_callers() -> None:
    one = [FORMS["a caller"](7.5, line) for line in REPORTS["5.4"].splitlines()]
    other = [
        line.replace("T1234", "T99") for line in rewritten(recorded_log("global-A")[:97], FORMS["a caller"])
    ]
    mixed = [line for pair in zip(one, other, strict=False) for line in pair] + other[len(one) :]
    reports = without_prefix(mixed)
    assert reports == [without_prefix(lines)[0] for lines in (one, other)]
    assert not any(report.incomplete for report in reports)


def test_of_two_at_once_without_callers_the_first_breaks_off() -> None:
    first = REPORTS["5.4"].split("oom-kill:", maxsplit=1)[0]
    broken, whole = parsed(first + REPORTS["6.8"])
    assert (broken.constraint, broken.oom_memcg, broken.victim) == (Constraint.MEMCG, CONTAINER, None)
    assert (whole,) == parsed(REPORTS["6.8"])
    log = read_log((first.split("memory:", maxsplit=1)[0] + REPORTS["6.8"]).splitlines())
    assert log.fragments == (1,), "it names neither a cause nor a victim"
    assert log.reports == (whole,)


@pytest.mark.parametrize(
    "line",
    [
        "<12>[ 7.5] {}",
        "12,7,75,-;{}",
        "user  :warn  : [ 7.5] {}",
        "user: warning: [2026-11-20T21:22:40Z]: {}",
        "Nov 20 21:22:40 node1 app[7]: {}",
        "2026-11-20T21:22:40+0000 node1 node-problem-detector[7]: {}",
        '{{"MESSAGE": "{}", "_TRANSPORT": "stdout", "SYSLOG_IDENTIFIER": "kernel"}}',
        '{{"msg": "{}", "facility": "user"}}',
        "[ 7.5] eth0: link up\nI saw: {}",
    ],
)
def test_what_other_programs_write_is_no_report(line: str) -> None:
    assert parsed(KILLED)
    assert not parsed(line.format(KILLED))


# --- every format


@pytest.mark.parametrize(("form", "run"), zip(FORMS, cycle(RUNS)))
def test_every_prefix_gives_the_same_reports(form: str, run: str) -> None:
    lines = first_reports(run)
    if "export" in form:  # It has its own form of messages of several lines, which no report needs.
        lines = tuple(line for line in lines if line.startswith("["))
    assert without_prefix(rewritten(lines, FORMS[form])) == without_prefix(lines)


@given(st.sampled_from(sorted(FORMS)), st.sampled_from(sorted(REPORTS)))
def test_every_prefix_with_every_kernel(form: str, kernel: str) -> None:
    lines = [f"[{7 + number / 100:12.6f}] {line}" for number, line in enumerate(REPORTS[kernel].splitlines())]
    expected = without_prefix(REPORTS[kernel].splitlines())
    assert without_prefix(rewritten(lines, FORMS[form])) == expected


@pytest.mark.parametrize("form", FORMS)
def test_times_and_machines(form: str) -> None:
    (report,) = read_log(rewritten([f"[ 1470.437366] {KILLED}"], FORMS[form]), NOW).reports
    has_uptime = any(
        word in form
        for word in ("-r", "caller", "kmsg", "monotonic", "delta", "rsyslog", "json", "colour", "--prefix")
    ) or form in {"dmesg", "dmesg -x", "syslog", "a name before it", "Windows"}
    if has_uptime and "json-" not in form:
        assert report.uptime == pytest.approx(1470.437366, abs=1e-3) or "iso" in form or "json" in form
    if report.time:
        assert report.time.startswith("2026-11-20T21:22:40")
        zoneless = "journalctl" in form and form.removeprefix("journalctl") in {"", " -o short-precise"}
        is_local = zoneless or "-T" in form or "-xT" in form or form.startswith("syslog")
        assert report.time.endswith("Z") != is_local
    else:
        assert form in {
            *("dmesg", "dmesg -r", "dmesg -x", "dmesg in colour", "a caller", "Windows", "a name before it"),
            *(
                "/dev/kmsg",
                "/dev/kmsg with a caller",
                "journalctl -o short-monotonic",
                "journalctl -o short-delta",
            ),
            *("journalctl -o cat", "kubectl logs --prefix"),
        }


@pytest.mark.parametrize(("kind", "run"), zip(LOGS, cycle(["global-A", "memcg-oomgroup"])))
def test_every_kind_of_log_gives_the_same_reports(tmp_path: Path, kind: str, run: str) -> None:
    (tmp_path / "log").write_bytes(LOGS[kind](list(first_reports(run, 3))))
    log = read_file(str(tmp_path / "log"))
    recorded = KernelLog(recorded_reports(run)[:3])
    assert list(map(bare, log.reports)) == list(map(bare, recorded.reports))
    times = {report.time[:13] for report in log.reports}
    assert times == {""} or times <= {"2026-11-20T21", "2026-11-20T22"} or "-H" in kind, times
    assert {report.node for report in log.reports} <= {"", "node1", "ip-10-0-1-7.host", "ip-10-0-1-7/dmesg"}
    for logs in ([log, recorded], [recorded, log], [log, log, log]):
        assert len(distinct_reports(logs)) == len(recorded.reports)
    begins = [report.line for report in log.reports]
    assert begins == sorted(begins, reverse=begins[0] > begins[-1])


def test_the_report_that_has_most_counts() -> None:
    whole = read_log(recorded_log("global-A"), NOW)
    kills = read_log([line for line in recorded_log("global-A") if "ill" in line and "invoked" not in line])
    assert all(report.incomplete for report in kills.reports)
    for logs in ([whole, kills], [kills, whole]):
        assert [report for report, _ in distinct_reports(logs)] == list(whole.reports)


def test_a_year_is_the_latest_that_is_not_in_the_future() -> None:
    now = datetime(2027, 1, 2, tzinfo=UTC)
    for text, year in (("Dec 31", 2026), ("Jan  1", 2027), ("Feb 29", 2024)):
        record = parse_line(f"{text} 10:00:00 node1 kernel: x", now)
        assert record is not None
        assert record.time.startswith(str(year))


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("[Do Okt  2 14:14:06 2026] x", "2026-10-02"),
        ("[Mo Mär 16 14:14:06 2026] x", "2026-03-16"),
        ("[dim. 19 avril 14:14:06 2026] x", "2026-04-19"),
        ("[jue sep  3 14:14:06 2026] x", "2026-09-03"),
        ("[Вт мая  5 14:14:06 2026] x", "2026-05-05"),
        ("[二 9月  3 14:14:06 2026] x", "2026-09-03"),
        ("[Pt lip  3 14:14:06 2026] x", ""),
        ("дек  3 14:14:06 node1 kernel: x", "2025-12-03"),
    ],
)
def test_months_of_other_languages(text: str, date: str) -> None:
    record = parse_line(text, NOW)
    assert record is not None
    assert record.time == (f"{date}T14:14:06" if date else "")


# --- cut, broken, endless


@given(st.sampled_from(RUNS), st.data())
def test_cut_anywhere(run: str, data: st.DataObject) -> None:
    lines = recorded_log(run)
    begin = data.draw(st.integers(0, len(lines)))
    end = data.draw(st.integers(begin, len(lines)))
    whole = {report.victims[0].pid: report for report in recorded_reports(run)}
    for report in read_log(lines[begin:end]).reports:
        full = next(
            (one for pid, one in whole.items() if pid in {report.chosen, *(v.pid for v in report.victims)}),
            None,
        )
        if full is None:
            assert report.incomplete or not report.victims
            continue
        assert report.incomplete or (report.victims and report.invoker == full.invoker)
        for name in ("oom_memcg", "task_memcg", "group_kill", "kernel"):
            assert getattr(report, name) in {"", getattr(full, name)}
        assert report.constraint in {None, full.constraint}
        assert set(report.tasks) <= set(full.tasks)
        assert {one.pid for one in report.victims} <= {one.pid for one in full.victims}
        if not report.incomplete:
            assert report.tasks == full.tasks


@given(st.sampled_from(RUNS), st.integers(0, 60_000))
def test_cut_within_a_line(run: str, size: int) -> None:
    text = "\n".join(recorded_log(run))[:size]
    for report in parsed(text):
        assert report.incomplete or report.freed_kb is not None


@given(st.binary(max_size=400) | st.text(max_size=400).map(lambda text: text.encode("utf-8", "replace")))
def test_any_bytes(content: bytes) -> None:
    with suppress(InputError, OSError, EOFError):
        read_log(read_lines(io.BufferedReader(io.BytesIO(content))), NOW)


WORDS = st.sampled_from(
    [line for text in REPORTS.values() for line in text.splitlines()]
    + [form(1e3, "x invoked oom-killer: gfp_mask=0xcc0, order=0, oom_score_adj=0") for form in FORMS.values()]
    + ["MESSAGE=x", "__CURSOR=a", "__REALTIME_TIMESTAMP=x", "", '{"MESSAGE": [75, 256]}', "[99999999999.5] "]
)


@given(st.lists(st.tuples(WORDS, st.integers(0, 300), st.text(max_size=4)), max_size=40))
@settings(deadline=None)
def test_any_pieces(pieces: list[tuple[str, int, str]]) -> None:
    lines = [line[:place] + put + line[place:] for line, place, put in pieces]
    for report in read_log(lines, NOW).reports:
        explain_choice(report, MACHINE)
        assert report.freed_kb is None or report.freed_kb >= 0


def test_a_line_without_an_end_is_cut() -> None:
    class Endless(io.RawIOBase):
        left = 64

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
            self.left -= 1
            if self.left < 0:
                return 0
            buffer[:] = b"x" * len(buffer)
            return len(buffer)

    lines = list(read_lines(io.BufferedReader(Endless(), LONGEST)))
    assert [len(line) for line in lines] == [LONGEST]


def noise(count: int) -> Iterator[str]:
    """A long log: reports, other lines, a header that never ends, lines that look like one."""
    block = [*recorded_log("kubepods-C"), *rewritten(recorded_log("global-A"), FORMS["journalctl -o json"])]
    block += ["[ 1.0] eth0: link is " + "up " * 30] * 2000
    block += ["[ 1.0] x invoked oom-killer: order=0", "[ 1.0] " + "[ " * 60, "a-" * 60 + "kubepods-pod"] * 20
    block += ["oom " * 40, "[ 1.0] Killed process 1 (" + ") total-vm:" * 30, "{" * 80] * 20
    block += ["oom-kill:" + "," * 200] * 20
    while count > 0:
        yield from islice(block, count)
        count -= len(block)


def seconds(read: Callable[[], object]) -> float:
    """The CPU time of the faster of two runs."""
    times = []
    for _ in range(2):
        begin = time.process_time()
        read()
        times.append(time.process_time() - begin)
    return min(times)


def calls_for(lines: Iterable[str]) -> int:
    """How many functions, also built-in ones, are called and left to read these lines."""
    events = itertools.count()
    sys.setprofile(lambda *_: next(events))
    try:
        read_log(lines)
    finally:
        sys.setprofile(None)
    return next(events)


def test_four_times_the_log_takes_four_times_as_much_work() -> None:
    small, large = (calls_for([*noise(count)]) for count in (2_200, 8_800))
    assert large < 5 * small


@pytest.mark.parametrize(
    "piece",
    [
        "[ ",
        "a-",
        "x ",
        "(",
        ") total-vm:",
        "{",
        ",task=",
        "1,",
        "Nov 20 ",
        "\x1b[",
        "[pid] uid tgid ",
        "kern : ",
        "Message: ",
        "OOMKilling ",
        "Got sys oom event event=Pid:1 ProcessName:a TimeOfDeath: ContainerName:/a ",
        'time="2026-11-20T12:00:00" sandbox=a vmconsole=',
    ],
)
def test_no_line_takes_more_than_its_length(piece: str) -> None:
    def read(size: int) -> None:
        line = piece * (size // len(piece))
        list(messages([line]))
        text = ["oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=" + line, "x invoked oom-killer: " + line]
        text += [line + " invoked oom-killer: ", "Killed process 1 (" + line]
        text += ["Task in " + line + " killed as a result of limit of", "Mem-Info:", line]
        for report in read_log(text).reports:
            pod_cgroup(report.task_memcg or report.oom_memcg)

    assert seconds(lambda: read(64_000)) < 10 * seconds(lambda: read(16_000)) + 0.01


def test_only_the_newest_reports_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_log, "MOST_REPORTS", 3)
    log = read_log(recorded_log("memcg-oomgroup"))
    assert (len(log.reports), log.left_out) == (3, 6)
    assert log.reports[-1] == read_log(recorded_log("memcg-oomgroup")).reports[-1]
    monkeypatch.setattr(kernel_log, "MOST_REPORTS", 100)
    monkeypatch.setattr(kernel_log, "MOST_TASKS", 60)
    log = read_log(recorded_log("global-A"))
    assert sum(len(report.tasks) for report in log.reports) <= 60
    assert log.left_out == 3


def test_the_span_of_a_log() -> None:
    lines = [*rewritten(recorded_log("global-A"), FORMS["journalctl -o short-iso"])]
    log = read_log(lines, NOW)
    assert (log.first, log.last, log.lines) == ("2026-11-20T21:22:40Z", "2026-11-20T21:23:14Z", 481)
    flushing = "2026-11-20T21:25:00+0000 node1 systemd-journald[270]: Under memory pressure, flushing caches."
    assert read_log([*lines, flushing], NOW).last == "2026-11-20T21:25:00Z"
    assert read_log(recorded_log("global-A")).first == ""
    assert read_log([]).lines == 0


# --- files


def test_files_gzipped_or_not(tmp_path: Path) -> None:
    content = "\n".join(recorded_log("global-A")).encode()
    (tmp_path / "plain").write_bytes(content)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(content))
    plain, packed = read_file(str(tmp_path / "plain"), "node7"), read_file(str(tmp_path / "packed.gz"))
    assert plain.reports == packed.reports == recorded_reports("global-A")
    assert (plain.node, plain.title) == ("node7", str(tmp_path / "plain"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "broken.gz").write_bytes(gzip.compress(b"x" * 9000)[:20])
    for name, words in (("none", "No such file"), (".", "directory"), ("broken.gz", "cannot be read")):
        with pytest.raises(InputError, match=words):
            read_file(str(tmp_path / name))
    with pytest.raises(InputError, match="cannot be opened"):
        read_kmsg(tmp_path / "none")


def test_a_kernels_buffer_gives_times_of_day(tmp_path: Path) -> None:
    lines = rewritten(recorded_log("memcg-oomgroup"), FORMS["/dev/kmsg"])
    (tmp_path / "kmsg").write_text("\n".join(f"{line}\n SUBSYSTEM=x" for line in lines))
    log = read_kmsg(tmp_path / "kmsg", "node7")
    assert list(map(bare, log.reports)) == without_prefix(recorded_log("memcg-oomgroup"))
    booted = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)
    first = log.reports[0]
    assert first.uptime is not None
    assert datetime.fromisoformat(first.time).timestamp() == pytest.approx(booted + first.uptime, abs=60)
    assert BOOTED.tzinfo is UTC


def test_a_buffer_that_overtakes_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[bytes | OSError] = [
        b"4,1,5000000,-;x invoked oom-killer: order=0, oom_score_adj=5\n",
        BrokenPipeError(),
        f"4,9,6000000,-;{KILLED}\n".encode(),
        BlockingIOError(),
    ]

    def read(handle: int, size: int) -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    (tmp_path / "kmsg").touch()
    monkeypatch.setattr(os, "read", read)
    (report,) = read_kmsg(tmp_path / "kmsg").reports
    assert (report.freed_kb, report.incomplete) == (1, True)

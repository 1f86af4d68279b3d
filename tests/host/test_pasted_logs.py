"""Logs as people paste them: what is said of a report that begins and ends anywhere, in any form."""

import json
import quopri
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.errors import InputError
from kubectl_qos.host.kernel_log import read_file, read_log
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.objects import ObjectMeta, Pod
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present.kills import detail_lines, largest_user
from kubectl_qos.qos.cgroup.names import pod_cgroup
from kubectl_qos.qos.killers import Mechanism
from kubectl_qos.qos.kills.analyze import Kill, find_kills
from kubectl_qos.qos.kills.choice import Unranked, VictimChoice, explain_choice, memory_users
from kubectl_qos.qos.kills.report import Killed, OomReport
from kubectl_qos.qos.oom_score import Kernel
from kubectl_qos.qos.reason import Confidence
from tests.host.broken_reports import MARKS, NOW

UID = "0a1b2c3d-1111-4222-8333-0123456789ab"
ID = "7f" * 32
SLICE = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice"
SCOPE = f"{SLICE}/cri-containerd-{ID}.scope"
HEADER = "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name"
SUMMARY = (
    f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,mems_allowed=0,oom_memcg={SLICE},"
    f"task_memcg={SCOPE},task=leaky,pid=4711,uid=0"
)
KILLED = (
    "Memory cgroup out of memory: Killed process 4711 (leaky) total-vm:200000kB, anon-rss:100000kB,"
    " file-rss:400kB, shmem-rss:0kB, UID:0 pgtables:260kB oom_score_adj:990"
)
OLD_KILLED = "Memory cgroup out of memory: Kill process 4711 (leaky) score 1894 or sacrifice child"
OUT = "Out of memory: Killed process 7 (a) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB"
NOBODY = "Out of memory and no killable processes..."
V1 = f"/kubepods/burstable/pod{UID}"
MESSAGES = [
    "leaky invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=990",
    "CPU: 1 PID: 4711 Comm: leaky Not tainted 5.15.0-1041-azure #48-Ubuntu",
    "Call Trace:",
    "memory: usage 131072kB, limit 131072kB, failcnt 9",
    "swap: usage 0kB, limit 0kB, failcnt 0",
    f"Memory cgroup stats for {SLICE}:",
    "anon 60000000",
    "file 70000000",
    "shmem 69000000",
    "Tasks state (memory values in pages):",
    HEADER,
    "[   4600] 65535  4600      243        1    28672        0          -998 pause",
    "[   4650]     0  4650     2847     1835    57344        0           990 main",
    "[   4711]     0  4711    50000    25100   266240        0           990 leaky",
    SUMMARY,
    KILLED,
]
LINES = [f"[{8523.3 + number / 1e4:12.6f}] {message}" for number, message in enumerate(MESSAGES)]
AFTER = "[ 8523.400000] other invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=990"


def test_a_slow_console_spreads_a_report_over_seconds() -> None:
    trace = [
        "Hardware name: Standard PC",
        " <TASK>",
        " dump_header+0x43/0x1aa",
        " ? kthread+0xcf/0x100",
        " </TASK>",
    ]
    messages = [*MESSAGES[:3], *trace, *MESSAGES[3:]]
    report = report_of([f"[{8523 + number * 0.8:12.6f}] {text}" for number, text in enumerate(messages)])
    assert (report.line, report.victims[0].pid, report.memory.limit_kb) == (1, 4711, 131072)
    assert report.uptime == 8523 + (len(messages) - 1) * 0.8, "of its last line, which kills"


@pytest.mark.parametrize("head", [MESSAGES[:3], []])
def test_a_report_that_ends_within_its_stack(head: list[str]) -> None:
    """mem_cgroup_out_of_memory may be inlined; a frame after `?` may be of an earlier call."""
    stack = [
        " oom_kill_process+0x10a/0x220",
        " ? try_charge_memcg+0x1/0xa90",
        " try_charge_memcg+0x827/0xa90",
    ]
    log = [f"[ 8523.300000] {line}" for line in (*head, *stack)]
    assert kill_of(log).diagnosis.mechanism is Mechanism.MEMORY_LIMIT
    assert not read_log(log[:-1], NOW).reports


@pytest.mark.parametrize(
    "frame",
    [
        " {}+0x9b/0xa0",
        " [<ffffffff8118b45a>] {}+0x9b/0xa0",
        " oom_kill_process from {}+0x9b/0xa0",
        "[<c01>] (show_stack) from [<c02>] ({}+0x9b/0xa0)",
    ],
)
def test_an_allocation_of_the_machine_is_no_charge_to_a_cgroup(frame: str) -> None:
    stack = [frame.format(name) for name in ("oom_kill_process", "out_of_memory", "__alloc_pages_slowpath")]
    log = [f"[ 8523.300000] {line}" for line in (*MESSAGES[:3], *stack)]
    assert kill_of(log).diagnosis.mechanism == "node"
    assert not read_log([*log[:-1], log[-1].replace("__alloc", "? __alloc")], NOW).reports
    assert kill_of([*log, *LINES[3:]]).diagnosis.mechanism == "pod limit", "a charge was left out"
    memory_nodes = LINES[-2].replace("_MEMCG", "_CPUSET").partition(",oom_memcg")[0]
    assert kill_of([*log, memory_nodes]).diagnosis.mechanism is Mechanism.MEMORY_NODES


def kills_of(lines: list[str], *pods: Pod) -> list[Kill]:
    return find_kills(Snapshot(pods=pods), EventList(), [read_log(lines, NOW)])


def kill_of(lines: list[str]) -> Kill:
    (kill,) = kills_of(lines)
    return kill


def report_of(lines: list[str]) -> OomReport:
    (report,) = read_log(lines, NOW).reports
    return report


def choice_of(report: OomReport) -> VictimChoice:
    choice = explain_choice(report)
    assert isinstance(choice, VictimChoice)
    return choice


def text_of(kill: Kill) -> str:
    return " ".join(" ".join(detail_lines(kill)).split())


# --- where it begins and ends


@pytest.mark.parametrize("begin", range(len(MESSAGES)))
def test_a_report_begins_anywhere(begin: int) -> None:
    kill = kill_of(LINES[begin:])
    assert kill.report is not None
    assert kill.report.victim is not None
    assert (kill.report.victim.pid, kill.report.victim.comm) == (4711, "leaky")
    if begin <= MESSAGES.index(SUMMARY):
        assert (kill.diagnosis.mechanism, kill.pod_uid, kill.container_id) == ("pod limit", UID, ID)
    else:
        assert kill.diagnosis.mechanism is Mechanism.MEMORY_LIMIT
        assert kill.diagnosis.confidence is Confidence.CERTAIN
        assert "at a memory limit; the log does not say which" in text_of(kill)
    if begin <= MESSAGES.index(HEADER):
        assert choice_of(kill.report).chosen.place == 1
        assert kill.report.is_table_whole == (begin < MESSAGES.index(HEADER)), "rows may be missing before it"
    is_limit_known = begin <= MESSAGES.index("memory: usage 131072kB, limit 131072kB, failcnt 9")
    assert kill.report.memory.limit_kb == (131072 if is_limit_known else None)


def test_a_charge_of_rhel_7_is_at_a_limit() -> None:
    frames = ["oom_kill_process+0x24e/0x3b0", "__mem_cgroup_try_charge+0xb61/0xc60"]
    log = [f"[ 8523.300000]  [<ffffffff811bd1ce>] {frame}" for frame in frames]
    assert kill_of([*LINES[:3], *log]).diagnosis.mechanism is Mechanism.MEMORY_LIMIT


def test_what_a_person_writes_before_the_words_of_the_kernel() -> None:
    lines = [
        f"[ 8523.301500] [ oom-killer ] {KILLED[:60]}",
        f"       {KILLED[60:]}",
        "scope: Failed with result 'oom-kill'",
    ]
    kill = kill_of(lines)
    assert kill.diagnosis.mechanism is Mechanism.MEMORY_LIMIT
    assert report_of(lines).victims == report_of([KILLED]).victims
    assert kill.cgroup == "", "no unit is called scope"


def test_a_person_leaves_the_clock_of_lines() -> None:
    words = (*SUMMARY.split(",task_memcg"), KILLED)
    lines = (MESSAGES[0], words[0] + ",", KILLED.partition(" total")[0])
    rests = ("", "task_memcg" + words[1], KILLED.partition("(leaky) ")[2])
    texts = [
        f"12:00:07 kernel: {line}\n                 {rest}" for line, rest in zip(lines, rests, strict=True)
    ]
    kill = kill_of("\n".join(texts).split("\n"))
    assert (kill.diagnosis.mechanism, kill.container_id) == ("pod limit", ID)
    assert kill.report is not None
    assert kill.report.victims[0].anon_rss_kb == 100000


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("In messages I found `{}`, but the pod was not restarted.", ""),
        (
            "| when | where | what |\n|---|---|---|\n| 2026-11-20T12:00:07Z | n1 | {} |",
            "2026-11-20T12:00:07Z",
        ),
        ('echo "it says: {}" >> notes\nexit 1', ""),
    ],
    ids=["a sentence", "a cell of a table", "a script"],
)
def test_words_of_the_kernel_within_prose(text: str, time: str) -> None:
    kill = kill_of(text.format(KILLED).split("\n"))
    assert (kill.diagnosis.mechanism, kill.time) == (Mechanism.MEMORY_LIMIT, time)
    assert kill.report is not None
    assert kill.report.victims == report_of([KILLED]).victims
    (full,) = read_log([f"he wrote: {SUMMARY}", f"he wrote: {KILLED}"], NOW).reports
    assert (full.task_memcg, full.oom_memcg, full.victims) == (SCOPE, SLICE, kill.report.victims)


@pytest.mark.parametrize(
    ("said", "confidence"),
    [
        ("Failed with result 'oom-kill'.", Confidence.LIKELY),
        ("A process of this unit has been killed by the OOM killer.", Confidence.CERTAIN),
    ],
)
def test_a_result_of_a_unit_may_be_that_of_systemd_oomd(said: str, confidence: Confidence) -> None:
    line = f"Nov 27 10:01:02 n1 systemd[1]: kubelet.service: {said}"
    assert kill_of([line]).diagnosis.confidence is confidence
    failed = "Nov 27 10:01:02 n1 systemd[1]: kubelet.service: Failed with result 'oom-kill'."
    assert kill_of([line, failed] if line != failed else [line]).diagnosis.confidence is confidence
    begins = f"Nov 27 10:01:02 n1 kernel: {MESSAGES[0]}"
    assert kill_of([begins, line]).diagnosis.confidence is Confidence.CERTAIN, "the kernel says so itself"


def test_a_table_without_its_beginning_is_a_part() -> None:
    kill = kill_of(LINES[MESSAGES.index(HEADER) + 2 :])
    assert kill.report is not None
    assert [task.name for task in kill.report.tasks] == ["main", "leaky"]
    text = text_of(kill)
    assert "none of the 2 processes that the log shows has more points, whatever the limit was" in text


@pytest.mark.parametrize(
    ("columns", "numbers", "tables"),
    [
        ("nr_ptes", "1000 300 40 7", 40),
        ("nr_ptes nr_pmds", "1000 300 40 3 7", 43),
        ("nr_ptes nr_pmds nr_puds", "1000 300 40 3 1 7", 44),
        ("pgtables_bytes", "1000 300 163840 7", 40),
        ("rss_anon rss_file rss_shmem pgtables_bytes", "1000 300 200 60 40 163840 7", 40),
    ],
)
def test_columns_with_and_without_their_header(columns: str, numbers: str, tables: int) -> None:
    header = f"[ pid ]   uid  tgid total_vm      rss {columns} swapents oom_score_adj name"
    row = f"[ 4711]     0  4711 {numbers} 990 leaky one"
    for lines in ([header, row, KILLED], [row, KILLED]):
        (task,) = report_of(lines).tasks
        assert (task.total_vm, task.rss, task.swapents, task.adj, task.name) == (
            1000,
            300,
            7,
            990,
            "leaky one",
        )
        assert task.counted_pages(4096) == 300 + 7 + tables


def test_the_victim_without_the_line_that_kills_it() -> None:
    assert [kill_of(lines).report.victim.pid for lines in (LINES[:-1], [LINES[-2]])] == [4711, 4711]  # type: ignore[union-attr]
    reaper = (
        "[ 8523.9] oom_reaper: reaped process 4711 (leaky), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB"
    )
    kill = kill_of([reaper])
    assert kill.diagnosis.mechanism is Mechanism.KERNEL
    assert "killed by the kernel at a limit or on a full node" in text_of(kill)
    assert len(kills_of([*LINES, reaper])) == 1
    broken = kill_of(LINES[:6])
    assert "killed a process that the log does not name" in text_of(broken)


@pytest.mark.parametrize("middle", [LINES[3:4], LINES[3:9], [*LINES[5:7], "...", *LINES[10:14]], LINES[9:14]])
def test_the_middle_of_a_report_is_no_certain_kill(middle: list[str]) -> None:
    kill = kill_of(middle)
    assert kill.diagnosis.confidence is Confidence.LIKELY
    assert "an OOM report without its outcome (killed or not is not in the log)" in text_of(kill)
    assert "the kernel killed" not in text_of(kill)


@pytest.mark.parametrize("seconds", [0.04, 7])
def test_a_counter_some_seconds_before_a_report_without_a_victim(seconds: float) -> None:
    end = [*LINES[9:14], f"[{8523.35:12.6f}] {NOBODY}"]
    begin = f"[{8523.3009 - seconds:12.6f}] {MESSAGES[3]}"
    kill = kill_of([begin, ":", "[...]", *end])
    assert (kill.diagnosis.confidence, kill.report and kill.report.victim) == (Confidence.CERTAIN, None)
    assert "the kernel found no process that it may kill" in text_of(kill)


def test_a_limit_of_a_cgroup_around_all_pods() -> None:
    """As on Talos. A line before an elision is whole, the last of a log may not be."""
    line = f"[ 8523.3] Task in /sys/run{V1}/{ID} killed as a result of limit of /sys/run"
    assert kill_of([line]).diagnosis.mechanism is Mechanism.MEMORY_LIMIT
    assert kill_of(["```", line, "```"]).diagnosis.mechanism is Mechanism.MEMORY_LIMIT
    kill = kill_of([line, "..."])
    assert (kill.pod_uid, kill.diagnosis.mechanism) == (UID, "node")
    assert "because the cgroup around all pods ran out of memory" in text_of(kill)
    assert "the limit of /sys/run (line 1)" in text_of(kill)


def test_a_limit_that_a_kernel_of_2019_calls_none() -> None:
    lines = [line.replace("CONSTRAINT_MEMCG", "CONSTRAINT_NONE") for line in LINES]
    assert report_of(lines) == report_of(LINES)
    assert kill_of(lines[-2:]).diagnosis.mechanism == "pod limit"


def test_the_reaper_names_the_victim_of_a_report_whose_own_line_was_suppressed() -> None:
    """The kernel limits the lines of a kill, not those of the reaper."""
    reaper = "oom_reaper: reaped process {}, now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB"
    lines = [*LINES[:-2], f"[ 8526.100000] {reaper.format('4711 (leaky)')}"]
    kill = kill_of(lines)
    assert (kill.diagnosis.mechanism, kill.container_id) == ("pod limit", "")
    assert kill.report is not None
    assert (kill.report.victims, choice_of(kill.report).chosen.place) == ((Killed(4711, "leaky"),), 1)
    others = "4711 (other)", "51 (leaky)"
    assert [len(kills_of([*lines[:-1], f"[ 8526.1] {reaper.format(other)}"])) for other in others] == [2, 2]
    assert len(kills_of([*LINES, f"[ 8526.1] {reaper.format('4650 (main)')}"])) == 2, "it has its victim"
    nobody = "[ 8523.302000] Out of memory and no killable processes..."
    assert len(kills_of([*lines[:-1], nobody, lines[-1]])) == 2


def test_other_processes_that_the_reaper_names_are_other_victims() -> None:
    reaped = "oom_reaper: reaped process {} (other), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB"
    kills = kills_of([*MESSAGES[-2:], reaped.format(4711), reaped.format(51), reaped.format(52)])
    assert [len(kill.report.processes) for kill in kills if kill.report is not None] == [1, 1, 1]


def test_the_end_of_a_number_may_be_cut() -> None:
    assert not kills_of(["Memory cgroup out of memory: Killed process 47"])
    cut = report_of([SUMMARY[: SUMMARY.index("11,uid")]])
    assert (cut.victim, cut.task_memcg) == (None, SCOPE)


def test_a_reaper_names_the_process_that_systemd_says_of_a_unit() -> None:
    said = "A process of this unit has been killed by the OOM killer."
    unit = f"Nov 27 10:01:02 n1 systemd[1]: leak.service: {said}"
    reaper = "Nov 27 10:01:0{} n1 kernel: oom_reaper: reaped process {} (leaky), now anon-rss:0kB"
    kill = kill_of([unit, reaper.format(2, 4711)])
    assert kill.report is not None
    assert (kill.report.victims, kill.cgroup) == ((Killed(4711, "leaky"),), "leak.service")
    assert len(kills_of([unit, reaper.format(8, 4711)])) == 2, "later"
    others = kills_of([unit, unit.replace("leak.", "other."), reaper.format(2, 4711)])
    assert sorted(kill.cgroup for kill in others) == ["", "leak.service", "other.service"], "of either unit"


def test_lines_that_a_backslash_continues() -> None:
    broken = LINES[-2].replace(",", ",\\\n    ").split("\n")
    assert report_of([*LINES[:-2], *broken, LINES[-1]]) == report_of(LINES)
    assert report_of([*LINES[:-1], f"{LINES[-1]}\\"]).victims == report_of(LINES).victims


@pytest.mark.parametrize("last", [NOBODY, "Kernel panic - not syncing: System is deadlocked on memory"])
def test_a_kernel_that_finds_nobody_has_killed_before(last: str) -> None:
    kills = kills_of([*LINES, f"[ 8523.400000] {last}"])
    assert [kill.container_id for kill in kills] == ["", ID]
    assert kills[1].report is not None
    assert kills[1].report.victims == report_of(LINES).victims


def test_a_message_that_lost_its_end_of_line() -> None:
    lines = [*LINES[:-2], LINES[-2] + LINES[-1]]
    assert report_of(lines) == report_of(LINES)
    path = f"[ 8523.3] {SUMMARY.replace('leaky', 'a[1.123456] b')}"
    assert len(report_of([path, LINES[-1]]).victims) == 1


def test_the_oldest_table_has_no_page_tables() -> None:
    """Up to 3.6 and on RHEL 6 it has the processor instead."""
    header = "[ pid ]   uid  tgid total_vm      rss cpu oom_adj oom_score_adj name"
    (task,) = report_of([header, "[ 4711]     0  4711 1000 300 9 -3 990 leaky", KILLED]).tasks
    assert (task.rss, task.adj, task.name, task.counted_pages(4096)) == (300, 990, "leaky", 300)


# --- two reports


def test_times_and_marks_separate_reports() -> None:
    """One that goes back, one much later, and one behind a mark are others."""
    tail = "Memory cgroup out of memory: Kill process 16 (web) score 1286 or sacrifice child"
    for lines in (
        [*LINES[:6], f"[ 7000.000000] {tail}"],
        [*LINES[:6], f"[ 8600.000000] {tail}"],
        *([*MESSAGES[:6], mark, tail] for mark in MARKS),
    ):
        named, other = read_log(lines, NOW).reports
        assert (named.victim, named.memory.limit_kb) == (None, 131072)
        assert other.victim is not None
        assert (other.victim.comm, other.oom_memcg, other.memory.limit_kb) == ("web", "", None)
    for mark in MARKS:
        assert report_of([*LINES[:9], mark, *LINES[9:]]) == report_of(LINES), "the same moment"


@pytest.mark.parametrize("time", [7.0, 7.05])
def test_the_heads_of_several_files_are_of_several_nodes(time: float) -> None:
    """As tail and head print them, whose times may be the same by chance."""
    heads = [f"[{7 + number / 1e4:12.6f}] {text}" for number, text in enumerate(MESSAGES[:4])]
    lines = ["==> node-a.log <==", *heads, "", "==> node-b.log <==", f"[{time:12.6f}] {OLD_KILLED}"]
    first, second = read_log(lines, NOW).reports
    assert (first.victim, first.memory.limit_kb) == (None, 131072)
    assert (second.invoker, second.memory.limit_kb) == (None, None)
    broken = ["==> node-a.log <==", *(line[at : at + 80] for line in LINES for at in range(0, len(line), 80))]
    assert report_of(broken) == report_of(LINES)


def test_another_word_for_the_same_victim_is_no_group() -> None:
    """As people make them up: a group is killed at one limit."""
    kill = kill_of(["[ 7.890] " + KILLED, "[ 7.891] " + KILLED.replace("Memory cgroup out", "Out")])
    assert "memory.oom.group is set" not in text_of(kill)


def test_a_victim_that_fits_no_table_is_of_another_report() -> None:
    other = KILLED.replace("4711 (leaky)", "99 (web)")
    first, second = read_log([*MESSAGES[:-2], other], NOW).reports
    assert (first.victim, first.oom_memcg) == (None, SLICE)
    assert second.oom_memcg == ""


# --- as it is pasted


def test_a_sample_with_a_short_id_is_of_a_container() -> None:
    path = "/kubepods/burstable/pod9d1e/4be7a1c2"
    summary = SUMMARY.replace(SLICE + ",", path + ",").replace(SCOPE, path)
    kill = kill_of([summary, KILLED])
    assert (kill.diagnosis.mechanism, kill.container_id, kill.pod_uid) == ("container limit", "4be7a1c2", "")


def test_a_translator_has_put_spaces_around_the_process_id() -> None:
    kill = kill_of(["[ 8523.3] " + SUMMARY.replace("pid=4711,", "pid= 4711 , ")])
    assert kill.report is not None
    assert [(killed.comm, killed.pid) for killed in kill.report.victims] == [("leaky", 4711)]


def quoted(lines: list[str]) -> list[str]:
    return ["As I wrote:", "```", *(f"> {line}" for line in lines), "```"]


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, 90, break_long_words=False, break_on_hyphens=False)


FORMS: dict[str, Callable[[list[str]], list[str]]] = {
    "indented": lambda lines: [f"    {line}" for line in lines],
    "quoted": quoted,
    "numbered": lambda lines: [f"{number}: {line}" for number, line in enumerate(lines, 7)],
    "a quoted quotation": lambda lines: [f">  > {line}" for line in lines],
    "quoted by a bar": lambda lines: [f" | {line}" for line in lines],
    "a list": lambda lines: [f"- {line}" for line in lines],
    "a list of code": lambda lines: [part for line in lines for part in (f"`- {line}`", "")],
    "a comment of C": lambda lines: [f" * \t{line}" for line in lines],
    "HTML": lambda lines: [line.replace("<", "&lt;").replace("(", "(") for line in lines],
    "grep -n": lambda lines: [f"{number}:{line}" for number, line in enumerate(lines, 7)],
    "grep -Hn": lambda lines: [f"/var/log/kern.log:{number}:{line}" for number, line in enumerate(lines, 7)],
    "HTML tags": lambda lines: ["<pre><code>" + lines[0], *lines[1:-1], lines[-1] + "</code></pre>"],
    "Grafana": lambda lines: [
        'Common labels: {"job":"kern"}',
        "",
        *(f"1795176007400\t2026-11-20T12:00:07.400Z\t{line}" for line in reversed(lines)),
    ],
    "aws logs tail": lambda lines: [
        re.sub(
            r"^\[.{12}\]", "2026-11-20T12:00:07.4+00:00 ip-10-0-1-7.internal Nov 20 12:00:07 n1 kernel:", line
        )
        for line in lines
    ],
    "a printable mail": lambda lines: (
        quopri.encodestring("\n".join(f"> > {line}" for line in lines).encode()).decode().split("\n")
    ),
    "a printable mail with ends of lines": lambda lines: (
        quopri.encodestring("\n".join(lines).encode()).decode().replace("\n", "=0A=\n").replace("==0A=", "=")
    ).split("\n"),
    "a blank line between": lambda lines: [part for line in lines for part in (line, "")],
    "80 columns": lambda lines: [line[at : at + 80] for line in lines for at in range(0, len(line), 80)],
    "80 columns, indented": lambda lines: [f"  {part}" for part in FORMS["80 columns"](lines)],
    "words": lambda lines: [part for line in lines for part in _wrapped(line)],
    "mixed with containerd and k3s": lambda lines: [
        part
        for line in lines
        for part in (line, 'Oct 02 14:14:06 n1 containerd[27]: time="x" level=info msg="TaskOOM event"')
    ],
    "journald": lambda lines: [re.sub(r"^\[.{12}\]", "Oct 02 14:14:06 n1 kernel:", line) for line in lines],
    "dmesg -T without its year": lambda lines: [
        re.sub(r"^\[.{12}\]", "[Fri Oct  2 14:14:06]", line) for line in lines
    ],
    "the clock alone": lambda lines: [re.sub(r"^\[.{12}\]", "[14:14:06]", line) for line in lines],
    "left-out times": lambda lines: [re.sub(r"^\[.{12}\]", "[...]", line) for line in lines],
    "remarks between, without times": lambda lines: [
        part for line in lines for part in (f"{line[15:]}", "// the next one:")
    ],
    "copied from two screens that overlap": lambda lines: [*lines[:4], *lines[1:]],
    "comments": lambda lines: [f"# {line}" for line in lines],
    "remarks behind": lambda lines: [f"{line}  # {number}: see" for number, line in enumerate(lines)],
    "a broken number": lambda lines: [
        piece for line in lines for piece in ([line[:-5], f"  {line[-5:]}"] if "anon 600" in line else [line])
    ],
    "a log store": lambda lines: [f"1790950446 n1 {line}" for line in lines],
    "dmesg -T in German": lambda lines: [
        re.sub(r"^\[.{12}\]", "[Do Okt  2 14:14:06 2026]", line) for line in lines
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_paste_says_the_same(form: str) -> None:
    report, whole = report_of(FORMS[form](LINES)), report_of(LINES)
    assert report.victims == whole.victims
    assert (report.oom_memcg, report.task_memcg, report.kernel) == (SLICE, SCOPE, whole.kernel)
    assert report.memory == whole.memory
    if form != "words":
        assert report.tasks == whole.tasks
    assert choice_of(report).chosen.task.pid == 4711


def test_comments_of_another_host_are_no_part_of_a_report() -> None:
    commented = f"# Oct  1 01:02:03 n9 kernel: {OLD_KILLED}  # of yesterday"
    killed = "Oct  2 14:14:06 n1 kernel: Killed process 7 (a) total-vm:9kB, anon-rss:8kB, file-rss:0kB"
    reports = read_log([commented, killed, "what follows is prose"], NOW).reports
    assert [(report.node, report.victim and report.victim.pid) for report in reports] == [
        ("n9", 4711),
        ("n1", 7),
    ]


def test_a_log_without_prefixes_whose_lines_are_broken() -> None:
    lines = [
        "Memory cgroup out of memory:",
        "Killed process 12 (pay),",
        "anon-rss:280kB,",
        "oom_score_adj:1000",
    ]
    victim = report_of(lines).victim
    assert victim is not None
    assert (victim.pid, victim.comm, victim.anon_rss_kb, victim.adj) == (12, "pay", 280, 1000)
    assert "oom_score_adj 1000 means a BestEffort pod" in text_of(kill_of(lines))


def test_a_victim_whose_number_a_person_has_left_out() -> None:
    line = "Memory cgroup out of memory: Killed process (leaky) total-vm:22GB"
    kill = kill_of([line])
    text = text_of(kill)
    assert kill.diagnosis.mechanism is Mechanism.MEMORY_LIMIT
    assert "the kernel killed leaky: CONSTRAINT_MEMCG (line 1)" in text
    assert "the task table is not in the log" in text
    assert report_of([SUMMARY, line]) == report_of([SUMMARY]), "it has the number"
    for mask in ("...", "<pid>", "XXXX", "…"):
        masked = [OLD_KILLED.replace("4711", mask), f"Killed process {mask} (leaky) total-vm:9kB"]
        assert "the kernel killed leaky: CONSTRAINT_MEMCG (line 1)" in text_of(kill_of(masked))
        assert text_of(kill_of([masked[0], f"Killed process {mask} total-vm:9kB"])) == text_of(
            kill_of(masked)
        )
        assert [
            kill.report.names
            for kill in kills_of([masked[0], masked[1].replace("leaky", "web")])
            if kill.report is not None
        ] == [("leaky",)]
    other = kills_of([SUMMARY, line.replace("leaky", "web")])
    assert [kill.report.names for kill in other if kill.report is not None] == [(), ("web",)]


def test_a_pager_cuts_lines() -> None:
    kill = kill_of([line if len(line) < 170 else f"{line[:169]}>" for line in LINES])
    assert (kill.pod_uid, kill.container_id) == (UID, ""), "the statistics line has the pod"
    assert kill.report is not None
    assert kill.report.victim is not None
    assert (kill.report.victim.pid, kill.report.victim.adj) == (4711, None)


def test_lines_that_a_person_has_put_in_another_order_and_shortened() -> None:
    kill = kill_of(
        [
            "Out of memory: Killed process 17 (ndm) total-vm:5443852kB, anon-rss:4024844kB, ... UID:0",
            "oom-kill: constraint=CONSTRAINT_NONE, ... task_memcg=/kubepods/besteffort/pod…, task=ndm",
            "Tasks in /kubepods/besteffort/pod… are going to be killed due to memory.oom.group",
        ]
    )
    assert (kill.diagnosis.mechanism, kill.pod_uid) == ("node", "")
    text = text_of(kill)
    assert "a BestEffort pod (the log has only part of its uid)" in text
    assert "all processes of its container were killed with it" in text


def test_a_victim_whose_name_a_person_has_left_out() -> None:
    lines = [
        "oom-kill: constraint=CONSTRAINT_MEMORY_POLICY, nodemask=0-1, task=engine",
        "Out of memory: Killed process 77 total-vm:900kB anon-rss:2048kB",
    ]
    kill = kill_of(lines)
    assert kill.diagnosis.mechanism is Mechanism.MEMORY_NODES
    assert "killed engine (77): CONSTRAINT_MEMORY_POLICY, NUMA nodes 0-1 (line 1)" in text_of(kill)
    assert "their memory on all nodes counts" in text_of(kill)
    assert "killed … (77)" in text_of(kill_of(lines[1:]))


def test_one_report_that_a_person_has_wrapped_and_masked() -> None:
    lines = [
        "$ dmesg -T | grep -i kill",
        "[Fri Oct  2 14:14:06 2026] oom-kill:constraint=CONSTRAINT_MEMCG, ...,",
        "  oom_memcg=/kubepods.slice/.../cri-containerd-abc.scope,",
        "  task=prometheus, pid=306",
        "  Memory cgroup out of memory: Killed process 306 (prometheus)",
        "  total-vm:1729372kB, anon-rss:2048kB, file-rss:0kB",
        "  oom_score_adj:968",
    ]
    for prefix in ("", "# "):
        kill = kill_of([prefix + line for line in lines])
        assert kill.report is not None
        assert kill.report.victim is not None
        assert (kill.report.victim.pid, kill.report.victim.adj, kill.freed_bytes) == (306, 968, 2 << 20)
        assert (kill.diagnosis.mechanism, kill.time) == (Mechanism.MEMORY_LIMIT, "2026-10-02T14:14:06")
        assert "a process in an unknown cgroup" in text_of(kill), "the path is not whole"


def test_words_of_kernels_before_2_6_36() -> None:
    kill = kill_of(["Nov  9 10:00:01 db kernel: Out of Memory: Killed process 3456 (oracle)."])
    assert kill.report is not None
    assert kill.report.victim is not None
    assert (kill.report.victim.comm, kill.diagnosis.mechanism) == ("oracle", "node")
    kill = kill_of(["[  12.1] Out of memory: kill process 77 (web.py) score 40821 or a child"])
    assert kill.report is not None
    assert (kill.report.chosen, kill.diagnosis.mechanism) == (77, "node")


def test_the_last_line_of_a_log_is_whole_where_its_path_ends_as_one_of_a_container() -> None:
    line = f"Task in {V1}/{ID} killed as a result of limit of {V1}/{ID}"
    assert kill_of([line]).diagnosis.mechanism == "container limit"
    assert kill_of([line[:-9]]).diagnosis.mechanism is Mechanism.MEMORY_LIMIT
    assert kill_of([line.partition(" of /")[0] + " of"]).diagnosis.mechanism is Mechanism.MEMORY_LIMIT


# --- pods and containers


def test_the_line_about_the_group_has_the_path_that_another_is_cut_in() -> None:
    cut = SUMMARY[: SUMMARY.rindex("_8333")]
    group = f"Tasks in {SCOPE} are going to be killed due to memory.oom.group set"
    kill = kill_of([cut, KILLED, group])
    assert (kill.pod_uid, kill.container_id) == (UID, ID)
    unknown = kill_of([cut.replace(f"oom_memcg={SLICE},", ""), KILLED])
    assert (unknown.pod_uid, unknown.diagnosis.mechanism) == ("", Mechanism.MEMORY_LIMIT)


GROUP = [KILLED, KILLED.replace("4711 (leaky)", "4650 (main)"), KILLED]
DETECTOR = (
    "I1120 12:00:07.400401       1 log_monitor.go:160] New status generated: &{{Source:kernel-monitor Events:"
    "[{{Severity:warn Timestamp:2026-11-20 12:00:07.39 +0000 UTC m=+12.2 Reason:OOMKilling Message:{}}}]"
    " Conditions:[]}}"
)


@pytest.mark.parametrize("form", [DETECTOR, "Nov 20 12:00:07 node-a kernel: {}"])
def test_a_group_of_which_only_the_kills_are_in_the_log(form: str) -> None:
    kill = kill_of([form.format(line) for line in GROUP])
    assert kill.report is not None
    assert [killed.pid for killed in kill.report.processes] == [4711, 4650]
    assert kill.diagnosis.mechanism is Mechanism.MEMORY_LIMIT
    assert "a process in an unknown cgroup" in text_of(kill)


def test_kills_at_once_without_a_report_between_may_be_of_one_group() -> None:
    """Above its rate limit, the kernel prints only victims: then they are kills of their own."""
    line = KILLED.replace("4711 (leaky)", "{} (worker)")
    bare = [f"[{8523.4 + place * 0.3:12.6f}] {line.format(500 + place)}" for place in range(3)]
    may_be = "all may be one kill of a container's processes"
    for log in (bare, [LINES[-1], *bare]):
        texts = list(map(text_of, kills_of(log)))
        assert [
            f"the log has {len(log) - 1} more kills, with no report between: {may_be}" in text
            for text in texts
        ]
        assert len(texts) == len(log)
    later = f"[ 8524.900000] {line.format(600)}"
    other = f"[ 8523.500000] {OUT}"
    assert not any(may_be in text_of(kill) for kill in kills_of([bare[0], other, later]))


def test_a_group_outside_pods_is_no_container() -> None:
    group = "Tasks in /tests/a are going to be killed due to memory.oom.group set"
    text = text_of(kill_of([KILLED, group]))
    assert "all processes of /tests/a were killed with it" in text
    assert "kubelet" not in text


@pytest.mark.parametrize(
    "form",
    [
        "1 OOMKilling: {}",
        "default   54m    Warning   OOMKilling  node/ncn-w003  {}",
        "Message:(combined from similar events): {}",
        "kernel-monitor, node-a\t\tWarning\t\tOOMKilling\t{}",
        "I0225 17:35:11.1613 20814 ooms.go:284] OOM: &Event{{Name:n,Reason:OOMKilling,Message:{},Source:x}}",
    ],
)
def test_the_message_of_an_event(form: str) -> None:
    assert kill_of([form.format(KILLED)]).diagnosis.mechanism is Mechanism.MEMORY_LIMIT


@pytest.mark.parametrize(
    "prefix",
    [
        "worker-a.example Nov 20 12:00:07.000400 worker-a kernel: ",
        "   17\t[ 8523.300000] ",
        "   17 [ 8523.300000] ",
        "+[ 8523.300000] ",
        "dmesg-x9k dmesg [ 8523.300000] ",
        "Nov 20, 2026 @ 12:00:07.400\t",
        "Nov 20, 2026 @ 12:00:07.400\tworker-a\t",
        "2026-11-20T12:00:07.400Z\tworker-a\t",
        "[\u00a08523.300000]\u00a0",
        "[Kernel dmesg] [ 8523.300000] ",
        "[2026-11-20 12:00:07 UTC] kernel: ",
        "[2026-11-20T12:00:07Z] worker-a kernel: ",
        "апр 18 12:00:07 worker-a kernel: ",
        "févr.  7 12:00:07 worker-a kernel: ",
        "Fri Nov 20 12:00:07 2026 kern.warn kernel: [ 8523.300000] ",
        '<4>1 2026-11-20T12:00:07.4Z worker-a kernel 0 OOM [meta sequenceId="7"][a b="\\]c"] [ 8523.300000] ',
        "kernel: ",
        "kernel:",
        "8月 20 12:00:07 worker-a kernel: ",
        "Nov 20 12:00:07 ... kernel: ",
        "Nov 20 12:00:07 n4.*** kernel: ",
        "Nov 20 12:00:07 worker-a kernel:  [ 8523.300000] ",
        "[Fri 12:00:07] kernel: ",
        "I1120 12:00:07.446437   13604 utils.go:240] > [  +0.000036] ",
        "2026-11-20T12:00:07.400Z In(05) vcpu-5 - Guest: <6>[ 8523.300000] ",
    ],
)
def test_what_programs_put_before_a_line(prefix: str) -> None:
    report = report_of([f"{prefix}{message}" for message in MESSAGES])
    assert (report.is_table_whole, len(report.tasks), report.incomplete) == (True, 3, False)
    assert bool(report.time) == ("12:00:07" in prefix and prefix[:5] not in {"I1120", "[Fri "})
    assert report.node in {"worker-a", "worker-a.example", "dmesg-x9k", "n4.***", ""}


def test_only_the_first_line_of_what_a_person_has_typed_has_a_prefix() -> None:
    report = report_of(
        [f"Nov 20 12:00:07 kernel: {SUMMARY[: SUMMARY.index(',uid')]}", KILLED, "I raised it."]
    )
    assert (report.victims, report.task_memcg, report.time[5:]) == (
        report_of(MESSAGES).victims,
        SCOPE,
        "11-20T12:00:07",
    )


def test_a_short_list_within_a_fence() -> None:
    lines = [f"2026-11-20T12:00:07+00:00 n1 kernel: {KILLED.replace('4711', pid)}" for pid in ("47", "480")]
    fenced = ["```", *(f">   {place}) `{line}`" for place, line in enumerate(lines, 1)), "```"]
    assert [report.victims for report in read_log(fenced, NOW).reports] == [
        report.victims for report in read_log(lines, NOW).reports
    ]


@pytest.mark.parametrize("quotation", ["", '"'])
def test_lines_whose_ends_are_escaped(quotation: str) -> None:
    for lines in (LINES, [f"{line[:99]}>" for line in LINES]):
        assert report_of([quotation + r"\n".join(lines) + quotation]) == report_of(lines)


@pytest.mark.parametrize("width", [at for at in range(45, len(LINES[-1])) if at not in range(66, 70)])
def test_a_victim_whose_line_breaks_anywhere_but_in_its_name(width: int) -> None:
    lines = [LINES[-2], LINES[-1][:width], LINES[-1][width:]]
    assert report_of(lines).victims == report_of(LINES[-2:]).victims


@pytest.mark.parametrize("lost", [0, 3, 16, 19, 25, 37, 41, 44])
def test_the_first_line_lost_a_part_of_its_prefix(lost: int) -> None:
    lines = [f"Nov 20 12:00:07 worker-a kernel: [ 8523.300000] {message}" for message in MESSAGES]
    report = report_of([lines[0][lost:], *lines[1:]])
    assert (report.node, report.time[5:], report.incomplete) == ("worker-a", "11-20T12:00:07", False)
    assert report.invoker is not None


def test_a_first_line_that_lost_its_beginning_and_is_broken() -> None:
    lines = [f"93605.506728] Task in {V1}/{ID} killed as a result of limit of {V1}/{ID}", OLD_KILLED]
    cgroup = pod_cgroup(report_of([lines[0][:130], lines[0][130:], lines[1]]).task_memcg)
    assert cgroup is not None
    assert cgroup.container_id == ID


def test_a_cut_first_line_alone_does_not_say_whether_it_was_by_hand() -> None:
    """What is left of a searched log may be of two kills."""
    summary = SUMMARY.replace("MEMCG", "NONE").replace(f"oom_memcg={SLICE},", "global_oom,")
    lines = [
        LINES[0],
        f"[ 8523.301400] {summary}",
        f"[ 8523.301500] {KILLED.replace('Memory cgroup o', 'O')}",
    ]
    assert report_of(lines).is_manual is False
    cut = report_of([lines[0][5:], *lines[1:]])
    assert (cut.is_manual, cut.invoker is not None, cut.chosen) == (None, True, 4711)
    assert report_of([LINES[0][5:], LINES[1], *lines[1:]]).is_manual is False


def test_of_two_nodes_in_one_log_the_report_nearest_in_time_goes_on() -> None:
    """Another report that waits for its victim, as on a slow console, takes none of its lines."""
    other = ["[ 8500.0] x invoked oom-killer: gfp_mask=0xcc0, order=0", "[ 8500.1] CPU: 0 PID: 7 Comm: x #1"]
    other[1] = other[1].replace("x #1", "x Not tainted 6.12.1 #1")
    for at in range(3, len(LINES)):
        report = next(
            report
            for report in read_log([*LINES[:at], *other, *LINES[at:]], NOW).reports
            if report.victim is not None
        )
        assert (report.kernel, report.is_table_whole) == ("5.15.0-1041-azure", True), at


def test_a_node_that_thrashes_spreads_a_report_over_seconds() -> None:
    """It may stall in any line; of the report a person has searched some."""
    seconds = {MESSAGES[0]: "04", SUMMARY: "39", KILLED: "39"}
    lines = [f"Nov 20 12:00:{second} n1 kernel: {message}" for message, second in seconds.items()]
    slow = report_of(lines)
    assert (slow.invoker is not None, slow.time[-2:]) == (True, "39"), "it was killed in the end"
    chosen, killed = (
        OLD_KILLED,
        "Killed process 4711 (leaky) total-vm:200000kB, anon-rss:100000kB, file-rss:0kB",
    )
    parted = [
        f"Nov 20 12:00:{second} n1 kernel: {line}" for second, line in (("04", MESSAGES[0]), ("09", chosen))
    ]
    assert report_of([*parted, f"Nov 20 12:00:13 n1 kernel: {killed}"]).freed_kb == 100000
    other = "Nov 20 12:00:39 n1 kernel: leaky invoked oom-killer: gfp_mask=0xcc0, order=0, oom_score_adj=990"
    (report,) = read_log([lines[0], other, *lines[1:]], NOW).reports
    assert report.time.endswith("39")


@pytest.mark.parametrize("prefix", ["2026-11-20T12:00:07Z ", ""])
def test_the_newest_line_first_within_one_second(prefix: str) -> None:
    """As logcli and Grafana write them: only the order of the lines tells."""
    lines = [f"{prefix}{message}" for message in reversed(MESSAGES)]
    report = report_of(lines)
    assert (report.is_table_whole, report.memory.limit_kb, report.kernel[:4]) == (True, 131072, "5.15")


@pytest.mark.parametrize("prefix", ["2026-11-20T12:00:07Z ", "tool.go:24] > [  +0.000036] ", "[  +0.0] "])
def test_a_report_that_begins_behind_the_end_of_another_is_not_the_newest_line_first(prefix: str) -> None:
    """Of one second, or of `dmesg -H` behind its last minute."""
    old = (OLD_KILLED, "Killed process 4711 (leaky) total-vm:200000kB, anon-rss:100000kB, file-rss:0kB")
    (kill,) = kills_of([f"{prefix}{message}" for message in (*old, *MESSAGES[:3])])
    assert kill.report is not None
    assert [killed.pid for killed in kill.report.victims] == [4711]


def test_a_later_line_of_another_program_with_an_earlier_time_turns_no_log_around() -> None:
    old = (
        OLD_KILLED.replace("Memory cgroup out", "Out"),
        "Killed process 4711 (leaky) total-vm:2kB, anon-rss:1kB",
    )
    lines = [f"Nov 20 12:00:08 n1 kernel: {message}" for message in old]
    kill = kill_of([*lines, "Nov 20 12:00:07 n1 systemd[1]: leaky.service: Main process exited, code=killed"])
    assert kill.diagnosis.mechanism == "node"


def test_a_row_of_another_table() -> None:
    other = "[   1500]     0  1500    60000     4000     3500      500         0   300000      200    -999 x"
    for place in (11, 12):
        report = report_of([*LINES[:place], f"[ 8523.301250] {other}", *LINES[place:]])
        assert ([task.pid for task in report.tasks], report.is_table_whole) == ([4600, 4650, 4711], False)


def test_a_title_without_the_columns_under_it_begins_no_whole_table() -> None:
    at = MESSAGES.index(HEADER)
    assert report_of(LINES[at - 1 :]).is_table_whole
    for rows in (1, 2):
        report = report_of([LINES[at - 1], *LINES[at + rows :]])
        assert (report.victim is not None, report.is_table_whole) == (True, False)


def test_a_line_of_another_program_hides_no_row() -> None:
    other = 'Oct 02 14:14:06 n1 containerd[27]: time="x" level=info msg="TaskOOM event"'
    report = report_of([*MESSAGES[:12], other, *MESSAGES[12:]])
    assert ([task.pid for task in report.tasks], report.is_table_whole) == ([4600, 4650, 4711], True)


def test_a_prefix_whose_message_is_on_the_next_line_has_its_time() -> None:
    lines = [f"kern: warning: [2026-11-20T12:00:07.{n:06}Z]: {line}" for n, line in enumerate(MESSAGES)]
    other = f"kern: warning: [2026-11-20T14:00:07.1Z]:\n{SUMMARY.replace('4711', '77')}".splitlines()
    report, another = read_log([*lines[:4], *other, *lines[4:]], NOW).reports
    assert (report.chosen, report.is_table_whole, another.chosen) == (4711, True, 77)


def test_another_report_may_have_begun_where_lines_are_left_out() -> None:
    later = [line.replace("[ 8523.3", "[ 8524.2") for line in LINES[9:]]
    first, second = read_log([*LINES[:9], "-----", *later], NOW).reports
    assert (first.memory.limit_kb, second.memory.limit_kb) == (131072, None)
    assert report_of([*LINES[:9], "-----", *LINES[9:]]).memory.limit_kb == 131072


def test_parts_of_a_report_without_times_are_one_where_ids_agree() -> None:
    for parts in (
        [MESSAGES[:2], MESSAGES[3:5], MESSAGES[9:]],
        [MESSAGES[:2], MESSAGES[3:9], MESSAGES[-2:]],
        [MESSAGES[:2], MESSAGES[9:-2], MESSAGES[-1:]],
    ):
        lines = [line for part in parts for line in ("...", *part)]
        assert report_of(lines) == report_of([line for line in lines if line != "..."])
        unlike = [line.replace("PID: 4711", "PID: 99") for line in lines]
        assert [report.invoker for report in read_log(unlike, NOW).reports if report.victim] == [None]


@pytest.mark.parametrize("below", [("",), (f"/{ID}",), ("", f"/{ID}", f"/{'a3' * 32}")])
def test_statistics_of_cgroup_v1_name_no_limit(below: tuple[str, ...]) -> None:
    """They are of every cgroup below the one that ran out too, and a person may have left out the first."""
    statistics = [f"Memory cgroup stats for {V1}{end}: cache:0KB rss:36KB" for end in below]
    kmem = "kmem: usage 0kB, limit 9007199254740988kB, failcnt 0"
    lines = [MESSAGES[3], kmem, *statistics, OLD_KILLED]
    kill = kill_of(lines)
    assert (kill.diagnosis.mechanism, kill.pod_uid, kill.container_id) == (Mechanism.MEMORY_LIMIT, UID, "")
    assert kill.report is not None
    assert kill.report.memory.anon_kb == 36 * len(below)
    task = f"Task in {V1}/{ID} killed as a result of limit of {V1}"
    stated = kill_of([task, *lines])
    assert (stated.diagnosis.mechanism, stated.container_id) == ("pod limit", ID)
    cut = kill_of([task[:-9], *lines])
    assert cut.diagnosis.mechanism is Mechanism.MEMORY_LIMIT
    if len(below) > 1:
        shorter = kill_of([task, *lines[:3], lines[3].replace(" rss:36KB", ""), *lines[4:]])
        assert shorter.report is not None
        assert shorter.report.memory.file_kb is None, "a screen has cut the line"
    parted = kill_of([task, *lines[:3], "eth0: link up", *lines[3:]])
    assert parted.report is not None
    assert parted.report.memory.anon_kb is None, "others may be missing"


@pytest.mark.parametrize(
    "entry",
    [
        {"date": 1795176007.5, "msg": ""},
        {"attributes": {"timestamp": "2026-11-20T12:00:07Z", "msg": ""}},
        {"_source": {"@timestamp": "2026-11-20T12:00:07Z", "host": {"name": "n7"}, "msg": ""}},
    ],
    ids=["date", "attributes", "_source"],
)
def test_entries_of_other_stores(entry: dict[str, Any]) -> None:
    report = report_of([json.dumps(entry).replace('"msg": ""', f'"msg": "{text}"') for text in MESSAGES])
    assert (report.time[:4], len(report.tasks), report.node) == (
        "2026",
        3,
        "n7" if "_source" in entry else "",
    )


@pytest.mark.parametrize("facility", ["kern", "kernel", "0"])
def test_a_table_with_facilities(facility: str) -> None:
    lines = ["timestamp,source,facility,message"]
    lines += [f'2026-11-20T12:00:07Z,n1,{other},"{KILLED}"' for other in (facility, "user")]
    assert len(read_log(lines, NOW).reports) == 1
    assert not read_log([lines[0], lines[2]], NOW).reports


@pytest.mark.parametrize(
    "header", ["@timestamp,@message", '"_time","_raw"', "Time,Line", "TimeGenerated [UTC],SyslogMessage"]
)
def test_comma_separated_values(header: str) -> None:
    texts = [f"Nov 20 12:00:07 n1 kernel: {message}" for message in MESSAGES]
    lines = [header, *(f'2026-11-20T12:00:07Z,"{text}"' for text in texts)]
    report = report_of(lines)
    assert (report.time, report.year_is_guessed) == ("2026-11-20T12:00:07Z", False)
    assert (report.line, report.is_table_whole, len(report.tasks)) == (2, True, 3)
    joined = "\n".join((texts[0], *MESSAGES[1:]))
    assert len(report_of([header, f'2026-11-20T12:00:07Z,"{joined}"']).tasks) == 3, "one row of many lines"
    dmesg = report_of([header, *(f'2026-11-20T12:00:07Z,"{line}"' for line in LINES)])
    assert (dmesg.time, len(dmesg.tasks)) == ("2026-11-20T12:00:07Z", 3)


def test_a_row_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text('@timestamp,@message\n1,"' + "x\n" * 70_000)
    with pytest.raises(InputError, match="line 2 is no row of its table: field larger than field") as refused:
        read_file(str(tmp_path / "log.csv"))
    assert refused.value.hint == "export the log as JSON or as text, or remove that line"


def test_a_first_line_too_long_for_a_heading(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text('{"a":' * 30_000)
    with pytest.raises(InputError, match="JSON without messages of the kernel"):
        read_file(str(tmp_path / "log.csv"))


def test_the_table_of_a_query() -> None:
    columns = [{"name": name} for name in ("TimeGenerated", "Computer", "Facility", "SyslogMessage")]
    rows = [["2026-11-20T12:00:07Z", "aks-1", "kern", message] for message in MESSAGES]
    document = json.dumps({"tables": [{"name": "PrimaryResult", "columns": columns, "rows": rows}]})
    report = report_of(document.splitlines())
    assert (report.node, report.is_table_whole, len(report.tasks)) == ("aks-1", True, 3)


def test_a_cut_path_may_be_that_of_a_pod() -> None:
    cut = SUMMARY[: SUMMARY.index("kubepods.slice")]
    assert "a process in an unknown cgroup" in text_of(kill_of([f"[ 8523.1] {cut}…", f"[ 8523.1] {KILLED}"]))


@pytest.mark.parametrize(
    "lost",
    [
        "Nov 20 12:00:07 node-a systemd-journald[333]: Missed 12 kernel messages",
        "Nov 20 12:00:07 node-a rsyslogd: imjournal: 512 messages lost due to rate-limiting",
        "Nov 20 12:00:07 node-a kernel: ** 12 printk messages dropped **",
    ],
)
def test_a_table_is_not_whole_where_lines_were_lost(lost: str) -> None:
    lines = [f"Nov 20 12:00:07 node-a kernel: {message}" for message in MESSAGES]
    report = report_of([*lines[:12], lost, *lines[14:]])
    assert report.victim is not None
    assert (report.victim.pid, report.is_table_whole, len(report.tasks)) == (4711, False, 1)
    assert report_of(lines).is_table_whole


def test_a_line_that_lost_its_beginning_is_of_another_report_than_a_line_far_below() -> None:
    counters, others = MESSAGES[3].replace("131072", "999"), [f"pgfault {number}" for number in range(3)]
    assert read_log([counters, *others, *LINES[9:]], NOW).reports[-1].memory.full is None
    assert report_of([MESSAGES[3], *LINES[4:]]).memory.full is not None


def test_a_uid_that_is_none() -> None:
    masked = [SUMMARY.replace(UID.replace("-", "_"), "XXXX"), KILLED]
    assert kill_of(masked).pod_uid == ""
    assert "a Burstable pod (the log has only part of its uid)" in text_of(kill_of(masked))


def test_a_pod_that_is_not_in_the_list() -> None:
    assert text_of(kill_of(LINES)).startswith(f"a pod, uid {UID}, container")
    (kill,) = kills_of(LINES, Pod(metadata=ObjectMeta(uid="another")))
    assert text_of(kill).startswith(f"a pod that is not in the list, uid {UID}")
    (kill,) = kills_of(LINES, Pod())
    assert text_of(kill).startswith(f"a pod, uid {UID}"), "pods of text have no UID"


PLEG = '"SyncLoop (PLEG): event for pod" pod="shop/web-0"'


@pytest.mark.parametrize(
    "event",
    [
        f"{PLEG} event=&{{ID:{UID} Type:ContainerDied Data:{ID}}}",
        f'{PLEG} event={{"ID":"{UID}","Type":"ContainerStarted","Data":"{"0" * 64}"}}',
        f'SyncLoop (PLEG): "web-0_shop(u)", event: &pleg.P{{ID:"{UID}", Type:"ContainerDied", Data:"{ID}"}}',
        f'"Error syncing pod, skipping" err="back-off" pod="shop/web-0" podUID="{UID}"',
        f'Error syncing pod {UID} ("web-0_shop({UID})"), skipping: failed to "StartContainer" for "c"',
    ],
    ids=["since 1.20", "another container of it", "before", "restarting", "restarting, before 1.19"],
)
def test_a_kubelets_line_in_the_same_log_names_the_pod(event: str) -> None:
    kill = kill_of([*LINES, f"Oct 02 14:14:07 n1 kubelet[77]: I1002 14:14:07.1 77 kubelet.go:2136] {event}"])
    assert (kill.namespace, kill.pod, kill.pod_uid) == ("shop", "web-0", UID)
    assert "a line of the kubelet in the same log names the pod" in text_of(kill)


def test_processes_that_share_memory_free_no_more_than_was_used() -> None:
    """Each of them counts it: a pod of 1Gi was said to free 1.9Gi."""
    tail = "file-rss:0kB, shmem-rss:900000kB, UID:999 pgtables:900kB oom_score_adj:900"
    log = [
        "memory: usage 1048576kB, limit 1048576kB, failcnt 7",
        f"Memory cgroup stats for {SLICE}:",
        "anon 102400000",
        "file 930000000",
        "shmem 921600000",
        SUMMARY,
        *(
            f"Memory cgroup out of memory: Killed process {pid} (pg) total-vm:2kB, anon-rss:50000kB, {tail}"
            for pid in (4711, 4712)
        ),
        f"Tasks in {SCOPE} are going to be killed due to memory.oom.group set",
    ]
    lines = [f"[  12.{number:06}] {line}" for number, line in enumerate([*log[:-2], log[-1], log[-2]])]
    kill = kill_of(lines)
    assert kill.report is not None
    assert (len(kill.report.victims), kill.freed_bytes) == (2, 1 << 30)
    assert "which is free once the last process that maps it ends" in " ".join(text_of(kill).split())


def test_different_cgroup_drivers() -> None:
    path = f"/system.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice:cri-containerd:{ID}"
    assert pod_cgroup(path) is not None
    kill = kill_of([SUMMARY.replace(SLICE, path, 1).replace(SCOPE, path), KILLED])
    assert (kill.pod_uid, kill.container_id) == (UID, ID)
    assert kill.diagnosis.mechanism == "container limit"
    assert "set the runtime's driver to systemd (SystemdCgroup = true of runc)" in text_of(kill)
    v1 = f"Memory cgroup stats for {path}: cache:0KB rss:10KB"
    assert report_of(["memory: usage 9kB, limit 9kB, failcnt 1", v1, KILLED]).oom_memcg == path


# --- whose limit


def test_a_limit_of_memory_and_swap_is_not_the_memory_limit() -> None:
    lines = [
        f"Task in {SCOPE} killed as a result of limit of {SCOPE}",
        "memory: usage 3000000kB, limit 3355443kB, failcnt 0",
        "memory+swap: usage 3565158kB, limit 3565158kB, failcnt 24",
        "kmem: usage 47803kB, limit 9007199254740988kB, failcnt 0",
        f"Memory cgroup stats for {SCOPE}: cache:2774782KB rss:230000KB shmem:2773116KB swap:500000KB",
        KILLED,
    ]
    text = text_of(kill_of(lines))
    assert "killed by the kernel at its own limit (the container's limit of memory and swap together)" in text
    assert "its memory limit of 3276.8Mi was not reached: it used 2929.7Mi" in text
    assert "2708.1Mi are shared memory" in text
    assert "only this process was killed" in text, "cgroup v1 has no groups"


def test_a_call_by_hand() -> None:
    lines = [
        "kworker/0:2 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=-1, oom_score_adj=0",
        "oom-kill:constraint=CONSTRAINT_NONE,global_oom,task_memcg=/system.slice/a.service,task=a,pid=7,uid=0",
        OUT,
    ]
    older = lines[0].replace("-1", "0")
    said = "sysrq: SysRq : Manual OOM execution"
    for log in (lines, [older, "Workqueue: events moom_callback", *lines[1:]], [said, older, *lines[1:]]):
        kill = kill_of(log)
        assert kill.diagnosis.mechanism is Mechanism.SYSRQ
        assert "on request (SysRq f): memory had not run out" in text_of(kill)
    assert "because the node ran out of memory (or SysRq f: the beginning of the report" in text_of(
        kill_of(lines[1:])
    )
    machine = [
        "Mem-Info:",
        "Node 0 DMA free:9000kB min:300kB low:400kB high:500kB present:16000kB managed:15000kB",
        "4000 pages RAM",
    ]
    kill = kill_of([*machine, *lines[1:]])
    assert (kill.diagnosis.mechanism, kill.diagnosis.confidence) == (Mechanism.SYSRQ, Confidence.LIKELY)
    short = [line.replace("9000", "400") for line in machine]
    assert text_of(kill_of([*short, *lines[1:]])).count("SysRq") == 0


@pytest.mark.parametrize(
    ("order", "free", "more", "said"),
    [
        (0, 400, ["Free swap  = 300kB", "Total swap = 4194300kB"], "swap was full too, 4095.7Mi of 4096Mi"),
        (
            0,
            400,
            ["Free swap  = 5148808kB", "Total swap = 8388604kB"],
            "3163.9Mi of 8192Mi of swap were in use",
        ),
        (3, 9000, [], "wanted 8 pages in a row (order 3): memory was in smaller pieces, not used up"),
        (2, None, [], "wanted 4 pages in a row (order 2): memory may have been in smaller pieces"),
        (
            0,
            400,
            [
                f"Node {node} hugepages_total=4 hugepages_free=4 hugepages_surp=0 hugepages_size=2048kB"
                for node in "01"
            ],
            "16Mi are reserved as huge pages, which only pods that request them can use",
        ),
    ],
    ids=["full swap", "swap that helps no more", "pieces", "perhaps pieces", "huge pages"],
)
def test_why_a_node_ran_out(order: int, free: int | None, more: list[str], said: str) -> None:
    zone = f"Node 0 DMA free:{free}kB min:300kB low:400kB high:500kB present:16000kB managed:15000kB"
    lines = [
        f"leaky invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order={order}, oom_score_adj=0",
        *MESSAGES[1:2],
        "Mem-Info:",
        *([zone] if free is not None else []),
        *more,
        "4000 pages RAM",
        OUT,
    ]
    assert said in text_of(kill_of(lines))
    by_hand = text_of(kill_of([line.replace(f"order={order}", "order=-1") for line in lines]))
    assert "in a row" not in by_hand
    assert "in a row" not in text_of(kill_of([line.replace(f"order={order}", "order=0") for line in lines]))


def test_the_virtual_machine_of_a_pod_is_no_node() -> None:
    lines = [
        f'time="2026-11-20T12:00:07Z" level=debug sandbox={ID} vmconsole="[ 7.5] {message}"'
        for message in ("a invoked oom-killer: gfp_mask=0xcc0, order=0, oom_score_adj=0", OUT)
    ]
    kill = kill_of(lines)
    assert kill.diagnosis.mechanism is Mechanism.CGROUP_LIMIT
    assert "by the kernel of its pod's virtual machine (Kata), which ran out of memory" in text_of(kill)
    by_hand = text_of(kill_of([line.replace("order=0", "order=-1") for line in lines]))
    assert "killed by the kernel on request (SysRq f): memory had not run out" in by_hand


def test_a_page_fault_that_failed_says_nothing_about_the_memory_of_the_node() -> None:
    lines = [
        "leaky invoked oom-killer: gfp_mask=0x0(), order=0, oom_score_adj=0",
        "Mem-Info:",
        "Node 0 DMA free:9000kB min:300kB low:400kB high:500kB present:16000kB managed:15000kB",
        "4000 pages RAM",
        OUT,
    ]
    kill = kill_of(lines)
    assert (kill.diagnosis.mechanism, kill.diagnosis.confidence) == ("node", Confidence.LIKELY)
    assert "or at a limit of kernel memory, where a page fault failed: gfp_mask is 0" in text_of(kill)
    short = kill_of([line.replace("9000", "400") for line in lines])
    allocating = kill_of([line.replace("0x0()", "0xcc0(GFP_KERNEL)") for line in lines])
    for kill in (short, allocating):
        assert kill.diagnosis.confidence is Confidence.CERTAIN
        assert "page fault" not in text_of(kill)


def test_an_oom_without_a_victim() -> None:
    head = MESSAGES[0].replace("leaky", "runc:[2:INIT]")
    kill = kill_of([head, *MESSAGES[3:6], NOBODY])
    assert kill.diagnosis.mechanism is Mechanism.START_LIMIT
    assert (
        f"the kernel found no process that it may kill: CONSTRAINT_MEMCG, the limit of 128Mi of {SLICE}"
        in (text_of(kill))
    )
    other = text_of(kill_of([*MESSAGES[:6], NOBODY]))
    assert "nothing was killed, as no process may be, at the pod limit (the pod's memory limit)" in other
    by_hand = text_of(kill_of([MESSAGES[0].replace("order=0", "order=-1"), NOBODY]))
    assert "nothing was killed, as no process may be, on request (SysRq f): memory had not run out" in by_hand
    why = "Kernel panic - not syncing: Out of memory: system-wide panic_on_oom is enabled"
    panic = kill_of([*MESSAGES[:3], "Mem-Info:", why])
    text = text_of(panic)
    assert (panic.diagnosis.mechanism, text.split(" certain")[0]) == (Mechanism.PANIC, "the whole machine")
    assert "the kernel panicked: system-wide panic_on_oom is enabled: the kubelet sets it to 0" in text
    by_hand = text_of(kill_of(["[ 910.06] SysRq : Manual OOM execution", f"[ 910.11] {why}"]))
    assert "the kernel panicked on request (SysRq f)" in by_hand


def test_what_the_name_of_a_victim_shows() -> None:
    swapoff = text_of(kill_of([line.replace("leaky", "swapoff") for line in LINES]))
    assert "swapoff is always killed first, because it moves what is in swap into memory" in swapoff
    runtime = text_of(kill_of([line.replace("leaky", "runc:[2:INIT]") for line in LINES]))
    assert (
        "runc:[2:INIT] is the container runtime, starting a container, which then does not start" in runtime
    )
    assert "kept running" not in runtime
    sandbox = OLD_KILLED.replace("leaky", "pause")
    for lines in ([sandbox], [sandbox, "Killed process 4711 (pause) total-vm:9kB, anon-rss:4kB"]):
        text = text_of(kill_of(lines))
        assert "pause is the pod's sandbox" in text
        assert "container went on" not in text, "it belongs to none"
    assert "sandbox" not in text_of(kill_of([KILLED.replace("leaky", "pause")])), "it has another adj"


def test_the_likely_victim_of_a_report_without_one() -> None:
    text = text_of(kill_of(LINES[: MESSAGES.index(SUMMARY)]))
    assert (
        "of the 3 processes that the log shows leaky (4711) has the most points: if no row is missing" in text
    )
    assert "has the most points" not in text_of(
        kill_of(rows((1, 9000, 5, "a"), (2, 50, 990, "b"), killed=2)[1:-1])
    )
    assert "has the most points" not in text_of(kill_of(LINES[: MESSAGES.index(HEADER) + 2])), "a sandbox"


def test_the_limit_of_all_pods_is_not_a_full_machine() -> None:
    text = text_of(
        kill_of([line.replace(f"oom_memcg={SLICE}", "oom_memcg=/kubepods.slice") for line in LINES[9:]])
    )
    assert "allocatable memory plus the hard eviction threshold: the machine itself was not full" in text
    assert "at the memory limit of all pods, at" in text
    burstable = [
        line.replace(f"oom_memcg={SLICE}", f"oom_memcg={SLICE.rpartition('/')[0]}") for line in LINES[9:]
    ]
    assert "at the memory limit of all Burstable pods together" in text_of(kill_of(burstable))


def test_a_year_that_is_guessed_is_marked() -> None:
    kill = kill_of([f"Oct  2 14:14:06 n1 kernel: {KILLED}"])
    assert kill.time_is_estimated
    assert "2026-10-02T14:14:06 (the log has no year: 2026 is a guess)" in text_of(kill)
    assert not kill_of([f"2026-10-02T14:14:06Z n1 kernel: {KILLED}"]).time_is_estimated


@pytest.mark.parametrize("begin", ["[Oct  2 14:14:06] {}", "[Oct 2 14:14] other\n[  +6.000000] {}"])
def test_a_time_in_brackets_without_a_year(begin: str) -> None:
    """As people shorten `dmesg -T`, and as `dmesg -H` prints it."""
    kill = kill_of(begin.format(KILLED).split("\n"))
    assert (kill.time, kill.time_is_estimated) == ("2026-10-02T14:14:06", True)
    messages = ["sysrq: Manual OOM execution", "Out of memory: Killed process 4711 (leaky) total-vm:1kB"]
    manual = kill_of([f"[Oct  2 14:14:06] {message}" for message in messages])
    assert manual.diagnosis.mechanism is Mechanism.SYSRQ, "these times are the kernel's: sysrq is no program"
    old = [f"[Oct  2 14:14:06] {OLD_KILLED}", f"[Oct  2 14:14:06] {KILLED.partition(': ')[2]}"]
    assert report_of(old).victims[0].anon_rss_kb == 100000


# --- why this process


def rows(*tasks: tuple[int, int, int, str], killed: int, limit: int = 131072) -> list[str]:
    """A report with these processes: ID, pages, oom_score_adj and name."""
    table = [
        f"[{pid:7}]     0 {pid:5} {pages + 9:8} {pages:8}     4096        0 {adj} {name}"
        for pid, pages, adj, name in tasks
    ]
    name = next(task[3] for task in tasks if task[0] == killed)
    summary = SUMMARY.replace("task=leaky,pid=4711", f"task={name},pid={killed}")
    return [f"memory: usage {limit}kB, limit {limit}kB, failcnt 1", "Tasks state", HEADER, *table, summary]


def test_the_first_or_the_last_of_equals() -> None:
    tasks = ((1, 50, 900, "a"), (2, 50, 900, "b"), (3, 50, 900, "c"))
    first, last, middle = (text_of(kill_of(rows(*tasks, killed=pid))) for pid in (1, 3, 2))
    assert "all 3 have the same points: the first of them was killed, as by kernels before 5.3" in first
    assert "the last of them was killed, as by kernels since 5.3" in last
    assert "the kernel picks the last that it visits, before 5.3 the first" in middle


def test_a_score_below_one_counts_as_one() -> None:
    tasks = ((1, 1, -998, "pause"), (2, 50, -998, "sh"), (3, 9000, -998, "sim"))
    lines = rows(*tasks, killed=1)
    choice = choice_of(report_of(lines))
    assert (choice.kernel, choice.chosen.place, len(choice.tied)) == (Kernel.FLOORED, 1, 2)
    text = text_of(kill_of(lines))
    assert "count all scores below 1 as 1, so memory did not matter: newer ones choose sim (3)" in text
    assert "pause is the pod's sandbox" in text
    newer = [
        "sim invoked oom-killer: order=0, oom_score_adj=0",
        "CPU: 1 PID: 3 Comm: sim Not tainted 6.1.0 #1",
    ]
    assert choice_of(report_of([*newer, *rows(*tasks, killed=1)])).chosen.place == 3


def test_most_points_whatever_the_limit_was() -> None:
    tasks = ((1, 1, -998, "pause"), (2, 50, -997, "sh"), (3, 9000, -997, "uwsgi"))
    without = rows(*tasks, killed=3)[1:]
    choice = choice_of(report_of(without))
    assert (choice.total_pages, choice.chosen.place, choice.chosen.points) == (None, 1, None)
    assert "it had the most points of 3 processes, whatever the limit was" in text_of(kill_of(without))
    doubtful = rows((1, 9000, 5, "a"), (2, 50, 990, "b"), killed=2)[1:]
    assert explain_choice(report_of(doubtful)) is Unranked.NO_TOTAL


def test_its_memory_or_its_adj() -> None:
    by_adj = text_of(kill_of(rows((1, 9000, 5, "a"), (2, 50, 990, "b"), killed=2)))
    assert (
        "its oom_score_adj of 990 counts as 99 % of the memory that ran out, 126.7Mi, so its 0.2Mi" in by_adj
    )
    assert "a (1) has 35.2Mi, but oom_score_adj 5" in by_adj
    by_size = text_of(kill_of(rows((1, 9000, 990, "a"), (2, 50, 990, "b"), killed=1)))
    assert "it used the most memory, 35.2Mi; the next is b (2) with 0.2Mi" in by_size
    tasks = ((1, 9000, 990, "a"), (2, 50, 990, "b"), (3, 20000, -1000, "c"))
    not_immune = text_of(kill_of(rows(*tasks, killed=1)))
    assert "c (3) held 78.1Mi and has oom_score_adj -1000: the kernel may not kill it" in not_immune
    assert "of those that the kernel may kill, it used the most memory, 35.2Mi" in not_immune


def test_an_oom_score_adj_of_its_own() -> None:
    own = rows((1, 1, -998, "pause"), (2, 50, 988, "nginx"), (3, 40, 1000, "stress"), killed=3)
    assert "it set its own oom_score_adj of 1000: the others have 988 from the kubelet" in text_of(
        kill_of(own)
    )
    of_another_container = rows((2, 50, 500, "nginx"), (3, 40, 988, "envoy"), killed=3)
    assert "its own" not in text_of(kill_of(of_another_container))


def test_whether_the_container_went_on() -> None:
    text = text_of(kills_of([*LINES, AFTER])[0])
    assert "only this process was killed" in text
    assert "main (4650), which is older, was not killed" in text
    assert "kept running, and no status shows the kill, unless this was its main process" in text
    assert "only this process" not in text_of(kill_of(LINES)), "a line about the group may follow"
    assert "no line shows that the rest of its container was killed too (memory.oom.group)" in text_of(
        kill_of(LINES)
    )
    monitored = [line.replace("0           990 main", "0         -1000 conmon") for line in LINES]
    assert "which is older" not in text_of(kills_of([*monitored, AFTER])[0]), "of CRI-O, not of the container"
    filtered = [line for line in [*LINES, AFTER] if "emory" in line or "oom" in line]
    assert "only this process" not in text_of(kills_of(filtered)[0])
    of_node = [
        "Out of memory: Kill process 994 (containerd) score 4 or sacrifice child",
        "Killed process 994 (containerd) anon-rss:9kB",
    ]
    assert "if it was in a container, that kept running" in text_of(kill_of(of_node))


@pytest.mark.parametrize("length", range(len("Memory cgroup out of memory: "), 60))
def test_a_child_that_was_killed_for_its_parent_is_no_number_two(length: int) -> None:
    chosen = "Memory cgroup out of memory: Kill process 4711 (leaky) score 1894 or sacrifice child"
    header = "[ pid ]   uid  tgid total_vm      rss nr_ptes nr_pmds swapents oom_score_adj name"
    tasks = [
        "[ 4711]     0  4711    50000    25100     120       5        0           990 leaky",
        "[ 4650]     0  4650     2847     1835       4       3        0           990 main",
    ]
    killed = "Killed process 4650 (main) total-vm:11388kB, anon-rss:7000kB, file-rss:340kB"
    report = report_of(
        [MESSAGES[3], header, *tasks, chosen[:length].rstrip(), chosen[length:].lstrip(), killed]
    )
    choice = explain_choice(report)
    assert choice is Unranked.NOT_CHOSEN or (isinstance(choice, VictimChoice) and choice.child)
    if isinstance(choice, VictimChoice) and length > 40:
        text = text_of(kill_of([MESSAGES[3], header, *tasks, chosen, killed]))
        assert "its parent leaky (4711) had the most points of 2 processes" in text
        assert "the parent used the most memory" in text
    assert explain_choice(report_of([MESSAGES[3], header, *tasks, killed])) is Unranked.NOT_CHOSEN
    without = text_of(kill_of([chosen, killed]))
    assert "the kernel chose process 4711: a parent of this one, or one of its threads" in without


def test_a_thread_of_rhel_7_is_taken_as_its_process() -> None:
    lines = [
        "memory: usage 131072kB, limit 131072kB, failcnt 83",
        "[ pid ]   uid  tgid total_vm      rss nr_ptes swapents oom_score_adj name",
        "[ 8290]     0  8290      256        1       4        0          -998 pause",
        "[ 8308]  1000  8308   700000    32000     120       40           968 java",
        "Memory cgroup out of memory: Kill process 8377 (pool-1-thread-1) score 1894 or sacrifice child",
    ]
    for killed in ("8308 (java)", "8377 (pool-1-thread-1)"):
        end = f"Killed process {killed}, UID 1000, total-vm:2800000kB, anon-rss:120000kB, file-rss:8000kB"
        log = [f"[{7 + number / 1e4:12.6f}] {line}" for number, line in enumerate([*lines, end])]
        report = report_of(log)
        choice = choice_of(report)
        assert (choice.chosen.task.pid, choice.chosen.place, choice.child) == (8308, 1, False)
    text = text_of(kill_of(log))
    assert "killed java (8308)" in text
    assert "the victim was java, process 8308" in text
    assert "the kernel names its thread pool-1-thread-1 (8377)" in text
    assert "the kernel chose pool-1-thread-1 (8377), or killed one of its children" in text_of(
        kill_of(log[:-1])
    )


def test_a_page_of_16_ki() -> None:
    small = [line.replace("200000kB", "800000kB").replace("100000kB", "400000kB") for line in LINES]
    assert report_of(small).page_bytes == 16384, "50000 pages are 800000kB"
    zones = "Node 0 DMA: 3*16kB (U) 1*32kB (U) = 80kB"
    assert report_of([LINES[0], f"[ 8523.300050] {zones}", *LINES[9:]]).page_bytes == 16384
    for page_kb, no_limit in ((4, "988"), (16, "976"), (64, "928")):
        swap = LINES[4].replace("limit 0kB", f"limit 9007199254740{no_limit}kB")
        assert report_of([*LINES[:4], swap, *LINES[5:-1]]).page_bytes == page_kb << 10
    tables = rows(*((pid, 50, 990, "a") for pid in range(1, 10)), killed=1)
    assert report_of(tables).page_bytes == 4096
    assert report_of([line.replace("     4096 ", "    49152 ") for line in tables]).page_bytes == 16384


# --- who used the memory


def test_the_largest_processes_inside_and_outside_pods() -> None:
    lines = [
        "kubelet invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=-999",
        "Mem-Info:",
        " mapped:15338 shmem:400000 pagetables:412 bounce:0",
        "1048440 pages RAM",
        "52405 pages reserved",
        "Total swap = 0kB",
        "Tasks state (memory values in pages):",
        HEADER,
        "[    254]     0   254   800000   563200  4505600        0             0 mysqld",
        "[   4600] 65535  4600      243        1    28672        0          -998 pause",
        "[   4601]     0  4601   318646     2952   135168        0          -998 containerd-shim",
        "[   4711]     0  4711    50000    25100   266240        0          1000 leaky",
        f"oom-kill:constraint=CONSTRAINT_NONE,global_oom,task_memcg={SCOPE},task=leaky,pid=4711,uid=0",
        KILLED.replace("Memory cgroup out", "Out"),
    ]
    kill = kill_of(lines)
    text = text_of(kill)
    assert "most resident memory: mysqld (254, outside pods) 2200Mi, leaky (4711) 98Mi" in text
    assert "pods had 98.1Mi of 2309.6Mi of the memory of processes" in text
    desktop = text_of(kill_of([line.replace("-998", "   0") for line in lines]))
    assert "mysqld (254, outside pods)" in desktop
    assert "pods had" not in desktop, "no kubelet runs there"
    part = kill_of(lines[8:])
    assert "most resident memory of the rows that the log has: mysqld (254" in text_of(part)
    assert "pods had" not in text_of(part), "the rows of others may be missing"
    assert (largest_user(part), largest_user(kill) is None) == (None, False)
    assert "1562.5Mi are shared memory" in text
    assert "counts as 100 % of the memory that ran out, 3890.8Mi, so its 98.3Mi hardly matter: mysqld" in text
    small = "[   4712]     0  4712    50000    20000   266240        0          1000 second"
    rival = text_of(kill_of([*lines[:-2], small, *lines[-2:]]))
    assert "and its 98.3Mi decided: second (4712) had oom_score_adj 1000 and 78.4Mi; mysqld" in rival.replace(
        "\n", ""
    )
    large = small.replace("20000", "40000").replace("1000 second", " 985 second")
    assert "and its 98.3Mi count too: mysqld" in text_of(kill_of([*lines[:-2], large, *lines[-2:]]))
    assert kill.report is not None
    assert [user.is_in_pod for user in memory_users(kill.report)] == [False, True, False, True]
    session = [line.replace(SCOPE, "/user.slice/session-2.scope") for line in lines]
    assert "leaky (4711, outside pods) 98Mi" in text_of(kill_of(session))


def test_a_process_outside_pods_is_of_no_class() -> None:
    """Browsers and container engines set oom_score_adj as a kubelet does."""
    path = "/user.slice/session-2.scope"
    for adj in (300, 1000):
        killed = f"Out of memory: Killed process 7 (chrome) total-vm:9kB, anon-rss:8kB, oom_score_adj:{adj}"
        summary = f"oom-kill:constraint=CONSTRAINT_NONE,global_oom,task_memcg={path},task=chrome,pid=7,uid=0"
        text = text_of(kill_of([summary, killed]))
        assert f"counts as {adj // 10} % of the machine" in text
        at_limit = [summary.replace("NONE,global_oom", f"MEMCG,oom_memcg={path}"), killed[15:]]
        assert not re.search("BestEffort|Burstable|request", text + text_of(kill_of(at_limit)))


def test_kinds_of_memory_at_a_limit() -> None:
    text = text_of(kill_of(LINES))
    assert "memory at the limit: anonymous 57.2Mi, files 66.8Mi" in text
    assert "65.8Mi are shared memory (tmpfs, /dev/shm, emptyDir of medium Memory), which killing" in text
    dirty = [line.replace("shmem 69000000", "file_dirty 69000000") for line in LINES]
    assert "65.8Mi of the files were not written to disk yet" in text_of(kill_of(dirty))
    assert "written to disk" not in text


def test_swap() -> None:
    swapped = [re.sub(r"\b0           990 leaky", "9000        990 leaky", line) for line in LINES]
    without = "swap: usage 0kB, limit 0kB"
    texts = {
        limit: text_of(
            kill_of([line.replace(without, f"swap: usage 36000kB, limit {limit}kB") for line in swapped])
        )
        for limit in (36000, 72000, 9007199254740988)
    }
    assert "35.2Mi in swap" in texts[36000]
    assert "its swap was full too, 35.2Mi of 35.2Mi" in texts[36000]
    assert "× 41, a thousandth of 163.2Mi" in texts[36000], "as much as the machine has, or more"
    assert "only swap in use counts" not in texts[36000]
    assert "35.2Mi of at most 70.3Mi are in swap" in texts[72000]
    assert "the log does not say how much swap the machine has: only swap in use counts here" in texts[72000]
    assert "35.2Mi of it are in swap: it may use swap" in texts[9007199254740988]
    assert "it may use no swap (memory.swap.max is 0)" in text_of(kill_of(LINES))
    assert "with LimitedSwap a Burstable pod gets swap" in text_of(kill_of([*LINES[:4], *LINES[5:]]))


def test_the_class_explains_a_small_victim_of_a_full_node() -> None:
    path = f"/kubepods/besteffort/pod{UID}/{ID}"
    lines = [
        f"oom-kill:constraint=CONSTRAINT_NONE,global_oom,task_memcg={path},task=entry,pid=7,uid=0",
        "Out of memory: Killed process 7 (entry) total-vm:1656kB, anon-rss:120kB, file-rss:4kB",
    ]
    text = text_of(kill_of(lines))
    assert (
        "by its path it is BestEffort: its oom_score_adj of 1000 counts as 100 % of the machine, so its"
        in text
    )
    assert "a memory request lowers oom_score_adj" in text
    burstable = text_of(kill_of([KILLED]))
    assert "oom_score_adj 990 means a Burstable pod that requests about 1 % of its node's memory" in burstable
    for adj in (-997, -998):
        text = text_of(kill_of([KILLED.replace("adj:990", f"adj:{adj}")]))
        assert f"oom_score_adj {adj} means a Guaranteed pod, or a critical one" in text
    service = text_of(kill_of([KILLED.replace("adj:990", "adj:0")]))
    assert "oom_score_adj 0 means a process outside pods, such as a service" in service


def test_a_process_killed_after_a_group_belongs_to_another_kill() -> None:
    """The victim's own line may be missing; the others of its group are in the table, and follow at once."""
    group = f"Tasks in {SCOPE} are going to be killed due to memory.oom.group set"
    other = KILLED.replace("4711 (leaky)", "9999 (web)")
    lines = [*LINES[:-1], f"[ 8523.302000] {group}"]
    for time in ("8523.303000", "8530.000000"):
        first, second = read_log([*lines, f"[ {time}] {other}"], NOW).reports
        assert [killed.pid for killed in (*first.victims, *second.victims)] == [4711, 9999]
        assert (first.task_memcg, second.task_memcg) == (SCOPE, "")
    without_table = [LINES[0], LINES[-2], lines[-1], f"[ 8530.000000] {other}"]
    assert [len(report.victims) for report in read_log(without_table, NOW).reports] == [1, 1]
    main = KILLED.replace("4711 (leaky)", "4650 (main)")
    assert report_of([*lines, f"[ 8523.303000] {main}"]).group_kill == SCOPE


def test_systemds_line_about_another_unit_is_no_part_of_a_report() -> None:
    said = "other.service: A process of this unit has been killed by the OOM killer."
    lines = [f"Nov 20 12:00:07 n1 kernel: {message}" for message in MESSAGES]
    kills = kills_of([*lines[:-1], f"Nov 20 12:00:07 n1 systemd[1]: {said}", lines[-1]])
    assert sorted(kill.cgroup for kill in kills) == [SCOPE, "other.service"]
    assert kills[0].report is not None
    assert kills[1].report is not None
    assert len(kills[0].report.victims + kills[1].report.victims) == 1

"""Kills in words: the table, the evidence of each one, why this process, and the same for programs."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from kubectl_qos.edit.status import LOW_POD_LIMIT
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.present.format import NONE, UNKNOWN, age, count, escape, first_few, in_mi
from kubectl_qos.present.output import BYTES, NUMBER, Column, cell_table, column, largest_first
from kubectl_qos.qos.kills.analyze import Kill
from kubectl_qos.qos.kills.evidence import WAITING, Evidence, Fact, Need
from kubectl_qos.qos.kills.report import Constraint, OomReport, ScoredTask, Unranked, VictimChoice
from kubectl_qos.qos.oom_score import Kernel
from kubectl_qos.qos.reason import Mechanism

_WIDTH: Final = 110
_LEAST_WIDTH: Final = 20
_RUNNERS_UP: Final = 5
LATER: Final = (
    "New kills appear here: containers that end as OOMKilled or by SIGKILL, evicted and preempted pods."
    " Kernel logs also show single processes: kubectl qos kills --kernel-log NODE=FILE"
)


def nothing_sentence(namespace: str | None, pods: Collection[str] = ()) -> str:
    """That there are none, of these pods or of all."""
    of = f" of {first_few(sorted(pods))}" if pods else ""
    where = f" in {escape(namespace)} namespace." if namespace else ""
    return f"No kills{of} found that memory may explain{where}"


def detail_lines(kill: Kill, width: int = _WIDTH) -> Iterator[str]:
    """One kill: the diagnosis, its evidence, and why this process; only sentences are wrapped at `width`."""
    yield subject(kill)
    yield ""
    diagnosis = kill.diagnosis
    yield f"{diagnosis.confidence.value}: {MECHANISMS[diagnosis.mechanism]}, {when(kill)}"
    yield from _wrapped(map(evidence_sentence, diagnosis.evidence), width)
    if diagnosis.needs is not None:
        yield ""
        yield from _wrapped([f"to be certain: {need_sentence(diagnosis.needs, kill.node)}"], width)
    if kill.report is not None:
        yield ""
        yield "why this process"
        yield from _wrapped(victim_sentences(kill.report), width)
        yield from (f"  {text}" for text in choice_sentences(kill))
        cells, rest = candidates(kill)
        for line in cell_table(cells, TASK_HEADERS, right=RIGHT) if cells else ():
            yield f"    {line}"
        if rest > 0:
            yield f"    and {rest} more"


def _wrapped(texts: Iterable[str], width: int) -> Iterator[str]:
    for text in texts:
        yield from textwrap.wrap(
            text,
            max(width, _LEAST_WIDTH),
            initial_indent="  ",
            subsequent_indent="    ",
            break_on_hyphens=False,
            break_long_words=False,
        )


def when(kill: Kill) -> str:
    """Its time, as far as it is known."""
    if not kill.time:
        return "at an unknown time"
    return f"{'about ' if kill.time_is_estimated else ''}{escape(kill.time)}"


def subject(kill: Kill) -> str:
    """What died: `pod shop/web-0, container app on worker-2`."""
    node = f" on {escape(kill.node)}" if kill.node else ""
    short_id = f"{escape(kill.container_id[:12])}…"
    if kill.pod:
        container = f", container {escape(kill.container)}" if kill.container else ""
        if not kill.container and kill.container_id:
            container = f", earlier container {short_id}"
        namespace = f"{escape(kill.namespace)}/" if kill.namespace else ""
        return f"pod {namespace}{escape(kill.pod)}{container}{node}"
    if kill.pod_uid:
        container = f", container {short_id}" if kill.container_id else ""
        return f"a deleted pod, uid {escape(kill.pod_uid)}{container}{node}"
    if not kill.cgroup:
        return f"a process of an unknown cgroup{node}"
    return f"a process outside pods, in {escape(kill.cgroup)}{node}"


MECHANISMS: Final = {
    Mechanism.CONTAINER_LIMIT: "killed by the kernel at the container's memory limit",
    Mechanism.POD_LIMIT: "killed by the kernel at the pod's memory limit",
    Mechanism.KUBEPODS_LIMIT: "killed by the kernel at the memory limit of all pods, or of those of a class",
    Mechanism.NODE: "killed by the kernel because the node ran out of memory",
    Mechanism.MEMORY_NODES: "killed by the kernel because NUMA nodes of a cpuset or memory policy ran out",
    Mechanism.EVICTION: "evicted by the kubelet under memory pressure; no OOM",
    Mechanism.PREEMPTION: "ended by the kubelet for a critical pod, by requests and not by usage; no OOM",
    Mechanism.SHUTDOWN: "ended by the kubelet as its node shut down; not for memory",
    Mechanism.SIGKILL: "SIGKILL from elsewhere: no sign that it was for memory",
    Mechanism.CGROUP_LIMIT: "killed by the kernel at the memory limit of a cgroup that belongs to no pod",
    Mechanism.UNKNOWN: "killed; the limit and the sender are unknown",
}


def need_sentence(need: Need, node: str) -> str:
    """What would make a diagnosis certain."""
    of = escape(node) or "the node"
    log = f"kubectl qos kills --kernel-log {escape(node) + '=' if node else ''}FILE"
    if need is Need.WALL_CLOCK:
        return f"a kernel log of {of} with times of day and a zone (journalctl -k -o short-iso): {log}"
    if need is Need.LOG_OF_THAT_TIME:
        return f"a kernel log of {of} that goes back to that time, with times of day and a zone: {log}"
    return f"the kernel log of {of}: {log}"


def evidence_sentence(evidence: Evidence) -> str:
    """A fact in words."""
    words = _FACTS[evidence.fact]
    return words if isinstance(words, str) else words(evidence.details)


Details = Mapping[str, Any]


def _ended(details: Details) -> str:
    subject = "it" if details["state"] == "state" else "its previous run"
    reason = escape(str(details["reason"])) or "no reason"
    if details["state"] == WAITING:
        return f"it could not be started: {reason}"
    return f"{subject} ended with exit code {details['exit_code']} and {reason}"


def _quoted(what: str) -> Callable[[Details], str]:
    def sentence(details: Details) -> str:
        message = _one_line(details["message"])
        return f"{what} {escape(str(details['reason']))}" + (f": {message}" if message else "")

    return sentence


def _event(details: Details) -> str:
    reason, what = escape(str(details["reason"])), escape(str(details["object"]))
    return f"event {reason} of {what}: {_one_line(details['message'])}"


def _one_line(message: object) -> str:
    return escape(" ".join(str(message).split()))


def _kernel(details: Details) -> str:
    line = f"line {details['line']}"
    where = f"{escape(str(details['title']))} {line}" if details["title"] else line
    who = (
        f"{escape(str(details['command']))} ({details['pid']})"
        if details["pid"] is not None
        else "nothing yet"
    )
    what = escape(str(details["constraint"] or "no constraint"))
    limit = ""
    if details["memcg"]:
        size = f" of {in_mi(details['limit_bytes'])}" if details["limit_bytes"] is not None else ""
        limit = f", the limit{size} of {escape(str(details['memcg']))}"
    return f"the kernel killed {who}: {what}{limit} ({where})"


def _neighbours(details: Details) -> str:
    more = count(details["count"], "more container", "more containers")
    verb = "was" if details["count"] == 1 else "were"
    return f"within a minute {more} without a limit on the node {verb} OOMKilled"


_FACTS: Final[Mapping[Fact, str | Callable[[Details], str]]] = {
    Fact.ENDED: _ended,
    Fact.OOM_AT_START: lambda details: f"the runtime says: {escape(details['words'])}",
    Fact.OOM_KILLED: "OOMKilled: the runtime counted an OOM kill in its cgroup, at a limit or of the node",
    Fact.EXIT_IS_MADE_UP: "ContainerStatusUnknown: the kubelet lost track of it and fills in exit code 137",
    Fact.POD_ENDED: _quoted("the pod's status says"),
    Fact.DISRUPTED: _quoted("the pod's condition DisruptionTarget says"),
    Fact.EVENT: _event,
    Fact.NO_SYSTEM_OOM: "no SystemOOM event at that time: the node itself did not run out of memory",
    Fact.NO_EVENTS: "the node's events at that time are unknown: it may have run out of memory",
    Fact.BEING_DELETED: "the pod is being deleted, which ends in SIGKILL after its grace period",
    Fact.OWN_LIMIT: lambda details: f"the container's memory limit is {in_mi(details['limit_bytes'])} now",
    Fact.POD_LIMIT: lambda details: (
        f"the memory limit of its pod's cgroup is {in_mi(details['limit_bytes'])} now"
    ),
    Fact.LOW_POD_LIMIT: lambda details: LOW_POD_LIMIT.format(limit=in_mi(details["limit_bytes"])),
    Fact.SAME_LIMIT: "the pod's cgroup also has the pause container: with the same limit it is full first",
    Fact.NO_LIMIT: "neither the container nor its pod has a memory limit",
    Fact.PEAK: lambda details: (
        f"it used {in_mi(details['bytes'])} at most in the minutes before ({escape(str(details['title']))})"
    ),
    Fact.LIMIT_NOT_SEEN: "no sample shows it at the limit: memory can grow between two samples",
    Fact.NODE_PEAK: lambda details: (
        f"its node used {in_mi(details['bytes'])} of {in_mi(details['capacity_bytes'])} at most then"
    ),
    Fact.NODE_PRESSURE: "its node had MemoryPressure in the minutes before",
    Fact.OOM_EVENTS: lambda details: (
        f"cAdvisor counted {count(details['count'], 'OOM kill')} in the container"
    ),
    Fact.KERNEL: _kernel,
    Fact.GROUP: lambda details: (
        "memory.oom.group is set: all processes of"
        f" {'its container' if details['is_own'] else escape(str(details['path']))} were killed with it"
    ),
    Fact.OTHER_PROCESSES: lambda details: (
        f"before that the kernel killed other processes of it, {count(details['count'], 'time')}"
    ),
    Fact.WENT_ON: "the container kept running: only one of its processes was killed",
    Fact.KERNEL_SILENT: lambda details: (
        f"{escape(str(details['title'])) or 'the kernel log'} covers that time and has no OOM kill"
    ),
    Fact.NEIGHBOURS: _neighbours,
}


def victim_sentences(report: OomReport) -> Iterator[str]:
    """Whom the kernel killed, and what triggered that."""
    victim, invoker = report.victim, report.invoker
    if victim is not None:
        adj = f", oom_score_adj {victim.adj}" if victim.adj is not None else ""
        size = f", {in_mi(victim.rss_kb * 1024)} in memory" if victim.rss_kb is not None else ""
        uid = f", uid {victim.uid}" if victim.uid is not None else ""
        yield f"the victim was {escape(victim.comm)}, process {victim.pid}{uid}{adj}{size}"
        others = len(report.processes) - 1
        if others:
            yield f"{count(others, 'more process', 'more processes')} died with it"
    if invoker is not None and (victim is None or invoker.pid != victim.pid):
        pid = f", process {invoker.pid}," if invoker.pid is not None else ""
        yield f"{escape(invoker.comm)}{pid} triggered the OOM; this does not affect victim selection"
    if report.incomplete:
        yield "the log has only part of the kernel's report"


def candidates(kill: Kill) -> tuple[list[tuple[str, ...]], int]:
    """The cells of the victim and of those with the most points beside it, and how many more there are."""
    choice = kill.choice
    if not isinstance(choice, VictimChoice):
        return [], 0
    chosen = choice.chosen
    shown = [chosen, *choice.runners_up[:_RUNNERS_UP]]
    shown.sort(key=lambda one: (one.place, one is not chosen))
    return list(map(_task_cells, shown)), len(choice.ranked) - len(shown)


TASK_HEADERS: Final = ("PLACE", "PROCESS", "PID", "ADJ", "MEMORY_PAGES", "POINTS", "SCORE")
RIGHT: Final = frozenset(TASK_HEADERS) - {"PROCESS"}


def _task_cells(one: ScoredTask) -> tuple[str, ...]:
    task = one.task
    numbers = (task.pid, task.adj, one.used_pages, one.points)
    score = UNKNOWN if one.score is None else str(one.score)
    return (str(one.place), escape(task.name) or NONE, *map(str, numbers), score)


def choice_sentences(kill: Kill) -> Iterator[str]:
    """Why this process and no other, by the kernel's report."""
    choice = kill.choice
    if isinstance(choice, Unranked):
        yield f"the other candidates are unknown: {choice.value}"
    if not isinstance(choice, VictimChoice):
        return
    chosen, candidates = choice.chosen, len(choice.ranked)
    share = choice.total_pages // 1000
    yield (
        f"points = pages in memory, in swap and of page tables + oom_score_adj × {share}, a thousandth of"
        f" {in_mi(choice.total_pages * choice.page_bytes)}"
    )
    if candidates == 1:
        yield "there was no other candidate"
    elif chosen.place == 1 and choice.tied:
        yield f"{len(choice.tied)} more had as many points: the kernel picks the last one that it visits"
    elif chosen.place == 1:
        yield f"it had the most points of {candidates} processes"
    else:
        yield (
            f"it is number {chosen.place} of {candidates} by these numbers: those before it were dying"
            " already or could not be killed, or memory changed during the search"
        )
    if choice.immune:
        yield f"{choice.immune} with oom_score_adj -1000 are never killed"
    if choice.child:
        yield "up to kernel 5.0 a child may be killed in place of the process with the most points, as here"
    if choice.kernel in {Kernel.MINUS_30, Kernel.MINUS_3_PERCENT}:
        yield "kernels before 4.17 also favour processes with CAP_SYS_ADMIN, which no log shows"
    if choice.swap_is_assumed and kill.report is not None and kill.report.constraint is Constraint.MEMCG:
        yield "the machine's swap is not in the log and assumed to be none"


_NARROW: Final = frozenset({"time", "namespace", "pod", "container", "by", "sure", "score", "freed", "node"})


def columns(*, wide: bool) -> tuple[Column[Kill], ...]:
    """The columns of the table; `wide` are all of them."""
    return tuple(one for one in _COLUMNS if wide or one.key in _NARROW)


def aged_columns() -> tuple[Column[Kill], ...]:
    """The columns of a screen, with ages: the time is in the evidence."""

    def ago(kill: Kill, now: datetime) -> str:
        return f"{'~' if kill.time_is_estimated else ''}{age(kill.time, now)}" if kill.time else UNKNOWN

    return tuple(
        replace(one, header="AGE", width=0, cell=ago) if one.key == "time" else one for one in _COLUMNS
    )


def _time_text(kill: Kill) -> str:
    return f"{'~' if kill.time_is_estimated else ''}{escape(kill.time)}" if kill.time else UNKNOWN


def _newest_first(kill: Kill) -> float:
    when = parse_time(kill.time)
    return largest_first(when.timestamp() if when is not None else None)


def _pod_text(kill: Kill) -> str:
    if kill.pod:
        return escape(kill.pod)
    if kill.pod_uid:
        return f"uid:{escape(kill.pod_uid)}"
    return NONE if kill.cgroup else UNKNOWN


def _container_text(kill: Kill) -> str:
    if kill.container:
        return escape(kill.container)
    is_whole_pod = kill.report is None
    return UNKNOWN if kill.container_id or not (kill.cgroup or is_whole_pod) else NONE


def _victim_text(kill: Kill) -> str:
    victim = kill.report.victim if kill.report is not None else None
    return escape(f"{victim.comm}/{victim.pid}") if victim is not None else UNKNOWN


def _place_text(kill: Kill) -> str:
    choice = kill.choice
    if not isinstance(choice, VictimChoice):
        return UNKNOWN
    return f"{choice.chosen.place}{'=' if choice.tied else ''} of {len(choice.ranked)}"


_COLUMNS: Final[tuple[Column[Kill], ...]] = (
    column("time", lambda kill: kill.time or None, "when", width=20, cell=_time_text, sort_key=_newest_first),
    column("namespace", lambda kill: kill.namespace or None, "the pod's namespace", width=12),
    column("pod", lambda kill: kill.pod or None, "the pod", width=24, cell=_pod_text, sort_key=_pod_text),
    column(
        "container",
        lambda kill: kill.container or None,
        "the container",
        width=10,
        cell=_container_text,
        sort_key=_container_text,
    ),
    column("by", lambda kill: kill.diagnosis.mechanism.value, "the mechanism", width=18),
    column("sure", lambda kill: kill.diagnosis.confidence.value, "certain, likely or possible", width=8),
    column("score", lambda kill: kill.score, "its oom_score then", NUMBER),
    column("freed", lambda kill: kill.freed_bytes, "memory of the killed processes", BYTES, width=6),
    column("node", lambda kill: kill.node or None, "the node", width=10, empty=UNKNOWN),
    column("exit", lambda kill: kill.exit_code, "the exit code", NUMBER, empty=NONE),
    column("reason", lambda kill: kill.reason or None, "the status' reason", width=10),
    column(
        "victim",
        lambda kill: kill.report.victim.pid if kill.report is not None and kill.report.victim else None,
        "the process that the kernel chose",
        width=14,
        cell=_victim_text,
        sort_key=_victim_text,
    ),
    column(
        "place",
        lambda kill: kill.choice.chosen.place if isinstance(kill.choice, VictimChoice) else None,
        "its place by the kernel's points; = is shared",
        width=8,
        cell=_place_text,
        sort_key=_place_text,
    ),
)

"""The sentences about kills: each fact, each verdict, what would make it certain, and why this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kubectl_qos.present.format import binary, escape
from kubectl_qos.present.output import lines
from kubectl_qos.present.pod_columns import Align
from kubectl_qos.qos.kills.analyze import Kill
from kubectl_qos.qos.kills.evidence import Diagnosis, Evidence, Fact, Need
from kubectl_qos.qos.kills.report import Constraint, ScoredTask, Unranked, VictimChoice
from kubectl_qos.qos.oom_score import Kernel
from kubectl_qos.qos.reason import Mechanism

RUNNERS_UP: Final = 5

_MECHANISMS: Final = {
    Mechanism.CONTAINER_LIMIT: "killed by the kernel at the container's own memory limit",
    Mechanism.POD_LIMIT: "killed by the kernel at the memory limit of the pod",
    Mechanism.KUBEPODS_LIMIT: (
        "killed by the kernel at the memory limit of all pods of the node, or of a class"
    ),
    Mechanism.NODE: "killed by the kernel because the node ran out of memory",
    Mechanism.EVICTION: "evicted by the kubelet, which was short of memory on the node; no OOM",
    Mechanism.PREEMPTION: (
        "ended by the kubelet to make room for a critical pod: by requests, not by use; no OOM"
    ),
    Mechanism.SIGKILL: "killed by somebody else: nothing says that it was for memory",
    Mechanism.CGROUP_LIMIT: "killed by the kernel at the memory limit of a cgroup that is no pod's",
    Mechanism.UNKNOWN: "killed, and what is known does not say at which limit, or by whom",
}


def diagnosis_sentence(diagnosis: Diagnosis) -> str:
    """The mechanism and how sure it is."""
    return f"{diagnosis.confidence.value}: {_MECHANISMS[diagnosis.mechanism]}"


def need_sentence(need: Need, node: str) -> str:
    """What to do to know for certain."""
    of = escape(node) or "the node"
    log = f"kubectl qos kills --kernel-log {escape(node) + '=' if node else ''}FILE"
    if need is Need.WALL_CLOCK:
        return f"a kernel log of {of} with times of day and a zone (journalctl -k -o short-iso): {log}"
    if need is Need.LOG_OF_THAT_TIME:
        return f"a kernel log of {of} that goes back to that time, with times of day and a zone: {log}"
    return f"the kernel log of {of}: {log}"


def evidence_sentence(evidence: Evidence) -> str:
    """A piece of evidence."""
    return _FACTS[evidence.fact](evidence.details)


def victim_sentence(kill: Kill) -> Iterator[str]:
    """Which process, and who asked for memory."""
    report = kill.report
    if report is None:
        return
    victim, invoker = report.victim, report.invoker
    if victim is not None:
        adj = f", oom_score_adj {victim.adj}" if victim.adj is not None else ""
        size = f", {binary(victim.rss_kb * 1024)} in memory" if victim.rss_kb is not None else ""
        uid = f", uid {victim.uid}" if victim.uid is not None else ""
        yield f"the victim was {escape(victim.comm)}, process {victim.pid}{uid}{adj}{size}"
        others = len(report.processes) - 1
        if others:
            yield f"with it {others} more {'process' if others == 1 else 'processes'} died"
    if invoker is not None and (victim is None or invoker.pid != victim.pid):
        pid = f", process {invoker.pid}," if invoker.pid is not None else ""
        yield f"{escape(invoker.comm)}{pid} asked for the memory that there was not; that does not count"
    if report.incomplete:
        yield "the log has only a part of the kernel's report"


def choice_lines(kill: Kill) -> Iterator[str]:
    """The victim's place and the runners-up, by the kernel's own numbers."""
    choice = kill.choice
    if isinstance(choice, Unranked):
        yield f"  who else could have been killed is not known: {choice.value}"
    if not isinstance(choice, VictimChoice):
        return
    for text in _choice_sentences(kill, choice):
        yield f"  {text}"
    chosen = choice.chosen
    shown = [chosen, *choice.runners_up[:RUNNERS_UP]]
    shown.sort(key=lambda one: (one.place, one is not chosen))
    for line in lines(map(_row, shown), _ALIGNS, _TITLES):
        yield f"    {line}"
    rest = len(choice.ranked) - len(shown)
    if rest > 0:
        yield f"    and {rest} more"


_TITLES: Final = ("PLACE", "PROCESS", "PID", "ADJ", "MEMORY_PAGES", "POINTS", "SCORE")
_ALIGNS: Final = (Align.RIGHT, Align.LEFT, *[Align.RIGHT] * 5)


def _row(one: ScoredTask) -> tuple[str, ...]:
    score = str(one.score) if one.score is not None else "<unknown>"
    task = one.task
    name = escape(task.name) or "<none>"
    return (str(one.place), name, str(task.pid), str(task.adj), str(one.used_pages), str(one.points), score)


def _choice_sentences(kill: Kill, choice: VictimChoice) -> Iterator[str]:
    chosen, count = choice.chosen, len(choice.ranked)
    share = choice.total_pages // 1000
    yield (
        f"points = pages in memory, in swap and of page tables + oom_score_adj × {share},"
        f" a thousandth of {binary(choice.total_pages * choice.page_bytes)}"
    )
    if count == 1:
        yield "nobody else could have been killed there"
    elif chosen.place == 1 and choice.tied:
        yield f"{len(choice.tied)} more had as many points: the kernel takes the one that it walks over last"
    elif chosen.place == 1:
        yield f"it had the most points of {count} processes"
    else:
        yield (
            f"it was number {chosen.place} of {count} by these numbers: the kernel had passed over those"
            " before it, which were dying already or may not be killed, or memory changed while it looked"
        )
    if choice.immune:
        yield f"{choice.immune} with oom_score_adj -1000 are never killed"
    if choice.child:
        yield "up to kernel 5.0 a child may be killed in place of the process with the most points, as here"
    if choice.kernel in {Kernel.MINUS_30, Kernel.MINUS_3_PERCENT}:
        yield "kernels before 4.17 also favour processes with CAP_SYS_ADMIN, which no log shows"
    if choice.swap_is_assumed and kill.report is not None and kill.report.constraint is Constraint.MEMCG:
        yield "the machine's swap is not in the log and counted as none"


Said = Mapping[str, Any]


def _ended(said: Said) -> str:
    word = "it" if said["state"] == "state" else "before the running one, it"
    reason = escape(str(said["reason"])) or "no reason"
    return f"{word} ended with exit code {said['exit_code']} and {reason}"


def _with_message(what: str) -> Callable[[Said], str]:
    def sentence(said: Said) -> str:
        message = " ".join(str(said["message"]).split())
        return f"{what} {escape(str(said['reason']))}" + (f": {escape(message)}" if message else "")

    return sentence


def _event(said: Said) -> str:
    message = " ".join(str(said["message"]).split())
    return f"event {escape(str(said['reason']))} of {escape(str(said['object']))}: {escape(message)}"


def _kernel(said: Said) -> str:
    where = f"{escape(str(said['title']))} line {said['line']}" if said["title"] else f"line {said['line']}"
    who = f"{escape(str(said['comm']))} ({said['pid']})" if said["pid"] is not None else "nobody yet"
    what = escape(str(said["constraint"] or "no constraint"))
    limit = ""
    if said["memcg"]:
        size = f" of {binary(int(said['limit_kb']) * 1024)}" if said["limit_kb"] is not None else ""
        limit = f", the limit{size} of {escape(str(said['memcg']))}"
    return f"the kernel killed {who}: {what}{limit} ({where})"


def _group(said: Said) -> str:
    where = "its container" if said["is_own"] else escape(str(said["path"]))
    return f"memory.oom.group is set: all processes of {where} were killed with it"


def _neighbours(said: Said) -> str:
    count = said["count"]
    return (
        f"within a minute {count} more {'container' if count == 1 else 'containers'} of the node"
        f" without a limit {'was' if count == 1 else 'were'} OOMKilled"
    )


_FACTS: Final[Mapping[Fact, Callable[[Said], str]]] = {
    Fact.ENDED: _ended,
    Fact.OOM_KILLED: lambda _: (
        "OOMKilled: the runtime counted an OOM kill in its cgroup, which is so for any limit and for the node"
    ),
    Fact.EXIT_IS_MADE_UP: lambda _: (
        "ContainerStatusUnknown: its kubelet lost sight of it, and fills in exit code 137"
    ),
    Fact.POD_ENDED: _with_message("the pod's status says"),
    Fact.DISRUPTED: _with_message("the pod's condition DisruptionTarget says"),
    Fact.EVENT: _event,
    Fact.NO_SYSTEM_OOM: lambda _: (
        "no event SystemOOM of that time: the node itself did not run out of memory"
    ),
    Fact.NO_EVENTS: lambda _: "events of the node at that time are not known: it may have run out of memory",
    Fact.BEING_DELETED: lambda _: "the pod is being deleted, which ends in SIGKILL after its grace period",
    Fact.OWN_LIMIT: lambda said: f"the container's memory limit is {binary(said['bytes'])}",
    Fact.POD_LIMIT: lambda said: f"the memory limit of its pod's cgroup is {binary(said['bytes'])}",
    Fact.SAME_LIMIT: lambda _: (
        "the pod's cgroup also holds the pause container: with the same limit it runs out before that of the"
        " container"
    ),
    Fact.NO_LIMIT: lambda _: "neither the container nor its pod has a memory limit",
    Fact.KERNEL: _kernel,
    Fact.GROUP: _group,
    Fact.OTHER_PROCESSES: lambda said: (
        f"before that the kernel killed others of its processes, {said['count']} times"
    ),
    Fact.WENT_ON: lambda _: "the container itself went on: one of its processes was killed",
    Fact.KERNEL_SILENT: lambda said: (
        f"{escape(str(said['title'])) or 'the kernel log'} covers that time and has no OOM kill in it"
    ),
    Fact.NEIGHBOURS: _neighbours,
}

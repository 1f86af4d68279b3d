"""Kills in words: the evidence of each kill, and why this process was chosen."""

import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from kubectl_qos.errors import first_few
from kubectl_qos.k8s.events import Event, is_of_memory
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present.evidence import EVENT_MEANINGS, evidence_sentence
from kubectl_qos.present.format import NONE, UNKNOWN, count, escape, full_name, in_mi
from kubectl_qos.present.killers import OWN_LIMIT, WORDS, killer_name
from kubectl_qos.present.output import cell_table
from kubectl_qos.qos import oom_score
from kubectl_qos.qos.cgroup.names import CUT, class_of_path, pod_cgroup
from kubectl_qos.qos.killers import Mechanism
from kubectl_qos.qos.kills.analyze import Kill
from kubectl_qos.qos.kills.choice import (
    MemoryUser,
    Unranked,
    VictimChoice,
    first_of_table,
    inherited_adjs,
    memory_users,
)
from kubectl_qos.qos.kills.evidence import Evidence, Fact, Need
from kubectl_qos.qos.kills.report import RUNTIME_INIT, Constraint, OomReport, Outcome
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.reason import Confidence

_WIDTH: Final = 110
_LEAST_WIDTH: Final = 20
_RUNNERS_UP: Final = 5
LATER: Final = (
    "New kills appear here: containers that end as OOMKilled or by SIGKILL, evicted and preempted pods."
    " Kernel logs also show single processes: kubectl qos kills --kernel-log NODE=FILE"
)


def nothing_sentence(namespace: str | None, pods: Collection[str] = (), *, of_part: bool = False) -> str:
    """Say that nothing was killed, of these pods or at all; `of_part` if not everything could be read."""
    of = f" of {first_few(sorted(pods))}" if pods else ""
    where = f" in {escape(namespace)} namespace." if namespace else ""
    read = " in what could be read" if of_part else ""
    return f"No OOM kills or evictions{of} found{read}{where}"


def other_causes(snapshot: Snapshot, events: Iterable[Event], before: Kill | None = None) -> Iterator[str]:
    """Yield the last earlier kill, pods removed for other reasons, and where kills on short nodes show."""
    if before is not None:
        yield f"the last before that: {subject(before)}, {when(before)}"
    removed: dict[str, list[str]] = {}
    for event in events:
        if event.reason in _REMOVALS and not event.is_of_node:
            involved = event.involved_object
            removed.setdefault(event.reason, []).append(full_name(involved.namespace, involved.name))
    for reason, names in removed.items():
        yield f"{first_few(list(dict.fromkeys(names)))}: {EVENT_MEANINGS[reason]} ({reason})"
    short = {
        name
        for name, node in snapshot.nodes.items()
        if any(condition.is_memory_pressure for condition in node.status.conditions or ())
    }
    events = [event for event in events if event.reason in _SHORT and is_of_memory(event)]
    is_short = bool(short or events)
    short = (short | {event.involved_object.name for event in events}) - {"", UNKNOWN}
    if is_short:
        where = first_few(sorted(map(escape, short))) if short else "the node"
        none = "no kill since then" if before is not None else "no kill in it"
        yield (
            f"memory is short on {where}, but what was read has {none}:"
            " evictions are in kubectl get pods,events -A -o json, OOM kills in the node's kernel log"
            " (--kernel-log NODE=FILE)"
        )


_REMOVALS: Final = frozenset({"EvictedByVPA", "TaintManagerEviction"})
_SHORT: Final = frozenset({"EvictionThresholdMet", "NodeHasInsufficientMemory"})


def detail_lines(kill: Kill, width: int = _WIDTH) -> Iterator[str]:
    """Yield the diagnosis of a kill, its evidence, and why this process was killed, wrapped at `width`."""
    yield subject(kill)
    yield ""
    diagnosis = kill.diagnosis
    yield f"{diagnosis.confidence.value}: {mechanism_sentence(kill)}, {when(kill)}"
    yield from _wrapped(map(evidence_sentence, diagnosis.evidence), width)
    if diagnosis.needs is not None:
        yield ""
        for_what = "to identify its pod" if diagnosis.confidence is Confidence.CERTAIN else "to be certain"
        yield from _wrapped([f"{for_what}: {need_sentence(diagnosis.needs, kill.node)}"], width)
    if kill.report is not None and (sentences := [*victim_sentences(kill.report), *choice_sentences(kill)]):
        yield ""
        yield "why this process"
        yield from _wrapped(sentences, width)
        cells, rest = candidates(kill)
        for line in cell_table(cells, TASK_HEADERS, right=RIGHT):
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


def by_text(kill: Kill) -> str:
    """Return the killer as lists of next deaths name it; daemons without their assumed trigger."""
    killer, mechanism = kill.diagnosis.killer, kill.diagnosis.mechanism
    is_daemon = killer is not None and killer.is_daemon
    return mechanism.value if is_daemon else killer_name(mechanism, is_own=kill.is_own)


def death_line(kill: Kill) -> str:
    """Return a death in one line: `12:00:41 data/importer-0:c killed by the kernel …`."""
    return f"{_time_and_name(kill)} {mechanism_sentence(kill).partition(' (')[0]}"


def deaths_line(kills: Sequence[Kill]) -> str:
    """Return deaths in short: `12:00:41 data/importer-0:c own limit`, or `2 deaths: api-1 own limit, …`."""
    if len(kills) == 1:
        return f"{_time_and_name(kills[0])} {by_text(kills[0])}"
    names = dict.fromkeys(f"{escape(kill.pod) or _process(kill)} {by_text(kill)}" for kill in kills)
    return f"{count(len(kills), 'death')}: {first_few(list(names))}"


def _time_and_name(kill: Kill) -> str:
    time = parse_time(kill.time)
    who = full_name(kill.namespace, kill.pod, kill.container) if kill.pod else _process(kill)
    return f"{time:%H:%M:%S} {who}" if time is not None else who


def _process(kill: Kill) -> str:
    victim = kill.report.victim if kill.report is not None else None
    if victim is None or not victim.comm:
        return subject(kill)
    return f"{escape(victim.comm)} (a process of {escape(kill.node) or 'the node'})"


def when(kill: Kill) -> str:
    """Return the time of a kill, as far as it is known."""
    if not kill.time:
        return "at an unknown time"
    if kill.report is not None and kill.report.year_is_guessed and kill.time_is_estimated:
        return f"{escape(kill.time)} (the log has no year: {kill.time[:4]} is a guess)"
    return f"{'about ' if kill.time_is_estimated else ''}{escape(kill.time)}"


def subject(kill: Kill) -> str:
    """Return what died: `pod shop/web-0, container app on worker-2`."""
    node = f" on {escape(kill.node)}" if kill.node not in {"", UNKNOWN} else ""
    short_id = f"{escape(kill.container_id[:12])}…"
    if kill.pod:
        container = f", container {escape(kill.container)}" if kill.container not in {"", UNKNOWN} else ""
        if not kill.container and kill.container_id:
            container = f", earlier container {short_id}"
        namespace = f"{escape(kill.namespace)}/" if kill.namespace else ""
        pod = f"pod {namespace}{escape(kill.pod)}" if kill.pod != UNKNOWN else "a pod without its name"
        return f"{pod}{container}{node}"
    if kill.pod_uid:
        container = f", container {short_id}" if kill.container_id else ""
        listed = " that is not in the list" if kill.is_unlisted else ""
        return f"a pod{listed}, uid {escape(kill.pod_uid)}{container}{node}"
    if kill.diagnosis.mechanism is Mechanism.PANIC:
        return f"the whole machine{node}"
    qos = class_of_path(kill.cgroup or (kill.report.oom_memcg if kill.report is not None else ""))
    if qos is not None:
        container = f", container {short_id}" if kill.container_id else ""
        return f"a {qos.value} pod (the log has only part of its uid){container}{node}"
    if kill.container_id:
        return f"container {short_id}{node}, whose pod the log does not name"
    if is_outside_pods(kill):
        return f"a process outside pods, in {escape(kill.cgroup)}{node}"
    return f"a process in an unknown cgroup{node}"


def is_outside_pods(kill: Kill) -> bool:
    """Return whether the cgroup is known and belongs to no pod; a truncated path may belong to one."""
    is_known = bool(kill.cgroup) and not (kill.cgroup.endswith(CUT) or kill.cgroup.startswith((".", CUT)))
    return is_known and not (kill.pod_uid or kill.container_id) and class_of_path(kill.cgroup) is None


def mechanism_sentence(kill: Kill) -> str:
    """Say what killed, and which limit was reached if it was not that for memory."""
    mechanism, killer, report = kill.diagnosis.mechanism, kill.diagnosis.killer, kill.report
    text = WORDS[mechanism].killed
    facts = {evidence.fact for evidence in kill.diagnosis.evidence}
    excess = (fact.details for fact in kill.diagnosis.evidence if fact.fact is Fact.EXCESS)
    resource = next((escape(details["resource"]) for details in excess), "")
    # What applies, the words that it replaces, and its own.
    replacements = [
        (kill.is_own, " the pod limit (", f" its {OWN_LIMIT} ("),
        (Fact.NO_LIMIT in facts, "at a limit or", "at the limit of all pods or"),
        (
            Fact.NOT_COUNTED in facts,
            "for an unknown reason",
            "for an unknown reason (no OOM kill was counted)",
        ),
        (report is None or not report.line, _OF_LOG, "the event does not say which"),
        (bool(resource), ", not for memory", f" for {resource}, not for memory"),
        (any(map(_is_stop, kill.diagnosis.evidence)), "elsewhere", "its kubelet, which was stopping it"),
    ]
    if report is not None:
        full, qos = report.memory.full or ("memory",), class_of_path(report.oom_memcg)
        is_manual = report.outcome is Outcome.PANIC and bool(report.is_manual)
        is_of_guest = mechanism is Mechanism.CGROUP_LIMIT and report.constraint is Constraint.NONE
        is_inside = mechanism is Mechanism.CGROUP_LIMIT and pod_cgroup(report.oom_memcg) is not None
        of_pods = f"of all {qos.value} pods together" if qos else "of all pods"
        replacements += [
            (full[0] != "memory", "memory limit", f"limit of {full[0]}"),
            (report.outcome is Outcome.NOBODY, "killed by the kernel", _NOBODY),
            (report.outcome is Outcome.UNKNOWN, "killed by the kernel", _NO_OUTCOME),
            (is_manual, "as memory ran out", "on request (SysRq f)"),
            (report.oom_memcg not in {"", "/"}, "the node ran out", "the cgroup around all pods ran out"),
            (is_of_guest, text, _BY_GUEST),
            (is_inside, "that belongs to no pod", "inside its container, as of docker or systemd in it"),
            (bool(report.oom_memcg), _OF_ANY_PODS, of_pods),
        ]
    for applies, old, new in replacements:
        text = text.replace(old, new) if applies else text
    if report is not None and killer is not None and killer.has_ranks:
        if report.is_manual is None and report.line:
            text += " (or SysRq f: the beginning of the report is missing)"
        if report.is_by_page_fault:
            text += " (or at a limit of kernel memory, where a page fault failed: gfp_mask is 0)"
    return text


def _is_stop(evidence: Evidence) -> bool:
    stops = {Fact.DISRUPTED, Fact.BEING_DELETED, Fact.POD_ENDED}
    return evidence.fact in stops or evidence.details.get("reason") == "Killing"


_SHARED: Final = (
    "is free once the last process that maps it ends, unless a file in such a place holds it: PostgreSQL's"
    " buffers, for example, count in each of its processes"
)
_NOBODY: Final = "nothing was killed, as no process may be,"
_NO_OUTCOME: Final = "an OOM report without its outcome (killed or not is not in the log),"
_BY_GUEST: Final = (
    "killed by the kernel of its pod's virtual machine (Kata), which ran out of memory: it has the sum of its"
    " containers' limits, and Kata's default_memory"
)
_OF_ANY_PODS: Final = "of all pods, or of those of a class"
_OF_LOG: Final = "the log does not say which (the line that names it is missing or cut)"


def need_sentence(need: Need, node: str) -> str:
    """Say what would make a diagnosis certain."""
    is_named = node not in {"", UNKNOWN}
    of = escape(node) if is_named else "the node"
    log = f"kubectl qos kills --kernel-log {f'{escape(node)}=' if is_named else ''}FILE"
    if need is Need.WALL_CLOCK:
        return f"a kernel log of {of} with times of day and a zone (journalctl -k -o short-iso): {log}"
    if need is Need.LOG_OF_THAT_TIME:
        return f"a kernel log of {of} that goes back to that time, with times of day and a zone: {log}"
    return f"the kernel log of {of}: {log}"


def victim_sentences(report: OomReport) -> Iterator[str]:
    """Yield which process the kernel killed, and which process triggered the OOM."""
    victim, named, invoker = report.dead, report.victim, report.invoker
    if victim is not None and named is not None:
        row, page = report.row(victim), report.page_bytes
        in_table = row.rss * page if row is not None else None
        size = in_table if victim.rss_kb is None else victim.rss_kb << 10
        adj = victim.adj if victim.adj is not None or row is None else row.adj
        who = "the kernel chose" if victim.is_only_chosen else "the victim was"
        parts = [f"{who} {escape(victim.comm)}, process {victim.pid}"]
        parts += [f"uid {victim.uid}"] if victim.uid is not None else []
        parts += [f"oom_score_adj {adj}"] if adj is not None else []
        parts += [f"{in_mi(size)} in memory"] if size is not None else []
        parts += [f"{in_mi(row.swapents * page)} in swap"] if row is not None and row.swapents else []
        yield ", ".join(parts)
        if named.pid != victim.pid:
            yield f"the kernel names its thread {escape(named.comm)} ({named.pid})"
        elif report.chosen not in {None, victim.pid, *(task.pid for task in report.tasks)}:
            yield f"the kernel chose process {report.chosen}: a parent of this one, or one of its threads"
        if victim.is_only_chosen:
            yield "up to kernel 5.0 one of its children may have been killed instead: the log lacks that line"
        yield from _explain_name(victim.comm, is_of_sandbox=report.is_of_sandbox)
        inherited = ", ".join(map(str, inherited_adjs(report)))
        if inherited:
            yield f"it set its own oom_score_adj of {adj}: the others have {inherited} from the kubelet"
        others = len(report.processes) - 1
        if others:
            yield f"{count(others, 'more process', 'more processes')} died with it"
    if report.ended_unit:
        yield f"systemd then ended all of {escape(report.ended_unit)}: OOMPolicy=continue prevents that"
    if invoker is not None and not report.is_manual and (victim is None or invoker.pid != victim.pid):
        pid = f", process {invoker.pid}," if invoker.pid is not None else ""
        yield f"{escape(invoker.comm)}{pid} triggered the OOM; this does not affect victim selection"
    if report.incomplete and report.daemon is None:
        yield "the log has only part of the kernel's report: journalctl -k on the node has the rest"


def _explain_name(name: str, *, is_of_sandbox: bool) -> Iterator[str]:
    if is_of_sandbox:
        yield (
            "pause is the pod's sandbox container and holds hardly any memory; if it ends, the whole pod ends"
        )
    if RUNTIME_INIT.match(name) is not None:
        yield (
            f"{escape(name)} is the container runtime, starting a container, which then does not start, or a"
            " command in one (exec, probe)"
        )


def candidates(kill: Kill) -> tuple[list[tuple[str, ...]], int]:
    """Return the cells of the victim and its closest candidates, and how many more there are."""
    choice = kill.choice
    if not isinstance(choice, VictimChoice):
        return [], 0
    chosen = choice.chosen
    shown = [chosen, *choice.runners_up[:_RUNNERS_UP]]
    shown.sort(key=lambda task: (task.place, task is not chosen))
    cells = []
    for scored in shown:
        task = scored.task
        numbers = (scored.place, task.pid, task.adj, scored.used_pages, scored.points, scored.score)
        place, *others = (UNKNOWN if number is None else str(number) for number in numbers)
        cells.append((place, escape(task.name) or NONE, *others))
    return cells, len(choice.ranked) - len(shown)


TASK_HEADERS: Final = ("PLACE", "PROCESS", "PID", "OOM_ADJ", "MEMORY_PAGES", "POINTS", "OOM_SCORE")
RIGHT: Final = frozenset(TASK_HEADERS) - {"PROCESS"}


def choice_sentences(kill: Kill) -> Iterator[str]:
    """Yield why this process was chosen, and who used the memory, from the kernel's report."""
    choice, report = kill.choice, kill.report
    if report is None or report.daemon is not None:
        return
    users, is_node = memory_users(report), report.constraint is Constraint.NONE
    if isinstance(choice, VictimChoice):
        yield from _immune_user(choice, users, is_node=is_node)
        yield from _ranking(choice)
    elif choice in {Unranked.ALLOCATING, Unranked.SWAPOFF}:
        yield f"the other candidates did not matter: {choice.value}"
    elif report.outcome in {Outcome.KILLED, Outcome.UNKNOWN}:
        yield from _without_ranking(kill, report)
    if report.constraint in {Constraint.CPUSET, Constraint.MEMORY_POLICY}:
        yield (
            "only processes that may use these NUMA nodes are candidates, but their memory on all nodes"
            " counts: a victim may free nothing there. Allow more nodes, or need less memory on these"
        )
    yield from _swap_and_shares(report)
    if len(users) < 2:
        return
    largest = []
    for user in users[:_USERS]:
        place = ", outside pods" if is_node and not user.is_in_pod else ""
        largest.append(f"{escape(user.name)} ({user.pid}{place}) {in_mi(user.rss_bytes)}")
    rows = "" if report.is_table_whole else " of the rows that the log has"
    yield f"most resident memory{rows}: {', '.join(largest)}"
    if is_node and report.is_table_whole and any(task.adj == oom_score.SANDBOX_ADJ for task in report.tasks):
        of_pods = in_mi(sum(user.rss_bytes for user in users if user.is_in_pod))
        total = in_mi(sum(user.rss_bytes for user in users))
        yield f"by oom_score_adj, pods had {of_pods} of {total} of the memory of processes"


def _without_ranking(kill: Kill, report: OomReport) -> Iterator[str]:
    """Say what the log shows of the victim and the candidates if it cannot rank them."""
    choice, is_killed = kill.choice, report.outcome is Outcome.KILLED
    yield from _reason_by_adj(report, is_outside=is_outside_pods(kill))
    first = first_of_table(report) if choice is Unranked.NO_VICTIM else None
    if first is not None:
        shown = count(len(report.tasks), "process", "processes")
        most = f"of the {shown} that the log shows {escape(first.name)} ({first.pid}) has the most points"
        yield f"{most}: if no row is missing, it was the victim{'' if is_killed else ', if any was'}"
    elif isinstance(choice, Unranked) and is_killed:
        yield f"the other candidates are unknown: {choice.value}"


def _immune_user(choice: VictimChoice, users: Iterable[MemoryUser], *, is_node: bool) -> Iterator[str]:
    used = choice.chosen.used_pages * choice.page_bytes
    for user in users:
        if user.oom_score_adj == oom_score.OOM_SCORE_ADJ_MIN and user.rss_bytes > used:
            place = ", outside pods," if is_node and not user.is_in_pod else ""
            yield (
                f"{escape(user.name)} ({user.pid}){place} held {in_mi(user.rss_bytes)} and has oom_score_adj"
                f" {oom_score.OOM_SCORE_ADJ_MIN}: the kernel may not kill it"
            )
            return


def largest_user(kill: Kill) -> MemoryUser | None:
    """Return the process with the most resident memory when the node was full; None if unknown."""
    report = kill.report
    if report is None or report.daemon is not None or not report.is_table_whole:
        return None
    return next(iter(memory_users(report)), None) if report.constraint is Constraint.NONE else None


def _ranking(choice: VictimChoice) -> Iterator[str]:
    chosen, candidates, total = choice.chosen, len(choice.ranked), choice.total_pages
    shown = "" if choice.is_whole else " that the log shows"
    if total is not None:
        yield (
            f"points = pages in memory, in swap and of page tables + oom_score_adj × {total // 1000}, a"
            f" thousandth of {in_mi(total * choice.page_bytes)}"
        )
    if candidates == 1:
        yield f"there was no other candidate{shown}"
    elif chosen.place == 1 and choice.tied:
        yield from _tie(choice)
    elif chosen.place == 1:
        who = f"its parent {escape(chosen.task.name)} ({chosen.task.pid})" if choice.child else "it"
        most = f"{who} had the most points of {candidates} processes"
        if not choice.is_whole:
            than = f" than {who}" if choice.child else ""
            most = f"none of the {candidates} processes{shown} has more points{than}"
        yield f"{most}, whatever the limit was (the log does not say)" if total is None else most
        yield _reason(choice)
    else:
        yield (
            f"by these numbers it is number {chosen.place} of {candidates}{shown}: the ones before it were"
            " dying already or could not be killed, or memory changed during the search"
        )
    if choice.immune:
        yield f"{choice.immune} with oom_score_adj -1000 are never killed"
    if choice.child:
        yield "up to kernel 5.0 the kernel may kill a child instead of the chosen process, as here"
    if choice.kernel in {oom_score.Kernel.MINUS_30, oom_score.Kernel.MINUS_3_PERCENT}:
        yield "kernels before 4.17 also favour processes with CAP_SYS_ADMIN, which no log shows"
    if choice.swap_is_assumed:
        yield "the log does not say how much swap the machine has: only swap in use counts here"


def _tie(choice: VictimChoice) -> Iterator[str]:
    if choice.kernel is not oom_score.Kernel.SIGNED and choice.chosen.points == 1:
        task = max(choice.ranked, key=lambda scored: scored.used_pages).task
        yield (
            "kernels before 5.9 (9066e5cfb73c) count all scores below 1 as 1, so memory did not matter: newer"
            f" ones choose {escape(task.name)} ({task.pid})"
        )
    is_all = len(choice.equals) == len(choice.ranked)
    which = f"all {len(choice.ranked)} have" if is_all else f"{len(choice.tied)} more had"
    how = "the kernel picks the last that it visits, before 5.3 the first"
    if choice.chosen is choice.equals[0]:
        how = "the first of them was killed, as by kernels before 5.3"
    elif choice.chosen is choice.equals[-1]:
        how = "the last of them was killed, as by kernels since 5.3"
    yield f"{which} the same points: {how}"


def _reason(choice: VictimChoice) -> str:
    """Say what gave the process the most points: its memory, or its oom_score_adj."""
    task, page = choice.chosen.task, choice.page_bytes
    used = in_mi(choice.chosen.used_pages * page)
    its, it = ("the parent's", "the parent") if choice.child else ("its", "it")
    swapped = ", swap included" if any(scored.task.swapents for scored in choice.ranked) else ""
    largest = max(choice.runners_up, key=lambda scored: scored.used_pages)
    other = f"{escape(largest.task.name)} ({largest.task.pid})"
    if largest.used_pages <= choice.chosen.used_pages:
        second = f"the next is {other} with {in_mi(largest.used_pages * page)}"
        most = f"of those that the kernel may kill, {it}" if choice.immune else it
        return f"{most} used the most memory, {used}{swapped}; {second}"
    larger = f"{other} has {in_mi(largest.used_pages * page)}, but oom_score_adj {largest.task.adj}"
    if task.adj <= 0:
        return f"{its} oom_score_adj of {task.adj} decided, not its {used}: {larger}"
    total, share = choice.total_pages, task.adj / 10
    size = f", {in_mi(task.adj * total // 1000 * page)}" if total is not None else ""
    what = f"{its} oom_score_adj of {task.adj} counts as {share:g} % of the memory that ran out{size}"
    rival = choice.runners_up[0]
    if rival.task.adj >= task.adj:
        less = f"{escape(rival.task.name)} ({rival.task.pid}) had oom_score_adj {rival.task.adj}"
        decided = f"its {used} decided: {less} and {in_mi(rival.used_pages * page)}"
        return f"{what}, and {decided}; {larger}"
    is_enough = task.adj * (total or 0) // 1000 >= (rival.points or 0)
    counted = f"so its {used} hardly matter" if is_enough else f"and its {used} count too"
    return f"{what}, {counted}: {larger}"


def _reason_by_adj(report: OomReport, *, is_outside: bool) -> Iterator[str]:
    """Say what the victim's oom_score_adj means if the other candidates are unknown."""
    victim, qos, whose = report.victim, class_of_path(report.cgroup), "its"
    if victim is None:
        return
    adj = victim.adj
    if adj is None and qos is QosClass.BEST_EFFORT:
        adj, whose = oom_score.BEST_EFFORT_ADJ, "by its path it is BestEffort: its"
    if adj is None:
        return
    if report.constraint is Constraint.NONE and adj >= oom_score.LOWEST_BURSTABLE_ADJ:
        size = victim.rss_kb << 10 if victim.rss_kb is not None else None
        rest = f", so its {in_mi(size)} hardly matter" if size is not None and size < _SMALL else ""
        yield f"{whose} oom_score_adj of {adj} counts as {adj / 10:g} % of the machine{rest}"
    elif qos is None and not is_outside:
        yield from _kind_by_adj(adj, victim.comm, report.constraint)
    if report.constraint is Constraint.NONE and adj == oom_score.BEST_EFFORT_ADJ and not is_outside:
        yield (
            "BestEffort processes are killed before all others of usual size: a memory request lowers"
            " oom_score_adj"
        )


def _kind_by_adj(adj: int, comm: str, constraint: Constraint | None) -> Iterator[str]:
    """Say which processes have this oom_score_adj, if no path shows what the victim was."""
    if adj == oom_score.BEST_EFFORT_ADJ:
        yield "oom_score_adj 1000 means a BestEffort pod, which has no limit, unless the process set it"
    elif adj in {oom_score.GUARANTEED_ADJ, oom_score.SANDBOX_ADJ} and comm != "pause":
        yield f"oom_score_adj {adj} means a Guaranteed pod, or a critical one (system-node-critical)"
    elif adj >= oom_score.LOWEST_BURSTABLE_ADJ:
        thousandths = oom_score.least_request(adj, capacity=1000)
        share = f"about {thousandths / 10:g} %" if thousandths else "less than 0.2 %"
        yield f"oom_score_adj {adj} means a Burstable pod that requests {share} of its node's memory"
    elif adj == 0 and constraint is Constraint.MEMCG:
        yield (
            "oom_score_adj 0 means a process outside pods, such as a service, unless it set its own. The"
            " limit is then its unit's or slice's (systemctl show -p MemoryMax UNIT), perhaps from"
            " systemReservedCgroup"
        )


def _swap_and_shares(report: OomReport) -> Iterator[str]:
    """Yield what used the memory that ran out, and swap."""
    memory, page = report.memory, report.page_bytes
    kinds = {"anonymous": memory.anon_kb, "files": memory.file_kb, "kernel": memory.of_kernel_kb}
    parts = [f"{what} {in_mi(kib << 10)}" for what, kib in kinds.items() if kib]
    if memory.anon_kb is not None and parts:
        yield f"memory at the limit: {', '.join(parts)}"
    shared_kb, whole_kb = memory.shmem_kb, memory.limit_kb or 0
    if report.constraint is Constraint.NONE:
        shared_kb, whole_kb = (
            pages * page >> 10 for pages in (memory.shmem_pages or 0, memory.total_ram_pages or 0)
        )
    if shared_kb and shared_kb * _NOTABLE >= whole_kb:
        mapped_kb = max((killed.shmem_rss_kb or 0 for killed in report.processes), default=0)
        remains = _SHARED if mapped_kb * 2 >= shared_kb else "killing processes does not free"
        yield (
            f"{in_mi(shared_kb << 10)} are shared memory (tmpfs, /dev/shm, emptyDir of medium Memory), which"
            f" {remains}"
        )
    if memory.dirty_kb and memory.dirty_kb * _NOTABLE >= whole_kb > 0:
        yield (
            f"{in_mi(memory.dirty_kb << 10)} of the files were not written to disk yet, so the kernel could"
            " not drop them: write slower (dd oflag=direct, fsync), or raise the limit"
        )
    if report.constraint is Constraint.MEMCG and pod_cgroup(report.oom_memcg) is not None:
        yield from _swap(report)
    elif report.constraint is Constraint.NONE:
        yield from _node_memory(report)


def _node_memory(report: OomReport) -> Iterator[str]:
    """Say what else used the machine's memory, or why an allocation failed with memory left."""
    memory, total_kb, free_kb = report.memory, report.memory.total_swap_kb, report.memory.free_swap_kb
    whole_kb = (memory.total_ram_pages or 0) * report.page_bytes >> 10
    if memory.huge_kb and memory.huge_kb * _NOTABLE >= whole_kb:
        huge = in_mi(memory.huge_kb << 10)
        yield f"{huge} are reserved as huge pages, which only pods that request them can use"
    if total_kb and free_kb is not None:
        used, whole = in_mi((total_kb - free_kb) << 10), in_mi(total_kb << 10)
        is_full = total_kb - free_kb >= total_kb * _FULL_SWAP
        full = f"swap was full too, {used} of {whole}: if it is zram, that is in memory too, compressed"
        yield full if is_full else f"{used} of {whole} of swap were in use: not all memory can be swapped"
    if report.order > 0:
        how = "was in smaller pieces, not used up"
        if memory.is_short is not False:
            how = "may have been in smaller pieces"
        yield f"the allocation wanted {1 << report.order} pages in a row (order {report.order}): memory {how}"


def _swap(report: OomReport) -> Iterator[str]:
    memory, limit_kb = report.memory, report.memory.swap_limit_kb
    swapped = memory.swapped_kb
    if swapped is None:
        swapped = sum(task.swapents for task in report.tasks) * report.page_bytes >> 10
    if limit_kb == 0:
        yield "it may use no swap (memory.swap.max is 0): only LimitedSwap gives some, to Burstable pods"
    elif limit_kb is not None and swapped >= limit_kb * _FULL_SWAP:
        yield f"its swap was full too, {in_mi(swapped << 10)} of {in_mi(limit_kb << 10)}"
    elif swapped and limit_kb is not None and limit_kb < _UNLIMITED_KB:
        yield f"{in_mi(swapped << 10)} of at most {in_mi(limit_kb << 10)} are in swap"
    elif swapped:
        yield f"{in_mi(swapped << 10)} of it are in swap: it may use swap"
    elif memory.limit_kb is not None and limit_kb is None and not memory.is_v1:
        yield (
            "how much swap it may use is not in the log: with LimitedSwap a Burstable pod gets swap in"
            " proportion to its memory request, others get none"
        )


_SMALL: Final = 1 << 30
_FULL_SWAP: Final = 0.99
_UNLIMITED_KB: Final = 1 << 52
_NOTABLE: Final = 4
"""Shared memory and huge pages are mentioned if they are at least a fourth of all memory."""
_USERS: Final = 3

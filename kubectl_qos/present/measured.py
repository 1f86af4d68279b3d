"""What was measured on a node, in words: next to computed values (`verify`), and as processes (`host`)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kubectl_qos.analysis.verification import CheckedValue, DriftCause, DriftReason, Verified
from kubectl_qos.errors import first_few
from kubectl_qos.present.format import NONE, UNKNOWN, binary, count, escape
from kubectl_qos.present.output import BYTES, NUMBER, Align, Column, cell_table, column
from kubectl_qos.present.pod_columns import rank_text
from kubectl_qos.present.reasons import assumption_sentence
from kubectl_qos.qos.cgroup.tree import CgroupLevel
from kubectl_qos.qos.oom_score import Kernel, kernel_formula
from kubectl_qos.qos.prediction import Assumption
from kubectl_qos.qos.process_order import HostView, NotRanked, ProcessRow
from kubectl_qos.qos.reason import Confidence


def check_lines(verified: Sequence[Verified], *, everything: bool, width: int | None = None) -> Iterator[str]:
    """Yield a row for each value that drifted, or for every value; with the pod if there are several."""
    many = sum(result.pod is not None for result in verified) > 1
    cells = [
        (*((_owner(result),) if many else ()), *_cells(check))
        for result in verified
        for check in result.checks
        if check.drift or everything
    ]
    headers = (*(("POD",) if many else ()), "LEVEL", "FILE", "COMPUTED", "MEASURED", "DRIFT", "CAUSE")
    return cell_table(cells, headers, width, ("DRIFT", "CAUSE"))


def summary(verified: Sequence[Verified]) -> str:
    """Return `43 values of 5 containers match, 1 drift`, or that nothing was measured."""
    unread = sum(bool(unread.container) for result in verified for unread in result.unread)
    compared = [check for result in verified for check in result.compared]
    drift = sum(check.drift for check in compared)
    containers = {
        (id(result), check.container)
        for result in verified
        for check in result.compared
        if check.level is CgroupLevel.CONTAINER
    }
    if not compared:
        of = f": {count(unread, 'container')} could not be read" if unread else ""
        return f"nothing was measured{of}"
    same = count(len(compared) - drift, "value")
    return f"{same} of {count(len(containers), 'container')} match, {drift or 'no'} drift"


def verification_notes(verified: Sequence[Verified], assumed: Iterable[Assumption]) -> Iterator[str]:
    """Yield what could not be read, and the assumptions that a drift may depend on."""
    reasons: dict[tuple[str, str | None], list[str]] = {}
    for result in verified:
        for unread in result.unread:
            name = f" container {unread.container}" if unread.container else ""
            owners = reasons.setdefault((unread.message, unread.remedy), [])
            owners.append(f"{_owner(result)}{escape(name)}")
    for (message, remedy), names in reasons.items():
        yield f"{first_few(names)}: {escape(message)}" + (f" ({escape(remedy)})" if remedy else "")
    yield from _multi_process_notes(verified)
    yield from _reached_notes(verified)
    for result in verified:
        runtime = result.pod.spec.runtime_class_name if result.pod is not None else None
        if result.drift and runtime:
            yield (
                f"{_owner(result)} has the RuntimeClass {escape(runtime)}: in a sandbox such as Kata or"
                " gVisor a container shows values of the sandbox, not of the node"
            )
    assumptions = ", ".join(map(assumption_sentence, assumed))
    if assumptions and any(result.drift for result in verified):
        yield f"not measured, assumed: {assumptions}"


def _reached_notes(verified: Iterable[Verified]) -> Iterator[str]:
    names = []
    for result in verified:
        for name, counts in result.events.items():
            events = [f"{event} {times}" for event, times in counts.items() if times]
            if events:
                names.append(f"{_owner(result)} container {escape(name)} ({', '.join(events)})")
    if names:
        yield f"hit a memory bound since they started (memory.events): {first_few(names)}"


def _multi_process_notes(verified: Iterable[Verified]) -> Iterator[str]:
    """Yield the containers with several processes, which a ranking counts as one."""
    names = []
    for result in verified:
        for container, processes in result.multi_process.items():
            scores = [process.oom_score for process in processes if process.oom_score is not None]
            highest = f", the highest oom_score {max(scores)}" if scores else ""
            names.append(f"{_owner(result)} container {escape(container)} ({len(processes)}{highest})")
    if names:
        yield (
            "several processes: the kernel scores each by itself, RANK all of them as one:"
            f" {first_few(names)}"
        )


def cause_sentence(cause: DriftCause) -> str:
    """Put a cause into words."""
    words = _SENTENCES[cause.reason]
    text = words.format(**cause.inputs) if isinstance(words, str) else words(cause.inputs)
    return text if cause.confidence is Confidence.CERTAIN else f"{cause.confidence.value}: {text}"


def _cells(check: CheckedValue) -> tuple[str, ...]:
    no_cause = "none known" if check.drift else NONE
    processes = [escape(f"{process.pid} {process.name}".strip()) for process in check.processes]
    return (
        f"{check.level.value} {escape(check.container)}".strip(),
        f"{escape(check.file)} of {first_few(processes)}" if processes else escape(check.file),
        NONE if check.computed is None else escape(check.computed) or '""',
        UNKNOWN if check.measured is None else escape(check.measured) or '""',
        UNKNOWN if check.measured is None else "yes" if check.drift else "no",
        no_cause if check.cause is None else cause_sentence(check.cause),
    )


def _owner(verified: Verified) -> str:
    pod = verified.pod
    return escape(f"{pod.namespace}/{pod.name}" if pod is not None else "node")


Inputs = Mapping[str, object]


def _setting(inputs: Inputs) -> str:
    texts: Any = inputs["settings"]
    values = " ".join(texts)
    if inputs["assumed"]:
        flags = " ".join(f"--assume '{text}'" if " " in text else f"--assume {text}" for text in texts)
        return f"the node has {values}, but another value was assumed ({flags})"
    return f"created while the kubelet had {values}"


def _before_resize(inputs: Inputs) -> str:
    least, most = (int(str(inputs.get(name, 0))) for name in ("least", "most"))
    request = f" (then {binary(least)} to {binary(most)})" if most else ""
    return f"started before a resize of its memory request{request}; a restart corrects it"


_SENTENCES: Final[Mapping[DriftReason, str | Callable[[Inputs], str]]] = {
    DriftReason.OWN_ADJ: lambda inputs: (
        "set by the application: a process may raise its own value"
        if inputs["raised"]
        else "set by the application, which has CAP_SYS_RESOURCE: only that allows lowering it"
    ),
    DriftReason.SETTING: _setting,
    DriftReason.OLDER_RELEASE: "created by a kubelet of {release}, before an upgrade",
    DriftReason.RESIZE_UNDER_WAY: lambda inputs: (
        f"a resize has not taken effect yet ({escape(str(inputs['condition']))})".removesuffix(" ()")
    ),
    DriftReason.BEFORE_RESIZE: _before_resize,
    DriftReason.RESIZED: "the pod was resized since it was created, and a resize does not write every value",
    DriftReason.OTHER_DRIVER: "the driver is {driver} (--assume cgroupDriver={driver})",
    DriftReason.STALE_HIERARCHY: "created before the driver was changed; new pods are in {path}",
    DriftReason.LEFT_HIERARCHY: "left behind when the driver was changed",
    DriftReason.OTHER_CLASS: "the pod was created as {qos}",
    DriftReason.OTHER_RUNTIME: "the directory is named by another container runtime",
    DriftReason.MEMORY_QOS_LEFT: "left behind by MemoryQoS: the kubelet does not reset it",
    DriftReason.INNER_CGROUP: "crun puts processes into an inner cgroup, the only one the container sees",
    DriftReason.LAGS: "the kubelet updates the classes once a minute, and pods came or went",
}


_SHORT_UID: Final = 8
_SHORT_ID: Final = 12


def _score_text(row: ProcessRow) -> str:
    score = row.process.score
    if score is None:
        return f"({row.ranked.expected})"
    return f"{score} ({row.ranked.expected})" if row.ranked.differs else str(score)


def _container_text(row: ProcessRow) -> str:
    if row.pod is not None and row.container == row.pod.container_id:
        return row.container[:_SHORT_ID] or NONE
    return escape(row.container) or NONE


def _pod_text(row: ProcessRow) -> str:
    if row.names is not None:
        return escape(f"{row.names.namespace}/{row.names.name}")
    return escape(row.pod.pod_uid[:_SHORT_UID]) if row.pod is not None else NONE


_COLUMNS: Final[tuple[Column[ProcessRow], ...]] = (
    column(
        "rank",
        lambda row: row.ranked.rank,
        "the kernel's kill order when the node runs out of memory; N= is shared, - is never killed",
        NUMBER,
        align=Align.LEFT,
        width=5,
        cell=lambda row: rank_text(row.ranked.rank, tied=row.ranked.is_tied),
        ascending=True,
    ),
    column("pid", lambda row: row.process.pid, "the process id", NUMBER, align=Align.LEFT),
    column(
        "score",
        lambda row: row.process.score,
        "/proc/PID/oom_score; in brackets the value of the formula if it differs by more than 2",
        NUMBER,
        field="oomScore",
        header="OOM_SCORE",
        cell=_score_text,
    ),
    column(
        "expected",
        lambda row: row.ranked.expected,
        "what the formula gives",
        NUMBER,
        field="expectedOOMScore",
        wide=1,
    ),
    column(
        "adj", lambda row: row.process.adj, "oom_score_adj", NUMBER, field="oomScoreAdj", header="OOM_ADJ"
    ),
    column("rss", lambda row: row.process.rss_bytes, "resident memory: anonymous, files, shared", BYTES),
    column("anon", lambda row: row.process.anon_bytes, "its anonymous part", BYTES, wide=1),
    column("swap", lambda row: row.process.swap_bytes, "swapped memory", BYTES),
    column(
        "page_tables",
        lambda row: row.process.page_table_bytes,
        "page tables, which count too",
        BYTES,
        header="PTE",
        wide=1,
    ),
    column(
        "dying",
        lambda row: row.killed_together,
        "how many processes die together (memory.oom.group)",
        NUMBER,
        wide=1,
    ),
    column(
        "container",
        lambda row: row.container or None,
        "the container, by its id without --names",
        cell=_container_text,
    ),
    column(
        "namespace",
        lambda row: row.names and row.names.namespace,
        "the pod's namespace, with --names",
        wide=1,
    ),
    column(
        "pod",
        lambda row: row.names and row.names.name,
        "the pod, by the beginning of its UID without --names",
        cell=_pod_text,
    ),
    column("pod_uid", lambda row: row.pod and row.pod.pod_uid, "the pod's UID", wide=1),
    column(
        "qos", lambda row: row.pod and row.pod.qos.value, "the class of the pod's cgroup", field="qosClass"
    ),
    column("command", lambda row: row.process.comm, "the command's name"),
    column("command_line", lambda row: row.process.cmdline, "the command with its arguments", wide=1),
)


def host_columns(*, every: bool) -> list[Column[ProcessRow]]:
    """Return the columns of the table, or `every` one."""
    return [column for column in _COLUMNS if every or column.is_default]


def host_notes(
    view: HostView, rows: Sequence[ProcessRow], kernel: Kernel, *, all_shown: bool
) -> Iterator[str]:
    """Yield what is missing, and what else affects the kill order."""
    yield from _unreadable(view)
    yield from _sysctl_notes(view.sysctls)
    if kernel is not kernel_formula(view.kernel_release):
        yield (
            f"the scores are those of kernels {kernel.value}, although this one is"
            f" {view.kernel_release or 'unnamed'}: RANK follows the scores"
        )
    if differing := sum(row.ranked.differs for row in rows):
        yield (
            f"{count(differing, 'process has', 'processes have')} another OOM_SCORE than the formula gives"
            " (in brackets): memory was changing, or this kernel counts differently"
        )
    if any(row.process.cgroup.startswith("/..") for row in rows):
        yield (
            "some pods cannot be identified from inside a cgroup namespace: run it in the node's, for"
            " example in a privileged pod"
        )
    yield from _unranked(rows, all_shown=all_shown)
    yield (
        "RANK is for a full node; at a cgroup's limit the kernel chooses among the processes of the"
        " cgroup, and scales OOM_ADJ by the limit"
    )


def _unreadable(view: HostView) -> Iterable[str]:
    if view.denied:
        yield f"no permission to read {_processes(view.denied)}: run as root"
    if view.is_hidden:
        yield (
            "processes of other users are hidden (/proc is mounted with hidepid): run as root or in the group"
            " of the mount option gid="
        )
    elif not view.is_whole:
        yield (
            "only the processes of this PID namespace are visible: to see the node's, a pod needs hostPID"
            " (kubectl debug node/N)"
        )


def _sysctl_notes(sysctls: Mapping[str, int]) -> Iterable[str]:
    panics = sysctls.get("vm.panic_on_oom", 0)
    if panics == 2:
        yield "vm.panic_on_oom is 2: any OOM, even of one cgroup, panics the node, and nothing is killed"
    elif panics:
        yield f"vm.panic_on_oom is {panics}: the node panics when it runs out, and RANK does not matter"
    if sysctls.get("vm.oom_kill_allocating_task"):
        yield (
            "vm.oom_kill_allocating_task is set: when the node runs out, the allocating process is killed,"
            " not the first by RANK; at cgroup limits OOM_ADJ and memory still decide"
        )
    if sysctls.get("vm.overcommit_memory") == 2:
        yield "vm.overcommit_memory is 2: allocations fail before memory runs out, so kills are rare"


def _unranked(rows: Sequence[ProcessRow], *, all_shown: bool) -> Iterable[str]:
    immune = sum(row.ranked.not_ranked is NotRanked.ADJ for row in rows)
    if immune and not all_shown:
        yield f"{_processes(immune)} with an oom_score_adj of -1000 cannot be killed (--all shows them)"
    for not_ranked in (NotRanked.INIT, NotRanked.VFORK, NotRanked.SCORE):
        pids = [str(row.process.pid) for row in rows if row.ranked.not_ranked is not_ranked]
        if pids:
            yield f"not ranked: {first_few(pids, 5)} ({not_ranked.value})"


def _processes(number: int) -> str:
    return count(number, "process", "processes")

"""The columns and notes of a node's own processes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kubectl_qos.errors import first_few
from kubectl_qos.present.format import NONE, count, escape
from kubectl_qos.present.output import BYTES, NUMBER, Align, Column, column
from kubectl_qos.present.pod_columns import rank_text
from kubectl_qos.qos.oom_score import Kernel, kernel_formula
from kubectl_qos.qos.process_order import HostView, NotRanked, ProcessRow

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
            "some pods cannot be identified from inside a cgroup namespace: run it in the node's own, in a"
            " privileged pod for example"
        )
    yield from _unranked(rows, all_shown=all_shown)
    yield (
        "RANK is for the node running out of memory; at the limit of a cgroup the kernel kills among its"
        " processes, and scales OOM_ADJ by that limit"
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
            " not the first by RANK; cgroup limits still go by OOM_ADJ and memory"
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

"""A node's own processes as rows, columns and sentences.

The values come from the node (host/) in the order of qos/process_order.py; this room knows only their shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kubectl_qos.present.format import NONE, escape, mebibytes
from kubectl_qos.present.pod_columns import Align, ColumnOf, Holds, largest_first
from kubectl_qos.qos.cgroup.names import PodCgroup, pod_cgroup
from kubectl_qos.qos.oom_score import Kernel, kernel_formula
from kubectl_qos.qos.process_order import HostProcess, RankedProcess, Spared, oom_group

SHORT_UID: Final = 8
SHORT_ID: Final = 12


class NamedPod(Protocol):
    """What a pod and its containers are called, these by their ids."""

    @property
    def namespace(self) -> str: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def containers(self) -> Mapping[str, str]: ...  # noqa: D102


class NodeReading(Protocol):
    """What a node showed, as far as sentences need it."""

    @property
    def kernel_release(self) -> str: ...  # noqa: D102
    @property
    def sysctls(self) -> Mapping[str, int]: ...  # noqa: D102
    @property
    def denied(self) -> int: ...  # noqa: D102
    @property
    def is_hidden(self) -> bool: ...  # noqa: D102
    @property
    def is_whole(self) -> bool: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """A process with its place, its pod, and how many processes die with it."""

    ranked: RankedProcess
    pod: PodCgroup | None
    named: NamedPod | None
    dying: int

    @property
    def process(self) -> HostProcess:
        """What was measured."""
        return self.ranked.process

    @property
    def container(self) -> str:
        """Its name, or its id where that is all that is known."""
        if self.pod is None:
            return ""
        return (self.named.containers.get(self.pod.container_id) if self.named else None) or (
            self.pod.container_id
        )


def build_process_rows(
    order: Iterable[RankedProcess],
    names: Mapping[str, NamedPod],
    oom_groups: Collection[str],
) -> list[ProcessRow]:
    """A row for each process of the order; `oom_groups` are the cgroups that die as a whole."""
    found = list(order)
    groups = [oom_group(row.process.cgroup, oom_groups) if row.spared is None else None for row in found]
    rows = []
    for ranked, group in zip(found, groups, strict=True):
        pod = pod_cgroup(ranked.process.cgroup)
        named = names.get(pod.pod_uid) if pod is not None else None
        alone = int(ranked.spared is None)
        dying = groups.count(group) if group is not None else alone
        rows.append(ProcessRow(ranked, pod, named, dying))
    return rows


def _rank(row: ProcessRow) -> str:
    ranked = row.ranked
    if ranked.rank is None:
        return "-"
    return f"{ranked.rank}=" if ranked.is_tied else str(ranked.rank)


def _score(row: ProcessRow) -> str:
    """What /proc says; where the formula gives another number, that behind it."""
    score = row.process.score
    if score is None:
        return f"({row.ranked.expected})"
    return f"{score} ({row.ranked.expected})" if row.ranked.differs else str(score)


def _container(row: ProcessRow) -> str:
    if row.pod is not None and row.container == row.pod.container_id:
        return row.container[:SHORT_ID] or NONE
    return escape(row.container) or NONE


def _pod(row: ProcessRow) -> str:
    if row.named is not None:
        return escape(f"{row.named.namespace}/{row.named.name}")
    return escape(row.pod.pod_uid[:SHORT_UID]) if row.pod is not None else NONE


def _command(row: ProcessRow) -> str:
    return escape(row.process.comm)


def _column(
    key: str,
    header: str,
    cell: Callable[[ProcessRow], str],
    value: Callable[[ProcessRow], Any],
    meaning: str,
    *,
    holds: Holds = Holds.WORDS,
) -> ColumnOf[ProcessRow]:
    is_words = holds is Holds.WORDS
    return ColumnOf(
        key,
        header,
        Align.LEFT if is_words or key in {"rank", "pid"} else Align.RIGHT,
        len(header),
        lambda row, _: cell(row),
        value,
        value if is_words else lambda row: largest_first(value(row)),
        meaning,
        holds=holds,
    )


def _kib(key: str, header: str, of: Callable[[HostProcess], int], meaning: str) -> ColumnOf[ProcessRow]:
    return _column(
        key,
        header,
        lambda row: mebibytes(of(row.process) << 10),
        lambda row: of(row.process) << 10,
        meaning,
        holds=Holds.BYTES,
    )


def _number(
    key: str, header: str, of: Callable[[ProcessRow], int | None], meaning: str
) -> ColumnOf[ProcessRow]:
    return _column(key, header, lambda row: str(of(row)), of, meaning, holds=Holds.NUMBER)


_RANK: Final[ColumnOf[ProcessRow]] = ColumnOf(
    "rank",
    "RANK",
    Align.LEFT,
    5,
    lambda row, _: _rank(row),
    lambda row: row.ranked.rank,
    lambda row: math.inf if row.ranked.rank is None else row.ranked.rank,
    "the order in which the kernel kills when the node runs out; N= is shared, - is never killed",
    holds=Holds.NUMBER,
)
COLUMNS: Final[tuple[ColumnOf[ProcessRow], ...]] = (
    _RANK,
    _number("pid", "PID", lambda row: row.process.pid, "the process id"),
    _column(
        "score",
        "SCORE",
        _score,
        lambda row: row.process.score,
        "/proc/PID/oom_score; in brackets what the formula gives, where that is more than 2 off",
        holds=Holds.NUMBER,
    ),
    _number("expected", "EXPECTED", lambda row: row.ranked.expected, "what the formula gives"),
    _number("adj", "ADJ", lambda row: row.process.adj, "oom_score_adj"),
    _kib("rss", "RSS", lambda process: process.rss_kb, "resident memory: anonymous, of files and shared"),
    _kib("anon", "ANON", lambda process: process.anon_kb, "the anonymous part of it"),
    _kib("swap", "SWAP", lambda process: process.swap_kb, "what is in swap"),
    _kib("page_tables", "PTE", lambda process: process.pte_kb, "page tables, which count too"),
    _number("dying", "DYING", lambda row: row.dying, "how many processes die, by memory.oom.group"),
    _column(
        "container",
        "CONTAINER",
        _container,
        lambda row: row.container or None,
        "the container, by its id without --names",
    ),
    _column(
        "pod",
        "POD",
        _pod,
        lambda row: f"{row.named.namespace}/{row.named.name}" if row.named else None,
        "the pod, by the beginning of its UID without --names",
    ),
    _column(
        "uid",
        "POD_UID",
        lambda row: escape(row.pod.pod_uid) if row.pod is not None else NONE,
        lambda row: row.pod.pod_uid if row.pod is not None else None,
        "the pod's UID",
    ),
    _column(
        "qos",
        "QOS",
        lambda row: row.pod.qos.value if row.pod is not None else NONE,
        lambda row: row.pod.qos.value if row.pod is not None else None,
        "the class by which the kubelet placed the pod",
    ),
    _column("command", "COMMAND", _command, lambda row: row.process.comm, "the command's name"),
    _column(
        "command_line",
        "COMMAND_LINE",
        lambda row: escape(row.process.cmdline) or NONE,
        lambda row: row.process.cmdline,
        "the command with its arguments",
    ),
)
_BY_KEY: Final = {column.key: column for column in COLUMNS}
DEFAULT_KEYS: Final = (
    "rank",
    "pid",
    "score",
    "adj",
    "rss",
    "swap",
    "container",
    "pod",
    "qos",
    "command",
)


def host_columns(*, every: bool) -> list[ColumnOf[ProcessRow]]:
    """The columns of the table, or all that there are."""
    return list(COLUMNS) if every else [_BY_KEY[key] for key in DEFAULT_KEYS]


def host_notes(
    read: NodeReading, rows: Iterable[ProcessRow], kernel: Kernel, *, all_shown: bool
) -> list[str]:
    """What has to be known of the order: what is missing, and what else decides."""
    found = list(rows)
    notes = list(_missing(read))
    notes += _settings(read.sysctls)
    if kernel is not kernel_formula(read.kernel_release):
        notes.append(
            f"the scores are those of kernels {kernel.value}, though this one calls itself"
            f" {read.kernel_release or 'nothing'}: RANK goes by them"
        )
    differing = sum(row.ranked.differs for row in found)
    if differing:
        notes.append(
            f"{_processes(differing)} {'has' if differing == 1 else 'have'} another SCORE than memory and ADJ"
            " give (in brackets): memory was changing, or this kernel counts otherwise"
        )
    if any(row.process.cgroup.startswith("/..") for row in found):
        notes.append(
            "cgroups are seen from inside a cgroup namespace, so some pods cannot be told:"
            " run it in the node's own, as a privileged pod does"
        )
    notes += _never(found, all_shown=all_shown)
    notes.append(
        "RANK is for the node running out; a cgroup at its own limit chooses among its own processes, and ADJ"
        " weighs by that limit there"
    )
    return notes


def _missing(read: NodeReading) -> Iterable[str]:
    if read.denied:
        verb = "is" if read.denied == 1 else "are"
        yield f"{_processes(read.denied)} may not be read and {verb} missing: run as root"
    if read.is_hidden:
        yield (
            "processes of other users are hidden (/proc is mounted with hidepid): run as root or in the group"
            " that the mount option gid= names"
        )
    elif not read.is_whole:
        yield (
            "only the processes of this PID namespace can be seen: to see those of the node a pod needs"
            " hostPID, as kubectl debug node/N gives it"
        )


def _settings(sysctls: Mapping[str, int]) -> Iterable[str]:
    panics = sysctls.get("vm.panic_on_oom", 0)
    if panics == 2:
        yield (
            "vm.panic_on_oom is 2: where memory runs out, even in one cgroup, the node stops and nobody is"
            " killed"
        )
    elif panics:
        yield f"vm.panic_on_oom is {panics}: when the node runs out it stops, and RANK does not matter"
    if sysctls.get("vm.oom_kill_allocating_task"):
        yield (
            "vm.oom_kill_allocating_task is set: when the node runs out, whoever asks for memory is killed,"
            " not the first by RANK; limits of cgroups go by ADJ and memory all the same"
        )
    if sysctls.get("vm.overcommit_memory") == 2:
        yield "vm.overcommit_memory is 2: memory is refused before it runs out, so that kills are rare"


def _never(rows: list[ProcessRow], *, all_shown: bool) -> Iterable[str]:
    never = sum(row.ranked.spared is Spared.ADJ for row in rows)
    if never and not all_shown:
        yield f"{_processes(never)} with an oom_score_adj of -1000 cannot be killed (--all shows them)"
    for spared in (Spared.INIT, Spared.VFORK, Spared.SCORE):
        pids = [str(row.process.pid) for row in rows if row.ranked.spared is spared]
        if pids:
            yield f"no rank: {', '.join(pids[:5])}{', …' if len(pids) > 5 else ''}, as {spared.value}"


def _processes(count: int) -> str:
    return f"{count} process" if count == 1 else f"{count} processes"

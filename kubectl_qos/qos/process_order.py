"""The order in which the kernel kills the processes of a node, by their values in /proc.

Source: Linux mm/oom_kill.c (select_bad_process, oom_evaluate_task, __oom_kill_process) and mm/memcontrol.c
(mem_cgroup_get_oom_group). Not here: reading /proc (host/), and pods, where one process represents each
container (ranking.py).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

import msgspec
from msgspec import structs

from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.qos.cgroup.names import PodCgroup, pod_cgroup
from kubectl_qos.qos.oom_score import OOM_SCORE_ADJ_MIN, Kernel, badness, kernel_formula, proc_oom_score

SCORE_SLACK: Final = 2
"""Tolerance for scores: memory changes between two reads, and kernels since 6.2 count it approximately."""
IDLE_SCORE: Final = 600
"""An idle process with adj 0 has a score of about 666 with the newest formula, about 0 with older ones."""


class HostProcess(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A process with its own memory, as /proc shows it.

    `score` is /proc/PID/oom_score, None if it could not be read. `cgroup` is the path in the hierarchy that
    counts memory. `admin`: it has CAP_SYS_ADMIN, which counts before 4.17. `borrows`: vfork created it, so it
    uses its parent's memory and the kernel skips it.
    """

    pid: int
    ppid: int
    comm: str = msgspec.field(name="command")
    cmdline: str = msgspec.field(default="", name="commandLine")
    adj: int = msgspec.field(name="oomScoreAdj")
    score: int | None = msgspec.field(default=None, name="oomScore")
    rss_bytes: int
    anon_bytes: int = 0
    swap_bytes: int = 0
    page_table_bytes: int = 0
    cgroup: str = ""
    uid: int = msgspec.field(default=0, name="userID")
    admin: bool = False
    borrows: bool = False


class PodNames(msgspec.Struct, frozen=True, kw_only=True):
    """The names of a pod and, by their ids, of its containers."""

    namespace: str
    name: str
    containers: dict[str, str] = {}


class HostView(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="kind", tag=True):
    """A node's processes, memory, and memory cgroups.

    `processes` have their own memory, and are sorted by id. `is_whole`: they are all of the node's, not
    only those of a PID namespace. `denied` counts processes that may not be read. `is_hidden`: processes of
    other users are hidden. `meminfo` and `page_size` are in bytes. `cgroups` has the memory files of each
    cgroup with processes and of its parents; `cgroup_version` is 0 if no hierarchy counts memory. `time` is
    RFC 3339; `names` has pods by UID, if requested.
    """

    processes: tuple[HostProcess, ...]
    meminfo: dict[str, int] = msgspec.field(name="meminfoBytes")
    cgroups: dict[str, dict[str, str]] = {}
    kernel_release: str = ""
    time: str = ""
    page_size: int = msgspec.field(default=4096, name="pageSizeBytes")
    cgroup_version: int = 0
    sysctls: dict[str, int] = {}
    denied: int = 0
    is_hidden: bool = False
    is_whole: bool = True
    names: dict[str, PodNames] = {}

    @property
    def total_pages(self) -> int:
        """RAM and swap in pages: the scale of oom_score_adj on a full node (constrained_alloc)."""
        total = self.meminfo.get("MemTotal", 0) + self.meminfo.get("SwapTotal", 0)
        return total // self.page_size


class NotRanked(Enum):
    """Why the kernel skips a process."""

    ADJ = "oom_score_adj is -1000"
    INIT = "init of the machine"
    VFORK = "its memory is its parent's, which waits for it"
    SCORE = "the kernel scores it 0: it is about to end, or shares the memory of one that is never killed"


class RankedProcess(msgspec.Struct, frozen=True):
    """A process in kill order; no rank if the kernel skips it.

    `points` is badness in pages, by which the kernel chooses; `expected` is the predicted score in /proc.
    """

    process: HostProcess
    rank: int | None
    is_tied: bool
    points: int
    expected: int
    not_ranked: NotRanked | None

    @property
    def differs(self) -> bool:
        """Whether the score in /proc differs from the formula's."""
        score = self.process.score
        return self.not_ranked is None and score is not None and abs(score - self.expected) > SCORE_SLACK


def process_order(
    processes: Iterable[HostProcess], total_pages: int, page: int, kernel: Kernel, *, is_whole: bool
) -> tuple[RankedProcess, ...]:
    """Return the processes in kill order, then those that the kernel skips.

    `total_pages` is RAM and swap in pages of `page` bytes. `is_whole`: process 1 is the machine's init, not
    that of a PID namespace.
    """
    rows = []
    for process in processes:
        pages = counted_pages(process, page)
        points = badness(pages, process.adj, total_pages, kernel, admin=process.admin)
        expected = proc_oom_score(points, total_pages, kernel)
        not_ranked = _why_not_ranked(process, expected, is_whole=is_whole)
        rows.append(RankedProcess(process, None, False, points, 0 if not_ranked else expected, not_ranked))
    candidates = [row for row in rows if row.not_ranked is None]
    candidates.sort(key=lambda row: (-row.points, row.process.pid))
    counts = Counter(row.points for row in candidates)
    first: dict[int, int] = {}
    for place, row in enumerate(candidates, start=1):
        first.setdefault(row.points, place)
    ranked = [
        structs.replace(row, rank=first[row.points], is_tied=counts[row.points] > 1) for row in candidates
    ]
    others = sorted((row for row in rows if row.not_ranked is not None), key=lambda row: row.process.pid)
    return (*ranked, *others)


def oom_group(cgroup: str, oom_groups: Collection[str]) -> str | None:
    """Return the highest cgroup at or above a victim's with memory.oom.group, which dies whole, or None."""
    above = [path for path in oom_groups if path in {"/", cgroup} or cgroup.startswith(f"{path}/")]
    return min(above, key=len, default=None)


def with_largest(
    usage: Mapping[PodKey, PodUsage], pods: Iterable[Pod], processes: Iterable[HostProcess]
) -> dict[PodKey, PodUsage]:
    """Return usage with the largest process of each container, as the kernel counts it."""
    largest: dict[str, int] = {}
    for process in processes:
        cgroup, size = pod_cgroup(process.cgroup), counted_pages(process, 1)
        if cgroup is not None:
            largest[cgroup.container_id] = max(size, largest.get(cgroup.container_id, 0))
    amended = dict(usage)
    for pod in pods if largest else ():
        key = pod.key
        ids = {status.name: status.container_id.rpartition("://")[2] for status in pod.status.every_container}
        if key in amended:
            amounts = [(amended[key].of(name), largest.get(ids.get(name, ""))) for name in amended[key].names]
            whole = (amount and amount._replace(largest_bytes=size) for amount, size in amounts)
            amended[key] = msgspec.structs.replace(amended[key], amounts=tuple(filter(None, whole)))
    return amended


def counted_pages(process: HostProcess, page: int) -> int:
    """Return the pages that badness counts: resident memory, swap and page tables."""
    return (process.rss_bytes + process.swap_bytes + process.page_table_bytes) // page


def formula_in_use(processes: Sequence[HostProcess], release: str, total_pages: int, page: int) -> Kernel:
    """Return the formula of the kernel's version, unless idle processes show another one.

    Some vendors backport the newest formula (`kernel_formula`). A process below a twentieth of the machine
    counts as idle.
    """
    by_version = kernel_formula(release)
    plain = (process for process in processes if process.adj == 0 and process.pid != 1)
    small = (process for process in plain if counted_pages(process, page) * 20 < total_pages)
    idle = [process.score for process in small if process.score is not None and not process.borrows]
    if not idle:
        return by_version
    if sum(score >= IDLE_SCORE for score in idle) * 2 > len(idle):
        return Kernel.SIGNED
    return Kernel.FLOORED if by_version is Kernel.SIGNED else by_version


def _why_not_ranked(process: HostProcess, expected: int, *, is_whole: bool) -> NotRanked | None:
    if process.adj == OOM_SCORE_ADJ_MIN:
        return NotRanked.ADJ
    if process.pid == 1 and is_whole:
        return NotRanked.INIT
    if process.borrows:
        return NotRanked.VFORK
    if process.score == 0 and expected > SCORE_SLACK:
        return NotRanked.SCORE
    return None


class ProcessRow(msgspec.Struct, frozen=True):
    """A process with its rank and pod; `killed_together` counts those that die with it, itself included."""

    ranked: RankedProcess
    pod: PodCgroup | None
    names: PodNames | None
    killed_together: int

    @property
    def process(self) -> HostProcess:
        """The measured process."""
        return self.ranked.process

    @property
    def container(self) -> str:
        """Name of the container, or its id if the name is unknown."""
        if self.pod is None:
            return ""
        containers = self.names.containers if self.names else {}
        return containers.get(self.pod.container_id) or self.pod.container_id


def build_process_rows(
    order: Iterable[RankedProcess], names: Mapping[str, PodNames], oom_groups: Collection[str]
) -> list[ProcessRow]:
    """Return a row for each process; `names` by pod UID, `oom_groups` are cgroups that are killed whole."""
    processes = list(order)
    groups = [
        oom_group(row.process.cgroup, oom_groups) if row.not_ranked is None else None for row in processes
    ]
    rows = []
    for ranked, group in zip(processes, groups, strict=True):
        pod = pod_cgroup(ranked.process.cgroup)
        killed_together = groups.count(group) if group is not None else int(ranked.not_ranked is None)
        own_names = names.get(pod.pod_uid) if pod is not None else None
        rows.append(ProcessRow(ranked, pod, own_names, killed_together))
    return rows

"""The lines of a report about memory: counters and statistics of cgroups, and sizes of the machine.

Source: Linux mm/memcontrol.c (mem_cgroup_print_oom_info, memory_stat_format) and mm/show_mem.c. Before 5.2 a
kernel prints the statistics of each cgroup below the one that ran out too, each in one line: only the line
behind the counters is about that one, and what it holds is the sum of all.
"""

import os.path
import re
from typing import Final

from kubectl_qos.qos.cgroup.names import CUT, pod_cgroup
from kubectl_qos.qos.kills.report import MemoryState

_INLINE: Final = re.compile(r"\b([a-z_]{3,20}):(\d{1,18})KB", re.ASCII)
_INLINE_WHOLE: Final = re.compile(r"[a-z_]{3,20}:\d{1,18}KB(?: [a-z_]{3,20}:\d{1,18}KB)*", re.ASCII)
_FIRST: Final = frozenset({"anon", "cache"})
"""The statistic that comes first."""
_KINDS: Final = {
    "anon": "anon_kb",
    "rss": "anon_kb",
    "file": "file_kb",
    "cache": "file_kb",
    "shmem": "shmem_kb",
    "kernel": "kernel_kb",
    "swap": "swap_kb",
}
"""Statistics of cgroup v2 and v1; those of v1 with `total_` count what is below too."""
_KERNEL_KINDS: Final = ("kernel_stack", "pagetables", "sec_pagetables", "percpu", "sock", "slab")
_LARGEST_KERNEL_KINDS: Final = frozenset({"kernel_stack", "pagetables", "slab"})
_COUNTERS: Final = {"memory": "", "memory+swap": "memsw_"}


def is_within(path: str, above: str) -> bool:
    """Whether a cgroup is another one, or below it."""
    return f"{path}/".startswith(f"{above.rstrip('/')}/")


class MemoryLines:
    """What the lines so far say."""

    def __init__(self) -> None:
        self._domain = self._title = ""
        self._below: list[str] = []
        self._counters: dict[str, int] = {}
        self._statistics: dict[str, int] = {}
        self._machine: dict[str, int] = {}
        self._zones: dict[str, tuple[int, int, int]] = {}
        self._is_whole = False

    @property
    def is_empty(self) -> bool:
        """Whether no line was about memory."""
        return not (self._counters or self._statistics or self._machine or self._domain or self._below)

    def add_counter(self, what: str, usage: str, limit: str) -> bool:
        """Add a counter of the cgroup; False if it is there already."""
        name = _COUNTERS.get(what, f"{what}_")
        if f"{name}usage_kb" in self._counters:
            return False
        self._counters |= {f"{name}usage_kb": int(usage), f"{name}limit_kb": int(limit)}
        return True

    @property
    def domain(self) -> str:
        """The cgroup that ran out, as far as its statistics say; with the sign of a cut it may be one below.

        Of cgroup v1 there are lines of all cgroups below too, and a person may have left out the first.
        """
        if not self._below:
            return self._domain
        path = os.path.commonpath(self._below)
        pod = pod_cgroup(path)
        if pod is not None and pod.is_mixed:
            return path
        return f"{path if pod is None or not pod.container_id else path.rpartition('/')[0]}/{CUT}"

    def add_statistics(self, path: str, inline: str, previous: str) -> bool:
        """Add a line with the statistics of a cgroup; `previous` is the kind of the line before it."""
        if self._domain or (self._below and not inline):
            return False
        if inline:
            is_next = (
                previous == "counter" if not self._below else self._is_whole and previous == "statistics"
            )
            sizes = _INLINE.findall(inline)
            # All lines name the same kinds: one with fewer is cut.
            is_like_others = not self._below or self._statistics.keys() == {name for name, _ in sizes}
            self._is_whole = is_next and is_like_others and _INLINE_WHOLE.fullmatch(inline) is not None
            self._below.append(path)
            for name, size in sizes:
                self._statistics[name] = self._statistics.get(name, 0) + int(size)
        else:
            self._title = path
            self._domain = path if previous == "counter" else CUT
        return True

    def end_statistics(self) -> None:
        """Know that lines are missing behind the last statistics."""
        self._is_whole = False

    def add_statistic(self, name: str, size: str) -> bool:
        """Add a statistic of the cgroup, in bytes; False if it is another's."""
        if not self._title or name in self._statistics or not (self._statistics or name in _FIRST):
            return False
        self._domain = self._title
        self._statistics[name] = int(size) >> 10
        return True

    def add_machine(self, **sizes: str | None) -> None:
        """Add sizes of the machine."""
        self._machine = {name: int(size) for name, size in sizes.items() if size} | self._machine

    def add_zone(self, zone: str, free: str, high: str, present: str) -> None:
        """Add a zone of memory, in KiB."""
        self._zones[zone] = int(free), int(high), int(present)

    def _is_short(self) -> bool | None:
        """Whether memory was short in a zone, None if not all of them are in the log."""
        pages, present = self._machine.get("ram_pages", 0), sum(size for _, _, size in self._zones.values())
        if not self._zones or present not in {pages * kib for kib in (4, 16, 64)}:
            return None
        return any(free <= high for free, high, _ in self._zones.values())

    def _kinds(self) -> dict[str, int]:
        if self._below and not self._is_whole:
            return {}
        totals = {name for name in self._statistics if name.startswith("total_")}
        values = self._statistics | {name.removeprefix("total_"): self._statistics[name] for name in totals}
        kinds = {key: values[name] for name, key in _KINDS.items() if name in values}
        anonymous = [values.get(name) for name in ("inactive_anon", "active_anon", "unevictable", "rss")]
        if self._below and "shmem" not in values and None not in anonymous:
            # Before 4.10 only the lists of pages tell: tmpfs is on those of anonymous memory.
            inactive, active, locked, own = (size or 0 for size in anonymous)
            kinds["shmem_kb"] = min(max(inactive + active + locked - own, 0), values.get("cache", 0))
        if values.keys() >= _LARGEST_KERNEL_KINDS:
            kinds["parts_of_kernel_kb"] = sum(values.get(name, 0) for name in _KERNEL_KINDS)
        return kinds

    def state(self) -> MemoryState:
        """What the lines say together."""
        return MemoryState(**self._counters, **self._kinds(), **self._machine, is_short=self._is_short())

"""The table of a report: which processes could be killed. Source: Linux mm/oom_kill.c (dump_tasks)."""

import re
from itertools import product
from typing import Final

from kubectl_qos.qos.cgroup.names import CUT
from kubectl_qos.qos.kills.report import OomTask
from kubectl_qos.qos.logs.record import BREAK

MOST_TASKS: Final = 65_536
"""Rows of a table; the kernel's default limit of process ids is 32,768."""
_MOST_BREAKS: Final = 4
_COLUMNS: Final = {"oom_score_adj": "adj", "rss_shmem": "shmem"} | {
    name: name for name in ("uid", "tgid", "total_vm", "rss", "pgtables_bytes", "swapents")
}
_PAGES_OF_TABLES: Final = ("nr_ptes", "nr_pmds", "nr_puds")
_KNOWN_COLUMNS: Final = {*_COLUMNS, *_PAGES_OF_TABLES, "rss_anon", "rss_file"}
_TABLES: Final = {7 + count: " ".join(_PAGES_OF_TABLES[: count + 1]) for count in range(3)} | {
    10: "rss_anon rss_file rss_shmem pgtables_bytes"
}
"""The columns between rss and swapents by how many numbers a row has, where the log lacks its header."""
_LEAST_TABLE_BYTES: Final = 4_096
_INTEGER: Final = re.compile(r"-?\d{1,18}", re.ASCII)


class TaskTable:
    """The rows so far; `is_whole` is whether its beginning is there and no row is known to be missing."""

    def __init__(self) -> None:
        self.tasks: list[OomTask] = []
        self.is_whole = False
        self._columns: list[str] = []
        self._pids: set[int] = set()

    @property
    def has_pages(self) -> bool:
        """Whether page tables are counted in pages, as before 4.16."""
        return _PAGES_OF_TABLES[0] in self._columns

    def begin(self) -> bool:
        """Begin with the title; False if the table has begun."""
        if self._columns or self.tasks:
            return False
        self.is_whole = True
        return True

    def add_header(self, text: str, *, is_first: bool) -> bool:
        """Add the names of columns; `is_first` is whether no row can be before. False if they are there."""
        if self._columns or self.tasks:
            return False
        self.is_whole |= is_first
        names = next(
            (names for text in _readings(text) if _KNOWN_COLUMNS.issuperset(names := text.split())), []
        )
        self._columns = names
        return True

    def add_row(self, pid: int, text: str) -> bool:
        """Add a process; False if it is of another table."""
        if pid in self._pids:
            return False
        readings = _readings(text)
        rows = [row for reading in readings if (row := self._cells(pid, reading)) is not None]
        if len(rows) > 1:
            rows = [(columns, cells) for columns, cells in rows if not _INTEGER.fullmatch(cells[-1])]
        if len(rows) != 1:
            self.is_whole = False
            return True
        self._pids.add(pid)
        if len(self.tasks) < MOST_TASKS:
            self.tasks.append(_task(pid, *rows[0]))
        return True

    def _cells(self, pid: int, text: str) -> tuple[list[str], list[str]] | None:
        """Columns and cells; columns follow from how many numbers there are where the header is missing."""
        words = text.split()
        count = next((n for n, word in enumerate(words) if not _INTEGER.fullmatch(word)), len(words))
        columns = (
            self._columns or f"uid tgid total_vm rss {_TABLES.get(count, '')} swapents oom_score_adj".split()
        )
        # The name of a process may be a number; behind one there are columns of another table.
        if len(words) <= len(columns) or count not in {len(columns), len(words)} or count > len(columns) + 1:
            return None
        if not self._columns and (count not in _TABLES or words[1] != str(pid) or CUT in words[count]):
            return None
        return columns, text.split(None, len(columns))


def _readings(text: str) -> list[str]:
    """What a text may have been where it was broken in a word, or between two."""
    parts = text.split(BREAK)
    if len(parts) > _MOST_BREAKS + 1:
        return []
    return [
        "".join(map("".join, zip(parts, (*spaces, ""), strict=True)))
        for spaces in product(("", " "), repeat=len(parts) - 1)
    ]


def _task(pid: int, columns: list[str], cells: list[str]) -> OomTask:
    fields: dict[str, int] = {}
    tables = None
    for column, cell in zip(columns, cells, strict=False):
        is_in_bytes = column == "nr_ptes" and int(cell) >= _LEAST_TABLE_BYTES
        if column in _PAGES_OF_TABLES and not is_in_bytes:
            tables = (tables or 0) + int(cell)
        elif column in _COLUMNS or is_in_bytes:
            fields[_COLUMNS.get(column, "pgtables_bytes")] = int(cell)
    return OomTask(pid=pid, name=cells[-1], pgtables_pages=tables, **fields)

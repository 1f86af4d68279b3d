"""A small process that has children of a wanted size in a wanted cgroup; run as `python -I -S`, by no pytest.

It reads one command a line and answers each with a line, a child's process id first. It and its children end
when their ways to read from are closed, so that none outlives the test, however that ends.
"""

import mmap
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

PAGE = mmap.PAGESIZE
CHUNK = bytes(64 << 10)
NO_HUGE_PAGES = getattr(mmap, "MADV_NOHUGEPAGE", None)


class Nursery:
    """The children, and the pipe that keeps them."""

    def __init__(self) -> None:
        self._kept, self._keeping = os.pipe()
        self._growing: tuple[int, int] | None = None
        self._living: set[int] = set()

    def born(self, cgroup: str, adj: str, kibibytes: str, kind: str) -> int:
        """Start a process in a cgroup that holds this memory: anonymous, of a file, or shared."""

        def live() -> None:
            os.write(self._ready, b"x")
            os.read(self._kept, 1)

        held: list[mmap.mmap] = []

        def prepare() -> None:
            held.append(_held(int(kibibytes) << 10, kind))

        return self._fork(cgroup, adj, prepare, live)

    def growing(self, cgroup: str, adj: str) -> int:
        """A child that fills memory which is in no process: a file in memory that nobody has mapped."""
        orders, to_order = os.pipe()
        answers, to_answer = os.pipe()
        filled = os.memfd_create("filled")

        def grow() -> None:
            os.close(to_order)
            os.close(answers)
            os.write(self._ready, b"x")
            while order := os.read(orders, 4):
                for _ in range(int.from_bytes(order, "little")):
                    os.write(filled, CHUNK)
                os.write(to_answer, b"x")

        pid = self._fork(cgroup, adj, lambda: None, grow)
        os.close(orders)
        os.close(to_answer)
        os.close(filled)
        self._growing = (to_order, answers)
        return pid

    def grow(self, chunks: str) -> int:
        """Let the growing process write this many chunks; return 0 if it has died."""
        assert self._growing is not None
        to_order, answers = self._growing
        try:
            os.write(to_order, int(chunks).to_bytes(4, "little"))
        except BrokenPipeError:
            return 0
        return len(os.read(answers, 1))

    def dead(self, wait: str) -> list[int]:
        """Who has died, reaped; waits for the first one with `wait`."""
        found: list[int] = []
        options = 0 if int(wait) else os.WNOHANG
        while True:
            try:
                pid, _ = os.waitpid(-1, options)
            except ChildProcessError:
                return found
            if not pid:
                return found
            found.append(pid)
            self._living.discard(pid)
            options = os.WNOHANG

    def end(self, *pids: str) -> list[int]:
        """Kill these children and reap them; an id that is no living child's any more may be anybody's."""
        if self._growing is not None:
            for end in self._growing:
                os.close(end)
            self._growing = None
        ours = self._living & set(map(int, pids))
        for pid in ours:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self._living -= ours
        return [len(ours)]

    def _fork(self, cgroup: str, adj: str, prepare: Callable[[], None], live: Callable[[], None]) -> int:
        ready, self._ready = os.pipe()
        pid = os.fork()
        if not pid:
            _as_child(self._keeping, ready, cgroup, adj, prepare, live)
        os.close(self._ready)
        is_ready = os.read(ready, 1)
        os.close(ready)
        if not is_ready:
            os.waitpid(pid, 0)
            return 0
        self._living.add(pid)
        return pid


def _as_child(
    keeping: int, ready: int, cgroup: str, adj: str, prepare: Callable[[], None], live: Callable[[], None]
) -> NoReturn:
    try:
        os.close(keeping)
        os.close(ready)
        os.close(0)
        os.close(1)
        _write(f"{cgroup}/cgroup.procs", str(os.getpid()))
        _write("/proc/self/oom_score_adj", adj)
        prepare()
        live()
    finally:
        os._exit(0)


def _held(size: int, kind: str) -> mmap.mmap:
    if kind == "anonymous":
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    else:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
    if NO_HUGE_PAGES is not None:
        memory.madvise(NO_HUGE_PAGES)
    for start in range(0, size, PAGE):
        memory[start] = 1
    return memory


def _write(path: str, text: str) -> None:
    handle = os.open(path, os.O_WRONLY)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def main() -> None:
    """Do what is asked for until nobody asks."""
    # The error of the kernel's counters of resident memory is one batch for each CPU that a process ran on.
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    nursery = Nursery()
    for line in sys.stdin:
        name, *words = line.split()
        answer = getattr(nursery, name)(*words)
        found: Sequence[int] = [answer] if isinstance(answer, int) else answer
        sys.stdout.write(f"{' '.join(map(str, found))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

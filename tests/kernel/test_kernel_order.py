"""The predicted order of victims against the one that the running kernel takes, in a tree of our own.

What a process uses is read from /proc/PID/status. Since 6.2 the kernel itself goes by counters that each CPU
adds to in batches (include/linux/mm.h get_mm_counter; lib/percpu_counter.c: a batch is twice the number of
CPUs, at least 32), so a counter may lack up to one batch for each CPU that the process ran on, where status
has had the exact sum since 6.16 (fs/proc/task_mmu.c task_mem, get_mm_counter_sum). All processes here are
kept on one CPU, which leaves one batch for each of the three counters (file, anonymous, shared). Before 6.2
both read the same counter.
"""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import pytest

from kubectl_qos.host.kernel_log import read_log
from kubectl_qos.host.procfs import PROC, read_meminfo, read_process
from kubectl_qos.qos.kills.report import Constraint
from kubectl_qos.qos.oom_score import OOM_SCORE_ADJ_MIN, badness, kernel_formula, proc_oom_score
from kubectl_qos.qos.process_order import HostProcess, RankedProcess, counted_pages, process_order
from tests.end_to_end.command import signals_arrive
from tests.kernel.memory_tree import NAME, Kind, MemoryTree, kind_of_this_machine, may_protect, memory_tree

MIXES: Final = 28
PROTECTED_MIXES: Final = 12
PAGE: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
BATCH: Final = max(32, 2 * (os.cpu_count() or 1))
SLACK_PAGES: Final = 2 * 3 * BATCH
"""Three counters of each of two processes that are compared."""
SCORE_SLACK: Final = 2
SHARP: Final = "right, and the only one with its points"
WRONG: Final = "wrong"
ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A process of a mix."""

    adj: int
    kibibytes: int
    kind: str = "anonymous"


@dataclass(frozen=True, slots=True)
class Step:
    """One kill: who lived in the cgroup of that limit, in the predicted order, and who died."""

    seed: int
    name: str
    limit_pages: int
    order: tuple[RankedProcess, ...]
    died: int
    scores: Mapping[int, tuple[int, int]]
    """What /proc said, and what was computed."""
    is_logged: bool
    """Whether the kernel's log said the same of who died, and when."""

    @property
    def diagnosis(self) -> str:
        """Whether the prediction was right, and how sharply it could be."""
        victim = next(row for row in self.order if row.process.pid == self.died)
        if victim.rank == 1:
            return "right, tied" if victim.is_tied else SHARP
        if victim.rank is not None and self.order[0].points - victim.points <= SLACK_PAGES:
            return "within the kernel's approximation"
        return WRONG


def predicted(processes: Sequence[HostProcess], limit_pages: int) -> tuple[RankedProcess, ...]:
    """The order in a cgroup of that limit; the score in /proc is of the machine, and plays no part there."""
    unscored = [msgspec.structs.replace(process, score=None) for process in processes]
    kernel = kernel_formula(os.uname().release)
    return process_order(unscored, limit_pages, PAGE, kernel, is_whole=False)


def drawn(seed: int, adjustments: Callable[[random.Random], int]) -> tuple[list[Wanted], int]:
    """A mix, and the limit of its domain in bytes: at times tight, so that memory decides, at times wide."""
    chance = random.Random(seed)
    wanted = [
        Wanted(adjustments(chance), chance.randrange(1024, 10 << 10), chance.choice(["anonymous", "shared"]))
        for _ in range(chance.randrange(3, 6))
    ]
    if chance.random() < 0.3:
        wanted[1] = wanted[0]
    needed = sum(one.kibibytes for one in wanted) << 10
    return wanted, needed + chance.randrange(10 << 20, 40 << 20)


def up_to_the_worst(chance: random.Random) -> int:
    """Values that anyone may write: a few that pods have, or close to each other, where memory decides."""
    return chance.choice(
        [chance.randrange(0, 1001), chance.randrange(0, 120), chance.choice([0, 3, 500, 984, 999, 1000])]
    )


def from_the_best(chance: random.Random) -> int:
    """Those of Guaranteed and critical pods and of daemons too."""
    return chance.choice(
        [
            chance.randrange(-999, 1001),
            chance.randrange(-120, 120),
            chance.choice([-999, -998, -997, 2, 1000]),
        ]
    )


def measured(pid: int) -> HostProcess:
    found = read_process(PROC, pid)
    assert isinstance(found, HostProcess), f"process {pid} is gone"
    return found


def scores(process: HostProcess) -> tuple[int, int]:
    """What /proc says, and what is computed."""
    kernel, machine = kernel_formula(os.uname().release), machine_pages()
    computed = badness(counted_pages(process, PAGE), process.adj, machine, kernel)
    assert process.score is not None
    return process.score, proc_oom_score(computed, machine, kernel)


def machine_pages() -> int:
    found = read_meminfo(PROC)
    return (found["MemTotal"] + found["SwapTotal"]) // PAGE


class KernelLog:
    """The kernel's log from now on, where it may be read."""

    def __init__(self) -> None:
        try:
            self._log: int | None = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._log, 0, os.SEEK_END)
        except OSError:
            self._log = None
        self.text = ""

    def killed(self) -> list[int]:
        """The processes that it has killed in cgroups since it was asked last, in order."""
        text = b""
        while self._log is not None:
            try:
                text += os.read(self._log, 8192)
            except BlockingIOError:
                break
            except BrokenPipeError:  # records that were overwritten before they were read
                continue
        self.text += text.decode(errors="replace")
        found = re.findall(rb"Memory cgroup out of memory: Killed process (\d+) ", text)
        return [int(pid) for pid in found]

    def close(self) -> None:
        if self._log is not None:
            os.close(self._log)


class Mix:
    """One mix that runs out of memory until its last process is dead; each kill with its prediction."""

    def __init__(
        self,
        tree: MemoryTree,
        log: KernelLog,
        seed: int,
        adjustments: Callable[[random.Random], int],
        growing_adj: int,
    ) -> None:
        wanted, limit = drawn(seed, adjustments)
        self._tree, self._log, self._seed = tree, log, seed
        self._path = tree.domain(f"mix{seed}", limit)
        self._limit_pages = int((self._path / tree.kind.limit).read_text()) // PAGE
        self._outsider = tree.process(tree.top / f"outside{seed}", 1000, 2048)
        self._living = [
            tree.process(self._path / f"leaf{index}", one.adj, one.kibibytes, one.kind)
            for index, one in enumerate(wanted)
        ]
        self._growing = tree.growing(self._path / "growing", growing_adj)
        self._living.append(self._growing)
        self._is_protected = growing_adj == OOM_SCORE_ADJ_MIN

    def steps(self) -> Iterator[Step]:
        try:
            while len(self._living) > 1:
                yield from self._kill()
        finally:
            self._tree.end([*self._living, self._outsider], self._path)

    def _kill(self) -> Iterator[Step]:
        now = [measured(pid) for pid in self._living]
        outsider = measured(self._outsider)
        shown = {one.pid: scores(one) for one in (*now, outsider) if one.adj != OOM_SCORE_ADJ_MIN}
        died = self._tree.next_victims(self._path)
        assert died, "the process that fills the memory is gone"
        if self._is_protected and self._growing in died:
            died.remove(self._growing)  # refused memory when nobody was left to be killed for it
        logged = [pid for pid in self._log.killed() if pid in died]
        if sorted(logged) == sorted(died):
            died = logged
        for pid in died:
            order = predicted(now, self._limit_pages)
            if len(died) > 1 and not logged and order[0].process.pid in died:
                pid = order[0].process.pid  # noqa: PLW2901 - which of them was first is not known
            yield Step(
                self._seed, self._path.name, self._limit_pages, order, pid, shown, is_logged=logged == died
            )
            now = [one for one in now if one.pid != pid]
            self._living.remove(pid)


@dataclass(frozen=True, slots=True)
class Ran:
    """All kills, and what the kernel wrote meanwhile."""

    steps: list[Step]
    log: str


def run_mixes(
    kind: Kind, seeds: Sequence[int], adjustments: Callable[[random.Random], int], growing_adj: int
) -> Ran:
    log = KernelLog()
    try:
        with memory_tree(kind) as tree:
            mixes = (Mix(tree, log, seed, adjustments, growing_adj) for seed in seeds)
            return Ran([step for mix in mixes for step in mix.steps()], log.text)
    finally:
        log.close()


@pytest.fixture(scope="module")
def kind() -> Kind:
    return kind_of_this_machine()


@pytest.fixture(scope="module")
def ran(kind: Kind) -> Ran:
    return run_mixes(kind, range(MIXES), up_to_the_worst, 0)


@pytest.fixture(scope="module")
def allowed(ran: Ran) -> list[Step]:
    return ran.steps


def judge(steps: Sequence[Step], mixes: int) -> None:
    found = Counter(step.diagnosis for step in steps)
    wrong = [step for step in steps if step.diagnosis == WRONG]
    assert not wrong, wrong[0]
    assert len({step.seed for step in steps}) == mixes
    assert len(steps) >= 3 * mixes, "each mix is followed to its last process"
    sharp = found[SHARP]
    assert sharp >= 0.8 * len(steps), f"too few of these mixes could have shown a mistake: {found}"


def test_every_order_is_the_kernels(allowed: list[Step]) -> None:
    judge(allowed, MIXES)


def test_every_score_is_the_kernels(allowed: list[Step]) -> None:
    compared = [pair for step in allowed for pair in step.scores.values()]
    assert len(compared) >= 5 * MIXES
    assert [pair for pair in compared if abs(pair[0] - pair[1]) > SCORE_SLACK] == []


def test_memory_decides_as_often_as_the_adjustment(allowed: list[Step]) -> None:
    """Otherwise these mixes would say nothing of how one is weighed against the other."""
    lower = [
        step for step in allowed if step.order[0].process.adj < max(row.process.adj for row in step.order)
    ]
    assert len(lower) >= MIXES / 4


def test_the_kernels_log_names_the_same(allowed: list[Step]) -> None:
    logged = [step for step in allowed if step.is_logged]
    if not logged:
        pytest.skip("the kernel's log cannot be read here")
    assert [step for step in allowed if not step.is_logged] == []


def test_its_reports_hold_what_was_measured(ran: Ran) -> None:
    """Of about ten reports in five seconds; of the others the kernel writes but who was killed."""
    ours = f"/{NAME}{os.getpid()}/"
    reports = [one for one in read_log(ran.log.splitlines()).reports if ours in one.oom_memcg and one.tasks]
    if not reports:
        pytest.skip("the kernel's log cannot be read here")
    steps = {step.died: step for step in ran.steps}
    for report in reports:
        step = steps[report.victims[0].pid]
        assert report.constraint is Constraint.MEMCG
        assert report.oom_memcg.endswith(f"/{step.name}")
        assert report.memory.limit_kb == step.limit_pages * PAGE // 1024
        living = {row.process.pid: row.process for row in step.order}
        assert {task.pid for task in report.tasks} == set(living)
        for task in report.tasks:
            tables = (task.pgtables_bytes or 0) // PAGE
            pages = counted_pages(living[task.pid], PAGE)
            assert abs(task.rss + task.swapents + tables - pages) <= SLACK_PAGES // 2
            assert task.adj == living[task.pid].adj


def test_protected_processes_too(kind: Kind) -> None:
    if not may_protect():
        pytest.skip("an oom_score_adj below zero may not be written here: CAP_SYS_RESOURCE is missing")
    steps = run_mixes(kind, range(1000, 1000 + PROTECTED_MIXES), from_the_best, OOM_SCORE_ADJ_MIN).steps
    judge(steps, PROTECTED_MIXES)
    assert [
        pair for step in steps for pair in step.scores.values() if abs(pair[0] - pair[1]) > SCORE_SLACK
    ] == []


def test_a_group_dies_as_a_whole(kind: Kind) -> None:
    if kind.version == 1:
        pytest.skip("memory.oom.group is of cgroup v2, and memory is with v1 here")
    with memory_tree(kind) as tree:
        path = tree.domain("group", 96 << 20)
        group = [tree.process(path / "all", 500, size) for size in (2048, 4096, 6144)]
        (path / "all" / "memory.oom.group").write_text("1")
        alone = tree.process(path / "alone", 400, 2048)
        growing = tree.growing(path / "growing", 0)
        assert predicted([*map(measured, group), measured(alone)], (96 << 20) // PAGE)[0].process.pid in group
        died = tree.next_victims(path)
        deadline = time.monotonic() + 5
        while len(died) < len(group) and time.monotonic() < deadline:
            died += tree._request("dead 0")
        tree.end([alone, growing], path)
        assert sorted(died) == sorted(group)


FAILING = """
import os, sys, time
from pathlib import Path
from kubectl_qos.qos.process_order import counted_pages
from tests.kernel.memory_tree import kind_of_this_machine, memory_tree
with memory_tree(kind_of_this_machine()) as tree:
    domain = tree.domain("short", 32 << 20)
    print(tree.top, tree.process(domain / "leaf", 0, 2048), tree.growing(domain / "growing", 0), flush=True)
    if sys.argv[1] == "raise":
        raise ValueError
    time.sleep(60)
"""


@pytest.mark.parametrize("how", ["raise", "interrupt", "kill"])
def test_nothing_is_left_behind(kind: Kind, how: str) -> None:
    words = [sys.executable, "-c", FAILING, how]
    with signals_arrive():
        started = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with started as run:
        assert run.stdout is not None
        top, *pids = run.stdout.readline().split()
        if how != "raise":
            run.send_signal(signal.SIGINT if how == "interrupt" else signal.SIGKILL)
        assert run.wait(10) != 0
    assert until(lambda: not any(Path(f"/proc/{int(pid)}").exists() for pid in pids)), "its processes live on"
    if how == "kill":
        with memory_tree(kind):
            """The next one sweeps up."""
    assert not Path(top.decode()).exists()


def until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 5
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture(scope="module", autouse=True)
def nothing_left(kind: Kind) -> Iterator[None]:
    yield
    assert not (kind.parent / f"{NAME}{os.getpid()}").exists()

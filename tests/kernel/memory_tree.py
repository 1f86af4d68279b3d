"""A small tree of memory cgroups with processes of chosen size, that runs out of memory when it is told to.

Everything here is bounded: in memory by the limit of the topmost cgroup, in time by a deadline on answers.
Nothing outlives it: the processes end with the nursery, and the cgroups are removed with it, or by the next
run if this one was killed itself.
"""

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

LARGEST_BYTES: Final = 256 << 20
SECONDS: Final = 180.0
"""For one tree; on a busy machine of two CPUs the largest needs ten."""
NAME: Final = "kubectl-qos-test-"
CHUNK_BYTES: Final = 64 << 10
_NURSERY: Final = Path(__file__).with_name("nursery.py")
_MOUNT: Final = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Kind:
    """Where a memory cgroup can be made, and how its files are called."""

    version: int
    parent: Path
    limit: str
    usage: str
    kills: str


def kind_of_this_machine() -> Kind:
    """The memory controller of this machine. Skips the test, with the reason, where there is none to use."""
    if sys.platform != "linux":
        pytest.skip("the kernel's own choice can only be seen on Linux")
    if os.geteuid():
        pytest.skip("making a memory cgroup needs root")
    if Path("/proc/sys/vm/panic_on_oom").read_text().strip() == "2":
        pytest.skip("vm.panic_on_oom is 2 here: running out of memory in a cgroup would stop the machine")
    own = dict(_own_cgroups())
    found = _version_1(own.get("memory")) or _version_2(own.get(""))
    if found is None:
        pytest.skip("there is no memory cgroup in which another one can be made")
    return found


def may_protect() -> bool:
    """Whether an oom_score_adj below zero may be written here, for which CAP_SYS_RESOURCE is needed."""
    with subprocess.Popen(["sleep", "10"]) as child:
        try:
            Path(f"/proc/{child.pid}/oom_score_adj").write_text("-1")
        except PermissionError:
            return False
        finally:
            child.kill()
    return True


class MemoryTree:
    """One topmost cgroup, in it domains with limits of their own, in each of those a leaf for each."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self._deadline = time.monotonic() + SECONDS
        _sweep(kind.parent)
        self.top = kind.parent / f"{NAME}{os.getpid()}"
        self._nursery: subprocess.Popen[bytes] | None = None
        try:
            self.top.mkdir()
            self._fill_in(self.top, LARGEST_BYTES)
            self._nursery = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_NURSERY)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        except BaseException:
            self.close()
            raise

    def domain(self, name: str, limit_bytes: int) -> Path:
        """A cgroup that can run out of memory on its own."""
        path = self.top / name
        path.mkdir()
        self._fill_in(path, limit_bytes)
        return path

    def process(self, leaf: Path, adj: int, kibibytes: int, kind: str = "anonymous") -> int:
        """A process of that size in that cgroup, which is made if need be."""
        leaf.mkdir(exist_ok=True)
        pid = self._request(f"born {leaf} {adj} {kibibytes} {kind}")[0]
        assert pid, f"no process could be made in {leaf}"
        return pid

    def growing(self, leaf: Path, adj: int) -> int:
        """The process that fills the domain with memory that counts as no process's."""
        leaf.mkdir()
        pid = self._request(f"growing {leaf} {adj}")[0]
        assert pid, f"no process could be made in {leaf}"
        return pid

    def next_victims(self, domain: Path) -> list[int]:
        """Fill the domain until the kernel kills; who died, several only where one did not help.

        Shared memory goes with the process, not with the oom_reaper (mm/oom_kill.c __oom_reap_task_mm), so
        the kernel at times kills again before it is free, in the end the growing one. Empty if that is gone.
        """
        files = self._counting(domain)
        before, limit = _kills(files), _number(domain / self.kind.limit)
        while _kills(files) == before:
            room = limit - _number(domain / self.kind.usage)
            # A large step while there is room, then small ones, so that one step does not cost two lives.
            chunks = max(room // CHUNK_BYTES - 2, 2)
            if not self._request(f"grow {chunks}")[0]:
                break
        died: list[int] = []
        while len(died) < _kills(files) - before:
            died += self._request("dead 1")
        return died

    def end(self, pids: Sequence[int], domain: Path) -> None:
        """End the processes that are left of a domain, and remove it."""
        self._request(f"end {' '.join(map(str, pids))}")
        _remove(domain)

    def close(self) -> None:
        nursery, self._nursery = self._nursery, None
        if nursery is not None:
            assert nursery.stdin is not None
            assert nursery.stdout is not None
            with contextlib.suppress(OSError):
                nursery.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                nursery.wait(2)
            nursery.kill()
            nursery.wait()
            nursery.stdout.close()
        _remove(self.top)

    def _request(self, words: str) -> list[int]:
        assert self._nursery is not None
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        self._nursery.stdin.write(f"{words}\n".encode())
        self._nursery.stdin.flush()
        left = self._deadline - time.monotonic()
        if not select.select([self._nursery.stdout], [], [], max(left, 0))[0]:
            raise TimeoutError(f"no answer to {words!r} within the {SECONDS:.0f} s that there are in all")
        return list(map(int, self._nursery.stdout.readline().split()))

    def _fill_in(self, path: Path, limit_bytes: int) -> None:
        """The limit, and no swap in it: with swap nothing would ever run out here."""
        (path / self.kind.limit).write_text(str(limit_bytes))
        if self.kind.version == 1:
            if (path / "memory.use_hierarchy").read_text().strip() == "0":
                (path / "memory.use_hierarchy").write_text("1")
            (path / "memory.swappiness").write_text("0")
            (path / "memory.oom_control").write_text("0")
        else:
            (path / "cgroup.subtree_control").write_text("+memory")
            if (path / "memory.swap.max").exists():
                (path / "memory.swap.max").write_text("0")

    def _counting(self, domain: Path) -> list[Path]:
        """The files that count kills in the whole domain; on v1 each cgroup counts its own."""
        return list(domain.rglob(self.kind.kills)) if self.kind.version == 1 else [domain / self.kind.kills]


@contextlib.contextmanager
def memory_tree(kind: Kind) -> Iterator[MemoryTree]:
    """A tree that is gone afterwards, whatever happens within."""
    tree = MemoryTree(kind)
    try:
        yield tree
    finally:
        tree.close()


def _kills(files: Sequence[Path]) -> int:
    lines = [line.split() for path in files for line in path.read_text().splitlines()]
    return sum(int(count) for name, count in lines if name == "oom_kill")


def _number(path: Path) -> int:
    return int(path.read_text())


def _own_cgroups() -> Iterator[tuple[str, str]]:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, path


def _version_1(own: str | None) -> Kind | None:
    parent = _MOUNT / "memory" / (own or "").lstrip("/")
    if own is None or not (parent / "memory.limit_in_bytes").exists() or not os.access(parent, os.W_OK):
        return None
    return Kind(1, parent, "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.oom_control")


def _version_2(own: str | None) -> Kind | None:
    """The nearest cgroup above whose children have the controller; one with processes gives it to none."""
    if own is None:
        return None
    for mount in (_MOUNT, _MOUNT / "unified"):
        for parent in (mount / own.lstrip("/"), *(mount / own.lstrip("/")).parents):
            if not parent.is_relative_to(mount):
                break
            control = parent / "cgroup.subtree_control"
            if control.exists() and "memory" in control.read_text().split() and os.access(parent, os.W_OK):
                return Kind(2, parent, "memory.max", "memory.current", "memory.events")
    return None


def _sweep(parent: Path) -> None:
    """Remove what a run that was killed has left: only cgroups of ours whose maker lives no more."""
    for left in parent.glob(f"{NAME}*"):
        maker = left.name.removeprefix(NAME)
        if maker.isdecimal() and not Path(f"/proc/{maker}").exists():
            _remove(left)


def _remove(path: Path) -> None:
    """Remove a cgroup and those in it; the kernel lets a process that has just ended hold it a moment."""
    if not path.exists():
        return
    below = sorted((one for one in path.rglob("*") if one.is_dir()), key=lambda one: -len(one.parts))
    for one in (*below, path):
        for _ in range(100):
            try:
                one.rmdir()
                break
            except OSError:
                time.sleep(0.02)

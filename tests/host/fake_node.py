"""A fake node: /proc and /sys/fs/cgroup as files in a folder."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.recordings.files import read_json, read_lines

SIZES = ("VmRSS", "RssAnon", "VmSwap", "VmPTE")
VARIANTS = ("systemd", "memoryqos-tiered", "limitedswap", "singleprocessoomkill")


@dataclass(frozen=True, slots=True)
class FakeNode:
    """The folders, and what adds files to them."""

    root: Path

    @property
    def proc(self) -> Path:
        return self.root / "proc"

    @property
    def cgroup(self) -> Path:
        return self.root / "cgroup"

    def machine(
        self, meminfo: str = "MemTotal: 16777216 kB\nSwapTotal: 0 kB\n", kernel: str = "6.1.0"
    ) -> None:
        write(self.proc / "meminfo", meminfo)
        write(self.proc / "sys/kernel/osrelease", f"{kernel}\n")
        self.kernel_thread(2, "kthreadd", ppid=0)
        write(self.cgroup / "cgroup.controllers", "cpu memory\n")
        write(self.cgroup / "cgroup.procs", "")

    def sysctl(self, name: str, value: int) -> None:
        write(self.proc / "sys" / name, f"{value}\n")

    def kernel_thread(self, pid: int, comm: str, ppid: int = 2) -> None:
        status = f"Name:\t{comm}\nState:\tI (idle)\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t{ppid}\nThreads:\t1\n"
        self.files(pid, status=status, comm=f"{comm}\n", cmdline="", oom_score="0\n", oom_score_adj="0\n")

    def process(
        self,
        pid: int,
        comm: str = "app",
        *,
        adj: int = 0,
        score: int | None = None,
        cgroup: str = "0::/",
        cmdline: str = "",
        ppid: int = 1,
        status: Mapping[str, str] | None = None,
        **memory: Any,
    ) -> None:
        """A process; its memory in whole KiB by the names of status."""
        lines = {
            "Name": comm.replace("\n", "\\n"),
            "State": "S (sleeping)",
            "PPid": str(ppid),
            "Uid": "0\t0\t0\t0",
            **{name: f"{value} kB" for name, value in {"VmRSS": 1024, **memory}.items()},
            "Threads": "1",
            **(status or {}),
        }
        self.files(
            pid,
            status="".join(f"{name}:\t{value}\n" for name, value in lines.items() if value),
            comm=f"{comm}\n",
            cmdline=cmdline.replace(" ", "\0") + "\0",
            oom_score_adj=f"{adj}\n",
            oom_score=f"{666 + adj * 2 // 3 if score is None else score}\n",
            cgroup=f"{cgroup}\n",
        )

    def files(self, pid: int, **files: str) -> None:
        """Add files of a process; all appear at once, as those of a real one do."""
        folder, built = self.proc / str(pid), self.root / f"process-{pid}"
        if folder.exists():
            folder.rename(built)
        for name, text in files.items():
            write(built / name, text)
        self.proc.mkdir(exist_ok=True)
        built.rename(folder)

    def end(self, pid: int) -> None:
        shutil.rmtree(self.proc / str(pid))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")


def recorded_node(root: Path, variant: str) -> tuple[FakeNode, dict[int, dict[str, Any]], dict[str, Any]]:
    """A recorded node, its processes as recorded, and the pods by UID."""
    node = FakeNode(root)
    recording = read_json(f"node-1.36/node-{variant}.json")
    node.machine(recording["machine"]["meminfo"] + "\n", recording["machine"]["uname"].split()[2])
    for name, value in recording["machine"]["sysctl"].items():
        node.sysctl(f"vm/{name}", int(value))
    processes = {one["pid"]: one for one in recording["daemons"]}
    pods = {}
    for line in read_lines(f"node-1.36/measured-{variant}.jsonl"):
        measured = json.loads(line)
        pods[measured["pod"]["metadata"]["uid"]] = measured
        for container in measured["containers"]:
            folder = node.cgroup / container["cgroup_path"].removeprefix("/sys/fs/cgroup").lstrip("/")
            for name, text in container["cgroup"].items():
                write(folder / name, f"{text}\n")
            for process in container["processes"]:
                processes.setdefault(process["pid"], process)
    for pid, one in processes.items():
        sizes: dict[str, Any] = {name: int(one.get(name, "0").split()[0]) for name in SIZES}
        node.process(
            pid,
            one["comm"],
            adj=one["oom_score_adj"],
            score=one["oom_score"],
            cgroup=one["cgroup"],
            cmdline=one["cmdline"],
            ppid=one["ppid"],
            **sizes,
        )
    return node, processes, pods

"""The recorded node as a cluster whose containers can be looked into, as a dump, and as folders."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from kubectl_qos.cluster.exec import SHELL
from tests.cluster.cluster_objects import recorded_node
from tests.cluster.exec_server import ended, switched
from tests.cluster.https_server import Answer, Request
from tests.cluster.object_server import ObjectServer
from tests.recordings.files import read_json, read_lines

READER = 4000
"""The pid of the shell that reads."""


@cache
def _lines() -> tuple[str, ...]:
    return tuple(read_lines("node-1.36/measured-systemd.jsonl"))


def recorded(*names: str) -> list[dict[str, Any]]:
    """The lines of these pods, of all without names; each a copy to change."""
    found = map(json.loads, _lines())
    return [one for one in found if not names or one["pod"]["metadata"]["name"] in names]


def container_of(line: Mapping[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in line["containers"] if one["name"] == name)
    return found


def sections(container: Mapping[str, Any]) -> str:
    """What the line of sh would say in this container."""
    adj = container["oci"]["oomScoreAdj"]
    found = {"$$": str(READER), "/proc/self/cgroup": "0::/", "/proc/self/oom_score_adj": str(adj)}
    for process in container["processes"]:
        folder = f"/proc/{process['pid']}"
        found |= {f"{folder}/cgroup": "0::/", f"{folder}/oom_score_adj": str(process["oom_score_adj"])}
        found |= {f"{folder}/comm": process["comm"], f"{folder}/oom_score": str(process["oom_score"])}
    read = {name for name in container["cgroup"] if name in SHELL[-1] or name.startswith("hugetlb.")}
    found |= {f"/sys/fs/cgroup/{name}": container["cgroup"][name] for name in read}
    return "".join(f"==> {name}\n{text}\n" for name, text in found.items())


class Cluster:
    """Answers about the recorded objects, and execs by what was measured.

    `execs` is where commands were run; `answers` by container come before what was measured.
    """

    def __init__(self, lines: list[dict[str, Any]], *, configz: bool = True) -> None:
        self.lines = {one["pod"]["metadata"]["name"]: one for one in lines}
        self.execs: list[tuple[str, str]] = []
        self.answers: dict[str, Callable[[Request], Answer]] = {}
        pods = [{"kind": "Pod", "apiVersion": "v1", **one["pod"]} for one in lines]
        self.objects = ObjectServer(pods=pods, nodes=[recorded_node()])
        if configz:
            path = "/api/v1/nodes/node1/proxy/configz"
            self.objects.others[path] = read_json("node-1.36/configz-systemd.json")

    def __call__(self, request: Request) -> Answer:
        if not request.path.endswith("/exec"):
            return self.objects(request)
        pod, container = request.path.split("/")[-2], request.query["container"]
        self.execs.append((pod, container))
        if container in self.answers:
            return self.answers[container](request)
        text = sections(container_of(self.lines[pod], container))
        return switched(request, ended(text.encode()))


def host_processes(lines: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The processes of these pods as `kubectl qos host -o json` has them."""
    for line in lines:
        for container in line["containers"]:
            for process in container["processes"]:
                yield {
                    "pid": process["pid"],
                    "ppid": process["ppid"],
                    "command": process["comm"],
                    "oomScoreAdj": process["oom_score_adj"],
                    "rssBytes": int(process["VmRSS"].split()[0]) << 10,
                    "cgroup": container["cgroup_path"],
                }


def cgroups(lines: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    """The directories of these pods and above them, with every file."""
    found: dict[str, dict[str, str]] = {}
    for line in lines:
        for level in filter(None, line["levels"].values()):
            found.setdefault(level["path"], {name: text for name, text in level.items() if name != "path"})
        found |= {one["cgroup_path"]: one["cgroup"] for one in line["containers"]}
    return found


def dump(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """What `kubectl qos host -o json` would have written."""
    return {
        "apiVersion": "kubectl-qos/v1",
        "kind": "HostView",
        "processes": list(host_processes(lines)),
        "meminfoBytes": {"MemTotal": 3984140 << 10, "SwapTotal": 0},
        "cgroups": cgroups(lines),
        "cgroupVersion": 2,
    }


def write_roots(folder: Path, lines: list[dict[str, Any]]) -> tuple[Path, Path]:
    """A /proc and a /sys/fs/cgroup with the files that are read."""
    proc, root = folder / "proc", folder / "cgroup"
    for process in host_processes(lines):
        place = proc / str(process["pid"])
        place.mkdir(parents=True)
        (place / "status").write_text(
            f"Name:\t{process['command']}\nVmRSS:\t{process['rssBytes'] >> 10} kB\nUid:\t0 0 0 0\n"
        )
        (place / "oom_score_adj").write_text(f"{process['oomScoreAdj']}\n")
        (place / "comm").write_text(f"{process['command']}\n")
        (place / "cgroup").write_text(f"0::{process['cgroup']}\n")
    (proc / "meminfo").write_text("MemTotal:        3984140 kB\nSwapTotal:             0 kB\n")
    for path, files in {"/": {"cgroup.controllers": "memory"}, **cgroups(lines)}.items():
        place = root / path.strip("/")
        place.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (place / name).write_text(f"{text}\n")
    return proc, root

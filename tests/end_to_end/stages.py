"""What lies in the folder of a transcript before its first command."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tests.host.fake_node import FakeNode, write
from tests.host.kernel_logs import RECORDED, recorded_run

UID = "751ba52d-1ed4-4457-a206-d3c5b2ac7363"
ID = "222789f8f1d3b943aa2b7d39f7a417096db0d7eeab78e4a38a3189e8a5899d72"
SCOPE = f"cri-containerd-{ID}.scope"
SLICE = f"kubepods-burstable-pod{UID.replace('-', '_')}.slice"
PATH = f"/kubepods.slice/kubepods-burstable.slice/{SLICE}/{SCOPE}"


def node_oom(home: Path) -> None:
    """The recorded node OOM as `kubectl get pods,nodes,events -o json` dumps it, and two kernel logs."""
    said = recorded_run("global-A")
    items = [{**pod, "kind": "Pod"} for pod in said["pods_after"].values()]
    items += [said["node_after"], *({**event, "kind": "Event"} for event in said["events"])]
    (home / "dump.json").write_text(json.dumps({"kind": "List", "items": items}))
    for name in ("global-A", "kubepods-C"):
        shutil.copy(RECORDED / f"oom-{name}.dmesg.txt", home / f"{name}.log")


def small_node(home: Path) -> FakeNode:
    """The files of a node with five processes, two of them in a container."""
    found = FakeNode(home / "node")
    found.machine()
    found.process(1, "systemd", ppid=0, score=0, cgroup="0::/init.scope")
    found.process(50, "udevd", adj=-1000, score=0, cgroup="0::/system.slice/udev.service")
    found.process(60, "kubelet", adj=-999, score=4, VmRSS=102400, cgroup="0::/system.slice/kubelet.service")
    found.process(70, "web server", adj=900, score=1279, VmRSS=2 << 20, RssAnon=1 << 20, cgroup=f"0::{PATH}")
    found.process(71, "worker", adj=900, score=1266, cgroup=f"0::{PATH}", cmdline="/bin/worker --fast")
    write(found.cgroup / PATH.lstrip("/") / "memory.oom.group", "1\n")
    return found


STAGES: Final[Mapping[str, Callable[[Path], object]]] = MappingProxyType(
    {"kills": node_oom, "host": small_node}
)

"""What is in the folder of a transcript before its first command, and the clusters of its contexts."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml

from kubectl_qos.k8s.rbac import TIERS
from tests.cluster.cluster_objects import node
from tests.cluster.exec_server import ended, exit_code, failure, said, switched
from tests.cluster.https_server import Answer, Request
from tests.cluster.kubeconfigs import kubeconfig
from tests.cluster.kubeconfigs import write as write_config
from tests.cluster.object_server import status
from tests.cluster.replay import Replay
from tests.cluster.reviewer import READER, Reviewer
from tests.cluster.serving import Serve
from tests.end_to_end.changing import Cluster
from tests.end_to_end.verifying import Cluster as VerifyCluster
from tests.end_to_end.verifying import container_of, recorded
from tests.host.fake_node import FakeNode, write
from tests.host.kernel_logs import recorded_run
from tests.recordings.files import read

UID = "751ba52d-1ed4-4457-a206-d3c5b2ac7363"
ID = "222789f8f1d3b943aa2b7d39f7a417096db0d7eeab78e4a38a3189e8a5899d72"
SCOPE = f"cri-containerd-{ID}.scope"
SLICE = f"kubepods-burstable-pod{UID.replace('-', '_')}.slice"
PATH = f"/kubepods.slice/kubepods-burstable.slice/{SLICE}/{SCOPE}"


EVERYTHING = [
    f"{right.verb} {right.target}{place}"
    for tier in TIERS
    for right in tier.permissions
    for place in ("", " in shop")
]
"""Every right that the program can use, in all namespaces and in `shop`."""


def contexts(
    home: Path, serve: Serve, answers: Mapping[str, Callable[[Request], Answer]], namespace: str = "shop"
) -> None:
    """A kubeconfig with a context of the namespace for each server; the first is the current one."""
    configs = [
        kubeconfig(serve(answer), namespace=namespace, context=name) for name, answer in answers.items()
    ]
    configs.append(kubeconfig("https://127.0.0.1:1", namespace=namespace, context="unreachable"))
    config = configs[0]
    for key in ("clusters", "users", "contexts"):
        config[key] = [entry for one in configs for entry in one[key]]
    write_config(home / ".kube" / "config", config)


def rights(home: Path, serve: Serve) -> None:
    """Clusters that allow something or everything, and some that answer reviews otherwise."""
    usage = "list pods.metrics.k8s.io in shop"
    failing = dict.fromkeys(["list nodes", "watch nodes", "get nodes/proxy"], status(500, "", "tired"))
    unknown = Reviewer(["get nodes"])
    unknown.faults = failing
    contexts(
        home,
        serve,
        {
            "reader": Reviewer([*READER, "get pods", usage]),
            "nothing": Reviewer(),
            "no-get": Reviewer(READER[1:]),
            "no-watch": Reviewer(READER[:2]),
            "elsewhere": Reviewer([right.replace("shop", "web") for right in READER]),
            "everywhere": Reviewer(["get pods", "list pods", "watch pods"]),
            "everything": Reviewer(EVERYTHING),
            "nothing-dangerous": Reviewer(
                [right for right in EVERYTHING if not re.search("proxy|exec|patch", right)]
            ),
            "no-metrics": Reviewer(
                [right for right in EVERYTHING if "metrics" not in right and ".apps" not in right]
            ),
            "failing": unknown,
            "refused": lambda _: status(403, "Forbidden", "reviews are \x1b[31mforbidden"),
            "unauthorized": lambda _: status(401, "Unauthorized", "Unauthorized"),
            "odd-reasons": Reviewer(reason="no\x1b[2J\nyes"),
        },
    )
    config = home / ".kube" / "config"
    viewer = kubeconfig(serve(Replay()), namespace="rec", context="viewer", user={"token": "viewer"})
    whole = yaml.safe_load(config.read_text())
    write_config(
        config, {**whole, **{key: whole[key] + viewer[key] for key in ("clusters", "users", "contexts")}}
    )


class VersionServer:
    """A server of this version whose nodes have these kubelets; None: they may not be listed."""

    def __init__(self, version: str, kubelets: list[str] | None = None, nodes: Answer | None = None) -> None:
        self.version, self.kubelets, self.nodes = version, kubelets, nodes

    def __call__(self, request: Request) -> Answer:
        if request.path == "/version":
            return Answer(body=json.dumps({**SERVER_VERSION, "gitVersion": self.version}).encode())
        assert request.path == "/api/v1/nodes"
        if self.nodes is not None:
            return self.nodes
        if self.kubelets is None:
            return status(403, "Forbidden", "nodes is forbidden")
        assert request.headers["accept"] == "application/json;as=Table;v=v1;g=meta.k8s.io"
        assert request.query == {"resourceVersion": "0", "includeObject": "None"}
        return node_table(self.kubelets)


SERVER_VERSION: Final = {"major": "1", "platform": "linux/amd64", "goVersion": "go1.24"}


def node_table(kubelets: list[str]) -> Answer:
    """The nodes as an API server prints them."""
    columns = ["Name", "Status", "Roles", "Age", "Version", "Internal-IP", "OS-Image", "Kernel-Version"]
    rows = [["n", "Ready", "<none>", "1d", version, "10.0.0.1", "Debian", "6.1"] for version in kubelets]
    table = {
        "kind": "Table",
        "columnDefinitions": [{"name": name, "type": "string"} for name in columns],
        "rows": [{"cells": row} for row in rows],
    }
    return Answer(body=json.dumps(table).encode())


def versions(home: Path, serve: Serve) -> None:
    """Servers of several versions, and a node in a file."""
    kubelets = ["v1.9.1", "v1.33.2", "v1.36.0-eks-1", "v1.36.2", "v1.36.2"]
    contexts(
        home,
        serve,
        {
            "several": VersionServer("v1.36.2", kubelets),
            "forbidden": VersionServer("v1.36.2"),
            "oldest": VersionServer("v1.25.0"),
            "newest": VersionServer("v1.37.9+k3s1"),
            "newer": VersionServer("v1.38.0", ["v1.38.0"]),
            "older": VersionServer("v1.19.4"),
            "unverified": VersionServer("v1.24.1"),
            "odd": VersionServer("\x1b[31mred"),
            "html": VersionServer("v1.36.2", nodes=Answer(body=b"<html>")),
            "unauthorized": lambda _: status(401, "Unauthorized", "Unauthorized"),
            "silent": lambda _: Answer(delay_seconds=20),
        },
    )
    (home / "node.json").write_text(json.dumps(node("a")))


def node_oom(home: Path, _: Serve | None = None) -> None:
    """The recorded node OOM as `kubectl get pods,nodes,events -o json` dumps it, and two kernel logs."""
    said = recorded_run("global-A")
    items = [{**pod, "kind": "Pod"} for pod in said["pods_after"].values()]
    items += [said["node_after"], *({**event, "kind": "Event"} for event in said["events"])]
    (home / "dump.json").write_text(json.dumps({"kind": "List", "items": items}))
    for name in ("global-A", "kubepods-C"):
        (home / f"{name}.log").write_bytes(read(f"node-1.36/oom-{name}.dmesg.txt"))


def small_node(home: Path, _: Serve | None = None) -> FakeNode:
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


SMALL: Final = ("bu-mem-odd", "bu-multi", "be-plain", "sidecar-small", "gu-frac")


def drifting(*names: str, **container: str) -> VerifyCluster:
    """The recorded pods; in the last container `c` of them, files of the cgroup have other values."""
    lines = recorded(*names)
    container_of(lines[-1], "c")["cgroup"] |= {
        name.replace("_", "."): value for name, value in container.items()
    }
    return VerifyCluster(lines)


def answering(pod: str, container: str, *frames: bytes, changed: str = "") -> VerifyCluster:
    """A recorded pod, one container of which answers an exec by these frames; another one may be changed."""
    lines = recorded(pod)
    if changed:
        container_of(lines[0], changed)["cgroup"]["cpu.weight"] = "7"
    cluster = VerifyCluster(lines)
    cluster.answers[container] = lambda request: switched(request, list(frames))
    return cluster


def refusing(pod: str) -> VerifyCluster:
    """A recorded pod in none of whose containers a command may be run."""
    cluster = VerifyCluster(recorded(pod))
    message = 'pods "x" is forbidden: User "viewer" cannot create resource "pods/exec"'
    cluster.answers = dict.fromkeys("abcd", lambda _: status(403, "Forbidden", message))
    return cluster


def measured(home: Path, serve: Serve) -> None:
    """The recorded node, with values, containers and pods that are otherwise."""
    own = recorded("bu-mem-odd")
    (process,) = container_of(own[0], "c")["processes"]
    process |= {"oom_score_adj": 1000, "comm": "a\x1b[2Jb"}
    sandboxed = recorded("bu-mem-odd")
    sandboxed[0]["pod"]["spec"]["runtimeClassName"] = "kata"
    lines = recorded("bu-mem-odd", "be-plain", "gu-frac")
    lines[0]["pod"]["status"]["phase"] = "Succeeded"
    del lines[1]["pod"]["spec"]["nodeName"]
    lines[2]["pod"]["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
    windows = VerifyCluster(recorded("bu-mem-odd"))
    windows.objects.nodes = [copy.deepcopy(found) for found in windows.objects.nodes]
    windows.objects.nodes[0]["status"]["nodeInfo"]["operatingSystem"] = "windows"
    drifted = copy.deepcopy(sandboxed)
    container_of(drifted[0], "c")["cgroup"]["cpu.weight"] = "7"
    no_shell = failure('exec: "sh": executable file not found in $PATH')
    contexts(
        home,
        serve,
        {
            "same": VerifyCluster(recorded(*SMALL)),
            "one-limit": drifting("bu-mem-odd", memory_max="123456789"),
            "one-weight": drifting(*SMALL, cpu_weight="7"),
            "own-adj": VerifyCluster(own),
            "no-shell": answering("bu-multi", "b", *ended(status=no_shell)),
            "failing": answering("bu-mem-odd", "c", *ended(b"", b"", exit_code(126))),
            "broken-off": answering("bu-multi", "a", said(1, b"==> $$\n")),
            "broken-off-and-drift": answering("bu-multi", "a", said(1, b"==> $$\n"), changed="b"),
            "nonsense": answering("bu-mem-odd", "c", *ended(NONSENSE)),
            "forbidden": refusing("bu-mem-odd"),
            "all-forbidden": refusing("bu-multi"),
            "kata": VerifyCluster(sandboxed),
            "kata-drift": VerifyCluster(drifted),
            "not-running": VerifyCluster(lines),
            "windows": windows,
        },
        namespace="default",
    )


NONSENSE: Final = b"==> $$\n7\n==> /proc/self/cgroup\n0::/\n==> /proc/1/oom_score_adj\nx\x1b[2J\n"


STAGES: Final[Mapping[str, Callable[[Path, Serve], Any]]] = MappingProxyType(
    {
        "apply": Cluster,
        "can-i": rights,
        "host": small_node,
        "kills": node_oom,
        "report": node_oom,
        "undo": Cluster,
        "verify": measured,
        "version": versions,
    }
)

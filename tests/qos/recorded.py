"""The recorded nodes (kubelet 1.36.2, containerd, runc, cgroup v2): measured there, and predicted of them."""

import copy
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import msgspec
import yaml
from msgspec import structs

from kubectl_qos.analysis.verification import Observed, ObservedContainer, ObservedProcess
from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup, kubelet_from_configz, node_from_object
from kubectl_qos.k8s.objects import NodeObject, Pod, convert
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import PodUsage, Summary, usage_from_summary
from kubectl_qos.qos.prediction import Prediction, predict
from kubectl_qos.qos.process_order import HostView
from kubectl_qos.qos.simulation.node_state import NodeState, state_of_node
from tests.recordings.files import read, read_json, read_lines, read_rows

VARIANTS = ["systemd", "memoryqos-tiered", "limitedswap", "singleprocessoomkill"]
Json = Mapping[str, Any]


class Case(NamedTuple):
    """One recorded pod: predicted, and measured."""

    prediction: Prediction
    measured: Observed


@cache
def node_of(variant: str) -> Json:
    found: Json = read_json(f"node-1.36/node-{variant}.json")
    return found


@cache
def rows_of(variant: str) -> tuple[Json, ...]:
    """What was recorded of each pod of a node."""
    return tuple(read_rows(f"node-1.36/measured-{variant}.jsonl"))


@cache
def setup_of(variant: str) -> NodeSetup:
    """The node's facts and its kubelet's configuration as recorded."""
    found = node_of(variant)
    kubelet = kubelet_from_configz(found["configz"], Release.of("1.36"))
    node = node_from_object(convert(found["node"], NodeObject), kubelet)
    swap = next(line for line in found["machine"]["meminfo"].splitlines() if line.startswith("SwapTotal"))
    return NodeSetup.of(structs.replace(node, swap_capacity_bytes=int(swap.split()[1]) * 1024), kubelet)


@cache
def cases(variant: str) -> tuple[Case, ...]:
    """Each recorded pod that is on the node."""
    return tuple(case_of(variant, row) for row in rows_of(variant) if row["pod"]["spec"].get("nodeName"))


def case_of(variant: str, row: Json) -> Case:
    """A recorded pod predicted on that node, and measured."""
    setup = setup_of(variant)
    return Case(predict(convert(row["pod"], Pod), setup.node, kubelet=setup.kubelet), measured_of(row))


def measured_of(row: Json) -> Observed:
    """A line of a recording as it would have been read on the node; the pause container is left out."""
    containers = {
        one["name"]: ObservedContainer(
            one["cgroup"],
            tuple(ObservedProcess(p["pid"], p["comm"], p["oom_score_adj"]) for p in one["processes"]),
            one["cgroup_path"],
        )
        for one in row["containers"]
        if one["name"] != "POD"
    }
    levels = (level for level in row["levels"].values() if level)
    return Observed(
        containers,
        {level["path"]: {name: text for name, text in level.items() if name != "path"} for level in levels},
    )


class RecordedProcess(NamedTuple):
    """A process with its container's id, empty for one of the node; `used_bytes` is what badness counts."""

    container_id: str
    adj: int
    used_bytes: int


@cache
def pods_c(run: str) -> tuple[Pod, ...]:
    """The pods of a run on the second node, as the API server had them."""
    return tuple(convert(raw, Pod) for raw in read_json(f"node-1.36-c/{run}-pods.json")["items"])


@cache
def measured_c(run: str) -> Json:
    """The cgroup tree and the processes of that node at that moment."""
    measured: Json = read_json(f"node-1.36-c/{run}-measured.json")
    return measured


def processes_c(run: str) -> list[RecordedProcess]:
    """The processes of that node."""
    found = []
    for one in measured_c(run)["procs"]:
        container = re.findall(r"[0-9a-f]{64}", one["cgroup"])
        used = sum(int(one[name].split()[0]) << 10 for name in ("VmRSS", "VmSwap", "VmPTE") if one.get(name))
        found.append(RecordedProcess(container[-1] if container else "", int(one["adj"]), used))
    return found


def setup_c(run: str, **kubelet: Any) -> NodeSetup:
    """The second node: Debian 13 with kernel 6.12."""
    lines = dict(line.split(":") for line in measured_c(run)["meminfo"].splitlines())
    node = Node(
        name="node-c",
        memory_capacity_bytes=int(lines["MemTotal"].split()[0]) << 10,
        swap_capacity_bytes=int(lines["SwapTotal"].split()[0]) << 10,
        kernel=measured_c(run)["uname"],
        kubelet_version="1.36.2",
        runtime="containerd://2.3.4",
    )
    return NodeSetup.of(node, Kubelet(**kubelet))


def kubelet_file(name: str) -> dict[str, Any]:
    """The configuration `evict`, `full` or `kubepods` of the third node, as its configz has it."""
    return {"kubeletconfig": yaml.safe_load(read(f"node-1.36-d/kubelet-{name}.yaml"))}


def state_d(kubelet: str, reserved_mib: int, used: Mapping[str, int], over: str = "153Mi") -> NodeState:
    """The third node under that configuration; `used` are pods of later or earlier deaths, in MiB.

    `bu-over` requested `over`, which is 100Mi at first.
    """
    snapshot, pods = snapshot_of("node-1.36-d"), []
    for raw in read_json("node-1.36-d/node-set-pods.json")["items"]:
        name = raw["metadata"]["name"]
        if name in used:
            raw["status"] |= {"phase": "Running", "containerStatuses": []}
            if name == "bu-over":
                raw["spec"]["containers"][0]["resources"] = {"requests": {"memory": over}}
        if name in used or ("oom", name) in snapshot.usage:
            pods.append(convert(raw, Pod))
    node = copy.deepcopy(read_json("node-1.36-d/debian13-nodes.json")["items"][0])
    node["status"]["allocatable"]["memory"] = f"{4016548 - (reserved_mib << 10)}Ki"
    more = {("oom", name): PodUsage(("c",), (size << 20,)) for name, size in used.items()}
    changed = replace(
        snapshot,
        pods=tuple(pods),
        nodes={"node1": convert(node, NodeObject)},
        usage={**snapshot.usage, **more},
        kubelets={"node1": kubelet_from_configz(kubelet_file(kubelet), Release.of("1.36"))},
        node_usage={"node1": snapshot.node_usage["node1"] + (sum(used.values()) << 20)},
    )
    return state_of_node(changed, "node1")


@cache
def summary_of(name: str) -> Summary:
    """The summary of the kubelet of `node-1.36`, `node-1.36-b` or `node-1.36-d`."""
    file = "node-set-summary.json" if name == "node-1.36-d" else "stats-summary.json"
    return convert(read_json(f"{name}/{file}"), Summary)


@cache
def snapshot_of(name: str) -> Snapshot:
    """That node with its kubelet's configuration and summary.

    The second one has 2 GiB of swap (LimitedSwap), the third one is as it was at the death D16.
    """
    summary = summary_of(name)
    if name == "node-1.36":
        found = node_of("systemd")
        node, pods, configz = found["node"], [row["pod"] for row in rows_of("systemd")], found["configz"]
    elif name == "node-1.36-b":
        pods, configz = read_json(f"{name}/pods.json")["items"], read_json(f"{name}/configz.json")
        (node,) = read_json(f"{name}/nodes.json")["items"]
    else:
        pods, nodes = (read_json(f"{name}/{file}.json") for file in ("node-set-pods", "debian13-nodes"))
        # The kubelet had another configuration then; `bu-over` had ended.
        pods, (node,), configz = pods["items"], nodes["items"], kubelet_file("full")
        node["status"]["allocatable"]["memory"] = f"{4016548 - 1024}Ki"
    usage = usage_from_summary(summary)
    return Snapshot(
        # The summary of the first one is of another run, without some pods.
        pods=tuple(pod for pod in (convert(raw, Pod) for raw in pods) if (pod.namespace, pod.name) in usage),
        nodes={"node1": convert(node, NodeObject)},
        usage=usage,
        kubelets={"node1": kubelet_from_configz(configz, Release.of("1.36"))},
        node_usage={"node1": summary.node.working_set_bytes or 0},
        node_swap={"node1": summary.node.swap_capacity_bytes or 0},
    )


@cache
def host_d() -> HostView:
    """The processes of the third node at that time, as `kubectl qos host -o json` had them."""
    return msgspec.convert(read_json("node-1.36-d/node-set-host.json"), HostView)


@cache
def cadvisor_b(name: str) -> Mapping[tuple[str, str], int]:
    """A metric of that node's kubelet by pod and container; the container of a pod's own cgroup is ""."""
    sample = re.compile(name + r'\{container="([^"]*)",id="[^"]*",image="([^"]*)".*,pod="([^"]+)"\} (\S+)')
    lines = read_lines("node-1.36-b/metrics-cadvisor.txt")
    matches = [match for match in map(sample.match, lines) if match is not None]
    return {(match[3], match[1]): int(float(match[4])) for match in matches if match[1] or not match[2]}

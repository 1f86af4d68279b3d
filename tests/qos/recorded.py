"""The recorded nodes (kubelet 1.36.2, containerd, runc, cgroup v2): measured there, and predicted of them."""

import gzip
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup, kubelet_from_configz, node_from_object
from kubectl_qos.k8s.objects import NodeObject, Pod, convert
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import Summary, usage_from_summary
from kubectl_qos.qos.observed import Observed, ObservedContainer, ObservedProcess
from kubectl_qos.qos.prediction import Prediction, predict

RECORDED = Path(__file__).parents[1] / "recordings" / "node-1.36"
VARIANTS = ["systemd", "memoryqos-tiered", "limitedswap", "singleprocessoomkill"]
Json = Mapping[str, Any]


class Case(NamedTuple):
    """One recorded pod: predicted, and measured."""

    prediction: Prediction
    measured: Observed


@cache
def node_of(variant: str) -> Json:
    found: Json = json.loads((RECORDED / f"node-{variant}.json").read_bytes())
    return found


@cache
def rows_of(variant: str) -> tuple[Json, ...]:
    """What was recorded of each pod of a node."""
    return tuple(map(json.loads, (RECORDED / f"measured-{variant}.jsonl").read_text().splitlines()))


@cache
def setup_of(variant: str) -> NodeSetup:
    """The node's facts and its kubelet's configuration as recorded."""
    found = node_of(variant)
    kubelet = kubelet_from_configz(found["configz"], Release.of("1.36"))
    node = node_from_object(convert(found["node"], NodeObject), kubelet)
    swap = next(line for line in found["machine"]["meminfo"].splitlines() if line.startswith("SwapTotal"))
    return NodeSetup.of(replace(node, swap_capacity_bytes=int(swap.split()[1]) * 1024), kubelet)


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


RECORDED_C = RECORDED.parent / "node-1.36-c"


class RecordedProcess(NamedTuple):
    """A process with its container's id, empty for one of the node; `used_bytes` is what badness counts."""

    container_id: str
    adj: int
    used_bytes: int


@cache
def pods_c(run: str) -> tuple[Pod, ...]:
    """The pods of a run on the second node, as the API server had them."""
    with gzip.open(RECORDED_C / f"{run}-pods.json.gz") as file:
        return tuple(convert(raw, Pod) for raw in json.load(file)["items"])


@cache
def measured_c(run: str) -> Json:
    """The cgroup tree and the processes of that node at that moment."""
    with gzip.open(RECORDED_C / f"{run}-measured.json.gz") as file:
        found: Json = json.load(file)
        return found


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


RECORDED_B = RECORDED.parent / "node-1.36-b"


@cache
def snapshot_b() -> Snapshot:
    """The second node (LimitedSwap, 2 GiB of swap) with its kubelet's configuration and summary."""

    def read(name: str) -> Any:
        return json.loads((RECORDED_B / f"{name}.json").read_bytes())

    summary = convert(read("stats-summary"), Summary)
    return Snapshot(
        pods=tuple(convert(raw, Pod) for raw in read("pods")["items"]),
        nodes={raw["metadata"]["name"]: convert(raw, NodeObject) for raw in read("nodes")["items"]},
        usage=usage_from_summary(summary),
        kubelets={"node1": kubelet_from_configz(read("configz"), Release.of("1.36"))},
        node_usage={"node1": summary.node.working_set_bytes or 0},
    )


@cache
def cadvisor_b(name: str) -> Mapping[tuple[str, str], int]:
    """A metric of that node's kubelet by pod and container; the container of a pod's own cgroup is ""."""
    sample = re.compile(name + r'\{container="([^"]*)",id="[^"]*",image="([^"]*)".*,pod="([^"]+)"\} (\S+)')
    with gzip.open(RECORDED_B / "metrics-cadvisor.txt.gz", "rt") as lines:
        matches = [match for match in map(sample.match, lines) if match is not None]
    return {(match[3], match[1]): int(float(match[4])) for match in matches if match[1] or not match[2]}

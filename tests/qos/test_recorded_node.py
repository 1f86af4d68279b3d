"""Predictions against what a real node (kubelet 1.36.2, containerd, runc, cgroup v2) had on disk."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubectl_qos.k8s.kubelet import Kubelet, Node, kubelet_from_configz, node_from_object
from kubectl_qos.k8s.objects import NodeObject, Pod, json_decoder
from kubectl_qos.k8s.releases import Release
from kubectl_qos.qos.oom_score import badness, proc_oom_score
from kubectl_qos.qos.prediction import Prediction, predict

RECORDED = Path(__file__).parents[1] / "recordings" / "node-1.36"
VARIANTS = ["systemd", "memoryqos-tiered", "limitedswap", "singleprocessoomkill"]
PAGE = 4096
RSS_SLACK_POINTS = 2
"""RSS is kept per CPU and read approximately by kernels of this age."""


def setup(variant: str) -> tuple[Node, Kubelet]:
    """The node's facts and its kubelet's configuration as recorded."""
    found = json.loads((RECORDED / f"node-{variant}.json").read_text())
    configz = found["configz"]
    kubelet = kubelet_from_configz(configz, Release.of("1.36"))
    node = node_from_object(json_decoder(NodeObject).decode(msgspec.json.encode(found["node"])), kubelet)
    swap = next(line for line in found["machine"]["meminfo"].splitlines() if line.startswith("SwapTotal"))
    return replace(node, swap_capacity_bytes=int(swap.split()[1]) * 1024), kubelet


def measured(variant: str) -> Iterator[tuple[Prediction, Any, Node]]:
    """Each recorded pod predicted, beside what was measured of it."""
    node, kubelet = setup(variant)
    for line in (RECORDED / f"measured-{variant}.jsonl").read_text().splitlines():
        found = json.loads(line)
        pod = json_decoder(Pod).decode(msgspec.json.encode(found["pod"]))
        yield predict(pod, node, kubelet=kubelet), found, node


@pytest.mark.parametrize("variant", VARIANTS)
def test_paths_and_every_predicted_file(variant: str) -> None:
    compared: Counter[str] = Counter()
    wrong = []
    for prediction, found, _ in measured(variant):
        pod_level = found["levels"].get("pod") or {}
        pairs = []
        if pod_level:
            pairs.append(
                ("pod", prediction.cgroup.path, prediction.cgroup.files, pod_level["path"], pod_level)
            )
        for container in found["containers"]:
            if container["name"] == "POD":
                continue
            mine = prediction.container(container["name"]).cgroup
            pairs.append(("container", mine.path, mine.files, container["cgroup_path"], container["cgroup"]))
        for level, path, files, real_path, real_files in pairs:
            compared[f"{level} path"] += 1
            if path != real_path.removeprefix("/sys/fs/cgroup"):
                wrong.append((prediction.pod.name, level, path, real_path))
            for name, value in files.items():
                real = real_files[name].strip()
                compared[f"{level} files"] += 1
                if value != real:
                    wrong.append((prediction.pod.name, level, name, f"predicted {value}, real {real}"))
    assert wrong == []
    assert min(compared.values()) >= 9, compared


@pytest.mark.parametrize("variant", VARIANTS)
def test_oom_score_adj_and_oom_score_of_every_process(variant: str) -> None:
    compared = 0
    for prediction, found, node in measured(variant):
        assert node.memory_capacity_bytes is not None
        total = (node.memory_capacity_bytes + node.swap_capacity_bytes) // PAGE
        for container in found["containers"]:
            if container["name"] == "POD":
                continue
            expected = prediction.container(container["name"]).oom_score_adj
            for process in container["processes"]:
                assert process["oom_score_adj"] == expected, (prediction.pod.name, process)
                kibibytes = sum(
                    int(process.get(name, "0").split()[0]) for name in ("VmRSS", "VmSwap", "VmPTE")
                )
                assert expected is not None
                points = badness(kibibytes * 1024 // PAGE, expected, total)
                score = proc_oom_score(points, total)
                assert abs(score - process["oom_score"]) <= RSS_SLACK_POINTS, (prediction.pod.name, process)
                compared += 1
    assert compared >= 13


def test_the_class_that_the_server_stored() -> None:
    for prediction, found, _ in measured("systemd"):
        assert prediction.computed_class.value == found["pod"]["status"]["qosClass"]


def test_values_that_come_from_the_configuration_say_so() -> None:
    node, kubelet = setup("systemd")
    assert kubelet.origin("cgroup_driver").value == "from kubelet configz"
    assert node.origin("memory_capacity_bytes").value == "from the API"
    assert node.origin("page_size_bytes").value == "assumed"


def test_the_limit_of_kubepods_is_capacity_minus_reserved() -> None:
    node, _ = setup("systemd")
    assert node.allocatable_memory_bytes == (3984140 - 500 * 1024) * 1024

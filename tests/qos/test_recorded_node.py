"""Predictions against what a real node (kubelet 1.36.2, containerd, runc, cgroup v2) had on disk."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from kubectl_qos.qos.oom_score import badness, proc_oom_score
from kubectl_qos.qos.prediction import Prediction
from tests.qos.recorded import VARIANTS, Json, case_of, rows_of, setup_of

PAGE = 4096
RSS_SLACK_POINTS = 2
"""RSS is kept per CPU and read approximately by kernels of this age."""


def recorded(variant: str) -> Iterator[tuple[Prediction, Json, list[Any]]]:
    """Each recorded pod as predicted, and what was measured of it and of its containers."""
    for row in rows_of(variant):
        containers = [one for one in row["containers"] if one["name"] != "POD"]
        yield case_of(variant, row).prediction, row, containers


@pytest.mark.parametrize("variant", VARIANTS)
def test_paths_and_every_predicted_file(variant: str) -> None:
    compared: Counter[str] = Counter()
    wrong = []
    for prediction, row, containers in recorded(variant):
        pod_level = row["levels"].get("pod")
        pairs = [("pod", prediction.cgroup, pod_level["path"], pod_level)] if pod_level else []
        for one in containers:
            cgroup = prediction.container(one["name"]).cgroup
            pairs.append(("container", cgroup, one["cgroup_path"], one["cgroup"]))
        for level, cgroup, path, files in pairs:
            real = {
                "path": path.removeprefix("/sys/fs/cgroup"),
                **{name: files[name].strip() for name in cgroup.files},
            }
            predicted = {"path": cgroup.path, **cgroup.files}
            compared.update({f"{level} path": 1, f"{level} files": len(cgroup.files)})
            wrong += [
                (prediction.pod.name, level, name, predicted[name], real[name])
                for name in real
                if predicted[name] != real[name]
            ]
    assert wrong == []
    assert min(compared.values()) >= 9, compared


@pytest.mark.parametrize("variant", VARIANTS)
def test_oom_score_adj_and_oom_score_of_every_process(variant: str) -> None:
    node = setup_of(variant).node
    assert node.memory_capacity_bytes is not None
    total = (node.memory_capacity_bytes + node.swap_capacity_bytes) // PAGE
    compared = 0
    for prediction, _, containers in recorded(variant):
        for one in containers:
            expected = prediction.container(one["name"]).oom_score_adj
            assert expected is not None
            for process in one["processes"]:
                assert process["oom_score_adj"] == expected, (prediction.pod.name, process)
                sizes = (process.get(name, "0").split()[0] for name in ("VmRSS", "VmSwap", "VmPTE"))
                score = proc_oom_score(badness(sum(map(int, sizes)) * 1024 // PAGE, expected, total), total)
                assert abs(score - process["oom_score"]) <= RSS_SLACK_POINTS, (prediction.pod.name, process)
                compared += 1
    assert compared >= 13


def test_the_class_that_the_server_stored() -> None:
    for prediction, row, _ in recorded("systemd"):
        assert prediction.computed_class.value == row["pod"]["status"]["qosClass"]


def test_values_that_come_from_the_configuration_say_so() -> None:
    setup = setup_of("systemd")
    assert setup.kubelet.origin("cgroup_driver").value == "from kubelet configz"
    assert setup.node.origin("memory_capacity_bytes").value == "from the API"
    assert setup.node.origin("page_size_bytes").value == "assumed"


def test_the_limit_of_kubepods_is_capacity_minus_reserved() -> None:
    assert setup_of("systemd").node.allocatable_memory_bytes == (3984140 - 500 * 1024) * 1024

"""Corner cases of class, oom_score_adj and cgroup values; `row_NNN` is the row of the rules' table.

Those of a single prediction are in test_corner_cases.yaml.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from msgspec import structs

from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import CgroupDriver, Kubelet, MemoryReservationPolicy, NodeSetup
from kubectl_qos.k8s.releases import OciRuntime, Release
from kubectl_qos.k8s.resources import pod_requests
from kubectl_qos.k8s.usage import PodUsage
from kubectl_qos.k8s.validation import admission_errors, pod_refusals
from kubectl_qos.qos.cgroup.values import milli_to_shares, shares_to_weight_linear
from kubectl_qos.qos.oom_score import Kernel, badness, proc_oom_score
from kubectl_qos.qos.prediction import ContainerPrediction, Prediction, predict
from kubectl_qos.qos.process_order import HostProcess, process_order
from kubectl_qos.qos.simulation.ceiling import ContainerGrowth, Scenario
from kubectl_qos.qos.simulation.engine import simulate
from tests.node_states import build_node_state
from tests.qos.corner import GI, MACHINE, UID, UID_, adj, file_of, pod_file, spec

ROWS: Final[list[dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
)
MADE: Final[dict[str, Any]] = {
    "cgroup_driver": CgroupDriver,
    "hugepage_sizes": tuple,
    "memory_reservation_policy": MemoryReservationPolicy,
    "oci_runtime": OciRuntime.parse,
}


def fields(row: dict[str, Any], name: str) -> dict[str, Any]:
    """The fields of a row's node or kubelet, as values of their types."""
    return {key: MADE.get(key, lambda value: value)(value) for key, value in row.get(name, {}).items()}


SEEN: Final[dict[str, Callable[[Prediction], Any]]] = {
    "class": lambda found: found.qos_class.value,
    "computed class": lambda found: found.computed_class.value,
    "adj": adj,
    "critical": lambda found: found.critical,
    "path": lambda found: found.cgroup.path.replace(UID, "UID").replace(UID_, "UID"),
    "pod files": lambda found: len(found.cgroup.files),
    "pod millicores": lambda found: found.totals.cpu_request_milli,
    "c1 memory limit": lambda found: found.pod.containers[0].limits["memory"],
    "c1 cpu limit": lambda found: found.pod.containers[0].limits["cpu"],
}
OF_A_CONTAINER: Final[dict[str, Callable[[ContainerPrediction], Any]]] = {
    "adj": lambda container: container.oom_score_adj,
    "range": lambda container: list(container.oom_score_adj_range or ()),
    "shares": lambda container: container.cri_resources.cpu_shares,
    "quota": lambda container: container.cri_resources.cpu_quota_us,
    "limit bytes": lambda container: container.cri_resources.memory_limit_bytes,
}


def seen(found: Prediction, what: str) -> Any:
    """What a prediction has, by its name in a row's `is`."""
    if what in SEEN:
        return SEEN[what](found)
    name, what = what.split(maxsplit=1)
    if name == "pod":
        return pod_file(found, what)
    if what in OF_A_CONTAINER:
        return OF_A_CONTAINER[what](found.container(name))
    return file_of(found, name, what)


@pytest.mark.parametrize("row", ROWS, ids=[f"row_{row['row']}" for row in ROWS])
def test_a_row(row: dict[str, Any]) -> None:
    resources = row.get("containers") or [row["c1"]]
    containers = [{"name": f"c{number}", "resources": each} for number, each in enumerate(resources, 1)]
    fragment = json.dumps({"containers": containers, **row.get("more", {})})[1:-1]
    status = {"qosClass": row["stored"]} if "stored" in row else {}
    pod = spec(fragment, status=json.dumps(status), annotations=json.dumps(row.get("annotations", {})))
    node, kubelet = structs.replace(MACHINE, **fields(row, "node")), Kubelet(**fields(row, "kubelet"))
    for release in row.get("releases", ["1.36"]):
        found = predict(pod, node, kubelet=kubelet, release=release)
        for what, value in row["is"].items():
            has = seen(found, what)
            is_text = isinstance(value, dict | list) or value is None or what == "critical"
            assert has == value if is_text else str(has) == str(value), (release, what, has)


def with_resources(*resources: str) -> str:
    """The containers c1, c2, ... with these resources."""
    found = (f"{{name: c{number}, resources: {{{text}}}}}" for number, text in enumerate(resources, start=1))
    return f"containers: [{', '.join(found)}]"


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        pytest.param(["2Gi"], "must be less than or equal to pod limits of 1Gi", id="row_034_limits"),
        pytest.param(
            ["800Mi", "800Mi"], "must be less than or equal to memory limit of 1Gi", id="row_035_requests"
        ),
    ],
)
def test_containers_above_the_pod_are_refused(limits: list[str], sentence: str) -> None:
    containers = with_resources(*(f"limits: {{memory: {limit}}}" for limit in limits))
    pod = spec(f"{containers}, resources: {{limits: {{memory: 1Gi}}}}")
    found = pod_refusals(default_pod(pod, Release.of("1.36")), Release.of("1.36"))
    assert any(sentence in str(one) for one in found)


@pytest.mark.parametrize(("release", "refused"), [("1.33", False), ("1.34", True), ("1.36", True)])
def test_row_036_a_kubelet_without_pod_level_resources_rejects(release: str, *, refused: bool) -> None:
    pod = spec("containers: [{name: c1}], resources: {requests: {memory: 1Gi}}")
    rejections = admission_errors(pod, Release.of(release, {"PodLevelResources": False}))
    assert any("rejects it: PodLevelResourcesNotSupported: " in str(each) for each in rejections) is refused
    assert admission_errors(pod, Release.of("1.36")) == []


SIDECAR_1G = "{name: s, restartPolicy: Always, resources: {requests: {memory: 1Gi}}}"
INIT_2G = "{name: i, resources: {requests: {memory: 2Gi}}}"


@pytest.mark.parametrize(
    ("init", "total"), [(f"{INIT_2G}, {SIDECAR_1G}", 2), (f"{SIDECAR_1G}, {INIT_2G}", 3)]
)
def test_row_051_the_order_of_sidecar_and_init_container(init: str, total: int) -> None:
    pod = spec(
        f"containers: [{{name: c1, resources: {{requests: {{memory: 1Gi}}}}}}], initContainers: [{init}]"
    )
    assert pod_requests(pod, Release.of("1.36"))["memory"].value() == total * GI


@pytest.mark.parametrize(("cpus", "weight"), [(8000, 313), (7500, 293), (7000, 274)])
def test_row_074_weights_of_kubepods(cpus: int, weight: int) -> None:
    assert shares_to_weight_linear(milli_to_shares(cpus)) == weight


PAGES_16_GIB = 16 * GI // 4096


@pytest.mark.parametrize(
    ("adj_", "kernel", "expected"),
    [
        pytest.param(999, Kernel.SIGNED, {1332}, id="row_106_new"),
        pytest.param(999, Kernel.FLOORED, {998, 999}, id="row_106_old"),
        pytest.param(-997, Kernel.SIGNED, {2}, id="row_107_new"),
        pytest.param(-997, Kernel.FLOORED, {0}, id="row_107_old"),
    ],
)
def test_the_score_of_an_idle_process(adj_: int, kernel: Kernel, expected: set[int]) -> None:
    points = badness(0, adj_, PAGES_16_GIB, kernel)
    assert proc_oom_score(points, PAGES_16_GIB, kernel) in expected


def test_row_110_a_pod_level_limit_kills_one_container() -> None:
    """There oom_score_adj is scaled by the pod's limit, so that memory decides; the other one survives."""
    containers = with_resources("requests: {memory: 64Mi}", "requests: {memory: 6Gi}")
    fragment = f"{containers}, resources: {{limits: {{memory: 7Gi}}}}, nodeName: n1"
    pod = default_pod(spec(fragment, status="{phase: Running}"), Release.of("1.36"))
    usage = {("default", "p"): PodUsage(("c1", "c2"), (100 << 20, 5 * GI))}
    state = build_node_state([pod], NodeSetup.of(structs.replace(MACHINE, kubelet_version="1.36")), usage)
    on_machine = simulate(state, Scenario(free_bytes=1)).steps[0]
    (in_pod,) = simulate(state, Scenario(growth=(ContainerGrowth(0, 5 * GI // 2),))).steps
    assert (on_machine.mechanism, on_machine.container) == ("node", "c1")
    assert (in_pod.mechanism, in_pod.container) == ("pod limit", "c2")


def test_row_111_a_process_may_raise_its_own_value() -> None:
    """The kernel goes by the value that the process has now, whatever its container was given."""

    def process(pid: int, adj_: int, rss: int) -> HostProcess:
        return HostProcess(pid=pid, ppid=1, comm="app", adj=adj_, rss_bytes=rss << 20, cgroup="/c1")

    given, raised = process(7, 938, 300), process(8, 1000, 100)
    first, second = process_order([given, raised], PAGES_16_GIB, 4096, Kernel.SIGNED, is_whole=True)
    assert (first.process, second.process) == (raised, given)

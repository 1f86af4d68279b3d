"""Corner cases of class, oom_score_adj and cgroup values; `row_NNN` is the row of the rules' table."""

from dataclasses import replace

import pytest

from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import CgroupDriver, NodeSetup
from kubectl_qos.k8s.releases import OciRuntime, Release
from kubectl_qos.k8s.resources import pod_requests
from kubectl_qos.k8s.usage import PodUsage
from kubectl_qos.k8s.validation import kubelet_rejections, pod_refusals
from kubectl_qos.qos.cgroup.values import milli_to_shares, shares_to_weight_linear
from kubectl_qos.qos.oom_score import Kernel, badness, proc_oom_score
from kubectl_qos.qos.prediction import Prediction
from kubectl_qos.qos.process_order import HostProcess, process_order
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.simulation.engine import simulate
from kubectl_qos.qos.simulation.node_state import ContainerGrowth, Scenario
from tests.node_states import build_node_state
from tests.qos.corner import GI, MACHINE, TIERED, UID, UID_, adj, file_of, on, one, pod_file, spec

G, B, E = QosClass.GUARANTEED, QosClass.BURSTABLE, QosClass.BEST_EFFORT
BURSTABLE_DIR = "/kubepods.slice/kubepods-burstable.slice"


def facts(found: Prediction) -> tuple[QosClass, int | None]:
    return found.qos_class, found.containers[-1].oom_score_adj


def both(found: Prediction, name: str) -> tuple[str | None, str | None]:
    """A file of the pod's cgroup and of its container c1."""
    return pod_file(found, name), file_of(found, "c1", name)


def with_resources(*resources: str) -> str:
    """The containers c1, c2, ... with these resources."""
    found = (f"{{name: c{number}, resources: {{{text}}}}}" for number, text in enumerate(resources, start=1))
    return f"containers: [{', '.join(found)}]"


# -- class and defaulting ---------------------------------------------------------------------------


def test_row_001_nothing_anywhere() -> None:
    found = on(one(""))
    assert facts(found) == (E, 1000)
    directory = "/kubepods.slice/kubepods-besteffort.slice"
    assert found.cgroup.path == f"{directory}/kubepods-besteffort-pod{UID_}.slice"
    assert both(found, "cpu.weight") == ("1", "1")
    assert both(found, "cpu.max") == ("max 100000", "max 100000")
    assert both(found, "memory.max") == ("max", "max")


def test_row_002_limits_alone_make_guaranteed() -> None:
    found = on(one("limits: {cpu: 500m, memory: 256Mi}"))
    assert facts(found) == (G, -997)
    assert found.cgroup.path == f"/kubepods.slice/kubepods-pod{UID_}.slice"
    assert both(found, "cpu.weight") == ("20", "59")
    assert pod_file(found, "cpu.max") == "50000 100000"
    assert both(found, "memory.max") == ("268435456", "268435456")


def test_row_003_a_cpu_request_alone() -> None:
    found = on(one("requests: {cpu: 100m}"))
    assert facts(found) == (B, 999)
    assert both(found, "cpu.weight") == ("4", "17")
    assert (pod_file(found, "cpu.max"), pod_file(found, "memory.max")) == ("max 100000", "max")


def test_row_004_a_memory_limit_alone() -> None:
    found = on(one("limits: {memory: 512Mi}"))
    assert facts(found) == (B, 969)
    assert (pod_file(found, "cpu.weight"), pod_file(found, "cpu.max")) == ("1", "max 100000")
    assert both(found, "memory.max") == ("536870912", "536870912")


def test_row_005_one_bare_container_clears_the_pods_limits() -> None:
    found = on(spec(with_resources("requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}", "")))
    assert found.qos_class is B
    assert adj(found) == {"c1": 938, "c2": 999}
    assert (pod_file(found, "cpu.weight"), pod_file(found, "cpu.max")) == ("39", "max 100000")
    assert both(found, "memory.max") == ("max", str(GI))


EQUAL = "{requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}}"


@pytest.mark.parametrize(("release", "limit"), [("1.36", "max"), ("1.23", "max"), ("1.22", str(GI))])
def test_row_006_a_bare_init_container(release: str, limit: str) -> None:
    pod = spec(f"containers: [{{name: c1, resources: {EQUAL}}}], initContainers: [{{name: i}}]")
    found = on(pod, release)
    assert found.qos_class is B
    assert pod_file(found, "memory.max") == limit


def test_row_007_an_init_container_with_limits() -> None:
    limits = "{limits: {cpu: 1, memory: 1Gi}}"
    pod = spec(
        f"containers: [{{name: c1, resources: {EQUAL}}}], initContainers: [{{name: i, resources: {limits}}}]"
    )
    assert on(pod).qos_class is G


@pytest.mark.parametrize(("release", "shares"), [("1.36", 2), ("1.26", 2), ("1.25", 1024)])
def test_row_008_explicit_zero_requests(release: str, shares: int) -> None:
    found = on(one("requests: {cpu: 0, memory: 0}, limits: {cpu: 1, memory: 1Gi}"), release)
    assert facts(found) == (B, 999)
    assert found.containers[0].cri_resources.cpu_shares == shares
    assert pod_file(found, "cpu.weight") == "1"
    assert both(found, "cpu.max") == ("100000 100000", "100000 100000")
    assert both(found, "memory.max") == (str(GI), str(GI))


@pytest.mark.parametrize(
    "resources",
    [
        pytest.param("limits: {cpu: 0, memory: 0}", id="row_009"),
        pytest.param("limits: {nvidia.com/gpu: 1}", id="row_010"),
        pytest.param("requests: {ephemeral-storage: 1Gi}, limits: {ephemeral-storage: 1Gi}", id="row_011"),
    ],
)
def test_only_positive_cpu_and_memory_count(resources: str) -> None:
    assert facts(on(one(resources))) == (E, 1000)


@pytest.mark.parametrize(
    ("more", "expected"), [pytest.param("", B, id="row_012"), pytest.param(", cpu: 1", G, id="row_013")]
)
def test_hugepages_do_not_count(more: str, expected: QosClass) -> None:
    node = replace(MACHINE, hugepage_sizes=("2MB", "1GB"))
    found = on(one(f"limits: {{hugepages-2Mi: 64Mi, memory: 128Mi{more}}}"), node=node)
    assert found.qos_class is expected
    assert pod_file(found, "hugetlb.2MB.max") == "67108864"


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param(
            "requests: {memory: 1Gi, cpu: 1}, limits: {memory: 1024Mi, cpu: 1000m}", (G, -997), id="row_014"
        ),
        pytest.param("requests: {memory: 1G, cpu: 1}, limits: {memory: 1Gi, cpu: 1}", (B, 942), id="row_015"),
    ],
)
def test_quantities_are_compared_exactly(resources: str, expected: tuple[QosClass, int]) -> None:
    assert facts(on(one(resources))) == expected


def test_row_016_a_thousandth_of_a_byte() -> None:
    found = on(one("limits: {memory: 512m}"))
    assert str(found.pod.containers[0].limits["memory"]) == "512m"
    assert found.containers[0].cri_resources.memory_limit_bytes == 1
    assert file_of(found, "c1", "memory.max") == "0"


def test_row_017_half_a_millicore() -> None:
    found = on(one('limits: {cpu: "0.0005", memory: 64Mi}'))
    assert found.qos_class is G
    assert str(found.pod.containers[0].limits["cpu"]) == "1m"
    assert found.containers[0].cri_resources.cpu_shares == 2
    assert found.containers[0].cri_resources.cpu_quota_us == 1000


def test_row_018_each_container_lacks_the_other_limit() -> None:
    cpu, memory = "requests: {cpu: 1}, limits: {cpu: 1}", "requests: {memory: 1Gi}, limits: {memory: 1Gi}"
    assert on(spec(with_resources(cpu, memory))).qos_class is B


def test_row_025_the_stored_class_wins_from_1_29() -> None:
    pod = spec(
        "containers: [{name: c1, resources: {requests: {memory: 1Gi}}}]", status="{qosClass: Guaranteed}"
    )
    assert facts(on(pod, "1.29")) == (G, -997)
    assert facts(on(pod, "1.28")) == (B, 938)
    assert on(pod).computed_class is B


def test_row_026_an_ephemeral_container_of_a_guaranteed_pod() -> None:
    pod = spec(
        "containers: [{name: c1, resources: {limits: {cpu: 1, memory: 1Gi}}}],"
        " ephemeralContainers: [{name: dbg}]"
    )
    found = on(pod)
    assert found.qos_class is G
    assert adj(found)["dbg"] == -997
    assert found.container("dbg").cri_resources.cpu_shares == 2
    assert file_of(found, "dbg", "memory.max") == "max"


REQUEST_1G = "requests: {memory: 1Gi}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            f"{with_resources(REQUEST_1G)}, ephemeralContainers: [{{name: dbg}}]",
            {"c1": 938, "dbg": 999},
            id="row_027_ephemeral",
        ),
        pytest.param(
            f"{with_resources(REQUEST_1G, '')}, resources: {{requests: {{memory: 4Gi}}}}",
            {"c1": 844, "c2": 907},
            id="row_030_what_no_container_claims_is_shared",
        ),
        pytest.param(
            f"{with_resources('requests: {memory: 512Mi}', 'requests: {memory: 512Mi}')},"
            " initContainers: [{name: i}], resources: {requests: {memory: 2Gi}}",
            {"c1": 948, "c2": 948, "i": 980},
            id="row_031_init_containers_count_in_the_divisor",
        ),
        pytest.param(
            f"{with_resources(REQUEST_1G, 'requests: {memory: 64Mi}')}, initContainers:"
            " [{name: s, restartPolicy: Always, resources: {requests: {memory: 4Gi}}}]",
            {"s": 750, "c1": 938, "c2": 997},
            id="row_045_a_sidecar_that_requests_more",
        ),
        pytest.param(
            f"{with_resources(REQUEST_1G)}, initContainers: [{{name: i}}]",
            {"i": 999, "c1": 938},
            id="row_046_a_plain_init_container",
        ),
    ],
)
def test_the_adj_of_each_container(text: str, expected: dict[str, int]) -> None:
    assert adj(on(spec(text))) == expected


# -- pod-level resources ----------------------------------------------------------------------------


def test_row_028_pod_level_limits_alone() -> None:
    found = on(spec(f"{with_resources('', '')}, resources: {{limits: {{cpu: 1, memory: 1Gi}}}}"))
    assert found.qos_class is G
    assert adj(found) == {"c1": -997, "c2": -997}
    assert pod_file(found, "cpu.weight") == "39"
    assert pod_file(found, "cpu.max") == file_of(found, "c2", "cpu.max") == "100000 100000"
    assert pod_file(found, "memory.max") == file_of(found, "c1", "memory.max") == str(GI)
    assert [container.cri_resources.cpu_shares for container in found.containers] == [1024, 1024]


def test_row_029_a_container_request_lowers_the_defaulted_pod_request() -> None:
    containers = with_resources("requests: {cpu: 200m}", "")
    found = on(spec(f"{containers}, resources: {{limits: {{cpu: 1, memory: 1Gi}}}}"))
    assert found.qos_class is B
    assert adj(found) == {"c1": 969, "c2": 969}
    assert found.totals.cpu_request_milli == 200
    assert [container.cri_resources.cpu_shares for container in found.containers] == [204, 1024]


def test_row_032_pod_level_cpu_alone() -> None:
    pod = spec(f"containers: [{{name: c1, resources: {EQUAL}}}], resources: {{requests: {{cpu: 1}}}}")
    assert facts(on(pod)) == (B, 938)


@pytest.mark.parametrize(("release", "expected"), [("1.36", E), ("1.34", E), ("1.37", B), ("1.33", B)])
def test_row_033_an_empty_spec_resources(release: str, expected: QosClass) -> None:
    pod = spec("containers: [{name: c1, resources: {requests: {cpu: 100m}}}], resources: {}")
    found = on(pod, release)
    assert found.qos_class is expected
    assert found.containers[0].cri_resources.cpu_shares == 102
    if expected is E:
        assert pod_file(found, "cpu.weight") == "1"


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
    rejections = kubelet_rejections(pod, Release.of(release, {"PodLevelResources": False}))
    assert any("rejects it: PodLevelResourcesNotSupported: " in str(each) for each in rejections) is refused
    assert kubelet_rejections(pod, Release.of("1.36")) == []


# -- critical, static, sidecar ----------------------------------------------------------------------

NODE_CRITICAL = "priorityClassName: system-node-critical, priority: 2000001000"
CLUSTER_CRITICAL = "priorityClassName: system-cluster-critical, priority: 2000000000"


def test_row_037_node_critical_stays_under_burstable() -> None:
    found = on(one("requests: {memory: 1Gi}", NODE_CRITICAL))
    assert facts(found) == (B, -997)
    assert found.cgroup.path.startswith(BURSTABLE_DIR)
    assert found.critical


@pytest.mark.parametrize(("release", "expected"), [("1.36", 985), ("1.22", 985), ("1.21", -997)])
def test_row_038_cluster_critical(release: str, expected: int) -> None:
    found = on(one("requests: {memory: 256Mi}", CLUSTER_CRITICAL), release)
    assert found.containers[0].oom_score_adj == expected
    assert found.critical


def test_row_039_node_critical_without_requests() -> None:
    found = on(one("", NODE_CRITICAL))
    assert facts(found) == (E, -997)
    assert "besteffort" in found.cgroup.path
    assert found.containers[0].cri_resources.cpu_shares == 2


def test_row_040_the_number_without_the_name() -> None:
    found = on(one("requests: {memory: 256Mi}", "priorityClassName: mine, priority: 2000001000"))
    assert found.containers[0].oom_score_adj == 985
    assert found.critical


STATIC = "{kubernetes.io/config.source: file}"


@pytest.mark.parametrize(("release", "expected"), [("1.36", 985), ("1.21", -997)])
def test_row_041_a_static_pod(release: str, expected: int) -> None:
    pod = spec("containers: [{name: c1, resources: {requests: {memory: 256Mi}}}]", annotations=STATIC)
    found = on(pod, release)
    assert found.containers[0].oom_score_adj == expected
    assert found.critical


def test_row_042_a_static_pod_that_names_node_critical() -> None:
    pod = spec("containers: [{name: c1}], priorityClassName: system-node-critical", annotations=STATIC)
    assert on(pod).containers[0].oom_score_adj == -997


def test_row_043_the_name_without_the_number() -> None:
    pod = one("requests: {memory: 256Mi}", "priorityClassName: system-node-critical")
    assert on(pod).containers[0].oom_score_adj == 985


@pytest.mark.parametrize(("release", "expected"), [("1.36", 938), ("1.32", 938), ("1.31", 999)])
def test_row_044_a_sidecar_without_requests(release: str, expected: int) -> None:
    pod = spec(f"{with_resources(REQUEST_1G)}, initContainers: [{{name: s, restartPolicy: Always}}]")
    assert adj(on(pod, release)) == {"s": expected, "c1": 938}


SIDECAR_A = "{name: a, restartPolicy: Always, resources: {limits: {cpu: 100m}}}"
APP_500 = "containers: [{name: c1, resources: {limits: {cpu: 500m}}}]"


@pytest.mark.parametrize(
    ("init", "quota"),
    [
        pytest.param(f"{SIDECAR_A}, {{name: b, restartPolicy: Always}}", "60000 100000", id="row_047"),
        pytest.param(f"{{name: b, restartPolicy: Always}}, {SIDECAR_A}", "max 100000", id="row_048"),
        pytest.param(f"{SIDECAR_A}, {{name: i}}", "60000 100000", id="row_049"),
    ],
)
def test_sidecars_declare_limits_for_those_after_them(init: str, quota: str) -> None:
    assert pod_file(on(spec(f"{APP_500}, initContainers: [{init}]")), "cpu.max") == quota


def test_row_050_init_containers_count_by_their_maximum() -> None:
    pod = spec(
        "containers: [{name: c1, resources: {limits: {cpu: 1, memory: 1Gi}}}],"
        " initContainers: [{name: i, resources: {limits: {cpu: 1, memory: 2Gi}}}]"
    )
    found = on(pod)
    assert found.qos_class is G
    assert pod_file(found, "memory.max") == str(2 * GI)
    assert pod_file(found, "cpu.weight") == "39"


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


# -- oom_score_adj arithmetic -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "capacity", "expected"),
    [
        pytest.param("16Gi", 16 * GI, 3, id="row_052_equal"),
        pytest.param("17Gi", 16 * GI, 3, id="row_052_above"),
        pytest.param(str(16 * GI - 1), 16 * GI, 3, id="row_053"),
        pytest.param("17Mi", 16 * GI, 999, id="row_054_17Mi"),
        pytest.param("35Mi", 16 * GI, 998, id="row_054_35Mi"),
        pytest.param("34359738", 16 * GI, 999, id="row_054_below"),
        pytest.param("34359739", 16 * GI, 998, id="row_054_at"),
        pytest.param("2Gi", 1 << 40, 999, id="row_055_2Gi"),
        pytest.param("3Gi", 1 << 40, 998, id="row_055_3Gi"),
        pytest.param('"1500m"', 16 * GI, 999, id="row_056"),
        pytest.param("9223372036854776", 16 * GI, 536871911, id="row_057"),
    ],
)
def test_the_burstable_formula(request_: str, capacity: int, expected: int) -> None:
    node = replace(MACHINE, memory_capacity_bytes=capacity)
    assert on(one(f"requests: {{memory: {request_}}}"), node=node).containers[0].oom_score_adj == expected


@pytest.mark.parametrize("capacity", [None, 0])
def test_row_058_an_unknown_capacity_gives_a_range(capacity: int | None) -> None:
    node = replace(MACHINE, memory_capacity_bytes=capacity)
    container = on(one("requests: {memory: 1Gi}"), node=node).containers[0]
    assert container.oom_score_adj is None
    assert container.oom_score_adj_range == (3, 999)


# -- pod and container cgroup -----------------------------------------------------------------------


def test_row_060_overhead_of_a_guaranteed_pod() -> None:
    found = on(one("limits: {cpu: 500m, memory: 256Mi}", "overhead: {cpu: 250m, memory: 128Mi}"))
    assert pod_file(found, "cpu.weight") == "30"
    assert pod_file(found, "cpu.max") == "75000 100000"
    assert both(found, "memory.max") == ("402653184", "268435456")
    assert found.containers[0].cri_resources.cpu_shares == 512
    assert file_of(found, "c1", "cpu.max") == "50000 100000"


def test_row_061_overhead_of_a_best_effort_pod() -> None:
    found = on(one("", "overhead: {cpu: 250m, memory: 128Mi}"))
    assert found.qos_class is E
    assert pod_file(found, "cpu.weight") == "1"
    assert found.totals.cpu_request_milli == 250


def test_row_064_three_hundred_cpus() -> None:
    found = on(one("requests: {cpu: 300}"))
    assert found.containers[0].cri_resources.cpu_shares == 262144
    assert pod_file(found, "cpu.weight") == "10000"


def test_row_068_quota_switched_off() -> None:
    found = on(one("limits: {cpu: 1, memory: 1Gi}"), cpu_cfs_quota=False)
    assert found.qos_class is G
    assert both(found, "cpu.max") == ("max 100000", "max 100000")
    assert pod_file(found, "cpu.weight") == "39"


def test_row_069_a_short_period() -> None:
    pod = one("limits: {cpu: 50m, memory: 64Mi}")
    found = on(pod, cpu_cfs_quota_period_us=10_000, cgroup_driver=CgroupDriver.CGROUPFS)
    assert both(found, "cpu.max") == ("1000 10000", "1000 10000")


def test_row_071_whole_percents_under_systemd() -> None:
    pod = one("limits: {cpu: 125m, memory: 64Mi}")
    assert file_of(on(pod), "c1", "cpu.max") == "13000 100000"
    old = replace(MACHINE, oci_runtime=OciRuntime.parse("runc 1.3.1"))
    assert file_of(on(pod, node=old), "c1", "cpu.max") == "12500 100000"
    crun = replace(MACHINE, oci_runtime=OciRuntime.parse("crun 1.22"))
    assert file_of(on(pod, node=crun), "c1", "cpu.max") == "13000 100000"
    plain = on(pod, cgroup_driver=CgroupDriver.CGROUPFS)
    assert file_of(plain, "c1", "cpu.max") == "12500 100000"


@pytest.mark.parametrize(("page", "expected"), [(4096, "99999744"), (65536, "99942400")])
def test_row_072_whole_pages(page: int, expected: str) -> None:
    node = replace(MACHINE, page_size_bytes=page)
    assert file_of(on(one("limits: {memory: 100M}"), node=node), "c1", "memory.max") == expected


@pytest.mark.parametrize(
    ("runtime", "weight"),
    [
        ("runc", "100"),
        ("runc 1.3.1", "39"),
        ("runc-1.3.2", "100"),
        ("crun 1.22", "39"),
        ("crun v1.23", "100"),
        ("crun", "100"),
    ],
)
def test_row_073_the_curve_is_that_of_the_oci_runtime(runtime: str, weight: str) -> None:
    node = replace(MACHINE, oci_runtime=OciRuntime.parse(runtime))
    found = on(one("limits: {cpu: 1, memory: 1Gi}"), node=node)
    assert both(found, "cpu.weight") == ("39", weight)


@pytest.mark.parametrize(("cpus", "weight"), [(8000, 313), (7500, 293), (7000, 274)])
def test_row_074_weights_of_kubepods(cpus: int, weight: int) -> None:
    assert shares_to_weight_linear(milli_to_shares(cpus)) == weight


def test_row_076_every_page_size_is_limited() -> None:
    node = replace(MACHINE, hugepage_sizes=("2MB", "1GB"))
    found = on(one("limits: {hugepages-2Mi: 64Mi, memory: 128Mi}"), node=node)
    assert pod_file(found, "hugetlb.2MB.max") == "67108864"
    assert pod_file(found, "hugetlb.1GB.max") == "0"


@pytest.mark.parametrize(("limit", "expected"), [(-1, None), (1, "1"), (1000, "1000")])
def test_row_077_pids(limit: int, expected: str | None) -> None:
    for resources in ("", "requests: {cpu: 1}", "limits: {cpu: 1, memory: 1Gi}"):
        assert pod_file(on(one(resources), pod_pids_limit=limit), "pids.max") == expected


# -- names ------------------------------------------------------------------------------------------


def test_row_079_and_080_the_two_drivers() -> None:
    pod = one("requests: {cpu: 1}")
    assert on(pod).cgroup.path == f"{BURSTABLE_DIR}/kubepods-burstable-pod{UID_}.slice"
    plain = on(pod, cgroup_driver=CgroupDriver.CGROUPFS)
    assert plain.cgroup.path == f"/kubepods/burstable/pod{UID}"


def test_row_081_a_mirror_pod_is_found_by_its_hash() -> None:
    digest = "5b05bfb813bafe1d7aaeb6bd492468a8"
    note = f"{{kubernetes.io/config.mirror: {digest}, kubernetes.io/config.hash: {digest}}}"
    pod = spec("containers: [{name: c1}]", annotations=note)
    assert on(pod).cgroup.path.endswith(f"kubepods-besteffort-pod{digest}.slice")


@pytest.mark.parametrize(
    "root", [pytest.param("/my-root", id="row_082"), pytest.param("/my_root", id="row_083")]
)
def test_a_cgroup_root(root: str) -> None:
    found = on(one("limits: {cpu: 1, memory: 1Gi}"), cgroup_root=root)
    base = "/my_root.slice/my_root-kubepods.slice"
    assert found.cgroup.path == f"{base}/my_root-kubepods-pod{UID_}.slice"


def test_row_085_without_cgroups_per_qos() -> None:
    found = on(one("requests: {cpu: 1}"), cgroups_per_qos=False)
    assert found.cgroup.files == {}
    assert "kubepods" not in found.cgroup.path


# -- MemoryQoS and swap -----------------------------------------------------------------------------

MEMORY_QOS = {"MemoryQoS": True}


@pytest.mark.parametrize(
    ("release", "factor", "high", "minimum", "low"),
    [
        ("1.36", 0.9, "996147200", "0", "0"),
        ("1.35", 0.9, "996147200", "524288000", None),
        ("1.26", 0.8, "838860800", "524288000", None),
    ],
)
def test_row_086_memory_qos_by_release(
    release: str, factor: float, high: str, minimum: str, low: str | None
) -> None:
    pod = one("requests: {memory: 500Mi}, limits: {memory: 1000Mi}")
    found = on(pod, release, gates=MEMORY_QOS, memory_throttling_factor=factor)
    assert file_of(found, "c1", "memory.high") == high
    assert file_of(found, "c1", "memory.min") == minimum
    assert file_of(found, "c1", "memory.low") == low


def test_row_086_memory_qos_tiered() -> None:
    pod = one("requests: {memory: 500Mi}, limits: {memory: 1000Mi}")
    found = on(pod, gates=MEMORY_QOS, memory_reservation_policy=TIERED)
    assert file_of(found, "c1", "memory.low") == "524288000"
    assert file_of(found, "c1", "memory.min") is None


@pytest.mark.parametrize(
    ("release", "factor", "high"),
    [("1.26", 0.8, "12884901888"), ("1.36", 0.9, None), ("1.37", 0.9, "14495514624"), ("1.37", None, None)],
)
def test_row_087_memory_qos_of_best_effort(release: str, factor: float | None, high: str | None) -> None:
    found = on(one(""), release, gates=MEMORY_QOS, memory_throttling_factor=factor)
    assert file_of(found, "c1", "memory.high") == high


def test_row_088_equal_memory_is_not_throttled() -> None:
    pod = one("requests: {cpu: 1, memory: 256Mi}, limits: {memory: 256Mi}")
    found = on(pod, "1.35", gates=MEMORY_QOS)
    assert file_of(found, "c1", "memory.high") is None
    assert file_of(found, "c1", "memory.min") == "268435456"


@pytest.mark.parametrize(
    ("resources", "high"),
    [
        pytest.param("requests: {memory: 4096}, limits: {memory: 8192}", None, id="row_089"),
        pytest.param("requests: {memory: 0}, limits: {memory: 1Gi}", "966365184", id="row_090"),
    ],
)
def test_memory_high_is_a_whole_page_above_the_request(resources: str, high: str | None) -> None:
    assert file_of(on(one(resources), gates=MEMORY_QOS), "c1", "memory.high") == high


@pytest.mark.parametrize(
    ("swap", "resources", "expected"),
    [
        pytest.param(4 * GI, "requests: {memory: 1Gi}, limits: {memory: 2Gi}", "268435456", id="row_092"),
        pytest.param(2 * GI, "requests: {memory: 100Mi}, limits: {memory: 200Mi}", "13107200", id="row_093"),
        pytest.param(2 * GI, "requests: {memory: 1Gi}, limits: {memory: 1Gi}", "0", id="row_094_equal"),
        pytest.param(2 * GI, "requests: {cpu: 1}", "0", id="row_094_none"),
        pytest.param(2 * GI, "limits: {cpu: 1, memory: 1Gi}", "0", id="row_094_guaranteed"),
        pytest.param(2 * GI, "", "0", id="row_094_best_effort"),
    ],
)
def test_limited_swap(swap: int, resources: str, expected: str) -> None:
    node = replace(MACHINE, swap_capacity_bytes=swap)
    found = on(one(resources), node=node, memory_swap_behavior="LimitedSwap")
    assert file_of(found, "c1", "memory.swap.max") == expected


@pytest.mark.parametrize("release", ["1.28", "1.29"])
def test_row_095_swap_was_unlimited_once(release: str) -> None:
    found = on(one("requests: {memory: 1Gi}"), release, gates={"NodeSwap": True})
    assert file_of(found, "c1", "memory.swap.max") == "max"


# -- kernel -----------------------------------------------------------------------------------------

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


@pytest.mark.parametrize(("release", "expected"), [("1.36", "1"), ("1.28", "1"), ("1.27", None)])
def test_row_109_the_unit_that_dies(release: str, expected: str | None) -> None:
    assert file_of(on(one(""), release), "c1", "memory.oom.group") == expected
    if release == "1.36":
        assert file_of(on(one(""), release, single_process_oom_kill=True), "c1", "memory.oom.group") is None
        version_1 = replace(MACHINE, cgroup_version=1)
        assert "memory.oom.group" not in on(one(""), release, node=version_1).containers[0].cgroup.files


def test_row_110_a_pod_level_limit_kills_one_container() -> None:
    """There oom_score_adj is scaled by the pod's limit, so that memory decides; the other one survives."""
    containers = with_resources("requests: {memory: 64Mi}", "requests: {memory: 6Gi}")
    fragment = f"{containers}, resources: {{limits: {{memory: 7Gi}}}}, nodeName: n1"
    pod = default_pod(spec(fragment, status="{phase: Running}"), Release.of("1.36"))
    usage = {("default", "p"): PodUsage(("c1", "c2"), (100 << 20, 5 * GI))}
    state = build_node_state([pod], NodeSetup.of(replace(MACHINE, kubelet_version="1.36")), usage)
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

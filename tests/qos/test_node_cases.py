"""Corner cases of nodes, eviction and resizes; `row_NNN` is the row of the rules' table."""

import pytest
from msgspec import structs

from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup, node_from_object
from kubectl_qos.k8s.objects import NodeObject, Pod, convert, resource_list
from kubectl_qos.k8s.quota import LimitRange, with_limit_ranges
from kubectl_qos.k8s.releases import OciRuntime, Release
from kubectl_qos.k8s.resources import eviction_request
from kubectl_qos.k8s.validation import kubelet_config_errors
from kubectl_qos.present.reasons import formula
from kubectl_qos.qos.cgroup import names as cgroup_names
from kubectl_qos.qos.cgroup import pod as pod_cgroup
from kubectl_qos.qos.cgroup import tree as node_cgroups
from kubectl_qos.qos.cgroup.values import kubelet_files
from kubectl_qos.qos.eviction import eviction_ranks
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import rank_node
from kubectl_qos.qos.resize import ResizeStatus, resize_outcome, resize_refusals
from tests.golden.reference import reservation
from tests.qos.corner import GI, MACHINE, UID_, adj, file_of, on, one, pod_file, spec

R136 = Release.of("1.36")
MI = 1 << 20


def test_row_019_a_template_is_defaulted_like_its_pods() -> None:
    template = convert({"kind": "Deployment", "spec": {"containers": [{"name": "c1"}]}}, Pod)
    limits = {"limits": {"cpu": "1", "memory": "1Gi"}}
    limited = convert(
        {"kind": "Deployment", "spec": {"containers": [{"name": "c1", "resources": limits}]}}, Pod
    )
    assert on(template).qos_class is QosClass.BEST_EFFORT
    assert on(limited).qos_class is QosClass.GUARANTEED


def test_row_024_a_static_pod_never_sees_a_limit_range() -> None:
    defaults = {"cpu": "1", "memory": "1Gi"}
    ranges = [convert({"spec": {"limits": [{"type": "Container", "default": defaults}]}}, LimitRange)]
    static = spec("containers: [{name: c1}]", annotations="{kubernetes.io/config.source: file}")
    assert on(with_limit_ranges(static, ranges)).qos_class is QosClass.BEST_EFFORT
    assert on(with_limit_ranges(one(""), ranges)).qos_class is QosClass.GUARANTEED


def test_row_059_a_resize_leaves_running_processes_alone() -> None:
    before, after = on(one("requests: {memory: 1Gi}")), on(one("requests: {memory: 2Gi}"))
    assert (adj(before), adj(after)) == ({"c1": 938}, {"c1": 875})
    assert before.cgroup.files == after.cgroup.files, "a memory request alone writes nothing"


# -- class cgroups and the node ----------------------------------------------------------------------


def burstable(*pods: Pod) -> dict[str, str]:
    setup = NodeSetup.of(MACHINE, Kubelet(), R136)
    living = [default_pod(pod, R136) for pod in pods if not pod.is_terminal]
    write = node_cgroups.classes(living, setup)[-1]
    assert write.name == ("kubepods", "burstable")
    return kubelet_files(write.settings, MACHINE, R136)


def test_row_062_burstable_shares_are_a_sum() -> None:
    ended = spec("containers: [{name: c1, resources: {requests: {cpu: 4}}}]", status="{phase: Succeeded}")
    files = burstable(
        one("requests: {cpu: 1500m}"),
        one("requests: {cpu: 250m}"),
        one("limits: {cpu: 2, memory: 1Gi}"),
        one(""),
        ended,
    )
    assert files["cpu.weight"] == "69"


def test_row_063_no_burstable_pod() -> None:
    assert burstable(one(""))["cpu.weight"] == "1"


def test_row_070_another_period_needs_its_gate() -> None:
    kubelet = Kubelet(cpu_cfs_quota_period_us=10_000)
    assert (
        "requires feature gate CustomCPUCFSQuotaPeriod"
        in kubelet_config_errors(kubelet, Release.of("1.35"))[0]
    )
    assert kubelet_config_errors(kubelet, R136) == []


def test_row_075_three_numbers_called_allocatable() -> None:
    reserved = resource_list({"memory": "512Mi"})
    kubelet = Kubelet(
        kube_reserved=reserved, system_reserved=reserved, eviction_hard={"memory.available": "100Mi"}
    )
    capacity = resource_list({"cpu": "4", "memory": "16Gi"})
    kubepods = node_cgroups.kubepods(capacity, 4, kubelet, R136)
    assert kubepods.settings.memory_limit_bytes == 16106127360
    taken = reservation(capacity, kubelet)["memory"]
    assert (capacity["memory"] - taken).value() == 16001269760
    status = {"capacity": {"memory": "16Gi"}, "allocatable": {"memory": "16001269760"}}
    node = node_from_object(convert({"metadata": {"name": "n"}, "status": status}, NodeObject), kubelet)
    assert node.allocatable_memory_bytes == 16106127360, "read back from what the API shows"
    assert node.memory_capacity_bytes == 17179869184, "which oom_score_adj divides by"


def test_row_078_a_running_pod_keeps_its_pids_limit() -> None:
    files = pod_file(on(one(""), pod_pids_limit=1000), "pids.max")
    assert files == "1000"
    assert "pids.max" not in pod_cgroup.UPDATED_IN_PLACE


def test_row_084_crun_has_a_child_for_the_processes() -> None:
    kubelet = Kubelet()
    pod_path = on(one("requests: {cpu: 1}")).cgroup.path
    assert UID_ in pod_path
    scope = cgroup_names.container_path(pod_path, "cri-o://abc", kubelet, "cri-o://1.36.0")
    assert scope == f"{pod_path}/crio-abc.scope"
    crun = OciRuntime.parse("crun 1.29.1")
    node = Node(oci_runtime=crun, memory_capacity_bytes=16 << 30)
    (container,) = on(one("requests: {cpu: 1}"), node=node).containers
    assert container.process_cgroup.path == f"{container.cgroup.path}/container"
    for other in (Node(), structs.replace(node, cgroup_version=1)):
        (container,) = on(one("requests: {cpu: 1}"), node=other).containers
        assert container.process_cgroup is container.cgroup


def test_memory_high_counts_the_machine_where_reservations_are_unknown() -> None:
    unknown = structs.replace(MACHINE, allocatable_memory_bytes=None)
    for node, upper in ((MACHINE, 15 * GI), (unknown, 16 * GI)):
        found = on(one("requests: {memory: 1Gi}"), node=node, gates={"MemoryQoS": True})
        high = (GI + int(0.9 * (upper - GI))) // 4096 * 4096
        assert file_of(found, "c1", "memory.high") == str(high)
        assumed = [assumption.name for assumption in found.assumptions]
        assert ("kube_reserved" in assumed) is (node is unknown)


# -- eviction ----------------------------------------------------------------------------------------


def evicted(release: str, *pods: tuple[str, Pod, int]) -> list[str]:
    rules = Release.of(release)
    defaulted = [default_pod(pod, rules) for _, pod, _ in pods]
    requests = [eviction_request(pod, rules, "memory") for pod in defaulted]
    ranks = eviction_ranks(defaulted, [used for *_, used in pods], requests)
    return [name for _, name in sorted(zip(ranks, (name for name, *_ in pods), strict=True))]


def exceeds(release: str, pod: Pod, used: int) -> bool:
    """Whether it is evicted before a pod that exceeds its request and has a higher priority."""
    return evicted(release, ("it", pod, used), ("other", one("", "priority: 1"), 1))[0] == "it"


@pytest.mark.parametrize(
    ("priority", "order"),
    [
        pytest.param(1000, ["D", "C", "B", "A"], id="row_096"),
        pytest.param(0, ["B", "D", "C", "A"], id="row_097"),
    ],
)
def test_eviction_looks_at_priority_and_excess_not_at_the_class(priority: int, order: list[str]) -> None:
    found = evicted(
        "1.36",
        ("A", one("limits: {cpu: 1, memory: 2Gi}"), 1900 * MI),
        ("B", one("requests: {memory: 100Mi}", f"priority: {priority}"), 300 * MI),
        ("C", one("", "priority: 0"), 10 * MI),
        ("D", one("", "priority: 0"), 50 * MI),
    )
    assert found == order


def sidecar_pod(memory: str, kind: str = "requests") -> Pod:
    resources = f"{{{kind}: {{cpu: 1, memory: {memory}}}}}"
    sidecar = f"[{{name: s, restartPolicy: Always, resources: {resources}}}]"
    return spec(f"containers: [{{name: c1, resources: {resources}}}], initContainers: {sidecar}")


@pytest.mark.parametrize(("release", "over"), [("1.28", True), ("1.33", True), ("1.34", False)])
def test_row_098_sidecars_were_not_added_before_1_34(release: str, *, over: bool) -> None:
    assert exceeds(release, sidecar_pod("1Gi", "limits"), 1536 * MI) is over


@pytest.mark.parametrize(("release", "over"), [("1.33", True), ("1.34", False)])
def test_row_099_a_burstable_pod_with_a_sidecar(release: str, *, over: bool) -> None:
    assert exceeds(release, sidecar_pod("500Mi"), 700 * MI) is over


def test_row_100_any_pod_level_resource_hides_the_containers() -> None:
    pod = spec(
        "containers: [{name: c1, resources: {requests: {memory: 1Gi}}}], resources: {requests: {cpu: 1}}"
    )
    assert exceeds("1.36", pod, 500 * MI)
    assert not exceeds("1.33", pod, 500 * MI)


# -- resizes -----------------------------------------------------------------------------------------

LIMITED = "requests: {cpu: 500m, memory: 512Mi}, limits: {cpu: 1, memory: 1Gi}"


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        pytest.param("", "requests: {cpu: 100m}", "Pod QOS Class may not change", id="row_101"),
        pytest.param(LIMITED, "limits: {cpu: 1, memory: 1Gi}", "Pod QOS Class may not change", id="row_102"),
        pytest.param(
            LIMITED,
            "requests: {cpu: 500m, memory: 512Mi}, limits: {memory: 1Gi}",
            "resource limits cannot be removed",
            id="row_103",
        ),
    ],
)
def test_a_resize_is_refused(before: str, after: str, sentence: str) -> None:
    found = resize_refusals(default_pod(one(before), R136), default_pod(one(after), R136), R136)
    assert any(sentence in refusal.message for refusal in found)


def test_row_104_a_memory_limit_shrinks_in_place() -> None:
    old = default_pod(one(LIMITED), R136)
    new = default_pod(one(LIMITED.replace("memory: 1Gi", "memory: 512Mi")), R136)
    assert resize_refusals(old, new, Release.of("1.33")) != []
    assert resize_refusals(old, new, Release.of("1.34")) == []


def test_row_105_exclusive_cpus_cannot_be_resized() -> None:
    old = default_pod(one("limits: {cpu: 1, memory: 1Gi}"), R136)
    new = default_pod(one("limits: {cpu: 2, memory: 1Gi}"), R136)
    static = NodeSetup.of(structs.replace(MACHINE), Kubelet(cpu_manager_policy="static"), R136)
    assert resize_outcome(old, new, static).answer is ResizeStatus.INFEASIBLE


def test_row_112_a_restricted_runtime_shows_in_the_prediction_and_the_rank() -> None:
    node = structs.replace(MACHINE, runtime_oom_score_adj=0)
    found = on(one("limits: {cpu: 1, memory: 1Gi}"), node=node)
    assert (found.containers[0].oom_score_adj, found.containers[0].cri_resources.oom_score_adj) == (0, -997)
    reason = found.containers[0].oom_score_adj_reason
    assert reason is not None
    assert formula(reason).startswith("Guaranteed pods get -997, raised to 0, containerd's own")
    ranking = rank_node([found.pod], node, Release.of("1.36"))
    assert ranking.pods[0].containers[0].adj == 0

"""Rules that changed with 1.37 or are only proposed, and the memory manager; each with the release before."""

from typing import Any

import pytest
from msgspec import structs

from kubectl_qos.edit.compare import compare
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import Kubelet, NodeSetup
from kubectl_qos.k8s.objects import Pod, convert, resource_list
from kubectl_qos.k8s.releases import Change, Gate, Release
from kubectl_qos.k8s.validation import pod_refusals
from kubectl_qos.present.effects import HUGEPAGES_LEFT_OUT, kubelet_sections
from kubectl_qos.present.output import ValueChange
from kubectl_qos.qos.cgroup.tree import CgroupLevel, cgroup_tree
from kubectl_qos.qos.eviction import evictable_capacity, to_hard_eviction, to_soft_eviction
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import rank_node
from kubectl_qos.qos.resize import ResizeStatus, resize_outcome
from kubectl_qos.qos.simulation.ceiling import Scenario
from kubectl_qos.qos.simulation.engine import simulate
from tests.node_states import build_node_state
from tests.qos.corner import GI, MACHINE, TIERED, on, one

MI = 1 << 20
HUGE = structs.replace(
    MACHINE, capacity=resource_list({"memory": "16Gi", "hugepages-2Mi": "4Gi", "hugepages-1Gi": "1Gi"})
)


def setup(release: str, gates: dict[str, bool] | None = None, **kubelet: Any) -> NodeSetup:
    return NodeSetup.of(HUGE, structs.replace(Kubelet(feature_gates=gates or {}), **kubelet), release)


# -- HugepageAwareEviction (kubernetes/kubernetes 138127) --------------------------------------------


@pytest.mark.parametrize(
    ("release", "gates", "capacity"),
    [("1.36", {}, 16), ("1.37", {}, 11), ("1.37", {"HugepageAwareEviction": False}, 16)],
)
def test_hugepages_come_off_what_is_available(release: str, gates: dict[str, bool], capacity: int) -> None:
    found = setup(release, gates, enforce_node_allocatable=(), eviction_soft={"memory.available": "10%"})
    assert evictable_capacity(found) == capacity * GI
    assert to_hard_eviction(found, GI) == (capacity - 1) * GI - 100 * MI
    assert to_soft_eviction(found, GI) == pytest.approx(capacity * GI * 0.9 - GI, abs=1024)


def test_a_simulated_node_with_hugepages_evicts_earlier() -> None:
    pods = [one("limits: {memory: 12Gi}", "nodeName: n1")]
    steps = {}
    for release in ("1.36", "1.37"):
        state = build_node_state(pods, setup(release, enforce_node_allocatable=()), {})
        steps[release] = simulate(state, Scenario(all_at_limit=True, eviction=True)).steps
    assert [step.mechanism for step in steps["1.36"]] == ["node"], "hugepages hold 5Gi of its 16Gi"
    assert [step.mechanism for step in steps["1.37"]] == ["kubelet eviction"]


def test_an_upgrade_says_that_hugepages_come_off() -> None:
    (section,) = kubelet_sections(compare((), setup("1.36"), setup("1.37")))
    assert [change for change in section.changes if change.changed] == [ValueChange("of", "16Gi", "11Gi")]
    assert [line.text for line in section.lines] == [HUGEPAGES_LEFT_OUT]


# -- MemoryQoS off again (138903) --------------------------------------------------------------------


@pytest.mark.parametrize(("release", "zeros"), [("1.36", None), ("1.37", "0")])
def test_memory_qos_off_is_written_for_classes(release: str, zeros: str | None) -> None:
    assert Release.of(release).has(Change.MEMORY_QOS_IS_RESET) is (zeros is not None)
    tree = cgroup_tree([one("requests: {memory: 1Gi}")], setup(release, {"MemoryQoS": False}))
    levels = {(one.level, one.qos): one.files for one in tree.walk()}
    assert levels[CgroupLevel.KUBEPODS, None].get("memory.min") == zeros
    assert levels[CgroupLevel.CLASS, QosClass.BURSTABLE].get("memory.low") == zeros
    tiered = cgroup_tree(
        [one("requests: {memory: 1Gi}")], setup("1.37", memory_reservation_policy=TIERED)
    ).roots[0]
    assert tiered.files["memory.min"] == str(GI)


# -- gates -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gate", [Gate.POD_LEVEL_FIX_QOS_CLASS, Gate.HUGEPAGE_AWARE_EVICTION])
def test_beta_gates_of_1_37_are_on(gate: Gate) -> None:
    assert Release.of("1.37").enabled(gate)
    assert not Release.of("1.37", {gate: False}).enabled(gate)
    assert Release.of("1.36").ignored_gates({gate: True}) == {gate: "unknown"}


@pytest.mark.parametrize(
    "gate", [Gate.PER_POD_PID_LIMIT, Gate.IN_PLACE_RESIZE_VOLUMES, Gate.IN_PLACE_RESIZE_PREEMPTION]
)
def test_alpha_gates_of_1_37_are_off(gate: Gate) -> None:
    assert not Release.of("1.37").enabled(gate)
    assert Release.of("1.37", {gate: True}).enabled(gate)
    assert Release.of("1.36").ignored_gates({gate: True}) == {gate: "unknown"}


def test_a_pod_limits_its_processes() -> None:
    pod = one("requests: {memory: 1Gi}", 'resources: {limits: {pids: "2048"}}')
    on_ = {"PerPodPIDLimit": True}
    reason = on(pod, "1.37", gates=on_).cgroup.reasons["pids.max"]
    assert reason.result == "2048"
    assert pod_refusals(default_pod(pod, Release.of("1.37", on_)), Release.of("1.37", on_)) == []
    assert pod_refusals(default_pod(pod, Release.of("1.37")), Release.of("1.37")) != []


# -- the memory manager ------------------------------------------------------------------------------

GUARANTEED = "requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}"
MORE_MEMORY = "requests: {cpu: 1, memory: 2Gi}, limits: {cpu: 1, memory: 2Gi}"
MORE_CPU = "requests: {cpu: 2, memory: 1Gi}, limits: {cpu: 2, memory: 1Gi}"
REFUSED = 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"'
EXCLUSIVE = {"InPlacePodVerticalScalingExclusiveMemory": True}


@pytest.mark.parametrize(
    ("before", "after", "gates", "message"),
    [
        (GUARANTEED, MORE_MEMORY, {}, REFUSED),
        (GUARANTEED, MORE_MEMORY, EXCLUSIVE, ""),
        (GUARANTEED, MORE_CPU, {}, ""),
        ("requests: {memory: 1Gi}", "requests: {memory: 2Gi}", {}, ""),
    ],
)
def test_static_memory_is_not_resized(before: str, after: str, gates: dict[str, bool], message: str) -> None:
    for policy in ("Static", "None"):
        found = resize_outcome(one(before), one(after), setup("1.36", gates, memory_manager_policy=policy))
        is_refused = bool(message) and policy == "Static"
        assert found.message == (message if is_refused else "")
        assert found.answer is (ResizeStatus.INFEASIBLE if is_refused else ResizeStatus.ACTUATED)


# -- a pod without app containers --------------------------------------------------------------------


def running(**spec: Any) -> Pod:
    """A pod that no server would store."""
    return convert({"spec": {"nodeName": "n1", **spec}, "status": {"phase": "Running"}}, Pod)


@pytest.mark.parametrize("release", ["1.31", "1.32", "1.37"])
def test_a_sidecar_without_app_containers_is_ranked(release: str) -> None:
    """minRegularContainerMemory panics there (index out of range): there is no container to compare with."""
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"memory": "1Gi"}}}
    pod = running(initContainers=[sidecar])
    (row,) = rank_node([default_pod(pod, Release.of(release))], MACHINE, Release.of(release)).pods
    assert [score.adj for score in row.containers] == [938]


def test_a_share_of_the_pods_request_needs_containers() -> None:
    pod = running(resources={"requests": {"memory": "1Gi"}}, ephemeralContainers=[{"name": "e"}])
    (row,) = rank_node([pod], MACHINE, Release.of("1.36")).pods
    assert [score.adj for score in row.containers] == [999]

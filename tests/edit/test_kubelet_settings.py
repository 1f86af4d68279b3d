"""Settings of a kubelet: proven by the simulation for random nodes, and what they are made of."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st
from msgspec import structs

from kubectl_qos.edit.fixes import NodeModel, evicts_first, fix_kubelet, late_state
from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup, Origin, with_origin
from kubectl_qos.k8s.node_overrides import NodeOverride, apply_overrides
from kubectl_qos.k8s.objects import MEMORY, ResourceList
from kubectl_qos.k8s.quantity import in_bytes
from kubectl_qos.present.fix_sentences import kubelet_notes, kubelet_warnings
from kubectl_qos.qos.simulation.ceiling import ContainerGrowth, Scenario
from kubectl_qos.qos.simulation.engine import simulate
from tests.edit.test_edit_laws import Cluster, clusters
from tests.edit.test_fixes import model_of
from tests.edit.test_rank_goals import pod, using

MIB = 1 << 20
GIB = 1 << 30


def known(model: NodeModel) -> NodeModel:
    """With the kubelet's thresholds read: assumed ones are those of the release."""
    kubelet = model.setup.kubelet
    kubelet = with_origin(kubelet, Origin.CONFIGZ, eviction_hard=kubelet.eviction_hard)
    return replace(model, setup=structs.replace(model.setup, kubelet=kubelet))


@given(clusters(), st.sampled_from(["", "100Mi", "1%"]), st.integers(0, 60), st.integers(0, 2048))
def test_the_kubelet_evicts_first_with_the_least_threshold(
    found: Cluster, threshold: str, growth: int, own: int
) -> None:
    model = replace(known(model_of(found, threshold)), own_bytes=own * MIB)
    growth *= MIB
    fix = fix_kubelet(model, growth)
    event(f"{fix and sorted(fix.fields)}")
    if fix is None:
        return
    after = replace(model, setup=fix.setup)
    state = late_state(after.state(), growth)
    assert evicts_first(after, growth)
    grows = Scenario(growth=(ContainerGrowth(None, (state.own_bytes or 0) + 100 * GIB),), eviction=True)
    assert simulate(state, grows).steps[0].mechanism == "kubelet eviction"
    assert not fix.evicted_now or fix.available.available_bytes < fix.threshold_bytes
    assert fix.reserved_bytes >= own * MIB or "systemReserved" not in fix.fields
    if "evictionHard" in fix.fields:
        assert fix.threshold_bytes >= fix.least_bytes
        less = NodeOverride("evictionHard", f"memory.available<{fix.least_bytes - MIB}")
        assert not evicts_first(replace(model, setup=apply_overrides(fix.setup, [less])), growth)
    else:
        assert evicts_first(model, growth)


def small_node(**fields: object) -> NodeModel:
    """A pod that requests 2 Gi of 4, of which half a Gi is reserved."""
    memory = ResourceList({MEMORY: in_bytes(7 * GIB // 2 - 100 * MIB)})
    node = Node(
        name="n1",
        memory_capacity_bytes=4 * GIB,
        allocatable_memory_bytes=7 * GIB // 2,
        status_allocatable=memory,
    )
    setup = NodeSetup.of(node, structs.replace(Kubelet(), **fields))
    return known(NodeModel(setup, [pod("web", "requests: {memory: 2Gi}")], using(web=1)))


def test_what_holds_needs_nothing() -> None:
    assert fix_kubelet(small_node()) is None
    assert fix_kubelet(small_node(), 5 * MIB) is None


def test_growth_within_a_poll_is_missing_from_the_threshold() -> None:
    fix = fix_kubelet(small_node(), 30 * MIB)
    assert fix is not None
    assert fix.configuration["evictionHard"]["memory.available"] == "320Mi"
    assert fix.configuration["evictionHard"]["nodefs.available"] == "10%"
    assert fix.configuration["evictionSoft"] == {"memory.available": "1536Mi"}
    assert fix.cost_bytes == 220 * MIB
    assert next(kubelet_notes(fix)) == (
        "to evict before the kernel kills, the kubelet of n1 needs evictionHard 100Mi → 320Mi"
        " (at least 300Mi); allocatable memory -220Mi"
    )


def test_a_soft_threshold_that_is_crossed_now_is_left_out() -> None:
    fix = fix_kubelet(small_node(), 80 * MIB)
    assert fix is not None
    assert list(fix.fields) == ["evictionHard"]
    assert (fix.soft_bytes, fix.soft_room_bytes) == (4 * GIB, 2 * GIB), "pods that use their requests"
    fix = fix_kubelet(replace(small_node(), usage=using(web=3.25)), 30 * MIB)
    assert fix is not None
    assert list(kubelet_warnings(fix))[-1] == (
        "evictionSoft is left out: for this growth it would be 1.5Gi, but what pods use or request"
        " leaves only 768Mi"
    )


def test_settings_that_evict_pods_at_once_say_so() -> None:
    fix = fix_kubelet(small_node(), 30 * MIB)
    assert fix is not None
    assert list(kubelet_warnings(fix)) == []
    fix = fix_kubelet(replace(small_node(), usage=using(web=3.25)), 30 * MIB)
    assert fix is not None
    # kubepods has 3584 Mi.
    assert fix.evicted_now == (("n", "web"),)
    evicts, first, _ = kubelet_warnings(fix)
    assert evicts == (
        "applied now, these settings make the kubelet evict 1 pod at once (n/web): 256Mi of the kubepods"
        " limit is available, less than 320Mi"
    )
    assert first == (
        "first drain n1, or free 64Mi there; a threshold of 256Mi evicts nobody now, but only growth"
        " below 25.6Mi per second is slow enough for it"
    )


def test_a_reservation_that_pods_use_now_says_that_the_kernel_may_kill() -> None:
    fix = fix_kubelet(replace(small_node(), usage=using(web=2.25), own_bytes=1536 * MIB))
    assert fix is not None
    # 4096 Mi less 1920 Mi of systemReserved is 128 Mi less than the pod uses.
    evicts, first = kubelet_warnings(fix)
    assert evicts == (
        "applied now, these settings make the kubelet evict 1 pod at once (n/web): pods use more than the"
        " kubepods limit would be, so the kernel may kill before that"
    )
    assert first == "first drain n1, or free 228Mi there"


def test_without_a_threshold_it_gets_one() -> None:
    fix = fix_kubelet(small_node(eviction_hard={}))
    assert fix is not None
    assert fix.fields == {"evictionHard": {"memory.available": "100Mi"}}


def test_what_the_node_uses_itself_is_reserved() -> None:
    fix = fix_kubelet(replace(small_node(), own_bytes=GIB + 512 * MIB))
    assert fix is not None
    assert fix.fields == {"systemReserved": {"memory": "1920Mi"}}
    assert (fix.reserved_bytes, fix.missing_bytes) == (1920 * MIB, 0)
    assert next(kubelet_notes(fix)) == (
        "to reserve what the node itself uses, the kubelet of n1 needs 512Mi → 1.9Gi reserved;"
        " allocatable memory -1.4Gi"
    )
    of_kube = ResourceList({MEMORY: in_bytes(250 * MIB)})
    fix = fix_kubelet(replace(small_node(kube_reserved=of_kube), own_bytes=835 * MIB))
    assert fix is not None
    # 125 percent are 1043.75 Mi, of which 793.75 are not kubeReserved.
    assert fix.fields == {"systemReserved": {"memory": "832Mi"}}
    assert fix.reserved_bytes == (832 + 250) * MIB
    fix = fix_kubelet(replace(small_node(), own_bytes=2 * GIB))
    assert fix is not None
    assert fix.missing_bytes == 612 * MIB
    assert "pods that do not fit any more are rejected when the kubelet restarts" in kubelet_notes(fix)

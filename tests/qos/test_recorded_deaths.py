"""The next deaths of recorded nodes, beside what their kernels and kubelets said of the same moment."""

from dataclasses import replace

import pytest

from kubectl_qos.analysis.node_table import build_node_row
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import PodUsage, UsageOrigin
from kubectl_qos.present.next_death import killed_by
from kubectl_qos.qos.reason import Mechanism
from kubectl_qos.qos.simulation.next_death import NextDeath, next_deaths
from kubectl_qos.qos.simulation.node_state import state_of_node
from tests.qos.recorded import cadvisor_b, snapshot_of

NODES = ["node-1.36", "node-1.36-b", "node-1.36-d"]
AVAILABLE = {"node-1.36": 3215106048, "node-1.36-b": 2860675072, "node-1.36-d": 2325884928}
"""`availableBytes` of the node in its kubelet's summary."""


def death(snapshot: Snapshot, mechanism: Mechanism) -> NextDeath:
    found = next_deaths(state_of_node(snapshot, "node1"))
    return next(one for one in found if one.mechanism is mechanism and one.grace_seconds is None)


def by_metrics(snapshot: Snapshot) -> Snapshot:
    """With the working sets alone, as metrics-server has them."""
    usage = {}
    for key, pod in snapshot.usage.items():
        sizes = [one if isinstance(one, int) else one.working_set_bytes for one in pod.amounts]
        usage[key] = PodUsage(pod.names, tuple(sizes), UsageOrigin.METRICS_API)
    return replace(snapshot, usage=usage)


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("source", [UsageOrigin.KUBELET_SUMMARY, UsageOrigin.METRICS_API])
def test_eviction_is_as_far_as_the_kubelet_says(name: str, source: UsageOrigin) -> None:
    snapshot = snapshot_of(name)
    if source is UsageOrigin.METRICS_API:
        snapshot = by_metrics(snapshot)
    found = death(snapshot, Mechanism.EVICTION)
    threshold = state_of_node(snapshot, "node1").thresholds.node_bytes or 0
    assert found.distance_bytes == pytest.approx(AVAILABLE[name] - threshold, rel=0.02)
    assert not found.is_upper_bound
    assert build_node_row(snapshot, "node1").to_eviction == found.distance_bytes
    without = death(replace(snapshot, node_usage={}), Mechanism.EVICTION)
    assert without.is_upper_bound
    assert without.distance_bytes > found.distance_bytes * 1.05


@pytest.mark.parametrize("name", NODES)
def test_a_full_node_is_as_far_as_its_available_memory_and_the_swap_that_pods_may_use(name: str) -> None:
    snapshot = snapshot_of(name)
    state = state_of_node(snapshot, "node1")
    swap = min(state.may_swap(state.containers) + (state.own_bytes or 0), state.swap_bytes)
    used = sum(usage.swap_bytes or 0 for usage in snapshot.usage.values())
    found = death(snapshot, Mechanism.NODE)
    assert found.distance_bytes - (swap - used) == pytest.approx(AVAILABLE[name], rel=0.02)


def test_swap_of_the_node_makes_no_limit_look_full() -> None:
    """The share of a limit is never more than the cgroup's own files say."""
    used, limits = cadvisor_b("container_memory_usage_bytes"), cadvisor_b("container_spec_memory_limit_bytes")
    own = [one for one in next_deaths(state_of_node(snapshot_of("node-1.36-b"), "node1")) if one.limit_bytes]
    assert len(own) > 20
    for one in own:
        place = one.key[1], one.container if one.mechanism is Mechanism.CONTAINER_LIMIT else ""
        assert one.limit_bytes is not None
        assert one.limit_bytes - limits[place] in range(4096), "the kernel rounds down to pages"
        percent = int(killed_by(one).rpartition(" ")[2].rstrip("%"))
        assert percent <= 100 * used[place] / limits[place] + 1, place

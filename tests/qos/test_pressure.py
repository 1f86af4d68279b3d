"""Where the kubelet itself reports that memory is short, eviction is due, whatever older samples say."""

from dataclasses import replace
from typing import Any, Final

import pytest

from kubectl_qos.analysis.deaths import deaths_on_node, deaths_on_nodes
from kubectl_qos.analysis.fix_list import missed_kill, node_model
from kubectl_qos.analysis.node_table import build_node_rows
from kubectl_qos.cluster.files import DEMO_TIME, DemoSource
from kubectl_qos.edit.fixes import NodeModel
from kubectl_qos.edit.kubelet_settings import evicts_first
from kubectl_qos.exporter.series import FAMILIES, node_samples
from kubectl_qos.k8s.kubelet import Kubelet
from kubectl_qos.k8s.objects import NodeObject, Pod, convert
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import PodMetrics, usage_by_pod
from kubectl_qos.present.fixes import no_kubelet_fix
from kubectl_qos.present.next_death import distance, killed_by
from kubectl_qos.qos.kills.analyze import find_kills
from kubectl_qos.qos.reason import Mechanism
from kubectl_qos.qos.simulation.next_death import NextDeath
from kubectl_qos.tui.view_model import build_view_model
from tests.cluster.cluster_objects import metrics, node, pod
from tests.recordings.files import read_json

REPORTED: Final = "kubelet evicts, or pressure just ended"
SHORT: Final = {"type": "MemoryPressure", "status": "True", "lastTransitionTime": "2026-11-20T11:58:00Z"}


def snapshot(*conditions: dict[str, str], used: str = "150Mi", kubelet: Kubelet | None = None) -> Snapshot:
    """A node of 16Gi with two pods, one of which is at three quarters of its limit."""
    raw = node()
    raw["status"]["conditions"] = list(conditions)
    pods = [pod("near", request="100Mi", limit="200Mi"), pod("big", request="1Gi")]
    samples = [metrics("near", "150Mi"), metrics("big", used)]
    return Snapshot(
        pods=[convert(raw, Pod) for raw in pods],
        nodes={"worker-1": convert(raw, NodeObject)},
        usage=usage_by_pod([convert(sample, PodMetrics) for sample in samples]),
        kubelets={"worker-1": kubelet} if kubelet is not None else {},
    )


def first(found: Snapshot, name: str = "worker-1") -> NextDeath:
    return deaths_on_node(found, name).deaths[0]


def test_with_memory_pressure_eviction_is_due_and_the_sentence_is_true_when_it_has_ended() -> None:
    assert first(snapshot()).mechanism is Mechanism.POD_LIMIT
    death = first(snapshot(SHORT))
    assert (death.mechanism, distance(death), killed_by(death)) == (Mechanism.EVICTION, "now", REPORTED)
    assert death.key[1] == "near", "by the kubelet's order"
    assert first(snapshot({**SHORT, "status": "False"})).mechanism is Mechanism.POD_LIMIT


def test_a_sample_of_the_whole_node_since_the_report_says_how_much_is_left() -> None:
    """The condition outlasts the pressure by minutes, and names nobody then."""
    whole = replace(snapshot(SHORT), node_usage={"worker-1": 400 << 20})
    assert first(whole).mechanism is Mechanism.POD_LIMIT
    later = {**SHORT, "lastTransitionTime": "2026-11-20T12:30:00Z"}
    unseen = replace(snapshot(later), node_usage={"worker-1": 400 << 20})
    assert killed_by(first(unseen)) == REPORTED


def test_what_samples_show_needs_no_report() -> None:
    death = first(snapshot(SHORT, used="16200Mi"))
    assert (distance(death), killed_by(death)) == ("now", "kubelet evicts")


def test_pressure_may_be_of_the_soft_threshold_alone() -> None:
    kubelet = Kubelet(
        eviction_hard={"memory.available": "100Mi"},
        eviction_soft={"memory.available": "1Gi"},
        eviction_soft_grace_period={"memory.available": "90s"},
    )
    deaths = deaths_on_node(snapshot(SHORT, kubelet=kubelet), "worker-1").deaths
    assert killed_by(deaths[0]) == "kubelet evicts after 90s, or pressure just ended"
    (hard,) = (death for death in deaths[1:] if death.mechanism is Mechanism.EVICTION)
    assert (hard.distance_bytes > 0, killed_by(hard)) == (True, "kubelet evicts")


def test_every_surface_begins_with_it() -> None:
    found = snapshot(SHORT)
    assert deaths_on_nodes(found, ["worker-1"]).rows[0].death.is_reported
    (row,) = build_node_rows(found, lambda *_: True).rows
    assert row.death == first(found)
    view_model = build_view_model(found, Scope(), DEMO_TIME)
    view_model.know_deaths()
    assert view_model.nearest == ("worker-1", first(found))
    names = [family.name for family in FAMILIES]
    samples = dict(zip(names, node_samples(found, "worker-1", Scope(), None, {}), strict=True))
    assert samples["node_next_death_distance_bytes"] == (
        b'kubectl_qos_node_next_death_distance_bytes{node="worker-1"} 0\n'
    )


@pytest.mark.parametrize(("sampled", "is_reported"), [("21:44:05", True), ("21:44:30", False)])
def test_an_eviction_since_the_sample_counts_before_the_condition_says_so(
    sampled: str, is_reported: bool
) -> None:
    """Recorded: ev-gu was evicted at 21:44:11, MemoryPressure became True at 21:44:20."""
    found = read_json("node-1.36/oom-eviction.json")
    raw_pods: list[Any] = list(found["pods_after"].values())
    running = [raw for raw in raw_pods if raw["status"]["phase"] == "Running"]
    samples = [
        {
            "metadata": raw["metadata"],
            "timestamp": f"2026-11-20T{sampled}Z",
            "containers": [
                {"name": one["name"], "usage": {"memory": "50Mi"}} for one in raw["spec"]["containers"]
            ],
        }
        for raw in running
    ]
    name = found["node_after"]["metadata"]["name"]
    state = Snapshot(
        pods=[convert(raw, Pod) for raw in raw_pods],
        nodes={name: convert(found["node_after"], NodeObject)},
        usage=usage_by_pod([convert(sample, PodMetrics) for sample in samples]),
    )
    death = next(one for one in deaths_on_node(state, name).deaths if one.mechanism is Mechanism.EVICTION)
    assert (death.is_reported, distance(death) == "now") == (is_reported, is_reported)


def test_settings_of_a_kubelet_are_judged_by_thresholds_alone() -> None:
    model: NodeModel = node_model(snapshot(SHORT), "worker-1")
    assert model.state().reports_pressure
    assert not evicts_first(model, 20 << 20), "100Mi are gone before it looks again"


def test_where_the_kernel_killed_first_there_is_something_to_change() -> None:
    """In the demo worker-2 was full, and the kernel faster than the kubelet."""
    source = DemoSource()
    found = source.snapshot(Scope())
    kills = find_kills(found, source.event_list(None), ())
    said = no_kubelet_fix("worker-2", missed_kill(node_model(found, "worker-2"), 0, kills))
    assert said.startswith(
        "the kernel killed pod batch/crunch-x2k9f, container c on worker-2 (2026-11-20T09:36:00Z)"
    )
    for model, growth in ((node_model(found, "worker-1"), 0), (node_model(found, "worker-2"), 1)):
        assert missed_kill(model, growth, kills) is None


def test_the_demo_never_reports_pressure_that_its_samples_deny() -> None:
    demo = DemoSource().snapshot(Scope())
    for row in build_node_rows(demo, lambda *_: True).rows:
        assert "memory" not in (row.troubles or ()) or (row.to_eviction or 0) <= 0, row.name

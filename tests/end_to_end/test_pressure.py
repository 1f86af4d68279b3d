"""Where the kubelet itself reports that memory is short, eviction is due, whatever older samples say."""

import copy
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from kubectl_qos.analysis.deaths import deaths_on_node
from kubectl_qos.analysis.fix_list import node_model
from kubectl_qos.analysis.group_table import build_node_row, build_node_rows
from kubectl_qos.cluster.files import DEMO_TIME, DemoSource, FileSource
from kubectl_qos.edit.fixes import NodeModel, evicts_first
from kubectl_qos.exporter.collector import FAMILIES, node_samples
from kubectl_qos.k8s.kubelet import Kubelet
from kubectl_qos.k8s.objects import NodeObject, Pod, convert
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import PodMetrics, usage_by_pod
from kubectl_qos.present.next_death import distance, killed_by
from kubectl_qos.qos.eviction import Due
from kubectl_qos.qos.ranking import ProfileCache
from kubectl_qos.qos.simulation.next_death import NextDeath
from kubectl_qos.qos.simulation.node_state import state_of_node
from kubectl_qos.tui.view_model import build_view_model
from tests.cluster.cluster_objects import evicted, metrics, node, pod, system_oom, threshold
from tests.end_to_end.command import Run
from tests.recordings.files import read_json

REPORTED: Final = "kubelet evicts, unless pressure just ended"
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
    assert first(snapshot()).mechanism == "pod limit"
    death = first(snapshot(SHORT))
    assert (death.mechanism, distance(death), killed_by(death)) == ("kubelet eviction", "due", REPORTED)
    assert death.key[1] == "near", "by the kubelet's order"
    assert first(snapshot({**SHORT, "status": "False"})).mechanism == "pod limit"


PENDING: Final = "kubelet evicts (pressure ended, MemoryPressure stays up to 5 min)"
PLAIN: Final = "kubelet evicts"


def pressure(since: str, sent: str, status: str = "True") -> dict[str, str]:
    times = {"lastTransitionTime": f"2026-11-20T{since}Z", "lastHeartbeatTime": f"2026-11-20T{sent}Z"}
    return {"type": "MemoryPressure", "status": status, **times}


@pytest.mark.parametrize(
    ("reports", "says"),
    [
        # Samples are of 12:00:00, and 14 of the node's 16 GiB are free by them.
        ([pressure("11:59:20", "11:59:20")], PENDING),
        ([pressure("12:00:00", "12:00:00")], REPORTED),
        ([pressure("11:50:00", "12:00:05")], REPORTED),
        ([pressure("11:50:00", "11:59:00")], PENDING),
        ([pressure("11:50:00", "12:00:05", "False")], PLAIN),
        ([threshold("12:00:05")], REPORTED),
        ([threshold("11:59:30")], PLAIN),
        ([threshold("12:00:05", "ephemeral-storage")], PLAIN),
        ([system_oom("12:00:05")], REPORTED),
        ([system_oom("11:59:30")], PLAIN),
        ([system_oom("11:20:00"), system_oom("12:00:05")], PLAIN),
        ([system_oom("11:20:00"), system_oom("12:00:05", 4712)], REPORTED),
        ([evicted("12:00:05")], REPORTED),
        ([evicted("11:59:30")], PLAIN),
        ([evicted("12:00:05", "ephemeral-storage")], PLAIN),
        ([evicted("11:59:30"), pressure("11:59:55", "11:59:55", "False")], PLAIN),
        ([threshold("11:54:00"), pressure("11:54:00", "11:59:00")], PENDING),
    ],
)
def test_every_surface_takes_the_kubelets_word_for_it(
    run: Run, tmp_path: Path, reports: list[dict[str, Any]], says: str
) -> None:
    """A restarted kubelet repeats the kernel's kills, and MemoryPressure outlasts the pressure by minutes."""
    raw = node()
    raw["status"]["conditions"] = [report for report in reports if report.get("kind") != "Event"]
    events = [report for report in reports if report.get("kind") == "Event"]
    samples = [metrics("near", "150Mi"), metrics("big", "150Mi")]
    whole = {"kind": "NodeMetrics", "metadata": {"name": "worker-1"}, "usage": {"memory": "2Gi"}}
    items = [raw, pod("near", request="100Mi"), pod("big", request="1Gi"), *events, *samples, whole]
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"kind": "List", "items": items}))
    is_due = says == REPORTED
    when = "due" if is_due else "+13.9Gi"
    found = FileSource([str(dump)]).snapshot(Scope())
    death = next(death for death in deaths_on_node(found, "worker-1").deaths if death.killer.evicts)
    assert (killed_by(death), distance(death)) == (says, when)
    row = build_node_row(found, "worker-1")
    assert (row.death, row.to_eviction) == (death, 0 if is_due else 14236 << 20)
    names = [family.name for family in FAMILIES]
    texts = dict(zip(names, node_samples(found, "worker-1", Scope(), None, ProfileCache()), strict=True))
    for name in ("node_eviction_distance_bytes", "node_next_death_distance_bytes"):
        assert texts[name].split()[-1] == str(row.to_eviction).encode(), name
    for words in (
        "next",
        "report node/worker-1",
        "explain pod/near -n shop",
        "fix node/worker-1",
        "top nodes",
    ):
        said = run(*words.split(), "-f", dump).out
        if says != PLAIN or not words.startswith("explain"):
            assert when in re.split(r"[\s,;]+", said), words
            assert says in said, words
        assert says != PLAIN or "ended" not in said, words
    view_model = build_view_model(found, Scope(), DEMO_TIME)
    view_model.compute_deaths()
    assert view_model.is_in_danger("worker-1") is is_due
    assert view_model.is_under_pressure("worker-1") is is_due
    assert texts["node_in_trouble"].split()[-1] == str(int(is_due)).encode()


@pytest.mark.parametrize(
    ("used", "since", "due"),
    [
        ("2Gi", "12:00:00", Due.NOW),
        ("2Gi", "11:59:59", Due.MAYBE),
        ("15500Mi", "11:59:30", Due.NOW),
        ("15500Mi", "11:58:30", Due.MAYBE),
    ],
)
def test_a_newer_sample_shows_that_pressure_ended_at_once_only_with_much_memory_left(
    used: str, since: str, due: Due
) -> None:
    found = snapshot(pressure(since, since))
    found = replace(found, node_usage={"worker-1": Quantity.parse(used).value()})
    assert state_of_node(found, "worker-1").due is due


@pytest.mark.parametrize(
    ("phase", "evicted_at", "short_at", "due"),
    [
        ("Failed", "12:00:05", "12:00:05", Due.MAYBE),
        ("Failed", "12:00:05", "", Due.MAYBE),
        ("Running", "12:00:05", "12:00:05", Due.NOW),
        ("Failed", "12:00:05", "12:00:15", Due.NOW),
        ("Failed", "12:02:05", "12:02:05", Due.NOW),
    ],
)
def test_what_an_evicted_pod_used_in_the_sample_is_free_once_it_has_ended(
    phase: str, evicted_at: str, short_at: str, due: Due
) -> None:
    after, gone = snapshot(pressure("12:00:05", "12:00:05")), pod("gone", phase=phase)
    disruption = {
        "type": "DisruptionTarget",
        "status": "True",
        "message": "The node was low on resource: memory.",
    }
    gone["status"]["conditions"] = [{**disruption, "lastTransitionTime": f"2026-11-20T{evicted_at}Z"}]
    samples = [convert(metrics(name, size), PodMetrics) for name, size in (("big", "1Gi"), ("gone", "8Gi"))]
    after = replace(
        after,
        pods=[*after.pods, convert(gone, Pod)],
        usage=usage_by_pod(samples),
        node_usage={"worker-1": Quantity.parse("16200Mi").value()},
        shortages={"worker-1": f"2026-11-20T{short_at}Z"} if short_at else {},
    )
    state = state_of_node(after, "worker-1")
    assert state.due is due
    assert state.own_bytes == (16200 << 20) - (9 << 30), "what a pod used is not the node's own"


def test_what_samples_show_needs_no_report() -> None:
    death = first(snapshot(SHORT, used="16200Mi"))
    assert (distance(death), killed_by(death)) == ("due", "kubelet evicts")


def test_pressure_may_be_of_the_soft_threshold_alone() -> None:
    kubelet = Kubelet(
        eviction_hard={"memory.available": "100Mi"},
        eviction_soft={"memory.available": "1Gi"},
        eviction_soft_grace_period={"memory.available": "90s"},
    )
    deaths = deaths_on_node(snapshot(SHORT, kubelet=kubelet), "worker-1").deaths
    assert killed_by(deaths[0]) == "kubelet evicts after 90s, unless pressure just ended"
    (hard,) = (death for death in deaths[1:] if death.mechanism == "kubelet eviction")
    assert (hard.distance_bytes > 0, killed_by(hard)) == (True, "kubelet evicts")


@pytest.mark.parametrize(
    ("since", "sampled", "is_due"),
    [
        ("21:39:00", "21:44:05", True),
        ("21:39:00", "21:44:30", True),
        ("21:39:00", "21:45:30", False),
        ("21:44:40", "21:44:30", False),
    ],
)
def test_a_recorded_eviction_counts_until_the_kubelet_says_that_memory_suffices(
    since: str, sampled: str, is_due: bool
) -> None:
    """ev-gu was evicted at 21:44:11, MemoryPressure became True at 21:44:20 and False at 21:44:40."""
    found = read_json("node-1.36/oom-eviction.json")
    raw_pods: list[Any] = list(found["pods_after"].values())
    samples = [
        {
            "metadata": raw["metadata"],
            "timestamp": f"2026-11-20T{sampled}Z",
            "containers": [
                {"name": spec["name"], "usage": {"memory": "50Mi"}} for spec in raw["spec"]["containers"]
            ],
        }
        for raw in raw_pods
        if raw["status"]["phase"] == "Running"
    ]
    raw_node = copy.deepcopy(found["node_after"])
    (reported,) = (item for item in raw_node["status"]["conditions"] if item["type"] == "MemoryPressure")
    reported["lastTransitionTime"] = f"2026-11-20T{since}Z"
    name = raw_node["metadata"]["name"]
    state = Snapshot(
        pods=[convert(raw, Pod) for raw in raw_pods],
        nodes={name: convert(raw_node, NodeObject)},
        usage=usage_by_pod([convert(sample, PodMetrics) for sample in samples]),
    )
    (death,) = (death for death in deaths_on_node(state, name).deaths if death.killer.evicts)
    assert (death.due is Due.NOW, distance(death) == "due") == (is_due, is_due)


def test_settings_of_a_kubelet_are_judged_by_thresholds_alone() -> None:
    model: NodeModel = node_model(snapshot(SHORT), "worker-1")
    assert model.state().due is Due.NOW
    assert not evicts_first(model, 20 << 20), "100Mi are gone before it looks again"


def ended(reason: str) -> dict[str, Any]:
    """A pod without limits whose container was killed an hour ago and runs again."""
    raw = pod("killed", request="64Mi")
    end = {"exitCode": 137, "reason": reason, "finishedAt": "2026-11-20T11:00:00Z"}
    status = {"name": "app", "restartCount": 1, "state": {"running": {}}, "lastState": {"terminated": end}}
    raw["status"]["containerStatuses"] = [status]
    return raw


KILLED: Final = "pod shop/killed, container app on worker-1"


@pytest.mark.parametrize(
    ("history", "says"),
    [
        ([], "nothing to change: the kubelet of worker-1 evicts before the kernel kills; how much the node"),
        ([evicted("11:00:00")], "nothing to change: the kubelet of worker-1 evicts before the kernel kills"),
        (
            [ended("Error")],
            f"{KILLED} was killed (2026-11-20T11:00:00Z), maybe by the kernel because the node",
        ),
        ([ended("OOMKilled")], f"{KILLED} was killed (2026-11-20T11:00:00Z), maybe by the kernel"),
        (
            [ended("Error"), system_oom("11:00:00")],
            f"the kernel killed {KILLED} (2026-11-20T11:00:00Z) before",
        ),
        ([ended("ContainerStatusUnknown")], "nothing to change"),
    ],
)
def test_settings_of_a_kubelet_that_was_too_late_are_a_sentence_on_stdout(
    run: Run, tmp_path: Path, history: list[dict[str, Any]], says: str
) -> None:
    dump = tmp_path / "dump.json"
    items = [node(), pod("big", request="1Gi"), metrics("big", "150Mi"), *history]
    if not any(item["metadata"]["name"] == "killed" for item in history):
        items.append(pod("killed", request="64Mi"))
    dump.write_text(json.dumps({"kind": "List", "items": [*items, metrics("killed", "50Mi")]}))
    done = run("fix", "node/worker-1", "-o", "kubelet-config", "-f", dump)
    assert done.out.startswith(f"# {says}")
    assert "thing to change" not in done.err


def test_the_demo_never_reports_pressure_that_its_samples_deny() -> None:
    demo = DemoSource().snapshot(Scope())
    for row in build_node_rows(demo, lambda *_: True).rows:
        assert "memory" not in (row.bad_conditions or ()) or (row.to_eviction or 0) <= 0, row.name


def test_next_says_where_a_threshold_is_assumed_if_it_foresees_an_eviction(run: Run) -> None:
    assumed = "the eviction threshold of worker-2 is assumed to be the default, 100Mi"
    assert assumed in run("next", "node/worker-2", "--demo").err
    given = run("next", "node/worker-2", "--demo", "--assume", "evictionHard=memory.available<200Mi")
    assert "threshold of worker-2" not in given.err
    assert "threshold of worker-2" not in run("next", "--demo").err, "an own limit comes first"


@pytest.mark.parametrize(("oom_at", "is_at_limit"), [("11:50:03", False), ("11:40:00", True)])
def test_a_kill_on_a_full_node_was_not_at_the_limit(oom_at: str, run: Run, *, is_at_limit: bool) -> None:
    killed = pod("web", request="1Gi", limit="12Gi")
    end = {"reason": "OOMKilled", "exitCode": 137, "startedAt": "2026-11-20T08:00:00Z"}
    end["finishedAt"] = "2026-11-20T11:50:00Z"
    running = {"name": "app", "restartCount": 1, "state": {"running": {"startedAt": "2026-11-20T11:50:05Z"}}}
    killed["status"]["containerStatuses"] = [{**running, "lastState": {"terminated": end}}]
    items = [killed, node(), metrics("web", "2Gi"), system_oom(oom_at)]
    (run.home / "x.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    texts = {name: run(name, "pod/web", "-n", "shop", "-f", "x.json") for name in ("next", "explain", "fix")}
    assert ("sampling misses" in texts["explain"].out + texts["next"].err) == is_at_limit
    assert ("killed there before" in texts["explain"].out) == is_at_limit
    assert ("24Gi" in texts["fix"].out) == is_at_limit

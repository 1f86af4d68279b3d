"""Without usage no command, list or metric has a distance, a fix or a next victim, and one line says why."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from kubectl_qos.analysis.deaths import deaths_on_node
from kubectl_qos.analysis.node_table import build_node_row
from kubectl_qos.cluster.files import DEMO_TIME, FileSource
from kubectl_qos.exporter.series import FAMILIES, node_samples
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.next_death import distance
from kubectl_qos.qos.reason import Mechanism
from kubectl_qos.tui.screens.fixes import suggested_line
from kubectl_qos.tui.view_model import build_view_model
from tests.cluster.cluster_objects import metrics, node, pod
from tests.cluster.object_server import ObjectServer, status
from tests.end_to_end.command import Run
from tests.end_to_end.conftest import Live

PODS: Final = [
    pod("big", request="1Gi", limit="2Gi"),
    pod("small", request="100Mi", limit="200Mi"),
    pod("plain"),
]
UNKNOWN: Final = "memory usage is unknown; it comes from the metrics API"
GRANT: Final = "grant list on pods in the API group metrics.k8s.io in all namespaces"


def snapshot_of(folder: Path, *samples: dict[str, Any], more: str = "") -> Snapshot:
    (folder / "dump.json").write_text(json.dumps({"kind": "List", "items": [node(), *PODS, *samples]}))
    if more:
        (folder / "more.json").write_text(more)
    return FileSource([str(folder)]).snapshot(Scope())


@pytest.mark.parametrize(
    "words",
    [
        "next",
        "next node/worker-1",
        "next pod/small -n shop",
        "fix",
        "fix node/worker-1",
        "fix pod/small -n shop",
        "fix --priorities",
        "fix node/worker-1 -o kubelet-config",
        "report node/worker-1",
        "top -A",
        "top nodes -o wide",
        "explain pod/plain -n shop",
        "simulate node/worker-1 --free 1Gi",
        "simulate node/worker-1 --until-oom",
        "simulate node/worker-1 --eviction",
    ],
)
def test_every_command_says_how_to_get_usage_and_nothing_that_needs_it(
    run: Run, tmp_path: Path, words: str
) -> None:
    snapshot_of(tmp_path)
    done = run(*words.split(), "-f", tmp_path / "dump.json")
    text = " ".join((done.out + done.err).split())
    assert UNKNOWN[1:] in text
    assert done.code == (1 if words.startswith("simulate") else 0)
    assert not re.search(r"\+\d|own limit|evicts|next victim|nothing to (?:fix|change)", text), text


def test_no_metric_and_no_screen_has_them_either(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path)
    samples = dict(
        zip(
            [family.name for family in FAMILIES],
            node_samples(snapshot, "worker-1", Scope(), None, {}),
            strict=True,
        )
    )
    without = {name for name, text in samples.items() if "death" in name or "distance" in name}
    assert {samples[name] for name in without} == {b""}
    assert samples["pod_oom_score_adj"], "the order is still known"
    view_model = build_view_model(snapshot, Scope(), DEMO_TIME)
    view_model.know_deaths()
    assert view_model.nearest is None
    assert view_model.times("worker-1") == {}
    assert suggested_line(snapshot, "worker-1").startswith(UNKNOWN)
    row = build_node_row(snapshot, "worker-1")
    assert (row.death, row.victim, row.used_percent) == (None, None, None)


def test_a_pod_without_usage_has_no_distance_and_its_node_has_upper_bounds(tmp_path: Path) -> None:
    deaths = deaths_on_node(snapshot_of(tmp_path, metrics("big", "1Gi")), "worker-1").deaths
    assert {death.key[1] for death in deaths if not death.killer.picks_among_pods} == {"big"}
    assert {death.is_upper_bound for death in deaths if death.killer.picks_among_pods} == {True}
    assert all(distance(death).startswith("at most +") for death in deaths if death.killer.picks_among_pods)
    (own,) = (death for death in deaths if death.mechanism is Mechanism.POD_LIMIT)
    assert distance(own) == "+1024Mi"
    whole = deaths_on_node(snapshot_of(tmp_path, *(metrics(one, "1Mi") for one in NAMES)), "worker-1").deaths
    assert not any(death.is_upper_bound for death in whole if death.mechanism is Mechanism.KUBEPODS_LIMIT)


NAMES: Final = ("big", "small", "plain")


def test_of_some_unknown_pods_the_notes_and_json_say_so(run: Run, tmp_path: Path) -> None:
    snapshot_of(tmp_path, metrics("big", "1Gi"))
    found = json.loads(run("next", "node/worker-1", "-f", tmp_path / "dump.json", "-o", "json").out)
    assert {item["distanceIsUpperBound"] for item in found["items"] if item["limitBytes"] is None} == {True}
    note = "2 pods without usage may die before others; distances on their nodes are at most as shown"
    assert note in found["notes"]
    assert note in run("top", "-A", "-f", tmp_path / "dump.json").err
    unfixed = run("fix", "pod/plain", "-n", "shop", "-f", tmp_path / "dump.json")
    assert unfixed.out == "no fix\n"
    assert "its memory usage is unknown" in unfixed.err


def test_with_a_read_only_role_the_reason_has_the_rule(run: Run, live: Live) -> None:
    server = ObjectServer(pods=PODS, nodes=[node()])
    no = 'pods.metrics.k8s.io is forbidden: User "viewer" cannot list resource'
    server.faults["/apis/metrics.k8s.io/v1beta1/pods"] = status(403, "Forbidden", no)
    live(server)
    done = run("next", "-A")
    assert done.out.startswith("usage is not readable: ")
    assert GRANT in done.out
    assert "no limit" not in done.out + done.err
    assert GRANT in run("simulate", "node/worker-1", "--until-oom").err


def test_a_dump_with_the_metrics_of_kubectl_get_raw_has_distances(tmp_path: Path) -> None:
    """As the README makes it: the items of a list have no kind of their own."""
    samples = [
        {key: value for key, value in metrics(name, "10Mi").items() if key not in {"kind", "apiVersion"}}
        for name in NAMES
    ]
    of_pods = {"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": samples}
    whole = {"metadata": {"name": "worker-1"}, "usage": {"memory": "1Gi", "cpu": "1"}}
    of_nodes = {"kind": "NodeMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": [whole]}
    snapshot = snapshot_of(tmp_path, more=f"{json.dumps(of_pods)}\n{json.dumps(of_nodes)}")
    assert len(snapshot.usage) == len(NAMES)
    deaths = deaths_on_node(snapshot, "worker-1").deaths
    assert min(death.distance_bytes for death in deaths) == 190 << 20

"""Without usage no command, list or metric has a distance, a fix or a next victim, and one line says why."""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from kubectl_qos.analysis.deaths import deaths_on_node
from kubectl_qos.analysis.group_table import build_node_row
from kubectl_qos.cluster.files import DEMO_TIME, FileSource
from kubectl_qos.demo.source import LivingDemo
from kubectl_qos.exporter.collector import FAMILIES, node_samples
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.next_death import distance
from kubectl_qos.qos.ranking import ProfileCache
from kubectl_qos.tui.screens.fix_dialog import suggested_line
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
METRICS: Final = [f"/apis/metrics.k8s.io/{version}/pods" for version in ("v1", "v1beta1")]
FORBIDDEN: Final = status(403, "Forbidden", 'pods.metrics.k8s.io is forbidden: User "viewer" cannot list')
GRANT: Final = "grant list on pods in the API group metrics.k8s.io in all namespaces"


def snapshot_of(folder: Path, *samples: dict[str, Any], more: str = "") -> Snapshot:
    (folder / "dump.json").write_text(json.dumps({"kind": "List", "items": [node(), *PODS, *samples]}))
    if more:
        (folder / "more.json").write_text(more)
    return FileSource([str(folder)]).snapshot(Scope())


COMMANDS: Final = [
    *("next", "next node/worker-1", "next pod/small -n shop", "next pod/plain -n shop"),
    *("fix", "fix node/worker-1", "fix pod/small -n shop", "fix node/worker-1 -o kubelet-config"),
    *("fix --priorities", "fix --priorities -o patch", "report node/worker-1", "report pod/small -n shop"),
    *("top -A", "top -A -o wide", "top -A --containers", "top nodes", "top nodes -o wide"),
    *("explain pod/plain -n shop", "explain pod/small -n shop"),
    "set pod/small -n shop --limits memory=300Mi --dry-run=client",
    *("simulate node/worker-1 --free 1Gi", "simulate node/worker-1 --until-oom"),
    *("simulate node/worker-1 --all-at-limit", "simulate node/worker-1 --grow node=+1Gi"),
    "simulate node/worker-1 --eviction",
]
SUMS: Final = {"MEM_B", "MEM_E", "USED", "%USED"}
OF_USAGE: Final = {
    "MEMORY",
    "OOM_SCORE",
    "%LIMIT",
    "FREES",
    "FREED",
    "WORST",
    "%WORST",
    "TO_EVICTION",
}
OF_USAGE_ALONE: Final = {*OF_USAGE, *SUMS, "IN", "FULL", "KERNEL_VICTIM", "NEXT_DEATH"}
A_FACT: Final = re.compile(
    r"(?<!at most )\+[\d.]+[MG]i|own limit \d|evicts|the kernel's next victim|nothing to (?:fix|change)|"
    r"oom_score +-?\d|memory 0 |(?<!at most )(?<![\d.])[\d.]+[MG]i is (?:free|available)|if it alone grows"
)


def cells(text: str, wanted: set[str]) -> Iterator[tuple[str, str]]:
    """The cells of some columns of a text's tables, each after the name of its row."""
    columns: list[tuple[str, int, int]] = []
    for line in text.splitlines():
        names = [(match[0], *match.span()) for match in re.finditer(r"\S+", line)]
        if len(names) > 3 and all(name.strip("%").replace("_", "").isupper() for name, *_ in names):
            columns = names
            continue
        for match in re.finditer(r"\S+(?: \S+)*", line) if columns else ():
            under = [name for name, begin, end in columns if match.start() < end and begin < match.end()]
            if wanted & set(under):
                yield line, match[0]


def live_server(*samples: dict[str, Any], forbidden: Sequence[str] = ()) -> ObjectServer:
    server = ObjectServer(pods=PODS, nodes=[node()], metrics=samples)
    for path in forbidden:
        server.forbidden |= {path, f"{path}/worker-1"}
    server.faults |= {path: FORBIDDEN for path in forbidden if "metrics" in path}
    return server


@pytest.mark.parametrize("words", COMMANDS)
def test_without_usage_no_command_has_what_comes_of_it(run: Run, tmp_path: Path, words: str) -> None:
    snapshot_of(tmp_path)
    done = run(*words.split(), "-f", tmp_path / "dump.json")
    text = " ".join((done.out + done.err).split())
    if not words.startswith("set"):
        assert UNKNOWN[1:] in text or "it has 16Gi; the usage of its pods is unknown" in text
    assert done.code == (1 if re.search("--(?:free|until-oom|eviction)", words) else 0)
    assert done.out or done.code
    assert not A_FACT.search(text), text
    found = {cell for _, cell in cells(done.out, OF_USAGE_ALONE)}
    assert found <= {"<unknown>", "<none>"}
    assert found or not words.startswith("top")


@pytest.mark.parametrize("words", ["next", "fix node/worker-1", "top nodes", "explain pod/small -n shop"])
def test_usage_none_is_as_a_dump_without_usage(run: Run, tmp_path: Path, words: str) -> None:
    snapshot_of(tmp_path)
    without = run(*words.split(), "-f", tmp_path / "dump.json")
    snapshot_of(tmp_path, metrics("big", "1Gi"), metrics("small", "150Mi"))
    assert run(*words.split(), "--usage", "none", "-f", tmp_path / "dump.json") == without
    bundle = run("report", "-A", "--bundle", tmp_path / "b.tar.gz", "-f", tmp_path / "dump.json")
    done = run(*words.split(), "--usage", "none", "-f", tmp_path / "b.tar.gz")
    assert (bundle.code, done.out) == (0, without.out)


@pytest.mark.parametrize("words", ["next", "top nodes", "set pod/db-2 -n data --dry-run=client"])
def test_usage_none_holds_for_the_demo_too(run: Run, words: str) -> None:
    done = run(*words.split(), "--usage", "none", "--demo")
    assert not A_FACT.search(" ".join((done.out + done.err).split()))
    assert {cell for _, cell in cells(done.out, OF_USAGE_ALONE)} <= {"<unknown>", "<none>"}


def test_the_living_demo_without_usage_never_has_any() -> None:
    demo = LivingDemo(has_usage=False, now=iter([DEMO_TIME, DEMO_TIME + timedelta(minutes=1)]).__next__)
    for snapshot in (demo.first(), demo.snapshot(Scope()), demo.snapshot(Scope())):
        assert (snapshot.usage, snapshot.node_usage) == ({}, {})


@pytest.mark.parametrize("words", COMMANDS)
def test_of_a_pod_without_usage_no_command_has_what_comes_of_it(run: Run, tmp_path: Path, words: str) -> None:
    """The usage of big alone is known."""
    snapshot_of(tmp_path, metrics("big", "1Gi"))
    done = run(*words.split(), "-f", tmp_path / "dump.json")
    of_others = [line for line in done.out.splitlines() if re.search(r"\b(?:small|plain)\b", line)]
    own = OF_USAGE - {"TO_EVICTION"}
    unknown = {cell for line, cell in cells(done.out, own) if line in of_others}
    assert unknown <= {"<unknown>", "<none>"}
    sums = {cell for line, cell in cells(done.out, SUMS | {"TO_EVICTION", "FREE_AFTER"})}
    assert all(re.match(r"<unknown>|at most |\d+(?:Mi|%)\+", cell) for cell in sums), sums
    for line in of_others:
        assert not re.search(
            r"(?<!at most )\+[\d.]+[MG]i(?! at most)|own limit \d|oom_score +-?\d|if it alone grows", line
        ), line


@pytest.mark.parametrize("words", COMMANDS)
def test_with_pods_alone_every_command_names_what_may_not_be_read(run: Run, live: Live, words: str) -> None:
    live(live_server(forbidden=["/api/v1/nodes", *METRICS]))
    done = run(*words.split())
    text = " ".join((done.out + done.err).split())
    assert not A_FACT.search(text), text
    assert {cell for _, cell in cells(done.out, OF_USAGE_ALONE)} <= {"<unknown>", "<none>"}
    if not words.startswith("set"):
        assert GRANT in text, "usage"
        assert "grant get and list on nodes" in text
    if words in {"next", "fix", "fix node/worker-1"}:
        assert text.count(GRANT) == 1


@pytest.mark.parametrize(
    "words",
    [
        "next",
        "next pod/small -n shop",
        "fix node/worker-1",
        "fix -n shop",
        "report node/worker-1",
        "top nodes",
    ],
)
def test_own_limits_need_no_capacity(run: Run, live: Live, words: str) -> None:
    samples = [metrics("small", "150Mi"), metrics("big", "1Gi"), metrics("plain", "1Mi")]
    live(live_server(*samples, forbidden=["/api/v1/nodes"]))
    done = run(*words.split())
    text = done.out + done.err
    assert "+50Mi" in text
    assert "own limit 75%" in text
    assert not re.search("node full|kubelet evicts|kubepods", text)
    assert "grant get and list on nodes" in text


def test_no_metric_and_no_screen_has_them_either(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path)
    samples = dict(
        zip(
            [family.name for family in FAMILIES],
            node_samples(snapshot, "worker-1", Scope(), None, ProfileCache()),
            strict=True,
        )
    )
    words = "death|distance|kill_rank|oom_score$|worst_case|inversions|freed|used_bytes"
    assert {text for name, text in samples.items() if re.search(words, name)} == {b""}
    assert samples["pod_oom_score_adj"], "the order is still known"
    view_model = build_view_model(snapshot, Scope(), DEMO_TIME)
    view_model.compute_deaths()
    assert view_model.first_deaths == []
    assert view_model.times("worker-1") == {}
    assert suggested_line(snapshot, "worker-1")[0] == "", "the headline says why"
    row = build_node_row(snapshot, "worker-1")
    assert (row.death, row.victim, row.used_percent) == (None, None, None)


def test_a_pod_without_usage_has_no_distance_and_its_node_has_upper_bounds(tmp_path: Path) -> None:
    deaths = deaths_on_node(snapshot_of(tmp_path, metrics("big", "1Gi")), "worker-1").deaths
    assert {death.key[1] for death in deaths if not death.killer.is_node_wide} == {"big"}
    assert {death.is_upper_bound for death in deaths if death.killer.is_node_wide} == {True}
    assert all(distance(death).startswith("at most +") for death in deaths if death.killer.is_node_wide)
    (own,) = (death for death in deaths if death.mechanism == "pod limit")
    assert distance(own) == "+1.0Gi"
    whole = deaths_on_node(snapshot_of(tmp_path, *(metrics(one, "1Mi") for one in NAMES)), "worker-1").deaths
    assert not any(death.is_upper_bound for death in whole if death.mechanism == "kubepods limit")


NAMES: Final = ("big", "small", "plain")


def test_of_some_unknown_pods_the_notes_and_json_say_so(run: Run, tmp_path: Path) -> None:
    snapshot_of(tmp_path, metrics("big", "1Gi"))
    found = json.loads(run("next", "node/worker-1", "-f", tmp_path / "dump.json", "-o", "json").out)
    assert {item["distanceIsUpperBound"] for item in found["items"] if item["limitBytes"] is None} == {True}
    note = "2 pods without usage may die earlier than shown; distances on their nodes are upper bounds"
    assert note in found["notes"]
    assert note in run("top", "-A", "-f", tmp_path / "dump.json").err
    unfixed = run("fix", "pod/plain", "-n", "shop", "-f", tmp_path / "dump.json")
    assert unfixed.out == "no fix\n"
    assert "its memory usage is unknown" in unfixed.err


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

"""The samples of nodes and pods are what `top`, `top nodes` and `next` say, however they came about."""

import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.analysis.deaths import deaths_on_node
from kubectl_qos.analysis.group_table import build_node_row
from kubectl_qos.analysis.pod_table import build_rows
from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.cluster.informer import NODES, PODS, Store
from kubectl_qos.cluster.kube_api import UsageChoice
from kubectl_qos.exporter import collector
from kubectl_qos.exporter.collector import FAMILIES, KILLS, ClusterSamples, labels, node_samples
from kubectl_qos.k8s.node_overrides import NodeOverride
from kubectl_qos.k8s.objects import NodeObject, Pod, convert
from kubectl_qos.k8s.snapshot import NO_OVERRIDES, Missing, NodeOverrides, Scope, Shard, Snapshot, Usage
from kubectl_qos.k8s.usage import PodMetrics, usage_by_pod
from kubectl_qos.qos.ranking import ProfileCache
from tests.cluster.cluster_objects import metrics, node, pod
from tests.cluster.following import Follow, follow, has, held, names
from tests.cluster.serving import authority, connect_to, own_home, serve
from tests.cluster.watch_server import WatchServer
from tests.demo.living import FULL_AT, IMPORTER, Stepped
from tests.exporter.scraping import OPENMETRICS, exporter_of, named, parsed, samples_of, show

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed: make programs")
EVERYTHING = Scope()
Step = Callable[[Store], None]
NAMES = ["a", "b", "c", "d", "e"]
pods = st.sampled_from(NAMES)
nodes = st.sampled_from(["", "worker-1", "worker-2", "worker-3"])
sizes = st.sampled_from(["", "64Mi", "1Gi", "2Gi"])
__all__ = ["authority", "connect_to", "follow", "own_home", "serve"]
WORKERS = [f"worker-{number}" for number in range(8)]


def put(name: str, on: str, request: str, limit: str, priority: int) -> Step:
    raw = pod(name, node=on, request=request, limit=limit)
    raw["spec"]["priority"] = priority
    return lambda store: store.put_pod(convert(raw, Pod))


def drop(name: str) -> Step:
    def step(store: Store) -> None:
        for found in [one for one in store.snapshot().pods if one.name == name]:
            store.drop_pod(found)

    return step


def relist(store: Store) -> None:
    store.replace_pods([convert(pod("a"), Pod), convert(pod("f", node="worker-2"), Pod)])


def put_node(name: str, memory: str) -> Step:
    return lambda store: store.put_node(convert(node(name, memory=memory), NodeObject))


def drop_node(name: str) -> Step:
    return lambda store: store.drop_node(convert(node(name), NodeObject))


def use(amounts: dict[str, str], nodes: dict[str, int]) -> Step:
    usage = usage_by_pod(convert(metrics(name, memory), PodMetrics) for name, memory in amounts.items())
    return lambda store: store.set_usage(Usage(usage, by_node=nodes))


steps = st.one_of(
    st.builds(put, pods, nodes, sizes, sizes, st.sampled_from([0, 1000])),
    st.builds(drop, pods),
    st.just(relist),
    st.builds(put_node, st.sampled_from(["worker-1", "worker-2"]), st.sampled_from(["4Gi", "8Gi"])),
    st.builds(drop_node, st.sampled_from(["worker-1", "worker-2"])),
    st.builds(
        use,
        st.dictionaries(pods, st.sampled_from(["1Mi", "70Mi", "1Gi", "3Gi"])),
        st.dictionaries(st.sampled_from(["worker-1", "worker-2"]), st.sampled_from([3 << 30, 7 << 30])),
    ),
)


def assert_as_commands_say(samples: ClusterSamples, snapshot: Snapshot) -> None:
    """Ranks are those of `top`, sums those of `top nodes`, the next death that of `next`."""
    found = samples_of(samples)
    rows = build_rows(snapshot, EVERYTHING).rows
    expected = {
        (row.node, row.pod.namespace, row.name): (
            row.rank if row.memory is not None else None,
            *(row.score, row.adj, row.frees),
        )
        for row in rows
        if row.rank is not None and row.node
    }
    values = {
        name: {(one["node"], one["namespace"], one["pod"]): value for one, value in named(found, name)}
        for name in ("pod_kill_rank", "pod_oom_score", "pod_oom_score_adj", "pod_freed_bytes")
    }
    assert {
        key: tuple(one.get(key) for one in values.values()) for key in values["pod_oom_score_adj"]
    } == expected
    inversions = {one["node"]: value for one, value in named(found, "node_inversions")}
    names = {*snapshot.nodes, *snapshot.by_node()} - {""}
    for name in names:
        row = build_node_row(snapshot, name)
        inverted = sum(row.node == name and "PRIORITY" in row.flags for row in rows)
        assert inversions.get(name) == (inverted if row.memory.used is not None else None)
        assert [
            one.get((f"kubectl_qos_{family}", frozenset({("node", name), *more})))
            for one, family, more in (
                (found, "node_pods", ()),
                (found, "node_memory_capacity_bytes", ()),
                (found, "node_memory_worst_case_bytes", ()),
                (found, "node_eviction_distance_bytes", [("threshold", "hard")]),
                (found, "node_own_memory_bytes", ()),
            )
        ] == [row.memory.pods, row.capacity, row.memory.worst_bytes, row.to_eviction, row.own]
        info = [one for one, _ in named(found, "node_next_death_info") if one["node"] == name]
        by_killer = [
            (one, value) for one, value in named(found, "node_killer_distance_bytes") if one["node"] == name
        ]
        if row.memory.used is None or not info:
            assert not info + by_killer
            continue
        death, *_ = deaths = deaths_on_node(snapshot, name).deaths
        first_by = {death.mechanism: death for death in reversed(deaths)}
        assert {(one["mechanism"], one["namespace"], one["pod"], value) for one, value in by_killer} == {
            (mechanism, *first.key, first.distance_bytes) for mechanism, first in first_by.items()
        }
        assert [(one["mechanism"], one["namespace"], one["pod"], one["container"]) for one in info] == [
            (death.mechanism, *death.key, death.container)
        ]
        distance = ("kubectl_qos_node_next_death_distance_bytes", frozenset({("node", name)}))
        assert found[distance] == death.distance_bytes


@given(st.lists(st.lists(steps, max_size=4), max_size=8))
def test_after_every_history_it_is_what_the_commands_say(history: list[list[Step]]) -> None:
    store = Store(NO_OVERRIDES, lambda: datetime.now(UTC))
    store.synced(PODS)
    store.synced(NODES)
    put_node("worker-1", "8Gi")(store)
    kept = ClusterSamples(None)
    for changes in [[], *history]:
        for change in changes:
            change(store)
        snapshot = store.snapshot()
        kept.update(snapshot, EVERYTHING)
        assert_as_commands_say(kept, snapshot)


def test_only_nodes_that_changed_are_computed() -> None:
    store = Store(NO_OVERRIDES, lambda: datetime.now(UTC))
    for change in [put_node("worker-1", "8Gi"), put_node("worker-2", "8Gi"), put("a", "worker-1", "", "", 0)]:
        change(store)
    samples = ClusterSamples(5)
    assert samples.update(store.snapshot(), EVERYTHING) == 2
    assert samples.update(store.snapshot(), EVERYTHING) == 0
    put("b", "worker-2", "", "", 0)(store)
    assert samples.update(store.snapshot(), EVERYTHING) == 1
    use({"a": "1Gi"}, {})(store)
    assert samples.update(store.snapshot(), EVERYTHING) == 2


@pytest.mark.parametrize("per_pod", [0, 2, None])
def test_of_pods_the_first_in_the_kill_order_of_each_node(per_pod: int | None) -> None:
    demo = Stepped()
    snapshot = demo.snapshot(EVERYTHING)
    found = parsed(exporter_of(demo, per_pod).exposition("")[0])
    for name in snapshot.nodes:
        ranked = [row.name for row in build_rows(snapshot, EVERYTHING).rows if row.node == name and row.rank]
        first = [one["pod"] for one, _ in named(found, "pod_kill_rank") if one["node"] == name]
        assert sorted(first) == sorted(ranked[:per_pod])


def test_a_namespace_restricts_pods_and_not_nodes() -> None:
    demo, scope = Stepped(), Scope(namespace="shop")
    every, some = (parsed(exporter_of(demo, None, one).exposition("")[0]) for one in (EVERYTHING, scope))
    assert {one["namespace"] for one, _ in named(some, "pod_kill_rank")} == {"shop"}
    assert named(some, "node_pods") == named(every, "node_pods")
    ranks = dict(every.items() & some.items())
    assert {key for key in some if key[0] == "kubectl_qos_pod_kill_rank"} <= ranks.keys()


def test_shards_have_every_node_once() -> None:
    snapshot = Stepped().snapshot(EVERYTHING)
    whole = ClusterSamples(None)
    whole.update(snapshot, EVERYTHING)
    parts = []
    for index in range(3):
        part = ClusterSamples(None)
        part.update(snapshot, Scope(shard=Shard(index, 3)))
        parts.append(samples_of(part))
    assert sum(map(len, parts)) == len(samples_of(whole))
    assert {key: value for part in parts for key, value in part.items()} == samples_of(whole)


def test_shards_are_about_equally_large() -> None:
    counts = [
        sum(Shard(index, 4).has(f"ip-10-0-{n // 250}-{n % 250}") for n in range(4000)) for index in range(4)
    ]
    assert sum(counts) == 4000
    assert max(counts) < 1.1 * min(counts)


def died(finished: str, reason: str = "OOMKilled") -> dict[str, Any]:
    raw = pod("web-0", limit="64Mi", request="64Mi")
    end = {"terminated": {"exitCode": 137, "reason": reason, "finishedAt": finished}}
    raw["status"]["containerStatuses"] = [{"name": "app", "state": {"running": {}}, "lastState": end}]
    return raw


def kills(samples: ClusterSamples) -> list[tuple[str, str, float]]:
    found = named(samples_of(samples), "kills_total")
    return sorted((one["pod"], one["mechanism"], value) for one, value in found)


def test_deaths_are_counted_once_and_with_their_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(NO_OVERRIDES, lambda: datetime.now(UTC))
    put_node("worker-1", "8Gi")(store)
    samples = ClusterSamples(5)

    def seen(raw: dict[str, Any] | None = None) -> list[tuple[str, str, float]]:
        if raw is not None:
            store.put_pod(convert(raw, Pod))
        samples.update(store.snapshot(), EVERYTHING)
        return kills(samples)

    mechanism = "pod limit"
    assert seen(died("2026-11-20T08:00:00Z")) == [("web-0", mechanism, 0)]  # before it was there
    assert seen(died("2026-11-20T08:05:00Z")) == [("web-0", mechanism, 0)]  # in the first minute
    monkeypatch.setattr(collector, "ZERO_SECONDS", 0.0)
    assert seen() == [("web-0", mechanism, 1)]
    again = died("2026-11-20T08:05:00Z")
    again["metadata"]["labels"] = {"changed": "yes"}
    assert seen(again) == [("web-0", mechanism, 1)]
    assert seen(died("2026-11-20T08:06:00Z")) == [("web-0", mechanism, 2)]
    later = died("2026-11-20T08:07:00Z")
    later["metadata"]["name"] = "web-1"
    assert seen(later) == [("web-0", mechanism, 2), ("web-1", mechanism, 1)]
    drop("web-0")(store)
    assert seen() == [("web-1", mechanism, 1)]
    drop_node("worker-1")(store)
    drop("web-1")(store)
    assert seen() == []


def test_the_importer_of_the_demo_dies_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "ZERO_SECONDS", 0.0)
    demo = Stepped()
    exporter = exporter_of(demo)
    show(exporter, demo.later(FULL_AT + 5))
    assert (IMPORTER, 1) in [(pod, value) for pod, _, value in kills(exporter.samples)]


def test_daemons_and_rivals_have_samples() -> None:
    """Nobody knows whom systemd-oomd ends: its series has no names."""
    for daemon, victim in (("talos", "crunch-x2k9f"), ("systemd-oomd", "")):
        overrides = NodeOverrides(settings=(NodeOverride.parse(f"userspaceOOMKiller={daemon}"),))
        snapshot = DemoSource(overrides).snapshot(EVERYTHING)
        lines = b"".join(node_samples(snapshot, "worker-2", EVERYTHING, 0, ProfileCache()))
        found = {one["mechanism"]: one for one, _ in named(parsed([lines]), "node_killer_distance_bytes")}
        assert found[{"talos": "Talos"}.get(daemon, daemon)]["pod"] == victim
        assert found["node"]["rival_pod"] == "crunch-x2k9f"
        assert found["pod limit"]["pod"] == IMPORTER, "the most urgent of those by the same killer"
        assert "rival_pod" not in found["pod limit"]


def test_both_formats_say_the_same() -> None:
    exporter = exporter_of(Stepped())
    cluster = [
        {
            key: value
            for key, value in parsed(*exporter.exposition(accept)).items()
            if "kubectl_qos_" in key[0]
        }
        for accept in ("", OPENMETRICS)
    ]
    of_itself = "kubectl_qos_exporter_update"
    first, second = ({k: v for k, v in one.items() if not k[0].startswith(of_itself)} for one in cluster)
    assert first == second
    names = {name for name, _ in first}
    assert {family.sample_name for family in (*FAMILIES, KILLS)} <= names


def test_whatever_a_label_has_is_read_back() -> None:
    value = 'a "quoted" \\ back\nslash'
    text = f"x{{{labels(what=value)}}} 1\n".encode()
    assert parsed([text]) == {("x", frozenset({("what", value)})): 1}


@needs_promtool
def test_prometheus_own_linter_finds_nothing() -> None:
    text = b"".join(exporter_of(Stepped()).exposition("")[0])
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_what_is_missing_is_a_metric() -> None:
    demo = Stepped()
    exporter = exporter_of(demo)
    assert not named(parsed(exporter.exposition("")[0]), "exporter_missing")
    store = Store(NO_OVERRIDES, demo.now)
    store.set_usage(Usage({}, Missing("memory usage", "Metrics API not available")))
    show(exporter, store.snapshot())
    assert named(parsed(exporter.exposition("")[0]), "exporter_missing") == [({"what": "memory usage"}, 1)]


@pytest.mark.parametrize("streams", [True, False], ids=["streaming", "plain"])
def test_a_shard_follows_its_nodes_and_no_others(follow: Follow, streams: bool) -> None:
    shard = Shard(0, 2)
    of_shard = [name for name in WORKERS if shard.has(name)]
    others = [name for name in WORKERS if not shard.has(name)]
    assert of_shard
    assert others
    objects = WatchServer(
        streams=streams,
        pods=[pod(f"on-{name}", node=name) for name in WORKERS],
        nodes=[node(name) for name in WORKERS],
        metrics=[metrics(f"on-{name}", "1Mi") for name in WORKERS],
    )
    followed, _ = follow(objects, Scope(shard=shard), usage=UsageChoice.METRICS)
    first = sorted(f"on-{name}" for name in of_shard)
    update = followed.until(lambda update: has(*first)(update) and bool(held(update).usage))
    assert sorted(held(update).nodes) == of_shard
    assert sorted(name for _, name in held(update).usage) == first
    objects.put(pod("late", node=others[0]))
    objects.put(pod("early", node=""))
    objects.put(pod("later", node=of_shard[0]))
    followed.until(has(*first, "later"))
    seen = [set(names(update)) for update in followed.updates if update.snapshot is not None]
    assert not any({"late", "early"} & pod_names for pod_names in seen)

"""What series mean: a kubelet's recorded exposition, old and new kube-state-metrics, and lines of growth."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import pytest

from kubectl_qos.errors import QosError
from kubectl_qos.k8s.objects import JsonDecoder
from kubectl_qos.k8s.snapshot import Missing, Snapshot
from kubectl_qos.k8s.usage import (
    MemoryParts,
    Pressure,
    Psi,
    PsiData,
    Summary,
    memory_psi,
    usage_from_summary,
)
from kubectl_qos.metrics import series
from kubectl_qos.metrics.past import read_snapshot
from kubectl_qos.metrics.prometheus import Prometheus, Sample
from kubectl_qos.metrics.series import (
    WORKING_SET,
    UsageHistory,
    growth_line,
    read_now,
    read_pressure,
    with_parts,
)
from kubectl_qos.qos.qos_class import computed_class
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport.client import connect
from tests.recordings.files import read, read_json, read_lines

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)


class Known(Prometheus):
    """A store that has these samples at every time, whatever is requested by more than the name."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        super().__init__(connect(ConnectionOptions(server="http://127.0.0.1:1")), "the store")
        self.samples = samples

    def query(self, expression: str, at: float | None = None) -> list[Sample]:
        del at
        if "count by" in expression:
            return []  # no container has several cgroups
        name = re.search(r'__name__(=~?)"([^"]*)"', expression)
        assert name is not None
        found = [one for one in self.samples if re.fullmatch(name[2], one.labels["__name__"])]
        if "== 1" in expression:
            found = [one for one in found if one.value == 1]
        if 'id="/"' in expression:
            return [one for one in found if one.labels.get("id") == "/"]
        return [one for one in found if one.labels.get("id") != "/"]


def recorded() -> Iterator[Sample]:
    for text in read_lines("node-1.36-b/cadvisor.txt"):
        name, labels, value = re.fullmatch(r"(\w+)\{(.*)\} (\S+) \d+", text).groups()  # type: ignore[union-attr]
        yield Sample({"__name__": name, **dict(re.findall(r'(\w+)="([^"]*)"', labels))}, float(value))


def test_the_exposition_of_a_kubelet() -> None:
    scraped = [Sample({**one.labels, "instance": "10.0.0.7:10250"}, one.value) for one in recorded()]
    info = Sample({"__name__": "kube_node_info", "node": "worker-7", "internal_ip": "10.0.0.7"}, 1)
    found = read_now(Known([*scraped, info]), AT.timestamp())
    assert {key: usage.names for key, usage in found.by_pod.items()} == {
        ("default", "be-big"): ("c",),
        ("default", "bu-mixed"): ("a", "b", "d"),
        ("default", "sc-bu"): ("main", "side"),
    }
    big = found.by_pod["default", "be-big"]
    assert big.rss_bytes == 42_000_384
    assert big.timestamp == "2026-11-20T12:00:00Z"
    assert found.by_node == {"worker-7": 1_252_265_984}


def test_pressure_of_containers_pods_and_nodes_in_a_store() -> None:
    name, pod, root = (
        "container_pressure_memory_{}_seconds_total",
        ("default", "be-big"),
        {"id": "/", "instance": "n:1"},
    )
    of_pod = {"namespace": pod[0], "pod": pod[1]}
    rates = [
        Sample({"__name__": name.format(kind), **labels}, value)
        for kind, labels, value in (
            ("waiting", {**of_pod, "container": "c"}, 0.25),
            ("waiting", of_pod, 0.2),
            ("stalled", of_pod, 0.1),
            ("waiting", root, 1.0004),
        )
    ]
    store = Known([*recorded(), *rates])
    now = read_now(store)
    usage, nodes = read_pressure(store, now, now.by_pod)
    of_c = usage[pod].of("c")
    assert of_c is not None
    assert memory_psi(of_c.pressure) == PsiData(avg60=25.0)
    assert of_c.pressure == Pressure(None, Psi(PsiData(avg60=25.0), PsiData(avg60=0.0)), None)
    assert usage[pod].details.pressure == Pressure(None, Psi(PsiData(avg60=20.0), PsiData(avg60=10.0)), None)
    assert usage["default", "sc-bu"].details.pressure is None
    assert of_c[:3] == now.by_pod[pod].amounts[0][:3], "its memory is as it was"  # type: ignore[index]
    assert {node: memory_psi(one).avg60 for node, one in nodes.items()} == {"n": 100.0}


def test_what_memory_consists_of_by_cadvisor_and_by_a_summary() -> None:
    """A file of 20 MiB in a volume of medium Memory: shared memory, which a summary has as that volume."""
    key = "default", "tmpfs"
    summary = JsonDecoder(Summary).decode(read("node-1.36-b/stats-summary.json"))
    by_summary = usage_from_summary(summary)[key]
    stored = with_parts(Known(list(recorded())), key, by_summary).of("c")
    of_c = by_summary.of("c")
    assert stored is not None
    assert of_c is not None
    assert stored.parts == MemoryParts(6_348_800, 28_672, 20 << 20, 249_856, swap_bytes=0)
    assert of_c.parts == MemoryParts(6_348_800, other_bytes=28_672 + (20 << 20) + 249_856, swap_bytes=0)
    assert dict(by_summary.details.volumes)["t"] == 20 << 20
    bare = with_parts(Known([]), key, by_summary).of("c")
    assert bare == of_c._replace(parts=None), "what a store does not have is not guessed"


class DeadAndAlive(Prometheus):
    """The recorded store, in which the old cgroup of crunl's container has samples until its death."""

    died = 1_795_459_501

    def __init__(self) -> None:
        super().__init__(connect(ConnectionOptions(server="http://127.0.0.1:1")), "the store")
        recording = read_json("node-1.36-d/prometheus-series-of-a-dead-container.json")
        self.series = recording["data"]["result"]

    def query(self, expression: str, at: float | None = None) -> list[Sample]:
        name = re.search(r'__name__=~?"[^"]*"', expression)
        if name is None or WORKING_SET not in expression or 'id="/"' in expression:
            return []
        values = [(one["metric"], dict(one["values"]).get(at)) for one in self.series]
        shown = [Sample(labels, float(value)) for labels, value in values if value is not None]
        of_cgroups = [one for one in shown if "id" in one.labels]
        if "count by" in expression and len(of_cgroups) < 2:
            return []
        if "timestamp(" in expression:
            ends = {one.labels["id"]: self.died if "5a5b07" in one.labels["id"] else at for one in of_cgroups}
            return [Sample(one.labels, ends[one.labels["id"]] or 0) for one in of_cgroups]
        return of_cgroups if ",id)" in expression else shown


@pytest.mark.parametrize("at", [1_795_459_500, 1_795_459_530, 1_795_459_770, 1_795_459_800])
def test_a_container_that_died_is_not_measured_by_its_old_cgroup(at: int) -> None:
    """Recorded: the new one used 20 MiB from 18:45:10 on, the 70 of the old one were shown until 18:50."""
    (usage,) = read_now(DeadAndAlive(), at).by_pod.values()
    expected = 73_773_056 if at < DeadAndAlive.died else 21_233_664
    assert usage.working_set_bytes == expected


def samples(*series: tuple[str, Mapping[str, str], float]) -> list[Sample]:
    return [Sample({"__name__": name, **labels}, value) for name, labels, value in series]


POD = {"namespace": "shop", "pod": "web", "uid": "u"}
APP = {**POD, "container": "app"}
V2 = samples(
    ("kube_pod_info", {**POD, "node": "w", "created_by_kind": "Node", "created_by_name": "w"}, 1),
    ("kube_pod_container_info", APP, 1),
    ("kube_pod_init_container_info", {**POD, "container": "mesh", "restart_policy": "Always"}, 1),
    ("kube_pod_container_resource_requests", {**APP, "resource": "memory", "unit": "byte"}, 64 << 20),
    ("kube_pod_container_resource_requests", {**APP, "resource": "cpu", "unit": "core"}, 0.25),
    ("kube_pod_container_resource_limits", {**APP, "resource": "memory", "unit": "byte"}, 128 << 20),
    ("kube_pod_container_resource_limits", {**APP, "resource": "nvidia_com_gpu", "unit": "integer"}, 1),
    ("kube_node_status_capacity", {"node": "w", "resource": "memory", "unit": "byte"}, 1 << 30),
)
EXPORTED = [
    Sample(
        {
            f"exported_{name}" if name in {"namespace", "pod", "container", "node"} else name: text
            for name, text in one.labels.items()
        }
        | {"namespace": "monitoring", "pod": "ksm-0", "container": "ksm"},
        one.value,
    )
    for one in V2
]


def past(found: Sequence[Sample]) -> Snapshot:
    return read_snapshot(Known(found), AT, 3600, "", usage=False)


@pytest.mark.parametrize("found", [V2, EXPORTED], ids=["v2", "without honor_labels"])
def test_a_pod_of_kube_state_metrics(found: Sequence[Sample]) -> None:
    snapshot = past(found)
    (pod,) = snapshot.pods
    assert (pod.namespace, pod.name, pod.node_name) == ("shop", "web", "w")
    (app,) = pod.containers
    assert {name: str(size) for name, size in app.requests.items()} == {"memory": "67108864", "cpu": "250m"}
    assert {name: str(size) for name, size in app.limits.items()} == {"memory": "134217728"}
    assert [one.restart_policy for one in pod.init_containers] == ["Always"]
    assert pod.annotations.config_mirror == "u"
    assert snapshot.setup("w").node.memory_capacity_bytes == 1 << 30
    assert computed_class(pod, snapshot.setup("w").release).value == "Burstable"


def test_states_are_those_whose_value_is_one() -> None:
    snapshot = past(
        [
            *V2,
            *samples(
                ("kube_pod_status_phase", {**POD, "phase": "Running"}, 0),
                ("kube_pod_status_phase", {**POD, "phase": "Failed"}, 1),
                ("kube_pod_status_reason", {**POD, "reason": "Evicted"}, 1),
                ("kube_pod_container_status_waiting_reason", {**APP, "reason": "CrashLoopBackOff"}, 1),
                ("kube_pod_container_status_last_terminated_reason", {**APP, "reason": "OOMKilled"}, 1),
                ("kube_pod_container_status_last_terminated_exitcode", APP, 137),
                ("kube_pod_container_status_last_terminated_timestamp", APP, AT.timestamp()),
                ("kube_pod_container_status_restarts_total", APP, 4),
                (
                    "kube_node_status_condition",
                    {"node": "w", "condition": "MemoryPressure", "status": "true"},
                    1,
                ),
            ),
        ]
    )
    (pod,) = snapshot.pods
    assert (pod.status.phase, pod.status.reason, pod.is_terminal) == ("Failed", "Evicted", True)
    (status,) = [one for one in pod.status.every_container if one.name == "app"]
    assert (status.restart_count, status.has_processes) == (4, False)
    (end,) = status.ends
    assert (end.reason, end.exit_code, end.finished_at) == ("OOMKilled", 137, "2026-11-20T12:00:00Z")
    assert [one.type for one in snapshot.nodes["w"].status.conditions or ()] == ["MemoryPressure"]


def test_what_the_store_lacks_is_listed() -> None:
    only = samples(
        ("kube_pod_info", {**POD, "node": "w", "priority_class": "high"}, 1),
        ("kube_pod_container_info", APP, 1),
    )
    assert [one.what for one in past(only).missing] == [
        "what no metric has",
        "the value of priority class high",
        "requests and limits",
        "the capacity of nodes",
    ]


MINUTE = 60.0


@pytest.mark.parametrize(
    ("values", "rate"),
    [
        ([100 + 10 * place for place in range(20)], 10 / MINUTE),
        ([500, 600, 700, *(100 + 10 * place for place in range(20))], 10 / MINUTE),
        ([100 - place for place in range(20)], None),
        ([100] * 20, None),
        ([100, 300] * 10, None),
        ([1000 + place / 100 for place in range(20)], None),
        ([100, 110, 120], None),
        ([], None),
    ],
    ids=["straight", "since a restart", "falls", "flat", "zigzag", "hardly", "few points", "none"],
)
def test_a_line_is_growth_only_where_it_is_straight(values: list[float], rate: float | None) -> None:
    found = growth_line([(place * MINUTE, value) for place, value in enumerate(values)])
    assert (found[0] if found is not None else None) == (pytest.approx(rate) if rate is not None else None)


def test_a_leak_takes_an_hour_and_half_of_what_is_used() -> None:
    for minutes, is_leak in ((80, True), (50, False)):
        found = growth_line([(place * MINUTE, 10.0 * (place + 1)) for place in range(minutes)])
        assert found is not None
        assert found[1] is is_leak


def test_a_history_is_kept_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Known(list(recorded()))
    queries: list[str] = []
    query = store.query

    def counted(expression: str, at: float | None = None) -> list[Sample]:
        queries.append(expression)
        return query(expression, at)

    monkeypatch.setattr(store, "query", counted)
    monkeypatch.setattr(store, "query_range", lambda *_: [])
    reader = UsageHistory(store, 3600, "avg", AT.timestamp())
    first = reader.read()
    before = len(queries)
    second = reader.read()
    assert second.history.containers is first.history.containers
    assert len(queries) - before == 5, "without pressure its rates are asked for once"
    assert {one for one in queries[before:] if "over_time" in one} == set()


def test_where_a_week_is_too_much_the_last_day_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Known(list(recorded()))
    query = store.query

    def slow(expression: str, at: float | None = None) -> list[Sample]:
        if "[604800s]" in expression:
            raise QosError("the query timed out", hint="a shorter --over")
        return query(expression, at)

    monkeypatch.setattr(store, "query", slow)
    monkeypatch.setattr(store, "query_range", lambda *_: [])
    reader = UsageHistory(store, 604_800, "max", AT.timestamp())
    what = "the history of 7d before its last day"
    first, kept = reader.read(), reader.read()
    monkeypatch.setattr(series, "KEPT_SECONDS", -1.0)
    for found in (first, kept, reader.read()):
        assert found.missing == Missing(what, "the query timed out", "a shorter --over")
        assert (found.history.over, found.history.stat, bool(found.history.containers)) == ("1d", "max", True)
    monkeypatch.setattr(store, "query", query)
    again = reader.read()
    assert (again.missing, again.history.over) == (None, "7d"), "the store can do it by now"


def test_a_refused_history_is_not_requested_at_each_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a store cannot do in time keeps one of its cores busy until it gives up."""
    store = Known(list(recorded()))
    queries: list[str] = []
    query = store.query

    def slow(expression: str, at: float | None = None) -> list[Sample]:
        queries.append(expression)
        if "over_time" in expression:
            raise QosError("the store refuses the query", hint="a shorter --over")
        return query(expression, at)

    monkeypatch.setattr(store, "query", slow)
    reader = UsageHistory(store, 3600, "max", AT.timestamp())
    missing = [reader.read().missing for _ in range(3)]
    assert (
        missing
        == [Missing("the history of memory usage", "the store refuses the query", "a shorter --over")] * 3
    )
    assert sum("over_time" in one for one in queries) == 1

"""How pods' memory has changed: samples as they come, and their bars."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from kubectl_qos.analysis.deaths import FEW_NODES, deaths_on_node
from kubectl_qos.analysis.group_table import build_node_row
from kubectl_qos.analysis.pod_table import build_rows
from kubectl_qos.analysis.trends import MOST, Trends
from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.k8s.usage import ContainerUsage, History, PodKey, PodUsage
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.simulation.next_death import NextDeath
from kubectl_qos.tui.lists.pods import TREND_WIDTH, PodList
from kubectl_qos.tui.view_model import build_view_model
from tests.tui.sources import demo, pod_named, with_usage

KIB = 1024
A, B = ("n", "a"), ("n", "b")
AMOUNTS = st.integers(0, 1 << 43)


def usage(kibibytes: int, second: int | None = None) -> PodUsage:
    stamp = "" if second is None else f"2026-11-20T12:{second // 60:02}:{second % 60:02}Z"
    return PodUsage.of_containers({"c": ContainerUsage(kibibytes * KIB)}, timestamp=stamp)


def after(*answers: Mapping[PodKey, PodUsage]) -> Trends:
    trends = Trends()
    for answer in answers:
        trends.add(answer)
    return trends


def test_why_draws_memory_that_has_changed() -> None:
    view_model = build_view_model(demo(), Scope(), DEMO_TIME)
    row = next(row for row in view_model.rows.rows if row.name.startswith("importer-"))
    steps = [{row.key[:2]: usage(mebibytes << 10, second)} for second, mebibytes in enumerate((60, 90, 120))]
    for trends, drawn in ((after(*steps), ["memory ▁▅█ 60Mi to 120Mi"]), (after(steps[0], steps[0]), [])):
        lines = [line.text for line in PodList(trends).panel(row, view_model)(120)]
        assert [line for line in lines if line.startswith("memory ")] == drawn


def of(trends: Trends, key: PodKey = A) -> list[int]:
    return list(trends.of(key))


def test_the_same_sample_counts_once_however_often_it_is_answered() -> None:
    first, second = usage(1, 1), usage(2, 2)
    again = PodUsage.of_containers({"c": ContainerUsage(2 * KIB)}, timestamp=second.timestamp)
    answer = {A: second}
    assert of(after({A: first}, answer, answer, {A: second}, {A: again})) == [1, 2]


def test_without_times_another_amount_is_another_sample() -> None:
    assert of(after({A: usage(1)}, {A: usage(1)}, {A: usage(5)}, {A: usage(3)})) == [1, 5, 3]


def test_a_restart_shows_as_a_drop() -> None:
    trends = after({A: usage(900, 1)}, {A: usage(1000, 2)}, {A: usage(10, 3)})
    assert of(trends) == [900, 1000, 10]


def test_a_sample_below_nothing_is_nothing() -> None:
    assert of(after({A: usage(-5, 1)}, {A: usage(3, 2)})) == [0, 3]


def two(first: int, second: int, at: int) -> PodUsage:
    amounts = {"app": ContainerUsage(first * KIB), "side": ContainerUsage(second * KIB)}
    return PodUsage.of_containers(amounts, timestamp=f"2026-11-20T12:00:{at:02}Z")


def test_each_of_several_containers_has_a_peak_of_its_own() -> None:
    trends = after({A: two(9, 1, 1)}, {A: two(2, 7, 2)}, {A: two(3, 4, 3)})
    assert trends.peaks(A) == {"app": 9 * KIB, "side": 7 * KIB}
    assert not after({A: two(9, 1, 1)}).peaks(A), "one sample is no peak"
    assert not after({A: two(9, 1, 1)}, {A: usage(5, 2)}).peaks(A), "another pod of that name"


@given(st.lists(AMOUNTS, max_size=3 * MOST))
def test_the_last_samples_are_kept_and_no_more(amounts: list[int]) -> None:
    trends = after(*({A: usage(amount, second)} for second, amount in enumerate(amounts)))
    assert of(trends) == (amounts[-MOST:] if len(amounts) > 1 else [])


@given(st.lists(st.dictionaries(st.sampled_from([A, B]), st.tuples(st.integers(0, 3), AMOUNTS)), max_size=20))
def test_trends_are_the_samples_since_a_pod_was_there_last(
    answers: list[dict[PodKey, tuple[int, int]]],
) -> None:
    model: dict[PodKey, list[PodUsage]] = {}
    trends = Trends()
    for answer in answers:
        samples = {key: usage(amount, second) for key, (second, amount) in answer.items()}
        trends.add(samples)
        model = {
            key: model[key] if model.get(key, [None])[-1] == sample else [*model.get(key, []), sample]
            for key, sample in samples.items()
        }
        for key in (A, B):
            amounts = [sample.working_set_bytes // KIB for sample in model.get(key, [])]
            assert of(trends, key) == (amounts[-MOST:] if len(amounts) > 1 else [])


def test_what_was_read_stays_as_it_was_while_a_thread_adds() -> None:
    trends = Trends()
    answers = [{A: usage(second, second), B: usage(2 * second, second)} for second in range(600)]
    done = threading.Event()

    def add() -> None:
        for answer in answers:
            trends.add(answer)
        done.set()

    thread = threading.Thread(target=add)
    thread.start()
    seen: list[Sequence[int]] = []
    while not done.is_set():
        seen += [trends.of(A), trends.of(B)]
    thread.join()
    for samples in seen:
        assert len(samples) <= MOST
        step = samples[1] - samples[0] if samples else 1
        assert list(samples) == [samples[0] + step * index for index in range(len(samples))]
    assert of(trends, B) == [2 * second for second in range(600 - MOST, 600)]


def test_the_axis_names_the_victim_at_the_moment_of_death() -> None:
    """`notebook-0` grows, and has more points than `api` by then."""
    snapshot, notebook = demo(), ("ml", "notebook-0")
    before = {**snapshot.usage, notebook: usage(900_000, 0)}
    now = {**snapshot.usage, notebook: usage(1105 * KIB, 10)}
    model = build_view_model(replace(snapshot, usage=now), Scope(), DEMO_TIME)

    def full(trends: Trends) -> NextDeath:
        grows = replace(model.snapshot, rates=trends.rates())
        found = replace(model, snapshot=grows, cached_deaths={}).deaths("worker-2")
        assert found is not None
        return next(one for one in found.deaths if one.mechanism == "node")

    assert full(Trends()).key[1].startswith("api-7d9c")
    assert full(after(before, now)).key == notebook
    assert full(after(before, now)).distance_bytes == full(Trends()).distance_bytes


def test_growth_is_of_what_grows_by_more_than_it_varies() -> None:
    """In bytes a second since memory last shrank; a fiftieth of itself, or a mebibyte, is no growth."""
    before = {A: usage(10_000, 0), B: usage(500_000, 0)}
    trends = after(before, {A: usage(16_000, 10), B: usage(505_000, 10)})
    assert trends.rates()([A, B]) == {(A, "c"): 600 * KIB}
    both = after(before, {A: usage(16_000, 10), B: usage(590_000, 10)}).rates()
    assert sum(both([A, B]).values()) == 9600 * KIB
    assert both([B]) == {(B, "c"): 9000 * KIB}
    shrunk = after({A: usage(99_000, 0)}, {A: usage(10_000, 10)}, {A: usage(14_000, 20)})
    assert shrunk.rates()([A]) == {(A, "c"): 400 * KIB}
    small = after({A: usage(100, 0)}, {A: usage(1100, 10)})
    for none in (after(), after({A: usage(5, 1)}), after({A: usage(9000, 1)}, {A: usage(9, 2)}), small):
        assert not none.rates()([A])


def test_a_node_grows_by_what_its_own_processes_use_too() -> None:
    """A backup on the node fills it: killers of the whole node get a time, and no pod's limit does."""
    trends, first = Trends(), demo()
    seen = trends.with_rates(first)
    for minute in (1, 2):
        assert not seen.node_rates
        stamp = f"2026-11-20T12:{minute:02}:00Z"
        later = {key: structs.replace(sample, timestamp=stamp) for key, sample in first.usage.items()}
        whole = {**first.node_usage, "worker-3": first.node_usage["worker-3"] + minute * (6 << 30)}
        seen = trends.with_rates(replace(first, usage=later, node_usage=whole))
    assert seen.node_rates == {"worker-3": pytest.approx(100 << 20, rel=0.2)}
    timed = [death for death in deaths_on_node(seen, "worker-3").deaths if death.seconds is not None]
    assert {death.killer.scope.is_wide for death in timed} == {True}
    assert not trends.with_rates(replace(seen, node_usage={})).node_rates, "the node has no metrics any more"
    new = next(pod.key for pod in seen.pods if pod.node_name == "worker-3" and pod.key in seen.usage)
    without = {key: sample for key, sample in seen.usage.items() if key != new}
    assert not trends.with_rates(replace(seen, usage=without)).node_rates, (
        "a new pod's memory is not the node's"
    )


def test_what_has_reached_a_plateau_does_not_grow() -> None:
    """A start-up that has ended is no trend, however steep it was."""
    starting = [usage(10_000 * second, second) for second in range(1, 8)]
    level = [usage(70_000 + second, second) for second in range(8, 16)]
    assert after(*({A: sample} for sample in starting)).rates()([A])
    assert not after(*({A: sample} for sample in (*starting, *level))).rates()([A])


def test_each_sample_has_its_time_and_the_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    trends = after(*({A: usage(10 * second, second)} for second in range(MOST + 5)))
    start = round(datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp())
    assert [time - start for time in trends.times(A)] == [*range(5, MOST + 5)]
    assert [kib // 10 for kib in trends.of(A)] == [*range(5, MOST + 5)]
    assert not trends.times(B)
    monkeypatch.setattr("kubectl_qos.analysis.trends.TOO_MANY", 1)
    trends.add({A: usage(1, 99)})
    assert not trends.times(A), "of many pods"


def test_a_node_keeps_what_each_class_used_on_it_even_of_pods_that_are_gone() -> None:
    trends, first = Trends(), demo()
    crunch = pod_named(first, "crunch").key
    trends.with_rates(first)
    usage = {key: sample for key, sample in first.usage.items() if key != crunch}
    later = replace(first, usage=usage, pods=[pod for pod in first.pods if pod.key != crunch])
    trends.with_rates(later)
    trends.with_rates(later)
    before, after = trends.of_node("worker-2")
    assert [was - now for was, now in zip(before, after, strict=True)] == [
        0,
        0,
        first.usage[crunch].working_set_bytes // KIB,
    ]
    row = build_node_row(first, "worker-2")
    assert [kib >> 10 for kib in before] == [(row.used(qos) or 0) >> 20 for qos in QosClass]
    nodes = {f"node-{number}": first.nodes["worker-2"] for number in range(FEW_NODES + 1)}
    trends.with_rates(replace(first, nodes=nodes))
    assert not trends.of_node("worker-2"), "with many nodes none has the room"


def test_a_node_has_the_past_that_a_store_has_of_its_pods() -> None:
    first, trends = demo(), Trends()
    keys = {name: pod_named(first, name).key for name in ("crunch-x2k9f", "api-7d9c5b6f8-x2mzq", "db-0")}
    lines = {key: [place << 20, 2 << 20, 3 << 20] for place, key in enumerate(keys.values())}
    usage = {**first.usage, keys["db-0"]: first.usage[keys["crunch-x2k9f"]]}
    trends.with_rates(first)
    trends.with_rates(replace(first, usage=usage, history=History({}, first.usage, "1d", "max", lines)))
    *past, now = trends.of_node("worker-2")
    assert past == [(2 << 20, 1 << 20, 0), (2 << 20, 2 << 20, 2 << 20), (3 << 20, 3 << 20, 3 << 20)]
    row = build_node_row(first, "worker-2")
    assert [kib >> 10 for kib in now] == [(row.used(qos) or 0) >> 20 for qos in QosClass], "no statistic"
    trends.with_rates(first)
    assert len(trends.of_node("worker-2")) == 1, "samples of seconds do not follow those of hours"


def test_the_column_sorts_by_growth_with_unknown_trends_last() -> None:
    snapshot = demo()
    trends = Trends()
    column = PodList(trends).columns["trend"]
    rows = build_rows(snapshot, Scope()).rows
    assert {column.cell(row, DEMO_TIME) for row in rows} == {""}
    trends.add(snapshot.usage)
    grown = {"api-7d9c5b6f8-x2mzq": -300, "db-0": 100, "cart-6c7fd9b5d-9qj4t": 500}
    for row in rows:
        if row.name in grown and row.memory is not None:
            snapshot = with_usage(snapshot, row.name, row.memory + grown[row.name] * KIB)
    trends.add(snapshot.usage)
    ordered = sorted(rows, key=column.sort_key)
    assert [row.name for row in ordered[:3]] == ["cart-6c7fd9b5d-9qj4t", "db-0", "api-7d9c5b6f8-x2mzq"]
    for row in ordered[:3]:
        assert len(column.cell(row, DEMO_TIME)) == len(column.value(row)) == 2 <= TREND_WIDTH
    assert all(column.value(row) == [] for row in ordered[3:])

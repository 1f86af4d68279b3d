"""Another time of the cluster: a track with its deaths, and a UI that shows the past and changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from kubectl_qos.analysis.trends import Trends
from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.cluster.source import PastSource, PastTime, Source
from kubectl_qos.edit.related import pod_reference
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerHistory, ContainerUsage, History, PodUsage
from kubectl_qos.metrics.past import Track
from kubectl_qos.metrics.series import rfc3339
from kubectl_qos.qos.killers import Mechanism
from kubectl_qos.qos.kills.analyze import Kill
from kubectl_qos.qos.kills.evidence import Diagnosis
from kubectl_qos.qos.reason import Confidence
from kubectl_qos.qos.simulation.node_state import NO_GROWTH, growth_on
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.edit_target import EditTarget
from kubectl_qos.tui.lists.pods import PodList
from kubectl_qos.tui.screens.base import TitleLine
from kubectl_qos.tui.screens.kills import BEFORE, FAR, NO_DEATHS, STEP, ChosenTime
from kubectl_qos.tui.shell import ContextSwitch
from kubectl_qos.tui.view import View, past_words
from kubectl_qos.tui.view_model import build_view_model
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.simulation import Slider
from tests.tui.conftest import Look
from tests.tui.sources import API, ScriptedSource, demo, pod_named, running, without

SCOPE = Scope()
HOUR, DAY = 3600, 86_400
END = DEMO_TIME.timestamp()


def kill(hours_ago: float, pod: str, mechanism: str = "container limit") -> Kill:
    found = Diagnosis(Mechanism(mechanism), Confidence.LIKELY, ())
    return Kill(
        diagnosis=found, time=rfc3339(END - hours_ago * HOUR), namespace="shop", pod=pod, node="worker-2"
    )


KILLS = (kill(20, "api-0"), kill(19.5, "api-0"), kill(2, "cache-0", "kubelet eviction"))
TRACK = Track(END - DAY, END, KILLS)
SAWTOOTH = [(END - DAY + 900 * step, float((1 + step % 24) << 29)) for step in range(8, 97)]
FULLER = [(END, 13.0 * (1 << 30))]
MEMORY = TRACK._replace(memory={"worker-1": FULLER, "worker-2": SAWTOOTH, "gone": []})
AGO = "121m"


def test_the_knob_stays_on_the_track_and_its_end_is_the_present() -> None:
    live = ChosenTime(TRACK, DAY)
    assert (live.chosen, live.words) == (DAY, "the present")
    past = live.at(DAY - 3 * HOUR)
    assert (past.moment(past.chosen), past.words) == (DEMO_TIME - timedelta(hours=3), "3h ago, 09:00:00 UTC")
    assert (past.at(-1).chosen, past.at(2 * DAY)) == (0, live)


def test_from_death_to_death_a_minute_before_each() -> None:
    begin = ChosenTime(TRACK, 0)
    places = [begin]
    while (found := places[-1].moved("next_death")) != places[-1]:
        places.append(found)
    assert [END - place.moment(place.chosen).timestamp() for place in places[1:]] == [
        20 * HOUR + BEFORE,
        19.5 * HOUR + BEFORE,
        2 * HOUR + BEFORE,
    ]
    for earlier, later in pairwise(places[1:]):
        assert later.moved("previous_death") == earlier
    assert places[1].moved("previous_death") == places[1], "none is before the first"


def test_the_deaths_around_the_knob_and_which_is_next() -> None:
    second = ChosenTime(TRACK, 0).moved("next_death").moved("next_death")
    lines = list(second.moved("next_death").death_lines())
    assert [line.text for line in lines] == [
        "   16:00:00  shop/api-0    own limit, likely, on worker-2",
        "   16:30:00  shop/api-0    own limit, likely, on worker-2",
        "▸  10:00:00  shop/cache-0  kubelet evicts, likely, on worker-2  60s later",
    ]
    assert [line.text for line in ChosenTime(TRACK._replace(kills=()), DAY).death_lines()] == [NO_DEATHS]
    many = TRACK._replace(kills=tuple(kill(20 - number, f"pod-{number}") for number in range(15)))
    near = [line.text.removeprefix("▸").split()[1] for line in ChosenTime(many, 14 * HOUR).death_lines(3)]
    assert near == ["shop/pod-9", "shop/pod-10", "shop/pod-11"]


def test_the_memory_of_the_node_of_the_next_death_is_drawn_above_its_track() -> None:
    lines = [line.text.rstrip() for line in ChosenTime(MEMORY, 0).memory_lines(48)]
    assert lines == [
        " memory of worker-2, 512Mi to 12.0Gi",
        "          ▁▄▆         ▁▄▆         ▂▅█         ▂▅",
        "       ▁▄▆███      ▁▄▆███      ▂▅████      ▂▅███",
        "     ▄▆██████   ▁▄▆██████   ▂▅███████   ▂▅██████",
        "     ████████▁▄▆█████████▂▅██████████▂▅█████████▁",
    ]
    lines = [line.text.rstrip() for line in ChosenTime(MEMORY, DAY).memory_lines(48)]
    assert lines[0] == " memory of worker-1, 13.0Gi to 13.0Gi", "without one that of the fullest node"
    assert ChosenTime(TRACK, 0).memory_lines(48) == [], "a store may know no node"


@given(st.integers(HOUR, DAY), st.integers(30, 200))
def test_hours_below_the_track_do_not_touch(seconds: int, cells: int) -> None:
    ticks = ChosenTime(Track(END - seconds, END), 0).ticks(cells)
    assert len(ticks) <= cells
    assert all(len(word) == 5 and word.endswith(":00") for word in ticks.split())


def test_a_day_below_a_track() -> None:
    assert ChosenTime(TRACK, 0).ticks(60) == "12:00     16:00     20:00     00:00    04:00     08:00"


def test_the_date_is_named_where_the_hour_does_not_say_which_day() -> None:
    at = datetime(2026, 11, 18, 9, 30, 5, tzinfo=UTC)
    assert past_words(PastTime("prod", at, 7205)) == "120m ago, 09:30:05 UTC"
    assert past_words(PastTime("prod", at, 2 * DAY + HOUR)) == "2d1h ago, 2026-11-18 09:30:05 UTC"


SEEN = ContainerHistory(1800 << 20, 1500 << 20, 2048.0, over="7d")


def with_history(stat: str = "") -> Snapshot:
    """The demo whose first victim has a history of a week."""
    pod = pod_named(demo(), API)
    key = pod.namespace, pod.name
    history = History({(key, "c"): SEEN}, {}, "7d", stat, {key: [0, 1 << 20, 2 << 20]})
    return replace(demo(), history=history)


def test_fields_and_columns_show_what_the_store_has_seen() -> None:
    snapshot, trends = with_history(), Trends()
    trends.add(snapshot.usage, snapshot.history)
    model = build_view_model(snapshot, SCOPE, DEMO_TIME)
    pod = pod_named(snapshot, API)
    uses = EditTarget(pod, model, ScriptedSource(snapshot)).uses(trends)
    assert uses["c"].words[0] == "1.9Gi used, peak 1.9Gi, p99 1.5Gi in 7d", "no peak is below what is used"
    listed = PodList(trends, lambda: model).default_columns(View())
    assert {"peak", "p99", "growth"} <= set(listed)
    bare = build_view_model(demo(), SCOPE, DEMO_TIME)
    assert {"peak", "p99", "growth"} & set(PodList(Trends(), lambda: bare).default_columns(View())) == set()


def test_of_a_workload_the_most_that_one_of_its_pods_has_used() -> None:
    pods = [pod for pod in demo().pods if pod.name.startswith("api-")]
    assert len(pods) > 1
    containers = {
        ((pod.namespace, pod.name), "c"): ContainerHistory(100 + number, 50 - number)
        for number, pod in enumerate(pods)
    }
    snapshot = replace(demo(), history=History(containers, {}, "7d"))
    template = pod_reference("Deployment", "shop", "api")
    assert snapshot.seen_of(template) == {"c": ContainerHistory(99 + len(pods), 51 - len(pods))}
    assert snapshot.seen_of(pods[0]) == {"c": ContainerHistory(100, 50)}
    assert demo().seen_of(template) == {}


def test_what_the_store_has_seen_comes_before_the_samples_since_the_start() -> None:
    key = ("n", "a")
    used = [PodUsage.of_containers({"c": ContainerUsage(size << 10)}, timestamp=str(size)) for size in (1, 2)]
    trends, past = Trends(), History({(key, "c"): SEEN}, {}, "7d", "", {key: [7, 8, 9]})
    for one in used:
        trends.add({key: one}, past)
    assert list(trends.of(key)) == list(trends.total([key])) == [7, 8, 9]
    spec = {"nodeName": "w", "containers": [{"name": "c"}]}
    pod = convert({"metadata": {"name": "a", "namespace": "n"}, "spec": spec}, Pod)
    snapshot = Snapshot([pod], history=past, rates=trends.rates())
    assert growth_on(snapshot, "w").containers == {(key, "c"): SEEN.rate}
    peaks = replace(snapshot, history=structs.replace(past, stat="max"))
    assert growth_on(peaks, "w") is NO_GROWTH, "peaks are no place from which growth begins"
    trends.add({key: used[0]})
    assert list(trends.of(key)) == [1, 2, 1], "they are kept for when the store is gone"


class Store:
    """A past in which the demo is alone with its victim gone, or one that does not answer."""

    def __init__(self, error: QosError | None = None) -> None:
        self.error = error
        self.older: Sequence[Kill] = ()
        self.requests: list[tuple[datetime, bool]] = []

    def track(self) -> Track:
        if self.error is not None:
            raise self.error
        return MEMORY

    def older_deaths(self, now: datetime, *, is_past: bool) -> tuple[Sequence[Kill], int]:
        self.requests.append((now, is_past))
        if self.error is not None:
            raise self.error
        return self.older, DAY

    def source(self, at: datetime) -> Source:
        past = replace(with_history(), at=rfc3339(at))
        return PastSource("prod", "default", at, lambda: past, lambda: DEMO_TIME)


def app(store: Store) -> QosApp:
    live = ScriptedSource(demo())
    return QosApp(live, SCOPE, contexts=ContextSwitch(tuple, lambda _: live, lambda _: store))


async def test_to_the_minute_before_a_death_and_back(screen_text: Look) -> None:
    async with running(app(Store()), size=(120, 40)) as pilot:
        live = pilot.qos.source
        await pilot.keys("at")
        await pilot.seen("the present")
        for key, moved in (
            ("home", -DAY),
            ("right", STEP),
            ("shift+right", FAR),
            ("left", -STEP),
            ("shift+left", -FAR),
        ):
            before = knob(pilot.app.screen.query_one(Slider))
            await pilot.keys(key)
            assert knob(pilot.app.screen.query_one(Slider)) - before == moved, key
        await pilot.keys("tab", "tab", "tab", "shift+tab", "tab")
        await pilot.seen(f"{AGO} ago, 09:59:00 UTC")
        await screen_text(pilot, "track_of_the_past")
        await pilot.keys("enter")
        await pilot.until(lambda: pilot.qos.source.past is not None)
        await pilot.settled()
        await pilot.listed()
        title = pilot.app.screen.query_one(TitleLine)
        assert str(title.render()).startswith("kubectl qos  prod")
        assert str(title.render()).endswith(f"-- {AGO} ago, 09:59:00 UTC --  not live")
        assert title.has_class("-past")
        await screen_text(pilot, "main_in_the_past")
        assert "fix  container" not in pilot.text, "nothing can be changed there"
        for key in ("1", "2", "3", "5", "6", "4"):
            await pilot.press_each(key)
            assert " now" not in pilot.words, "nothing is of the present"
        for key in ("e", "U", "F"):
            await pilot.keys(key)
            assert pilot.screen_name == "MainScreen"
            assert pilot.notifications[-1] == (
                f"this is the past, {AGO} ago, 09:59:00 UTC: nothing can be changed; @ leads to the present"
            )
        await pilot.keys("r")
        assert pilot.notifications[-1] == "the past does not change: there is nothing to refresh"
        await pilot.keys("d")
        assert "-- " in str(pilot.app.screen.query_one(TitleLine).render()), "every screen says it"
        await pilot.keys(*["escape"] * 8)
        await pilot.until(lambda: pilot.qos.source is live)
        await pilot.settled()
        assert not pilot.app.screen.query_one(TitleLine).has_class("-past")
        await pilot.keys("at")
        await pilot.seen("the present")
        await pilot.keys("escape")
        assert pilot.qos.source is live


def knob(slider: Slider) -> int:
    return slider._amount


async def test_kills_are_also_those_that_only_the_store_has() -> None:
    store = Store()
    store.older = KILLS
    async with running(app(store), size=(120, 40)) as pilot:
        await pilot.keys("1", "K")
        await pilot.seen("cache-0")
        assert pilot.words.count("api-0") >= 2
        table = pilot.app.screen.query_one(LineTable)
        assert len(table.rows) == len(KILLS) + 5, "those of statuses, too"
        assert pilot.qos.view_model is not None
        pilot.qos.view_model = replace(pilot.qos.view_model, snapshot=without(demo(), "crunch-"))
        await pilot.until(lambda: len(table.rows) == len(KILLS) + 4)
        assert store.requests == [(DEMO_TIME, False)], "it is read again with the events only"
        store.error = QosError("prom does not answer")
        await pilot.keys("r")
        await pilot.seen("the list of older deaths is missing: prom does not answer")


async def test_without_a_store_the_dialog_says_why() -> None:
    why = QosError("no service of this cluster is labelled as Prometheus", hint="--prometheus URL names one")
    async with running(app(Store(why))) as pilot:
        await pilot.keys("at")
        await pilot.seen("! no service of this cluster is labelled as Prometheus")
        assert "--prometheus URL names one" in pilot.words
        assert "earlier" not in pilot.words, "there is no track whose keys could be named"
        await pilot.keys("enter", "left", "end")
        await pilot.until(lambda: pilot.screen_name == "MainScreen")

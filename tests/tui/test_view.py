"""Where one can go, and back and forward: held against a list of pages and a place in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.view import (
    Destination,
    Detail,
    GoTo,
    ListKind,
    Location,
    Navigation,
    View,
    go_to_completions,
    parse_go_to,
)
from kubectl_qos.tui.view_model import ViewModel, build_view_model
from tests.tui.sources import demo


@pytest.fixture(scope="module")
def view_model() -> ViewModel:
    return build_view_model(demo(), Scope(), DEMO_TIME)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("nodes", View(ListKind.NODES)),
        (" NODES ", View(ListKind.NODES)),
        ("cluster", View(ListKind.NODES)),
        ("node", View(ListKind.NODES)),
        ("node worker-2", View(node="worker-2")),
        ("nodes worker-2", View(node="worker-2")),
        ("ns", View(ListKind.NAMESPACES)),
        ("ns shop", View(namespace="shop")),
        ("pods", View()),
        ("pods all", View()),
        ("po  shop", View(namespace="shop")),
        ("workloads", View(ListKind.WORKLOADS)),
        ("wl shop", View(ListKind.WORKLOADS, namespace="shop")),
        ("containers shop", View(ListKind.CONTAINERS, namespace="shop")),
    ],
)
def test_lists(text: str, place: View, view_model: ViewModel) -> None:
    assert parse_go_to(text, view_model) == GoTo(Destination.LIST, place)


def test_other_destinations(view_model: ViewModel) -> None:
    assert parse_go_to("help", view_model) == GoTo(Destination.HELP)
    assert parse_go_to("q", view_model) == GoTo(Destination.QUIT)
    assert parse_go_to("undo", view_model) == GoTo(Destination.UNDO)
    assert parse_go_to("kills", view_model) == GoTo(Destination.KILLS)
    assert parse_go_to("sim", view_model) == GoTo(Destination.SIMULATION)
    assert parse_go_to("simulate worker-2", view_model) == GoTo(Destination.SIMULATION, name="worker-2")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("kill", 'unknown command "kill"'),
        ("sim nope", 'node "nope" not found'),
        ("node nope", 'node "nope" not found'),
        ("pods nope", 'namespace "nope" has no pods'),
    ],
)
def test_unknown_destinations(text: str, sentence: str, view_model: ViewModel) -> None:
    with pytest.raises(InputError, match=sentence):
        parse_go_to(text, view_model)


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("", None),
        ("n", "nodes"),
        ("w", "workloads"),
        ("workloads t", "workloads team-a"),
        ("node w", "node worker-2"),
        ("node worker-1", None),
        ("pods s", "pods sandboxed"),
        ("pods sh", "pods shop"),
        ("und", "undo"),
        ("k", "kills"),
        ("si", "sim"),
        ("sim w", "sim worker-2"),
        ("zz", None),
    ],
)
def test_completion(text: str, full: str | None, view_model: ViewModel) -> None:
    assert next(go_to_completions(text, view_model), None) == full


def test_before_the_first_answer_only_the_words_are_known() -> None:
    assert not list(go_to_completions("node w", None))
    assert parse_go_to("pods", None) == GoTo(Destination.LIST, View())
    with pytest.raises(InputError, match="not found"):
        parse_go_to("node worker-2", None)


MOST = Navigation.MOST
NUMBERS = st.integers(0, 4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["go", "replace"]), NUMBERS),
        st.tuples(st.sampled_from(["back", "forward"]), st.just(0)),
    ),
    max_size=60,
)


def location_of(number: int) -> Location:
    return Location(View(node=f"n{number}"))


@given(STEPS)
def test_it_behaves_like_a_browser(steps: list[tuple[str, int]]) -> None:
    navigation = Navigation(location_of(0))
    behind: list[Location] = []
    shown, ahead = location_of(0), list[Location]()
    for step, number in steps:
        if step == "go":
            navigation.go(location_of(number))
            if location_of(number) != shown:
                behind, shown, ahead = [*behind, shown], location_of(number), []
        elif step == "replace":
            navigation.replace(location_of(number))
            shown = location_of(number)
        elif step == "back":
            assert navigation.back() == (behind[-1] if behind else None)
            if behind:
                behind, shown, ahead = behind[:-1], behind[-1], [shown, *ahead]
        else:
            assert navigation.forward() == (ahead[0] if ahead else None)
            if ahead:
                behind, shown, ahead = [*behind, shown], ahead[0], ahead[1:]
        assert navigation.location == shown


def test_the_oldest_places_are_forgotten() -> None:
    navigation = Navigation(location_of(0))
    for number in range(1, 3 * MOST):
        navigation.go(location_of(number))
    seen = [navigation.location]
    while (place := navigation.back()) is not None:
        seen.append(place)
    assert seen == [location_of(number) for number in range(3 * MOST - 1, 2 * MOST - 1, -1)]
    assert navigation.location == location_of(2 * MOST)
    assert navigation.forward() == location_of(2 * MOST + 1)


def test_the_limit_counts_what_lies_behind() -> None:
    navigation = Navigation(location_of(0))
    for number in range(1, MOST):
        navigation.go(location_of(number))
    for _ in range(MOST - 1):
        navigation.back()
    assert navigation.location == location_of(0)
    navigation.go(location_of(7))
    assert navigation.forward() is None
    assert navigation.back() == location_of(0)


def test_going_where_one_is_keeps_what_lies_ahead() -> None:
    navigation = Navigation(location_of(0))
    navigation.go(location_of(1))
    navigation.back()
    navigation.go(location_of(0))
    assert navigation.forward() == location_of(1)


@pytest.mark.parametrize("detail", list(Detail))
def test_a_screen_of_a_pod_is_another_place_than_the_list_below_it(detail: Detail) -> None:
    pods = demo().pods
    below = Location(View(ListKind.PODS))
    first, second = Location(below.view, detail, pods[0]), Location(below.view, detail, pods[1])
    navigation = Navigation(below)
    for place in (first, second, Location(below.view, detail, demo().pods[1]), below):
        navigation.go(place)
    assert [navigation.back(), navigation.back(), navigation.back(), navigation.back()] == [
        second,
        first,
        below,
        None,
    ]

"""Where one can go, and back and forward: held against a list of pages and a place in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.tui.view import Detail, ListKind, Location, Navigation, View
from tests.tui.sources import demo

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

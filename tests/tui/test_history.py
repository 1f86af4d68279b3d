"""Back and forward, as in a browser: held against a list of pages and a place in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.tui.history import MOST, Detail, History, Stop
from kubectl_qos.tui.view import Kind, View
from tests.tui.sources import demo

NUMBERS = st.integers(0, 4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["go", "replace"]), NUMBERS),
        st.tuples(st.sampled_from(["back", "forward"]), st.just(0)),
    ),
    max_size=60,
)


def stop(number: int) -> Stop:
    return Stop(View(node=f"n{number}"))


@given(STEPS)
def test_it_behaves_like_a_browser(steps: list[tuple[str, int]]) -> None:
    history = History(stop(0))
    behind: list[Stop] = []
    shown, ahead = stop(0), list[Stop]()
    for step, number in steps:
        if step == "go":
            history.go(stop(number))
            if stop(number) != shown:
                behind, shown, ahead = [*behind, shown], stop(number), []
        elif step == "replace":
            history.replace(stop(number))
            shown = stop(number)
        elif step == "back":
            assert history.back() == (behind[-1] if behind else None)
            if behind:
                behind, shown, ahead = behind[:-1], behind[-1], [shown, *ahead]
        else:
            assert history.forward() == (ahead[0] if ahead else None)
            if ahead:
                behind, shown, ahead = [*behind, shown], ahead[0], ahead[1:]
        assert history.place == shown


def test_the_oldest_places_are_forgotten() -> None:
    history = History(stop(0))
    for number in range(1, 3 * MOST):
        history.go(stop(number))
    seen = [history.place]
    while (place := history.back()) is not None:
        seen.append(place)
    assert seen == [stop(number) for number in range(3 * MOST - 1, 2 * MOST - 1, -1)]
    assert history.place == stop(2 * MOST)
    assert history.forward() == stop(2 * MOST + 1)


def test_the_limit_counts_what_lies_behind() -> None:
    history = History(stop(0))
    for number in range(1, MOST):
        history.go(stop(number))
    for _ in range(MOST - 1):
        history.back()
    assert history.place == stop(0)
    history.go(stop(7))
    assert history.forward() is None
    assert history.back() == stop(0)


def test_going_where_one_is_keeps_what_lies_ahead() -> None:
    history = History(stop(0))
    history.go(stop(1))
    history.back()
    history.go(stop(0))
    assert history.forward() == stop(1)


@pytest.mark.parametrize("detail", list(Detail))
def test_a_screen_of_a_pod_is_another_place_than_the_list_below_it(detail: Detail) -> None:
    pods = demo().pods
    below = Stop(View(Kind.PODS))
    first, second = Stop(below.view, detail, pods[0]), Stop(below.view, detail, pods[1])
    history = History(below)
    for place in (first, second, Stop(below.view, detail, demo().pods[1]), below):
        history.go(place)
    assert [history.back(), history.back(), history.back(), history.back()] == [second, first, below, None]

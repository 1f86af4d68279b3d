"""Finding pods by some letters of their names."""

from __future__ import annotations

from functools import cache

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.analysis.pod_table import PodRow, build_rows
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.screens.search import LONGEST_QUERY, fuzzy_matches
from tests.tui.sources import demo

LETTERS = st.text("abz-0/.", max_size=12)
NAMES = st.lists(st.text("abz-0.", min_size=1, max_size=12), max_size=30, unique=True)


@cache
def demo_rows() -> tuple[PodRow, ...]:
    return build_rows(demo(), Scope()).rows


def named(*names: str) -> list[PodRow]:
    """Rows of these names; every other word of them has every letter there is."""
    one = demo_rows()[0]
    rest = "abcdefghijklmnopqrstuvwxyz-0123456789/."
    every = msgspec.structs.replace(one, node=rest, namespace="n", container=rest)
    return [msgspec.structs.replace(every, name=name) for name in names]


def names_of(rows: list[PodRow]) -> list[str]:
    return [row.name for row in rows]


def whole_name(row: PodRow) -> str:
    return f"{row.namespace}/{row.name}"


def has_letters(word: str, name: str) -> bool:
    letters = iter(name)
    return all(letter in letters for letter in word)


def place(words: list[str], name: str) -> int:
    """Of three kinds of names: each word begins a part, each is in it, its letters are."""
    if not all(word in name for word in words):
        return 2
    for word in words:
        begins = [at for at in range(len(name)) if name.startswith(word, at)]
        if not any(at == 0 or not name[at - 1].isalnum() for at in begins):
            return 1
    return 0


ROWS = ("dxxb", "cart-db-1", "d-b", "xdb-0", "db-0")


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("db", ["cart-db-1", "db-0", "xdb-0", "d-b", "dxxb"]),
        ("DB", ["cart-db-1", "db-0", "xdb-0", "d-b", "dxxb"]),
        ("0 db", ["db-0", "xdb-0"]),
        ("bd", []),
        ("n/d", ["dxxb", "d-b", "db-0", "xdb-0", "cart-db-1"]),
        ("-", ["cart-db-1", "d-b", "xdb-0", "db-0"]),
        ("nb", ["db-0", "d-b", "xdb-0", "dxxb", "cart-db-1"]),
        ("", list(ROWS)),
        ("  ", list(ROWS)),
    ],
)
def test_what_is_found_and_in_which_order(query: str, names: list[str]) -> None:
    assert names_of(fuzzy_matches(query, named(*ROWS), 10)) == names


def test_a_part_that_begins_so_counts_wherever_in_the_name_it_is() -> None:
    assert names_of(fuzzy_matches("web", named("cobweb", "cobweb-web-0"), 2)) == ["cobweb-web-0", "cobweb"]


def test_the_best_is_found_among_however_many_that_only_have_the_letters() -> None:
    rows = named(
        *(f"d{number}b" for number in range(3000)), *(f"x{number}db" for number in range(300)), "db-0"
    )
    assert names_of(fuzzy_matches("db", rows, 2)) == ["db-0", "x0db"]


def test_among_equals_the_kill_order_decides() -> None:
    rows = fuzzy_matches("shop", demo_rows(), 100)
    assert rows == [row for row in demo_rows() if row.pod.namespace == "shop"]


def test_node_class_and_flags_are_not_looked_at() -> None:
    assert not fuzzy_matches("worker-2", [row for row in demo_rows() if row.node == "worker-2"], 100)
    assert not fuzzy_matches("besteffort", demo_rows(), 100)
    assert not fuzzy_matches("shop worker-2", demo_rows(), 100)


def test_every_pod_of_the_demo_is_found_first_by_its_own_name() -> None:
    for row in demo_rows():
        assert fuzzy_matches(whole_name(row), demo_rows(), 5)[0] is row


@given(LETTERS, NAMES)
def test_all_that_have_the_letters_are_found_those_that_hold_the_word_first(
    query: str, names: list[str]
) -> None:
    rows, words = named(*names), query.split()
    shown = fuzzy_matches(query, rows, 100)
    assert {row.name for row in shown} == {
        name for name in names if all(has_letters(word, f"n/{name}") for word in words)
    }
    if words:
        places = [place(words, f"n/{row.name}") for row in shown]
        assert places == sorted(places)


@given(LETTERS, NAMES, st.integers(1, 10))
def test_fewer_are_the_first_of_more(query: str, names: list[str], most: int) -> None:
    rows = named(*names)
    assert fuzzy_matches(query, rows, most) == fuzzy_matches(query, rows, 100)[:most]


@given(st.text(max_size=LONGEST_QUERY + 20))
def test_whatever_is_typed_is_only_letters(query: str) -> None:
    shown = fuzzy_matches(query, demo_rows(), 1000)
    words = query.casefold()[:LONGEST_QUERY].split()
    assert {whole_name(row) for row in shown} == {
        whole_name(row)
        for row in demo_rows()
        if all(has_letters(word, whole_name(row).casefold()) for word in words)
    }


@pytest.mark.parametrize("query", [*"^$.|?*+()[]{}\\-]^", "[^", "(?:", "a{2}", "\\d", "\\", ".*", "İ", "ß"])
def test_signs_of_expressions_mean_themselves(query: str) -> None:
    rows = named("plain", f"x{query.casefold()}y")
    expected = {"plain"} if has_letters(query.casefold(), "n/plain") else set()
    assert {row.name for row in fuzzy_matches(query, rows, 9)} == {*expected, f"x{query.casefold()}y"}


def test_a_name_that_repeats_itself_takes_no_longer_than_its_length_needs() -> None:
    assert not fuzzy_matches("a" * 60 + "z", named("a" * 250), 9)

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from datetime import timedelta
from itertools import chain
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kubectl_qos.analysis.group_table import namespace_rows, workload_rows
from kubectl_qos.analysis.pod_table import PodRow, build_rows
from kubectl_qos.analysis.trends import Trends
from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.output import ColumnType
from kubectl_qos.present.pod_columns import BY_KEY
from kubectl_qos.tui.filters import LONGEST_WORD, RowFilter, SafePattern, filter_completions, is_plain
from kubectl_qos.tui.lists.base import RowSelection
from kubectl_qos.tui.lists.pods import PodList
from kubectl_qos.tui.view_model import build_view_model
from kubectl_qos.tui.widgets.prompt import InputHistory
from kubectl_qos.tui.widgets.table import RowOrder
from tests.tui.sources import demo, with_usage


def kept(text: str) -> set[str]:
    found = RowFilter.parse(text)
    return {row.name for row in found.selected(ROWS, DEMO_TIME)}


def test_namespaces_and_workloads_are_filtered_by_name() -> None:
    shop = RowFilter.parse("shop")
    assert [row.name for row in shop.selected(namespace_rows(ROWS))] == ["shop"]
    assert {row.name.split("/")[0] for row in shop.selected(workload_rows(ROWS))} == {"shop"}


def those(condition: Callable[[PodRow], object]) -> set[str]:
    return {row.name for row in ROWS if condition(row)}


ROWS = build_rows(demo(), Scope()).rows


def test_nothing_typed_keeps_everything() -> None:
    assert len(kept("")) == len(kept("!")) == len(kept("-l")) == len(kept("  ")) == 60
    assert not RowFilter.parse("")
    assert not RowFilter.parse("-l ")


def test_text_finds_nodes_classes_and_flags_too() -> None:
    assert kept("control-1") == {row.name for row in ROWS if row.node == "control-1"}
    assert kept("besteffort") == {row.name for row in ROWS if row.qos.value == "BestEffort"}
    assert kept("near-limit") == {row.name for row in ROWS if "NEAR-LIMIT" in row.flags}


def test_labels_are_selected_as_kubectl_does() -> None:
    labels: dict[str, dict[str, str]] = {row.name: row.pod.metadata.labels or {} for row in ROWS}
    value = labels["api-7d9c5b6f8-x2mzq"]["app"]
    assert kept(f"-l app={value}") == {name for name, held in labels.items() if held.get("app") == value}
    assert kept(f"-l app!={value}") == {name for name, held in labels.items() if held.get("app") != value}


def test_a_selector_that_a_server_refuses_is_refused() -> None:
    with pytest.raises(InputError, match="unable to parse label selector"):
        RowFilter.parse("-l app in (")


def test_a_label_selector_comes_last_and_can_be_negated() -> None:
    assert kept("!1 -l app=db") == {"db-0", "db-2"}
    assert kept("!-l app=db") == kept("") - kept("-l app=db")
    assert kept("-lapp=db") == {"db-0", "db-1", "db-2"}
    assert kept("rt-cron-2 -lw") == {"report-cron-28934-lw4pz"}, "a name may have -l in it"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("db-", {"db-0", "db-1", "db-2"}),
        ("DB-0", {"db-0"}),
        ("data/db-0", {"db-0"}),
        ("class≠spec", set()),
        ("^db-\\d$", {"db-0", "db-1", "db-2"}),
        ("^DATA/db-[02]$", {"db-0", "db-2"}),
        ("cart-.*-9", {"cart-6c7fd9b5d-9qj4t"}),
        ("^(db|cache)-0$", {"db-0", "cache-0"}),
        ("^b-", set()),
        ("^(old-)?db-0$", {"db-0"}),
        ("^db-.$ !1$", {"db-0", "db-2"}),
        ("db- !db-1", {"db-0", "db-2"}),
        (
            "! db- data/",
            {"warehouse-0", "importer-5f7b9c-2vtxk", "cache-0", "queue-0", "migrate-2026-11-tq8zn"},
        ),
        ("!!db-", {"db-0", "db-1", "db-2"}),
    ],
)
def test_every_text_is_an_expression_in_any_case_and_all_have_to_hold(text: str, names: set[str]) -> None:
    assert kept(text) == names


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("node:worker-2", lambda row: row.node == "worker-2"),
        ("node:worker", lambda row: "worker" in row.node),
        ("node:=worker", lambda _: False),
        ("NODE:=Worker-2", lambda row: row.node == "worker-2"),
        ("!node:^worker", lambda row: not row.node.startswith("worker")),
        ("ns:shop", lambda row: row.pod.namespace == "shop"),
        ("pod:^db", lambda row: row.name.startswith("db")),
        ("qos:BestEffort", lambda row: row.qos.value == "BestEffort"),
        ("class:b", lambda row: row.qos.value != "Guaranteed"),
        ("flags:near", lambda row: "NEAR-LIMIT" in row.flags),
        ("!flags:near|over", lambda row: {"NEAR-LIMIT", "OVER-REQUEST"}.isdisjoint(row.flags)),
        ("risk:next", lambda row: row.rank == 1),
        ("risk:>=high", lambda row: row.rank == 1 or "NEAR-LIMIT" in row.flags),
        ("memory:>1Gi", lambda row: row.memory is not None and row.memory > 2**30),
        ("memory:<=100M", lambda row: row.memory is not None and row.memory <= 10**8),
        ("mem:=95Mi", lambda row: row.memory is not None and row.memory >> 20 == 95),
        ("limit:none", lambda row: row.limit is None),
        ("!limit:none", lambda row: row.limit is not None),
        ("%limit:>=80", lambda row: row.limit_percent is not None and row.limit_percent >= 80),
        ("%limit:94%", lambda row: row.limit_percent is not None and round(row.limit_percent) == 94),
        ("limit_percent:>94.2", lambda row: row.limit_percent is not None and row.limit_percent > 94.2),
        ("rank:1", lambda row: row.rank == 1),
        ("rank:none", lambda row: row.rank is None),
        ("oom_adj:<0", lambda row: row.adj is not None and row.adj < 0),
        ("adj:-997", lambda row: row.adj == -997),
        ("restarts:>0", lambda row: row.restarts > 0),
        ("priority:>=2G", lambda row: (row.pod.spec.priority or 0) >= 2 * 10**9),
        ("eviction:<2", lambda row: row.eviction_rank == 1),
        ("age:3d", lambda row: row.pod.metadata.creation_timestamp == "2026-11-17T12:00:00Z"),
        ("qos:burst restarts:>1 db", lambda _: False),
        ("qos:burst restarts:>1 !mem:<1Gi", lambda row: row.name == "api-7d9c5b6f8-x2mzq"),
        ("memory:", lambda _: True),
    ],
)
def test_columns_hold_values(text: str, condition: Callable[[PodRow], bool]) -> None:
    assert kept(text) == those(condition)


def test_ages_are_unknown_without_a_clock() -> None:
    young = those(lambda row: DEMO_TIME - (parse_time(born(row)) or DEMO_TIME) < timedelta(days=1, hours=12))
    assert kept("age:<1d12h") == young != set()
    assert not RowFilter.parse("age:>0s").selected(ROWS)


def born(row: PodRow) -> str | None:
    return row.pod.metadata.creation_timestamp


def test_every_column_has_a_kind_and_can_be_named() -> None:
    words = {
        column.key for column in BY_KEY.values() if column.type is ColumnType.WORDS and not column.choices
    }
    assert words == {"namespace", "pod", "container", "node", "limit_container", "dies"}
    for column in BY_KEY.values():
        assert RowFilter.parse(f"{column.header}:").text
        good = column.choices or (("1d",) if column.type is ColumnType.TIME else ("1",))
        for value in good:
            found = RowFilter.parse(f"{column.key}:{value}")
            assert len(found.selected(ROWS, DEMO_TIME)) <= len(ROWS)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nod:x", "unknown column 'nod'"),
        ("qos:good", "qos is never 'good'"),
        ("flags:=NEAR", "flags is never 'NEAR'"),
        ("risk:>some", "risk is never 'some'"),
        ("memory:1gi", "memory: '1gi' is not a number"),
        ("memory:>", "memory: a value must follow >"),
        ("memory:>none", "memory: 'none' is not a number"),
        ("memory:+", "memory: '+' is not a number"),
        ("rank:first", "rank: 'first' is not a number"),
        ("age:>2w", "age: '2w' is not a duration"),
        ("node:>a", "node holds words: > does not compare them"),
        ("node:[", "a ] is missing"),
        ("x" * 1001, "at most 1000 characters, this one 1001"),
    ],
)
def test_what_cannot_be_looked_for_is_said_in_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        RowFilter.parse(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a(", "a ) is missing"),
        ("a)", "there is no ( for this )"),
        ("[z-a]", "bad character range z-a"),
        ("a[", "a ] is missing"),
        ("*a", "nothing that * could repeat"),
        ("{2}", "nothing that { could repeat"),
        ("a**", "a repeat cannot be repeated"),
        ("a++", "a repeat cannot be repeated"),
        ("a{3,2}", "{3,2} is not a number of times"),
        ("a{999}", "{999} is not a number of times"),
        ("^*", "a position cannot be repeated"),
        ("a\\", "a character must follow the backslash"),
        ("(a)\\1", "\\1 is not supported"),
        ("(?=a)", "only ( ) and (?: ) are supported"),
        ("(a+)+$", "groups cannot be repeated"),
        (r"\w+\w+!", "two repeats that can take the same text"),
        ("a?a?a?aaa", "two repeats that can take the same text"),
        (r"\w+a\d+", "two repeats that can take the same text"),
        ("(a|b)" * 7, "too many alternatives"),
        ("a" * 100 + ".", "at most 100 characters, this one 101"),
    ],
)
def test_broken_and_unsafe_expressions_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        SafePattern.parse(text)


@pytest.mark.parametrize(
    "text",
    [r"-\d+-\d+$", "colou?r", "https?", "^[a-z0-9]+-[a-z0-9]+$", "(web|api)?-[[]", "a{2,3}b*", ".+x.+"],
)
def test_what_people_write_is_taken(text: str) -> None:
    SafePattern.parse(text)


ATOMS = st.sampled_from(
    ["a", "b", "-", ".", "[ab]", "[^a]", r"\w", r"\d", "1", "B", r"\-", "^", "$", r"\b", "(a|b-)", "(?:-|)"]
)
REPEATS = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,2}", "{1,}", "*?", "+?"])
EXPRESSIONS = st.lists(
    st.tuples(ATOMS, REPEATS).map("".join) | st.sampled_from([".*", ".+", "|"]), max_size=6
).map("".join)


@given(EXPRESSIONS, st.lists(st.text("abAB-1", max_size=12), min_size=1, max_size=8))
def test_an_expression_finds_what_re_finds(text: str, words: list[str]) -> None:
    try:
        pattern = SafePattern.parse(text)
    except InputError:
        return
    for word in words:
        assert pattern.found_in(word) is bool(re.search(text, word, re.IGNORECASE)), word


@given(st.text(max_size=12), st.text(max_size=12))
def test_any_text_is_read_or_refused_and_a_plain_one_means_itself(text: str, word: str) -> None:
    try:
        pattern = SafePattern.parse(text)
    except InputError:
        assert not is_plain(text)
        return
    if is_plain(text) and text.isascii() and word.isascii():
        assert pattern.found_in(word) is (text.casefold() in word.casefold())


@given(st.text(max_size=30))
def test_whatever_is_typed_is_a_filter_or_a_sentence(text: str) -> None:
    try:
        found = RowFilter.parse(text)
    except InputError:
        return
    for row in ROWS[:3]:
        assert list(found.selected([row], DEMO_TIME)) in ([], [row])


COMPARISONS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


@given(
    st.sampled_from(sorted(COMPARISONS)), st.sampled_from(ROWS), st.integers(-(2**20), 2**20), st.booleans()
)
def test_comparisons_are_exact(sign: str, pivot: PodRow, off: int, negated: bool) -> None:
    wanted = (pivot.memory or 0) + off % 3 - 1
    compare = COMPARISONS[sign]
    text = f"{'!' * negated}memory:{sign}{wanted}"
    assert kept(text) == those(
        lambda row: (row.memory is not None and compare(row.memory, wanted)) is not negated
    )


TERMS = st.sampled_from(
    ["db", "!web", "^c", "!-0$", "node:worker-1", "!qos:burst", "mem:>100Mi", "rank:<5", "flags:p"]
)


@given(st.lists(TERMS, max_size=4))
def test_terms_are_the_intersection_of_what_each_keeps(terms: list[str]) -> None:
    expected = kept("")
    for term in terms:
        expected &= kept(term)
    assert kept(" ".join(terms)) == expected


@pytest.mark.parametrize("text", [r"[\w-]+!", ".*a.*a.*a.*a.*a.*!", "(a|b|ab|.)?a*!", "a+b?!", "a{200}!"])
def test_no_expression_that_is_taken_is_slow_with_the_longest_words(text: str) -> None:
    """`re` gets short words, and pieces with at most one repeat without end."""
    searched: list[int] = []
    pattern = SafePattern.parse(text)
    for pieces in pattern.branches:
        for alternative in chain.from_iterable(piece.pattern.split("|") for piece in pieces):
            assert len(re.findall(r"[*+]", re.sub(r"\\.", "", alternative))) <= 1
    counting: Any = SimpleNamespace(search=lambda word, start: searched.append(len(word) - start))
    assert not SafePattern(((counting,),)).found_in("a" * 100_000)
    assert searched == [LONGEST_WORD]
    assert not pattern.found_in("a" * 100_000)
    assert not SafePattern.parse("b$").found_in("a" * LONGEST_WORD + "b"), "words are looked at up to there"


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("", None),
        ("zz", None),
        ("no", "node:"),
        ("db !no", "db !node:"),
        ("node:w", "node:worker-2"),
        ("x !node:=W", "x !node:=worker-2"),
        ("node:control-1", None),
        ("ns:sh", "ns:shop"),
        ("qos:g", "qos:Guaranteed"),
        ("flags:ov", "flags:OVER-REQUEST"),
        ("risk:", None),
        ("nod:w", None),
        ("memory:1", None),
        ("-l no", None),
    ],
)
def test_completion(text: str, full: str | None) -> None:
    found = filter_completions(text, build_view_model(demo(), Scope(), DEMO_TIME))
    assert next(iter(found), None) == full


def test_before_the_first_answer_only_fixed_words_are_completed() -> None:
    assert not filter_completions("node:w", None)
    assert filter_completions("qos:g", None) == ["qos:Guaranteed"]


def test_history_keeps_each_text_once_and_not_without_end() -> None:
    navigation = InputHistory()
    for text in ("a", "b", "a", " ", *(str(number) for number in range(97))):
        navigation.add(text)
    navigation.begin()
    text, seen = "", []
    while (earlier := navigation.earlier(text)) != text:
        text = earlier
        seen.append(text)
    assert seen == [*map(str, range(96, -1, -1)), "a", "b"]
    for number in range(500):
        navigation.add(f"more {number}")
    navigation.begin()
    assert navigation.earlier("") == "more 499"
    assert len(navigation.entered) == InputHistory.MOST


def test_an_edited_line_is_kept_on_the_way_through_history() -> None:
    navigation = InputHistory()
    navigation.add("one")
    navigation.add("two")
    navigation.begin()
    assert navigation.earlier("two") == "one", "what the line holds already is passed over"
    assert navigation.earlier("one-x") == "two"
    assert navigation.later("two") == "one-x"
    assert navigation.later("one-x") == "one-x"


def typed(text: str) -> RowFilter:
    """The filter of a text, or the one that lets everything through where it is none."""
    try:
        return RowFilter.parse(text)
    except InputError:
        return RowFilter()


NAMES = st.sampled_from(["d", "db", "db-0", "web", "!d", "!db", "!w", "^c", "!-0$"])
VALUES = st.sampled_from(["qos:b", "!qos:b", "mem:>1", "mem:>100Mi", "age:<9d", "flags:p", "-l app=db"])
FILTERS = st.lists(NAMES | VALUES, max_size=4).map(" ".join)


@given(FILTERS, FILTERS)
def test_a_filter_implies_another_only_if_that_lets_all_of_its_rows_through(text: str, other: str) -> None:
    one, two = typed(text), typed(other)
    if one.implies(two):
        assert set(map(id, one.selected(ROWS, DEMO_TIME))) <= set(map(id, two.selected(ROWS, DEMO_TIME)))
    longer = typed(f"db- {text}")
    if longer:
        assert longer.implies(one)


def test_a_longer_text_implies_a_shorter_one_and_without_a_text_it_is_the_other_way() -> None:
    assert typed("web-1").implies(typed("web"))
    assert typed("mem:>1Gi web").implies(typed("web mem:>1Gi"))
    assert typed("!we").implies(typed("!web"))
    for longer, shorter in (("!web", "!we"), ("web", "web-1"), ("^web-1", "^web"), ("mem:>1Gi", "!mem:>1Gi")):
        assert not typed(longer).implies(typed(shorter)), (longer, shorter)


CHANGED = build_view_model(with_usage(demo(), "db-0", 2**31), Scope(), DEMO_TIME).rows.rows
STEPS = st.one_of(FILTERS, st.sampled_from(["<facts>", "<time>", "<risk>", "memory", "pod", "rank"]))


@given(st.lists(STEPS, max_size=8))
@example(["age:<9d", "<time>", "<time>"])
@example(["db", "<risk>", "<risk>"])
def test_what_is_typed_letter_by_letter_shows_what_filtering_and_sorting_everything_shows(
    steps: list[str],
) -> None:
    order: RowOrder[PodRow] = RowOrder("rank", 0)
    pods, rows, taken, at_risk = PodList(Trends()), ROWS, DEMO_TIME, False
    text, key = "", "rank"
    for step in steps:
        texts = [text]
        if step == "<facts>":
            rows = CHANGED if rows is ROWS else ROWS
        elif step == "<time>":
            taken = DEMO_TIME + timedelta(days=9) if taken == DEMO_TIME else DEMO_TIME
        elif step == "<risk>":
            at_risk = not at_risk
        elif step in BY_KEY:
            key = step
            order.sort_by(BY_KEY[key], is_reversed=False)
        else:
            texts = [step[:length] for length in range(len(step) + 1)]
        for text in texts:
            narrowed = RowSelection(pods, typed(text), at_risk, taken)
            order.load(rows, narrowed)
            expected = sorted(narrowed.selected(rows), key=BY_KEY[key].sort_key)
            assert list(map(id, order.rows)) == list(map(id, expected)), text

"""Memory over time in blocks: bars in a cell, and columns of several lines below a ceiling."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.analysis.group_table import build_node_row
from kubectl_qos.tui.terminal import plain
from kubectl_qos.tui.widgets.graph import (
    BARS,
    Band,
    Parts,
    fullness_token,
    graph,
    node_graph,
    pod_graph,
    sparkline,
)
from tests.tui.sources import demo

AMOUNTS = st.integers(0, 1 << 43)
MIB = 1 << 10
"""In KiB, of which samples are."""


@pytest.mark.parametrize(
    ("samples", "ceiling", "bars"),
    [
        ([], None, ""),
        ([], 100, ""),
        ([0, 0], None, "▁▁"),
        ([0, 0], 100, "▁▁"),
        ([0, 50, 100], 100, "▁▅█"),
        ([0, 50, 100], 200, "▁▃▅"),
        ([0, 50, 100], None, "▁▅█"),
        ([1000, 1050, 1100], None, "▁▅█"),
        ([1000, 1000, 1000], None, "▁▁▁"),
        ([1000, 1002, 1000], None, "▁▁▁"),
        ([0, 50, 100], 0, "▁▅█"),
        ([50, 400], 100, "▂█"),
        ([1, 2, 3, 4, 5, 6, 7, 8, 8, 8], 8, "▄▅▆▇████"),
    ],
)
def test_bars_go_from_zero_to_the_limit_and_without_one_from_the_least_to_the_most(
    samples: list[int], ceiling: int | None, bars: str
) -> None:
    assert sparkline(array("Q", samples), ceiling, 8) == bars == sparkline(samples, ceiling, 8)


@given(st.lists(AMOUNTS, max_size=40), st.none() | AMOUNTS, st.integers(1, 40))
def test_a_bar_a_sample_and_a_higher_one_for_more(
    samples: list[int], ceiling: int | None, cells: int
) -> None:
    bars = sparkline(samples, ceiling, cells)
    shown = samples[-cells:]
    assert len(bars) == len(shown)
    heights = [BARS.index(bar) for bar in bars]
    for height, sample in zip(heights, shown, strict=False):
        assert all(height <= other for other, more in zip(heights, shown, strict=True) if more >= sample)


def text(lines: Sequence[Parts]) -> list[str]:
    return ["".join(part for part, _ in line) for line in lines]


def test_bands_are_stacked_and_a_cell_is_of_the_band_that_fills_most_of_it() -> None:
    bands = [Band([4, 4, 4], "█", "a"), Band([0, 5, 8], "▓", "b"), Band([0, 0, 4], "░", "c")]
    lines = graph(bands, (0, 16), (4, 5), (14, "ends"))
    assert text(lines) == ["┄┄░┄┄ ends", " ▂▓  ", " ▓▓  ", "███  "]
    assert lines[3][0] == ("███", "a")
    assert [part for part in lines[0] if part[0] == "░"] == [("░", "c")]


@given(st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=1, max_size=20), st.integers(1, 8), AMOUNTS)
def test_a_graph_has_its_size_whatever_the_values(
    samples: list[tuple[int, int]], height: int, highest: int
) -> None:
    bands = [Band([one[place] for one in samples], fill, fill) for place, fill in enumerate("█▓")]
    lines = text(graph(bands, (0, highest), (height, 24), (highest // 2, "")))
    assert [len(line.rstrip(" ").ljust(24)[:24]) for line in lines] == [24] * height


RISING = [MIB, 2 * MIB, 3 * MIB, 4000]


@pytest.mark.parametrize(
    ("kib", "limit", "drawn"),
    [
        (
            RISING,
            4 << 20,
            [f"4Mi ┄┄┄┄┄┄▇▇{'┄' * 56} limit", "        ████", "      ██████", "  0 ████████"],
        ),
        (RISING, None, ["3Mi       ██", "        ▆▆██", "      ▃▃████", "1Mi   ██████"]),
        ([4000] * 4, None, []),
        (RISING[:3], 4 << 20, []),
    ],
)
def test_memory_is_drawn_up_to_its_limit(kib: list[int], limit: int | None, drawn: list[str]) -> None:
    lines = [line.text.rstrip() for line in pod_graph(kib, limit, 80)]
    assert lines[: len(drawn)] == drawn
    assert bool(lines) == bool(drawn)
    assert not lines or lines[-1].strip() == "the last 4 samples, 1Mi to 3Mi"


def test_memory_that_differs_by_less_than_a_tenth_of_gi_is_in_mi() -> None:
    lines = [line.text for line in pod_graph([1236 << 10, 1240 << 10, 1250 << 10, 1270 << 10], None, 80)]
    assert lines[0].startswith("1270Mi")
    assert lines[-1].strip() == "the last 4 samples, 1236Mi to 1270Mi"


def test_each_column_has_the_colour_of_its_own_fullness() -> None:
    assert [fullness_token(used, 100) for used in (79, 80, 94, 95, 200)] == [
        *("calm", "warning", "warning", "error", "error")
    ]
    assert fullness_token(1 << 40, None) == "calm"
    lowest = pod_graph([50 * MIB, 85 * MIB, 97 * MIB, 20 * MIB], 100 << 20, 80)[3]
    assert [part for part in lowest.parts if part[0].strip("0 ")] == [
        *(("██", "calm"), ("██", "warning"), ("██", "error"), ("▆▆", "calm"))
    ]


def test_deaths_are_marked_below_the_first_sample_after_them() -> None:
    noon = datetime(2026, 11, 20, 12, tzinfo=UTC)
    times = [round(noon.timestamp()) + 15 * number for number in range(4)]
    deaths = [noon + timedelta(seconds=seconds) for seconds in (-60, 20, 50)]
    *_, marks, seen = [line.text for line in pod_graph(RISING, 4 << 20, 80, times, deaths)]
    assert marks == "        ✗   ✗", "one is older than the samples"
    assert seen.strip().endswith("1Mi to 3Mi; ✗ died 12:00:20, 12:00:50")
    assert "died" not in pod_graph(RISING, 4 << 20, 80, (), deaths)[-1].text, (
        "samples of a store have no times"
    )


def test_a_node_is_drawn_by_class_below_where_the_kubelet_evicts() -> None:
    row = build_node_row(demo(), "worker-2")
    classes = [(5000 * MIB, (3000 + 1000 * number) * MIB, 1400 * MIB) for number in range(6)]
    lines = text(node_graph(row, classes, 4, 80))
    assert [line.rstrip() for line in lines] == [
        f"16Gi ┄┄┄┄▂▄{'┄' * 26} kubelet evicts",
        "     ▂▄▆▓▓▓",
        "     ▓▓▓▓▓▓",
        "   0 ██████",
    ]
    assert not node_graph(row, classes, 4, 40), "too narrow"
    assert not node_graph(row, (), 4, 80)
    assert [plain(line).isascii() for line in lines] == [True] * 4


def test_what_is_simulated_follows_now_and_kills_are_marked() -> None:
    row = build_node_row(demo(), "worker-2")
    classes = [(5000 * MIB, (3000 + 1000 * number) * MIB, 1400 * MIB) for number in range(6)]
    later = [(15000 * MIB, False), (9000 * MIB, True), (6000 * MIB, True)]
    lines = text(node_graph(row, classes, 4, 80, later))
    assert [line.rstrip() for line in lines] == [
        f"16Gi ┄┄┄┄▂▄▅{'┄' * 53} kubelet evicts",
        "     ▂▄▆▓▓▓▒▁",
        "     ▓▓▓▓▓▓▒▒▃",
        "   0 ██████▒▒▒",
        "        now ✗✗",
    ]
    assert plain(lines[3]).rstrip() == "   0 ######:::", "and not as the ceiling, which is -"
    wide = text(node_graph(row, classes, 4, 150, later))
    assert wide[3].rstrip() == "   0 ████████████▒▒▒▒▒▒", "a sample is as wide as without kills"
    assert wide[4].rstrip() == "              now  ✗ ✗"
    many = text(node_graph(row, classes * 9, 4, 80, later * 99))
    assert {len(line.removesuffix(" kubelet evicts")) for line in many} == {65}, (
        "what has no room is left out"
    )
    assert text(node_graph(row, classes[:1], 4, 80, later))[3].rstrip() == "   0 █▒▒▒", "one sample is enough"

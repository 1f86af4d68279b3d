"""Recorded reports, cut and wrapped and mixed: what is said of them is said of the whole ones, or unknown.

`python -m tests.host.broken_reports MINUTES` looks for longer.
"""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kubectl_qos.host.kernel_log import read_log
from kubectl_qos.qos.kills.choice import VictimChoice, explain_choice
from tests.host.broken_reports import (
    NOW,
    broken,
    hard_wrapped,
    known_claims,
    recorded_logs,
    word_wrapped,
    wrapped_with_indent,
    wrong_claims,
)
from tests.host.kernel_logs import RUNS


@given(st.integers(0, 1 << 32))
@example(7529)
@example(92595)
@example(101136)
@example(4895466)
@example(140_001_835)
@example(160_007_957)
def test_nothing_wrong_is_said_of_a_broken_log(seed: int) -> None:
    lines = broken(Random(seed))
    assert not list(wrong_claims(read_log(lines, NOW))), "\n".join(lines)


@pytest.mark.parametrize("wrapped", [hard_wrapped, word_wrapped, wrapped_with_indent])
def test_no_width_at_which_lines_are_broken_hides_a_victim(wrapped: Callable[..., list[str]]) -> None:
    for lines in recorded_logs()[len(RUNS) + 2 :]:
        pids = {report.victim.pid for report in read_log(lines).reports if report.victim is not None}
        # Half of the logs of nodes have prefixes of this length.
        named = [
            line.replace("[", "Oct 12 19:00:20 aks-nodepool1-24207654-vmss000001 kernel: [", 1)
            for line in lines
        ]
        for width in range(60, 200, 13):
            broken_lines = wrapped(list(named if width % 2 else lines), Random(width), width)
            log = read_log(broken_lines, NOW)
            assert not list(wrong_claims(log)), (width, lines[0])
            assert {report.victim.pid for report in log.reports if report.victim is not None} == pids, width


def test_the_victim_follows_from_every_whole_table() -> None:
    reports = [report for lines in recorded_logs() for report in read_log(lines, NOW).reports if report.tasks]
    choices = [explain_choice(report) for report in reports]
    assert len(choices) == len(known_claims()) - 1 > 50
    for report, choice in zip(reports, choices, strict=True):
        assert isinstance(choice, VictimChoice)
        assert report.is_table_whole
        assert choice.chosen.place == 1
        equal = {"4.19.0-27-amd64": 1, "5.4.0-42.el7.x86_64": 5}
        assert len(choice.tied) == equal.get(report.kernel, 0)

"""Recorded reports, cut and wrapped and mixed: what is said of them is said of the whole ones, or unknown.

`python -m tests.host.broken_reports MINUTES` looks for longer.
"""

from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubectl_qos.host.kernel_log import read_log
from kubectl_qos.qos.kills.report import VictimChoice, explain_choice
from tests.host.broken_reports import NOW, broken, known_claims, recorded_logs, wrong_claims


@given(st.integers(0, 1 << 32))
@example(4895466)
@settings(max_examples=150, deadline=None)
def test_nothing_wrong_is_said_of_a_broken_log(seed: int) -> None:
    lines = broken(Random(seed))
    assert not list(wrong_claims(lines)), "\n".join(lines)


def test_the_victim_follows_from_every_whole_table() -> None:
    reports = [report for lines in recorded_logs() for report in read_log(lines, NOW).reports]
    choices = [explain_choice(report) for report in reports]
    assert len(choices) == len(known_claims()) > 50
    for report, choice in zip(reports, choices, strict=True):
        assert isinstance(choice, VictimChoice)
        assert report.is_table_whole
        assert choice.chosen.place == 1
        assert len(choice.tied) == (report.kernel == "4.19.0-27-amd64"), "it has two equal ones"

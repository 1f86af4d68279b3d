import pytest

from kubectl_qos.analysis.pod_facts import MOST_SCORE, score_parts
from kubectl_qos.analysis.pod_table import PodRow, build_rows
from kubectl_qos.k8s.snapshot import Scope
from tests.tui.sources import demo

DEMO = demo()
ROWS = [row for row in build_rows(DEMO, Scope()).rows if row.score is not None]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_parts_are_the_score(row: PodRow) -> None:
    parts = score_parts(row, DEMO)
    if parts is None:
        assert row.memory is None
        return
    assert parts.base + parts.adj + parts.usage == parts.score == row.score
    assert parts.score <= MOST_SCORE

from __future__ import annotations

import pytest

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.rows import PodRow, rows_of
from kubectl_qos.tui.filters import RowFilter
from tests.tui.sources import demo


def kept(text: str) -> set[str]:
    return {row.name for row in all_rows() if RowFilter.parse(text).matches(row)}


def all_rows() -> tuple[PodRow, ...]:
    return rows_of(demo(), Scope()).rows


def test_nothing_typed_keeps_everything() -> None:
    assert len(kept("")) == len(kept("!")) == len(kept("-l")) == len(kept("  ")) == 60
    assert not RowFilter.parse("")
    assert not RowFilter.parse("-l ")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("db-", {"db-0", "db-1", "db-2"}),
        ("DB-0", {"db-0"}),
        ("data/db-0", {"db-0"}),
        ("class≠spec", set()),
    ],
)
def test_text_is_looked_for_in_names_whatever_the_case(text: str, names: set[str]) -> None:
    assert kept(text) == names


def test_text_finds_nodes_classes_and_flags_too() -> None:
    rows = all_rows()
    assert kept("control-1") == {row.name for row in rows if row.node == "control-1"}
    assert kept("besteffort") == {row.name for row in rows if row.qos.value == "BestEffort"}
    assert kept("near-limit") == {row.name for row in rows if "NEAR-LIMIT" in row.flags}


def test_an_exclamation_mark_turns_it_round() -> None:
    assert kept("!db-") == {row.name for row in all_rows()} - kept("db-")


def test_labels_are_selected_as_kubectl_does() -> None:
    labels: dict[str, dict[str, str]] = {row.name: row.pod.metadata.labels or {} for row in all_rows()}
    value = labels["api-7d9c5b6f8-x2mzq"]["app"]
    assert kept(f"-l app={value}") == {name for name, held in labels.items() if held.get("app") == value}
    assert kept(f"-l app!={value}") == {name for name, held in labels.items() if held.get("app") != value}


def test_a_selector_that_a_server_refuses_is_refused() -> None:
    with pytest.raises(InputError, match="unable to parse label selector"):
        RowFilter.parse("-l app in (")

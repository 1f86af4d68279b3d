"""Data for other programs: what a cell of CSV may begin with; and tables in narrow terminals."""

import csv
import json
from collections.abc import Iterator
from typing import Any

import pytest

from kubectl_qos.present.output import (
    NUMBER,
    Column,
    column,
    fit_columns,
    fitted_table,
    json_parts,
    table,
    to_csv,
)
from kubectl_qos.present.values import API_VERSION, streamed_document


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1Gi", "'+1Gi"),
        ("-rf", "'-rf"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\uff1d1", "'\uff1d1"),
        ("\t=1", "\\t=1"),
        ("\r=1", "\\r=1"),
        ("\n=1", "\\n=1"),
        (["=a", "b"], "'=a b"),
        ("web-0", "web-0"),
        (-998, "-998"),
        (-0.5, "-0.5"),
        (None, ""),
    ],
)
def test_a_cell_is_no_formula(value: object, cell: str) -> None:
    text = to_csv([value], [column("name", lambda row: row)])
    assert list(csv.reader(text.splitlines())) == [["name"], [cell] if cell else []] or cell == ""
    assert text.splitlines()[1].strip('"') == cell


PODS = [("shop/api-7d9c5b6f8-x2mzq", 1, "limits.memory 64Mi to 96Mi"), ("db-0", 22, "")]
COLUMNS: list[Column[tuple[str, int, str]]] = [
    column("pod", lambda row: row[0]),
    column("rank", lambda row: row[1], "", NUMBER),
    column("change", lambda row: row[2], cell=lambda row: row[2]),
]


@pytest.mark.parametrize(
    ("width", "first"),
    [
        (80, "shop/api-7d9c5b6f8-x2mzq    1   limits.memory 64Mi to 96Mi"),
        (57, "shop/api-7d9c5b6f8-x2mzq   limits.memory 64Mi to 96Mi"),
        (50, "shop/api-7d9c5b6f8-x2mzq   limits.memory 64Mi to …"),
        (30, "shop/api-…6f8-x2mzq   limits.…"),
    ],
)
def test_a_table_fits_into_a_terminal(width: int, first: str) -> None:
    shown = fit_columns(PODS, COLUMNS, ["rank"], width)
    lines = list(table(PODS, shown, headers=False))
    assert lines[0] == first
    assert max(map(len, lines)) <= width


def test_a_table_names_the_columns_that_it_hides() -> None:
    notes = [line for line in fitted_table(PODS, COLUMNS, 57, (), ["rank"]) if "hidden" in line]
    assert notes == ["hidden at 57 columns: RANK; -o wide shows them"]
    assert not [line for line in fitted_table(PODS, COLUMNS, 80, (), ["rank"]) if "hidden" in line]


def test_what_matters_moves_below_its_row_rather_than_being_cut() -> None:
    assert list(fitted_table(PODS, COLUMNS, 30, ["change"], ["rank"])) == [
        "POD",
        "shop/api-7d9c5b6f8-x2mzq",
        "    limits.memory 64Mi to 96Mi",
        "db-0",
        "hidden at 30 columns: RANK; -o",
        "  wide shows them",
    ]
    assert list(fitted_table(PODS, COLUMNS, None, ["change"], ["rank"])) == list(table(PODS, COLUMNS))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_json_of_a_large_cluster_is_written_while_its_items_are_made(count: int) -> None:
    made = []

    def pods() -> Iterator[dict[str, Any]]:
        for number in range(count):
            made.append(number)
            yield {"pod": f"p{number}\u2066", "flags": ["a", "b"], "none": []}

    notes = ["one\ntwo"]
    parts, text = json_parts(streamed_document({"kind": "PodList", "items": pods(), "notes": notes})), ""
    while '"p0' not in text and count:
        text += next(parts)
    assert made == [*range(min(count, 1))]
    text += "".join(parts)
    whole = {"apiVersion": API_VERSION, "kind": "PodList", "items": [*pods()], "notes": notes}
    plain = json.dumps(whole, indent=4, ensure_ascii=False).replace("\u2066", "\\u2066")
    assert text == "".join(json_parts(whole)) == f"{plain}\n"

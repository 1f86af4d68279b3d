"""Data for other programs: what a cell of CSV may begin with."""

import csv

import pytest

from kubectl_qos.present.output import column, to_csv


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

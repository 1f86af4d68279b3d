from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.pod_columns import BY_KEY
from kubectl_qos.present.pod_rows import build_rows
from kubectl_qos.tui.lists.base import export_rows
from kubectl_qos.tui.screens.dialogs import parse_path, save
from kubectl_qos.tui.view import ListKind
from tests.tui.sources import demo

KEYS = ("rank", "namespace", "pod", "memory")


def test_a_new_file_is_written(tmp_path: Path) -> None:
    save(tmp_path / "a.yaml", "a: 1\n")
    assert (tmp_path / "a.yaml").read_bytes() == b"a: 1\n"


def test_a_file_that_is_there_is_kept_unless_it_is_said_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("old")
    with pytest.raises(FileExistsError):
        save(path, "new")
    assert path.read_text() == "old"
    save(path, "new", overwrite=True)
    assert path.read_text() == "new"


@pytest.mark.parametrize("name", ["missing/a.yaml", ".", "nul\0byte"])
def test_what_cannot_be_written_is_named_with_the_reason(tmp_path: Path, name: str) -> None:
    with pytest.raises((InputError, FileExistsError)) as caught:
        save(tmp_path / name, "x", overwrite=True)
    assert isinstance(caught.value, InputError)
    assert str(tmp_path) in str(caught.value)


def test_names_are_made_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert parse_path(" a.yaml ") == tmp_path / "a.yaml"
    assert parse_path("~/a.yaml") == tmp_path / "home" / "a.yaml"
    assert parse_path("/x/a.yaml") == Path("/x/a.yaml")
    with pytest.raises(InputError, match="a file name is needed"):
        parse_path("  ")


def test_the_extension_chooses_the_format() -> None:
    rows = build_rows(demo(), Scope(node="worker-2"))

    def text_of(name: str) -> str:
        shown = [BY_KEY[key] for key in KEYS]
        return export_rows(
            Path(name), kind=ListKind.PODS, rows=rows.rows, columns=shown, notes=[], now=DEMO_TIME
        )

    assert text_of("a.csv").splitlines()[0] == "rank,namespace,pod,memory"
    assert text_of("a.txt").splitlines()[1].split() == ["1", "shop", "api-7d9c5b6f8-x2mzq", "1930Mi"]
    for text in (text_of("a.json"), text_of("a.yml")):
        items = yaml.safe_load(text)["items"]
        assert [item["pod"] for item in items] == [row.name for row in rows.rows]
        assert items[0]["memory"] == rows.rows[0].memory
    assert json.loads(text_of("a.json"))["kind"] == "PodRanking"
    with pytest.raises(InputError, match="the extension chooses the format"):
        text_of("a.doc")

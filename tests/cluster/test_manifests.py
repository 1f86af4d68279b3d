"""Manifest files changed in place: which object, how the file is replaced, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from kubectl_qos.cluster.files import FileSource
from kubectl_qos.cluster.yaml_patch import write
from kubectl_qos.edit.edits import Edit, Side
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.snapshot import Scope

POD = """\
kind: Pod
metadata: {name: NAME, namespace: shop}
spec:
  containers:
  - name: a  # é
    resources: {limits: {memory: 1Gi}}
"""
MORE = [Edit("a", Side.LIMITS, "memory", Quantity.parse("2Gi"))]


def changed(path: Path, name: str = "web", edits: list[Edit] | None = None) -> str:
    source = FileSource([str(path)])
    pod = next(one for one in source.snapshot(Scope()).pods if one.name == name)
    return write(source, pod, MORE if edits is None else edits)


def test_of_several_documents_only_one_is_touched(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    text = "# é\n---\n".join(["", *(POD.replace("NAME", name) for name in ("db", "web", "last"))]) + "...\n"
    path.write_text(text)
    assert changed(path) == str(path)
    parts = text.split("---\n")
    parts[2] = parts[2].replace("1Gi", "2Gi")
    assert path.read_text() == "---\n".join(parts)


def test_of_several_files_only_one_is_touched(tmp_path: Path) -> None:
    for name in ("db", "web"):
        (tmp_path / f"{name}.yaml").write_text(POD.replace("NAME", name))
    before = (tmp_path / "db.yaml").stat()
    assert changed(tmp_path) == str(tmp_path / "web.yaml")
    assert (tmp_path / "db.yaml").stat() == before
    assert (tmp_path / "web.yaml").read_text() == POD.replace("NAME", "web").replace("1Gi", "2Gi")


@pytest.mark.parametrize("kind", ["List", "PodList"])
@pytest.mark.parametrize("is_json", [True, False])
def test_of_a_list_only_one_item_is_touched(tmp_path: Path, kind: str, *, is_json: bool) -> None:
    items = [yaml.safe_load(POD.replace("NAME", name)) for name in ("db", "web", "last")]
    if kind == "PodList":
        for item in items:
            del item["kind"]
    value = {"kind": kind, "items": items}
    path = tmp_path / "x"
    path.write_text(json.dumps(value, indent=2) if is_json else yaml.safe_dump(value))
    before = path.read_text().splitlines()
    changed(path)
    items[1]["spec"]["containers"][0]["resources"] = {"limits": {"memory": "2Gi"}}
    assert yaml.safe_load(path.read_text()) == value
    after = path.read_text().splitlines()
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 1


def test_two_json_texts_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    texts = [
        json.dumps(yaml.safe_load(POD.replace("NAME", name)), ensure_ascii=False) for name in ("é", "web")
    ]
    path.write_text("\n".join(texts))
    changed(path)
    assert path.read_text() == "\n".join([texts[0], texts[1].replace("1Gi", "2Gi")])


def test_the_byte_order_mark_and_the_ends_of_lines_stay(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    content = b"\xef\xbb\xbf" + POD.replace("NAME", "web").replace("\n", "\r\n").encode()
    path.write_bytes(content)
    changed(path)
    assert path.read_bytes() == content.replace(b"1Gi", b"2Gi")


def test_a_deployment_is_changed_in_its_template(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    text = (
        "kind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers:\n"
        "        - name: a\n          resources:\n            limits:\n              memory: 1Gi\n"
    )
    path.write_text(text)
    changed(path)
    assert path.read_text() == text.replace("1Gi", "2Gi")


def test_mode_and_link_stay_and_nothing_else_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "real"
    folder.mkdir()
    real = folder / "x.yaml"
    real.write_text(POD.replace("NAME", "web"))
    real.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to(real)
    assert changed(link) == str(link)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "2Gi" in real.read_text()
    assert [one.name for one in folder.iterdir()] == ["x.yaml"]


def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(POD.replace("NAME", "web"))
    path.chmod(0o444)
    with pytest.raises(InputError, match="the file is read-only"):
        changed(path)
    assert "1Gi" in path.read_text()


def test_a_write_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(POD.replace("NAME", "web"))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"x\.yaml: cannot be written: No space left on device"):
        changed(path)
    assert path.read_text() == POD.replace("NAME", "web")
    assert [one.name for one in tmp_path.iterdir() if "x.yaml" in one.name] == ["x.yaml"]


def test_an_object_that_went_away_or_came_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(POD.replace("NAME", "web"))
    source = FileSource([str(path)])
    (pod,) = source.snapshot(Scope()).pods
    path.write_text(POD.replace("NAME", "other"))
    with pytest.raises(InputError, match="pod/web is no longer there"):
        write(source, pod, MORE)
    path.write_text("---\n".join([POD.replace("NAME", "web")] * 2))
    with pytest.raises(InputError, match="pod/web is there 2 times"):
        write(source, pod, MORE)


def test_a_broken_document_beside_it_is_passed_by(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    broken = "kind: Pod\nmetadata: x\n---\nkind: [\n---\n"
    path.write_text(broken + POD.replace("NAME", "web"))
    changed(path)
    assert path.read_text() == broken + POD.replace("NAME", "web").replace("1Gi", "2Gi")


def test_what_cannot_be_changed_in_place_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    text = POD.replace("NAME", "web").replace("{memory: 1Gi}", "{<<: {memory: 1Gi, cpu: 1}}")
    path.write_text(text)
    with pytest.raises(InputError, match="cannot be changed in place") as caught:
        changed(path, edits=[Edit("a", Side.LIMITS, "memory", None)])
    assert caught.value.hint
    assert path.read_text() == text

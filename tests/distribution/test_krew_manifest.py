"""The krew manifest, as committed and as a release renders it, obeys every rule of krew and of its index."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from release.krew_manifest import (
    TEMPLATE,
    UNRELEASED,
    UNRELEASED_NOTE,
    Unrendered,
    archives_of,
    main,
    read_digests,
    render,
    without_missing,
)

ROOT = Path(__file__).parents[2]
COMMITTED = (ROOT / "krew-manifest.yaml").read_text(encoding="utf-8")
TEXT = TEMPLATE.read_text(encoding="utf-8")
ARCHIVES = archives_of(TEXT)
DIGESTS = {name: f"{number:064x}" for number, name in enumerate(ARCHIVES, start=0xABC)}
RULES = Draft202012Validator(
    yaml.safe_load(Path(__file__).with_name("krew_manifest.yaml").read_text(encoding="utf-8"))
)


@pytest.mark.parametrize("text", [COMMITTED, render(TEXT, "v12.3.4", DIGESTS)], ids=["committed", "rendered"])
def test_a_manifest_obeys_every_rule(text: str) -> None:
    manifest = yaml.safe_load(text)
    RULES.validate(manifest)
    for platform in manifest["spec"]["platforms"]:
        labels = platform["selector"]["matchLabels"]
        archive = f"/{manifest['spec']['version']}/kubectl-qos_{labels['os']}_{labels['arch']}.tar.gz"
        assert platform["uri"].endswith(archive)
        assert platform["bin"].endswith(".exe") == (labels["os"] == "windows")


def test_what_is_committed_is_what_the_template_gives() -> None:
    manifest = yaml.safe_load(COMMITTED)
    digests = {Path(each["uri"]).name: each["sha256"] for each in manifest["spec"]["platforms"]}
    unreleased = set(digests.values()) == {UNRELEASED}
    rendered = render(TEXT, manifest["spec"]["version"], digests)
    assert (UNRELEASED_NOTE if unreleased else "") + rendered == COMMITTED


def test_every_platform_that_is_built_is_offered_once() -> None:
    platforms = yaml.safe_load(COMMITTED)["spec"]["platforms"]
    assert sorted(Path(each["uri"]).name for each in platforms) == sorted({*ARCHIVES})


def put(folder: Path, digests: dict[str, str]) -> None:
    for name, digest in digests.items():
        (folder / f"{name}.sha256").write_text(f"{digest}  {name}\n")


def test_it_is_rendered_from_a_folder_of_digests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, DIGESTS)
    assert main(["v0.2.0-rc.1", str(tmp_path)]) == 0
    assert capsys.readouterr() == (render(TEXT, "v0.2.0-rc.1", DIGESTS), "")


def test_a_platform_without_an_archive_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, {name: digest for name, digest in DIGESTS.items() if "arm64" not in name})
    assert main(["v0.2.0", str(tmp_path)]) == 1
    missing = "kubectl-qos_linux_arm64.tar.gz, kubectl-qos_darwin_arm64.tar.gz"
    remedy = "build them, or leave them out by --only-present"
    assert capsys.readouterr() == ("", f"error: no digest of {missing}: {remedy}\n")
    assert main(["v0.2.0", str(tmp_path), "--only-present"]) == 0
    text = capsys.readouterr().out
    assert [platform["uri"].rpartition("_")[2] for platform in yaml.safe_load(text)["spec"]["platforms"]] == [
        "amd64.tar.gz"
    ] * 3
    RULES.validate(yaml.safe_load(text))


def test_no_archive_at_all_is_said(tmp_path: Path) -> None:
    with pytest.raises(Unrendered, match="build one by make binary"):
        without_missing(TEXT, {})


@pytest.mark.parametrize(
    "line", ["A" * 64 + "  x.tar.gz\n", "a" * 64 + "  y.tar.gz\n", "", "a" * 63 + "  x.tar.gz\n"]
)
def test_what_is_no_line_of_sha256sum_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "x.tar.gz.sha256").write_text(line)
    with pytest.raises(Unrendered, match=r"x\.tar\.gz\.sha256: want one line"):
        read_digests(tmp_path)


def test_digests_are_read_as_sha256sum_writes_them(tmp_path: Path) -> None:
    shutil.copy(ROOT / "LICENSE", tmp_path / "x.tar.gz")
    (tmp_path / "x.tar.gz.sha256").write_text("a" * 64 + " *x.tar.gz\n")
    assert read_digests(tmp_path) == {"x.tar.gz": "a" * 64}

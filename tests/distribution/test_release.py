"""The steps of a release refuse what must not be released, with one sentence each."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from release import notes, sbom, tag
from tests.distribution.tools import needs_git

CHANGELOG = """\
# Changelog

## 0.3.0 (not released yet)

## 0.2.0 (2026-02-01)

- Second.

### Fixed

- A [thing](docs/thing.md), as [elsewhere](https://example.com).

## 0.1.0

First version.
"""


def test_the_notes_are_the_section_of_the_version() -> None:
    assert notes.notes(CHANGELOG, "v0.1.0") == notes.notes(CHANGELOG, "v0.1.0-rc.1") == "First version.\n"
    link = "https://github.com/kubectl-qos/kubectl-qos/blob/v0.2.0/docs/thing.md"
    fixed = f"- A [thing]({link}), as [elsewhere](https://example.com)."
    assert notes.notes(CHANGELOG, "v0.2.0") == f"- Second.\n\n### Fixed\n\n{fixed}\n"


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("v0.3.0", 'the section "## 0.3.0" is empty: say what changed'),
        ("v0.2", 'has no section "## 0.2": add it above the others'),
    ],
)
def test_a_version_without_notes_is_refused(version: str, said: str) -> None:
    with pytest.raises(notes.NoNotes, match=said):
        notes.notes(CHANGELOG, version)


def test_the_changelog_of_today_has_notes(capsys: pytest.CaptureFixture[str]) -> None:
    (newest, *_) = notes.CHANGELOG.read_text(encoding="utf-8").split("\n## ")[1:]
    assert notes.main([f"v{newest.split()[0]}"]) == 0
    assert capsys.readouterr().out.strip()
    assert notes.main(["v99.0.0"]) == 1
    assert capsys.readouterr().err.startswith("error: CHANGELOG.md has no section")


@pytest.mark.parametrize(
    ("name", "prerelease"),
    [("v0.1.0", False), ("v10.20.30", False), ("v1.0.0-rc.1", True), ("v1.0.0-alpha.12", True)],
)
def test_a_tag_is_a_semantic_version(name: str, prerelease: bool) -> None:
    assert tag.is_prerelease(name) is prerelease


@pytest.mark.parametrize(
    "name", ["0.1.0", "v0.1", "v1.02.3", "v1.0.0rc1", "v1.0.0-rc", "v1.0.0-x.1", "v1.0.0+5", "v1.0.0 "]
)
def test_another_tag_is_refused(name: str) -> None:
    with pytest.raises(tag.Refused, match=r"is not of the form v1\.2\.3 or v1\.2\.3-rc\.1"):
        tag.is_prerelease(name)


@pytest.mark.parametrize("version", ["0.1.0", "1.0.0rc1"])
def test_the_wheel_is_of_the_tag(version: str) -> None:
    name = {"0.1.0": "v0.1.0", "1.0.0rc1": "v1.0.0-rc.1"}[version]
    tag.check_wheel(name, Path(f"kubectl_qos-{version}-py3-none-any.whl"))
    with pytest.raises(tag.Refused, match="was it built from the clean tag"):
        tag.check_wheel(name, Path(f"kubectl_qos-{version}.dev1-py3-none-any.whl"))


@needs_git
def test_the_tag_is_on_main(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "someone")
    monkeypatch.chdir(tmp_path)
    for command in (
        "init --quiet --initial-branch=main",
        "commit --quiet --allow-empty --message=first",
        "update-ref refs/remotes/origin/main HEAD",
        "tag v0.1.0",
        "commit --quiet --allow-empty --message=second",
        "tag v0.2.0-rc.1",
    ):
        subprocess.run(["git", *command.split()], check=True)
    assert tag.main(["v0.1.0"]) == 0
    assert capsys.readouterr().out == "prerelease=false\n"
    assert tag.main(["v0.2.0-rc.1"]) == 1
    assert "is not on origin/main: merge first" in capsys.readouterr().err


def test_a_bill_has_what_is_in_the_binary_and_python() -> None:
    bill = {
        "metadata": {"component": {"bom-ref": "root", "name": "kubectl-qos"}},
        "components": [
            {"bom-ref": f"{name}==1", "name": name} for name in ("kubectl-qos", "PyYAML", "pytest", "msgspec")
        ],
        "dependencies": [
            {"ref": "root", "dependsOn": ["PyYAML==1", "pytest==1"]},
            {"ref": "pytest==1", "dependsOn": ["msgspec==1"]},
            {"ref": "msgspec==1"},
        ],
    }
    packages = sbom.packages_of({"yaml", "msgspec", "kubectl_qos", "_struct"})
    assert {"pyyaml", "msgspec"} <= packages
    assert "pytest" not in packages
    kept = sbom.only(bill, packages)
    assert [part["name"] for part in kept["components"]] == ["PyYAML", "msgspec", "python", "openssl"]
    assert kept["dependencies"] == [
        {"ref": "root", "dependsOn": ["PyYAML==1"]},
        {"ref": "msgspec==1", "dependsOn": []},
    ]
    assert kept["metadata"]["component"]["version"]

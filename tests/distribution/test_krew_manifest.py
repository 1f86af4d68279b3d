"""The krew manifest, as committed and as a release renders it, obeys every rule of krew and of its index."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

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
from tests.distribution.krew_rules import ALL_PLATFORMS, refusals, selects

Manifest = dict[str, Any]
ROOT = Path(__file__).parents[2]
COMMITTED = (ROOT / "krew-manifest.yaml").read_text(encoding="utf-8")
TEXT = TEMPLATE.read_text(encoding="utf-8")
ARCHIVES = archives_of(TEXT)
DIGESTS = {name: f"{number:064x}" for number, name in enumerate(ARCHIVES, start=0xABC)}


@pytest.mark.parametrize("text", [COMMITTED, render(TEXT, "v12.3.4", DIGESTS)], ids=["committed", "rendered"])
def test_a_manifest_obeys_every_rule(text: str) -> None:
    assert refusals("qos.yaml", text) == []


def test_what_is_committed_is_what_the_template_gives() -> None:
    manifest = yaml.safe_load(COMMITTED)
    digests = {Path(each["uri"]).name: each["sha256"] for each in manifest["spec"]["platforms"]}
    unreleased = set(digests.values()) == {UNRELEASED}
    rendered = render(TEXT, manifest["spec"]["version"], digests)
    assert (UNRELEASED_NOTE if unreleased else "") + rendered == COMMITTED


def test_every_platform_that_is_built_is_offered_once() -> None:
    platforms = yaml.safe_load(COMMITTED)["spec"]["platforms"]
    built = [pair for pair in ALL_PLATFORMS for platform in platforms if selects(platform["selector"], pair)]
    assert sorted(f"kubectl-qos_{system}_{arch}.tar.gz" for system, arch in built) == sorted(ARCHIVES)
    assert sorted(built) == sorted({*built})
    assert all(
        f"_{platform['selector']['matchLabels']['os']}_{platform['selector']['matchLabels']['arch']}."
        in platform["uri"]
        for platform in platforms
    )


def first(manifest: Manifest) -> Manifest:
    platform: Manifest = manifest["spec"]["platforms"][0]
    return platform


def expression(key: str, operator: str, *values: str) -> Manifest:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


BROKEN: list[tuple[Callable[[Manifest], object], str]] = [
    (
        lambda m: m.update(apiVersion="v1"),
        "plugin manifest has apiVersion, not supported in this version of krew",
    ),
    (lambda m: m.update(kind="Pod"), 'plugin manifest has kind, but only "Plugin" is supported'),
    (lambda m: m["metadata"].update(name="oom"), "plugin should be named qos"),
    (lambda m: m["spec"].pop("shortDescription"), "should have a short description"),
    (
        lambda m: m["spec"].update(shortDescription="two\nlines"),
        "should not have line breaks in short description",
    ),
    (lambda m: m["spec"].update(platforms=[]), "should have a platform specified"),
    (lambda m: m["spec"].pop("version"), "should have a version specified"),
    (lambda m: m["spec"].update(version="0.1.0"), "failed to parse plugin version: not starting with 'v'"),
    (lambda m: m["spec"].update(version="v0.1"), "failed to parse plugin version: not semantic"),
    (lambda m: m["spec"].update(version="v00.1.0"), "failed to parse plugin version: not semantic"),
    (lambda m: m["spec"].update(version=1.0), "failed to parse yaml file: .spec.version is not a string"),
    (
        lambda m: first(m).update(sha256=int("1" * 64)),
        "failed to parse yaml file: .spec.platforms[0].sha256 is not a string",
    ),
    (lambda m: first(m).pop("uri"), "platforms[0]: `uri` has to be set"),
    (lambda m: first(m).pop("sha256"), "platforms[0]: `sha256` sum has to be set"),
    (
        lambda m: first(m).update(sha256="A" * 64),
        "platforms[0]: `sha256` value is not valid, must match pattern ^[a-f0-9]{64}$",
    ),
    (
        lambda m: first(m).update(sha256="a" * 63),
        "platforms[0]: `sha256` value is not valid, must match pattern ^[a-f0-9]{64}$",
    ),
    (lambda m: first(m).pop("bin"), "platforms[0]: `bin` has to be set"),
    (lambda m: first(m).update(bin="../sh"), "platforms[0]: the fullPath does not extend the sub-fullPath"),
    (
        lambda m: first(m).update(bin="a/../../sh"),
        "platforms[0]: the fullPath does not extend the sub-fullPath",
    ),
    (lambda m: first(m).update(files=[]), "platforms[0]: `files` has to be unspecified or non-empty"),
    (lambda m: first(m).update(files=[{"to": "."}]), "platforms[0]: `from` field has to be set"),
    (lambda m: first(m).update(files=[{"from": "*"}]), "platforms[0]: `to` field has to be set"),
    (
        lambda m: first(m).update(files=[{"from": "*", "to": "./a"}]),
        "platforms[0]: the provided path is not clean",
    ),
    (
        lambda m: first(m).update(files=[{"from": "*", "to": "../a"}]),
        "platforms[0]: can't move, move target is not a subpath",
    ),
    (lambda m: first(m).pop("selector"), "platforms[0]: nil selector is not supported"),
    (lambda m: first(m).update(selector={}), "platforms[0]: empty selector is not supported"),
    (
        lambda m: first(m).update(selector={"matchLabels": {"cpu": "x"}}),
        "platforms[0]: key cpu not supported",
    ),
    (lambda m: first(m).update(selector=expression("cpu", "Exists")), "platforms[0]: key cpu not supported"),
    (
        lambda m: first(m).update(selector={"matchLabels": {}}),
        "platforms[0]: `matchLabels` specified but empty",
    ),
    (
        lambda m: first(m)["selector"].update(matchExpressions=[]),
        "platforms[0]: `matchExpressions` specified but empty",
    ),
    (
        lambda m: first(m)["selector"]["matchLabels"].update(os="plan9"),
        "platforms[0]: selector doesn't match any supported platforms",
    ),
    (
        lambda m: first(m)["selector"]["matchLabels"].update(arch="x86_64"),
        "platforms[0]: selector doesn't match any supported platforms",
    ),
    (
        lambda m: first(m).update(selector=expression("os", "NotIn", "windows")),
        "multiple spec.platforms have overlapping selectors that select linux/arm64",
    ),
    (
        lambda m: m["spec"]["platforms"].append(copy.deepcopy(first(m))),
        "multiple spec.platforms have overlapping selectors that select linux/amd64",
    ),
    (
        lambda m: m["spec"].update(shortDescription="x" * 51),
        "REVIEW: a short description of at most 50 characters",
    ),
    (lambda m: m["spec"].update(description=" \n"), "REVIEW: a description"),
    (lambda m: m["spec"].update(description="x" * 81), "REVIEW: lines of at most 80 characters"),
    (lambda m: m["spec"].update(caveats="x" * 81), "REVIEW: lines of at most 80 characters"),
    (
        lambda m: m["spec"].update(description="Run kubectl qos top"),
        "REVIEW: no examples and no options in the description",
    ),
    (
        lambda m: m["spec"].update(description="Try -A"),
        "REVIEW: no examples and no options in the description",
    ),
    (lambda m: m["spec"].pop("homepage"), "REVIEW: a homepage"),
    (
        lambda m: m["spec"].update(version="v9.9.9"),
        "REVIEW: platforms[0]: an archive of that version, .tar.gz or .zip, over https",
    ),
    (
        lambda m: first(m).update(uri=first(m)["uri"].replace("https", "http")),
        "REVIEW: platforms[0]: an archive of that version, .tar.gz or .zip, over https",
    ),
    (
        lambda m: m["spec"]["platforms"][-1].update(bin="kubectl-qos/kubectl-qos.bat"),
        "REVIEW: platforms[4]: an .exe for Windows",
    ),
    (
        lambda m: first(m).update(files=[{"from": "*", "to": "."}]),
        "REVIEW: platforms[0]: no `files` where the default does",
    ),
]


@pytest.mark.parametrize(("spoil", "refused"), BROKEN, ids=[refused for _, refused in BROKEN])
def test_a_broken_rule_is_noticed(spoil: Callable[[Manifest], object], refused: str) -> None:
    manifest = yaml.safe_load(COMMITTED)
    spoil(manifest)
    assert refused in refusals("qos.yaml", yaml.safe_dump(manifest))


@pytest.mark.parametrize(
    ("file_name", "refused"),
    [
        ("qos.yml", 'expected manifest extension ".yaml"'),
        ("pod-qos.yaml", "plugin should be named pod-qos"),
        ("nul.yaml", "the plugin name is not allowed"),
        ("q os.yaml", "the plugin name is not allowed"),
    ],
)
def test_the_name_of_the_file_counts(file_name: str, refused: str) -> None:
    assert refused in refusals(file_name, COMMITTED)


@pytest.mark.parametrize("name", ["Qos", "kube-qos", "pod_qos"])
def test_the_name_is_lower_case_words_with_dashes(name: str) -> None:
    renamed = COMMITTED.replace("  name: qos", f"  name: {name}")
    assert refusals(f"{name}.yaml", renamed) == [
        "REVIEW: lower-case words with dashes as the name, without kube-"
    ]


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
    assert refusals("qos.yaml", text) == []


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

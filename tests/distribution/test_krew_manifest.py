"""The krew manifest obeys krew's own rules (internal/index/validation) and the index's review rules."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import kubectl_qos

Mapping = dict[str, Any]

ROOT = Path(__file__).parents[2]
MANIFEST: Mapping = yaml.safe_load((ROOT / "krew-manifest.yaml").read_text(encoding="utf-8"))
SUPPORTED = {
    *(("windows", arch) for arch in ("386", "amd64", "arm64")),
    *(("linux", arch) for arch in ("386", "amd64", "arm", "arm64", "ppc64le")),
    *(("darwin", arch) for arch in ("386", "amd64", "arm64")),
}


RULES: dict[str, Callable[[Mapping], bool]] = {
    "apiVersion": lambda m: m["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2",
    "kind": lambda m: m["kind"] == "Plugin",
    "metadata.name": lambda m: _is(r"[a-z0-9]+(-[a-z0-9]+)*", m["metadata"]["name"]),
    "spec.version": lambda m: _is(r"v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?", m["spec"]["version"]),
    "spec.shortDescription": lambda m: _is(r"[^\n]{1,50}", m["spec"]["shortDescription"]),
    "spec.description": lambda m: max(map(len, m["spec"]["description"].splitlines())) <= 80,
    "spec.homepage": lambda m: m["spec"]["homepage"].startswith("https://"),
    "spec.platforms": lambda m: len(m["spec"]["platforms"]) > 0,
    "spec.platforms overlap": lambda m: len(set(map(_pair, _platforms(m)))) == len(_platforms(m)),
}
PLATFORM_RULES: dict[str, Callable[[Mapping], bool]] = {
    "selector": lambda p: set(p["selector"]) == {"matchLabels"} and _pair(p) in SUPPORTED,
    "sha256": lambda p: _is(r"[a-f0-9]{64}", p["sha256"]),
    "uri": lambda p: _is(r"https://\S+\.(tar\.gz|zip)", p["uri"]),
    "bin": lambda p: not p["bin"].startswith("/") and ".." not in p["bin"],
    "bin of windows": lambda p: _pair(p)[0] != "windows" or p["bin"].endswith(".exe"),
    "files": lambda p: "files" not in p,
}


def _is(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text) is not None


def _platforms(manifest: Mapping) -> list[Mapping]:
    return list(manifest["spec"]["platforms"])


def _pair(platform: Mapping) -> tuple[str, str]:
    labels = platform["selector"].get("matchLabels", {})
    return (labels.get("os", ""), labels.get("arch", ""))


def refusals(manifest: Mapping) -> Iterator[str]:
    """Every rule of krew and its index that the manifest breaks."""
    yield from (name for name, holds in RULES.items() if not holds(manifest))
    for number, platform in enumerate(_platforms(manifest)):
        yield from (
            f"platforms[{number}] {name}" for name, holds in PLATFORM_RULES.items() if not holds(platform)
        )


def test_the_manifest_obeys_every_rule() -> None:
    assert list(refusals(MANIFEST)) == []


def test_the_manifest_is_of_this_version() -> None:
    version = f"v{kubectl_qos.__version__}"
    assert MANIFEST["spec"]["version"] == version
    assert all(f"/{version}/" in platform["uri"] for platform in MANIFEST["spec"]["platforms"])


def _first(manifest: Mapping) -> Mapping:
    return _platforms(manifest)[0]


@pytest.mark.parametrize(
    ("spoil", "refused"),
    [
        (lambda m: m.update(apiVersion="v1"), "apiVersion"),
        (lambda m: m["metadata"].update(name="Q o S"), "metadata.name"),
        (lambda m: m["spec"].update(version="0.1.0"), "spec.version"),
        (lambda m: m["spec"].update(shortDescription="x" * 51), "spec.shortDescription"),
        (lambda m: m["spec"].update(description="x" * 81), "spec.description"),
        (lambda m: m["spec"].update(platforms=[]), "spec.platforms"),
        (lambda m: _first(m).update(sha256="A" * 64), "platforms[0] sha256"),
        (lambda m: _first(m).update(bin="../kubectl-qos"), "platforms[0] bin"),
        (lambda m: _first(m).update(selector={}), "platforms[0] selector"),
        (lambda m: m["spec"]["platforms"].insert(0, _first(m)), "spec.platforms overlap"),
        (
            lambda m: m["spec"]["platforms"][-1].update(bin="kubectl-qos/kubectl-qos"),
            "platforms[4] bin of windows",
        ),
    ],
)
def test_a_broken_rule_is_noticed(spoil: Callable[[Mapping], object], refused: str) -> None:
    broken = copy.deepcopy(MANIFEST)
    spoil(broken)
    assert refused in list(refusals(broken))

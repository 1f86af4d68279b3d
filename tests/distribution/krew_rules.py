"""Every rule that krew, its index' checks and its reviewers have for a manifest, in krew's own words.

From krew's internal/index/validation/validate.go, internal/index/indexscanner, cmd/validate-krew-manifest and
internal/installation; what people and the robot of the index ask for is under REVIEW.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

API_VERSION: Final = "krew.googlecontainertools.github.com/v1alpha2"
WINDOWS_FORBIDDEN: Final = {
    "CON",
    "PRN",
    "AUX",
    "NUL",
    *(f"{port}{n}" for port in ("COM", "LPT") for n in range(1, 10)),
}
ALL_PLATFORMS: Final = [
    *(("windows", arch) for arch in ("386", "amd64", "arm64")),
    *(("linux", arch) for arch in ("386", "amd64", "arm", "arm64", "ppc64le")),
    *(("darwin", arch) for arch in ("386", "amd64", "arm64")),
]
SEMANTIC: Final = re.compile(
    r"v?(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-([0-9A-Za-z-]+\.)*[0-9A-Za-z-]+)?(\+([0-9A-Za-z-]+\.)*[0-9A-Za-z-]+)?"
)


def refusals(file_name: str, text: str) -> list[str]:
    """What krew, the checks of its index and its reviewers have against a manifest file."""
    manifest = yaml.safe_load(text)
    found = [
        *_undecodable(manifest, ""),
        *_plugin(file_name.removesuffix(".yaml"), manifest),
        *_platforms(manifest["spec"].get("platforms") or []),
        *_review(manifest),
    ]
    if not file_name.endswith(".yaml"):
        found.append('expected manifest extension ".yaml"')
    return found


def selects(selector: Mapping[str, Any], pair: tuple[str, str]) -> bool:
    """Whether a label selector matches an operating system and architecture."""
    labels = dict(zip(("os", "arch"), pair, strict=True))
    expressions = selector.get("matchExpressions") or []
    return all(
        labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items()
    ) and all(
        {
            "In": labels.get(each["key"]) in each.get("values", ()),
            "NotIn": labels.get(each["key"]) not in each.get("values", ()),
            "Exists": each["key"] in labels,
            "DoesNotExist": each["key"] not in labels,
        }[each["operator"]]
        for each in expressions
    )


def _undecodable(value: object, path: str) -> Iterator[str]:
    """What Go can't decode into a string: numbers and booleans that should have been in quotes."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _undecodable(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _undecodable(inner, f"{path}[{number}]")
    elif not isinstance(value, str):
        yield f"failed to parse yaml file: {path} is not a string"


def _plugin(name: str, manifest: Mapping[str, Any]) -> Iterator[str]:
    spec = manifest["spec"]
    short = spec.get("shortDescription") or ""
    if manifest.get("apiVersion") != API_VERSION:
        yield "plugin manifest has apiVersion, not supported in this version of krew"
    if manifest.get("kind") != "Plugin":
        yield 'plugin manifest has kind, but only "Plugin" is supported'
    if not re.fullmatch(r"[\w-]+", name, re.ASCII) or name.upper() in WINDOWS_FORBIDDEN:
        yield "the plugin name is not allowed"
    if manifest["metadata"].get("name") != name:
        yield f"plugin should be named {name}"
    if not short:
        yield "should have a short description"
    if re.search(r"[\r\n]", short):
        yield "should not have line breaks in short description"
    if not spec.get("platforms"):
        yield "should have a platform specified"
    yield from _version(str(spec.get("version") or ""))


def _version(version: str) -> Iterator[str]:
    if not version:
        yield "should have a version specified"
    elif not version.startswith("v"):
        yield "failed to parse plugin version: not starting with 'v'"
    elif not SEMANTIC.fullmatch(version):
        yield "failed to parse plugin version: not semantic"


def _platforms(platforms: list[dict[str, Any]]) -> Iterator[str]:
    for number, platform in enumerate(platforms):
        said = [*_platform(platform), *_files(platform), *_selector(platform.get("selector"))]
        yield from (f"platforms[{number}]: {refusal}" for refusal in said)
    for pair in ALL_PLATFORMS:
        if len([True for platform in platforms if selects(platform.get("selector") or {}, pair)]) > 1:
            yield f"multiple spec.platforms have overlapping selectors that select {'/'.join(pair)}"


def _platform(platform: Mapping[str, Any]) -> Iterator[str]:
    digest, binary = str(platform.get("sha256") or ""), str(platform.get("bin") or "")
    if not platform.get("uri"):
        yield "`uri` has to be set"
    if not digest:
        yield "`sha256` sum has to be set"
    elif not re.fullmatch("[a-f0-9]{64}", digest):
        yield "`sha256` value is not valid, must match pattern ^[a-f0-9]{64}$"
    if not binary:
        yield "`bin` has to be set"
    elif posixpath.relpath(posixpath.join("/store", binary), "/store").startswith(".."):
        yield "the fullPath does not extend the sub-fullPath"


def _files(platform: Mapping[str, Any]) -> Iterator[str]:
    operations = platform.get("files")
    if operations is None:
        return
    if not operations:
        yield "`files` has to be unspecified or non-empty"
    for operation in operations:
        source, target = operation.get("from") or "", operation.get("to") or ""
        if not source:
            yield "`from` field has to be set"
        elif not target:
            yield "`to` field has to be set"
        elif target != posixpath.normpath(target):
            yield "the provided path is not clean"
        elif any(posixpath.normpath(path).startswith(("..", "/")) for path in (source, target)):
            yield "can't move, move target is not a subpath"


def _selector(selector: Mapping[str, Any] | None) -> Iterator[str]:
    if selector is None:
        yield "nil selector is not supported"
        return
    labels, expressions = selector.get("matchLabels"), selector.get("matchExpressions")
    if labels is None and not expressions:
        yield "empty selector is not supported"
    for key in [*(labels or {}), *(expression["key"] for expression in expressions or ())]:
        if key not in {"os", "arch"}:
            yield f"key {key} not supported"
    if labels == {}:
        yield "`matchLabels` specified but empty"
    if expressions == []:
        yield "`matchExpressions` specified but empty"
    if not any(selects(selector, pair) for pair in ALL_PLATFORMS):
        yield "selector doesn't match any supported platforms"


def _review(manifest: Mapping[str, Any]) -> Iterator[str]:
    """What the guides and the robot of the index ask for."""
    spec, name = manifest["spec"], manifest["metadata"].get("name") or ""
    description = spec.get("description") or ""
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) or name.startswith(("kube-", "kubectl-")):
        yield "REVIEW: lower-case words with dashes as the name, without kube-"
    if len(spec.get("shortDescription") or "") > 50:
        yield "REVIEW: a short description of at most 50 characters"
    if not description.strip():
        yield "REVIEW: a description"
    if any(len(line) > 80 for line in f"{description}\n{spec.get('caveats') or ''}".splitlines()):
        yield "REVIEW: lines of at most 80 characters"
    if re.search(r"kubectl |(^|\s)--?\w", description):
        yield "REVIEW: no examples and no options in the description"
    if not str(spec.get("homepage") or "").startswith("https://"):
        yield "REVIEW: a homepage"
    for number, platform in enumerate(spec.get("platforms") or []):
        yield from (f"REVIEW: platforms[{number}]: {said}" for said in _review_platform(platform, spec))


def _review_platform(platform: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[str]:
    uri, windows = (
        str(platform.get("uri") or ""),
        selects(platform.get("selector") or {}, ("windows", "amd64")),
    )
    if not re.fullmatch(rf"https://\S+/{re.escape(str(spec.get('version')))}/\S+\.(tar\.gz|zip)", uri):
        yield "an archive of that version, .tar.gz or .zip, over https"
    if windows and not str(platform.get("bin") or "").endswith(".exe"):
        yield "an .exe for Windows"
    if "files" in platform:
        yield "no `files` where the default does"

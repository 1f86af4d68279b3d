"""`kubectl qos version`: ours, the server's, those of the kubelets, and which are supported."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from kubectl_qos import __version__
from kubectl_qos.cli import streams
from kubectl_qos.errors import EXIT_ERROR, ApiError, InputError, QosError, UsageError
from kubectl_qos.k8s.releases import SUPPORTED_MINORS, Release
from kubectl_qos.present.format import count, escape

OLDEST: Final = f"1.{SUPPORTED_MINORS[0]}"
NEWEST: Final = f"1.{SUPPORTED_MINORS[-1]}"
TIMEOUT: Final = "5s"
"""So long a server has, if --request-timeout does not say something else."""


@dataclass(slots=True)
class _Found:
    """What was found out; `error` is why it is not all."""

    server: dict[str, Any] = field(default_factory=dict)
    kubelets: dict[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    error: QosError | None = None


def run(options: argparse.Namespace) -> int:
    """Print the versions. Raises QosError, after them, where the server's cannot be had."""
    found = _Found()
    try:
        _ask(options, found)
    except UsageError:
        raise
    except QosError as error:
        found.error = error
    notes = [*range_notes(str(found.server.get("gitVersion") or ""), found.kubelets), *found.problems]
    output = getattr(options, "output", None)
    if output is None:
        streams.out(_lines(found))
    else:
        from kubectl_qos.present.output import to_json, to_yaml

        streams.out_text((to_json if output == "json" else to_yaml)(_values(found, notes)))
    streams.notes(notes)
    if found.error is not None:
        raise found.error
    return EXIT_ERROR if found.problems else 0


def _ask(options: argparse.Namespace, found: _Found) -> None:
    """Fill in what a server, files or the demo say. Raises QosError where that breaks off."""
    if getattr(options, "client", False):
        return
    if not (getattr(options, "demo", False) or getattr(options, "filename", None)):
        _ask_server(options, found)
        return
    from kubectl_qos.cli.sources import resolve_source
    from kubectl_qos.k8s.snapshot import Scope

    wanted = resolve_source(options)
    nodes = wanted.source.snapshot(Scope()).nodes.values()
    found.kubelets = _grouped(node.status.node_info.kubelet_version for node in nodes)
    found.problems = tuple(f"error: {problem}" for problem in wanted.problems)


def _ask_server(options: argparse.Namespace, found: _Found) -> None:
    """The server's version, and its nodes', which are left out without a word for who may not list them."""
    from kubectl_qos.cli.sources import open_connection
    from kubectl_qos.cluster.kube_api import KubeApi

    options.request_timeout = getattr(options, "request_timeout", TIMEOUT)
    api = KubeApi(open_connection(options))
    found.server = api.version()
    with suppress(ApiError):
        found.kubelets = _grouped(node.kubelet for node in api.node_software())


def _grouped(versions: Iterable[str]) -> dict[str, int]:
    return count_versions(map(minor_version, versions))


def _lines(found: _Found) -> Iterable[str]:
    yield f"kubectl-qos {__version__}"
    yield f"Supported Versions: Kubernetes {OLDEST} to {NEWEST}"
    if found.server:
        platform = found.server.get("platform")
        version = escape(str(found.server.get("gitVersion")))
        yield f"Server Version: {version}{f' ({escape(str(platform))})' if platform else ''}"
    if found.kubelets:
        yield f"Kubelet Versions: {escape(version_counts_text(found.kubelets))}"


def _values(found: _Found, notes: list[str]) -> dict[str, Any]:
    """As kubectl has it, as far as it fits."""
    values: dict[str, Any] = {
        "clientVersion": {"gitVersion": f"v{__version__}"},
        "supportedVersions": {"oldest": OLDEST, "newest": NEWEST},
    }
    if found.server:
        values["serverVersion"] = found.server
    if found.kubelets:
        values["kubeletVersions"] = [
            {"version": version, "nodes": count} for version, count in found.kubelets.items()
        ]
    return values | ({"notes": notes} if notes else {})


_MINOR: Final = re.compile(r"v?(1\.(\d{1,4}))(?!\d)", re.ASCII)
_SUPPORTED: Final = frozenset(f"1.{minor}" for minor in SUPPORTED_MINORS)


def minor_version(version: str) -> str:
    """`1.36` of `v1.36.2-eks-1`; other texts unchanged."""
    match = _MINOR.match(version)
    return match[1] if match else version


def count_versions(names: Iterable[str]) -> dict[str, int]:
    """How often each name occurs, sorted by the numbers in it."""
    return dict(sorted(Counter(names).items(), key=lambda pair: _by_numbers(pair[0])))


def _by_numbers(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def version_counts_text(counts: Mapping[str, int], noun: str = "node") -> str:
    """`1.33 (12 nodes), 1.34 (1 node)`."""
    return ", ".join(f"{name or 'unknown'} ({count(number, noun)})" for name, number in counts.items())


def range_notes(server: str, kubelets: Iterable[str]) -> Iterator[str]:
    """Which versions are outside the supported range, and the rules that are used for them.

    Predictions use the release of each pod's kubelet, or the server's where that is unknown.
    """
    for who, version in (("the server", server), *(("a kubelet", one) for one in kubelets)):
        minor = minor_version(version)
        if version and minor not in _SUPPORTED:
            yield f"{who} is {minor}, outside {OLDEST} to {NEWEST}: {_rules_for(minor)}"


def _rules_for(minor: str) -> str:
    try:
        release = Release.of(minor)
    except InputError:
        return "not a known release of Kubernetes"
    if release.assumed:
        return f"the rules of {release} are assumed"
    return f"the rules of {release} are used, but not verified against Kubernetes' own code"

"""`kubectl qos version`: ours, the server's, those of the kubelets, and which are supported."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kubectl_qos.cli import output
from kubectl_qos.cli.flags import add_output, add_switch
from kubectl_qos.cli.sources import open_connection, resolve_source
from kubectl_qos.errors import EXIT_ERROR, ApiError, InputError, QosError, UsageError
from kubectl_qos.present.format import count, escape
from kubectl_qos.version import __version__

if TYPE_CHECKING:
    from kubectl_qos.cli.options import SourceOptions
    from kubectl_qos.present.values.facts import VersionValues

TIMEOUT: Final = "5s"
"""Of a request, where --request-timeout is not given."""
DESCRIPTION: Final = (
    "The version of kubectl-qos, the releases of Kubernetes that it knows, and the versions of the server and"
    " of the kubelets; those of the kubelets only where nodes may be listed. Exit code 1 if no server can be"
    " reached; what is known without it is printed all the same."
)
EXAMPLES: Final = """\
examples:
  kubectl qos version           # ours, the server's and those of the kubelets
  kubectl qos version --client  # ours alone: without a kubeconfig, and without contacting a server
  kubectl qos version -o json   # with all that the server reports of its version
"""
_MINOR: Final = re.compile(r"v?(1\.(\d{1,4}))(?!\d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Options:
    """Whose versions are printed: with `client` ours alone."""

    source: SourceOptions
    client: bool
    output: str | None


@dataclass(frozen=True, slots=True)
class _Versions:
    """What was read; the numbers of nodes by the minor version of their kubelets."""

    server: Mapping[str, Any] = field(default_factory=dict)
    kubelets: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    error: QosError | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `version`."""
    add_switch(parser, "--client", help="print nothing of the server and its nodes")
    add_output(parser, "json", "yaml")


def run(options: Options) -> int:
    """Print the versions. Raises QosError, after them, where the server's cannot be read."""
    versions = _Versions() if options.client else _read(options.source)
    git_version = str(versions.server.get("gitVersion") or "")
    notes = [*range_notes(git_version, versions.kubelets), *versions.problems]
    if options.output is None:
        output.print_lines(_lines(versions))
    else:
        output.print_document(_values(versions, notes), options.output)
    output.notes(notes)
    if versions.error is not None:
        raise versions.error
    return EXIT_ERROR if versions.problems else 0


def _read(source: SourceOptions) -> _Versions:
    try:
        return _read_server(source) if source.is_cluster else _read_nodes(source)
    except UsageError:
        raise
    except QosError as error:
        return _Versions(error=error)


def _read_nodes(source: SourceOptions) -> _Versions:
    from kubectl_qos.k8s.snapshot import Scope

    resolved = resolve_source(source)
    nodes = resolved.source.snapshot(Scope()).nodes.values()
    kubelets = _count_minors(node.status.node_info.kubelet_version for node in nodes)
    return _Versions(kubelets=kubelets, problems=resolved.notes if resolved.failed else ())


def _read_server(source: SourceOptions) -> _Versions:
    """The server's version and its nodes', which are left out without the permission to list them."""
    from kubectl_qos.cluster.kube_api import KubeApi

    api = KubeApi(open_connection(source.with_timeout(TIMEOUT)))
    server, kubelets = api.version(), {}
    try:
        with suppress(ApiError):
            kubelets = _count_minors(node.kubelet for node in api.node_software())
    except QosError as error:
        return _Versions(server, error=error)
    return _Versions(server, kubelets)


def _count_minors(versions: Iterable[str]) -> dict[str, int]:
    return count_versions(map(minor_version, versions))


def _lines(versions: _Versions) -> Iterator[str]:
    oldest, newest = _supported()
    yield f"kubectl-qos {__version__}"
    yield f"Supported Versions: Kubernetes {oldest} to {newest}"
    if versions.server:
        platform = versions.server.get("platform")
        version = escape(str(versions.server.get("gitVersion")))
        yield f"Server Version: {version}{f' ({escape(str(platform))})' if platform else ''}"
    if versions.kubelets:
        yield f"Kubelet Versions: {escape(version_counts_text(versions.kubelets))}"


def _values(versions: _Versions, notes: list[str]) -> VersionValues:
    from kubectl_qos.present.values.facts import KubeletCount, VersionValues

    oldest, newest = _supported()
    return VersionValues(
        client_version={"gitVersion": f"v{__version__}"},
        supported_versions={"oldest": oldest, "newest": newest},
        server_version=dict(versions.server) or None,
        kubelet_versions=tuple(
            KubeletCount(version=version, nodes=nodes) for version, nodes in versions.kubelets.items()
        ),
        notes=tuple(notes),
    )


def _supported() -> tuple[str, str]:
    from kubectl_qos.k8s.releases import SUPPORTED_MINORS

    return f"1.{SUPPORTED_MINORS[0]}", f"1.{SUPPORTED_MINORS[-1]}"


def minor_version(version: str) -> str:
    """`1.36` of `v1.36.2-eks-1`; other texts unchanged."""
    match = _MINOR.match(version)
    return match[1] if match else version


def count_versions(names: Iterable[str]) -> dict[str, int]:
    """How often each name occurs, sorted by the numbers in it."""
    from collections import Counter

    def by_numbers(pair: tuple[str, int]) -> list[tuple[int, str]]:
        parts = re.split(r"(\d+)", pair[0])
        return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]

    return dict(sorted(Counter(names).items(), key=by_numbers))


def version_counts_text(counts: Mapping[str, int]) -> str:
    """`1.33 (12 nodes), 1.34 (1 node)`."""
    return ", ".join(f"{name or 'unknown'} ({count(number, 'node')})" for name, number in counts.items())


def range_notes(server: str, kubelets: Iterable[str]) -> Iterator[str]:
    """Which versions are outside the supported range, and the rules that are used for them.

    Predictions use the release of each pod's kubelet, or the server's where that is unknown.
    """
    from kubectl_qos.k8s.releases import SUPPORTED_MINORS

    oldest, newest = _supported()
    supported = {f"1.{minor}" for minor in SUPPORTED_MINORS}
    for subject, version in (("the server", server), *(("a kubelet", kubelet) for kubelet in kubelets)):
        minor = minor_version(version)
        if version and minor not in supported:
            yield f"{subject} is {minor}, outside {oldest} to {newest}: {_rules_for(minor)}"


def _rules_for(minor: str) -> str:
    from kubectl_qos.k8s.releases import Release

    try:
        release = Release.of(minor)
    except InputError:
        return "not a known release of Kubernetes"
    if release.assumed:
        return f"the rules of {release} are assumed"
    return f"the rules of {release} are used, but not verified against Kubernetes' own code"

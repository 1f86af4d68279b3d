"""`kubectl qos version`: versions of kubectl-qos, the server and the nodes, and which are supported."""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kubectl_qos.cli import output
from kubectl_qos.cli.flags import add_output, add_switch
from kubectl_qos.cli.sources import SourceNeeds, open_connection, resolve_source
from kubectl_qos.errors import EXIT_ERROR, ApiError, InputError, QosError, UsageError
from kubectl_qos.k8s.releases import SUPPORTED_MINORS, Release
from kubectl_qos.present.format import count, escape
from kubectl_qos.version import __version__

if TYPE_CHECKING:
    from kubectl_qos.cli.options import SourceOptions
    from kubectl_qos.cluster.kube_api import NodeSoftware
    from kubectl_qos.present.values.facts import VersionValues

TIMEOUT: Final = "5s"
"""The timeout of a request without --request-timeout."""
DESCRIPTION: Final = (
    "Print the version of kubectl-qos, the releases of Kubernetes that it supports, and the versions of the"
    " server and of the kubelets; the kubelets need permission to list nodes. If no server can be reached,"
    " the others are still printed, and the exit code is 1. With -o yaml the output has what a bug report"
    " needs: Python, libraries, and the software of the nodes, without names and secrets."
)
EXAMPLES: Final = """\
examples:
  kubectl qos version           # kubectl-qos, the server and the kubelets
  kubectl qos version --client  # only kubectl-qos: without a kubeconfig, and without contacting a server
  kubectl qos version -o yaml   # for a bug report: also Python, libraries and the software of the nodes
"""
_MINOR: Final = re.compile(r"v?(1\.(\d{1,4}))(?!\d)", re.ASCII)
_OLDEST, _NEWEST = f"1.{SUPPORTED_MINORS[0]}", f"1.{SUPPORTED_MINORS[-1]}"
_LIBRARIES: Final = ("textual", "urllib3", "msgspec", "pyyaml", "platformdirs", "kubernetes", "textual-serve")


class Options(NamedTuple):
    """Whose versions are printed: with `client` only those of kubectl-qos."""

    source: SourceOptions
    client: bool
    output: str | None


class _Versions(NamedTuple):
    """The versions that could be read, and how many nodes run the same software."""

    server: Mapping[str, Any] = {}
    software: Mapping[NodeSoftware, int] = {}
    problems: tuple[str, ...] = ()
    error: QosError | None = None

    def kubelets(self) -> dict[str, int]:
        """Return how many nodes have each minor release of the kubelet, oldest first."""
        counts: Counter[str] = Counter()
        for software, nodes in self.software.items():
            counts[_minor(software.kubelet)] += nodes
        return dict(sorted(counts.items(), key=lambda entry: _by_numbers(entry[0])))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `version`."""
    add_switch(parser, "--client", help="print only the version of kubectl-qos")
    add_output(parser, "json", "yaml", has_names=False)


def run(options: Options) -> int:
    """Print the versions. Then raise QosError if the server's could not be read."""
    versions = _Versions() if options.client else _read(options.source)
    notes = [*_range_notes(versions), *versions.problems]
    if options.output is None:
        output.print_lines(_lines(versions))
    else:
        output.print_document(_values(versions, notes), options.output)
    output.notes(notes)
    if versions.error is not None:
        raise versions.error
    return EXIT_ERROR if versions.problems else 0


def _read(source: SourceOptions) -> _Versions:
    from kubectl_qos.cluster.kube_api import KubeApi, NodeSoftware
    from kubectl_qos.k8s.snapshot import Scope

    server: Mapping[str, Any] = {}
    try:
        if not source.is_cluster:
            resolved = resolve_source(source, SourceNeeds(progress=False))
            software = Counter(map(NodeSoftware.from_node, resolved.source.snapshot(Scope()).nodes.values()))
            return _Versions(software=software, problems=resolved.notes if resolved.failed else ())
        timeout = source.connection.request_timeout or TIMEOUT
        connection = source.connection._replace(request_timeout=timeout)
        api = KubeApi(open_connection(source._replace(connection=connection)))
        server = api.version()
        return _Versions(server, Counter(api.node_software()))
    except UsageError:
        raise
    except QosError as error:
        # A user who may not list nodes still sees the server's version.
        return _Versions(server, error=None if server and isinstance(error, ApiError) else error)


def _lines(versions: _Versions) -> Iterator[str]:
    yield f"kubectl-qos {__version__}"
    yield f"Supported Versions: Kubernetes {_OLDEST} to {_NEWEST}"
    if versions.server:
        platform = versions.server.get("platform")
        version = escape(str(versions.server.get("gitVersion")))
        yield f"Server Version: {version}{f' ({escape(str(platform))})' if platform else ''}"
    if kubelets := versions.kubelets():
        texts = (f"{name or 'unknown'} ({count(nodes, 'node')})" for name, nodes in kubelets.items())
        yield f"Kubelet Versions: {escape(', '.join(texts))}"


def _values(versions: _Versions, notes: list[str]) -> VersionValues:
    from kubectl_qos.present.values.facts import KubeletCount, NodeSoftwareValues, VersionValues

    software = sorted(versions.software.items(), key=lambda entry: tuple(map(_by_numbers, entry[0])))
    return VersionValues(
        client_version=dict(_client_version()),
        supported_versions={"oldest": _OLDEST, "newest": _NEWEST},
        server_version=dict(versions.server) or None,
        kubelet_versions=tuple(KubeletCount(*entry) for entry in versions.kubelets().items()),
        node_software=tuple(NodeSoftwareValues(*names, nodes) for names, nodes in software),
        notes=tuple(notes),
    )


def _client_version() -> Iterator[tuple[str, str]]:
    """Yield the versions of kubectl-qos, Python, libraries and the system, without any names or paths."""
    import platform
    from importlib import metadata

    yield "gitVersion", f"v{__version__}"
    yield "platform", f"{platform.system()} {platform.release()} {platform.machine()}"
    yield "pythonVersion", f"{platform.python_implementation()} {platform.python_version()}"
    yield "installedAs", "binary" if getattr(sys, "frozen", False) else "package"
    for name in _LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            yield name, metadata.version(name)


def _minor(version: str) -> str:
    """Return `1.36` for `v1.36.2-eks-1`, and other texts unchanged."""
    match = _MINOR.match(version)
    return match[1] if match else version


def _by_numbers(text: str) -> str:
    """Return a sort key that puts 1.9 before 1.10."""
    return re.sub(r"\d+", lambda number: number[0].zfill(9), text)


def _range_notes(versions: _Versions) -> Iterator[str]:
    """Yield a note about each version outside the supported range: the release whose rules are used.

    Predictions use the release of each pod's kubelet, or the server's if the kubelet's is unknown.
    """
    server = str(versions.server.get("gitVersion") or "")
    kubelets = (("a kubelet", kubelet) for kubelet in versions.kubelets())
    for subject, version in (("the server", server), *kubelets):
        minor = _minor(version)
        if version and minor not in {f"1.{supported}" for supported in SUPPORTED_MINORS}:
            yield f"{subject} is {minor}, outside {_OLDEST} to {_NEWEST}: {_rules_for(minor)}"


def _rules_for(minor: str) -> str:
    try:
        release = Release.of(minor)
    except InputError:
        return "not a known release of Kubernetes"
    if release.assumed:
        return f"the rules of {release} are assumed"
    return f"the rules of {release} are used, but not verified against Kubernetes' own code"

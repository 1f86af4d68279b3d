"""`kubectl qos bug-report`: what a report of a defect needs, without names, paths and secrets.

Whatever fails is named by its class, and nothing fails: sentences of errors name servers, users and files.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kubectl_qos.cli import output
from kubectl_qos.cli.flags import add_output
from kubectl_qos.cli.sources import open_connection, resolve_source
from kubectl_qos.errors import ApiError, QosError, ServerUnreachable
from kubectl_qos.present.format import escape
from kubectl_qos.version import __version__

if TYPE_CHECKING:
    from kubectl_qos.cli.options import SourceOptions
    from kubectl_qos.cluster.kube_api import NodeSoftware
    from kubectl_qos.transport import ConnectionOptions
    from kubectl_qos.transport.client import Connection

TIMEOUT: Final = "5s"
ISSUES: Final = "https://github.com/kubectl-qos/kubectl-qos/issues/new"
DESCRIPTION: Final = (
    "Print, as Markdown for an issue, what a report of a defect needs: versions, terminal, settings, flags,"
    " the shape of the kubeconfig and of the cluster. No names of hosts, users, contexts, namespaces, nodes"
    " or pods, no paths and no secrets are in it. What cannot be read is named, and the exit code is 0. Give"
    " the flags of the command that failed."
)
EXAMPLES: Final = """\
examples:
  kubectl qos bug-report > report.md                     # to look through, and to paste into an issue
  kubectl qos bug-report --context prod --usage summary  # the flags of the command that failed
  kubectl qos bug-report --demo                          # without a cluster
"""
_PLAIN_FLAGS: Final = ("--usage=", "--v=", "--request-timeout=", "--node-memory=")
"""Flags whose values name nothing."""
_REDACTED: Final = "<redacted>"
_LIBRARIES: Final = ("textual", "urllib3", "msgspec", "pyyaml", "platformdirs", "kubernetes", "textual-serve")
_VARIABLES: Final = (
    *("KUBECONFIG", "KUBECTL_QOS_CONFIG", "KUBECTL_QOS_STATE", "NO_COLOR", "FORCE_COLOR", "TMUX", "STY"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE"),
)
"""Of these only whether they are set."""
_OF_TERMINALS: Final = ("TERM", "COLORTERM", "TERM_PROGRAM", "LANG", "LC_ALL")
_PLAIN_SETTINGS: Final = frozenset({"theme", "view", "readonly", "refresh", "ascii", "motion", "mouse"})
"""Settings whose values name nothing of a cluster."""
_OTHER_SETTINGS: Final = frozenset({"columns", "scope", "contexts", "keys"})
_KUBECTL_SECONDS: Final = 5.0

Facts = dict[str, str]


@dataclass(frozen=True, slots=True)
class Options:
    """What the report is about; `flags` are those of every command that were given."""

    source: SourceOptions
    flags: tuple[str, ...]
    output: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `bug-report`."""
    add_output(parser, "json", "yaml")


def run(options: Options) -> int:
    """Print the report; a reminder to read it goes to stderr."""
    sections = {
        "installation": _installation() | {"flags": " ".join(map(_flag, options.flags)) or "none"},
        "cluster": _cluster_facts(options.source),
    }
    if options.output is not None:
        from kubectl_qos.present.values.facts import bug_report_values

        output.print_document(bug_report_values(sections), options.output)
    else:
        output.print_lines(_markdown(sections))
    output.note(f"look through it before you post it at {ISSUES}")
    return 0


def _markdown(sections: Mapping[str, Facts]) -> Iterator[str]:
    yield from ("### What happened", "", "<!-- the command, what it printed, what you expected -->", "")
    for title, facts in sections.items():
        yield from (f"### {title.capitalize()}", "", "```text")
        width = max(map(len, facts))
        for name, value in facts.items():
            # A value ends no block of Markdown.
            yield f"{name:<{width}}  {escape(value)}".replace("```", "'''")
        yield from ("```", "")


def _flag(word: str) -> str:
    flag, equals, _ = word.partition("=")
    return word if not equals or word.startswith(_PLAIN_FLAGS) else f"{flag}={_REDACTED}"


def _cluster_facts(source: SourceOptions) -> Facts:
    if not source.is_cluster:
        facts: Facts = {"source": "the demo" if source.demo else "files"}
        _add(facts, "objects", lambda: _source_facts(source))
        return facts

    source = source.with_timeout(TIMEOUT)
    facts = {}
    _add(facts, "kubeconfig", lambda: _kubeconfig(source.connection))
    _add(facts, "connection", lambda: _connection_facts(source.connection))
    if "connection" not in facts:
        _add(facts, "server", lambda: _server_facts(open_connection(source), source.namespace))
    return facts


def _add(facts: Facts, name: str, read: Callable[[], Facts | str]) -> None:
    try:
        value = read()
    except Exception as error:  # noqa: BLE001 - a report of what does not work has to come out
        value = _failure(error)
    facts |= value if isinstance(value, dict) else {name: value}


def _failure(error: BaseException) -> str:
    """What went wrong, without the sentence, which names things."""
    from http import HTTPStatus

    from kubectl_qos.transport.net_errors import causes

    if isinstance(error, ApiError):
        reason = error.reason if re.fullmatch("[A-Za-z]{1,40}", error.reason) else ""
        if not reason and error.status in set(HTTPStatus):
            reason = HTTPStatus(error.status).phrase
        return f"refused: {error.status} {reason}".strip()
    *_, root = causes(error)
    what = "no answer" if isinstance(error, ServerUnreachable) else "failed"
    return f"{what} ({type(root).__name__})"


def _source_facts(source: SourceOptions) -> Facts:
    from kubectl_qos.cluster.kube_api import NodeSoftware
    from kubectl_qos.k8s.snapshot import Scope

    resolved = resolve_source(source)
    snapshot = resolved.source.snapshot(Scope())
    facts = _node_facts([NodeSoftware.from_node(node) for node in snapshot.nodes.values()])
    facts["pods"] = f"{len(snapshot.pods):,}"
    return facts | ({"problems": f"{len(resolved.notes):,}"} if resolved.notes else {})


def _kubeconfig(options: ConnectionOptions) -> str:
    from kubectl_qos.transport.kubeconfig import entry_names

    return ", ".join(f"{len(names)} {kind}" for kind, names in entry_names(options).items())


def _connection_facts(options: ConnectionOptions) -> Facts:
    """The kind of credentials and of server, without names."""
    from kubectl_qos.transport.auth import auth_method
    from kubectl_qos.transport.kubeconfig import resolve_context
    from kubectl_qos.transport.proxy import find_proxy

    context = resolve_context(options)
    cluster, user = context.cluster, context.user
    plugin = (user.get("exec") or {}).get("command") or ""
    program = re.split(r"[\\/]", plugin)[-1]
    trust = (
        "its own CA" if any(name.startswith("certificate-authority") for name in cluster) else "the system"
    )
    facts = {
        "credentials": auth_method(user) + (f" ({program})" if program else ""),
        "impersonates": "yes" if user.get("as") else "no",
        "server address": _address(cluster["server"]),
        "trusts": "any certificate" if cluster.get("insecure-skip-tls-verify") else trust,
    }
    _add(facts, "proxy", lambda: "yes" if find_proxy(cluster["server"], cluster.get("proxy-url")) else "no")
    return facts


def _address(server: str) -> str:
    from ipaddress import ip_address
    from urllib.parse import urlsplit

    parts = urlsplit(server if "://" in server else f"http://{server}")
    host = parts.hostname or ""
    scheme = parts.scheme if parts.scheme in {"http", "https"} else "another scheme"
    try:
        address = ip_address(host)
    except ValueError:
        return f"{scheme}, {'loopback' if host == 'localhost' else 'by name'}"
    return f"{scheme}, {'loopback' if address.is_loopback else 'private' if address.is_private else 'public'}"


def _server_facts(connection: Connection, namespace: str | None) -> Facts:
    from kubectl_qos.cluster.kube_api import KubeApi

    api = KubeApi(connection)
    facts: Facts = {}
    try:
        version = api.version()
        facts["server"] = f"{version.get('gitVersion')} {version.get('platform') or ''}".strip()
    except ApiError as error:
        facts["server"] = _failure(error)
    _add(facts, "rights", lambda: _permissions(connection, namespace))
    _add(facts, "nodes", lambda: _node_facts(api.node_software()))
    _add(facts, "pods", lambda: f"{api.pod_count():,}")
    return facts


def _permissions(connection: Connection, namespace: str | None) -> str:
    from kubectl_qos.cluster.access_review import review_access
    from kubectl_qos.k8s.rbac import PERMISSIONS, TIERS

    reviews = review_access(connection, PERMISSIONS, namespace or connection.namespace)
    return ", ".join(f"{tier.name} {tier.level(reviews).value}" for tier in TIERS)


def _node_facts(nodes: list[NodeSoftware]) -> Facts:
    from kubectl_qos.cli.commands.version import count_versions, version_counts_text

    facts = {"nodes": f"{len(nodes):,}"}
    if nodes:
        columns = zip(("kubelets", "images", "kernels", "runtimes"), zip(*nodes, strict=True), strict=True)
        facts |= {name: version_counts_text(count_versions(values)) for name, values in columns}
    return facts


def _installation() -> dict[str, str]:
    import platform

    return {
        "kubectl-qos": f"{__version__} ({_installed()})",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "libraries": ", ".join(_libraries()) or "none found",
        "kubectl": _kubectl(),
        "terminal": ", ".join(_terminal()),
        "variables": ", ".join(name for name in _VARIABLES if os.environ.get(name)) or "none set",
        "settings": _settings(),
    }


def _installed() -> str:
    from importlib import metadata

    if getattr(sys, "frozen", False):
        return "binary"
    try:
        distribution = metadata.distribution("kubectl-qos")
    except metadata.PackageNotFoundError:
        return "not installed"
    by = (distribution.read_text("INSTALLER") or "an unknown installer").strip()
    is_editable = '"editable": true' in (distribution.read_text("direct_url.json") or "")
    return f"{'editable' if is_editable else 'package'}, by {by}"


def _libraries() -> Iterator[str]:
    from importlib import metadata

    for name in _LIBRARIES:
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue


def _kubectl() -> str:
    """Its version, which it prints without a kubeconfig."""
    import shutil
    import subprocess

    path = shutil.which("kubectl")
    if path is None:
        return "not found"
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            [path, "version", "--client"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=_KUBECTL_SECONDS,
            env={**os.environ, "KUBECONFIG": os.devnull},
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"there, but it does not print its version ({type(error).__name__})"
    return done.stdout.decode(errors="replace").partition("\n")[0].removeprefix("Client Version: ")


def _terminal() -> Iterator[str]:
    yield from (f"{name}={os.environ[name]}" for name in _OF_TERMINALS if os.environ.get(name))
    streams = {"stdin": sys.stdin, "stdout": sys.stdout, "stderr": sys.stderr}
    terminals = [name for name, stream in streams.items() if stream is not None and stream.isatty()]
    yield f"terminal at {', '.join(terminals)}" if terminals else "no terminal"
    if terminals:
        size = os.get_terminal_size(streams[terminals[-1]].fileno())
        yield f"{size.columns}x{size.lines}"
    yield f"encoding {getattr(sys.stdout, 'encoding', None) or 'none'}"


def _settings() -> str:
    from kubectl_qos.config import config_file
    from kubectl_qos.config.settings import read_yaml

    path = config_file()
    try:
        document = read_yaml(path) if path is not None else None
        if document is None:
            return "defaults"
        entries = document.entries("setting")
    except QosError:
        return "the file cannot be used"
    settings = (
        f"{name} {value.text()}"
        if name in _PLAIN_SETTINGS and value.node.id == "scalar"
        else (name if name in _OTHER_SETTINGS else "an unknown one")
        for name, value in entries.items()
    )
    return ", ".join(settings) or "defaults"

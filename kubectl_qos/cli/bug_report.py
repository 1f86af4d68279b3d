"""`kubectl qos bug-report`: what a report of a defect needs, without names, paths and secrets.

Whatever fails is said, by its class, and nothing fails: sentences of errors name servers, users and files.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from kubectl_qos.cli import streams
from kubectl_qos.cli.installation import installation
from kubectl_qos.cli.parser import spelled
from kubectl_qos.cli.version import count_versions, version_counts_text
from kubectl_qos.errors import ApiError, ServerUnreachable
from kubectl_qos.present.format import escape

if TYPE_CHECKING:
    from kubectl_qos.cluster.kube_api import NodeSoftware
    from kubectl_qos.transport.client import Connection
    from kubectl_qos.transport.kubeconfig import ConnectionOptions

TIMEOUT: Final = "5s"
ISSUES: Final = "https://github.com/kubectl-qos/kubectl-qos/issues/new"
_PLAIN_FLAGS: Final = ("--usage=", "--v=", "--request-timeout=", "--node-memory=")
"""Flags whose values name nothing."""
_REDACTED: Final = "<redacted>"

Facts = dict[str, str]


def run(options: argparse.Namespace) -> int:
    """Print the report; what is said of it goes to stderr."""
    words = spelled(options)
    sections = {
        "installation": installation() | {"flags": " ".join(map(_flag, words)) or "none"},
        "cluster": _cluster(options),
    }
    if getattr(options, "output", None) == "json":
        from kubectl_qos.present.output import to_json

        streams.out_text(to_json(sections))
    else:
        streams.out(_markdown(sections))
    streams.note(f"look through it before you post it at {ISSUES}")
    return 0


def _markdown(sections: Mapping[str, Facts]) -> Iterator[str]:
    yield from ("### What happened", "", "<!-- the command, what it printed, what you expected -->", "")
    for title, facts in sections.items():
        yield from (f"### {title.capitalize()}", "", "```text")
        width = max(map(len, facts))
        yield from (f"{name:<{width}}  {_plain(value)}" for name, value in facts.items())
        yield from ("```", "")


def _plain(text: str) -> str:
    """A value that ends no block of Markdown."""
    return escape(text).replace("```", "'''")


def _flag(word: str) -> str:
    flag, equals, _ = word.partition("=")
    return word if not equals or word.startswith(_PLAIN_FLAGS) else f"{flag}={_REDACTED}"


def _cluster(options: argparse.Namespace) -> Facts:
    if getattr(options, "demo", False) or getattr(options, "filename", None):
        facts: Facts = {"source": "the demo" if getattr(options, "demo", False) else "files"}
        _add(facts, "objects", lambda: _of_source(options))
        return facts
    from kubectl_qos.cli.sources import connection_options, open_connection

    options.request_timeout = getattr(options, "request_timeout", TIMEOUT)
    given = connection_options(options)
    facts = {}
    _add(facts, "kubeconfig", lambda: _kubeconfig(given))
    _add(facts, "connection", lambda: _target(given))
    if "connection" in facts:
        return facts
    try:
        facts |= _of_server(open_connection(options), getattr(options, "namespace", None))
    except Exception as error:  # noqa: BLE001 - a report of what does not work has to come out
        facts["server"] = _failure(error)
    return facts


def _add(facts: Facts, name: str, found: Callable[[], Facts | str]) -> None:
    """One more fact, or several, or what kept us from it."""
    try:
        value = found()
    except Exception as error:  # noqa: BLE001 - a report of what does not work has to come out
        value = _failure(error)
    facts |= value if isinstance(value, dict) else {name: value}


def _failure(error: BaseException) -> str:
    """What went wrong, without the sentence, which names things."""
    if isinstance(error, ApiError):
        reason = error.reason if re.fullmatch("[A-Za-z]{1,40}", error.reason) else ""
        known = error.status in set(HTTPStatus)
        return (
            f"refused: {error.status} {reason or (HTTPStatus(error.status).phrase if known else '')}".strip()
        )
    root = error
    while root.__cause__ is not None or root.__context__ is not None:
        root = root.__cause__ or root.__context__ or root
    what = "no answer" if isinstance(error, ServerUnreachable) else "failed"
    return f"{what} ({type(root).__name__})"


def _of_source(options: argparse.Namespace) -> Facts:
    from kubectl_qos.cli.sources import resolve_source
    from kubectl_qos.cluster.kube_api import NodeSoftware
    from kubectl_qos.k8s.snapshot import Scope

    wanted = resolve_source(options)
    snapshot = wanted.source.snapshot(Scope())
    facts = _of_nodes([NodeSoftware.from_node(node) for node in snapshot.nodes.values()]) | {
        "pods": f"{len(snapshot.pods):,}"
    }
    return facts | ({"problems": f"{len(wanted.problems):,}"} if wanted.problems else {})


def _kubeconfig(given: ConnectionOptions) -> str:
    from kubectl_qos.transport.kubeconfig import entry_names

    return ", ".join(f"{len(names)} {kind}" for kind, names in entry_names(given).items())


def _target(given: ConnectionOptions) -> Facts:
    """By what we say who we are, and which kind of server that is; not which one."""
    from kubectl_qos.transport.auth import auth_method
    from kubectl_qos.transport.kubeconfig import resolve_context
    from kubectl_qos.transport.proxy import find_proxy

    found = resolve_context(given)
    cluster, user = found.cluster, found.user
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
    """The kind of a server's address."""
    parts = urlsplit(server if "://" in server else f"http://{server}")
    host = parts.hostname or ""
    scheme = parts.scheme if parts.scheme in {"http", "https"} else "another scheme"
    try:
        address = ip_address(host)
    except ValueError:
        return f"{scheme}, {'loopback' if host == 'localhost' else 'by name'}"
    return f"{scheme}, {'loopback' if address.is_loopback else 'private' if address.is_private else 'public'}"


def _of_server(connection: Connection, namespace: str | None) -> Facts:
    """What it is, what we may do there, and how much there is. Raises QosError where it does not answer."""
    from kubectl_qos.cluster.kube_api import KubeApi

    api = KubeApi(connection)
    facts: Facts = {}
    try:
        facts["server"] = _server(api.version())
    except ApiError as error:
        facts["server"] = _failure(error)
    _add(facts, "rights", lambda: _rights(connection, namespace))
    _add(facts, "nodes", lambda: _of_nodes(api.node_software()))
    _add(facts, "pods", lambda: f"{api.pod_count():,}")
    return facts


def _server(version: Mapping[str, Any]) -> str:
    return f"{version.get('gitVersion')} {version.get('platform') or ''}".strip()


def _rights(connection: Connection, namespace: str | None) -> str:
    from kubectl_qos.cluster.access_review import review_access
    from kubectl_qos.k8s.rbac import TIERS

    wanted = (right for tier in TIERS for right in tier.permissions)
    reviews = review_access(connection, wanted, namespace or connection.namespace)
    return ", ".join(f"{tier.name} {tier.level(reviews).value}" for tier in TIERS)


def _of_nodes(nodes: list[NodeSoftware]) -> Facts:
    """How many there are of each version."""
    facts = {"nodes": f"{len(nodes):,}"}
    if nodes:
        columns = zip(("kubelets", "images", "kernels", "runtimes"), zip(*nodes, strict=True), strict=True)
        facts |= {name: version_counts_text(count_versions(values)) for name, values in columns}
    return facts

"""Flags of every command, with kubectl's words for them."""

from __future__ import annotations

import argparse
from typing import NoReturn

from kubectl_qos.cli.grammar.switches import add_switch
from kubectl_qos.errors import UsageError


class Parser(argparse.ArgumentParser):
    """argparse with our exceptions in place of its own exit."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with a sentence of argparse's."""
        raise UsageError(message, hint=f"see '{self.prog} --help'")


def _level(text: str) -> int:
    """A level of -v. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise argparse.ArgumentTypeError(
            f"invalid level {text!r}: write a number such as 6, or 0 for silence"
        )
    return int(text)


def _add_connection(shared: Parser) -> None:
    """Which server, as whom, and how: all flags of kubectl, each over what the kubeconfig says."""
    group = shared.add_argument_group("connection")
    group.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig file")
    group.add_argument("--context", metavar="NAME", help="the kubeconfig context")
    group.add_argument("--cluster", metavar="NAME", help="the kubeconfig cluster")
    group.add_argument("--user", metavar="NAME", help="the kubeconfig user")
    group.add_argument("-s", "--server", metavar="URL", help="the API server")
    group.add_argument("--token", metavar="TOKEN", help="a bearer token")
    group.add_argument("--username", metavar="NAME", help="a name for basic authentication")
    group.add_argument("--password", metavar="WORD", help="a password for basic authentication")
    group.add_argument("--as", dest="as_user", metavar="USER", help="act as this user")
    group.add_argument("--as-uid", metavar="UID", help="act as a user with this UID")
    group.add_argument(
        "--as-group", dest="as_groups", action="append", metavar="GROUP", help="act in this group; may repeat"
    )
    group.add_argument("--certificate-authority", metavar="FILE", help="the CA of the server's certificate")
    group.add_argument("--client-certificate", metavar="FILE", help="our certificate")
    group.add_argument("--client-key", metavar="FILE", help="the key of our certificate")
    group.add_argument("--tls-server-name", metavar="NAME", help="the name in the server's certificate")
    group.add_argument(
        "--request-timeout",
        metavar="TIME",
        help="the most that one request may take: 30, 5s, 1m30s; 0 is no end",
    )
    add_switch(group, "--insecure-skip-tls-verify", "take any certificate of the server")
    add_switch(group, "--disable-compression", "ask for answers that are not compressed")


def shared_flags() -> Parser:
    """Flags of every command, before or after its name, as kubectl takes them."""
    shared = Parser(add_help=False, argument_default=argparse.SUPPRESS, allow_abbrev=False)
    pods = shared.add_argument_group("which pods")
    pods.add_argument("-n", "--namespace", metavar="NS", help="the namespace")
    pods.add_argument("-A", "--all-namespaces", action="store_true", help="every namespace")
    pods.add_argument("-l", "--selector", metavar="LABELS", help="label selector such as app=web,tier!=db")
    pods.add_argument("--node", metavar="NODE", help="only pods of this node")
    source = shared.add_argument_group("where from")
    source.add_argument(
        "-f",
        "--filename",
        action="append",
        metavar="FILE|DIR|-",
        help="manifests, or the output of kubectl get -o json|yaml, instead of a cluster",
    )
    source.add_argument("-R", "--recursive", action="store_true", help="folders below a -f folder too")
    source.add_argument("--demo", action="store_true", help="an embedded cluster, to look around")
    _add_connection(shared)
    facts = shared.add_argument_group("facts")
    facts.add_argument(
        "--usage",
        choices=("metrics", "summary", "none"),
        metavar="SOURCE",
        help="metrics (the metrics API), summary (RSS and swap from the kubelets: needs get on nodes/proxy,"
        " a right that allows far more than reading), or none",
    )
    facts.add_argument(
        "--node-memory", metavar="SIZE", help="memory of nodes whose capacity is not known, such as 16Gi"
    )
    facts.add_argument(
        "--assume",
        action="append",
        metavar="KEY=VALUE",
        help="a setting of the nodes that no API tells: ociRuntime=crun-1.22, cgroupVersion=1, …",
    )
    facts.add_argument(
        "--feature-gates", action="append", metavar="GATE=BOOL,…", help="gates of the kubelets"
    )
    shared.add_argument(
        "-v",
        "--v",
        dest="verbosity",
        type=_level,
        metavar="LEVEL",
        help="tell on stderr what is done: 4 decisions, 6 requests, 7 and 8 their headers, 9 tracebacks too",
    )
    return shared

"""The command line's grammar, with kubectl's flags and kubectl's words for them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from kubectl_qos.errors import UsageError

OUTPUTS = ("wide", "json", "yaml", "csv", "name")

EXAMPLES = """\
examples:
  kubectl qos                                the terminal UI
  kubectl qos top -A                         every pod, the next victims first
  kubectl qos top --node worker-2            the kill order of one node
  kubectl qos explain pod/web-0 -n shop      why this class, this score, these cgroup values
  kubectl qos tree node/worker-2             its cgroups and what is written there
  kubectl qos compare node/worker-2 --to 1.37  what an upgrade changes for its pods
  kubectl get pods,nodes -A -o json | kubectl qos top -f -
  kubectl qos --demo                         the terminal UI on an embedded cluster
"""


class _Parser(argparse.ArgumentParser):
    """argparse with our exceptions in place of its own exit."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"see '{self.prog} --help'")


def program_name() -> str:
    """`kubectl qos` when started as a kubectl plugin, else `kubectl-qos`."""
    name = Path(sys.argv[0]).name
    as_plugin = name.startswith("kubectl-") and "KUBECTL_PATH" in os.environ
    return "kubectl qos" if as_plugin or name.startswith("kubectl-qos") else "kubectl-qos"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The parsed command line; `command` is None for the terminal UI. Raises UsageError."""
    return build().parse_args(arguments)


def build() -> argparse.ArgumentParser:
    """The whole grammar."""
    shared = _shared()
    parser = _Parser(
        prog=program_name(),
        description="When a node runs out of memory, who dies, why, and what do I change?",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[shared],
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    _add_top(commands, shared)
    _add_explain(commands, shared)
    _add_tree(commands, shared)
    _add_compare(commands, shared)
    _add_edit(commands, shared)
    completion = _command(
        commands,
        shared,
        "completion",
        "print a script that completes commands and flags",
        "A completion script: source <(kubectl-qos completion bash)",
    )
    completion.add_argument("shell", choices=("bash", "zsh"), metavar="bash|zsh", help="the shell")
    version = _command(
        commands, shared, "version", "print the version of kubectl-qos", "Print the version of kubectl-qos."
    )
    version.add_argument("--client", action="store_true", help="ignored: no server is asked")
    return parser


def _command(
    commands: argparse._SubParsersAction[_Parser], shared: _Parser, name: str, summary: str, description: str
) -> _Parser:
    return commands.add_parser(
        name,
        help=summary,
        description=description,
        parents=[shared],
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )


def _add_top(commands: argparse._SubParsersAction[_Parser], shared: _Parser) -> None:
    top = _command(
        commands,
        shared,
        "top",
        "pods by OOM kill priority",
        "Pods by OOM kill priority: the next victim of each node first.",
    )
    top.add_argument("names", nargs="*", metavar="NAME", default=[], help="only these pods")
    top.add_argument("--containers", action="store_true", help="one row for each container")
    top.add_argument("-o", "--output", choices=OUTPUTS, metavar="|".join(OUTPUTS), help="output format")
    top.add_argument("--no-headers", action="store_true", help="no header line")
    top.add_argument(
        "--sort-by", metavar="COLUMN", help="any column; `eviction` shows the kubelet's order instead"
    )


def _add_explain(commands: argparse._SubParsersAction[_Parser], shared: _Parser) -> None:
    explain = _command(
        commands,
        shared,
        "explain",
        "why this class, score, cgroup values and eviction rank",
        "Everything about one pod: class, oom_score_adj, rank, cgroup values, eviction.",
    )
    explain.add_argument("target", nargs="*", metavar="TYPE/NAME", default=[], help="pod/web-0")
    explain.add_argument(
        "-o", "--output", choices=("json", "yaml"), metavar="json|yaml", help="output format"
    )


def _add_tree(commands: argparse._SubParsersAction[_Parser], shared: _Parser) -> None:
    tree = _command(
        commands,
        shared,
        "tree",
        "the cgroup tree of a node, with the values that are written there",
        "Kubepods, the classes, pods and containers, with what kubelet and runtime write there.",
    )
    tree.add_argument(
        "target",
        nargs="*",
        metavar="TYPE/NAME",
        default=[],
        help="node/worker-1, or pod/web-0 for the way to that pod; every node without it",
    )
    tree.add_argument(
        "--cgroup-version", type=int, choices=(1, 2), help="as if the nodes had this cgroup version"
    )
    tree.add_argument("--files", action="store_true", help="one line for each file, with its whole path")
    tree.add_argument("-o", "--output", choices=("json", "yaml"), metavar="json|yaml", help="output format")


def _add_compare(commands: argparse._SubParsersAction[_Parser], shared: _Parser) -> None:
    compare = _command(
        commands,
        shared,
        "compare",
        "what a node upgrade or another setting would change",
        "The same pods on the same node with another release or setting: what differs.",
    )
    compare.add_argument(
        "target",
        nargs="*",
        metavar="TYPE/NAME",
        default=[],
        help="pod/web-0 in full, node/worker-1 or nothing as a table",
    )
    compare.add_argument("--to", metavar="RELEASE", help="the kubelet's release after it, such as 1.37")
    compare.add_argument(
        "--set",
        dest="settings",
        action="append",
        metavar="KEY=VALUE",
        help="a setting after it: cgroupDriver=cgroupfs, cgroupVersion=1, featureGates.MemoryQoS=true, …",
    )
    compare.add_argument(
        "-o", "--output", choices=("json", "yaml"), metavar="json|yaml", help="output format"
    )


def _add_edit(commands: argparse._SubParsersAction[_Parser], shared: _Parser) -> None:
    edit = _command(
        commands,
        shared,
        "edit",
        "the terminal UI, opened on the edit screen",
        "Change requests and limits with a live preview; ends in a patch or manifest.",
    )
    edit.add_argument("target", nargs="+", metavar="TYPE/NAME", help="pod/web-0")


def _shared() -> _Parser:
    """Flags of every command, before or after its name, as kubectl takes them."""
    shared = _Parser(add_help=False, argument_default=argparse.SUPPRESS, allow_abbrev=False)
    pods = shared.add_argument_group("which pods")
    pods.add_argument("-n", "--namespace", metavar="NS", help="the namespace")
    pods.add_argument("-A", "--all-namespaces", action="store_true", help="every namespace")
    pods.add_argument("-l", "--selector", metavar="LABELS", help="label selector such as app=web,tier!=db")
    pods.add_argument("--node", metavar="NODE", help="only pods of this node")
    source = shared.add_argument_group("where from")
    source.add_argument("--context", metavar="NAME", help="the kubeconfig context")
    source.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig file")
    source.add_argument(
        "-f",
        "--filename",
        action="append",
        metavar="FILE|DIR|-",
        help="manifests, or the output of kubectl get -o json|yaml, instead of a cluster",
    )
    source.add_argument("-R", "--recursive", action="store_true", help="folders below a -f folder too")
    source.add_argument("--demo", action="store_true", help="an embedded cluster, to look around")
    facts = shared.add_argument_group("facts")
    facts.add_argument("--no-usage", action="store_true", help="do not ask for memory usage")
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
    shared.add_argument("-v", "--v", dest="verbosity", type=int, metavar="LEVEL", help="9 shows tracebacks")
    return shared

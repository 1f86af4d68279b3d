"""The command line's grammar, with kubectl's flags and kubectl's words for them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

from kubectl_qos.cli import host_grammar, kills_grammar, simulate_grammar, verify_grammar
from kubectl_qos.cli.change_grammar import (
    SET_DESCRIPTION,
    UNDO_DESCRIPTION,
    add_switch,
    fill_set,
    fill_undo,
)
from kubectl_qos.errors import UsageError

OUTPUTS = ("wide", "json", "yaml", "csv", "name")
RISKS = ("none", "low", "medium", "high", "next")
WEB_PORT = 8767

EXAMPLES = """\
examples:
  kubectl qos                                the terminal UI
  kubectl qos top -A                         every pod, the next victims first
  kubectl qos top --node worker-2            the kill order of one node
  kubectl qos explain pod/web-0 -n shop      why this class, this score, these cgroup values
  kubectl qos tree node/worker-2             its cgroups and what is written there
  kubectl qos compare node/worker-2 --to 1.37  what an upgrade changes for its pods
  kubectl qos set pod/web-0 --limits memory=1Gi  change them, with what that does shown first
  kubectl qos undo                           take the last change back
  kubectl qos verify pod/web-0               whether the node has what was computed
  kubectl qos kills -A --since 1h            what was killed, by which mechanism, and how sure that is
  kubectl qos host                           on a node: its own processes, daemons too, in the kernel's order
  kubectl qos simulate node/worker-2 --free 4Gi  who dies, in which order, until so much is free
  kubectl qos can-i                          which rights you have, and what more would give
  kubectl get pods,nodes -A -o json | kubectl qos top -f -
  kubectl qos --demo                         the terminal UI on an embedded cluster
  kubectl qos web --open                     the same UI in a browser
"""

TOP_EXAMPLES = """\
examples:
  kubectl qos top -A --min-risk high         pods that their own limit is about to kill, and next victims
  kubectl qos top -A --min-risk next         the next victim of each node
  kubectl qos top nodes                      nodes: memory by class, requests, limits, worst case, pressure
  kubectl qos top nodes -o wide              and in Mi, with the kubelets' eviction thresholds
  kubectl qos top nodes -l pool=a            nodes with this label, as in kubectl
  kubectl qos top pod/nodes                  a pod that is called nodes

columns of nodes:
  MEM_G MEM_B MEM_E   in use (working set) by Guaranteed, Burstable and BestEffort pods
  %USED               in use by pods, of the capacity
  %REQ                requests, of what is allocatable
  %LIM                limits, of the capacity; + where some containers have none
  %WORST              in use once every container with a limit has reached it and the others stay as they
                      are, of the capacity; + as above, UNLIMITED (-o wide) counts the pods
  TO_EVICTION         (-o wide) how much more pods can use, at most, before the kubelet evicts some
  NEXT_VICTIM         whom the kernel kills first when the node runs out, and the letter of its class
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


def spelled(options: argparse.Namespace) -> list[str]:
    """The flags of every command that were given, a word each: parsed anew, they say the same."""
    words: dict[str, list[str]] = {}
    for action in _shared()._actions:  # noqa: SLF001 - argparse has no public way to ask
        if action.dest not in options:
            continue
        value, flag = getattr(options, action.dest), action.option_strings[-1]
        if action.nargs != 0:
            words[action.dest] = [f"{flag}={one}" for one in (value if isinstance(value, list) else [value])]
        elif value == action.const:
            words[action.dest] = [flag]
    return [word for given in words.values() for word in given]


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
    _add_readonly(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    _add_top(commands, shared)
    _add_explain(commands, shared)
    _add_tree(commands, shared)
    _add_compare(commands, shared)
    _add_edit(commands, shared)
    _add_changes(commands, shared)
    for name, grammar, fill in _OF_THEIR_OWN:
        fill(_command(commands, shared, name, grammar.SUMMARY, grammar.DESCRIPTION))
    _add_can_i(commands, shared)
    _add_web(commands, shared)
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


_OF_THEIR_OWN: Final = (
    ("kills", kills_grammar, kills_grammar.fill_kills),
    ("simulate", simulate_grammar, simulate_grammar.fill_simulate),
    ("verify", verify_grammar, verify_grammar.fill_verify),
    ("host", host_grammar, host_grammar.fill_host),
)
"""Commands whose grammar has a module to itself."""


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
        "pods by OOM kill priority; top nodes: the memory of nodes",
        "Pods by OOM kill priority: the next victim of each node first.\n"
        "Or nodes: those in trouble first, then the fullest.",
    )
    top.epilog = TOP_EXAMPLES
    top.formatter_class = argparse.RawDescriptionHelpFormatter
    top.add_argument(
        "names",
        nargs="*",
        metavar="TYPE/NAME",
        default=[],
        help="only these pods: web-0, pod/web-0 or pods web-0; or nodes: all as nodes, node/worker-1 or"
        " nodes worker-1",
    )
    top.add_argument("--containers", action="store_true", help="one row for each container")
    top.add_argument(
        "--min-risk",
        choices=RISKS,
        metavar="|".join(RISKS),
        help="only pods of at least this risk: low has processes, medium is flagged PRIORITY or OVER-REQUEST,"
        " high is flagged NEAR-LIMIT, next is the next victim of its node (RANK 1)",
    )
    top.add_argument("-o", "--output", choices=OUTPUTS, metavar="|".join(OUTPUTS), help="output format")
    top.add_argument("-w", "--watch", action="store_true", help="follow the cluster; ctrl-c ends it")
    top.add_argument("--no-headers", action="store_true", help="no header line")
    top.add_argument(
        "--sort-by",
        metavar="COLUMN",
        help="any column, in wide output or not; of pods `eviction` shows the kubelet's order instead",
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
    _add_readonly(edit)


def _add_changes(commands: argparse._SubParsersAction[_Parser], shared: _Parser) -> None:
    fill_set(
        _command(
            commands,
            shared,
            "set",
            "change requests and limits, with what that does shown first",
            SET_DESCRIPTION,
        )
    )
    fill_undo(_command(commands, shared, "undo", "take back what set or the UI changed", UNDO_DESCRIPTION))


def _add_readonly(parser: _Parser) -> None:
    parser.add_argument(
        "--readonly",
        action="store_true",
        help="start the terminal UI without any way to change the cluster",
    )


def _add_can_i(commands: argparse._SubParsersAction[_Parser], shared: _Parser) -> None:
    can_i = _command(
        commands,
        shared,
        "can-i",
        "which rights you have here, and what each tier of them gives",
        "The tiers of rights as the API server judges them for you: in the namespace of -n or of the context,"
        " with -A in all. Exit code 0 if pods can be read, which is enough to begin with; 1 if not, or if the"
        " server could not be asked.",
    )
    can_i.add_argument(
        "-o",
        "--output",
        choices=("wide", "json", "yaml"),
        metavar="wide|json|yaml",
        help="output format; wide has a row for each right",
    )


def _add_web(commands: argparse._SubParsersAction[_Parser], shared: _Parser) -> None:
    web = _command(
        commands,
        shared,
        "web",
        "the terminal UI in a browser",
        "Serve the terminal UI to browsers, each page with a process of its own that has your credentials, to"
        " whoever has the URL that is printed. Needs pip install 'kubectl-qos[web]'.",
    )
    web.add_argument(
        "--port",
        type=_port,
        default=WEB_PORT,
        metavar="PORT",
        help=f"where to listen, {WEB_PORT} if not said; 0 is any free port",
    )
    web.add_argument(
        "--address",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="where to listen, 127.0.0.1 if not said: only this machine",
    )
    web.add_argument(
        "--allow-host",
        dest="allow_hosts",
        action="append",
        metavar="NAME",
        help="a name that browsers reach it by, such as that of a reverse proxy; may repeat",
    )
    web.add_argument("--allow-writes", action="store_true", help="without it the UI starts with --readonly")
    web.add_argument("--open", action="store_true", help="open the page in a browser")


def _port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: a number from 0 to {_LAST_PORT}")
    return int(text)


_LAST_PORT: Final = 0xFFFF


def _add_connection(shared: _Parser) -> None:
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


def _shared() -> _Parser:
    """Flags of every command, before or after its name, as kubectl takes them."""
    shared = _Parser(add_help=False, argument_default=argparse.SUPPRESS, allow_abbrev=False)
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
    shared.add_argument("-v", "--v", dest="verbosity", type=int, metavar="LEVEL", help="9 shows tracebacks")
    return shared

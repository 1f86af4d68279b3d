"""One file per command: its arguments, its options and its run.

Each has `DESCRIPTION`, perhaps `EXAMPLES`, `Options`, `add_arguments(parser)` and `run(options)`.
Completion and --help import these files, so slow modules are imported inside of functions. `edit` has no
`run`: `kubectl_qos.__main__` opens the terminal UI.
"""

from collections.abc import Mapping
from typing import Final

COMMANDS: Final[Mapping[str, str]] = {
    "top": "pods by OOM kill priority; top nodes: the memory of nodes",
    "next": "who dies next, what kills it, and how far away that is",
    "fix": "changes that prevent the next deaths, each tried in the simulation",
    "explain": "why this class, score, cgroup values and eviction rank",
    "tree": "the cgroup tree of a node, with the values written to it",
    "check": "rules for manifests before they run, in CI and in the API server",
    "compare": "what an upgrade of Kubernetes or a setting would change",
    "edit": "the terminal UI, opened on the edit screen",
    "set": "change requests and limits, after a preview",
    "undo": "revert what set or the UI changed",
    "kills": "what was killed, by which mechanism, and why it was chosen",
    "report": "incident report for a node, pod, workload or namespace, as one page",
    "simulate": "who dies, in which order, as a node's memory fills",
    "verify": "compare computed values with measured ones",
    "host": "on a node: its processes in kill order",
    "can-i": "your permissions, and what each tier of them enables",
    "web": "the terminal UI in a browser",
    "exporter": "predictions as metrics for Prometheus",
    "options": "the flags that every command has",
    "completion": "print a script that completes commands, flags and names",
    "version": "the versions of kubectl-qos, of the server and of the kubelets",
}
"""The summary of each command, in the order of --help."""


_COMMON: Final[Mapping[int, str]] = {
    0: "done",
    1: "request refused, server unreachable, invalid input, or a named object does not exist",
    2: "the command line is wrong, or a value in it cannot be read",
    130: "ended by ctrl-c",
}
_OF_CLUSTERS: Final = f"{_COMMON[1]}; with several clusters, in any of them"
_ON_TRIAL: Final[Mapping[int, str]] = {
    3: "with --undo-if: the change did not hold and was reverted",
    4: "with --for: the change did not hold and was not reverted",
}
_OWN: Final[Mapping[str, Mapping[int, str]]] = {
    "top": {1: _OF_CLUSTERS},
    "next": {1: _OF_CLUSTERS},
    "kills": {0: "done, whether something was killed or not", 1: _OF_CLUSTERS},
    "report": {0: "written, whether something died or not"},
    "set": {
        0: "shown, or applied and settled; with --exit-code: nothing would change",
        1: "a server would refuse it, it can never take effect, or it is not applied or has not settled; with"
        " --exit-code: something would change",
        2: "the command line is wrong; with --exit-code: any error",
        **_ON_TRIAL,
    },
    "fix": {
        1: "with --apply as for set; or a named object does not exist, or one of several clusters failed",
        **_ON_TRIAL,
    },
    "undo": {1: "not reverted, or not settled in time"},
    "check": {
        0: "no findings, or none of the level of --fail-on",
        1: "something is found, and everything could be checked",
        2: "any error, even if something is found: a cluster that failed, a document that cannot be read",
    },
    "verify": {0: "nothing differs", 1: "something differs", 2: "unknown because of an error"},
    "can-i": {0: "pods can be read", 1: "pods cannot be read, or the server does not answer"},
    "version": {1: "no server can be reached; what is known without it is printed"},
    "exporter": {0: "ended by SIGTERM", 1: "the flags, the kubeconfig or the address cannot be used"},
    "options": {1: "standard output cannot be written"},
    "completion": {1: "standard output cannot be written"},
}


def exit_codes(command: str) -> Mapping[int, str]:
    """Return what each exit code of a command means."""
    return {**_COMMON, **_OWN.get(command, {})}


def module_name(command: str) -> str:
    """Return the module of a command."""
    return f"{__name__}.{command.replace('-', '_')}"

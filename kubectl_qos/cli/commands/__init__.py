"""One file per command: its arguments, its options and its run.

Each has `DESCRIPTION`, perhaps `EXAMPLES`, `Options`, `add_arguments(parser)` and `run(options)`.
Completion and --help import these files, so slow modules are imported inside of functions. `edit` has no
`run`: `kubectl_qos.__main__` opens the terminal UI.
"""

from collections.abc import Mapping
from typing import Final

COMMANDS: Final[Mapping[str, str]] = {
    "top": "pods by OOM kill priority; top nodes: the memory of nodes",
    "next": "who dies next, by whom, and how far away that is",
    "fix": "what to change about the next deaths, proven before it is offered",
    "explain": "why this class, score, cgroup values and eviction rank",
    "tree": "the cgroup tree of a node, with the values that are written there",
    "check": "rules for manifests before they run, in CI and in the API server",
    "compare": "what a node upgrade or another setting would change",
    "edit": "the terminal UI, opened on the edit screen",
    "set": "change requests and limits, with what that does shown first",
    "undo": "revert what set or the UI changed",
    "kills": "what was killed, by which mechanism, and why it was chosen",
    "report": "what happened to a node, pod, workload or namespace, as a page for the day after",
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
    1: "refused, unreachable, invalid input, or something named does not exist",
    2: "the command line is wrong, or a value in it cannot be read",
    130: "ended by ctrl-c",
}
_OF_CLUSTERS: Final = f"{_COMMON[1]}; of several clusters, in one of them"
_ON_TRIAL: Final[Mapping[int, str]] = {
    3: "with --undo-if: it did not hold, and is reverted",
    4: "with --for: it did not hold and stands: --undo-if does not say so, or someone else changed it since",
}
_OWN: Final[Mapping[str, Mapping[int, str]]] = {
    "top": {1: _OF_CLUSTERS},
    "next": {1: _OF_CLUSTERS},
    "kills": {0: "done, whether something was killed or not", 1: _OF_CLUSTERS},
    "report": {0: "written, whether something died or not"},
    "set": {
        0: "shown, or applied and settled; with --exit-code: nothing would change",
        1: "a server would refuse it, it can never be actuated, or it is not applied or has not settled; with"
        " --exit-code: something would change",
        2: "the command line is wrong; with --exit-code: any error",
        **_ON_TRIAL,
    },
    "fix": {
        1: "as for set, with --apply; or something named does not exist, or one of several clusters failed",
        **_ON_TRIAL,
    },
    "undo": {1: "not reverted, or not settled in time"},
    "check": {
        0: "nothing is found, or nothing as serious as --fail-on",
        1: "something is found, and everything could be checked",
        2: "any error, also beside findings: of one of several clusters, or a document that cannot be read",
    },
    "verify": {0: "nothing differs", 1: "something differs", 2: "that is unknown: any error"},
    "can-i": {0: "pods can be read", 1: "pods cannot be read, or the server does not answer"},
    "version": {1: "no server can be reached; what is known without it is printed"},
    "exporter": {0: "ended by SIGTERM", 1: "the flags, the kubeconfig or the address cannot be used"},
    "options": {1: "standard output cannot be written"},
    "completion": {1: "standard output cannot be written"},
}


def exit_codes(command: str) -> Mapping[int, str]:
    """What each exit code of a command means."""
    return {**_COMMON, **_OWN.get(command, {})}


def module_name(command: str) -> str:
    """The module of a command."""
    return f"{__name__}.{command.replace('-', '_')}"

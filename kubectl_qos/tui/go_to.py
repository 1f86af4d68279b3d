"""The commands after `:`: their destinations, and their completions. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kubectl_qos.analysis.pod_table import PodRow
from kubectl_qos.errors import InputError, did_you_mean, nearest
from kubectl_qos.k8s.kinds import WORKLOADS
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.view_model import ViewModel

LIST: Final = "list"


@dataclass(frozen=True, slots=True)
class GoTo:
    """The destination of a command: LIST, or the first name of the command.

    A list has a `view` and a `filter` as typed. `name` is a context (None: ask which) or a node (None: that
    of the row), `pod` the row of a pod (None: the one under the cursor).
    """

    destination: str
    view: View | None = None
    name: str | None = None
    filter: str = ""
    pod: PodRow | None = None


@dataclass(frozen=True, slots=True)
class _Command:
    """A command. `kind` is the list that it shows, `argument` what can follow it."""

    names: str
    help: str
    kind: ListKind | None = None
    argument: str = ""
    workload: str = ""

    @property
    def words(self) -> Sequence[str]:
        return self.names.split()


def _workload_commands() -> Iterator[_Command]:
    """Yield a command for each kind, with kubectl's names, the short one first, and `dp` of k9s."""
    for kind, (names, *_) in WORKLOADS.items():
        words = (*reversed(names), *(["dp"] if kind == "Deployment" else []))
        yield _Command(" ".join(words), f"the {kind}s", ListKind.WORKLOADS, "NAMESPACE", kind)


_COMMANDS: Final = (
    _Command("pods po", "the pods in kill order", ListKind.PODS, "NAMESPACE"),
    _Command("pod", "a pod, on its node", argument="POD"),
    _Command("all", "every pod of every node and namespace", ListKind.PODS),
    _Command("clusters", "the clusters of the kubeconfig", ListKind.CLUSTERS),
    _Command("nodes node no cluster", "the nodes; the pods of one", ListKind.NODES, "NODE"),
    _Command("ns namespaces namespace", "the namespaces; the pods of one", ListKind.NAMESPACES, "NAMESPACE"),
    _Command("workloads wl", "the workloads of all kinds", ListKind.WORKLOADS, "NAMESPACE"),
    *_workload_commands(),
    _Command("containers co", "the containers", ListKind.CONTAINERS, "NAMESPACE"),
    _Command("explain", "why a pod has its class, score and rank", argument="POD"),
    _Command("edit", "change a pod's requests and limits", argument="POD"),
    _Command("sim simulate", "what is killed as a node fills", argument="NODE"),
    _Command("next deaths", "the next deaths of all nodes", ListKind.DEATHS, "NODE"),
    _Command("fix", "fixes for the next deaths of the row"),
    _Command("tree", "the cgroup tree of the row's node"),
    _Command("compare", "what an upgrade or another setting would change"),
    _Command("kills", "what was killed"),
    _Command("undo", "the change history"),
    _Command("ctx context contexts", "another cluster", argument="CONTEXT"),
    _Command("help", "the keys of this screen, then all others"),
    _Command("q quit q!", "leave kubectl qos"),
)
"""The commands after `:`, in the order of completion."""
_BY_WORD: Final = {word: command for command in _COMMANDS for word in command.words}
_ALL: Final = frozenset({"", "all", "-A", "--all-namespaces"})

COMMAND_HELP: Final = tuple(
    (
        command.names,
        f"{command.help}{f'; {command.argument} may follow' if command.argument else ''}",
    )
    for command in _COMMANDS
)
"""Each command with its other names, and what it does."""


def parse_go_to(text: str, view_model: ViewModel | None) -> GoTo:
    """Return the destination of a command as typed. Raises InputError for an unknown command or name."""
    word, _, name = text.strip().partition(" ")
    name = name.strip().removeprefix("-n ").strip()
    command = _BY_WORD.get(word.lower())
    if command is None:
        names = ", ".join(command.words[0] for command in _COMMANDS)
        raise InputError(
            f'unknown command "{word}"',
            hint=did_you_mean(nearest(word.lower(), _BY_WORD)) or f"commands: {names}",
        )
    if name and not command.argument:
        raise InputError(f"nothing can follow {word}")
    if command.argument == "POD":
        return _pod(command, name, view_model)
    if command.kind is None:
        if name and command.argument == "NODE":
            _check("NODE", name, view_model)
        return GoTo(command.words[0], name=name or None)
    namespace = None if name in _ALL else name
    if command.argument == "NODE" and namespace:
        _check("NODE", namespace, view_model)
        of_node = ListKind.PODS if command.kind is ListKind.NODES else command.kind
        return GoTo(LIST, View(of_node, node=namespace))
    if namespace is not None:
        _check("NAMESPACE", namespace, view_model)
    kind = command.kind
    if kind is ListKind.NAMESPACES and namespace is not None:
        kind = ListKind.PODS
    narrowed = f"kind:={command.workload}" if command.workload else ""
    return GoTo(LIST, View(kind, namespace=namespace), filter=narrowed)


def _pod(command: _Command, name: str, view_model: ViewModel | None) -> GoTo:
    """Find a pod by its name or the beginning of it; `pod NAMESPACE` is a list."""
    is_list = command.names == "pod"
    if name in _ALL:
        return GoTo(LIST, View()) if is_list else GoTo(command.names)
    rows = view_model.rows.rows if view_model is not None else ()
    named = (row for row in rows if name in {row.name, f"{row.namespace}/{row.name}"})
    pod_row = next(named, None)
    if pod_row is None and is_list and view_model is not None and name in view_model.namespaces:
        return GoTo(LIST, View(namespace=name))
    if pod_row is None:
        pod_row = next((row for row in rows if row.name.startswith(name)), None)
    if pod_row is None:
        raise InputError(
            f'pod "{name}" not found', hint=did_you_mean(nearest(name, (row.name for row in rows)))
        )
    return GoTo(command.names, pod=pod_row)


def _check(argument: str, name: str, view_model: ViewModel | None) -> None:
    names = _names(argument, view_model)
    if name not in names:
        problem = "not found" if argument == "NODE" else "has no pods"
        raise InputError(f'{argument.lower()} "{name}" {problem}', hint=did_you_mean(nearest(name, names)))


def go_to_completions(text: str, view_model: ViewModel | None) -> Iterator[str]:
    """Yield the commands that begin with the text, or the names that can follow a whole command."""
    word, space, begin = text.partition(" ")
    if not space:
        first = [command.words[0] for command in _COMMANDS]
        first = [name for name in first if name.startswith(word)]
        other = [name for name in _BY_WORD if name.startswith(word)]
        yield from (name for name in first or other if name != text)
    elif word in _BY_WORD:
        names = dict.fromkeys(
            name for name in _names(_BY_WORD[word].argument, view_model) if name.startswith(begin)
        )
        yield from (f"{word} {name}" for name in names if name != begin)


def _names(argument: str, view_model: ViewModel | None) -> Sequence[str]:
    if view_model is None:
        return ()
    if argument == "NODE":
        return view_model.node_names
    if argument == "NAMESPACE":
        return ["-A", *filter(None, view_model.namespaces)]
    return [row.name for row in view_model.rows.rows] if argument == "POD" else ()

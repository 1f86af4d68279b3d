"""Candidates for the values of flags and operands: a function for each kind of value, and object names.

Errors yield no candidates and go to stderr.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from kubectl_qos.cli.completion.candidates import (
    EXTENSIONS,
    FILES,
    FOLDERS,
    NOTHING,
    Completion,
    Completions,
    Position,
)
from kubectl_qos.cli.options import SourceOptions
from kubectl_qos.k8s.kinds import KINDS, WORKLOADS, parse_kind, pod_from_workload
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.releases import NEWEST_MINOR, OLDEST_MINOR, Gate
from kubectl_qos.k8s.selectors import field_term

if TYPE_CHECKING:
    from kubectl_qos.k8s.snapshot import Scope, Snapshot

T = TypeVar("T")
PAGE_SIZE: Final = 500
POD: Final = "Pod"
NODE: Final = "Node"
_DESCRIPTIONS: Final = ("Status", "Node")
"""The columns of a server's table that describe an object in a word."""


class NamedObject(NamedTuple):
    """An object's name, with a few words about it."""

    name: str
    description: str = ""


class Names:
    """Reads names of objects where the flags point to, once a name is needed."""

    def __init__(self, options: SourceOptions, seconds: float) -> None:
        self.options = options._replace(connection=options.connection._replace(request_timeout=f"{seconds}s"))

    def of(self, kind: str, *, node: str | None = None) -> list[NamedObject]:
        """List the objects of a kind in scope; pods only of `node`, or of --node."""
        node = node or self.options.node
        if self.options.is_cluster:
            return _or_nothing(lambda: self._list_from_server(kind, node))
        return _or_nothing(lambda: self._list_from_files(kind, node))

    def containers(self, kind: str, name: str) -> list[str]:
        """List the containers of a pod or workload, init containers last."""
        find = self._find_on_server if self.options.is_cluster else self._find_in_files

        def read() -> list[str]:
            pod = find(kind, name)
            return [item.name for item in (*pod.containers, *pod.init_containers)] if pod is not None else []

        return _or_nothing(read)

    def kubeconfig(self, entries: str) -> list[str]:
        """List the `contexts`, `clusters` or `users` of the kubeconfig. Raises QosError."""
        from kubectl_qos.transport.kubeconfig import entry_names

        return list(entry_names(self.options.connection)[entries])

    def _list_from_files(self, kind: str, node: str | None) -> list[NamedObject]:
        snapshot, scope = self._read_files()
        if kind == "Namespace":
            return [NamedObject(name) for name in sorted({pod.namespace for pod in snapshot.pods})]
        if kind == NODE:
            return [NamedObject(name) for name in snapshot.nodes]
        pods = (pod for pod in snapshot.pods if pod.kind == kind and scope.matches(pod))
        return [NamedObject(pod.name, pod.node_name) for pod in pods if node in {None, pod.node_name}]

    def _find_in_files(self, kind: str, name: str) -> Pod | None:
        snapshot, scope = self._read_files()
        pods = filter(scope.matches, snapshot.pods)
        return next((pod for pod in pods if (pod.kind, pod.name) == (kind, name)), None)

    def _read_files(self) -> tuple[Snapshot, Scope]:
        from kubectl_qos.cli.sources import SourceNeeds, resolve_source
        from kubectl_qos.cluster.inputs import STANDARD_INPUT, is_url
        from kubectl_qos.k8s.snapshot import Scope, Snapshot

        files = self.options.files
        if STANDARD_INPUT in files or self.options.kustomize is not None or any(map(is_url, files)):
            # Stdin is the shell's, and nothing is built or fetched for a key.
            return Snapshot(), Scope()
        resolved = resolve_source(self.options.without_usage(), SourceNeeds(progress=False))
        return resolved.source.snapshot(Scope()), resolved.scope

    def _list_from_server(self, kind: str, node: str | None) -> list[NamedObject]:
        """List the first few hundred objects in the server's order."""
        from kubectl_qos.cluster.kube_api import KubeApi, list_path
        from kubectl_qos.transport.client import connect

        connection, options = connect(self.options.connection), self.options
        query = {"limit": str(PAGE_SIZE)}
        if kind == POD and node:
            query["fieldSelector"] = field_term("spec.nodeName", node)
        is_everywhere = options.all_namespaces or (bool(options.node) and options.namespace is None)
        is_namespaced = not is_everywhere and kind not in {NODE, "Namespace"}
        group = WORKLOADS[kind].group if kind in WORKLOADS else "/api/v1"
        path = list_path(f"{kind.lower()}s", connection.namespace if is_namespaced else None, group)
        table = KubeApi(connection, retries=False).table(path, query)
        return [NamedObject(cells["Name"], ", ".join(_describe(cells))) for cells in table.objects()]

    def _find_on_server(self, kind: str, name: str) -> Pod:
        """Request the object itself: tables have no containers."""
        from kubectl_qos.cluster.kube_api import KubeApi, read_object
        from kubectl_qos.transport.client import connect

        connection = connect(self.options.connection)
        client = KubeApi(connection, retries=False).client
        raw = read_object(client, kind, connection.namespace, name)
        return convert(raw, Pod) if kind == POD else pod_from_workload(kind, raw)


def _or_nothing(read: Callable[[], list[T]]) -> list[T]:
    try:
        return read()
    except Exception:  # noqa: BLE001 - whatever a server, a kubeconfig or a file makes it raise
        import traceback

        traceback.print_exc()
        return []


def _describe(cells: Mapping[str, str]) -> Iterator[str]:
    yield from (cells[name] for name in _DESCRIPTIONS if not cells.get(name, "<none>").startswith("<"))


Completer = Callable[[Position, Names], Completions]

_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_SWITCH: Final = ("true", "false")


def by_shell(directive: int) -> Completer:
    """Leave files or folders to the shell."""
    return lambda _at, _names: Completions(directive=directive)


def files_ending_in(*endings: str) -> Completer:
    """Complete files with these endings, and folders on the way to them."""
    completions = Completions(tuple(map(Completion, endings)), EXTENSIONS)
    return lambda _at, _names: completions


def names_of_kind(kind: str) -> Completer:
    """Complete the names of the objects of a kind."""
    return lambda _at, names: Completions(
        tuple(Completion(item.name, item.description) for item in names.of(kind))
    )


def in_kubeconfig(entries: str) -> Completer:
    """Complete the names of its `contexts`, `clusters` or `users`; no server is contacted."""
    return lambda _at, names: Completions.of(names.kubeconfig(entries))


def contexts(position: Position, names: Names) -> Completions:
    """Complete the last of several contexts."""
    before, comma, _ = position.word.rpartition(",")
    others = [name for name in names.kubeconfig("contexts") if name not in before.split(",")]
    return Completions.of(f"{before}{comma}{name}" for name in others)


def columns(position: Position, _names: Names) -> Completions:
    """Complete the columns of the table of pods or of nodes."""
    if position.operands and parse_kind(position.operands[0].partition("/")[0]) == NODE:
        from kubectl_qos.present.node_columns import NODE_COLUMNS

        return Completions(tuple(Completion(key, column.help) for key, column in NODE_COLUMNS.items()))
    from kubectl_qos.present.pod_columns import ALL_COLUMNS

    return Completions(tuple(Completion(column.key, column.help) for column in ALL_COLUMNS))


def releases(_position: Position, _names: Names) -> Completions:
    """Complete the minor releases that have rules."""
    return Completions.of(f"1.{minor}" for minor in range(NEWEST_MINOR, OLDEST_MINOR - 1, -1))


def conditions(_position: Position, _names: Names) -> Completions:
    """Complete the conditions that revert a change."""
    from kubectl_qos.edit.status import TrialCondition

    return Completions.of(TrialCondition)


def settings(position: Position, _names: Names) -> Completions:
    """Complete `KEY=`, and after the sign its values."""
    from kubectl_qos.k8s.node_overrides import FIELDS, USERSPACE_OOM_KILLER
    from kubectl_qos.qos.killers import OOM_KILLERS

    values = {key: field.begins for key, field in FIELDS.items()}
    values[USERSPACE_OOM_KILLER] = tuple(name for name in OOM_KILLERS if not name.endswith("VERSION"))
    return _assignments(values, position.word, separator="")


def gates(position: Position, _names: Names) -> Completions:
    """Complete `GATE=true` and `GATE=false` for the last of several."""
    return _assignments(dict.fromkeys(map(str, Gate), _SWITCH), position.word)


def resources(position: Position, _names: Names) -> Completions:
    """Complete `cpu=` and the like for the last of several, without values."""
    return _assignments(dict.fromkeys(_RESOURCES, ()), position.word)


def containers(position: Position, names: Names) -> Completions:
    """Complete the containers of the pod or workload that is named."""
    target = first_target(position)
    return Completions.of(names.containers(*target)) if target is not None else NOTHING


def growth(position: Position, names: Names) -> Completions:
    """Complete `node=` and `pod/NAME=`."""
    if not position.word.startswith("pod/"):
        return Completions.of(("node=", "pod/"))
    target = first_target(position)
    node = target[1] if target is not None and target[0] == NODE else None
    return Completions(
        tuple(Completion(f"pod/{item.name}=", item.description) for item in names.of(POD, node=node))
    )


def changes(_position: Position, names: Names) -> Completions:
    """Complete the ids of applied changes, with --context only of that context."""
    from kubectl_qos.config.state import HistoryFile, history_path
    from kubectl_qos.present.changes import entry_change, entry_object

    context = names.options.connection.context
    return Completions(
        tuple(
            Completion(entry.short_id, f"{entry_object(entry)}: {entry_change(entry)}")
            for entry in reversed(HistoryFile(history_path()).entries())
            if context in {None, entry.context}
        )
    )


def _assignments(values: Mapping[str, tuple[str, ...]], word: str, *, separator: str = ",") -> Completions:
    """Complete `KEY=` while the key is typed, then `KEY=VALUE`; leave what is before the separator."""
    before, comma, last = word.rpartition(separator) if separator else ("", "", word)
    key, equals, _ = last.partition("=")
    if not equals:
        done = {assignment.partition("=")[0] for assignment in before.split(",")}
        return Completions.of(f"{before}{comma}{name}=" for name in values if name not in done)
    return Completions.of(f"{before}{comma}{key}={value}" for value in values.get(key, ()))


class TargetCompleter:
    """Completes at most `max_targets` targets of some types; with `bare`, pods without their type too."""

    def __init__(self, *types: str, bare: bool = False, max_targets: int | None = 1) -> None:
        self._types = types
        self._bare = bare
        self._max_targets = max_targets

    def __call__(self, position: Position, names: Names) -> Completions:
        """Complete `TYPE/`, the name after the slash, or the names of a type that is a separate word."""
        typed_apart = _kind_of(position.operands[0], self._types) if position.operands else None
        targets = len(position.operands) - (typed_apart is not None)
        if self._max_targets is not None and targets >= self._max_targets:
            return NOTHING
        typed, slash, _ = position.word.partition("/")
        if typed_apart is not None:
            candidates = _list_names(typed_apart, "", names)
        elif slash:
            kind = _kind_of(typed, self._types)
            candidates = _list_names(kind, f"{typed}/", names) if kind is not None else iter(())
        else:
            candidates = self._beginnings(position, names)
        return Completions(tuple(item for item in candidates if item.value not in position.operands))

    def _beginnings(self, position: Position, names: Names) -> Iterator[Completion]:
        """Yield beginnings of a target; names with and without a type are not mixed."""
        if not self._bare or not position.operands or "/" in position.operands[0]:
            for kind in self._types:
                yield Completion(f"{KINDS[kind].names[0]}/")
        if self._bare and "/" not in "".join(position.operands):
            yield from _list_names(POD, "", names)


def first_target(position: Position) -> tuple[str, str] | None:
    """Return the kind and the name of the first target before the cursor, if it is complete."""
    first, *rest = position.operands or ("",)
    typed, slash, name = first.partition("/")
    kind = parse_kind(typed)
    if not slash:
        name = rest[0] if rest else ""
    return (kind, name) if kind is not None and name else None


def _kind_of(word: str, types: tuple[str, ...]) -> str | None:
    kind = parse_kind(word)
    return kind if kind in types else None


def _list_names(kind: str, before: str, names: Names) -> Iterator[Completion]:
    for item in names.of(kind):
        yield Completion(before + item.name, item.description)


_FILES, _FOLDERS = by_shell(FILES), by_shell(FOLDERS)
_MANIFESTS, _JSON = files_ending_in("yaml", "yml", "json"), files_ending_in("json")

FLAGS: Final[Mapping[str, Completer]] = {
    "namespace": names_of_kind("Namespace"),
    "node": names_of_kind("Node"),
    "outlive": names_of_kind("Pod"),
    **dict.fromkeys(("files", "what_if"), _MANIFESTS),
    **dict.fromkeys(("kustomize", "cache_dir", "write", "proc_root", "cgroup_root"), _FOLDERS),
    **dict.fromkeys(("kubeconfig", "certificate_authority", "client_certificate", "client_key"), _FILES),
    **dict.fromkeys(("kernel_logs", "bundle"), _FILES),
    **dict.fromkeys(("from_dump", "baseline"), _JSON),
    "config": files_ending_in("yaml"),
    "web_config_file": files_ending_in("yaml", "yml"),
    "context": in_kubeconfig("contexts"),
    "contexts": contexts,
    "cluster": in_kubeconfig("clusters"),
    "user": in_kubeconfig("users"),
    "assume": settings,
    "feature_gates": gates,
    "release": releases,
    "sort_by": columns,
    "undo_if": conditions,
    "requests": resources,
    "limits": resources,
    "containers": containers,
    "grow": growth,
}
"""By the name of a flag's value, which means the same in every command that has it."""

OPERANDS: Final[Mapping[str, Completer]] = {
    **dict.fromkeys(("top", "kills"), TargetCompleter(*KINDS, bare=True, max_targets=None)),
    "explain": TargetCompleter(POD, *WORKLOADS, max_targets=None),
    **dict.fromkeys(("tree", "compare"), TargetCompleter(*KINDS)),
    **dict.fromkeys(("edit", "set"), TargetCompleter(POD, *WORKLOADS)),
    **dict.fromkeys(("report", "next", "fix"), TargetCompleter(POD, NODE, *WORKLOADS)),
    "simulate": TargetCompleter(NODE),
    "verify": TargetCompleter(POD, NODE),
    "check": _MANIFESTS,
    "undo": changes,
}
"""By the command."""


def find_completer(command: str, action: argparse.Action) -> Completer:
    """Return the completer of a flag or operand of a command; without one only who types knows the value."""
    completer = FLAGS.get(action.dest) if action.option_strings else OPERANDS.get(command)
    return completer or (lambda _at, _names: NOTHING)

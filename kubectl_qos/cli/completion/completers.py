"""Candidates for the values of flags and operands: a function for each sort of value, and names of objects.

What cannot be read offers nothing, for there may be other candidates; the reason goes to stderr.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from kubectl_qos.cli.completion.candidates import EXTENSIONS, FILES, FOLDERS, NOTHING, Candidate, Completions
from kubectl_qos.cli.completion.position import Position
from kubectl_qos.cli.options import SourceOptions
from kubectl_qos.k8s.kinds import KINDS, WORKLOADS, parse_kind

if TYPE_CHECKING:
    from kubectl_qos.k8s.objects import Pod
    from kubectl_qos.k8s.snapshot import Snapshot

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
    labels: Mapping[str, str] = {}


class Names:
    """The names of objects where the flags point to; nothing is read before a name is needed."""

    def __init__(self, options: SourceOptions, seconds: float) -> None:
        self.options = replace(options, connection=replace(options.connection, request_timeout=f"{seconds}s"))

    def of(self, kind: str, *, node: str | None = None, labels: bool = False) -> list[NamedObject]:
        """The objects of a kind in scope, with labels on request; pods of this node or that of --node."""
        node = node or self.options.node
        if self.options.is_cluster:
            return _or_nothing(lambda: self._list_from_server(kind, node, labels=labels))
        return _or_nothing(lambda: self._list_from_files(kind, node))

    def containers(self, kind: str, name: str) -> list[str]:
        """The names of the containers of a pod or workload, init containers last."""
        find = self._find_on_server if self.options.is_cluster else self._find_in_files
        return _or_nothing(lambda: _container_names(find(kind, name)))

    def kubeconfig(self, entries: str) -> list[str]:
        """The names of `contexts`, `clusters` or `users`. Raises QosError for a file that cannot be used."""
        from kubectl_qos.transport.kubeconfig import entry_names

        return list(entry_names(self.options.connection)[entries])

    def _list_from_files(self, kind: str, node: str | None) -> list[NamedObject]:
        snapshot = self._read_files()
        if kind == "Namespace":
            return [NamedObject(name) for name in sorted({pod.namespace for pod in snapshot.pods})]
        if kind == NODE:
            return [
                NamedObject(name, "", item.metadata.labels or {}) for name, item in snapshot.nodes.items()
            ]
        return [
            NamedObject(pod.name, pod.node_name, pod.metadata.labels or {})
            for pod in snapshot.pods
            if pod.kind == kind and self._is_in_scope(pod) and node in {None, pod.node_name}
        ]

    def _find_in_files(self, kind: str, name: str) -> Pod | None:
        pods = self._read_files().pods
        return next(
            (pod for pod in pods if (pod.kind, pod.name) == (kind, name) and self._is_in_scope(pod)), None
        )

    def _read_files(self) -> Snapshot:
        from kubectl_qos.cluster.files import DEMO_FILE, FileSource
        from kubectl_qos.cluster.inputs import STANDARD_INPUT, is_bundle, is_url
        from kubectl_qos.k8s.snapshot import Scope, Snapshot

        files = self.options.files
        if STANDARD_INPUT in files or self.options.kustomize is not None or any(map(is_url, files)):
            # Stdin is the shell's, and nothing is built or fetched for a key.
            return Snapshot()
        if is_bundle(files):
            from kubectl_qos.cluster.bundle import BundleSource

            return BundleSource(files[0]).snapshot(Scope())
        return FileSource(files or (str(DEMO_FILE),), recursive=self.options.recursive).snapshot(Scope())

    def _is_in_scope(self, pod: Pod) -> bool:
        return self.options.all_namespaces or self.options.namespace in {None, pod.namespace}

    def _list_from_server(self, kind: str, node: str | None, *, labels: bool) -> list[NamedObject]:
        """The first few hundred, in the server's order."""
        from kubectl_qos.cluster.kube_api import KubeApi, list_path
        from kubectl_qos.transport.client import connect

        connection, options = connect(self.options.connection), self.options
        query = {"limit": str(PAGE_SIZE)}
        if kind == POD and node:
            query["fieldSelector"] = f"spec.nodeName={node}"
        is_everywhere = options.all_namespaces or (bool(options.node) and options.namespace is None)
        is_namespaced = not is_everywhere and kind not in {NODE, "Namespace"}
        group = WORKLOADS[kind].group if kind in WORKLOADS else "/api/v1"
        path = list_path(f"{kind.lower()}s", connection.namespace if is_namespaced else None, group)
        table = KubeApi(connection, retries=False).table(path, query, labels=labels)
        return [
            NamedObject(cells[table.name_column], ", ".join(_describe(cells)), found_labels)
            for cells, found_labels in table.objects()
        ]

    def _find_on_server(self, kind: str, name: str) -> Pod:
        """The object itself: tables have no containers."""
        from kubectl_qos.cluster.kube_api import KubeApi, read_object
        from kubectl_qos.k8s.kinds import pod_from_workload
        from kubectl_qos.k8s.objects import Pod, convert
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


def _container_names(pod: Pod | None) -> list[str]:
    if pod is None:
        return []
    return [item.name for item in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))]


def _describe(cells: Mapping[str, str]) -> Iterator[str]:
    yield from (cells[name] for name in _DESCRIPTIONS if not cells.get(name, "<none>").startswith("<"))


Completer = Callable[[Position, Names], Completions]

_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_SWITCH: Final = ("true", "false")


def free(_at: Position, _names: Names) -> Completions:
    """Nothing: only the person who types knows it."""
    return NOTHING


def only(directive: int) -> Completer:
    """The shell itself completes: files or folders."""
    return lambda _at, _names: Completions(directive=directive)


def files_ending_in(*endings: str) -> Completer:
    """Files of these endings, and folders on the way to them."""
    completions = Completions(tuple(map(Candidate, endings)), EXTENSIONS)
    return lambda _at, _names: completions


def names_of_kind(kind: str) -> Completer:
    """The names of the objects of a kind."""
    return lambda _at, names: Completions(
        tuple(Candidate(item.name, item.description) for item in names.of(kind))
    )


def in_kubeconfig(entries: str) -> Completer:
    """The names of its `contexts`, `clusters` or `users`; no server is contacted."""
    return lambda _at, names: Completions.of(names.kubeconfig(entries))


def contexts(at: Position, names: Names) -> Completions:
    """The names of contexts, for the last of several."""
    before, comma, _ = at.word.rpartition(",")
    others = [name for name in names.kubeconfig("contexts") if name not in before.split(",")]
    return Completions.of(f"{before}{comma}{name}" for name in others)


def labels(at: Position, names: Names) -> Completions:
    """`KEY=`, and behind the sign the values that are in use, for the last of several."""
    values: dict[str, set[str]] = {}
    for item in names.of(NODE if _is_of_nodes(at) else POD, labels=True):
        for key, value in item.labels.items():
            values.setdefault(key, set()).add(value)
    return _assignments({key: tuple(sorted(values[key])) for key in sorted(values)}, at.word)


def label_keys(_at: Position, names: Names) -> Completions:
    """The keys of labels that pods have."""
    return Completions.of(sorted({key for item in names.of(POD, labels=True) for key in item.labels}))


def fields(at: Position, _names: Names) -> Completions:
    """`FIELD=`, for the last of several."""
    from kubectl_qos.k8s.selectors import POD_FIELDS

    return _assignments(dict.fromkeys(POD_FIELDS, ()), at.word)


def columns(at: Position, _names: Names) -> Completions:
    """The columns of the table of pods or of nodes."""
    if _is_of_nodes(at):
        from kubectl_qos.present.node_columns import NODE_COLUMNS

        return Completions(tuple(Candidate(key, column.help) for key, column in NODE_COLUMNS.items()))
    from kubectl_qos.present.pod_columns import ALL_COLUMNS

    return Completions(tuple(Candidate(column.key, column.help) for column in ALL_COLUMNS))


def releases(_at: Position, _names: Names) -> Completions:
    """Every minor release whose rules are known."""
    from kubectl_qos.k8s.releases import NEWEST_MINOR, OLDEST_MINOR

    return Completions.of(f"1.{minor}" for minor in range(NEWEST_MINOR, OLDEST_MINOR - 1, -1))


def conditions(_at: Position, _names: Names) -> Completions:
    """What a change is reverted for."""
    from kubectl_qos.edit.trial import Condition

    return Completions.of(Condition)


def settings(at: Position, _names: Names) -> Completions:
    """`KEY=`, and behind the sign its values."""
    from kubectl_qos.k8s.node_overrides import FIELDS

    return _assignments({key: field.begins for key, field in FIELDS.items()}, at.word, separator="")


def gates(at: Position, _names: Names) -> Completions:
    """`GATE=true` and `GATE=false`, for the last of several."""
    from kubectl_qos.k8s.releases import Gate

    return _assignments(dict.fromkeys(map(str, Gate), _SWITCH), at.word)


def resources(at: Position, _names: Names) -> Completions:
    """`cpu=` and the like, for the last of several, without values."""
    return _assignments(dict.fromkeys(_RESOURCES, ()), at.word)


def containers(at: Position, names: Names) -> Completions:
    """The containers of the pod or workload that is named."""
    target = first_target(at)
    return Completions.of(names.containers(*target)) if target is not None else NOTHING


def growth(at: Position, names: Names) -> Completions:
    """`node=`, `pod/NAME=`, and behind a colon the pod's containers."""
    if "=" in at.word:
        return NOTHING
    pod, colon, _ = at.word.partition(":")
    if colon:
        containers = names.containers(POD, pod.removeprefix("pod/"))
        return Completions.of(f"{pod}:{container}=" for container in containers)
    if not at.word.startswith("pod/"):
        return Completions.of(("node=", "pod/"))
    target = first_target(at)
    node = target[1] if target is not None and target[0] == NODE else None
    return Completions(
        tuple(Candidate(f"pod/{item.name}=", item.description) for item in names.of(POD, node=node))
    )


def changes(_at: Position, names: Names) -> Completions:
    """The ids of applied changes, each with what it changed; those of --context alone where it is given."""
    from kubectl_qos.config.history_file import HistoryFile, history_path
    from kubectl_qos.present.apply import entry_change, entry_object

    context = names.options.connection.context
    return Completions(
        tuple(
            Candidate(entry.short_id, f"{entry_object(entry)}: {entry_change(entry)}")
            for entry in reversed(HistoryFile(history_path()).entries())
            if context in {None, entry.context}
        )
    )


def _is_of_nodes(at: Position) -> bool:
    return bool(at.operands) and parse_kind(at.operands[0].partition("/")[0]) == NODE


def _assignments(values: Mapping[str, tuple[str, ...]], word: str, *, separator: str = ",") -> Completions:
    """`KEY=` while the key is typed, then `KEY=VALUE`; what stands before a separator is complete."""
    before, comma, last = word.rpartition(separator) if separator else ("", "", word)
    key, equals, _ = last.partition("=")
    if not equals:
        done = {assignment.partition("=")[0] for assignment in before.split(",")}
        return Completions.of(f"{before}{comma}{name}=" for name in values if name not in done)
    return Completions.of(f"{before}{comma}{key}={value}" for value in values.get(key, ()))


class TargetCompleter:
    """Completes targets of some types, at most `max_targets`; with `bare`, pods without their type too."""

    def __init__(self, *types: str, bare: bool = False, max_targets: int | None = 1) -> None:
        self._types = types
        self._bare = bare
        self._max_targets = max_targets

    def __call__(self, at: Position, names: Names) -> Completions:
        """A type with its slash, the names behind a slash, or those of a type that is a word of its own."""
        typed_apart = _kind_of(at.operands[0], self._types) if at.operands else None
        targets = len(at.operands) - (typed_apart is not None)
        if self._max_targets is not None and targets >= self._max_targets:
            return NOTHING
        typed, slash, _ = at.word.partition("/")
        if typed_apart is not None:
            candidates = _list_names(typed_apart, "", names)
        elif slash:
            kind = _kind_of(typed, self._types)
            candidates = _list_names(kind, f"{typed}/", names) if kind is not None else iter(())
        else:
            candidates = self._beginnings(at, names)
        return Completions(tuple(item for item in candidates if item.value not in at.operands))

    def _beginnings(self, at: Position, names: Names) -> Iterator[Candidate]:
        """What a target may begin with; names with and without a type are not mixed."""
        if not self._bare or not at.operands or "/" in at.operands[0]:
            for kind in self._types:
                yield Candidate(f"{KINDS[kind].names[0]}/")
        if self._bare and "/" not in "".join(at.operands):
            yield from _list_names(POD, "", names)


def first_target(at: Position) -> tuple[str, str] | None:
    """The kind and the name of the first target among the words before, if it is one."""
    first, *rest = at.operands or ("",)
    typed, slash, name = first.partition("/")
    kind = parse_kind(typed)
    if not slash:
        name = rest[0] if rest else ""
    return (kind, name) if kind is not None and name else None


def _kind_of(word: str, types: tuple[str, ...]) -> str | None:
    kind = parse_kind(word)
    return kind if kind in types else None


def _list_names(kind: str, before: str, names: Names) -> Iterator[Candidate]:
    for item in names.of(kind):
        yield Candidate(before + item.name, item.description)


EVERY_COMMAND: Final[Mapping[str, Completer]] = {
    "namespace": names_of_kind("Namespace"),
    "node": names_of_kind("Node"),
    "selector": labels,
    "field_selector": fields,
    "files": files_ending_in("yaml", "yml", "json"),
    "kustomize": only(FOLDERS),
    "kubeconfig": only(FILES),
    "cache_dir": only(FOLDERS),
    "context": in_kubeconfig("contexts"),
    "cluster": in_kubeconfig("clusters"),
    "user": in_kubeconfig("users"),
    **dict.fromkeys(("server", "token", "username", "password", "as_user", "as_uid", "as_groups"), free),
    **dict.fromkeys(("certificate_authority", "client_certificate", "client_key"), only(FILES)),
    **dict.fromkeys(
        ("tls_server_name", "log_flush_frequency", "request_timeout", "node_memory", "verbosity"), free
    ),
    **dict.fromkeys(("prometheus", "prometheus_selector", "over_seconds"), free),
    "assume": settings,
    "feature_gates": gates,
}

_APPLY: Final[Mapping[str, Completer]] = {
    "timeout_seconds": free,
    "for_seconds": free,
    "undo_if": conditions,
    "write": only(FOLDERS),
}

OF_COMMAND: Final[Mapping[str, Mapping[str, Completer]]] = {
    "top": {
        "names": TargetCompleter(*KINDS, bare=True, max_targets=None),
        "sort_by": columns,
        "label_columns": label_keys,
    },
    "check": {
        "rule": free,
        "paths": files_ending_in("yaml", "yml", "json"),
        "release": releases,
        "config": files_ending_in("yaml"),
        "baseline": files_ending_in("json"),
    },
    "explain": {
        "target": TargetCompleter(POD, *WORKLOADS, max_targets=None),
        "from_dump": files_ending_in("json"),
    },
    "tree": {"target": TargetCompleter(*KINDS)},
    "compare": {"target": TargetCompleter(*KINDS), "release": releases},
    "edit": {"target": TargetCompleter(POD, *WORKLOADS)},
    "set": {
        "target": TargetCompleter(POD, *WORKLOADS),
        "requests": resources,
        "limits": resources,
        "containers": containers,
        "outlive": names_of_kind("Pod"),
        "rank_below": free,
        **_APPLY,
    },
    "undo": {"id": changes, "timeout_seconds": free},
    "kills": {
        "target": TargetCompleter(*KINDS, bare=True, max_targets=None),
        "kernel_logs": only(FILES),
        "since_seconds": free,
    },
    "report": {
        "target": TargetCompleter(POD, NODE, *WORKLOADS),
        "kernel_logs": only(FILES),
        "since_seconds": free,
        "bundle": only(FILES),
    },
    "next": {"target": TargetCompleter(POD, NODE, *WORKLOADS)},
    "fix": {"target": TargetCompleter(POD, NODE, *WORKLOADS), "number": free, "growth": free, **_APPLY},
    "simulate": {
        "target": TargetCompleter(NODE),
        "free": free,
        "grow": growth,
        "important": labels,
        "what_if": files_ending_in("yaml", "yml", "json"),
    },
    "verify": {
        "target": TargetCompleter(POD, NODE),
        "proc_root": only(FOLDERS),
        "cgroup_root": only(FOLDERS),
        "from_dump": files_ending_in("json"),
    },
    "host": {"proc_root": only(FOLDERS), "cgroup_root": only(FOLDERS), "from_dump": files_ending_in("json")},
    "web": {"port": free, "address": free, "allowed_hosts": free},
    "exporter": {
        "web_config_file": files_ending_in("yaml", "yml"),
        **dict.fromkeys(("listen", "per_pod", "max_stale", "shard"), free),
    },
}


def find_completer(command: str, name: str) -> Completer:
    """The completer of a flag or operand. Raises KeyError where the tables lack it."""
    if name in {"template", "at"}:  # of every command with -o json, and of those that know the past
        return free
    if name == "contexts":  # of those that can ask several clusters
        return contexts
    return OF_COMMAND.get(command, {}).get(name) or EVERY_COMMAND[name]

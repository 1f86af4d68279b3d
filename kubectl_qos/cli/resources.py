"""From typed options to what they name: a source and a scope, and in it pods, workloads and nodes.

Every command imports this module, also for its --help, so it imports slow ones inside of functions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from kubectl_qos.cli import output
from kubectl_qos.errors import EXIT_ERROR, ApiError, InputError, QosError, QuantityError, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from kubectl_qos.cli.options import SourceOptions
    from kubectl_qos.cluster.source import Source
    from kubectl_qos.cluster.usage import UsageReader
    from kubectl_qos.config.settings import Settings
    from kubectl_qos.k8s.node_overrides import NodeOverride
    from kubectl_qos.k8s.objects import Pod
    from kubectl_qos.k8s.snapshot import NodeOverrides, Scope, Snapshot
    from kubectl_qos.metrics.prometheus import Prometheus
    from kubectl_qos.transport.client import Connection


T = TypeVar("T")


class ResolvedSource(NamedTuple):
    """What a command works on, and what is wrong with its files: `notes`, as kubectl marks it.

    `unreadable` is whether a document could not be read, `failed` whether that or a server would refuse one.
    Without `has_namespace_flag` the scope's namespace is that of the context. What `lasts` is there for
    the next command.
    """

    source: Source
    scope: Scope
    notes: tuple[str, ...] = ()
    unreadable: bool = False
    failed: bool = False
    has_namespace_flag: bool = False
    lasts: bool = True

    def named(self, references: Iterable[Reference]) -> Scope:
        """The scope with the names of some references."""
        return replace(self.scope, names=frozenset(reference.name for reference in references))

    def print_notes(self) -> int:
        """Print what is wrong with the files; returns the exit code."""
        output.notes(self.notes)
        return EXIT_ERROR if self.failed else 0


def resolve_source(
    options: SourceOptions,
    names: Iterable[str] = (),
    *,
    write_settings: Settings | None = None,
    progress: bool = True,
    only_ranking: bool = False,
    keep_ids: bool = True,
    refresh_seconds: float | None = None,
    lives: bool = False,
    keep_objects: bool = False,
) -> ResolvedSource:
    """The source and scope of some options.

    Args:
        options: the flags.
        names: names of pods to which the scope is restricted.
        write_settings: the person's settings, to allow changes unless they forbid them for the context.
        progress: show how many pods have been loaded.
        only_ranking: leave out what a ranking does not need: uids and kubelets' configurations.
        keep_ids: keep the uids of pods and the ids of containers, which kernel logs and cgroup paths have.
        refresh_seconds: how often what cannot be watched is read again.
        lives: the demo goes on after its first moment, and can be changed.
        keep_objects: keep the objects of files as they are written.

    Raises:
        QosError: the options contradict each other, or there is no such source.
    """
    _require_one_source(options)
    overrides, has_flag = _parse_overrides(options), options.namespace is not None
    source: Source
    if options.at is not None:
        source = _past(options)
    elif options.demo:
        source = _demo(overrides, write_settings, lives=lives)
    elif options.has_files:
        from kubectl_qos.cluster.files import FileSource

        files = FileSource(
            options.files,
            kustomize=options.kustomize,
            recursive=options.recursive,
            overrides=overrides,
            keep_objects=keep_objects,
        )
        scope, failed = _build_scope(options, files, names), files.is_unreadable or files.is_refused
        return ResolvedSource(files, scope, files.notes, files.is_unreadable, failed, has_flag)
    else:
        from kubectl_qos.cluster.live import LiveSource
        from kubectl_qos.cluster.usage import UsageChoice

        connection = open_connection(options)
        own = write_settings.for_context(connection.context) if write_settings is not None else None
        source = LiveSource(
            connection,
            may_write=own is not None and not own.readonly,
            usage=UsageChoice(options.usage),
            reader=_usage_reader(options, connection),
            ids=keep_ids and not only_ranking,
            configz=not only_ranking,
            overrides=overrides,
            refresh_seconds=refresh_seconds,
            progress=output.progress() if progress else None,
        )
    scope = _build_scope(options, source, names)
    return ResolvedSource(source, scope, has_namespace_flag=has_flag, lasts=not options.demo)


def _require_one_source(options: SourceOptions) -> None:
    history = "--at" if options.at is not None else "--usage=prometheus" if options.has_history else ""
    if history and not options.is_cluster:
        other = "--demo" if options.demo else "-f" if options.files else "-k"
        raise UsageError(f"{history} and {other} cannot be used together: only a cluster has a Prometheus")
    if options.has_files and options.demo:
        raise UsageError(f"--demo and {'-f' if options.files else '-k'} cannot be used together")
    if options.files and options.kustomize is not None:
        raise UsageError("only one of -f or -k can be specified")
    if options.files.count("-") > 1:
        raise UsageError("standard input cannot be used for multiple arguments")


def open_store(options: SourceOptions, connection: Connection | None = None) -> Prometheus:
    """The store of --prometheus, of the settings of the context, or of the cluster. Raises QosError."""
    from kubectl_qos.config import config_file
    from kubectl_qos.config.settings import read_settings
    from kubectl_qos.metrics.prometheus import Prometheus, parse_selector
    from kubectl_qos.transport import StoreOptions
    from kubectl_qos.transport.client import connect_store
    from kubectl_qos.transport.proxy import without_credentials

    context = connection.context if connection is not None else ""
    known = read_settings(config_file()).for_context(context).prometheus or StoreOptions("auto")
    # Credentials of the settings are for their own URL.
    store = StoreOptions(options.prometheus) if options.prometheus not in {None, known.url} else known
    matchers = parse_selector(options.prometheus_selector or known.selector)
    if store.url != "auto":
        name = without_credentials(store.url)
        return Prometheus(connect_store(store, options.connection.request_timeout), name, matchers)
    from kubectl_qos.metrics.discovery import find_store

    return find_store(connection if connection is not None else open_connection(options), matchers)


def _usage_reader(options: SourceOptions, connection: Connection) -> UsageReader | None:
    """Reads usage from the store, which may not be there: then usage is missing, and all else stands."""
    if not options.has_history:
        return None
    from functools import cache

    from kubectl_qos.k8s.snapshot import Missing, Usage
    from kubectl_qos.metrics.prometheus import parse_selector
    from kubectl_qos.metrics.series import UsageHistory

    parse_selector(options.prometheus_selector)
    opened = cache(lambda: UsageHistory(open_store(options, connection), options.over_seconds, options.stat))

    def read() -> Usage:
        try:
            return opened().read()
        except QosError as error:
            return Usage({}, Missing("memory usage", str(error), error.hint))

    return read


_CLOCK_SECONDS: Final = 120.0
"""VictoriaMetrics answers for half a minute ago, and that is no wrong clock."""


def _past(options: SourceOptions) -> Source:
    """The cluster of --at, which stderr is told of. Raises QosError."""
    from time import time

    from kubectl_qos.cluster.source import PastSource
    from kubectl_qos.metrics.past import read_snapshot
    from kubectl_qos.metrics.series import rfc3339

    connection = None
    try:
        connection = open_connection(options)
    except QosError:
        if options.prometheus in {None, "auto"}:
            raise
    store = open_store(options, connection)
    now = store.now()
    at, ahead = _parse_at(str(options.at), now), time() - now
    output.note(
        f"THE PAST: this is {rfc3339(at)}, rebuilt from {store.name}, and not the cluster as it is now"
    )
    if abs(ahead) > _CLOCK_SECONDS:
        where = "ahead of" if ahead > 0 else "behind"
        output.note(f"this machine's clock is {abs(ahead):.0f} s {where} the store's, which counts here")
    stat = options.stat if options.has_history else ""
    usage, overrides = options.usage != "none", _parse_overrides(options)

    def read() -> Snapshot:
        found = read_snapshot(store, at, options.over_seconds, stat, usage=usage)
        return replace(found, overrides=overrides)

    context, namespace = (
        (connection.context, connection.namespace) if connection is not None else ("", "default")
    )
    return PastSource(context, namespace, at, read)


def _parse_at(text: str, now: float) -> datetime:
    """The time of --at by the store's clock. Raises UsageError."""
    from datetime import UTC, datetime, timedelta

    from kubectl_qos.k8s.quantity import parse_duration, parse_time

    at, present = parse_time(text), datetime.fromtimestamp(now, UTC)
    if at is None:
        try:
            at = present - timedelta(microseconds=parse_duration(text.removesuffix(" ago"), days=True) / 1000)
        except (InputError, OverflowError):
            hint = "write 2h for two hours ago, or 2026-11-20T14:59:00Z"
            raise UsageError(f"--at {text!r} is not a time", hint=hint) from None
    if at > present:
        raise UsageError(f"--at {text} has not come yet: the store's clock says {present:%Y-%m-%dT%H:%M:%SZ}")
    return at


def _demo(overrides: NodeOverrides, write_settings: Settings | None, *, lives: bool) -> Source:
    if lives:
        from kubectl_qos.demo.source import LivingDemo

        may_write = write_settings is not None and not write_settings.for_context(LivingDemo.title).readonly
        return LivingDemo(overrides, may_write=may_write)
    from kubectl_qos.cluster.files import DemoSource

    return DemoSource(overrides)


def _build_scope(options: SourceOptions, source: Source, names: Iterable[str]) -> Scope:
    """Which pods are selected, in the source's own namespace where none is given. Raises UsageError."""
    from kubectl_qos.k8s.selectors import FieldSelector, Selector
    from kubectl_qos.k8s.snapshot import Scope

    names = frozenset(names)
    if names and options.selector:
        raise UsageError("only one of NAME or selector can be provided")
    namespace = options.namespace
    if namespace is None and options.node is None:
        namespace = source.default_namespace
    return Scope(
        namespace=None if options.all_namespaces else namespace,
        names=names,
        node=options.node,
        selector=flag_value(Selector.parse, options.selector),
        selector_text=options.selector,
        fields=flag_value(FieldSelector.parse, options.field_selector),
    )


def open_connection(options: SourceOptions) -> Connection:
    """The connection that the flags name; nothing is sent yet. Raises QosError."""
    from kubectl_qos.transport.client import connect

    return connect(options.connection)


def list_contexts(options: SourceOptions) -> tuple[str, ...]:
    """The contexts that the UI can switch to.

    None where flags name the server or user, which would hold in every context. Raises QosError for a
    kubeconfig that cannot be used.
    """
    connection = options.connection
    if not options.is_cluster or any(
        (connection.server, connection.cluster, connection.user, connection.token)
    ):
        return ()
    from kubectl_qos.transport.kubeconfig import entry_names

    return entry_names(connection)["contexts"]


def parse_settings(options: SourceOptions) -> tuple[NodeOverride, ...]:
    """The settings of --assume, and of --feature-gates in the kubelet's form. Raises UsageError."""
    from kubectl_qos.k8s.node_overrides import FEATURE_GATES, NodeOverride

    gates = [gate for gates in options.feature_gates for gate in gates.split(",") if gate]
    settings = (*options.assume, *(f"{FEATURE_GATES}{gate}" for gate in gates))
    return tuple(map(NodeOverride.parse, settings))


def _parse_overrides(options: SourceOptions) -> NodeOverrides:
    """The facts about nodes in the flags. Raises UsageError."""
    from kubectl_qos.k8s.snapshot import NodeOverrides

    overrides = NodeOverrides(settings=parse_settings(options))
    if options.node_memory is None:
        return overrides
    return replace(overrides, memory_bytes=parse_size(options.node_memory, "--node-memory", "16Gi"))


def parse_size(text: str, flag: str, example: str) -> int:
    """The bytes of a flag's value. Raises UsageError."""
    from kubectl_qos.k8s.manifest import odd_size
    from kubectl_qos.k8s.objects import MEMORY
    from kubectl_qos.k8s.quantity import Quantity

    hint = f"write a size such as {example}"
    try:
        size = Quantity.parse(text)
    except QuantityError as error:
        raise UsageError(f"{flag} {text!r}: {error}", hint=hint) from None
    if size.sign <= 0:
        raise UsageError(f"{flag} {text!r} must be positive", hint=hint)
    odd = odd_size(MEMORY, size, "Gi" if text.isdecimal() else "Mi")
    if odd:
        raise UsageError(f"{flag} {text!r}: {odd}", hint=hint)
    return size.value()


def flag_value(parse: Callable[[str], T], text: str) -> T:
    """The value of a flag. Raises UsageError where it cannot be read."""
    try:
        return parse(text)
    except InputError as error:
        raise UsageError(str(error), hint=error.hint) from None


class Reference(NamedTuple):
    """A pod or workload as it is named on the command line."""

    kind: str
    name: str

    def __str__(self) -> str:
        """`deployment/web`."""
        return f"{self.kind.lower()}/{self.name}"


def reference(pod: Pod) -> str:
    """What a sentence calls a pod or workload: `deployment/web`."""
    return str(Reference(pod.kind, pod.name))


def parse_references(
    words: Sequence[str], *, any_kind: bool = False, nodes: bool = False, hinted: Sequence[str] = ("pod",)
) -> list[Reference]:
    """`pod/a deploy/b` or `pod a b` as kinds and names, of files of any kind that has pods.

    Raises UsageError in kubectl's words; for a name alone its hint has the `hinted` kinds.
    """
    if any("/" in word for word in words):
        if not all("/" in word for word in words):
            raise UsageError(
                "there is no need to specify a resource type as a separate argument when passing "
                "arguments in resource/name form (e.g. 'kubectl qos explain pod/web-0')"
            )
        if any(word.count("/") > 1 for word in words):
            raise UsageError("arguments in resource/name form may not have more than one slash")
        pairs = [word.split("/", 1) for word in words]
    elif len(words) == 1:
        raise UsageError(_NO_NAME, hint=f"write {' or '.join(f'{kind}/{words[0]}' for kind in hinted)}")
    else:
        pairs = [[words[0], name] for name in words[1:]]
    return [_parse_reference(word, name, any_kind=any_kind, nodes=nodes) for word, name in pairs]


def parse_kind(word: str) -> str | None:
    """The kind of a word such as `pods` or `deploy`; None for an unknown one."""
    from kubectl_qos.k8s import kinds

    return kinds.parse_kind(word)


_NO_NAME: Final = "resource(s) were provided, but no name was specified"


def _parse_reference(word: str, name: str, *, any_kind: bool, nodes: bool) -> Reference:
    kind = parse_kind(word) or (word.lower() if any_kind else None)
    if kind is None or (kind == "Node" and not nodes):
        raise UsageError(
            f'the server doesn\'t have a resource type "{word}" with pods',
            hint="pod, deployment, statefulset, daemonset, replicaset, job and cronjob have pods",
        )
    if not name:
        raise UsageError(_NO_NAME)
    return Reference(kind, name)


def parse_references_or_names(words: Sequence[str]) -> list[Reference]:
    """Pods, nodes and workloads; a word without a kind names a pod; a kind alone has an empty name.

    `nodes`, `node/worker-1` and `nodes worker-1` are nodes, as in kubectl; a pod that is called nodes is
    `pod/nodes`. Raises UsageError.
    """
    kind = parse_kind(words[0]) if words else None
    if kind in {"Pod", "Node"} and len(words) == 1:
        return [Reference(kind, "")]
    if kind is None and not any("/" in word for word in words):
        return [Reference("Pod", name) for name in words]
    references = parse_references(words, nodes=True)
    if len({one.kind == "Node" for one in references}) > 1:
        raise UsageError("pods and nodes are two tables", hint="show one of them at a time")
    return references


def parse_node(words: Sequence[str]) -> str | None:
    """The name of the node, None where something else is named. Raises UsageError."""
    first, *rest = words or [""]
    kind, slash, name = first.partition("/")
    if parse_kind(kind) != "Node":
        return None
    names = [name, *rest] if slash else rest
    if len(names) != 1 or not names[0]:
        raise UsageError("one node can be shown at a time", hint="write node/worker-1; without a name, all")
    return names[0]


def parse_node_or_reference(
    words: Sequence[str], too_many: str, *, any_kind: bool = False
) -> tuple[str | None, Reference | None]:
    """The one node, pod or workload that is named; both None without words.

    Raises UsageError, with the sentence `too_many` where several pods or workloads are named.
    """
    node = parse_node(words)
    hinted = ("node", "pod")
    references = [] if node is not None else parse_references(words, any_kind=any_kind, hinted=hinted)
    if len(references) > 1:
        raise UsageError(too_many)
    return node, references[0] if references else None


def find_pod(reference: Reference, snapshot: Snapshot, resolved: ResolvedSource) -> Pod:
    """The pod of a reference, or the template of a workload. Raises InputError or ApiError."""
    from kubectl_qos.k8s.kinds import is_named

    namespace = resolved.scope.namespace
    for pod in snapshot.pods:
        in_scope = namespace is None or pod.namespace in {namespace, ""}
        if in_scope and is_named(pod, *reference):
            return pod
    try:
        return resolved.source.find(reference.kind, namespace, reference.name)
    except ApiError as error:
        if error.reason == "NotFound" and reference.name in snapshot.nodes:
            error.hint = _node_hint(reference.name)
        raise


def require_node(name: str, snapshot: Snapshot) -> None:
    """Raise ApiError (NotFound) unless a snapshot has the node or pods on it."""
    if name not in snapshot.nodes and not snapshot.by_node().get(name):
        raise ApiError.not_found("nodes", name, hint="kubectl qos top nodes lists them")


def require_places(resolved: ResolvedSource, snapshot: Snapshot) -> None:
    """Raise ApiError (NotFound) where the node or the namespace of the flags does not exist.

    Nothing is requested where pods were found, nor for the namespace of the context.
    """
    if any(map(resolved.scope.matches, snapshot.pods)):
        return
    namespace = resolved.scope.namespace if resolved.has_namespace_flag else None
    for resource, name in (("nodes", resolved.scope.node), ("namespaces", namespace)):
        if name is not None and not resolved.source.has(resource, name):
            raise ApiError.not_found(resource, name)


def missing_workloads(workloads: Iterable[Reference], resolved: ResolvedSource) -> Iterator[QosError]:
    """Why a workload cannot be found, for each that is not there."""
    for one in workloads:
        try:
            resolved.source.find(one.kind, resolved.scope.namespace, one.name)
        except QosError as error:
            yield error


def require_cgroup(pod: Pod) -> None:
    """Raise InputError for a pod that has ended."""
    if pod.is_terminal:
        raise InputError(f"pod {pod.name} has ended: its cgroup is gone")


def not_found(
    kinds: str, names: Iterable[str], found: Iterable[str], nodes: Collection[str] = ()
) -> tuple[ApiError, ...]:
    """An error for each name that was not found; `kinds` is a plural such as pods, `nodes` known nodes."""
    existing = set(found)
    return tuple(
        ApiError.not_found(kinds, name, hint=_node_hint(name) if name in nodes else "")
        for name in names
        if name not in existing
    )


def _node_hint(name: str) -> str:
    return f"a node has that name: node/{name}"

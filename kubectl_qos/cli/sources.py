"""Resolve typed options to the source and the scope of a command.

Every command imports this module, also for its --help, so it imports slow ones inside of functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from kubectl_qos.cli import output
from kubectl_qos.errors import EXIT_ERROR, InputError, QosError, QuantityError, UsageError
from kubectl_qos.k8s.quantity import parse_duration, parse_time
from kubectl_qos.present.format import duration

if TYPE_CHECKING:
    from kubectl_qos.cli.options import SourceOptions
    from kubectl_qos.cluster.files import FileSource
    from kubectl_qos.cluster.kube_api import UsageReader
    from kubectl_qos.cluster.source import PastSource, Source
    from kubectl_qos.config.settings import UserSettings
    from kubectl_qos.k8s.interning import Ids
    from kubectl_qos.k8s.node_overrides import NodeOverride
    from kubectl_qos.k8s.snapshot import Arrived, NodeOverrides, Scope, Snapshot
    from kubectl_qos.metrics.past import Track
    from kubectl_qos.metrics.prometheus import Prometheus
    from kubectl_qos.qos.kills.analyze import Kill
    from kubectl_qos.transport.client import Connection


T = TypeVar("T")


class ResolvedSource(NamedTuple):
    """What a command works on."""

    source: Source
    scope: Scope
    notes: tuple[str, ...] = ()
    """What is wrong with the files."""
    unread: tuple[str, ...] = ()
    """Those of `notes` about what could not be read, which were printed before anything else."""
    failed: bool = False
    """A document could not be read, or a server would refuse one."""
    has_namespace_flag: bool = False
    """Whether -n was given; otherwise the namespace is the context's."""
    changes_persist: bool = True
    """Changes are still there for the next command."""

    def named(self, *names: str) -> Scope:
        """Return the scope with these names."""
        return self.scope._replace(names=frozenset(names))

    def scope_of(self, references: Iterable[tuple[str, str]]) -> Scope:
        """Return the scope with the names of pods (kind and name); a workload's pods have other names."""
        names = {name if kind == "Pod" else None for kind, name in references}
        return self.scope if None in names or not names else self.named(*filter(None, names))

    @property
    def later_notes(self) -> list[str]:
        """Return the notes that were not printed yet."""
        return [note for note in self.notes if note not in self.unread]

    def print_notes(self) -> int:
        """Print what else is wrong with the files and return the exit code."""
        output.notes(self.later_notes)
        return EXIT_ERROR if self.failed else 0


class SourceNeeds(NamedTuple):
    """What a command needs of its source."""

    write_settings: UserSettings | None = None
    """Settings that may forbid changes; None if the command makes none."""
    progress: bool = True
    """Print progress, and at once what could not be read."""
    only_ranking: bool = False
    """Read neither uids nor kubelets' configurations."""
    ids: Ids = "all"
    """The ids that pods keep: with fewer they take less memory."""
    refresh_seconds: float | None = None
    """How often to read what cannot be watched."""
    living_demo: bool = False
    """For --demo: time passes in it, and it can be changed."""
    keep_objects: bool = False
    """Keep the objects of files as they are written."""
    any_files: Sequence[str] = ()
    """Files that may hold other documents than objects."""
    has_terminal: bool = True
    """Credential plugins may ask a person."""
    show_first: Callable[[Snapshot, Arrived], bool] | None = None
    """Shows the pods of a whole cluster that have arrived so far."""


DEFAULT_NEEDS: Final = SourceNeeds()


def resolve_source(
    options: SourceOptions, needs: SourceNeeds = DEFAULT_NEEDS, names: Iterable[str] = ()
) -> ResolvedSource:
    """Return the source and scope of some options, limited to pods with these `names` if there are any.

    Raises QosError if the options contradict each other, or there is no such source.
    """
    _require_one_source(options)
    overrides, has_flag = _parse_overrides(options), options.namespace is not None
    source: Source
    if options.at is not None:
        source = _past(options)
    elif options.demo:
        source = _demo(overrides, options, needs)
    elif options.has_files:
        files = _files(options, overrides, needs)
        scope, failed = build_scope(options, files, names), bool(files.problems) or files.is_refused
        unread = files.unread if needs.progress else ()
        output.notes(unread)
        return ResolvedSource(files, scope, files.notes, unread, failed, has_flag)
    else:
        from kubectl_qos.analysis.trends import Trends
        from kubectl_qos.cluster.kube_api import UsageChoice
        from kubectl_qos.cluster.live import LiveSource

        seconds = options.watch_seconds
        doing = f"watching what grows for {duration(seconds)}: " if seconds else ""
        connection, settings = open_connection(options, has_terminal=needs.has_terminal), needs.write_settings
        own = settings.for_context(connection.context) if settings is not None else None
        source = LiveSource(
            connection,
            may_write=own is not None and not own.readonly,
            usage=UsageChoice(options.usage),
            reader=_usage_reader(options, connection),
            ids="none" if needs.only_ranking else needs.ids,
            configz=not needs.only_ranking,
            overrides=overrides,
            refresh_seconds=needs.refresh_seconds,
            progress=output.progress(doing) if needs.progress and not options.is_fleet else None,
            show_first=needs.show_first,
            watch_seconds=seconds,
            add_growth=Trends().with_rates,
        )
    scope = build_scope(options, source, names)
    return ResolvedSource(source, scope, has_namespace_flag=has_flag, changes_persist=not options.demo)


def _files(options: SourceOptions, overrides: NodeOverrides, needs: SourceNeeds) -> FileSource:
    from kubectl_qos.cluster.files import FileSource
    from kubectl_qos.cluster.inputs import is_bundle

    more: dict[str, Any] = {"overrides": overrides, "keep_objects": needs.keep_objects}
    if not is_bundle(options.files):
        more |= {"kustomize": options.kustomize, "recursive": options.recursive}
        files = FileSource(options.files, any_files=needs.any_files, **more)
    else:
        from kubectl_qos.cluster.bundle import BundleSource

        files = BundleSource(options.files[0], configz=not needs.only_ranking, **more)
    files.has_usage = options.usage != "none"
    return files


def _require_one_source(options: SourceOptions) -> None:
    other = "--demo" if options.demo else "-f" if options.files else "-k"
    of_cluster = {
        "--at": options.at,
        "--usage=prometheus": options.has_history,
        "--prometheus": options.prometheus,
        "--watch-for": options.watch_seconds,
        "--kubeconfig": options.connection.kubeconfig,
        **options.connection.cluster_flags,
    }
    flag = next((flag for flag, value in of_cluster.items() if value), "")
    if flag and not options.is_cluster:
        raise UsageError(f"{flag} and {other} cannot be used together: {other} replaces the cluster")
    if options.has_files and options.demo:
        raise UsageError(f"--demo and {'-f' if options.files else '-k'} cannot be used together")
    if options.files and options.kustomize is not None:
        raise UsageError("only one of -f or -k can be specified")
    if options.files.count("-") > 1:
        raise UsageError("standard input cannot be used for multiple arguments")


def open_store(options: SourceOptions, connection: Connection | None = None) -> Prometheus:
    """Open the store of --prometheus, of the settings of the context, or of the cluster. Raises QosError."""
    from kubectl_qos.config import config_file
    from kubectl_qos.config.settings import read_settings
    from kubectl_qos.metrics.prometheus import Prometheus, find_store, is_service, parse_selector
    from kubectl_qos.transport import StoreOptions
    from kubectl_qos.transport.client import connect_store
    from kubectl_qos.transport.proxy import without_credentials

    context = connection.context if connection is not None else ""
    configured = read_settings(config_file()).for_context(context).prometheus or StoreOptions("auto")
    # Credentials of the settings are for their own URL.
    url = options.prometheus
    store = StoreOptions(url) if url not in {None, configured.url} else configured
    matchers = parse_selector(options.prometheus_selector or configured.selector)
    if not is_service(store.url):
        name = without_credentials(store.url)
        return Prometheus(connect_store(store, options.connection.request_timeout), name, matchers)
    return find_store(connection or open_connection(options), matchers, store.url)


def open_any_store(options: SourceOptions) -> tuple[Prometheus, Connection | None]:
    """Open the store; a store given by URL needs no kubeconfig. Raises QosError."""
    connection = None
    try:
        connection = open_connection(options)
    except QosError:
        if options.prometheus in {None, "auto"}:
            raise
    return open_store(options, connection), connection


def _usage_reader(options: SourceOptions, connection: Connection) -> UsageReader | None:
    """Return a reader of usage from the store; if the store is not there, usage is missing."""
    if not options.reads_store:
        return None
    from kubectl_qos.k8s.snapshot import Missing, Usage
    from kubectl_qos.metrics.prometheus import parse_selector
    from kubectl_qos.metrics.series import UsageHistory

    parse_selector(options.prometheus_selector)  # raises UsageError now, not when the store is first read
    opened = cache(
        lambda: UsageHistory(open_store(options, connection), options.over_seconds, options.used_stat)
    )

    def read() -> Usage:
        try:
            return opened().read()
        except QosError as error:
            return Usage({}, Missing("memory usage", str(error), error.hint))

    return read


_CLOCK_SECONDS: Final = 120.0
"""The tolerated difference of clocks: VictoriaMetrics' newest sample is 30 s old by design."""


class Past:
    """The past of a cluster in its store, which is opened once. Raises QosError."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    @cached_property
    def _opened(self) -> tuple[Prometheus, str, str]:
        """Open the store; return it with the context and namespace, which a store's URL does not need."""
        if not self._options.is_cluster:
            raise QosError(
                "a past time needs a cluster: --demo, -f and -k have no Prometheus",
                hint="kubectl qos finds the Prometheus of a cluster; --prometheus URL names another",
            )
        store, connection = open_any_store(self._options)
        return (store, connection.context, connection.namespace) if connection else (store, "", "default")

    @cached_property
    def ahead(self) -> timedelta:
        """Return how far this machine's clock is ahead of the store's."""
        return datetime.now(UTC) - datetime.fromtimestamp(self._opened[0].now(), UTC)

    def present(self) -> datetime:
        """Return the present time by the store's clock."""
        ahead = self.ahead  # Reading it takes time, which has not passed at the store.
        return datetime.now(UTC) - ahead

    @property
    def store_name(self) -> str:
        """Return the store's name for sentences."""
        return self._opened[0].name

    def source(self, at: datetime) -> PastSource:
        """Return the cluster at a past time; nothing is read yet."""
        from dataclasses import replace

        from kubectl_qos.cluster.source import PastSource
        from kubectl_qos.k8s.selectors import Selector
        from kubectl_qos.metrics.past import read_snapshot

        options, (store, context, namespace) = self._options, self._opened
        usage, overrides = options.usage != "none", _parse_overrides(options)
        keys = [requirement.key for requirement in flag_value(Selector.parse, options.selector).requirements]

        def read() -> Snapshot:
            over, stat = options.over_seconds, options.used_stat
            snapshot = read_snapshot(store, at, over, stat, usage=usage, keys=keys)
            return replace(snapshot, overrides=overrides)

        return PastSource(context, namespace, at, read, self.present)

    def older_deaths(self, now: datetime, *, is_past: bool) -> tuple[Sequence[Kill], int]:
        """Return the deaths that the store knows of, and how many seconds back they go.

        There are none unless a store or a past time is given.
        """
        from kubectl_qos.metrics.past import read_kills

        seconds, end = self._options.over_seconds, now.timestamp()
        if self._options.prometheus is None and not is_past:
            return (), seconds
        return read_kills(self._opened[0], end - seconds, end), seconds

    def track(self) -> Track:
        """Return the last hours that the store has, and who died in them."""
        from kubectl_qos.metrics.past import read_track

        return read_track(self._opened[0], self.present().timestamp())


def _past(options: SourceOptions) -> Source:
    """Return the cluster of --at, and print that it is the past. Raises QosError."""
    from kubectl_qos.metrics.series import rfc3339

    past = Past(options)
    text = str(options.at)
    at, ago = parse_time(text), timedelta()
    if at is None:
        try:
            ago = timedelta(microseconds=abs(parse_duration(text.removesuffix(" ago"), days=True)) / 1000)
        except InputError:
            hint = "write 2h for two hours ago, or 2026-11-20T14:59:00Z"
            raise UsageError(f"--at {text!r} is not a time", hint=hint) from None
    present = past.present()
    at = at or present - ago
    if at > present:
        clock = f"by the clock of Prometheus it is {present:%Y-%m-%dT%H:%M:%SZ}"
        raise UsageError(f"--at {text} is in the future: {clock}")
    ahead = past.ahead.total_seconds()
    output.note(f"THE PAST: the cluster at {rfc3339(at)}, rebuilt from {past.store_name}, not as it is now")
    if abs(ahead) > _CLOCK_SECONDS:
        where = "ahead of" if ahead > 0 else "behind"
        output.note(f"this machine's clock is {abs(ahead):.0f} s {where} Prometheus, whose clock is used")
    return past.source(at)


def _demo(overrides: NodeOverrides, options: SourceOptions, needs: SourceNeeds) -> Source:
    has_usage, settings = options.usage != "none", needs.write_settings
    if needs.living_demo:
        from kubectl_qos.demo.source import LivingDemo

        may_write = settings is not None and not settings.for_context(LivingDemo.title).readonly
        return LivingDemo(overrides, may_write=may_write, has_usage=has_usage)
    from kubectl_qos.cluster.files import DemoSource

    return DemoSource(overrides, has_usage=has_usage)


def build_scope(options: SourceOptions, source: Source, names: Iterable[str]) -> Scope:
    """Return the selected pods' scope, in the source's own namespace by default. Raises UsageError."""
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


def open_connection(options: SourceOptions, *, has_terminal: bool = True) -> Connection:
    """Return the connection that the flags name; nothing is sent yet. Raises QosError."""
    from kubectl_qos.transport.client import connect

    return connect(options.connection, has_terminal=has_terminal)


def list_contexts(options: SourceOptions) -> tuple[str, ...]:
    """Return the contexts that the UI can switch to.

    Empty if flags name the server or user, which would apply in every context. Raises QosError for a
    kubeconfig that cannot be used.
    """
    connection = options.connection
    flags = (connection.server, connection.cluster, connection.user, connection.token)
    if not options.is_cluster or any(flags):
        return ()
    from kubectl_qos.transport.kubeconfig import entry_names

    return entry_names(connection)["contexts"]


def parse_settings(options: SourceOptions) -> tuple[NodeOverride, ...]:
    """Return the settings of --assume, and of --feature-gates in the kubelet's form. Raises UsageError."""
    from kubectl_qos.k8s.node_overrides import FEATURE_GATES
    from kubectl_qos.qos.killers import parse_assumed

    gates = [gate for gates in options.feature_gates for gate in gates.split(",") if gate]
    settings = (*options.assume, *(f"{FEATURE_GATES}{gate}" for gate in gates))
    return tuple(map(parse_assumed, settings))


def _parse_overrides(options: SourceOptions) -> NodeOverrides:
    """Return the facts about nodes in the flags. Raises UsageError."""
    from kubectl_qos.k8s.snapshot import NodeOverrides

    size = options.node_memory
    memory_bytes = parse_size(size, "--node-memory", "16Gi") if size is not None else None
    return NodeOverrides(memory_bytes, parse_settings(options))


def parse_size(text: str, flag: str, example: str) -> int:
    """Return the bytes of a flag's value. Raises UsageError, also for `+` without a value to add to."""
    from kubectl_qos.k8s.validation import memory_bytes

    if text.startswith("+"):
        raise UsageError(f"{flag} {text!r}: there is no value to add to", hint=f"write {text[1:]}")
    try:
        return memory_bytes(text)
    except QuantityError as error:
        raise UsageError(f"{flag} {text!r}: {error}", hint=f"write a size such as {example}") from None


def flag_value(parse: Callable[[str], T], text: str) -> T:
    """Return the parsed value of a flag. Raises UsageError if it cannot be read."""
    try:
        return parse(text)
    except InputError as error:
        raise UsageError(str(error), hint=error.hint) from None

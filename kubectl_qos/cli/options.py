"""The options that commands get: flags as typed, frozen values.

Commands never see the `argparse.Namespace`. Not here: the options of one command (commands/), and
resolving names (resources.py).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar

from kubectl_qos.cli.flags import TEMPLATES, given_shared_flags
from kubectl_qos.errors import UsageError
from kubectl_qos.transport import ConnectionOptions

if TYPE_CHECKING:
    from kubectl_qos.edit.preview import StrategyKind


OptionsT = TypeVar("OptionsT", bound=NamedTuple)
KUSTOMIZE: Final = "kustomize"
"""The format of -o that prints a patch file for Kustomize."""


class SourceOptions(NamedTuple):
    """Where pods come from (--demo, files or a cluster), which pods, and assumptions about nodes.

    None and an empty selector mean that a flag is not given. `node_memory`, `assume` and `feature_gates` are
    texts that `resolve_source` reads.
    """

    connection: ConnectionOptions = ConnectionOptions()
    contexts: tuple[str, ...] = ()
    all_contexts: bool = False
    namespace: str | None = None
    all_namespaces: bool = False
    selector: str = ""
    field_selector: str = ""
    node: str | None = None
    files: tuple[str, ...] = ()
    kustomize: str | None = None
    recursive: bool = False
    demo: bool = False
    usage: Literal["metrics", "summary", "prometheus", "none"] = "metrics"
    prometheus: str | None = None
    prometheus_selector: str = ""
    over_seconds: int = 7 * 86_400
    stat: Literal["max", "p99", "p95", "avg"] = "max"
    watch_seconds: int = 0
    at: str | None = None
    node_memory: str | None = None
    assume: tuple[str, ...] = ()
    feature_gates: tuple[str, ...] = ()

    @property
    def is_cluster(self) -> bool:
        """Return True if the source is a cluster, now or in the past: not --demo, -f or -k."""
        return not self.demo and not self.has_files

    @property
    def is_fleet(self) -> bool:
        """Return True if several clusters are read, also in the options for one of them."""
        return bool(self.contexts) or self.all_contexts

    @property
    def has_history(self) -> bool:
        """Return True if usage is a statistic from a store of metrics."""
        return self.usage == "prometheus"

    @property
    def reads_store(self) -> bool:
        """Return True if usage comes from a store: a statistic, or its current values."""
        return self.has_history or (self.prometheus is not None and self.usage == "metrics")

    @property
    def used_stat(self) -> str:
        """Return the statistic used for usage; "" for current usage."""
        return self.stat if self.has_history else ""

    @property
    def has_files(self) -> bool:
        """Return True if -f or -k is given."""
        return bool(self.files) or self.kustomize is not None

    @property
    def selects(self) -> bool:
        """Return True if flags select pods."""
        return any((self.all_namespaces, self.namespace, self.node, self.selector, self.field_selector))

    def without_usage(self) -> SourceOptions:
        """Return a copy that does not read usage, to save time."""
        return self._replace(usage="none")

    def on_node(self, node: str | None) -> SourceOptions:
        """Return a copy with --node; unchanged for None."""
        return self if node is None else self._replace(node=node)

    def in_context(self, name: str) -> SourceOptions:
        """Return a copy for another context, with its own namespace."""
        return self._replace(connection=self.connection._replace(context=name, namespace=None))


class TableFormat(NamedTuple):
    """How a table is printed: -o and --no-headers."""

    output: str | None = None
    headers: bool = True

    @property
    def has_values(self) -> bool:
        """Return True for a document (JSON, YAML or a template), which has every column."""
        return self.output is not None and self.output not in {"wide", "csv", "name", "table"}

    @property
    def has_every_column(self) -> bool:
        """Return True if the format prints every column."""
        return self.has_values or self.output == "csv"


class TableOptions(NamedTuple):
    """The rows and columns of the tables of `top`, and how they are printed."""

    containers: bool = False
    min_risk: str | None = None
    sort_by: str | None = None
    watch: bool = False
    label_columns: tuple[str, ...] = ()
    show_labels: bool = False
    show_kind: bool = False
    ignore_not_found: bool = False
    format: TableFormat = TableFormat()


class ApplyOptions(NamedTuple):
    """How a change is applied and put on trial; None is a flag that is not given."""

    dry_run: Literal["none", "client", "server"] = "none"
    yes: bool = False
    readonly: bool = False
    force: bool = False
    wait: bool | None = None
    timeout_seconds: float | None = None
    for_seconds: float | None = None
    undo_if: tuple[str, ...] = ()

    def check_trial(self) -> None:
        """Raise UsageError if --for or --undo-if contradicts other flags."""
        if (self.undo_if or self.for_seconds is not None) and not self.for_seconds:
            what = "--undo-if needs --for" if self.for_seconds is None else "--for needs a time"
            raise UsageError(what, hint="--for 10m watches the change for ten minutes")
        others = {"--wait=false": self.wait is False, "--timeout": self.timeout_seconds is not None}
        others[f"--dry-run={self.dry_run}"] = self.dry_run != "none"
        for other in (flag for flag, is_given in others.items() if is_given and self.for_seconds):
            raise UsageError(f"--for and {other} cannot be used together")

    @property
    def cluster_flags(self) -> tuple[str, ...]:
        """Return the given flags that need a cluster."""
        flags = {
            "--yes": self.yes,
            "--force": self.force,
            "--wait": self.wait is not None,
            "--timeout": self.timeout_seconds is not None,
            "--for": self.for_seconds is not None,
            "--undo-if": bool(self.undo_if),
            "--dry-run=server": self.dry_run == "server",
        }
        return tuple(flag for flag, is_given in flags.items() if is_given)


_GROUPS: Final[Mapping[str, type[NamedTuple]]] = {
    "source": SourceOptions,
    "connection": ConnectionOptions,
    "format": TableFormat,
    "table": TableOptions,
    "apply": ApplyOptions,
}


def parse_options(options_type: type[OptionsT], namespace: argparse.Namespace) -> OptionsT:
    """Return options with the values of a parsed command line, by the names of their fields.

    The fields in `_GROUPS` are options themselves; `flags` are the shared flags as they were given.
    Raises UsageError for --template without -o.
    """
    values: dict[str, Any] = {}
    for name in options_type._fields:
        if name in _GROUPS:
            values[name] = parse_options(_GROUPS[name], namespace)
        elif name == "flags":
            values[name] = given_shared_flags(namespace)
        elif name in namespace:
            value = getattr(namespace, name)
            if name == "output" and getattr(namespace, "template", None) is not None:
                if value not in TEMPLATES:
                    raise UsageError(
                        "--template without -o is a Go template, which is not supported",
                        hint="-o jsonpath --template '{.items[*].pod}'",
                    )
                value = f"{value}={namespace.template}"
            values[name] = tuple(value) if isinstance(value, list) else value
    make: Callable[..., OptionsT] = options_type
    return make(**values)


class SetOptions(NamedTuple):
    """The options of `set`; `requests` and `limits` are None if the flag is not given."""

    source: SourceOptions
    apply: ApplyOptions
    target: tuple[str, ...]
    requests: tuple[str, ...] | None = None
    limits: tuple[str, ...] | None = None
    containers: tuple[str, ...] = ()
    pod_level: bool = False
    target_class: str | None = None
    outlive: str | None = None
    rank_below: int | None = None
    by: Literal["in-place", "template"] | None = None
    output: str | None = None
    exit_code: bool = False
    write: str | None = None
    into: Literal["base", "overlay"] | None = None

    @property
    def writes(self) -> bool:
        """Return True if a file is changed."""
        return self.write is not None

    @property
    def tree(self) -> str | None:
        """Return the working tree to edit, if one is given."""
        return self.write or (self.source.kustomize if self.writes else None)

    @property
    def is_dry_write(self) -> bool:
        """Return True if the diff of the files is printed, and none is written."""
        return self.writes and self.apply.dry_run != "none"

    def check_output(self) -> None:
        """Raise UsageError if -o kustomize is combined with a flag that applies or writes the change."""
        if self.output == KUSTOMIZE and (self.applies or self.writes):
            raise UsageError("-o kustomize only prints a patch file", "--write DIR --into overlay adds it")

    @property
    def strategy(self) -> StrategyKind | None:
        """Return the strategy of --by, or None."""
        from kubectl_qos.edit.preview import StrategyKind

        return {"in-place": StrategyKind.IN_PLACE, "template": StrategyKind.TEMPLATE}.get(self.by or "")

    @property
    def applies(self) -> bool:
        """Return True if the change is sent to a cluster."""
        if self.source.has_files or self.writes:
            return False
        return (
            (self.output is None and not self.source.demo) or self.apply.yes or self.apply.dry_run == "server"
        )

"""What flags become: typed, frozen values.

`argparse.Namespace` ends here: commands see options alone. Not here: the options of one command (commands/),
and what options name (resources.py).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from kubectl_qos.cli.flags import TEMPLATES, given_shared_flags
from kubectl_qos.errors import UsageError
from kubectl_qos.transport import ConnectionOptions

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from kubectl_qos.edit.preview import StrategyKind


OptionsT = TypeVar("OptionsT", bound="DataclassInstance")
KUSTOMIZE: Final = "kustomize"
"""The format of -o that prints a patch file for Kustomize."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Where pods come from: --demo, files, or a cluster; which of them, and what is assumed of their nodes.

    None and an empty selector mean that a flag is not given. `node_memory`, `assume` and `feature_gates` are
    texts that `resolve_source` reads.
    """

    connection: ConnectionOptions = field(default_factory=ConnectionOptions)
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
    at: str | None = None
    node_memory: str | None = None
    assume: tuple[str, ...] = ()
    feature_gates: tuple[str, ...] = ()

    @property
    def is_cluster(self) -> bool:
        """Whether the source is a cluster, now or then: neither --demo nor -f nor -k is given."""
        return not self.demo and not self.has_files

    @property
    def is_fleet(self) -> bool:
        """Whether several clusters are asked, of which this may be one."""
        return bool(self.contexts) or self.all_contexts

    @property
    def has_history(self) -> bool:
        """Whether usage is a statistic of a store of metrics."""
        return self.usage == "prometheus"

    @property
    def reads_store(self) -> bool:
        """Whether usage is that of a store: a statistic, or the present of the one that is given."""
        return self.has_history or (self.prometheus is not None and self.usage == "metrics")

    @property
    def used_stat(self) -> str:
        """The statistic that usage is; empty where it is that of a moment."""
        return self.stat if self.has_history else ""

    @property
    def has_files(self) -> bool:
        """Whether -f or -k is given."""
        return bool(self.files) or self.kustomize is not None

    @property
    def selects(self) -> bool:
        """Whether flags say which pods are requested."""
        return any((self.all_namespaces, self.namespace, self.node, self.selector, self.field_selector))

    def without_usage(self) -> SourceOptions:
        """The same where nothing depends on usage, which takes time to read."""
        return replace(self, usage="none")

    def without_assumptions(self) -> SourceOptions:
        """The same with nodes as they are known."""
        return replace(self, assume=(), feature_gates=())

    def on_node(self, node: str | None) -> SourceOptions:
        """The same with --node; unchanged for None."""
        return self if node is None else replace(self, node=node)

    def in_context(self, name: str) -> SourceOptions:
        """The same in another context, with its own namespace."""
        return replace(self, connection=replace(self.connection, context=name, namespace=None))

    def with_timeout(self, text: str) -> SourceOptions:
        """The same with this --request-timeout where none is given."""
        if self.connection.request_timeout is not None:
            return self
        return replace(self, connection=replace(self.connection, request_timeout=text))


@dataclass(frozen=True, slots=True)
class TableFormat:
    """How a table is printed: -o and --no-headers."""

    output: str | None = None
    headers: bool = True

    @property
    def has_values(self) -> bool:
        """Whether it is that of a document: JSON, YAML or a template, which see every column."""
        return self.output is not None and self.output not in {"wide", "csv", "name", "table"}

    @property
    def has_every_column(self) -> bool:
        """Whether nothing is left out."""
        return self.has_values or self.output == "csv"


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Which rows and columns the tables of `top` have, and how they are printed."""

    containers: bool = False
    min_risk: str | None = None
    sort_by: str | None = None
    watch: bool = False
    label_columns: tuple[str, ...] = ()
    show_labels: bool = False
    show_kind: bool = False
    ignore_not_found: bool = False
    format: TableFormat = field(default_factory=TableFormat)


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """How a change is applied, and looked after; None is a flag that is not given."""

    dry_run: Literal["none", "client", "server"] = "none"
    yes: bool = False
    readonly: bool = False
    force: bool = False
    wait: bool | None = None
    timeout_seconds: float | None = None
    for_seconds: float | None = None
    undo_if: tuple[str, ...] = ()

    def check_trial(self) -> None:
        """Raise UsageError where --for or --undo-if does not go with the other flags."""
        if (self.undo_if or self.for_seconds is not None) and not self.for_seconds:
            what = "--undo-if needs --for" if self.for_seconds is None else "--for needs a time"
            raise UsageError(what, hint="--for 10m looks after the change for ten minutes")
        others = {"--wait=false": self.wait is False, "--timeout": self.timeout_seconds is not None}
        others[f"--dry-run={self.dry_run}"] = self.dry_run != "none"
        for other in (flag for flag, is_given in others.items() if is_given and self.for_seconds):
            raise UsageError(f"--for and {other} exclude each other")

    @property
    def cluster_flags(self) -> tuple[str, ...]:
        """Those of the given flags that make no sense without a cluster."""
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


def _with_template(output: str | None, template: str) -> str:
    if output not in TEMPLATES:
        raise UsageError(
            "--template without -o is a Go template, which is not supported",
            hint="-o jsonpath --template '{.items[*].pod}'",
        )
    return f"{output}={template}"


_GROUPS: Final[Mapping[str, type[DataclassInstance]]] = {
    "source": SourceOptions,
    "connection": ConnectionOptions,
    "format": TableFormat,
    "table": TableOptions,
    "apply": ApplyOptions,
}


def parse_options(options_type: type[OptionsT], namespace: argparse.Namespace) -> OptionsT:
    """Options from a parsed command line, each field from the value of its name.

    `_GROUPS` has the fields that are options themselves; `flags` are the shared flags, as they were given.
    """
    values: dict[str, Any] = {}
    for option in fields(options_type):
        name = option.name
        if name in _GROUPS:
            values[name] = parse_options(_GROUPS[name], namespace)
        elif name == "flags":
            values[name] = given_shared_flags(namespace)
        elif name in namespace:
            value = getattr(namespace, name)
            if name == "output" and getattr(namespace, "template", None) is not None:
                value = _with_template(value, namespace.template)
            values[name] = tuple(value) if isinstance(value, list) else value
    return options_type(**values)


@dataclass(frozen=True, slots=True)
class SetOptions:
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
        """Whether a file is changed."""
        return self.write is not None

    @property
    def tree(self) -> str | None:
        """The working tree in which the source is changed, if that is asked for."""
        return self.write or (self.source.kustomize if self.writes else None)

    @property
    def is_dry_write(self) -> bool:
        """Whether only the diff of what would be written is printed."""
        return self.writes and self.apply.dry_run != "none"

    @property
    def has_text_for_git(self) -> bool:
        """Whether stdout is a commit message or a diff, and nothing else."""
        return self.output is None and (self.tree is not None or self.is_dry_write)

    def check_output(self) -> None:
        """Raise UsageError where something is done beside printing a patch file."""
        if self.output == KUSTOMIZE and (self.applies or self.writes):
            raise UsageError(
                "-o kustomize only prints a patch file", hint="--write DIR --into overlay adds it"
            )

    @property
    def strategy(self) -> StrategyKind | None:
        """That of --by, None without it."""
        from kubectl_qos.edit.preview import StrategyKind

        return {"in-place": StrategyKind.IN_PLACE, "template": StrategyKind.TEMPLATE}.get(self.by or "")

    @property
    def applies(self) -> bool:
        """Whether more is done than to print, or to write to a file."""
        if self.source.has_files or self.writes:
            return False
        return (
            (self.output is None and not self.source.demo) or self.apply.yes or self.apply.dry_run == "server"
        )

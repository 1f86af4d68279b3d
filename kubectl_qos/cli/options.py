"""What shared flags become: typed, frozen values.

`argparse.Namespace` ends here and in the `parse` of each command; nothing else sees it. Not here: the options
of one command (commands/), and what options name (resources.py).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field, fields, replace
from typing import Literal

from kubectl_qos.transport.options import ConnectionOptions


@dataclass(frozen=True, slots=True)
class Selection:
    """Which pods: None and an empty selector mean that a flag is not given."""

    namespace: str | None = None
    all_namespaces: bool = False
    selector: str = ""
    node: str | None = None


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Where pods come from: --demo, files, or a cluster; which of them, and what is assumed of their nodes.

    `node_memory`, `assume` and `feature_gates` are texts that `resolve_source` reads.
    """

    connection: ConnectionOptions = field(default_factory=ConnectionOptions)
    selection: Selection = field(default_factory=Selection)
    files: tuple[str, ...] = ()
    recursive: bool = False
    demo: bool = False
    usage: Literal["metrics", "summary", "none"] = "metrics"
    node_memory: str | None = None
    assume: tuple[str, ...] = ()
    feature_gates: tuple[str, ...] = ()

    @property
    def is_cluster(self) -> bool:
        """Whether the source is a cluster: neither --demo nor -f is given."""
        return not self.demo and not self.files

    def without_usage(self) -> SourceOptions:
        """The same where nothing depends on usage, which takes time to read."""
        return replace(self, usage="none")

    def on_node(self, node: str | None) -> SourceOptions:
        """The same with --node; unchanged for None."""
        return self if node is None else replace(self, selection=replace(self.selection, node=node))

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


def parse_source(namespace: argparse.Namespace) -> SourceOptions:
    """The shared flags of a parsed command line."""
    given = {option.name: getattr(namespace, option.name) for option in fields(ConnectionOptions)}
    return SourceOptions(
        connection=ConnectionOptions(**given | {"as_groups": tuple(namespace.as_groups or ())}),
        selection=Selection(
            namespace.namespace, namespace.all_namespaces, namespace.selector or "", namespace.node
        ),
        files=tuple(namespace.filename or ()),
        recursive=namespace.recursive,
        demo=namespace.demo,
        usage=namespace.usage,
        node_memory=namespace.node_memory,
        assume=tuple(namespace.assume or ()),
        feature_gates=tuple(namespace.feature_gates or ()),
    )

"""From flags to a source and a scope: --demo, -f, or the cluster of the kubeconfig."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from kubectl_qos.cli import streams
from kubectl_qos.cluster.source import Source
from kubectl_qos.errors import QuantityError, UsageError
from kubectl_qos.k8s.node_overrides import FEATURE_GATES, NodeOverride
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.selectors import Selector
from kubectl_qos.k8s.snapshot import NodeOverrides, Scope

if TYPE_CHECKING:
    from kubectl_qos.config.settings import Settings
    from kubectl_qos.transport.client import Connection
    from kubectl_qos.transport.options import ConnectionOptions


@dataclass(frozen=True, slots=True)
class ResolvedSource:
    """What a command works on, and the problems of documents that could not be read."""

    source: Source
    scope: Scope
    problems: tuple[str, ...] = ()
    failed: bool = False


def resolve_source(options: argparse.Namespace, names: Iterable[str] = ()) -> ResolvedSource:
    """The source and scope that the flags name. Raises QosError."""
    overrides = _overrides(options)
    files = getattr(options, "filename", None) or []
    demo = getattr(options, "demo", False)
    if files and demo:
        raise UsageError("--demo and -f cannot be used together")
    if files.count("-") > 1:
        raise UsageError("standard input cannot be used for multiple arguments")
    problems: tuple[str, ...] = ()
    source: Source
    if demo:
        from kubectl_qos.cluster.demo import DemoSource

        source = DemoSource(overrides)
    elif files:
        from kubectl_qos.cluster.files import FileSource

        found = FileSource(files, recursive=getattr(options, "recursive", False), overrides=overrides)
        problems = tuple(str(problem) for problem in found.problems)
        source = found
    else:
        source = _live(options, overrides)
    return ResolvedSource(source, build_scope(options, source, names), problems, bool(problems))


def build_scope(options: argparse.Namespace, source: Source, names: Iterable[str] = ()) -> Scope:
    """Which pods the flags mean, with the source's own namespace where none is given. Raises UsageError."""
    selector = getattr(options, "selector", None) or ""
    wanted = frozenset(names)
    if wanted and selector:
        raise UsageError("only one of NAME or selector can be provided")
    namespace = getattr(options, "namespace", None)
    node = getattr(options, "node", None)
    everywhere = getattr(options, "all_namespaces", False)
    if namespace is None and not everywhere and node is None:
        namespace = source.default_namespace
    return Scope(
        namespace=None if everywhere else namespace,
        names=wanted,
        node=node,
        selector=Selector.parse(selector),
        selector_text=selector,
    )


def open_connection(options: argparse.Namespace) -> Connection:
    """The connection that the flags name; nothing is sent yet. Raises QosError."""
    from kubectl_qos.transport.client import connect

    return connect(connection_options(options))


def list_contexts(options: argparse.Namespace) -> tuple[str, ...]:
    """The contexts that can be gone to from where the flags lead.

    None where they say themselves which server or user it is: that would hold in every context. Raises
    QosError for a kubeconfig that cannot be used.
    """
    if getattr(options, "demo", False) or getattr(options, "filename", None):
        return ()
    given = connection_options(options)
    if given.server or given.cluster or given.user or given.token:
        return ()
    from kubectl_qos.transport.kubeconfig import entry_names

    return entry_names(given)["contexts"]


def in_context(options: argparse.Namespace, name: str) -> Source:
    """The source of another context with the same flags. Raises QosError."""
    return _live(
        argparse.Namespace(**{**vars(options), "context": name, "namespace": None}), _overrides(options)
    )


def connection_options(options: argparse.Namespace) -> ConnectionOptions:
    """What the flags say of the connection."""
    from kubectl_qos.transport.options import ConnectionOptions

    names = [field.name for field in fields(ConnectionOptions)]
    given = {name: getattr(options, name) for name in names if hasattr(options, name)}
    if "as_groups" in given:
        given["as_groups"] = tuple(given["as_groups"])
    return ConnectionOptions(**given)


def may_write(options: argparse.Namespace, context: str) -> bool:
    """Whether the command writes at all, and neither --readonly nor the settings of the context forbid it.

    Commands that write put the person's settings beside their flags.
    """
    settings: Settings | None = getattr(options, "settings", None)
    if settings is None or getattr(options, "readonly", False):
        return False
    return not settings.for_context(context).readonly


def _live(options: argparse.Namespace, overrides: NodeOverrides) -> Source:
    from kubectl_qos.cluster.live import LiveSource
    from kubectl_qos.cluster.usage import UsageChoice

    connection = open_connection(options)
    is_ranking = getattr(options, "only_ranking", options.command == "top")
    return LiveSource(
        connection,
        may_write=may_write(options, connection.context),
        usage=UsageChoice(getattr(options, "usage", "metrics")),
        ids=not is_ranking,
        configz=not is_ranking,
        overrides=overrides,
        refresh_seconds=getattr(options, "refresh_seconds", None),
        progress=streams.progress() if options.command not in {None, "edit"} else None,
    )


def _overrides(options: argparse.Namespace) -> NodeOverrides:
    """What the flags say about nodes; kubectl's own form of feature gates among it."""
    settings = [NodeOverride.parse(text) for text in getattr(options, "assume", [])]
    for gates in getattr(options, "feature_gates", []):
        settings += [NodeOverride.parse(f"{FEATURE_GATES}{gate}") for gate in gates.split(",") if gate]
    return NodeOverrides(_node_memory(getattr(options, "node_memory", None)), tuple(settings))


def _node_memory(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        size = Quantity.parse(text).value()
    except QuantityError as error:
        raise UsageError(f"--node-memory {text!r}: {error}", hint="write a size such as 16Gi") from None
    if size <= 0:
        raise UsageError(f"--node-memory {text!r} must be positive", hint="write a size such as 16Gi")
    return size

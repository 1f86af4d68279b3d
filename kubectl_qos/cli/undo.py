"""`kubectl qos undo`: what was changed, and taking it back through the same road."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kubectl_qos.cli import land, streams
from kubectl_qos.cli.sources import ResolvedSource, resolve_source
from kubectl_qos.cli.wish import dry_run
from kubectl_qos.edit.edits import as_flags
from kubectl_qos.edit.history import Entry, EntryState, find_conflicts, undo_edits
from kubectl_qos.edit.preview import StrategyKind, preview
from kubectl_qos.edit.strategy import find_strategies
from kubectl_qos.errors import InputError, QosError, UsageError
from kubectl_qos.k8s.kinds import WORKLOADS, pod_from_workload
from kubectl_qos.k8s.objects import ObjectMeta, Pod, convert
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.apply import conflict_lines, entry_change, entry_object, entry_state
from kubectl_qos.present.effects import change_section, preview_sections
from kubectl_qos.present.format import age, escape
from kubectl_qos.present.output import cell_table, marked_lines, to_json
from kubectl_qos.present.reasons import missing_sentence, pod_subject

if TYPE_CHECKING:
    from kubectl_qos.cluster.writer import Writer

_TITLES: Final = ("ID", "AGE", "CONTEXT", "OBJECT", "CHANGE", "STATE")


def run(options: argparse.Namespace) -> int:
    """Print the journal, or take one of its changes back. Raises QosError."""
    if getattr(options, "demo", False) or getattr(options, "filename", None):
        raise UsageError("undo is about clusters, and neither --demo nor -f is one")
    from kubectl_qos.config.history_file import HistoryFile, history_path

    history = HistoryFile(history_path())
    entries = history.entries()
    if history.problem:
        streams.note(history.problem)
    if getattr(options, "list", False):
        _list(entries, options)
        return 0
    if hasattr(options, "output"):
        raise UsageError("-o is the format of --list")
    land.prepare(options)
    wanted = resolve_source(options)
    _undo(_entry(entries, options.id, wanted.source.title), wanted, options)
    return 0


def _list(entries: Sequence[Entry], options: argparse.Namespace) -> None:
    """The entries, the newest first; those of --context alone where it is given."""
    context = getattr(options, "context", None)
    undone = _undone(entries)
    shown = [one for one in reversed(entries) if context in {None, one.context}]
    if getattr(options, "output", None) == "json":
        items = [_values(one, undone=one.id in undone) for one in shown]
        streams.out_text(to_json({"kind": "ChangeList", "items": items}))
        return
    if not shown:
        where = f" in {context}" if context else ""
        streams.note(f"nothing was changed{where} yet, or nothing that is still remembered")
        return
    now = datetime.now(UTC)
    rows = [
        (
            land.short_id(one.id),
            age(one.at, now),
            escape(one.context),
            entry_object(one),
            entry_change(one),
            entry_state(one, undone=one.id in undone),
        )
        for one in shown
    ]
    streams.out(cell_table(rows, _TITLES))


def _values(entry: Entry, *, undone: bool) -> dict[str, Any]:
    """An entry for JSON; `before` and `after` stand beside each other, null for a value that is not there."""
    was = {edit.target: edit.quantity for edit in entry.before}
    changes = [
        {
            "container": edit.owner or None,
            "side": edit.side.value,
            "resource": edit.resource,
            "before": _text(was.get(edit.target)),
            "after": _text(edit.quantity),
        }
        for edit in entry.after
    ]
    names = ("at", "context", "server", "kind", "namespace", "name", "uid", "subresource", "message")
    return {
        "id": entry.id,
        **{name: getattr(entry, name) for name in names},
        "state": entry.state.value,
        "undone": undone,
        "undoes": entry.undoes or None,
        "changes": changes,
    }


def _text(quantity: object) -> str | None:
    return None if quantity is None else str(quantity)


def _undone(entries: Sequence[Entry]) -> frozenset[str]:
    return frozenset(one.undoes for one in entries if one.undoes and one.state is EntryState.DONE)


def _entry(entries: Sequence[Entry], id_: str | None, context: str) -> Entry:
    """The change that is meant, the last one of the context without an id. Raises InputError."""
    undone = _undone(entries)
    if id_ is None:
        for one in reversed(entries):
            is_plain = not one.undoes and one.id not in undone and one.state is not EntryState.REFUSED
            if one.context == context and is_plain:
                return one
        raise InputError(
            f"there is nothing to take back in {context}", hint="kubectl qos undo --list has all changes"
        )
    found = [one for one in entries if id_ in {one.id, land.short_id(one.id)}]
    if len(found) != 1:
        raise InputError(
            f"there is no change {id_}" if not found else f"several changes end in {id_}: give the whole id",
            hint="kubectl qos undo --list has their ids, -o json the whole ones",
        )
    entry = found[0]
    if entry.context != context:
        raise InputError(
            f"{land.short_id(entry.id)} was in the context {entry.context}, this is {context}",
            hint=f"add --context {entry.context}",
        )
    if entry.id in undone:
        raise InputError(f"{land.short_id(entry.id)} was taken back already")
    if entry.state is EntryState.REFUSED:
        raise InputError(f"{land.short_id(entry.id)} was refused by the server: nothing was changed")
    return entry


def _undo(entry: Entry, wanted: ResolvedSource, options: argparse.Namespace) -> None:
    """Take it back. Raises QosError where that cannot be."""
    writer = land.resolve_writer(options, wanted)
    if writer is not None and entry.server and writer.server != entry.server:
        raise QosError(
            f"{entry.context} is another server now: the change was on {entry.server}, this is"
            f" {writer.server}"
        )
    stub = Pod(kind=entry.kind, metadata=ObjectMeta(name=entry.name, namespace=entry.namespace))
    related = wanted.source.related(stub)
    pod = _pod(entry.kind, related.raw)
    edits = undo_edits(entry, pod, uid=str((related.raw.get("metadata") or {}).get("uid", "")))
    _check_conflicts(entry, pod, writer, options)
    scope = Scope(namespace=entry.namespace, names=frozenset({entry.name}))
    snapshot = wanted.source.snapshot(scope)
    setup = snapshot.setup(pod.node_name)
    found = preview(pod, edits, setup, snapshot.by_node().get(pod.node_name, ()), snapshot.usage)
    all_strategies = find_strategies(pod, found.edits, found, related)
    usage = snapshot.usage.get((pod.namespace, pod.name)) if pod.kind == "Pod" else None
    streams.out(
        [
            pod_subject(found.before),
            *marked_lines([change_section(pod, found.edits), *preview_sections(found)]),
        ]
    )
    by = "in-place" if entry.subresource else "template"
    streams.out(land.strategy_report(found, related, all_strategies, usage, by))
    streams.notes([*map(missing_sentence, snapshot.missing), *land.related_notes(related)])
    wanted_strategy = StrategyKind.IN_PLACE if entry.subresource else StrategyKind.TEMPLATE
    strategy = next((one for one in all_strategies if one.kind is wanted_strategy), all_strategies[0])
    if strategy.request is None:
        raise QosError(
            f"{entry.kind.lower()}/{entry.name} cannot be changed back: {strategy.reason}",
            hint=f"what is different now, as flags of set: {'; '.join(as_flags(found.edits))}",
        )
    if writer is None:
        land.refuse_what_a_server_would(found, related, strategy, usage, f"{entry.kind.lower()}/{entry.name}")
    land.land(land.Plan(found, strategy, strategy.request, entry.id), writer, options)


def _check_conflicts(entry: Entry, pod: Pod, writer: Writer | None, options: argparse.Namespace) -> None:
    """Show values that somebody else has changed since. Raises QosError where nobody can decide on them."""
    found = find_conflicts(entry, pod)
    if not found:
        return
    name = f"{entry.kind.lower()}/{entry.name}"
    streams.note(f"{name} was changed by someone else since:")
    streams.notes(conflict_lines(found))
    asks = writer is not None and not getattr(options, "yes", False)
    if asks or dry_run(options):
        return
    raise QosError(
        f"{name} is not changed: --yes does not overwrite what someone else has set",
        hint="answer the question on a terminal, or set the values with kubectl qos set",
    )


def _pod(kind: str, raw: Mapping[str, Any]) -> Pod:
    """The pod, or that of the template. Raises QosError."""
    try:
        return pod_from_workload(kind, raw) if kind in WORKLOADS else convert(raw, Pod)
    except msgspec.ValidationError as error:
        raise QosError(f"the server's {kind.lower()} cannot be read: {error}") from None

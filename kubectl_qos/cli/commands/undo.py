"""`kubectl qos undo`: list the change history, or revert a change with the strategy that made it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_qos.cli import output
from kubectl_qos.cli.flags import add_apply_flags, add_output, add_switch
from kubectl_qos.errors import EXIT_REVERTED, InputError, QosError, UsageError
from kubectl_qos.present.format import age, escape

if TYPE_CHECKING:
    from kubectl_qos.cli.apply_shell import ApplyShell, DidNotHold
    from kubectl_qos.cli.options import ApplyOptions, SourceOptions
    from kubectl_qos.edit.history import Entry, ValueConflict

DESCRIPTION: Final = """\
Revert a change that `set` or the terminal UI made: restore the previous values
after a dry run of the server and a confirmation. Without an ID, revert the last
change in this context. If someone else has changed the values since, undo shows
them and asks before it overwrites them.
"""
EXAMPLES: Final = """\
examples:
  kubectl qos undo --list          # the change history, the newest first
  kubectl qos undo                 # revert the last change in this context
  kubectl qos undo 1f3a9c02 --yes  # that one, in a script
"""
_TITLES: Final = ("ID", "AGE", "CONTEXT", "OBJECT", "CHANGE", "STATE")


class Options(NamedTuple):
    """Which change to revert, or --list."""

    source: SourceOptions
    apply: ApplyOptions
    id: str | None
    list: bool
    output: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `undo`."""
    parser.add_argument("id", nargs="?", metavar="ID", help="which change, as --list and set print it")
    add_switch(parser, "--list", help="the change history, the newest first; no server is contacted")
    add_output(parser, "json", "yaml", help_="output format of --list")
    add_apply_flags(parser)


def run(options: Options) -> int:
    """Print the change history, or revert one of its changes. Raises QosError."""
    if options.source.has_files:
        raise UsageError("undo needs a cluster: -f is not supported")
    if options.source.demo:
        raise UsageError(
            "there is nothing to undo: every command starts a new demo",
            hint="in the terminal UI of kubectl qos --demo, changes last until you leave it",
        )
    from kubectl_qos.config.state import HistoryFile, history_path

    history = HistoryFile(history_path())
    entries = history.entries()
    if history.problem:
        output.note(history.problem)
    if options.list:
        _list(entries, options)
        return 0
    if options.output is not None:
        raise UsageError("-o is the format of --list")
    from kubectl_qos.cli.apply_shell import ApplyShell, resolve_cluster

    if not entries:
        raise InputError("nothing to undo: no changes are recorded on this machine")
    named = None if options.id is None else _entry_with(options.id, entries)
    resolved, settings = resolve_cluster(options.source, options.apply)
    entry = _find_entry(entries, named, resolved.source.title)
    _undo(entry, ApplyShell(resolved, options.apply, settings))
    return 0


def revert(failed: DidNotHold, shell: ApplyShell) -> DidNotHold:
    """Undo a change that did not hold, without asking. Return its error, extended by the outcome of undo."""
    from kubectl_qos.cli.apply_shell import DidNotHold
    from kubectl_qos.present.changes import WAITS_FOR_USAGE, revert_line, unreverted

    undo, entry = shell.for_undo(), shell.tried
    assert entry is not None
    try:
        _undo(entry, undo, is_requested=False)
    except QosError as error:
        undo.history.put(unreverted(entry, error))
        return DidNotHold(f"{failed}; it is not reverted: {error}", error.hint)
    progress = undo.state.progress
    waits = progress is not None and progress.waits_for_usage
    ended = DidNotHold(f"{failed}; {revert_line(progress)}", WAITS_FOR_USAGE if waits else "")
    ended.exit_code = ended.exit_code if waits else EXIT_REVERTED
    return ended


def _list(entries: Sequence[Entry], options: Options) -> None:
    """Print the entries, newest first; with --context only those of that context."""
    from kubectl_qos.edit.history import undos
    from kubectl_qos.present.changes import entry_change, entry_object, entry_state
    from kubectl_qos.present.output import cell_table

    context = options.source.connection.context
    undone = undos(entries)
    shown = [entry for entry in reversed(entries) if context in {None, entry.context}]
    if options.output is not None:
        from kubectl_qos.present.values.changes import history_values

        output.print_document(history_values(shown, undone), options.output)
        return
    if not shown:
        output.note(f"no recorded changes in {context}" if context else "no recorded changes")
        return
    now = datetime.now(UTC)
    rows = [
        (
            entry.short_id,
            age(entry.at, now),
            escape(entry.context),
            entry_object(entry),
            entry_change(entry),
            entry_state(entry, undone.get(entry.id)),
        )
        for entry in shown
    ]
    output.print_lines(cell_table(rows, _TITLES, output.terminal_width(), ("CHANGE", "STATE")))


def _entry_with(id_: str, entries: Sequence[Entry]) -> Entry:
    """Return the entry with an id. Raises InputError."""
    matching = [entry for entry in entries if id_ in {entry.id, entry.short_id}]
    if len(matching) != 1:
        raise InputError(
            f"several changes end in {id_}: use the whole id" if matching else f"there is no change {id_}",
            hint="kubectl qos undo --list prints their ids, with -o json in full",
        )
    return matching[0]


def _find_entry(entries: Sequence[Entry], named: Entry | None, context: str) -> Entry:
    """Return the named entry if it can be undone, or the last change in the context. Raises InputError."""
    from kubectl_qos.edit.history import EntryState, undos

    undone, entry = undos(entries), named
    if entry is None:
        for last in reversed(entries):
            is_change = not last.undoes and last.id not in undone and last.state is not EntryState.REFUSED
            if last.context == context and is_change:
                return last
        raise InputError(f"nothing to undo in {context}", hint="kubectl qos undo --list prints all changes")
    if entry.context != context:
        raise InputError(
            f"{entry.short_id} was made in the context {entry.context}, this is {context}",
            hint=f"add --context {entry.context}",
        )
    if entry.id in undone:
        how = "already" if undone[entry.id].state is EntryState.DONE else "being"
        raise InputError(f"{entry.short_id} is {how} reverted")
    if entry.state is EntryState.REFUSED:
        raise InputError(f"{entry.short_id} was refused by the server: nothing was changed")
    return entry


def _undo(entry: Entry, shell: ApplyShell, *, is_requested: bool = True) -> None:
    from kubectl_qos.cli.set_edits import effect_sections, preview_notes
    from kubectl_qos.edit.apply_state import Apply
    from kubectl_qos.edit.compare import recreate_all, scope_of_pods
    from kubectl_qos.edit.history import find_conflicts, undo_edits
    from kubectl_qos.edit.related import pod_from_raw, pod_reference
    from kubectl_qos.k8s.objects import nested
    from kubectl_qos.k8s.snapshot import Scope
    from kubectl_qos.present.changes import alternative
    from kubectl_qos.present.effects import change_section
    from kubectl_qos.present.reasons import pod_subject

    if shell.options.dry_run != "client" and entry.server and shell.writer.server != entry.server:
        raise QosError(
            f"{entry.context} points to another server now: the change was on {entry.server}, this is"
            f" {shell.writer.server}"
        )
    related = shell.source.related(pod_reference(entry.kind, entry.namespace, entry.name))
    pod = pod_from_raw(entry.kind, related.raw)
    edits = undo_edits(entry, pod, uid=str(nested(related.raw, "metadata").get("uid", "")))
    _check_conflicts(entry, find_conflicts(entry, pod), shell.options)
    scope = Scope(namespace=entry.namespace, names=frozenset({entry.name}))
    snapshot = shell.source.snapshot(scope if pod.kind == "Pod" else scope_of_pods(pod, scope))
    change = replace(Apply.of(pod, edits, snapshot).as_undo(entry), wanted=entry.strategy)
    effects = change.preview
    if is_requested:
        replicas = recreate_all(pod, effects.edits, snapshot) if pod.kind != "Pod" else ()
        sections = effect_sections(change, snapshot, replicas, related.raw)
        output.print_sections(pod_subject(effects.before), [change_section(pod, effects.edits), *sections])
        output.notes(preview_notes(effects, snapshot, replicas))
    state = shell.load(change, related)
    if state.strategy is not None and state.request is None:
        raise QosError(
            f"{entry.reference} cannot be reverted: {state.strategy.reason}", hint=alternative(state)
        )
    shell.apply()


def _check_conflicts(entry: Entry, conflicts: Sequence[ValueConflict], options: ApplyOptions) -> None:
    """Show values that someone else has changed since. Raises QosError if no person can confirm."""
    from kubectl_qos.present.changes import conflict_lines

    if not conflicts:
        return
    output.note(f"{entry.reference} was changed by someone else since:")
    output.notes(conflict_lines(conflicts))
    if options.yes and options.dry_run == "none":
        raise QosError(
            f"{entry.reference} is not changed: --yes does not overwrite what someone else has set",
            hint="confirm it on a terminal, or set the values with kubectl qos set",
        )

"""Landing a change from the command line: rehearsed, asked for, written once, and followed.

Shared by `set` and `undo`. What goes to stdout without -o goes to stderr with it, where the data is stdout's.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kubectl_qos.cli import streams
from kubectl_qos.cli.wish import dry_run
from kubectl_qos.edit.edits import as_flags
from kubectl_qos.edit.findings import Severity, find_findings
from kubectl_qos.edit.preview import Preview, StrategyKind
from kubectl_qos.edit.status import Stage
from kubectl_qos.edit.strategy import Strategy
from kubectl_qos.errors import ApiError, InputError, QosError, UsageError
from kubectl_qos.k8s.kinds import WORKLOADS
from kubectl_qos.present.apply import (
    confirm_lines,
    conflict_lines,
    dry_run_lines,
    progress_line,
    request_lines,
    strategy_lines,
    strategy_title,
)
from kubectl_qos.present.findings import finding_line, findings_section
from kubectl_qos.present.output import Section, marked_lines, sentences, to_json, to_yaml
from kubectl_qos.present.reasons import missing_sentence

if TYPE_CHECKING:
    from kubectl_qos.cli.sources import ResolvedSource
    from kubectl_qos.cluster.writer import ApplyResult, DryRunResult, Writer
    from kubectl_qos.config.history_file import HistoryFile
    from kubectl_qos.config.settings import Settings
    from kubectl_qos.edit.patch import PatchRequest
    from kubectl_qos.edit.related import RelatedObjects
    from kubectl_qos.k8s.usage import PodUsage

FIRST_LOOK_SECONDS: Final = 0.3
LONGEST_PAUSE_SECONDS: Final = 2.0
MOST_FAILED_LOOKS: Final = 3
_BY: Final = {"in-place": StrategyKind.IN_PLACE, "template": StrategyKind.TEMPLATE}


@dataclass(frozen=True, slots=True)
class Plan:
    """A change with the way that was chosen for it.

    `undoes` is the id of the entry of the journal that it takes back, else empty.
    """

    preview: Preview
    strategy: Strategy
    request: PatchRequest
    undoes: str = ""


def prepare(options: argparse.Namespace) -> None:
    """Put the person's settings beside the flags, and refuse what could only fail later.

    Raises UsageError where somebody would have to be asked and nobody is there.
    """
    from kubectl_qos.config.paths import config_file
    from kubectl_qos.config.settings import read_settings

    options.settings = read_settings(config_file())
    if not dry_run(options) and not getattr(options, "yes", False) and not streams.is_interactive():
        raise UsageError(
            "nothing is written without a question, and there is no terminal to ask it",
            hint="--yes answers it, --dry-run=client and --dry-run=server write nothing",
        )


def resolve_writer(options: argparse.Namespace, wanted: ResolvedSource) -> Writer | None:
    """Who writes, None for --dry-run=client. Raises QosError where nothing is to be written here."""
    return None if dry_run(options) == "client" else wanted.source.writer()


def choose_strategy(strategies: Sequence[Strategy], options: argparse.Namespace, name: str) -> Strategy:
    """The way of --by, or the best one. Raises InputError where there is none.

    A pod that cannot be changed in place is never changed through its owner unasked: other pods would roll.
    """
    found = _wanted(strategies, getattr(options, "by", None))
    if found is None:
        known = ", ".join(strategy_title(strategy) for strategy in strategies)
        raise InputError(f"{name} cannot be changed {_words(_BY[options.by])}", hint=f"it can be: {known}")
    if found.request is None:
        through = [
            strategy.request
            for strategy in strategies
            if strategy.kind is StrategyKind.TEMPLATE and strategy.request is not None
        ]
        raise InputError(
            f"{name} cannot be changed {_words(found.kind)}: {found.reason or 'by hand only'}",
            hint=_instead(through[0] if through else None, found),
        )
    return found


def _wanted(strategies: Sequence[Strategy], by: str | None) -> Strategy | None:
    """The way of --by, else in place where there is such a way, possible or not."""
    if by is not None:
        return next((strategy for strategy in strategies if strategy.kind is _BY[by]), None)
    return next(
        (strategy for strategy in strategies if strategy.kind is StrategyKind.IN_PLACE),
        strategies[0],
    )


def _words(strategy_kind: StrategyKind) -> str:
    words = {StrategyKind.IN_PLACE: "in place", StrategyKind.TEMPLATE: "through its owner's template"}
    return words.get(strategy_kind, "from here")


def _instead(through: PatchRequest | None, strategy: Strategy) -> str:
    if through is not None:
        where = f" -n {through.namespace}" if through.namespace else ""
        flags = as_flags(through.edits)
        values = flags[0] if len(flags) == 1 else "…"
        command = f"kubectl qos set {through.reference}{where} {values}"
        return f"change what it is made from: {command}, or add --by template"
    if strategy.kind is StrategyKind.NEVER:
        return ""
    return "save what -o yaml prints, delete the pod and create it anew"


def strategy_report(
    found: Preview,
    related: RelatedObjects,
    strategies: Sequence[Strategy],
    usage: PodUsage | None,
    by: str | None,
) -> list[str]:
    """Verdicts on the way that will be taken, every way, and the exact request of that one."""
    strategy = _wanted(strategies, by) or strategies[0]
    parts = [findings_section(find_findings(found, related, strategy.kind, usage))]
    parts.append(Section("Strategies", lines=sentences(*strategy_lines(strategies))))
    if strategy.request is not None:
        parts.append(
            Section(
                "Request",
                strategy_title(strategy),
                sentences(*filter(None, request_lines(strategy.request))),
            )
        )
    return list(marked_lines(part for part in parts if part is not None))


def refuse_what_a_server_would(
    found: Preview, related: RelatedObjects, strategy: Strategy, usage: PodUsage | None, name: str
) -> None:
    """Raise InputError with the first verdict that refuses: nobody is asked for a --dry-run=client."""
    for finding in find_findings(found, related, strategy.kind, usage):
        if finding.severity is Severity.REFUSAL:
            raise InputError(f"{name}: a server would refuse this: {finding_line(finding)}")


def related_notes(related: RelatedObjects) -> list[str]:
    """What of them could not be read."""
    return list(map(missing_sentence, related.missing))


def land(plan: Plan, writer: Writer | None, options: argparse.Namespace) -> None:
    """Rehearse, ask, write and follow, as far as the flags go.

    Raises QosError where it ends otherwise than with the change done.
    """
    output: str | None = getattr(options, "output", None)
    say = _out if output is None else streams.notes
    if writer is None:
        say([f"{_done_words(plan.request)} (dry run)"])
        return
    dry_run_result = _with_conflicts(lambda: writer.dry_run(plan.request))
    say(dry_run_lines(dry_run_result.request, dry_run_result.stored, dry_run_result.warnings))
    if dry_run(options) == "server":
        _print(plan, dry_run_result.raw, output)
        say([f"{_done_words(plan.request)} (server dry run)"])
        return
    if not getattr(options, "yes", False):
        _confirm(plan, writer, dry_run_result, options.settings)
    from kubectl_qos.config.history_file import HistoryFile, history_path

    history = HistoryFile(history_path())
    written = _written(writer, dry_run_result, history, plan.undoes)
    _print(plan, written.raw, output)
    say([_done_words(plan.request)])
    if not plan.undoes:
        streams.note(f"to take it back: kubectl qos undo {short_id(written.entry.id)}")
    if getattr(options, "wait", True):
        _follow(writer, written, getattr(options, "timeout", None), say)


def short_id(id_: str) -> str:
    """What people type for an entry of the journal: the end of its id."""
    return id_.rpartition("-")[2]


def _out(lines: Iterable[str]) -> None:
    streams.out(lines)


def _print(plan: Plan, raw: object, output: str | None) -> None:
    """The object as the server has it, or would have it; the patch as it was sent."""
    if output == "patch":
        streams.out_text(to_yaml(dict(plan.request.patch)))
    elif output is not None:
        streams.out_text(to_yaml(raw) if output == "yaml" else to_json(raw))


def _done_words(request: PatchRequest) -> str:
    """What happened to what, as kubectl says it: `deployment.apps/web patched`."""
    known = WORKLOADS.get(request.kind)
    group = known.group.split("/")[2] if known is not None and known.group.startswith("/apis/") else ""
    kind = f"{request.kind.lower()}.{group}" if group else request.kind.lower()
    return f"{kind}/{request.name} {'resized' if request.subresource else 'patched'}"


def _with_conflicts(act: Callable[[], DryRunResult]) -> DryRunResult:
    from kubectl_qos.cluster.writer import ConflictError

    try:
        return act()
    except ConflictError as stale:
        streams.notes(conflict_lines(stale.conflicts))
        raise


def _written(writer: Writer, dry_run_result: DryRunResult, history: HistoryFile, undoes: str) -> ApplyResult:
    """The write; whatever comes of it, the journal's own problem is said."""
    from kubectl_qos.cluster.writer import ConflictError

    try:
        return writer.apply(dry_run_result, history, undoes=undoes)
    except ConflictError as stale:
        streams.notes(conflict_lines(stale.conflicts))
        raise
    finally:
        if history.problem:
            streams.note(history.problem)


def _confirm(plan: Plan, writer: Writer, dry_run_result: DryRunResult, settings: Settings) -> None:
    """Ask on the terminal. Raises QosError unless the answer is the one that was asked for."""
    context = writer.context
    streams.notes(confirm_lines(context, writer.server, dry_run_result.request, plan.preview, plan.strategy))
    wanted = context if settings.for_context(context).confirm == "name" else "yes"
    what = "the context's name" if wanted is context else "yes"
    answer = streams.ask(f"Write this to {context}? Type {what} to do it:")
    if answer != wanted:
        raise QosError(f"{plan.request.reference} is not changed: the answer was not {what}")


def _follow(
    writer: Writer, written: ApplyResult, timeout: float | None, say: Callable[[Iterable[str]], None]
) -> None:
    """Say how far it has come whenever that changes, until it settles.

    Raises QosError where it settles otherwise than done, or not in time; the change is written all the same.
    """
    name = written.request.reference
    until = None if not timeout else time.monotonic() + timeout
    said, pause, failed = "", FIRST_LOOK_SECONDS, 0
    try:
        while True:
            try:
                progress = writer.progress(written)
                failed = 0
            except QosError as error:
                failed += 1
                if failed == MOST_FAILED_LOOKS or isinstance(error, ApiError):
                    raise QosError(
                        f"{name} is changed, but how far it has come cannot be seen: {error}", error.hint
                    ) from None
            else:
                line = progress_line(progress)
                before, said = said, line
                if line != before:
                    say([f"{name}: {line}"])
                if progress.settled:
                    if progress.stage is not Stage.DONE:
                        raise QosError(f"{name} is changed, and ended as: {line}")
                    return
            if until is not None and time.monotonic() + pause > until:
                raise QosError(
                    f"timed out waiting for {name}: it is changed, last seen as: {said or 'not seen yet'}",
                    hint="it goes on by itself; kubectl qos explain shows how it stands",
                )
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)
    except KeyboardInterrupt:
        streams.note(f"left: {name} is changed, last seen as: {said or 'not seen yet'}; it goes on by itself")
        raise

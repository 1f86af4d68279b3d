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
from kubectl_qos.edit.landing import Way
from kubectl_qos.edit.preview import Landing, Preview
from kubectl_qos.edit.progress import Stage
from kubectl_qos.edit.spelling import as_flags
from kubectl_qos.edit.verdicts import Weight, verdicts
from kubectl_qos.errors import ApiError, InputError, QosError, UsageError
from kubectl_qos.k8s.kinds import WORKLOADS
from kubectl_qos.present.comparison import part_lines
from kubectl_qos.present.diff import Part
from kubectl_qos.present.landing import (
    confirm_lines,
    conflict_lines,
    landing_lines,
    progress_line,
    rehearsal_lines,
    request_lines,
    way_title,
)
from kubectl_qos.present.notes import missing_sentence
from kubectl_qos.present.structured import to_json, to_yaml
from kubectl_qos.present.verdicts import verdict_line, verdict_part

if TYPE_CHECKING:
    from kubectl_qos.cli.sources import Asked
    from kubectl_qos.cluster.write import Rehearsed, Writer, Written
    from kubectl_qos.config.journal import JournalFile
    from kubectl_qos.config.settings import Settings
    from kubectl_qos.edit.request import Request
    from kubectl_qos.edit.surroundings import Surroundings
    from kubectl_qos.k8s.usage import PodUsage

FIRST_LOOK_SECONDS: Final = 0.3
LONGEST_PAUSE_SECONDS: Final = 2.0
MOST_FAILED_LOOKS: Final = 3
_BY: Final = {"in-place": Landing.IN_PLACE, "template": Landing.TEMPLATE}


@dataclass(frozen=True, slots=True)
class Plan:
    """A change with the way that was chosen for it.

    `undoes` is the id of the entry of the journal that it takes back, else empty.
    """

    preview: Preview
    way: Way
    request: Request
    undoes: str = ""


def prepare(options: argparse.Namespace) -> None:
    """Put the person's settings beside the flags, and refuse what could only fail later.

    Raises UsageError where somebody would have to be asked and nobody is there.
    """
    from kubectl_qos.config.folders import config_file
    from kubectl_qos.config.settings import read_write_settings

    options.settings = read_write_settings(config_file())
    if not dry_run(options) and not getattr(options, "yes", False) and not streams.can_ask():
        raise UsageError(
            "nothing is written without a question, and there is no terminal to ask it",
            hint="--yes answers it, --dry-run=client and --dry-run=server write nothing",
        )


def writer_of(options: argparse.Namespace, wanted: Asked) -> Writer | None:
    """Who writes, None for --dry-run=client. Raises QosError where nothing is to be written here."""
    return None if dry_run(options) == "client" else wanted.source.writer()


def chosen(ways: Sequence[Way], options: argparse.Namespace, name: str) -> Way:
    """The way of --by, or the best one. Raises InputError where there is none.

    A pod that cannot be changed in place is never changed through its owner unasked: other pods would roll.
    """
    found = _wanted(ways, getattr(options, "by", None))
    if found is None:
        known = ", ".join(way_title(way) for way in ways)
        raise InputError(f"{name} cannot be changed {_words(_BY[options.by])}", hint=f"it can be: {known}")
    if found.request is None:
        through = [way.request for way in ways if way.landing is Landing.TEMPLATE and way.request is not None]
        raise InputError(
            f"{name} cannot be changed {_words(found.landing)}: {found.reason or 'by hand only'}",
            hint=_instead(through[0] if through else None, found),
        )
    return found


def _wanted(ways: Sequence[Way], by: str | None) -> Way | None:
    """The way of --by, else in place where there is such a way, possible or not."""
    if by is not None:
        return next((way for way in ways if way.landing is _BY[by]), None)
    return next((way for way in ways if way.landing is Landing.IN_PLACE), ways[0])


def _words(landing: Landing) -> str:
    words = {Landing.IN_PLACE: "in place", Landing.TEMPLATE: "through its owner's template"}
    return words.get(landing, "from here")


def _instead(through: Request | None, way: Way) -> str:
    if through is not None:
        where = f" -n {through.namespace}" if through.namespace else ""
        flags = as_flags(through.edits)
        values = flags[0] if len(flags) == 1 else "…"
        command = f"kubectl qos set {through.reference}{where} {values}"
        return f"change what it is made from: {command}, or add --by template"
    if way.landing is Landing.NEVER:
        return ""
    return "save what -o yaml prints, delete the pod and create it anew"


def show_ways(
    found: Preview, surroundings: Surroundings, ways: Sequence[Way], usage: PodUsage | None, by: str | None
) -> list[str]:
    """Verdicts on the way that will be taken, every way, and the exact request of that one."""
    way = _wanted(ways, by) or ways[0]
    parts = [verdict_part(verdicts(found, surroundings, way.landing, usage))]
    parts.append(Part("Ways", "", sentences=tuple(landing_lines(ways))))
    if way.request is not None:
        parts.append(
            Part("Request", way_title(way), sentences=tuple(filter(None, request_lines(way.request))))
        )
    return list(part_lines(part for part in parts if part is not None))


def refuse_what_a_server_would(
    found: Preview, surroundings: Surroundings, way: Way, usage: PodUsage | None, name: str
) -> None:
    """Raise InputError with the first verdict that refuses: nobody is asked for a --dry-run=client."""
    for verdict in verdicts(found, surroundings, way.landing, usage):
        if verdict.weight is Weight.REFUSES:
            raise InputError(f"{name}: a server would refuse this: {verdict_line(verdict)}")


def notes_of(surroundings: Surroundings) -> list[str]:
    """What of them could not be read."""
    return list(map(missing_sentence, surroundings.missing))


def land(plan: Plan, writer: Writer | None, options: argparse.Namespace) -> None:
    """Rehearse, ask, write and follow, as far as the flags go.

    Raises QosError where it ends otherwise than with the change done.
    """
    output: str | None = getattr(options, "output", None)
    say = _out if output is None else streams.notes
    if writer is None:
        say([f"{_done_words(plan.request)} (dry run)"])
        return
    rehearsed = _with_conflicts(lambda: writer.rehearse(plan.request))
    say(rehearsal_lines(rehearsed.request, rehearsed.stored, rehearsed.warnings))
    if dry_run(options) == "server":
        _print(plan, rehearsed.raw, output)
        say([f"{_done_words(plan.request)} (server dry run)"])
        return
    if not getattr(options, "yes", False):
        _confirm(plan, writer, rehearsed, options.settings)
    from kubectl_qos.config.journal import JournalFile, journal_file

    journal = JournalFile(journal_file())
    written = _written(writer, rehearsed, journal, plan.undoes)
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


def _done_words(request: Request) -> str:
    """What happened to what, as kubectl says it: `deployment.apps/web patched`."""
    known = WORKLOADS.get(request.kind)
    group = known.group.split("/")[2] if known is not None and known.group.startswith("/apis/") else ""
    kind = f"{request.kind.lower()}.{group}" if group else request.kind.lower()
    return f"{kind}/{request.name} {'resized' if request.subresource else 'patched'}"


def _with_conflicts(act: Callable[[], Rehearsed]) -> Rehearsed:
    from kubectl_qos.cluster.write import Stale

    try:
        return act()
    except Stale as stale:
        streams.notes(conflict_lines(stale.conflicts))
        raise


def _written(writer: Writer, rehearsed: Rehearsed, journal: JournalFile, undoes: str) -> Written:
    """The write; whatever comes of it, the journal's own problem is said."""
    from kubectl_qos.cluster.write import Stale

    try:
        return writer.write(rehearsed, journal, undoes=undoes)
    except Stale as stale:
        streams.notes(conflict_lines(stale.conflicts))
        raise
    finally:
        if journal.problem:
            streams.note(journal.problem)


def _confirm(plan: Plan, writer: Writer, rehearsed: Rehearsed, settings: Settings) -> None:
    """Ask on the terminal. Raises QosError unless the answer is the one that was asked for."""
    context = writer.context
    streams.notes(confirm_lines(context, writer.server, rehearsed.request, plan.preview, plan.way))
    wanted = context if settings.for_context(context).confirm_by_name else "yes"
    what = "the context's name" if wanted is context else "yes"
    answer = streams.ask(f"Write this to {context}? Type {what} to do it:")
    if answer != wanted:
        raise QosError(f"{plan.request.reference} is not changed: the answer was not {what}")


def _follow(
    writer: Writer, written: Written, timeout: float | None, say: Callable[[Iterable[str]], None]
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

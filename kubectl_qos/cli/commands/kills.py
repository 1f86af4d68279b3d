"""`kubectl qos kills`: what was killed, by which mechanism, how sure that is, and why it was chosen."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_qos.cli import flags, output, resources, sources
from kubectl_qos.errors import EXIT_ERROR, ApiError, QosError, UsageError, first_few
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.present.format import UNKNOWN, count

if TYPE_CHECKING:
    from kubectl_qos.cli.options import SourceOptions, TableFormat
    from kubectl_qos.cli.tables import TableView
    from kubectl_qos.k8s.events import EventList
    from kubectl_qos.k8s.objects import Pod
    from kubectl_qos.k8s.snapshot import Scope, Snapshot
    from kubectl_qos.qos.kills.analyze import Kill
    from kubectl_qos.qos.kills.report import KernelLog

DESCRIPTION: Final = (
    "List OOM kills and evictions, newest first: what killed, how certain that is, and why. Sources are"
    " pod statuses, events and kernel logs if given; neither OOMKilled nor exit code 137 is proof on its own."
    " With a pod or workload, show the evidence for each death and why this process was chosen."
)
_MOST_FRAGMENTS: Final = 3
EXAMPLES: Final = """\
examples:
  kubectl qos kills -A --since 1h                 # what was killed in the last hour
  kubectl qos kills -A --since 1h --all-contexts  # in every cluster
  kubectl qos kills pod/search-0 -n shop          # the evidence, and what would make it certain
  kubectl qos kills node/worker-2                 # of one node
  ssh worker-2 journalctl -k -o short-iso | kubectl qos kills -A --kernel-log worker-2=-
  kubectl qos kills -A --kernel-log worker-2=w2.log --kernel-log worker-3=w3.log -o wide
  kubectl qos kills --local -A                    # on a node: with what its kernel log still has

columns:
  BY          own limit, pod limit (of several containers), kubepods limit, kernel: node full, memory nodes
              (of a cpuset or memory policy), kubelet evicts, kubelet preemption, scheduler preemption, node
              shutdown, other SIGKILL, unknown; other limit is the limit of a cgroup that belongs to no pod;
              OOM killer: the kernel killed it, but what ran out is unknown
  SURE        certain, likely, possible
  OOM_SCORE   /proc/PID/oom_score at that time of the process that the kernel chose, from its report
  FREED       memory of the killed processes, from that report
  ~           marks an estimated time: seconds since boot, compared with known times in the same log
"""


class Options(NamedTuple):
    """Which deaths are shown, the kernel logs that explain them, and how they are printed."""

    source: SourceOptions
    target: tuple[str, ...]
    kernel_logs: tuple[str, ...]
    local: bool
    since: int | datetime | None
    format: TableFormat


class KillFacts(NamedTuple):
    """The facts that deaths are diagnosed from, at the time `now`, and the time of `--since`."""

    resolved: sources.ResolvedSource
    snapshot: Snapshot
    event_list: EventList
    scope: Scope
    now: datetime
    notes: tuple[str, ...]
    since: datetime | None = None
    last_before: Kill | None = None
    """The newest kill before `--since`, if there is none after it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `kills`."""
    flags.add_target(parser, "pod/search-0, deployment/api, node/worker-2; a name alone is a pod's")
    add_death_flags(
        parser, "only deaths of the last 30m, 2h, 1d12h, or since a time, and those of unknown time"
    )
    flags.add_output(
        parser,
        "table",
        "wide",
        "json",
        "yaml",
        help_="output format; wide has more columns, and the evidence of each death below",
    )
    flags.add_no_headers(parser)
    flags.add_contexts(parser)
    flags.add_at(parser)


def add_death_flags(parser: argparse.ArgumentParser, since_help: str) -> None:
    """Add the flags of `kills` and `report` that choose and explain deaths."""
    flags.add_repeated(
        parser,
        "--kernel-log",
        dest="kernel_logs",
        metavar="[NODE=]FILE|-",
        help="a kernel log: dmesg, journalctl -k (any -o), syslog, talosctl dmesg, a container's log, an"
        " export of a log store; also gzip, xz, zstd; may repeat. NODE is needed if its lines do not name it",
    )
    flags.add_switch(parser, "--local", help="on a node: read its /dev/kmsg")
    since_help += "; in files and logs, a duration counts back from their newest time"
    parser.add_argument(
        *("--since", "--since-time"),
        dest="since",
        type=flags.parse_since,
        metavar="DURATION|TIME",
        help=since_help,
    )


def run(options: Options) -> int:
    """Print the deaths; exit code 1 if a document could not be read or a named object was not found."""
    _refuse_logs(options)
    if options.source.is_fleet:
        from kubectl_qos.cli import tables

        tables.refuse_for_several(
            options.source, {"--kernel-log": options.kernel_logs, "--local": options.local}
        )
        return tables.print_tables(
            options.source, options.format, "Kill", lambda source: _view(options._replace(source=source))
        )
    from kubectl_qos.present.restart_notes import hidden_note

    kills, facts, missing, logs = _read(options)
    format_ = options.format.output
    in_detail = format_ == "wide" or (format_ is None and bool(_named(options)))
    notes = (*source_notes(facts, logs), *(() if in_detail else doubt_notes(kills)))
    killed, references = {(kill.namespace, kill.pod) for kill in kills}, _named(options)
    shown = (
        pod for pod in facts.snapshot.pods if facts.scope.matches(pod) and is_referenced(pod, references)
    )
    notes += (*hidden_note(facts.snapshot, (pod for pod in shown if pod.key not in killed)),)
    if options.format.has_values or format_ == "name":
        if kills or not missing:
            from kubectl_qos.present.values.incidents import KillListValues, kill_values

            values = KillListValues(items=tuple(map(kill_values, kills)), notes=notes)
            output.print_document(values, str(format_), headers=options.format.headers, at=facts.snapshot.at)
    else:
        if kills or not missing:
            _print(kills, facts, options.format, in_detail=in_detail)
        output.notes(note for note in notes if note not in facts.resolved.unread)
    for error in missing:
        output.print_error(error)
    return EXIT_ERROR if facts.resolved.failed or missing else 0


def _view(options: Options) -> TableView[Kill]:
    """Return the deaths of one of several clusters."""
    from kubectl_qos.cli.tables import TableView
    from kubectl_qos.present.kill_columns import HIDDEN_FIRST, columns
    from kubectl_qos.present.values.incidents import kill_values
    from kubectl_qos.qos.kills.analyze import newest_first

    kills, facts, missing, logs = _read(options)
    return TableView(
        kind="Kill",
        rows=kills,
        columns=columns(kills, wide=options.format.output == "wide"),
        hidden_first=HIDDEN_FIRST,
        notes=(*source_notes(facts, logs), *doubt_notes(kills)),
        key=lambda kill: kill,
        reference=lambda kill: kill.pod,
        nothing=_nothing(facts),
        missing=tuple(missing),
        order=newest_first,
        values=kill_values,
    )


def _read(options: Options) -> tuple[list[Kill], KillFacts, list[ApiError], list[KernelLog]]:
    """Return the deaths to show, the facts that they are diagnosed from, what is missing, and the logs."""
    references = _named(options)
    source = options.source.without_usage().on_node(resources.parse_node(options.target))
    logs = read_logs(options.kernel_logs, source, local=options.local)
    facts = read_facts(source, references, has_logs=bool(logs))
    logs += facts.resolved.source.kernel_logs()
    kills, facts = find_shown(facts, logs, references, source, options.since)
    missing = find_missing(references, facts, kills)
    return kills, facts, missing, logs


def _refuse_logs(options: Options) -> None:
    """Raise UsageError for a file in place of a pod, and print that standard input is not read."""
    for word in options.target:
        if word.startswith(("/", ".", "~")) or Path(word).is_file():
            raise UsageError(f"{word} is a file, not a pod", hint=f"kubectl qos kills --kernel-log {word}")
    if not options.kernel_logs and "-" not in options.source.files and output.is_piped():
        output.note("standard input is not read: --kernel-log - reads a kernel log from it")


def _named(options: Options) -> list[resources.Reference]:
    if resources.parse_node(options.target) is not None:
        return []
    return [reference for reference in resources.parse_references_or_names(options.target) if reference.name]


def find_shown(
    facts: KillFacts,
    logs: Sequence[KernelLog],
    references: Sequence[resources.Reference],
    source: SourceOptions,
    since: int | datetime | None,
) -> tuple[list[Kill], KillFacts]:
    """Return the deaths of the named targets, from statuses and the store, and the facts with new notes.

    `since` is a time, or seconds before the present; for files and logs before they were made. With a
    selector, deaths in the store are only those of pods that are still there and match. Raises UsageError
    for a time in the future.
    """
    from kubectl_qos.k8s.snapshot import Missing
    from kubectl_qos.present.list_notes import missing_sentence
    from kubectl_qos.qos.kills.analyze import find_kills, is_since

    if isinstance(since, int):
        since = _made(facts, logs) - timedelta(seconds=since)
    if since is not None and since > facts.now:
        raise UsageError(f"--since {since:%Y-%m-%dT%H:%M:%SZ} is in the future")
    facts = facts._replace(since=since)
    kills = find_kills(
        facts.snapshot,
        facts.event_list,
        logs,
        is_included=lambda pod: facts.scope.matches(pod) and is_referenced(pod, references),
        outside_pods=not (facts.scope.namespace or facts.scope.selector_text or references),
    )
    if source.prometheus is not None or source.at is not None:
        from kubectl_qos.metrics.past import with_older

        seconds = source.over_seconds if since is None else round((facts.now - since).total_seconds())
        try:
            older, left_out = _stored_kills(facts, references, source, seconds)
            kills = with_older(kills, older, seconds)
        except QosError as problem:
            left_out = missing_sentence(Missing("the list of older deaths", str(problem), problem.hint))
        facts = facts._replace(notes=(*facts.notes, *filter(None, [left_out])))
    kills = [kill for kill in kills if facts.scope.node is None or kill.node in {facts.scope.node, ""}]
    if logs and references and not kills:
        everything = find_kills(facts.snapshot, facts.event_list, logs)
        unassigned = [kill for kill in everything if not (kill.pod or kill.pod_uid)]
        of_log = f"{count(len(unassigned), 'kill')} in the log without a known pod: see kubectl qos kills"
        facts = facts._replace(notes=(*facts.notes, *([of_log] if unassigned else [])))
    shown = [kill for kill in kills if since is None or is_since(kill, since)]
    return shown, facts if shown else facts._replace(last_before=next(iter(kills), None))


def _made(facts: KillFacts, logs: Sequence[KernelLog]) -> datetime:
    """Return when the facts were made: for files and logs their newest time, unless it is in the future."""
    if not facts.resolved.source.is_recording:
        return facts.now
    snapshot = facts.snapshot
    texts: list[str | None] = [log.last for log in logs]
    texts += [event.last for event in facts.event_list.events]
    texts += [usage.timestamp for usage in snapshot.usage.values()]
    texts += [pod.metadata.creation_timestamp for pod in snapshot.pods]
    conditions = [pod.status.conditions or () for pod in snapshot.pods]
    conditions += [node.status.conditions or () for node in snapshot.nodes.values()]
    for condition in chain.from_iterable(conditions):
        texts += [condition.last_transition_time, condition.last_heartbeat_time]
    for status in chain.from_iterable(pod.status.every_container for pod in snapshot.pods):
        texts += [end.finished_at for end in status.ends]
    return min(max(filter(None, map(parse_time, texts)), default=facts.now), facts.now)


def _stored_kills(
    facts: KillFacts, references: Sequence[resources.Reference], source: SourceOptions, seconds: int
) -> tuple[list[Kill], str]:
    """Return the deaths in the store, which nothing else may have any more, and a note on those left out."""
    from kubectl_qos.metrics.past import read_kills

    pods = {pod.name for pod in facts.snapshot.pods if references and is_referenced(pod, references)}
    names = pods | {reference.name for reference in references}
    end = facts.now.timestamp()
    stored = [
        kill
        for kill in read_kills(sources.open_store(source), end - seconds, end, facts.event_list.events)
        if facts.scope.namespace in {None, kill.namespace} and (not names or kill.pod in names)
    ]
    if not (facts.scope.selector_text or facts.scope.fields.text):
        return stored, ""
    # The pod may have died on another node than it is on now.
    scope = facts.scope._replace(node=None)
    matching = {pod.key for pod in facts.snapshot.pods if scope.matches(pod)}
    kills = [kill for kill in stored if (kill.namespace, kill.pod) in matching]
    deaths = count(len(stored) - len(kills), "older death")
    note = f"{deaths} not listed: the pods are gone, or the selector does not match them"
    return kills, note if len(kills) < len(stored) else ""


def read_logs(words: Sequence[str], source: SourceOptions, *, local: bool) -> list[KernelLog]:
    """Read the kernel logs of --kernel-log and --local. Raises QosError."""
    files = [_split(text) for text in words]
    if [path for _, path in files].count("-") + source.files.count("-") > 1:
        raise UsageError("standard input cannot be used for multiple arguments")
    if not files and not local:
        return []
    from kubectl_qos.host.kernel_log import read_file, read_kmsg

    logs = [read_file(path, node) for node, path in files]
    return [*logs, read_kmsg(node=source.node or "")] if local else logs


def _split(text: str) -> tuple[str, str]:
    """Split `NODE=FILE`; a file's name may have an equals sign."""
    node, equals, path = text.partition("=")
    if not equals or "/" in node or Path(text).exists():
        return "", text
    if not node or not path:
        raise UsageError(
            f"--kernel-log {text!r} names no file", hint="write FILE, NODE=FILE, or - for a pipe"
        )
    return node, path


def read_facts(
    source: SourceOptions, references: Sequence[resources.Reference], *, has_logs: bool
) -> KillFacts:
    """Read pods, nodes and events; without a cluster, kernel logs are enough. Raises QosError."""
    try:
        return facts_of(sources.resolve_source(source), references, has_logs=has_logs)
    except QosError as error:
        if isinstance(error, UsageError) or references or not (has_logs and source.is_cluster):
            raise
        from kubectl_qos.cluster.source import NoCluster
        from kubectl_qos.k8s.snapshot import Scope

        now = parse_time(source.at or "") or datetime.now(UTC)
        resolved = sources.ResolvedSource(NoCluster(error, now), Scope(node=source.node))
        return facts_of(resolved, (), has_logs=True)


def facts_of(
    resolved: sources.ResolvedSource, references: Sequence[resources.Reference], *, has_logs: bool
) -> KillFacts:
    """Read pods, nodes and events of a source. Raises QosError."""
    scope = resolved.scope_of(references)
    snapshot = resolved.source.snapshot(scope)
    if not references and not has_logs:
        resources.require_places(resolved, snapshot)
    return KillFacts(
        resolved,
        replace(snapshot, pods=(*snapshot.pods, *resolved.source.partial_pods())),
        resolved.source.event_list(resolved.scope.namespace),
        scope,
        resolved.source.now(),
        resolved.notes,
    )


def is_referenced(pod: Pod, references: Sequence[resources.Reference]) -> bool:
    """Return True if a pod or its workload is named, or if nothing is."""
    from kubectl_qos.k8s.kinds import belongs_to

    return not references or any(belongs_to(pod, reference.kind, reference.name) for reference in references)


def find_missing(
    references: Sequence[resources.Reference], facts: KillFacts, kills: Sequence[Kill]
) -> list[ApiError]:
    """Return an error for each name without pods and kills: an event may name a pod that is gone."""
    pods = [pod for pod in facts.snapshot.pods if facts.scope.matches(pod)]
    killed = {kill.pod for kill in kills}
    missing: list[ApiError] = []
    for reference in references:
        is_killed = reference.kind == "Pod" and reference.name in killed
        if is_killed or any(is_referenced(pod, [reference]) for pod in pods):
            continue
        if reference.kind == "Pod":
            missing += resources.not_found("pods", [reference.name], (), facts.snapshot.nodes)
        else:
            missing.append(ApiError(f"no pods of {reference} found", status=404, reason="NotFound"))
    return missing


def source_notes(facts: KillFacts, logs: Sequence[KernelLog]) -> Iterator[str]:
    """Yield what could not be read, what logs lack, and which are of no known node."""
    from kubectl_qos.k8s.snapshot import OTHER_PODS
    from kubectl_qos.present.list_notes import missing_sentence

    yield from facts.notes
    for missing in facts.snapshot.missing:
        if missing.what != OTHER_PODS:
            yield missing_sentence(missing)
    if facts.event_list.missing is not None:
        yield missing_sentence(facts.event_list.missing)
    nodes = {*facts.snapshot.nodes, *facts.snapshot.by_node()} - {""}
    for log in logs:
        if log.node and nodes and log.node not in nodes:
            here = first_few(sorted(nodes))
            yield f"{log.title}: there is no node {log.node} here, only {here}: its kills match no pod"
        if not log.reports:
            yield f"{log.title}: no OOM report in {count(log.lines, 'line')}"
        elif log.left_out:
            yield f"{log.title}: only the newest {len(log.reports)} OOM reports are read"
        for line in log.fragments[:_MOST_FRAGMENTS]:
            yield f"{log.title} line {line}: an OOM report is cut off before its cause and its victim"


def doubt_notes(kills: Sequence[Kill]) -> Iterator[str]:
    """Say whose pods are gone, and which kernel logs would settle uncertain deaths or identify pods."""
    from kubectl_qos.qos.kills.evidence import Need
    from kubectl_qos.qos.reason import Confidence

    gone = len({kill.pod_uid for kill in kills if kill.is_unlisted and kill.pod_uid})
    if gone:
        are = "is" if gone == 1 else "are"
        why = "deleted since, or of another cluster"
        yield f"{count(gone, 'pod')} of the kernel log {are} not in the list of pods: {why}"
    unproven = [kill for kill in kills if kill.diagnosis.needs is not None]
    nodes = {kill.node for kill in unproven if kill.diagnosis.needs is not Need.WALL_CLOCK} - {"", UNKNOWN}
    uncertain = sum(kill.diagnosis.confidence is not Confidence.CERTAIN for kill in unproven)
    if nodes:
        doubt = f"{uncertain} of {len(kills)} not certain" if uncertain else "not every victim's pod is known"
        yield f"{doubt}: add kernel logs of {first_few(sorted(nodes))} (--kernel-log)"


def _nothing(facts: KillFacts) -> str:
    from kubectl_qos.present.kills import nothing_sentence

    scope = facts.scope
    return nothing_sentence(scope.namespace, scope.names, of_part=bool(facts.resolved.unread))


def _print(kills: Sequence[Kill], facts: KillFacts, format_: TableFormat, *, in_detail: bool) -> None:
    from kubectl_qos.present.kill_columns import HIDDEN_FIRST, columns
    from kubectl_qos.present.kills import detail_lines, other_causes
    from kubectl_qos.present.output import fitted_table

    if not kills:
        output.note(_nothing(facts))
        output.notes(other_causes(facts.snapshot, facts.event_list.events, facts.last_before))
        return
    is_wide = format_.output == "wide"
    if format_.output is not None or not in_detail:
        width = output.terminal_width() if not is_wide else None
        shown = columns(kills, wide=is_wide)
        output.print_lines(fitted_table(kills, shown, width, (), HIDDEN_FIRST, headers=format_.headers))
    if in_detail:
        for number, kill in enumerate(kills):
            output.print_lines([""] if number or is_wide else [])
            output.print_prose(detail_lines(kill))

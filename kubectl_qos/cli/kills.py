"""`kubectl qos kills`: what was killed, by which mechanism, how sure that is, and why it was chosen."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from kubectl_qos.cli import streams
from kubectl_qos.cli.sources import resolve_source
from kubectl_qos.cli.targets import Target, node_name, parse_targets, top_kind
from kubectl_qos.errors import EXIT_ERROR, ApiError, QosError, UsageError
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.kinds import belongs_to
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import OTHER_PODS, Missing, Scope, Snapshot
from kubectl_qos.present.kills import columns, detail_lines, list_values, nothing_sentence
from kubectl_qos.present.output import table, to_json, to_yaml
from kubectl_qos.present.reasons import missing_sentence
from kubectl_qos.qos.kills.analyze import Kill, find_kills
from kubectl_qos.qos.kills.evidence import Need, parse_moment

if TYPE_CHECKING:
    from kubectl_qos.qos.kills.report import KernelLog


@dataclass(frozen=True, slots=True)
class _Known:
    """What deaths are judged by, and the moment that `--since` counts from."""

    snapshot: Snapshot
    event_list: EventList
    scope: Scope
    now: datetime
    notes: tuple[str, ...] = ()
    failed: bool = False


def run(options: argparse.Namespace) -> int:
    """Print the deaths; exit code 1 if a document or something named was wanting."""
    options.pods = targets = _targets(options)
    logs = _logs(options)
    known = _known(options, targets, has_logs=bool(logs))
    missing = _not_found(targets, known)
    found = find_kills(
        known.snapshot,
        known.event_list,
        logs,
        is_included=lambda pod: known.scope.matches(pod) and _is_target(pod, targets),
        outside_pods=not (known.scope.namespace or known.scope.selector_text or targets),
    )
    since = getattr(options, "since", None)
    kills = [kill for kill in found if _is_shown(kill, known, since)]
    notes = tuple(_notes(known, logs, kills, options))
    if kills or not missing:
        _print(kills, notes, known, options)
    if getattr(options, "output", None) not in {"json", "yaml"}:
        streams.notes(notes)
    for error in missing:
        streams.error(error)
    return EXIT_ERROR if known.failed or missing else 0


def _targets(options: argparse.Namespace) -> list[Target]:
    """Pods and workloads; a node becomes --node. Raises UsageError."""
    words = getattr(options, "target", [])
    if not words:
        return []
    node = node_name(words)
    if node is not None:
        options.node = node
        return []
    if any("/" in word for word in words) or len(words) > 1:
        try:
            return parse_targets(words)
        except UsageError:
            if any("/" in word for word in words):
                raise
    return [Target("Pod", name) for name in top_kind(words)[1]]


def _logs(options: argparse.Namespace) -> list[KernelLog]:
    """The kernel logs that are given. Raises UsageError or InputError."""
    given = [_split(text) for text in getattr(options, "kernel_logs", [])]
    from_stdin = [path for _, path in given if path == "-"]
    if len(from_stdin) + (getattr(options, "filename", None) or []).count("-") > 1:
        raise UsageError("standard input cannot be used for multiple arguments")
    local = getattr(options, "local", False)
    if not given and not local:
        return []
    from kubectl_qos.host.kernel_log import read_file, read_kmsg

    logs = [read_file(path, node) for node, path in given]
    return [*logs, read_kmsg(node=getattr(options, "node", None) or "")] if local else logs


def _split(text: str) -> tuple[str, str]:
    """`NODE=FILE`, or a file whose name may hold an equals sign."""
    node, equals, path = text.partition("=")
    if not equals or "/" in node or Path(text).exists():
        return "", text
    if not node or not path:
        raise UsageError(
            f"--kernel-log {text!r} names no file", hint="write FILE, NODE=FILE, or - for a pipe"
        )
    return node, path


def _known(options: argparse.Namespace, targets: Sequence[Target], *, has_logs: bool) -> _Known:
    """Pods, nodes and events. Without a cluster, kernel logs still say what was killed. Raises QosError."""
    options.usage = "none"
    names = {target.name for target in targets} if all(one.kind == "Pod" for one in targets) else set()
    try:
        wanted = resolve_source(options)
        scope = wanted.scope if not names else replace(wanted.scope, names=frozenset(names))
        snapshot = wanted.source.snapshot(scope)
    except QosError as error:
        is_live = not getattr(options, "filename", None) and not getattr(options, "demo", False)
        if isinstance(error, UsageError) or targets or not (has_logs and is_live):
            raise
        from datetime import UTC

        missing = missing_sentence(Missing("the list of pods", str(error), error.hint))
        return _Known(Snapshot(), EventList(of_nodes=False), Scope(), datetime.now(UTC), (missing,))
    return _Known(
        snapshot,
        wanted.source.event_list(wanted.scope.namespace),
        scope,
        wanted.source.now(),
        tuple(f"error: {problem}" for problem in wanted.problems),
        wanted.failed,
    )


def _is_target(pod: Pod, targets: Sequence[Target]) -> bool:
    return not targets or any(belongs_to(pod, one.kind, one.name) for one in targets)


def _not_found(targets: Sequence[Target], known: _Known) -> list[ApiError]:
    pods = [pod for pod in known.snapshot.pods if known.scope.matches(pod)]
    return [
        ApiError(
            f'Error from server (NotFound): {one.kind.lower()}s "{one.name}" not found',
            status=404,
            reason="NotFound",
        )
        if one.kind == "Pod"
        else ApiError(f"no pods of {one.kind.lower()}/{one.name} found", status=404, reason="NotFound")
        for one in targets
        if not any(_is_target(pod, [one]) for pod in pods)
    ]


def _is_shown(kill: Kill, known: _Known, since: int | None) -> bool:
    node = known.scope.node
    if node is not None and kill.node not in {node, ""}:
        return False
    when = parse_moment(kill.time)
    return since is None or when is None or when >= known.now - timedelta(seconds=since)


def _in_detail(options: argparse.Namespace) -> bool:
    """Whether the evidence of each death is printed: of pods and workloads, and in wide output."""
    output = getattr(options, "output", None)
    return output == "wide" or (output is None and bool(getattr(options, "pods", None)))


def _notes(
    known: _Known, logs: Sequence[KernelLog], kills: Sequence[Kill], options: argparse.Namespace
) -> Iterator[str]:
    """What could not be read, and what would make more certain."""
    yield from known.notes
    for missing in known.snapshot.missing:
        if missing.what != OTHER_PODS:
            yield missing_sentence(missing)
    if known.event_list.missing is not None:
        yield missing_sentence(known.event_list.missing)
    for log in logs:
        if not log.reports:
            yield f"{log.title}: no OOM report in {log.lines} {'line' if log.lines == 1 else 'lines'}"
        elif log.left_out:
            yield f"{log.title}: only the newest {len(log.reports)} OOM reports are looked at"
    if _in_detail(options):
        return
    doubtful = [kill for kill in kills if kill.diagnosis.needs is not None]
    nodes = sorted({kill.node for kill in doubtful if kill.diagnosis.needs is not Need.WALL_CLOCK} - {""})
    if nodes:
        named = ", ".join(nodes[:3]) + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else "")
        yield (
            f"{len(doubtful)} of {len(kills)} not certain: kernel logs of {named} would tell (--kernel-log)"
        )


def _print(
    kills: Sequence[Kill],
    notes: Sequence[str],
    known: _Known,
    options: argparse.Namespace,
) -> None:
    output = getattr(options, "output", None)
    if output in {"json", "yaml"}:
        values = list_values(kills, notes)
        streams.out_text(to_json(values) if output == "json" else to_yaml(values))
        return
    if not kills:
        streams.note(nothing_sentence(known.scope.namespace))
        return
    in_detail = _in_detail(options)
    if output is not None or not in_detail:
        headers = not getattr(options, "no_headers", False)
        shown = columns(wide=output == "wide")
        streams.out(table(kills, shown, known.now, headers=headers))
    if in_detail:
        for number, kill in enumerate(kills):
            streams.out([""] if number or output == "wide" else [])
            streams.out(detail_lines(kill))

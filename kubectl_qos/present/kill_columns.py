"""The columns of kills, for the command line and the UI."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import structs

from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.present.format import NONE, UNKNOWN, age, escape
from kubectl_qos.present.kills import by_text, is_outside_pods
from kubectl_qos.present.output import BYTES, NUMBER, Column, column, largest_first
from kubectl_qos.qos.kills.analyze import Kill
from kubectl_qos.qos.kills.choice import VictimChoice

HIDDEN_FIRST: Final = ("freed", "score", "sure", "container")


def columns(kills: Iterable[Kill], *, wide: bool) -> tuple[Column[Kill], ...]:
    """Return the columns of the table, `wide` has all. VICTIM is shown if a kill has a process but no pod."""
    needed = {"victim" for kill in kills if kill.pod in {"", UNKNOWN} and _victim_text(kill) != UNKNOWN}
    return tuple(column for column in _COLUMNS if wide or column.is_default or column.key in needed)


def aged_columns() -> tuple[Column[Kill], ...]:
    """Return the columns of a screen, with ages; the evidence has the times."""

    def ago(kill: Kill, now: datetime) -> str:
        return f"{'~' if kill.time_is_estimated else ''}{age(kill.time, now)}" if kill.time else UNKNOWN

    time, *others = _COLUMNS
    return (structs.replace(time, header="AGE", width=0, cell=ago), *others)


def _time_text(kill: Kill) -> str:
    return f"{'~' if kill.time_is_estimated else ''}{escape(kill.time)}" if kill.time else UNKNOWN


def _newest_first(kill: Kill) -> float:
    when = parse_time(kill.time)
    return largest_first(when.timestamp() if when is not None else None)


def _pod_text(kill: Kill) -> str:
    if kill.pod:
        return escape(kill.pod)
    if kill.pod_uid:
        return f"uid:{escape(kill.pod_uid[:8])}…"  # Enough to find it; the evidence has all of it.
    return NONE if is_outside_pods(kill) else UNKNOWN


def _container_text(kill: Kill) -> str:
    if kill.container:
        return escape(kill.container)
    if kill.container_id and kill.pod_uid and not kill.pod:
        return f"{escape(kill.container_id[:12])}…"
    is_whole_pod = kill.report is None or (kill.report.daemon is not None and bool(kill.pod_uid))
    return NONE if not kill.container_id and (is_whole_pod or is_outside_pods(kill)) else UNKNOWN


def _victim_text(kill: Kill) -> str:
    victim = kill.report.dead if kill.report is not None else None
    names = ", ".join(kill.report.names) if kill.report is not None else ""
    return escape(f"{victim.comm}/{victim.pid}" if victim is not None else names) or UNKNOWN


def _place_text(kill: Kill) -> str:
    choice = kill.choice
    if not isinstance(choice, VictimChoice):
        return UNKNOWN
    return f"{choice.chosen.place}{'=' if choice.tied else ''} of {len(choice.ranked)}"


_COLUMNS: Final[tuple[Column[Kill], ...]] = (
    column("time", lambda kill: kill.time or None, "when", width=20, cell=_time_text, sort_key=_newest_first),
    column("namespace", lambda kill: kill.namespace or None, "the pod's namespace", width=12),
    column("pod", lambda kill: kill.pod or None, "the pod", width=24, cell=_pod_text, sort_key=_pod_text),
    column(
        "container",
        lambda kill: kill.container or None,
        "the container",
        width=10,
        cell=_container_text,
        sort_key=_container_text,
    ),
    column("by", lambda kill: kill.diagnosis.mechanism.value, "the mechanism", width=18, cell=by_text),
    column("sure", lambda kill: kill.diagnosis.confidence.value, "certain, likely or possible", width=8),
    column("score", lambda kill: kill.score, "its oom_score then", NUMBER, header="OOM_SCORE"),
    column("freed", lambda kill: kill.freed_bytes, "memory of the killed processes", BYTES, width=6),
    column("node", lambda kill: kill.node or None, "the node", width=10, empty=UNKNOWN),
    column("exit", lambda kill: kill.exit_code, "the exit code", NUMBER, empty=NONE, wide=1),
    column("reason", lambda kill: kill.reason or None, "the status' reason", width=10, wide=1),
    column(
        "victim",
        lambda kill: kill.report.dead.pid if kill.report is not None and kill.report.dead else None,
        "the process that the kernel chose",
        width=14,
        cell=_victim_text,
        sort_key=_victim_text,
        wide=1,
    ),
    column(
        "place",
        lambda kill: kill.choice.chosen.place if isinstance(kill.choice, VictimChoice) else None,
        "its place by the kernel's points; = is shared",
        width=8,
        cell=_place_text,
        sort_key=_place_text,
        wide=1,
    ),
)

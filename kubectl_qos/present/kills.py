"""Kills in words: the table, the evidence of each one, why this process, and the same for programs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kubectl_qos.present.format import NONE, UNKNOWN, escape, mebibytes
from kubectl_qos.present.kill_reasons import (
    choice_lines,
    diagnosis_sentence,
    evidence_sentence,
    need_sentence,
    victim_sentence,
)
from kubectl_qos.present.pod_columns import Align, ColumnOf, largest_first
from kubectl_qos.qos.kills.analyze import Kill
from kubectl_qos.qos.kills.evidence import parse_moment
from kubectl_qos.qos.kills.report import OomReport, ScoredTask, Unranked, VictimChoice

KillColumn = ColumnOf[Kill]
"""A column of deaths."""

_WIDTH: Final = 110
_NARROWEST: Final = 20
LATER: Final = (
    "What is killed from now on shows here: containers that ended as OOMKilled or by SIGKILL, pods that were"
    " evicted or preempted. Kernel logs tell of processes too: kubectl qos kills --kernel-log NODE=FILE"
)
_L, _R = Align.LEFT, Align.RIGHT


def columns(*, wide: bool) -> tuple[KillColumn, ...]:
    """The columns of the table; `wide` are all of them."""
    return tuple(column for column in _COLUMNS if wide or column.key in _NARROW)


def nothing_sentence(namespace: str | None) -> str:
    """That there are none."""
    where = f" in {escape(namespace)} namespace." if namespace else ""
    return f"No deaths found that memory may explain{where}"


def detail_lines(kill: Kill, width: int = _WIDTH) -> Iterator[str]:
    """Everything about one kill: the verdict, what speaks for it, and why this process.

    Sentences are broken at `width`; its subject, the verdict and tables are not.
    """
    yield kill_subject(kill)
    yield ""
    yield f"{diagnosis_sentence(kill.diagnosis)}, {_when(kill)}"
    yield from _bullets((evidence_sentence(one) for one in kill.diagnosis.evidence), width)
    if kill.diagnosis.needs is not None:
        yield ""
        yield from _wrapped(f"to be certain: {need_sentence(kill.diagnosis.needs, kill.node)}", width)
    if kill.report is not None:
        yield ""
        yield "why this one"
        yield from _bullets(victim_sentence(kill), width)
        yield from choice_lines(kill)


def kill_subject(kill: Kill) -> str:
    """Who died."""
    node = f" on {escape(kill.node)}" if kill.node else ""
    if kill.pod:
        container = f", container {escape(kill.container)}" if kill.container else ""
        if not kill.container and kill.container_id:
            container = f", container {escape(kill.container_id[:12])}… of before"
        namespace = f"{escape(kill.namespace)}/" if kill.namespace else ""
        return f"pod {namespace}{escape(kill.pod)}{container}{node}"
    if kill.pod_uid:
        container = f", container {escape(kill.container_id[:12])}…" if kill.container_id else ""
        return f"a pod that is gone, uid {escape(kill.pod_uid)}{container}{node}"
    if not kill.cgroup:
        return f"a process of a cgroup that is not known{node}"
    return f"a process outside pods, in {escape(kill.cgroup)}{node}"


def kill_values(kill: Kill) -> dict[str, Any]:
    """One kill for JSON and YAML."""
    diagnosis = kill.diagnosis
    return {
        "time": kill.time or None,
        "timeIsEstimated": kill.time_is_estimated,
        "namespace": kill.namespace or None,
        "pod": kill.pod or None,
        "podUID": kill.pod_uid or None,
        "container": kill.container or None,
        "containerID": kill.container_id or None,
        "node": kill.node or None,
        "cgroup": kill.cgroup or None,
        "by": diagnosis.mechanism.value,
        "sure": diagnosis.confidence.value,
        "exitCode": kill.exit_code,
        "reason": kill.reason or None,
        "score": kill.score,
        "freedBytes": kill.freed_bytes,
        "evidence": [
            {
                "fact": one.fact.name.lower(),
                "time": one.time or None,
                **dict(one.details),
                "text": evidence_sentence(one),
            }
            for one in diagnosis.evidence
        ],
        "toBeCertain": need_sentence(diagnosis.needs, kill.node) if diagnosis.needs is not None else None,
        "kernel": _report_values(kill.report) if kill.report is not None else None,
        "choice": _choice_values(kill.choice),
    }


def list_values(kills: Sequence[Kill], notes: Sequence[str]) -> dict[str, Any]:
    """All of them for JSON and YAML."""
    return {"kind": "KillList", "items": [kill_values(kill) for kill in kills], "notes": list(notes)}


def _report_values(report: OomReport) -> dict[str, Any]:
    return {
        "time": report.time or None,
        "uptimeSeconds": report.uptime,
        "release": report.kernel or None,
        "constraint": report.constraint.value if report.constraint is not None else None,
        "oomMemcg": report.oom_memcg or None,
        "taskMemcg": report.task_memcg or None,
        "invoker": report.invoker.comm if report.invoker is not None else None,
        "usageKiB": report.memory.usage_kb,
        "limitKiB": report.memory.limit_kb,
        "groupKill": report.group_kill or None,
        "killed": [
            {
                "pid": one.pid,
                "comm": one.comm,
                "rssKiB": one.rss_kb,
                "oomScoreAdj": one.adj,
                "reaped": one.pid in report.reaped,
            }
            for one in report.processes
        ],
        "incomplete": report.incomplete,
    }


def _choice_values(choice: VictimChoice | Unranked | None) -> dict[str, Any] | None:
    if choice is None:
        return None
    if isinstance(choice, Unranked):
        return {"notRanked": choice.value}
    return {
        "totalPages": choice.total_pages,
        "place": choice.chosen.place,
        "of": len(choice.ranked),
        "immune": choice.immune,
        "ties": len(choice.tied),
        "ranked": [_scored_values(one) for one in choice.ranked],
    }


def _scored_values(one: ScoredTask) -> dict[str, Any]:
    return {
        "place": one.place,
        "pid": one.task.pid,
        "comm": one.task.name,
        "oomScoreAdj": one.task.adj,
        "pages": one.used_pages,
        "points": one.points,
        "score": one.score,
    }


def _bullets(sentences: Iterator[str], width: int) -> Iterator[str]:
    for text in sentences:
        yield from _wrapped(text, width)


def _wrapped(text: str, width: int) -> Iterator[str]:
    yield from textwrap.wrap(
        text,
        max(width, _NARROWEST),
        initial_indent="  ",
        subsequent_indent="    ",
        break_on_hyphens=False,
        break_long_words=False,
    )


def _when(kill: Kill) -> str:
    if not kill.time:
        return "at a time that is not known"
    return f"{'about ' if kill.time_is_estimated else ''}{escape(kill.time)}"


def _time(kill: Kill) -> str:
    return f"{'~' if kill.time_is_estimated else ''}{escape(kill.time)}" if kill.time else UNKNOWN


def _pod(kill: Kill) -> str:
    if kill.pod:
        return escape(kill.pod)
    if kill.pod_uid:
        return f"uid:{escape(kill.pod_uid)}"
    return NONE if kill.cgroup else UNKNOWN


def _container(kill: Kill) -> str:
    if kill.container:
        return escape(kill.container)
    is_whole_pod = kill.report is None
    return UNKNOWN if kill.container_id or not (kill.cgroup or is_whole_pod) else NONE


def _victim(kill: Kill) -> str:
    victim = kill.report.victim if kill.report is not None else None
    return escape(f"{victim.comm}/{victim.pid}") if victim is not None else UNKNOWN


def _place(kill: Kill) -> str:
    choice = kill.choice
    if not isinstance(choice, VictimChoice):
        return UNKNOWN
    return f"{choice.chosen.place}{'=' if choice.tied else ''} of {len(choice.ranked)}"


def _newest(kill: Kill) -> float:
    when = parse_moment(kill.time)
    return largest_first(when.timestamp() if when is not None else None)


def _amount(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)


_COLUMNS: Final[tuple[KillColumn, ...]] = (
    ColumnOf(
        "time", "TIME", _L, 20, lambda kill, _: _time(kill), lambda kill: kill.time or None, _newest, "when"
    ),
    ColumnOf(
        "namespace",
        "NAMESPACE",
        _L,
        12,
        lambda kill, _: escape(kill.namespace) or NONE,
        lambda kill: kill.namespace or None,
        lambda kill: kill.namespace,
        "of the pod",
    ),
    ColumnOf(
        "pod", "POD", _L, 24, lambda kill, _: _pod(kill), lambda kill: kill.pod or None, _pod, "the pod"
    ),
    ColumnOf(
        "container",
        "CONTAINER",
        _L,
        10,
        lambda kill, _: _container(kill),
        lambda kill: kill.container or None,
        _container,
        "the container",
    ),
    ColumnOf(
        "by",
        "BY",
        _L,
        18,
        lambda kill, _: kill.diagnosis.mechanism.value,
        lambda kill: kill.diagnosis.mechanism.value,
        lambda kill: kill.diagnosis.mechanism.value,
        "the mechanism",
    ),
    ColumnOf(
        "sure",
        "SURE",
        _L,
        8,
        lambda kill, _: kill.diagnosis.confidence.value,
        lambda kill: kill.diagnosis.confidence.value,
        lambda kill: kill.diagnosis.confidence.value,
        "certain, likely or possible",
    ),
    ColumnOf(
        "score",
        "SCORE",
        _R,
        5,
        lambda kill, _: _amount(kill.score),
        lambda kill: kill.score,
        lambda kill: largest_first(kill.score),
        "its oom_score then",
    ),
    ColumnOf(
        "freed",
        "FREED",
        _R,
        6,
        lambda kill, _: UNKNOWN if kill.freed_bytes is None else mebibytes(kill.freed_bytes),
        lambda kill: kill.freed_bytes,
        lambda kill: largest_first(kill.freed_bytes),
        "what the killed processes held in memory",
    ),
    ColumnOf(
        "node",
        "NODE",
        _L,
        10,
        lambda kill, _: escape(kill.node) or UNKNOWN,
        lambda kill: kill.node or None,
        lambda kill: kill.node,
        "the node",
    ),
    ColumnOf(
        "exit",
        "EXIT",
        _R,
        4,
        lambda kill, _: NONE if kill.exit_code is None else str(kill.exit_code),
        lambda kill: kill.exit_code,
        lambda kill: largest_first(kill.exit_code),
        "the exit code",
    ),
    ColumnOf(
        "reason",
        "REASON",
        _L,
        10,
        lambda kill, _: escape(kill.reason) or NONE,
        lambda kill: kill.reason or None,
        lambda kill: kill.reason,
        "as the status says it",
    ),
    ColumnOf(
        "victim",
        "VICTIM",
        _L,
        14,
        lambda kill, _: _victim(kill),
        lambda kill: kill.report.victim.pid if kill.report is not None and kill.report.victim else None,
        _victim,
        "the process that the kernel chose",
    ),
    ColumnOf(
        "place",
        "PLACE",
        _L,
        8,
        lambda kill, _: _place(kill),
        lambda kill: kill.choice.chosen.place if isinstance(kill.choice, VictimChoice) else None,
        _place,
        "its place by the kernel's points; = is shared",
    ),
)
_NARROW: Final = frozenset({"time", "namespace", "pod", "container", "by", "sure", "score", "freed", "node"})

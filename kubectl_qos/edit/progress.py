"""How far a write has come, judged from the object as it is now. Pure; asked for by cluster/write.py.

Pods are judged in edit/resizing.py, workloads in edit/rollout.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Stage(StrEnum):
    """Where a change stands."""

    WAITING = "waiting for the kubelet"
    DEFERRED = "deferred"
    INFEASIBLE = "infeasible"
    IN_PROGRESS = "in progress"
    ERROR = "error"
    ROLLING = "rolling out"
    STUCK = "not progressing"
    OVERTAKEN = "changed again by someone else"
    GONE = "gone"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Progress:
    """One look at it.

    Attributes:
        stage: where it stands.
        settled: nothing more will happen by itself; deferred and error are not settled, both are tried again.
        message: the server's or the kubelet's sentence, or what there is to know besides; may be empty.
        done: pods that have the change, None where that is not counted.
        total: pods that shall have it.
    """

    stage: Stage
    settled: bool
    message: str = ""
    done: int | None = None
    total: int | None = None


def number(raw: Any, *path: str) -> int | None:
    """The whole number at a path of plain JSON, None where there is none."""
    found = raw
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if type(found) is int else None


def text(raw: Any, *path: str) -> str:
    """The text at a path of plain JSON, empty where there is none."""
    found = raw
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) else ""


def conditions(raw: Any) -> dict[str, Mapping[str, Any]]:
    """The conditions of an object's status that are true or say why not, by their type."""
    status = raw.get("status") if isinstance(raw, Mapping) else None
    found = status.get("conditions") if isinstance(status, Mapping) else None
    if not isinstance(found, list):
        return {}
    return {text(one, "type"): one for one in found if isinstance(one, Mapping)}

"""What `check` looks for: the rules by their ids, their parameters, exceptions and waivers.

config/check_settings.py reads a file of them. Not here: what the rules do (rules.py) and say (present/).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final, Self

from kubectl_qos.k8s.objects import CPU, MEMORY
from kubectl_qos.k8s.quantity import Quantity

FILE_NAME: Final = ".kubectl-qos.yaml"
"""What a file of settings is called; it stands among manifests and is none."""


class Level(StrEnum):
    """How serious a finding is, by SARIF's names, the most serious first."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class RuleId(StrEnum):
    """A rule with its stable id, and the level of its findings where no setting has another one."""

    level: Level

    def __new__(cls, text: str, level: Level) -> Self:
        """A rule with its id as value."""
        rule = str.__new__(cls, text)
        rule._value_ = text
        rule.level = level
        return rule

    REFUSED = "QOS001", Level.ERROR
    REQUEST_ABOVE_LIMIT = "QOS002", Level.ERROR
    UNKNOWN_FIELD = "QOS003", Level.ERROR
    DUPLICATE_FIELD = "QOS004", Level.WARNING
    ODD_SIZE = "QOS005", Level.ERROR
    REQUEST_MISSING = "QOS006", Level.NOTE
    LIMIT_WITHOUT_REQUEST = "QOS007", Level.NOTE
    LIMIT_FAR_ABOVE_REQUEST = "QOS008", Level.NOTE
    LIMIT_TOO_SMALL = "QOS009", Level.ERROR
    OTHER_CLASS = "QOS010", Level.ERROR
    BEST_EFFORT_WITH_PRIORITY = "QOS011", Level.ERROR
    INIT_COSTS_CLASS = "QOS012", Level.WARNING
    INJECTED = "QOS013", Level.WARNING
    PRIORITY_INVERSION = "QOS014", Level.WARNING
    FITS_NO_NODE = "QOS015", Level.ERROR
    LIMIT_RANGE_REFUSES = "QOS016", Level.ERROR
    LIMIT_RANGE_CHANGES_CLASS = "QOS017", Level.WARNING
    QUOTA_REFUSES = "QOS018", Level.ERROR
    RELEASE_CHANGES = "QOS019", Level.WARNING
    RUNTIME_MEMORY = "QOS020", Level.WARNING
    MEMORY_VOLUME = "QOS021", Level.WARNING


PARAMETERS: Final[Mapping[RuleId, str]] = {
    RuleId.REQUEST_MISSING: "resources",
    RuleId.LIMIT_FAR_ABOVE_REQUEST: "ratio",
    RuleId.LIMIT_TOO_SMALL: "minimum",
    RuleId.OTHER_CLASS: "classes",
    RuleId.BEST_EFFORT_WITH_PRIORITY: "priority",
}
"""The rules with a parameter: its name in a file of settings, and in `Settings`."""


LEAST_TO_START: Final = Quantity.parse("6Mi")
"""Docker's least (moby, daemon/daemon_unix.go, linuxMinMemory): runc takes it before a process starts."""
CRIO_LEAST: Final = Quantity.parse("12Mi")
RUNC_MOST: Final = Quantity.parse("22Mi")
"""CRI-O refuses less (server/container_create_linux.go), but for crun from 1.30 on. Runc of early 2019 and
1.1.15 copies itself into the cgroup (opencontainers/runc 1980, 4427), and CRI-O runs it in that of the pod
(kubernetes/kubernetes 135680)."""


@dataclass(frozen=True, slots=True)
class Exemption:
    """Findings that are accepted, by patterns with `*`; after the day `until` they count again.

    `place` is its file and line, for what is said of it.
    """

    rules: tuple[str, ...]
    object: str
    namespace: str
    container: str
    reason: str
    until: date | None = None
    place: str = ""

    def has_expired(self, today: date) -> bool:
        """Whether the day is over until which it counts."""
        return self.until is not None and today > self.until


@dataclass(frozen=True, slots=True)
class Settings:
    """Levels that differ from the rules' own (None is off), parameters, and what is left out.

    `classes` are required classes by a pattern of namespaces, `namespaces` the patterns of those that are
    checked, all without any, and `place` is the file and line of it. `node_memory_bytes` is that of nodes on
    which pods are compared.
    """

    levels: Mapping[RuleId, Level | None] = field(default_factory=dict)
    resources: tuple[str, ...] = (CPU, MEMORY)
    ratio: int = 4
    minimum: Quantity = LEAST_TO_START
    classes: Mapping[str, str] = field(default_factory=dict)
    priority: int = 1
    namespaces: tuple[str, ...] = ()
    place: str = ""
    node_memory_bytes: int | None = None
    exceptions: tuple[Exemption, ...] = ()

    def level(self, rule: RuleId) -> Level | None:
        """The level of a rule's findings, None where it is off."""
        return self.levels.get(rule, rule.level)

    def required_class(self, namespace: str) -> str:
        """The class that pods of a namespace must have, of the first pattern that matches; empty for any."""
        matching = (qos for pattern, qos in self.classes.items() if fnmatchcase(namespace, pattern))
        return next(matching, "")


def matches(patterns: Iterable[str], text: str) -> bool:
    """Whether a text is as one of the patterns says."""
    return any(fnmatchcase(text, pattern) for pattern in patterns)


def waiver_form(rule: RuleId) -> str:
    """The form (RE2) of an annotation that waives a rule, with the reason as its group.

    Waivers are separated by `;`, and each is ids, a colon and a reason: `QOS006, QOS008: batch job`.
    """
    return rf"(?:^|[;\n])[^:;\n]*\b{rule}\b[^:;\n]*:[ \t]*([^;\n]*[^;\s])"


def waiver(text: str | None, rule: RuleId) -> str:
    """The reason for which an annotation waives a rule; empty where it does not, or has no reason."""
    match = re.search(waiver_form(rule), text) if text else None
    return match[1] if match is not None else ""


def waiver_mistakes(text: str | None) -> Iterator[str]:
    """What of an annotation waives nothing: what has no reason, and ids that no rule has."""
    parts = [*filter(str.strip, re.split(r"[;\n]", text))] if text else []
    for part in parts if parts or text is None else [""]:
        ids, _, reason = part.partition(":")
        if not reason.strip():
            yield f"{part.strip()!r} waives nothing without a reason, as in 'QOS006: a batch job'"
        for name in re.split(r"[,\s]+", ids.strip()) if reason.strip() else ():
            if name not in list(RuleId):
                yield f"there is no rule {name!r} to waive: {', '.join(RuleId)}"

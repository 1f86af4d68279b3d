"""Settings of `check`: rule ids and levels, parameters, exceptions and waivers.

config/check_settings.py reads them from a file. Not here: the rules (rules.py) and their words (present/).
"""

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
"""Name of the settings file."""


class Level(StrEnum):
    """How serious a finding is, by SARIF's names, most serious first."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class RuleId(StrEnum):
    """A rule by its stable id, with the default level of its findings."""

    level: Level

    def __new__(cls, text: str, level: Level) -> Self:
        """Create a member whose value is its id."""
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
    RuleId.LIMIT_WITHOUT_REQUEST: "resources",
    RuleId.LIMIT_FAR_ABOVE_REQUEST: "ratio",
    RuleId.LIMIT_TOO_SMALL: "minimum",
    RuleId.OTHER_CLASS: "classes",
    RuleId.BEST_EFFORT_WITH_PRIORITY: "priority",
}
"""Parameters of rules, by their name in the settings file and in `Settings`."""


LEAST_TO_START: Final = Quantity.parse("6Mi")
"""Docker's minimum (moby, daemon/daemon_unix.go, linuxMinMemory); runc needs it to start a process."""
CRIO_LEAST: Final = Quantity.parse("12Mi")
RUNC_MOST: Final = Quantity.parse("22Mi")
"""CRI-O refuses less (server/container_create_linux.go), but not for crun from 1.30 on. Runc of early 2019
and 1.1.15 copies itself into the cgroup (opencontainers/runc 1980, 4427), and CRI-O runs it in the cgroup of
the pod (kubernetes/kubernetes 135680)."""


@dataclass(frozen=True, slots=True)
class Exemption:
    """Accepted findings, by patterns with `*`."""

    rules: tuple[str, ...]
    object: str
    namespace: str
    container: str
    reason: str
    until: date | None = None
    """Last day of the exemption."""
    place: str = ""
    """File and line, for messages."""

    def has_expired(self, today: date) -> bool:
        """Return whether the last day has passed."""
        return self.until is not None and today > self.until


@dataclass(frozen=True, slots=True)
class Settings:
    """Levels, parameters and exceptions of the rules."""

    levels: Mapping[RuleId, Level | None] = field(default_factory=dict)
    """Levels that differ from the rules' defaults; None disables a rule."""
    resources: Mapping[RuleId, tuple[str, ...]] = field(
        default_factory=lambda: {
            name: (CPU, MEMORY) for name in PARAMETERS if PARAMETERS[name] == "resources"
        }
    )
    """Resources that a rule looks at."""
    ratio: int = 4
    minimum: Quantity = LEAST_TO_START
    classes: Mapping[str, str] = field(default_factory=dict)
    """Required class by namespace pattern."""
    priority: int = 1
    namespaces: tuple[str, ...] = ()
    """Patterns of namespaces to check; empty for all."""
    place: str = ""
    """File and line of `namespaces`, for messages."""
    node_memory_bytes: int | None = None
    """Memory of the node on which unscheduled pods are compared."""
    exceptions: tuple[Exemption, ...] = ()

    def level(self, rule: RuleId) -> Level | None:
        """Return the level of a rule's findings, None if the rule is off."""
        return self.levels.get(rule, rule.level)

    def required_class(self, namespace: str) -> str:
        """Return the class required by the first pattern that matches, "" for any class."""
        matching = (qos for pattern, qos in self.classes.items() if fnmatchcase(namespace, pattern))
        return next(matching, "")


def matches(patterns: Iterable[str], text: str) -> bool:
    """Return whether a text matches one of the patterns."""
    return any(fnmatchcase(text, pattern) for pattern in patterns)


def waiver_form(rule: RuleId) -> str:
    """Return a regular expression (RE2) for an annotation that waives a rule; its group is the reason.

    `;` separates waivers, and each consists of ids, a colon and a reason: `QOS006, QOS008: batch job`.
    """
    return rf"(?:^|[;\n])[^:;\n]*\b{rule}\b[^:;\n]*:[ \t]*([^;\n]*[^;\s])"


def waiver(text: str | None, rule: RuleId) -> str:
    """Return the reason for which an annotation waives a rule, or ""."""
    match = re.search(waiver_form(rule), text) if text else None
    return match[1] if match is not None else ""


def waiver_mistakes(text: str | None) -> Iterator[str]:
    """Yield mistakes in a waiver annotation: missing reasons and unknown rules."""
    parts = [*filter(str.strip, re.split(r"[;\n]", text))] if text else []
    for part in parts if parts or text is None else [""]:
        ids, _, reason = part.partition(":")
        if not reason.strip():
            yield f"{part.strip()!r} has no reason: write one, as in 'QOS006: a batch job'"
        for name in re.split(r"[,\s]+", ids.strip()) if reason.strip() else ():
            if name not in list(RuleId):
                yield f"unknown rule {name!r}: use {', '.join(RuleId)}"

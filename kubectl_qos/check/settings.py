"""Settings of `check`: levels and parameters of the rules, exceptions and waivers.

config/check_settings.py reads them from a file. Not here: the rules (rules/), with their defaults.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

FILE_NAME: Final = ".kubectl-qos.yaml"
_Text = Annotated[str, Meta(min_length=1)]
_Pattern = Annotated[str, Meta(description="a name or a pattern")]


class Level(StrEnum):
    """How serious a finding is, by SARIF's names, most serious first."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Exemption(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An exception: findings that are accepted, by patterns with `*`, up to a last day."""

    rules: Annotated[tuple[_Text, ...], Meta(description="a list of ids or patterns, such as [QOS006]")]
    reason: Annotated[_Text, Meta(description="a text")]
    object: _Pattern = "*"
    namespace: _Pattern = "*"
    container: _Pattern = "*"
    until: Annotated[date | None, Meta(description="a day such as 2027-03-31")] = None

    def has_expired(self, today: date) -> bool:
        """Return whether the last day has passed."""
        return self.until is not None and today > self.until


class CheckSettings(NamedTuple):
    """Levels and parameters of the rules, by their ids, and exceptions."""

    levels: Mapping[str, Level | None] = {}
    """Levels that differ from the rules' defaults; None disables a rule."""
    parameters: Mapping[str, Any] = {}
    """Parameters that differ from the rules' defaults."""
    namespaces: tuple[str, ...] = ()
    """Patterns of namespaces to check; empty for all."""
    place: str = ""
    """File and line of `namespaces`, for messages."""
    node_memory_bytes: int | None = None
    """Memory of the node on which unscheduled pods are compared."""
    exceptions: tuple[tuple[str, Exemption], ...] = ()
    """Each exception after its file and line, for messages."""


def matches(patterns: Iterable[str], text: str) -> bool:
    """Return whether a text matches one of the patterns."""
    return any(fnmatchcase(text, pattern) for pattern in patterns)


def waiver_form(rule: str) -> str:
    """Return a regular expression (RE2) for an annotation that waives a rule; its group is the reason.

    `;` separates waivers, and each consists of ids, a colon and a reason: `QOS006, QOS008: batch job`.
    """
    return rf"(?:^|[;\n])[^:;\n]*\b{rule}\b[^:;\n]*:[ \t]*([^;\n]*[^;\s])"


def waiver(text: str | None, rule: str) -> str:
    """Return the reason for which an annotation waives a rule, or ""."""
    match = re.search(waiver_form(rule), text) if text else None
    return match[1] if match is not None else ""


def waiver_mistakes(text: str | None, rules: Collection[str]) -> Iterator[str]:
    """Yield mistakes in a waiver annotation: missing reasons, and names that are not among `rules`."""
    parts = [*filter(str.strip, re.split(r"[;\n]", text))] if text else []
    for part in parts if parts or text is None else [""]:
        ids, _, reason = part.partition(":")
        if not reason.strip():
            yield f"{part.strip()!r} has no reason: write one, as in 'QOS006: a batch job'"
        for name in re.split(r"[,\s]+", ids.strip()) if reason.strip() else ():
            if name not in rules:
                yield f"unknown rule {name!r}: use {', '.join(rules)}"

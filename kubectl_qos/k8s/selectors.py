"""Label selectors as kubectl's `-l` takes them: `app=web,tier in (a,b),!canary`.

Source: k8s.io/apimachinery/pkg/labels/selector.go. Values are text; `gt` and `lt` compare whole numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kubectl_qos.errors import InputError

_TERM = re.compile(
    r"""\s*(?:
        (?P<absent>!)\s*(?P<absent_key>[^\s,=!<>()]+)
      | (?P<set_key>[^\s,=!<>()]+)\s+(?P<set_operator>in|notin)\s*\((?P<values>[^)]*)\)
      | (?P<key>[^\s,=!<>()]+)\s*(?:(?P<operator>==|=|!=|<|>)\s*(?P<value>[^\s,=!<>()]*))?
    )\s*(?:,|$)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term: a key, how it is compared, and with what."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet the term."""
        value = labels.get(self.key)
        if self.operator == "exists":
            return value is not None
        if self.operator == "absent":
            return value is None
        if self.operator in {"in", "="}:
            return value in self.values
        if self.operator in {"notin", "!="}:
            return value not in self.values
        if value is None or not value.lstrip("-").isdigit():
            return False
        bound = int(self.values[0])
        return int(value) > bound if self.operator == ">" else int(value) < bound


@dataclass(frozen=True, slots=True)
class Selector:
    """All terms must hold; no terms select everything."""

    requirements: tuple[Requirement, ...] = ()

    @staticmethod
    def parse(text: str) -> Selector:
        """The selector that `text` spells. Raises InputError where a server would answer 400."""
        found = []
        position = 0
        while position < len(text.rstrip()):
            match = _TERM.match(text, position)
            if match is None or match.end() == position:
                raise InputError(
                    f"unable to parse label selector {text!r} at {text[position:]!r}",
                    hint="write app=web, tier!=db, env in (a,b), canary or !canary, joined by commas",
                )
            found.append(_requirement(match, text))
            position = match.end()
        return Selector(tuple(found))

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Whether an object with these labels is selected."""
        return all(one.matches(labels or {}) for one in self.requirements)


def _requirement(match: re.Match[str], text: str) -> Requirement:
    if match["absent"]:
        return Requirement(match["absent_key"], "absent")
    if match["set_key"]:
        values = tuple(value.strip() for value in match["values"].split(","))
        return Requirement(match["set_key"], match["set_operator"], values)
    operator = match["operator"]
    if operator is None:
        return Requirement(match["key"], "exists")
    value = match["value"]
    if operator in {"<", ">"} and not value.lstrip("-").isdigit():
        raise InputError(f"unable to parse label selector {text!r}: {value!r} is not a whole number")
    return Requirement(match["key"], "=" if operator == "==" else operator, (value,))

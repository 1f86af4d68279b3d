"""Label selectors, in the syntax of `-l` and in objects; PodDisruptionBudgets, which select pods.

Sources: k8s.io/apimachinery/pkg/labels/selector.go, pkg/apis/policy/types.go,
k8s.io/apimachinery/pkg/apis/meta/v1/types.go (LabelSelector).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.objects import ApiStruct, Labels, ObjectMeta, Pod

_TERM: Final = re.compile(
    r"""\s*(?:
        (?P<absent>!)\s*(?P<absent_key>[^\s,=!<>()]+)
      | (?P<set_key>[^\s,=!<>()]+)\s+(?P<set_operator>in|notin)\s*\((?P<values>[^)]*)\)
      | (?P<key>[^\s,=!<>()]+)\s*(?:(?P<operator>==|=|!=|<|>)\s*(?P<value>[^\s,=!<>()]*))?
    )\s*(?:,|$)""",
    re.VERBOSE,
)
_INTEGER: Final = re.compile("-?[0-9]+")


class Requirement(msgspec.Struct, frozen=True):
    """A term of a selector; the operator is `exists`, `absent`, `in`, `notin`, `=`, `!=`, `<` or `>`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels fulfil the term."""
        value = labels.get(self.key)
        if self.operator == "exists":
            return value is not None
        if self.operator == "absent":
            return value is None
        if self.operator in {"in", "="}:
            return value in self.values
        if self.operator in {"notin", "!="}:
            return value not in self.values
        if value is None or not _INTEGER.fullmatch(value):
            return False
        bound = int(self.values[0])
        return int(value) > bound if self.operator == ">" else int(value) < bound


class Selector(msgspec.Struct, frozen=True):
    """All terms must hold; no terms select everything."""

    requirements: tuple[Requirement, ...] = ()

    @staticmethod
    def parse(text: str) -> Selector:
        """Parse `app=web,tier in (a,b),!canary`. Raises InputError if a server would answer 400."""
        requirements = []
        position = 0
        while position < len(text.rstrip()):
            match = _TERM.match(text, position)
            if match is None or match.end() == position:
                raise InputError(
                    f"unable to parse label selector {text!r} at {text[position:]!r}",
                    hint="write app=web, tier!=db, env in (a,b), canary or !canary, joined by commas",
                )
            requirements.append(_requirement(match, text))
            position = match.end()
        return Selector(tuple(requirements))

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Return whether an object with these labels is selected."""
        return all(requirement.matches(labels or {}) for requirement in self.requirements)


def field_term(field: str, value: str) -> str:
    """Return a term of a field selector, with the value escaped as by apimachinery's fields.EscapeValue."""
    escaped = re.sub(r"[\\,=]", r"\\\g<0>", value)
    return f"{field}={escaped}"


POD_FIELDS: Final[Mapping[str, Callable[[Pod], str]]] = {
    "metadata.name": lambda pod: pod.name,
    "metadata.namespace": lambda pod: pod.namespace,
    "spec.nodeName": lambda pod: pod.node_name,
    "spec.restartPolicy": lambda pod: pod.spec.restart_policy or "Always",
    "status.phase": lambda pod: pod.status.phase,
}
"""The pod fields in field selectors, of those that are decoded.

Source: pkg/apis/core/v1/conversion.go (AddFieldLabelConversionsForPod).
"""


class FieldSelector(msgspec.Struct, frozen=True):
    """All terms must hold; `text` is the form for servers."""

    selector: Selector = msgspec.field(default_factory=Selector)
    text: str = ""

    @staticmethod
    def parse(text: str) -> FieldSelector:
        """Parse `status.phase=Running,metadata.name!=web-0`. Raises InputError."""
        selector = Selector.parse(text)
        for term in selector.requirements:
            if term.operator not in {"=", "!="}:
                raise InputError(
                    f"invalid field selector: {text!r}; can't understand {term.key!r}",
                    hint="write status.phase=Running or metadata.name!=web-0, joined by commas",
                )
            if term.key not in POD_FIELDS:
                raise InputError(
                    f"field label not supported: {term.key}", hint=f"pods have {', '.join(POD_FIELDS)}"
                )
        return FieldSelector(selector, text)

    def matches(self, pod: Pod) -> bool:
        """Return whether a pod is selected."""
        terms = self.selector.requirements
        return all(term.matches({term.key: POD_FIELDS[term.key](pod)}) for term in terms)


def _requirement(match: re.Match[str], text: str) -> Requirement:
    if match["absent"]:
        return Requirement(match["absent_key"], "absent")
    if match["set_key"]:
        values = tuple(value.strip() for value in match["values"].split(","))
        return Requirement(match["set_key"], match["set_operator"], values)
    operator, value = match["operator"], match["value"]
    if operator is None:
        return Requirement(match["key"], "exists")
    if operator in {"<", ">"} and not _INTEGER.fullmatch(value):
        raise InputError(f"unable to parse label selector {text!r}: {value!r} is not a whole number")
    return Requirement(match["key"], "=" if operator == "==" else operator, (value,))


_OPERATORS: Final = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "absent"}


class _Expression(ApiStruct, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class LabelSelector(ApiStruct, frozen=True):
    """All terms must hold; an empty selector selects everything."""

    match_labels: Labels | None = None
    match_expressions: tuple[_Expression, ...] | None = None

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Return whether an object with these labels is selected; never with an unknown operator."""
        terms = [Requirement(key, "=", (value,)) for key, value in (self.match_labels or {}).items()]
        for term in self.match_expressions or ():
            if term.operator not in _OPERATORS:
                return False
            terms.append(Requirement(term.key, _OPERATORS[term.operator], term.values or ()))
        return Selector(tuple(terms)).matches(labels)


class _BudgetSpec(ApiStruct, frozen=True):
    selector: LabelSelector | None = None


class _BudgetStatus(ApiStruct, frozen=True):
    disruptions_allowed: int | None = None


class DisruptionBudget(ApiStruct, frozen=True):
    """A PodDisruptionBudget; its status says how many pods may be disrupted now, manifests have none.

    Without a selector it covers no pods.
    """

    metadata: ObjectMeta = ObjectMeta()
    spec: _BudgetSpec = _BudgetSpec()
    status: _BudgetStatus = _BudgetStatus()

    def covers(self, pod: Pod) -> bool:
        """Return whether a pod counts."""
        selector = self.spec.selector
        if selector is None or pod.namespace != self.metadata.namespace:
            return False
        return selector.matches(pod.metadata.labels)

"""PodDisruptionBudgets, as far as a simulation counts them.

Source: pkg/apis/policy/types.go, k8s.io/apimachinery/pkg/apis/meta/v1/types.go (LabelSelector).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from kubectl_qos.k8s.objects import Labels, ObjectMeta, Pod, convert
from kubectl_qos.k8s.selectors import Requirement, Selector

KIND: Final = "PodDisruptionBudget"
_OPERATORS: Final = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "absent"}


class _PdbObject(msgspec.Struct, frozen=True, rename="camel", gc=False, kw_only=True):
    """Frozen, unknown fields skipped."""


class Expression(_PdbObject, frozen=True):
    """One term of a selector."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class LabelSelector(_PdbObject, frozen=True):
    """All terms must hold; an empty one selects everything, an absent one nothing."""

    match_labels: Labels | None = None
    match_expressions: tuple[Expression, ...] | None = None


class BudgetSpec(_PdbObject, frozen=True):
    """Whose disruptions are counted."""

    selector: LabelSelector | None = None


class BudgetStatus(_PdbObject, frozen=True):
    """What its controller last worked out; nothing in a manifest."""

    disruptions_allowed: int | None = None


class DisruptionBudget(_PdbObject, frozen=True):
    """How many pods of a kind may be away at once, by the controller's last count."""

    metadata: ObjectMeta = ObjectMeta()
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()

    def covers(self, pod: Pod) -> bool:
        """Whether a pod counts; an operator that is not known covers none."""
        selector = self.spec.selector
        if selector is None or pod.namespace != self.metadata.namespace:
            return False
        terms = [Requirement(key, "=", (value,)) for key, value in (selector.match_labels or {}).items()]
        for one in selector.match_expressions or ():
            if one.operator not in _OPERATORS:
                return False
            terms.append(Requirement(one.key, _OPERATORS[one.operator], one.values or ()))
        return Selector(tuple(terms)).matches(pod.metadata.labels)


def budgets_among(objects: Iterable[Mapping[str, Any]]) -> Iterator[DisruptionBudget]:
    """Those among plain objects; one that cannot be read is left out, as what is no budget is."""
    for raw in objects:
        if raw.get("kind") != KIND:
            continue
        try:
            yield convert(raw, DisruptionBudget)
        except msgspec.ValidationError:
            continue

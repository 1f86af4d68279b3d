"""Changes that put off a coming death: `fix`."""

from __future__ import annotations

from kubectl_qos.edit.edits import Edit, current_value
from kubectl_qos.edit.fixes import EvidenceKind, Fix, FixKind, NoFixReason, Unfixed
from kubectl_qos.edit.preview import StrategyKind, When
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.present.fixes import FixList, fix_sentence, unfixed_sentence
from kubectl_qos.present.next_death import DeathRow
from kubectl_qos.present.values import Document, TextChange, Values
from kubectl_qos.present.values.changes import (
    EditValues,
    FitValues,
    ObjectValues,
    RankValues,
    edit_values,
    fit_values,
    rank_values,
)
from kubectl_qos.present.values.incidents import DeathValues, death_values


class FixEvidence(Values, frozen=True, kw_only=True):
    """How the container's need is known, and the most memory that was seen or follows from that."""

    kind: EvidenceKind
    peak_bytes: int


class FixValues(Values, frozen=True, kw_only=True):
    """A change that puts off `death`, which is `after` then, null where it no longer waits.

    `minimum` are the least values with the effect; those of `changes` may be rounded up to a friendly size.
    Of a pod of a workload the changes are the same for all of its pods. `requestedBytes` is how much more
    memory each pod requests.
    """

    number: int
    kind: FixKind
    node: str
    object: ObjectValues
    pod: str
    changes: tuple[EditValues, ...]
    minimum: tuple[EditValues, ...]
    death: DeathValues
    after: DeathValues | None
    qos_class: TextChange
    rank: RankValues
    when: When
    strategy: StrategyKind
    requested_bytes: int
    fits: bool
    node_fit: tuple[FitValues, ...]
    evidence: FixEvidence
    message: str


class UnfixedValues(Values, frozen=True, kw_only=True):
    """A death against which no change is offered."""

    death: DeathValues
    reason: NoFixReason
    message: str


class FixListValues(Document, frozen=True, kw_only=True, tag="FixList"):
    """What to change about the next deaths, the nearest first: `fix`."""

    items: tuple[FixValues, ...]
    unfixed: tuple[UnfixedValues, ...]
    notes: tuple[str, ...]


def fix_list_values(found: FixList) -> FixListValues:
    """Fixes with their effects."""
    return FixListValues(
        items=tuple(_fix_values(number, fix) for number, fix in enumerate(found.fixes, start=1)),
        unfixed=tuple(map(_unfixed_values, found.unfixed)),
        notes=found.notes,
    )


def _fix_values(number: int, fix: Fix) -> FixValues:
    effects, pod = fix.effects, fix.pod
    node = effects.after.setup.node.name
    kind, name = fix.workload or (pod.kind, pod.name)
    return FixValues.of(
        fix,
        number=number,
        node=node,
        object=ObjectValues(
            kind=kind,
            namespace=pod.namespace or None,
            name=name,
            uid=(pod.metadata.uid or None) if fix.workload is None else None,
        ),
        pod=pod.name,
        changes=_edits(pod, fix.edits),
        minimum=_edits(pod, fix.minimal),
        death=death_values(DeathRow(node, fix.death)),
        after=death_values(DeathRow(node, fix.after)) if fix.after is not None else None,
        qos_class=TextChange(before=effects.before.qos_class.value, after=effects.after.qos_class.value),
        rank=rank_values(effects),
        requested_bytes=fix.more_bytes,
        node_fit=fit_values(fix.preview),
        evidence=FixEvidence.of(fix.evidence),
        message=fix_sentence(fix),
    )


def _edits(pod: Pod, edits: tuple[Edit, ...]) -> tuple[EditValues, ...]:
    return tuple(edit_values(edit, current_value(pod, *edit.target), edit.quantity) for edit in edits)


def _unfixed_values(unfixed: Unfixed) -> UnfixedValues:
    death = death_values(DeathRow(unfixed.node, unfixed.death))
    return UnfixedValues(death=death, reason=unfixed.reason, message=unfixed_sentence(unfixed))

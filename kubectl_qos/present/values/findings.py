"""Findings on manifests: `check`. An earlier output is a baseline for the next."""

from __future__ import annotations

from kubectl_qos.check.findings import Finding
from kubectl_qos.check.settings import Level
from kubectl_qos.present.check import Place, Report, rule_texts, sentence
from kubectl_qos.present.values import Document, Values
from kubectl_qos.present.values.changes import ObjectValues


class FindingValues(Values, frozen=True, kw_only=True):
    """One finding; `rule` is its stable id, `path` the field, `reason` why it is waived, if it is."""

    rule: str
    title: str
    level: Level
    object: ObjectValues
    container: str | None
    path: str
    file: str
    line: int | None
    column: int | None
    text: str | None
    message: str
    reason: str | None


class FindingListValues(Document, frozen=True, kw_only=True, tag="FindingList"):
    """What is wrong with manifests or running pods: `check`."""

    items: tuple[FindingValues, ...]
    waived: tuple[FindingValues, ...]
    notes: tuple[str, ...]


def finding_list_values(report: Report, notes: tuple[str, ...]) -> FindingListValues:
    """The findings that count and those that are waived."""
    return FindingListValues(
        items=tuple(_values(finding, place) for finding, place in report.findings),
        waived=tuple(_values(finding, place, reason) for finding, place, reason in report.waived),
        notes=notes,
    )


def _values(finding: Finding, place: Place, reason: str | None = None) -> FindingValues:
    pod, (kind, name) = finding.subject.pod, finding.subject.kind_and_name
    return FindingValues(
        rule=finding.rule.value,
        title=rule_texts()[finding.rule].title,
        level=finding.level,
        object=ObjectValues(kind=kind, namespace=pod.namespace or None, name=name, uid=None),
        container=finding.owner or None,
        path=finding.path,
        file=place.file,
        line=place.line,
        column=place.column,
        text=place.text or None,
        message=sentence(finding),
        reason=reason,
    )

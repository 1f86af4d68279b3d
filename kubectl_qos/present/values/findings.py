"""Findings on manifests: `check`. An earlier output is a baseline for the next."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from kubectl_qos.check.findings import Finding, rule_texts
from kubectl_qos.check.settings import Level
from kubectl_qos.present.check import Place, Report, sentence
from kubectl_qos.present.values import ClusterValues, Document, OfCluster, Values
from kubectl_qos.present.values.changes import ObjectValues


class FindingValues(OfCluster, frozen=True, kw_only=True):
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


class ReadErrorValues(Values, frozen=True):
    """A document, or a cluster as a `file`, that could not be read."""

    file: str
    line: int | None
    column: int | None
    message: str


class FindingListValues(Document, frozen=True, kw_only=True, tag="FindingList"):
    """What is wrong with manifests or running pods: `check`."""

    items: tuple[FindingValues, ...]
    waived: tuple[FindingValues, ...]
    errors: tuple[ReadErrorValues, ...]
    notes: tuple[str, ...]
    clusters: tuple[ClusterValues, ...] | UnsetType = UNSET


def finding_list_values(
    report: Report, notes: tuple[str, ...], clusters: tuple[ClusterValues, ...] | None = None
) -> FindingListValues:
    """Return findings that count and waived ones; with several clusters each names its cluster."""
    of_fleet = clusters is not None
    return FindingListValues(
        items=tuple(_values(finding, place, None, of_fleet) for finding, place in report.findings),
        waived=tuple(_values(*waived, of_fleet) for waived in report.waived),
        errors=tuple(
            ReadErrorValues(place.file, place.line, place.column, message) for message, place in report.errors
        ),
        notes=notes,
        clusters=UNSET if clusters is None else clusters,
    )


def _values(finding: Finding, place: Place, reason: str | None, of_fleet: bool) -> FindingValues:
    pod, (kind, name) = finding.subject.pod, finding.subject.kind_and_name
    return FindingValues(
        cluster=place.file if of_fleet else UNSET,
        rule=finding.rule.value,
        title=rule_texts()[finding.rule].title,
        level=finding.level,
        object=ObjectValues(kind, pod.namespace or None, name, None),
        container=finding.owner or None,
        path=finding.path,
        file=place.file,
        line=place.line,
        column=place.column,
        text=place.text or None,
        message=sentence(finding),
        reason=reason,
    )

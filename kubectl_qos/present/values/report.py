"""An incident for programs: `report`, of the values of `kills`, `next` and `fix`."""

from __future__ import annotations

from typing import Any

from kubectl_qos.analysis.incident import Death, Incident
from kubectl_qos.present.next_death import notes
from kubectl_qos.present.output import row_values
from kubectl_qos.present.pod_columns import VALUE_COLUMNS
from kubectl_qos.present.report import (
    TimelineEntry,
    clock,
    others_sentence,
    prevention_sentence,
    summary,
    timeline,
)
from kubectl_qos.present.values import Document, Values
from kubectl_qos.present.values.changes import ObjectValues
from kubectl_qos.present.values.fixes import FixValues, UnfixedValues, fix_values, unfixed_values
from kubectl_qos.present.values.incidents import DeathValues, KillValues, death_values, kill_values


class IncidentDeath(Values, frozen=True, kw_only=True):
    """A death; `kills` are its places in `kills`, the newest first, from 0: a container may die repeatedly.

    `others` says whom the killer chose among, `rivals` are those pods in its order at `stateTime`, null for
    now, as in `top`; `before` is the pod itself a minute before, null without a history. `fix` is the first
    change against it in the state of `fixTime`, null for now, and where its pod has ended.
    """

    kills: tuple[int, ...]
    others: str | None
    rivals: tuple[dict[str, Any], ...]
    state_time: str | None
    before: dict[str, Any] | None
    fix: FixValues | None
    unfixed: UnfixedValues | None
    fix_time: str | None
    prevention: str | None


class IncidentReportValues(Document, frozen=True, kw_only=True, tag="IncidentReport"):
    """What happened over a time: `report`. `object` is null for all namespaces, `sinceTime` for all times.

    `kills` are all deaths, `deaths` the newest ones in detail, `next` and `fixes` what stands now.
    """

    object: ObjectValues | None
    cluster: str
    time: str
    since_time: str | None
    summary: str
    timeline: tuple[TimelineEntry, ...]
    kills: tuple[KillValues, ...]
    deaths: tuple[IncidentDeath, ...]
    next: tuple[DeathValues, ...]
    fixes: tuple[FixValues, ...]
    unfixed: tuple[UnfixedValues, ...]
    notes: tuple[str, ...]


def incident_values(incident: Incident) -> IncidentReportValues:
    """Return a report."""
    (kind, namespace, name), (coming, fixes) = incident.about, incident.coming
    return IncidentReportValues(
        object=ObjectValues(kind, namespace or None, name, None) if name else None,
        cluster=incident.source,
        time=clock(incident.now),
        since_time=clock(incident.since) if incident.since is not None else None,
        summary=" ".join(summary(incident)),
        timeline=timeline(incident),
        kills=tuple(map(kill_values, incident.kills)),
        deaths=tuple(_death(death, incident) for death in incident.deaths),
        next=tuple(map(death_values, coming.rows)),
        fixes=tuple(fix_values(number, fix) for number, fix in enumerate(fixes.fixes, start=1)),
        unfixed=tuple(map(unfixed_values, fixes.unfixed)),
        notes=tuple(dict.fromkeys((*incident.missing_evidence, *incident.notes, *notes(coming)))),
    )


def _death(death: Death, incident: Incident) -> IncidentDeath:
    before = row_values(death.row, VALUE_COLUMNS) if death.state_time and death.row is not None else None
    return IncidentDeath(
        kills=tuple(map(incident.kills.index, (death.kill, *death.earlier))),
        others=others_sentence(death) or None,
        rivals=tuple(row_values(row, VALUE_COLUMNS) for row in death.rivals),
        state_time=death.state_time or None,
        before=before,
        fix=fix_values(1, death.fix) if death.fix is not None else None,
        unfixed=unfixed_values(death.unfixed) if death.unfixed is not None else None,
        fix_time=death.fix_time or None,
        prevention=prevention_sentence(death) or None,
    )

"""An incident for programs: `report`, of the values of `kills`, `next` and `fix`."""

from __future__ import annotations

from datetime import UTC, datetime

from kubectl_qos.present.fixes import FixList
from kubectl_qos.present.incident import Death, Incident
from kubectl_qos.present.pod_rows import PodRow
from kubectl_qos.present.report import others_sentence, prevention_sentence, rivals, summary
from kubectl_qos.present.values import Document, Values
from kubectl_qos.present.values.changes import ObjectValues
from kubectl_qos.present.values.fixes import FixValues, UnfixedValues, fix_values, unfixed_values
from kubectl_qos.present.values.incidents import DeathValues, KillValues, death_values, kill_values


class HappeningValues(Values, frozen=True, kw_only=True):
    """One line of the timeline; `times` is how often it happened until then."""

    time: str | None
    what: str
    about: str
    message: str
    times: int


class PodThen(Values, frozen=True, kw_only=True):
    """A pod in the order of its node: of the kernel, or of the kubelet for an eviction."""

    namespace: str
    pod: str
    rank: int | None
    eviction_rank: int | None
    oom_score_adj: int | None
    oom_score: int | None
    memory_bytes: int | None
    request_bytes: int | None
    limit_bytes: int | None


class IncidentDeath(Values, frozen=True, kw_only=True):
    """A death, with `earlier` ones of the same container in the same way.

    `others` says whom the killer chose among, `rivals` are those pods in its order at `stateTime`, null for
    now; `before` is the pod itself then, null without a history. `fix` is the first change against it.
    """

    death: KillValues
    earlier: tuple[KillValues, ...]
    others: str | None
    rivals: tuple[PodThen, ...]
    state_time: str | None
    before: PodThen | None
    fix: FixValues | None
    unfixed: UnfixedValues | None
    prevention: str | None


class IncidentValues(Document, frozen=True, kw_only=True, tag="IncidentReport"):
    """What happened over a time: `report`. `object` is null for all namespaces, `sinceTime` for all times.

    `kills` are all deaths, `deaths` the newest ones in detail, `next` what stands now.
    """

    object: ObjectValues | None
    cluster: str
    time: str
    since_time: str | None
    summary: str
    timeline: tuple[HappeningValues, ...]
    kills: tuple[KillValues, ...]
    deaths: tuple[IncidentDeath, ...]
    next: tuple[DeathValues, ...]
    fixes: tuple[FixValues, ...]
    unfixed: tuple[UnfixedValues, ...]
    notes: tuple[str, ...]


def incident_values(incident: Incident) -> IncidentValues:
    """A report."""
    kind, namespace, name = incident.about
    return IncidentValues(
        object=ObjectValues(kind=kind, namespace=namespace or None, name=name, uid=None) if name else None,
        cluster=incident.source,
        time=_time(incident.now),
        since_time=_time(incident.since) if incident.since is not None else None,
        summary=" ".join(summary(incident)),
        timeline=tuple(HappeningValues.of(one, message=one.text) for one in incident.timeline),
        kills=tuple(map(kill_values, incident.kills)),
        deaths=tuple(map(_death, incident.deaths)),
        next=tuple(map(death_values, incident.next.rows)),
        fixes=_fixes(incident.fixes),
        unfixed=tuple(map(unfixed_values, incident.fixes.unfixed)),
        notes=tuple(dict.fromkeys((*incident.doubts, *incident.notes, *incident.next.notes))),
    )


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _fixes(found: FixList) -> tuple[FixValues, ...]:
    return tuple(fix_values(number, fix) for number, fix in enumerate(found.fixes, start=1))


def _death(death: Death) -> IncidentDeath:
    state = death.state
    is_past = state is not None and bool(state.at)
    return IncidentDeath(
        death=kill_values(death.kill),
        earlier=tuple(map(kill_values, death.earlier)),
        others=others_sentence(death) or None,
        rivals=tuple(map(_pod, rivals(death))),
        state_time=state.at or None if state is not None else None,
        before=_pod(death.row) if is_past and death.row is not None else None,
        fix=fix_values(1, death.fix) if death.fix is not None else None,
        unfixed=unfixed_values(death.unfixed) if death.unfixed is not None else None,
        prevention=prevention_sentence(death) or None,
    )


def _pod(row: PodRow) -> PodThen:
    return PodThen(
        namespace=row.pod.namespace,
        pod=row.name,
        rank=row.rank,
        eviction_rank=row.eviction_rank,
        oom_score_adj=row.adj,
        oom_score=row.score,
        memory_bytes=row.memory,
        request_bytes=row.request,
        limit_bytes=row.limit,
    )

"""JSON and YAML documents of `fix`, `fix --priorities` and `report`."""

from typing import Any

from msgspec import UNSET, UnsetType

from kubectl_qos.analysis.deaths import DeathRow
from kubectl_qos.analysis.fix_list import FixList, PriorityPlans
from kubectl_qos.analysis.incident import Death, Incident
from kubectl_qos.edit.fixes import EvidenceKind, Fix, FixKind, NoFixReason, Unfixed
from kubectl_qos.edit.goals import Obstacle, ObstacleReason
from kubectl_qos.edit.preview import StrategyKind, When
from kubectl_qos.edit.priorities import Inversion, Move, priority_of
from kubectl_qos.present import fix_sentences, next_death, report
from kubectl_qos.present.findings import obstacle_sentence
from kubectl_qos.present.output import row_values
from kubectl_qos.present.pod_columns import VALUE_COLUMNS
from kubectl_qos.present.priorities import move_sentence, notes
from kubectl_qos.present.values import ClusterValues, Document, OfCluster, TextChange, Values, copied
from kubectl_qos.present.values.changes import (
    EditValues,
    FitValues,
    ObjectValues,
    RankValues,
    edits_values,
    fit_values,
    rank_values,
)
from kubectl_qos.present.values.incidents import DeathValues, KillValues, death_values, kill_values
from kubectl_qos.qos.killers import Mechanism


class FixEvidence(Values, frozen=True):
    """How we know what memory the container needs, and its peak.

    For a VerticalPodAutoscaler, `peakBytes` is its target; the bounds are null for any other kind.
    """

    kind: EvidenceKind
    peak_bytes: int
    lower_bytes: int | None
    upper_bytes: int | None


class FixValues(OfCluster, frozen=True, kw_only=True):
    """A change that delays `death`. `after` is the same death with the change, null if it no longer happens.

    `sooner` is an earlier death that the change does not prevent, null if there is none. `instead` is the
    first of the others that the killer ends before `after`; null if there is none, or if some died before.

    `minimum` are the least values with the effect; those of `changes` may be rounded up to a friendly size.
    All pods of a workload get the same changes. `requestedBytes` is the extra request of the pod, `nodeBytes`
    that of all `nodePods` on the node, `freeBytes` what the node has left to request, null if unknown, and
    `fits` whether that is enough. If the pods are on several nodes, they describe the tightest one. `nodeFit`
    is of the pod alone.
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
    sooner: DeathValues | None
    instead: DeathValues | None
    qos_class: TextChange
    rank: RankValues
    when: When
    strategy: StrategyKind
    requested_bytes: int
    node_pods: int
    node_bytes: int
    free_bytes: int | None
    fits: bool
    node_fit: tuple[FitValues, ...]
    evidence: FixEvidence
    message: str


class UnfixedValues(OfCluster, frozen=True, kw_only=True):
    """A death against which no change is offered."""

    death: DeathValues
    reason: NoFixReason
    message: str


class KubeletValues(Values, frozen=True, kw_only=True):
    """Kubelet settings that make it evict before the kernel OOM kills: fields of a KubeletConfiguration.

    `growthBytes` is by how much memory grows a second, `leastBytes` the least threshold with the effect;
    `costBytes` is how much less pods can request afterwards, `missingBytes` how far today's requests exceed
    what remains. `evictedNow` are the pods that the kubelet evicts as soon as it has the settings, because
    only `availableBytes` are available.
    """

    configuration: dict[str, Any]
    growth_bytes: int
    own_bytes: int
    reserved_bytes: int
    threshold_bytes: int
    least_bytes: int
    cost_bytes: int
    missing_bytes: int
    available_bytes: int
    evicted_now: tuple[str, ...]
    assumptions: tuple[str, ...]


class FixListValues(Document, frozen=True, kw_only=True, tag="FixList"):
    """What to change about the next deaths, the nearest first: `fix`.

    `kubelet` is set only for a single node where the kernel may kill before the kubelet evicts.
    """

    items: tuple[FixValues, ...]
    unfixed: tuple[UnfixedValues, ...]
    notes: tuple[str, ...]
    kubelet: KubeletValues | None
    clusters: tuple[ClusterValues, ...] | UnsetType = UNSET


def fix_list_values(fixes: FixList) -> FixListValues:
    """Fixes with their effects."""
    kubelet = fixes.kubelet
    return FixListValues(
        items=tuple(fix_values(number, fix) for number, fix in enumerate(fixes.fixes, start=1)),
        unfixed=tuple(map(unfixed_values, fixes.unfixed)),
        notes=(
            *filter(None, [fix_sentences.unmeasured(fixes)]),
            *fix_sentences.ended_notes(fixes),
            *fix_sentences.basis_notes(fixes),
        ),
        kubelet=None
        if kubelet is None
        else copied(
            KubeletValues,
            kubelet,
            available_bytes=kubelet.available.available_bytes,
            evicted_now=tuple("/".join(key) for key in kubelet.evicted_now),
            assumptions=tuple(fix_sentences.kubelet_notes(kubelet)),
        ),
    )


def fix_values(number: int, fix: Fix) -> FixValues:
    """Return a fix with its number in a list."""
    effects, pod = fix.effects, fix.pod
    node = effects.after.setup.node.name
    kind, name = fix.workload or (pod.kind, pod.name)
    uid = (pod.metadata.uid or None) if fix.workload is None else None
    return copied(
        FixValues,
        fix,
        number=number,
        node=node,
        object=ObjectValues(kind, pod.namespace or None, name, uid),
        pod=pod.name,
        changes=edits_values(pod, fix.edits),
        minimum=edits_values(pod, fix.minimal),
        death=death_values(DeathRow(node, fix.death)),
        after=death_values(DeathRow(node, fix.after)) if fix.after is not None else None,
        sooner=death_values(DeathRow(node, fix.sooner)) if fix.sooner is not None else None,
        instead=death_values(DeathRow(node, fix.instead)) if fix.instead is not None else None,
        qos_class=TextChange(effects.before.qos_class, effects.after.qos_class),
        rank=rank_values(effects),
        requested_bytes=fix.more_bytes,
        node_fit=fit_values(fix.preview),
        evidence=copied(FixEvidence, fix.evidence),
        message=fix_sentences.fix_sentence(fix),
    )


def unfixed_values(unfixed: Unfixed) -> UnfixedValues:
    """Return a death without a fix."""
    death = death_values(DeathRow(unfixed.node, unfixed.death))
    return UnfixedValues(death=death, reason=unfixed.reason, message=fix_sentences.unfixed_sentence(unfixed))


class InversionValues(Values, frozen=True, kw_only=True):
    """A pod that a killer of the node ends before one of lower priority; `reason`: why it cannot be fixed."""

    killer: Mechanism
    namespace: str
    pod: str
    lower_namespace: str
    lower_pod: str
    reason: ObstacleReason | None
    message: str | None


class MoveValues(Values, frozen=True, kw_only=True):
    """One pod's changes and the inversions they resolve; pods of one workload share a number."""

    number: int
    namespace: str
    pod: str
    priority: int
    changes: tuple[EditValues, ...]
    solves: tuple[InversionValues, ...]
    requested_bytes: int
    when: When
    strategy: StrategyKind
    message: str


class NodePriorities(Values, frozen=True, kw_only=True):
    """The changes on one node, of the highest priority first; `freeBytes` is null where it is unknown."""

    node: str
    free_bytes: int | None
    changes: tuple[MoveValues, ...]
    unsolved: tuple[InversionValues, ...]


class PriorityPlanValues(Document, frozen=True, kw_only=True, tag="PriorityPlan"):
    """The fewest requests with which no pod dies before one of lower priority: `fix --priorities`."""

    items: tuple[NodePriorities, ...]
    notes: tuple[str, ...]


def priority_values(plans: PriorityPlans) -> PriorityPlanValues:
    """Convert plans, including inversions that they do not resolve."""
    rows = plans.rows
    return PriorityPlanValues(
        items=tuple(
            NodePriorities(
                node=plan.node,
                free_bytes=plan.free_bytes,
                changes=tuple(_move_values(row.number, move) for row in rows for move in row.on_node(plan)),
                unsolved=tuple(_inversion(inversion, obstacle) for inversion, obstacle in plan.unsolved),
            )
            for plan in plans.plans
        ),
        notes=tuple(notes(plans)),
    )


def _move_values(number: int, move: Move) -> MoveValues:
    pod = move.pod
    return copied(
        MoveValues,
        move,
        number=number,
        namespace=pod.namespace,
        pod=pod.name,
        priority=priority_of(pod),
        changes=edits_values(pod, move.edits),
        solves=tuple(map(_inversion, move.solves)),
        requested_bytes=move.more_bytes,
        message=move_sentence(move),
    )


def _inversion(inversion: Inversion, obstacle: Obstacle | None = None) -> InversionValues:
    return InversionValues(
        killer=Mechanism(inversion.killer.id),
        namespace=inversion.higher[0],
        pod=inversion.higher[1],
        lower_namespace=inversion.lower[0],
        lower_pod=inversion.lower[1],
        reason=obstacle.reason if obstacle is not None else None,
        message=obstacle_sentence(obstacle) if obstacle is not None else None,
    )


class IncidentDeath(Values, frozen=True, kw_only=True):
    """A death. `kills`: indexes into the report's `kills`, newest first, as a container may die repeatedly.

    `others` says whom the killer chose among; `rivals` are those pods in its order at `stateTime`, as in
    `top`; null means now. `before`: the pod a minute earlier, null without a history. `fix`: the first fix as
    of `fixTime`; null means now, or that the pod has ended.
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

    `kills` are all deaths, `deaths` the newest ones in detail; `next` and `fixes` describe the situation now.
    """

    object: ObjectValues | None
    cluster: str
    time: str
    since_time: str | None
    summary: str
    timeline: tuple[report.TimelineEntry, ...]
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
        time=report.clock(incident.now),
        since_time=report.clock(incident.since) if incident.since is not None else None,
        summary=" ".join(report.summary(incident)),
        timeline=report.timeline(incident),
        kills=tuple(map(kill_values, incident.kills)),
        deaths=tuple(_death(death, incident) for death in incident.deaths),
        next=tuple(map(death_values, coming.rows)),
        fixes=tuple(fix_values(number, fix) for number, fix in enumerate(fixes.fixes, start=1)),
        unfixed=tuple(map(unfixed_values, fixes.unfixed)),
        notes=tuple(dict.fromkeys((*incident.missing_evidence, *incident.notes, *next_death.notes(coming)))),
    )


def _death(death: Death, incident: Incident) -> IncidentDeath:
    before = row_values(death.row, VALUE_COLUMNS) if death.state_time and death.row is not None else None
    return IncidentDeath(
        kills=tuple(map(incident.kills.index, (death.kill, *death.earlier))),
        others=report.others_sentence(death) or None,
        rivals=tuple(row_values(row, VALUE_COLUMNS) for row in death.rivals),
        state_time=death.state_time or None,
        before=before,
        fix=fix_values(1, death.fix) if death.fix is not None else None,
        unfixed=unfixed_values(death.unfixed) if death.unfixed is not None else None,
        fix_time=death.fix_time or None,
        prevention=report.prevention_sentence(death) or None,
    )

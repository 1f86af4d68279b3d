"""Deaths that happened (`kills`), that happen as memory fills (`simulate`), and the next ones (`next`)."""

from enum import StrEnum
from typing import Any, Final

from msgspec import UNSET, UnsetType

from kubectl_qos.analysis.deaths import DeathRow, Deaths
from kubectl_qos.present.evidence import evidence_sentence
from kubectl_qos.present.killers import OWN_LIMIT
from kubectl_qos.present.kills import by_text, need_sentence
from kubectl_qos.present.next_death import notes
from kubectl_qos.present.simulation import simulation_notes, simulation_summary
from kubectl_qos.present.values import (
    ClusterValues,
    OfCluster,
    TimedDocument,
    Values,
    copied,
    plain,
    reason_name,
)
from kubectl_qos.qos.killers import KILLERS, Mechanism
from kubectl_qos.qos.killers.killer import Contender
from kubectl_qos.qos.kills.analyze import Kill
from kubectl_qos.qos.kills.choice import MemoryUser, Unranked, VictimChoice, memory_users
from kubectl_qos.qos.kills.report import Constraint, OomReport
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.reason import Confidence
from kubectl_qos.qos.restart import Restart
from kubectl_qos.qos.simulation.ceiling import MemoryLevel
from kubectl_qos.qos.simulation.engine import MechanismDistance, Simulation, SimulationStep
from kubectl_qos.qos.simulation.next_death import Precedent
from kubectl_qos.qos.simulation.node_state import ImportanceReason, NodeState


class EvidenceValues(Values, frozen=True):
    """One fact about a death, with its details and as a sentence."""

    reason: str
    time: str | None
    details: dict[str, Any]
    message: str


class KilledProcess(Values, frozen=True):
    """A process that the kernel killed; `reaped` is whether its memory was freed at once."""

    pid: int
    command: str | None
    rss_bytes: int | None
    oom_score_adj: int | None
    reaped: bool


class Daemon(StrEnum):
    """A daemon that kills before the kernel does."""

    vars().update({killer.id: killer.id for killer in KILLERS if killer.is_daemon})


class ReportValues(Values, frozen=True, kw_only=True):
    """The report of an OOM by the kernel, or by a `daemon`; `groupKill` is the cgroup that was killed whole.

    At a limit, `limitOf` says what it limits, and its memory is split into kinds. `users` are the processes
    with the most memory.
    """

    time: str | None
    uptime_seconds: float | None
    kernel_release: str | None
    constraint: Constraint | None
    oom_memcg: str | None
    task_memcg: str | None
    invoker: str | None
    usage_bytes: int | None
    limit_bytes: int | None
    limit_of: str | None
    anon_bytes: int | None
    file_bytes: int | None
    shmem_bytes: int | None
    kernel_bytes: int | None
    users: tuple[MemoryUser, ...]
    daemon: Daemon | None
    group_kill: str | None
    killed: tuple[KilledProcess, ...]
    incomplete: bool


class CandidateValues(Values, frozen=True):
    """A process of the report's table, by the kernel's points."""

    place: int
    pid: int
    command: str | None
    oom_score_adj: int
    used_pages: int
    points: int | None
    oom_score: int | None


class ChoiceValues(Values, frozen=True, kw_only=True):
    """Why this process: the candidates in the kernel's order; `unranked` says why they are unknown."""

    unranked: str | None = None
    total_pages: int | None = None
    place: int | None = None
    immune: int | None = None
    tied: int | None = None
    candidates: tuple[CandidateValues, ...] = ()


class KillValues(OfCluster, frozen=True, kw_only=True):
    """One death of a container, a pod or a process outside of pods.

    `isOwn`: at the limit of a pod with one container, or of a container, which texts call its own limit.
    """

    time: str | None
    time_is_estimated: bool
    namespace: str | None
    pod: str | None
    pod_uid: str | None
    container: str | None
    container_id: str | None
    node: str | None
    cgroup: str | None
    mechanism: Mechanism
    is_own: bool
    confidence: Confidence
    exit_code: int | None
    reason: str | None
    oom_score: int | None
    freed_bytes: int | None
    evidence: tuple[EvidenceValues, ...]
    to_be_certain: str | None
    kernel: ReportValues | None
    choice: ChoiceValues | None


class KillListValues(TimedDocument, frozen=True, kw_only=True, tag="KillList"):
    """What was killed, the newest first: `kills`."""

    items: tuple[KillValues, ...]
    notes: tuple[str, ...]
    clusters: tuple[ClusterValues, ...] | UnsetType = UNSET


class GrowthValues(Values, frozen=True):
    """A container that grows; without a pod, the processes of the node itself."""

    namespace: str | None
    pod: str | None
    container: str | None
    to_bytes: int


class ScenarioValues(Values, frozen=True, kw_only=True):
    """What happens on the node, by the flags."""

    free_bytes: int | None
    grow: tuple[GrowthValues, ...]
    until_oom: bool
    all_at_limit: bool
    eviction: bool
    restarting: bool


class ContenderValues(Values, frozen=True):
    """A container, or a pod that is evicted, that may die in place of a victim, and the size that decides."""

    namespace: str
    pod: str
    container: str | None
    qos_class: QosClass
    size_bytes: int


class StepValues(Values, frozen=True, kw_only=True):
    """One kill or eviction: of a pod with its container, or of one of the node's own processes.

    `restarted`: the container uses its memory again. `podRestarted`: all containers of its pod restart.
    """

    step: int
    mechanism: Mechanism
    namespace: str | None
    pod: str | None
    process: str | None
    container: str | None
    qos_class: QosClass | None
    oom_score_adj: int | None
    oom_score: int | None
    points: int | None
    tied: int
    rival: ContenderValues | None
    freed_bytes: int | None
    freed_working_set_bytes: int | None
    after: MemoryLevel
    restarted: bool
    pod_restarted: bool
    important: tuple[ImportanceReason, ...]
    refused: tuple[str, ...]


class ReachValues(Values, frozen=True):
    """How much more memory until a mechanism kills, and its victim if known; `factor` is relative to now."""

    mechanism: Mechanism
    more_bytes: int
    factor: float
    namespace: str | None
    pod: str | None
    container: str | None


class SimulationValues(TimedDocument, frozen=True, kw_only=True, tag="Simulation"):
    """A node as its memory fills: `simulate`. `reached`: the scenario came to its end.

    With `freeIsUpperBound` less may be free, because the usage of some containers is unknown.
    """

    node: str
    scenario: ScenarioValues
    total_bytes: int
    before: MemoryLevel
    after: MemoryLevel
    free_is_upper_bound: bool
    reached: bool
    first_important_step: int | None
    steps: tuple[StepValues, ...]
    reaches: tuple[ReachValues, ...]
    refused: tuple[str, ...]
    summary: str
    notes: tuple[str, ...]


class SimulationComparisonValues(TimedDocument, frozen=True, kw_only=True, tag="SimulationComparison"):
    """A simulation with the pods as they are (`now`) and as changed (`then`): `simulate --what-if`."""

    now: SimulationValues
    then: SimulationValues


class DeathValues(OfCluster, frozen=True, kw_only=True):
    """A death to come. `distanceBytes` is growth until then, of the container, the pod, all pods or the node.

    `isOwn`: at the container's own limit, which is the pod's if it has one container. With
    `distanceIsUpperBound` it may be less, because usage of the node itself or of pods is unknown.
    `limitBytes` is the container's or pod's own limit (memory.max), `usedBytes` its working set. `before` is
    how many others this mechanism ends first. `fullnessPercent` is the used part of the memory at which the
    killer acts. `etaSeconds` is known if the metrics history shows steady growth. `rival` dies instead unless
    one process of the victim holds `sizeBytes`; a victim that is a rival dies `unless` a process of the other
    does. Each of `growing` is the victim instead if it alone grows, from `sizeBytes` on; a victim that has to
    grow alone is one from `grownBytes` on. `earlier` is a mechanism that may act before. Without a pod and a
    process the victim is unknown. `precedent` is evidence that the limit is reached. A container that `waits`
    to restart at a limit that killed it, or runs again without usage, has an unknown distance, given as 0;
    after a raise of that limit, it is by how much.
    """

    node: str
    mechanism: Mechanism
    is_own: bool
    distance_bytes: int
    distance_is_upper_bound: bool
    namespace: str | None
    pod: str | None
    process: str | None
    container: str | None
    qos_class: QosClass | None
    freed_bytes: int | None
    limit_bytes: int | None
    used_bytes: int | None
    grace_seconds: int | None
    before: int
    tied: int | None
    fullness_percent: int
    eta_seconds: int | None
    rival: ContenderValues | None
    unless: ContenderValues | None
    growing: tuple[ContenderValues, ...]
    grown_bytes: int | None
    earlier: Mechanism | None
    precedent: Precedent | None
    waits: bool


class DeathListValues(TimedDocument, frozen=True, kw_only=True, tag="DeathList"):
    """Who dies next, the most urgent first: `next`."""

    items: tuple[DeathValues, ...]
    notes: tuple[str, ...]
    clusters: tuple[ClusterValues, ...] | UnsetType = UNSET


def death_list_values(deaths: Deaths) -> DeathListValues:
    """Return the deaths to come with their notes."""
    return DeathListValues(items=tuple(map(death_values, deaths.rows)), notes=tuple(notes(deaths)))


def death_values(row: DeathRow) -> DeathValues:
    """Return a coming death on a node."""
    death, (namespace, name), is_pod = row.death, row.death.key, row.death.qos is not None
    return copied(
        DeathValues,
        death,
        node=row.node,
        distance_is_upper_bound=death.is_upper_bound,
        namespace=namespace or None,
        pod=name if is_pod else None,
        process=None if is_pod else name or None,
        qos_class=death.qos,
        freed_bytes=death.frees_bytes,
        fullness_percent=round(100 * death.fullness),
        eta_seconds=None if row.seconds is None else round(row.seconds),
        rival=death.rival and _contender_values(death.rival),
        unless=death.unless and _contender_values(death.unless),
        growing=tuple(map(_contender_values, death.growing)),
        earlier=death.earlier and Mechanism(death.earlier.mechanism),
    )


def _contender_values(contender: Contender) -> ContenderValues:
    pod = contender.namespace, contender.pod, contender.container or None
    return ContenderValues(*pod, contender.qos_class, contender.size_bytes)


def kill_values(kill: Kill) -> KillValues:
    """Return a kill with its evidence."""
    diagnosis = kill.diagnosis
    return copied(
        KillValues,
        kill,
        mechanism=diagnosis.mechanism,
        is_own=by_text(kill) == OWN_LIMIT,
        confidence=diagnosis.confidence,
        oom_score=kill.score,
        evidence=tuple(
            EvidenceValues(
                reason_name(evidence.fact),
                evidence.time or None,
                plain(evidence.details),
                evidence_sentence(evidence),
            )
            for evidence in diagnosis.evidence
        ),
        to_be_certain=need_sentence(diagnosis.needs, kill.node) if diagnosis.needs is not None else None,
        kernel=_report_values(kill.report) if kill.report is not None else None,
        choice=_choice_values(kill.choice),
    )


_MOST_USERS: Final = 10


def _report_values(report: OomReport) -> ReportValues:
    full, memory = report.memory.full, report.memory
    return copied(
        ReportValues,
        report,
        uptime_seconds=report.uptime,
        kernel_release=report.kernel or None,
        invoker=report.invoker.comm if report.invoker is not None else None,
        usage_bytes=_bytes(full[1] if full is not None else memory.usage_kb),
        limit_bytes=_bytes(full[2] if full is not None else memory.limit_kb),
        limit_of=full[0] if full is not None else None,
        anon_bytes=_bytes(memory.anon_kb),
        file_bytes=_bytes(memory.file_kb),
        shmem_bytes=_bytes(memory.shmem_kb),
        kernel_bytes=_bytes(memory.of_kernel_kb),
        users=tuple(memory_users(report)[:_MOST_USERS]),
        killed=tuple(
            KilledProcess(task.pid, task.comm, _bytes(task.rss_kb), task.adj, task.pid in report.reaped)
            for task in report.processes
        ),
    )


def _bytes(kib: int | None) -> int | None:
    return None if kib is None else kib << 10


def _choice_values(choice: VictimChoice | Unranked | None) -> ChoiceValues | None:
    if not isinstance(choice, VictimChoice):
        return choice and ChoiceValues(unranked=choice.value)
    candidates = tuple(
        copied(
            CandidateValues,
            scored,
            pid=scored.task.pid,
            command=scored.task.name,
            oom_score_adj=scored.task.adj,
            oom_score=scored.score,
        )
        for scored in choice.ranked
    )
    place, tied = choice.chosen.place, len(choice.tied)
    return copied(ChoiceValues, choice, unranked=None, place=place, tied=tied, candidates=candidates)


def simulation_values(node_state: NodeState, simulation: Simulation) -> SimulationValues:
    """Return a simulation with every step."""
    scenario = simulation.scenario
    return SimulationValues(
        node=node_state.setup.node.name,
        scenario=copied(
            ScenarioValues,
            scenario,
            grow=tuple(_growth_values(node_state, *growth[:2]) for growth in scenario.growth),
            restarting=scenario.restarts,
        ),
        total_bytes=node_state.total_bytes,
        before=simulation.before,
        after=simulation.after,
        free_is_upper_bound=simulation.is_upper_bound,
        reached=simulation.is_reached,
        first_important_step=simulation.first_important,
        steps=tuple(_step_values(number, step) for number, step in enumerate(simulation.steps, start=1)),
        reaches=tuple(map(_reach_values, simulation.distances)),
        refused=tuple("/".join(key) for key in simulation.refused),
        summary=simulation_summary(node_state, simulation),
        notes=tuple(simulation_notes(node_state, simulation)),
    )


def _growth_values(node_state: NodeState, index: int | None, to_bytes: int) -> GrowthValues:
    if index is None:
        return GrowthValues(None, None, None, to_bytes)
    growing = node_state.containers[index]
    return GrowthValues(*node_state.pod_for(growing).key, growing.name, to_bytes)


def _step_values(number: int, step: SimulationStep) -> StepValues:
    return copied(
        StepValues,
        step,
        step=number,
        namespace=step.key[0] or None,
        pod=step.key[1] if step.qos is not None else None,
        process=step.key[1] if step.qos is None else None,
        qos_class=step.qos,
        oom_score_adj=step.adj,
        oom_score=step.score,
        rival=step.rival and _contender_values(step.rival),
        freed_bytes=step.freed.free_bytes if step.is_measured else None,
        freed_working_set_bytes=step.freed.available_bytes if step.is_measured else None,
        after=step.level,
        restarted=step.restarts,
        pod_restarted=step.restart is Restart.POD,
        refused=tuple("/".join(key) for key in step.refused),
    )


def _reach_values(reach: MechanismDistance) -> ReachValues:
    namespace, pod = reach.key
    owner = namespace or None, pod or None, reach.container or None
    return ReachValues(Mechanism(reach.mechanism), reach.more_bytes, round(reach.factor, 4), *owner)

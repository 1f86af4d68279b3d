"""Deaths: those that happened, `kills`, those of a full node, `simulate`, and those to come, `next`."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import UNSET, UnsetType

from kubectl_qos.analysis.deaths import DeathRow, Deaths
from kubectl_qos.k8s.kubelet import Daemon
from kubectl_qos.present.kills import evidence_sentence, need_sentence
from kubectl_qos.present.next_death import notes
from kubectl_qos.present.simulation import simulation_notes, simulation_summary
from kubectl_qos.present.values import ClusterValues, OfCluster, TimedDocument, Values, camel, plain
from kubectl_qos.qos.kills.analyze import Kill
from kubectl_qos.qos.kills.report import (
    Constraint,
    OomReport,
    Unranked,
    VictimChoice,
    memory_users,
)
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.reason import Confidence, Mechanism
from kubectl_qos.qos.restart import Restart
from kubectl_qos.qos.simulation.engine import MechanismDistance, Simulation, SimulationStep
from kubectl_qos.qos.simulation.node_state import Importance, NodeState


class EvidenceValues(Values, frozen=True, kw_only=True):
    """One fact about a death, with its details and as a sentence."""

    reason: str
    time: str | None
    details: dict[str, Any]
    message: str


class KilledProcess(Values, frozen=True, kw_only=True):
    """A process that the kernel killed; `reaped` is whether its memory was freed at once."""

    pid: int
    command: str | None
    rss_bytes: int | None
    oom_score_adj: int | None
    reaped: bool


class UserValues(Values, frozen=True, kw_only=True):
    """A process of the report's table, those with the most resident memory first."""

    name: str
    pid: int
    oom_score_adj: int
    rss_bytes: int
    shmem_bytes: int | None
    swap_bytes: int
    is_in_pod: bool


class ReportValues(Values, frozen=True, kw_only=True):
    """The report of an OOM by the kernel, or by a `daemon`; `groupKill` is what was killed as a whole.

    At a limit there are the kinds of its memory, and `limitOf`, what it limits; `users` are the largest ones.
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
    users: tuple[UserValues, ...]
    daemon: Daemon | None
    group_kill: str | None
    killed: tuple[KilledProcess, ...]
    incomplete: bool


class CandidateValues(Values, frozen=True, kw_only=True):
    """A process of the report's table, by the kernel's points."""

    place: int
    pid: int
    command: str | None
    oom_score_adj: int
    used_pages: int
    points: int | None
    oom_score: int | None


class ChoiceValues(Values, frozen=True, kw_only=True):
    """Why this process: the candidates in the kernel's order, or `unranked`, why they are unknown."""

    unranked: str | None = None
    total_pages: int | None = None
    place: int | None = None
    immune: int | None = None
    tied: int | None = None
    candidates: tuple[CandidateValues, ...] = ()


class KillValues(OfCluster, frozen=True, kw_only=True):
    """One death of a container, a pod or a process outside of pods."""

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


class GrowthValues(Values, frozen=True, kw_only=True):
    """A container that grows, or the node's own processes where there is no pod."""

    namespace: str | None
    pod: str | None
    container: str | None
    to_bytes: int


class ScenarioValues(Values, frozen=True, kw_only=True):
    """What happens on the node, as the flags say it."""

    free_bytes: int | None
    grow: tuple[GrowthValues, ...]
    until_oom: bool
    all_at_limit: bool
    eviction: bool
    restarting: bool


class LevelValues(Values, frozen=True, kw_only=True):
    """Memory that is free for the kernel, and memory.available of the kubelet."""

    free_bytes: int
    available_bytes: int


class ImportantValues(Values, frozen=True, kw_only=True):
    """Why a pod is important: by its priority, a selector or a budget, which `message` names."""

    reason: Importance
    message: str


class StepValues(Values, frozen=True, kw_only=True):
    """One kill or eviction: of a pod with its container, or of one of the node's own processes.

    `restarted` is whether the container uses its memory again, `podRestarted` whether all of its pod do.
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
    freed_bytes: int
    freed_working_set_bytes: int
    after: LevelValues
    restarted: bool
    pod_restarted: bool
    important: tuple[ImportantValues, ...]
    refused: tuple[str, ...]


class ReachValues(Values, frozen=True, kw_only=True):
    """How much more memory until a mechanism kills, and whom; `factor` is of what is used now."""

    mechanism: Mechanism
    more_bytes: int
    factor: float
    namespace: str | None
    pod: str
    container: str | None


class SimulationValues(TimedDocument, frozen=True, kw_only=True, tag="Simulation"):
    """A node as its memory fills: `simulate`. `reached` is whether the scenario came to its end."""

    node: str
    scenario: ScenarioValues
    total_bytes: int
    before: LevelValues
    after: LevelValues
    reached: bool
    first_important_step: int | None
    steps: tuple[StepValues, ...]
    reaches: tuple[ReachValues, ...]
    refused: tuple[str, ...]
    summary: str
    notes: tuple[str, ...]


class SimulationComparisonValues(TimedDocument, frozen=True, kw_only=True, tag="SimulationComparison"):
    """The same with the pods as they are, and as changed: `simulate --what-if`."""

    now: SimulationValues
    then: SimulationValues


class ContenderValues(Values, frozen=True, kw_only=True):
    """A container, or a pod that is evicted, that may die in place of a victim, and the size that decides."""

    namespace: str
    pod: str
    container: str | None
    qos_class: QosClass
    size_bytes: int


class DeathValues(OfCluster, frozen=True, kw_only=True):
    """A death to come. `distanceBytes` is growth until then, of the container, the pod, all pods or the node.

    With `distanceIsUpperBound` it may be less: what the node itself or some of its pods use is unknown.
    `limitBytes` is the container's or pod's own limit (memory.max), `usedBytes` how much of it is in use
    (working set), `before` how many this mechanism ends before;
    `etaSeconds` is known where a store of metrics has seen memory grow in a straight line. `rival` dies
    instead unless one process of the victim holds so much, each of `growing` once it alone has grown to so
    much, which is `grownBytes` of a victim; only `next` has these.
    """

    node: str
    mechanism: Mechanism
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
    eta_seconds: int | None
    rival: ContenderValues | None
    growing: tuple[ContenderValues, ...]
    grown_bytes: int | None


class DeathListValues(TimedDocument, frozen=True, kw_only=True, tag="DeathList"):
    """Who dies next, the nearest first: `next`."""

    items: tuple[DeathValues, ...]
    notes: tuple[str, ...]
    clusters: tuple[ClusterValues, ...] | UnsetType = UNSET


def death_list_values(deaths: Deaths) -> DeathListValues:
    """Deaths to come."""
    return DeathListValues(items=tuple(map(death_values, deaths.rows)), notes=tuple(notes(deaths)))


def death_values(row: DeathRow) -> DeathValues:
    """A death to come on a node."""
    (namespace, name), is_pod = row.death.key, row.death.qos is not None
    return DeathValues.of(
        row.death,
        node=row.node,
        namespace=namespace or None,
        pod=name if is_pod else None,
        process=None if is_pod else name,
        qos_class=row.death.qos,
        distance_is_upper_bound=row.death.is_upper_bound,
        rival=row.death.rival and ContenderValues.of(row.death.rival),
        growing=tuple(map(ContenderValues.of, row.death.growing)),
        eta_seconds=None if row.seconds is None else round(row.seconds),
        freed_bytes=row.death.frees_bytes,
    )


def kill_list_values(kills: Sequence[Kill], notes: Sequence[str]) -> KillListValues:
    """Kills with their evidence."""
    return KillListValues(items=tuple(map(kill_values, kills)), notes=tuple(notes))


def kill_values(kill: Kill) -> KillValues:
    """A kill with its evidence."""
    diagnosis = kill.diagnosis
    return KillValues.of(
        kill,
        mechanism=diagnosis.mechanism,
        confidence=diagnosis.confidence,
        oom_score=kill.score,
        evidence=tuple(
            EvidenceValues.of(
                one,
                reason=camel(f"_{one.fact.name.lower()}"),
                details=plain(one.details),
                message=evidence_sentence(one),
            )
            for one in diagnosis.evidence
        ),
        to_be_certain=need_sentence(diagnosis.needs, kill.node) if diagnosis.needs is not None else None,
        kernel=_report_values(kill.report) if kill.report is not None else None,
        choice=_choice_values(kill.choice),
    )


_MOST_USERS: Final = 10


def _report_values(report: OomReport) -> ReportValues:
    full, memory = report.memory.full, report.memory
    users = memory_users(report)[:_MOST_USERS]
    return ReportValues.of(
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
        users=tuple(UserValues.of(user, oom_score_adj=user.adj) for user in users),
        killed=tuple(
            KilledProcess.of(
                one,
                command=one.comm,
                rss_bytes=_bytes(one.rss_kb),
                oom_score_adj=one.adj,
                reaped=one.pid in report.reaped,
            )
            for one in report.processes
        ),
    )


def _bytes(kib: int | None) -> int | None:
    return None if kib is None else kib << 10


def _choice_values(choice: VictimChoice | Unranked | None) -> ChoiceValues | None:
    if choice is None:
        return None
    if isinstance(choice, Unranked):
        return ChoiceValues(unranked=choice.value)
    return ChoiceValues.of(
        choice,
        unranked=None,
        place=choice.chosen.place,
        tied=len(choice.tied),
        candidates=tuple(
            CandidateValues.of(
                one, pid=one.task.pid, command=one.task.name, oom_score_adj=one.task.adj, oom_score=one.score
            )
            for one in choice.ranked
        ),
    )


def simulation_values(node_state: NodeState, simulation: Simulation) -> SimulationValues:
    """A simulation with every step."""
    scenario = simulation.scenario
    return SimulationValues(
        node=node_state.setup.node.name,
        scenario=ScenarioValues.of(
            scenario,
            restarting=scenario.restarts,
            grow=tuple(_growth_values(node_state, one.container, one.to_bytes) for one in scenario.growth),
        ),
        total_bytes=node_state.total_bytes,
        before=LevelValues.of(simulation.before),
        after=LevelValues.of(simulation.after),
        reached=simulation.is_reached,
        first_important_step=simulation.first_important,
        steps=tuple(_step_values(number, step) for number, step in enumerate(simulation.steps, start=1)),
        reaches=tuple(map(_reach_values, simulation.distances)),
        refused=tuple("/".join(key) for key in simulation.refused),
        summary=simulation_summary(simulation),
        notes=tuple(simulation_notes(node_state, simulation)),
    )


def _growth_values(node_state: NodeState, index: int | None, to_bytes: int) -> GrowthValues:
    namespace = name = container = None
    if index is not None:
        growing = node_state.containers[index]
        (namespace, name), container = node_state.pod_for(growing).key, growing.name
    return GrowthValues(namespace=namespace, pod=name, container=container, to_bytes=to_bytes)


def _step_values(number: int, step: SimulationStep) -> StepValues:
    return StepValues.of(
        step,
        step=number,
        namespace=step.key[0] or None,
        pod=step.key[1] if step.qos is not None else None,
        process=step.key[1] if step.qos is None else None,
        qos_class=step.qos,
        oom_score_adj=step.adj,
        oom_score=step.score,
        freed_bytes=step.freed.free_bytes,
        freed_working_set_bytes=step.freed.available_bytes,
        after=LevelValues.of(step.level),
        restarted=step.restarts,
        pod_restarted=step.restart is Restart.POD,
        important=tuple(ImportantValues(reason=one.why, message=one.what) for one in step.important),
        refused=tuple("/".join(key) for key in step.refused),
    )


def _reach_values(reach: MechanismDistance) -> ReachValues:
    namespace, pod = reach.key
    return ReachValues.of(reach, factor=round(reach.factor, 4), namespace=namespace or None, pod=pod)

"""Fixes as values: edits that delay a next death, their claims, and the evidence of the need.

A claim is proven on a model of the node: the edit is applied to its pods, and the same death is looked up in
the new state. Bytes throughout. Not here: the search (fix_search.py), when an edit takes effect (preview.py),
and the words (present/fix_sentences.py).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from math import inf
from operator import attrgetter
from typing import Any, Final, NamedTuple

from msgspec import structs

from kubectl_qos.edit.edits import (
    POD_LEVEL,
    Edit,
    Side,
    apply_edits,
    lowers_cpu_limit,
    memory_value,
    own_edits,
)
from kubectl_qos.edit.goals import UNIT_BYTES, keep_burstable, least_units, raise_request
from kubectl_qos.edit.preview import Effects, Preview, RankedPods, StrategyKind, When, as_recreated, preview
from kubectl_qos.edit.related import recommended_edits
from kubectl_qos.k8s.allocation import desired_pod, limit_in_force, running_pod
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kinds import WORKLOADS, find_workload
from kubectl_qos.k8s.kubelet import (
    DEFAULT_EVICTION_HARD,
    MEMORY_AVAILABLE,
    Kubelet,
    NodeSetup,
    threshold_bytes,
)
from kubectl_qos.k8s.managers import VerticalAutoscaler
from kubectl_qos.k8s.node_overrides import NodeOverride, apply_overrides
from kubectl_qos.k8s.objects import MEMORY, Pod, all_containers
from kubectl_qos.k8s.quantity import ZERO, in_bytes
from kubectl_qos.k8s.releases import Gate
from kubectl_qos.k8s.resources import pod_requests
from kubectl_qos.k8s.usage import ContainerKey, ContainerUsage, PodKey, PodUsage
from kubectl_qos.qos.eviction import Due, evictable_capacity, memory_threshold, schedulable_bytes
from kubectl_qos.qos.killers import EVICTING
from kubectl_qos.qos.prediction import Prediction
from kubectl_qos.qos.qos_class import QosClass, computed_class
from kubectl_qos.qos.ranking import Profiles, rank_node, with_pods
from kubectl_qos.qos.resize import ResizeStatus, node_fit
from kubectl_qos.qos.restart import is_refused, may_be_killed_again, was_killed_since_resize
from kubectl_qos.qos.simulation.ceiling import CeilingScope, MemoryLevel, Scenario
from kubectl_qos.qos.simulation.engine import Simulation, simulate
from kubectl_qos.qos.simulation.next_death import (
    NextDeath,
    Urgency,
    deaths_by,
    in_turn,
    next_deaths,
    own_deaths,
)
from kubectl_qos.qos.simulation.node_state import (
    NO_GROWTH,
    BuiltPods,
    Growth,
    NodeProcess,
    NodeState,
    ranked_node_state,
    with_ranking,
)


class EvidenceKind(StrEnum):
    """The evidence of a container's need, the least certain first."""

    NONE = "no usage"
    SAMPLE = "usage seen"
    NEVER_STARTED = "limit too small to start, need unknown"
    KILLED_EACH_TIME = "OOMKilled, need unknown"
    OOM_KILLED = "OOMKilled, perhaps at its limit"
    HISTORY = "peak seen"
    RECOMMENDED = "VPA recommends"


@dataclass(frozen=True, slots=True)
class NeedEvidence:
    """The most memory that a container was seen to need, and the kind of evidence.

    A container that was OOMKilled since its last resize needs at least its limit. If no run is known to have
    fit into the limit, the need is unknown and the limit is doubled.
    """

    kind: EvidenceKind
    peak_bytes: int = 0
    grows_without_end: bool = False
    """By the metrics history: no limit is enough."""
    lower_bytes: int | None = None
    """A VerticalPodAutoscaler keeps requests between this and `upper_bytes`."""
    upper_bytes: int | None = None

    @property
    def wanted_bytes(self) -> int:
        """Return the recommended limit: the peak with headroom."""
        return self.peak_bytes * (100 + HEADROOM_PERCENT[self.kind]) // 100


HEADROOM_PERCENT: Final = {
    EvidenceKind.NONE: 0,
    EvidenceKind.SAMPLE: 25,
    EvidenceKind.NEVER_STARTED: 100,
    EvidenceKind.KILLED_EACH_TIME: 100,
    EvidenceKind.OOM_KILLED: 50,
    EvidenceKind.HISTORY: 15,
    EvidenceKind.RECOMMENDED: 0,
}
"""The room of a limit above the peak, in percent of the peak: more for weaker evidence."""
LEAST_AT_START: Final = 16 << 20
"""The least assumed need of a container that a runtime could not start; twice that is enough for a start."""
KILLED: Final = frozenset(
    {EvidenceKind.NEVER_STARTED, EvidenceKind.KILLED_EACH_TIME, EvidenceKind.OOM_KILLED}
)
NEVER: Final = 1 << 62
"""More others than there can be, so the pod never dies this way."""


class FixKind(StrEnum):
    """What a fix does; a change of class is never a side effect of another kind."""

    LIMIT = "raise the limit"
    REQUEST = "raise the request"
    NEIGHBOUR = "limit a neighbour"
    CLASS = "change the class"
    RECOMMENDED = "as the VPA recommends"


class Claim(NamedTuple):
    """What a fix promises: `room_bytes` up to the limit, or `before` others that are killed first."""

    room_bytes: int = 0
    before: int = 0

    def is_kept(self, death: NextDeath | None) -> bool:
        """Return whether the death, if it still comes, is as far away as claimed."""
        if death is None:
            return True
        has_room = not self.room_bytes or death.distance_bytes >= self.room_bytes
        return has_room and death.before >= self.before


@dataclass(frozen=True, slots=True)
class Fix:
    """An edit of one pod (or of all pods of `workload`) with its proven effect."""

    kind: FixKind
    pod: Pod
    edits: tuple[Edit, ...]
    minimal: tuple[Edit, ...]
    """The smallest edits that keep the claim; `edits` may round them up to a friendly size."""
    claim: Claim
    death: NextDeath
    """The death that the fix delays."""
    after: NextDeath | None
    """The same death after the edit, None if it no longer comes; for NEIGHBOUR the neighbour's death."""
    evidence: NeedEvidence
    preview: Preview = field(repr=False)
    """The preview of `pod` on its node."""
    strategy: StrategyKind
    workload: tuple[str, str] | None = None
    sooner: NextDeath | None = None
    """An earlier death on the node, of the pod or its workload, that this edit does not prevent."""
    instead: NextDeath | None = None
    """The first of the others that the killer ends before `after`, if it ended none of them before."""
    node_pods: int = 1
    node_bytes: int = 0
    """How much more the `node_pods` of the workload request together on the node with the least room."""
    free_bytes: int | None = None
    """The bytes that this node has for further requests, None if unknown."""
    peak_bytes: int = 0
    """The most memory that `pod` was seen to need, all containers together; 0 if unknown."""

    @property
    def effects(self) -> Effects:
        """Return the effects with the times of the strategy."""
        return self.preview.effects_of(self.strategy)

    @property
    def when(self) -> When:
        """Return when the claim holds."""
        effects, is_killed = self.effects, not self.death.killer.evicts
        if self.kind in {FixKind.LIMIT, FixKind.NEIGHBOUR}:
            moments = [file.when for file in effects.files if file.file.startswith("memory.")]
            return max(moments, key=list(When).index, default=effects.when)
        if self.kind in {FixKind.REQUEST, FixKind.RECOMMENDED} and is_killed:
            return effects.scores_when
        return effects.when

    @property
    def more_bytes(self) -> int:
        """Return how much more memory each pod requests."""
        predictions = self.preview.before, self.preview.after
        old, new = (pod_requests(predicted.pod, predicted.setup.release) for predicted in predictions)
        return new.get(MEMORY, ZERO).value() - old.get(MEMORY, ZERO).value()

    @property
    def lowers_cpu_limit(self) -> bool:
        """Return whether a container gets a CPU limit, or a lower one."""
        return any(lowers_cpu_limit(self.pod, edit) for edit in self.edits)

    @property
    def times_peak(self) -> int:
        """Return how many times its peak the pod would request, 0 if unknown or less than twice.

        A limit's requests follow a need; others serve only to let other pods die first.
        """
        is_for_order = self.kind in {FixKind.REQUEST, FixKind.CLASS} and self.more_bytes > 0
        return times_requested(self.preview.after, self.peak_bytes) if is_for_order else 0

    @property
    def left_bytes(self) -> float:
        """Return the bytes that the node with the least room has left, infinite if unknown."""
        return inf if self.free_bytes is None else self.free_bytes - self.node_bytes

    @property
    def fits(self) -> bool:
        """Return whether the nodes have room for the requests."""
        return self.node_bytes <= 0 or self.left_bytes >= 0

    @property
    def puts_off(self) -> bool:
        """Return whether the death is further away; a VerticalPodAutoscaler's values may bring it nearer."""
        is_other = self.kind is not FixKind.RECOMMENDED
        return is_other or self.after is None or self.after.distance_bytes > self.death.distance_bytes


class NoFixReason(StrEnum):
    """Why a death has no fix."""

    PROCESS = "a process of the node"
    ANYBODY = "unknown victim"
    STATIC = "a static pod"
    LEAK = "grows without end"
    HAS_ROOM = "has room enough"
    RESIZING = "is being resized"
    LOW_POD_LIMIT = "a resize has not raised the limit of the pod"
    NO_USAGE = "no usage"
    NOT_BY_EDITS = "no request, limit or class puts it off"


class Unfixed(NamedTuple):
    """A death without a fix; `evidence` is set if the limit has enough headroom."""

    node: str
    death: NextDeath
    reason: NoFixReason
    evidence: NeedEvidence | None = None


@dataclass(frozen=True, slots=True)
class Fixes:
    """The fixes, the nearest death first, and the deaths without one; `states` are the nodes by name."""

    fixes: tuple[Fix, ...] = ()
    unfixed: tuple[Unfixed, ...] = ()
    states: Mapping[str, NodeState] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeModel:
    """A node on which edits are tried: its stored pods with their usage, and the node's own usage."""

    setup: NodeSetup
    pods: Sequence[Pod]
    usage: Mapping[PodKey, PodUsage]
    history: Mapping[ContainerKey, NeedEvidence] = field(default_factory=dict)
    """The needs of containers by the metrics history."""
    recommending: Mapping[PodKey, VerticalAutoscaler] = field(default_factory=dict)
    """The VerticalPodAutoscalers that recommend other values for pods."""
    offers: Mapping[ContainerKey, int] = field(default_factory=dict)
    """Limits in bytes that were offered before; they are offered again while they suffice."""
    growth: Growth = NO_GROWTH
    own_bytes: int | None = None
    own_processes: tuple[NodeProcess, ...] = ()
    profiles: Profiles | None = field(default=None, repr=False, compare=False)
    """Shared by nodes with the same memory and release."""

    @cached_property
    def _running(self) -> list[Pod]:
        return [running_pod(pod, self.setup.release) for pod in self.pods]

    @cached_property
    def _ranked(self) -> RankedPods:
        setup = self.setup
        ranking = rank_node(self._running, setup.node, setup.release, self.usage, self.profiles)
        return RankedPods(ranking, setup, self.usage)

    @cached_property
    def _built(self) -> BuiltPods:
        return {}

    @cached_property
    def _state(self) -> NodeState:
        own_bytes, own_processes, built = self.own_bytes, self.own_processes, self._built
        ranking = self._ranked.ranking
        state = ranked_node_state(
            ranking, self.setup, own_bytes=own_bytes, own_processes=own_processes, built=built
        )
        return replace(state, growth=self.growth)

    @cached_property
    def free_bytes(self) -> int | None:
        """Return the bytes that the node has for further memory requests; None if unknown."""
        pods = list(map(desired_pod, self._running))
        fits = node_fit(pods[0], pods[1:], self.setup, self._ranked.counted) if pods else ()
        return next((max(fit.free - fit.needed, 0) for fit in fits if fit.resource == MEMORY), None)

    @property
    def requested_bytes(self) -> int:
        """Return the bytes that the node's pods request as if recreated, without those that have ended."""
        living = (self.recreated(pod) for pod in self.pods if not pod.is_terminal)
        return sum(pod_requests(pod, self.setup.release).get(MEMORY, ZERO).value() for pod in living)

    def recreated(self, pod: Pod, edits: Iterable[Edit] = ()) -> Pod:
        """Return the defaulted pod as if recreated with the edits of its own containers."""
        return default_pod(as_recreated(apply_edits(pod, own_edits(pod, edits))), self.setup.release)

    def qos_class(self, pod: Pod, edits: Iterable[Edit] = ()) -> QosClass:
        """Return the class of the pod as if recreated with the edits."""
        return computed_class(self.recreated(pod, edits), self.setup.release)

    def more_bytes(self, pod: Pod, edits: Iterable[Edit]) -> int:
        """Return how much more memory the pod requests with the edits."""
        pods = self.recreated(pod), self.recreated(pod, edits)
        old, new = (pod_requests(changed, self.setup.release) for changed in pods)
        return new.get(MEMORY, ZERO).value() - old.get(MEMORY, ZERO).value()

    def state(self, keys: Collection[PodKey] = (), edits: Sequence[Edit] = ()) -> NodeState:
        """Return the node as if these pods were recreated with the edits, with unchanged usage.

        Raises InputError for a node that runs Windows.
        """
        changed = {pod.key: self.recreated(pod, edits) for pod in self.pods if pod.key in keys}
        if not changed:
            return self._state
        ranking = with_pods(self._ranked.ranking, changed, self.setup.release)
        return with_ranking(self._state, ranking, self._built)

    def preview(self, pod: Pod, edits: Iterable[Edit]) -> Preview:
        """Return the effects of edits on one of the node's pods."""
        return preview(pod, edits, self.setup, usage=self.usage, ranked=self._ranked)

    def evidence(self, pod: Pod, container: str) -> NeedEvidence:
        """Return a container's need: by its history, unless it was killed at a higher limit, or its usage."""
        history = self.history.get((pod.key, container))
        full_at = self.setup.node.full_at
        was_killed = was_killed_since_resize(pod, container, full_at)
        limit = limit_in_force(pod, container, self.setup.release) if was_killed else 0
        if history is not None and history.peak_bytes >= limit:
            return history
        usage = self.usage.get(pod.key)
        used = usage.of(container) if usage is not None else None
        peak = used.kernel_bytes if used is not None else 0
        if limit:
            if is_refused(pod, container):
                return NeedEvidence(EvidenceKind.NEVER_STARTED, max(limit, LEAST_AT_START))
            sampled_at = usage.timestamp if usage is not None else ""
            is_unknown = may_be_killed_again(pod, container, sampled_at, full_at)
            kind = EvidenceKind.KILLED_EACH_TIME if is_unknown else EvidenceKind.OOM_KILLED
            return NeedEvidence(kind, max(peak, limit), history is not None and history.grows_without_end)
        return NeedEvidence(EvidenceKind.SAMPLE if used is not None else EvidenceKind.NONE, peak)

    def pod_evidence(self, pod: Pod, limit_bytes: int | None) -> NeedEvidence:
        """Return the need of a whole pod; if containers were killed, it is at most the pod's limit."""
        evidences = [self.evidence(pod, container.name) for container in all_containers(pod)]
        most = max(evidences, key=lambda evidence: evidence.peak_bytes)
        grows = any(evidence.grows_without_end for evidence in evidences)
        peak = sum(evidence.peak_bytes for evidence in evidences)
        if most.kind in KILLED and limit_bytes:
            never_started = any(is_refused(pod, container.name) for container in all_containers(pod))
            peak = min(peak, max(limit_bytes, LEAST_AT_START if never_started else 0))
        return NeedEvidence(most.kind, peak, grows)

    def recommended(self, pod: Pod) -> tuple[list[Edit], NeedEvidence | None]:
        """Return the values that a VerticalPodAutoscaler would set, and its bounds; None without one."""
        autoscaler = self.recommending.get(pod.key)
        if autoscaler is None:
            return [], None
        names = {container.name for container in all_containers(pod)}
        target = lower = upper = 0
        for advice in autoscaler.recommended:
            if advice.container_name in names:
                target += advice.target.get(MEMORY, ZERO).value()
                lower += advice.lower_bound.get(MEMORY, ZERO).value()
                upper += advice.upper_bound.get(MEMORY, ZERO).value()
        evidence = NeedEvidence(EvidenceKind.RECOMMENDED, target, lower_bytes=lower, upper_bytes=upper)
        return [*recommended_edits(pod, autoscaler)], evidence

    def limit_edits(self, pod: Pod, owner: str, size_bytes: int) -> list[Edit]:
        """Return the edit of a limit, and of the pod's own limit if that is lower.

        A Guaranteed pod also gets requests that equal the limits.
        """
        counts = self.setup.release.enabled(Gate.POD_LEVEL_RESOURCES)
        of_pod = memory_value(pod, POD_LEVEL, Side.LIMITS) if counts else 0
        owners = [owner, POD_LEVEL] if owner != POD_LEVEL and 0 < of_pod < size_bytes else [owner]
        edits = [Edit(owner, Side.LIMITS, MEMORY, in_bytes(size_bytes)) for owner in owners]
        if self.qos_class(pod) is QosClass.GUARANTEED:
            written = [owner for owner in owners if memory_value(pod, owner, Side.REQUESTS)]
            edits += [Edit(owner, Side.REQUESTS, MEMORY, in_bytes(size_bytes)) for owner in written]
        return edits

    def request_edits(self, pod: Pod, sizes: Mapping[str, int]) -> list[Edit]:
        """Return the edits with these requests in Mi, in the pod's class unless it is BestEffort."""
        edits: list[Edit] = []
        for owner, units in sizes.items():
            edits += raise_request(self.recreated(pod, edits), owner, units * UNIT_BYTES)
        if not edits or self.qos_class(pod) is QosClass.GUARANTEED:
            return edits
        return keep_burstable(pod, edits, self.setup.release)


def order_of_fixes(fix: Fix) -> tuple[Urgency, bool, bool, bool, bool, int, int]:
    """Return a sort key: the next death first.

    Then effective, fitting, not far above usage, class-keeping, early, small fixes.
    """
    when, more, is_far = list(When).index(fix.when), max(fix.more_bytes, 0), fix.times_peak > 0
    return fix.death.urgency, not fix.puts_off, not fix.fits, is_far, fix.kind is FixKind.CLASS, when, more


def times_requested(after: Prediction, used_bytes: int) -> int:
    """Return how many times its usage a pod requests; 0 if that is unknown, or less than twice."""
    requested = pod_requests(after.pod, after.setup.release).get(MEMORY, ZERO).value()
    times = requested // used_bytes if used_bytes else 0
    return times if times > 1 else 0


def strategy_for(pod: Pod, seen: Preview) -> StrategyKind:
    """Return in-place if the kubelet can do that, else through the template, unless it is a Job's."""
    can_resize = seen.outcome.answer is not ResizeStatus.INFEASIBLE and not pod.is_terminal
    if seen.strategy_kind is StrategyKind.IN_PLACE and can_resize:
        return StrategyKind.IN_PLACE
    has_template = find_workload(pod).kind in WORKLOADS.keys() - {"Job"}
    return StrategyKind.TEMPLATE if has_template else StrategyKind.RECREATE


def as_started(model: NodeModel, loops: Mapping[PodKey, Collection[str]]) -> NodeModel:
    """Return the node as if these containers ran and used all of the limits that killed them."""
    pods, usage = list(model.pods), dict(model.usage)
    for index, pod in enumerate(model.pods):
        names, of_pod = loops.get(pod.key, ()), model.usage.get(pod.key)
        if names:
            run = {
                part: tuple(
                    # A container without a state counts as running.
                    structs.replace(status, state=None) if status.name in names else status
                    for status in getattr(pod.status, part) or ()
                )
                for part in ("init_container_statuses", "container_statuses")
            }
            pods[index] = structs.replace(pod, status=structs.replace(pod.status, phase="Running", **run))
            measured = {name: of_pod.of(name) for name in of_pod.names} if of_pod else {}
            # The usage of other containers counts for the pod's limit too.
            own = (container.name for container in all_containers(pod))
            used = {name: measured.get(name) or ContainerUsage(0) for name in own}
            release = model.setup.release
            at_limit = {name: ContainerUsage(limit_in_force(pod, name, release)) for name in names}
            usage[pod.key] = PodUsage.of_containers(used | at_limit)
    return replace(model, pods=pods, usage=usage)


def same_death(state: NodeState, death: NextDeath) -> NextDeath | None:
    """Return the same death in another state of its node; None if it does not come there."""
    if not death.killer.is_node_wide:
        return same_of_pod(own_deaths(state, death.key), death)
    firsts = [first for first in deaths_by(state, death.killer) if _kind(first) == _kind(death)]
    return next((turn for first in firsts for turn in in_turn(state, first, {death.key})), None)


def first_instead(state: NodeState, death: NextDeath) -> NextDeath | None:
    """Return the first death of another pod by the same killer of the node; None if its usage is unknown."""
    firsts = (first for first in deaths_by(state, death.killer) if _kind(first) == _kind(death))
    other = next((first for first in firsts if first.key != death.key), None)
    return None if other is None or state.lacks_usage(other.key) else other


def same_of_pod(deaths: Iterable[NextDeath], death: NextDeath) -> NextDeath | None:
    """Return the same death of the pod in another state of its node, None if it does not come there."""
    if death.killer.is_node_wide:
        return next((other for other in deaths if _kind(other) == _kind(death)), None)
    own = [other for other in deaths if not other.killer.is_node_wide]
    own.sort(key=attrgetter("distance_bytes"))
    of_pod = death.killer.scope is CeilingScope.POD
    same = [
        other
        for other in own
        if other.killer is death.killer and (of_pod or other.container == death.container)
    ] or [
        other for other in own if other.container == death.container or other.killer.scope is CeilingScope.POD
    ]
    return same[0] if same else None


def _kind(death: NextDeath) -> tuple[str, int | None]:
    return death.mechanism, death.grace_seconds


def friendly(size_bytes: int) -> int:
    """Round up to a size in whole Mi that is easy to read, by at most an eighth."""
    units = -(-size_bytes // UNIT_BYTES)
    step = 1 << max(units.bit_length() - 4, 0)
    return -(-units // step) * step * UNIT_BYTES


SOFT_GRACE_SECONDS: Final = 30
RESERVE_PERCENT: Final = 125
"""The share of the node's own usage to reserve: above 100, because the usage is a single sample."""


@dataclass(frozen=True, slots=True)
class KubeletFix:
    """Fields of a KubeletConfiguration, and the node with them.

    `least_bytes` is the smallest hard threshold that evicts first. `cost_bytes` is the memory that pods can
    no longer request, `missing_bytes` the part of the present requests that no longer fits. `evicted_now` are
    the pods that the kubelet evicts as soon as it has the settings, because less than the threshold is
    `available`. `soft_bytes` is the soft threshold for the growth, which is left out if pods that use what
    they use now, or request, leave less: `soft_room_bytes`.
    """

    before: NodeSetup
    setup: NodeSetup
    fields: Mapping[str, Any]
    growth_bytes: int
    own_bytes: int
    reserved_bytes: int
    threshold_bytes: int
    least_bytes: int
    cost_bytes: int
    missing_bytes: int
    evicted_now: tuple[PodKey, ...]
    available: MemoryLevel
    soft_bytes: int
    soft_room_bytes: int

    @property
    def configuration(self) -> dict[str, Any]:
        """Return a KubeletConfiguration with only these fields."""
        return {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", **self.fields}


def late_state(state: NodeState, growth_bytes: int) -> NodeState:
    """Return the node with thresholds lowered by the growth (bytes a second) until the kubelet evicts."""
    late, thresholds = growth_bytes * EVICTING.delay_seconds, state.thresholds
    hard = {"node_bytes": thresholds.node_bytes, "kubepods_bytes": thresholds.kubepods_bytes}
    later = {name: size - late for name, size in hard.items() if size is not None}
    thresholds = thresholds._replace(**later, soft_bytes=None)
    return replace(state, thresholds=thresholds, due=Due.NO)


def evicts_first(model: NodeModel, growth_bytes: int) -> bool:
    """Return whether the hard threshold is reached before other limits of the whole node."""
    deaths = next_deaths(late_state(model.state().require_capacity(), growth_bytes))
    of_node = (death for death in deaths if death.killer.is_node_wide)
    first = min(of_node, key=attrgetter("distance_bytes"), default=None)
    return first is not None and first.killer.evicts


def _system_reserved(kubelet: Kubelet, own_bytes: int) -> dict[str, str]:
    """Return the systemReserved that, with kubeReserved, keeps what the node itself uses."""
    kube_reserved = kubelet.kube_reserved.get(MEMORY, ZERO).value()
    of_system = friendly(max(own_bytes * RESERVE_PERCENT // 100 - kube_reserved, 0))
    amounts = {**kubelet.system_reserved, MEMORY: in_bytes(of_system)}
    return {name: str(amount) for name, amount in amounts.items()}


def _with_threshold(model: NodeModel, size_bytes: int) -> NodeModel:
    """Return the node with this hard threshold for memory, beside those for other signals."""
    hard = {**model.setup.kubelet.eviction_hard, MEMORY_AVAILABLE: str(in_bytes(size_bytes))}
    text = ",".join(f"{signal}<{amount}" for signal, amount in hard.items())
    return replace(model, setup=apply_overrides(model.setup, [NodeOverride("evictionHard", text)]))


def _soft_threshold(kubelet: Kubelet, size_bytes: int) -> dict[str, Mapping[str, Any]]:
    """Return the fields of a soft threshold for memory, beside those for other signals."""
    size, grace = str(in_bytes(size_bytes)), f"{SOFT_GRACE_SECONDS}s"
    return {
        "evictionSoft": {**kubelet.eviction_soft, MEMORY_AVAILABLE: size},
        "evictionSoftGracePeriod": {**kubelet.eviction_soft_grace_period, MEMORY_AVAILABLE: grace},
    }


def _evictions_at_once(model: NodeModel) -> Simulation:
    """Return whom the kubelet evicts by its hard threshold without growth; its soft one may be older."""
    state = model.state()
    state = replace(state, thresholds=state.thresholds._replace(soft_bytes=None))
    return simulate(state, Scenario(eviction=True))


def fix_kubelet(model: NodeModel, growth_bytes: int = 0) -> KubeletFix | None:
    """Return the smallest settings that make the kubelet evict first.

    None if it does already, if no settings help, or if the node's memory is unknown. Memory grows by
    `growth_bytes` a second.
    """
    setup = model.setup
    kubelet, capacity = setup.kubelet, setup.node.memory_capacity_bytes or 0
    if capacity < setup.node.page_size_bytes:
        return None
    kubepods, own_bytes = setup.node.allocatable_memory_bytes, model.own_bytes or 0
    reserved = kubelet.reserved_memory_bytes if kubepods is None else capacity - kubepods
    with_reserved, fields = setup, dict[str, Any]()
    if own_bytes > reserved:
        fields["systemReserved"] = texts = _system_reserved(kubelet, own_bytes)
        text = ",".join(map("=".join, texts.items()))
        with_reserved = apply_overrides(setup, [NodeOverride("systemReserved", text)])
        reserved = with_reserved.kubelet.reserved_memory_bytes
        if reserved >= capacity:
            return None

    requested = model.requested_bytes
    in_use = max(model.state().use.working_set, requested)
    soft, room = 0, max((evictable_capacity(setup) or 0) - own_bytes - in_use, 0)
    now = memory_threshold(kubelet.eviction_hard.get(MEMORY_AVAILABLE), capacity) or 0
    after, least = replace(model, setup=with_reserved), now
    if not evicts_first(after, growth_bytes):
        reserving = after

        def suffices(number: int) -> bool:
            return evicts_first(_with_threshold(reserving, number * UNIT_BYTES), growth_bytes)

        units = least_units(0, capacity // UNIT_BYTES, suffices)
        if units is None:
            return None
        least = units * UNIT_BYTES
        default = 0 if growth_bytes else threshold_bytes(DEFAULT_EVICTION_HARD[MEMORY_AVAILABLE], capacity)
        hard = max(friendly(least), default)
        after = _with_threshold(reserving, hard)
        fields["evictionHard"] = dict(after.setup.kubelet.eviction_hard)
        grown_bytes = growth_bytes * (SOFT_GRACE_SECONDS + EVICTING.delay_seconds)
        soft = friendly(hard + grown_bytes) if growth_bytes else 0
        if 0 < soft <= room:
            fields |= _soft_threshold(kubelet, soft)
    if not fields or not evicts_first(after, growth_bytes):
        return None
    left = schedulable_bytes(after.setup.node) or 0
    at_once = _evictions_at_once(after)
    return KubeletFix(
        before=setup,
        setup=after.setup,
        fields=fields,
        growth_bytes=growth_bytes,
        own_bytes=own_bytes,
        reserved_bytes=reserved,
        threshold_bytes=threshold_bytes(after.setup.kubelet.eviction_hard.get(MEMORY_AVAILABLE), capacity),
        least_bytes=least,
        cost_bytes=max((schedulable_bytes(setup.node) or 0) - left, 0),
        missing_bytes=max(requested - left, 0) if left else 0,
        evicted_now=tuple(step.key for step in at_once.steps),
        available=at_once.before,
        soft_bytes=soft,
        soft_room_bytes=room,
    )

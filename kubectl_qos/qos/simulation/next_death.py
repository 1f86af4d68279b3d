"""Next deaths on a node: which limit or threshold is near, its victim, its distance and its time.

The killers of qos/killers/ race. Distances are bytes of growth within the limit's scope: a container, a pod,
all pods, or the node. The simulation (engine.py) chooses victims, so the kernel's is rank 1. A soft threshold
must be crossed for its grace period (pkg/kubelet/eviction/helpers.go, thresholdsMetGracePeriod). Not here:
what follows a death.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import chain
from math import inf
from operator import attrgetter, itemgetter
from typing import Final, NamedTuple

from msgspec import structs

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.qos.eviction import Due
from kubectl_qos.qos.killers import BY_ID, OWN_LIMITS, PRECEDENCE, Killer
from kubectl_qos.qos.killers.killer import Choice, Contender
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.simulation.ceiling import (
    Ceiling,
    CeilingScope,
    ContainerGrowth,
    MemoryTimeline,
    Scenario,
)
from kubectl_qos.qos.simulation.engine import Run
from kubectl_qos.qos.simulation.node_state import Growth, NodeProcess, NodeState, state_of_node


class Precedent(StrEnum):
    """Evidence that a container reaches its limit."""

    LOOP = "killed there again and again"
    KILLED = "killed there before"
    PEAK = "its peak reached it"


class Urgency(NamedTuple):
    """Sort key of deaths: the smallest is the most urgent."""

    seconds: float
    """Until a death that is due or foreseeable; infinite for others, which are sorted by fullness."""
    emptiness: float
    """Minus the share of the ceiling in use."""
    distance_bytes: int
    turn: int


HORIZON_SECONDS: Final = 1800
"""How far ahead growth counts: later deaths are ranked by fullness."""
PRECEDENT_POINTS: Final = 0.10
"""A ceiling with precedent counts as fuller by this share."""
LOOP_SECONDS: Final = 60
"""What is killed again and again comes after deaths that are foreseen within this time."""
FAR_PERCENT: Final = 80
"""A limit with a lower percentage in use is far, unless there is evidence that it is reached."""
SAMPLE_ERROR: Final = 1 / 400
"""By what share of a node's memory deaths on recorded nodes came sooner or later than samples predicted."""
FULL: Final = 0.995
"""The share of an own limit, 100 % when rounded, from which on any allocation may reach it."""
PEAK_SHARE: Final = 0.95
"""A sampled peak above this share of a ceiling has reached it."""


class NextDeath(NamedTuple):
    """A death to come: who dies, by which killer, and how far memory can grow until then."""

    mechanism: str
    distance_bytes: int
    """Growth until then, at most 0 if due."""
    key: PodKey
    """Namespace and name; only the name for a process of the node, both empty if the victim is unknown."""
    container: str
    """Empty if the whole pod ends."""
    qos: QosClass | None
    """None for a process of the node."""
    frees_bytes: int | None
    """What the node gets back (the kubelet's count for an eviction); None: unknown."""
    limit_bytes: int | None = None
    """The container's or pod's own limit (memory.max)."""
    used_bytes: int | None = None
    """Working set of the owner of that limit."""
    grace_seconds: int | None = None
    """Grace period of a soft threshold; None: the killer acts at once."""
    before: int = 0
    """How many others the killer ends first."""
    tied: int = 0
    """How many others have equal points."""
    is_own: bool = False
    """The limit is the container's, or that of a pod with one container."""
    is_upper_bound: bool = False
    """The distance may be shorter."""
    due: Due = Due.NO
    """Whether the node reports it."""
    rival: Contender | None = None
    """Dies instead unless one process of the victim is that large."""
    unless: Contender | None = None
    """The victim is the rival of this one."""
    growing: tuple[Contender, ...] = ()
    """Each becomes the victim by growing alone, before the killer acts."""
    grown_bytes: int | None = None
    """The size from which on it is the victim, if it grows alone."""
    earlier: "NextDeath | None" = None
    """A death that may come before: its victim is unknown, or the kubelet notices a full node too late."""
    ceiling_bytes: int = 0
    """Usage at which the killer acts."""
    seconds: float | None = None
    """Time until then if growth goes on linearly; None without known growth."""
    precedent: Precedent | None = None
    waits: bool = False
    """It was killed at this limit, and is again when it uses as much as before: nothing else is known."""
    starts: bool = False
    """It `waits` for its next start."""
    beyond: float = 0.0
    """Highest fullness of later killers of the node; for one of them, or for a limit of their victim."""

    @property
    def has_victim(self) -> bool:
        """Whether the victim is known."""
        return bool(self.key[1])

    @property
    def fullness(self) -> float:
        """Share of the ceiling in use."""
        return 1 - self.distance_bytes / self.ceiling_bytes if self.ceiling_bytes > 0 else 1.0

    @property
    def is_full(self) -> bool:
        """Whether an own limit is so full that any allocation may reach it."""
        return bool(self.limit_bytes) and self.fullness >= FULL

    @property
    def urgency(self) -> Urgency:
        """Due and foreseeable deaths first, by the time until the killer has noticed; then by fullness.

        A full own limit counts as due, and what is killed again and again as foreseen. Deaths that follow
        others or need the pod to grow alone are last.
        """
        if self.waits:
            is_loop = self.precedent is Precedent.LOOP
            return Urgency(LOOP_SECONDS if is_loop else inf, -1.0 if is_loop else 1.0, self.distance_bytes, 0)
        seconds = self.seconds if self.seconds is not None and self.seconds < HORIZON_SECONDS else inf
        if self.distance_bytes <= 0:
            seconds = self.grace_seconds or 0
        elif self.is_full:
            seconds = 0
        seconds += self.killer.delay_seconds
        if self.precedent is Precedent.LOOP:
            seconds = min(seconds, LOOP_SECONDS)
        points = PRECEDENT_POINTS if self.precedent else 0
        emptiness = -max(self.fullness, self.beyond) - points
        if self.is_later:
            return Urgency(inf, 1 + emptiness, self.distance_bytes, self.before)
        turn = 2 * PRECEDENCE[self.mechanism] + (self.unless is not None)
        return Urgency(seconds, emptiness, self.distance_bytes, turn)

    @property
    def is_later(self) -> bool:
        """Return whether other pods die before, unless this one grows alone."""
        return bool(self.before) or self.grown_bytes is not None

    @property
    def killer(self) -> Killer:
        """The killer."""
        return BY_ID[self.mechanism]


def next_deaths(state: NodeState, *, contests: bool = False) -> list[NextDeath]:
    """Return the nearest death by each limit and threshold, most urgent first.

    There are no distances without usage. Victims are chosen after known growth until then, otherwise as if
    others or the node grow. With `contests`, deaths also name who becomes the victim by growing alone.
    """
    run = Run(state, Scenario())
    return _in_order(loops(state), _most_urgent(run, _reached(run), contests=contests))


def first_deaths(state: NodeState, by: Collection[Killer] = (), *, contests: bool = False) -> list[NextDeath]:
    """Return the first of `next_deaths`, and the first by each of these killers, perhaps with others.

    Without known growth, deaths that cannot be the first are not computed.
    """
    run = Run(state, Scenario())
    reached = list(_reached(run))
    if not (state.growth.containers or state.growth.node):
        reached = _full_enough(run, reached, by)
    return _in_order(loops(state), _most_urgent(run, reached, contests=contests))


def loops(state: NodeState) -> list[NextDeath]:
    """Return the deaths of containers that are killed again and again; without usage only of stopped ones."""
    return [
        death
        for death in repeated_deaths(state)
        if death.starts or (death.precedent is Precedent.LOOP and not state.is_unmeasured)
    ]


def repeated_deaths(state: NodeState) -> list[NextDeath]:
    """Return the deaths of killed containers at the same limits."""
    at = {killer.scope: killer.id for killer in OWN_LIMITS}
    return [
        NextDeath(
            mechanism=at[CeilingScope.POD if killed.is_of_pod else CeilingScope.CONTAINER],
            distance_bytes=0,
            key=killed.pod.key,
            container=killed.name,
            qos=killed.qos,
            frees_bytes=0 if killed.starts else None,
            limit_bytes=killed.limit_bytes,
            is_own=killed.is_own,
            ceiling_bytes=killed.limit_bytes,
            precedent=Precedent.LOOP if killed.is_looping else Precedent.KILLED,
            waits=True,
            starts=killed.starts,
        )
        for killed in state.killed
    ]


def _in_order(*deaths: Iterable[NextDeath]) -> list[NextDeath]:
    return sorted(chain.from_iterable(deaths), key=attrgetter("urgency"))


def deaths_by(state: NodeState, killer: Killer) -> list[NextDeath]:
    """Return the next deaths by a killer of the node, most urgent first."""
    run = Run(state, Scenario())
    return _most_urgent(run, [at for at in _reached(run, ()) if at[0].killer == killer.id])


def own_deaths(state: NodeState, key: PodKey) -> list[NextDeath]:
    """Return the next deaths of one pod by its own limits, nearest first."""
    run = Run(state, Scenario())
    own = [(ceiling, alone) for ceiling, alone in _reached(run, {key}) if not ceiling.scope.is_wide]
    return sorted(_most_urgent(run, own), key=attrgetter("distance_bytes"))


def deaths_of(state: NodeState, keys: Collection[PodKey], *, contests: bool = False) -> list[NextDeath]:
    """Return the deaths of these pods at own limits, and of the first of them by each killer of the node.

    Most urgent first. A killer of the node reaches a pod after all victims before it, and after other pods
    use the memory that they freed. With `contests` also deaths that come sooner: if the pod grows alone, if
    processes of the victim before it are small, or if the killer's victim is unknown.
    """
    run = Run(state, Scenario())
    nearest = _most_urgent(run, _reached(run, keys), contests=contests)
    deaths = [death for death in nearest if not death.killer.is_node_wide and death.key in keys]
    for first in nearest:
        if not first.has_victim:
            deaths += [first] if contests else []
        elif first.killer.is_node_wide:
            deaths += in_turn(state, first, keys)
        grows = next((growing for growing in first.growing if growing.key in keys), None)
        if grows is not None:
            frees_bytes = grows.used_bytes + first.distance_bytes
            grown = _victim_instead(first, grows, frees_bytes)
            deaths.append(grown._replace(grown_bytes=grows.size_bytes))
        rival = first.rival
        if contests and rival is not None and first.qos is not None and rival.key in keys:
            used_bytes, size_bytes = first.frees_bytes or 0, rival.size_bytes
            other = Contender(*first.key, first.container, first.qos, used_bytes, size_bytes)
            deaths.append(_victim_instead(first, rival, rival.used_bytes)._replace(unless=other))
    later = [death for death in deaths if death.is_later]
    deaths = [death for death in deaths if not death.is_later] + _by_distance(later)
    again = (death for death in loops(state) if death.key in keys)
    return _in_order(again, _nearest_of_pod(deaths))


def in_turn(state: NodeState, first: NextDeath, keys: Collection[PodKey]) -> Iterator[NextDeath]:
    """Yield the death of the first of these pods that a killer reaches after its other victims, if any."""
    distance, before = first.distance_bytes, 0
    run = Run(_state_at_death(state, first.killer.scope, first.key, distance), Scenario())
    without_stats = {pod.key for pod in state.without_stats}
    evicts = first.killer.evicts
    while (ended := run.end(first.mechanism)) is not None:
        freed = ended.freed.available_bytes if evicts else ended.freed.free_bytes
        if ended.key in keys:
            yield first._replace(
                distance_bytes=distance,
                key=ended.key,
                container=ended.container,
                qos=ended.qos,
                frees_bytes=None if state.lacks_usage(ended.key) else freed,
                before=before,
                tied=ended.choice.tied,
                seconds=None if before else first.seconds,
                rival=ended.choice.rival,
                growing=() if before else first.growing,
            )
            return
        distance += freed
        before += ended.key not in without_stats


def seconds_by_victim(snapshot: Snapshot, node: str) -> dict[object, float]:
    """Return the seconds until victims die at the growth in the metrics history.

    Keys are (mechanism, pod, container); (pod, container) for the earliest death of a container; (pod, "") of
    a pod. Times count from the present usage even if the snapshot has peaks.
    """
    history = snapshot.history
    if history.stat:
        snapshot = replace(snapshot, usage=history.now, history=structs.replace(history, stat=""))
    times: dict[object, float] = {}
    try:
        state = state_of_node(snapshot, node)
    except InputError:
        return times
    for death in next_deaths(state) if state.growth.containers else ():
        if death.seconds is not None:
            exact = death.mechanism, death.key, death.container
            for key in ((death.key, ""), (death.key, death.container), exact):
                times[key] = min(death.seconds, times.get(key, death.seconds))
    return times


def seconds_until(death: NextDeath, growth: Growth) -> float | None:
    """Return the time until a death in seconds if growth goes on linearly; None without growth.

    A killer of the node acts by the growth of the node, a limit by that of its container or pod.
    """
    rate = _rate(growth, death.killer.scope, death.key, death.container)
    return max(death.distance_bytes, 0) / rate + (death.grace_seconds or 0) if rate > 0 else None


def _rate(growth: Growth, scope: CeilingScope, key: PodKey, container: str = "") -> float:
    if scope.is_wide:
        return growth.node
    if scope is CeilingScope.POD:
        return growth.pods.get(key, 0.0)
    return growth.containers.get((key, container), 0.0) if growth.containers else 0.0


def _most_urgent(
    run: Run, reached: Iterable[tuple[Ceiling, Sequence[int]]], *, contests: bool = False
) -> list[NextDeath]:
    state, reached, by_urgency = run.timeline.state, list(reached), attrgetter("urgency")
    if state.is_unmeasured:
        return []
    growth = tuple(
        ContainerGrowth(alone[0], state.containers[alone[0]].used_bytes + max(ceiling.distance_bytes, 0))
        for ceiling, alone in reached
        if len(alone) == 1
    )
    # At a pod's limit other pods do not matter, so all grow in one run.
    grown = Run(state, Scenario(growth=growth)) if growth else run
    grown.timeline.finish()
    own, wide = list[NextDeath](), list[NextDeath]()
    for ceiling, alone in reached:
        death = _death_at(run, ceiling, grown if len(alone) == 1 else run, contests=contests)
        if death is not None:
            (wide if ceiling.scope.is_wide else own).append(death)
    wide = sorted(_by_distance(wide), key=by_urgency)
    pairs = ((death, _earlier(death, wide)) for death in wide)
    wide = [death if earlier is None else death._replace(earlier=earlier) for death, earlier in pairs]
    return _in_order(_nearest_of_pod([*own, *wide]))


def _nearest_of_pod(deaths: Sequence[NextDeath]) -> Iterator[NextDeath]:
    """Yield the deaths; limits that are not far come before farther killers of the node with that victim."""
    of_nodes = dict[PodKey, list[NextDeath]]()
    for death in deaths:
        if death.killer.is_node_wide and not death.is_later:
            of_nodes.setdefault(death.key, []).append(death)
    for death in deaths:
        is_near = not death.killer.is_node_wide and death.fullness * 100 >= FAR_PERCENT
        of_node = of_nodes.get(death.key, ()) if is_near else ()
        farther = (other.fullness for other in of_node if other.distance_bytes >= death.distance_bytes)
        beyond = max(farther, default=0.0)
        yield death._replace(beyond=beyond) if beyond > death.fullness else death


def _by_distance(wide: Sequence[NextDeath]) -> list[NextDeath]:
    """Return deaths by killers of the node, as full as all that are farther, so that the nearer is first."""

    # Memory of pods fills the node too, so what is nearer is reached first.
    def beyond(death: NextDeath) -> float:
        return max(other.fullness for other in wide if other.distance_bytes >= death.distance_bytes)

    return [death._replace(beyond=beyond(death)) for death in wide]


def _earlier(death: NextDeath, deaths: Sequence[NextDeath]) -> NextDeath | None:
    """Return a death on the node that may come before: by an unknown order, or in a race with the kubelet."""
    unforeseen = next((other for other in deaths if not other.has_victim), death)
    if unforeseen.urgency < death.urgency:
        return unforeseen
    races = (other for other in deaths if other.has_victim and (_race(death, other) or _race(other, death)))
    return next(races, None)


def _race(eviction: NextDeath, kill: NextDeath) -> bool:
    """Return whether samples cannot tell if the kubelet evicts or the kernel kills first.

    Memory may run out after the threshold, but before the kubelet has noticed; or both are equally near.
    """
    if not eviction.killer.evicts or kill.killer.evicts:
        return False
    is_soft, is_due = eviction.grace_seconds is not None, eviction.distance_bytes <= 0
    apart = abs(kill.distance_bytes - eviction.distance_bytes)
    if not is_soft and not is_due and apart < SAMPLE_ERROR * kill.ceiling_bytes:
        return True
    if eviction.seconds is None or kill.seconds is None:
        return False
    return 0 <= kill.seconds - eviction.seconds < eviction.killer.delay_seconds


def _reached(run: Run, keys: Collection[PodKey] | None = None) -> Iterator[tuple[Ceiling, Sequence[int]]]:
    """Yield reachable ceilings, nearest first, with the containers that can reach a pod's limit alone.

    These are ceilings of the node and of its pods, only of pods with these keys if given. A container does
    not reach its limit if the limit of its pod is as near. A pod does not reach its limit if its containers
    reach theirs before. Ceilings with unmeasured containers are left out.
    """
    state, members = run.timeline.state, run.timeline.pod_containers
    unmeasured, of_containers = state.use.unmeasured, CeilingScope.CONTAINER
    ceilings = list(chain.from_iterable(run.ceilings.values()))
    if keys is not None:
        pods = {index for index, pod in enumerate(state.pods) if pod.key in keys}
        owners = {CeilingScope.POD: pods, of_containers: {index for pod in pods for index in members[pod]}}
        ceilings = [at for at in ceilings if at.owner < 0 or at.owner in owners[at.scope]]
    nearest = sorted([(ceiling.distance_bytes, ceiling) for ceiling in ceilings], key=itemgetter(0))
    to_container, to_pod, of_node = dict[int, int](), dict[int, int](), set[object]()
    for distance, ceiling in nearest:
        if ceiling.owner >= 0 and (not unmeasured or unmeasured.isdisjoint(_bounded(run, ceiling))):
            (to_container if ceiling.scope is of_containers else to_pod)[ceiling.owner] = distance
    for distance, ceiling in nearest:
        owner, alone = ceiling.owner, list[int]()
        if owner < 0:
            kind = ceiling.killer, ceiling.is_soft
            is_reached = kind not in of_node
            of_node.add(kind)
        elif ceiling.scope is of_containers:
            to_limit_of_pod = to_pod.get(state.containers[owner].pod_index, inf)
            is_reached = owner in to_container and distance < to_limit_of_pod
        elif owner in to_pod:
            alone = [index for index in members[owner] if to_container.get(index, inf) >= distance]
            together = sum(max(to_container[index], 0) for index in members[owner]) if not alone else inf
            is_reached = together > distance
        else:
            is_reached = False
        if is_reached:
            yield ceiling, alone


def _full_enough(
    run: Run, reached: Sequence[tuple[Ceiling, Sequence[int]]], by: Collection[Killer]
) -> list[tuple[Ceiling, Sequence[int]]]:
    """Drop ceilings that are too empty, even with precedent, to be the first of all or of these killers."""
    fullest: dict[str, float] = {}
    for ceiling, _ in reached:
        if not run.timeline.immune.issuperset(_bounded(run, ceiling)):
            fullness = ceiling.used_bytes / ceiling.latest_bytes
            fullest[ceiling.killer] = max(fullness, fullest.get(ceiling.killer, 0.0))
    needed = dict.fromkeys(PRECEDENCE, max(fullest.values(), default=0.0))
    needed |= {killer.id: fullest.get(killer.id, 0.0) for killer in by}

    def least(killer: str) -> float:
        return min(needed[killer] - PRECEDENT_POINTS, FAR_PERCENT / 100)

    enough = {
        ceiling
        for ceiling, _ in reached
        if ceiling.distance_bytes <= 0
        or any(run.timeline.state.containers[index].is_looping for index in _bounded(run, ceiling))
        or ceiling.used_bytes >= least(ceiling.killer) * ceiling.latest_bytes
    }
    # The order of the node's own ceilings depends on all of them (NextDeath.beyond).
    has_wide = any(ceiling.scope.is_wide for ceiling in enough)
    return [
        (ceiling, alone)
        for ceiling, alone in reached
        if ceiling in enough or (has_wide and ceiling.scope.is_wide)
    ]


def _bounded(run: Run, ceiling: Ceiling) -> Sequence[int]:
    """Return the containers bounded by their own limit, or by their pod's."""
    if ceiling.owner < 0:
        return ()
    return (
        run.timeline.pod_containers[ceiling.owner] if ceiling.scope is CeilingScope.POD else (ceiling.owner,)
    )


def _death_at(run: Run, ceiling: Ceiling, grown: Run, *, contests: bool) -> NextDeath | None:
    """Return the death at a ceiling, None if nothing can die there.

    `grown` is the node at that time if one container grows to its pod's limit alone, otherwise `run`. Known
    growth overrules it.
    """
    bounded = _bounded(run, ceiling)
    if len(bounded) == 1:
        is_immune = bounded[0] in run.timeline.immune
        return None if is_immune else _death(run, run, ceiling, Choice(bounded[0]))
    state, growth_bytes = run.timeline.state, max(ceiling.distance_bytes, 0)
    key = state.pods[ceiling.owner].key if ceiling.scope is CeilingScope.POD else ("", "")
    at_death = _state_at_death(state, ceiling.scope, key, growth_bytes)
    if at_death is not state:
        grown = Run(at_death, Scenario())
    order, choice = grown.order(ceiling.killer), grown.choose(ceiling.killer, ceiling.owner)
    if order is not None and choice.victim is None:
        return None
    death = _death(run, grown, ceiling, choice)
    if not contests or order is None:
        return death
    room = growth_bytes if grown is run else 0
    growing = order.growing(ceiling.owner, room, _ended_by_own_limits(run, room))
    unknown = {state.pod_for(state.containers[index]).key for index in state.use.unmeasured}
    return death._replace(growing=tuple(other for other in growing if other.key not in unknown))


def _ended_by_own_limits(run: Run, growth_bytes: int) -> set[int]:
    """Return the containers that reach their own limit, or their pod's, by growing less than that."""
    ended = set[int]()
    for ceiling in chain.from_iterable(run.ceilings.values()):
        if not ceiling.scope.is_wide and max(ceiling.distance_bytes, 0) < growth_bytes:
            ended.update(_bounded(run, ceiling))
    return ended


def _death(run: Run, grown: Run, ceiling: Ceiling, choice: Choice) -> NextDeath:
    """Return the death of a victim of the node as it has `grown` until then; `run` is the node now."""
    state, scope, victim, killer = grown.timeline.state, ceiling.scope, choice.victim, BY_ID[ceiling.killer]
    is_measured = not state.use.unmeasured
    death = NextDeath(
        mechanism=ceiling.killer,
        distance_bytes=ceiling.distance_bytes,
        key=("", ""),
        container="",
        qos=None,
        frees_bytes=None,
        used_bytes=run.timeline.pod_working_set(ceiling.owner) if scope is CeilingScope.POD else None,
        tied=choice.tied,
        is_upper_bound=scope.is_wide
        and (
            ceiling.at_bytes is None
            or killer.is_upper_bound(is_node_measured=state.is_node_measured, is_measured=is_measured)
        ),
        # If samples show it already, the node's report adds nothing.
        due=ceiling.due if ceiling.distance_bytes >= 0 else Due.NO,
        rival=choice.rival,
        ceiling_bytes=ceiling.latest_bytes,
    )
    if isinstance(victim, NodeProcess):
        death = death._replace(key=("", victim.name), frees_bytes=victim.used_bytes)
    elif victim is not None and killer.ends_whole_pods:
        death = _of_pod(death, grown.timeline, victim, ceiling.grace_seconds)
    elif victim is not None:
        death = _of_container(death, run, grown.timeline, ceiling, victim)
    seconds = seconds_until(death, state.growth)
    return death if seconds is None else death._replace(seconds=seconds)


def _of_pod(death: NextDeath, timeline: MemoryTimeline, victim: int, grace_seconds: int | None) -> NextDeath:
    """Return the death as that of the whole pod with this index."""
    pod, frees_bytes = timeline.state.pods[victim], None
    if not timeline.state.lacks_usage(pod.key):
        level = timeline.usage_of(timeline.pod_containers[victim])
        frees_bytes = level.available_bytes if death.killer.evicts else level.free_bytes
    return death._replace(key=pod.key, qos=pod.qos, frees_bytes=frees_bytes, grace_seconds=grace_seconds)


def _of_container(
    death: NextDeath, run: Run, timeline: MemoryTimeline, ceiling: Ceiling, victim: int
) -> NextDeath:
    """Return the death as that of the container with this index, with the limit that it reaches."""
    state, scope = timeline.state, ceiling.scope
    dying = state.containers[victim]
    pod = state.pod_for(dying)
    limit_bytes, used_bytes, is_own = None, death.used_bytes, scope is CeilingScope.CONTAINER
    if is_own:
        limit_bytes, used_bytes = dying.limit_bytes, dying.working_set_bytes
    elif scope is CeilingScope.POD:
        limit_bytes = pod.limit_bytes
        # A pod with one container has the same limit.
        is_own = [state.containers[index].limit_bytes for index in _bounded(run, ceiling)] == [limit_bytes]
    precedent, peak_bytes = None, state.growth.peaks.get((pod.key, dying.name), 0)
    if dying.was_killed and not scope.is_wide:
        precedent = Precedent.LOOP if dying.is_looping else Precedent.KILLED
    elif is_own and peak_bytes and peak_bytes >= PEAK_SHARE * ceiling.latest_bytes:
        precedent = Precedent.PEAK
    return death._replace(
        key=pod.key,
        container=dying.name,
        qos=pod.qos,
        frees_bytes=timeline.usages((victim,))[0] if dying.has_usage else None,
        limit_bytes=limit_bytes,
        used_bytes=used_bytes,
        is_own=is_own,
        precedent=precedent,
    )


def _victim_instead(death: NextDeath, victim: Contender, frees_bytes: int) -> NextDeath:
    key, container, qos = victim.key, victim.container, victim.qos_class
    other = death._replace(key=key, container=container, qos=qos, frees_bytes=frees_bytes)
    return other._replace(rival=None, growing=())


def _state_at_death(state: NodeState, scope: CeilingScope, key: PodKey, more_bytes: int) -> NodeState:
    """Return the node after it has grown by `more_bytes`; containers grow up to their limits."""
    growth, rate = state.growth, _rate(state.growth, scope, key)
    if rate <= 0:
        return state
    seconds, containers = max(more_bytes, 0) / rate, list(state.containers)
    for index, container in enumerate(containers):
        more = int(growth.containers.get((state.pod_for(container).key, container.name), 0.0) * seconds)
        if container.limit_bytes:
            more = min(more, max(container.most_bytes - container.used_bytes, 0))
        used, working_set = container.used_bytes + more, container.working_set_bytes + more
        containers[index] = structs.replace(container, used_bytes=used, working_set_bytes=working_set)
    return replace(state, containers=tuple(containers))

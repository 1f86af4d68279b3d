"""The next deaths on a node: which limit or threshold is near, whom it hits, and how far away that is.

The killers of qos/killers/ race. Distances are bytes of growth from now on, of those whom the limit holds: a
container, a pod, all pods, the whole node. Victims are those of the simulation (engine.py), so that the
kernel's is rank 1. A soft threshold must be crossed for its grace period (pkg/kubelet/eviction/helpers.go,
thresholdsMetGracePeriod). Not here: what comes after a death.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import chain, count
from typing import NamedTuple

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.qos.killers import BY_ID, Killer
from kubectl_qos.qos.killers.badness import BadnessOrder, Contender
from kubectl_qos.qos.killers.eviction import EvictionOrder
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.reason import Mechanism
from kubectl_qos.qos.simulation.ceiling import Ceiling, Scope
from kubectl_qos.qos.simulation.engine import Run
from kubectl_qos.qos.simulation.node_state import (
    NO_GROWTH,
    Growth,
    NodeProcess,
    NodeState,
    Scenario,
    growth_of,
    state_of_node,
)
from kubectl_qos.qos.simulation.timeline import LimitHit


class NextDeath(NamedTuple):
    """A death to come: how many bytes of growth until then, not above zero where it is due, and its victim.

    `container` is empty where the whole pod ends; a process of the node has no class, and its name as key.
    `frees_bytes` is what the node gets back, by the kubelet's count for an eviction, None where unknown.
    `limit_bytes` is the container's or pod's own limit (memory.max), `used_bytes` how much of it is in use
    (working set). `grace_seconds` is how long a soft threshold must be crossed, None for what acts at once.
    `before` is how many this mechanism ends before, `tied` how many others have equal points. `is_own` is
    whether the limit is the container's, or that of its pod, which is the same with one container.
    `is_upper_bound` is whether the distance is one. `rival` dies instead unless one process of the victim
    holds so much, each of `growing` once it alone has grown to so much: `grown_bytes` where it is the victim.
    """

    mechanism: Mechanism
    distance_bytes: int
    key: PodKey
    container: str
    qos: QosClass | None
    frees_bytes: int | None
    limit_bytes: int | None = None
    used_bytes: int | None = None
    grace_seconds: int | None = None
    before: int = 0
    tied: int = 0
    is_own: bool = False
    is_upper_bound: bool = False
    is_reported: bool = False
    rival: Contender | None = None
    growing: tuple[Contender, ...] = ()
    grown_bytes: int | None = None

    @property
    def killer(self) -> Killer:
        """Who ends it."""
        return BY_ID[self.mechanism]


def seconds_until(death: NextDeath, growth: Growth) -> float | None:
    """When a death comes if memory goes on growing as it does: a straight line; None without growth.

    The killers of the node are reached by the node's growth, a limit by that of its own container or pod.
    """
    rate = _rate(growth, death.killer.scope, death.key, death.container)
    return max(death.distance_bytes, 0) / rate + (death.grace_seconds or 0) if rate > 0 else None


def _rate(growth: Growth, scope: Scope, key: PodKey, container: str = "") -> float:
    if scope.is_wide:
        return growth.node
    if scope is Scope.POD:
        return growth.pods.get(key, 0.0)
    return growth.containers.get((key, container), 0.0)


def _state_at_death(state: NodeState, scope: Scope, key: PodKey, more_bytes: int) -> NodeState:
    """The node when so much more is used, where growth is known; a container grows up to its limit."""
    growth, rate = state.growth, _rate(state.growth, scope, key)
    if rate <= 0:
        return state
    seconds, containers = max(more_bytes, 0) / rate, []
    for container in state.containers:
        grown = int(growth.containers.get((state.pod_for(container).key, container.name), 0.0) * seconds)
        if container.limit_bytes:
            grown = min(grown, max(container.most_bytes - container.used_bytes, 0))
        used, working_set = container.used_bytes + grown, container.working_set_bytes + grown
        containers.append(replace(container, used_bytes=used, working_set_bytes=working_set))
    return replace(state, containers=tuple(containers))


def times_on_node(snapshot: Snapshot, node: str) -> dict[object, float]:
    """In how many seconds victims die by the growth that a store of metrics has seen, those known.

    By mechanism, pod and container; by pod and container, which is empty for the earliest time of the pod.
    They count from the present usage, also where the snapshot has the peaks.
    """
    growth = growth_of(snapshot.history.of(snapshot.by_node().get(node, ())))
    times: dict[object, float] = {}
    if growth is NO_GROWTH:
        return times
    try:
        state = state_of_node(replace(snapshot, usage=snapshot.history.now), node)
    except InputError:
        return times
    for death in next_deaths(state):
        seconds = seconds_until(death, growth)
        if seconds is not None:
            of_death = death.mechanism, death.key, death.container
            for key in ((death.key, ""), (death.key, death.container), of_death):
                times[key] = min(seconds, times.get(key, seconds))
    return times


def next_deaths(state: NodeState, most: int | None = None, *, contests: bool = False) -> list[NextDeath]:
    """The nearest death by each limit and each threshold, the nearest first, at `most` so many.

    Of the limits of one container's own only the nearer counts. Without usage there is no distance. Where
    growth is known, victims are those at the moment of death; else those if the others or the node grow. With
    `contests` they also say who else may die in their place.
    """
    if state.is_unmeasured:
        return []
    run = Run(state, Scenario())
    members = run.timeline.pod_containers
    unknown = {index for index, container in enumerate(state.containers) if not container.has_usage}
    deaths: dict[object, NextDeath] = {}
    ceilings = chain.from_iterable(run.ceilings.values())
    for more_bytes, ceiling in sorted(
        [(ceiling.distance_bytes, ceiling) for ceiling in ceilings], key=_distance
    ):
        if len(deaths) == most:
            break
        scope, owner = ceiling.scope, ceiling.owner
        if scope is Scope.CONTAINER and (owner in deaths or owner in unknown):
            continue
        if scope is Scope.POD and (
            deaths.keys() >= set(members[owner]) or not unknown.isdisjoint(members[owner])
        ):
            continue
        chooses = owner < 0 or (scope is Scope.POD and len(members[owner]) > 1)
        key = state.pods[owner].key if scope is Scope.POD else ("", "")
        at_death = _state_at_death(state, scope, key, more_bytes) if chooses else state
        then = run if at_death is state else Run(at_death, Scenario())
        choice = _victim(then, ceiling)
        if choice is None:
            continue
        kind = choice[0] if owner >= 0 else (ceiling.killer, ceiling.is_soft)
        if kind not in deaths:
            death = _death(then, at_death, ceiling, choice)
            if scope is Scope.POD:
                death = death._replace(used_bytes=run.timeline.pod_working_set(owner))
            order = then.order(ceiling.killer) if contests and chooses else None
            if isinstance(order, BadnessOrder | EvictionOrder):
                room = max(more_bytes, 0) if at_death is state else 0
                rival, growing = order.contest(owner, room, _ended_before(run, room))
                death = death._replace(rival=rival, growing=growing)
            is_bound = scope.is_wide and (
                ceiling.at_bytes is None
                or death.killer.is_upper_bound(state.own_bytes, is_measured=not unknown)
            )
            is_reported = state.reports_pressure and not more_bytes
            deaths[kind] = death._replace(is_upper_bound=is_bound, is_reported=is_reported)
    return list(deaths.values())


def _ended_before(run: Run, room_bytes: int) -> set[int]:
    """The containers that a limit of their own, or of their pod, ends before so much more is used."""
    near = (
        ceiling
        for ceiling in chain.from_iterable(run.ceilings.values())
        if not ceiling.scope.is_wide and max(ceiling.distance_bytes, 0) < room_bytes
    )
    members = run.timeline.pod_containers
    return {
        container
        for ceiling in near
        for container in (members[ceiling.owner] if ceiling.scope is Scope.POD else [ceiling.owner])
    }


def _distance(pair: tuple[int, Ceiling]) -> int:
    return pair[0]


def _victim(run: Run, ceiling: Ceiling) -> tuple[int | NodeProcess, int] | None:
    """Whom it hits, by index of the container or of the pod that ends, and how many others are equal."""
    members = [ceiling.owner]
    if ceiling.scope is Scope.POD:
        members = run.timeline.pod_containers[ceiling.owner]
    if not ceiling.scope.is_wide and len(members) == 1:
        return None if members[0] in run.timeline.immune else (members[0], 0)
    choice = run.choose(ceiling.killer, ceiling.owner)
    return None if choice.victim is None else (choice.victim, choice.tied)


def deaths_of(state: NodeState, keys: Collection[PodKey], *, contests: bool = False) -> list[NextDeath]:
    """The deaths that wait for one pod or the first of some: by own limits, and by each killer of the node.

    Those come when all before it have ended and what they freed has been used again; with `contests` also
    sooner, if it alone grows.
    """
    nearest = next_deaths(state, contests=contests)
    deaths = [death for death in nearest if not death.killer.picks_among_pods and death.key in keys]
    for first in nearest:
        if first.killer.picks_among_pods:
            deaths += in_turn(state, first, keys)
        grows = next((growing for growing in first.growing if growing.key in keys), None)
        if grows is not None:
            itself = first._replace(key=grows.key, container=grows.container, qos=grows.qos_class, rival=None)
            frees = grows.used_bytes + first.distance_bytes
            deaths.append(itself._replace(grown_bytes=grows.size_bytes, frees_bytes=frees, growing=()))
    return sorted(deaths, key=lambda death: death.distance_bytes)


def _death(run: Run, state: NodeState, ceiling: Ceiling, choice: tuple[int | NodeProcess, int]) -> NextDeath:
    mechanism, more_bytes = ceiling.killer, ceiling.distance_bytes
    victim, tied = choice
    if isinstance(victim, NodeProcess):
        return NextDeath(mechanism, more_bytes, ("", victim.name), "", None, victim.used_bytes, tied=tied)
    killer = BY_ID[mechanism]
    if killer.ends_pods:
        pod = state.pods[victim]
        level = run.held(run.timeline.pod_containers[victim])
        freed = level.available_bytes if killer.evicts else level.free_bytes
        grace = ceiling.grace_seconds
        frees_bytes = None if state.lacks_usage(pod.key) else freed
        return NextDeath(mechanism, more_bytes, pod.key, "", pod.qos, frees_bytes, grace_seconds=grace)
    container = state.containers[victim]
    pod = state.pods[container.pod_index]
    is_own, limit_bytes, used_bytes = ceiling.scope is Scope.CONTAINER, None, None
    if is_own:
        limit_bytes, used_bytes = container.limit_bytes, container.working_set_bytes
    elif ceiling.scope is Scope.POD:
        limit_bytes = pod.limit_bytes
        is_own = _is_alone(run, state, ceiling.owner)
    return NextDeath(
        mechanism,
        more_bytes,
        pod.key,
        container.name,
        pod.qos,
        container.used_bytes if container.has_usage else None,
        limit_bytes,
        used_bytes,
        tied=tied,
        is_own=is_own,
    )


def _is_alone(run: Run, state: NodeState, pod: int) -> bool:
    """Whether the limit of a pod is that of its only container."""
    limits = [state.containers[index].limit_bytes for index in run.timeline.pod_containers[pod]]
    return limits == [state.pods[pod].limit_bytes]


def in_turn(state: NodeState, first: NextDeath, keys: Collection[PodKey]) -> Iterator[NextDeath]:
    """When the killer of a first death reaches one of some pods, one victim after another; none if never."""
    distance = first.distance_bytes
    run = Run(_state_at_death(state, first.killer.scope, first.key, distance), Scenario())
    for before in count():
        step = run.act(LimitHit(0.0, first.mechanism))
        if step is None:
            return
        freed = step.freed.available_bytes if step.evicts else step.freed.free_bytes
        if step.key in keys:
            yield first._replace(
                distance_bytes=distance,
                key=step.key,
                container=step.container,
                qos=step.qos,
                frees_bytes=None if state.lacks_usage(step.key) else freed,
                before=before,
                tied=step.tied,
                rival=None if before else first.rival,
                growing=() if before else first.growing,
            )
            return
        distance += freed

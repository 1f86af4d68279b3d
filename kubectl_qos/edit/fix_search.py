"""The search for fixes: for each next death, edits that delay it, each tried before it is offered.

The least sufficient value is found by bisection, in whole Mi. Not here: the next deaths
(qos/simulation/next_death.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, islice
from math import inf
from operator import attrgetter
from typing import Final, NamedTuple

from kubectl_qos.edit.edits import POD_LEVEL, Edit, Side, effective_edits, memory_value
from kubectl_qos.edit.fixes import (
    KILLED,
    NEVER,
    Claim,
    EvidenceKind,
    Fix,
    Fixes,
    FixKind,
    NeedEvidence,
    NodeModel,
    NoFixReason,
    Unfixed,
    as_started,
    first_instead,
    friendly,
    order_of_fixes,
    same_death,
    same_of_pod,
    strategy_for,
)
from kubectl_qos.edit.goals import UNIT_BYTES, drop_redundant, least_units, reach_class
from kubectl_qos.edit.preview import StrategyKind
from kubectl_qos.k8s.allocation import is_resizing, low_pod_limit, resize_condition
from kubectl_qos.k8s.objects import MEMORY, Pod
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.k8s.validation import pod_refusals
from kubectl_qos.qos.eviction import schedulable_bytes
from kubectl_qos.qos.killers import KILLERS, Killer
from kubectl_qos.qos.oom_score import is_critical, is_mirror, is_static, most_adj
from kubectl_qos.qos.qos_class import QosClass, computed_class, is_decided_at_pod_level
from kubectl_qos.qos.resize import ResizeStatus
from kubectl_qos.qos.simulation.ceiling import CeilingScope, ContainerGrowth, Scenario
from kubectl_qos.qos.simulation.engine import Ended, Run, simulate
from kubectl_qos.qos.simulation.next_death import (
    NextDeath,
    Urgency,
    deaths_of,
    next_deaths,
    own_deaths,
    repeated_deaths,
)
from kubectl_qos.qos.simulation.node_state import NodeState, SimulatedContainer

MOST_GUARANTEED_EDITS: Final = 2
"""A pod that needs more edits to become Guaranteed is left in its class."""


def fixes_of_node(
    model: NodeModel, keys: Collection[PodKey] | None = None, *, only_nearest: bool = False
) -> Fixes:
    """Return fixes for the next deaths of all or some pods on a node, or only for the nearest death.

    Raises InputError for a node that runs Windows.
    """
    search = _Search(model)
    return _collect(_deaths_of_node(search, keys), [search], only_nearest=only_nearest)


def next_urgency(model: NodeModel, keys: Collection[PodKey] | None) -> Urgency | None:
    """Return the urgency of the first death that `fixes_of_node` would search for; None without one.

    Raises InputError for a node that runs Windows.
    """
    deaths = _deaths_of_node(_Search(model), keys)
    return next((death.urgency for _, death in deaths), None)


def _deaths_of_node(search: _Search, keys: Collection[PodKey] | None) -> Iterator[tuple[_Search, NextDeath]]:
    """Yield the deaths to search for, most urgent first, each with its search."""
    now = ((search, death) for death in search.deaths() if keys is None or death.key in keys)
    again = _loops([search.model], search.pods.keys() if keys is None else keys)
    yield from sorted(chain(now, again), key=lambda pair: pair[1].urgency)


def fixes_of_pods(
    models: Sequence[NodeModel],
    keys: Collection[PodKey],
    workload: tuple[str, str] | None = None,
    by: Collection[Killer] = KILLERS,
) -> Fixes:
    """Return fixes for the deaths of some pods by these killers.

    With `workload` (kind and name), all pods get the same edits: for each kind of death, those that the pod
    nearest to its limit needs. Raises InputError for a node that runs Windows.
    """
    searches = [_Search(model, keys, workload) for model in models]
    places = ((search, key) for search in searches for key in keys if key in search.pods)
    own = ((search, death) for search, key in places for death in search.deaths({key}))
    pairs = chain(_loops(models, keys, workload), own)
    deaths = [(search, death) for search, death in pairs if death.killer in by]
    if workload is not None:
        worst: dict[object, tuple[_Search, NextDeath]] = {}
        deaths.sort(key=lambda pair: pair[0].missing(pair[1]), reverse=True)
        for search, death in deaths:
            worst.setdefault((death.mechanism, death.container, death.grace_seconds), (search, death))
        deaths = list(worst.values())
    collected = _collect(deaths, searches)

    # Last those without room; a stable sort keeps the order otherwise.
    fixes = sorted(collected.fixes, key=lambda fix: fix.death.killer.is_node_wide and not fix.fits)
    return replace(collected, fixes=tuple(fixes))


def _loops(
    models: Iterable[NodeModel], keys: Collection[PodKey], workload: tuple[str, str] | None = None
) -> Iterator[tuple[_Search, NextDeath]]:
    """Yield the deaths of OOMKilled containers that reach the same limit again.

    The search is on the node as if they ran and used as much as before.
    """
    for model in models:
        killed = (death for death in repeated_deaths(model.state()) if death.key in keys)
        again = {(death.key, death.container): death for death in killed}
        names = dict[PodKey, set[str]]()
        for key, container in again:
            names.setdefault(key, set()).add(container)
        if not names:
            continue
        search = _Search(as_started(model, names), keys, workload, real=model)
        for key in names:
            of_pod = next(death for death in again.values() if death.key == key)
            for death in own_deaths(search.state, key):
                before = again.get((key, death.container))
                if before is None and death.killer.scope is CeilingScope.POD:
                    before = of_pod
                if before is not None:
                    yield search, death._replace(waits=True, starts=before.starts, precedent=before.precedent)


def _collect(
    deaths: Iterable[tuple[_Search, NextDeath]], searches: Sequence[_Search], *, only_nearest: bool = False
) -> Fixes:
    collected: list[Fix] = []
    unfixed = []
    for search, death in deaths:
        if collected and only_nearest:
            break
        reason = search.obstacle(death)
        offered = [] if reason else search.fixes(death)
        fixes = [fix for fix in offered if all(other.keeps_limits_safe(fix) for other in searches)]
        for fix in fixes:
            # Show the node that has the least memory left after all of its pods get the edits.
            on_nodes = filter(None, (node.on_node(fix) for node in searches))
            tightest = min(on_nodes, key=attrgetter("left_bytes"), default=fix)
            if not any(search.subsumes(other, tightest) for other in collected):
                collected.append(tightest)
        if not fixes:
            evidence = search.evidence(death) if reason is NoFixReason.HAS_ROOM else None
            unfixed.append(Unfixed(search.node, death, reason or NoFixReason.NOT_BY_EDITS, evidence))
    states = {search.node: replace(search.state) for search in searches}  # A copy has empty caches.
    return Fixes(tuple(sorted(collected, key=order_of_fixes)), tuple(unfixed), states)


_Outcome = tuple[NextDeath | None, Sequence[NextDeath]]


class _Change(NamedTuple):
    """Edits of a pod, the smallest ones that keep the claim, and the evidence of the need."""

    pod: Pod
    edits: Sequence[Edit]
    minimal: Sequence[Edit]
    claim: Claim
    evidence: NeedEvidence


class _Search:
    """The search for fixes on one node; with a workload, all of its pods (the group) get every edit."""

    def __init__(
        self,
        model: NodeModel,
        group: Collection[PodKey] = (),
        workload: tuple[str, str] | None = None,
        real: NodeModel | None = None,
    ) -> None:
        # The caches of a copy are freed with the search.
        self.model = replace(model)
        self._real = real or self.model
        self._group = frozenset(group) if workload is not None else frozenset()
        self._workload = workload
        self.pods = {pod.key: pod for pod in self._real.pods}
        self.node = model.setup.node.name
        self.state = self.model.state()
        self._tried: dict[tuple[PodKey, tuple[Edit, ...]], NodeState] = {}
        self._later: dict[tuple[object, ...], NextDeath | None] = {}

    @cached_property
    def _next_deaths(self) -> list[NextDeath]:
        return [death for death in next_deaths(self.state) if not death.waits]

    def deaths(self, keys: Collection[PodKey] | None = None) -> list[NextDeath]:
        """Return the next deaths on the node, or of some pods; without capacity only at own limits."""
        deaths = self._next_deaths if keys is None else deaths_of(self.state, keys)
        is_sized = self.state.capacity_bytes > 0
        return [death for death in deaths if not death.waits and (is_sized or not death.killer.is_node_wide)]

    def on_node(self, fix: Fix) -> Fix | None:
        """Return the fix with the requests of all pods of its workload on this node; None without pods."""
        more = [self.model.more_bytes(self.pods[key], fix.edits) for key in self._group & self.pods.keys()]
        if not more or fix.workload is None:
            return None
        return replace(fix, node_pods=len(more), node_bytes=sum(more), free_bytes=self.model.free_bytes)

    def obstacle(self, death: NextDeath) -> NoFixReason | None:
        """Return why a search is pointless, or None."""
        pod = self.pods.get(death.key)
        if pod is None:
            return NoFixReason.PROCESS if death.has_victim else NoFixReason.ANYBODY
        if self.state.lacks_usage(death.key) and death.killer.is_node_wide:
            return NoFixReason.NO_USAGE
        if not death.killer.is_node_wide:
            if self.evidence(death).grows_without_end:
                return NoFixReason.LEAK
            if self.missing(death) <= 0:
                return NoFixReason.HAS_ROOM
            condition = resize_condition(pod)
            if is_resizing(pod) and (condition is None or condition.reason != ResizeStatus.INFEASIBLE):
                later = self._death_after(death, ())
                if later is None or self.missing(later) <= 0:
                    is_low = low_pod_limit(pod) is not None
                    return NoFixReason.LOW_POD_LIMIT if is_low else NoFixReason.RESIZING
        return NoFixReason.STATIC if is_static(pod) or is_mirror(pod) else None

    def missing(self, death: NextDeath) -> int:
        """Return how many bytes a limit lacks to the peak with headroom; negative if it is above."""
        return (0 if death.killer.is_node_wide else self._wanted_room(death)) - death.distance_bytes

    def fixes(self, death: NextDeath) -> list[Fix]:
        """Return the fixes for a death."""
        fixes = [self._recommended(death)]
        if not death.killer.is_node_wide:
            # If the pod's limit is hit, raise that if possible, else the container's.
            of_pod = self._limit_of(death, POD_LEVEL) if death.killer.scope is CeilingScope.POD else None
            fixes.append(of_pod or self._limit_of(death, death.container))
        else:
            fixes += [*self._raised_requests(death), self._guaranteed(death), self._limited_neighbour(death)]
        return [fix for fix in fixes if fix is not None]

    def keeps_limits_safe(self, fix: Fix) -> bool:
        """Return whether a workload's fix brings none of its pods on this node nearer to a limit."""
        if fix.workload is None:
            return True
        after = self.model.state(self._group, fix.edits)
        return all(self._is_safe(key, own_deaths(after, key)) for key in self._group & self.pods.keys())

    def subsumes(self, fix: Fix, other: Fix) -> bool:
        """Return whether a fix also keeps the claim of `other`, a fix for another death of the pod."""
        if fix.pod is not other.pod or fix.edits == other.edits:
            return fix.pod is other.pod
        if fix.kind is not other.kind or fix.kind in {FixKind.LIMIT, FixKind.NEIGHBOUR}:
            return False
        is_other_death = fix.death.mechanism != other.death.mechanism
        return is_other_death and other.claim.is_kept(self._death_after(other.death, fix.edits))

    def evidence(self, death: NextDeath) -> NeedEvidence:
        """Return the need of the container; of the whole pod if the pod reaches its limit or is evicted."""
        pod = self.pods[death.key]
        if death.container and death.killer.scope is not CeilingScope.POD:
            return self.model.evidence(pod, death.container)
        return self.model.pod_evidence(pod, death.limit_bytes)

    def _wanted_room(self, death: NextDeath) -> int:
        containers = self._containers_of(death.key)
        if death.killer.scope is not CeilingScope.POD:
            containers = [container for container in containers if container.name == death.container]
        used = sum(container.used_bytes for container in containers)
        return max(self.evidence(death).wanted_bytes - used, 0)

    def _containers_of(self, key: PodKey) -> list[SimulatedContainer]:
        pods = zip(self.state.pods, self.state.use.members, strict=True)
        return [self.state.containers[index] for pod, own in pods if pod.key == key for index in own]

    def _recommended(self, death: NextDeath) -> Fix | None:
        """Return the values that a VerticalPodAutoscaler would set, without a claim."""
        pod = self.pods[death.key]
        edits, evidence = self.model.recommended(pod)
        if evidence is None:
            return None
        outcome = self._outcome(death, death.key, self._state_after(death, edits))
        return self._build(FixKind.RECOMMENDED, death, _Change(pod, edits, edits, Claim(), evidence), outcome)

    def _limit_of(self, death: NextDeath, owner: str) -> Fix | None:
        """Raise a limit to the peak with headroom."""
        claim, pod = Claim(room_bytes=self._wanted_room(death)), self.pods[death.key]
        now = memory_value(self.model.recreated(pod), owner, Side.LIMITS)

        def holds(units: int) -> bool:
            edits = self.model.limit_edits(pod, owner, units * UNIT_BYTES)
            return claim.is_kept(self._death_after(death, edits))

        high = -(-(now + self.missing(death)) // UNIT_BYTES) + 1
        least = least_units(now // UNIT_BYTES, high, holds, high - 1) if now else None
        if least is None:
            return None
        minimal = self.model.limit_edits(pod, owner, least * UNIT_BYTES)
        sizes = [friendly(least * UNIT_BYTES), least * UNIT_BYTES]
        kind, offered = self.evidence(death).kind, self.model.offers.get((death.key, owner), 0)
        if kind is EvidenceKind.KILLED_EACH_TIME:
            del sizes[0]  # No size is known to be enough: double the limit, and no more.
        elif kind not in KILLED and offered > now:
            # A number that changes with each sample is not trusted: half of the headroom may be used up.
            half = claim._replace(room_bytes=claim.room_bytes // 2)
            edits = self.model.limit_edits(pod, owner, offered)
            least_edits = minimal if offered > least * UNIT_BYTES else edits
            fix = self._offer(FixKind.LIMIT, death, half, edits, least_edits)
            if fix is not None:
                return fix
        offers = (self.model.limit_edits(pod, owner, size) for size in sizes)
        fixes = (self._offer(FixKind.LIMIT, death, claim, edits, minimal) for edits in offers)
        return next(filter(None, fixes), None)

    def _raised_requests(self, death: NextDeath) -> Iterator[Fix | None]:
        """Yield the least requests with which one more pod dies before, and as many as the room allows."""
        node, room = self.model.setup.node, self.model.free_bytes
        most = schedulable_bytes(node) or node.memory_capacity_bytes or 0
        room = most if room is None else room
        pod = self.pods[death.key]
        running = self.model.recreated(pod)
        owners = [container.name for container in (*running.init_containers, *running.containers)]
        if is_decided_at_pod_level(running, self.model.setup.release):
            owners = [POD_LEVEL]
        share = room // len(owners) // max(len(self._group), 1)
        requests = {owner: memory_value(running, owner, Side.REQUESTS) for owner in owners}
        sizes = {owner: (request + share) // UNIT_BYTES for owner, request in requests.items()}
        later = self._death_after(death, self.model.request_edits(pod, sizes))
        for before in dict.fromkeys((death.before + 1, later.before if later is not None else NEVER)):
            claim = Claim(before=before)
            edits = self._least_requests(death, claim, most) if before > death.before else None
            if edits:
                yield self._offer(FixKind.REQUEST, death, claim, edits, edits)

    def _least_requests(self, death: NextDeath, claim: Claim, most: int) -> list[Edit] | None:
        """Return the least requests with which enough others die before each container of the pod."""
        pod, sizes = self.pods[death.key], dict[str, int]()

        def is_late(sizes: Mapping[str, int], container: str = "") -> bool:
            after = self._state_after(death, self.model.request_edits(pod, sizes))
            return _is_after(claim.before, after, death, container)

        def least(owner: str, high: int, container: str = "", guess: int | None = None) -> int | None:
            now = memory_value(self.model.recreated(pod), owner, Side.REQUESTS) // UNIT_BYTES
            return least_units(now, high, lambda units: is_late({**sizes, owner: units}, container), guess)

        others = (ended for ended in _ended(self.state, death) if ended.key != death.key)
        last = next(islice(others, claim.before - 1, None), None) if claim.before < NEVER else None
        for owner, container in self._request_owners(death):
            if not is_late(sizes, container):
                guess = self._request_behind(death, last, owner, container) if last is not None else None
                size = least(owner, most // UNIT_BYTES, container, guess)
                if size is None:
                    return None
                sizes[owner] = size
        # Containers of a pod depend on each other: after one was raised, another may need less.
        trimmed: dict[str, int] = {}
        while len(sizes) > 1 and sizes != trimmed:
            trimmed = dict(sizes)
            for owner, size in trimmed.items():
                sizes[owner] = least(owner, size, guess=size) or size
                if is_late({other: units for other, units in sizes.items() if other != owner}):
                    del sizes[owner]
        edits = self.model.request_edits(pod, self._for_growth(death, claim, sizes, most))
        release, qos = self.model.setup.release, self.model.qos_class(pod, edits)

        def suffice(subset: Sequence[Edit]) -> bool:
            changed = self.model.recreated(pod, subset)
            is_fine = computed_class(changed, release) is qos and not pod_refusals(changed, release)
            return is_fine and claim.is_kept(self._death_after(death, subset))

        return drop_redundant(edits, suffice)

    def _for_growth(
        self, death: NextDeath, claim: Claim, sizes: Mapping[str, int], most: int
    ) -> Mapping[str, int]:
        """Return sizes of requests that also keep the claim for the size that containers have grown to."""
        pod = self.pods[death.key]

        def holds(owner: str, units: int) -> bool:
            edits = self.model.request_edits(pod, {**sizes, owner: units})
            return claim.is_kept(self._death_after(death, edits))

        for owner, _ in self._request_owners(death) if self.model.growth.containers else ():
            request = memory_value(self.model.recreated(pod), owner, Side.REQUESTS)
            now = sizes.get(owner) or request // UNIT_BYTES
            if not holds(owner, now):
                size = least_units(now, most // UNIT_BYTES, partial(holds, owner), now + 1)
                sizes = {**sizes, owner: size} if size is not None else sizes
        return sizes

    def _request_behind(self, death: NextDeath, last: Ended, owner: str, container: str) -> int:
        """Estimate the least request in Mi with which a container, or its pod, dies after another victim."""
        state, own = self.state, self._containers_of(death.key)
        if death.killer.evicts:
            excess = {
                pod.key: sum(part.working_set_bytes for part in self._containers_of(pod.key))
                - pod.request.value()
                for pod in state.pods
                if pod.key in {death.key, last.key}
            }
            request = memory_value(self.model.recreated(self.pods[death.key]), owner, Side.REQUESTS)
            return -(-(request + excess[death.key] - excess[last.key] + 1) // UNIT_BYTES)
        page, most = state.setup.node.page_size_bytes, (last.choice.points or 0) - 1
        used = max(part.used_bytes - part.others_bytes for part in own if container in {"", part.name})
        total = state.kubepods_bytes if death.killer.scope is CeilingScope.PODS else None
        adj = most_adj(used // page, most, (total or state.total_bytes) // page, state.kernel)
        return -(-(1000 - adj) * state.capacity_bytes // (1000 * UNIT_BYTES))

    def _request_owners(self, death: NextDeath) -> list[tuple[str, str]]:
        """Return the owners of the requests that decide, each with its container, or "" for the whole pod.

        For an eviction only the sum of a pod's requests counts, so only one is raised: that of the container
        that exceeds its request most.
        """
        running = self.model.recreated(self.pods[death.key])
        if is_decided_at_pod_level(running, self.model.setup.release):
            return [(POD_LEVEL, "")]
        if not death.killer.evicts:
            ephemeral = {container.name for container in running.ephemeral_containers}
            names = [container.name for container in self._containers_of(death.key)]
            return [(name, name) for name in names if name not in ephemeral]
        usage = self.model.usage.get(death.key)

        def excess(name: str) -> int:
            usage_now = usage.of(name) if usage is not None else None
            used = usage_now.working_set_bytes if usage_now is not None else 0
            return used - memory_value(running, name, Side.REQUESTS)

        return [(max((container.name for container in running.containers), key=excess), "")]

    def _guaranteed(self, death: NextDeath) -> Fix | None:
        """Make the pod Guaranteed if that takes few edits, and only values that are written already."""
        goal = reach_class(self.pods[death.key], QosClass.GUARANTEED, self.model.setup.release)
        if not 0 < len(goal.edits) <= MOST_GUARANTEED_EDITS or goal.to_choose:
            return None
        return self._offer(FixKind.CLASS, death, Claim(before=death.before + 1), goal.edits, goal.edits)

    def _limited_neighbour(self, death: NextDeath) -> Fix | None:
        """Limit the largest container without a limit, so that its growth kills itself and no other pod."""
        neighbour = self._unlimited(death)
        if neighbour is None or death.before:
            return None
        index, container, key = neighbour
        pod = self.pods[key]
        evidence, used = self.model.evidence(pod, container), self.state.containers[index].used_bytes
        to_bytes = used + max(death.distance_bytes, 0) + UNIT_BYTES
        evicts = death.killer.evicts
        if not evidence.peak_bytes or not _ends(self.state, index, to_bytes, death.key, evicts=evicts):
            return None
        wanted = max(evidence.wanted_bytes, memory_value(pod, container, Side.REQUESTS))
        least = -(-wanted // UNIT_BYTES) * UNIT_BYTES
        minimal = self.model.limit_edits(pod, container, least)

        def limited(edits: Sequence[Edit]) -> tuple[NodeState, int]:
            after = self.model.state({key}, edits)
            return after, after.find_container(key[1], container, key[0])

        after, place = limited(minimal)
        # The limit was chosen for memory alone: swap is additional room.
        claim = Claim(room_bytes=after.containers[place].most_bytes - used)
        for size in dict.fromkeys((friendly(least), least)):
            edits = self.model.limit_edits(pod, container, size)
            after, place = limited(edits)
            own = next((own for own in own_deaths(after, key) if own.container == container), None)
            is_kept = own is not None and claim.is_kept(own)
            if not is_kept or _ends(after, place, to_bytes, death.key, evicts=evicts):
                continue
            change, outcome = _Change(pod, edits, minimal, claim, evidence), self._outcome(death, key, after)
            fix = self._build(FixKind.NEIGHBOUR, death, change, outcome)
            if fix is not None and fix.kind is FixKind.NEIGHBOUR:
                return replace(fix, after=own, sooner=None)
        return None

    def _unlimited(self, death: NextDeath) -> tuple[int, str, PodKey] | None:
        """Return index, name and pod of the largest container without a limit.

        If growth is known, it has to grow at least as fast as the victim: otherwise a limit prevents nothing.
        None if there is none, or its pod is critical.
        """
        candidates, growth = list[int](), self.model.growth
        for index, container in enumerate(self.state.containers):
            pod = self.state.pod_for(container)
            is_limited = container.limit_bytes or pod.limit_bytes
            is_own = pod.key in {death.key, *self._group}
            rate = growth.containers.get((pod.key, container.name), 0)
            grows = rate >= growth.pods.get(death.key, 0) and bool(rate or not growth.containers)
            if not is_limited and not is_own and grows and not is_static(pod.pod) and not is_mirror(pod.pod):
                candidates.append(index)
        largest = max(candidates, key=lambda index: self.state.containers[index].used_bytes, default=None)
        if largest is None:
            return None
        container = self.state.containers[largest]
        key = self.state.pod_for(container).key
        return None if is_critical(self.pods[key]) else (largest, container.name, key)

    def _state_after(self, death: NextDeath, edits: Sequence[Edit]) -> NodeState:
        key = death.key, tuple(edits)
        if key not in self._tried:
            self._tried[key] = self.model.state(self._group or {death.key}, edits)
        return self._tried[key]

    def _outcome(self, death: NextDeath, key: PodKey, state: NodeState) -> _Outcome:
        """Return a death after edits of a pod or the group, and all deaths of the edited pods."""
        keys = self._group & self.pods.keys() or {key}
        deaths = [death for death in deaths_of(state, keys) if not death.waits]
        after = same_of_pod(deaths, death) if keys == {death.key} else same_death(state, death)
        return after, deaths

    def _death_after(self, death: NextDeath, edits: Sequence[Edit]) -> NextDeath | None:
        key = death.mechanism, death.grace_seconds, death.key, death.container, tuple(edits)
        if key not in self._later:
            self._later[key] = same_death(self._state_after(death, edits), death)
        return self._later[key]

    def _is_safe(self, key: PodKey, deaths: Iterable[NextDeath]) -> bool:
        """Return whether the pod's nearest limit keeps its distance, or at least the headroom."""
        old, new = _nearest_own(self._next_deaths, key), _nearest_own(deaths, key)
        if new is None:
            return True
        wanted = self._wanted_room(new)
        return new.distance_bytes >= (wanted if old is None else min(wanted, old.distance_bytes))

    def _offer(
        self, kind: FixKind, death: NextDeath, claim: Claim, edits: Sequence[Edit], minimal: Sequence[Edit]
    ) -> Fix | None:
        """Return the fix if it keeps its claim and brings no limit nearer; limits keep the class."""
        outcome = after, deaths = self._outcome(death, death.key, self._state_after(death, edits))
        if not claim.is_kept(after) or not self._is_safe(death.key, deaths):
            return None
        change = _Change(self.pods[death.key], edits, minimal, claim, self.evidence(death))
        fix = self._build(kind, death, change, outcome)
        changes_class = fix is not None and fix.kind is FixKind.CLASS
        return None if kind is FixKind.LIMIT and changes_class else fix

    def _build(self, kind: FixKind, death: NextDeath, change: _Change, outcome: _Outcome) -> Fix | None:
        """Return the fix with its effective edits; None if there is none, or a server would refuse them."""
        pod, claim, evidence = change.pod, change.claim, change.evidence
        edits, minimal = effective_edits(pod, change.edits), effective_edits(pod, change.minimal)
        seen = self._real.preview(pod, edits)
        if seen.refusals or not edits:
            return None
        workload = self._workload if pod.key in self._group else None
        strategy = strategy_for(pod, seen) if workload is None else StrategyKind.TEMPLATE
        if seen.before.qos_class is not seen.after.qos_class and kind is not FixKind.RECOMMENDED:
            kind = FixKind.CLASS
        after, sooner = outcome[0], _sooner(*outcome)
        fix = Fix(kind, pod, edits, minimal, claim, death, after, evidence, seen, strategy, workload, sooner)
        if after is not None and after.before and not death.before and fix.kind is not FixKind.NEIGHBOUR:
            fix = replace(fix, instead=first_instead(self._state_after(death, change.edits), after))
        rooms = (fit.free - fit.needed for fit in seen.node_fit if fit.resource == MEMORY)
        free = next((max(room + fix.more_bytes, 0) for room in rooms), None)
        peak = self.model.pod_evidence(pod, None).peak_bytes
        return replace(fix, node_bytes=fix.more_bytes, free_bytes=free, peak_bytes=peak)


def _sooner(after: NextDeath | None, deaths: Iterable[NextDeath]) -> NextDeath | None:
    """Return the first death that comes before the delayed one all the same."""
    limit = inf if after is None else after.distance_bytes
    nearer = (death for death in deaths if death.distance_bytes <= limit)
    first = min(nearer, key=attrgetter("urgency"), default=None)
    is_last = first is None or (after is not None and after.urgency <= first.urgency)
    return None if is_last else first


def _nearest_own(deaths: Iterable[NextDeath], key: PodKey) -> NextDeath | None:
    own = (death for death in deaths if death.key == key and not death.killer.is_node_wide)
    return min(own, key=attrgetter("distance_bytes"), default=None)


def _is_after(needed: int, state: NodeState, death: NextDeath, container: str) -> bool:
    """Return whether a killer ends `needed` others before this container ("": any container of the pod)."""
    others = 0
    for ended in _ended(state, death):
        if others >= needed:
            break
        if ended.key == death.key and container in {"", ended.container}:
            return False
        others += ended.key != death.key
    return True


def _ended(state: NodeState, death: NextDeath) -> Iterator[Ended]:
    """Yield the victims of a death's killer, one after another, without pods that have no stats."""
    run = Run(state, Scenario())
    without_stats = {pod.key for pod in state.without_stats}
    while (ended := run.end(death.mechanism)) is not None:
        if ended.key not in without_stats:
            yield ended


def _ends(state: NodeState, container: int, to_bytes: int, key: PodKey, *, evicts: bool) -> bool:
    """Return whether a pod dies while a container grows to a size."""
    growth = (ContainerGrowth(container, to_bytes),)
    return any(step.key == key for step in simulate(state, Scenario(growth=growth, eviction=evicts)).steps)

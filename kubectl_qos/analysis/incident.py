"""An incident report (`report`): kills, next deaths and fixes of a node, pod, workload or namespace.

Not here: the words (present/report.py), and the JSON (present/values/fixes.py).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from math import inf
from typing import Final, NamedTuple

from kubectl_qos.analysis.deaths import Deaths, deaths_of_pods, deaths_on_nodes
from kubectl_qos.analysis.fix_list import FixList, fixes_for_pods, fixes_on_nodes, node_model
from kubectl_qos.analysis.pod_table import PodRow, build_rows
from kubectl_qos.edit.fixes import Fix, Unfixed, fix_kubelet
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.allocation import RESIZE_IN_PROGRESS, RESIZE_PENDING
from kubectl_qos.k8s.events import Event, EventList, is_of_memory, is_of_node_memory
from kubectl_qos.k8s.kinds import Workload, find_workload
from kubectl_qos.k8s.objects import Condition, NodeObject, Pod
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.snapshot import PodsByNode, Scope, Snapshot
from kubectl_qos.qos.killers import KILLED, OWN_LIMITS, Mechanism
from kubectl_qos.qos.kills.analyze import Kill
from kubectl_qos.qos.kills.evidence import ENDS, SLACK_SECONDS, Evidence, ended_evidence
from kubectl_qos.qos.kills.report import seconds_between
from kubectl_qos.qos.simulation.next_death import NextDeath

MOST_DEATHS: Final = 10
"""Deaths described in detail, newest first."""
MOST_STATES: Final = 5
"""Deaths for which past state is queried, newest first."""
BEFORE: Final = timedelta(minutes=1)
"""How long before a death its past state is taken."""
DEATHS: Final = frozenset(mechanism.verb for mechanism in Mechanism)
"""Timeline words for deaths."""


class IncidentSubject(NamedTuple):
    """The object of the report: kind (Node, Pod, a workload's, Namespace, Cluster), namespace and name."""

    kind: str
    namespace: str = ""
    name: str = ""


class ContainerEnd(NamedTuple):
    """A container exit that was not a memory kill."""

    pod: Pod
    container: str
    evidence: Evidence


class Rollout(NamedTuple):
    """A rollout, seen by the first pods of a ReplicaSet."""

    workload: Workload
    replica_set: str
    pods: int


class ConditionChange(NamedTuple):
    """The last change of a condition of a pod or node."""

    about: Pod | NodeObject
    condition: Condition


class TimelineItem(NamedTuple):
    """An event at a time (RFC 3339 or ""); `what` labels it."""

    time: str
    what: str
    fact: Kill | ContainerEnd | Rollout | ConditionChange | Event


@dataclass(frozen=True, slots=True)
class Death:
    """A death, and `earlier` ones of the same container by the same mechanism, newest first."""

    kill: Kill
    earlier: tuple[Kill, ...]
    rows: tuple[PodRow, ...]
    """Pods of its node in kill order at `state_time`; today's if the killer chose among pods and no history
    has that time."""
    state_time: str
    """A minute before the death; "" for today."""
    fix: Fix | None
    """First change that would have prevented it, in the state of `fix_time`."""
    unfixed: Unfixed | None
    """Why there is no fix."""
    fix_time: str
    """Time of that state; "" for today."""
    tried: FixList | None
    """Result of `fix` if there is neither `fix` nor `unfixed`; None if the pod did not run."""

    @property
    def row(self) -> PodRow | None:
        """Row of its pod."""
        return next((row for row in self.rows if row.key[:2] == (self.kill.namespace, self.kill.pod)), None)

    @property
    def rivals(self) -> list[PodRow]:
        """Pods among which a killer of the node chose, in that killer's order."""
        killer = self.kill.diagnosis.killer
        if killer is None or not killer.is_node_wide or self.kill.report is not None:
            return []
        if not killer.evicts:
            return [row for row in self.rows if row.rank is not None]
        evictable = (row for row in self.rows if row.eviction_rank is not None)
        return sorted(evictable, key=lambda row: row.eviction_rank or 0)


@dataclass(frozen=True, kw_only=True)
class Incident:
    """Data of a report."""

    about: IncidentSubject
    source: str
    now: datetime
    since: datetime | None
    """None: everything known."""
    scope: Scope
    snapshot: Snapshot
    event_list: EventList
    kills: tuple[Kill, ...]
    """All deaths, newest first."""
    past: Callable[[datetime], Snapshot | None] = lambda _: None
    """Returns the snapshot at a time, None if no history has it."""
    missing_evidence: tuple[str, ...] = ()
    """Evidence that would make deaths certain."""
    notes: tuple[str, ...] = ()
    """Missing or assumed data."""
    unread: tuple[str, ...] = ()
    """What could not be read, in sentences."""
    most_fixes: int | None = None
    """Limit of fixes for several nodes; None: no limit."""

    @cached_property
    def _pods(self) -> list[Pod]:
        return [pod for pod in self.snapshot.pods if pod.kind == "Pod" and self.scope.matches(pod)]

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Nodes of its pods."""
        own = {self.about.name} if self.about.kind == "Node" else set()
        return tuple(sorted(({pod.node_name for pod in self._pods} | own) - {""}))

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of its nodes, of all pods on them, and of killed pods."""
        pods = (pod.name for node in self.nodes for pod in self.snapshot.by_node().get(node, ()))
        return frozenset((*self.nodes, *pods, *(kill.pod for kill in self.kills))) - {""}

    @cached_property
    def coming(self) -> tuple[Deaths, FixList]:
        """Results of `next` and `fix`; empty for ended pods, no fixes if a node's memory is unknown."""
        kind, _, name = self.about
        snapshot = self.snapshot
        nodes = [name] if kind == "Node" else snapshot.nodes_of(self.scope)
        running = [pod for pod in self._pods if pod.node_name and not pod.is_terminal]
        keys = [pod.key for pod in running]
        is_place = kind in {"Node", "Namespace", "Cluster"}
        if not running and not is_place:
            subject = "the pod is" if kind == "Pod" else "its pods are"
            why = f"{subject} not running: no next death"
            return Deaths((), snapshot, problems=(why,)), FixList((), (), snapshot)
        deaths = Deaths((), snapshot)
        try:
            if is_place:
                deaths = deaths_on_nodes(snapshot, nodes, self.scope)
                first = {row.node: row.death.urgency for row in reversed(deaths.rows)}
                fixes = fixes_on_nodes(snapshot, nodes, self.scope, most=self.most_fixes, urgencies=first)
                if kind == "Node":
                    fixes = replace(fixes, kubelet=fix_kubelet(node_model(snapshot, name), 0))
                return deaths, fixes
            deaths = deaths_of_pods(snapshot, running)
            return deaths, fixes_for_pods(snapshot, keys, (kind, name) if kind != "Pod" else None)
        except InputError as error:
            return deaths._replace(problems=(str(error),)), FixList((), (), snapshot)

    @cached_property
    def deaths(self) -> tuple[Death, ...]:
        """The newest deaths; repeated deaths of a container by the same mechanism are one."""
        groups: dict[object, list[Kill]] = {}
        for kill in self.kills:
            who = (kill.namespace, kill.pod or kill.pod_uid or kill.node, kill.container or kill.cgroup)
            groups.setdefault((who, kill.diagnosis.mechanism, kill.diagnosis.confidence), []).append(kill)
        newest = list(groups.values())[:MOST_DEATHS]
        return tuple(self._death(kills, reads_past=place < MOST_STATES) for place, kills in enumerate(newest))

    def _death(self, kills: Sequence[Kill], *, reads_past: bool) -> Death:
        kill, snapshot, killer = kills[0], self.snapshot, kills[0].diagnosis.killer
        moment = parse_time(kill.time)
        then = self.past(moment - BEFORE) if moment is not None and reads_past else None
        # At its own limit, today's status is enough. A choice among pods depends on the pods of that time.
        states = (snapshot, then) if killer in OWN_LIMITS else (then, snapshot)
        at, fix, unfixed, tried = snapshot, None, None, None
        for state in filter(None, states):
            fixes = _fixes_against(kill, state)
            fix, unfixed = _first_of(fixes, kill) if fixes is not None else (None, None)
            if fix is not None or unfixed is not None:
                at = state
                break
            tried = tried or fixes
        rows, time = (_rows(kill.node, then), then.at) if then is not None else ((), "")
        if not rows and killer is not None and killer.is_node_wide:
            rows, time = _rows(kill.node, snapshot), ""
        fix_time = "" if at is snapshot else at.at
        return Death(kill, tuple(kills[1:]), rows, time, fix, unfixed, fix_time, tried)

    @cached_property
    def timeline(self) -> tuple[TimelineItem, ...]:
        """Everything that happened, newest last, then entries without a time."""
        entries = [*_ends(self._pods, self.kills), *_new_pods(self._pods)]
        entries += _conditions(self._pods, self.nodes, self.snapshot)
        entries += [TimelineItem(kill.time, kill.diagnosis.mechanism.verb, kill) for kill in self.kills]
        entries += _events(self.event_list.events, self._pods, self.nodes)
        since = self.since.timestamp() if self.since is not None else -inf
        times = ((parse_time(entry.time), entry) for entry in entries)
        timed = [(time.timestamp() if time is not None else inf, entry) for time, entry in times]
        ordered = sorted(timed, key=lambda pair: pair[0])
        return tuple(entry for seconds, entry in ordered if seconds >= since)


def _rows(node: str, snapshot: Snapshot) -> tuple[PodRow, ...]:
    pods = {node: snapshot.by_node().get(node, ())}
    return build_rows(replace(snapshot, pods=PodsByNode(pods)), Scope()).rows if node else ()


_CUT: Final = "what was read does not show what all containers of the pod request"


def _fixes_against(kill: Kill, snapshot: Snapshot) -> FixList | None:
    """Return the fixes against a killer and its victim, None if the pod does not run."""
    killer = kill.diagnosis.killer
    key = ("Pod", kill.namespace, kill.pod)
    pod = next((pod for pod in snapshot.pods if (pod.kind, pod.namespace, pod.name) == key), None)
    is_own = killer in OWN_LIMITS
    if pod is None or killer is None or not pod.node_name or (pod.is_terminal and not is_own):
        return None
    if not pod.containers:
        return FixList((), (), snapshot, problems=(_CUT,))
    try:
        return fixes_for_pods(snapshot, [pod.key], by=OWN_LIMITS if is_own else (killer,))
    except InputError as error:
        return FixList((), (), snapshot, problems=(str(error),))


def _first_of(fixes: FixList, kill: Kill) -> tuple[Fix | None, Unfixed | None]:
    """Return the first fix for a death like this kill, or why there is none."""
    is_own = kill.diagnosis.killer in OWN_LIMITS

    def is_alike(death: NextDeath) -> bool:
        return not is_own or death.container in {"", kill.container}

    for fix in fixes.fixes:
        if is_alike(fix.death):
            return fix, None
    return None, next((unfixed for unfixed in fixes.unfixed if is_alike(unfixed.death)), None)


def _ends(pods: Iterable[Pod], kills: Iterable[Kill]) -> Iterator[TimelineItem]:
    """Yield failed exits that were not memory kills."""
    kills_of: dict[tuple[str, str], list[Kill]] = {}
    for kill in kills:
        kills_of.setdefault((kill.namespace, kill.pod), []).append(kill)
    for pod in pods:
        of_pod = kills_of.get(pod.key, [])
        killed = {(kill.container, kill.time) for kill in of_pod}
        evicted = [kill.time for kill in of_pod if kill.diagnosis.mechanism.verb != KILLED]
        for status in pod.status.every_container:
            for end in status.ends:
                time = end.finished_at or ""
                since = [seconds_between(eviction, time) or 0 for eviction in evicted]
                is_kill = (status.name, time) in killed or any(seconds >= -SLACK_SECONDS for seconds in since)
                is_of_eviction = end.is_made_up and pod.status.reason == "Evicted"
                if end.exit_code and not (is_kill or is_of_eviction):
                    evidence = next(ended_evidence(end, "state"))
                    yield TimelineItem(time, "ended", ContainerEnd(pod, status.name, evidence))


def _new_pods(pods: Iterable[Pod]) -> Iterator[TimelineItem]:
    """Yield when the first pod of each ReplicaSet was created: a rollout, or a new workload."""
    created: dict[tuple[Workload, str], list[str]] = {}
    for pod in pods:
        for owner in pod.metadata.owner_references or ():
            if owner.kind == "ReplicaSet" and pod.metadata.creation_timestamp:
                times = created.setdefault((find_workload(pod), owner.name), [])
                times.append(pod.metadata.creation_timestamp)
    for (workload, name), times in created.items():
        yield TimelineItem(min(times), "rollout", Rollout(workload, name, len(times)))


def _conditions(pods: Iterable[Pod], nodes: Iterable[str], snapshot: Snapshot) -> Iterator[TimelineItem]:
    """Yield unfinished resizes, and the last changes of memory pressure and readiness of nodes."""
    for pod in pods:
        for condition in pod.status.conditions or ():
            if condition.type in {RESIZE_PENDING, RESIZE_IN_PROGRESS} and condition.status == "True":
                change = ConditionChange(pod, condition)
                yield TimelineItem(condition.last_transition_time or "", "resize", change)
    for node in filter(None, map(snapshot.nodes.get, nodes)):
        for condition in node.status.conditions or ():
            if condition.type in {"MemoryPressure", "Ready"} and condition.last_transition_time:
                change = ConditionChange(node, condition)
                yield TimelineItem(condition.last_transition_time, condition.type, change)


def _events(events: Iterable[Event], pods: Iterable[Pod], nodes: Sequence[str]) -> Iterator[TimelineItem]:
    """Yield events about memory, resizes and rollouts, except evidence of deaths."""
    about = {Workload("Pod", pod.namespace, pod.name) for pod in pods} | set(map(find_workload, pods))
    for event in events:
        involved = event.involved_object
        is_here = Workload(involved.kind, involved.namespace, involved.name) in about
        is_here |= any(is_of_node_memory(event, node) for node in nodes)
        if is_here and is_of_memory(event) and event.reason not in ENDS:
            yield TimelineItem(event.last, event.reason, event)

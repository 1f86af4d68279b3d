"""What happened to a node, a pod or a namespace over a time, as values: `report`.

Deaths are those of `kills`, coming ones those of `next`, changes those of `fix`: here they are put together.
Not here: the words (report.py), and the same for programs (values/report.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from msgspec import structs

from kubectl_qos.edit.edits import Side
from kubectl_qos.edit.fixes import Fix, Unfixed, memory_value
from kubectl_qos.edit.kubelet_settings import fix_kubelet
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.allocation import RESIZE_IN_PROGRESS, RESIZE_PENDING
from kubectl_qos.k8s.events import Event, EventList, is_of_node_memory
from kubectl_qos.k8s.kinds import Workload, find_workload
from kubectl_qos.k8s.objects import ContainerState, Pod, all_containers
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.snapshot import PodsByNode, Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.present.events import event_text, is_of_memory
from kubectl_qos.present.fixes import FixList, fixes_for_pods, fixes_on_nodes, node_model
from kubectl_qos.present.format import count, escape, full_name
from kubectl_qos.present.kills import MECHANISMS, evidence_sentence, subject
from kubectl_qos.present.next_death import Deaths, deaths_of_pod, deaths_on_nodes
from kubectl_qos.present.pod_rows import PodRow, build_rows
from kubectl_qos.qos.cgroup.names import pod_uid
from kubectl_qos.qos.kills.analyze import Kill
from kubectl_qos.qos.kills.evidence import Fact, ended_evidence
from kubectl_qos.qos.reason import Mechanism
from kubectl_qos.qos.simulation.next_death import OF_NODE

MOST_DEATHS: Final = 10
"""That are told in detail, the newest ones: the timeline has them all."""
MOST_STATES: Final = 5
"""How many states of the past are read, of the newest deaths: each takes the store some queries."""
BEFORE: Final = timedelta(minutes=1)
"""How long before a death the state of the past is looked at."""
OWN: Final = frozenset({Mechanism.CONTAINER_LIMIT, Mechanism.POD_LIMIT})

Past = Callable[[datetime], Snapshot | None]


class About(NamedTuple):
    """Of what: kind (Node, Pod, Namespace, Cluster), namespace and name."""

    kind: str
    namespace: str = ""
    name: str = ""


class Happening(NamedTuple):
    """One line of the timeline; `time` is RFC 3339 or empty, `times` how often it happened until then."""

    time: str
    what: str
    about: str
    text: str
    times: int = 1


class NodeAt(NamedTuple):
    """The pods of a node in kill order `at` a time, RFC 3339, empty for now."""

    node: str
    at: str
    rows: tuple[PodRow, ...]


@dataclass(frozen=True, slots=True)
class Death:
    """One death, with `earlier` ones of the same container in the same way, the newest first.

    `state` is the node a minute before, where a store has it, else, if the choice was among all of its pods,
    as it is now. `fix` is the first change against such a death, `unfixed` why there is none; both are None
    where nothing could be tried. `fixed_at` is the time of the state in which it was tried, empty for now.
    """

    kill: Kill
    earlier: tuple[Kill, ...]
    state: NodeAt | None
    fix: Fix | None
    unfixed: Unfixed | None
    fixed_at: str

    @property
    def row(self) -> PodRow | None:
        """Its pod in that state."""
        key = self.kill.namespace, self.kill.pod
        rows = self.state.rows if self.state is not None else ()
        return next((row for row in rows if row.key[:2] == key), None)


@dataclass(frozen=True, slots=True)
class Incident:
    """A report; `since` is None for all that is known, `kills` are all deaths, the newest first.

    `doubts` say what would make deaths certain, `notes` what is missing or assumed.
    """

    about: About
    source: str
    now: datetime
    since: datetime | None
    kills: tuple[Kill, ...]
    timeline: tuple[Happening, ...]
    deaths: tuple[Death, ...]
    next: Deaths
    fixes: FixList
    snapshot: Snapshot
    nodes: tuple[str, ...]
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def build(
    about: About,
    snapshot: Snapshot,
    event_list: EventList,
    kills: Sequence[Kill],
    scope: Scope,
    *,
    title: str,
    now: datetime,
    since: datetime | None,
    past: Past,
    doubts: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> Incident:
    """The report of these deaths, of the pods of a scope."""
    mine = [pod for pod in snapshot.pods if pod.kind == "Pod" and scope.matches(pod)]
    all_nodes = [about.name] if about.kind == "Node" else sorted(snapshot.by_node().keys() - {""})
    nodes = sorted({pod.node_name for pod in mine} & set(all_nodes) or {about.name} & set(all_nodes))
    coming, fixes = next_of(about, snapshot, all_nodes, replace(scope, names=frozenset()))
    return Incident(
        about=about,
        source=title,
        now=now,
        since=since,
        kills=tuple(kills),
        timeline=timeline(kills, snapshot, event_list, nodes, mine, since, now),
        deaths=tuple(deaths_in_detail(kills, snapshot, past)),
        next=coming,
        fixes=fixes,
        snapshot=snapshot,
        nodes=tuple(nodes),
        doubts=doubts,
        notes=notes,
    )


def next_of(about: About, snapshot: Snapshot, nodes: Sequence[str], scope: Scope) -> tuple[Deaths, FixList]:
    """What `next` and `fix` say of it; nothing of a pod that has ended, or of a node of unknown memory."""
    try:
        if about.kind != "Pod":
            deaths, fixes = deaths_on_nodes(snapshot, nodes, scope), fixes_on_nodes(snapshot, nodes, scope)
            if about.kind == "Node":
                fixes = replace(fixes, kubelet=fix_kubelet(node_model(snapshot, about.name), 0))
            return deaths, fixes
        pod = _find_pod(snapshot, about.namespace, about.name)
        if pod is not None and pod.node_name and not pod.is_terminal:
            return deaths_of_pod(snapshot, pod), fixes_for_pods(snapshot, [(pod.namespace, pod.name)])
    except InputError as error:
        return Deaths((), (str(error),)), FixList((), (), ())
    return Deaths((), ()), FixList((), (), ())


def _find_pod(snapshot: Snapshot, namespace: str, name: str, uid: str = "") -> Pod | None:
    return next(
        (
            pod
            for pod in snapshot.pods
            if (pod.kind, pod.namespace, pod.name) == ("Pod", namespace, name)
            if not uid or pod_uid(pod) in {uid, ""}
        ),
        None,
    )


# -- deaths -------------------------------------------------------------------------------------------------


def deaths_in_detail(kills: Iterable[Kill], snapshot: Snapshot, past: Past) -> Iterator[Death]:
    """The newest deaths, those of a container that died in the same way several times as one."""
    groups: dict[object, list[Kill]] = {}
    for kill in kills:
        who = (
            (kill.namespace, kill.pod, kill.container) if kill.pod else (kill.pod_uid, kill.cgroup, kill.node)
        )
        groups.setdefault((who, kill.diagnosis.mechanism, kill.diagnosis.confidence), []).append(kill)
    for number, (kill, *earlier) in enumerate(list(groups.values())[:MOST_DEATHS]):
        moment = parse_time(kill.time) if number < MOST_STATES else None
        then = past(moment - BEFORE) if moment is not None else None
        own = kill.diagnosis.mechanism in OWN
        # The status of today says that it was OOMKilled; a choice among pods depends on those of then.
        states = [one for one in ((snapshot, then) if own else (then, snapshot)) if one is not None]
        tried = ((one, *prevention(kill, one)) for one in states)
        at, fix, unfixed = next((one for one in tried if one[1] or one[2]), (snapshot, None, None))
        state = _node_at(kill.node, then)
        if state is None and kill.diagnosis.mechanism in OF_NODE and kill.choice is None:
            state = _node_at(kill.node, snapshot)
        yield Death(kill, tuple(earlier), state, fix, unfixed, at.at)


def _node_at(node: str, snapshot: Snapshot | None) -> NodeAt | None:
    pods = snapshot.by_node().get(node) if snapshot is not None and node else None
    if snapshot is None or not pods:
        return None
    rows = build_rows(replace(snapshot, pods=PodsByNode({node: pods})), Scope()).rows
    return NodeAt(node, snapshot.at, rows)


def prevention(kill: Kill, snapshot: Snapshot) -> tuple[Fix | None, Unfixed | None]:
    """The first change of `fix` against such a death, or why there is none; both None if nothing is tried."""
    mechanism, key = kill.diagnosis.mechanism, (kill.namespace, kill.pod)
    pod = _find_pod(snapshot, *key, kill.pod_uid)
    if pod is None or not pod.node_name or mechanism not in OWN | OF_NODE:
        return None, None
    if pod.is_terminal:
        if mechanism not in OWN:
            return None, None
        snapshot = _as_running(snapshot, pod)

    try:
        found = fixes_for_pods(snapshot, [key], by=OWN if mechanism in OWN else {mechanism})
    except InputError:
        return None, None
    names = {"", kill.container} if mechanism in OWN else {one.name for one in all_containers(pod)} | {""}
    fix = next((one for one in found.fixes if one.death.container in names), None)
    return fix, next((one for one in found.unfixed if fix is None and one.death.container in names), None)


def _as_running(snapshot: Snapshot, pod: Pod) -> Snapshot:
    """As if a pod that has ended ran again, and used what it was killed at: its limits."""
    parts = {
        part: tuple(
            structs.replace(one, state=None, last_state=one.state or ContainerState())
            for one in getattr(pod.status, part) or ()
        )
        for part in ("init_container_statuses", "container_statuses")
    }
    runs = structs.replace(pod, status=structs.replace(pod.status, phase="Running", **parts))
    limits = {one.name: memory_value(pod, one.name, Side.LIMITS) for one in pod.containers}
    usage = PodUsage.of_containers({name: ContainerUsage(limit) for name, limit in limits.items()})
    pods = tuple(runs if one is pod else one for one in snapshot.pods)
    return replace(snapshot, pods=pods, usage={**snapshot.usage, (pod.namespace, pod.name): usage})


# -- the timeline -------------------------------------------------------------------------------------------


def timeline(
    kills: Sequence[Kill],
    snapshot: Snapshot,
    event_list: EventList,
    nodes: Sequence[str],
    pods: Sequence[Pod],
    since: datetime | None,
    now: datetime,
) -> tuple[Happening, ...]:
    """What is known to have happened since a time, the newest last, what has no known time at the end."""
    found = [*map(_killed, kills), *_ends(pods, kills), *_new_pods(pods), *_resizes(pods)]
    found += _conditions(snapshot, nodes, now if since is not None else None)
    found += _events(event_list.events, pods, nodes, kills)
    merged: dict[tuple[str, str, str], Happening] = {}
    for one in sorted(found, key=_order):
        moment = parse_time(one.time)
        if since is None or moment is None or moment >= since:
            before = merged.pop(one[1:4], None) if one.times else None
            merged[one[1:4]] = one._replace(times=one.times + (before.times if before is not None else 0))
    return tuple(merged.values())


def _order(one: Happening) -> tuple[bool, float]:
    moment = parse_time(one.time)
    return moment is None, moment.timestamp() if moment is not None else 0


def _killed(kill: Kill) -> Happening:
    mechanism, sure = kill.diagnosis.mechanism, kill.diagnosis.confidence.value
    by_kubelet = {Mechanism.EVICTION: "evicted", Mechanism.PREEMPTION: "preempted"}
    return Happening(
        kill.time, by_kubelet.get(mechanism, "killed"), subject(kill), f"{MECHANISMS[mechanism]} ({sure})"
    )


def _ends(pods: Iterable[Pod], kills: Iterable[Kill]) -> Iterator[Happening]:
    """How containers ended that nothing killed for memory, where that is no success."""
    known = {(kill.namespace, kill.pod, kill.container, kill.time) for kill in kills}
    for pod in pods:
        for status in pod.status.every_container:
            for end in status.ends:
                time = end.finished_at or ""
                if end.exit_code and (pod.namespace, pod.name, status.name, time) not in known:
                    text = evidence_sentence(next(ended_evidence(end, "state")))
                    about = f"pod {full_name(pod.namespace, pod.name)}, container {escape(status.name)}"
                    yield Happening(time, "ended", about, text)


def _new_pods(pods: Iterable[Pod]) -> Iterator[Happening]:
    """ReplicaSets all of whose pods here are new: a rollout, or the first pods of a workload."""
    groups: dict[tuple[Workload, str], list[str]] = {}
    for pod in pods:
        owners = [one.name for one in pod.metadata.owner_references or () if one.kind == "ReplicaSet"]
        if owners:
            created = pod.metadata.creation_timestamp or ""
            groups.setdefault((find_workload(pod), owners[0]), []).append(created)
    for (workload, name), times in groups.items():
        first, pods_text = min(times), count(len(times), "pod")
        about = f"{workload.kind.lower()} {full_name(workload.namespace, workload.name)}"
        if first:
            text = f"replicaset {escape(name)} begins to run {pods_text} here"
            yield Happening(first, "rollout", about, text)


def _resizes(pods: Iterable[Pod]) -> Iterator[Happening]:
    for pod in pods:
        for one in pod.status.conditions or ():
            if one.type in {RESIZE_PENDING, RESIZE_IN_PROGRESS} and one.status == "True":
                text = f"{escape(one.type)} {escape(one.reason)}".rstrip()
                text += f": {escape(one.message)}" if one.message else ""
                about = f"pod {full_name(pod.namespace, pod.name)}"
                yield Happening(one.last_transition_time or "", "resize", about, text)


def _conditions(snapshot: Snapshot, nodes: Iterable[str], until: datetime | None) -> Iterator[Happening]:
    for name in nodes:
        raw = snapshot.nodes.get(name)
        for one in (raw.status.conditions or ()) if raw is not None else ():
            moment = parse_time(one.last_transition_time)
            is_over = moment is None or (until is not None and moment > until)
            if one.type in {"MemoryPressure", "Ready"} and not is_over:
                text = f"{one.type} is {escape(one.status)}"
                text += f": {escape(one.message)}" if one.message else ""
                yield Happening(one.last_transition_time or "", "node", f"node {escape(name)}", text)


def _events(
    events: Iterable[Event], pods: Iterable[Pod], nodes: Sequence[str], kills: Sequence[Kill]
) -> Iterator[Happening]:
    """Events about memory, resizes and rollouts that no death has as its evidence."""
    told = {
        (str(one.details.get("object", "")), str(one.details.get("message", "")))
        for kill in kills
        for one in kill.diagnosis.evidence
        if one.fact is Fact.EVENT and not str(one.details.get("object", "")).startswith("Node/")
    }
    about = {Workload(pod.kind, pod.namespace, pod.name) for pod in pods}
    about |= set(map(find_workload, pods))
    for event in events:
        involved = event.involved_object
        key = Workload(involved.kind, involved.namespace, involved.name)
        if (f"{involved.kind}/{involved.name}", event.message) in told or not is_of_memory(event):
            continue
        if key in about or any(is_of_node_memory(event, node) for node in nodes):
            name = full_name("" if event.is_of_node else involved.namespace, involved.name)
            who = f"{escape(involved.kind.lower())} {name}"
            text = escape(" ".join(event.message.split())) if event.is_of_node else event_text(event)
            yield Happening(event.last, escape(event.reason), who, text, event.times)


def by_node(values: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Values of nodes, each with the nodes that have it."""
    for value in dict.fromkeys(values.values()):
        yield value, [name for name, one in values.items() if one == value]

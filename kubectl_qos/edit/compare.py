"""The pods of a node before and after: under another release or other settings, or with changed manifests.

For a workload also all its running pods on each of their nodes, before and once all are recreated. For one
pod the steps of a change: when values change, the kill order around the pod, and the next deaths. Not here:
the template itself (preview.py), and the rollout that recreates pods (strategy.py).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from kubectl_qos.edit.edits import Edit, apply_edits, own_edits
from kubectl_qos.edit.goals import outlive, reach_class
from kubectl_qos.edit.preview import (
    Effects,
    FileChange,
    When,
    as_recreated,
    build_effects,
    file_changes,
    preview,
)
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.allocation import desired_pod, running_pod
from kubectl_qos.k8s.defaulting import admitted
from kubectl_qos.k8s.kinds import belongs_to
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import ContainerStatus, Pod
from kubectl_qos.k8s.releases import Change
from kubectl_qos.k8s.selectors import Selector
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import PodKey, PodUsage, usage_of_runs
from kubectl_qos.k8s.validation import kubelet_config_errors
from kubectl_qos.qos.cgroup.tree import CgroupLevel, CgroupTree, Directory, cgroup_tree
from kubectl_qos.qos.prediction import predict, predict_running
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import RankedPod, Ranking, rank_node, with_adj
from kubectl_qos.qos.resize import node_fit
from kubectl_qos.qos.simulation.next_death import (
    NextDeath,
    Precedent,
    deaths_of,
    next_deaths,
    repeated_deaths,
)
from kubectl_qos.qos.simulation.node_state import NO_GROWTH, Growth, NodeState, growth_on, ranked_node_state


@dataclass(frozen=True, slots=True)
class Comparison:
    """One node before and after: its pods, and the cgroups above them.

    `node_files` are the files of kubepods, the classes and the reserved cgroups, which depend on every pod of
    the node. `refusals` are the kubelet's messages if it would not start with the new configuration.
    """

    before: NodeSetup
    after: NodeSetup
    pods: tuple[Effects, ...]
    node_files: tuple[FileChange, ...]
    refusals: tuple[str, ...] = ()

    @property
    def refuses_cgroup_v1(self) -> bool:
        """Return whether the new kubelet, unlike the old one, does not start on cgroup v1 by default."""
        before, after = (
            setup.node.cgroup_version == 1 and setup.release.has(Change.CGROUP_V1_IS_REFUSED)
            for setup in (self.before, self.after)
        )
        return after and not before

    def of(self, pod: Pod) -> Effects:
        """Return the effects on one pod; workloads in files may have the same name and another kind."""
        namesakes = (effects for effects in self.pods if effects.before.pod.metadata == pod.metadata)
        return next(effects for effects in namesakes if effects.before.pod.kind == pod.kind)


def compare(
    pods: Iterable[Pod], before: NodeSetup, after: NodeSetup, usage: Mapping[PodKey, PodUsage] | None = None
) -> Comparison:
    """Compare the pods of a node as it is with the node as it would be (see k8s/node_overrides.py).

    `pods` are all known pods of the node, as stored or written. Their usage is assumed to stay the same.
    """
    pods = list(pods)
    runtimes = {setup.node.runtime.partition(":")[0] for setup in (before, after)}
    old = [predict_running(pod, before) for pod in pods]
    new = [predict_running(pod, after) for pod in (map(_without_ids, pods) if len(runtimes) > 1 else pods)]
    ranking_before = rank_node([prediction.pod for prediction in old], before.node, before.release, usage)
    ranking_after = rank_node([prediction.pod for prediction in new], after.node, after.release, usage)
    old_refusals = _refusals(before)
    # Cgroups above the pods are matched by level and class, because drivers name directories differently.
    old_tree, new_tree = (_above_pods(cgroup_tree(pods, setup, lambda _: False)) for setup in (before, after))
    node_files: list[FileChange] = []
    for key in {**old_tree, **new_tree}:
        files_before, files_after = (tree[key].files if key in tree else {} for tree in (old_tree, new_tree))
        node_files += file_changes((new_tree.get(key) or old_tree[key]).path, files_before, files_after)
    return Comparison(
        before,
        after,
        tuple(build_effects(zip(old, new, strict=True), ranking_before, ranking_after)),
        tuple(node_files),
        tuple(refusal for refusal in _refusals(after) if refusal not in old_refusals),
    )


def node_wide_deaths(
    comparison: Comparison, own_bytes: int | None
) -> tuple[list[NextDeath], list[NextDeath]]:
    """Return the next deaths by the killers of the whole node, before and after; empty if memory is unknown.

    `own_bytes` is the memory used outside pods, None if unknown.
    """
    effects = comparison.pods[0]
    rankings = (effects.ranking_before, comparison.before), (effects.ranking_after, comparison.after)
    try:
        states = [
            ranked_node_state(ranking, setup, own_bytes=own_bytes).require_capacity()
            for ranking, setup in rankings
        ]
    except InputError:
        return [], []
    before, after = ([death for death in next_deaths(state) if death.killer.is_node_wide] for state in states)
    return before, after


def _refusals(setup: NodeSetup) -> list[str]:
    return kubelet_config_errors(setup.kubelet, setup.release, cgroup_version=setup.node.cgroup_version)


def _without_ids(pod: Pod) -> Pod:
    """Drop the containers' ids, because another runtime recreates the containers."""
    status = pod.status
    for name in ("container_statuses", "init_container_statuses", "ephemeral_container_statuses"):
        statuses: tuple[ContainerStatus, ...] = getattr(status, name) or ()
        without = tuple(msgspec.structs.replace(status, container_id="") for status in statuses)
        status = msgspec.structs.replace(status, **{name: without})
    return msgspec.structs.replace(pod, status=status)


_ABOVE_PODS: Final = (CgroupLevel.RESERVED, CgroupLevel.KUBEPODS, CgroupLevel.CLASS)


def _above_pods(tree: CgroupTree) -> dict[tuple[object, ...], Directory]:
    above: dict[tuple[object, ...], Directory] = {}
    for directory in tree.walk():
        if directory.level in _ABOVE_PODS:
            path = directory.path if directory.level is CgroupLevel.RESERVED else ""
            above[directory.level, directory.qos, path] = directory
    return above


class WhatIf(NamedTuple):
    """Pods with changed manifests, and the manifests that match no pod."""

    pods: tuple[Pod, ...]
    unused: tuple[Pod, ...]


def with_manifests(pods: Iterable[Pod], changes: Sequence[Pod]) -> WhatIf:
    """Change each pod by the manifest with its name, or by the template of its workload.

    A manifest without a namespace matches in any namespace. A pod keeps its name, node and statuses, and so
    its usage; its class is computed again. The pod keeps its priority if the PriorityClass stays the same;
    the priority of another class, which only a server knows, counts as 0.
    """
    used: set[int] = set()
    result = []
    for pod in pods:
        index = next((index for index, change in enumerate(changes) if _is_for(change, pod)), None)
        if index is None or pod.is_terminal:
            result.append(pod)
        else:
            used.add(index)
            result.append(_with_manifest(pod, changes[index]))
    return WhatIf(tuple(result), tuple(change for index, change in enumerate(changes) if index not in used))


def _is_for(change: Pod, pod: Pod) -> bool:
    is_in_namespace = not change.namespace or pod.namespace in {"", change.namespace}
    return is_in_namespace and belongs_to(pod, change.kind, change.name)


def _with_manifest(pod: Pod, change: Pod) -> Pod:
    spec = change.spec
    priority = spec.priority
    if priority is None and spec.priority_class_name == pod.spec.priority_class_name:
        priority = pod.spec.priority
    spec = msgspec.structs.replace(
        spec,
        node_name=pod.spec.node_name,
        priority=priority,
        ephemeral_containers=pod.spec.ephemeral_containers,
    )
    metadata = msgspec.structs.replace(pod.metadata, labels=change.metadata.labels or pod.metadata.labels)
    changed = msgspec.structs.replace(pod, metadata=metadata, spec=spec)
    return admitted(as_recreated(changed))


@dataclass(frozen=True, slots=True)
class NodeReplicas:
    """The pods of a workload on one node, by their kill ranks there, and all deaths that may come there."""

    setup: NodeSetup
    effects: tuple[Effects, ...]
    deaths_before: tuple[NextDeath, ...]
    deaths_after: tuple[NextDeath, ...]
    own_deaths_before: tuple[NextDeath, ...]
    """The deaths of these pods, the nearest first."""
    own_deaths_after: tuple[NextDeath, ...]
    room: int | None
    """How many more such pods the node takes, by requests and its number of pods; None if unknown."""
    room_later: int | None
    """The same without the old pods."""

    @property
    def first(self) -> Effects:
        """Return the effects on the pod that dies next, or on the first pod if that is unknown."""
        next_key = next((death.key for death in self.own_deaths_before), None)
        return next((pod for pod in self.effects if pod.before.pod.key == next_key), self.effects[0])


def replicas_of(workload: Pod, pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods of a workload that run on a node."""
    return [pod for pod in _placed(workload, pods) if not pod.is_terminal]


def _placed(workload: Pod, pods: Iterable[Pod]) -> list[Pod]:
    own = (pod for pod in pods if pod.kind == "Pod" and pod.node_name and pod.namespace == workload.namespace)
    return [pod for pod in own if belongs_to(pod, workload.kind, workload.name)]


def node_of(pod: Pod, pods: Iterable[Pod]) -> str:
    """Return the node of a pod, or of the newest ended pod of a workload without others; else ""."""
    placed = _placed(pod, pods) if pod.kind != "Pod" else []
    ended = placed if all(replica.is_terminal for replica in placed) else []
    return max(ended, key=lambda replica: replica.metadata.creation_timestamp or "", default=pod).node_name


def with_admitted_values(workload: Pod, pods: Iterable[Pod]) -> Pod:
    """Give a workload's template the values of its PriorityClass and RuntimeClass from its pods."""
    if not (workload.spec.priority_class_name or workload.spec.runtime_class_name):
        return workload
    specs = [pod.spec for pod in replicas_of(workload, pods)]
    return admitted(
        workload,
        {spec.priority_class_name: spec.priority for spec in specs if spec.priority is not None},
        {
            spec.runtime_class_name: spec.overhead
            for spec in specs
            if spec.runtime_class_name and spec.overhead
        },
    )


def recreate_all(workload: Pod, edits: Sequence[Edit], snapshot: Snapshot) -> tuple[NodeReplicas, ...]:
    """Return the effects of a workload's edits on its pods by node, the node with the next death first."""
    by_node: dict[str, list[Pod]] = {}
    for pod in replicas_of(workload, snapshot.pods):
        by_node.setdefault(pod.node_name, []).append(pod)
    nodes = [_on_node(pods, edits, name, snapshot) for name, pods in by_node.items()]
    nodes.sort(
        key=lambda node: (
            not node.own_deaths_before,
            *(death.urgency for death in node.own_deaths_before[:1]),
        )
    )
    return tuple(nodes)


def without_repeated(deaths: Iterable[NextDeath]) -> tuple[NextDeath, ...]:
    """Drop deaths at a limit that killed before: how much is enough after an edit is unknown."""
    return tuple(death for death in deaths if not death.waits)


def deaths_with_repeated(state: NodeState, keys: Collection[PodKey]) -> list[NextDeath]:
    """Return all deaths of these pods, also at limits that killed them once."""
    repeated = (death for death in repeated_deaths(state) if death.key in keys)
    return sorted([*repeated, *without_repeated(deaths_of(state, keys))], key=attrgetter("urgency"))


def as_raised(before: Iterable[NextDeath], after: Iterable[NextDeath]) -> tuple[NextDeath, ...]:
    """Return deaths after a change; a limit that was raised has its distance from the one that killed."""
    limits = {death[2:4]: death.limit_bytes for death in before if death.waits}
    raised = []
    for death in after:
        more = (death.limit_bytes or 0) - (limits.get(death[2:4]) or 0)
        is_raised = death.waits and death[2:4] in limits and more > 0
        # How much it needs is unknown, so it is no loop any more.
        raised.append(death._replace(distance_bytes=more, precedent=Precedent.KILLED) if is_raised else death)
    return tuple(sorted(raised, key=attrgetter("urgency")))


def scope_of_pods(workload: Pod, scope: Scope) -> Scope:
    """Return the scope of a workload's pods: those with the labels of its template."""
    labels = ",".join(f"{key}={value}" for key, value in (workload.metadata.labels or {}).items())
    return scope._replace(names=frozenset(), selector=Selector.parse(labels), selector_text=labels)


def usage_of(pod: Pod, snapshot: Snapshot) -> PodUsage | None:
    """Return the usage of a pod, or of the pod of a workload that uses most; None if unknown."""
    pods = (pod, *replicas_of(pod, snapshot.pods))
    usages = (usage_of_runs(pod, snapshot.usage_now(pod)) for pod in pods)
    return max(filter(None, usages), key=lambda usage: usage.working_set_bytes, default=None)


def _on_node(pods: Sequence[Pod], edits: Sequence[Edit], name: str, snapshot: Snapshot) -> NodeReplicas:
    setup, keys = snapshot.setup(name), {pod.key for pod in pods}
    node, kubelet, release = setup.node, setup.kubelet, setup.release
    others = [pod for pod in snapshot.by_node().get(name, ()) if pod.key not in keys]
    edited = (as_recreated(apply_edits(pod, own_edits(pod, edits))) for pod in pods)
    old = [predict_running(pod, setup) for pod in pods]
    new = [predict(pod, node, kubelet=kubelet, release=release) for pod in edited]
    running = [running_pod(pod, release) for pod in others]
    before, after = (
        rank_node([prediction.pod for prediction in predictions] + running, node, release, snapshot.usage)
        for predictions in (old, new)
    )
    effects = build_effects(zip(old, new, strict=True), before, after)
    effects.sort(key=lambda pod: pod.rank_before or len(before.pods) + 1)

    def deaths(ranking: Ranking) -> tuple[list[NextDeath], list[NextDeath]]:
        """Return all deaths that may come on the node, and those of these pods."""
        try:
            state = ranked_node_state(ranking, setup, own_bytes=snapshot.own_bytes(name)).require_capacity()
        except InputError:
            return [], []
        state = replace(state, growth=growth_on(snapshot, name))
        return next_deaths(state), deaths_with_repeated(state, keys)

    (deaths_before, own_deaths_before), (deaths_after, own_deaths_after) = deaths(before), deaths(after)
    return NodeReplicas(
        setup,
        tuple(effects),
        tuple(deaths_before),
        as_raised(own_deaths_before, deaths_after),
        tuple(own_deaths_before),
        as_raised(own_deaths_before, own_deaths_after),
        _room(new[0].pod, map(desired_pod, [*others, *pods]), setup),
        _room(new[0].pod, map(desired_pod, others), setup),
    )


def _room(pod: Pod, others: Iterable[Pod], setup: NodeSetup) -> int | None:
    others, allocatable = [other for other in others if not other.is_terminal], setup.node.status_allocatable
    fits = [max(fit.free, 0) // fit.needed for fit in node_fit(pod, others, setup) if fit.needed]
    if "pods" in allocatable:
        fits.append(max(allocatable["pods"].value() - len(others), 0))
    return min(fits, default=None)


_OTHERS: Final = (1, 4)
"""Offsets in the kill order of the pods for which a change is offered that outlives them."""


def moments(effects: Effects) -> tuple[When, ...]:
    """Return the times at which something changes, first to last."""
    steps = {container.when for container in effects.containers if container.changed}
    steps |= {file.when for file in effects.files}
    ranks_before, ranks_after = effects.eviction_ranks
    if effects.before.qos_class is not effects.after.qos_class or ranks_before != ranks_after:
        steps.add(effects.when)
    if effects.rank_now != effects.rank_before:
        steps.add(When.NOW)
    if effects.rank_after != effects.rank_now:
        steps.add(effects.rank_when)
    return tuple(sorted(steps, key=list(When).index))


def is_reached(when: When, at: When) -> bool:
    """Return whether `when` has happened by `at`."""
    order = list(When).index
    return order(when) <= order(at)


class LadderRow(NamedTuple):
    """A line of the kill order before and after a change; the changed pod has a line for each rank."""

    rank: int
    pod: Pod
    qos: QosClass
    score: int | None
    is_changed: bool = False
    when: When | None = None
    """When the changed pod gets this rank."""
    is_last: bool = True
    """Whether this is the final rank of its pod."""
    skipped: int = 0
    """Pods omitted above this line."""
    used: int | None = None
    """Memory in use, in bytes."""


def ladder(effects: Effects, max_lines: int) -> tuple[LadderRow, ...]:
    """Return up to `max_lines` lines around the changed pod's ranks, next victim first; empty without ranks.

    Other pods have their final rank.
    """
    before, after = effects.rank_before, effects.rank_after
    if before is None or after is None:
        return ()
    ranked = [row for row in effects.ranking_after.pods if row.rank is not None]
    end = ranked.index(effects.row_after)
    later = effects.rank_when if before != after else None
    rows = [_ladder_row(row) for row in ranked]
    rows[end] = rows[end]._replace(is_changed=True, when=later)
    own_lines = {end}
    if before != after:
        rows_before = [row for row in effects.ranking_before.pods if row.rank is not None]
        start = rows_before.index(effects.row_before)
        if start > end:
            start += 1  # the line of the rank after the change is above
        else:
            end += 1
        today = _ladder_row(effects.row_before)._replace(is_changed=True, is_last=False)
        rows.insert(start, today)
        own_lines = {start, end}
    nearest = sorted(range(len(rows)), key=lambda index: min(abs(index - line) for line in own_lines))
    shown = sorted(nearest[:max_lines])
    gaps = zip([-1, *shown], shown, strict=False)
    return tuple(rows[index]._replace(skipped=index - last - 1) for last, index in gaps)


def _ladder_row(row: RankedPod) -> LadderRow:
    assert row.rank is not None, "a pod with a rank"
    score = row.worst.oom_score if row.worst is not None else None
    used = row.usage.working_set_bytes if row.usage is not None else None
    return LadderRow(row.rank, row.pod, row.qos, score, used=used)


class DeathsAt(NamedTuple):
    """The next deaths from a step of a change on: by the pod's own limits and by its node's killers."""

    when: When | None
    """None: today."""
    state: NodeState
    deaths: tuple[NextDeath, ...]
    of_pod: tuple[NextDeath, ...]
    """All deaths of the changed pod, including those by killers that end other pods first."""


def deaths_at_moments(
    effects: Effects, own_bytes: int | None, growth: Growth = NO_GROWTH
) -> tuple[DeathsAt, ...]:
    """Return the next deaths today, and after each step that changes them.

    `own_bytes` is the memory used outside pods, None if unknown. Empty without a node, or if the node's
    memory is unknown.
    """
    setup = effects.before.setup
    if not effects.before.pod.node_name:
        return ()
    last = max([effects.when, *(file.when for file in effects.files)], key=list(When).index)
    later = [at for at in moments(effects) if at is not When.NEVER and is_reached(last, at)]
    steps: list[tuple[When | None, Ranking]] = [(None, effects.ranking_before)]
    for at in later:
        # Containers that have not restarted keep their old oom_score_adj.
        waiting = (change for change in effects.containers if not is_reached(change.when, at))
        kept = {change.name: change.oom_score_adj.before for change in waiting}
        steps.append((at, with_adj(effects.ranking_after, effects.after.pod, kept)))
    key, deaths = effects.before.pod.key, list[DeathsAt]()
    try:
        for when, ranking in steps:
            state = ranked_node_state(ranking, setup, own_bytes=own_bytes).require_capacity()
            state = replace(state, growth=growth)
            today = deaths[0].of_pod if deaths else ()
            of_pod = as_raised(today, deaths_with_repeated(state, {key}))
            coming = as_raised(today, next_deaths(state))
            shown = [death for death in coming if death.killer.is_node_wide or death.key == key]
            shown.sort(key=attrgetter("distance_bytes"))
            step = DeathsAt(when, state, tuple(shown), of_pod)
            if not deaths or (step.deaths, step.of_pod) != (deaths[-1].deaths, deaths[-1].of_pod):
                deaths.append(step)
    except InputError:
        return ()
    return tuple(deaths)


class RankChange(NamedTuple):
    """Edits with which a pod outlives another, or becomes Guaranteed (`outlives` is None)."""

    edits: tuple[Edit, ...]
    effects: Effects
    outlives: Pod | None


def cheapest_changes(pod: Pod, snapshot: Snapshot) -> Iterator[RankChange]:
    """Yield the least requests with which a ranked pod outlives the next ones, and edits for Guaranteed."""
    setup, neighbours = snapshot.setup(pod.node_name), snapshot.by_node().get(pod.node_name, ())
    effects = preview(pod, (), setup, neighbours, snapshot.usage).effects
    ranked = [row.pod for row in effects.ranking_before.pods if row.rank is not None]
    place = next(index for index, other in enumerate(ranked) if other.metadata == pod.metadata)
    others = [ranked[place + further] for further in _OTHERS if place + further < len(ranked)]
    goals = [
        *((outlive(pod, other, setup, neighbours, snapshot.usage), other) for other in others),
        (reach_class(pod, QosClass.GUARANTEED, setup.release), None),
    ]
    for goal, outlived in goals:
        if goal.edits and goal.obstacle is None and not goal.to_choose:
            then = preview(pod, goal.edits, setup, neighbours, snapshot.usage)
            yield RankChange(goal.edits, then.effects, outlived)

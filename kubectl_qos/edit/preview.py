"""The effects of edits on one pod: class, scores, kill rank, cgroup files, and how the change is applied."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import structs

from kubectl_qos.edit.edits import Edit, apply_edits, effective_edits
from kubectl_qos.k8s.allocation import desired_pod, is_resizing, resized_pod, running_pod
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kinds import has_fixed_template
from kubectl_qos.k8s.kubelet import NodeSetup, Origin
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.releases import Change, Release
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.k8s.validation import Refusal, admission_errors, pod_refusals
from kubectl_qos.qos import resize
from kubectl_qos.qos.cgroup.values import UNWRITTEN
from kubectl_qos.qos.eviction import node_eviction_ranks
from kubectl_qos.qos.prediction import Prediction, predict, predict_running
from kubectl_qos.qos.ranking import ContainerKind, RankedPod, Ranking, rank_node, with_adj, with_pod
from kubectl_qos.qos.restart import OomLoop, oom_loops


class When(StrEnum):
    """The step at which an effect takes place, from the first to the last."""

    NOW = "now"
    """As soon as the change is applied."""
    RESTART = "restart"
    """When the container restarts: runc does not rewrite the oom_score_adj of a running one."""
    RETRIED = "retried"
    """When the kubelet carries out a resize that it has put off."""
    RECREATED = "recreated"
    """When the pod is recreated, by a rollout or by hand."""
    NEVER = "never"
    """The kubelet does not carry out the resize on this node."""


class FileChange(msgspec.Struct, frozen=True, rename="camel"):
    """A cgroup file, null where it is not written; `sameEffect` is true if the kernel ignores the change."""

    container: str | None
    path: str
    file: str
    before: str | None
    after: str | None
    when: When
    same_effect: bool

    @property
    def raises_memory_limit(self) -> bool:
        """Return whether the change raises or removes a memory limit."""
        before, after = self.before or "", self.after or ""
        is_limit = self.file.endswith(("memory.max", "memory.limit_in_bytes")) and before.isdigit()
        return is_limit and (not after.isdigit() or int(after) > int(before))


def file_changes(
    path: str, before: Mapping[str, str], after: Mapping[str, str], container: str | None = None
) -> Iterator[FileChange]:
    """Yield the files of a cgroup whose content differs."""
    for name in {**before, **after}:
        old, new, default = before.get(name), after.get(name), UNWRITTEN.get(name)
        if old != new:
            is_same = (old or default) == (new or default)
            yield FileChange(container, path, name, old, new, When.RECREATED, is_same)


class NumberChange(msgspec.Struct, frozen=True):
    """A number before and after."""

    before: int | None
    after: int | None


class ContainerEffects(msgspec.Struct, frozen=True, rename="camel"):
    """A container's numbers before and after, and when they change."""

    name: str
    oom_score_adj: NumberChange
    oom_score: NumberChange
    when: When

    @property
    def changed(self) -> bool:
        """Return whether one of the two numbers differs."""
        return any(number.before != number.after for number in (self.oom_score_adj, self.oom_score))


@dataclass(frozen=True, slots=True)
class Effects:
    """A pod before and after, with the time of each effect.

    `rank_*` are kill ranks on the node, None without one: before the change, right after it, and once every
    effect has taken place.
    """

    before: Prediction
    after: Prediction
    containers: tuple[ContainerEffects, ...]
    files: tuple[FileChange, ...]
    ranking_before: Ranking = field(compare=False, repr=False)
    ranking_after: Ranking = field(compare=False, repr=False)
    row_before: RankedPod = field(compare=False, repr=False)
    """With `row_after`: the pod's rows in the rankings."""
    row_after: RankedPod = field(compare=False, repr=False)
    rank_before: int | None
    rank_now: int | None
    rank_after: int | None
    same_effect: tuple[FileChange, ...] = ()
    """Files that change without effect."""
    when: When = When.RECREATED
    """When the class, the path and the eviction rank change."""

    @property
    def ranked(self) -> int:
        """Return how many pods of the node have a rank."""
        return sum(1 for row in self.ranking_after.pods if row.rank is not None)

    @property
    def rank_when(self) -> When:
        """Return when the pod gets its last rank."""
        return When.NOW if self.rank_now == self.rank_after else self.scores_when

    @property
    def scores_when(self) -> When:
        """Return when the last container gets its scores; for an unchanged pod when it gets its class."""
        moments = [container.when for container in self.containers if container.changed]
        return max(moments, key=list(When).index, default=self.when)

    @property
    def restarting_later(self) -> tuple[str, ...]:
        """Return the containers that get another oom_score_adj or oom_score only when they restart."""
        inits = {item.name for item in self.after.containers if item.kind is ContainerKind.INIT}
        changed = (container for container in self.containers if container.changed)
        later = [container.name for container in changed if container.when is When.RESTART]
        return tuple(name for name in later if name not in inits)

    @property
    def kept_pod_limit(self) -> FileChange | None:
        """Return the pod's memory limit that a change in place would raise, but the kubelet keeps."""
        if self.when is When.RECREATED:
            return None
        raised = (file for file in self.files if not file.container and file.raises_memory_limit)
        return next((file for file in raised if file.when is When.RECREATED), None)

    @property
    def eviction_ranks(self) -> tuple[int | None, int | None]:
        """Return the places in the kubelet's eviction order before and after, None without one."""
        before = node_eviction_ranks(self.ranking_before, self.before.setup)
        after = node_eviction_ranks(self.ranking_after, self.after.setup)
        return before.get(self.before.pod.key), after.get(self.before.pod.key)

    @property
    def passing(self) -> tuple[tuple[PodKey, ...], tuple[PodKey, ...]]:
        """Return the pods that die before this one only after the change, and those that do only now.

        Both are empty if the pod lacks a rank in either ranking.
        """
        is_ranked = self.rank_before is not None and self.rank_after is not None
        before, after = (
            [row.pod.key for row in ranking.pods if is_ranked and 0 < (row.rank or 0) < (rank or 0)]
            for ranking, rank in (
                (self.ranking_before, self.rank_before),
                (self.ranking_after, self.rank_after),
            )
        )
        overtaking = tuple(key for key in after if key not in before)
        return overtaking, tuple(key for key in before if key not in after)

    @property
    def changes_path(self) -> bool:
        """Return whether the pod or a container moves in the cgroup tree."""
        pairs = zip(self.before.containers, self.after.containers, strict=True)
        moves = any(old.process_cgroup.path != new.process_cgroup.path for old, new in pairs)
        return moves or self.before.cgroup.path != self.after.cgroup.path

    @property
    def changes_anything(self) -> bool:
        """Return whether anything differs, including the rank."""
        return (
            self.before.qos_class is not self.after.qos_class
            or self.changes_path
            or bool(self.files)
            or self.rank_before != self.rank_after
            or any(container.changed for container in self.containers)
        )


def build_effects(
    pairs: Iterable[tuple[Prediction, Prediction]], ranking_before: Ranking, ranking_after: Ranking
) -> list[Effects]:
    """Return the differences of each pair (before, after), as if the pods were recreated.

    The rankings must have the pods of all predictions.
    """
    # By identity, because in files two pods may have the same name.
    rows_before = {id(row.pod): row for row in ranking_before.pods}
    rows_after = {id(row.pod): row for row in ranking_after.pods}
    effects = []
    for before, after in pairs:
        row_before, row_after = rows_before[id(before.pod)], rows_after[id(after.pod)]
        old = {score.name: (score.adj, score.oom_score) for score in row_before.containers}
        containers = []
        for new in row_after.containers:
            adj, oom_score = old.get(new.name, (None, None))
            numbers = NumberChange(adj, new.adj), NumberChange(oom_score, new.oom_score)
            containers.append(ContainerEffects(new.name, *numbers, When.RECREATED))
        files = list(_file_changes(before, after))
        effects.append(
            Effects(
                before=before,
                after=after,
                containers=tuple(containers),
                rank_before=row_before.rank,
                rank_now=row_before.rank,
                rank_after=row_after.rank,
                files=tuple(file for file in files if not file.same_effect),
                ranking_before=ranking_before,
                ranking_after=ranking_after,
                row_before=row_before,
                row_after=row_after,
                same_effect=tuple(file for file in files if file.same_effect),
            )
        )
    return effects


def _file_changes(before: Prediction, after: Prediction) -> Iterator[FileChange]:
    """Yield the differing files of the pod's and the containers' cgroups, at their new paths."""
    yield from file_changes(after.cgroup.path, before.cgroup.files, after.cgroup.files)
    for old, new in zip(before.containers, after.containers, strict=True):
        yield from file_changes(new.cgroup.path, old.cgroup.files, new.cgroup.files, new.name)
        if new.has_process_cgroup:
            was, becomes = old.process_cgroup, new.process_cgroup
            yield from file_changes(becomes.path, was.files, becomes.files, new.name)


class StrategyKind(StrEnum):
    """How a change of an object is applied."""

    IN_PLACE = "in place"
    TEMPLATE = "new pods from the template"
    RECREATE = "the pod must be recreated"
    NEVER = "impossible"


class Preview(msgspec.Struct, frozen=True):
    """A change and its effects, by the strategy `strategy_kind`."""

    effects: Effects
    edits: tuple[Edit, ...]
    node_fit: tuple[resize.NodeFit, ...]
    refusals: tuple[Refusal, ...]
    """A server's answers to the changed pod."""
    resize_refusals: tuple[Refusal, ...]
    """A server's answers to the change in place."""
    restarts: tuple[str, ...]
    """The containers that the kubelet restarts for a change in place."""
    outcome: resize.ResizeOutcome
    """The kubelet's answer to a change in place."""
    strategy_kind: StrategyKind
    endless_loops: tuple[OomLoop, ...] = ()
    """OOMKilled containers that wait, and whose pod's limit the kubelet would not raise."""

    @property
    def is_carried_out(self) -> bool:
        """Return whether the kubelet carries out a change in place at once."""
        return self.outcome.answer is resize.ResizeStatus.ACTUATED

    def effects_of(self, kind: StrategyKind) -> Effects:
        """Return the effects with their times for another strategy."""
        if kind is StrategyKind.IN_PLACE:
            return self.effects
        effects, when = self.effects, When.RECREATED
        containers = tuple([structs.replace(container, when=when) for container in effects.containers])
        files = tuple([structs.replace(file, when=when) for file in effects.files])
        return replace(effects, when=when, rank_now=effects.rank_before, containers=containers, files=files)

    @property
    def before(self) -> Prediction:
        """Return the pod as its node runs it."""
        return self.effects.before

    @property
    def after(self) -> Prediction:
        """Return the pod as if its spec, with the edits, were in force."""
        return self.effects.after


@dataclass(eq=False)
class RankedPods:
    """The pods of a node in kill order, with values that several previews share, each computed once."""

    ranking: Ranking
    setup: NodeSetup
    usage: Mapping[PodKey, PodUsage] | None
    counted: resize.CountedPods = field(default_factory=dict)
    _before: dict[int, tuple[Pod, Prediction, Ranking]] = field(default_factory=dict)

    def before(self, pod: Pod) -> tuple[Prediction, Ranking]:
        """Return the prediction of a pod as the node runs it, and the ranking with it."""
        if id(pod) not in self._before:
            prediction = predict_running(pod, self.setup)
            ranking = with_pod(self.ranking, prediction.pod, self.setup.release, self.usage)
            # Keep the pod alive, so that no other object gets its id.
            self._before[id(pod)] = pod, prediction, ranking
        return self._before[id(pod)][1:]


def preview(
    pod: Pod,
    edits: Iterable[Edit],
    setup: NodeSetup,
    neighbours: Sequence[Pod] = (),
    usage: Mapping[PodKey, PodUsage] | None = None,
    ranked: RankedPods | None = None,
) -> Preview:
    """Return the effects of edits on a pod; without edits those of a pending resize.

    Before is what the node runs, after is the spec with the edits; edits without effect are dropped.

    `pod` is as stored or written, not defaulted by us; `neighbours` are every other pod of its node. `usage`
    is memory by pod, for the ranks; `ranked` has the neighbours in place of both.
    """
    release = setup.release
    edits = effective_edits(pod, edits)
    changed = pod
    if edits:
        changed = as_recreated(apply_edits(pod, edits))
    elif is_resizing(pod):
        changed = resized_pod(pod)
    if ranked is None:
        ranking = rank_node(neighbours_without(pod, neighbours, release), setup.node, release, usage)
        ranked = RankedPods(ranking, setup, usage)
    before, ranking_before = ranked.before(pod)
    after = predict(changed, setup.node, kubelet=setup.kubelet, release=release)
    ranking_after = with_pod(ranked.ranking, after.pod, release, usage)
    others = [row.pod for row in ranking_before.pods if row.pod is not before.pod]
    [effects] = build_effects([(before, after)], ranking_before, ranking_after)
    refusals = resize.resize_refusals(default_pod(pod, release), after.pod, release, setup.node)
    kind = _strategy_kind(pod, before, refusals)
    loops: tuple[OomLoop, ...] = ()
    restarts, outcome = [], resize.ResizeOutcome(resize.ResizeStatus.ACTUATED)
    # The kubelet counts the allocated resources of other pods, the scheduler their desired ones.
    fits = tuple(resize.node_fit(after.pod, others, setup, ranked.counted))
    if kind is StrategyKind.IN_PLACE:
        restarts = resize.restarting(before.pod, after.pod)
        used = (usage or {}).get(pod.key)
        outcome = resize.resize_outcome(before.pod, after.pod, setup, fits, used)
        in_place = _in_place(effects, restarts, outcome.answer)
        loops = oom_loops(before.pod) if in_place.kept_pod_limit is not None else ()
        kind, effects = (StrategyKind.RECREATE, effects) if loops else (kind, in_place)
    if kind is not StrategyKind.IN_PLACE:
        fits = tuple(resize.node_fit(after.pod, map(desired_pod, others), setup, ranked.counted))
    return Preview(
        effects=effects,
        edits=edits,
        node_fit=fits,
        refusals=(*pod_refusals(after.pod, release), *admission_errors(after.pod, release)),
        resize_refusals=tuple(refusals),
        restarts=tuple(restarts),
        outcome=outcome,
        strategy_kind=kind,
        endless_loops=loops,
    )


def neighbours_without(pod: Pod, neighbours: Iterable[Pod], release: Release) -> list[Pod]:
    """Return the neighbours of a pod as their node runs them, without the pod itself."""
    key = (pod.kind, pod.namespace, pod.name)
    others = (other for other in neighbours if (other.kind, other.namespace, other.name) != key)
    return [running_pod(other, release) for other in others]


_ANSWERED: Final = {
    resize.ResizeStatus.ACTUATED: When.NOW,
    resize.ResizeStatus.DEFERRED: When.RETRIED,
    resize.ResizeStatus.ERROR: When.RETRIED,
    resize.ResizeStatus.INFEASIBLE: When.NEVER,
}


def _in_place(effects: Effects, restarts: Sequence[str], answer: resize.ResizeStatus) -> Effects:
    """Return the effects with their times for a change in place, by the kubelet's expected answer."""
    when, pod, rank = _ANSWERED[answer], effects.before.pod, effects.rank_before
    later = When.NEVER if when is When.NEVER else When.RESTART
    waiting = resize.waiting_containers(pod) if when is When.NOW else set()
    pod_files_when = when
    pairs = zip(effects.before.containers, effects.after.containers, strict=True)
    limited = [old.name for old, new in pairs if old.container.limits != new.container.limits]
    if waiting and waiting.issuperset(limited):
        setup = effects.before.setup
        # An assumed minor release does not tell whether the kubelet has the patch.
        is_assumed = setup.node.origin("kubelet_version") is Origin.ASSUMED
        is_known = setup.release.patch is not None or not is_assumed
        has_fix = is_known and setup.release.has(Change.RESIZE_OF_STARTING_CONTAINER)
        pod_files_when = When.RESTART if has_fix else When.RECREATED
    if when is When.NOW and restarts:
        restarted = (container for container in effects.containers if container.name in restarts)
        adj = {container.name: container.oom_score_adj.after for container in restarted}
        rank = next(row.rank for row in with_adj(effects.ranking_before, pod, adj).pods if row.pod is pod)
    scores_when = dict.fromkeys(restarts, when)
    changes = [structs.replace(item, when=scores_when.get(item.name, later)) for item in effects.containers]
    files_when: dict[str | None, When] = {None: pod_files_when, **dict.fromkeys(waiting, When.RESTART)}
    files = [structs.replace(file, when=files_when.get(file.container, when)) for file in effects.files]
    return replace(effects, when=when, rank_now=rank, containers=tuple(changes), files=tuple(files))


def _strategy_kind(pod: Pod, before: Prediction, resize_refused: Sequence[Refusal]) -> StrategyKind:
    if has_fixed_template(pod, before.setup.release):
        return StrategyKind.NEVER
    if pod.kind != "Pod":
        return StrategyKind.TEMPLATE
    if before.static or before.mirror:
        return StrategyKind.NEVER
    return StrategyKind.RECREATE if resize_refused or pod.is_terminal else StrategyKind.IN_PLACE


def as_recreated(pod: Pod) -> Pod:
    """Return the pod as if created with its spec; the server computes its class again."""
    pod = resized_pod(pod)
    return structs.replace(pod, status=structs.replace(pod.status, qos_class=""))

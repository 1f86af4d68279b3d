"""Effects of changes: `set`, `compare`, a resize in `explain`, and the change history of `undo --list`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from kubectl_qos.analysis.deaths import DeathRow
from kubectl_qos.edit.apply_state import Apply
from kubectl_qos.edit.compare import Comparison, NodeReplicas
from kubectl_qos.edit.edits import CONTENT_TYPE, METHOD, Edit, Side, current_value
from kubectl_qos.edit.findings import Severity
from kubectl_qos.edit.goals import RankGoal
from kubectl_qos.edit.history import Entry, EntryState
from kubectl_qos.edit.preview import (
    ContainerEffects,
    Effects,
    FileChange,
    NumberChange,
    Preview,
    StrategyKind,
    When,
)
from kubectl_qos.edit.strategy import Strategy
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.node_overrides import NodeOverride
from kubectl_qos.k8s.objects import CPU, Pod
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.present.changes import strategy_effect, strategy_title
from kubectl_qos.present.effects import goal_reached, kubelet_refusals
from kubectl_qos.present.findings import finding_sentence
from kubectl_qos.present.format import full_name
from kubectl_qos.present.values import Document, TextChange, Values, copied, reason_name
from kubectl_qos.present.values.incidents import DeathValues, death_values
from kubectl_qos.qos.killers import daemon_on
from kubectl_qos.qos.simulation.next_death import NextDeath


class ObjectValues(Values, frozen=True):
    """An object by its kind and name."""

    kind: str
    namespace: str | None
    name: str
    uid: str | None


class EditValues(Values, frozen=True):
    """One request or limit as quantities; null is absent. `container` is null for the whole pod."""

    container: str | None
    side: Side
    resource: str
    before: str | None
    after: str | None


class RankValues(Values, frozen=True):
    """A kill rank before the change, right after it, and once all effects have taken place (`when`)."""

    before: int | None
    now: int | None
    after: int | None
    when: When


class EffectsValues(Values, frozen=True, kw_only=True):
    """The effects on one pod; `when` is when its class, path and eviction rank change."""

    namespace: str | None
    pod: str
    changed: bool
    qos_class: TextChange
    rank: RankValues
    eviction_rank: NumberChange
    cgroup_path: TextChange
    when: When
    containers: tuple[ContainerEffects, ...]
    files: tuple[FileChange, ...]


class SetupValues(Values, frozen=True, kw_only=True):
    """The settings of a node for which pods are predicted; thresholds are written as for the kubelet."""

    release: str
    cgroup_driver: str
    cgroup_version: int
    userspace_oom_killer: str | None
    eviction_hard: dict[str, str]
    eviction_soft: dict[str, str]


class ComparisonValues(Document, frozen=True, kw_only=True, tag="Comparison"):
    """The pods of one node with another release or other settings: `compare`."""

    node: str
    before: SetupValues
    after: SetupValues
    settings: dict[str, str]
    kubelet_refusals: tuple[str, ...]
    node_files: tuple[FileChange, ...]
    pods: tuple[EffectsValues, ...]


class FitValues(Values, frozen=True):
    """What the pod requests and what its node has free, as quantities."""

    resource: str
    request: str
    free: str
    fits: bool


class EditFindingValues(Values, frozen=True):
    """What refuses the change, would revert it, or changes its effect; `subject` does so."""

    severity: Severity
    reason: str
    subject: str
    message: str


class RequestValues(Values, frozen=True):
    """The exact request; its body is the patch with the uid and resourceVersion of the object."""

    method: str
    path: str
    content_type: str
    body: dict[str, Any]


class StrategyValues(Values, frozen=True, kw_only=True):
    """One way to apply the change; no request where it is impossible or possible by hand only.

    `replacedPods` is null where it is unknown.
    """

    strategy: StrategyKind
    title: str
    possible: bool
    message: str
    restarted_containers: tuple[str, ...]
    replaced_pods: int | None
    request: RequestValues | None


class KubeletAnswer(Values, frozen=True):
    """What the kubelet is expected to answer to the change in place: done, Deferred, Infeasible or Error."""

    status: str
    message: str


class GoalValues(Values, frozen=True, kw_only=True):
    """A requested kill rank: after the pod `outlive`, or at least `rankBelow`.

    `when` says when the pod has it: `never` if the change is refused or not carried out.
    """

    outlive: str | None
    rank_below: int | None
    when: When


class DeathChange(Values, frozen=True):
    """The nearest death before and after, null where none waits."""

    before: DeathValues | None
    after: DeathValues | None


class ReplicasValues(Values, frozen=True, kw_only=True):
    """The pods of a workload that one node runs, once all are recreated.

    `nextDeath` is the nearest on the node, `nextOwnDeath` the nearest of these pods. By requests and its
    number of pods, the node has `room` for more of them, without the old ones `roomLater`; null if unknown.
    """

    node: str
    pods: tuple[EffectsValues, ...]
    next_death: DeathChange
    next_own_death: DeathChange
    room: int | None
    room_later: int | None


class ChangePreviewValues(Document, frozen=True, kw_only=True, tag="ChangePreview"):
    """What a change does, before it is applied: `set`.

    `refusals` are the server's answers to the values, `strategy` is how they would be applied. `kubelet` is
    null unless they are applied in place, `goal` unless a kill rank was requested. `nodes` run pods of a
    workload; the `effects` of a workload are on a pod without a node. `patch` is the strategic merge patch,
    null if nothing changes. `manifest` is the whole object with the change; with `--yes` or
    `--dry-run=server` it is the server's answer.
    """

    object: ObjectValues
    changes: tuple[EditValues, ...]
    refusals: tuple[str, ...]
    strategy: StrategyKind
    kubelet: KubeletAnswer | None
    goal: GoalValues | None
    effects: EffectsValues
    nodes: tuple[ReplicasValues, ...]
    node_fit: tuple[FitValues, ...]
    findings: tuple[EditFindingValues, ...]
    strategies: tuple[StrategyValues, ...]
    patch: dict[str, Any] | None
    manifest: dict[str, Any]
    notes: tuple[str, ...]


class ChangeValues(Values, frozen=True, kw_only=True):
    """A change that was sent; `undoes` is the id of the one that it reverts."""

    id: str
    time: str
    context: str | None
    server: str | None
    object: ObjectValues
    subresource: str | None
    state: EntryState
    message: str | None
    undone: bool
    undoes: str | None
    changes: tuple[EditValues, ...]


class ChangeListValues(Document, frozen=True, kw_only=True, tag="ChangeList"):
    """The change history, the newest first: `undo --list`."""

    items: tuple[ChangeValues, ...]


def comparison_values(
    comparison: Comparison, overrides: Sequence[NodeOverride], pods: Iterable[Effects]
) -> ComparisonValues:
    """Return the differences between two setups of a node."""
    return ComparisonValues(
        node=comparison.before.node.name,
        before=_setup_values(comparison.before),
        after=_setup_values(comparison.after),
        settings={override.key: override.text for override in overrides},
        kubelet_refusals=tuple(kubelet_refusals(comparison)),
        node_files=comparison.node_files,
        pods=tuple(map(effects_values, pods)),
    )


def _setup_values(setup: NodeSetup) -> SetupValues:
    daemon = daemon_on(setup)
    return SetupValues(
        release=str(setup.release),
        cgroup_driver=setup.kubelet.cgroup_driver.value,
        cgroup_version=setup.node.cgroup_version,
        userspace_oom_killer=daemon.settings[0] if daemon else None,
        eviction_hard=dict(setup.kubelet.eviction_hard),
        eviction_soft=dict(setup.kubelet.eviction_soft),
    )


def effects_values(effects: Effects) -> EffectsValues:
    """Return the effects on a pod."""
    pod, (eviction_before, eviction_after) = effects.before.pod, effects.eviction_ranks
    return EffectsValues(
        namespace=pod.namespace or None,
        pod=pod.title,
        changed=effects.changes_anything,
        qos_class=TextChange(effects.before.qos_class, effects.after.qos_class),
        rank=rank_values(effects),
        eviction_rank=NumberChange(eviction_before, eviction_after),
        cgroup_path=TextChange(effects.before.cgroup.path, effects.after.cgroup.path),
        when=effects.when,
        containers=effects.containers,
        files=(*effects.files, *effects.same_effect),
    )


def rank_values(effects: Effects) -> RankValues:
    """Return the kill ranks of a pod."""
    return RankValues(effects.rank_before, effects.rank_now, effects.rank_after, effects.rank_when)


def preview_values(
    change: Apply,
    *,
    goal: RankGoal | None,
    patch: Mapping[str, Any] | None,
    manifest: Mapping[str, Any],
    notes: Iterable[str],
    replicas: Iterable[NodeReplicas] = (),
) -> ChangePreviewValues:
    """Return a change with its findings."""
    preview, pod = change.preview, change.preview.before.pod
    is_in_place = preview.strategy_kind is StrategyKind.IN_PLACE
    is_sent_in_place = is_in_place and bool(preview.edits) and not preview.refusals
    return ChangePreviewValues(
        object=ObjectValues(pod.kind, pod.namespace or None, pod.name, pod.metadata.uid or None),
        changes=edits_values(pod, preview.edits),
        refusals=tuple(map(str, preview.refusals)),
        strategy=preview.strategy_kind,
        kubelet=KubeletAnswer(*preview.outcome) if is_sent_in_place else None,
        goal=goal
        and GoalValues(
            outlive=full_name(*goal.outlive) if goal.outlive is not None else None,
            rank_below=goal.rank or None,
            when=goal_reached(preview),
        ),
        effects=effects_values(preview.effects),
        nodes=tuple(map(_replicas_values, replicas)),
        node_fit=fit_values(preview),
        findings=tuple(
            EditFindingValues(
                finding.severity, reason_name(finding.code), finding.subject, finding_sentence(finding)
            )
            for finding in change.findings
        ),
        strategies=tuple(map(_strategy_values, change.strategies)),
        patch=None if patch is None else dict(patch),
        manifest=dict(manifest),
        notes=tuple(notes),
    )


def _replicas_values(node: NodeReplicas) -> ReplicasValues:
    def change(*sides: Sequence[NextDeath]) -> DeathChange:
        old, new = (death_values(DeathRow(node.setup.node.name, side[0])) if side else None for side in sides)
        return DeathChange(old, new)

    return copied(
        ReplicasValues,
        node,
        node=node.setup.node.name,
        pods=tuple(map(effects_values, node.effects)),
        next_death=change(node.deaths_before, node.deaths_after),
        next_own_death=change(node.own_deaths_before, node.own_deaths_after),
    )


def fit_values(preview: Preview) -> tuple[FitValues, ...]:
    """Return what the pod requests, and what its node has free."""
    return tuple(
        FitValues(
            fit.resource, _quantity(fit.resource, fit.needed), _quantity(fit.resource, fit.free), fit.fits
        )
        for fit in preview.node_fit
    )


def _quantity(resource: str, amount: int) -> str:
    return f"{amount}m" if resource == CPU else str(amount)


def _strategy_values(strategy: Strategy) -> StrategyValues:
    request, values = strategy.request, None
    if request is not None:
        path = f"{request.path}?{urlencode(request.query(dry_run=False))}"
        values = RequestValues(METHOD, path, CONTENT_TYPE, request.body)
    return StrategyValues(
        strategy=strategy.kind,
        title=strategy_title(strategy),
        possible=strategy.is_possible,
        message=strategy_effect(strategy),
        restarted_containers=strategy.restarts,
        replaced_pods=strategy.pods,
        request=values,
    )


def edit_values(edit: Edit, before: Quantity | None) -> EditValues:
    """Return a value before and after."""
    old, new = (None if quantity is None else str(quantity) for quantity in (before, edit.quantity))
    return EditValues(edit.owner or None, edit.side, edit.resource, old, new)


def edits_values(pod: Pod, edits: Iterable[Edit]) -> tuple[EditValues, ...]:
    """Return the values of a pod before and after edits."""
    return tuple(edit_values(edit, current_value(pod, *edit.target)) for edit in edits)


def history_values(entries: Iterable[Entry], undone: Mapping[str, Entry]) -> ChangeListValues:
    """Return the change history; `undone` has the reverting entries by the ids of the reverted."""
    return ChangeListValues(items=tuple(_entry_values(entry, undone) for entry in entries))


def _entry_values(entry: Entry, undone: Mapping[str, Entry]) -> ChangeValues:
    before = {edit.target: edit.quantity for edit in entry.before}
    return copied(
        ChangeValues,
        entry,
        time=entry.at,
        object=ObjectValues(entry.kind, entry.namespace or None, entry.name, entry.uid or None),
        undone=entry.id in undone and undone[entry.id].state is EntryState.DONE,
        changes=tuple(edit_values(edit, before.get(edit.target)) for edit in entry.after),
    )

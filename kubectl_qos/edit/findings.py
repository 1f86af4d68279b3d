"""Findings: what refuses a change, would revert it, or changes its effect. present/ has the words."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from kubectl_qos.edit.edits import FIELD_MANAGER, POD_LEVEL, Side
from kubectl_qos.edit.preview import Preview, StrategyKind
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.edit.server_response import (
    ChangedObject,
    ServerChecks,
    as_created,
    changed_object,
    quota_pod,
    server_checks,
)
from kubectl_qos.edit.strategy import quota_room, replaced_pods, rollout_plan, rollout_reach
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kinds import WORKLOADS
from kubectl_qos.k8s.managers import (
    ManagedValue,
    ManagerKind,
    UtilizationTarget,
    find_managers,
    matching_autoscalers,
    utilization_targets,
)
from kubectl_qos.k8s.objects import CPU, EMPTY_RESOURCES, MEMORY, NO_RESOURCES, Container, Pod, all_containers
from kubectl_qos.k8s.quantity import ZERO, Quantity
from kubectl_qos.k8s.quota import with_limit_ranges
from kubectl_qos.k8s.releases import Change, Gate, Release
from kubectl_qos.k8s.resources import eviction_request, is_sidecar
from kubectl_qos.k8s.usage import ContainerHistory, PodUsage
from kubectl_qos.k8s.validation import Refusal, pod_refusals
from kubectl_qos.qos.qos_class import computed_class
from kubectl_qos.qos.ranking import NEAR_LIMIT_PERCENT
from kubectl_qos.qos.resize import waiting_containers


class Severity(StrEnum):
    """How serious a finding is: the change is refused, has side effects, or is fine."""

    REFUSAL = "refusal"
    WARNING = "warning"
    NOTE = "note"


class FindingCode(StrEnum):
    """What a finding is about; present/findings.py has the facts of each."""

    INVALID = "invalid"
    IMMUTABLE = "immutable"
    RESIZE_REFUSED = "resize refused"
    PRIORITY_REFUSED = "priority refused"
    LIMIT_RANGE_REFUSES = "limit range refuses"
    LIMIT_RANGE_ADDS = "limit range adds"
    LIMIT_RANGE_CHANGES_CLASS = "limit range changes class"
    QUOTA_REFUSES = "quota refuses"
    QUOTA_COUNTS = "quota counts"
    NEW_PODS_REFUSED = "new pods refused"
    ROLLOUT_STALLS = "rollout stalls"
    MANAGER = "manager"
    UTILIZATION = "utilization target"
    DISRUPTION_BUDGET = "disruption budget"
    RESIZE_NOT_DONE = "resize not done"
    POD_LIMIT_STAYS = "pod limit stays"
    WEIGHT_DROPS = "cpu weight drops"
    NO_ROOM_FOR_NEW_POD = "no room for a new pod"
    LIMIT_BELOW_USAGE = "limit below usage"
    LIMIT_NEAR_USAGE = "limit near usage"
    REQUEST_BELOW_USAGE = "request below usage"
    LIMIT_BELOW_PEAK = "limit below peak"
    REQUEST_BELOW_P99 = "request below p99"
    NODE_CRITICAL = "node critical"
    RUNTIME_MAY_REFUSE = "container runtime may refuse"
    LIMIT_BELOW_CREATION = "limit below what creation takes"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding; `finding_line` in present/findings.py puts its `facts` into words."""

    severity: Severity
    subject: str
    """`LimitRange caps`, `Argo CD application shop`, `container app`."""
    code: FindingCode
    text: str = ""
    """The sentence of the server or the kubelet, or empty."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    in_preview: bool = False
    """The preview already shows this."""

    @property
    def stops(self) -> bool:
        """Return whether the server refuses the change, or some of the pods of its rollout."""
        return self.severity is Severity.REFUSAL or self.code in _ROLLOUT_STOPS


_ROLLOUT_STOPS: Final = frozenset({FindingCode.NEW_PODS_REFUSED, FindingCode.ROLLOUT_STALLS})


def _warning(subject: str, code: FindingCode, **facts: Any) -> Finding:
    return Finding(Severity.WARNING, subject, code, facts=facts)


def _note(subject: str, code: FindingCode, **facts: Any) -> Finding:
    return Finding(Severity.NOTE, subject, code, facts=facts)


_SERVER: Final = "API server"


def find_findings(
    preview: Preview,
    related: RelatedObjects,
    kind: StrategyKind,
    usage: PodUsage | None,
    seen: Mapping[str, ContainerHistory] = MappingProxyType({}),
) -> tuple[Finding, ...]:
    """Return the findings on a change that is applied with a strategy, the most serious first.

    `preview` is of a pod, or of a workload under its own kind. `usage` is the pod's memory; None if it is
    unknown, or the object is a workload. `seen` is the metrics history by container.
    """
    if not preview.edits:
        return ()
    target = changed_object(preview, related, kind)
    findings: list[Finding] = []
    if preview.strategy_kind is StrategyKind.NEVER and target.old.kind == preview.before.pod.kind:
        findings.append(Finding(Severity.REFUSAL, _SERVER, FindingCode.IMMUTABLE, in_preview=True))
    elif kind in {StrategyKind.IN_PLACE, StrategyKind.RECREATE} or target.old.kind == "Pod":
        findings += _change_pod(preview, related, target, in_place=kind is StrategyKind.IN_PLACE)
    elif target.old.kind in WORKLOADS:
        findings += _change_template(preview, related, target)
    if kind is StrategyKind.IN_PLACE:
        findings += _kubelet_answer(preview)
        findings += _dropped_weights(target)
        if preview.after.setup.release.has(Change.RUNTIME_MAY_REFUSE_RESIZE) and any(
            edit.owner == POD_LEVEL for edit in target.edits
        ):
            findings.append(_note("container runtime", FindingCode.RUNTIME_MAY_REFUSE))
    if kind is not StrategyKind.IN_PLACE or preview.restarts:
        findings += _creation(preview)
    findings += _memory(preview, kind, target, usage, seen)
    findings += _no_room(preview, kind, target)
    findings += _managers(related, kind, target)
    findings += _utilization(related, kind, target, preview.before.setup.release)
    if kind in {StrategyKind.TEMPLATE, StrategyKind.RECREATE}:
        findings += _budgets(related, target)
    findings += _critical(preview, target)
    return tuple(sorted(findings, key=lambda finding: list(Severity).index(finding.severity)))


def _change_pod(
    preview: Preview, related: RelatedObjects, target: ChangedObject, *, in_place: bool
) -> Iterator[Finding]:
    setup = preview.before.setup
    checks = server_checks(target, related, setup, in_place=in_place)
    if checks.priority:
        subject = f"PriorityClass {target.new.spec.priority_class_name}"
        yield Finding(Severity.REFUSAL, subject, FindingCode.PRIORITY_REFUSED, checks.priority)
    yield from _invalid(preview, (*checks.invalid, *checks.node), pod_refusals(checks.pod, setup.release))
    for subject, sentence in _range_sentences(checks):
        yield Finding(Severity.REFUSAL, subject, FindingCode.LIMIT_RANGE_REFUSES, sentence)
    for refused in checks.quotas:
        subject = f"ResourceQuota {refused.quota}"
        yield Finding(Severity.REFUSAL, subject, FindingCode.QUOTA_REFUSES, refused.message)
    yield from _limit_range_values(preview, target, checks.pod, related, in_place=in_place)
    touched = tuple({edit.resource for edit in target.edits})
    for charge in checks.charges:
        if not charge.exceeds and charge.resource.endswith(touched):
            yield _note(f"ResourceQuota {charge.quota}", FindingCode.QUOTA_COUNTS, charge=charge)


def _change_template(preview: Preview, related: RelatedObjects, target: ChangedObject) -> Iterator[Finding]:
    """Yield what refuses or changes the new pods: the server validates only the template."""
    setup = preview.before.setup
    refusals = pod_refusals(target.new, setup.release)
    yield from _invalid(preview, refusals, refusals)
    if not refusals:
        checks = server_checks(target, related, setup, in_place=False)
        yield from _rollout(related, target, checks, setup.release)
        yield from _limit_range_values(preview, target, checks.pod, related, in_place=False)


def _invalid(preview: Preview, refusals: Iterable[Refusal], of_pod: Iterable[Refusal]) -> Iterator[Finding]:
    """Yield what the server refuses; refusals that are not in `of_pod` refuse only a change in place."""
    shown = {str(refusal) for refusal in (*preview.refusals, *preview.resize_refusals)}
    invalid = set(map(str, of_pod))
    for text in dict.fromkeys(map(str, refusals)):
        code = FindingCode.INVALID if text in invalid else FindingCode.RESIZE_REFUSED
        yield Finding(Severity.REFUSAL, _SERVER, code, text, in_preview=text in shown)


def _range_sentences(checks: ServerChecks) -> Iterator[tuple[str, str]]:
    for name, sentences in checks.ranges:
        for sentence in sentences:
            yield f"LimitRange {name}", sentence


def _limit_range_values(
    preview: Preview, target: ChangedObject, new: Pod, related: RelatedObjects, *, in_place: bool
) -> Iterator[Finding]:
    """Yield what LimitRanges add to the edited resources of new pods, and to all containers in place."""
    removed = {edit.target for edit in target.edits if edit.quantity is None}
    touched = {(edit.owner, edit.resource) for edit in target.edits}
    release = preview.before.setup.release
    pod = default_pod(target.new, release)
    for limit_range in related.limit_ranges:
        filled = with_limit_ranges(pod, [limit_range])
        added = (
            (after.name, side, resource, value)
            for before, after in zip(all_containers(pod), all_containers(filled), strict=True)
            for side in Side
            for resource, value in getattr(after, side.value).items()
            if resource not in getattr(before, side.value)
        )
        for container, side, resource, value in added:
            if not in_place and (container, resource) not in touched:
                continue
            is_removed = (container, side, resource) in removed
            where = {"container": container, "side": side.value, "resource": resource}
            facts = {**where, "value": value, "removed": is_removed}
            severity = Severity.WARNING if is_removed or in_place else Severity.NOTE
            subject = f"LimitRange {limit_range.metadata.name}"
            yield Finding(severity, subject, FindingCode.LIMIT_RANGE_ADDS, facts=facts)
        pod = filled
    becomes, expected = computed_class(new, release), preview.after.computed_class
    if becomes is not expected and not in_place:
        classes = {"becomes": becomes.value, "expected": expected.value}
        yield _warning("LimitRange", FindingCode.LIMIT_RANGE_CHANGES_CLASS, **classes)


def _rollout(
    related: RelatedObjects, target: ChangedObject, checks: ServerChecks, release: Release
) -> Iterator[Finding]:
    plan, claim = rollout_plan(target.raw), checks.claim
    if not plan.pods:
        return
    old = quota_pod(as_created(target.old, related.limit_ranges, release), target, release)
    facts: dict[str, Any] = {"kind": target.old.kind, "name": target.old.name, "total": plan.pods}
    refusals = [*((_SERVER, str(refusal)) for refusal in checks.invalid), *_range_sentences(checks)]
    others = (refusal for refusal in checks.quotas if not refusal.exceeded)
    refusals += [(f"ResourceQuota {refusal.quota}", refusal.message) for refusal in others]
    if refusals:
        _, facts["left"] = rollout_reach(plan, lambda *_: False)
        for subject, sentence in refusals:
            yield Finding(Severity.WARNING, subject, FindingCode.NEW_PODS_REFUSED, sentence, facts)
        return
    for quota in related.quotas:
        made, left = rollout_reach(plan, quota_room(claim, old, plan.running, [quota], release))
        if made == plan.pods:
            continue
        exhausted = []
        for charge in checks.charges:
            has_room = quota_room(claim, old, plan.running, [quota], release, charge.resource)
            if charge.quota == quota.name and not has_room(made, left):
                exhausted.append(charge)
        stalled = {**facts, "made": made, "left": left, "charges": tuple(exhausted)}
        yield _warning(f"ResourceQuota {quota.name}", FindingCode.ROLLOUT_STALLS, **stalled)


def _kubelet_answer(preview: Preview) -> Iterator[Finding]:
    outcome, subject = preview.outcome, f"kubelet {preview.before.setup.node.name}".rstrip()
    if not preview.is_carried_out:
        facts, code = {"answer": outcome.answer}, FindingCode.RESIZE_NOT_DONE
        yield Finding(Severity.WARNING, subject, code, outcome.message, facts, in_preview=True)
    kept = preview.effects.kept_pod_limit
    if kept is not None:
        waiting = sorted(waiting_containers(preview.before.pod))
        limit = int(kept.before or 0)
        yield _warning(subject, FindingCode.POD_LIMIT_STAYS, limit=limit, containers=waiting)


def _dropped_weights(target: ChangedObject) -> Iterator[Finding]:
    """Yield containers without a CPU request below a pod-level limit: a resize drops their weight to 1.

    A new container has the weight of the limit. A resize passes a request of zero to the runtime, which
    means the least weight (kuberuntime_manager.go, updatePodContainerResources; measured on a real node).
    """
    if not any(edit.target == (POD_LEVEL, Side.LIMITS, CPU) for edit in target.edits):
        return
    for container in target.new.containers:
        if CPU not in container.requests and CPU not in container.limits:
            yield _warning(f"container {container.name}", FindingCode.WEIGHT_DROPS)


def _creation(preview: Preview) -> Iterator[Finding]:
    """Warn if CRI-O starts conmon and runc inside the cgroup of a small pod (kubernetes#135680)."""
    node, limit = preview.after.setup.node, preview.after.totals.memory_limit
    is_limited = preview.after.totals.declared.memory and 0 < limit < _TAKEN_BY_CREATION
    if is_limited and node.runtime.startswith("cri-o") and node.oci_runtime.name == "runc":
        yield _warning("CRI-O", FindingCode.LIMIT_BELOW_CREATION, limit=limit)


_TAKEN_BY_CREATION: Final = 32 << 20
"""The limit in upstream's tests; runc takes 20 to 22 MB while it creates a container."""


def _memory(
    preview: Preview,
    kind: StrategyKind,
    target: ChangedObject,
    usage: PodUsage | None,
    seen: Mapping[str, ContainerHistory],
) -> Iterator[Finding]:
    """Compare limits and requests with current usage, and with the history if current usage is no problem."""
    release = preview.before.setup.release
    old, new = default_pod(target.old, release), default_pod(target.new, release)
    is_new_pod = kind is not StrategyKind.IN_PLACE
    for before, after in zip(all_containers(old), all_containers(new), strict=True):
        now, past = usage.of(after.name) if usage is not None else None, seen.get(after.name)
        old_limit, limit = before.limits.get(MEMORY), after.limits.get(MEMORY)
        if limit is None or limit == old_limit:
            continue
        subject, used = f"container {after.name}", now.working_set_bytes if now is not None else 0
        is_lowered = old_limit is None or limit < old_limit
        is_below = limit.value() < used
        is_near = limit.value() * NEAR_LIMIT_PERCENT < used * 100
        if is_below or (is_near and is_lowered):
            code = FindingCode.LIMIT_BELOW_USAGE if is_below else FindingCode.LIMIT_NEAR_USAGE
            facts = {"used": used, "limit": limit.value(), "new_pod": is_new_pod}
            yield _warning(subject, code, restarts=is_new_pod or after.name in preview.restarts, **facts)
        if past is not None and not is_below and limit.value() < past.peak_bytes:
            facts = {"used": past.peak_bytes, "limit": limit.value()}
            yield _warning(subject, FindingCode.LIMIT_BELOW_PEAK, over=past.over, **facts)
    used = usage.working_set_bytes if usage is not None else 0
    old_request, request = (eviction_request(pod, release, MEMORY).value() for pod in (old, new))
    if request < used <= old_request:
        yield _note("memory request", FindingCode.REQUEST_BELOW_USAGE, used=used, request=request)
        return
    histories = [seen[container.name] for container in _lasting(new, release) if container.name in seen]
    p99_bytes = sum(history.p99_bytes or 0 for history in histories)
    if request != old_request and request < p99_bytes:
        facts = {"used": p99_bytes, "request": request}
        yield _note("memory request", FindingCode.REQUEST_BELOW_P99, over=histories[0].over, **facts)


def _no_room(preview: Preview, kind: StrategyKind, target: ChangedObject) -> Iterator[Finding]:
    full = tuple(fit.resource for fit in preview.node_fit if not fit.fits)
    if kind in {StrategyKind.RECREATE, StrategyKind.TEMPLATE} and full:
        subject = f"node {preview.after.setup.node.name}"
        bound = kind is StrategyKind.RECREATE and not target.new.metadata.uid and bool(target.new.node_name)
        yield _warning(subject, FindingCode.NO_ROOM_FOR_NEW_POD, resources=full, bound=bound)


def _managers(related: RelatedObjects, kind: StrategyKind, target: ChangedObject) -> Iterator[Finding]:
    values = [ManagedValue(*edit.target) for edit in target.edits]
    managers = find_managers(target.raw, values, FIELD_MANAGER)
    chain = [target.raw, *related.chain]
    for manager in (*managers, *matching_autoscalers(chain, related.autoscalers, values)):
        only_new_pods = kind is StrategyKind.IN_PLACE and manager.mode == "Initial"
        severity = Severity.NOTE if only_new_pods else Severity.WARNING
        what = "field manager" if manager.kind is ManagerKind.APPLIER else manager.kind.value
        subject = f"{what} {manager.name}".rstrip()
        yield Finding(severity, subject, FindingCode.MANAGER, facts={"manager": manager})


def _utilization(
    related: RelatedObjects, kind: StrategyKind, target: ChangedObject, release: Release
) -> Iterator[Finding]:
    """Yield HorizontalPodAutoscalers whose target is a percentage of a changed request."""
    old, new = default_pod(target.old, release), default_pod(target.new, release)
    for metric in utilization_targets([target.raw, *related.chain], related.scalers):
        before, after = (_measured_request(pod, metric, release) for pod in (old, new))
        if before != after:
            is_alone = kind is not StrategyKind.TEMPLATE
            facts = {"target": metric, "before": before, "after": after, "alone": is_alone}
            subject = f"HorizontalPodAutoscaler {metric.autoscaler}"
            severity = Severity.NOTE if after is not None else Severity.WARNING
            yield Finding(severity, subject, FindingCode.UTILIZATION, facts=facts)


def _budgets(related: RelatedObjects, target: ChangedObject) -> Iterator[Finding]:
    """Yield PodDisruptionBudgets of replaced pods: only the eviction API respects them."""
    is_rolled_out = target.old.kind in WORKLOADS and replaced_pods(target.old.kind, target.raw) != 0
    missing = rollout_plan(target.raw).missing if is_rolled_out else 0
    for budget in related.budgets:
        if budget.covers(target.old):
            allowed = budget.status.disruptions_allowed
            severity = Severity.WARNING if allowed is not None and missing > allowed else Severity.NOTE
            facts = {"allowed": allowed, "missing": missing, "rollout": is_rolled_out}
            subject = f"PodDisruptionBudget {budget.metadata.name}"
            yield Finding(severity, subject, FindingCode.DISRUPTION_BUDGET, facts=facts)


def _lasting(pod: Pod, release: Release) -> tuple[Container, ...]:
    """Return the containers that run as long as the pod does."""
    return (*pod.containers, *(init for init in pod.init_containers if is_sidecar(init, release)))


def _measured_request(pod: Pod, target: UtilizationTarget, release: Release) -> Quantity | None:
    """Return the request that is 100 % of a utilization; None if a container lacks it: nothing is measured.

    It is the pod's own request of the resource, else the sum over its containers and sidecars. Source:
    pkg/controller/podautoscaler/replica_calculator.go (calculateRequests).
    """
    resource = target.resource
    of_pod = (pod.spec.resources or NO_RESOURCES).requests or EMPTY_RESOURCES
    if not target.container and resource in of_pod and release.enabled(Gate.POD_LEVEL_RESOURCES):
        return of_pod[resource]
    total = ZERO
    for container in _lasting(pod, release):
        if target.container in {"", container.name}:
            if resource not in container.requests:
                return None
            total += container.requests[resource]
    return total


def _critical(preview: Preview, target: ChangedObject) -> Iterator[Finding]:
    if preview.before.node_critical:
        name = target.new.spec.priority_class_name
        yield _note(f"PriorityClass {name}" if name else "priority", FindingCode.NODE_CRITICAL)

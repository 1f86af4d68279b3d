"""Findings: what refuses a change, would undo it, or makes it do something else. present/ has the words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from kubectl_qos.edit.edits import POD_LEVEL, Side
from kubectl_qos.edit.patch import FIELD_MANAGER
from kubectl_qos.edit.preview import Preview, StrategyKind
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.edit.rollout_quota import reach, rollout_plan, room_for
from kubectl_qos.edit.server_response import (
    ChangedObject,
    as_created,
    as_resized,
    changed_object,
    creation_quota,
    priority_refusal,
    quota_pod,
    range_refusals,
)
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kinds import WORKLOADS
from kubectl_qos.k8s.limit_range import with_limit_ranges
from kubectl_qos.k8s.managers import ManagedValue, Manager, ManagerKind, find_managers, matching_autoscalers
from kubectl_qos.k8s.objects import CPU, MEMORY, Pod
from kubectl_qos.k8s.quota import QuotaPod, charges, quota_refusals
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.resources import eviction_request
from kubectl_qos.k8s.usage import PodUsage
from kubectl_qos.k8s.validation import pod_refusals
from kubectl_qos.qos.flags import NEAR_LIMIT_PERCENT
from kubectl_qos.qos.qos_class import computed_class
from kubectl_qos.qos.resize import ResizeStatus, beyond_node, invalid_resize


class Severity(StrEnum):
    """How much a verdict weighs."""

    REFUSES = "refuses"
    """A server would not take the request."""
    WARNS = "warns"
    """It would, and then something happens that the change does not say."""
    TELLS = "tells"
    """Good to know."""


class FindingCode(StrEnum):
    """What a verdict is about; the facts that come with each are named beside its words."""

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
    MANAGER = "keeper"
    RESIZE_NOT_DONE = "resize not done"
    WEIGHT_DROPS = "cpu weight drops"
    NO_ROOM_FOR_NEW_POD = "no room for a new pod"
    LIMIT_BELOW_USAGE = "limit below usage"
    LIMIT_NEAR_USAGE = "limit near usage"
    REQUEST_BELOW_USAGE = "request below usage"
    NODE_CRITICAL = "node critical"
    LOW_PRIORITY = "low priority"
    PRIORITY_UNKNOWN = "priority class without its number"


@dataclass(frozen=True, slots=True)
class Finding:
    """One of them.

    Attributes:
        weight: how much it weighs.
        subject: whose: `LimitRange caps`, `ResourceQuota q`, `Argo CD application shop`, `container app`.
        text: the sentence of the server or the kubelet, empty where neither says one; what a person reads is
            verdict_sentence of present/verdicts.py.
        topic: what it is about.
        facts: the numbers and names for the words.
        in_preview: whether what present/diff.py shows of the preview says the same already.
    """

    weight: Severity
    subject: str
    text: str
    topic: FindingCode
    facts: Mapping[str, Any] = field(default_factory=dict)
    in_preview: bool = False


_INITIAL: Final = "Initial"
"""The update mode that changes pods only when they are created."""


def side_effects(
    preview: Preview,
    related: RelatedObjects,
    road: StrategyKind,
    target: ChangedObject,
    usage: PodUsage | None,
) -> Iterator[Finding]:
    """Every verdict that no admission gives."""
    yield from _not_done(preview, road)
    if road is StrategyKind.IN_PLACE:
        yield from _weights(target)
    if usage is not None:
        yield from _memory(preview, road, target, usage)
    yield from _no_room(preview, road, target)
    yield from _kept(related, road, target)
    yield from _priority(preview, target)


def _not_done(preview: Preview, road: StrategyKind) -> Iterator[Finding]:
    found = preview.outcome
    if road is StrategyKind.IN_PLACE and found.answer is not ResizeStatus.ACTUATED:
        node = preview.before.setup.node.name
        facts = {"answer": found.answer}
        yield Finding(
            Severity.WARNS,
            f"kubelet {node}".rstrip(),
            found.message,
            FindingCode.RESIZE_NOT_DONE,
            facts,
            in_preview=True,
        )


def _weights(target: ChangedObject) -> Iterator[Finding]:
    """Containers without a CPU request that share the pod's limit: a resize of it drops their weight to 1.

    Started anew they have the weight of the limit. A resize hands the runtime their request as a zero, which
    counts as one (kuberuntime_manager.go, updatePodContainerResources; measured on a real node).
    """
    if not any(edit.target == (POD_LEVEL, Side.LIMITS, CPU) for edit in target.edits):
        return
    for container in target.new.containers:
        if CPU not in container.requests and CPU not in container.limits:
            yield Finding(Severity.WARNS, f"container {container.name}", "", FindingCode.WEIGHT_DROPS)


def _memory(
    preview: Preview, road: StrategyKind, target: ChangedObject, usage: PodUsage
) -> Iterator[Finding]:
    """Memory limits and requests that fall below, or near to, what is in use now."""
    release = preview.before.setup.release
    old, new = default_pod(target.old, release), default_pod(target.new, release)
    for before, after in zip(
        (*old.init_containers, *old.containers), (*new.init_containers, *new.containers), strict=True
    ):
        used, limit = usage.of(after.name), after.limits.get(MEMORY)
        if used is None or limit is None or limit == before.limits.get(MEMORY):
            continue
        restarts = road is not StrategyKind.IN_PLACE or after.name in preview.restarts
        facts = {
            "used": used.working_set_bytes,
            "limit": limit.value(),
            "restarts": restarts,
            "new_pod": road is not StrategyKind.IN_PLACE,
        }
        held_limit = before.limits.get(MEMORY)
        shrinks = held_limit is None or limit < held_limit
        below = limit.value() < used.working_set_bytes
        near = limit.value() * NEAR_LIMIT_PERCENT < used.working_set_bytes * 100
        if below or (near and shrinks):
            topic = FindingCode.LIMIT_BELOW_USAGE if below else FindingCode.LIMIT_NEAR_USAGE
            yield Finding(Severity.WARNS, f"container {after.name}", "", topic, facts)
    held, asked = (eviction_request(pod, release, MEMORY).value() for pod in (old, new))
    if asked < usage.working_set_bytes <= held:
        facts = {"used": usage.working_set_bytes, "request": asked}
        yield Finding(Severity.TELLS, "memory request", "", FindingCode.REQUEST_BELOW_USAGE, facts)


def _no_room(preview: Preview, road: StrategyKind, target: ChangedObject) -> Iterator[Finding]:
    """A new pod does not fit beside what the node holds; one that names its node gets no other."""
    full = tuple(room.resource for room in preview.room if not room.fits)
    if road in {StrategyKind.RECREATE, StrategyKind.TEMPLATE} and full:
        node = preview.after.setup.node.name
        bound = road is StrategyKind.RECREATE and not target.new.metadata.uid and bool(target.new.node_name)
        facts = {"resources": full, "bound": bound}
        yield Finding(Severity.WARNS, f"node {node}", "", FindingCode.NO_ROOM_FOR_NEW_POD, facts)


def _kept(related: RelatedObjects, road: StrategyKind, target: ChangedObject) -> Iterator[Finding]:
    """Who sets the values of the object that is changed, and who sets those of its pods."""
    fields = [ManagedValue(edit.owner, edit.side.value, edit.resource) for edit in target.edits]
    for manager in find_managers(target.raw, fields, FIELD_MANAGER):
        yield _manager(manager, Severity.WARNS)
    chain = [target.raw, related.raw, *(owner.raw for owner in related.owners)]
    for manager in matching_autoscalers(chain, related.autoscalers):
        created_only = road is StrategyKind.IN_PLACE and manager.mode == _INITIAL
        yield _manager(manager, Severity.TELLS if created_only else Severity.WARNS)


def _manager(manager: Manager, weight: Severity) -> Finding:
    kind = "field manager" if manager.kind is ManagerKind.APPLIER else manager.kind.value
    subject = f"{kind} {manager.name}".rstrip()
    return Finding(weight, subject, "", FindingCode.MANAGER, {"keeper": manager})


def _priority(preview: Preview, target: ChangedObject) -> Iterator[Finding]:
    """What requests and limits do not change."""
    spec = target.new.spec
    name = spec.priority_class_name
    subject = f"PriorityClass {name}" if name else "priority"
    if preview.before.node_critical:
        yield Finding(Severity.TELLS, subject, "", FindingCode.NODE_CRITICAL)
        return
    priority = spec.priority
    if name and priority is None:
        yield Finding(Severity.TELLS, subject, "", FindingCode.PRIORITY_UNKNOWN)
    others = [
        row.pod.spec.priority or 0
        for row in preview.effects.ranking_after.pods
        if row.pod is not preview.after.pod and not row.pod.is_terminal
    ]
    lowest = bool(others) and (priority or 0) < min(others)
    if (priority is not None or not name) and ((priority or 0) < 0 or lowest):
        facts = {"priority": priority or 0, "lowest": lowest}
        yield Finding(Severity.TELLS, subject, "", FindingCode.LOW_PRIORITY, facts)


_ORDER: Final = list(Severity)
_SERVER: Final = "API server"


def find_findings(
    preview: Preview, related: RelatedObjects, road: StrategyKind, usage: PodUsage | None
) -> tuple[Finding, ...]:
    """Every verdict on a change that lands on a road, the most severe first.

    Args:
        preview: the change of a pod, or of a workload under its own kind.
        related: what was read for it.
        road: how it is to land: in place, through the template, or as a new pod from the manifest.
        usage: the pod's memory; None where it is not known, or the object is a workload.
    """
    if not preview.edits:
        return ()
    target = changed_object(preview, related, road)
    if preview.strategy_kind is StrategyKind.NEVER and target.old.kind == preview.before.pod.kind:
        found = [Finding(Severity.REFUSES, _SERVER, "", FindingCode.IMMUTABLE, in_preview=True)]
    elif road is StrategyKind.IN_PLACE:
        found = list(_in_place(preview, related, target))
    elif road is StrategyKind.RECREATE:
        found = list(_as_manifest(preview, related, target))
    elif target.old.kind in WORKLOADS:
        found = list(_through_template(preview, related, target))
    else:
        found = []
    found += side_effects(preview, related, road, target, usage)
    return tuple(sorted(found, key=lambda one: _ORDER.index(one.weight)))


def _in_place(preview: Preview, related: RelatedObjects, target: ChangedObject) -> Iterator[Finding]:
    setup, ranges = preview.before.setup, related.limit_ranges
    release = setup.release
    new = as_resized(target, ranges, release)
    shown = {str(one) for one in (*preview.refusals, *preview.resize_refusals)}
    plain = {str(one) for one in pod_refusals(new, release)}
    refused = [*invalid_resize(target.old, new, release), *beyond_node(target.old, new, release, setup.node)]
    for text in dict.fromkeys(map(str, refused)):
        topic = FindingCode.INVALID if text in plain else FindingCode.RESIZE_REFUSED
        yield Finding(Severity.REFUSES, _SERVER, text, topic, in_preview=text in shown)
    yield from _range_refusals(new, related, release)
    before, after = quota_pod(target.old, target, release), quota_pod(new, target, release)
    yield from _quota_refusals(after, related, release, before)
    yield from _added(target, new, related, release, in_place=True)
    yield from _counted(target, after, related, release, before)


def _as_manifest(preview: Preview, related: RelatedObjects, target: ChangedObject) -> Iterator[Finding]:
    release = preview.before.setup.release
    priority = priority_refusal(target.new)
    if priority and not target.old.metadata.uid:
        name = target.new.spec.priority_class_name
        yield Finding(Severity.REFUSES, f"PriorityClass {name}", priority, FindingCode.PRIORITY_REFUSED)
    new = as_created(target.new, related.limit_ranges, release)
    shown = set(map(str, preview.refusals))
    for text in map(str, pod_refusals(new, release)):
        yield Finding(Severity.REFUSES, _SERVER, text, FindingCode.INVALID, in_preview=text in shown)
    yield from _range_refusals(new, related, release)
    claim = quota_pod(new, target, release)
    without = RelatedObjects(raw={}, quotas=tuple(creation_quota(target, related.quotas, release)))
    yield from _quota_refusals(claim, without, release)
    yield from _added(target, new, related, release, in_place=False)
    yield from _counted(target, claim, without, release)


def _through_template(preview: Preview, related: RelatedObjects, target: ChangedObject) -> Iterator[Finding]:
    """The template alone is validated; what refuses the pods that are made of it comes after."""
    release = preview.before.setup.release
    shown = set(map(str, preview.refusals))
    invalid = list(map(str, pod_refusals(target.new, release)))
    for text in invalid:
        yield Finding(Severity.REFUSES, _SERVER, text, FindingCode.INVALID, in_preview=text in shown)
    if invalid:
        return
    yield from _rollout(related, target, release)
    new = as_created(target.new, related.limit_ranges, release)
    yield from _added(target, new, related, release, in_place=False)


def _rollout(related: RelatedObjects, target: ChangedObject, release: Release) -> Iterator[Finding]:
    """How many of the new pods would be made, and what keeps the others from it."""
    plan = rollout_plan(target.raw)
    if not plan.pods:
        return
    new = as_created(target.new, related.limit_ranges, release)
    claim = quota_pod(new, target, release)
    old = quota_pod(as_created(target.old, related.limit_ranges, release), target, release)
    facts = {"kind": target.old.kind, "name": target.old.name}
    never = [(_SERVER, str(one)) for one in pod_refusals(new, release)]
    for name, sentences in range_refusals(new, related.limit_ranges, release):
        never += [(f"LimitRange {name}", sentence) for sentence in sentences]
    for refused in quota_refusals(claim, related.quotas, release):
        if not refused.exceeded:
            never.append((f"ResourceQuota {refused.quota}", refused.message))
    if never:
        reached = reach(plan, lambda *_: False)
        for subject, sentence in never:
            counted = {**facts, "wanted": plan.pods, "left": reached.left}
            yield Finding(Severity.WARNS, subject, sentence, FindingCode.NEW_PODS_REFUSED, counted)
        return
    reached = reach(plan, room_for(claim, old, plan.running, related.quotas, release))
    if not reached.stalls:
        return
    for quota in related.quotas:
        one = [quota]
        alone = reach(plan, room_for(claim, old, plan.running, one, release))
        if not alone.stalls:
            continue
        tight = [
            charge
            for charge in charges(claim, one, release)
            if not room_for(claim, old, plan.running, one, release, charge.resource)(alone.made, alone.left)
        ]
        counted = {"made": alone.made, "wanted": plan.pods, "left": alone.left, "charges": tuple(tight)}
        subject = f"ResourceQuota {quota.name}"
        yield Finding(Severity.WARNS, subject, "", FindingCode.ROLLOUT_STALLS, {**facts, **counted})


def _range_refusals(new: Pod, related: RelatedObjects, release: Release) -> Iterator[Finding]:
    for name, sentences in range_refusals(new, related.limit_ranges, release):
        for sentence in sentences:
            yield Finding(Severity.REFUSES, f"LimitRange {name}", sentence, FindingCode.LIMIT_RANGE_REFUSES)


def _quota_refusals(
    claim: QuotaPod, related: RelatedObjects, release: Release, before: QuotaPod | None = None
) -> Iterator[Finding]:
    for refused in quota_refusals(claim, related.quotas, release, before):
        subject = f"ResourceQuota {refused.quota}"
        yield Finding(Severity.REFUSES, subject, refused.message, FindingCode.QUOTA_REFUSES)


def _counted(
    target: ChangedObject,
    claim: QuotaPod,
    related: RelatedObjects,
    release: Release,
    before: QuotaPod | None = None,
) -> Iterator[Finding]:
    """What is left of a quota afterwards, of the resources that change."""
    touched = tuple({edit.resource for edit in target.edits})
    for charge in charges(claim, related.quotas, release, before):
        if not charge.exceeds and charge.resource.endswith(touched):
            subject = f"ResourceQuota {charge.quota}"
            yield Finding(Severity.TELLS, subject, "", FindingCode.QUOTA_COUNTS, {"charge": charge})


def _added(
    target: ChangedObject, new: Pod, related: RelatedObjects, release: Release, *, in_place: bool
) -> Iterator[Finding]:
    """What LimitRanges add to the values that were asked for; to a pod in place whatever it has not yet."""
    removed = {edit.target for edit in target.edits if edit.quantity is None}
    touched = {(edit.owner, edit.resource) for edit in target.edits}
    plain = pod = default_pod(target.new, release)
    for limit_range in related.limit_ranges:
        filled = with_limit_ranges(pod, [limit_range])
        subject = f"LimitRange {limit_range.metadata.name}"
        for before, after in zip(
            (*pod.init_containers, *pod.containers),
            (*filled.init_containers, *filled.containers),
            strict=True,
        ):
            for side in Side:
                was = getattr(before, side.value)
                for resource, value in getattr(after, side.value).items():
                    if resource in was or not (in_place or (after.name, resource) in touched):
                        continue
                    again = (after.name, side, resource) in removed
                    facts = {"container": after.name, "side": side.value, "resource": resource}
                    yield Finding(
                        Severity.WARNS if again or in_place else Severity.TELLS,
                        subject,
                        "",
                        FindingCode.LIMIT_RANGE_ADDS,
                        {**facts, "value": value, "removed": again},
                    )
        pod = filled
    becomes, asked = computed_class(new, release), computed_class(plain, release)
    if becomes is not asked and not in_place:
        facts = {"becomes": becomes.value, "asked": asked.value}
        yield Finding(Severity.WARNS, "LimitRange", "", FindingCode.LIMIT_RANGE_CHANGES_CLASS, facts)

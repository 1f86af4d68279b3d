"""What stands in the way of a change, or would undo it, or makes it do something else than it says.

Here is what admission does to the object or to the pods that are made of it; side_effects.py has the rest.
Each verdict is a value, present/verdicts.py has the words. What a server or a kubelet says itself is quoted
in `text`. Sources are named where the rules are: edit/admission.py, k8s/limit_range.py,
k8s/resource_quota.py, qos/resize.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_qos.edit.admission import (
    Target,
    as_created,
    as_resized,
    claim_of,
    creation_quota,
    priority_refusal,
    range_refusals,
    target_of,
)
from kubectl_qos.edit.change import Side
from kubectl_qos.edit.preview import Landing, Preview
from kubectl_qos.edit.side_effects import side_effects
from kubectl_qos.edit.stall import plan_of, reach, room_for
from kubectl_qos.edit.surroundings import Surroundings
from kubectl_qos.edit.verdict import Topic, Verdict, Weight
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kinds import WORKLOADS
from kubectl_qos.k8s.limit_range import with_limit_ranges
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.resource_quota import Claim, charges, quota_refusals
from kubectl_qos.k8s.usage import PodUsage
from kubectl_qos.k8s.validation import pod_refusals
from kubectl_qos.qos.qos_class import computed_class
from kubectl_qos.qos.resize import beyond_node, invalid_resize

__all__ = ["Topic", "Verdict", "Weight", "verdicts"]

_ORDER: Final = list(Weight)
_SERVER: Final = "API server"


def verdicts(
    preview: Preview, surroundings: Surroundings, road: Landing, usage: PodUsage | None
) -> tuple[Verdict, ...]:
    """Every verdict on a change that lands on a road, the most severe first.

    Args:
        preview: the change of a pod, or of a workload under its own kind.
        surroundings: what was read for it.
        road: how it is to land: in place, through the template, or as a new pod from the manifest.
        usage: the pod's memory; None where it is not known, or the object is a workload.
    """
    if not preview.edits:
        return ()
    target = target_of(preview, surroundings, road)
    if preview.landing is Landing.NEVER and target.old.kind == preview.before.pod.kind:
        found = [Verdict(Weight.REFUSES, _SERVER, "", Topic.IMMUTABLE, in_preview=True)]
    elif road is Landing.IN_PLACE:
        found = list(_in_place(preview, surroundings, target))
    elif road is Landing.RECREATE:
        found = list(_as_manifest(preview, surroundings, target))
    elif target.old.kind in WORKLOADS:
        found = list(_through_template(preview, surroundings, target))
    else:
        found = []
    found += side_effects(preview, surroundings, road, target, usage)
    return tuple(sorted(found, key=lambda one: _ORDER.index(one.weight)))


def _in_place(preview: Preview, surroundings: Surroundings, target: Target) -> Iterator[Verdict]:
    setup, ranges = preview.before.setup, surroundings.limit_ranges
    release = setup.release
    new = as_resized(target, ranges, release)
    shown = {str(one) for one in (*preview.refusals, *preview.resize_refusals)}
    plain = {str(one) for one in pod_refusals(new, release)}
    refused = [*invalid_resize(target.old, new, release), *beyond_node(target.old, new, release, setup.node)]
    for text in dict.fromkeys(map(str, refused)):
        topic = Topic.INVALID if text in plain else Topic.RESIZE_REFUSED
        yield Verdict(Weight.REFUSES, _SERVER, text, topic, in_preview=text in shown)
    yield from _range_refusals(new, surroundings, release)
    before, after = claim_of(target.old, target, release), claim_of(new, target, release)
    yield from _quota_refusals(after, surroundings, release, before)
    yield from _added(target, new, surroundings, release, in_place=True)
    yield from _counted(target, after, surroundings, release, before)


def _as_manifest(preview: Preview, surroundings: Surroundings, target: Target) -> Iterator[Verdict]:
    release = preview.before.setup.release
    priority = priority_refusal(target.new)
    if priority and not target.old.metadata.uid:
        name = target.new.spec.priority_class_name
        yield Verdict(Weight.REFUSES, f"PriorityClass {name}", priority, Topic.PRIORITY_REFUSED)
    new = as_created(target.new, surroundings.limit_ranges, release)
    shown = set(map(str, preview.refusals))
    for text in map(str, pod_refusals(new, release)):
        yield Verdict(Weight.REFUSES, _SERVER, text, Topic.INVALID, in_preview=text in shown)
    yield from _range_refusals(new, surroundings, release)
    claim = claim_of(new, target, release)
    without = Surroundings(raw={}, quotas=tuple(creation_quota(target, surroundings.quotas, release)))
    yield from _quota_refusals(claim, without, release)
    yield from _added(target, new, surroundings, release, in_place=False)
    yield from _counted(target, claim, without, release)


def _through_template(preview: Preview, surroundings: Surroundings, target: Target) -> Iterator[Verdict]:
    """The template alone is validated; what refuses the pods that are made of it comes after."""
    release = preview.before.setup.release
    shown = set(map(str, preview.refusals))
    invalid = list(map(str, pod_refusals(target.new, release)))
    for text in invalid:
        yield Verdict(Weight.REFUSES, _SERVER, text, Topic.INVALID, in_preview=text in shown)
    if invalid:
        return
    yield from _rollout(surroundings, target, release)
    new = as_created(target.new, surroundings.limit_ranges, release)
    yield from _added(target, new, surroundings, release, in_place=False)


def _rollout(surroundings: Surroundings, target: Target, release: Release) -> Iterator[Verdict]:
    """How many of the new pods would be made, and what keeps the others from it."""
    plan = plan_of(target.raw)
    if not plan.pods:
        return
    new = as_created(target.new, surroundings.limit_ranges, release)
    claim = claim_of(new, target, release)
    old = claim_of(as_created(target.old, surroundings.limit_ranges, release), target, release)
    facts = {"kind": target.old.kind, "name": target.old.name}
    never = [(_SERVER, str(one)) for one in pod_refusals(new, release)]
    for name, sentences in range_refusals(new, surroundings.limit_ranges, release):
        never += [(f"LimitRange {name}", sentence) for sentence in sentences]
    for refused in quota_refusals(claim, surroundings.quotas, release):
        if not refused.exceeded:
            never.append((f"ResourceQuota {refused.quota}", refused.message))
    if never:
        reached = reach(plan, lambda *_: False)
        for subject, sentence in never:
            counted = {**facts, "wanted": plan.pods, "left": reached.left}
            yield Verdict(Weight.WARNS, subject, sentence, Topic.NEW_PODS_REFUSED, counted)
        return
    reached = reach(plan, room_for(claim, old, plan.running, surroundings.quotas, release))
    if not reached.stalls:
        return
    for quota in surroundings.quotas:
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
        yield Verdict(Weight.WARNS, subject, "", Topic.ROLLOUT_STALLS, {**facts, **counted})


def _range_refusals(new: Pod, surroundings: Surroundings, release: Release) -> Iterator[Verdict]:
    for name, sentences in range_refusals(new, surroundings.limit_ranges, release):
        for sentence in sentences:
            yield Verdict(Weight.REFUSES, f"LimitRange {name}", sentence, Topic.LIMIT_RANGE_REFUSES)


def _quota_refusals(
    claim: Claim, surroundings: Surroundings, release: Release, before: Claim | None = None
) -> Iterator[Verdict]:
    for refused in quota_refusals(claim, surroundings.quotas, release, before):
        subject = f"ResourceQuota {refused.quota}"
        yield Verdict(Weight.REFUSES, subject, refused.message, Topic.QUOTA_REFUSES)


def _counted(
    target: Target, claim: Claim, surroundings: Surroundings, release: Release, before: Claim | None = None
) -> Iterator[Verdict]:
    """What is left of a quota afterwards, of the resources that change."""
    touched = tuple({edit.resource for edit in target.edits})
    for charge in charges(claim, surroundings.quotas, release, before):
        if not charge.exceeds and charge.resource.endswith(touched):
            subject = f"ResourceQuota {charge.quota}"
            yield Verdict(Weight.TELLS, subject, "", Topic.QUOTA_COUNTS, {"charge": charge})


def _added(
    target: Target, new: Pod, surroundings: Surroundings, release: Release, *, in_place: bool
) -> Iterator[Verdict]:
    """What LimitRanges add to the values that were asked for; to a pod in place whatever it has not yet."""
    removed = {edit.target for edit in target.edits if edit.quantity is None}
    touched = {(edit.owner, edit.resource) for edit in target.edits}
    plain = pod = default_pod(target.new, release)
    for limit_range in surroundings.limit_ranges:
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
                    yield Verdict(
                        Weight.WARNS if again or in_place else Weight.TELLS,
                        subject,
                        "",
                        Topic.LIMIT_RANGE_ADDS,
                        {**facts, "value": value, "removed": again},
                    )
        pod = filled
    becomes, asked = computed_class(new, release), computed_class(plain, release)
    if becomes is not asked and not in_place:
        facts = {"becomes": becomes.value, "asked": asked.value}
        yield Verdict(Weight.WARNS, "LimitRange", "", Topic.LIMIT_RANGE_CHANGES_CLASS, facts)

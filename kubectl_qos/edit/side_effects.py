"""What a change that is accepted runs into: who puts it back, priority, memory that is in use, no room.

Sources: k8s/keepers.py; seen on a real node: a limit below what is used stays as it was in the cgroup, and
the kubelet says so in a condition; pkg/kubelet/eviction/helpers.go (rankMemoryPressure);
pkg/scheduler/framework/preemption (lower priority first). Values alone, present/verdicts.py has the words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_qos.edit.admission import Target
from kubectl_qos.edit.change import POD_LEVEL, Side
from kubectl_qos.edit.preview import Landing, Preview
from kubectl_qos.edit.request import FIELD_MANAGER
from kubectl_qos.edit.surroundings import Surroundings
from kubectl_qos.edit.verdict import Topic, Verdict, Weight
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.keepers import Field, Keeper, KeeperKind, autoscalers_of, keepers
from kubectl_qos.k8s.objects import CPU, MEMORY
from kubectl_qos.k8s.resources import eviction_request
from kubectl_qos.k8s.usage import PodUsage
from kubectl_qos.qos.flags import NEAR_LIMIT_PERCENT
from kubectl_qos.qos.resize import Answer

_INITIAL: Final = "Initial"
"""The update mode that changes pods only when they are created."""


def side_effects(
    preview: Preview, surroundings: Surroundings, road: Landing, target: Target, usage: PodUsage | None
) -> Iterator[Verdict]:
    """Every verdict that no admission gives."""
    yield from _not_done(preview, road)
    if road is Landing.IN_PLACE:
        yield from _weights(target)
    if usage is not None:
        yield from _memory(preview, road, target, usage)
    yield from _no_room(preview, road, target)
    yield from _kept(surroundings, road, target)
    yield from _priority(preview, target)


def _not_done(preview: Preview, road: Landing) -> Iterator[Verdict]:
    found = preview.outcome
    if road is Landing.IN_PLACE and found.answer is not Answer.ACTUATED:
        node = preview.before.setup.node.name
        facts = {"answer": found.answer}
        yield Verdict(
            Weight.WARNS,
            f"kubelet {node}".rstrip(),
            found.message,
            Topic.RESIZE_NOT_DONE,
            facts,
            in_preview=True,
        )


def _weights(target: Target) -> Iterator[Verdict]:
    """Containers without a CPU request that share the pod's limit: a resize of it drops their weight to 1.

    Started anew they have the weight of the limit. A resize hands the runtime their request as a zero, which
    counts as one (kuberuntime_manager.go, updatePodContainerResources; measured on a real node).
    """
    if not any(edit.target == (POD_LEVEL, Side.LIMITS, CPU) for edit in target.edits):
        return
    for container in target.new.containers:
        if CPU not in container.requests and CPU not in container.limits:
            yield Verdict(Weight.WARNS, f"container {container.name}", "", Topic.WEIGHT_DROPS)


def _memory(preview: Preview, road: Landing, target: Target, usage: PodUsage) -> Iterator[Verdict]:
    """Memory limits and requests that fall below, or near to, what is in use now."""
    release = preview.before.setup.release
    old, new = default_pod(target.old, release), default_pod(target.new, release)
    for before, after in zip(
        (*old.init_containers, *old.containers), (*new.init_containers, *new.containers), strict=True
    ):
        used, limit = usage.of(after.name), after.limits.get(MEMORY)
        if used is None or limit is None or limit == before.limits.get(MEMORY):
            continue
        restarts = road is not Landing.IN_PLACE or after.name in preview.restarts
        facts = {
            "used": used.working_set_bytes,
            "limit": limit.value(),
            "restarts": restarts,
            "new_pod": road is not Landing.IN_PLACE,
        }
        held_limit = before.limits.get(MEMORY)
        shrinks = held_limit is None or limit < held_limit
        below = limit.value() < used.working_set_bytes
        near = limit.value() * NEAR_LIMIT_PERCENT < used.working_set_bytes * 100
        if below or (near and shrinks):
            topic = Topic.LIMIT_BELOW_USAGE if below else Topic.LIMIT_NEAR_USAGE
            yield Verdict(Weight.WARNS, f"container {after.name}", "", topic, facts)
    held, asked = (eviction_request(pod, release, MEMORY).value() for pod in (old, new))
    if asked < usage.working_set_bytes <= held:
        facts = {"used": usage.working_set_bytes, "request": asked}
        yield Verdict(Weight.TELLS, "memory request", "", Topic.REQUEST_BELOW_USAGE, facts)


def _no_room(preview: Preview, road: Landing, target: Target) -> Iterator[Verdict]:
    """A new pod does not fit beside what the node holds; one that names its node gets no other."""
    full = tuple(room.resource for room in preview.room if not room.fits)
    if road in {Landing.RECREATE, Landing.TEMPLATE} and full:
        node = preview.after.setup.node.name
        bound = road is Landing.RECREATE and not target.new.metadata.uid and bool(target.new.node_name)
        facts = {"resources": full, "bound": bound}
        yield Verdict(Weight.WARNS, f"node {node}", "", Topic.NO_ROOM_FOR_NEW_POD, facts)


def _kept(surroundings: Surroundings, road: Landing, target: Target) -> Iterator[Verdict]:
    """Who sets the values of the object that is changed, and who sets those of its pods."""
    fields = [Field(edit.owner, edit.side.value, edit.resource) for edit in target.edits]
    for keeper in keepers(target.raw, fields, FIELD_MANAGER):
        yield _keeper(keeper, Weight.WARNS)
    chain = [target.raw, surroundings.raw, *(owner.raw for owner in surroundings.owners)]
    for keeper in autoscalers_of(chain, surroundings.autoscalers):
        created_only = road is Landing.IN_PLACE and keeper.mode == _INITIAL
        yield _keeper(keeper, Weight.TELLS if created_only else Weight.WARNS)


def _keeper(keeper: Keeper, weight: Weight) -> Verdict:
    kind = "field manager" if keeper.kind is KeeperKind.APPLIER else keeper.kind.value
    subject = f"{kind} {keeper.name}".rstrip()
    return Verdict(weight, subject, "", Topic.KEEPER, {"keeper": keeper})


def _priority(preview: Preview, target: Target) -> Iterator[Verdict]:
    """What requests and limits do not change."""
    spec = target.new.spec
    name = spec.priority_class_name
    subject = f"PriorityClass {name}" if name else "priority"
    if preview.before.node_critical:
        yield Verdict(Weight.TELLS, subject, "", Topic.NODE_CRITICAL)
        return
    priority = spec.priority
    if name and priority is None:
        yield Verdict(Weight.TELLS, subject, "", Topic.PRIORITY_UNKNOWN)
    others = [
        row.pod.spec.priority or 0
        for row in preview.effects.ranking_after.pods
        if row.pod is not preview.after.pod and not row.pod.is_terminal
    ]
    lowest = bool(others) and (priority or 0) < min(others)
    if (priority is not None or not name) and ((priority or 0) < 0 or lowest):
        facts = {"priority": priority or 0, "lowest": lowest}
        yield Verdict(Weight.TELLS, subject, "", Topic.LOW_PRIORITY, facts)

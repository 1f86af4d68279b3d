"""The strategies to apply a change, each with its exact request, and the rollout of a template.

Not here: the effects of a change (preview.py), findings (findings.py), sending it (cluster/writer.py).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from kubectl_qos.edit.edits import Edit, PatchRequest, build_request, effective_edits, own_edits
from kubectl_qos.edit.preview import Preview, StrategyKind
from kubectl_qos.edit.related import OWNER, Owner, RelatedObjects
from kubectl_qos.edit.status import is_on_delete, number, read_partition, read_replicas, unchanged_pods_note
from kubectl_qos.k8s.kinds import WORKLOADS, find_controller, has_fixed_template
from kubectl_qos.k8s.objects import Json, Pod, nested
from kubectl_qos.k8s.quantity import ZERO
from kubectl_qos.k8s.quota import QuotaPod, ResourceQuota, charges, matches, quota_usage
from kubectl_qos.k8s.releases import Change, Release

RECREATE_JOB: Final = "delete and recreate the job"


@dataclass(frozen=True, slots=True)
class Strategy:
    """One strategy to apply a change."""

    kind: StrategyKind
    request: PatchRequest | None
    """None if the strategy is impossible, or possible only by hand, as a manifest."""
    reason: str = ""
    """Why the strategy is impossible, else empty."""
    restarts: tuple[str, ...] = ()
    """The containers that restart in place."""
    pods: int | None = None
    """How many pods are replaced, None if unknown."""
    note: str = ""
    """Which pods keep their values, if any."""
    is_done: bool = False
    """New pods already get the values."""
    is_immutable: bool = False
    """The template can never be changed: its job has to be created again."""

    @property
    def is_possible(self) -> bool:
        """Return whether the strategy can apply the change."""
        return not self.reason


def find_strategies(
    pod: Pod, edits: Iterable[Edit], preview: Preview, related: RelatedObjects
) -> tuple[Strategy, ...]:
    """Return the strategies for an object, for workloads the pod of its template; possible ones first.

    Edits that change nothing are dropped; `preview` is of the same edits.
    """
    edits = effective_edits(pod, edits)
    if pod.kind == "Pod":
        strategies = _for_pod(pod, edits, preview, related)
    else:
        own = Owner({"kind": pod.kind, **related.raw}, pod)
        strategies = [_through_template(topmost_workload(related) or own, edits, preview, related)]
    return tuple(sorted(strategies, key=lambda strategy: not strategy.is_possible))


def _for_pod(pod: Pod, edits: tuple[Edit, ...], preview: Preview, related: RelatedObjects) -> list[Strategy]:
    if preview.before.static or preview.before.mirror:
        node = f" {pod.node_name}" if pod.node_name else ""
        reason = f"the kubelet creates it from a file: edit that file on the node{node}"
        return [Strategy(StrategyKind.NEVER, None, reason)]
    in_place = _in_place(pod, edits, preview, related)
    owner = topmost_workload(related)
    if owner is not None:
        return [in_place, _through_template(owner, edits, preview, related)]
    unread = _unread_owner(related, related.raw)
    if unread:
        return [in_place, Strategy(StrategyKind.TEMPLATE, None, unread)]
    if related.owners:
        nearest = related.owners[0]
        reason = f"{nearest.kind.lower()}/{nearest.name} has no known pod template"
        return [in_place, Strategy(StrategyKind.TEMPLATE, None, reason)]
    return [in_place, Strategy(StrategyKind.RECREATE, None, _refusal(edits, preview))]


def _in_place(pod: Pod, edits: tuple[Edit, ...], preview: Preview, related: RelatedObjects) -> Strategy:
    if pod.is_terminal:
        reason = f"the pod has ended: {pod.status.phase}"
    else:
        reason = _refusal(edits, preview) or "; ".join(dict.fromkeys(map(str, preview.resize_refusals)))
        reason = reason or "; ".join(loop_obstacles(preview))
    if reason:
        return Strategy(StrategyKind.IN_PLACE, None, reason)
    request = build_request(related.raw, pod, edits, in_place=True)
    return Strategy(StrategyKind.IN_PLACE, request, restarts=preview.restarts)


def loop_obstacles(preview: Preview) -> Iterator[str]:
    """Yield why a container that is OOMKilled again and again would not survive with its new limit either."""
    for loop in preview.endless_loops:
        waits = f"waits in {loop.reason}" if loop.reason else "has ended"
        times = f"{loop.restarts} restart{'' if loop.restarts == 1 else 's'}"
        why = raised_while_running(preview.before.setup.release)
        ended = "could not start within its limit" if loop.never_ran else "was OOMKilled"
        again = "so it still could not start" if loop.never_ran else "so it would be killed again"
        yield f"{loop.container} {ended} and {waits} ({times}): {why}, {again}"


def revert_obstacle(preview: Preview, strategy: Strategy) -> str:
    """Return why a change cannot be reverted while a container waits after an OOM kill, or ""."""
    release = preview.before.setup.release
    if strategy.kind is not StrategyKind.IN_PLACE or release.has(Change.RESIZE_OF_STARTING_CONTAINER):
        return ""
    files = preview.effects.files
    backwards = [replace(file, before=file.after, after=file.before) for file in files]
    is_raised = any(not change.container and change.raises_memory_limit for change in backwards)
    return raised_while_running(release) if is_raised else ""


def raised_while_running(release: Release) -> str:
    """Say when kubelets without the patch for kubernetes#138760 raise the memory limit of a pod's cgroup."""
    fixed = release.next_with(Change.RESIZE_OF_STARTING_CONTAINER)
    return f"before {fixed} kubelets raise the limit of the pod's cgroup only while the container runs"


def _through_template(
    owner: Owner, edits: tuple[Edit, ...], preview: Preview, related: RelatedObjects
) -> Strategy:
    name = f"{owner.kind.lower()}/{owner.name}"
    template = owner.template
    reason = _unread_owner(related, owner.raw)
    if reason or template is None:
        return Strategy(StrategyKind.TEMPLATE, None, reason or "it has no pod template")
    if has_fixed_template(template, preview.before.setup.release):
        kind = StrategyKind.TEMPLATE if preview.before.pod.kind == "Pod" else StrategyKind.NEVER
        reason = f"the template of {name} is immutable: {RECREATE_JOB}"
        return Strategy(kind, None, reason, is_immutable=True)
    own = own_edits(template, edits)
    injected = dict.fromkeys(edit.owner for edit in edits if edit not in own)
    needed = [] if injected else effective_edits(template, edits)
    if injected:
        names = ", ".join(injected)
        reason = f"the template of {name} has no container {names}: it is injected into pods"
    elif not (reason := _refusal(edits, preview)) and not needed:
        reason = f"the template of {name} already has these values"
        return Strategy(StrategyKind.TEMPLATE, None, reason, is_done=True)
    if reason:
        return Strategy(StrategyKind.TEMPLATE, None, reason)
    request = build_request(owner.raw, template, needed, in_place=False)
    pods, note = replaced_pods(owner.kind, owner.raw), unchanged_pods_note(owner.kind, owner.raw)
    return Strategy(StrategyKind.TEMPLATE, request, pods=pods, note=note)


def topmost_workload(related: RelatedObjects) -> Owner | None:
    """Return the topmost workload with a template: a Deployment, not its ReplicaSet."""
    workloads = [owner for owner in related.owners if owner.kind in WORKLOADS and owner.template is not None]
    return workloads[-1] if workloads else None


def _unread_owner(related: RelatedObjects, raw: Json) -> str:
    """Return why the controller of an object, which would revert the change, is unknown; or ""."""
    controller = find_controller(raw)
    if controller is None or controller.get("kind") not in WORKLOADS:
        return ""
    key = (controller.get("kind"), controller.get("name"))
    if any((owner.kind, owner.name) == key for owner in related.owners):
        return ""
    why = next((missing.why for missing in related.missing if missing.what.startswith(OWNER)), "")
    name = f"{controller['kind'].lower()}/{controller.get('name')}"
    return f"its owner {name} could not be read{f': {why}' if why else ''}"


def _refusal(edits: tuple[Edit, ...], preview: Preview) -> str:
    """Return why no server accepts the change with any strategy, or ""."""
    if not edits:
        return "nothing changes"
    return "; ".join(dict.fromkeys(map(str, preview.refusals)))


def replaced_pods(kind: str, workload: Json) -> int | None:
    """Return how many pods are replaced after a change of the template; None if unknown."""
    is_paused = kind == "Deployment" and nested(workload, "spec").get("paused") is True
    is_kept = kind in {"ReplicaSet", "ReplicationController", "CronJob", "Job"}
    if is_kept or is_on_delete(workload) or is_paused:
        return 0
    if kind == "DaemonSet":
        return number(workload, "status", "desiredNumberScheduled")
    return max(read_replicas(workload) - (read_partition(workload) if kind == "StatefulSet" else 0), 0)


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """How a workload replaces its `pods`: up to `surge` more pods may exist at a time, or `missing` fewer.

    `running` is the number of old pods that are replaced: none of a CronJob or suspended Job.
    """

    pods: int
    running: int
    surge: int
    missing: int


def rollout_plan(workload: Json) -> RolloutPlan:
    """Return how the workload would replace its pods, with the server's defaults."""
    kind = workload.get("kind")
    if kind in {"CronJob", "Job"}:
        job = ("jobTemplate", "spec") if kind == "CronJob" else ()
        pods = _whole(number(workload, "spec", *job, "parallelism"), 1)
        return RolloutPlan(pods, 0, pods, 0)
    is_daemon_set, is_deployment = kind == "DaemonSet", kind == "Deployment"
    replicas = ("status", "desiredNumberScheduled") if is_daemon_set else ("spec", "replicas")
    pods = _whole(number(workload, *replicas), 1)
    strategy = nested(workload, "spec", "strategy" if is_deployment else "updateStrategy")
    rolling = nested(strategy, "rollingUpdate")
    if is_deployment and strategy.get("type") == "Recreate":
        return RolloutPlan(pods, pods, 0, pods)
    if kind == "StatefulSet":
        pods = max(0, pods - read_partition(workload))
    surge = _share(rolling.get("maxSurge", "25%" if is_deployment else 0), pods, up=True)
    missing = _share(rolling.get("maxUnavailable", "25%" if is_deployment else 1), pods, up=not is_deployment)
    return RolloutPlan(pods, pods, surge, missing if surge or missing else 1)


def rollout_reach(plan: RolloutPlan, fits: Callable[[int, int], bool]) -> tuple[int, int]:
    """Return how many new pods a rollout makes, and how many old ones are left then.

    `fits(made, left)` says whether quotas admit one more pod.

    Old and new pods exist side by side for a while, and quotas count both. Assumed: a new pod becomes ready
    at once, and a refused one is retried once an old one is gone. Sources:
    pkg/controller/deployment/rolling.go (reconcileNewReplicaSet, reconcileOldReplicaSets),
    pkg/controller/deployment/util/deployment_util.go (ResolveFenceposts),
    pkg/controller/statefulset/stateful_set_control.go, pkg/controller/daemon/update.go.
    """
    made, left = 0, plan.running
    while True:
        before = made, left
        while made < plan.pods and made + left < plan.pods + plan.surge and fits(made, left):
            made += 1
        while left and made + left > plan.pods - plan.missing:
            left -= 1
        if (made, left) == before:
            return before


def quota_room(
    new: QuotaPod,
    old: QuotaPod,
    running: int,
    quotas: Sequence[ResourceQuota],
    release: Release,
    resource: str | None = None,
) -> Callable[[int, int], bool]:
    """Return a test whether quotas admit a `new` pod in addition to `made` new and `left` old ones.

    `running` is how many of the old pods the quotas count. With `resource`, only that resource is checked.
    """
    freed, added = quota_usage(old.pod, release), quota_usage(new.pod, release)
    concerned = [
        (charge, freed.get(charge.resource, ZERO) if matches(quota, old) else ZERO, added[charge.resource])
        for quota in quotas
        for charge in charges(new, [quota], release)
        if resource in {None, charge.resource}
    ]

    def fits(made: int, left: int) -> bool:
        return all(
            charge.used.nano + (made + 1) * new.nano - (running - left) * gone.nano <= charge.hard.nano
            for charge, gone, new in concerned
        )

    return fits


def _whole(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default


def _share(value: object, pods: int, *, up: bool) -> int:
    """Return a number, or a percentage of the pods rounded up or down (`GetScaledValueFromIntOrPercent`)."""
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdecimal():
        product = int(value[:-1]) * pods
        return -(-product // 100) if up else product // 100
    return _whole(value, 0)

"""In-place resize: refusals of the resize subresource, and the kubelet's answer.

Sources: pkg/apis/core/validation/validation.go (ValidatePodResize), plugin/pkg/admission/podresize and
nodedeclaredfeatures (admission.go), pkg/kubelet/allocation (allocation_manager.go),
pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodResizeAction). The messages are the server's and
the kubelet's. Not here: sending a resize (cluster/).
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from kubectl_qos.k8s.kubelet import Node, NodeSetup
from kubectl_qos.k8s.objects import (
    CPU,
    EMPTY_RESOURCES,
    MEMORY,
    Container,
    Pod,
    ResourceList,
    ResourceRequirements,
    all_containers,
)
from kubectl_qos.k8s.quantity import ZERO, Quantity
from kubectl_qos.k8s.releases import Change, Gate, Release
from kubectl_qos.k8s.resources import admission_count, declared_limits, is_sidecar, pod_limits, pod_requests
from kubectl_qos.k8s.usage import PodUsage
from kubectl_qos.k8s.validation import Refusal, pod_refusals
from kubectl_qos.qos.cgroup.values import LIMITED_SWAP
from kubectl_qos.qos.oom_score import is_mirror, is_static
from kubectl_qos.qos.qos_class import QosClass, computed_class, qos_class

RESTART: Final = "RestartContainer"
_MUTABLE: Final = "only cpu and memory resources are mutable"
_SIDES: Final = ("requests", "limits")
_Requirements = ResourceRequirements | None


def resize_refusals(old: Pod, new: Pod, release: Release, node: Node | None = None) -> list[Refusal]:
    """Return why a server refuses to change a stored pod into a defaulted one in place.

    From 1.36 on, servers check the pod's node too.
    """
    refusals = invalid_resize(old, new, release)
    return refusals or (list(beyond_node(old, new, release, node)) if node is not None else [])


def beyond_node(old: Pod, new: Pod, release: Release, node: Node) -> Iterator[Refusal]:
    """Yield why admission refuses a valid resize because of the node; LimitRanges are checked before."""
    available = node.declared_features
    if available is not None and release.has(Change.RESIZE_NEEDS_DECLARED_FEATURES):
        missing = [name for name in _needed_features(old, new, release) if name not in available]
        if missing:
            sentence = f'which are not available on node "{node.name}"'
            yield Refusal("", f"pod update requires features {', '.join(missing)} {sentence}")
    if release.has(Change.RESIZE_CHECKED_AGAINST_NODE):
        # The admission plugin PodResize (plugin/pkg/admission/podresize).
        requests, allocatable = pod_requests(new, release), node.status_allocatable
        sentences = [
            f"{name}, requested: {_amount(requests, name)}, allocatable: {_amount(allocatable, name)}"
            for name in (CPU, MEMORY)
            if name in allocatable and requests.get(name, ZERO) > allocatable[name]
        ]
        if sentences:
            yield Refusal("", f"node didn't have enough allocatable resources: {'; '.join(sentences)}")


def invalid_resize(old: Pod, new: Pod, release: Release) -> list[Refusal]:
    """Return why validation refuses to change the old pod into the new one."""
    if unavailable := why_unavailable(release):
        return [Refusal("", unavailable)]
    if is_mirror(old) or is_static(old):
        return [Refusal("", "Forbidden: static pods cannot be resized")]
    pod_level = _has_any(old.spec.resources) or _has_any(new.spec.resources)
    if pod_level and not release.has(Change.RESIZE_OF_POD_LEVEL):
        return [Refusal("", "Forbidden: pods with pod-level resources cannot be resized")]
    refusals = pod_refusals(new, release)
    if qos_class(old, release) is not computed_class(new, release):
        stored = old.status.qos_class or qos_class(old, release).value
        sentence = "Pod QOS Class may not change as a result of resizing"
        refusals.append(Refusal("spec", f'Invalid value: "{stored}": {sentence}'))
    # The first running container decides (`isPodResizeRequestSupported`).
    statuses = (status for status in old.status.container_statuses or () if status.state is not None)
    running = next((status for status in statuses if status.has_processes), None)
    if running is not None and running.resources is None:
        refusals.append(Refusal("spec", "Forbidden: Pod running on node without support for resize"))
    if pod_level:
        if not release.enabled(Gate.IN_PLACE_RESIZE_POD_LEVEL):
            gate = "InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled"
            sentence = f"Forbidden: resize of pods with pod-level resources is forbidden when {gate}"
            return [*refusals, Refusal("", sentence)]
        if old.spec.resources is not None and new.spec.resources is None:
            sentence = "Forbidden: pod-level resources cannot be removed"
            refusals.append(Refusal("spec.resources", sentence))
        else:
            refusals += _removals(
                old.spec.resources, new.spec.resources, "spec.resources", "pod-level resource"
            )
            if _other_resources(old.spec.resources) != _other_resources(new.spec.resources):
                refusals.append(Refusal("spec", f"Forbidden: {_MUTABLE} at pod-level"))
    return [*refusals, *_container_refusals(old, new, release)]


def restarting(old: Pod, new: Pod) -> list[str]:
    """Return the containers that an in-place change restarts, in order."""
    return [
        after.name
        for before, after in zip(all_containers(old), all_containers(new), strict=True)
        if any(
            policy.restart_policy == RESTART and _differs(before, after, policy.resource_name)
            for policy in before.resize_policy or ()
        )
    ]


def waiting_containers(pod: Pod) -> set[str]:
    """Return the containers that do not run now; the kubelet does not resize them.

    They start with the new limits. Until kubernetes#140387, the limit of the pod's cgroup was the sum of the
    running containers' limits (computePodActions).
    """
    return {status.name for status in pod.status.every_container if not status.has_processes}


class ResizeStatus(StrEnum):
    """The kubelet's answer to an accepted resize."""

    ACTUATED = "done"
    DEFERRED = "Deferred"
    INFEASIBLE = "Infeasible"
    ERROR = "Error"


class NodeFit(NamedTuple):
    """Allocatable of a node, requests of its other pods, and request of this pod: bytes or millicores."""

    resource: str
    capacity: int
    used: int
    needed: int
    is_compared: bool = True
    """Whether the kubelet and the scheduler look at this resource."""

    @property
    def free(self) -> int:
        """Amount left without the pod: bytes or millicores."""
        return self.capacity - self.used

    @property
    def fits(self) -> bool:
        """Whether the request fits."""
        return not self.is_compared or self.needed <= self.free


class ResizeOutcome(NamedTuple):
    """The kubelet's answer with its message, "" if the resize is done."""

    answer: ResizeStatus
    message: str = ""


def resize_outcome(
    old: Pod, new: Pod, setup: NodeSetup, fits: Iterable[NodeFit] | None = None, usage: PodUsage | None = None
) -> ResizeOutcome:
    """Predict the kubelet's answer to an accepted resize.

    `old` is the pod as the node runs it, `fits` how `new` fits with the node's other pods (`node_fit`),
    None without other pods. The kubelet refuses memory limits below the pod's `usage`.
    """
    if infeasible := _infeasible_reason(old, new, setup):
        return ResizeOutcome(ResizeStatus.INFEASIBLE, infeasible)
    for fit in node_fit(new, (), setup) if fits is None else fits:
        if not fit.fits:
            amounts = f"requested: {fit.needed}, used: {fit.used}, capacity: {fit.capacity}"
            message = f"Node didn't have enough resource: {fit.resource}, {amounts}"
            return ResizeOutcome(ResizeStatus.DEFERRED, message)
    errors = list(_limits_below_usage(old, new, setup.release, usage))
    if errors:
        sentences = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
        return ResizeOutcome(ResizeStatus.ERROR, f"cannot decrease memory limits: {sentences}")
    return ResizeOutcome(ResizeStatus.ACTUATED)


def why_unavailable(release: Release) -> str:
    """Return why a server of this release, with its gates, lacks the resize subresource, or ""."""
    if not release.has(Change.RESIZE_SUBRESOURCE):
        return f"Kubernetes {release} has no resize subresource (it came with 1.32)"
    if not release.enabled(Gate.IN_PLACE_RESIZE):
        return "the server could not find the requested resource"
    return ""


def _needed_features(old: Pod, new: Pod, release: Release) -> Iterator[str]:
    """Yield the features that a resize needs, by name (component-helpers, features/inplacepodresize)."""
    if old.spec.resources != new.spec.resources:
        yield Gate.IN_PLACE_RESIZE_POD_LEVEL.value
    if any(
        before.resources != after.resources
        for before, after in zip(old.init_containers, new.init_containers, strict=True)
        if not is_sidecar(before, release)
    ):
        yield Gate.IN_PLACE_RESIZE_INIT_CONTAINERS.value


def _has_any(resources: _Requirements) -> bool:
    return resources is not None and bool(resources.requests or resources.limits)


def _container_refusals(old: Pod, new: Pod, release: Release) -> Iterator[Refusal]:
    init_allowed = release.enabled(Gate.IN_PLACE_RESIZE_INIT_CONTAINERS)
    for index, (before, after) in enumerate(zip(old.init_containers, new.init_containers, strict=True)):
        path = f"spec.initContainers[{index}]"
        sidecar = is_sidecar(before, release)
        if sidecar or init_allowed:
            yield from _removals(before.resources, after.resources, f"{path}.resources", owner=before.name)
            if _other_resources(before.resources) != _other_resources(after.resources):
                names_path = release.has(Change.INIT_RESIZE_NAMES_PATH)
                what = "init or sidecar containers" if names_path else "sidecar containers"
                sentence = f"Forbidden: only cpu and memory resources for {what} are mutable"
                yield Refusal(path if names_path else "spec", sentence, before.name)
            policies = before.resize_policy or ()
            restarts = any(policy.restart_policy == RESTART for policy in policies)
            if init_allowed and not sidecar and restarts and before.resources != after.resources:
                sentence = "non-sidecar init containers with a resize policy of RestartContainer"
                yield Refusal(path, f"Forbidden: {sentence} cannot be resized", before.name)
        elif before.resources != after.resources:
            sentence = "resources for non-sidecar init containers are immutable"
            yield Refusal("spec", f"Forbidden: {sentence}", before.name)
    for index, (before, after) in enumerate(zip(old.containers, new.containers, strict=True)):
        path = f"spec.containers[{index}].resources"
        yield from _removals(before.resources, after.resources, path, owner=before.name)
        if release.has(Change.MEMORY_LIMIT_ONLY_GROWS):
            yield from _shrinking(before, after, f"{path}.limits")
        if _other_resources(before.resources) != _other_resources(after.resources):
            yield Refusal("spec", f"Forbidden: {_MUTABLE}", before.name)


def _removals(
    old: _Requirements, new: _Requirements, path: str, what: str = "resource", owner: str = ""
) -> Iterator[Refusal]:
    for side in _SIDES:
        if not _side(old, side).keys() <= _side(new, side).keys():
            yield Refusal(f"{path}.{side}", f"Forbidden: {what} {side} cannot be removed", owner)


def _shrinking(before: Container, after: Container, path: str) -> Iterator[Refusal]:
    """Yield refusals of 1.33: a memory limit can only grow without a restart."""
    policies = {policy.resource_name: policy.restart_policy for policy in before.resize_policy or ()}
    if policies.get(MEMORY) == RESTART or MEMORY not in after.limits:
        return
    unless = f"unless resizePolicy is {RESTART}"
    if MEMORY not in before.limits:
        yield Refusal(path, f"Forbidden: memory limits cannot be added {unless}", before.name)
    elif after.limits[MEMORY] < before.limits[MEMORY]:
        yield Refusal(path, f"Forbidden: memory limits cannot be decreased {unless}", before.name)


def pinned(setup: NodeSetup) -> dict[str, str]:
    """Return the resources that Guaranteed pods keep, with the manager whose static policy keeps them."""
    kubelet, enabled = setup.kubelet, setup.release.enabled
    managers = {}
    if kubelet.cpu_manager_policy == "static" and not enabled(Gate.IN_PLACE_RESIZE_EXCLUSIVE_CPUS):
        managers[CPU] = "CPU"
    if kubelet.memory_manager_policy == "Static" and not enabled(Gate.IN_PLACE_RESIZE_EXCLUSIVE_MEMORY):
        managers[MEMORY] = "Memory"
    return managers


def _infeasible_reason(old: Pod, new: Pod, setup: NodeSetup) -> str:
    if setup.node.is_windows:
        return "In-place pod resize is not supported on Windows"
    kubelet, release = setup.kubelet, setup.release
    is_guaranteed = qos_class(old, release) is QosClass.GUARANTEED
    pairs = list(zip(all_containers(old), all_containers(new), strict=True))
    for resource, manager in pinned(setup).items() if is_guaranteed else ():
        if any(_differs(before, after, resource) for before, after in pairs):
            static = "static" if resource == CPU else "Static"
            return f'Resize is infeasible for Guaranteed Pods alongside {manager} Manager policy "{static}"'
    can_swap = kubelet.memory_swap_behavior == LIMITED_SWAP and not is_guaranteed
    if can_swap and setup.node.swap_capacity_bytes:
        restarted = set(restarting(old, new))
        for before, after in pairs:
            changes = before.requests.get(MEMORY, ZERO) != after.requests.get(MEMORY, ZERO)
            if changes and after.name not in restarted:
                return "In-place resize of containers with swap is not supported."
    if release.has(Change.RESIZE_BEYOND_NODE_IS_INFEASIBLE):
        for name, requested, capacity in _against_node(new, setup):
            if requested > capacity:
                return (
                    f"Node didn't have enough capacity: {name}, requested: {requested}, capacity: {capacity}"
                )
    return ""


CountedPods = dict[int, tuple[Pod, dict[str, int]]]
"""What pods of one node request, by the id of the pod."""


def node_fit(
    pod: Pod, others: Iterable[Pod], setup: NodeSetup, counted: CountedPods | None = None
) -> Iterator[NodeFit]:
    """Yield how a pod fits with others, counted by spec and status (NodeInfo.AddPod of the scheduler).

    Resources without a request are not compared; before 1.28 that applied only to pods without any request
    (fitsRequest in noderesources/fit.go). `counted` caches the others' requests between calls.
    """
    count, counted = admission_count(setup.release), {} if counted is None else counted
    others = [other for other in others if not other.is_terminal]
    for other in others:
        if id(other) not in counted:
            requests = pod_requests(other, setup.release, count=count)
            # Keep the pod, so that no other gets its id.
            counted[id(other)] = other, {name: _amount(requests, name) for name in (CPU, MEMORY)}
    used = [counted[id(other)][1] for other in others]
    own = list(_against_node(pod, setup))
    skips = setup.release.has(Change.NOTHING_REQUESTED_FITS) or not any(needed for _, needed, _ in own)
    for name, needed, capacity in own:
        used_by_others = sum([amounts[name] for amounts in used])
        yield NodeFit(name, capacity, used_by_others, needed, bool(needed) or not skips)


def _against_node(pod: Pod, setup: NodeSetup) -> Iterator[tuple[str, int, int]]:
    """Yield each resource with the pod's request and the node's allocatable: millicores, bytes."""
    requests = pod_requests(pod, setup.release)
    for resource in (CPU, MEMORY):
        if resource in setup.node.status_allocatable:
            yield resource, _amount(requests, resource), _amount(setup.node.status_allocatable, resource)


def _limits_below_usage(old: Pod, new: Pod, release: Release, usage: PodUsage | None) -> Iterator[str]:
    """Yield new memory limits that usage has reached (`validateMemoryResizeAction`, 1.34 and later).

    Containers that restart have ended by then. The message about a container also names the pod's usage.
    """
    if usage is None:
        return
    restarted = set(restarting(old, new))
    dead = sum(used.working_set_bytes for name in restarted if (used := usage.of(name)) is not None)
    current = usage.working_set_bytes - dead
    limit, before = _pod_limit(new, release), _pod_limit(old, release)
    if 0 < limit < before and current >= limit:
        yield f"attempting to set pod memory limit ({limit}) below current usage ({current})"
    for was, container in zip(all_containers(old), all_containers(new), strict=True):
        limit, before = (part.limits.get(MEMORY, ZERO).value() for part in (container, was))
        used = usage.of(container.name)
        if used is None or container.name in restarted or before == limit or 0 < before < limit:
            continue
        if 0 < limit <= used.working_set_bytes:
            yield (
                f'attempting to set container "{container.name}" memory limit ({limit}) '
                f"below current usage ({current})"
            )


def _pod_limit(pod: Pod, release: Release) -> int:
    """Return the memory limit of the pod's cgroup in bytes, 0 without one."""
    return pod_limits(pod, release).get(MEMORY, ZERO).value() if declared_limits(pod, release).memory else 0


def _differs(before: Container, after: Container, resource: str) -> bool:
    sides = ((_side(before.resources, side), _side(after.resources, side)) for side in _SIDES)
    return any(old.get(resource) != new.get(resource) for old, new in sides)


def _side(resources: _Requirements, side: str) -> ResourceList:
    return getattr(resources, side, None) or EMPTY_RESOURCES


def _other_resources(resources: _Requirements) -> list[dict[str, Quantity]]:
    return [
        {name: value for name, value in _side(resources, side).items() if name not in {CPU, MEMORY}}
        for side in _SIDES
    ]


def _amount(quantities: Mapping[str, Quantity], resource: str) -> int:
    quantity = quantities.get(resource, ZERO)
    return quantity.milli_value() if resource == CPU else quantity.value()

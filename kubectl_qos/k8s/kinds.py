"""Kinds of objects: kubectl's names for them, API path and pod template; and the workload of a pod."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from kubectl_qos.k8s.defaulting import admitted
from kubectl_qos.k8s.objects import Json, ObjectMeta, Pod, PodSpec, PodTemplate, convert, nested, nested_list
from kubectl_qos.k8s.releases import Gate, Release

T = TypeVar("T")


class Kind(NamedTuple):
    """The names of a kind, its API group, and where below spec its pod template is.

    `names` are what kubectl takes, the singular first. `group` is a path such as `/apis/apps/v1`.
    """

    names: tuple[str, ...]
    group: str = "/api/v1"
    template: tuple[str, ...] = ()


_APPS: Final = "/apis/apps/v1"
_BATCH: Final = "/apis/batch/v1"
_TEMPLATE: Final = ("template",)
_DEEPEST: Final = 8
"""The longest path to a pod spec: a template in a list of roles of an embedded job has six keys."""

KINDS: Final[Mapping[str, Kind]] = {
    "Pod": Kind(("pod", "pods", "po")),
    "Deployment": Kind(("deployment", "deployments", "deploy"), _APPS, _TEMPLATE),
    "StatefulSet": Kind(("statefulset", "statefulsets", "sts"), _APPS, _TEMPLATE),
    "DaemonSet": Kind(("daemonset", "daemonsets", "ds"), _APPS, _TEMPLATE),
    "ReplicaSet": Kind(("replicaset", "replicasets", "rs"), _APPS, _TEMPLATE),
    "ReplicationController": Kind(
        ("replicationcontroller", "replicationcontrollers", "rc"), template=_TEMPLATE
    ),
    "Job": Kind(("job", "jobs"), _BATCH, _TEMPLATE),
    "CronJob": Kind(("cronjob", "cronjobs", "cj"), _BATCH, ("jobTemplate", "spec", "template")),
    "Node": Kind(("node", "nodes", "no")),
}
WORKLOADS: Final = {name: kind for name, kind in KINDS.items() if kind.template}
_KIND_OF_NAME: Final = {name: kind for kind, info in KINDS.items() for name in info.names}


def parse_kind(name: str) -> str | None:
    """Return the kind of a name for kubectl, in upper or lower case; None if unknown.

    The name may have a group, as `kubectl get -o name` prints it: `deployment.apps`, or
    `deployments.v1.apps`.
    """
    word, dot, group = name.lower().partition(".")
    kind = _KIND_OF_NAME.get(word)
    if kind is None or not dot:
        return kind
    own, _, version = KINDS[kind].group.removeprefix("/apis/").partition("/")
    return kind if group in {own, f"{version}.{own}"} else None


def is_workload(kind: str, version: str) -> bool:
    """Return whether a kind is a workload of Kubernetes itself: other groups have a domain."""
    return kind in WORKLOADS and "." not in version.partition("/")[0]


def api_path(kind: str, namespace: str, name: str) -> str:
    """Return the path of a pod or workload on an API server; a node has no namespace."""
    group = WORKLOADS[kind].group if kind in WORKLOADS else "/api/v1"
    within = f"/namespaces/{path_segment(namespace)}" if kind != "Node" else ""
    return f"{group}{within}/{kind.lower()}s/{path_segment(name)}"


def path_segment(name: str) -> str:
    """Return a name as one segment of a URL path."""
    return quote(name, safe="")


class SuspendedJob(Pod, frozen=True, kw_only=True):
    """The pod of a suspended Job, where requests and limits of the template may change.

    The controller has seen the suspension, and no pod is active. Source:
    pkg/registry/batch/job/strategy.go (validationOptionsForJob), gate MutablePodResourcesForSuspendedJobs.
    """


def _is_suspended_job(raw: Json) -> bool:
    status, conditions = nested(raw, "status"), nested_list(raw, "status", "conditions")
    is_seen = any(item.get("type") == "Suspended" and item.get("status") == "True" for item in conditions)
    return nested(raw, "spec").get("suspend") is True and is_seen and not status.get("active")


def pod_from_workload(kind: str, raw: Json) -> Pod:
    """Return the pod that a workload creates, under the workload's name and kind.

    Raises msgspec.ValidationError with the field's path in the workload.
    """
    template = _convert_at(raw, template_path(kind), PodTemplate)
    metadata = _convert_at(raw, ("metadata",), ObjectMeta)
    pod_metadata = msgspec.structs.replace(
        template.metadata, name=metadata.name, namespace=metadata.namespace, uid=""
    )
    type_ = SuspendedJob if kind == "Job" and _is_suspended_job(raw) else Pod
    return admitted(type_(kind=kind, metadata=pod_metadata, spec=template.spec))


class CustomWorkload(Pod, frozen=True, kw_only=True):
    """The pod of a template in an object of a foreign kind.

    Its name is `object_name`, the name of the object, with the template's path if there are several.
    `path` is the path of the pod's spec.
    """

    object_name: str
    path: tuple[str | int, ...]


def pods_from_custom(kind: str, raw: Json) -> list[CustomWorkload]:
    """Return the pods of all templates and pod specs in an object, found by their structure.

    Raises msgspec.ValidationError with the field's path in the object.
    """
    paths = [
        path for key in raw if key not in {"metadata", "status"} for path in _pod_specs(raw[key], (key,))
    ]
    pods = []
    metadata = _convert_at(raw, ("metadata",), ObjectMeta)
    for path in paths:
        template: Any = raw
        for key in path[:-1]:
            template = template[key]
        own = template.get("metadata") if path[-1] == "spec" and len(path) > 1 else None
        labels = _converted(own or {}, ObjectMeta, path)
        spec = _converted(template[path[-1]], PodSpec, path)
        short_path = dotted(tuple(key for key in path if key not in {"spec", "template"}))
        name = metadata.name if len(paths) == 1 else f"{metadata.name}:{short_path}"
        labels = msgspec.structs.replace(labels, name=name, namespace=metadata.namespace, uid="")
        pod = CustomWorkload(kind=kind, metadata=labels, spec=spec, object_name=metadata.name, path=path)
        pods.append(pod)
    return pods


def _pod_specs(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of all mappings with a list of containers, but not inside each other."""
    if isinstance(value, Mapping):
        containers = value.get("containers")
        if (
            isinstance(containers, list)
            and containers
            and all(isinstance(item, Mapping) and item.keys() & {"name", "image"} for item in containers)
        ):
            yield path
        elif len(path) < _DEEPEST:
            for key, inner in value.items():
                yield from _pod_specs(inner, (*path, key))
    elif isinstance(value, list) and len(path) < _DEEPEST:
        for index, inner in enumerate(value):
            yield from _pod_specs(inner, (*path, index))


def spec_path(pod: Pod) -> tuple[str | int, ...]:
    """Return the path of a pod's spec in its object."""
    return pod.path if isinstance(pod, CustomWorkload) else (*template_path(pod.kind), "spec")


def object_name(pod: Pod) -> str:
    """Return the name of the object from which a pod is made."""
    return pod.object_name if isinstance(pod, CustomWorkload) else pod.name


def is_named(pod: Pod, kind: str, name: str) -> bool:
    """Return whether a pod has this name and kind; foreign kinds may be in the plural."""
    return pod.name == name and (pod.kind == kind or pod.kind.lower() in kind_names(kind))


def kind_names(kind: str) -> tuple[str, str]:
    """Return a foreign kind that was given in lower case as it is, and without a plural's s."""
    return kind, kind.removesuffix("s")


def dotted(path: Iterable[str | int]) -> str:
    """Format a path as Kubernetes does: `spec.tasks[0].template`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def has_fixed_template(pod: Pod, release: Release) -> bool:
    """Return whether the server refuses every change of the template: a Job's, unless it is suspended."""
    is_mutable = isinstance(pod, SuspendedJob) and release.enabled(Gate.MUTABLE_SUSPENDED_JOBS)
    return pod.kind == "Job" and not is_mutable and not isinstance(pod, CustomWorkload)


def template_path(kind: str) -> tuple[str, ...]:
    """Return the path of the pod template in an object of this kind; empty for a pod, which has none."""
    return ("spec", *WORKLOADS[kind].template) if kind in WORKLOADS else ()


def _convert_at(raw: Json, path: tuple[str, ...], type_: type[T]) -> T:
    """Convert the value at a path to `type_`; a missing parent counts as empty."""
    inner: Any = raw
    for depth, key in enumerate(path, start=1):
        inner = inner.get(key)
        if inner is None:
            inner = {}
        elif not isinstance(inner, Mapping):
            path = path[:depth]
            break
    return _converted(inner, type_, path)


def _converted(value: object, type_: type[T], path: Iterable[str | int]) -> T:
    """Convert a value; an error has the field's path in the whole object."""
    try:
        return convert(value, type_)
    except msgspec.ValidationError as error:
        message, _, below = str(error).partition(" - at `$")
        raise msgspec.ValidationError(f"{message} - at `$.{dotted(path)}{below or '`'}") from None


STATIC: Final = "Static"
"""The kind of the workload of static pods: their owner is the node."""
_HASH_LABEL: Final = "pod-template-hash"
_SCHEDULED: Final = re.compile(r"(.+)-\d{8}")


class Workload(NamedTuple):
    """The workload of pods; a pod without an owner is its own workload, with kind `Pod`."""

    kind: str
    namespace: str
    name: str


def find_workload(pod: Pod) -> Workload:
    """Return the workload of a pod: its controller, or the Deployment or CronJob that owns the controller.

    A pod does not name a Deployment or CronJob, but the controller's name shows it: a Deployment appends the
    pod-template-hash, which is a label of its pods, to its own name; a CronJob the scheduled time in minutes,
    with eight digits. Source: pkg/controller/deployment/sync.go (getNewReplicaSet),
    pkg/controller/cronjob/utils.go (getJobName).
    """
    metadata = pod.metadata
    owner = _controller(metadata.owner_references or (), attrgetter("controller"))
    if owner is None:
        return Workload(pod.kind, metadata.namespace, metadata.name)
    kind, name = owner.kind, owner.name
    if kind == "Node":
        return Workload(STATIC, metadata.namespace, metadata.name.removesuffix(f"-{name}"))
    if kind == "ReplicaSet":
        template_hash = metadata.labels.get(_HASH_LABEL) if metadata.labels is not None else None
        if template_hash and name.endswith(f"-{template_hash}"):
            kind, name = "Deployment", name.removesuffix(f"-{template_hash}")
    elif kind == "Job":
        scheduled = _SCHEDULED.fullmatch(name)
        if scheduled is not None:
            kind, name = "CronJob", scheduled[1]
    return Workload(kind, metadata.namespace, name)


def belongs_to(pod: Pod, kind: str, name: str) -> bool:
    """Return whether a pod is the object of this kind and name, or has it as an owner or workload."""
    workload = find_workload(pod)
    objects = {(owner.kind, owner.name) for owner in pod.metadata.owner_references or ()}
    return (kind, name) in objects | {(pod.kind, pod.name), (workload.kind, workload.name)}


def find_controller(raw: Json) -> Json | None:
    """Return the reference to the controller of an object, or to its only owner."""
    owners = nested_list(raw, "metadata", "ownerReferences")
    return _controller(owners, lambda owner: owner.get("controller") is True)


def _controller(owners: Sequence[T], is_controller: Callable[[T], object]) -> T | None:
    controller = next(filter(is_controller, owners), None)
    return owners[0] if controller is None and len(owners) == 1 else controller


def is_custom_with_resources(raw: Json) -> bool:
    """Return whether the object is of a foreign API group, and has requests or limits anywhere."""
    group, _, version = str(raw.get("apiVersion")).partition("/")
    return bool(version) and "." in group and not group.endswith(".k8s.io") and _has_resources(raw)


def _has_resources(value: Any) -> bool:
    if isinstance(value, Mapping):
        own = value.get("resources")
        is_own = isinstance(own, Mapping) and not {"requests", "limits"}.isdisjoint(own)
        return is_own or any(map(_has_resources, value.values()))
    return isinstance(value, list) and any(map(_has_resources, value))

"""Kubernetes objects, decoded straight from JSON. Source: k8s.io/api/core/v1/types.go.

Only fields that a prediction, column or edit uses are named here. The decoder skips everything else, so that
a pod of 6 KB of JSON takes about 1 KB. Equal resource lists and label sets are one shared object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, Generic, NoReturn, TypeVar

import msgspec

from kubectl_qos.errors import QuantityError
from kubectl_qos.k8s.quantity import MILLI, Quantity, parse_time

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
HUGEPAGES_PREFIX: Final = "hugepages-"
PIDS: Final = "pids"
UNKNOWN_CONTAINER: Final = "<unknown>"
"""The name of a container that a text does not name."""
UNKNOWN_EXIT: Final = -1
"""The exit code of an OOM kill if a text does not show it; no Linux container ends with this code."""
SIGNALLED: Final = "SIGKILL"
"""The reason if a program says that SIGKILL ended a process, which may not be the container's main one."""
LEAST_MEMORY: Final = 1 << 20
"""Bytes; no process of a container can start with less."""
QUANTITY_MAPS: Final = frozenset(
    {"requests", "limits", "overhead", "capacity", "allocatable", "allocatedResources", "usage"}
)
"""The fields that are a ResourceList, in any object."""


class ResourceList(dict[str, Quantity]):
    """An immutable map of resource name to quantity (`v1.ResourceList`)."""

    __slots__ = ("_whole_milli",)

    @property
    def is_whole_milli(self) -> bool:
        """Return whether no quantity is finer than milli; API servers round up to that."""
        try:
            return self._whole_milli
        except AttributeError:
            self._whole_milli: bool = all(
                quantity.exponent >= MILLI and not quantity.is_decimal for quantity in self.values()
            )
            return self._whole_milli

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a ResourceList is shared between pods and cannot be changed")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = _refuse

    @staticmethod
    def from_json(raw: object) -> ResourceList:
        """Convert a decoded JSON object. Raises TypeError or QuantityError."""
        return _share(ResourceList, raw, resource_list)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


class Labels(dict[str, str]):
    """An immutable label set, shared between the objects that carry the same one."""

    __slots__ = ()

    @staticmethod
    def from_json(raw: object) -> Labels:
        """Convert a decoded JSON object. Raises TypeError."""
        return _share(Labels, raw, _labels)


EMPTY_RESOURCES: Final = ResourceList()
T = TypeVar("T")
Json = Mapping[str, Any]
"""An object as plain JSON."""


def nested(raw: Any, *keys: str) -> Json:
    """Return the object at a path of plain JSON, empty if there is none (`unstructured.NestedMap`)."""
    for key in keys:
        raw = raw.get(key) if isinstance(raw, Mapping) else None
    return raw if isinstance(raw, Mapping) else {}


def nested_list(raw: Any, *keys: str) -> list[Json]:
    """Return the objects in the list at a path of plain JSON, none if there is no list."""
    *path, last = keys
    items = nested(raw, *path).get(last)
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []


class ApiStruct(msgspec.Struct, frozen=True, rename="camel", gc=False, kw_only=True, omit_defaults=True):
    """Anything that is decoded from an API: frozen, camelCase in JSON, unknown fields skipped."""


class Annotations(ApiStruct, frozen=True):
    """The annotations that show who made a pod and where its cgroup is, and our annotations for `check`."""

    config_source: str | None = msgspec.field(name="kubernetes.io/config.source", default=None)
    config_mirror: str | None = msgspec.field(name="kubernetes.io/config.mirror", default=None)
    config_hash: str | None = msgspec.field(name="kubernetes.io/config.hash", default=None)
    limit_ranger: str | None = msgspec.field(name="kubernetes.io/limit-ranger", default=None)
    required_class: str | None = msgspec.field(name="kubectl-qos/class", default=None)
    waived: str | None = msgspec.field(name="kubectl-qos/waive", default=None)


NO_ANNOTATIONS: Final = Annotations()


class OwnerReference(ApiStruct, frozen=True):
    """An owner of an object; the values of a pod come from the owner that is its controller."""

    kind: str
    name: str
    controller: bool | None = None


class FieldsEntry(ApiStruct, frozen=True):
    """Who changed an object last through a subresource, and when (metav1.ManagedFieldsEntry)."""

    subresource: str = ""
    time: str | None = None


class ObjectMeta(ApiStruct, frozen=True):
    """Names and identity; timestamps are RFC 3339 texts, as the server sends them."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Labels | None = None
    annotations: Annotations | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    managed_fields: tuple[FieldsEntry, ...] | None = None

    @property
    def resized_at(self) -> str:
        """Return when a pod was last resized in place, empty if it was not or that is unknown."""
        entries = (entry for entry in self.managed_fields or () if entry.subresource == "resize")
        return max((entry.time or "" for entry in entries), default="")


class ResourceRequirements(ApiStruct, frozen=True):
    """Requests and limits; None is an absent map, which defaulting treats differently from an empty one."""

    requests: ResourceList | None = None
    limits: ResourceList | None = None

    @property
    def is_whole_milli(self) -> bool:
        """Return whether no quantity is finer than milli."""
        requests, limits = self.requests, self.limits
        return (requests is None or requests.is_whole_milli) and (limits is None or limits.is_whole_milli)


NO_RESOURCES: Final = ResourceRequirements()


class ResizePolicy(ApiStruct, frozen=True):
    """Whether a container restarts when this resource changes in place."""

    resource_name: str
    restart_policy: str


class _ExitCodes(ApiStruct, frozen=True):
    operator: str = ""
    values: tuple[int, ...] = ()


class ContainerRestartRule(ApiStruct, frozen=True):
    """The action when a container ends with one of these exit codes (In), or with another (NotIn)."""

    action: str = ""
    exit_codes: _ExitCodes = _ExitCodes()

    def matches(self, exit_code: int) -> bool:
        """Return whether the rule is about this exit code."""
        operator, is_listed = self.exit_codes.operator, exit_code in self.exit_codes.values
        return is_listed if operator == "In" else operator == "NotIn" and not is_listed


class Container(ApiStruct, frozen=True):
    """An app, init, sidecar or ephemeral container."""

    name: str = ""
    resources: ResourceRequirements = NO_RESOURCES
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] | None = None
    resize_policy: tuple[ResizePolicy, ...] | None = None

    @property
    def requests(self) -> ResourceList:
        """Return the requests, empty if absent."""
        return self.resources.requests or EMPTY_RESOURCES

    @property
    def limits(self) -> ResourceList:
        """Return the limits, empty if absent."""
        return self.resources.limits or EMPTY_RESOURCES


class EmptyDir(ApiStruct, frozen=True):
    """A scratch volume; `medium` Memory is tmpfs and counts as the pod's memory. `size_limit` as written."""

    medium: str = ""
    size_limit: str | int | float | None = None


class _Present(ApiStruct, frozen=True):
    """An object of which only the presence matters."""


class Volume(ApiStruct, frozen=True):
    """A volume, with what node-pressure eviction and memory accounting need."""

    name: str = ""
    empty_dir: EmptyDir | None = None
    host_path: _Present | None = None
    config_map: _Present | None = None
    git_repo: _Present | None = None


class _PodOs(ApiStruct, frozen=True):
    name: str = ""


class _NodeSelector(ApiStruct, frozen=True):
    os: str = msgspec.field(name="kubernetes.io/os", default="")


class PodSpec(ApiStruct, frozen=True):
    """The desired state."""

    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    ephemeral_containers: tuple[Container, ...] | None = None
    resources: ResourceRequirements | None = None
    overhead: ResourceList | None = None
    priority: int | None = None
    priority_class_name: str = ""
    node_name: str = ""
    runtime_class_name: str | None = None
    restart_policy: str = ""
    volumes: tuple[Volume, ...] | None = None
    os: _PodOs | None = None
    node_selector: _NodeSelector | None = None

    @property
    def is_windows(self) -> bool:
        """Return whether the pod asks for a Windows node, on which there are no cgroups."""
        selected = self.node_selector.os if self.node_selector is not None else ""
        return (self.os.name if self.os is not None and self.os.name else selected) == "windows"


class ContainerStateTerminated(ApiStruct, frozen=True):
    """How a container ended; `container_id` is the ended container's, not its successor's."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""
    signal: int = 0
    started_at: str | None = None
    finished_at: str | None = None
    container_id: str = msgspec.field(name="containerID", default="")

    @property
    def known_exit_code(self) -> int | None:
        """The exit code, None if a text shows only the reason."""
        is_known = self.exit_code != UNKNOWN_EXIT or self.reason not in {"OOMKilled", SIGNALLED}
        return self.exit_code if is_known else None

    @property
    def is_made_up(self) -> bool:
        """Return whether the kubelet has lost sight of the container, and filled in exit code 137."""
        return self.reason == "ContainerStatusUnknown"

    def __post_init__(self) -> None:
        """Treat Go's zero time, which runtimes report for unknown times, as absent."""
        for name in ("started_at", "finished_at"):
            if parse_time(getattr(self, name)) is None:
                msgspec.structs.force_setattr(self, name, None)


class _ContainerStateWaiting(ApiStruct, frozen=True):
    reason: str = ""
    message: str = ""


class ContainerState(ApiStruct, frozen=True):
    """Without the two others, it runs."""

    terminated: ContainerStateTerminated | None = None
    waiting: _ContainerStateWaiting | None = None


class ContainerStatus(ApiStruct, frozen=True):
    """The observed state of a container; `container_id` is `runtime://hex`."""

    name: str = ""
    restart_count: int = 0
    container_id: str = msgspec.field(name="containerID", default="")
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    allocated_resources: ResourceList | None = None
    resources: ResourceRequirements | None = None

    @property
    def has_processes(self) -> bool:
        """Return whether it neither waits nor has ended; without a state it counts as running."""
        return self.state is None or (self.state.terminated is None and self.state.waiting is None)

    @property
    def has_ended(self) -> bool:
        """Return whether `ends` has any."""
        state, last = self.state, self.last_state
        return (state is not None and state.terminated is not None) or (
            last is not None and last.terminated is not None
        )

    @property
    def ends(self) -> list[ContainerStateTerminated]:
        """Return the ends of the present run, if it has ended, and of the previous one."""
        return [*self.ends_by_field.values()]

    @property
    def ends_by_field(self) -> dict[str, ContainerStateTerminated]:
        """Return `ends` by their fields; a kubelet that lost sight of a container fills in both."""
        ends = dict[str, ContainerStateTerminated]()
        for name, state in (("state", self.state), ("lastState", self.last_state)):
            if state is not None and state.terminated is not None:
                ends[name] = state.terminated
        if len(ends) > 1 and all(end.is_made_up and not end.finished_at for end in ends.values()):
            del ends["lastState"]
        return ends

    @property
    def was_oom_killed(self) -> bool:
        """Return whether its status says OOMKilled; with the systemd driver some OOM kills say only Error."""
        ended = [state.terminated for state in (self.state, self.last_state) if state is not None]
        return any(end.reason == "OOMKilled" for end in ended if end is not None)


DISRUPTION_TARGET: Final = "DisruptionTarget"
MEMORY_PRESSURE: Final = "MemoryPressure"


class Condition(ApiStruct, frozen=True):
    """A condition of a pod or node, with the times (RFC 3339) of its last change and of a node's report."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    last_heartbeat_time: str | None = None

    @property
    def is_unscheduled(self) -> bool:
        """Return whether the scheduler has found no node for a pod; the message says why."""
        return self.status == "False" and self.type == "PodScheduled"

    @property
    def is_unready(self) -> bool:
        """Return whether a pod is not ready; an ended pod became so at about its end."""
        return self.status == "False" and self.type == "Ready"

    @property
    def is_disruption(self) -> bool:
        """Return whether a pod is or was ended as a whole; the reason says by whom."""
        return self.status == "True" and self.type == DISRUPTION_TARGET

    @property
    def is_memory_pressure(self) -> bool:
        """Return whether a node's kubelet says that memory is short."""
        return self.type == MEMORY_PRESSURE and self.status == "True"


class PodStatus(ApiStruct, frozen=True):
    """The observed state."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    qos_class: str = ""
    resize: str = ""
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    ephemeral_container_statuses: tuple[ContainerStatus, ...] | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList | None = None

    @property
    def every_container(self) -> tuple[ContainerStatus, ...]:
        """Return the statuses of init, app and ephemeral containers."""
        first = (self.init_container_statuses or ()) + (self.container_statuses or ())
        return first + (self.ephemeral_container_statuses or ())


class Pod(ApiStruct, frozen=True):
    """A pod from a server, a dump or a manifest."""

    kind: str = "Pod"
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def name(self) -> str:
        """Return metadata.name."""
        return self.metadata.name

    @property
    def title(self) -> str:
        """Return the name; for a workload's template with the kind before it: `deployment/web`."""
        return self.name if self.kind == "Pod" else f"{self.kind.lower()}/{self.name}"

    @property
    def namespace(self) -> str:
        """Return metadata.namespace."""
        return self.metadata.namespace

    @property
    def key(self) -> tuple[str, str]:
        """Return namespace and name (`types.NamespacedName`)."""
        return self.metadata.namespace, self.metadata.name

    @property
    def node_name(self) -> str:
        """Return the node that the pod is bound to, empty before scheduling."""
        return self.spec.node_name

    @property
    def containers(self) -> tuple[Container, ...]:
        """Return the app containers."""
        return self.spec.containers or ()

    @property
    def init_containers(self) -> tuple[Container, ...]:
        """Return the init containers, sidecars among them."""
        return self.spec.init_containers or ()

    @property
    def ephemeral_containers(self) -> tuple[Container, ...]:
        """Return the debug containers added later."""
        return self.spec.ephemeral_containers or ()

    @property
    def memory_volumes(self) -> tuple[str, ...]:
        """Return the names of its volumes in memory."""
        volumes = ((volume.name, volume.empty_dir) for volume in self.spec.volumes or ())
        return tuple(name for name, directory in volumes if directory and directory.medium == "Memory")

    @property
    def annotations(self) -> Annotations:
        """Return the annotations, empty if absent."""
        return self.metadata.annotations or NO_ANNOTATIONS

    @property
    def is_terminal(self) -> bool:
        """Return whether every process has ended for good: the pod uses nothing on its node any more."""
        return self.status.phase in {"Succeeded", "Failed"}


class _NodeSwap(ApiStruct, frozen=True):
    capacity: int | None = None


class _NodeSystemInfo(ApiStruct, frozen=True):
    kubelet_version: str = ""
    container_runtime_version: str = ""
    kernel_version: str = ""
    os_image: str = ""
    operating_system: str = ""
    swap: _NodeSwap | None = None


NO_NODE_INFO: Final = _NodeSystemInfo()


class _NodeStatus(ApiStruct, frozen=True):
    capacity: ResourceList | None = None
    allocatable: ResourceList | None = None
    conditions: tuple[Condition, ...] | None = None
    node_info: _NodeSystemInfo = NO_NODE_INFO
    declared_features: tuple[str, ...] | None = None


class NodeObject(ApiStruct, frozen=True):
    """The API object Node; predictions use `kubelet.Node`, which is built from it."""

    metadata: ObjectMeta = ObjectMeta()
    status: _NodeStatus = _NodeStatus()

    @property
    def name(self) -> str:
        """Return metadata.name."""
        return self.metadata.name


class PodTemplate(ApiStruct, frozen=True):
    """The pod inside a workload."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


_SHARED_MOST: Final = 100_000
_MAPS: Final = QUANTITY_MAPS | {"labels", "matchLabels"}
_shared: dict[tuple[object, ...], Any] = {}


def _share(type_: type[T], raw: object, parse: Callable[[Mapping[str, Any]], T]) -> T:
    """Return `parse(raw)`; `_decode_hook` returns the same object for an equal map of texts."""
    if not isinstance(raw, dict):
        raise TypeError(f"Expected `object`, got `{_json_type(raw)}`")
    parsed = parse(raw)
    if len(_shared) >= _SHARED_MOST:
        _shared.clear()
    # Numbers are not cached: True and 1.0 equal 1.
    if all(type(value) is str for value in raw.values()):
        _shared[type_, *raw.items()] = parsed
    return parsed


def _labels(raw: Mapping[str, Any]) -> Labels:
    for value in raw.values():
        if not isinstance(value, str | None):
            raise TypeError(f"Expected `str`, got `{_json_type(value)}`")
    return Labels({name: value or "" for name, value in raw.items()})


def _json_type(raw: object) -> str:
    names = {str: "str", bool: "bool", int: "int", float: "float", list: "array", dict: "object"}
    return names.get(type(raw), "null")


def resource_list(raw: Mapping[str, object]) -> ResourceList:
    """Convert a ResourceList of texts or numbers. Raises QuantityError, which names the resource."""
    parsed = {}
    for name, value in raw.items():
        try:
            parsed[name] = Quantity.from_json(value)
        except QuantityError as error:
            raise QuantityError(f"{name}: {value!r}: {error}") from None
    return ResourceList(parsed)


def _decode_hook(type_: Any, raw: Any) -> Any:
    try:
        parsed = _shared.get((type_, *raw.items())) if type(raw) is dict else None
    except TypeError:  # A list or an object as a value has no hash; `from_json` says where it is.
        parsed = None
    return type_.from_json(raw) if parsed is None else parsed


class JsonDecoder(Generic[T]):
    """Decodes JSON into a type. Null is absent, as in Go; numbers with a point or exponent stay texts."""

    def __init__(self, type_: type[T]) -> None:
        self._decoder = msgspec.json.Decoder(type_, dec_hook=_decode_hook, float_hook=str)

    def decode(self, content: Any) -> T:
        """Decode one text. Raises msgspec.DecodeError."""
        try:
            return self._decoder.decode(content)
        except msgspec.ValidationError as error:
            if _NULL not in str(error):
                raise
        return self._decoder.decode(_to_json(_without_nulls(_from_json(content))))


# Numbers keep their digits.
_from_json = msgspec.json.Decoder(float_hook=Decimal).decode
_to_json = msgspec.json.Encoder(decimal_format="number").encode
_NULL: Final = "got `null`"


def convert(raw: object, type_: type[T]) -> T:
    """Convert plain dicts and lists; null is absent, as in Go. Raises msgspec.ValidationError."""
    try:
        return msgspec.convert(raw, type_, dec_hook=_decode_hook, str_keys=True)
    except msgspec.ValidationError as error:
        if _NULL not in str(error):
            raise
    return msgspec.convert(_without_nulls(raw), type_, dec_hook=_decode_hook, str_keys=True)


def _without_nulls(raw: Any) -> Any:
    """Drop fields that are null. Items of lists stay, and values of maps: a quantity is 0, a label empty."""
    if isinstance(raw, Mapping):
        kept = {name: value for name, value in raw.items() if value is not None}
        return {name: value if name in _MAPS else _without_nulls(value) for name, value in kept.items()}
    return [_without_nulls(item) for item in raw] if isinstance(raw, list) else raw


def all_containers(pod: Pod) -> Iterable[Container]:
    """Return init containers and sidecars, app containers, then ephemeral ones: the kubelet's order."""
    return (*pod.init_containers, *pod.containers, *pod.ephemeral_containers)

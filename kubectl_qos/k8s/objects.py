"""The Kubernetes objects as far as we read them, decoded straight from JSON.

Only fields that some prediction, column or edit uses are named here; everything else is skipped while
decoding, so that a pod of 6 KB of JSON is held in about 1 KB. Resource lists and label sets repeat across
pods of one workload and are shared. Source: k8s.io/api/core/v1/types.go.

Not here: what an absent field means (defaulting.py) and arithmetic over resources (resources.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NoReturn, TypeVar

import msgspec

from kubectl_qos.errors import QuantityError
from kubectl_qos.k8s.quantity import MILLI, Quantity

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
HUGEPAGES_PREFIX: Final = "hugepages-"


class ResourceList(dict[str, Quantity]):
    """An immutable map of resource name to quantity (`v1.ResourceList`)."""

    __slots__ = ("_whole_milli",)

    @property
    def is_whole_milli(self) -> bool:
        """Whether no quantity is finer than milli, which is as fine as an API server keeps them."""
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
        """A decoded JSON object. Raises TypeError or QuantityError."""
        return _shared(_shared_resources, raw, resource_list)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


class Labels(dict[str, str]):
    """An immutable label set, shared between the objects that carry the same one."""

    __slots__ = ()

    @staticmethod
    def from_json(raw: object) -> Labels:
        """A decoded JSON object. Raises TypeError."""
        return _shared(_shared_labels, raw, _labels)


EMPTY_RESOURCES: Final = ResourceList()

T = TypeVar("T")


class _Object(msgspec.Struct, frozen=True, rename="camel", gc=False, kw_only=True):
    """Frozen, unknown fields skipped, Kubernetes' camelCase on the wire."""


class Annotations(_Object, frozen=True):
    """The annotations that change where a pod's cgroup is and who made the pod."""

    config_source: str | None = msgspec.field(name="kubernetes.io/config.source", default=None)
    config_mirror: str | None = msgspec.field(name="kubernetes.io/config.mirror", default=None)
    config_hash: str | None = msgspec.field(name="kubernetes.io/config.hash", default=None)


NO_ANNOTATIONS: Final = Annotations()


class OwnerReference(_Object, frozen=True):
    """Who made an object; the controller among them decides what an edit has to change."""

    kind: str
    name: str
    api_version: str = ""
    controller: bool | None = None


class ObjectMeta(_Object, frozen=True):
    """Names and identity; `creation_timestamp` is RFC 3339 text as the server sends it.

    `resource_version` says how far a watch has come; of what is held it is dropped (see sharing.py).
    """

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


class ResourceRequirements(_Object, frozen=True):
    """Requests and limits; None is an absent map, which defaulting tells from an empty one."""

    requests: ResourceList | None = None
    limits: ResourceList | None = None


NO_RESOURCES: Final = ResourceRequirements()


class ResizePolicy(_Object, frozen=True):
    """Whether a container restarts when this resource changes in place."""

    resource_name: str
    restart_policy: str


class Container(_Object, frozen=True):
    """An app, init, sidecar or ephemeral container."""

    name: str = ""
    resources: ResourceRequirements = NO_RESOURCES
    restart_policy: str | None = None
    resize_policy: tuple[ResizePolicy, ...] | None = None

    @property
    def requests(self) -> ResourceList:
        """The requests, empty where absent."""
        return self.resources.requests or EMPTY_RESOURCES

    @property
    def limits(self) -> ResourceList:
        """The limits, empty where absent."""
        return self.resources.limits or EMPTY_RESOURCES


class EmptyDir(_Object, frozen=True):
    """A scratch volume; `medium` Memory is tmpfs and counts as the pod's memory."""

    medium: str = ""


class Present(_Object, frozen=True):
    """A sub-object of which only the presence matters."""


class Volume(_Object, frozen=True):
    """A volume, as far as node-pressure eviction and memory accounting look at it."""

    name: str = ""
    empty_dir: EmptyDir | None = None
    host_path: Present | None = None
    config_map: Present | None = None
    git_repo: Present | None = None


class PodSpec(_Object, frozen=True):
    """What was asked for."""

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


class ContainerStateTerminated(_Object, frozen=True):
    """How a container ended; `container_id` is that of the one that ended, whatever runs in its place now."""

    exit_code: int = 0
    reason: str = ""
    signal: int = 0
    started_at: str | None = None
    finished_at: str | None = None
    container_id: str = msgspec.field(name="containerID", default="")


class ContainerStateWaiting(_Object, frozen=True):
    """Why a container does not run yet."""

    reason: str = ""


class ContainerState(_Object, frozen=True):
    """Running is the absence of the two others."""

    terminated: ContainerStateTerminated | None = None
    waiting: ContainerStateWaiting | None = None


class ContainerStatus(_Object, frozen=True):
    """What became of a container; `container_id` is `runtime://hex`."""

    name: str = ""
    restart_count: int = 0
    container_id: str = msgspec.field(name="containerID", default="")
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    allocated_resources: ResourceList | None = None
    resources: ResourceRequirements | None = None


class Condition(_Object, frozen=True):
    """A condition of a pod or node."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class PodStatus(_Object, frozen=True):
    """What was observed."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    qos_class: str = ""
    observed_generation: int = 0
    resize: str = ""
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    ephemeral_container_statuses: tuple[ContainerStatus, ...] | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList | None = None

    @property
    def every_container(self) -> tuple[ContainerStatus, ...]:
        """The statuses of init, app and ephemeral containers."""
        return (
            *(self.init_container_statuses or ()),
            *(self.container_statuses or ()),
            *(self.ephemeral_container_statuses or ()),
        )


class Pod(_Object, frozen=True):
    """A pod, from a server, a dump or a manifest."""

    kind: str = "Pod"
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def name(self) -> str:
        """metadata.name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """metadata.namespace."""
        return self.metadata.namespace

    @property
    def node_name(self) -> str:
        """The node that the pod is bound to, empty before scheduling."""
        return self.spec.node_name

    @property
    def containers(self) -> tuple[Container, ...]:
        """The app containers."""
        return self.spec.containers or ()

    @property
    def init_containers(self) -> tuple[Container, ...]:
        """Init containers, sidecars among them."""
        return self.spec.init_containers or ()

    @property
    def ephemeral_containers(self) -> tuple[Container, ...]:
        """Debug containers added later."""
        return self.spec.ephemeral_containers or ()

    @property
    def annotations(self) -> Annotations:
        """The annotations that we read."""
        return self.metadata.annotations or NO_ANNOTATIONS

    @property
    def is_terminal(self) -> bool:
        """Whether every process has ended for good, so that the pod holds nothing on its node."""
        return self.status.phase in {"Succeeded", "Failed"}


class LimitRangeItem(_Object, frozen=True):
    """Defaults and bounds for one kind of thing (`type`: Container or Pod)."""

    type: str = ""
    default: ResourceList = EMPTY_RESOURCES
    default_request: ResourceList = EMPTY_RESOURCES
    min: ResourceList = EMPTY_RESOURCES
    max: ResourceList = EMPTY_RESOURCES
    max_limit_request_ratio: ResourceList = EMPTY_RESOURCES


class LimitRangeSpec(_Object, frozen=True):
    """The items of a LimitRange."""

    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(_Object, frozen=True):
    """A namespace's defaults and bounds."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LimitRangeSpec = LimitRangeSpec()


class NodeSwap(_Object, frozen=True):
    """The node's swap, in bytes (1.34 and later)."""

    capacity: int | None = None


class NodeSystemInfo(_Object, frozen=True):
    """Versions of what runs on a node."""

    kubelet_version: str = ""
    container_runtime_version: str = ""
    kernel_version: str = ""
    os_image: str = ""
    operating_system: str = ""
    architecture: str = ""
    swap: NodeSwap | None = None


class NodeStatus(_Object, frozen=True):
    """Capacity, what pods may have of it, and pressure."""

    capacity: ResourceList | None = None
    allocatable: ResourceList | None = None
    conditions: tuple[Condition, ...] | None = None
    node_info: NodeSystemInfo = NodeSystemInfo()
    declared_features: tuple[str, ...] | None = None


class NodeObject(_Object, frozen=True):
    """The API object Node; the facts that predictions use are k8s.node.Node."""

    metadata: ObjectMeta = ObjectMeta()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        """metadata.name."""
        return self.metadata.name


class PodTemplate(_Object, frozen=True):
    """The pod inside a workload."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


_SHARED_MOST: Final = 100_000
_shared_resources: dict[tuple[tuple[str, object], ...], ResourceList] = {}
_shared_labels: dict[tuple[tuple[str, str], ...], Labels] = {}


def _decode_hook(wanted: Any, raw: object) -> Any:
    """Types that are no plain JSON know themselves how they are written."""
    return wanted.from_json(raw)


def _shared(held: dict[Any, T], raw: object, make: Callable[[Mapping[str, Any]], T]) -> T:
    """What a map of texts makes: parsed once, then the same object for every equal spelling."""
    if not isinstance(raw, dict):
        raise TypeError(f"Expected `object`, got `{_json_type(raw)}`")
    key = tuple(raw.items())
    found = held.get(key)
    if found is None:
        found = make(raw)
        if len(held) >= _SHARED_MOST:
            held.clear()
        # A number is not kept: True and 1.0 would be taken for the 1 that they equal.
        if all(type(value) is str for value in raw.values()):
            held[key] = found
    return found


def _labels(raw: Mapping[str, Any]) -> Labels:
    for value in raw.values():
        if not isinstance(value, str):
            raise TypeError(f"Expected `str`, got `{_json_type(value)}`")
    return Labels(raw)


def _json_type(raw: object) -> str:
    names = {str: "str", bool: "bool", int: "int", float: "float", list: "array"}
    return names.get(type(raw), "null")


def resource_list(raw: Mapping[str, object]) -> ResourceList:
    """A ResourceList of texts or numbers.

    Raises QuantityError naming the resource and Kubernetes' own reason.
    """
    parsed = {}
    for name, value in raw.items():
        try:
            parsed[name] = Quantity.from_json(value)
        except QuantityError as error:
            raise QuantityError(f"{name}: {value!r}: {error}") from None
    return ResourceList(parsed)


def json_decoder(wanted: type[T]) -> msgspec.json.Decoder[T]:
    """A decoder of JSON bytes into `wanted`; numbers with a point or exponent keep their spelling."""
    return msgspec.json.Decoder(wanted, dec_hook=_decode_hook, float_hook=str)


def convert(raw: object, wanted: type[T]) -> T:
    """`wanted` from plain dicts and lists, as YAML gives them. Raises msgspec.ValidationError."""
    return msgspec.convert(raw, wanted, dec_hook=_decode_hook, str_keys=True)


def all_containers(pod: Pod) -> Iterable[Container]:
    """Init containers and sidecars, then app containers, then ephemeral ones, as the kubelet starts them."""
    return (*pod.init_containers, *pod.containers, *pod.ephemeral_containers)

"""An immutable snapshot of a cluster. Sources (cluster/) read it, `qos/` computes from it, shells show it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import structs

from kubectl_qos.errors import first_few
from kubectl_qos.k8s.allocation import shows_resize
from kubectl_qos.k8s.kinds import find_workload
from kubectl_qos.k8s.kubelet import (
    AN_EVICTION,
    MEMORY_AVAILABLE,
    Kubelet,
    Node,
    NodeSetup,
    Origin,
    node_from_object,
    threshold_of_evictions,
    with_origin,
)
from kubectl_qos.k8s.node_overrides import KUBELET_VERSION, NodeOverride, apply_overrides, distribution
from kubectl_qos.k8s.objects import NO_NODE_INFO, NodeObject, Pod
from kubectl_qos.k8s.releases import DEFAULT_RELEASE, NEWEST_MINOR, OLDEST_MINOR, Gate, Release
from kubectl_qos.k8s.selectors import FieldSelector, Selector
from kubectl_qos.k8s.usage import (
    NO_HISTORY,
    ContainerHistory,
    ContainerKey,
    History,
    PodKey,
    PodUsage,
    Pressure,
    ended_after,
    ended_since,
)

if TYPE_CHECKING:
    from kubectl_qos.k8s.managers import VerticalAutoscaler


class Shard(msgspec.Struct, frozen=True):
    """One of `count` parts of a cluster's nodes, numbered from 0; only a node's name decides its part."""

    index: int
    count: int

    def has(self, node_name: str) -> bool:
        """Return whether a node is in this part; pods that are not bound yet are in none."""
        return bool(node_name) and zlib.crc32(node_name.encode()) % self.count == self.index


class Scope(NamedTuple):
    """The requested pods. None and empty mean no restriction."""

    namespace: str | None = None
    names: frozenset[str] = frozenset()
    node: str | None = None
    selector: Selector = Selector()
    selector_text: str = ""
    fields: FieldSelector = FieldSelector()
    shard: Shard | None = None

    def matches(self, pod: Pod) -> bool:
        """Return whether a pod is requested."""
        return (
            (self.namespace is None or pod.namespace == self.namespace)
            and (not self.names or pod.name in self.names)
            and (self.node is None or pod.node_name == self.node)
            and self.selector.matches(pod.metadata.labels)
            and self.fields.matches(pod)
            and (self.shard is None or self.shard.has(pod.node_name))
        )


OTHER_PODS: Final = "the rest of these nodes' pods"
"""`Missing.what` if not all pods of a node may be listed."""


class Missing(msgspec.Struct, frozen=True):
    """Something that could not be read: what, why, and a remedy or ""."""

    what: str
    why: str
    remedy: str = ""


class Arrived(NamedTuple):
    """How much of a list has arrived: items, the total if the server tells it, and bytes of JSON."""

    items: int
    total: int | None
    size_bytes: int


class Usage(NamedTuple):
    """Usage of pods by namespace and name, and of nodes by name; `missing` says what is unknown.

    `node_sampled` has the times of `by_node` if they are known, `shortages` the last event of each node about
    short memory, `system_ooms` when the kernel killed on a full node (RFC 3339).
    """

    by_pod: Mapping[PodKey, PodUsage]
    missing: Missing | None = None
    pressure: Mapping[str, Pressure] = {}
    by_node: Mapping[str, int] = {}
    history: History = NO_HISTORY
    shortages: Mapping[str, str] = {}
    system_ooms: Mapping[str, tuple[str, ...]] = {}
    node_swap: Mapping[str, int] = {}
    node_sampled: Mapping[str, str] = {}


NO_USAGE: Final = Usage({})


class NodeOverrides(msgspec.Struct, frozen=True):
    """Given facts about nodes: the memory of unknown nodes, and settings of all nodes."""

    memory_bytes: int | None = None
    settings: tuple[NodeOverride, ...] = ()


NO_OVERRIDES: Final = NodeOverrides()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The pods, nodes and usage of a cluster at one time; mappings are by node if their key is a text."""

    pods: Sequence[Pod] = ()
    """The requested pods, and all pods of ranked nodes that could be read."""
    nodes: Mapping[str, NodeObject] = field(default_factory=dict)
    usage: Mapping[PodKey, PodUsage] = field(default_factory=dict)
    kubelets: Mapping[str, Kubelet] = field(default_factory=dict)
    missing: tuple[Missing, ...] = ()
    server_version: str = ""
    overrides: NodeOverrides = NO_OVERRIDES
    pressure: Mapping[str, Pressure] = field(default_factory=dict)
    """If kubelets report it."""
    node_usage: Mapping[str, int] = field(default_factory=dict)
    """Working set of the whole node, its own processes included, in bytes."""
    node_sampled: Mapping[str, str] = field(default_factory=dict)
    """When that was sampled (RFC 3339), if known."""
    node_swap: Mapping[str, int] = field(default_factory=dict)
    """Size of its swap by the kubelet's summary: a Node object still has the size before a swapoff."""
    shortages: Mapping[str, str] = field(default_factory=dict)
    """When memory was last short, by events of the node."""
    system_ooms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """When the kernel killed because the whole node was out of memory, by events."""
    history: History = NO_HISTORY
    at: str = ""
    """Time of a snapshot of the past (RFC 3339), else empty."""
    autoscalers: tuple[VerticalAutoscaler, ...] = ()
    """Empty until `Source.with_autoscalers` reads them."""
    rates: Callable[[Iterable[PodKey]], Mapping[ContainerKey, float]] = field(
        default=lambda _: {}, repr=False, compare=False
    )
    """Returns the growth of containers in bytes per second, by the samples since the program started."""
    node_rates: Mapping[str, float] = field(default_factory=dict, repr=False, compare=False)
    """Growth of memory outside pods in bytes per second."""
    offers: Mapping[ContainerKey, int] = field(default_factory=dict, repr=False, compare=False)
    """Limits in bytes that fixes have offered since then."""
    _index: dict[str, list[Pod]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def own_bytes(self, node_name: str) -> int | None:
        """Return the memory of a node's own processes: its usage without its pods'. None is unknown."""
        return None if (use := self._use(node_name)) is None else max(use[0] - use[1], 0)

    def used_bytes(self, node_name: str) -> int | None:
        """Return a node's usage without the containers that have ended since its sample. None is unknown."""
        return None if (use := self._use(node_name)) is None else use[0]

    def _use(self, node_name: str) -> tuple[int, int] | None:
        """Return the usage of a node, and of its pods, without runs of containers that have ended."""
        whole, of_pods = self.node_usage.get(node_name), 0
        if whole is None:
            return None
        sampled_at = self.sampled_at(node_name)
        for pod in self.by_node().get(node_name, ()):
            usage = self.usage_of(pod)
            if usage is None:
                continue
            ended = ended_since(pod, usage)
            if not ended:
                of_pods += usage.working_set_bytes
                continue
            # A later sample of the node has what runs now instead.
            gone = ended_after(pod, sampled_at)
            for name, amount in usage.containers:
                if name not in ended:
                    of_pods += amount.working_set_bytes
                elif name in gone:
                    whole -= amount.working_set_bytes
        return max(whole, 0), of_pods

    def sampled_at(self, node_name: str) -> str:
        """Return when a node was sampled (RFC 3339): if that is unknown, with its newest pod, or ""."""
        if node_name in self.node_sampled or node_name not in self.node_usage:
            return self.node_sampled.get(node_name, "")
        usages = map(self.usage_of, self.by_node().get(node_name, ()))
        return max((usage.timestamp for usage in usages if usage is not None), default="")

    def setup(self, node_name: str) -> NodeSetup:
        """Return what predictions for pods of that node depend on; an unknown node has no capacity."""
        kubelet, raw = self.kubelets.get(node_name), self.nodes.get(node_name)
        info = raw.status.node_info if raw is not None else NO_NODE_INFO
        gates = kubelet.feature_gates if kubelet is not None else {}
        stated = info.kubelet_version if raw is not None else self.server_version or DEFAULT_RELEASE
        release = Release.of_kubelet(stated, self.server_version, gates)
        kubelet = kubelet or Kubelet.defaults(release, info.operating_system)
        gate, pods = Gate.IN_PLACE_RESIZE, self.by_node().get(node_name, ())
        if not (release.enabled(gate) or gate in gates) and any(map(shows_resize, pods)):
            kubelet = with_origin(kubelet, Origin.ASSUMED, "a pod", feature_gates={**gates, gate.value: True})
            release = release.with_gates(kubelet.feature_gates)
        if kubelet.origin("eviction_hard") is Origin.ASSUMED:
            messages = (pod.status.message for pod in pods if pod.status.reason == "Evicted")
            if threshold := threshold_of_evictions(messages):
                hard = {**kubelet.eviction_hard, MEMORY_AVAILABLE: threshold}
                kubelet = with_origin(kubelet, Origin.ASSUMED, AN_EVICTION, eviction_hard=hard)
        if raw is not None:
            node = node_from_object(raw, kubelet)
        else:
            node = Node(name=node_name, kubelet_version=str(release))
        if node.memory_capacity_bytes is None:
            node = structs.replace(node, memory_capacity_bytes=self.overrides.memory_bytes)
        memory, reserved = node.memory_capacity_bytes, kubelet.reserved_memory_bytes
        if reserved and node.allocatable_memory_bytes is None and memory is not None:
            node = structs.replace(node, allocatable_memory_bytes=max(memory - reserved, 0))
        if node_name in self.node_swap:
            node = with_origin(node, Origin.API, swap_capacity_bytes=self.node_swap[node_name])
        node = structs.replace(
            node,
            short_at=self.shortages.get(node_name, ""),
            full_at=self.system_ooms.get(node_name, ()),
            sampled_at=self.sampled_at(node_name),
        )
        setup = NodeSetup(node, kubelet, release)
        settings = (*distribution(node), *self.overrides.settings)
        return apply_overrides(setup, settings, stated=True) if settings else setup

    def usage_of(self, pod: Pod) -> PodUsage | None:
        """Return a pod's usage; workloads have none."""
        return self.usage.get(pod.key) if pod.kind == "Pod" else None

    def usage_now(self, pod: Pod) -> PodUsage | None:
        """Return a pod's last usage, even if `usage` is a statistic of a time."""
        now = self.history.now.get(pod.key) if pod.kind == "Pod" else None
        return now or self.usage_of(pod)

    def seen_of(self, pod: Pod) -> Mapping[str, ContainerHistory]:
        """Return the history of a pod's containers; of a workload the most of its pods."""
        pods = [pod]
        if pod.kind != "Pod" and self.history.containers:
            workload = find_workload(pod)
            pods = [other for other in self.pods if find_workload(other) == workload]
        by_peak = sorted(self.history.of(pods).items(), key=lambda item: item[1].peak_bytes)
        return {name: seen for (_, name), seen in by_peak}

    def nodes_of(self, scope: Scope) -> list[str]:
        """Return the names of the nodes that have requested pods."""
        return sorted({pod.node_name for pod in self.pods if scope.matches(pod)} - {""})

    def with_usage(self, usage: Usage) -> Snapshot:
        """Return the snapshot with this usage; `usage.missing` is left to the caller."""
        return replace(
            self,
            usage=usage.by_pod,
            pressure=usage.pressure,
            node_usage=usage.by_node,
            node_sampled=usage.node_sampled,
            node_swap=usage.node_swap,
            shortages=usage.shortages,
            system_ooms=usage.system_ooms,
            history=usage.history,
        )

    def with_missing_releases(self, scope: Scope | None = None) -> Snapshot:
        """Add nodes without a known release, such as virtual ones, to `missing`."""
        requested = self.nodes if scope is None or scope == Scope() else {*self.nodes_of(scope), scope.node}
        infos = {name: node.status.node_info for name, node in self.nodes.items() if name in requested}
        versions = {name: info.kubelet_version for name, info in infos.items()}
        releases = {name: Release.of_kubelet(text, self.server_version) for name, text in versions.items()}
        names = sorted(name for name, release in releases.items() if release.assumed)
        if not names or any(setting.key == KUBELET_VERSION for setting in self.overrides.settings):
            return self
        stated = [f"{name} ({versions[name]!r})" if versions[name] else name for name in names]
        what = f"the release of {first_few(stated)}"
        treated = f"treated as {', '.join(sorted({str(releases[name]) for name in names}))}"
        why = f"kubeletVersion is none of 1.{OLDEST_MINOR} to 1.{NEWEST_MINOR}"
        why = why if any(versions[name] for name in names) else "kubeletVersion is not stated"
        missing = Missing(what, why, treated)
        return replace(self, missing=(*self.missing, missing))

    def by_node(self) -> Mapping[str, Sequence[Pod]]:
        """Return pods by the node they are bound to; those not bound yet under the empty name."""
        if isinstance(self.pods, PodsByNode):
            return self.pods.by_node
        if not self._index:
            for pod in self.pods:
                self._index.setdefault(pod.spec.node_name, []).append(pod)
        return self._index


class PodsByNode(Sequence[Pod]):
    """Pods in order of their nodes; snapshots share the lists of nodes whose pods did not change."""

    def __init__(self, by_node: Mapping[str, Sequence[Pod]]) -> None:
        self.by_node = by_node

    def __len__(self) -> int:
        return sum(map(len, self.by_node.values()))

    def __iter__(self) -> Iterator[Pod]:
        return chain.from_iterable(self.by_node.values())

    def __getitem__(self, index: Any) -> Any:
        return tuple(self)[index]

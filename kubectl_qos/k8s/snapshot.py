"""What is known of a cluster at one moment: the one value that flows from a source to a shell.

Not here: where it comes from (cluster/), and what follows from it (qos/).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, overload

from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup, node_from_object
from kubectl_qos.k8s.node_overrides import NodeOverride, apply_overrides
from kubectl_qos.k8s.objects import NodeObject, Pod
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.selectors import Selector
from kubectl_qos.k8s.usage import PodKey, PodUsage


@dataclass(frozen=True, slots=True)
class Scope:
    """Which pods a person asked for. None and empty mean no restriction."""

    namespace: str | None = None
    names: frozenset[str] = frozenset()
    node: str | None = None
    selector: Selector = field(default_factory=Selector)
    selector_text: str = ""

    def matches(self, pod: Pod) -> bool:
        """Whether a pod is among those asked for."""
        return (
            (self.namespace is None or pod.namespace == self.namespace)
            and (not self.names or pod.name in self.names)
            and (self.node is None or pod.node_name == self.node)
            and self.selector.matches(pod.metadata.labels)
        )


OTHER_PODS: Final = "the rest of these nodes' pods"
"""What is missing where a node's pods may not all be listed."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that could not be known: what, why, and what would change that (may be empty)."""

    what: str
    why: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class NodeOverrides:
    """What a person says about nodes: the memory of those that no source knows, and settings of all."""

    memory_bytes: int | None = None
    settings: tuple[NodeOverride, ...] = ()


NO_OVERRIDES: Final = NodeOverrides()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Pods, their nodes and their usage.

    `pods` holds at least the pods asked for; of nodes that are ranked it holds every pod that the source
    could see. `known` is what a person said about the nodes.
    """

    pods: Sequence[Pod] = ()
    nodes: Mapping[str, NodeObject] = field(default_factory=dict)
    usage: Mapping[PodKey, PodUsage] = field(default_factory=dict)
    kubelets: Mapping[str, Kubelet] = field(default_factory=dict)
    missing: tuple[Missing, ...] = ()
    server_version: str = ""
    known: NodeOverrides = NO_OVERRIDES

    def setup(self, node_name: str) -> NodeSetup:
        """What predictions for pods of that node depend on; an unknown node has no capacity."""
        kubelet = self.kubelets.get(node_name)
        found = self.nodes.get(node_name)
        version = found.status.node_info.kubelet_version if found is not None else ""
        gates = kubelet.feature_gates if kubelet is not None else {}
        release = Release.of(version or self.server_version or "1.36", gates)
        kubelet = kubelet or Kubelet.defaults(release)
        if found is None:
            node = Node(
                name=node_name,
                memory_capacity_bytes=self.known.memory_bytes,
                kubelet_version=str(release),
            )
        else:
            node = node_from_object(found, kubelet)
        setup = NodeSetup(node, kubelet, release)
        return apply_overrides(setup, self.known.settings) if self.known.settings else setup

    def by_node(self) -> Mapping[str, Sequence[Pod]]:
        """Pods by the node they are bound to; those not bound yet under the empty name."""
        pods = self.pods
        return pods.by_node if isinstance(pods, PodsByNode) else _by_node(pods)


class PodsByNode(Sequence[Pod]):
    """Pods that are already in order of their nodes: what did not change between two snapshots is shared."""

    def __init__(self, by_node: Mapping[str, Sequence[Pod]]) -> None:
        self.by_node = by_node

    def __len__(self) -> int:
        return sum(map(len, self.by_node.values()))

    def __iter__(self) -> Iterator[Pod]:
        return chain.from_iterable(self.by_node.values())

    @overload
    def __getitem__(self, index: int) -> Pod: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Pod]: ...

    def __getitem__(self, index: int | slice) -> Pod | Sequence[Pod]:
        return tuple(self)[index]


def _by_node(pods: Iterable[Pod]) -> Mapping[str, Sequence[Pod]]:
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        found.setdefault(pod.spec.node_name, []).append(pod)
    return found

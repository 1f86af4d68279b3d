"""What a killer is: when it acts, and whom it ends there."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import ClassVar, Final, NamedTuple, Protocol

from kubectl_qos.k8s.kubelet import Daemon, NodeSetup
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.qos.cgroup.names import PathLevel
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.reason import Mechanism
from kubectl_qos.qos.simulation.ceiling import Ceiling, MemoryTimeline, Scope
from kubectl_qos.qos.simulation.node_state import NodeProcess, NodeState


class Contender(NamedTuple):
    """A container, or a pod that is evicted, that may die in place of a victim; `size_bytes` decides."""

    namespace: str
    pod: str
    container: str
    qos_class: QosClass
    used_bytes: int
    size_bytes: int

    @property
    def key(self) -> PodKey:
        """Namespace and name of the pod."""
        return self.namespace, self.pod


class Choice(NamedTuple):
    """Whom a killer ends: a process of the node, or by its index a container, or the pod if it ends pods.

    None is nobody. `points` is the victim's badness in pages where that decides, `tied` how many others have
    as many. `refused` are the pods before it that may not be ended. The `rival` dies instead unless one
    process of the victim holds so much.
    """

    victim: int | NodeProcess | None
    points: int | None = None
    tied: int = 0
    refused: tuple[int, ...] = ()
    rival: Contender | None = None


NOBODY: Final = Choice(None)


class Candidate(NamedTuple):
    """A pod with processes: whether its cgroup has a memory.max, and its working set, None if unknown."""

    key: PodKey
    qos: QosClass
    is_limited: bool
    used_bytes: int | None


class Order(Protocol):
    """In which order a killer ends containers or pods, on a node whose memory changes."""

    def first(self, owner: int) -> Choice:
        """Whom it ends now where the memory of `owner` has reached the ceiling (-1: of pods or node)."""
        ...

    def growing(self, owner: int, room_bytes: int, ended: Collection[int]) -> tuple[Contender, ...]:  # noqa: ARG002
        """Who is the victim once it alone has grown to so much, by `room_bytes` at most, the nearest first.

        Not those of which a limit of their own `ended` all containers before.
        """
        return ()


class Killer(Protocol):
    """What ends containers or pods for memory.

    `id` is its name in JSON, `scope` whose memory has to run out. `measures` is whose use has to be known for
    its distance: else that is an upper bound. `ends_pods` is whether it ends whole pods, `evicts` whether
    those come back on another node only. `has_ranks` is whether RANK is its order, `delay_seconds` how long
    it takes at most to notice. `daemon` is the program of the node, None for kernel and kubelet.
    Kills show it in logs: `levels` are the cgroups that the kernel names as it kills there, `log_lines` what
    a daemon writes then.
    """

    id: ClassVar[Mechanism]
    scope: ClassVar[Scope]
    measures: ClassVar[frozenset[Scope]] = frozenset()
    ends_pods: ClassVar[bool] = False
    evicts: ClassVar[bool] = False
    has_ranks: ClassVar[bool] = False
    delay_seconds: ClassVar[int] = 0
    daemon: ClassVar[Daemon | None] = None
    levels: ClassVar[frozenset[PathLevel]] = frozenset()
    log_lines: ClassVar[tuple[str, ...]] = ()

    def applies(self, setup: NodeSetup) -> bool:
        """Whether it kills on a node, by what the node says of itself or what is assumed."""
        if self.daemon is not None and setup.node.userspace_oom_killer != self.daemon:
            return False
        return not setup.node.is_windows

    def is_assumed(self, setup: NodeSetup) -> bool:  # noqa: ARG002
        """Whether a node does not say itself that it runs this daemon."""
        return self.daemon is not None

    def ceilings(self, state: NodeState) -> Iterable[Ceiling]:
        """Where it acts on a node."""
        ...

    def order(self, memory: MemoryTimeline) -> Order | None:
        """In which order it kills there; None if that cannot be known."""
        ...

    def pod_order(self, pods: Iterable[Candidate], setup: NodeSetup) -> list[PodKey] | None:  # noqa: ARG002
        """The pods that it may kill, the first one first; None if that is not known, or is the kernel's."""
        return None

    def variant(self, setup: NodeSetup) -> str:  # noqa: ARG002
        """Which of its orders it has on a node, if it has several; present/ has the words of each."""
        return ""

    @property
    def picks_among_pods(self) -> bool:
        """Whether it chooses among all pods of a node; the others act at limits of a container or a pod."""
        return self.scope.is_wide

    @property
    def is_kernel(self) -> bool:
        """Whether it is the OOM killer of the kernel."""
        return self.daemon is None and not self.evicts

    def is_upper_bound(self, own_bytes: int | None, *, is_measured: bool) -> bool:
        """Whether its distance is one, as what the node itself or some of its pods use is unknown.

        What a node uses in all has its pods of unknown usage too; the limit of kubepods counts pods alone.
        """
        return (Scope.NODE in self.measures and own_bytes is None) or (
            Scope.PODS in self.measures and not is_measured
        )

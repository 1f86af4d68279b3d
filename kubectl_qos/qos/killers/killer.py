"""The interface of a killer: when it acts, and its victims."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple, Protocol

from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.qos.cgroup.names import PathLevel
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.simulation.ceiling import Ceiling, CeilingScope, MemoryTimeline
from kubectl_qos.qos.simulation.node_state import NodeProcess, NodeState


class Contender(NamedTuple):
    """A container or pod that may die in place of a victim, depending on `size_bytes`."""

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
    """A killer's victim: a process of the node, or the index of a container (of a pod, if it ends pods).

    `points` is the victim's badness in pages if that decides, `tied` how many others have equal points.
    `refused` pods come first in the order, but may not be ended. The `rival` dies instead unless one process
    of the victim is large enough.
    """

    victim: int | NodeProcess | None
    points: int | None = None
    tied: int = 0
    refused: tuple[int, ...] = ()
    rival: Contender | None = None


NOBODY: Final = Choice(None)


class Candidate(NamedTuple):
    """A pod with processes. `is_limited`: its cgroup has a memory.max. `used_bytes`: None if unknown."""

    key: PodKey
    qos: QosClass
    is_limited: bool
    used_bytes: int | None


class Order(Protocol):
    """A killer's order of victims, while memory changes."""

    def first(self, owner: int) -> Choice:
        """Return the victim if the container or pod `owner` is at its limit (-1: all pods, or the node)."""
        ...

    def growing(self, owner: int, room_bytes: int, ended: Collection[int]) -> tuple[Contender, ...]:
        """Return who becomes the victim by growing alone, by at most `room_bytes`, nearest first.

        Containers in `ended` are skipped: their own limit ends them before.
        """
        return ()


class DaemonLog(NamedTuple):
    """How a daemon's kills look in logs, as regular expressions; qos/logs/daemon_lines.py reads their groups.

    `programs` are its names as the sender of a line, `mark` begins its lines in the kernel's log. `lines`
    report a kill, twice each if `is_twice`; `details` come before them. `ends` match the end of a whole line
    that begins with one of the texts. `signs` show that a log is the daemon's, even without a kill.
    """

    lines: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    mark: str = ""
    is_twice: bool = False
    ends: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    signs: tuple[str, ...] = ()


class Killer(Protocol):
    """A killer of containers or pods for memory.

    `id` is its name in JSON. It acts when the memory of `scope` runs out; without the usage of each scope in
    `measures`, its distance is an upper bound. `ends_whole_pods`: it ends all containers of a pod, not one.
    `evicts`: the pod does not restart on this node. `has_ranks`: RANK is its order. It acts within
    `delay_seconds`. `settings` are the values of userspaceOOMKiller for a daemon, the one without VERSION
    first; kernel and kubelet have none. `sends_sigterm`: before SIGKILL. The kernel's reports name cgroups
    of `levels`; `log` describes a daemon's reports.
    """

    id: ClassVar[str]
    scope: ClassVar[CeilingScope]
    measures: ClassVar[frozenset[CeilingScope]] = frozenset()
    ends_whole_pods: ClassVar[bool] = False
    evicts: ClassVar[bool] = False
    has_ranks: ClassVar[bool] = False
    delay_seconds: ClassVar[int] = 0
    settings: ClassVar[tuple[str, ...]] = ()
    sends_sigterm: ClassVar[bool] = False
    levels: ClassVar[frozenset[PathLevel]] = frozenset()
    log: ClassVar[DaemonLog] = DaemonLog()

    def applies(self, setup: NodeSetup) -> bool:
        """Return whether it is active on a node, as reported or assumed."""
        is_here = not self.is_daemon or setup.node.userspace_oom_killer in self.settings
        return is_here and not setup.node.is_windows

    def is_assumed(self, setup: NodeSetup) -> bool:
        """Return whether it is assumed: the node does not report this daemon."""
        return self.is_daemon

    def ceilings(self, state: NodeState) -> Iterable[Ceiling]:
        """Return where it acts on a node."""
        ...

    def order(self, memory: MemoryTimeline) -> Order | None:
        """Return its order of victims, None if unknown."""
        ...

    def pod_order(self, pods: Iterable[Candidate], setup: NodeSetup) -> list[PodKey] | None:
        """Return the pods that it may kill, first victim first; None if unknown, or the kernel's order."""
        return None

    def variant(self, setup: NodeSetup) -> str:
        """Return which of its orders applies to a node, "" for the only one; present/ has the words."""
        return ""

    @property
    def is_node_wide(self) -> bool:
        """Whether it chooses among all pods of a node; others act at limits of a container or a pod."""
        return self.scope.is_wide

    @property
    def is_daemon(self) -> bool:
        """Whether it is a program of the node, neither kernel nor kubelet."""
        return bool(self.settings)

    @property
    def is_kernel(self) -> bool:
        """Whether it is the kernel's OOM killer."""
        return not (self.is_daemon or self.evicts)

    def is_upper_bound(self, *, is_node_measured: bool, is_measured: bool) -> bool:
        """Return whether its distance is an upper bound, because usage of the node or of pods is unknown.

        The usage of a whole node may include pods of unknown usage; the limit of kubepods counts only pods.
        """
        is_node_unknown = CeilingScope.NODE in self.measures and not is_node_measured
        return is_node_unknown or (CeilingScope.PODS in self.measures and not is_measured)

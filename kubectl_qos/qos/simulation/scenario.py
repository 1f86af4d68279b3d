"""What can be asked of a simulation, and what it answers: values only. simulation.py works them out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.simulation.node_state import ImportanceReason


class Mechanism(StrEnum):
    """Who ends a container or pod, and for which limit."""

    CONTAINER = "container limit"
    POD = "pod limit"
    KUBEPODS = "kubepods limit"
    NODE = "node"
    EVICTION = "eviction"


class ContainerGrowth(NamedTuple):
    """A container, by its place among the members, and what it comes to use; None is the node itself."""

    member: int | None
    to_bytes: int


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is asked. One of the first four; without any, only what eviction does by itself.

    With `eviction` the kubelet evicts before the kernel kills; with `restarts` a container that is started
    again has its memory back at once, so that its death frees nothing lasting.
    """

    free_bytes: int | None = None
    growth: tuple[ContainerGrowth, ...] = ()
    until_oom: bool = False
    all_at_limit: bool = False
    eviction: bool = False
    restarts: bool = False


class MemoryLevel(NamedTuple):
    """How full the node is, below zero where it is told to hold more than there is.

    `free_bytes` of RAM and swap by the kernel's count, `available_bytes` of RAM by the kubelet's.
    """

    free_bytes: int
    available_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationStep:
    """One container that is killed, or one pod that is evicted, which has no `container`.

    `points` is the badness in pages where memory ran out, `score` what /proc showed for the victim: None,
    like `adj`, of an eviction. `tied` is how many others had equal points. `freed` is what was used, by both
    counts, `level` what is free then. `refused` are pods whose eviction was tried before, and refused. A
    process of the node has no class, and its name for a key.
    """

    mechanism: Mechanism
    key: PodKey
    container: str = ""
    qos: QosClass | None = None
    adj: int | None = None
    points: int | None = None
    score: int | None = None
    tied: int = 0
    freed: MemoryLevel
    level: MemoryLevel
    comes_back: bool = False
    important: tuple[ImportanceReason, ...] = ()
    refused: tuple[PodKey, ...] = ()


class MechanismDistance(NamedTuple):
    """How much more memory until this mechanism acts, if nothing else does before, and on whom.

    `factor` is what every container then uses of what it uses now.
    """

    mechanism: Mechanism
    more_bytes: int
    factor: float
    key: PodKey
    container: str


@dataclass(frozen=True, slots=True)
class Simulation:
    """What happens, in order.

    `is_met` says whether what was asked for came about: so much is free, everything grew to its end.
    `refused` are the pods that the kubelet would not evict.
    """

    scenario: Scenario
    steps: tuple[SimulationStep, ...]
    before: MemoryLevel
    after: MemoryLevel
    is_met: bool
    reaches: tuple[MechanismDistance, ...] = ()
    refused: tuple[PodKey, ...] = ()

    @property
    def first_important(self) -> int | None:
        """The number of the first step that hits an important pod, counted from 1."""
        return next((number for number, step in enumerate(self.steps, start=1) if step.important), None)

    @property
    def freed_bytes(self) -> int:
        """What all steps free by the kernel's count, what comes back among it."""
        return sum(step.freed.free_bytes for step in self.steps)

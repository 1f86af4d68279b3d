"""What the simulation screen asks: a mode, how much, who grows, with or without eviction and restarts. Pure.

Not here: what happens then (qos/simulation/), and the words for it (present/).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.qos.simulation.node_state import ContainerGrowth, NodeState, Scenario

_POSITIONS: Final = 128
"""The slider has about so many places over all memory of the machine."""
_MEBIBYTE: Final = 1 << 20
FAR: Final = 8
"""A larger step is so many small ones; where the slider begins, too."""


class Mode(StrEnum):
    """What happens; the value is what people call it."""

    FREE = "free memory"
    GROW = "pod grows"
    ALL_AT_LIMIT = "at limits"
    UNTIL_OOM = "until OOM"


MODES: Final = tuple(Mode)
_WITH_SLIDER: Final = frozenset({Mode.FREE, Mode.GROW})


class GrowingContainer(NamedTuple):
    """A container by its names: another situation may have it at another place."""

    key: PodKey
    container: str


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """What is asked. `free_bytes` and `more_bytes` are where the sliders of the first two modes stand."""

    grower: GrowingContainer
    free_bytes: int
    more_bytes: int
    mode: Mode = Mode.FREE
    eviction: bool = False
    restarts: bool = False

    @property
    def has_slider(self) -> bool:
        """Whether there is an amount to choose."""
        return self.mode in _WITH_SLIDER

    @property
    def amount(self) -> int:
        """Where the slider stands."""
        return self.more_bytes if self.mode is Mode.GROW else self.free_bytes

    def moved(self, amount: int) -> SimulationOptions:
        """The slider elsewhere; the one of the other mode stays."""
        if self.mode is Mode.GROW:
            return replace(self, more_bytes=max(amount, 0))
        return replace(self, free_bytes=max(amount, 0)) if self.mode is Mode.FREE else self

    def turned(self, by: int) -> SimulationOptions:
        """The mode that is so many further on."""
        return replace(self, mode=MODES[(MODES.index(self.mode) + by) % len(MODES)])

    def top(self, node_state: NodeState) -> int:
        """Its end: all that can be freed, or that the machine has; never below where it stands."""
        most = node_state.total_bytes if self.mode is Mode.GROW else node_state.used_bytes
        return max(most, self.amount, 1)

    def slid(self, steps: int, node_state: NodeState) -> SimulationOptions:
        """So many multiples of a step further on, not over the ends."""
        step = step_bytes(node_state)
        place = self.amount // step if steps > 0 else -(-self.amount // step)
        return self.moved(min((place + steps) * step, self.top(node_state)))

    def scenario(self, node_state: NodeState) -> Scenario:
        """The question as it is put to this situation. Raises InputError where who grows is not there."""
        growth: tuple[ContainerGrowth, ...] = ()
        if self.mode is Mode.GROW:
            (namespace, name), container = self.grower
            index = node_state.find_container(name, container, namespace)
            growth = (ContainerGrowth(index, node_state.containers[index].used_bytes + self.more_bytes),)
        return Scenario(
            free_bytes=self.free_bytes if self.mode is Mode.FREE else None,
            growth=growth,
            until_oom=self.mode is Mode.UNTIL_OOM,
            all_at_limit=self.mode is Mode.ALL_AT_LIMIT,
            eviction=self.eviction,
            restarts=self.restarts,
        )


def step_bytes(node_state: NodeState) -> int:
    """A small step of the slider: a power of two, by the memory of the machine, which never changes."""
    part: int = node_state.total_bytes // _POSITIONS // _MEBIBYTE
    return _MEBIBYTE << max(part.bit_length() - 1, 0)


def first_options(node_state: NodeState, key: PodKey | None) -> SimulationOptions:
    """What is asked at first: some memory, from whoever is next. `key` is the pod that is to grow."""
    amount = FAR * step_bytes(node_state)
    return SimulationOptions(find_growing(node_state, key), amount, amount)


def find_growing(node_state: NodeState, key: PodKey | None) -> GrowingContainer:
    """The container of a pod that uses most, of nobody's the one that is the next victim."""
    if key is None and node_state.containers:
        container = node_state.containers[0]
        return GrowingContainer(node_state.pod_for(container).key, container.name)
    own = [one for one in node_state.containers if node_state.pod_for(one).key == key]
    most = max(own, key=lambda one: one.used_bytes, default=None)
    return GrowingContainer(key or ("", ""), most.name if most is not None else "")

"""The victims of a simulation, row by row: `simulate`. Their words are in present/simulation.py."""

from collections.abc import Hashable
from dataclasses import dataclass

from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.qos.simulation.engine import MechanismDistance, Simulation, SimulationStep


@dataclass(frozen=True, slots=True)
class VictimRow:
    """A step, or the first victim of a mechanism: its pod, and what stays when values change.

    `is_important` marks the first step that hits an important pod; `evicts` counts as the kubelet does.
    `is_reached` is False for what would follow. What is free is an upper bound if it `is_bound`.
    """

    place: int
    key: PodKey
    identity: Hashable
    step: SimulationStep | None = None
    reach: MechanismDistance | None = None
    evicts: bool = False
    is_important: bool = False
    is_reached: bool = True
    is_bound: bool = False


def victim_rows(simulation: Simulation, whole: Simulation | None = None) -> list[VictimRow]:
    """The steps in order, then those that would follow in the `whole` simulation, which begins with them."""
    shown, reached = whole or simulation, len(simulation.steps)
    first, evicts = shown.first_important, simulation.scenario.eviction
    return [
        VictimRow(
            place,
            step.key,
            identity(step),
            step,
            evicts=evicts,
            is_important=place == first,
            is_reached=place <= reached,
            is_bound=shown.is_upper_bound,
        )
        for place, step in enumerate(shown.steps, start=1)
    ]


def begins_with(whole: Simulation, simulation: Simulation) -> bool:
    """Whether a simulation of more memory hits the same victims first."""
    steps = whole.steps[: len(simulation.steps)]
    return list(map(identity, steps)) == list(map(identity, simulation.steps))


def reach_rows(simulation: Simulation) -> list[VictimRow]:
    """The first victim of each mechanism, the nearest first."""
    return [
        VictimRow(place, reach.key, reach.mechanism, reach=reach)
        for place, reach in enumerate(simulation.distances, start=1)
    ]


def identity(step: SimulationStep | None) -> Hashable:
    """Return what stays the same of a step when values change."""
    return step and (step.mechanism, step.key, step.container)

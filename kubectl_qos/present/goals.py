"""Why a goal about the kill order cannot be reached by memory requests, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kubectl_qos.edit.goals import Obstacle, WhyNot
from kubectl_qos.present.amounts import escape


def obstacle_sentence(obstacle: Obstacle) -> str:
    """What stands in the way, with the numbers put in."""
    return _WORDED[obstacle.why](obstacle)


def obstacle_remedy(obstacle: Obstacle) -> str:
    """What to do instead, empty where there is nothing."""
    return _REMEDIES.get(obstacle.why, "")


def _too_few(obstacle: Obstacle) -> str:
    return f"the last rank on its node is {obstacle.ranked}"


def _needs(obstacle: Obstacle) -> str:
    return f"container {escape(obstacle.container)} needs an oom_score_adj of {obstacle.needed} or less"


def _beyond_burstable(obstacle: Obstacle) -> str:
    return f"{_needs(obstacle)}, and a Burstable container has at least {obstacle.least}"


def _beyond_guaranteed(obstacle: Obstacle) -> str:
    return f"{_needs(obstacle)}, and even a Guaranteed one has {obstacle.least}"


def _restricted(obstacle: Obstacle) -> str:
    return f"{_needs(obstacle)}, and containerd's restrict_oom_score_adj keeps it at {obstacle.least} or more"


def _fixed(what: str) -> Callable[[Obstacle], str]:
    return lambda obstacle: f"it is {what}: its oom_score_adj is {obstacle.least} whatever it requests"


def _plain(text: str) -> Callable[[Obstacle], str]:
    return lambda _: text


_WORDED: Final[Mapping[WhyNot, Callable[[Obstacle], str]]] = {
    WhyNot.NO_CAPACITY: _plain("the memory capacity of its node is unknown"),
    WhyNot.NO_PROCESSES: _plain("it has no processes on a node"),
    WhyNot.NO_USAGE: _plain("its memory usage is unknown, while that of other pods of the node is known"),
    WhyNot.OTHER_NOT_THERE: _plain("the two are not on the same node"),
    WhyNot.OTHER_HAS_NO_PROCESSES: _plain("the other one has no processes on the node"),
    WhyNot.TOO_FEW_PODS: _too_few,
    WhyNot.CRITICAL: _fixed("critical"),
    WhyNot.GUARANTEED: _fixed("Guaranteed"),
    WhyNot.BEYOND_BURSTABLE: _beyond_burstable,
    WhyNot.BEYOND_GUARANTEED: _beyond_guaranteed,
    WhyNot.RESTRICTED: _restricted,
    WhyNot.NOT_BY_REQUESTS: _plain("its node goes by what was allocated, not by what it requests"),
}

_REMEDIES: Final[Mapping[WhyNot, str]] = {
    WhyNot.NO_CAPACITY: "--node-memory 16Gi assumes one",
    WhyNot.NO_USAGE: "ask again when it has been measured, or leave usage out with --usage none",
    WhyNot.OTHER_NOT_THERE: "the kernel of a node chooses among its own pods: name two of one node",
    WhyNot.BEYOND_BURSTABLE: "Guaranteed pods have -997: --to guaranteed",
    WhyNot.GUARANTEED: "less memory in use is what helps",
    WhyNot.CRITICAL: "less memory in use is what helps",
}

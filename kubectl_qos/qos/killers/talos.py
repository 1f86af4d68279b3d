"""Talos' OOM controller, which kills the cgroup of a pod before the kernel does.

It acts on pressure (PSI) of the whole machine and of its own services, which no API returns. Sources: Talos'
oom.go (in internal/app/machined/pkg/controllers/runtime/internal/oom) and its DefaultOOM constants.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from kubectl_qos.k8s.kubelet import NodeSetup, Origin
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.qos.killers.killer import NOBODY, Candidate, Choice, DaemonLog, Killer, Order
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.simulation.ceiling import Ceiling, CeilingScope, MemoryTimeline
from kubectl_qos.qos.simulation.node_state import NodeState

_RELEASE: Final = re.compile(r"talos(?: \(v|-)(\d+)\.(\d+)(?:\.(\d+))?", re.ASCII | re.IGNORECASE)
_SETTING: Final = "talos"
_KILLS_SINCE: Final = (1, 12, 0)
_STRICT_SINCE: Final = {12: 9, 13: 4}
"""Per minor, the first patch that kills all pods of a class before the next class; 1.14 always does."""
_NEWEST: Final = 1 << 16
_LINE: Final = r"(?:\[talos\] |(?:[A-Z]{4,5} )?(?=.*runtime\.OOMController))"
_WEIGHTS: Final = {QosClass.BEST_EFFORT: 2, QosClass.BURSTABLE: 1, QosClass.GUARANTEED: 0}


class TalosOrder(Order):
    """Talos' order: by class and memory.current, approximated by the working set."""

    def __init__(self, memory: MemoryTimeline, killer: "Talos") -> None:
        self._memory, self._killer = memory, killer

    def first(self, owner: int) -> Choice:
        """Return the pod with the highest score that still has a container to kill."""
        memory, state = self._memory, self._memory.state
        living = {state.containers[index].pod_index for index in memory.living}
        candidates = (
            Candidate(pod.key, pod.qos, bool(pod.limit_bytes), memory.pod_working_set(index))
            for index, pod in enumerate(state.pods)
            if index in living
        )
        order = self._killer.pod_order(candidates, state.setup)
        victim = next((index for index in living if order and state.pods[index].key == order[0]), None)
        return NOBODY if victim is None else Choice(victim)


class Talos(Killer):
    """The controller with its release's defaults."""

    id = "Talos"
    scope = CeilingScope.NODE
    measures = frozenset({CeilingScope.NODE})
    ends_whole_pods = True
    settings = (_SETTING, f"{_SETTING}-VERSION")
    log = DaemonLog(
        lines=(
            _LINE + r'Sending SIGKILL to cgroup (?:\{.*"cgroup": ?")?(?P<cgroup>[^"\s{]+)',
            _LINE + r'victim processes: .*"processes": ?\[(?P<names>[^\]]*)',
        ),
        mark="[talos] ",
    )

    def applies(self, setup: NodeSetup) -> bool:
        """Return whether the node runs Talos: by assumption, else by the OS image in nodeInfo."""
        return not setup.node.is_windows and _release(setup) >= _KILLS_SINCE

    def is_assumed(self, setup: NodeSetup) -> bool:
        """Return whether the node itself does not report Talos."""
        match, node = _RELEASE.match(setup.node.os_image), setup.node
        is_other = node.userspace_oom_killer not in {"", _SETTING}
        return match is None or is_other or node.origin("os_image") is not Origin.API

    def ceilings(self, state: NodeState) -> Iterator[Ceiling]:
        """Yield a ceiling of unknown size, bounded by a full node."""
        yield Ceiling(self.id, self.scope, -1, state.use.own + state.use.total, None, state.use.most_bytes)

    def order(self, memory: MemoryTimeline) -> TalosOrder:
        """Order pods without a limit, BestEffort before Burstable."""
        return TalosOrder(memory, self)

    def variant(self, setup: NodeSetup) -> str:
        """Return "strict" or ""."""
        return "strict" if self.is_strict(setup) else ""

    def is_strict(self, setup: NodeSetup) -> bool:
        """Return whether the release kills all pods of a class before the next class."""
        release = _release(setup)
        return release >= (1, release[1], _STRICT_SINCE.get(release[1], 0))

    def pod_order(self, pods: Iterable[Candidate], setup: NodeSetup) -> list[PodKey] | None:
        """Return the pods that it may kill, first victim first; None if a pod's usage is unknown.

        Pods with a memory.max and Guaranteed pods are never killed.
        """
        scores: dict[PodKey, tuple[int, int]] = {}
        is_strict = self.is_strict(setup)
        for pod in pods:
            if pod.used_bytes is None:
                return None
            weight = 0 if pod.is_limited else _WEIGHTS[pod.qos]
            if weight and pod.used_bytes:
                scores[pod.key] = (weight if is_strict else 0, weight * pod.used_bytes)
        return sorted(scores, key=lambda key: scores[key], reverse=True)


def _release(setup: NodeSetup) -> tuple[int, ...]:
    """Return the Talos release of a node, (0, 0, 0) for none."""
    return _parse_release(setup.node.userspace_oom_killer, setup.node.os_image)


@lru_cache(maxsize=64)
def _parse_release(given: str, image: str) -> tuple[int, ...]:
    match = _RELEASE.match(given) or (_RELEASE.match(image) if given in {"", _SETTING} else None)
    if match is None:
        return (_NEWEST, 0, 0) if given == _SETTING else (0, 0, 0)
    return tuple(int(part or _NEWEST) for part in match.groups())


TALOS: Final = Talos()

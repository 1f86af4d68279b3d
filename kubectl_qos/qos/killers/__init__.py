"""Everything that ends containers or pods for memory on a node: one file each, and the registry.

What the lists, the simulation, the fixes and the exporter know of a killer they ask of it here; the words for
people are in present/killers.py. Kinds of ends that are not for memory are no killers (qos/kills/).
"""

from collections.abc import Mapping
from typing import Final

from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.qos.killers.container_limit import CONTAINER_LIMIT
from kubectl_qos.qos.killers.earlyoom import EARLYOOM
from kubectl_qos.qos.killers.eviction import EVICTION
from kubectl_qos.qos.killers.full_node import FULL_NODE
from kubectl_qos.qos.killers.killer import Killer
from kubectl_qos.qos.killers.kubepods_limit import KUBEPODS_LIMIT
from kubectl_qos.qos.killers.pod_limit import POD_LIMIT
from kubectl_qos.qos.killers.systemd_oomd import SYSTEMD_OOMD
from kubectl_qos.qos.killers.talos import TALOS
from kubectl_qos.qos.reason import Mechanism

__all__ = (
    "BY_ID",
    "BY_RANK",
    "EVICTING",
    "KILLERS",
    "OWN_LIMITS",
    "PRECEDENCE",
    "Killer",
    "daemon_on",
    "killers_on",
)

KILLERS: Final[tuple[Killer, ...]] = (
    EVICTION,
    POD_LIMIT,
    CONTAINER_LIMIT,
    KUBEPODS_LIMIT,
    EARLYOOM,
    SYSTEMD_OOMD,
    TALOS,
    FULL_NODE,
)
"""All killers. Of those whose ceilings are reached at the same time the first one acts."""
PRECEDENCE: Final = {killer.id: place for place, killer in enumerate(KILLERS)}
BY_RANK: Final = next(killer for killer in KILLERS if killer.has_ranks)
"""The one whose order RANK is."""
EVICTING: Final = next(killer for killer in KILLERS if killer.evicts)
BY_ID: Final[Mapping[Mechanism, Killer]] = {killer.id: killer for killer in KILLERS}


def killers_on(setup: NodeSetup) -> list[Killer]:
    """Who kills on a node, nobody but the kubelet on Windows."""
    return [killer for killer in KILLERS if killer.applies(setup)]


def daemon_on(setup: NodeSetup) -> Killer | None:
    """The program of the node that kills before the kernel does, if any."""
    return next((killer for killer in killers_on(setup) if killer.daemon is not None), None)


OWN_LIMITS: Final = tuple(killer for killer in KILLERS if not killer.picks_among_pods)
"""Those that act at a limit of a container or of its pod."""

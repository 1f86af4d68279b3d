"""Settings with which a kubelet evicts before the kernel kills, checked on a model of the node.

The kubelet checks every 10 s, so its threshold has to include the growth in between. Sources:
pkg/kubelet/kubelet.go (evictionMonitoringPeriod); threshold_notifier_linux.go: kernelMemcgNotification
registers nothing on cgroup v2, and is not counted on elsewhere. Bytes throughout. Not here: words (present/).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final

from kubectl_qos.edit.fixes import NodeModel, friendly
from kubectl_qos.edit.goals import UNIT_BYTES, least_units
from kubectl_qos.k8s.kubelet import DEFAULT_EVICTION_HARD, MEMORY_AVAILABLE, NodeSetup, threshold_bytes
from kubectl_qos.k8s.node_overrides import NodeOverride, apply_overrides
from kubectl_qos.k8s.objects import MEMORY
from kubectl_qos.k8s.quantity import ZERO, in_bytes
from kubectl_qos.k8s.resources import pod_requests
from kubectl_qos.qos.eviction import Due, memory_threshold, schedulable_bytes
from kubectl_qos.qos.killers import EVICTING
from kubectl_qos.qos.simulation.next_death import next_deaths
from kubectl_qos.qos.simulation.node_state import NodeState

SOFT_GRACE_SECONDS: Final = 30
RESERVE_PERCENT: Final = 125
"""The share of the node's own usage to reserve: above 100, because the usage is a single sample."""


@dataclass(frozen=True, slots=True)
class KubeletFix:
    """Fields of a KubeletConfiguration, and the node with them.

    `least_bytes` is the smallest hard threshold that evicts first. `cost_bytes` is the memory that pods can
    no longer request, `missing_bytes` the part of the present requests that no longer fits.
    """

    before: NodeSetup
    setup: NodeSetup
    fields: Mapping[str, Any]
    growth_bytes: int
    own_bytes: int
    reserved_bytes: int
    threshold_bytes: int
    least_bytes: int
    cost_bytes: int
    missing_bytes: int

    @property
    def configuration(self) -> dict[str, Any]:
        """Return a KubeletConfiguration with only these fields."""
        return {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", **self.fields}


def late_state(state: NodeState, growth_bytes: int) -> NodeState:
    """Return the node with thresholds lowered by the growth (bytes a second) until the kubelet evicts."""
    late, thresholds = growth_bytes * EVICTING.delay_seconds, state.thresholds
    hard = {"node_bytes": thresholds.node_bytes, "kubepods_bytes": thresholds.kubepods_bytes}
    later = {name: size - late for name, size in hard.items() if size is not None}
    thresholds = thresholds._replace(**later, soft_bytes=None)
    return replace(state, thresholds=thresholds, due=Due.NO)


def evicts_first(model: NodeModel, growth_bytes: int) -> bool:
    """Return whether the hard threshold is reached before other limits of the whole node."""
    deaths = next_deaths(late_state(model.state().require_capacity(), growth_bytes))
    of_node = (death for death in deaths if death.killer.is_node_wide)
    first = min(of_node, key=attrgetter("distance_bytes"), default=None)
    return first is not None and first.killer.evicts


def fix_kubelet(model: NodeModel, growth_bytes: int = 0) -> KubeletFix | None:
    """Return the smallest settings that make the kubelet evict first.

    None if it does already, if no settings help, or if the node's memory is unknown. Memory grows by
    `growth_bytes` a second.
    """
    setup = model.setup
    kubelet, capacity = setup.kubelet, setup.node.memory_capacity_bytes or 0
    if capacity < setup.node.page_size_bytes:
        return None
    kube_reserved = kubelet.kube_reserved.get(MEMORY, ZERO).value()
    system_reserved = kubelet.system_reserved.get(MEMORY, ZERO).value()
    kubepods = setup.node.allocatable_memory_bytes
    reserved = kube_reserved + system_reserved if kubepods is None else capacity - kubepods
    overrides, fields = [], dict[str, Any]()
    own_bytes = model.own_bytes or 0
    if own_bytes > reserved:
        of_system = friendly(max(own_bytes * RESERVE_PERCENT // 100 - kube_reserved, 0))
        reserved = kube_reserved + of_system
        if reserved >= capacity:
            return None
        system = {**kubelet.system_reserved, MEMORY: in_bytes(of_system)}
        texts = {name: str(amount) for name, amount in system.items()}
        overrides.append(NodeOverride("systemReserved", ",".join(map("=".join, texts.items()))))
        fields["systemReserved"] = texts
    with_reserved = apply_overrides(setup, overrides)

    def thresholds(size_bytes: int) -> dict[str, str]:
        return {**kubelet.eviction_hard, MEMORY_AVAILABLE: str(in_bytes(size_bytes))}

    def with_threshold(size_bytes: int) -> NodeModel:
        text = ",".join(f"{signal}<{amount}" for signal, amount in thresholds(size_bytes).items())
        return replace(model, setup=apply_overrides(with_reserved, [NodeOverride("evictionHard", text)]))

    now = memory_threshold(kubelet.eviction_hard.get(MEMORY_AVAILABLE), capacity) or 0
    after, least = replace(model, setup=with_reserved), now
    if not evicts_first(after, growth_bytes):
        most = capacity // UNIT_BYTES
        units = least_units(
            0, most, lambda number: evicts_first(with_threshold(number * UNIT_BYTES), growth_bytes)
        )
        if units is None:
            return None
        least = units * UNIT_BYTES
        default = 0 if growth_bytes else threshold_bytes(DEFAULT_EVICTION_HARD[MEMORY_AVAILABLE], capacity)
        hard = max(friendly(least), default)
        after = with_threshold(hard)
        fields["evictionHard"] = thresholds(hard)
        soft = friendly(hard + growth_bytes * (SOFT_GRACE_SECONDS + EVICTING.delay_seconds))
        if growth_bytes and soft < capacity - reserved:
            fields["evictionSoft"] = {**kubelet.eviction_soft, MEMORY_AVAILABLE: str(in_bytes(soft))}
            grace = {MEMORY_AVAILABLE: f"{SOFT_GRACE_SECONDS}s"}
            fields["evictionSoftGracePeriod"] = {**kubelet.eviction_soft_grace_period, **grace}
    if not fields or not evicts_first(after, growth_bytes):
        return None
    left = schedulable_bytes(after.setup.node) or 0
    living = (model.recreated(pod) for pod in model.pods if not pod.is_terminal)
    requested = sum(pod_requests(pod, setup.release).get(MEMORY, ZERO).value() for pod in living)
    return KubeletFix(
        before=setup,
        setup=after.setup,
        fields=fields,
        growth_bytes=growth_bytes,
        own_bytes=own_bytes,
        reserved_bytes=reserved,
        threshold_bytes=threshold_bytes(after.setup.kubelet.eviction_hard.get(MEMORY_AVAILABLE), capacity),
        least_bytes=least,
        cost_bytes=max((schedulable_bytes(setup.node) or 0) - left, 0),
        missing_bytes=max(requested - left, 0) if left else 0,
    )

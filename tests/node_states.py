"""The state of a node with given pods, for a simulation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.qos.ranking import rank_node
from kubectl_qos.qos.simulation.node_state import NO_RULES, ImportanceRules, NodeState, ranked_node_state


def build_node_state(
    pods: Iterable[Pod],
    setup: NodeSetup,
    usage: Mapping[PodKey, PodUsage],
    rules: ImportanceRules = NO_RULES,
    **own: Any,
) -> NodeState:
    """The state of the node's pods (defaulted); a pod without usage counts as using nothing."""
    return ranked_node_state(rank_node(pods, setup.node, setup.release, usage), setup, rules, **own)

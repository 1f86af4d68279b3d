"""What is missing of a cluster, and the right that would bring it: sentences of every live source."""

from __future__ import annotations

from kubectl_qos.errors import QosError
from kubectl_qos.k8s.snapshot import OTHER_PODS, Missing


def no_neighbours(error: QosError) -> Missing:
    """Where the pods of other namespaces may not be listed."""
    return Missing(
        OTHER_PODS,
        str(error),
        "grant list on pods in all namespaces; until then ranks are among the pods shown",
    )


def no_capacity(error: QosError) -> Missing:
    """Where nodes may not be read."""
    return Missing(
        "the nodes' memory capacity",
        str(error),
        "grant get and list on nodes; or give --node-memory 16Gi",
    )

"""kubectl-qos: when a node runs out of memory, who dies, why, and what to change.

The public API; its names are imported when they are first used, so that the command line starts fast:

    predict(pod, node, kubelet=..., release="1.36") -> Prediction
    Prediction, Node, Kubelet, Quantity, Pod, Release
    pod_from_yaml, and from objects of the kubernetes package pod_from_client and node_from_client
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubectl_qos.version import __version__

__all__ = [
    "Kubelet",
    "Node",
    "Pod",
    "Prediction",
    "Quantity",
    "Release",
    "__version__",
    "node_from_client",
    "pod_from_client",
    "pod_from_yaml",
    "predict",
]

if TYPE_CHECKING:
    from kubectl_qos.cluster.files import node_from_client, pod_from_client, pod_from_yaml
    from kubectl_qos.k8s.kubelet import Kubelet, Node
    from kubectl_qos.k8s.objects import Pod
    from kubectl_qos.k8s.quantity import Quantity
    from kubectl_qos.k8s.releases import Release
    from kubectl_qos.qos.prediction import Prediction, predict

_WHERE = {
    "Kubelet": "kubectl_qos.k8s.kubelet",
    "Node": "kubectl_qos.k8s.kubelet",
    "Pod": "kubectl_qos.k8s.objects",
    "Prediction": "kubectl_qos.qos.prediction",
    "Quantity": "kubectl_qos.k8s.quantity",
    "Release": "kubectl_qos.k8s.releases",
    "node_from_client": "kubectl_qos.cluster.files",
    "pod_from_client": "kubectl_qos.cluster.files",
    "pod_from_yaml": "kubectl_qos.cluster.files",
    "predict": "kubectl_qos.qos.prediction",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used (PEP 562)."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value

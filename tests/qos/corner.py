"""How the corner cases are written down: a pod as a YAML fragment of its spec, a machine of 16 GiB."""

from typing import Any, Final

from msgspec import structs

from kubectl_qos.cluster.files import pod_from_yaml
from kubectl_qos.k8s.kubelet import Kubelet, MemoryReservationPolicy, Node
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.qos.prediction import Prediction, predict

GI: Final = 1 << 30
UID: Final = "0a1b2c3d-1111-2222-3333-444455556666"
UID_: Final = UID.replace("-", "_")
MACHINE: Final = Node(
    name="n1", memory_capacity_bytes=16 * GI, allocatable_memory_bytes=15 * GI, runtime="containerd://2.3.4"
)
TIERED: Final = MemoryReservationPolicy.TIERED


def spec(text: str, **metadata: Any) -> Pod:
    """A pod whose spec is the YAML fragment; metadata and status as JSON-like keywords."""
    status = metadata.pop("status", "{}")
    extra = "".join(f", {name}: {value}" for name, value in metadata.items())
    return pod_from_yaml(
        f"kind: Pod\nmetadata: {{name: p, namespace: default, uid: {UID}{extra}}}\n"
        f"spec: {{{text}}}\nstatus: {status}\n"
    )


def one(resources: str, more: str = "") -> Pod:
    """A pod with one app container c1 of these resources."""
    return spec(f"containers: [{{name: c1, resources: {{{resources}}}}}]{', ' + more if more else ''}")


def on(
    pod: Pod,
    release: str = "1.36",
    node: Node = MACHINE,
    gates: dict[str, bool] | None = None,
    **kubelet: Any,
) -> Prediction:
    """The prediction on the machine; keywords are fields of the kubelet's configuration."""
    configured = structs.replace(Kubelet(feature_gates=gates or {}), **kubelet)
    return predict(pod, node, kubelet=configured, release=release)


def adj(found: Prediction) -> dict[str, int | None]:
    return {container.name: container.oom_score_adj for container in found.containers}


def pod_file(found: Prediction, name: str) -> str | None:
    return found.cgroup.files.get(name)


def file_of(found: Prediction, container: str, name: str) -> str | None:
    return found.container(container).cgroup.files.get(name)

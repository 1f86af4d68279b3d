"""What `kubectl qos exporter` has published, read back from a store: for people without rights on pods.

Values are the exporter's, by the names of its metrics without `kubectl_qos_` (docs/exporter.md); nothing is
computed again, and what it does not publish is not there. Not here: rows and sentences (cli/exported.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.metrics.prometheus import Labels, Prometheus
from kubectl_qos.metrics.series import NODE, label, pod_of, select

_PREFIX: Final = "kubectl_qos_"
_OWN: Final = tuple(f"{_PREFIX}exporter_{name}" for name in ("stale_seconds", "pods_per_node"))
_DEATH: Final = "node_next_death_info"


@dataclass(frozen=True, slots=True)
class ExportedNode:
    """A node; where a metric has a label more, its values are by name and label, as `…_bytes hard`.

    `death` are the labels of who dies next, `pods` the values of the first ones in kill order.
    """

    values: dict[str, int] = field(default_factory=dict)
    death: dict[str, str] = field(default_factory=dict)
    pods: dict[PodKey, dict[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Exported:
    """Nodes by name; `ages` are the seconds since the last scrape of each exporter by its instance.

    `stale_seconds` is for how long the API server had been silent then, the longest of several;
    `per_node` how many pods of each node are published, None for all.
    """

    nodes: Mapping[str, ExportedNode]
    ages: Mapping[str, float]
    stale_seconds: float
    per_node: int | None


def read_exported(store: Prometheus) -> Exported:
    """What the exporters of a cluster published last. Raises InputError where there is none, QosError."""
    now = store.now()
    scrapes = store.query(f"timestamp({select(store, _OWN[:1])})")
    if not scrapes:
        raise InputError(
            f"{store.name} has no series of kubectl qos exporter",
            hint="docs/exporter.md has how to run it; --prometheus names another store, and a"
            " --prometheus-selector may leave it out",
        )
    ages = {one.labels.get("instance", ""): max(now - one.value, 0.0) for one in scrapes}
    # Infinity, for all pods, is no value here.
    stale, per_node = (
        max((one.value for one in store.query(select(store, [name]))), default=None) for name in _OWN
    )
    found = store.query(select(store, [f"{_PREFIX}node_.+", f"{_PREFIX}pod_.+"]))
    # Of replicas that export the same node the one that was scraped last counts, and the other not at all.
    found.sort(key=lambda one: ages.get(one.labels.get("instance", ""), 0.0))
    nodes: dict[str, ExportedNode] = {}
    owners: dict[str, str] = {}
    for sample in found:
        name, instance = label(sample.labels, NODE[:2]), sample.labels.get("instance", "")
        if name and owners.setdefault(name, instance) == instance:
            _take(nodes.setdefault(name, ExportedNode()), sample.labels, round(sample.value))
    return Exported(nodes, ages, stale or 0.0, None if per_node is None else round(per_node))


def _take(node: ExportedNode, labels: Labels, value: int) -> None:
    metric = labels["__name__"].removeprefix(_PREFIX)
    more = labels.get("qos_class") or labels.get("threshold")
    if metric == _DEATH:
        namespace, pod = pod_of(labels)
        # A target has a container too, whose label the exporter's own gives way to.
        container = labels.get("exported_container", labels.get("container", ""))
        node.death.update(labels, namespace=namespace, pod=pod, container=container)
    elif metric.startswith("pod_"):
        node.pods.setdefault(pod_of(labels), {})[metric] = value
    else:
        node.values[f"{metric} {more}" if more else metric] = value

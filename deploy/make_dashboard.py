"""Write the Grafana dashboard of the exporter's metrics: `make reference`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from grafana_foundation_sdk.builders import dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import DataSourceRef, DataTransformerConfig, VariableRefresh

FILE: Final = Path(__file__).parent / "components" / "dashboard" / "dashboard.json"
SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
CLUSTER: Final = 'cluster=~"$cluster"'
NODE: Final = f'{CLUSTER},node=~"$node"'
NAMES: Final = "namespace, pod, container, mechanism, qos_class, priority_class"
NEXT: Final = (
    f"bottomk(20, kubectl_qos_node_next_death_distance_bytes{{{NODE}}})"
    f" * on (cluster, node) group_left ({NAMES}) kubectl_qos_node_next_death_info{{{NODE}}}"
)
UPDATES: Final = f"kubectl_qos_exporter_update_duration_seconds_bucket{{{CLUSTER}}}"
HIDDEN: Final = ("Time", "__name__", "job", "instance", "endpoint", "service")
Panel = stat.Panel | table.Panel | timeseries.Panel


def query(expression: str, legend: str = "") -> prometheus.Dataquery:
    """One query; without a legend its series are rows of a table."""
    one = prometheus.Dataquery().expr(expression).datasource(SOURCE).ref_id("A")
    return one.legend_format(legend) if legend else one.instant().format("table")


def number(title: str, expression: str, description: str, unit: str = "short") -> stat.Panel:
    """A panel with one number."""
    panel = stat.Panel().title(title).description(description).unit(unit).span(6).height(4)
    return panel.datasource(SOURCE).with_target(query(expression, title))


def graph(title: str, description: str, queries: Sequence[tuple[str, str]], unit: str) -> timeseries.Panel:
    """A panel with series over time."""
    panel = timeseries.Panel().title(title).description(description).unit(unit).span(12).height(8)
    for letter, (expression, legend) in zip("ABC", queries, strict=False):
        panel = panel.with_target(query(expression, legend).ref_id(letter))
    return panel.datasource(SOURCE)


def rows(title: str, expression: str, description: str, unit: str) -> table.Panel:
    """A panel with the series of this moment as rows."""
    hide = {"excludeByName": dict.fromkeys(HIDDEN, True)}
    panel = table.Panel().title(title).description(description).unit(unit).span(24).height(9)
    panel = panel.with_transformation(DataTransformerConfig(id_val="organize", options=hide))
    return panel.datasource(SOURCE).with_target(query(expression))


PANELS: Final[tuple[Panel, ...]] = (
    number(
        "Nodes in trouble", f"sum(kubectl_qos_node_in_trouble{{{NODE}}})", "Memory pressure, or nearly so."
    ),
    number(
        "Nearest eviction",
        f'min(kubectl_qos_node_eviction_distance_bytes{{{NODE},threshold="hard"}})',
        "The least memory that is left on any node before its kubelet evicts.",
        "bytes",
    ),
    number(
        "Inversions",
        f"sum(kubectl_qos_node_inversions{{{NODE}}})",
        "Pods that the kernel would kill before a pod of lower priority.",
    ),
    number(
        "Exporter silent for",
        f"max(kubectl_qos_exporter_stale_seconds{{{CLUSTER}}})",
        "For how long the API server has not been heard from.",
        "s",
    ),
    rows(
        "Next deaths",
        NEXT,
        "Who dies next on each node, by which mechanism; the value is how far away.",
        "bytes",
    ),
    graph(
        "Distance to eviction",
        "The ten nodes with the least memory left before their kubelets evict.",
        [(f'bottomk(10, kubectl_qos_node_eviction_distance_bytes{{{NODE},threshold="hard"}})', "{{node}}")],
        "bytes",
    ),
    graph(
        "Memory of pods",
        "Working sets by QoS class, all of it if every limit is used up, and the capacity.",
        [
            (f"sum by (qos_class) (kubectl_qos_node_memory_used_bytes{{{NODE}}})", "{{qos_class}}"),
            (f"sum(kubectl_qos_node_memory_worst_case_bytes{{{NODE}}})", "worst case"),
            (f"sum(kubectl_qos_node_memory_capacity_bytes{{{NODE}}})", "capacity"),
        ],
        "bytes",
    ),
    graph(
        "Kills",
        "OOM kills and evictions, by mechanism.",
        [
            (
                f"sum by (mechanism) (increase(kubectl_qos_kills_total{{{NODE}}}[$__rate_interval]))",
                "{{mechanism}}",
            )
        ],
        "short",
    ),
    graph(
        "Time to compute what has changed",
        "The 99th percentile, per exporter.",
        [
            (
                f"histogram_quantile(0.99, sum by (le, instance) (rate({UPDATES}[$__rate_interval])))",
                "{{instance}}",
            )
        ],
        "s",
    ),
    rows(
        "Kill order",
        f"sort(kubectl_qos_pod_kill_rank{{{NODE}}})",
        "Rank 1 is killed first on its node.",
        "short",
    ),
)


def variable(name: str, label: str, of: str) -> dashboard.QueryVariable:
    """A choice of any values of a label."""
    found = dashboard.QueryVariable(name).label(label).query(of).datasource(SOURCE)
    return found.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).multi(True).include_all(True).all_value(".*")


def build() -> Any:
    """The dashboard."""
    result = (
        dashboard.Dashboard("kubectl-qos: who dies next")
        .uid("kubectl-qos")
        .description("The next deaths for memory, how far away they are, and what was killed.")
        .tags(["kubernetes", "memory"])
        .time("now-6h", "now")
        .refresh("1m")
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(variable("cluster", "Cluster", "label_values(kubectl_qos_exporter_synced, cluster)"))
        .with_variable(variable("node", "Node", f"label_values(kubectl_qos_node_pods{{{CLUSTER}}}, node)"))
    )
    for panel in PANELS:
        result = result.with_panel(panel)
    return result.build()


def text() -> str:
    """Its JSON."""
    return f"{JSONEncoder(sort_keys=True, indent=2).encode(build())}\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")

"""The metrics of nodes and pods: names, help texts, and the samples of one node.

Samples are formatted here and kept by node: prometheus_client, which formats all of them at each scrape,
takes seconds for 200,000. Names, units and help texts follow https://prometheus.io/docs/practices/naming.
Not here: keeping samples up to date (collector.py).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from kubectl_qos.analysis.node_table import is_in_trouble, troubles
from kubectl_qos.analysis.pod_table import to_own_limit
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.allocation import running_pod
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.qos.eviction import eviction_due, to_hard_eviction, to_soft_eviction
from kubectl_qos.qos.flags import is_inverted, lowest_priorities_after
from kubectl_qos.qos.node_memory import node_memory
from kubectl_qos.qos.ranking import Profiles, RankedPod, Ranking, rank_node
from kubectl_qos.qos.simulation.ceiling import MemoryUse
from kubectl_qos.qos.simulation.next_death import next_deaths
from kubectl_qos.qos.simulation.node_state import growth_on, ranked_node_state

Value = tuple[str, str, float | int | None]
"""A family's name, the labels after those of the node, and the value; None where it is not known."""
ProfileCache = dict[tuple[int | None, Release], Profiles]


class Family(NamedTuple):
    """A metric: its name without the prefix and the suffix of its type, its help text and its type."""

    name: str
    help: str
    type: str = "gauge"

    @property
    def full_name(self) -> str:
        """As OpenMetrics calls the family."""
        return f"kubectl_qos_{self.name}"

    @property
    def sample_name(self) -> str:
        """As its samples are called."""
        suffix = {"counter": "_total", "info": "_info"}.get(self.type, "")
        return f"{self.full_name}{suffix}"


FAMILIES: Final = (
    Family("node_pods", "Pods bound to the node that have not ended."),
    Family(
        "node_pods_without_usage", "Running pods without usage; distances of their node are upper bounds."
    ),
    Family("node_memory_capacity_bytes", "Memory capacity of the node."),
    Family("node_memory_used_bytes", "Working set of the node's pods, by QoS class."),
    Family(
        "node_own_memory_bytes",
        "What the node uses beside its pods; where it is absent the node's distances are upper bounds.",
    ),
    Family("node_memory_worst_case_bytes", "Memory of the node's pods once containers use up their limits."),
    Family(
        "node_eviction_distance_bytes", "Memory left until the kubelet evicts, below zero if it already does."
    ),
    Family("node_full_distance_bytes", "Memory left until the kernel kills because the node is full."),
    Family("node_in_trouble", "1 with memory pressure, or a twentieth of the memory left until eviction."),
    Family("node_inversions", "Pods that the kernel would kill before a pod of lower priority."),
    Family("node_next_death", "Who dies next on the node, and by which mechanism.", "info"),
    Family("node_next_death_distance_bytes", "How much more memory may be used until the next death."),
    Family("node_next_death_priority", "Priority of the pod that dies next on the node."),
    Family("pod_kill_rank", "Position in the kernel's kill order of the node; 1 is killed first."),
    Family("pod_oom_score", "The oom_score of the container that decides the pod's rank."),
    Family("pod_oom_score_adj", "The oom_score_adj of the container that decides the pod's rank."),
    Family(
        "pod_limit_distance_bytes", "Memory left until the nearest limit of the pod or of its containers."
    ),
    Family("pod_freed_bytes", "Memory freed if the container that decides the rank is killed."),
)
"""Those of which each node has samples."""
KILLS: Final = Family("kills", "OOM kills and evictions seen since the exporter started.", "counter")


def labels(**values: str) -> str:
    """Labels as the text formats have them, without braces."""
    return ",".join(f'{name}="{_escape(value)}"' for name, value in values.items())


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def sample(family: Family, label_text: str, value: float) -> str:
    """One line of both text formats."""
    return f"{family.sample_name}{{{label_text}}} {value}\n"


def node_samples(
    snapshot: Snapshot, name: str, scope: Scope, per_pod: int | None, profiles: ProfileCache
) -> tuple[bytes, ...]:
    """The samples of a node, those of each family in the order of FAMILIES.

    Of pods in scope those of the first `per_pod` of the kill order, of all for None.
    """
    setup = snapshot.setup(name)
    key = setup.node.memory_capacity_bytes, setup.release
    running = [running_pod(pod, setup.release) for pod in snapshot.by_node().get(name, ())]
    alike = profiles.setdefault(key, Profiles(*key))
    ranking = rank_node(running, setup.node, setup.release, snapshot.usage, alike)
    lines: dict[str, list[str]] = {family.name: [] for family in FAMILIES}
    node = labels(node=name)
    ranked = [row for row in ranking.pods if row.rank is not None and scope.matches(row.pod)]
    chosen = ranked if per_pod is None else ranked[:per_pod]
    for values in (
        _memory_values(snapshot, setup, ranking),
        _death_values(snapshot, setup, ranking),
        *map(_pod_values, chosen),
    ):
        for family, more, value in values:
            if value is not None:
                both = f"{node},{more}" if more else node
                lines[family].append(sample(_BY_NAME[family], both, value))
    return tuple("".join(family_lines).encode() for family_lines in lines.values())


_BY_NAME: Final = {family.name: family for family in FAMILIES}


def _memory_values(snapshot: Snapshot, setup: NodeSetup, ranking: Ranking) -> Iterator[Value]:
    name = setup.node.name
    node, whole = snapshot.nodes.get(name), snapshot.node_usage.get(name)
    memory, capacity = node_memory(ranking, setup.release), ranking.node.memory_capacity_bytes
    used, hard, soft = memory.used_bytes, None, None
    if used is not None:
        measured = ((row.pod, row.usage) for row in ranking.pods)
        due = eviction_due(setup.node, measured, snapshot.own_bytes(name))
        hard, soft = to_hard_eviction(setup, used, whole, due), to_soft_eviction(setup, used, whole, due)
    yield "node_pods", "", memory.pods
    yield "node_pods_without_usage", "", ranking.without_usage
    yield "node_memory_capacity_bytes", "", capacity
    for qos, amount in (memory.used or {}).items():
        yield "node_memory_used_bytes", labels(qos_class=qos), amount
    yield "node_own_memory_bytes", "", snapshot.own_bytes(name)
    yield "node_memory_worst_case_bytes", "", memory.worst_bytes
    yield "node_eviction_distance_bytes", labels(threshold="hard"), hard
    yield "node_eviction_distance_bytes", labels(threshold="soft"), soft
    reported = troubles(node) if node is not None else ()
    yield "node_in_trouble", "", int(is_in_trouble(reported, hard, whole or used, capacity))
    lowest = lowest_priorities_after(ranking.pods)
    inversions = sum(map(is_inverted, ranking.pods, lowest))
    yield "node_inversions", "", inversions if used is not None else None


def _death_values(snapshot: Snapshot, setup: NodeSetup, ranking: Ranking) -> Iterator[Value]:
    """Nothing where nobody kills, or nothing is known: Windows, no capacity, no usage at all."""
    try:
        state = ranked_node_state(ranking, setup, own_bytes=snapshot.own_bytes(setup.node.name))
        state = replace(state, growth=growth_on(snapshot, setup.node.name))
    except InputError:
        return
    if state.is_unmeasured:
        return
    yield "node_full_distance_bytes", "", MemoryUse.of(state).free_bytes if state.capacity_bytes else None
    for death in next_deaths(state, 1):
        pod = next(pod.pod for pod in state.pods if pod.key == death.key)
        victim = labels(
            mechanism=death.mechanism,
            namespace=pod.namespace,
            pod=pod.name,
            container=death.container,
            qos_class=death.qos or "",
            priority_class=pod.spec.priority_class_name or "",
            own_limit="true" if death.is_own else "",
        )
        yield "node_next_death", victim, 1
        yield "node_next_death_distance_bytes", "", death.distance_bytes
        yield "node_next_death_priority", "", pod.spec.priority or 0


def _pod_values(row: RankedPod) -> Iterator[Value]:
    pod, worst = labels(namespace=row.pod.namespace, pod=row.pod.name), row.worst
    if worst is not None:
        yield "pod_kill_rank", pod, row.rank if worst.usage is not None else None
        yield "pod_oom_score", pod, worst.oom_score
        yield "pod_oom_score_adj", pod, worst.adj
        yield "pod_freed_bytes", pod, worst.usage.kernel_bytes if worst.usage is not None else None
    yield "pod_limit_distance_bytes", pod, to_own_limit(row)


def kill_samples(counts: Mapping[tuple[str, ...], int]) -> bytes:
    """The counters of deaths by node, namespace, pod, container and mechanism."""
    names = ("node", "namespace", "pod", "container", "mechanism")
    named = ((labels(**dict(zip(names, key, strict=True))), number) for key, number in counts.items())
    return "".join(sample(KILLS, text, number) for text, number in named).encode()

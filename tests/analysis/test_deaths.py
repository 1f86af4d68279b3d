"""Pods of several nodes: node by node, in the order of the nodes' next deaths."""

from itertools import groupby

from kubectl_qos.analysis.deaths import by_node, deaths_on_nodes, first_deaths_of
from kubectl_qos.analysis.pod_table import build_rows
from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.k8s.snapshot import Scope, Snapshot


def ranks_by_node(snapshot: Snapshot) -> dict[str, list[int]]:
    """The known ranks of each node's rows, in order; rows of a node that are not together are an error."""
    found = build_rows(snapshot, Scope())
    ranks: dict[str, list[int]] = {}
    for name, rows in groupby(
        sorted(found.rows, key=by_node(found, first_deaths_of(snapshot, found))), key=lambda row: row.node
    ):
        assert name not in ranks
        ranks[name] = [row.rank for row in rows if row.rank is not None]
    return ranks


def test_the_node_of_the_next_death_is_first_and_ranks_ascend_inside_a_node() -> None:
    snapshot = DemoSource().snapshot(Scope())
    ranks = ranks_by_node(snapshot)
    next_deaths = deaths_on_nodes(snapshot, sorted(snapshot.nodes)).rows
    assert [name for name in ranks if name] == [row.node for row in next_deaths]
    assert list(ranks)[-1] == "", "pods that wait for a node come last"
    for node in ranks.values():
        assert node == sorted(node)


def test_nodes_whose_deaths_are_unknown_come_by_the_score_of_their_first_pod() -> None:
    snapshot = DemoSource().snapshot(Scope())
    # The next death of a container that was killed at its limit is known.
    statuses = {pod.key: pod.status.every_container for pod in snapshot.pods}
    pods = [pod for pod in snapshot.pods if not any(one.was_oom_killed for one in statuses[pod.key])]
    unmeasured = Snapshot(pods=tuple(pods), nodes=snapshot.nodes, kubelets=snapshot.kubelets)
    found = build_rows(unmeasured, Scope())
    names = dict.fromkeys(row.node for row in found.rows if row.node)
    assert [name for name in ranks_by_node(unmeasured) if name] == list(names)

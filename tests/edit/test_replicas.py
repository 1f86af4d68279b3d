"""The pods of a workload on all of their nodes: ranks and deaths, and what a preview says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from msgspec import structs

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.edit.compare import with_manifests
from kubectl_qos.edit.edits import Edit, Side, apply_edits
from kubectl_qos.edit.replicas import node_of, recreate_all, replicas_of, usage_of
from kubectl_qos.k8s.kinds import Workload, find_workload
from kubectl_qos.k8s.objects import MEMORY, ObjectMeta, Pod
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.moments import MOST_NODES, replicas_section, rollout_section
from kubectl_qos.qos.ranking import rank_node
from kubectl_qos.qos.simulation.next_death import next_deaths
from kubectl_qos.qos.simulation.node_state import state_of_node

DEMO: Final = DemoSource().snapshot(Scope())
WORKLOADS: Final = {find_workload(pod): pod for pod in DEMO.pods if pod.node_name and not pod.is_terminal}


def template(workload: Workload) -> Pod:
    kind, namespace, name = workload
    spec = structs.replace(WORKLOADS[workload].spec, node_name="")
    return Pod(kind=kind, metadata=ObjectMeta(name=name, namespace=namespace), spec=spec)


def requesting(pod: Pod, size: str) -> list[Edit]:
    return [Edit(one.name, Side.REQUESTS, MEMORY, Quantity.parse(size)) for one in pod.containers]


def own_edits(pod: Pod, edits: list[Edit]) -> list[Edit]:
    """Without those of containers that this pod does not have."""
    return [one for one in edits if one.owner in {container.name for container in pod.containers}]


def test_all_pods_of_a_workload_change_at_once_on_each_of_its_nodes() -> None:
    """As the manifests of `simulate -f` change them, which is another road to the same nodes."""
    for workload in map(template, WORKLOADS):
        edits, mine = requesting(workload, "100Mi"), replicas_of(workload, DEMO.pods)
        found = recreate_all(workload, edits, DEMO)
        assert sum(len(node.effects) for node in found) == len(mine)
        manifests = [apply_edits(pod, own_edits(pod, edits)) for pod in mine]
        changed = replace(DEMO, pods=with_manifests(DEMO.pods, manifests).pods)
        for node in found:
            name, setup = node.setup.node.name, node.setup
            for snapshot, side, deaths in (
                (DEMO, "rank_before", node.deaths_before),
                (changed, "rank_after", node.deaths_after),
            ):
                assert set(deaths) == set(next_deaths(state_of_node(snapshot, name)))
                rows = rank_node(snapshot.by_node()[name], setup.node, setup.release, snapshot.usage).pods
                ranks = {(row.pod.namespace, row.pod.name): row.rank for row in rows}
                keys = [(one.before.pod.namespace, one.before.pod.name) for one in node.effects]
                assert [getattr(one, side) for one in node.effects] == [ranks[key] for key in keys]


API: Final = Workload("Deployment", "shop", "api")


def test_the_pod_that_dies_next_comes_first_as_ranks_are_of_one_node() -> None:
    """Where a pod has rank 1 and room, and another on a fuller node has not: by urgency, not by rank."""
    seen = 0
    for workload in map(template, WORKLOADS):
        nodes = recreate_all(workload, requesting(workload, "100Mi"), DEMO)
        urgencies = [node.mine_before[0].urgency for node in nodes if node.mine_before]
        assert urgencies == sorted(urgencies)
        if nodes[0].mine_before:
            first = nodes[0].first.before.pod
            assert (first.namespace, first.name) == nodes[0].mine_before[0].key
            ranks = [one.rank_before or 0 for node in nodes for one in node.effects]
            seen += nodes[0].first.rank_before != min(ranks)
    assert seen, "one of another rank than the lowest number"


def test_the_node_of_a_workload_is_that_of_its_newest_pod_once_all_have_ended() -> None:
    ended = {find_workload(pod): pod.node_name for pod in DEMO.pods if pod.node_name and pod.is_terminal}
    job = Workload("Job", "batch", "etl-28930")
    assert ended[job] == node_of(Pod("Job", ObjectMeta(job.name, job.namespace)), DEMO.pods) == "worker-1"
    assert [node_of(one, DEMO.pods) for one in (template(API), WORKLOADS[API])] == ["", "worker-2"]


def test_a_preview_says_ranks_and_distances_of_each_node() -> None:
    api = template(API)
    nodes = recreate_all(api, requesting(api, "721Mi"), DEMO)
    section = replicas_section(nodes)
    assert section.heading == "Pods: 2 pods on 1 node, once all are recreated"
    assert [(one.label, one.before, one.after) for one in section.changes] == [
        ("worker-2: kill ranks of 17", "1, 5", "2, 11"),
        ("worker-2: next death of these", "+687Mi kubepods limit", "+118Mi own limit 94%"),
        ("worker-2: of these, kubepods limit", "+687Mi", "+1927Mi, after 1 other death"),
        ("worker-2: of these, own limit of c", "+118Mi", "+118Mi"),
        ("worker-2: of these, kernel: node full", "+1199Mi", "+2439Mi, after 1 other death"),
        *[("worker-2: of these, kubelet evicts", *["+3612Mi, after 8 other deaths"] * 2)],
        *[("worker-2: next death", *["+2Mi data/importer-5f7b9c-2vtxk:c, own limit 98%"] * 2)],
    ]
    many = replicas_section(nodes * (MOST_NODES + 1))
    assert many.lines[0].text == "1 more node: -o json has them"


def rolling(surge: int, missing: int) -> dict[str, Any]:
    bounds = {"maxSurge": surge, "maxUnavailable": missing}
    return {"kind": "Deployment", "spec": {"replicas": 2, "strategy": {"rollingUpdate": bounds}}}


def test_a_rollout_needs_room_for_the_pods_that_it_makes_first() -> None:
    api = template(API)
    for size, room, warns in (("721Mi", (2, 3), False), ("3Gi", (0, 0), True)):
        nodes = recreate_all(api, requesting(api, size), DEMO)
        assert (nodes[0].room, nodes[0].room_later) == room
        section = rollout_section(nodes, rolling(surge=1, missing=0))
        assert section is not None
        assert section.warns is warns
        by_parts = rollout_section(nodes, rolling(surge=0, missing=1))
        assert by_parts is not None
        assert not by_parts.warns
    for kept in ("CronJob", {}), ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}}):
        assert rollout_section(nodes, {"kind": kept[0], "spec": kept[1]}) is None


def test_the_usage_of_a_workload_is_that_of_its_greediest_pod() -> None:
    api = template(API)
    usages = [DEMO.usage_of(pod) for pod in replicas_of(api, DEMO.pods)]
    assert usage_of(api, DEMO) == max(filter(None, usages), key=lambda one: one.working_set_bytes)

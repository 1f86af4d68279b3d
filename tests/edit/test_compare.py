"""The same pods under other settings, and with changed manifests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.edit.compare import (
    Comparison,
    compare,
    node_of,
    node_wide_deaths,
    recreate_all,
    replicas_of,
    usage_of,
    with_manifests,
)
from kubectl_qos.edit.edits import Edit, Side, apply_edits
from kubectl_qos.edit.preview import NumberChange
from kubectl_qos.k8s.kinds import Workload, find_workload
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.node_overrides import NodeOverride, apply_overrides
from kubectl_qos.k8s.objects import MEMORY, ContainerStatus, ObjectMeta, Pod, ResourceList, convert
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.present.effects import kubelet_sections, missing_bytes
from kubectl_qos.present.preview import MOST_NODES, replicas_section, rollout_section
from kubectl_qos.qos.prediction import Prediction, predict, predict_running
from kubectl_qos.qos.ranking import rank_node
from kubectl_qos.qos.simulation.next_death import next_deaths
from kubectl_qos.qos.simulation.node_state import state_of_node

DEMO = DemoSource().snapshot(Scope())
API = "api-7d9c5b6f8-x2mzq"


def compared(node: str, *assignments: str, to: str | None = None) -> Comparison:
    setup = DEMO.setup(node)
    after = apply_overrides(setup, [NodeOverride.parse(text) for text in assignments], to)
    return compare(DEMO.by_node()[node], setup, after, DEMO.usage)


def files_of(
    found: Comparison, name: str, container: str | None = None
) -> dict[str, tuple[str | None, str | None]]:
    one = next(one for one in found.pods if one.before.pod.name == name)
    return {file.file: (file.before, file.after) for file in one.files if file.container == container}


@pytest.mark.parametrize("node", ["control-1", "worker-1", "worker-2", "worker-3"])
def test_nothing_differs_from_itself(node: str) -> None:
    found = compared(node, "cgroupVersion=2", to=str(DEMO.setup(node).release))
    assert not any(one.changes_anything for one in found.pods)
    assert found.node_files == ()


def test_cgroup_v1_has_other_files() -> None:
    found = compared("worker-2", "cgroupVersion=1")
    assert files_of(found, API)["cpu.weight"] == ("10", None)
    assert files_of(found, API)["cpu/cpu.shares"] == (None, "256")
    assert {file.file for file in found.node_files} >= {"cpu.weight", "cpu/cpu.shares"}


def test_memory_qos_throttles_below_the_limit() -> None:
    found = compared("worker-2", "featureGates.MemoryQoS=true")
    before, high = files_of(found, API, "c")["memory.high"]
    assert before is None
    # 512Mi + 0.9 x (2Gi - 512Mi), whole pages
    assert high == str((int(512 * 2**20 + 0.9 * 1536 * 2**20)) // 4096 * 4096)


def test_a_default_that_is_now_written_is_no_change() -> None:
    """MemoryQoS is on in 1.37, and without a policy it writes zeros."""
    found = compared("worker-1", to="1.37")
    assert not any(one.changes_anything for one in found.pods)
    written = {(file.file, file.before, file.after) for one in found.pods for file in one.same_effect}
    assert written == {("memory.min", None, "0"), ("memory.low", None, "0")}
    assert {file.file for file in found.node_files} == {"memory.min", "memory.low"}
    assert all(file.same_effect for file in found.node_files)


def test_each_pod_is_predicted_once_before_and_once_after(monkeypatch: pytest.MonkeyPatch) -> None:
    predicted = list[PodKey]()

    def counting(pod: Pod, setup: NodeSetup) -> Prediction:
        predicted.append(pod.key)
        return predict_running(pod, setup)

    for module in ("edit.compare", "qos.cgroup.tree"):
        monkeypatch.setattr(f"kubectl_qos.{module}.predict_running", counting)
    compared("worker-2", to="1.37")
    assert sorted(predicted) == sorted([pod.key for pod in DEMO.by_node()["worker-2"]] * 2)


def test_an_older_runtime_has_the_linear_curve() -> None:
    found = compared("worker-2", "ociRuntime=runc-1.3.1")
    assert files_of(found, API, "c")["cpu.weight"] == ("35", "10")
    assert files_of(found, API) == {}


def test_the_cgroupfs_driver_moves_everything() -> None:
    found = compared("worker-2", "cgroupDriver=cgroupfs")
    assert all(one.changes_path for one in found.pods)
    assert next(one for one in found.pods if one.before.pod.name == API).after.cgroup.path.startswith(
        "/kubepods/burstable/pod"
    )


def test_crun_moves_only_the_processes() -> None:
    found = compared("worker-2", "ociRuntime=crun")
    assert all(one.changes_path and one.before.cgroup.path == one.after.cgroup.path for one in found.pods)


def test_another_runtime_recreates_the_containers() -> None:
    one = compared("worker-2", "runtime=cri-o").pods[0]
    assert one.changes_path
    assert one.after.containers[0].cgroup.path.endswith("/crio-<id>.scope")
    same = compared("worker-2", "runtime=containerd://2.9.9")
    assert not any(pod.changes_path for pod in same.pods)


@pytest.mark.parametrize(
    ("assignments", "refusal"),
    [
        (["memorySwap.swapBehavior=UnlimitedSwap"], 'memorySwap.swapBehavior "UnlimitedSwap"'),
        (["memoryReservationPolicy=TieredReservation"], "requires MemoryQoS feature gate to be enabled"),
        (["cgroupsPerQOS=false"], "cgroupsPerQOS (--cgroups-per-qos) must be set to true"),
    ],
)
def test_a_kubelet_that_would_not_start(assignments: list[str], refusal: str) -> None:
    (found,) = compared("worker-2", *assignments).refusals
    assert refusal in found
    assert compared("worker-2", "cgroupDriver=cgroupfs").refusals == ()


@pytest.mark.parametrize(("to", "refused"), [("1.34", False), ("1.35", True)])
def test_cgroup_v1_is_refused_since_1_35(to: str, refused: bool) -> None:
    assert compared("worker-2", "cgroupVersion=1", to=to).refuses_cgroup_v1 is refused
    assert not compared("worker-2", to=to).refuses_cgroup_v1


def test_a_workload_is_distinguished_from_another_of_its_name() -> None:
    pod = DEMO.by_node()["worker-2"][0]
    twin = msgspec.structs.replace(pod, kind="Deployment", spec=DEMO.by_node()["worker-2"][1].spec)
    setup = DEMO.setup("worker-2")
    found = compare([pod, twin], setup, apply_overrides(setup, [], "1.30"))
    assert found.of(twin).before.pod.kind == "Deployment"
    assert found.of(pod).before.pod.kind == "Pod"


def test_twice_the_memory_halves_the_protection_of_a_request() -> None:
    found = compared("worker-2", "memory=32Gi")
    one = next(one for one in found.pods if one.before.pod.name == API)
    assert one.containers[0].oom_score_adj == NumberChange(969, 985)


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(["control-1", "worker-1", "worker-2", "worker-3"]),
    st.sampled_from([f"1.{minor}" for minor in range(25, 38)]),
    st.sets(st.sampled_from(["cgroupVersion=1", "cgroupDriver=cgroupfs", "memorySwap.swapBehavior=NoSwap"])),
)
def test_before_and_after_are_the_predictions_of_both_setups(
    node: str, to: str, assignments: set[str]
) -> None:
    found = compared(node, *assignments, to=to)
    for pod, one in zip(DEMO.by_node()[node], found.pods, strict=True):
        for setup, side in ((found.before, one.before), (found.after, one.after)):
            alone = predict(pod, setup.node, kubelet=setup.kubelet, release=setup.release)
            assert (alone.qos_class, alone.cgroup) == (side.qos_class, side.cgroup)
            assert [c.oom_score_adj for c in alone.containers] == [c.oom_score_adj for c in side.containers]
        held = {(file.container, file.file) for file in (*one.files, *one.same_effect)}
        for name in {**one.before.cgroup.files, **one.after.cgroup.files}:
            differs = one.before.cgroup.files.get(name) != one.after.cgroup.files.get(name)
            assert ((None, name) in held) is differs


def pod(name: str = "a", **fields: Any) -> Pod:
    raw: dict[str, Any] = {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "x", **fields.pop("metadata", {})},
        "spec": {"nodeName": "n", "containers": [{"name": "c"}], **fields.pop("spec", {})},
        "status": {"phase": "Running", "qosClass": "BestEffort", **fields.pop("status", {})},
    }
    return convert({**raw, **fields}, Pod)


def change(kind: str = "Pod", name: str = "a", namespace: str = "", **spec: Any) -> Pod:
    raw = {
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"memory": "1Gi"}}}], **spec},
    }
    return convert(raw, Pod)


def test_a_pod_keeps_who_and_where_it_is() -> None:
    before = pod(metadata={"labels": {"app": "a"}})
    (after,), unused = with_manifests([before], [change()])
    assert unused == ()
    assert (after.name, after.node_name, after.metadata.labels) == ("a", "n", {"app": "a"})
    assert after.status.phase == "Running"
    assert after.status.qos_class == "", "its class follows from what it is now"
    assert after.containers == change().containers


def test_what_a_change_is_about() -> None:
    owned = pod(
        "a-7d9c5-x", metadata={"labels": {"pod-template-hash": "7d9c5"}, "ownerReferences": _owner("a-7d9c5")}
    )
    for found in (change(), change(namespace="x")):
        assert with_manifests([pod()], [found]).unused == ()
    for found in (change("Deployment"), change("ReplicaSet", "a-7d9c5"), change("Pod", "a-7d9c5-x")):
        assert with_manifests([owned], [found]).unused == ()
    for found in (change(namespace="y"), change(name="b"), change("StatefulSet")):
        assert with_manifests([pod(), owned], [found]) == ((pod(), owned), (found,))


def _owner(name: str) -> list[dict[str, Any]]:
    return [{"kind": "ReplicaSet", "name": name, "controller": True}]


def test_a_pod_that_has_ended_stays() -> None:
    ended = pod(status={"phase": "Failed"})
    assert with_manifests([ended], [change()]).pods == (ended,)


def test_the_number_of_a_priority_class() -> None:
    before = pod(spec={"priority": 7, "priorityClassName": "high"})

    def priority(**spec: Any) -> int | None:
        return with_manifests([before], [change(**spec)]).pods[0].spec.priority

    assert priority(priorityClassName="high") == 7
    assert priority(priorityClassName="other") is None
    assert priority(priorityClassName="other", priority=9) == 9
    assert priority(priorityClassName="system-node-critical") == 2_000_001_000


def test_debuggers_stay() -> None:
    before = pod(spec={"ephemeralContainers": [{"name": "e"}]})
    (after,) = with_manifests([before], [change()]).pods
    assert [one.name for one in after.ephemeral_containers] == ["e"]
    assert msgspec.structs.replace(after, spec=before.spec, status=before.status) == before


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


SHOP_API: Final = Workload("Deployment", "shop", "api")


def test_the_pod_that_dies_next_comes_first_as_ranks_are_of_one_node() -> None:
    """Where a pod has rank 1 and room, and another on a fuller node has not: by urgency, not by rank."""
    seen = 0
    for workload in map(template, WORKLOADS):
        nodes = recreate_all(workload, requesting(workload, "100Mi"), DEMO)
        urgencies = [node.own_deaths_before[0].urgency for node in nodes if node.own_deaths_before]
        assert urgencies == sorted(urgencies)
        if nodes[0].own_deaths_before:
            first = nodes[0].first.before.pod
            assert (first.namespace, first.name) == nodes[0].own_deaths_before[0].key
            ranks = [one.rank_before or 0 for node in nodes for one in node.effects]
            seen += nodes[0].first.rank_before != min(ranks)
    assert seen, "one of another rank than the lowest number"


def test_the_node_of_a_workload_is_that_of_its_newest_pod_once_all_have_ended() -> None:
    ended = {find_workload(pod): pod.node_name for pod in DEMO.pods if pod.node_name and pod.is_terminal}
    job = Workload("Job", "batch", "etl-28930")
    assert ended[job] == node_of(Pod("Job", ObjectMeta(job.name, job.namespace)), DEMO.pods) == "worker-1"
    assert [node_of(one, DEMO.pods) for one in (template(SHOP_API), WORKLOADS[SHOP_API])] == ["", "worker-2"]


def test_a_preview_says_ranks_and_distances_of_each_node() -> None:
    api = template(SHOP_API)
    nodes = recreate_all(api, requesting(api, "721Mi"), DEMO)
    section = replicas_section(nodes)
    assert section.heading == "Pods: 2 pods on 1 node, once all are recreated"
    assert [(one.label, one.before, one.after) for one in section.changes] == [
        ("worker-2: kill ranks of 17", "1, 5", "2, 11"),
        ("worker-2: next death of these", "+118Mi own limit 94%", "+118Mi own limit 94%"),
        ("worker-2: of these, kubepods limit", "+687Mi", "+1.9Gi, after 1 other death"),
        ("worker-2: of these, kernel: node full", "+1.2Gi", "+2.4Gi, after 1 other death"),
        *[("worker-2: of these, kubelet evicts", *["+3.5Gi, after 8 other deaths"] * 2)],
        *[("worker-2: next death", *["+2Mi data/importer-5f7b9c-2vtxk:c, own limit 98%"] * 2)],
    ]
    many = replicas_section(nodes * (MOST_NODES + 1))
    assert many.lines[0].text == "1 more node: see -o json"


def test_the_next_death_of_a_node_after_a_change_is_the_first_one_then() -> None:
    """Not the same death, which is further away now."""
    importer = template(Workload("Deployment", "data", "importer"))
    edits = [Edit("c", Side.LIMITS, MEMORY, Quantity.parse("1Gi"))]
    rows = {row.label: row for row in replicas_section(recreate_all(importer, edits, DEMO)).changes}
    row = rows["worker-2: next death"]
    assert row.before == "+2Mi data/importer-5f7b9c-2vtxk:c, own limit 98%"
    assert row.after == "+587Mi batch/crunch-x2k9f, kubelet evicts"


def test_pods_of_a_workload_that_are_killed_again_and_again_get_room() -> None:
    """How much they need is unknown, so another death of the node is the next one that is known."""
    workload = Workload("Deployment", "data", "importer")
    pod, importer = WORKLOADS[workload], template(workload)
    killed = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2126-01-01T00:00:00Z"}
    raw = {"name": "c", "restartCount": 4, "state": {"running": {}}, "lastState": {"terminated": killed}}
    status = structs.replace(pod.status, container_statuses=(convert(raw, ContainerStatus),))
    pods = [structs.replace(one, status=status) if one is pod else one for one in DEMO.pods]
    usage = {key: used for key, used in DEMO.usage.items() if key != pod.key}
    snapshot = replace(DEMO, pods=tuple(pods), usage=usage)
    edits = [Edit("c", Side.LIMITS, MEMORY, Quantity.parse("1Gi"))]
    section = replicas_section(recreate_all(importer, edits, snapshot))
    assert section.lines[-1].text == "117.7Mi was too small for c; whether 1Gi is enough is unknown"
    again = "own limit if it uses as much as before"
    changes = {row.label: (row.before, row.after) for row in section.changes if "death" in row.label}
    assert changes == {
        "worker-2: next death of these": (f"again {again}", "+906Mi above that limit"),
        "worker-2: next death": (
            f"again data/importer-5f7b9c-2vtxk:c, {again}",
            "at most +702Mi batch/crunch-x2k9f, kubelet evicts",
        ),
    }


def rolling(surge: int, missing: int) -> dict[str, Any]:
    bounds = {"maxSurge": surge, "maxUnavailable": missing}
    return {"kind": "Deployment", "spec": {"replicas": 2, "strategy": {"rollingUpdate": bounds}}}


@pytest.mark.parametrize(("most_pods", "room"), [(17, (0, 2)), (18, (1, 3)), (16, (0, 1)), (110, (2, 3))])
def test_a_node_that_takes_no_more_pods_has_no_room(most_pods: int, room: tuple[int, int]) -> None:
    """Clouds allow as few as 17 pods on a small node, and its requests say nothing of that."""
    api, node = template(SHOP_API), DEMO.nodes["worker-2"]
    allocatable = {**(node.status.allocatable or {}), "pods": Quantity.parse(str(most_pods))}
    full = structs.replace(node, status=structs.replace(node.status, allocatable=ResourceList(allocatable)))
    snapshot = replace(DEMO, nodes={**DEMO.nodes, "worker-2": full})
    (found,) = recreate_all(api, requesting(api, "721Mi"), snapshot)
    assert (found.room, found.room_later) == room


def test_a_rollout_needs_room_for_the_pods_that_it_makes_first() -> None:
    api = template(SHOP_API)
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
    api = template(SHOP_API)
    usages = [DEMO.usage_of(pod) for pod in replicas_of(api, DEMO.pods)]
    assert usage_of(api, DEMO) == max(filter(None, usages), key=lambda one: one.working_set_bytes)


def test_a_setting_moves_only_the_killers_of_the_whole_node() -> None:
    before, after = node_wide_deaths(compared("worker-2", "systemReserved=memory=1Gi"), None)
    assert {death.killer.id for death in before} >= {"kubelet eviction", "kubepods limit"}
    assert all(death.killer.is_node_wide for death in (*before, *after))
    moved = {
        death.killer.id for old, death in zip(before, after, strict=True)
        if old.distance_bytes != death.distance_bytes
    }  # fmt: skip
    assert moved
    assert node_wide_deaths(compared("", "systemReserved=memory=1Gi"), None) == ([], [])


@pytest.mark.parametrize(
    ("setting", "allocatable", "missing"),
    [
        ("evictionHard=memory.available=1Gi", "15.4Gi → 14.5Gi", 0),
        ("systemReserved=memory=4Gi", "15.4Gi → 11.9Gi", 1895 << 20),
        ("cgroupVersion=1", "", 0),
    ],
)
def test_pods_that_no_longer_fit_are_said_with_their_nodes_allocatable_memory(
    setting: str, allocatable: str, missing: int
) -> None:
    comparison = compared("worker-2", setting)
    assert missing_bytes(comparison) >> 20 == missing >> 20
    sections = [section for section in kubelet_sections(comparison) if section.title == "Allocatable memory"]
    said = [f"{change.before} → {change.after}" for section in sections for change in section.changes]
    assert said == [allocatable] * bool(allocatable)
    assert [section.warns for section in sections] == [missing > 0] * len(sections)

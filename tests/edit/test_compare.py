"""The same pods under other settings, and with changed manifests."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.edit.compare import Comparison, compare, with_manifests
from kubectl_qos.edit.preview import NumberChange
from kubectl_qos.k8s.node_overrides import NodeOverride, apply_overrides
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.qos.prediction import predict

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

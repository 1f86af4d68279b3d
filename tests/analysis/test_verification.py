"""Computed against measured: recorded nodes have no drift, and changed copies have that of the change."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from msgspec import structs

from kubectl_qos.analysis.verification import (
    KERNEL_DEFAULTS,
    CheckedValue,
    DriftReason,
    Observed,
    ObservedContainer,
    ObservedProcess,
    by_container_id,
    observed_from_sections,
    observed_on_node,
    verify_levels,
    verify_pod,
)
from kubectl_qos.k8s.kubelet import CgroupDriver, Kubelet, Node, NodeSetup, Origin
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.qos.cgroup.tree import CgroupLevel, CgroupTree, cgroup_tree
from kubectl_qos.qos.prediction import predict
from kubectl_qos.qos.process_order import HostProcess
from tests.qos.recorded import VARIANTS, Case, case_of, cases, node_of, rows_of, setup_of
from tests.recordings.files import read_json

VARIANT = pytest.mark.parametrize("variant", VARIANTS)


def drifts(found: tuple[CheckedValue, ...]) -> list[CheckedValue]:
    return [check for check in found if check.drift]


@VARIANT
def test_the_recorded_pods_have_no_drift(variant: str) -> None:
    found = [check for case in cases(variant) for check in verify_pod(*case)]
    assert drifts(tuple(found)) == []
    assert all(check.measured is not None for check in found)
    counts = Counter((check.level, check.file) for check in found)
    assert counts[CgroupLevel.CONTAINER, "oom_score_adj"] >= 9
    assert counts[CgroupLevel.CONTAINER, "memory.max"] >= 9
    assert counts[CgroupLevel.POD, "directory"] == counts[CgroupLevel.CLASS, "directory"] >= 9


@VARIANT
def test_what_memory_qos_left_behind_is_known_and_no_drift(variant: str) -> None:
    explained = {
        (check.level, check.file)
        for case in cases(variant)
        for check in verify_pod(*case)
        if check.cause is not None
    }
    expected = {
        (CgroupLevel.CONTAINER, "memory.low"),
        (CgroupLevel.CONTAINER, "memory.high"),
        (CgroupLevel.POD, "memory.low"),
    }
    assert explained == (expected if variant == "limitedswap" else set())


def tree_of(variant: str) -> CgroupTree:
    """The tree with the pods that were there when the levels above were recorded."""
    pods = [case.prediction.pod for case in cases(variant)]
    if variant == "systemd":
        pods = [convert(row["pod"], Pod) for row in rows_of(variant)]
        pods = [pod for pod in pods if pod.annotations.config_mirror]
    return cgroup_tree(pods, setup_of(variant))


def levels_of(variant: str) -> dict[str, Mapping[str, str]]:
    """The directories above the pods when the node was recorded."""
    return dict(node_of(variant)["top_cgroups"])


@VARIANT
def test_the_recorded_levels_above_have_no_drift(variant: str) -> None:
    found = verify_levels(tree_of(variant), levels_of(variant))
    assert drifts(found) == []
    assert Counter(check.level for check in found)[CgroupLevel.CLASS] >= 12
    left = {(check.level, check.file) for check in found if check.cause is not None}
    assert left == (
        {(CgroupLevel.KUBEPODS, "memory.min"), (CgroupLevel.CLASS, "memory.low")}
        if variant in {"limitedswap", "singleprocessoomkill"}
        else set()
    )


def another(value: str) -> str:
    return str(int(value) + 4096) if value.isdigit() else "12288" if value == "max" else f"{value}0"


def changed_copy(case: Case, check: CheckedValue) -> Observed:
    """A copy with the one value changed that a check is about."""
    measured = case.measured
    containers, directories = dict(measured.containers), dict(measured.directories)
    if check.level is CgroupLevel.CONTAINER:
        read = containers[check.container]
        if check.file == "oom_score_adj":
            first, *rest = read.processes
            value = first.oom_score_adj - 1 if first.oom_score_adj > 0 else first.oom_score_adj + 1
            read = replace(read, processes=(replace(first, oom_score_adj=value), *rest))
        elif check.file == "directory":
            read = replace(read, path=str(read.path).replace("cri-containerd-", "crio-"))
        else:
            read = replace(read, files={**read.files, check.file: another(str(check.measured))})
        containers[check.container] = read
    elif check.level is CgroupLevel.POD and check.file != "directory":
        path = case.prediction.cgroup.path
        directories[path] = {**directories[path], check.file: another(str(check.measured))}
    else:
        old = case.prediction.cgroup.path
        above, name = old.rsplit("/", 1)
        new = f"{above}.other/{name}" if check.level is CgroupLevel.CLASS else f"{above}/x-{name}"
        directories = {new if path == old else path: files for path, files in directories.items()}
        containers = {
            name: replace(read, path=str(read.path).replace(old, new)) for name, read in containers.items()
        }
    return Observed(containers, directories)


@VARIANT
def test_one_changed_value_is_that_drift_and_no_other(variant: str) -> None:
    """For every file of every level, in a few pods, each value changed alone."""
    few = settings().max_examples // 10
    seen: Counter[object] = Counter()
    for case in cases(variant):
        for check in verify_pod(*case):
            if check.cause is not None or seen[check.level, check.file] == few:
                continue
            seen[check.level, check.file] += 1
            (drift,) = drifts(verify_pod(case.prediction, changed_copy(case, check)))
            assert (drift.level, drift.container, drift.file) == (check.level, check.container, check.file)
            if check.file != "directory":
                assert (drift.computed, drift.measured != check.measured) == (check.computed, True)
    assert len(seen) >= 17


@VARIANT
def test_each_file_above_the_pods_is_looked_at(variant: str) -> None:
    tree, levels = tree_of(variant), levels_of(variant)
    count = 0
    for directory in tree.walk():
        if directory.level not in {CgroupLevel.KUBEPODS, CgroupLevel.CLASS}:
            continue
        for name in directory.files:
            files = levels[directory.path]
            copy = {**levels, directory.path: {**files, name: another(files[name])}}
            (drift,) = drifts(verify_levels(tree, copy))
            assert (drift.level, drift.file) == (directory.level, name)
            partly = drifts(verify_levels(tree, copy, whole_node=False))
            assert len(partly) == (name not in {"cpu.weight", "memory.min", "memory.low", "memory.max"})
            count += 1
    assert count >= 20


def test_a_file_that_is_absent_is_not_compared() -> None:
    case = cases("systemd")[0]
    ((name, read),) = case.measured.containers.items()
    files = {key: text for key, text in read.files.items() if key != "memory.max"}
    found = verify_pod(
        case.prediction, Observed({name: replace(read, files=files)}, case.measured.directories)
    )
    assert drifts(found) == []
    assert [check.file for check in found if check.measured is None] == ["memory.max"]


# What may have led to it.

NODE = Node(name="n", memory_capacity_bytes=4 << 30, allocatable_memory_bytes=4 << 30)
UID = "751ba52d-1ed4-4457-a206-d3c5b2ac7363"
ID = "ab" * 32


def pod(resources: Mapping[str, Any], **more: Any) -> Pod:
    status = {"qosClass": "", "containerStatuses": [{"name": "a", "containerID": f"containerd://{ID}"}]}
    raw = {
        "metadata": {"name": "web", "namespace": "shop", "uid": UID, **more.pop("metadata", {})},
        "spec": {"nodeName": "n", "containers": [{"name": "a", "resources": resources}]},
        "status": {**status, **more.pop("status", {})},
    }
    return convert(raw, Pod)


BURSTABLE = {"requests": {"memory": "64Mi", "cpu": "100m"}, "limits": {"memory": "128Mi", "cpu": "133m"}}


def as_predicted(one: Pod, kubelet: Kubelet | None = None, node: Node = NODE) -> Observed:
    """What would be measured of a pod on a node with these settings."""
    found = predict(one, node, kubelet=kubelet, release=node.kubelet_version)
    container = found.containers[0]
    assert container.oom_score_adj is not None
    read = ObservedContainer(
        {**KERNEL_DEFAULTS, **container.cgroup.files},
        (ObservedProcess(1, "app", container.oom_score_adj),),
        container.cgroup.path,
    )
    return Observed({"a": read}, {found.cgroup.path: {"pids.max": "max", **found.cgroup.files}})


def causes(one: Pod, measured: Observed, kubelet: Kubelet | None = None) -> dict[str, tuple[str, str] | None]:
    """Each drift's file with why and how sure."""
    return {
        f"{check.level} {check.file}": None
        if check.cause is None
        else (check.cause.reason.name, check.cause.confidence.value)
        for check in drifts(verify_pod(predict(one, NODE, kubelet=kubelet), measured))
    }


def test_nothing_drifts_from_itself() -> None:
    assert causes(pod(BURSTABLE), as_predicted(pod(BURSTABLE))) == {}


def test_the_other_driver_is_said_once_and_for_certain() -> None:
    one = pod(BURSTABLE)
    found = causes(one, as_predicted(one, Kubelet(cgroup_driver=CgroupDriver.CGROUPFS)))
    assert found.pop("class directory") == ("OTHER_DRIVER", "certain")
    assert found == {"pod cpu.max": ("SETTING", "likely"), "container cpu.max": ("SETTING", "likely")}


def test_a_pod_that_stayed_in_the_old_hierarchy() -> None:
    one = pod(BURSTABLE)
    measured = as_predicted(one, Kubelet(cgroup_driver=CgroupDriver.CGROUPFS))
    there = Observed(measured.containers, {**measured.directories, "/kubepods.slice": {}})
    assert causes(one, there)["class directory"] == ("STALE_HIERARCHY", "likely")


def test_a_hierarchy_that_was_left_behind_is_no_drift() -> None:
    tree, levels = tree_of("limitedswap"), levels_of("limitedswap")
    found = verify_levels(tree, {**levels, "/kubepods": {"memory.max": "max"}})
    (left,) = (check for check in found if check.file == "directory")
    assert not left.drift
    assert left.measured == "/kubepods"
    assert left.cause is not None
    assert left.cause.reason is DriftReason.LEFT_HIERARCHY
    assert verify_levels(tree, {"/kubepods": {"memory.max": "max"}}) == ()


def test_an_older_oci_runtime() -> None:
    one = pod(BURSTABLE)
    old = structs.replace(NODE, oci_runtime=NODE.oci_runtime._replace(version=(1, 2)))
    found = causes(one, as_predicted(one, node=old))
    assert found == dict.fromkeys(("container cpu.weight", "container cpu.max"), ("SETTING", "likely"))


def with_adj(measured: Observed, *values: int, runtime_adj: int | None = None) -> Observed:
    read = measured.containers["a"]
    processes = tuple(ObservedProcess(pid, "app", value) for pid, value in enumerate(values, start=1))
    return Observed({"a": replace(read, processes=processes, runtime_adj=runtime_adj)}, measured.directories)


@pytest.mark.parametrize(
    ("values", "runtime_adj", "generation", "expected"),
    [
        ((985, 0), None, 1, ("OWN_ADJ", "certain")),
        ((0,), 985, 1, ("OWN_ADJ", "certain")),
        ((500,), None, 1, ("OWN_ADJ", "possible")),
        ((977,), 977, 2, ("BEFORE_RESIZE", "likely")),
        ((977,), None, 2, ("BEFORE_RESIZE", "likely")),
        ((977,), 977, 1, None),
    ],
)
def test_why_an_adj_differs(
    values: tuple[int, ...], runtime_adj: int | None, generation: int, expected: tuple[str, str] | None
) -> None:
    one = pod(BURSTABLE, metadata={"generation": generation})
    assert predict(one, NODE).containers[0].oom_score_adj == 985
    found = causes(one, with_adj(as_predicted(one), *values, runtime_adj=runtime_adj))
    assert found == {"container oom_score_adj": expected}


def test_the_request_that_a_container_started_with() -> None:
    one = pod(BURSTABLE, metadata={"generation": 2})
    measured = with_adj(as_predicted(one), 977)
    (found,) = drifts(verify_pod(predict(one, NODE), measured))
    assert found.cause is not None
    least, most = (int(str(found.cause.inputs[name])) for name in ("least", "most"))
    for request, adj in ((least, 977), (most, 977), (least - 1, 978), (most + 1, 976)):
        before = predict(pod({"requests": {"memory": str(request)}}), NODE)
        assert before.containers[0].oom_score_adj == adj


def test_a_runtime_that_may_not_go_so_low() -> None:
    one = pod({"limits": {"memory": "64Mi", "cpu": "1"}})
    found = causes(one, with_adj(as_predicted(one), -500, runtime_adj=-500))
    assert found == {"container oom_score_adj": ("SETTING", "possible")}


def test_processes_with_one_value_are_one_check() -> None:
    one = pod(BURSTABLE)
    found = verify_pod(predict(one, NODE), with_adj(as_predicted(one), 985, 0, 985, 0))
    scores = [check for check in found if check.file == "oom_score_adj"]
    assert [(len(check.processes), check.drift) for check in scores] == [(2, False), (2, True)]


def test_a_range_where_the_memory_of_the_node_is_not_known() -> None:
    one = pod(BURSTABLE)
    for value, drift in ((985, False), (3, False), (1000, True), (-997, True)):
        found = verify_pod(predict(one, Node()), with_adj(as_predicted(one), value))
        (score,) = (check for check in found if check.file == "oom_score_adj")
        assert (score.computed, score.drift) == ("3..999", drift)


def test_a_resize_that_is_not_in_force() -> None:
    larger = {**BURSTABLE, "limits": {"memory": "256Mi", "cpu": "133m"}}
    now = {"name": "a", "containerID": f"containerd://{ID}", "resources": larger}
    one = pod(
        BURSTABLE,
        metadata={"generation": 2},
        status={
            "containerStatuses": [now],
            "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}],
        },
    )
    found = causes(one, as_predicted(pod(larger)))
    assert found == dict.fromkeys(("pod memory.max", "container memory.max"), ("RESIZE_UNDER_WAY", "likely"))


@pytest.mark.parametrize(
    ("there", "files", "settings_"),
    [
        ({"single_process_oom_kill": True}, {"container memory.oom.group"}, ("singleProcessOOMKill=true",)),
        ({"pod_pids_limit": 100}, {"pod pids.max"}, ("podPidsLimit=100",)),
        ({"cpu_cfs_quota": False}, {"container cpu.max", "pod cpu.max"}, ("cpuCFSQuota=false",)),
        (
            {"memory_swap_behavior": "LimitedSwap"},
            {"container memory.swap.max"},
            ("memorySwap.swapBehavior=LimitedSwap",),
        ),
    ],
    ids=["single process", "pids", "no quota", "swap"],
)
def test_another_setting(there: dict[str, Any], files: set[str], settings_: tuple[str, ...]) -> None:
    """Where it was assumed, the node has another; where it is known, the pod was made before it was set."""
    one = pod(BURSTABLE)
    node = structs.replace(NODE, swap_capacity_bytes=1 << 30)
    measured = as_predicted(one, Kubelet(**there), node)
    for origin, assumed in ((Origin.ASSUMED, True), (Origin.CONFIGZ, False)):
        ours = Kubelet(pod_pids_limit=50, origins=dict.fromkeys(there, origin))
        found = drifts(verify_pod(predict(one, node, kubelet=ours), measured))
        pids = {"pod pids.max"} if "pod_pids_limit" not in there else set()
        assert {f"{check.level} {check.file}" for check in found} == files | pids
        for check in found:
            assert check.cause is not None
            if f"{check.level} {check.file}" in files:
                assert check.cause.inputs == {"settings": settings_, "assumed": assumed}


def test_what_the_recorded_resizes_left() -> None:
    """Real resizes: those that were deferred or failed, and what one that was done does not write."""
    why: dict[tuple[str, str], set[str]] = {}
    count = 0
    for one in read_json("node-1.36/resize-exchanges.json"):
        for when in ("before", "after"):
            for name, found in (one.get(when) or {}).items():
                checks = verify_pod(*case_of("systemd", found))
                count += len(checks)
                for check in drifts(checks):
                    assert check.cause is not None
                    why.setdefault((name, check.file), set()).add(check.cause.reason.name)
    assert why == {
        **{(name, "oom_score_adj"): {"BEFORE_RESIZE"} for name in RESIZED},
        **{("rz-defer", name): {"RESIZE_UNDER_WAY"} for name in ("cpu.weight", "cpu.max")},
        ("rz-hog", "memory.max"): {"RESIZE_UNDER_WAY"},
        ("rz-pl", "cpu.weight"): {"RESIZED"},
    }
    assert count > 400


RESIZED = ("rz-bu", "rz-init", "rz-pl", "rz-side", "rz-two")


# How texts become what was measured.

V2 = {
    "$$": "30",
    "/proc/self/cgroup": "0::/",
    "/proc/self/oom_score_adj": "985",
    "/proc/1/cgroup": "0::/",
    "/proc/1/oom_score_adj": "985",
    "/proc/1/comm": "app",
    "/proc/30/cgroup": "0::/",
    "/proc/30/oom_score_adj": "985",
    "/sys/fs/cgroup/memory.max": "134217728",
}


def test_a_container_that_sees_but_itself() -> None:
    container, above = observed_from_sections(V2)
    assert container == ObservedContainer(
        {"memory.max": "134217728"}, (ObservedProcess(1, "app", 985),), None, 985
    )
    assert above == {}


@pytest.mark.parametrize("where", ["0::/../cri-containerd-cd.scope", "0::/../../../init.scope"])
def test_the_first_process_of_another_container_is_not_ours(where: str) -> None:
    container, _ = observed_from_sections({**V2, "/proc/1/cgroup": where, "/proc/1/oom_score_adj": "-998"})
    assert container.processes == ()
    assert container.runtime_adj == 985


def test_a_privileged_container_sees_the_levels_above() -> None:
    pod_path = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podx.slice"
    path = f"{pod_path}/cri-containerd-{ID}.scope"
    mount = "/sys/fs/cgroup"
    container, above = observed_from_sections(
        {
            "$$": "30",
            "/proc/self/cgroup": f"0::{path}",
            "/proc/1/cgroup": f"0::{path}",
            "/proc/1/oom_score_adj": "985",
            "/proc/2/cgroup": "0::/init.scope",
            "/proc/2/oom_score_adj": "0",
            f"{mount}{path}/memory.max": "1",
            f"{mount}{pod_path}/memory.max": "2",
            f"{mount}/kubepods.slice/memory.max": "3",
        }
    )
    assert container.path == path
    assert container.files == {"memory.max": "1"}
    assert [process.pid for process in container.processes] == [1]
    assert above == {pod_path: {"memory.max": "2"}, "/kubepods.slice": {"memory.max": "3"}}


def test_a_container_on_cgroup_v1() -> None:
    path = f"/kubepods/burstable/pod{UID}/{ID}"
    container, above = observed_from_sections(
        {
            "/proc/self/cgroup": f"5:cpu,cpuacct:{path}\n4:memory:{path}\n0::/system.slice/x",
            "/sys/fs/cgroup/cpu/cpu.shares": "102",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": "134217728",
        }
    )
    assert container.path == path
    assert container.files == {"cpu/cpu.shares": "102", "memory/memory.limit_in_bytes": "134217728"}
    assert above == {}
    one = pod(BURSTABLE)
    old = NodeSetup.of(
        structs.replace(NODE, cgroup_version=1, kubelet_version="1.30"),
        Kubelet(cgroup_driver=CgroupDriver.CGROUPFS),
    )
    prediction = predict(one, old.node, kubelet=old.kubelet, release=old.release)
    found = verify_pod(prediction, Observed({"a": container}))
    assert drifts(found) == []
    assert {(check.level.value, check.file) for check in found if check.measured is not None} == {
        ("class", "directory"),
        ("pod", "directory"),
        ("container", "directory"),
        ("container", "cpu/cpu.shares"),
        ("container", "memory/memory.limit_in_bytes"),
    }


def test_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        observed_from_sections({**V2, "/proc/1/oom_score_adj": "x"})


def test_processes_of_a_node_belong_to_the_container_of_their_cgroup() -> None:
    def process(pid: int, cgroup: str) -> HostProcess:
        return HostProcess(pid=pid, ppid=1, comm="app", adj=985, rss_bytes=4096, cgroup=cgroup)

    scope = f"/kubepods.slice/kubepods-podx.slice/cri-containerd-{ID}.scope"
    found = observed_on_node(
        {scope: {"memory.max": "1"}, f"{scope}/container": {"memory.max": "max"}},
        [process(7, f"{scope}/container"), process(8, "/system.slice"), process(9, scope)],
    )
    assert found == {
        ID: ObservedContainer(
            {"memory.max": "1"}, (ObservedProcess(7, "app", 985), ObservedProcess(9, "app", 985)), scope
        )
    }


def test_the_limits_of_a_container_are_not_in_the_cgroup_below_it() -> None:
    scope = f"/kubepods/podx/{ID}"
    paths = [f"{scope}/container", scope]
    assert by_container_id(paths) == by_container_id(paths[::-1]) == {ID: scope}


def test_what_a_container_sees_below_its_limits_with_crun() -> None:
    one = pod(BURSTABLE)
    measured = as_predicted(one)
    read = measured.containers["a"]
    inner = replace(read, files={**read.files, "memory.max": "max"}, path=None)
    assert causes(one, Observed({"a": inner})) == {"container memory.max": ("INNER_CGROUP", "possible")}
    assert causes(one, Observed({"a": replace(inner, path=read.path)})) == {"container memory.max": None}

"""The tree of a node: against a real one, and by the laws of its levels."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import (
    CgroupDriver,
    Kubelet,
    Node,
    NodeSetup,
    Origin,
    node_from_object,
    with_origin,
)
from kubectl_qos.k8s.node_overrides import NodeOverride, apply_overrides
from kubectl_qos.k8s.objects import CPU, NodeObject, Pod, convert, resource_list
from kubectl_qos.k8s.quantity import ZERO
from kubectl_qos.k8s.releases import OciRuntime, Release
from kubectl_qos.k8s.resources import pod_requests
from kubectl_qos.qos.cgroup.tree import (
    CgroupLevel,
    CgroupTree,
    Directory,
    cgroup_tree,
    path_to,
)
from kubectl_qos.qos.prediction import NO_ID
from kubectl_qos.qos.qos_class import QosClass
from tests.qos.corner import UID, one, spec
from tests.qos.recorded import VARIANTS, node_of, rows_of, setup_of
from tests.qos.test_laws import RELEASES, pods

Json = Any
MOUNT = "/sys/fs/cgroup"
NODE = Node(name="n1", memory_capacity_bytes=16 << 30, capacity=resource_list({"cpu": "8", "memory": "16Gi"}))


def moments(variant: str) -> dict[str, list[Json]]:
    """What was recorded, by the pods that were on the node together."""
    found: dict[str, list[Json]] = {}
    for row in rows_of(variant):
        if row["levels"].get("pod"):
            found.setdefault(row["group"], []).append(row)
    return found


def measured(rows: list[Json]) -> dict[str, Json]:
    """Path to what its files held, of every level; pause containers are nobody's prediction."""
    found = {}
    for row in rows:
        for level in row["levels"].values():
            found[level["path"]] = level
        for container in row["containers"]:
            if container["name"] != "POD":
                found[container["cgroup_path"].removeprefix(MOUNT)] = container["cgroup"]
    return found


def decoded(rows: list[Json]) -> list[Pod]:
    return [convert(row["pod"], Pod) for row in rows]


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_level_of_a_real_node(variant: str) -> None:
    compared: dict[CgroupLevel, int] = dict.fromkeys(CgroupLevel, 0)
    for rows in moments(variant).values():
        real = measured(rows)
        tree = cgroup_tree(decoded(rows), setup_of(variant))
        paths = {found.path for found in tree.walk()}
        assert set(real) <= paths
        mine = {path for path in paths - set(real) if NO_ID not in path}
        assert mine <= {
            "/kubepods.slice/kubepods-burstable.slice",
            "/kubepods.slice/kubepods-besteffort.slice",
        }
        for found in tree.walk():
            if found.path in real:
                expected = {name: real[found.path][name].strip() for name in found.files}
                assert (found.path, dict(found.files)) == (found.path, expected)
                compared[found.level] += len(found.files)
    levels = (CgroupLevel.KUBEPODS, CgroupLevel.CLASS, CgroupLevel.POD, CgroupLevel.CONTAINER)
    assert all(compared[level] >= 7 for level in levels), compared


def test_memory_that_is_protected_at_every_level() -> None:
    rows = moments("memoryqos-tiered")["small"]
    kubepods = cgroup_tree(decoded(rows), setup_of("memoryqos-tiered")).roots[0]
    real = measured(rows)
    assert int(kubepods.files["memory.min"]) > int(kubepods.children[0].files["memory.low"]) > 0
    assert kubepods.files["memory.min"] == real["/kubepods.slice"]["memory.min"]
    assert kubepods.children[0].files["memory.low"] == real[kubepods.children[0].path]["memory.low"]


def test_without_configz_status_allocatable_gives_the_limit_of_kubepods() -> None:
    rows = moments("systemd")["small"]
    kubelet = Kubelet.defaults(Release.of("1.36"))
    node = node_from_object(convert(node_of("systemd")["node"], NodeObject), kubelet)
    kubepods = cgroup_tree(decoded(rows), NodeSetup.of(node, kubelet)).roots[0]
    real = measured(rows)["/kubepods.slice"]
    assert kubepods.files == {name: real[name] for name in kubepods.files}
    assert {"cpu.weight", "memory.max", "cpuset.cpus"} <= set(kubepods.files)


def weight(milli: int) -> str:
    """Spec of the class level: the sum as CPU shares, on the kubelet's linear curve."""
    shares = min(max(milli * 1024 // 1000, 2), 262_144)
    return str(1 + (shares - 2) * 9999 // 262_142)


@given(st.lists(pods(), max_size=6), RELEASES)
def test_a_class_weighs_what_its_pods_request(found: list[Pod], release: Release) -> None:
    tree = cgroup_tree(found, NodeSetup.of(NODE, Kubelet.defaults(release), release))
    burstable, best_effort = tree.roots[0].children[:2]
    requested = [
        pod_requests(default_pod(child.pod, release), release).get(CPU, ZERO).milli_value()
        for child in burstable.children
        if child.pod is not None
    ]
    assert burstable.files["cpu.weight"] == weight(sum(requested))
    assert best_effort.files["cpu.weight"] == "1"


@given(st.lists(pods(), max_size=6), RELEASES)
def test_pods_count_whether_they_are_shown_or_not(found: list[Pod], release: Release) -> None:
    node_setup = NodeSetup.of(NODE, Kubelet.defaults(release), release)
    whole, bare = cgroup_tree(found, node_setup), cgroup_tree(found, node_setup, lambda _: False)
    above = {CgroupLevel.KUBEPODS, CgroupLevel.CLASS}
    of_whole = [(one.path, one.files) for one in whole.walk() if one.level in above]
    assert [(one.path, one.files) for one in bare.walk()] == of_whole
    assert (whole.left_out, bare.left_out) == (0, len(found))


@given(st.lists(pods(), max_size=6), RELEASES)
def test_every_pod_lies_below_its_class_and_every_path_below_its_parent(
    found: list[Pod], release: Release
) -> None:
    tree = cgroup_tree(found, NodeSetup.of(NODE, Kubelet.defaults(release), release))

    def check(parent: Directory) -> None:
        for child in parent.children:
            assert child.path.startswith(f"{parent.path}/")
            if child.level is CgroupLevel.POD:
                assert child.qos is (parent.qos or QosClass.GUARANTEED)
            check(child)

    for root in tree.roots:
        check(root)


# -- what a tree has and has not -----------------------------------------------------------------------


def tree_of(*found: Pod, kubelet: Kubelet | None = None, node: Node = NODE) -> CgroupTree:
    return cgroup_tree(found, NodeSetup.of(node, kubelet, "1.36"))


def levels(tree: CgroupTree) -> list[str]:
    return [found.level.value for found in tree.walk()]


def test_pods_and_containers_that_have_ended_have_no_cgroup() -> None:
    ended = spec("containers: [{name: c1}]", status="{phase: Succeeded}")
    status = (
        "{phase: Running, initContainerStatuses: [{name: i, state: {terminated: {exitCode: 0}}}],"
        " containerStatuses: [{name: c1, state: {running: {}}}]}"
    )
    running = spec("containers: [{name: c1}], initContainers: [{name: i}]", status=status)
    tree = tree_of(ended, running)
    names = [found.container.name for found in tree.walk() if found.container is not None]
    assert names == ["c1"]
    assert tree.left_out == 0


def test_reserved_cgroups_that_are_enforced_and_named() -> None:
    kubelet = Kubelet(
        enforce_node_allocatable=("pods", "system-reserved", "kube-reserved"),
        system_reserved=resource_list({"cpu": "500m", "memory": "1Gi"}),
        system_reserved_cgroup="/system.slice",
        origins={"system_reserved": Origin.CONFIGZ},
    )
    reserved, kubepods = tree_of(one(""), kubelet=kubelet).roots
    assert (reserved.level, reserved.path) == (CgroupLevel.RESERVED, "/system.slice")
    assert reserved.files["memory.max"] == str(1 << 30)
    assert reserved.files["cpu.weight"] == weight(500)
    assert kubepods.files["memory.max"] == str(15 << 30)
    assert kubepods.files["cpu.weight"] == weight(7500)


def test_the_way_to_one_pod() -> None:
    wanted, other = one("requests: {cpu: 1}"), one("requests: {cpu: 2}")
    tree = path_to(wanted, [other, wanted], NodeSetup.of(NODE, None, "1.36"))
    assert levels(tree) == ["kubepods", "class", "pod", "container"]
    assert tree.roots[0].children[0].files["cpu.weight"] == weight(3000)
    assert tree.left_out == 1


def test_what_is_not_known_is_not_said() -> None:
    tree = tree_of(one(""), node=Node())
    assert tree.unknown == ("cpu.weight", "memory.max", "pids.max")
    assert tree.roots[0].files == {"cpu.max": "max 100000"}
    assert {one.name for one in tree.assumptions} >= {"enforce_node_allocatable", "kube_reserved"}
    configured = with_origin(Kubelet(), Origin.CONFIGZ, enforce_node_allocatable=("pods",), kube_reserved={})
    names = {one.name for one in tree_of(one(""), kubelet=configured).assumptions}
    assert not names & {"enforce_node_allocatable", "kube_reserved"}


@pytest.mark.parametrize("setting", ["kubeReserved=none", "kubeReserved=memory=512Mi", "profile=openshift"])
def test_what_the_node_says_is_left_decides_unless_more_is_given(setting: str) -> None:
    left = resource_list({"memory": "15260Mi"})
    node = structs.replace(NODE, allocatable_memory_bytes=15 << 30, status_allocatable=left)
    setup = apply_overrides(NodeSetup.of(node, None, "1.36"), [NodeOverride.parse(setting)], stated=True)
    assert path_to(one(""), [], setup).roots[0].files["memory.max"] == str(15 << 30)


def test_another_cpu_manager_leaves_the_cpu_set_alone() -> None:
    assert tree_of().roots[0].files["cpuset.cpus"] == "0-7"
    assert "cpuset.cpus" not in tree_of(kubelet=Kubelet(cpu_manager_policy="static")).roots[0].files


def test_as_if_the_node_had_cgroup_v1() -> None:
    node_setup = apply_overrides(NodeSetup.of(NODE, None, "1.36"), [NodeOverride("cgroupVersion", "1")])
    tree = cgroup_tree([one("limits: {cpu: 1, memory: 1Gi}")], node_setup)
    assert all("/" in name for found in tree.walk() for name in found.files)
    assert tree.roots[0].files["memory/memory.limit_in_bytes"] == str(16 << 30)
    assert tree.unknown == ("pids/pids.max",)
    assert "cgroup_version" not in {one.name for one in tree.assumptions}


def test_without_cgroups_per_qos_the_kubelet_makes_none() -> None:
    assert tree_of(one(""), kubelet=Kubelet(cgroups_per_qos=False)).roots == ()


def test_crun_puts_processes_below_the_scope() -> None:
    tree = tree_of(one(""), node=structs.replace(NODE, oci_runtime=OciRuntime("crun")))
    assert levels(tree)[-2:] == ["container", "processes"]


def test_below_a_cgroup_root() -> None:
    kubelet = Kubelet(cgroup_root="/my-root", cgroup_driver=CgroupDriver.CGROUPFS)
    pod = convert({"metadata": {"uid": UID}, "spec": {"containers": [{"name": "a"}]}}, Pod)
    paths = [found.path for found in tree_of(pod, kubelet=kubelet).walk()]
    assert paths[0] == "/my-root/kubepods"
    assert f"/my-root/kubepods/besteffort/pod{UID}" in paths

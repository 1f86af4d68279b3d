"""What a node states is not contradicted by assumptions, and what was stated or published counts."""

from dataclasses import replace
from typing import Any

import pytest

from kubectl_qos.errors import UsageError
from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup, Origin, kubelet_from_configz, node_from_object
from kubectl_qos.k8s.node_overrides import PROFILES, NodeOverride, apply_overrides
from kubectl_qos.k8s.objects import NodeObject, Pod, PodSpec, PodStatus, convert, resource_list
from kubectl_qos.k8s.releases import OciRuntime, Release, packaged_runtime
from kubectl_qos.k8s.snapshot import NodeOverrides, Snapshot
from kubectl_qos.qos.prediction import assumptions

GI = 1 << 30
INFO = {"kubeletVersion": "v1.36.2", "operatingSystem": "linux"}
CAPACITY = {"cpu": "4", "memory": "16Gi", "pods": "58"}


def raw(capacity: dict[str, str] | None = None, allocatable: str = "15Gi", **info: str) -> NodeObject:
    status: dict[str, Any] = {"capacity": capacity or CAPACITY, "nodeInfo": {**INFO, **info}}
    if allocatable:
        status["allocatable"] = {"cpu": "4", "memory": allocatable}
    return convert({"metadata": {"name": "n"}, "status": status}, NodeObject)


def setup(node: NodeObject, *assumed: str, kubelet: Kubelet | None = None) -> NodeSetup:
    overrides = NodeOverrides(settings=tuple(map(NodeOverride.parse, assumed)))
    return Snapshot(
        nodes={"n": node}, kubelets={"n": kubelet} if kubelet is not None else {}, overrides=overrides
    ).setup("n")


def assumed(found: NodeSetup) -> dict[str, tuple[object, str]]:
    return {one.name: (one.value, one.basis) for one in assumptions(found)}


@pytest.mark.parametrize(
    ("kernel", "version"),
    [
        ("3.10.0-1160.el7.x86_64", 1),
        ("4.14.355-amzn2", 1),
        ("4.18.0-553.el8", 2),
        ("6.12.107+deb13", 2),
        ("", 2),
    ],
)
def test_an_old_kernel_has_no_cgroup_v2(kernel: str, version: int) -> None:
    found = setup(raw(kernelVersion=kernel))
    assert found.node.cgroup_version == version
    assert assumed(found)["cgroup_version"] == (version, f"kernel {kernel}" if version == 1 else "")
    assert setup(raw(kernelVersion=kernel), "cgroupVersion=2").node.cgroup_version == 2


@pytest.mark.parametrize(
    ("runtime", "oci"),
    [
        ("containerd://1.5.18", OciRuntime("runc", (1, 1))),
        ("containerd://1.6.20~ds1", OciRuntime("runc", (1, 1))),
        ("containerd://1.6.39", OciRuntime("runc", (1, 3, 0))),
        ("containerd://1.7.27", OciRuntime("runc", (1, 2))),
        ("containerd://1.7.28-0ubuntu1", OciRuntime("runc", (1, 3, 0))),
        ("containerd://1.7.29", OciRuntime("runc", (1, 3, 3))),
        ("containerd://2.0.6", OciRuntime("runc", (1, 3, 0))),
        ("containerd://2.1", OciRuntime("runc", (1, 3, 3))),
        ("containerd://2.2.0", OciRuntime("runc", (1, 3, 3))),
        ("containerd://2.9.0", OciRuntime("runc", (1, 4))),
        ("cri-o://1.31.0", OciRuntime("crun")),
        ("cri-o://1.30.9", None),
        ("containerd://1.4.3", None),
        ("docker://20.10.7", None),
        ("containerd", None),
    ],
)
def test_the_runtime_version_names_the_oci_runtime_of_its_time(runtime: str, oci: OciRuntime | None) -> None:
    assert packaged_runtime(runtime) == oci
    found = setup(raw(containerRuntimeVersion=runtime))
    assert found.node.oci_runtime == (oci or OciRuntime())
    basis = runtime.replace("://", " ") if oci is not None else ""
    assert assumed(found)["oci_runtime"] == (oci or OciRuntime(), basis)
    assert setup(raw(), f"runtime={runtime}").node.oci_runtime == (oci or OciRuntime())


def test_older_runc_has_the_linear_weight() -> None:
    assert not setup(raw(containerRuntimeVersion="containerd://1.7.28")).node.oci_runtime.has_quadratic_weight
    assert setup(raw(containerRuntimeVersion="containerd://1.7.29")).node.oci_runtime.has_quadratic_weight


def test_an_unknown_release_is_listed() -> None:
    assert "kubelet_version" not in assumed(setup(raw()))
    assert assumed(setup(raw(kubeletVersion="")))["kubelet_version"] == ("1.36", "")
    assert assumed(setup(raw(kubeletVersion="")))["runtime"] == ("containerd", "")
    assert "kubelet_version" not in assumed(setup(raw(kubeletVersion=""), "kubeletVersion=1.33.5"))


def test_what_is_stated_about_eviction_and_reservations() -> None:
    found = setup(raw(), "evictionHard=memory.available<500Mi,nodefs.available<10%", "kubeletVersion=1.33.5")
    assert found.kubelet.eviction_hard == {"memory.available": "500Mi", "nodefs.available": "10%"}
    assert (str(found.release), found.release.patch) == ("1.33", 5)
    assert found.kubelet.origin("eviction_hard") is Origin.GIVEN
    # The node itself says what is allocatable, so that more is left for kubepods.
    assert found.node.allocatable_memory_bytes == 15 * GI + (500 << 20)
    assert setup(raw(), "evictionHard=none").node.allocatable_memory_bytes == 15 * GI
    for left in (16 * GI, 16 * GI - (12 << 20)):
        full, k3s = raw(allocatable=str(left)), raw(allocatable=str(left), kubeletVersion="v1.36.2+k3s1")
        for found in (setup(full, "evictionHard=none"), setup(k3s)):
            assert found.node.allocatable_memory_bytes == left, "less is reserved than the default threshold"
    soft = setup(raw(), "evictionSoft=memory.available=5%")
    assert soft.kubelet.eviction_soft == {"memory.available": "5%"}
    stated = setup(raw(), "kubeReserved=memory=512Mi,cpu=100m", "systemReserved=memory=256Mi")
    assert stated.kubelet.kube_reserved == resource_list({"memory": "512Mi", "cpu": "100m"})
    assert stated.node.allocatable_memory_bytes == 15 * GI + (100 << 20), "the node's own number stays"
    changed = setup(raw(), "kubeReserved=memory=3Gi", "systemReserved=memory=1Gi").node
    assert changed.allocatable_memory_bytes == 12 * GI, "more than the node keeps: a change"
    assert changed.status_allocatable["memory"].value() == 12 * GI - (100 << 20)
    profile = setup(raw(), "profile=openshift").node
    assert profile.allocatable_memory_bytes == 15 * GI + (100 << 20), "published defaults change nothing"
    unknown = setup(raw(allocatable=""), "kubeReserved=memory=3Gi", "systemReserved=memory=1Gi")
    assert unknown.node.allocatable_memory_bytes == 12 * GI


def test_a_change_leaves_less_for_requests() -> None:
    before = NodeSetup.of(node_from_object(raw(), Kubelet()), Kubelet())

    def after(*texts: str) -> Node:
        return apply_overrides(before, map(NodeOverride.parse, texts)).node

    kubepods = 15 * GI + (100 << 20)
    later = after("evictionHard=memory.available<1Gi")
    assert later.allocatable_memory_bytes == kubepods == before.node.allocatable_memory_bytes
    assert later.status_allocatable["memory"].value() == kubepods - GI
    less = after("kubeReserved=memory=2Gi")
    assert less.allocatable_memory_bytes == 14 * GI
    assert less.status_allocatable["memory"].value() == 14 * GI - (100 << 20)


@pytest.mark.parametrize(
    "text",
    [
        *("evictionHard=1Gi", "evictionHard=memory.available<-1Gi", "evictionHard=memory.available<many"),
        *("kubeReserved=1Gi", "kubeReserved=memory=x", "kubeletVersion=new", "operatingSystem=plan9"),
        *("profile=acme", "ociRuntime.=youki", "memoryManagerPolicy=static"),
    ],
)
def test_wrong_values_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=text.split("=", maxsplit=1)[0]):
        NodeOverride.parse(text)


def test_a_runtime_class_names_the_oci_runtime() -> None:
    node = setup(raw(), "ociRuntime.fast=crun-1.21").node
    assert node.for_runtime_class("fast").oci_runtime == OciRuntime("crun", (1, 21))
    assert node.for_runtime_class("fast").origin("oci_runtime") is Origin.GIVEN
    by_name = node.for_runtime_class("my-crun")
    assert (by_name.oci_runtime, by_name.basis["oci_runtime"]) == (OciRuntime("crun"), "RuntimeClass my-crun")
    for name in (None, "", "runsc", "kata", "runc"):
        assert node.for_runtime_class(name) is node
    crun = setup(raw(), "ociRuntime=crun-1.21").node
    assert crun.for_runtime_class("crun").oci_runtime == OciRuntime("crun", (1, 21))


# -- profiles ----------------------------------------------------------------------------------------


def test_profiles_have_a_source_and_a_date() -> None:
    assert set(PROFILES) == {"gke", "eks", "aks", "openshift", "k3s", "talos"}
    for profile in PROFILES.values():
        assert profile.source.startswith("https://")
        assert profile.date.startswith("2026-")


def test_a_profile_fills_in_what_is_not_known() -> None:
    found = setup(raw(allocatable=""), "profile=eks")
    listed = assumed(found)
    assert listed["eviction_hard"][1] == listed["cgroup_driver"][1] == "profile eks"
    reserved = (255 + 11 * 58) << 20
    assert listed["kube_reserved"] == (resource_list({"memory": str(reserved)}), "profile eks")
    assert found.node.allocatable_memory_bytes == 16 * GI - reserved


def test_a_profile_never_overrides_what_is_known() -> None:
    configured = kubelet_from_configz(
        {"cgroupDriver": "cgroupfs", "evictionHard": {"memory.available": "1Gi"}}, Release.of("1.36")
    )
    found = setup(raw(), "profile=eks", kubelet=configured)
    assert (found.kubelet.cgroup_driver.value, found.kubelet.eviction_hard["memory.available"]) == (
        "cgroupfs",
        "1Gi",
    )
    given = setup(raw(), "profile=talos", "cgroupDriver=systemd", "userspaceOOMKiller=none")
    assert (given.kubelet.cgroup_driver.value, given.node.userspace_oom_killer) == ("systemd", "none")
    assert setup(raw(), "profile=gke").kubelet.kube_reserved == {}, "status.allocatable is known"


@pytest.mark.parametrize(
    ("profile", "reserved"),
    [
        # 25% of 4Gi, 20% of 4Gi, 10% of 8Gi
        ("gke", 1 * GI + 4 * GI // 5 + 8 * GI // 10),
        ("aks", (20 * 58 + 50) * 1_000_000),
        ("openshift", GI),
        ("talos", 384 << 20),
        ("k3s", 0),
    ],
)
def test_what_profiles_reserve(profile: str, reserved: int) -> None:
    node = setup(raw(allocatable=""), f"profile={profile}").node
    left = node.allocatable_memory_bytes
    assert left is None if not reserved else left == pytest.approx(16 * GI - reserved, abs=4)


def test_aks_reserved_more_before_1_29() -> None:
    for release, reserved, threshold in (
        ("1.28", 1 * GI + 4 * GI // 5 + 8 * GI // 10, "750Mi"),
        ("1.29", (20 * 58 + 50) * 1_000_000, "100Mi"),
    ):
        found = setup(raw(allocatable=""), "profile=aks", f"kubeletVersion={release}")
        assert found.node.allocatable_memory_bytes == pytest.approx(16 * GI - reserved, abs=4)
        assert found.kubelet.eviction_hard["memory.available"] == threshold


def test_k3s_never_evicts_for_memory() -> None:
    assert "memory.available" not in setup(raw(), "profile=k3s").kubelet.eviction_hard


@pytest.mark.parametrize(
    ("version", "settings", "threshold"),
    [
        ("v1.34.2+k3s1", (), None),
        ("v1.34.2+rke2r1", (), None),
        ("v1.34.2", (), "100Mi"),
        ("v1.34.2+k3s1", ("profile=eks",), "100Mi"),
        ("v1.34.2+k3s1", ("evictionHard=memory.available=1Gi",), "1Gi"),
    ],
)
def test_a_kubelets_version_names_its_distribution(
    version: str, settings: tuple[str, ...], threshold: str | None
) -> None:
    node = raw(kubeletVersion=version)
    assert setup(node, *settings).kubelet.eviction_hard.get("memory.available") == threshold
    configured = kubelet_from_configz({"evictionHard": {"memory.available": "2Gi"}}, Release.of("1.34"))
    known = setup(node, kubelet=configured)
    assert known.kubelet.eviction_hard["memory.available"] == "2Gi"


@pytest.mark.parametrize("version", ["v1.34.2", "v1.34.2+k3s1"])
def test_an_eviction_names_the_threshold(version: str) -> None:
    said = "The node was low on resource: memory. Threshold quantity: {}, available: 1Gi. "
    of_disk = "The node was low on resource: ephemeral-storage. Threshold quantity: 1Ki, available: 1. "
    messages = [said.format("750Mi"), said.format("2Gi"), of_disk, "The node was low on resource: memory. "]
    pods = [
        Pod(spec=PodSpec(node_name="n"), status=PodStatus(reason="Evicted", message=message))
        for message in messages
    ]
    found = replace(Snapshot(nodes={"n": raw(kubeletVersion=version)}), pods=pods).setup("n")
    threshold, basis = assumed(found)["eviction_hard"]
    assert (threshold["memory.available"], basis) == ("750Mi", "an eviction")  # type: ignore[index]
    assert found.node.allocatable_memory_bytes == 15 * GI + (750 << 20), "the limit of kubepods follows"
    assert not found.kubelet.evicts_by_default
    given = NodeOverrides(settings=(NodeOverride.parse("evictionHard=memory.available=1Gi"),))
    stated = Snapshot(nodes={"n": raw()}, pods=pods, overrides=given).setup("n")
    assert stated.kubelet.eviction_hard["memory.available"] == "1Gi"


def test_a_node_under_pressure_has_a_threshold() -> None:
    status = {
        "nodeInfo": {"kubeletVersion": "v1.34.2+k3s1"},
        "conditions": [{"type": "MemoryPressure", "status": "True"}],
    }
    node = convert({"metadata": {"name": "n"}, "status": status}, NodeObject)
    assert setup(node).kubelet.eviction_hard["memory.available"] == "100Mi"


def test_the_features_that_a_kubelet_declares() -> None:
    declared = convert({"status": {"declaredFeatures": ["InPlacePodVerticalScaling"]}}, NodeObject)
    assert node_from_object(declared, Kubelet()).declared_features == ("InPlacePodVerticalScaling",)
    assert node_from_object(raw(), Kubelet()).declared_features == (), "read, and nothing declared"

"""KEY=VALUE: each setting reaches its field, and a wrong one is refused with a hint."""

import pytest
from msgspec import structs

from kubectl_qos.errors import InputError, UsageError
from kubectl_qos.k8s.kubelet import (
    CgroupDriver,
    Kubelet,
    MemoryReservationPolicy,
    Node,
    NodeSetup,
    Origin,
    kubelet_from_configz,
)
from kubectl_qos.k8s.node_overrides import NodeOverride, apply_overrides
from kubectl_qos.k8s.objects import MEMORY, ResourceList
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.releases import Gate, OciRuntime, Release
from kubectl_qos.qos.eviction import schedulable_bytes

NODE = Node(name="n", memory_capacity_bytes=16 << 30, allocatable_memory_bytes=15 << 30)
TIERED = MemoryReservationPolicy.TIERED
SETUP = NodeSetup.of(NODE, release="1.34")


def after(*assignments: str, to: str | None = None, setup: NodeSetup = SETUP) -> NodeSetup:
    return apply_overrides(setup, [NodeOverride.parse(text) for text in assignments], to)


@pytest.mark.parametrize(
    ("assignment", "field", "value"),
    [
        ("cgroupDriver=cgroupfs", "cgroup_driver", CgroupDriver.CGROUPFS),
        ("cgroupRoot=/x", "cgroup_root", "/x"),
        ("cgroupsPerQOS=false", "cgroups_per_qos", False),
        ("cpuCFSQuota=False", "cpu_cfs_quota", False),
        ("cpuCFSQuotaPeriod=10ms", "cpu_cfs_quota_period_us", 10_000),
        ("cpuManagerPolicy=static", "cpu_manager_policy", "static"),
        ("podPidsLimit=1000", "pod_pids_limit", 1000),
        ("memoryThrottlingFactor=0.7", "memory_throttling_factor", 0.7),
        ("memoryReservationPolicy=TieredReservation", "memory_reservation_policy", TIERED),
        ("memorySwap.swapBehavior=LimitedSwap", "memory_swap_behavior", "LimitedSwap"),
        ("singleProcessOOMKill=true", "single_process_oom_kill", True),
        ("cgroupVersion=1", "cgroup_version", 1),
        ("memoryManagerPolicy=Static", "memory_manager_policy", "Static"),
        ("evictionSoft=memory.available<1Gi", "eviction_soft", {"memory.available": "1Gi"}),
        ("runtime=cri-o", "runtime", "cri-o"),
        ("osImage=Talos (v1.12.0)", "os_image", "Talos (v1.12.0)"),
        ("userspaceOOMKiller=talos-1.12", "userspace_oom_killer", "talos-1.12"),
        ("ociRuntime=crun-1.22", "oci_runtime", OciRuntime("crun", (1, 22))),
        ("runtimeOOMScoreAdj=0", "runtime_oom_score_adj", 0),
        ("kernel=5.4.0", "kernel", "5.4.0"),
        ("memory=32Gi", "memory_capacity_bytes", 32 << 30),
        ("swap=4Gi", "swap_capacity_bytes", 4 << 30),
        ("pageSize=64Ki", "page_size_bytes", 65536),
    ],
)
def test_a_setting_reaches_its_field_and_no_other(assignment: str, field: str, value: object) -> None:
    setup = after(assignment)
    is_of_kubelet = hasattr(SETUP.kubelet, field)
    changed = setup.kubelet if is_of_kubelet else setup.node
    before = SETUP.kubelet if is_of_kubelet else SETUP.node
    assert getattr(changed, field) == value != getattr(before, field)
    assert changed.origin(field) is Origin.GIVEN
    assert (setup.node if is_of_kubelet else setup.kubelet) == (
        SETUP.node if is_of_kubelet else SETUP.kubelet
    )
    if field != "memory_capacity_bytes":
        assert structs.replace(changed, **{field: getattr(before, field)}, origins={}) == structs.replace(
            before, origins={}
        )


def test_more_memory_does_not_change_what_is_reserved() -> None:
    assert after("memory=32Gi").node.allocatable_memory_bytes == 31 << 30
    node = structs.replace(SETUP.node, status_allocatable=ResourceList({MEMORY: Quantity.parse("14Gi")}))
    setup = structs.replace(SETUP, node=node)
    for memory, allocatable in (("32Gi", 30 << 30), ("1Gi", 0)):
        assert schedulable_bytes(after(f"memory={memory}", setup=setup).node) == allocatable


def test_gates_decide_what_the_release_does() -> None:
    assert not SETUP.release.enabled(Gate.MEMORY_QOS)
    assert after("featureGates.MemoryQoS=true").release.enabled(Gate.MEMORY_QOS)


def test_an_upgrade_keeps_configured_values_and_updates_assumed_ones() -> None:
    assert SETUP.kubelet.memory_throttling_factor == 0.9
    assert after(to="1.37").kubelet.memory_throttling_factor is None
    configured = kubelet_from_configz(
        {"memoryThrottlingFactor": 0.8, "cgroupDriver": "systemd"}, Release.of("1.34")
    )
    setup = NodeSetup.of(NODE, configured, "1.34")
    assert after(to="1.37", setup=setup).kubelet.memory_throttling_factor == 0.8
    assert str(after(to="1.37").release) == after(to="1.37").node.kubelet_version == "1.37"


def test_a_gate_that_the_new_release_does_not_have_is_dropped() -> None:
    setup = NodeSetup.of(NODE, Kubelet(feature_gates={"SidecarContainers": False}), "1.29")
    assert not setup.release.enabled(Gate.SIDECAR_CONTAINERS)
    assert after(to="1.37", setup=setup).release.enabled(Gate.SIDECAR_CONTAINERS)


def test_without_a_release_the_patch_stays() -> None:
    setup = NodeSetup.of(NODE, release="1.34.7")
    assert after("cgroupVersion=1", setup=setup).release == setup.release


@pytest.mark.parametrize(
    ("assignment", "sentence", "hint"),
    [
        ("cgroupDrver=x", "unknown node setting 'cgroupDrver'", "cgroupDriver"),
        (
            "featureGates.MemoryQos=true",
            "unknown node setting 'featureGates.MemoryQos'",
            "featureGates.MemoryQoS",
        ),
        ("cgroupVersion=3", "cgroupVersion=3: must be 1 or 2", ""),
        ("memory=16Gx", "memory=16Gx: this is not a quantity", ""),
        ("memory=+2Gi", "memory=+2Gi: there is no value to add to", "write memory=2Gi"),
        ("memory=0", "must be a size of at least 1Mi", ""),
        ("memory=16", "must be a size of at least 1Mi", ""),
        ("cpuCFSQuota=on", "must be true or false", ""),
        ("podPidsLimit=many", "must be a whole number from -1 to", ""),
        ("memoryThrottlingFactor=2", "must be a number above 0 and up to 1", ""),
        ("cpuCFSQuotaPeriod=10", "not a duration", ""),
        ("ociRuntime=youki", "unknown OCI runtime 'youki'", "runc or crun"),
        ("runtime=podman", "must be containerd, cri-o or docker", ""),
        ("cpuCFSQuotaPeriod=0s", "must be a duration from 1ms to 1s", ""),
        ("cpuCFSQuotaPeriod=1h", "must be a duration from 1ms to 1s", ""),
        ("podPidsLimit=9223372036854775808", "must be a whole number from -1 to", ""),
        ("runtimeOOMScoreAdj=-1001", "must be a whole number from -1000 to 1000", ""),
        ("pageSize=3", "must be a power of two, 4Ki or more", ""),
        ("pageSize=20Ki", "must be a power of two, 4Ki or more", ""),
        ("kernel=new", "must be a kernel version", ""),
        ("cgroupRoot=a\x1b[31m", "is not KEY=VALUE", "cgroupVersion=1"),
        ("cgroupVersion", "is not KEY=VALUE", "cgroupVersion=1"),
        ("featureGates.MemoryQoS", "is not KEY=VALUE", "add =true or =false"),
        ("=1", "is not KEY=VALUE", "cgroupVersion=1"),
        ("kernel=", "is not KEY=VALUE", "cgroupVersion=1"),
    ],
)
def test_a_wrong_setting_is_refused(assignment: str, sentence: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        NodeOverride.parse(assignment)
    assert sentence in str(caught.value)
    assert hint in caught.value.hint


def test_an_unknown_release_or_gate() -> None:
    with pytest.raises(UsageError, match=r"unknown release 1\.99"):
        after(to="1.99")
    with pytest.raises(InputError, match="not a Kubernetes version"):
        after(to="next")
    with pytest.raises(UsageError, match="not among the feature gates of Kubernetes"):
        after("featureGates.PodLevelResources=true", to="1.25")

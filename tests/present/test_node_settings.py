"""The keys of --assume in words: complete, and each changes what its words say."""

import re
from collections.abc import Iterator

import pytest
from msgspec import structs

from kubectl_qos.edit.compare import compare
from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup
from kubectl_qos.k8s.node_overrides import FIELDS, NodeOverride, apply_overrides
from kubectl_qos.present.node_settings import NodeSetting, node_settings
from kubectl_qos.qos.cgroup.tree import cgroup_tree
from tests.qos.corner import MACHINE, one

SETTINGS = {setting.key: setting for setting in node_settings()}
FILE = re.compile(r"\b(?:cpu|memory|pids)\.[a-z.]*[a-z]")
PODS = [
    one("requests: {cpu: 500m, memory: 100M}, limits: {cpu: 1300m, memory: 300001k}"),
    one("requests: {cpu: 2, memory: 1Gi}, limits: {cpu: 2, memory: 1Gi}"),
]
MORE = {
    "memoryThrottlingFactor": "featureGates.MemoryQoS=true",
    "memoryReservationPolicy": "featureGates.MemoryQoS=true",
    "memorySwap.swapBehavior": "swap=8Gi",
    "cpuCFSQuotaPeriod": "featureGates.CustomCPUCFSQuotaPeriod=true",
    "swap": "memorySwap.swapBehavior=LimitedSwap",
    "cpuManagerPolicy": "featureGates.DisableCPUQuotaWithExclusiveCPUs=true",
    "featureGates.NodeSwap": "kubeletVersion=1.31 swap=8Gi memorySwap.swapBehavior=LimitedSwap",
    "featureGates.DisableCPUQuotaWithExclusiveCPUs": "cpuManagerPolicy=static",
}
"""What has to be on the node for a key to matter."""
VALUES = {
    "memorySwap.swapBehavior": "LimitedSwap",
    "cpuCFSQuotaPeriod": "50ms",
    "podPidsLimit": "100",
    "memoryThrottlingFactor": "0.5",
    "kubeReserved": "memory=2Gi",
    "systemReserved": "memory=2Gi",
    "cgroupVersion": "1",
    "ociRuntime": "runc-1.1",
    "swap": "8Gi",
    "featureGates.NodeSwap": "false",
    "featureGates.DisableCPUQuotaWithExclusiveCPUs": "false",
    "memoryReservationPolicy": "TieredReservation",
    "singleProcessOOMKill": "true",
    "cpuCFSQuota": "false",
    "cpuManagerPolicy": "static",
    "featureGates.MemoryQoS": "true",
}


def setup_with(*texts: str) -> NodeSetup:
    base = NodeSetup.of(structs.replace(MACHINE, name="w"), Kubelet(memory_throttling_factor=0.9), "1.36")
    return apply_overrides(base, [NodeOverride.parse(text) for text in texts])


def files(setup: NodeSetup) -> dict[tuple[str, str], str]:
    tree = cgroup_tree(PODS, setup)
    return {(found.path, name): value for found in tree.walk() for name, value in found.files.items()}


def test_every_key_has_a_type_a_default_and_an_effect() -> None:
    assert list(SETTINGS) == list(FIELDS)
    assert [setting for setting in SETTINGS.values() if not all(setting)] == []


def in_words() -> Iterator[NodeSetting]:
    yield from (setting for key, setting in SETTINGS.items() if key in VALUES)


def test_every_key_that_names_a_file_is_tried() -> None:
    named = {key for key, setting in SETTINGS.items() if FILE.search(setting.effect)}
    rare = {"featureGates.PerPodPIDLimit", "featureGates.QOSReserved"}  # of fields that PODS lack
    assert named - rare <= set(VALUES)


@pytest.mark.parametrize("setting", in_words(), ids=lambda setting: setting.key)
def test_a_key_changes_the_files_that_its_words_name(setting: NodeSetting) -> None:
    more = MORE.get(setting.key, "").split()
    before = files(setup_with(*more))
    after = files(setup_with(*more, f"{setting.key}={VALUES[setting.key]}"))
    changed = {
        name
        for path, name in before.keys() | after.keys()
        if before.get((path, name)) != after.get((path, name))
    }
    assert changed
    assert set(FILE.findall(setting.effect)) <= changed


@pytest.mark.parametrize("key", [key for key, setting in SETTINGS.items() if "RANK" in setting.effect])
def test_a_key_changes_scores(key: str) -> None:
    value = {"memory": "64Gi", "swap": "32Gi", "pageSize": "64Ki", "kernel": "4.19"}[key]
    before, after = setup_with("kernel=6.1"), setup_with("kernel=6.1", f"{key}={value}")
    compared = compare(PODS, before, after, {})
    assert any(effects.before != effects.after for effects in compared.pods)


@pytest.mark.parametrize(
    ("key", "default"),
    [
        ("cgroupDriver", "systemd"),
        ("memoryThrottlingFactor", "0.8; 0.9 from 1.27; none from 1.37"),
        ("evictionSoft", "none"),
        ("featureGates.InPlacePodVerticalScaling", "false from 1.27; true from 1.33"),
        ("featureGates.MemoryQoS", "false from 1.22; true from 1.37"),
    ],
)
def test_defaults_are_those_of_the_releases(key: str, default: str) -> None:
    assert SETTINGS[key].default == default


def test_a_default_is_what_a_node_without_the_key_has() -> None:
    node, kubelet = Node(), Kubelet()
    for key, setting in SETTINGS.items():
        field, default = FIELDS[key], setting.default
        if not hasattr(node, field.name) and not hasattr(kubelet, field.name):
            continue
        if ";" in default or " " in default or default == "none" or key == "swap":
            continue
        known = getattr(node, field.name) if hasattr(node, field.name) else getattr(kubelet, field.name)
        assert field.parse(default) == known or (key, known) == ("memorySwap.swapBehavior", "")

"""Each predicted cgroup file has a reason, and the right one."""

import pytest
from msgspec import structs

from kubectl_qos.present.reasons import sentence
from kubectl_qos.qos.reason import Rule
from tests.qos.corner import MACHINE, on, one, spec

LIMITED = one("limits: {cpu: 500m, memory: 1Gi, hugepages-2Mi: 64Mi}")
OTHER_RUNTIME = structs.replace(MACHINE, hugepage_sizes=("2MB",), runtime="cri-o://1.36.0")


@pytest.mark.parametrize("cgroup_version", [1, 2])
def test_every_file_says_why(cgroup_version: int) -> None:
    found = on(
        LIMITED, node=structs.replace(OTHER_RUNTIME, cgroup_version=cgroup_version), pod_pids_limit=100
    )
    for cgroup in (found.cgroup, found.containers[0].cgroup):
        assert cgroup.reasons.keys() == cgroup.files.keys()


def test_the_files_of_cgroup_v1_have_the_reasons_of_their_own_controller() -> None:
    reasons = on(LIMITED, node=structs.replace(OTHER_RUNTIME, cgroup_version=1)).containers[0].cgroup.reasons
    assert {name: reason.rule for name, reason in reasons.items()} == {
        "cpu/cpu.shares": Rule.CPU_WEIGHT,
        "cpu/cpu.cfs_period_us": Rule.CPU_PERIOD,
        "cpu/cpu.cfs_quota_us": Rule.CPU_QUOTA,
        "memory/memory.limit_in_bytes": Rule.MEMORY_LIMIT,
        "memory/memory.memsw.limit_in_bytes": Rule.SWAP_NONE,
        "hugetlb/hugetlb.2MB.limit_in_bytes": Rule.HUGEPAGES,
    }


def test_the_weight_of_a_best_effort_pod_counts_no_requests() -> None:
    """An empty spec.resources decides the class up to 1.36, whatever its containers request."""
    reason = on(spec("resources: {}, containers: [{resources: {requests: {cpu: 100m}}}]")).cgroup.reasons[
        "cpu.weight"
    ]
    assert sentence(reason) == "no cpu request: 2 shares on the linear curve"


@pytest.mark.parametrize(
    ("release", "behavior", "rule"),
    [
        ("1.36", "", Rule.SWAP_NONE),
        ("1.36", "LimitedSwap", Rule.SWAP_SHARE),
        ("1.29", "UnlimitedSwap", Rule.SWAP_UNLIMITED),
    ],
)
def test_swap_is_none_a_share_or_unlimited(release: str, behavior: str, rule: Rule) -> None:
    node = structs.replace(MACHINE, swap_capacity_bytes=4 << 30)
    pod = one("requests: {memory: 1Gi}, limits: {memory: 2Gi}")
    found = on(pod, release, node, {"NodeSwap": True}, memory_swap_behavior=behavior)
    assert found.containers[0].cgroup.reasons["memory.swap.max"].rule is rule


@pytest.mark.parametrize(
    ("release", "resources", "words"),
    [
        ("1.36", "requests: {memory: 128Mi}, limits: {memory: 256Mi}", "128Mi + 0.9 × (256Mi - 128Mi)"),
        ("1.36", "requests: {memory: 1Gi}", "1Gi + 0.9 × (15Gi - 1Gi), 15Gi being the limit of all pods"),
        ("1.26", "requests: {memory: 128Mi}, limits: {memory: 256Mi}", "0.8 × 256Mi"),
    ],
)
def test_memory_high_says_how_it_comes_about(release: str, resources: str, words: str) -> None:
    factor = 0.8 if release == "1.26" else 0.9
    found = on(one(resources), release, gates={"MemoryQoS": True}, memory_throttling_factor=factor)
    reason = found.containers[0].cgroup.reasons["memory.high"]
    assert sentence(reason) == f"MemoryQoS throttles above {words}"


def test_shares_of_a_pod_level_limit_name_it() -> None:
    found = on(spec("resources: {limits: {cpu: 4, memory: 1Gi}}, containers: [{name: c1}]"))
    reason = found.containers[0].cgroup.reasons["cpu.weight"]
    assert sentence(reason).startswith("no cpu request, so the cpu limit 4 counts: 4096 shares")
    bare = on(one("requests: {memory: 1Gi}")).containers[0].cgroup.reasons["cpu.weight"]
    assert sentence(bare).startswith("no cpu request: 2 shares")

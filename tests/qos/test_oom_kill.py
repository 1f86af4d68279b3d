"""One kill by the kernel: the domain, the scale, groups and ties."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.qos.oom_score import Kernel, badness, may_write_adj, restricted
from kubectl_qos.qos.process_order import (
    OomDomain,
    Process,
    limit_pages,
    limit_pages_v1,
    next_kill,
    oom_group,
)

MACHINE = OomDomain("/", 4 << 20)
POD = "/kubepods/burstable/pod1"


def process(key: str, adj: int, pages: int, cgroup: str = f"{POD}/c1") -> Process:
    return Process(key, cgroup, adj, pages)


def test_only_the_domain_is_searched() -> None:
    daemon = process("daemon", 1000, 1 << 20, "/system.slice/d.service")
    pod = process("pod", 0, 10)
    found = next_kill([daemon, pod], OomDomain("/kubepods", 1 << 20))
    assert found is not None
    assert found.victim is pod
    assert next_kill([daemon], OomDomain("/kubepods", 1 << 20)) is None


def test_row_110_a_pod_level_limit_kills_one_container() -> None:
    small = process("small", 900, 1000, f"{POD}/small")
    large = process("large", 500, 30_000, f"{POD}/large")
    groups = {f"{POD}/small", f"{POD}/large"}
    on_machine = next_kill([small, large], MACHINE, oom_groups=groups)
    in_pod = next_kill([small, large], OomDomain(POD, 50_000), oom_groups=groups)
    assert on_machine is not None
    assert on_machine.victim is small, "on the machine 400 points of adj outweigh the memory"
    assert in_pod is not None
    assert in_pod.victim is large, "adj is scaled by the pod's limit"
    assert in_pod.dying == (large,), "the other container survives"


def test_row_109_a_group_dies_together_but_for_the_immune() -> None:
    workers = [process(f"w{i}", 500, 100 + i) for i in range(3)]
    immune = process("immune", -1000, 5000)
    found = next_kill([*workers, immune], MACHINE, oom_groups={f"{POD}/c1"})
    assert found is not None
    assert (found.victim.key, found.group) == ("w2", f"{POD}/c1")
    assert found.dying == tuple(workers)
    assert found.freed_pages == 303
    alone = next_kill([*workers, immune], MACHINE)
    assert alone is not None
    assert [one.key for one in alone.dying] == ["w2"]


def test_the_highest_group_below_the_domain_dies() -> None:
    groups = {POD, f"{POD}/c1"}
    assert oom_group(f"{POD}/c1", MACHINE, groups) == POD
    assert oom_group(f"{POD}/c1", OomDomain(f"{POD}/c1", 1), groups) == f"{POD}/c1"
    assert oom_group("/kubepods/burstable/pod10/c1", MACHINE, groups) is None, "pod10 is not below pod1"


def test_ties_are_reported() -> None:
    twins = [process("a", 1000, 10), process("b", 1000, 10)]
    found = next_kill(twins, MACHINE)
    assert found is not None
    assert [one.key for one in (found.victim, *found.tied)] == ["a", "b"]


def test_row_108_root_is_spared_by_old_kernels_only() -> None:
    def points(kernel: Kernel, *, admin: bool) -> int:
        return badness(100_000, 0, 4 << 20, kernel, admin=admin)

    assert points(Kernel.SIGNED, admin=True) == points(Kernel.SIGNED, admin=False)
    assert points(Kernel.FLOORED, admin=True) == points(Kernel.FLOORED, admin=False)
    assert points(Kernel.MINUS_3_PERCENT, admin=True) == 97_000
    assert points(Kernel.MINUS_30, admin=True) == 1, "30 of 1000 of this machine is more than it uses"


def test_row_111_a_process_may_raise_its_own_value() -> None:
    assert may_write_adj(1000, 938, privileged=False)
    assert may_write_adj(938, 938, privileged=False)
    assert not may_write_adj(937, 938, privileged=False)
    assert may_write_adj(-1000, 938, privileged=True)
    assert not may_write_adj(1001, 938, privileged=True)


def test_row_112_a_restricted_runtime_does_not_go_below_itself() -> None:
    assert [restricted(adj, 0) for adj in (-997, -998, 938, 1000)] == [0, 0, 938, 1000]
    assert restricted(-997, None) == -997


def test_the_scale_of_a_cgroup_is_its_limit_and_its_swap() -> None:
    assert limit_pages(1 << 20, 0, 1 << 30, 4096) == 256
    assert limit_pages(1 << 20, 1 << 20, 1 << 30, 4096) == 512
    assert limit_pages(1 << 20, None, 1 << 21, 4096) == 768
    assert limit_pages(0, 0, 0, 4096) == 1
    assert limit_pages(1 << 20, None, 1 << 21, 4096, is_swappy=False) == 256


def test_on_v1_swap_is_what_its_own_limit_adds() -> None:
    assert limit_pages_v1(1 << 20, 1 << 20, 1 << 30, 4096) == 256
    assert limit_pages_v1(1 << 20, 3 << 20, 1 << 30, 4096) == 768
    assert limit_pages_v1(1 << 20, 3 << 20, 1 << 20, 4096) == 512, "there is no more swap than that"
    assert limit_pages_v1(1 << 20, 3 << 20, 1 << 30, 4096, is_swappy=False) == 256
    assert limit_pages_v1(1 << 20, None, 1 << 20, 4096) == 512


@given(
    st.lists(st.tuples(st.integers(-999, 1000), st.integers(0, 1 << 22)), min_size=1, max_size=20),
    st.sampled_from(Kernel),
)
def test_nobody_else_has_more_points(drawn: list[tuple[int, int]], kernel: Kernel) -> None:
    processes = [process(str(index), adj, pages) for index, (adj, pages) in enumerate(drawn)]
    found = next_kill(processes, MACHINE, kernel)
    assert found is not None
    scores = [badness(one.pages, one.adj, MACHINE.total_pages, kernel) for one in processes]
    assert found.points == max(scores)
    assert len(found.tied) == scores.count(found.points) - 1

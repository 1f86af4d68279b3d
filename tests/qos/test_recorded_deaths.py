"""The next deaths of recorded nodes, and what their kernels and kubelets said of the same moment."""

from dataclasses import replace

import pytest
from msgspec import structs

from kubectl_qos.analysis.deaths import DeathRow
from kubectl_qos.analysis.group_table import build_node_row
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import PodUsage, Summary, UsageOrigin, usage_from_summary
from kubectl_qos.present.next_death import death_condition, killed_by, state_notes, victim_notes
from kubectl_qos.present.node_columns import NODE_COLUMNS
from kubectl_qos.present.output import NO_AGES
from kubectl_qos.qos.process_order import with_largest
from kubectl_qos.qos.simulation.ceiling import Scenario
from kubectl_qos.qos.simulation.engine import simulate
from kubectl_qos.qos.simulation.next_death import NextDeath, deaths_of, next_deaths
from kubectl_qos.qos.simulation.node_state import NO_GROWTH, Growth, state_of_node
from tests.qos.recorded import cadvisor_b, host_d, snapshot_of, state_d
from tests.qos.test_simulation import MIB, container, node_state

NODES = ["node-1.36", "node-1.36-b", "node-1.36-d"]
AVAILABLE = {"node-1.36": 3215106048, "node-1.36-b": 2860675072, "node-1.36-d": 2325884928}
"""`availableBytes` of the node in its kubelet's summary."""


def death(snapshot: Snapshot, mechanism: str) -> NextDeath:
    found = next_deaths(state_of_node(snapshot, "node1"))
    return next(one for one in found if one.mechanism == mechanism and one.grace_seconds is None)


def by_metrics(snapshot: Snapshot) -> Snapshot:
    """With the working sets alone, as metrics-server has them."""
    usage = {}
    for key, pod in snapshot.usage.items():
        sizes = [one if isinstance(one, int) else one.working_set_bytes for one in pod.amounts]
        usage[key] = PodUsage(pod.names, tuple(sizes), UsageOrigin.METRICS_API)
    return replace(snapshot, usage=usage)


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("source", [UsageOrigin.KUBELET_SUMMARY, UsageOrigin.METRICS_API])
def test_eviction_is_as_far_as_the_kubelet_says(name: str, source: UsageOrigin) -> None:
    snapshot = snapshot_of(name)
    if source is UsageOrigin.METRICS_API:
        snapshot = by_metrics(snapshot)
    found = death(snapshot, "kubelet eviction")
    threshold = state_of_node(snapshot, "node1").thresholds.node_bytes or 0
    assert found.distance_bytes == pytest.approx(AVAILABLE[name] - threshold, rel=0.02)
    assert not found.is_upper_bound
    assert build_node_row(snapshot, "node1").to_eviction == found.distance_bytes
    without = death(replace(snapshot, node_usage={}), "kubelet eviction")
    assert without.is_upper_bound
    assert without.distance_bytes > found.distance_bytes * 1.05


def test_a_node_uses_what_kubectl_top_nodes_says() -> None:
    """`node1   74m   3%   1194Mi   35%`: of what is allocatable, without the fraction."""
    row = build_node_row(snapshot_of("node-1.36-b"), "node1")
    assert [NODE_COLUMNS[key].cell(row, NO_AGES) for key in ("used", "used_percent")] == ["1194Mi", "35%"]
    assert 100 * (row.used_bytes or 0) // (row.capacity or 1) == 30, "of the capacity"


@pytest.mark.parametrize("name", NODES)
def test_a_full_node_is_as_far_as_its_available_memory_and_the_swap_that_pods_may_use(name: str) -> None:
    snapshot = snapshot_of(name)
    state = state_of_node(snapshot, "node1")
    swap = min(state.use.may_swap + (state.own_bytes or 0), state.swap_bytes)
    used = sum(usage.swap_bytes or 0 for usage in snapshot.usage.values())
    found = death(snapshot, "node")
    assert found.distance_bytes - (swap - used) == pytest.approx(AVAILABLE[name], rel=0.02)
    notes = " ".join(state_notes({"node1": state}, snapshot.usage))
    assert ("that processes outside pods may swap" in notes) is (swap > state.use.may_swap)


def test_swap_after_swapoff_gives_no_room() -> None:
    """The Node object of the second node still says 2 GiB, as one did after swapoff and two restarts."""
    snapshot = snapshot_of("node-1.36-b")
    assert snapshot.node_swap == {"node1": 2147479552}, "what the Node object says too"
    off = replace(snapshot, node_swap={"node1": 0})
    distance, before = (death(one, "node").distance_bytes for one in (off, snapshot))
    assert distance == pytest.approx(AVAILABLE["node-1.36-b"], rel=0.02)
    assert distance < before - 100 * MIB
    assert off.setup("node1").node.swap_capacity_bytes == 0


# The deaths of node-1.36-d: states made of the figures of their records, and who died.


@pytest.mark.parametrize(
    ("label", "used", "others", "limit", "killed_kib"),
    [
        ("D1 lim2:a", 21245952, 0, 80, 81536),
        ("D5 side:s", 12845056, 0, 64, 65152),
        ("F1 lim1:c", 21258240, 0, 160, 162944),
        ("T5 loop:c", 0, 0, 60, 60800),
        ("D7 kids:c", 10485760, 47206400, 110, 65536),
        ("D3 plim:a", 21250048, 42266624, 120, 80896),
    ],
)
def test_a_limit_is_as_far_as_growth_took_it(
    label: str, used: int, others: int, limit: int, killed_kib: int
) -> None:
    """`others` is what other processes of the cgroup held, `killed_kib` the victim's memory at its end."""
    assert label
    growing = structs.replace(
        container(993, 0, limit), used_bytes=used + others, working_set_bytes=used + others
    )
    (found,) = [one for one in next_deaths(node_state([("p", growing)])) if one.limit_bytes]
    assert abs(used + found.distance_bytes - (killed_kib << 10)) < MIB


def test_at_a_pod_level_limit_the_container_that_grows_becomes_the_victim() -> None:
    """D3: of `a` with 20Mi and `b` with 40Mi `a` grew, and was killed with 79Mi; spec row 110."""
    found = node_state(
        [("plim", container(993, 20, name="a")), ("plim", container(993, 40, name="b"))],
        limits={"plim": 120 * MIB},
    )
    (death,) = [one for one in next_deaths(found, contests=True) if one.limit_bytes]
    assert (death.mechanism, death.container, death.distance_bytes) == ("pod limit", "b", 60 * MIB)
    (itself,) = death.growing
    assert (itself.container, itself.size_bytes) == ("a", 40 * MIB + 4096)
    at_limit = [one for one in deaths_of(found, {death.key}, contests=True) if one.limit_bytes]
    assert [(one.container, one.grown_bytes) for one in at_limit] == [("b", None), ("a", itself.size_bytes)]
    grows = Growth(1.0, {death.key: 1.0}, {(death.key, "a"): 1.0})
    (then,) = [one for one in next_deaths(replace(found, growth=grows), contests=True) if one.limit_bytes]
    assert (then.container, then.used_bytes, then.growing) == ("a", 60 * MIB, ())


def test_on_a_full_node_the_pod_that_grows_becomes_the_victim() -> None:
    """D11: oom_score_adj 771 at 1620Mi died before 975 at 401Mi, as it alone had grown."""
    found, grow = state_d("full", 1, {"be-a": 250, "bu-over": 401}, "100Mi"), ("oom", "grow")
    death = next(one for one in next_deaths(found, contests=True) if one.mechanism == "node")
    assert death.key == ("oom", "bu-over"), "if the node itself or the others grow"
    size = next(one.size_bytes for one in death.growing if one.key == grow)
    assert 1100 * MIB < size < 1620 * MIB
    grown = [one for one in deaths_of(found, {grow}, contests=True) if one.grown_bytes]
    itself = next(one for one in grown if one.mechanism == "node")
    assert itself.distance_bytes == death.distance_bytes
    assert killed_by(itself).startswith("kernel: node full, if it alone grows (the victim from 1")
    growth = Growth(1.0, {grow: 1.0}, {(grow, "c"): 1.0})
    then = next(one for one in next_deaths(replace(found, growth=growth)) if one.mechanism == "node")
    assert (then.key, then.distance_bytes) == (grow, death.distance_bytes)
    assert death.distance_bytes == pytest.approx((1_659_316 - 21_336) << 10, rel=0.03), "by its RSS"


@pytest.mark.parametrize(
    ("label", "kubelet", "reserved_mib", "over", "victim", "grown"),
    [
        ("D9", "evict", 600, "100Mi", "bu-over", 1_084_260_352),
        ("D14", "kubepods", 1300, "153Mi", "be-a", 652_976_128),
    ],
)
def test_the_kubelet_evicts_whom_it_evicted(
    label: str, kubelet: str, reserved_mib: int, over: str, victim: str, grown: int
) -> None:
    """Each while `grow` grew, which requests 900Mi; `grown` is its growth in the last sample before."""
    found = state_d(kubelet, reserved_mib, {"be-a": 253, "bu-over": 401}, over)
    growth = Growth(1.0, {("oom", "grow"): 1.0}, {(("oom", "grow"), "c"): 1.0})
    for grows in (NO_GROWTH, growth):
        deaths = next_deaths(replace(found, growth=grows))
        first = next(one for one in deaths if one.mechanism == "kubelet eviction")
        assert first.key == ("oom", victim), label
        assert first.distance_bytes == pytest.approx(grown, rel=0.03)


def test_the_kubelet_evicts_the_pod_that_grows_once_it_is_furthest_above_its_request() -> None:
    """`grow` with its request of 900Mi was evicted at 1623Mi, and be-kids with 170Mi above its own was not.

    In D9 it could not get above bu-over, which was 301Mi above its request, before the threshold.
    """
    grow = ("oom", "grow")
    evict = state_d("evict", 600, {})
    first = next(one for one in next_deaths(evict, contests=True) if one.mechanism == "kubelet eviction")
    assert first.key == ("oom", "be-kids")
    sizes = {one.pod: one.size_bytes for one in first.growing}
    kids = evict.containers[evict.find_container("be-kids", "c")].working_set_bytes
    assert sizes["grow"] == 900 * MIB + kids + 1
    assert sizes["pr-lo"] == 200 * MIB + 1, "of lower priority: as soon as it is above its request"
    assert not sizes.keys() & {"pr-hi", "gu-x"}, "of higher priority; not above its request"
    (itself, *_) = [one for one in deaths_of(evict, {grow}, contests=True) if one.killer.evicts]
    assert (itself.grown_bytes, itself.distance_bytes) == (sizes["grow"], first.distance_bytes)
    assert killed_by(itself) == "kubelet evicts, if it alone grows (the victim from 1072Mi on)"
    (note,) = victim_notes([DeathRow("node1", first)])
    assert note.startswith("if one pod alone grows, it may die instead: oom/be-b from 172Mi (kubelet evicts)")
    d9 = next_deaths(state_d("evict", 600, {"be-a": 250, "bu-over": 401}, "100Mi"), contests=True)
    of_d9 = next(one for one in d9 if one.mechanism == "kubelet eviction")
    assert (of_d9.key, "grow" in {one.pod for one in of_d9.growing}) == (("oom", "bu-over"), False)


def test_a_container_of_five_processes_is_not_certain_to_die_first() -> None:
    """D16: be-kids has 171Mi in five processes; pr-hi with 200Mi in one died."""
    snapshot = snapshot_of("node-1.36-d")

    def on_full_node(found: Snapshot) -> NextDeath:
        deaths = next_deaths(state_of_node(found, "node1"), contests=True)
        return next(one for one in deaths if one.mechanism == "node")

    for source in (snapshot, by_metrics(snapshot)):
        death = on_full_node(source)
        assert death.key == ("oom", "be-kids")
        assert death.rival is not None
        assert (death.rival.key, death.rival.size_bytes // MIB) == (("oom", "pr-hi"), 153)
        race = ", unless the kubelet evicts oom/be-kids first"  # below 1Mi
        assert death_condition(death) == f"{race}, if one process holds 154Mi, else oom/pr-hi:c"
        (of_rival,) = (
            death
            for death in deaths_of(state_of_node(source, "node1"), {("oom", "pr-hi")}, contests=True)
            if death.mechanism == "node" and death.unless
        )
        assert death_condition(of_rival) == f", unless a process of oom/be-kids:c holds 154Mi{race}"
    known = with_largest(snapshot.usage, snapshot.pods, host_d().processes)
    certain = on_full_node(replace(snapshot, usage=known))
    assert (certain.key, certain.rival) == (("oom", "pr-hi"), None)


def test_swap_of_the_node_makes_no_limit_look_full() -> None:
    """The share of a limit is never more than the cgroup's own files say."""
    used, limits = cadvisor_b("container_memory_usage_bytes"), cadvisor_b("container_spec_memory_limit_bytes")
    own = [one for one in next_deaths(state_of_node(snapshot_of("node-1.36-b"), "node1")) if one.limit_bytes]
    assert len(own) > 20
    for one in own:
        place = one.key[1], one.container if one.mechanism == "container limit" else ""
        assert one.limit_bytes is not None
        assert one.limit_bytes - limits[place] in range(4096), "the kernel rounds down to pages"
        percent = int(killed_by(one).rpartition(" ")[2].strip("<%"))
        assert percent <= 100 * used[place] / limits[place] + 1, place


def test_what_a_killed_container_wrote_to_memory_still_fills_its_pod() -> None:
    """As measured: dd filled a volume in memory up to the limit of 100Mi, and nothing uses memory since."""
    summary = {
        "podRef": {"namespace": "oom", "name": "tmpf"},
        "memory": {"workingSetBytes": 103489536},
        "containers": [{"name": "c", "memory": {"workingSetBytes": 270336, "rssBytes": 40960}}],
        "volume": [{"name": "mem", "usedBytes": 103071744}, {"name": "disk", "usedBytes": 4096}],
    }
    usage = usage_from_summary(convert({"pods": [summary]}, Summary))
    limits = {"resources": {"requests": {"memory": "40Mi"}, "limits": {"memory": "100Mi"}}}
    raw = {
        "metadata": {"namespace": "oom", "name": "tmpf"},
        "spec": {
            "nodeName": "node1",
            "containers": [{"name": "c", **limits}],
            "volumes": [{"name": "mem", "emptyDir": {"medium": "Memory"}}, {"name": "disk", "emptyDir": {}}],
        },
        "status": {"phase": "Running", "containerStatuses": [{"name": "c", "state": {"running": {}}}]},
    }
    snapshot = replace(snapshot_of("node-1.36-d"), pods=(convert(raw, Pod),), usage=usage)
    distance = death(snapshot, "pod limit").distance_bytes
    assert distance == (100 << 20) - 270336 - 103071744
    state, of_pods = state_of_node(snapshot, "node1"), death(snapshot, "kubepods limit")
    assert of_pods.distance_bytes == (state.kubepods_bytes or 0) - 270336 - 103071744
    assert (state.own_bytes or 0) > 103071744
    without = replace(state, pods=(structs.replace(state.pods[0], left_bytes=0),))
    assert state.use.own + state.use.total == without.use.own + without.use.total, "the node has it anyway"
    [step] = simulate(state, Scenario(free_bytes=1, eviction=True)).steps
    assert step.freed.available_bytes == 270336 + 103071744
    assert step.level.available_bytes == state.capacity_bytes - state.use.own, "nothing of it is left"
    assert step.level.free_bytes == state.use.most_bytes - state.use.own

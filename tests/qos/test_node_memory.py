"""The memory of a node: sums, the worst case, and the way to eviction; by hand, by law and as recorded."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from kubectl_qos.cluster.files import pod_from_yaml
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup, kubelet_from_configz, node_from_object
from kubectl_qos.k8s.objects import EMPTY_RESOURCES, NodeObject, Pod, convert
from kubectl_qos.k8s.quantity import ZERO
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.usage import ContainerUsage, PodKey, PodUsage
from kubectl_qos.qos.eviction import (
    NodeMemory,
    at_limits,
    memory_threshold,
    node_memory,
    schedulable_bytes,
    to_hard_eviction,
    to_soft_eviction,
)
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import Ranking, rank_node
from tests.cluster.cluster_objects import recorded_node
from tests.recordings.files import read_json, read_lines

MI, GI, PAGE = 1 << 20, 1 << 30, 4096
NOW = Release.of("1.36")
NODE = Node(name="n1", memory_capacity_bytes=16 * GI)


def pod(spec: str, name: str = "p", status: str = "phase: Running") -> Pod:
    text = f"metadata: {{name: {name}, namespace: n}}\nspec: {{nodeName: n1, {spec}}}\nstatus: {{{status}}}"
    return pod_from_yaml(text)


def ranked(*pods: Pod, usage: dict[str, dict[str, int]] | None = None) -> Ranking:
    found: dict[PodKey, PodUsage] = {
        ("n", name): PodUsage.of_containers(
            {one: ContainerUsage(used * MI) for one, used in containers.items()}
        )
        for name, containers in (usage or {}).items()
    }
    return rank_node([default_pod(one, NOW) for one in pods], NODE, NOW, found)


def growth(found: Pod, **used: int) -> tuple[int, bool]:
    """What one pod grows to, in Mi, and whether that is all."""
    (row,) = ranked(found, usage={"p": used} if used else None).pods
    grown = at_limits(row)
    assert grown.memory_bytes % MI == 0
    return grown.memory_bytes // MI, grown.unlimited


def container(name: str, limit: int = 0, more: str = "") -> str:
    resources = f", resources: {{limits: {{memory: {limit}Mi}}}}" if limit else ""
    return f"{{name: {name}{resources}{more}}}"


ALWAYS = ", restartPolicy: Always"
POD_LEVEL = "resources: {limits: {memory: 300Mi}}"


@pytest.mark.parametrize(
    ("spec", "used", "expected"),
    [
        (f"containers: [{container('a', 100)}]", {"a": 40}, (100, False)),
        (f"containers: [{container('a', 100)}]", {}, (100, False)),
        (f"containers: [{container('a', 100)}]", {"a": 130}, (130, False)),
        (f"containers: [{container('a')}]", {"a": 40}, (40, True)),
        (f"containers: [{container('a')}]", {}, (0, True)),
        (f"containers: [{container('a', 100)}, {container('b')}]", {"a": 10, "b": 7}, (107, True)),
        (
            f"{POD_LEVEL}, containers: [{container('a', 100)}, {container('b')}]",
            {"a": 10, "b": 7},
            (300, False),
        ),
        (f"{POD_LEVEL}, containers: [{container('a', 100)}]", {"a": 10}, (100, False)),
        (
            f"initContainers: [{container('s', 30, ALWAYS)}], containers: [{container('a', 100)}]",
            {"a": 10, "s": 5},
            (130, False),
        ),
        (f"overhead: {{memory: 50Mi}}, containers: [{container('a', 100)}]", {"a": 10}, (150, False)),
    ],
)
def test_the_worst_case_of_a_pod(spec: str, used: dict[str, int], expected: tuple[int, bool]) -> None:
    assert growth(pod(spec), **used) == expected


INIT = f"initContainers: [{container('i', 500)}, {container('j', 400)}], containers: [{container('a', 100)}]"


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (("terminated: {exitCode: 0}", "terminated: {exitCode: 0}", "running: {}"), 100),
        (("terminated: {exitCode: 0}", "running: {}", "waiting: {}"), 400),
        (("running: {}", "waiting: {}", "waiting: {}"), 500),
    ],
)
def test_init_containers_count_while_they_run_and_one_at_a_time(
    states: tuple[str, str, str], expected: int
) -> None:
    first, second, app = (
        f"{{name: {name}, state: {{{state}}}}}" for name, state in zip("ija", states, strict=True)
    )
    status = f"phase: Pending, initContainerStatuses: [{first}, {second}], containerStatuses: [{app}]"
    assert growth(pod(INIT, status=status)) == (expected, False)


def test_without_a_status_init_containers_have_ended() -> None:
    assert growth(pod(INIT)) == (100, False)


def test_a_debug_container_is_bounded_by_the_cgroup_of_a_limited_pod() -> None:
    status = (
        "phase: Running, containerStatuses: [{name: a, state: {running: {}}}],"
        " ephemeralContainerStatuses: [{name: d, state: {running: {}}}]"
    )
    debugged = f"containers: [{container('a', 100)}], ephemeralContainers: [{{name: d}}]"
    assert growth(pod(debugged, status=status), a=10, d=60) == (100, False)


def test_only_pods_that_can_have_processes_are_added_up() -> None:
    spec = "containers: [{name: a, resources: {requests: {memory: 64Mi}, limits: {memory: 128Mi}}}]"
    running, ended = pod(spec, "one"), pod(spec, "two", "phase: Succeeded")
    found = node_memory(ranked(running, ended, usage={"one": {"a": 10}, "two": {"a": 10}}), NOW)
    used = {QosClass.GUARANTEED: 0, QosClass.BURSTABLE: 10 * MI, QosClass.BEST_EFFORT: 0}
    unmeasured = dict.fromkeys(QosClass, 0)
    assert found == NodeMemory(1, used, unmeasured, 64 * MI, 128 * MI, 0, 128 * MI)


def test_limits_are_those_that_there_are_and_pods_without_are_counted() -> None:
    half = pod(f"containers: [{container('a', 100)}, {container('b')}]", "half")
    found = node_memory(ranked(half, pod("containers: [{name: a}]", "none")), NOW)
    assert (found.limits_bytes, found.unlimited_pods, found.used) == (100 * MI, 2, None)
    assert found.worst_bytes is None, "a container without a limit uses nobody knows what"


def test_a_node_without_pods_uses_nothing_which_is_known() -> None:
    assert node_memory(ranked(), NOW).used_bytes == 0


def test_a_pod_that_is_being_resized_counts_with_the_larger_of_both() -> None:
    spec = "containers: [{name: a, resources: {requests: {memory: 64Mi}, limits: {memory: 128Mi}}}]"
    resources = "resources: {requests: {memory: 96Mi}, limits: {memory: 256Mi}}"
    allocated = "allocatedResources: {memory: 80Mi}"
    of_container = f"containerStatuses: [{{name: a, state: {{running: {{}}}}, {resources}, {allocated}}}]"
    pending = "conditions: [{type: PodResizeInProgress, status: 'True'}]"
    found = node_memory(ranked(pod(spec, status=f"phase: Running, {of_container}, {pending}")), NOW)
    assert (found.requests_bytes, found.limits_bytes) == (96 * MI, 256 * MI)
    of_container = of_container.replace("80Mi", "64Mi")
    settled = node_memory(ranked(pod(spec, status=f"phase: Running, {of_container}")), NOW)
    assert (settled.requests_bytes, settled.limits_bytes) == (64 * MI, 128 * MI)


AMOUNTS = st.integers(0, 4096)


@st.composite
def some_pods(draw: st.DrawFn, *, limited: bool = False) -> tuple[list[Pod], dict[str, dict[str, int]]]:
    """Pods with sidecars, some with usage; with `limited`, every container has a limit that it is below."""
    found, usage = [], {}
    for number in range(draw(st.integers(0, 5))):
        lists: dict[str, list[str]] = {"initContainers": [], "containers": []}
        used = {}
        for index in range(draw(st.integers(1, 4))):
            limit = draw(st.integers(1, 4096) if limited else st.sampled_from([0, 64, 1024]))
            side = draw(st.booleans()) if index else False
            name = f"c{index}"
            lists["initContainers" if side else "containers"].append(
                container(name, limit, ALWAYS if side else "")
            )
            used[name] = draw(st.integers(0, limit) if limited else AMOUNTS)
        spec = ", ".join(f"{key}: [{', '.join(texts)}]" for key, texts in lists.items() if texts)
        found.append(pod(spec, f"p{number}"))
        if limited or draw(st.booleans()):
            usage[f"p{number}"] = used
    return found, usage


@given(some_pods())
def test_the_worst_case_is_never_below_what_is_used(
    drawn: tuple[list[Pod], dict[str, dict[str, int]]],
) -> None:
    pods, usage = drawn
    found = node_memory(ranked(*pods, usage=usage), NOW)
    assert found.worst_bytes is None or found.worst_bytes >= (found.used_bytes or 0)
    assert found.used_bytes in {None, sum(sum(used.values()) for used in usage.values()) * MI}


@given(some_pods(limited=True))
def test_where_everything_is_limited_the_worst_case_is_the_limits(
    drawn: tuple[list[Pod], dict[str, dict[str, int]]],
) -> None:
    pods, usage = drawn
    found = node_memory(ranked(*pods, usage=usage), NOW)
    assert (found.unlimited_pods, found.worst_bytes) == (0, found.limits_bytes)


@given(some_pods())
def test_a_node_is_the_sum_of_its_pods_and_of_its_classes(
    drawn: tuple[list[Pod], dict[str, dict[str, int]]],
) -> None:
    pods, usage = drawn
    together = node_memory(ranked(*pods, usage=usage), NOW)
    alone = [node_memory(ranked(one, usage=usage), NOW) for one in pods]
    for name in ("pods", "requests_bytes", "limits_bytes", "unlimited_pods"):
        assert getattr(together, name) == sum(getattr(one, name) for one in alone)
    worst = [one.worst_bytes for one in alone]
    assert together.worst_bytes == (None if None in worst else sum(filter(None, worst)))
    if together.used is not None:
        for qos in QosClass:
            assert together.used[qos] == sum(one.used[qos] for one in alone if one.used is not None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("100Mi", 100 * MI), ("5%", 858993472), (None, None), ("0%", None), ("100%", None), ("0", None)],
)
def test_thresholds(text: str | None, expected: int | None) -> None:
    """5 % as a float32 is a little more than 5 %: 16Gi x 0.0500000007."""
    assert memory_threshold(text, 16 * GI) == expected


def setup(hard: dict[str, str], allocatable: int | None = None, **more: object) -> NodeSetup:
    kubelet = structs.replace(Kubelet(eviction_hard=hard), **more)
    return NodeSetup(structs.replace(NODE, allocatable_memory_bytes=allocatable), kubelet, NOW)


HARD = {"memory.available": "100Mi"}


@pytest.mark.parametrize(
    ("found", "node_bytes", "expected"),
    [
        (setup(HARD), None, 16 * GI - 4 * GI - 100 * MI),
        (setup(HARD), 6 * GI, 16 * GI - 6 * GI - 100 * MI),
        (setup(HARD, 15 * GI), None, 15 * GI - 4 * GI - 100 * MI),
        (setup(HARD, 15 * GI), 6 * GI, 16 * GI - 6 * GI - 100 * MI),
        (setup(HARD, 15 * GI, enforce_node_allocatable=()), None, 16 * GI - 4 * GI - 100 * MI),
        (setup(HARD, 4 * GI), None, -100 * MI),
        (setup({"memory.available": "25%"}, 8 * GI), None, 8 * GI - 4 * GI - 2 * GI),
        (setup({}, 15 * GI), None, None),
    ],
)
def test_the_nearer_of_two_signals_evicts(
    found: NodeSetup, node_bytes: int | None, expected: int | None
) -> None:
    assert to_hard_eviction(found, 4 * GI, node_bytes) == expected


def test_the_soft_threshold_is_of_the_node_alone() -> None:
    found = setup(HARD, 5 * GI, eviction_soft={"memory.available": "1Gi"})
    assert to_soft_eviction(found, 4 * GI) == 11 * GI
    assert to_soft_eviction(found, 4 * GI, 6 * GI) == 9 * GI
    assert to_soft_eviction(setup(HARD), 4 * GI) is None


def test_without_a_capacity_nothing_is_said_of_eviction() -> None:
    nothing = NodeSetup(Node(), Kubelet(), NOW)
    assert to_hard_eviction(nothing, 0) is None
    assert schedulable_bytes(Node()) is None


def test_soft_thresholds_are_read_from_a_kubelets_configuration() -> None:
    assert kubelet_from_configz({"evictionSoft": {"memory.available": "10%"}}, NOW).eviction_soft == {
        "memory.available": "10%"
    }


@pytest.mark.parametrize("variant", ["systemd", "memoryqos-tiered", "limitedswap", "singleprocessoomkill"])
def test_no_recorded_pod_can_outgrow_its_worst_case(variant: str) -> None:
    """What the kernel enforced, in whole pages: whether some memory.max stops a pod, and where."""
    compared = 0
    for line in read_lines(f"node-1.36/measured-{variant}.jsonl"):
        found = json.loads(line)
        of_pod, containers = found["levels"].get("pod"), found["containers"]
        recorded = default_pod(convert(found["pod"], Pod), NOW)
        (row,) = rank_node([recorded], NODE, NOW).pods
        if not of_pod or len(row.alive) != len(containers) - 1:
            continue  # some containers have yet to start, so they have no cgroup
        own = [one["cgroup"]["memory.max"].strip() for one in containers if one["name"] != "POD"]
        whole = of_pod["memory.max"].strip()
        expected = sum(int(limit) for limit in own if limit != "max")
        if whole != "max":
            overhead = (recorded.spec.overhead or EMPTY_RESOURCES).get("memory", ZERO).value()
            expected = int(whole) if "max" in own else min(expected + overhead, int(whole))
        grown = at_limits(row)
        assert grown.unlimited == ("max" in own and whole == "max"), recorded.name
        assert 0 <= grown.memory_bytes - expected < PAGE * len(own), recorded.name
        compared += 1
    assert compared >= 9


def test_the_recorded_node_is_as_far_from_eviction_as_its_kubepods_limit_says() -> None:
    configz = read_json("node-1.36/configz-systemd.json")
    kubelet = kubelet_from_configz(configz, NOW)
    node = node_from_object(convert(recorded_node(), NodeObject), kubelet)
    line = read_lines("node-1.36/measured-systemd.jsonl")[0]
    kubepods = json.loads(line)["levels"]["kubepods"]
    limit, used = int(kubepods["memory.max"]), int(kubepods["memory.current"])
    assert to_hard_eviction(NodeSetup(node, kubelet, NOW), used) == limit - used - 100 * MI
    assert schedulable_bytes(node) == limit - 100 * MI

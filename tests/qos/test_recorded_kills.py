"""What a real node went through, simulated from its state before.

The runs were made with kubelet 1.36.2 and kernel 6.1 (tests/recordings/node-1.36, oom-*.json). Where the
simulation is told of something that the state before does not hold, a test says so where it does.
"""

import re
from functools import cache
from typing import Any

import pytest
from msgspec import structs

from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import NodeSetup, kubelet_from_configz, node_from_object
from kubectl_qos.k8s.objects import NodeObject, Pod, convert
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.qos.oom_score import OOM_SCORE_ADJ_MIN
from kubectl_qos.qos.simulation.ceiling import ContainerGrowth, Scenario
from kubectl_qos.qos.simulation.engine import Simulation, simulate
from kubectl_qos.qos.simulation.node_state import NodeProcess, NodeState
from tests.node_states import build_node_state
from tests.qos.recorded import Json
from tests.recordings.files import read_json

MIB = 1 << 20
POD_UID = re.compile(r"task_memcg=\S*?pod([0-9a-f_-]{36})")
CONTAINER_ID = re.compile(r"cri-containerd-([0-9a-f]{64})\.scope,task=")


@cache
def recorded(name: str) -> Any:
    return read_json(f"node-1.36/{name}.json")


def setup_of(run: Json, threshold: str, *, single_process: bool = False) -> NodeSetup:
    """The node with the threshold of that run: those of OOM kills had eviction turned off."""
    hard = {"memory.available": threshold} if threshold else {}
    kubelet = structs.replace(
        kubelet_from_configz(recorded("configz-systemd"), Release.of("1.36")),
        eviction_hard=hard,
        single_process_oom_kill=single_process or None,
    )
    return NodeSetup.of(node_from_object(convert(run["node_after"], NodeObject), kubelet), kubelet)


def pod_of(raw: Json, setup: NodeSetup) -> Pod:
    return default_pod(convert(raw, Pod), setup.release)


def process_bytes(process: Json) -> int:
    """RSS, swap and page tables: what badness counts."""
    return sum(int(process[name].split()[0]) << 10 for name in ("VmRSS", "VmSwap", "VmPTE"))


def daemons(run: Json) -> list[NodeProcess]:
    """The node's own processes; the kernel never chooses the first one, whatever its oom_score_adj."""
    return [
        NodeProcess(
            one["comm"], OOM_SCORE_ADJ_MIN if one["pid"] == 1 else one["oom_score_adj"], process_bytes(one)
        )
        for one in run["before"]["daemons"]
    ]


def meminfo(run: Json) -> dict[str, int]:
    lines = (line.split() for line in run["before"]["meminfo"].splitlines())
    return {words[0].rstrip(":"): int(words[1]) << 10 for words in lines}


def node_state(run: Json, setup: NodeSetup, **own: Any) -> NodeState:
    pods, usage = [], {}
    for found in run["before"]["pods"].values():
        pod = pod_of(found["pod"], setup)
        pods.append(pod)
        usage[pod.namespace, pod.name] = PodUsage.of_containers(
            {
                one["name"]: ContainerUsage(
                    int(one["cgroup"]["memory.current"]), sum(map(process_bytes, one["processes"])), 0
                )
                for one in found["containers"]
                if one["name"] != "POD"
            }
        )
    return build_node_state(pods, setup, usage, **own)


def killed(run: Json) -> list[tuple[str, str]]:
    """Pod and container of each oom-kill line, in order."""
    by_uid = {pod["metadata"]["uid"]: pod for pod in run["pods_after"].values()}
    found = []
    for line in run["kill_lines"]:
        uid, container_id = POD_UID.search(line), CONTAINER_ID.search(line)
        if "oom-kill:" not in line or uid is None or container_id is None:
            continue
        pod = by_uid[uid[1].replace("_", "-")]
        found.append((pod["metadata"]["name"], container_named(pod, container_id[1])))
    return found


def container_named(pod: Json, container_id: str) -> str:
    """By its id; one that was restarted since is the only one of its pod."""
    for status in pod["status"]["containerStatuses"]:
        if status["containerID"].endswith(container_id):
            return str(status["name"])
    (only,) = pod["spec"]["containers"]
    return str(only["name"])


def victims(found: Simulation) -> list[tuple[str, str]]:
    return [(step.key[1], step.container) for step in found.steps]


def test_the_node_runs_out_of_memory() -> None:
    """A process in system.slice grew until five containers had died: these five, in this order."""
    run = recorded("oom-global-A")
    setup = setup_of(run, "")
    processes = run["before"]["daemons"]
    memory = meminfo(run)
    reclaimable = sum(memory[name] for name in ("MemFree", "Buffers", "Active(file)", "Inactive(file)"))
    used = memory["MemTotal"] - reclaimable - node_state(run, setup).used_bytes
    before = node_state(run, setup, own_bytes=used, own_processes=daemons(run))
    (hog,) = (one for one in processes if one["comm"] == "memhog")
    growth = ContainerGrowth(None, used + run["hog_mib"] * MIB - process_bytes(hog))
    found = simulate(before, Scenario(growth=(growth,)))
    assert victims(found) == killed(run)
    assert {step.mechanism for step in found.steps} == {"node"}
    assert found.is_reached
    scores = {
        name: process["oom_score"]
        for name, pod in run["before"]["pods"].items()
        for one in pod["containers"]
        for process in one["processes"]
        if one["name"] == "c"
    }
    assert all(abs((step.score or 0) - scores[step.key[1]]) <= 2 for step in found.steps)


def test_what_would_have_died_after_that() -> None:
    """With all that can be killed gone, the node's own processes at 0 are before Guaranteed pods."""
    run = recorded("oom-global-A")
    before = node_state(run, setup_of(run, ""), own_processes=daemons(run))
    found = simulate(before, Scenario(free_bytes=1 << 50))
    names = [step.key[1] for step in found.steps]
    assert names.index("sshd") < names.index("oa-gu-200") < names.index("containerd")
    assert names.count("sshd") == 1, "the one with -1000 stays"
    assert found.first_important == names.index("oa-crit-100") + 1


def test_the_limit_of_kubepods_is_hit() -> None:
    """A node-critical pod grew past allocatable: five containers died in its place, in this order.

    It is told to reach 2732Mi, not the 2700Mi of its command: it grows from 300 in steps of 64. The
    difference decides about the fifth.
    """
    run = recorded("oom-kubepods-C")
    setup = setup_of(run, "")
    before = node_state(run, setup)
    assert before.kubepods_bytes == int(run["before"]["top"]["/kubepods.slice"]["memory.max"])
    growing = before.find_container("oc-crit-grower")
    found = simulate(before, Scenario(growth=(ContainerGrowth(growing, 2732 * MIB),)))
    assert victims(found) == killed(run)
    assert {step.mechanism for step in found.steps} == {"kubepods limit"}
    fewer = simulate(before, Scenario(growth=(ContainerGrowth(growing, 2700 * MIB),)))
    assert victims(fewer) == killed(run)[:4]


def test_the_kubelet_evicts() -> None:
    """A process outside of pods grew: six pods went in this order, the critical one refused before the last.

    How far that process came is worked out from what the last event says was available.
    """
    run = recorded("oom-eviction")
    setup = setup_of(run, "600Mi")
    evicted = [one for one in run["events"] if one["reason"] == "Evicted"]
    evicted.sort(key=lambda event: str(event["lastTimestamp"]))
    expected = [one["involvedObject"]["name"] for one in evicted]
    alone = node_state(run, setup)
    working_set = sum(one.working_set_bytes for one in alone.containers)
    now = alone.capacity_bytes - meminfo(run)["MemAvailable"] - working_set
    available = re.search(r"available: (\d+)Ki", evicted[-1]["message"])
    assert available is not None
    left = sum(
        one.working_set_bytes for one in alone.containers if alone.pod_for(one).pod.name not in expected[:-1]
    )
    then = alone.capacity_bytes - left - (int(available[1]) << 10)
    before = node_state(run, setup, own_bytes=now)
    found = simulate(before, Scenario(growth=(ContainerGrowth(None, then),), eviction=True))
    assert [step.key[1] for step in found.steps] == expected
    assert found.steps[-1].refused == (("default", "ev-crit"),)
    assert found.refused == (("default", "ev-crit"),)
    assert "cannot evict a critical pod" in run["kubelet_log"]
    assert {step.mechanism for step in found.steps} == {"kubelet eviction"}


LIMIT_RUNS = pytest.mark.parametrize("name", ["memcg-oomgroup", "memcg-singleprocess"])


@LIMIT_RUNS
def test_limits_of_pods_and_containers(name: str) -> None:
    """Each pod that grew past its limit lost the container that it lost, to the same cgroup's limit.

    One pod at a time: the pods started one after the other and grew at paces of their own, which no state
    tells, so their order among each other is not simulated. The kernel named the pod's cgroup each time,
    where the pause container counts too, and never the container's, whose limit was the same. Of m-tmpfs the
    kill freed less than is simulated: files in memory stay until the pod goes.
    """
    run = recorded(f"oom-{name}")
    setup = setup_of(run, "", single_process=name == "memcg-singleprocess")
    happened = killed(run)
    assert len(set(happened)) == 6
    for pod_name, container in dict.fromkeys(happened):
        raw = run["pods_after"][pod_name]
        pod = pod_of({**raw, "status": {"phase": "Running"}}, setup)
        usage = PodUsage(
            tuple(one.name for one in pod.containers),
            tuple(30 * MIB if one.name == "b" else 16 * MIB for one in pod.containers),
        )
        before = build_node_state([pod], setup, {(pod.namespace, pod.name): usage})
        growing = before.find_container(pod_name, container)
        found = simulate(before, Scenario(growth=(ContainerGrowth(growing, 300 * MIB),)))
        assert [(step.mechanism, *step.key[1:], step.container) for step in found.steps] == [
            ("pod limit", pod_name, container)
        ]
        assert before.pods[0].limit_bytes // 4096 * 4096 in memory_limits(run, pod_name)
    domains = {line.partition("oom_memcg=")[2].partition(",")[0] for line in run["kill_lines"]}
    assert all("pod" in domain and "cri-containerd" not in domain for domain in domains - {""})


def memory_limits(run: Json, pod_name: str) -> set[int]:
    """The memory.max of a pod's cgroup in the snapshots, or what its spec says where it had gone already."""
    found = {
        int(snapshot[pod_name]["levels"]["pod"]["memory.max"])
        for snapshot in run["before"]["snapshots"]
        if snapshot[pod_name]["levels"].get("pod")
    }
    return found or {64 * MIB}


@LIMIT_RUNS
def test_whether_a_container_dies_whole(name: str) -> None:
    """The shell next to the process that grew died with it, or did not."""
    run = recorded(f"oom-{name}")
    single = name == "memcg-singleprocess"
    setup = setup_of(run, "", single_process=single)
    pod = pod_of(run["pods_after"]["m-group"], setup)
    before = build_node_state([pod], setup, {})
    shells = [line for line in run["kill_lines"] if "(sh)" in line]
    assert before.has_oom_group is bool(shells)
    assert bool(shells) is not single

"""Kills of which only events are left: of a node, or by controllers about a pod."""

from itertools import product
from typing import Any

import pytest

from kubectl_qos.k8s.events import Event, EventList
from kubectl_qos.k8s.objects import NodeObject, Pod, convert
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present.kills import detail_lines
from kubectl_qos.qos.killers import Mechanism
from kubectl_qos.qos.kills.analyze import Kill, find_kills
from kubectl_qos.qos.kills.evidence import Need
from kubectl_qos.qos.reason import Confidence

AT = "2026-11-20T12:00:00Z"
OOM_KILLING = (
    "Memory cgroup out of memory: Killed process 350 (kubectl) total-vm:753508kB, anon-rss:58776kB,"
    " file-rss:29400kB, shmem-rss:0kB, UID:0 pgtables:288kB oom_score_adj:999"
)
SYSTEM_OOM = "System OOM encountered, victim process: crunch, pid: 77"


def node_event(reason: str, message: str, at: str = AT, count: int = 1) -> Event:
    what = {"reason": reason, "message": message, "lastTimestamp": at, "count": count}
    return convert({"involvedObject": {"kind": "Node", "name": "n1"}, **what}, Event)


def pod(name: str, container: str = "c", **status: Any) -> Pod:
    raw = {"name": name, "namespace": "batch", "uid": f"uid-{name}"}
    return convert(
        {"metadata": raw, "spec": {"nodeName": "n1", "containers": [{"name": container}]}, "status": status},
        Pod,
    )


def kills_of(*events: Event, pods: tuple[Pod, ...] = (), **options: Any) -> list[Kill]:
    return find_kills(Snapshot(pods=pods), EventList(events), **options)


def text_of(kill: Kill) -> str:
    return " ".join(" ".join(detail_lines(kill)).split())


def test_the_event_of_node_problem_detector_alone() -> None:
    (kill,) = kills_of(node_event("OOMKilling", OOM_KILLING))
    assert (kill.diagnosis.mechanism, kill.diagnosis.confidence) == (
        Mechanism.MEMORY_LIMIT,
        Confidence.CERTAIN,
    )
    assert (kill.node, kill.time, kill.freed_bytes) == ("n1", AT, (58776 + 29400) << 10)
    assert kill.diagnosis.needs is Need.KERNEL_LOG
    text = text_of(kill)
    assert "at a memory limit; the event does not say which" in text
    assert "to identify its pod: the kernel log of n1: " in text
    assert "to be certain" not in text, "it is"
    assert "the victim was kubectl, process 350, uid 0, oom_score_adj 999, 86.1Mi in memory" in text
    assert "oom_score_adj 999 means a Burstable pod that requests less than 0.2 % of its node's" in text
    assert "only part of" not in text


def test_a_system_oom_is_of_the_container_that_is_called_so() -> None:
    event = node_event("SystemOOM", SYSTEM_OOM)
    (alone,) = kills_of(event)
    assert (alone.diagnosis.mechanism, alone.diagnosis.confidence) == ("node", Confidence.LIKELY)
    assert "kubelet before 1.21, which this may be, also reports SystemOOM" in text_of(alone)
    for match in (pod("crunch"), pod("x", "crunch")):
        (kill,) = kills_of(event, pods=(match, pod("other")))
        assert (kill.pod, kill.container) == (match.name, match.containers[0].name)
        assert kill.diagnosis.confidence is Confidence.POSSIBLE
        assert "is called crunch" in text_of(kill)
    (several,) = kills_of(event, pods=(pod("crunch"), pod("x", "crunch")))
    assert several.pod == ""


@pytest.mark.parametrize("service", ["containerd", "kubelet", "k3s-server"])
def test_a_system_oom_of_a_service_of_the_node_needs_no_pod(service: str) -> None:
    event = node_event("SystemOOM", SYSTEM_OOM.replace("crunch", service))
    for pods in ((), (pod(service),)):
        (kill,) = kills_of(event, pods=pods)
        assert (kill.diagnosis.mechanism, kill.diagnosis.needs, kill.pod) == ("node", None, "")
        text = text_of(kill)
        assert f"{service} is a service of the node, no container" in text
        assert "kubeReserved and systemReserved keep memory for these" in text


@pytest.mark.parametrize("listed", [(), (pod("api-1"),)])
def test_the_event_of_a_refused_pod(listed: tuple[Pod, ...]) -> None:
    said = "Node didn't have enough resource: memory, requested: 4294967296, used: 1, capacity: 4294967297"
    involved = {"kind": "Pod", "name": "api-1", "namespace": "batch"}
    what = {"involvedObject": involved, "reason": "OutOfmemory", "message": said, "lastTimestamp": AT}
    (kill,) = kills_of(convert(what, Event), pods=listed)
    assert (kill.pod, kill.time, kill.diagnosis.mechanism) == ("api-1", AT, Mechanism.REJECTION)
    assert "this compares requests, not usage" in text_of(kill)


@pytest.mark.parametrize(
    ("version", "kernel", "mechanism"),
    [
        ("v1.20.4", "5.4.0-77", Mechanism.KERNEL),
        ("v1.20.4", "", Mechanism.KERNEL),
        ("v1.20.4", "4.19.1", "node"),
        ("v1.21.0", "5.4.0-77", "node"),
    ],
)
def test_a_kubelet_that_takes_a_limit_for_the_node(version: str, kernel: str, mechanism: str) -> None:
    """Before 1.21 its cAdvisor does not find the cgroup in the words of kernels from 5.0 on."""
    info = {"kubeletVersion": version, "kernelVersion": kernel}
    node = convert({"metadata": {"name": "n1"}, "status": {"nodeInfo": info}}, NodeObject)
    events = EventList((node_event("SystemOOM", SYSTEM_OOM),))
    (kill,) = find_kills(Snapshot(nodes={"n1": node}), events)
    assert (kill.diagnosis.mechanism, kill.diagnosis.confidence) == (mechanism, Confidence.CERTAIN)
    doubt = "kubelet 1.20 also reports SystemOOM for kills at a limit, on kernels from 5.0 on"
    assert (doubt in text_of(kill)) == (mechanism is Mechanism.KERNEL)


@pytest.mark.parametrize(
    ("reason", "message", "container"),
    [
        (
            "PreviousContainerWasOOMKilled",
            "The previous instance of the container 'web' (x) was OOMKilled",
            "web",
        ),
        ("PodOOMKilling", "pod was OOM killed. node:n1 pod:web-0 namespace:batch uuid:u", ""),
        ("CgroupOOM", "Cgroup OOM encountered, victim process: stress, pid: 470521", ""),
    ],
)
def test_a_controller_says_that_the_kernel_killed_in_a_pod(reason: str, message: str, container: str) -> None:
    what = {"reason": reason, "message": message, "lastTimestamp": AT}
    involved = {"kind": "Pod", "name": "web-0", "namespace": "batch", "uid": "uid-web-0"}
    event = convert({"involvedObject": involved, **what}, Event)
    of_node = [node_event(reason, f"{message}id-web-0")] if "node:" in message else []
    for said, pods in product((event, *of_node), ((), (pod("web-0"),))):
        (kill,) = kills_of(said, pods=pods)
        assert (kill.pod, kill.container, kill.time) == ("web-0", container, AT)
        mechanism = Mechanism.MEMORY_LIMIT if reason == "CgroupOOM" else Mechanism.KERNEL
        assert (kill.diagnosis.mechanism, kill.diagnosis.confidence) == (mechanism, Confidence.LIKELY)
        assert ("at a memory limit; the event does not say which" in text_of(kill)) is (reason == "CgroupOOM")
        assert f"event {reason} of Pod/web-0: {message}" in text_of(kill)
    end = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": AT}
    died = pod("web-0", containerStatuses=[{"name": "c", "lastState": {"terminated": end}}])
    assert len(kills_of(event, pods=(died,))) == 1


@pytest.mark.parametrize(("finished", "count"), [("2026-11-20T11:59:55Z", 1), ("2026-11-20T11:30:00Z", 2)])
def test_a_death_of_that_time_is_the_one_that_the_event_reports(finished: str, count: int) -> None:
    end = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": finished}
    died = pod("web", containerStatuses=[{"name": "c", "lastState": {"terminated": end}}])
    assert len(kills_of(node_event("OOMKilling", OOM_KILLING), pods=(died,))) == count
    assert len(kills_of(node_event("OOMKilling", OOM_KILLING), pods=(died,), outside_pods=False)) == 1


def test_the_processes_of_a_group_are_one_death_whose_victim_the_event_names() -> None:
    end = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": AT}
    died = pod("web", containerStatuses=[{"name": "c", "lastState": {"terminated": end}}])
    other = OOM_KILLING.replace("350", "351")
    (kill,) = kills_of(node_event("OOMKilling", OOM_KILLING), node_event("OOMKilling", other), pods=(died,))
    assert "the process kubectl, oom_score_adj 999, but this container has 1000: the process set" in text_of(
        kill
    )
    fitting = OOM_KILLING.replace("999", "1000")
    (kill,) = kills_of(node_event("OOMKilling", fitting), pods=(died,))
    assert "the process kubectl, oom_score_adj 1000, which fits this container" in text_of(kill)


def test_a_kubelet_that_starts_again_reports_no_second_death() -> None:
    """It reads the kernel's log since boot once more; after a reboot a process may have the same number."""
    later = "2026-11-20T12:05:00Z", "2026-11-20T12:10:00Z"
    repeated = [node_event("SystemOOM", SYSTEM_OOM, at) for at in (later[1], AT, later[0])]
    assert [kill.time for kill in kills_of(*repeated)] == [AT]
    rebooted = node_event("Rebooted", "Node n1 has been rebooted, boot id: 7", later[0])
    assert [kill.time for kill in kills_of(*repeated[:2], rebooted)] == [later[1], AT]


def test_other_forms_of_the_message() -> None:
    """Of old kernels in two lines, of old kubelets without the process, of several events sent as one."""
    old = "Memory cgroup out of memory: Kill process 25 (hyperkube) score 1109 or sacrifice child"
    second = "\nKilled process 25 (hyperkube) total-vm:812200kB, anon-rss:204100kB, file-rss:0kB"
    (kill,) = kills_of(node_event("OOMKilling", old + second))
    assert (kill.freed_bytes, "the kernel chose" in text_of(kill)) == (204100 << 10, False)
    (kill,) = kills_of(node_event("PodOOMKilling", old))
    assert kill.diagnosis.mechanism is Mechanism.MEMORY_LIMIT
    assert "the kernel chose hyperkube, process 25" in text_of(kill)
    (kill,) = kills_of(node_event("SystemOOM", "System OOM encountered"))
    assert (kill.diagnosis.mechanism, kill.report.victim if kill.report else 0) == ("node", None)
    similar = f"(combined from similar events): {SYSTEM_OOM}"
    (kill,) = kills_of(node_event("SystemOOM", similar, count=3))
    assert "event SystemOOM of Node/n1, 3 times: (combined" in text_of(kill)
    assert "the victim was crunch, process 77" in text_of(kill)


@pytest.mark.parametrize("event", [("OOMKilling", "TaskHung"), ("SystemOOM", "x"), ("Rebooted", SYSTEM_OOM)])
def test_what_names_no_process(event: tuple[str, str]) -> None:
    assert not kills_of(node_event(*event))

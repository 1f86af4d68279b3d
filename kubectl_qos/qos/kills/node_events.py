"""Kills that only node events report: SystemOOM of the kubelet, OOMKilling of node-problem-detector.

Sources: pkg/kubelet/oom/oom_watcher_linux.go, node-problem-detector's config/kernel-monitor.json. Not here:
node events as evidence of a container's death (evidence.py).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from msgspec import structs

from kubectl_qos.k8s.events import OOM_KILLING, Event, without_repeats
from kubectl_qos.k8s.kinds import find_workload
from kubectl_qos.k8s.objects import Pod, all_containers
from kubectl_qos.qos.kills.report import Constraint, Killed, OomReport
from kubectl_qos.qos.logs.oom_lines import ReportBuilder
from kubectl_qos.qos.logs.record import LogRecord

_VICTIM: Final = re.compile(
    r"System OOM encountered(?:, victim process: (?P<comm>.{0,64}), pid: (?P<pid>\d{1,10})|$)"
)
"""Kubelets before 1.15 do not name the process."""
_OF_KERNEL: Final = re.compile(r"(?:Memory cgroup out|Out) of memory: Kill(?:ed)? process (?P<pid>\d{1,10})")
SERVICES: Final = frozenset(
    {"containerd", "crio", "dockerd", "k3s-agent", "k3s-server", "kubelet", "kubelite", "systemd-journal"}
)
"""Processes that run on the node itself."""
_OF_POD: Final = re.compile(r"\bpod:(\S+) namespace:(\S+)(?: uuid:(\S+))?")
"""How the node-problem-detector of Alibaba Cloud (ACK) names the pod of an event of its node."""
_LONGEST_NAME: Final = 15
"""Maximum length of a process name; longer names are truncated."""


def without_second_hand(events: Iterable[Event]) -> tuple[Event, ...]:
    """Drop a kubelet's SystemOOM if another event quotes the kernel about the same process.

    An old kubelet takes a newer kernel's message about a limit for one about a full node. An event of a node
    that names a pod becomes one of the pod.
    """
    events = tuple(map(_of_pod, events))
    kernels = {_node_and_pid(event, _OF_KERNEL) for event in events if event.reason in OOM_KILLING}
    kernels -= {None}
    return tuple(
        event
        for event in events
        if event.reason != "SystemOOM" or _node_and_pid(event, _VICTIM) not in kernels
    )


def _of_pod(event: Event) -> Event:
    match = _OF_POD.search(event.message) if event.reason in OOM_KILLING and event.is_of_node else None
    if match is None:
        return event
    pod = {"kind": "Pod", "name": match[1], "namespace": match[2], "uid": match[3] or ""}
    return structs.replace(event, involved_object=structs.replace(event.involved_object, **pod))


def _node_and_pid(event: Event, form: re.Pattern[str]) -> tuple[str, str] | None:
    match = form.search(event.own_message)
    return (event.involved_object.name, match["pid"]) if match is not None and match["pid"] else None


def event_reports(events: Iterable[Event]) -> Iterator[tuple[Event, OomReport]]:
    """Yield node events about kills, each with the kernel's report as far as it quotes it."""
    for event in without_repeats(events):
        first, *others = event.own_message.split("\n")
        record = LogRecord(first, time=event.last, node=event.involved_object.name)
        builder = ReportBuilder.begin(record) if event.reason in OOM_KILLING else None
        victim = _VICTIM.match(first) if event.reason == "SystemOOM" else None
        if event.is_of_node and builder is not None:
            for message in others:
                builder.add_line(structs.replace(record, message=message.strip()))
            yield event, replace(builder.report(is_filtered=True), incomplete=False)
        elif event.is_of_node and victim is not None:
            killed = (Killed(int(victim["pid"]), victim["comm"]),) if victim["pid"] else ()
            yield event, OomReport(record.time, node=record.node, constraint=Constraint.NONE, victims=killed)


def container_by_name(pods: Iterable[Pod], process: str) -> tuple[Pod, str] | None:
    """Return the container that has the name of a process, or whose workload has it; None if several do."""
    matching = [
        (pod, container.name)
        for pod in pods
        for container in all_containers(pod)
        if process in {container.name[:_LONGEST_NAME], find_workload(pod).name[:_LONGEST_NAME]}
    ]
    return matching[0] if len(matching) == 1 else None

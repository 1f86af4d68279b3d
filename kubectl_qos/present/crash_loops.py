"""Containers that restart at a memory limit in words: what their statuses and samples do not show."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from kubectl_qos.edit.fixes import limit_in_force, was_killed_since_resize
from kubectl_qos.k8s.objects import ContainerStatus, Pod
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.present.format import count, escape, first_few, full_name, in_mi
from kubectl_qos.qos.kills.evidence import SIGKILLED
from kubectl_qos.qos.restart import oom_loops, refused_start

SUPERVISOR: Final = (
    "a supervisor, such as a shell, ends by itself when its child is OOM killed, and no status shows that;"
    " the node's kernel log does (kubectl qos kills --kernel-log), and so does oom_kill in memory.events of"
    " the pod's cgroup; samples of usage, many seconds apart, miss its peak"
)
_MOST: Final = 5
"""A cluster may have hundreds of them."""
_MISSED: Final = 0.9
"""Samples below this part of a limit at which the container was killed have missed its peak."""


def hidden_kill(pod: Pod, status: ContainerStatus, release: Release) -> str:
    """Say that the end of a container that restarts at a limit can hide an OOM kill, else return ""."""
    limit, ends = limit_in_force(pod, status.name, release), status.ends
    is_failing = bool(status.restart_count and limit and ends and ends[0].exit_code)
    if not is_failing or status.was_oom_killed or ends[0].exit_code == SIGKILLED:
        return ""
    code = ends[0].exit_code
    return f"exit code {code} does not rule out an OOM kill at its limit of {in_mi(limit)}: {SUPERVISOR}"


def hidden_note(snapshot: Snapshot, pods: Iterable[Pod]) -> Iterator[str]:
    """Which pods may have been OOM killed without a sign in their status."""
    names = [
        f"{full_name(pod.namespace, pod.name)}:{escape(status.name)}"
        for pod in pods
        for status in pod.status.every_container
        if hidden_kill(pod, status, snapshot.setup(pod.node_name).release)
    ]
    if names:
        yield f"{first_few(names)} restart at a memory limit and show no OOM kill: {SUPERVISOR}"


def missed_peak(pod: Pod, name: str, usage: PodUsage | None, release: Release) -> str:
    """Say that samples of a running container miss a peak: it was OOMKilled at this limit; else return ""."""
    limit, used = limit_in_force(pod, name, release), usage.of(name) if usage is not None else None
    status = next((status for status in pod.status.every_container if status.name == name), None)
    if status is None or used is None or not limit or not status.has_processes:
        return ""
    share = used.working_set_bytes / limit
    if share >= _MISSED or not was_killed_since_resize(pod, name):
        return ""
    times = count(status.restart_count, "restart")
    return (
        f"{share:.0%} of its limit measured, and OOMKilled ({times}): samples miss peaks between two of them"
    )


def loop_notes(
    pods: Iterable[Pod], usage: Mapping[PodKey, PodUsage], release_of: Mapping[str, Release]
) -> Iterator[str]:
    """The containers with a limit that wait for their next start, and those whose samples miss a peak."""
    notes = (
        f"{full_name(pod.namespace, pod.name)}:{escape(status.name)} {text}"
        for pod in pods
        if not pod.is_terminal and pod.node_name in release_of
        for status in pod.status.every_container
        if (text := _loop_text(pod, status, usage, release_of[pod.node_name]))
    )
    yield from islice(notes, _MOST)
    more = sum(1 for _ in notes)
    if more:
        yield f"{count(more, 'more container')} like these: kubectl qos explain POD tells"


def _loop_text(pod: Pod, status: ContainerStatus, usage: Mapping[PodKey, PodUsage], release: Release) -> str:
    waiting = status.state.waiting if status.state is not None else None
    limit = limit_in_force(pod, status.name, release)
    if not limit or waiting is None or not (status.restart_count or refused_start(status)):
        peak = missed_peak(pod, status.name, usage.get((pod.namespace, pod.name)), release)
        return f"used {peak}" if peak else ""
    restarts = count(status.restart_count, "restart")
    waits = f"waits in {escape(waiting.reason)} ({restarts}): no process to rank"
    if refused_start(status):
        return f"{waits}; the runtime could not start it with a limit of {in_mi(limit)}: kubectl qos fix"
    if status.name in {loop.container for loop in oom_loops(pod)}:
        return f"{waits}; it was OOMKilled, and starts again with a limit of {in_mi(limit)}"
    hidden = hidden_kill(pod, status, release)
    return f"{waits}; {hidden}" if hidden else waits

"""Sentences about containers that restart with a memory limit, or whose end may hide an OOM kill."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from kubectl_qos.errors import first_few
from kubectl_qos.k8s.allocation import low_pod_limit
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import ContainerStatus, Pod
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import PodKey, PodUsage, usage_of_runs
from kubectl_qos.present.format import binary, count, escape, full_name
from kubectl_qos.qos import restart

HIDDEN_KILL_TEXT: Final = (
    "if a child process is OOM killed, its parent (a shell, for example) may exit by itself, and no status"
    " shows the kill. The node's kernel log does (kubectl qos kills --kernel-log), and so does oom_kill in"
    " memory.events of the pod's cgroup. Usage samples may miss the peak"
)
_UNLIMITED: Final = (
    "the node, or all pods together, ran out. A memory request lowers its oom_score_adj: kubectl qos fix"
)
_MOST_CONTAINERS: Final = 5
"""How many containers are listed: a cluster may have hundreds."""


def hidden_kill(pod: Pod, status: ContainerStatus, usage: PodUsage | None, release: Release) -> str:
    """Say that the end of a container that restarts with a limit can hide an OOM kill, else return ""."""
    if not (limit := restart.limit_with_hidden_kill(pod, status, usage, release)):
        return ""
    code = status.ends[0].exit_code
    return (
        f"exit code {code} does not rule out an OOM kill at its limit of {binary(limit)}: {HIDDEN_KILL_TEXT}"
    )


def hidden_note(snapshot: Snapshot, pods: Iterable[Pod]) -> Iterator[str]:
    """Yield a note on pods that may have been OOM killed without a sign in their status."""
    names = [
        full_name(*pod.key, status.name)
        for pod in pods
        for status in pod.status.every_container
        # The setup of a node takes half a millisecond to build.
        if restart.may_hide_kill(status)
        and restart.limit_with_hidden_kill(
            pod, status, snapshot.usage_of(pod), snapshot.setup(pod.node_name).release
        )
    ]
    if names:
        s = "s" if len(names) == 1 else ""
        yield f"{first_few(names)} restart{s} with a memory limit and show{s} no OOM kill: {HIDDEN_KILL_TEXT}"


def peak_text(pod: Pod, status: ContainerStatus, usage: PodUsage | None, setup: NodeSetup) -> str:
    """Say that usage samples missed the peak: the container was OOMKilled at its current limit; else ""."""
    share = restart.missed_peak(pod, status, usage, setup)
    if share is None:
        return ""
    times = count(status.restart_count, "restart")
    return f"{share:.0%} of its limit when sampled, although OOMKilled ({times}): sampling misses peaks"


def loop_notes(
    pods: Iterable[Pod], usage: Mapping[PodKey, PodUsage], setup_of: Mapping[str, NodeSetup]
) -> Iterator[str]:
    """Yield the containers with a limit that wait for their next start, and those with a missed peak."""
    notes = (
        f"{full_name(*pod.key)}:{text}"
        for pod in pods
        if pod.node_name in setup_of
        for text in loop_texts(pod, usage, setup_of[pod.node_name])
    )
    yield from islice(notes, _MOST_CONTAINERS)
    more = sum(1 for _ in notes)
    if more:
        yield f"{count(more, 'more container')} like these: see kubectl qos explain POD"


def loop_texts(pod: Pod, usage: Mapping[PodKey, PodUsage], setup: NodeSetup) -> Iterator[str]:
    """Yield the containers of a pod that wait for their next start, and those with a missed peak."""
    for status in () if pod.is_terminal else pod.status.every_container:
        text = _loop_text(pod, status, usage, setup)
        if text:
            yield f"{escape(status.name)} {text}"


def _loop_text(pod: Pod, status: ContainerStatus, usage: Mapping[PodKey, PodUsage], setup: NodeSetup) -> str:
    limit = restart.limit_in_loop(pod, status, setup.release)
    waiting = status.state and status.state.waiting
    restarts = count(status.restart_count, "restart")
    used = usage_of_runs(pod, usage.get(pod.key))
    if killed := restart.limit_that_killed(pod, status, used, setup):
        text = f"was OOMKilled ({restarts}), and runs again with a limit of {binary(killed)}"
        # That has no fix; other notes say what to do.
        return text if low_pod_limit(pod) is not None else f"{text}: kubectl qos fix"
    if not limit:
        peak = peak_text(pod, status, used, setup)
        # Without its containers, the limits of a pod are unknown.
        has_no_limit = bool(pod.containers) and not restart.stated_limit(pod, status.name)
        is_unlimited = status.was_oom_killed and has_no_limit
        unlimited = f"was OOMKilled ({restarts}) without a memory limit: {_UNLIMITED}" if is_unlimited else ""
        return f"used {peak}" if peak else unlimited
    now = f"waits in {escape(waiting.reason)}" if waiting else "has ended"
    waits = f"{now} ({restarts}): no process to rank"
    if restart.is_refused(pod, status.name):
        return f"{waits}; the runtime could not start it with a limit of {binary(limit)}: kubectl qos fix"
    if status.name in {loop.container for loop in restart.oom_loops(pod)}:
        volume = f"; {volume_sentence(pod.memory_volumes)}" if pod.memory_volumes else ""
        return f"{waits}; it was OOMKilled, and starts again with a limit of {binary(limit)}{volume}"
    hidden = hidden_kill(pod, status, None, setup.release)
    return f"{waits}; {hidden}" if hidden else waits


def volume_sentence(volumes: Collection[str]) -> str:
    """Say that volumes in memory outlive a container that is killed at its limit, and what empties them."""
    return (
        f"files in the volume {escape(', '.join(volumes))} are memory: they count toward that limit, and"
        " survive a restart of the container. If they fill the limit, delete the pod; a sizeLimit prevents"
        " that"
    )

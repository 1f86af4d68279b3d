"""What the kubelet does with a killed container, and which containers are killed again and again.

Limits too small for any start: runc's libcontainer/process_linux.go and cgroups' fs/memory.go (EBUSY of
cgroup v1), crun's src/libcrun/container.c, CRI-O's server/container_create_linux.go, moby's
daemon/daemon_unix.go.
"""

import re
from collections.abc import Collection
from datetime import timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from kubectl_qos.k8s.allocation import limit_in_force
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import (
    LEAST_MEMORY,
    MEMORY,
    Container,
    ContainerStateTerminated,
    ContainerStatus,
    Pod,
    all_containers,
)
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.releases import Gate, Release
from kubectl_qos.k8s.resources import resources_of_pod
from kubectl_qos.k8s.usage import PodUsage
from kubectl_qos.qos.ranking import ContainerKind

_SIGKILLED: Final = 137
_SIGNAL_CODES: Final = 128
"""A shell exits with this plus the number of the signal that ended its child."""
_NEAR: Final = 0.5
"""A container that uses less than this share of its limit was rarely killed there before."""
_MISSED: Final = 0.9
"""If a container was killed at a limit but samples stay below this share of it, they missed the peak."""
LOOP_RESTARTS: Final = 3
"""A container that was OOMKilled and restarted this often is killed again and again."""
_SAME_KILL: Final = timedelta(seconds=10)
"""A SystemOOM event and the end of its victim's container are at most this far apart."""


class Restart(StrEnum):
    """What happens to a killed container."""

    NONE = "is not restarted"
    CONTAINER = "restarts"
    POD = "makes all containers of its pod restart"


def restart_after_kill(pod: Pod, container: Container, kind: ContainerKind, release: Release) -> Restart:
    """Return what restarts after a SIGKILL (exit code 137): rules, the container's policy, the pod's policy.

    Sources: pkg/api/v1/pod/util.go (ContainerShouldRestart, findMatchingContainerRestartRule), KEP-5307 and
    KEP-5532. An absent policy is Always; rules need a policy. Ephemeral containers do not restart.
    """
    if kind is ContainerKind.EPHEMERAL:
        return Restart.NONE
    has_rules = release.enabled(Gate.CONTAINER_RESTART_RULES)
    own = container.restart_policy if has_rules or kind is ContainerKind.SIDECAR else None
    rules = (container.restart_policy_rules or ()) if has_rules and own else ()
    action = next((rule.action for rule in rules if rule.matches(_SIGKILLED)), "")
    if action == "RestartAllContainers" and release.enabled(Gate.RESTART_ALL_CONTAINERS):
        return Restart.POD
    stays_dead = (own or pod.spec.restart_policy) == "Never"
    return Restart.NONE if stays_dead and action != "Restart" else Restart.CONTAINER


OOM_AT_START: Final = re.compile(
    r"container init was OOM-killed(?: \(memory limit too low\?\))?"
    r"|(?:OOM: )?the memory limit could be too low"
    r"|memory\.(?:memsw\.)?limit_in_bytes: device or resource busy"
    r"|unable to set memory limit to \d+(?: \(current usage: \d+, peak usage: \d+\))?"
    r"|set memory limit \d+ too low; should be at ?least \d+|[Mm]inimum memory limit allowed is \w+"
)
FIRST_PROCESS_GONE: Final = re.compile(
    r"(?:read|write) init-p: (?:connection reset by peer|broken pipe)|signal: (?:killed|broken pipe)"
    r"|final child's pid from pipe\W*(?:caused\W*)?EOF|waiting for init preliminary setup\W*(?:caused\W*)?EOF"
    r"|cannot start a (?:container that has stopped|stopped process)|procReady not received"
    r"|runc did not terminate suc+ess?fully",
    re.IGNORECASE,
)
"""Messages of runc when its first process is gone, out of memory or not: libcontainer/process_linux.go."""
ENOUGH_TO_START: Final = 32 << 20
"""A memory limit with which any runtime starts a container."""


def oom_at_start(message: str, limit: int = 0) -> str:
    """Return the part of a message that says that the memory limit is too small for a start, or "".

    With a `limit` of at most ENOUGH_TO_START bytes, messages about a lost first process count too.
    """
    match = OOM_AT_START.search(message)
    if match is None and 0 < limit <= ENOUGH_TO_START:
        match = FIRST_PROCESS_GONE.search(message)
    return match[0] if match is not None else ""


def stated_limit(pod: Pod, container: str) -> int:
    """Return the memory limit in bytes of a container, else of its pod, rounded up; 0 without any."""
    limits = [spec.limits.get(MEMORY) for spec in all_containers(pod) if spec.name == container]
    limits.append(resources_of_pod(pod, "limits").get(MEMORY))
    stated = [limit for limit in limits if limit is not None]
    return stated[0].value() if stated else 0


class OomLoop(NamedTuple):
    """A container that waits to restart; `reason` is its waiting reason or "".

    It was OOMKilled, or a runtime could not start it within its memory limit (`never_ran`).
    """

    container: str
    restarts: int
    reason: str
    never_ran: bool


def oom_loops(pod: Pod) -> tuple[OomLoop, ...]:
    """Return the containers that wait to restart because of their memory limit; ephemeral ones never do."""
    restarted = (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))
    loops = []
    for status in () if pod.is_terminal else restarted:
        waiting = status.state.waiting if status.state is not None else None
        if status.has_processes or (waiting is None and pod.spec.restart_policy == "Never"):
            continue
        never_ran = is_refused(pod, status.name)
        if never_ran or (status.ends and status.ends[0].reason == "OOMKilled"):
            reason = waiting.reason if waiting is not None else ""
            loops.append(OomLoop(status.name, status.restart_count, reason, never_ran))
    return tuple(loops)


def is_refused(pod: Pod, container: str) -> bool:
    """Return whether the memory limit is too small for a start: a few bytes, or a runtime said so."""
    statuses = stopped_statuses(pod, container)
    limit = stated_limit(pod, container) if statuses else 0
    for status in statuses:
        waiting = status.state.waiting if status.state is not None else None
        messages = [waiting.message if waiting is not None else "", *(end.message for end in status.ends[:1])]
        is_too_small = 0 < limit < LEAST_MEMORY and not status.has_processes
        if is_too_small or any(oom_at_start(message, limit) for message in messages):
            return True
    return False


def stopped_statuses(pod: Pod, container: str = "") -> list[ContainerStatus]:
    """Return the statuses of containers, or of the named one, that have ended before or do not run."""
    return [
        status
        for status in pod.status.every_container
        if container in {"", status.name}
        and (not status.has_processes or (status.last_state is not None and status.last_state.terminated))
    ]


def was_killed_since_resize(pod: Pod, container: str, full_at: Collection[str]) -> bool:
    """Return whether the container was OOMKilled at its present limit: since the last resize.

    At the times of `full_at` the kernel killed because the whole node was out of memory.
    """
    stopped = stopped_statuses(pod, container)
    if stopped and is_refused(pod, container):
        return True
    ends = [end for status in stopped for end in status.ends if end.reason == "OOMKilled"]
    return any(
        (end.finished_at or "") >= pod.metadata.resized_at and not _is_at(end, full_at) for end in ends
    )


def _is_at(end: ContainerStateTerminated, times: Collection[str]) -> bool:
    finished, parsed = parse_time(end.finished_at), filter(None, map(parse_time, times))
    return finished is not None and any(abs(finished - time) <= _SAME_KILL for time in parsed)


def may_be_killed_again(pod: Pod, container: str, sampled_at: str, full_at: Collection[str]) -> bool:
    """Return whether the last run was OOMKilled at this limit, and this run is not yet known to last longer.

    The present run of a container is as old as the end of the previous one.
    """
    stopped = stopped_statuses(pod, container)
    if not stopped:
        return False
    if is_refused(pod, container):
        return True
    return was_killed_since_resize(pod, container, full_at) and any(
        status.ends[0].reason == "OOMKilled" and not _has_outlived(status, sampled_at)
        for status in stopped
        if status.ends
    )


def _has_outlived(status: ContainerStatus, sampled_at: str) -> bool:
    end, sampled = status.ends[0], parse_time(sampled_at)
    started, finished = parse_time(end.started_at), parse_time(end.finished_at)
    if not status.has_processes or started is None or finished is None or sampled is None:
        return False
    return sampled - finished > finished - started


def limit_in_loop(pod: Pod, status: ContainerStatus, release: Release) -> int:
    """Return the limit in bytes of a container that waits to restart, or was just OOMKilled, else 0."""
    if status.state is not None and status.state.waiting is not None:
        is_again = bool(status.restart_count) or is_refused(pod, status.name)
    else:
        is_again = not status.has_processes and status.name in {loop.container for loop in oom_loops(pod)}
    return limit_in_force(pod, status.name, release) if is_again else 0


def may_hide_kill(status: ContainerStatus) -> bool:
    """Return whether the exit of a restarting container may hide an OOM kill, if it has a limit."""
    code = status.ends[0].exit_code if status.restart_count and status.ends else 0
    return 0 < code < _SIGNAL_CODES and not status.was_oom_killed


def limit_with_hidden_kill(
    pod: Pod, status: ContainerStatus, usage: PodUsage | None, release: Release
) -> int:
    """Return the limit in bytes at which a restarting container's exit may hide an OOM kill, else 0.

    Exit codes of signals hide none.
    """
    if not may_hide_kill(status):
        return 0
    limit = limit_in_force(pod, status.name, release)
    used = usage.of(status.name) if usage is not None and status.has_processes else None
    return 0 if used is not None and used.working_set_bytes < limit * _NEAR else limit


def missed_peak(pod: Pod, status: ContainerStatus, usage: PodUsage | None, setup: NodeSetup) -> float | None:
    """Return the sampled share of a limit that killed the container, if samples missed the peak."""
    used = usage.of(status.name) if usage is not None else None
    if used is None or not status.ends or not status.has_processes:
        return None
    limit = limit_in_force(pod, status.name, setup.release)
    share = used.working_set_bytes / limit if limit else 1.0
    return (
        share if share < _MISSED and was_killed_since_resize(pod, status.name, setup.node.full_at) else None
    )


def limit_that_killed(pod: Pod, status: ContainerStatus, usage: PodUsage | None, setup: NodeSetup) -> int:
    """Return the limit in bytes that OOMKilled a running container of unknown usage, else 0."""
    is_measured = usage is not None and usage.of(status.name) is not None
    killed = (
        status.has_processes
        and not is_measured
        and was_killed_since_resize(pod, status.name, setup.node.full_at)
    )
    return limit_in_force(pod, status.name, setup.release) if killed else 0

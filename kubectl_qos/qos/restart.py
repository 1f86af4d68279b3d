"""What the kubelet does with a container that was killed, and which ones are killed again and again.

Limits in which nothing starts: runc's libcontainer/process_linux.go and cgroups' fs/memory.go (EBUSY of
cgroup v1), crun's src/libcrun/container.c, CRI-O's server/container_create_linux.go, moby's
daemon/daemon_unix.go.
"""

import re
from enum import StrEnum
from typing import Final, NamedTuple

from kubectl_qos.k8s.objects import LEAST_MEMORY, MEMORY, Container, ContainerStatus, Pod, all_containers
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.releases import Gate, Release
from kubectl_qos.k8s.resources import resources_of_pod
from kubectl_qos.qos.ranking import ContainerKind

_SIGKILLED: Final = 137


class Restart(StrEnum):
    """What happens to the container."""

    NONE = "stays dead"
    CONTAINER = "restarts"
    POD = "makes all containers of its pod restart"


def restart_after_kill(pod: Pod, container: Container, kind: ContainerKind, release: Release) -> Restart:
    """What restarts after a SIGKILL, exit code 137, by a container's rules, its policy, then its pod's.

    Sources: pkg/api/v1/pod/util.go (ContainerShouldRestart, findMatchingContainerRestartRule), KEP-5307 and
    KEP-5532. An absent policy is Always; rules need a policy beside them. Ephemeral containers stay dead.
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
"""What runc says when its first process is gone, for want of memory or not: libcontainer/process_linux.go."""
ENOUGH_TO_START: Final = 32 << 20
"""A memory limit in which any runtime starts a container."""


def oom_at_start(message: str, limit: int = 0) -> str:
    """The words of a runtime for a memory limit in which it could not start a container, else empty.

    With a `limit` of few bytes (at most ENOUGH_TO_START) also those for a first process that is gone.
    """
    match = OOM_AT_START.search(message)
    if match is None and 0 < limit <= ENOUGH_TO_START:
        match = FIRST_PROCESS_GONE.search(message)
    return match[0] if match is not None else ""


def stated_limit(pod: Pod, container: str) -> int:
    """The memory limit in bytes of a container, else of its pod, rounded up; 0 without any."""
    limits = [spec.limits.get(MEMORY) for spec in all_containers(pod) if spec.name == container]
    limits.append(resources_of_pod(pod, "limits").get(MEMORY))
    stated = [limit for limit in limits if limit is not None]
    return stated[0].value() if stated else 0


def refused_start(status: ContainerStatus, limit: int) -> str:
    """The words with which a runtime could not start this container within `limit` bytes, else empty."""
    waiting = status.state.waiting if status.state is not None else None
    messages = [waiting.message if waiting is not None else "", *(end.message for end in status.ends[:1])]
    return next(filter(None, (oom_at_start(message, limit) for message in messages)), "")


class OomLoop(NamedTuple):
    """A container that waits for its next start; `reason` is why, or empty.

    It was OOMKilled, or with `never_ran` a runtime could not start it within its memory limit.
    """

    container: str
    restarts: int
    reason: str
    never_ran: bool


def oom_loops(pod: Pod) -> tuple[OomLoop, ...]:
    """The containers of a pod that do not run now for their memory limit, and will be started again."""
    return tuple(
        OomLoop(status.name, status.restart_count, waiting.reason if waiting is not None else "", never_ran)
        for status in (() if pod.is_terminal else pod.status.every_container)
        if status.state is not None and not status.has_processes
        for waiting in (status.state.waiting,)
        for never_ran in (is_refused(pod, status.name),)
        if never_ran or (status.ends and status.ends[0].reason == "OOMKilled")
        if waiting is not None or pod.spec.restart_policy != "Never"
    )


def is_refused(pod: Pod, container: str) -> bool:
    """Whether no runtime starts the container within its memory limit: one said so, or it is a few bytes."""
    statuses = _stopped(pod, container)
    limit = stated_limit(pod, container) if statuses else 0
    return any(
        bool(refused_start(status, limit)) or (0 < limit < LEAST_MEMORY and not status.has_processes)
        for status in statuses
    )


def _stopped(pod: Pod, container: str) -> list[ContainerStatus]:
    """The statuses of a container that tell of its end; most containers have run without one."""
    return [
        status for status in pod.status.every_container if status.name == container and status.has_stopped
    ]


def was_killed_since_resize(pod: Pod, container: str) -> bool:
    """Whether it was OOMKilled, and not before the last resize: that may have been at another limit."""
    if is_refused(pod, container):
        return True
    ends = [end for status in _stopped(pod, container) for end in status.ends]
    killed = [end.finished_at or "" for end in ends if end.reason == "OOMKilled"]
    return bool(killed) and max(killed) >= pod.metadata.resized_at


def may_be_killed_again(pod: Pod, container: str, sampled_at: str) -> bool:
    """Whether its last run was OOMKilled at this limit, and the present one has not been seen to outlast it.

    Of a container that runs, the present run is as old as the end of the one before.
    """
    stopped = _stopped(pod, container)
    if not stopped:
        return False
    if is_refused(pod, container):
        return True
    statuses = [status for status in stopped if status.ends]
    return (
        bool(statuses)
        and was_killed_since_resize(pod, container)
        and any(
            status.ends[0].reason == "OOMKilled" and not _has_outlived(status, sampled_at)
            for status in statuses
        )
    )


def _has_outlived(status: ContainerStatus, sampled_at: str) -> bool:
    end, sampled = status.ends[0], parse_time(sampled_at)
    started, finished = parse_time(end.started_at), parse_time(end.finished_at)
    if not status.has_processes or started is None or finished is None or sampled is None:
        return False
    return sampled - finished > finished - started

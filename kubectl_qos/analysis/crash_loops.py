"""Containers that restart at a memory limit: what their statuses and samples do not show."""

from typing import Final

from kubectl_qos.edit.fixes import limit_in_force
from kubectl_qos.k8s.objects import ContainerStatus, Pod
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.usage import PodUsage
from kubectl_qos.qos.restart import is_refused, was_killed_since_resize

_OF_SIGNALS: Final = 128
"""A shell's exit code for a child that a signal ended, less the signal's number."""
_NEAR: Final = 0.5
_MISSED: Final = 0.9
"""Samples below this part of a limit at which the container was killed have missed its peak."""


def limit_in_loop(pod: Pod, status: ContainerStatus, release: Release) -> int:
    """Return the limit in bytes of a container that waits for its next start, else 0."""
    waits = status.state is not None and status.state.waiting is not None
    is_again = waits and (status.restart_count or is_refused(pod, status.name))
    return limit_in_force(pod, status.name, release) if is_again else 0


def may_hide_kill(status: ContainerStatus) -> bool:
    """Whether the end of a container that restarts can hide an OOM kill, if it has a limit."""
    code = status.ends[0].exit_code if status.restart_count and status.ends else 0
    return 0 < code < _OF_SIGNALS and not status.was_oom_killed


def limit_with_hidden_kill(
    pod: Pod, status: ContainerStatus, usage: PodUsage | None, release: Release
) -> int:
    """Return the limit in bytes at which the end of a container that restarts can hide an OOM kill.

    No signal hides one, and hardly a container that uses less than half of its limit.
    """
    if not may_hide_kill(status):
        return 0
    limit = limit_in_force(pod, status.name, release)
    used = usage.of(status.name) if usage is not None and status.has_processes else None
    return 0 if used is not None and used.working_set_bytes < limit * _NEAR else limit


def missed_peak(pod: Pod, status: ContainerStatus, usage: PodUsage | None, release: Release) -> float | None:
    """Return the share of a limit that samples show of a container which it killed: they miss the peak."""
    used = usage.of(status.name) if usage is not None else None
    if used is None or not status.ends or not status.has_processes:
        return None
    limit = limit_in_force(pod, status.name, release)
    share = used.working_set_bytes / limit if limit else 1.0
    return share if share < _MISSED and was_killed_since_resize(pod, status.name) else None


def limit_that_killed(pod: Pod, status: ContainerStatus, usage: PodUsage | None, release: Release) -> int:
    """Return the limit in bytes at which a container that runs was OOMKilled, if its usage is unknown."""
    is_measured = usage is not None and usage.of(status.name) is not None
    killed = status.has_processes and not is_measured and was_killed_since_resize(pod, status.name)
    return limit_in_force(pod, status.name, release) if killed else 0

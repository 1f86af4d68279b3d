"""What the kubelet does with a container that was killed, and which ones are killed again and again."""

from enum import StrEnum
from typing import Final, NamedTuple

from kubectl_qos.k8s.objects import Container, Pod
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.releases import Gate, Release
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


class OomLoop(NamedTuple):
    """A container that was OOMKilled and waits for its next start; `reason` is why it waits, or empty."""

    container: str
    restarts: int
    reason: str


def oom_loops(pod: Pod) -> tuple[OomLoop, ...]:
    """The containers of a pod that do not run now because they were OOMKilled, and will be started again."""
    return tuple(
        OomLoop(status.name, status.restart_count, waiting.reason if waiting is not None else "")
        for status in (() if pod.is_terminal else pod.status.every_container)
        if status.state is not None and not status.has_processes
        for waiting in (status.state.waiting,)
        if status.ends and status.ends[0].reason == "OOMKilled"
        if waiting is not None or pod.spec.restart_policy != "Never"
    )


_LEAVES_LOOP_SECONDS: Final = 600
"""The kubelet forgets a crash loop after a run of twice its longest back-off (pkg/kubelet/kubelet.go)."""


def is_limit_too_low(pod: Pod, container: str) -> bool:
    """Whether no run is known that a limit was enough for.

    The container was OOMKilled and does not run, or was OOMKilled within minutes and runs once more.
    """
    for status in pod.status.every_container:
        if status.name == container and status.ends and status.ends[0].reason == "OOMKilled":
            end = status.ends[0]
            started, finished = parse_time(end.started_at), parse_time(end.finished_at)
            seconds = (finished - started).total_seconds() if started and finished else 0.0
            return not status.has_processes or (status.restart_count > 1 and seconds < _LEAVES_LOOP_SECONDS)
    return False

"""What a kubelet ended for memory: evictions under pressure, and preemption to admit a critical pod.

Sources: pkg/kubelet/eviction/helpers.go (evictionMessage) and eviction_manager.go (evictPod),
pkg/kubelet/preemption/preemption.go, pkg/kubelet/events/event.go. A pod whose processes end well on SIGTERM
gets phase Succeeded and no status.reason: then only the condition (1.26 and later) and the event tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kubectl_qos.k8s.events import Event
from kubectl_qos.k8s.objects import ContainerStateTerminated, Pod
from kubectl_qos.qos.kill_facts import By, Evidence, Fact, Need, Sure, Verdict, seconds_between
from kubectl_qos.qos.kill_verdict import OOM_KILLED, SIGKILLED, ended_evidence, event_evidence

EVICTED: Final = "Evicted"
PREEMPTING: Final = "Preempting"
BY_KUBELET: Final = "TerminationByKubelet"
SLACK_SECONDS: Final = 2.0
"""Events and statuses have whole seconds."""

_MEMORY: Final = re.compile(r"low on resource: \[?memory", re.IGNORECASE)
_CRITICAL: Final = re.compile(r"Preempted in order to admit|preempted by Kubelet to accommodate a critical")
_EMPTY_DIR: Final = re.compile(r'Usage of EmptyDir volume "(?P<name>[^"]*)" exceeds')


@dataclass(frozen=True, slots=True)
class KubeletKill:
    """A pod that its kubelet ended; `time` is that of the event, empty without one.

    `is_said` is whether the resource is: the status of old kubelets may have no message.
    """

    by: By
    time: str
    evidence: tuple[Evidence, ...]
    is_said: bool

    def has_ended(self, end: ContainerStateTerminated, *, runs_once: bool) -> bool:
        """Whether a container ended by it: not before, and not an init container that was done."""
        after = seconds_between(self.time, end.finished_at)
        if after is not None:
            return after >= -SLACK_SECONDS
        return not (runs_once and end.exit_code == 0)

    def verdict(self, end: ContainerStateTerminated | None, state: str, *, only_container: bool) -> Verdict:
        """What is to be said of one of its containers, None for the pod as a whole.

        A SIGKILL may still be the kernel's, which is a matter of who came first.
        """
        evidence = (*(ended_evidence(end, state) if end is not None else ()), *self.evidence)
        if not self.is_said:
            return Verdict(self.by, Sure.POSSIBLE, evidence, None)
        if end is None:
            return Verdict(self.by, Sure.CERTAIN, evidence)
        killed = end.exit_code == SIGKILLED or end.reason == OOM_KILLED
        if killed:
            return Verdict(self.by, Sure.LIKELY, evidence, Need.KERNEL_LOG)
        sure = Sure.CERTAIN if self.time or only_container else Sure.LIKELY
        return Verdict(self.by, sure, evidence)


def kubelet_kill(pod: Pod, events: Iterable[Event]) -> KubeletKill | None:
    """How its kubelet ended a pod for memory; None if it did not, or for disks or process ids."""
    status = pod.status
    told = [event for event in events if event.reason in {EVICTED, PREEMPTING}]
    evidence, messages = [], []
    if status.reason in {EVICTED, PREEMPTING}:
        evidence.append(Evidence(Fact.POD_ENDED, {"reason": status.reason, "message": status.message}))
        messages.append(status.message)
    for condition in status.conditions or ():
        is_kubelet = condition.reason == BY_KUBELET and condition.status == "True"
        if condition.type == "DisruptionTarget" and is_kubelet:
            said = {"reason": condition.reason, "message": condition.message}
            evidence.append(Evidence(Fact.DISRUPTED, said))
            messages.append(condition.message)
    evidence += map(event_evidence, told)
    messages += [event.message for event in told]
    if not evidence:
        return None
    time = max((event.last for event in told), default="")
    if status.reason == PREEMPTING or any(map(_CRITICAL.search, messages)):
        return KubeletKill(By.PREEMPTION, time, tuple(evidence), is_said=True)
    if any(_MEMORY.search(message) for message in messages) or any(_in_memory(pod, messages)):
        return KubeletKill(By.EVICTION, time, tuple(evidence), is_said=True)
    if not any(messages) and status.reason == EVICTED:
        return KubeletKill(By.EVICTION, time, tuple(evidence), is_said=False)
    return None


def _in_memory(pod: Pod, messages: Iterable[str]) -> Iterator[bool]:
    """Whether a volume that was too full is one of medium Memory."""
    full = {found["name"] for message in messages if (found := _EMPTY_DIR.search(message)) is not None}
    for volume in pod.spec.volumes or ():
        if volume.name in full and volume.empty_dir is not None:
            yield volume.empty_dir.medium == "Memory"

"""A change on trial: how its containers have fared since, and what speaks for reverting it. Pure.

Runs of a container are counted by `restartCount`, so that no clocks are compared: one that had begun before
the change counts once the kubelet has carried that out, and those after it always. Not here: the steps of a
change (apply.py), reading pods (cluster/), and the words (present/apply.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NamedTuple

from kubectl_qos.edit.edits import Side
from kubectl_qos.edit.status import Progress, Stage
from kubectl_qos.k8s.allocation import other_pod_limit
from kubectl_qos.k8s.objects import EMPTY_RESOURCES, MEMORY, ContainerStatus, Pod, all_containers
from kubectl_qos.k8s.usage import PodKey, PodUsage


class Condition(StrEnum):
    """What speaks against a change."""

    RESTARTS = "restarts"
    OOM = "oom"
    INFEASIBLE = "infeasible"


class TrialPlan(NamedTuple):
    """How long a change is looked after once it is sent, and what then has it reverted."""

    seconds: float = 600.0
    undo_if: tuple[Condition, ...] = tuple(Condition)


@dataclass(frozen=True, slots=True)
class Fate:
    """How a container has fared since its run `first_run`, the first with the new values.

    `oom_runs` are the runs that ended OOMKilled. Bytes: the container's memory limit and request in force, 0
    without one, and the most that was seen in use under that limit, None where nothing was.
    """

    name: str
    first_run: int = 0
    restarts: int = 0
    oom_runs: frozenset[int] = frozenset()
    peak_bytes: int | None = None
    limit_bytes: int = 0
    request_bytes: int = 0

    def looked(self, status: ContainerStatus, pod: Pod, usage: PodUsage | None) -> Fate:
        """The same after another look."""
        used = usage.of(self.name) if usage is not None and status.has_processes else None
        limit = _memory(status, pod, Side.LIMITS)
        seen = [used.working_set_bytes] if used is not None else []
        if limit == self.limit_bytes and self.peak_bytes is not None:
            seen.append(self.peak_bytes)
        killed = {
            run for run, reason in _ended_runs(status) if reason == "OOMKilled" and run >= self.first_run
        }
        return replace(
            self,
            restarts=max(self.restarts, status.restart_count - self.first_run),
            oom_runs=self.oom_runs | killed,
            peak_bytes=max(seen, default=None),
            limit_bytes=limit,
            request_bytes=_memory(status, pod, Side.REQUESTS),
        )


@dataclass(frozen=True, slots=True)
class Trial:
    """What was seen of a change: the fates of containers by their pod's uid and name.

    Of a change of a template only new pods count, which are not `old`. The containers in `restarting` restart
    once by the change itself; `infeasible` is the kubelet's message.
    """

    fates: Mapping[tuple[str, str], Fate] = field(default_factory=dict)
    old: frozenset[str] = frozenset()
    restarting: frozenset[str] = frozenset()
    infeasible: str | None = None

    @classmethod
    def begin(cls, pods: Iterable[Pod], *, in_place: bool, restarting: Collection[str] = ()) -> Trial:
        """Before the change is sent."""
        if not in_place:
            return cls(old=frozenset(pod.metadata.uid for pod in pods))
        fates = {
            (pod.metadata.uid, status.name): Fate(status.name, _next_run(status))
            for pod in pods
            for status in pod.status.every_container
        }
        return cls(fates, restarting=frozenset(restarting))

    def looked(self, pods: Iterable[Pod], usage: Mapping[PodKey, PodUsage], progress: Progress) -> Trial:
        """The same after a look at the pods, and at how far the change has come."""
        fates = dict(self.fates)
        for pod in pods:
            if pod.metadata.uid in self.old:
                continue
            used = usage.get((pod.namespace, pod.name))
            for status in pod.status.every_container:
                key = pod.metadata.uid, status.name
                earlier = fates.get(key, Fate(status.name))
                fate = earlier.looked(status, pod, used)
                if (
                    progress.is_reverted or progress.stage is Stage.OVERTAKEN
                ):  # the memory is that of other values
                    fate = replace(earlier, restarts=fate.restarts, oom_runs=fate.oom_runs)
                is_done = progress.stage is Stage.DONE and status.has_processes
                if is_done and status.name not in self.restarting:
                    fate = replace(fate, first_run=min(fate.first_run, status.restart_count))
                fates[key] = fate
        is_infeasible = progress.stage is Stage.INFEASIBLE
        return replace(self, fates=fates, infeasible=progress.message if is_infeasible else self.infeasible)

    @property
    def seen(self) -> tuple[Condition, ...]:
        """What speaks against the change."""
        fates = self.fates.values()
        is_reached = {
            Condition.RESTARTS: any(fate.restarts for fate in fates),
            Condition.OOM: any(fate.oom_runs for fate in fates),
            Condition.INFEASIBLE: self.infeasible is not None,
        }
        return tuple(condition for condition, is_seen in is_reached.items() if is_seen)


NO_TRIAL: Final = Trial()


def _next_run(status: ContainerStatus) -> int:
    """The run after the present one; the present one where it has not begun yet."""
    return status.restart_count + (status.has_processes or bool(status.ends))


def _ended_runs(status: ContainerStatus) -> Iterator[tuple[int, str]]:
    """The known ends with the number of their run: while a container waits, the last one is the present."""
    run, now, before = status.restart_count, status.state, status.last_state
    if now is not None and now.terminated is not None:
        yield run, now.terminated.reason
    if before is not None and before.terminated is not None:
        waits = now is not None and now.waiting is not None
        yield (run if waits else run - 1), before.terminated.reason


def _memory(status: ContainerStatus, pod: Pod, side: Side) -> int:
    """What is in force, of limits the pod's too; that of the spec where a server does not tell."""
    specs = (container.resources for container in all_containers(pod) if container.name == status.name)
    resources = status.resources or next(specs, None)
    quantities = [(getattr(resources, side.value, None) or EMPTY_RESOURCES).get(MEMORY)]
    quantities += [other_pod_limit(pod)] if side is Side.LIMITS else []
    return min([quantity.value() for quantity in quantities if quantity is not None], default=0)

"""A change on trial: which runs of a container count, by law against a kubelet that is played."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_qos.edit.status import Progress, Stage, Trial, TrialCondition
from kubectl_qos.k8s.objects import Pod, PodStatus, ResourceList, ResourceRequirements, convert
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.present.changes import trial_lines, trial_summary, trial_words

DONE = Progress(Stage.DONE, settled=True)
WAITING = Progress(Stage.WAITING, settled=False)


class Container:
    """A container whose kubelet counts its restarts; each run ends with a reason."""

    def __init__(self, uid: str = "u") -> None:
        self.uid, self.runs, self.ends, self.is_up = uid, 0, dict[int, str](), True

    def end(self, reason: str) -> None:
        if self.is_up:
            self.is_up, self.ends[self.runs] = False, reason

    def start(self) -> None:
        if not self.is_up:
            self.is_up, self.runs = True, self.runs + 1

    def pod(self, *, as_ended: bool = False) -> Pod:
        """As the API has it; one that does not run waits, or has just ended."""
        ended = {run: {"terminated": {"reason": end, "exitCode": 137}} for run, end in self.ends.items()}
        now: dict[str, Any] = {"running": {}} if self.is_up else {"waiting": {"reason": "CrashLoopBackOff"}}
        last = ended.get(self.runs - self.is_up)
        if as_ended and not self.is_up:
            now, last = ended[self.runs], ended.get(self.runs - 1)
        status = {
            "name": "c",
            "restartCount": self.runs,
            "state": now,
            **({"lastState": last} if last else {}),
        }
        resources = {"requests": {"memory": "64Mi"}, "limits": {"memory": "128Mi"}}
        raw = {
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "n", "uid": self.uid},
            "spec": {"containers": [{"name": "c", "resources": resources}]},
            "status": {"phase": "Running", "containerStatuses": [status]},
        }
        return convert(raw, Pod)


STEPS = st.lists(st.sampled_from(["OOMKilled", "Error", "start", "look"]), max_size=12)


@given(STEPS, STEPS, STEPS, st.booleans())
def test_only_runs_with_the_new_values_count(
    before: list[str], until_done: list[str], after: list[str], as_ended: bool
) -> None:
    """A run that began before the change has them once the kubelet was seen to have carried it out."""
    container = Container()

    def play(steps: list[str], progress: Progress, trial: Trial) -> Trial:
        for step in steps:
            if step == "look":
                trial = trial.observe([container.pod(as_ended=as_ended)], {}, progress)
            elif step == "start":
                container.start()
            else:
                container.end(step)
        return trial

    play(before, WAITING, Trial())
    trial = Trial.begin([container.pod(as_ended=as_ended)], in_place=True)
    began_up, run = container.is_up, container.runs
    trial = play(until_done, WAITING, trial)
    is_seen_up = container.is_up and container.runs == run
    first = run if began_up and is_seen_up else run + 1
    trial = trial.observe([container.pod(as_ended=as_ended)], {}, DONE)
    trial = play([*after, "look"], DONE, trial)
    (outcome,) = trial.outcomes.values()
    assert outcome.restarts == max(container.runs - first, 0)
    killed = {number for number, end in container.ends.items() if end == "OOMKilled" and number >= first}
    assert outcome.oom_runs <= killed
    assert (TrialCondition.RESTARTS in trial.seen, TrialCondition.OOM in trial.seen) == (
        container.runs > first,
        bool(outcome.oom_runs),
    )
    if killed and max(killed) >= container.runs - container.is_up:
        assert outcome.oom_runs, "the last end is always seen"


@given(STEPS)
def test_of_a_new_pod_every_run_counts_and_of_an_old_one_none(steps: list[str]) -> None:
    old, new = Container("old"), Container("new")
    trial = Trial.begin([old.pod()], in_place=False)
    for step in steps:
        for one in (old, new):
            one.start() if step == "start" else one.end(step) if step != "look" else None
        trial = trial.observe([old.pod(), new.pod()], {}, DONE)
    assert trial.outcomes.keys() <= {("new", "c")}
    for outcome in trial.outcomes.values():
        assert outcome.restarts == new.runs
        assert outcome.oom_runs == {run for run, end in new.ends.items() if end == "OOMKilled"}


def test_a_restart_by_the_change_itself_does_not_count() -> None:
    container = Container()
    trial = Trial.begin([container.pod()], in_place=True, restarting=["c"]).observe(
        [container.pod()], {}, DONE
    )
    container.end("Error")
    container.start()
    assert trial.observe([container.pod()], {}, DONE).seen == ()
    container.end("Error")
    container.start()
    assert trial.observe([container.pod()], {}, DONE).seen == (TrialCondition.RESTARTS,)


def test_what_is_said_of_it() -> None:
    first, second = Container("a"), Container("b")
    trial = Trial.begin([], in_place=False)
    assert trial_summary(trial) == "no restart, no OOM kill"
    used = {("n", "p"): PodUsage.of_containers({"c": ContainerUsage(96 << 20)})}
    trial = trial.observe([first.pod()], used, DONE).observe([first.pod(), second.pod()], {}, DONE)
    assert trial_lines(trial) == [
        "c used at most 96Mi, the highest of 2 pods: 75% of its limit 128Mi, 150% of its request 64Mi"
    ]
    for one in (first, second):
        one.end("OOMKilled")
        one.start()
    refused = Progress(Stage.INFEASIBLE, settled=True, message="no\nroom")
    trial = trial.observe([first.pod(), second.pod()], {}, refused)
    assert trial_words(trial) == (
        "c restarted 2 times, c was OOMKilled 2 times, the kubelet answers Infeasible: no\\nroom"
    )
    assert trial.seen == tuple(TrialCondition)
    assert trial_lines(Trial().observe([second.pod()], {}, DONE)) == ["c: memory usage is unknown"]


def test_memory_is_compared_with_the_limit_in_force() -> None:
    container = Container()

    def pod(limit: str) -> Pod:
        (status,) = container.pod().status.every_container
        limits = ResourceRequirements(limits=ResourceList({"memory": Quantity.parse(limit)}))
        statuses = (replace(status, resources=limits),)
        return replace(container.pod(), status=PodStatus(phase="Running", container_statuses=statuses))

    def used(mebibytes: int) -> dict[tuple[str, str], PodUsage]:
        return {("n", "p"): PodUsage.of_containers({"c": ContainerUsage(mebibytes << 20)})}

    trial = Trial.begin([pod("160Mi")], in_place=True).observe([pod("160Mi")], used(120), WAITING)
    assert trial_lines(trial) == ["c used at most 120Mi: 75% of its limit 160Mi"]
    trial = trial.observe([pod("160Mi")], used(80), WAITING).observe([pod("128Mi")], used(96), DONE)
    assert trial_lines(trial) == ["c used at most 96Mi: 75% of its limit 128Mi"]
    for stage in (Stage.OVERTAKEN, Stage.UNDONE):
        later = trial.observe([pod("100Mi")], used(99), Progress(stage, settled=True))
        assert trial_lines(later) == trial_lines(trial), "that is the limit of another change"

"""`set --for --undo-if` and loops of OOM kills, on the server that can be changed: no second goes by."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cluster.cluster_objects import metrics, pod
from tests.cluster.serving import Serve
from tests.demo.living import FULL_AT, IMPORTER, Stepped
from tests.end_to_end.changing import Cluster, settle
from tests.end_to_end.command import Done, Run

MORE = ("--limits", "memory=256Mi", "--yes")
MANIFEST = "kubectl qos set pod/alone -n shop -c app --limits memory=256Mi -o manifest"


class Stage(Cluster):
    """The cluster with a clock that only pauses move; `at` is what happens in it, by the second."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        for name in ("owned", "owned-best"):
            metadata = self.objects.find("Pod", name)["metadata"]
            self.objects.set("Pod", name, metadata={**metadata, "labels": {"pod-template-hash": "1"}})
        self.seconds = 0.0
        self.at: dict[int, Callable[[], None]] = {}

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        for second in [one for one in sorted(self.at) if one <= self.seconds]:
            self.at.pop(second)()

    def status(self, name: str, **status: Any) -> None:
        """The status of a pod's container from now on."""
        found = self.objects.find("Pod", name)
        (container,) = found["spec"]["containers"]
        whole = {"name": "app", "state": {"running": {}}, "resources": container["resources"], **status}
        self.objects.set("Pod", name, status={**found["status"], "containerStatuses": [whole]})

    def kill(self, name: str = "alone", restarts: int = 1) -> None:
        """The container is OOMKilled, and runs again."""
        end = {"exitCode": 137, "reason": "OOMKilled"}
        self.status(name, restartCount=restarts, lastState={"terminated": end})

    def loop(self, name: str) -> None:
        """The container waits after its seventh OOM kill."""
        end = {"exitCode": 137, "reason": "OOMKilled"}
        waits = {"waiting": {"reason": "CrashLoopBackOff"}}
        self.status(name, restartCount=7, state=waits, lastState={"terminated": end})

    def limit(self, name: str = "alone") -> str:
        return str(self.objects.find("Pod", name)["spec"]["containers"][0]["resources"]["limits"]["memory"])

    def theirs(self, limit: str) -> None:
        """Somebody else sets the limit."""
        self.objects.mutate = lambda _: None
        spec = {"containers": [{"name": "app", "resources": {"limits": {"memory": limit}}}]}
        self.objects.edit("Pod", "alone", {"spec": spec})

    def answers(self, reason: str, message: str, type_: str = "PodResizePending") -> None:
        """What the kubelet makes of every resize."""

        def pending(raw: dict[str, Any]) -> None:
            condition = {"type": type_, "status": "True", "reason": reason, "message": message}
            raw["status"] = {**raw["status"], "conditions": [condition]}

        self.objects.mutate = pending

    def kubelets(self, version: str) -> None:
        self.objects.nodes[0]["status"]["nodeInfo"]["kubeletVersion"] = version

    def entry(self, number: int = 0) -> dict[str, Any]:
        """What the change history has of a change, the first one by default."""
        path = self._home / ".local/state/kubectl-qos/history.jsonl"
        entries = {entry["id"]: entry for entry in map(json.loads, path.read_text().splitlines())}
        return dict(entries[sorted(entries)[number]])


@pytest.fixture
def stage(run: Run, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    stage = Stage(run.home, serve)
    clock = SimpleNamespace(sleep=stage.sleep, monotonic=lambda: stage.seconds)
    monkeypatch.setattr("kubectl_qos.cli.apply_shell.time", clock)
    yield stage
    assert not stage.at, "everything has happened"


def last(done: Done) -> str:
    return next(line for line in done.err.splitlines() if line.lower().startswith("error"))


def test_a_change_that_holds_is_reported_against_the_new_values(run: Run, stage: Stage) -> None:
    stage.objects.metrics = [metrics("alone", "96Mi")]
    done = run("set", "pod/alone", *MORE, "--for", "10m", "--undo-if", "restarts,oom,infeasible")
    assert (done.code, stage.seconds) == (0, 600.0), done.err
    report = "app used at most 96Mi: 38% of its limit 256Mi, 150% of its request 64Mi"
    assert done.lines[-2:] == [report, "pod/alone held for 10m"]
    assert stage.sent() == ["dry run", "write"]
    entry = stage.entry()
    assert (entry["state"], entry["message"]) == ("held", f"10m: no restart, no OOM kill; {report}")
    assert f"held: {entry['message']}" in run("undo", "--list").out


@pytest.mark.parametrize("conditions", ["oom", "restarts", "infeasible,oom"])
def test_a_bad_change_is_reverted_once(run: Run, stage: Stage, conditions: str) -> None:
    stage.at = {60: stage.kill}
    done = run("set", "pod/alone", *MORE, "--for", "10m", "--undo-if", conditions)
    assert (done.code, stage.limit(), int(stage.seconds)) == (3, "128Mi", 60)
    why = "app restarted 1 time, app was OOMKilled 1 time"
    assert last(done) == f"error: pod/alone did not hold: {why}; it is reverted"
    assert stage.sent() == ["dry run", "write", "dry run", "write"]
    assert stage.entry()["message"].startswith(f"60s: {why}")
    assert stage.entry(1)["undoes"] == stage.entry()["id"]
    assert f"did not hold, reverted: 60s: {why}" in run("undo", "--list").out


def test_what_is_no_condition_is_reported_and_stands(run: Run, stage: Stage) -> None:
    for conditions in ((), ("--undo-if", "infeasible")):
        stage.at = {int(stage.seconds) + 60: stage.kill}
        done = run("set", "pod/alone", *MORE, "--for", "2m", *conditions)
        assert (done.code, stage.limit()) == (4, "256Mi"), done.err
        assert "reverted" not in done.err
        run("undo", "--yes")


def test_the_priority_of_a_workload_is_that_of_its_pods(run: Run, stage: Stage) -> None:
    gold = {"priorityClassName": "gold"}
    stage.objects.edit("Deployment", "web", {"spec": {"template": {"spec": gold}}})
    stage.objects.edit("Pod", "owned", {"spec": {**gold, "priority": 7}})
    for words in (("set", "deployment/web", *MORE), ("undo", "--yes")):
        done = run(*words)
        assert (done.code, "its number is unknown" in done.out + done.err) == (0, False), done.err


def test_with_an_output_stdout_has_the_first_change_alone(run: Run, stage: Stage) -> None:
    stage.at = {60: stage.kill}
    done = run("set", "pod/alone", *MORE, "--for", "10m", "--undo-if", "oom", "-o", "patch")
    assert (done.code, done.out.count("memory: 256Mi"), "128Mi" in done.out) == (3, 1, False)


@pytest.mark.parametrize("together", [True, False])
def test_the_value_of_someone_else_is_never_reverted(run: Run, stage: Stage, together: bool) -> None:
    """Also where the container is killed in the same moment."""

    def overtake() -> None:
        stage.theirs("512Mi")
        if together:
            stage.kill()

    stage.at = {60: overtake}
    done = run("set", "pod/alone", *MORE, "--for", "10m", "--undo-if", "restarts,oom,infeasible")
    assert (done.code, stage.limit(), stage.sent()) == (4 if together else 1, "512Mi", ["dry run", "write"])
    assert ("it is not reverted: pod/alone is not changed" in last(done)) is together
    assert ("changed again by someone else" in last(done)) is not together


def test_what_a_person_undoes_meanwhile_ends_as_undone(run: Run, stage: Stage) -> None:
    def undo() -> None:
        run("undo", "--yes")

    stage.at = {60: undo}
    done = run("set", "pod/alone", *MORE, "--for", "10m", "--undo-if", "restarts,oom")
    assert (done.code, stage.limit()) == (1, "128Mi"), done.err
    assert last(done).endswith("pod/alone is changed, but: undone")
    assert (
        " undone: 60s: no restart, no OOM kill; app: memory usage is unknown\n" in run("undo", "--list").out
    )


def test_what_the_kubelet_cannot_do_is_reverted(run: Run, stage: Stage) -> None:
    stage.answers("Infeasible", "Node didn't have enough capacity")
    flags = ("--for", "10m", "--undo-if", "infeasible")
    done = run("set", "pod/alone", *MORE, *flags)
    assert (done.code, stage.limit()) == (3, "128Mi"), done.err
    why = "Infeasible: Node didn't have enough capacity; reverting, infeasible: Node didn't have"
    assert f"the kubelet answers {why} enough capacity" in last(done)
    assert done.lines[-2:] == [
        "pod/alone resized",
        "pod/alone: infeasible: Node didn't have enough capacity",
    ], "of the values before too"


def test_of_reverted_values_what_the_kubelet_answers_is_said(run: Run, stage: Stage) -> None:
    def fill() -> None:
        stage.kill()
        stage.answers("Deferred", "no room")

    stage.at = {60: fill}
    done = run("set", "pod/alone", *MORE, "--for", "10m", "--undo-if", "oom")
    assert (done.code, stage.limit(), done.lines[-1]) == (3, "128Mi", "pod/alone: deferred: no room")
    assert 65 <= stage.seconds < 70


REFUSED = (
    "cannot decrease memory limits: [attempting to set pod memory limit (134217728) below current usage]"
)


@pytest.mark.parametrize("falls", [True, False])
def test_a_limit_that_cannot_be_lowered_is_not_reverted_before_usage_falls(
    run: Run, stage: Stage, falls: bool
) -> None:
    """As a real kubelet answered an undo 40 s after an OOM kill."""

    def grow() -> None:
        stage.kill()
        stage.answers("Error", REFUSED, "PodResizeInProgress")

    def fall() -> None:
        stage.objects.mutate = lambda _: None
        found = stage.objects.find("Pod", "alone")
        stage.objects.set("Pod", "alone", status={**found["status"], "conditions": []})
        stage.kill()

    stage.at = {60: grow, 100: fall if falls else lambda: None}
    done = run("set", "pod/alone", *MORE, "--for", "10m", "--undo-if", "oom")
    waits = f"reverting, waits for usage to fall: {REFUSED}"
    assert f"pod/alone: {waits}" in done.lines
    listed = run("undo", "--list").out
    if falls:
        assert (done.code, 100 <= stage.seconds < 106) == (3, True)
        assert last(done).endswith("; it is reverted")
        assert " did not hold, reverted: " in listed
    else:
        assert (done.code, 120 <= stage.seconds < 126) == (4, True)
        assert last(done).endswith(f"; {waits}")
        assert (
            "hint: the kubelet lowers the limit once usage is below it: free memory, or restart" in done.err
        )
        assert f" did not hold, {waits}: " in listed


def test_what_the_kubelet_puts_off_is_followed_with_its_reason(run: Run, stage: Stage) -> None:
    stage.answers("Deferred", "Node didn't have enough resource: memory")
    done = run("set", "pod/alone", *MORE, "--for", "2m", "--undo-if", "infeasible")
    assert (done.code, stage.limit(), stage.seconds) == (1, "256Mi", 120.0)
    assert "last status: deferred: Node didn't have enough resource: memory" in last(done)


def test_new_pods_are_watched_where_a_template_is_changed(run: Run, stage: Stage) -> None:
    """The old ones may die as they like: they do not have the new values."""

    def replace() -> None:
        stage.kill("owned", 5)
        new = pod("web-1-new", request="64Mi", limit="256Mi")
        old = stage.objects.find("Pod", "owned")["metadata"]
        new["metadata"] |= {key: old[key] for key in ("ownerReferences", "labels")}
        stage.objects.save(new)

    stage.at = {10: replace, 60: lambda: stage.kill("web-1-new")}
    done = run("set", "deploy/web", *MORE, "--for", "10m", "--undo-if", "oom")
    why = "app restarted 1 time, app was OOMKilled 1 time"
    assert last(done) == f"error: deployment/web did not hold: {why}; it is reverted"
    template = stage.objects.find("Deployment", "web")["spec"]["template"]
    assert template["spec"]["containers"][0]["resources"]["limits"] == {"memory": "128Mi"}
    assert (done.code, int(stage.seconds)) == (3, 60)


def test_without_new_pods_nothing_is_known(run: Run, stage: Stage) -> None:
    done = run("set", "deploy/web", *MORE, "--for", "1m")
    assert (done.code, "no pod with the new values has appeared" in last(done)) == (1, True)


def test_a_change_is_not_made_where_its_pods_cannot_be_read(run: Run, stage: Stage) -> None:
    def lock(_: Any) -> None:
        stage.objects.forbidden.add("/api/v1/namespaces/shop/pods")

    stage.objects.fault = lock
    done = run("set", "deploy/web", *MORE, "--for", "1m")
    assert (done.code, stage.sent()) == (1, ["dry run"])
    assert 'pods is forbidden: User "viewer" cannot list' in last(done)


def test_ctrl_c_ends_the_watching_and_the_history_keeps_what_was_seen(run: Run, stage: Stage) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    stage.at = {30: interrupt}
    done = run("set", "pod/alone", *MORE, "--for", "1m")
    assert (done.code, stage.limit()) == (130, "256Mi")
    assert "stopped watching: pod/alone was changed" in done.err
    assert stage.entry()["message"].startswith("30s: no restart, no OOM kill")


def test_a_change_on_trial_is_recorded_so(run: Run, stage: Stage) -> None:
    during: list[str] = []

    def kill() -> None:
        during.append(run("undo", "--list").out)
        stage.kill()

    stage.at = {60: kill}
    done = run("set", "pod/alone", *MORE, "--for", "10m", "--undo-if", "oom")
    assert done.code == 3, done.err
    (line,) = during[0].splitlines()[1:]
    assert re.search(r" on trial: until \d\d:\d\d UTC, as long as kubectl qos runs$", line), line


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--undo-if", "oom"), "--undo-if needs --for"),
        (("--for", "0"), "--for needs a time"),
        (("--for", "1m", "--timeout", "5m"), "--for and --timeout cannot be used together"),
        (("--for", "1m", "--wait=false"), "--for and --wait=false cannot be used together"),
        (("--for", "1m", "--dry-run=server"), "--for and --dry-run=server cannot be used together"),
        (("--for", "1m", "--undo-if", "swap"), "is not a list of restarts, oom, infeasible"),
    ],
)
def test_flags_that_make_no_sense_are_named(run: Run, flags: tuple[str, ...], sentence: str) -> None:
    done = run("set", "pod/alone", *MORE, *flags)
    assert (done.code, sentence in done.err) == (2, True), done.err


# A loop of OOM kills


def test_an_old_kubelet_does_not_end_a_loop_in_place(run: Run, stage: Stage) -> None:
    for name in ("alone", "owned"):
        stage.loop(name)
    why = (
        "app was OOMKilled and waits in CrashLoopBackOff (7 restarts): before 1.36.4 kubelets raise the limit"
        " of the pod's cgroup only while the container runs, so it would be killed again"
    )
    for name, hint in {
        "alone": f"save the output of {MANIFEST}, then delete and recreate the pod",
        "owned": "kubectl qos set deployment/web -n shop -c app --limits memory=256Mi, or add --by template",
    }.items():
        done = run("set", f"pod/{name}", *MORE)
        assert (done.code, last(done)) == (1, f"error: pod/{name} cannot be changed in place: {why}")
        assert hint in done.err
    for more in (["--yes"], ["-o", "patch"]):
        assert MANIFEST in run("fix", "pod/alone", "--apply", "1", *more).err
    assert stage.sent() == []
    assert "memory: 256Mi" in run(*MANIFEST.split()[2:]).out
    done = run("set", "pod/owned", *MORE, "--by", "template")
    assert (done.code, stage.sent()) == (0, ["dry run", "write"]), done.err
    stage.objects.mutate(stage.objects.find("Deployment", "web"))
    done = run("set", "pod/owned", *MORE)
    assert "the template of deployment/web already has these values; to get them in a new pod: " in done.err
    assert "kubectl delete pod owned -n shop" in done.err


def test_a_hint_has_a_command_for_each_container(run: Run, stage: Stage) -> None:
    (container,) = stage.objects.find("Pod", "best")["spec"]["containers"]
    stage.objects.set("Pod", "best", spec={"containers": [container, {**container, "name": "b"}]})
    done = run("set", "pod/best", "--requests", "memory=1Gi", "--yes")
    (hint,) = re.findall("output of (.+), then delete and recreate the pod", done.err)
    out = ""
    for command in hint.split(" | "):
        out = run(*command.split()[2:], given=out).out
    assert out.count("memory: 1Gi") == 2


def test_where_nothing_is_replaced_the_pod_is_deleted_after_the_template_is_changed(
    run: Run, stage: Stage
) -> None:
    stage.loop("owned")
    web = stage.objects.find("Deployment", "web")
    stage.objects.set("Deployment", "web", spec={**web["spec"], "paused": True})
    done = run("set", "pod/owned", *MORE)
    assert "or add --by template; then kubectl delete pod owned -n shop" in done.err


@pytest.mark.parametrize(("name", "then"), [("alone", "delete and recreate the pod"), ("owned", "its owner")])
def test_what_an_old_kubelet_does_not_revert_is_said_before_and_after(
    run: Run, stage: Stage, name: str, then: str
) -> None:
    stage.at = {40: lambda: stage.loop(name)}
    trial = ("--yes", "--for", "10m", "--undo-if", "oom")
    done = run("set", f"pod/{name}", "--limits", "memory=100Mi", *trial)
    promise = "! cannot revert while a container waits after an OOM kill: before 1.36.4 kubelets raise"
    assert (done.code, stage.limit(name)) == (4, "100Mi"), done.err
    assert promise in done.err
    assert then in done.err.partition(promise)[2].partition("\n")[0]
    assert "it is not reverted: " in last(done)
    command = "kubectl qos set pod/alone -n shop -c app --limits memory=128Mi -o manifest"
    hint = {
        "alone": f"save the output of {command}, then delete",
        "owned": "to get them in a new pod: kubectl delete pod owned",
    }
    assert hint[name] in done.err
    listed = run("undo", "--list").out
    assert " did not hold: 40s: app " in listed
    assert "; it is not reverted: " in listed
    for others in (("--limits", "memory=256Mi", *trial), ("--limits", "memory=90Mi", "--yes", "--for", "1s")):
        assert promise not in run("set", "pod/owned-best", *others).err


def test_a_new_kubelet_ends_the_loop_in_place_and_it_stays_up(run: Run, stage: Stage) -> None:
    stage.kubelets("v1.36.4")
    stage.loop("alone")
    stage.objects.mutate = lambda _: None
    stage.at = {40: lambda: stage.kill("alone", 8)}
    done = run("set", "pod/alone", *MORE, "--for", "10m", "--undo-if", "restarts,oom")
    assert (done.code, stage.limit()) == (0, "256Mi"), done.err
    assert "pod/alone: waiting for the container: app does not run" in done.out
    assert done.lines[-1] == "pod/alone held for 10m"


def test_a_loop_that_goes_on_is_seen_though_the_container_never_runs_at_a_look(
    run: Run, stage: Stage
) -> None:
    stage.kubelets("v1.36.4")
    stage.loop("alone")
    stage.objects.mutate = lambda _: None

    def again() -> None:
        end = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
        waits = {"waiting": {"reason": "CrashLoopBackOff"}}
        stage.status("alone", restartCount=8, state=waits, lastState=end)

    stage.at = {40: again}
    done = run("set", "pod/alone", *MORE, "--for", "10m", "--undo-if", "oom")
    assert (done.code, stage.limit()) == (3, "128Mi"), done.err
    assert "! not reverted" not in done.err
    settle(stage.objects.find("Pod", "alone"))


def test_fix_applies_what_ends_the_loop(run: Run, stage: Stage) -> None:
    stage.loop("owned")
    done = run("fix", "pod/owned", "-n", "shop")
    assert "app limits.memory 128Mi → 256Mi" in done.out
    assert "through deployment/web" in done.out
    assert "shop/owned is not fixed in place: app was OOMKilled and waits" in done.err
    done = run("fix", "pod/owned", "-n", "shop", "--apply", "1", "--yes", "--for", "1m", "--undo-if", "oom")
    assert "deployment.apps/web patched" in done.out


@pytest.mark.parametrize(
    ("version", "how"), [("v1.36.2", "through deployment/importer"), ("v1.36.4", "in place")]
)
def test_the_demo_in_a_loop(run: Run, monkeypatch: pytest.MonkeyPatch, version: str, how: str) -> None:
    demo = Stepped().with_kubelets(version)
    demo.seconds = FULL_AT
    demo.until_it_waits()

    def sleep(seconds: float) -> None:
        demo.seconds += seconds  # type: ignore[assignment]

    clock = SimpleNamespace(sleep=sleep, monotonic=lambda: float(demo.seconds))
    monkeypatch.setattr("kubectl_qos.cli.apply_shell.time", clock)
    monkeypatch.setattr("kubectl_qos.cli.sources._demo", lambda *_, **__: demo)
    importer = (f"pod/{IMPORTER}", "-n", "data", "--demo")
    trial = ("--yes", "--for", "5m", "--undo-if", "restarts,oom")
    assert how in run("fix", *importer).out
    done = run("set", *importer, "--limits", "memory=160Mi", *trial)
    assert done.code == int(how != "in place"), done.err
    if how != "in place":
        assert "c was OOMKilled and waits in CrashLoopBackOff (1 restart): before 1.36.4" in last(done)
        done = run("fix", *importer, "--apply", "1", *trial)
        assert done.code == 0, done.err
    assert " held for 5m" in done.lines[-1]

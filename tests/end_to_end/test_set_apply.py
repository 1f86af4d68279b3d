"""`set` on a cluster: what is sent, what is asked first, what is known afterwards."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
import yaml

from tests.cluster.changing_server import Fault, once
from tests.cluster.object_server import status
from tests.cluster.serving import Serve
from tests.end_to_end.changing import Cluster, settle
from tests.end_to_end.command import Run
from tests.end_to_end.terminal import Terminal

ALONE = ("set", "pod/alone", "--requests", "memory=96Mi")
WEB = ("set", "deploy/web", "--requests", "memory=96Mi")


@pytest.fixture
def cluster(serve: Serve, run: Run) -> Cluster:
    return Cluster(serve, run)


def test_a_pod_is_resized_after_a_dry_run_and_followed(cluster: Cluster) -> None:
    done = cluster(*ALONE, "--yes")
    assert done.code == 0, done.err
    assert cluster.sent == ["dry", "real"]
    assert cluster.memory("Pod", "alone") == "96Mi"
    assert "* Class: " not in done.out
    assert "    in place       no container restarts" in done.lines
    place = "/api/v1/namespaces/shop/pods/alone/resize?fieldManager=kubectl-qos&fieldValidation=Strict"
    assert f"    PATCH {place}" in done.lines
    assert done.lines[-3:] == ["dry run: the server accepts it", "pod/alone resized", "pod/alone: done"]
    assert "to undo it: kubectl qos undo " in done.err


def test_a_workload_is_patched_and_its_rollout_followed(cluster: Cluster) -> None:
    done = cluster(*WEB, "--yes")
    assert done.code == 0, done.err
    assert cluster.memory("Deployment", "web") == "96Mi"
    assert done.lines[-2:] == ["deployment.apps/web patched", "deployment/web: done: 2 of 2 pods"]
    assert any(line.startswith("    through deployment/web  2 pods are replaced") for line in done.lines)


@pytest.mark.parametrize(("flag", "sent", "words"), [("client", [], " (dry run)"), ("server", ["dry"], None)])
def test_dry_runs_change_nothing(cluster: Cluster, flag: str, sent: list[str], words: str | None) -> None:
    done = cluster(*ALONE, f"--dry-run={flag}")
    assert done.code == 0, done.err
    assert cluster.sent == sent
    assert cluster.memory("Pod", "alone") == "64Mi"
    assert done.lines[-1] == f"pod/alone resized{words or ' (server dry run)'}"
    assert not (cluster.run.home / ".local/state/kubectl-qos/history.jsonl").exists()


def test_without_a_terminal_and_without_yes_nothing_is_asked_or_sent(cluster: Cluster) -> None:
    done = cluster(*ALONE)
    assert (done.code, done.out, cluster.server.requests) == (2, "", [])
    assert done.err == (
        "error: confirmation needs a terminal: nothing is applied\n"
        "hint: --yes applies without asking; --dry-run=client and --dry-run=server change nothing\n"
    )


@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        (["--readonly"], ""),
        ([], "readonly: true\n"),
        ([], "contexts: {test: {readonly: true}}\n"),
        ([], "theme: none-such\ncontexts: {'te*': {readonly: true}}\n"),
    ],
    ids=["flag", "all", "context", "pattern"],
)
@pytest.mark.parametrize("how", [["--yes"], ["--dry-run=server"]], ids=str)
def test_read_only_refuses_before_anything_is_asked(
    cluster: Cluster, flags: list[str], settings: str, how: list[str]
) -> None:
    cluster.settings(settings)
    done = cluster(*ALONE, *flags, *how)
    assert (done.code, done.out, cluster.server.requests) == (1, "", [])
    assert done.err.startswith("error: nothing is written: test is read-only here\n")
    assert cluster(*ALONE, *flags, "--dry-run=client").code == 0
    undone = cluster("undo", *flags, *how)
    assert undone.code == 1
    assert cluster.sent == []


def test_a_context_may_be_writable_where_others_are_not(cluster: Cluster) -> None:
    cluster.settings("readonly: true\ncontexts: {test: {readonly: false}}\n")
    assert cluster(*ALONE, "--yes").code == 0


def test_settings_that_cannot_be_read_stop_everything(cluster: Cluster) -> None:
    cluster.settings("readonly: perhaps\n")
    done = cluster(*ALONE, "--yes")
    assert (done.code, cluster.server.requests) == (1, [])
    assert "config.yaml, line 1: " in done.err


def test_a_stale_object_is_shown_with_three_values(cluster: Cluster) -> None:
    """Somebody else sets the same value between the dry run and the write."""

    def meanwhile(request: Any) -> None:
        if not request.query.get("dryRun"):
            patch = {"spec": {"containers": [{"name": "app", "resources": {"requests": {"memory": "70Mi"}}}]}}
            cluster.objects.edit("Pod", "alone", patch)

    cluster.objects.fault = meanwhile
    done = cluster(*ALONE, "--yes")
    assert done.code == 1
    assert cluster.sent == ["dry", "real"]
    assert "                     before  ours  theirs" in done.err.splitlines()
    assert "app requests.memory  64Mi    96Mi  70Mi" in done.err.splitlines()
    assert "Operation cannot be fulfilled on pods" in done.err
    assert cluster.memory("Pod", "alone") == "70Mi"
    assert "pod/alone resized" not in done.out


def test_a_lost_connection_says_what_is_known(cluster: Cluster) -> None:
    cluster.objects.fault = once(Fault(applies=False))
    done = cluster(*ALONE, "--yes")
    assert (done.code, cluster.sent) == (1, ["dry", "real"])
    assert "error: it is not known whether pod/alone was changed: " in done.err
    assert "nothing has changed there so far" in done.err
    assert "pod/alone resized" not in done.out
    (entry,) = json.loads(cluster("undo", "--list", "-o", "json").out)["items"]
    assert entry["state"] == "unknown"


def test_what_the_server_refuses_is_not_written(cluster: Cluster) -> None:
    sentence = 'pods "alone" is forbidden: exceeded quota: q'
    cluster.objects.fault = lambda _: Fault(applies=False, answer=status(403, "Forbidden", sentence))
    done = cluster(*ALONE, "--yes")
    assert (done.code, cluster.sent) == (1, ["dry"])
    assert done.err.splitlines()[-1] == f"Error from server (Forbidden): {sentence}"


def test_what_a_quota_would_refuse_is_known_without_asking(cluster: Cluster) -> None:
    amounts = {"hard": {"requests.memory": "100Mi"}, "used": {"requests.memory": "90Mi"}}
    quota = {"kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "shop"}, "status": amounts}
    cluster.objects.limits.append({**quota, "spec": {"hard": amounts["hard"]}})
    done = cluster(*ALONE, "--dry-run=client")
    assert (done.code, cluster.sent) == (1, [])
    assert any(line.startswith("! Findings: 1 refusal") for line in done.lines)
    assert "error: pod/alone: a server would refuse this: ResourceQuota q: " in done.err
    assert "(dry run)" not in done.out


def test_what_the_server_makes_of_it_is_said(cluster: Cluster) -> None:
    def cap(raw: dict[str, Any]) -> None:
        raw["spec"]["containers"][0]["resources"]["requests"]["memory"] = "80Mi"
        settle(raw)

    cluster.objects.mutate = cap
    cluster.objects.warnings = ["a webhook was here"]
    done = cluster(*ALONE, "--dry-run=server")
    assert "! app requests.memory would be stored as 80Mi, not 96Mi" in done.lines
    assert "! the server warns: a webhook was here" in done.lines


def test_a_pod_with_an_owner_is_never_changed_through_it_unasked(cluster: Cluster) -> None:
    best = ("set", "pod/owned-best", "--requests", "memory=96Mi")
    done = cluster(*best, "--yes")
    assert (done.code, cluster.sent) == (1, [])
    assert "error: pod/owned-best cannot be changed in place: " in done.err
    assert "Pod QOS Class may not change as a result of resizing" in done.err
    assert done.err.splitlines()[-1] == (
        "hint: change its owner: kubectl qos set deployment/web -n shop -c app --requests"
        " memory=96Mi, or add --by template"
    )
    asked = cluster(*best, "--yes", "--by", "template")
    assert asked.code == 0, asked.err
    assert cluster.memory("Deployment", "web") == "96Mi"
    assert cluster.memory("Pod", "owned-best") is None
    assert asked.lines[-2] == "deployment.apps/web patched"


def test_a_pod_with_an_owner_is_changed_in_place_where_that_is_possible(cluster: Cluster) -> None:
    done = cluster("set", "pod/owned", "--requests", "memory=96Mi", "--yes")
    assert done.code == 0, done.err
    assert (cluster.memory("Pod", "owned"), cluster.memory("Deployment", "web")) == ("96Mi", "64Mi")


@pytest.mark.parametrize(
    ("arguments", "sentence", "hint"),
    [
        (
            ["deploy/web", "--by", "in-place"],
            "deployment/web cannot be changed in place",
            "it can be: through deployment/web",
        ),
        (["pod/best"], "pod/best cannot be changed in place", "save what -o yaml prints, delete the pod"),
        (["pod/alone", "--by", "template"], "pod/alone cannot be changed through its", "it can be: in place"),
        (["job/once"], "job/once: the pod template of a Job is immutable", "delete and recreate the Job"),
    ],
)
def test_ways_that_there_are_not(cluster: Cluster, arguments: list[str], sentence: str, hint: str) -> None:
    done = cluster("set", *arguments, "--requests", "memory=96Mi", "--yes")
    assert (done.code, cluster.sent) == (1, [])
    assert f"error: {sentence}" in done.err
    assert f"hint: {hint}" in done.err


def test_the_result_in_place_of_the_preview(cluster: Cluster) -> None:
    tried = cluster(*WEB, "--dry-run=server", "-o", "yaml")
    assert tried.code == 0, tried.err
    container = yaml.safe_load(tried.out)["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["requests"] == {"memory": "96Mi"}
    assert "deployment.apps/web patched (server dry run)\n" in tried.err
    written = cluster(*WEB, "--yes", "-o", "json")
    assert json.loads(written.out)["metadata"]["resourceVersion"] == "1001"
    assert "deployment.apps/web patched\n" in written.err


def test_a_patch_alone_is_still_a_preview(cluster: Cluster) -> None:
    done = cluster(*WEB, "-o", "patch")
    assert (done.code, cluster.sent) == (0, [])
    assert yaml.safe_load(done.out)["spec"]["template"]["spec"]["containers"][0]["name"] == "app"


def test_nothing_to_change_sends_nothing(cluster: Cluster) -> None:
    done = cluster("set", "deploy/web", "--requests", "memory=64Mi", "--yes", "--exit-code")
    assert (done.code, cluster.sent) == (0, [])
    assert "nothing to apply: deployment/web has these values already\n" in done.err
    assert cluster(*WEB, "--yes", "--exit-code").code == 1
    assert cluster("set", "pod/best", "--requests", "memory=1Mi", "--yes", "--exit-code").code == 2


def test_it_is_not_watched_for_ever(cluster: Cluster) -> None:
    cluster.objects.mutate = lambda _: None
    done = cluster(*ALONE, "--yes", "--timeout", "1s")
    assert done.code == 1
    assert done.lines[-2:] == ["pod/alone resized", "pod/alone: waiting for the kubelet"]
    assert "error: timed out waiting for pod/alone: it is changed, last seen as: waiting" in done.err
    left = cluster("set", "pod/alone", "--requests", "memory=97Mi", "--yes", "--wait=false")
    assert (left.code, left.lines[-1]) == (0, "pod/alone resized")


def test_a_journal_that_cannot_be_kept_is_a_note(cluster: Cluster) -> None:
    state = cluster.run.home / ".local" / "state"
    state.parent.mkdir()
    state.write_text("no folder")
    done = cluster(*ALONE, "--yes")
    assert done.code == 0
    assert "the change history is kept for this run only" in done.err


def test_the_question_names_what_is_written_where(cluster: Cluster) -> None:
    terminal = Terminal(cluster.run.home, *ALONE)
    terminal.until("Apply this to test? Type yes:")
    assert cluster.sent == ["dry"]
    terminal.answer("yes")
    code, said = terminal.ended()
    assert code == 0, said
    assert cluster.sent == ["dry", "real"]
    for line in (
        "namespace  shop",
        "object     pod/alone",
        "change     app requests.memory 64Mi → 96Mi",
        "effect     no container restarts",
    ):
        assert line in said.splitlines()
    assert any(line.startswith("cluster    test  ") for line in said.splitlines())


@pytest.mark.parametrize("answer", ["", "y", "test", "\x04"])
def test_any_other_answer_is_no(cluster: Cluster, answer: str) -> None:
    terminal = Terminal(cluster.run.home, *ALONE)
    terminal.until("Type yes:")
    terminal.answer(answer)
    code, said = terminal.ended()
    assert (code, cluster.sent) == (1, ["dry"])
    assert said.splitlines()[-1] == "error: aborted: pod/alone is not changed"


def test_some_contexts_want_their_name(serve: Serve, run: Run) -> None:
    cluster = Cluster(serve, run, context="prod-1")
    cluster.settings("contexts: {'prod-*': {confirm: name}}\n")
    for answer, code in (("yes", 1), ("prod-1", 0)):
        terminal = Terminal(run.home, *ALONE)
        terminal.until("Apply this to prod-1? Type the context's name:")
        terminal.answer(answer)
        assert terminal.ended()[0] == code
    assert cluster.sent == ["dry", "dry", "real"]


def test_ctrl_c_leaves_and_says_what_is_known(cluster: Cluster) -> None:
    cluster.objects.mutate = lambda _: None
    terminal = Terminal(cluster.run.home, *ALONE, "--yes")
    terminal.until("pod/alone: waiting for the kubelet")
    terminal.process.send_signal(signal.SIGINT)
    code, said = terminal.ended()
    assert code == 130
    assert said.splitlines()[-1] == (
        "stopped watching: pod/alone is changed, last seen as: waiting for the kubelet; the change goes on"
    )


def test_ctrl_c_at_the_question_writes_nothing(cluster: Cluster) -> None:
    terminal = Terminal(cluster.run.home, *ALONE)
    terminal.until("Type yes:")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.ended()[0] == 130
    assert cluster.sent == ["dry"]

"""`undo` from the outside: the journal, and taking changes back through the same road."""

from __future__ import annotations

import json
import re

import pytest

from tests.cluster.changing_server import Fault, once
from tests.cluster.serving import Serve
from tests.end_to_end.changing import Cluster
from tests.end_to_end.command import Run
from tests.end_to_end.terminal import Terminal

ALONE = ("set", "pod/alone", "--requests", "memory=96Mi", "--yes")
WEB = ("set", "deploy/web", "--requests", "memory=96Mi", "--yes")


@pytest.fixture
def cluster(serve: Serve, run: Run) -> Cluster:
    return Cluster(serve, run)


def id_of(said: str) -> str:
    found = re.search(r"to undo it: kubectl qos undo ([0-9a-f]{8})\n", said)
    assert found is not None, said
    return found[1]


def set_by_another(cluster: Cluster, kind: str, name: str, memory: str) -> None:
    spec = {"containers": [{"name": "app", "resources": {"requests": {"memory": memory}}}]}
    patch = {"spec": spec if kind == "Pod" else {"template": {"spec": spec}}}
    cluster.objects.edit(kind, name, patch)


def test_the_last_change_is_taken_back_through_the_same_road(cluster: Cluster) -> None:
    assert cluster(*WEB).code == 0
    assert cluster(*ALONE).code == 0
    done = cluster("undo", "--yes")
    assert done.code == 0, done.err
    assert cluster.sent == ["dry", "real"] * 3
    assert (cluster.memory("Pod", "alone"), cluster.memory("Deployment", "web")) == ("64Mi", "96Mi")
    assert "    app requests.memory  96Mi → 64Mi" in done.lines
    assert done.lines[-2:] == ["pod/alone resized", "pod/alone: done"]
    assert "undo" not in done.err
    again = cluster("undo", "--yes")
    assert again.code == 0, again.err
    assert cluster.memory("Deployment", "web") == "64Mi"
    nothing = cluster("undo", "--yes")
    assert nothing.code == 1
    assert nothing.err.startswith("error: nothing to undo in test\n")


def test_one_change_by_its_id(cluster: Cluster) -> None:
    first = id_of(cluster(*WEB).err)
    assert cluster(*ALONE).code == 0
    done = cluster("undo", first, "--yes")
    assert done.code == 0, done.err
    assert (cluster.memory("Pod", "alone"), cluster.memory("Deployment", "web")) == ("96Mi", "64Mi")
    again = cluster("undo", first, "--yes")
    assert (again.code, again.err) == (1, f"error: {first} is already reverted\n")
    assert cluster("undo", "00000000", "--yes").err.startswith("error: there is no change 00000000\n")


def test_the_list_is_the_journal_the_newest_first(cluster: Cluster) -> None:
    empty = cluster("undo", "--list")
    assert (empty.code, empty.out) == (0, "")
    assert empty.err == "no recorded changes\n"
    ids = [id_of(cluster(*arguments).err) for arguments in (WEB, ALONE)]
    assert cluster("undo", "--yes").code == 0
    asked = len(cluster.server.requests)
    done = cluster("undo", "--list")
    assert len(cluster.server.requests) == asked
    rows = [re.split(r"\s{3,}", line) for line in done.lines]
    assert rows[0] == ["ID", "AGE", "CONTEXT", "OBJECT", "CHANGE", "STATE"]
    assert [row[0] for row in rows[2:]] == ids[::-1]
    assert all(re.fullmatch(r"\d+s", row[1]) for row in rows[1:])
    assert [row[2:] for row in rows[1:]] == [
        ["test", "shop/pod/alone", "app requests.memory 96Mi → 64Mi", "done (an undo)"],
        ["test", "shop/pod/alone", "app requests.memory 64Mi → 96Mi", "undone"],
        ["test", "shop/deployment/web", "app requests.memory 64Mi → 96Mi", "done"],
    ]
    found = json.loads(cluster("undo", "--list", "-o", "json").out)
    assert found["kind"] == "ChangeList"
    assert [one["id"][-8:] for one in found["items"][1:]] == ids[::-1]
    newest = found["items"][0]
    assert newest["undoes"] == found["items"][1]["id"]
    assert [one["undone"] for one in found["items"]] == [False, True, False]
    assert newest["changes"] == [
        {"container": "app", "side": "requests", "resource": "memory", "before": "96Mi", "after": "64Mi"}
    ]
    elsewhere = cluster("undo", "--list", "--context", "other")
    assert elsewhere.err == "no recorded changes in other\n"


def test_a_conflict_is_shown_as_three_values_and_not_overwritten_unasked(cluster: Cluster) -> None:
    assert cluster(*ALONE).code == 0
    set_by_another(cluster, "Pod", "alone", "80Mi")
    done = cluster("undo", "--yes")
    assert done.code == 1
    assert cluster.sent == ["dry", "real"]
    assert done.err.splitlines()[:4] == [
        "pod/alone was changed by someone else since:",
        "                     before  ours  theirs",
        "app requests.memory  64Mi    96Mi  80Mi",
        "error: pod/alone is not changed: --yes does not overwrite what someone else has set",
    ]
    terminal = Terminal(cluster.run.home, "undo")
    said = terminal.until("Type yes:")
    assert "app requests.memory  64Mi    96Mi  80Mi" in said
    assert "change     app requests.memory 80Mi → 64Mi" in said
    terminal.answer("yes")
    assert terminal.ended()[0] == 0
    assert cluster.memory("Pod", "alone") == "64Mi"


def test_an_undo_needs_a_question_or_yes(cluster: Cluster) -> None:
    assert cluster(*ALONE).code == 0
    asked = len(cluster.server.requests)
    done = cluster("undo")
    assert (done.code, done.out, len(cluster.server.requests)) == (2, "", asked)
    assert done.err.startswith("error: confirmation needs a terminal")
    for flag, sent in (("client", ["dry", "real"]), ("server", ["dry", "real", "dry"])):
        tried = cluster("undo", f"--dry-run={flag}")
        assert tried.code == 0, tried.err
        assert cluster.sent == sent
        assert cluster.memory("Pod", "alone") == "96Mi"


def test_an_object_made_anew_is_left_alone(cluster: Cluster) -> None:
    assert cluster(*ALONE).code == 0
    cluster.objects.recreate("Pod", "alone")
    done = cluster("undo", "--yes")
    assert (done.code, cluster.sent) == (1, ["dry", "real"])
    assert "error: pod/alone was deleted and recreated since the change" in done.err
    cluster.objects.delete("Pod", "alone")
    gone = cluster("undo", "--yes")
    assert gone.code == 1
    assert 'pods "alone" not found' in gone.err


def test_values_that_are_back_already_need_nothing(cluster: Cluster) -> None:
    assert cluster(*ALONE).code == 0
    set_by_another(cluster, "Pod", "alone", "64Mi")
    done = cluster("undo", "--yes")
    assert (done.code, cluster.sent) == (1, ["dry", "real"])
    assert "error: nothing to undo: pod/alone has the previous values already" in done.err


def test_what_a_pod_cannot_lose_in_place_stays(cluster: Cluster) -> None:
    """A value that was not there before cannot be removed from a running pod."""
    done = cluster("set", "pod/alone", "--limits", "cpu=1", "--yes")
    assert done.code == 0, done.err
    back = cluster("undo", "--yes")
    assert (back.code, cluster.sent) == (1, ["dry", "real"])
    assert "error: pod/alone cannot be reverted: " in back.err
    assert "resource limits cannot be removed" in back.err


def test_of_another_context_or_server_nothing_is_taken_back(cluster: Cluster, serve: Serve) -> None:
    id_ = id_of(cluster(*ALONE).err)
    cluster.use("elsewhere")
    assert cluster("undo", "--yes").err.startswith("error: nothing to undo in elsewhere\n")
    named = cluster("undo", id_, "--yes")
    assert (named.code, named.err) == (
        1,
        f"error: {id_} was in the context test, this is elsewhere\nhint: add --context test\n",
    )
    other = Cluster(serve, cluster.run)
    moved = other("undo", "--yes")
    assert (moved.code, other.sent) == (1, [])
    assert "error: test is another server now: the change was on 127.0.0.1:" in moved.err


def test_what_was_refused_is_nothing_to_take_back(cluster: Cluster) -> None:
    from tests.cluster.object_server import status

    cluster.objects.fault = once(Fault(applies=False, answer=status(403, "Forbidden", "no")))
    assert cluster(*ALONE).code == 1
    assert cluster("undo", "--yes").err.startswith("error: nothing to undo in test\n")
    (entry,) = json.loads(cluster("undo", "--list", "-o", "json").out)["items"]
    assert (entry["state"], entry["message"]) == ("refused", "Error from server (Forbidden): no")
    named = cluster("undo", entry["id"], "--yes")
    assert named.err.endswith("was refused by the server: nothing was changed\n")


def test_a_write_of_which_nothing_is_known_can_be_taken_back(cluster: Cluster) -> None:
    cluster.objects.fault = once(Fault(applies=False))
    assert cluster(*ALONE).code == 1
    assert "error: nothing to undo" in cluster("undo", "--yes").err
    set_by_another(cluster, "Pod", "alone", "96Mi")
    assert cluster("undo", "--yes").code == 0
    assert cluster.memory("Pod", "alone") == "64Mi"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--demo"], "error: undo needs a cluster: --demo and -f are not supported\n"),
        (["-f", "x"], "error: undo needs a cluster: --demo and -f are not supported\n"),
        (["-o", "json", "--yes"], "error: -o is the format of --list\n"),
        (["--timeout", "soon"], "error: argument --timeout: Invalid timeout value"),
    ],
)
def test_what_makes_no_command(run: Run, arguments: list[str], sentence: str) -> None:
    done = run("undo", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(sentence)

"""`kubectl qos kills`: what it prints of dumps, the demo and a cluster, with kernel logs and without."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.cluster_objects import node as node_object
from tests.cluster.cluster_objects import pod as pod_object
from tests.cluster.https_server import HttpsServer, Request
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import ObjectServer, status
from tests.cluster.serving import Serve
from tests.end_to_end.command import Run
from tests.host.kernel_logs import FORMS, RECORDED, recorded_log, recorded_run, rewritten

DIED = "2026-11-20T12:00:00Z"


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """The recorded node OOM as `kubectl get pods,nodes,events -o json` would have dumped it."""
    said = recorded_run("global-A")
    items = [{**pod, "kind": "Pod"} for pod in said["pods_after"].values()]
    items += [said["node_after"], *({**event, "kind": "Event"} for event in said["events"])]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"kind": "List", "items": items}))
    return path


LOG = RECORDED / "oom-global-A.dmesg.txt"


def columns(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("   ") if cell.strip()]


def test_the_recorded_node_oom(run: Run, dump: Path) -> None:
    done = run("kills", "-f", dump)
    assert done.code == 0
    assert columns(done.lines[0]) == [
        "TIME",
        "NAMESPACE",
        "POD",
        "CONTAINER",
        "BY",
        "SURE",
        "SCORE",
        "FREED",
        "NODE",
    ]
    assert columns(done.lines[5])[2:8] == ["oa-bu-over", "c", "node", "likely", "<unknown>", "<unknown>"]
    assert done.err == "5 of 5 not certain: kernel logs of node1 would tell (--kernel-log)\n"
    done = run("kills", "-f", dump, "--kernel-log", LOG, "--no-headers")
    assert columns(done.lines[4]) == [
        "2026-11-20T21:22:40Z",
        "default",
        "oa-bu-over",
        "c",
        "node",
        "certain",
        "1390",
        "400Mi",
        "node1",
    ]
    assert done.err == ""


def test_a_log_from_a_pipe_and_whose_it_is(run: Run, dump: Path) -> None:
    text = "\n".join(rewritten(recorded_log("global-A"), FORMS["journalctl -o json"]))
    done = run("kills", "-f", dump, "--kernel-log", "node1=-", given=text)
    assert [columns(line)[5] for line in done.lines[1:]] == ["certain"] * 5
    done = run("kills", "-f", "-", "--kernel-log", "-", given=text)
    assert (done.code, "standard input" in done.err) == (2, True)
    done = run("kills", "-f", dump, "--kernel-log", "node1=")
    assert (done.code, "names no file" in done.err) == (2, True)
    (run.home / "a=b").write_text("")
    done = run("kills", "-f", dump, "--kernel-log", "a=b")
    assert "a=b: no OOM report in 0 lines\n" in done.err
    done = run("kills", "-f", dump, "--kernel-log", "none.log")
    assert (done.code, "cannot be read: No such file" in done.err) == (1, True)


def test_the_details_of_one(run: Run, dump: Path) -> None:
    done = run("kills", "-f", dump, "pod/oa-bu-over", "--kernel-log", LOG)
    text = " ".join(done.out.split())
    assert done.lines[0] == "pod default/oa-bu-over, container c on node1"
    assert "certain: killed by the kernel because the node ran out of memory" in text
    assert "the victim was memhog, process 16794, uid 0, oom_score_adj 984, 400Mi in memory" in text
    assert "memhog, process 16862, triggered the OOM" in text
    assert "it had the most points of 31 processes" in text
    assert "2 with oom_score_adj -1000 are never killed" in text
    assert "1 memhog 16794 984 102610 1082674 1390" in text
    assert "2 memhog 16800 1000 51322 1047322 1367" in text
    assert "and 25 more" in text
    done = run("kills", "-f", dump, "oa-bu-over", "-o", "table")
    assert len(done.lines) == 2
    done = run("kills", "-f", dump, "oa-gu-200")
    assert (done.code, done.out, done.err) == (0, "", "No kills found that memory may explain\n")
    done = run("kills", "-f", dump, "pod/nobody")
    assert (done.code, done.err) == (1, 'Error from server (NotFound): pods "nobody" not found\n')


def test_wide_has_the_evidence_too(run: Run, dump: Path) -> None:
    done = run("kills", "-f", dump, "-o", "wide")
    assert columns(done.lines[0])[-4:] == ["EXIT", "REASON", "VICTIM", "PLACE"]
    assert done.out.count("event SystemOOM of Node/node1: System OOM encountered") > 5
    assert (
        done.out.count("to be certain: the kernel log of node1: kubectl qos kills --kernel-log node1=FILE")
        == 5
    )


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_for_programs(run: Run, dump: Path, output: str) -> None:
    done = run("kills", "-f", dump, "--kernel-log", LOG, "-o", output)
    said = json.loads(done.out) if output == "json" else yaml.safe_load(done.out)
    assert said["kind"] == "KillList"
    first = said["items"][4]
    assert (first["pod"], first["by"], first["sure"], first["score"]) == (
        "oa-bu-over",
        "node",
        "certain",
        1390,
    )
    assert first["kernel"]["constraint"] == "CONSTRAINT_NONE"
    assert first["choice"]["place"] == 1
    assert len(first["choice"]["ranked"]) == 31
    assert first["evidence"][0]["fact"] == "kernel"
    assert first["freedBytes"] == 409600 * 1024


def test_since_and_scope(run: Run) -> None:
    names = [columns(line)[2] for line in run("kills", "--demo").lines[1:]]
    assert "crunch-x2k9f" in names
    recent = run("kills", "--demo", "--since", "3h").lines[1:]
    assert [columns(line)[2] for line in recent] == ["crunch-x2k9f"]
    assert [columns(line)[2] for line in run("kills", "--demo", "--since", "1d").lines[1:]] == names
    assert [columns(line)[8] for line in run("kills", "--demo", "node/worker-1").lines[1:]] == [
        "worker-1"
    ] * 2
    assert {columns(line)[1] for line in run("kills", "--demo", "-n", "shop").lines[1:]} == {"shop"}
    assert (
        run("kills", "--demo", "deployment/api")
        .lines[0]
        .startswith("pod shop/api-7d9c5b6f8-x2mzq, container c")
    )
    assert run("kills", "--demo", "--since", "soon").code == 2
    done = run("kills", "--demo", "-n", "nowhere")
    assert (done.code, done.err) == (0, "No kills found that memory may explain in nowhere namespace.\n")


def test_the_log_alone_where_there_is_no_cluster(run: Run) -> None:
    done = run("kills", "--kernel-log", LOG)
    assert done.code == 0
    assert (
        columns(done.lines[1])[1:5]
        == [
            "<none>",
            "uid:31a7cd4e-49f2-4a64-978f-dc6c9f667c81",
            "<unknown>",
            "node",
        ]
        or "uid:" in done.lines[1]
    )
    assert "the list of pods is missing" in done.err
    assert run("kills").code == 1


def test_what_is_outside_the_scope_is_left_out(run: Run, dump: Path) -> None:
    other = RECORDED / "oom-kubepods-C.dmesg.txt"
    assert run("kills", "-f", dump, "--kernel-log", other).out.count("uid:") == 5
    for scope in (["-n", "default"], ["pod/oa-be-100"], ["-l", "set=truth"]):
        done = run("kills", "-f", dump, "--kernel-log", other, *scope)
        assert "uid" not in done.out
        assert done.code == 0


def test_what_a_log_says_is_escaped(run: Run, dump: Path) -> None:
    log = run.home / "odd.log"
    log.write_text(
        "oom-kill:constraint=CONSTRAINT_NONE,task_memcg=/a\x1b]0;x\x07b,task=\x1b[31m,pid=7,uid=0\n"
        "Out of memory: Killed process 7 (\x1b[31mx\x07) total-vm:1kB, anon-rss:1kB, file-rss:0kB\n"
    )
    done = run("kills", "-f", dump, "--kernel-log", log, "-o", "wide")
    assert "\x1b" not in done.out + done.err
    assert "\x07" not in done.out + done.err


class _Cluster:
    """A server with one pod that was OOMKilled, and events that not everybody may list."""

    def __init__(self, serve: Serve, home: Path, events: list[dict[str, Any]]) -> None:
        died = pod_object("web")
        end = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": DIED}
        died["status"] = {
            "phase": "Running",
            "containerStatuses": [{"name": "app", "lastState": {"terminated": end}}],
        }
        died["spec"]["containers"][0]["name"] = "app"
        self.objects = ObjectServer(pods=[died], nodes=[node_object("worker-1")], events=events)
        self.forbidden: tuple[str, ...] = ()
        self.server: HttpsServer = serve(self.answer)
        write(home / ".kube" / "config", kubeconfig(self.server, namespace="shop", context="test"))

    def answer(self, request: Request) -> Any:
        if request.path in self.forbidden:
            return status(403, "Forbidden", 'events is forbidden: User "u" cannot list resource "events"')
        return self.objects(request)


EVENTS = "/api/v1/namespaces/shop/events"
NODE_EVENTS = "/api/v1/namespaces/default/events"


def _event(place: str, reason: str, **involved: str) -> dict[str, Any]:
    return {
        "metadata": {"name": reason.lower(), "namespace": place},
        "involvedObject": involved,
        "reason": reason,
        "message": "System OOM encountered, victim process: x, pid: 7",
        "lastTimestamp": DIED,
        "type": "Warning",
    }


def test_a_cluster_and_its_events(run: Run, serve: Serve) -> None:
    cluster = _Cluster(
        serve,
        run.home,
        [
            _event("default", "SystemOOM", kind="Node", name="worker-1"),
            _event("shop", "BackOff", kind="Pod", namespace="shop", name="web"),
        ],
    )
    done = run("kills")
    assert columns(done.lines[1])[2:6] == ["web", "app", "node", "likely"], done
    asked = [request.path for request in cluster.server.requests]
    assert EVENTS in asked
    assert NODE_EVENTS in asked
    assert not any("metrics" in path for path in asked), "usage is nothing to the dead"
    cluster.server.requests.clear()
    assert columns(run("kills", "-A").lines[1])[2:6] == ["web", "app", "node", "likely"]
    assert "/api/v1/events" in [request.path for request in cluster.server.requests]


@pytest.mark.parametrize("forbidden", [(EVENTS, NODE_EVENTS), (NODE_EVENTS,)])
def test_without_the_right_to_events(run: Run, serve: Serve, forbidden: tuple[str, ...]) -> None:
    cluster = _Cluster(serve, run.home, [_event("default", "SystemOOM", kind="Node", name="worker-1")])
    cluster.forbidden = forbidden
    done = run("kills")
    assert done.code == 0
    assert columns(done.lines[1])[4:6] == ["unknown", "possible"]
    what = (
        "the list of events is missing" if EVENTS in forbidden else "the list of the nodes' events is missing"
    )
    assert what in done.err
    assert "docs/rbac/events.yaml" in done.err


def test_help_names_the_columns(run: Run) -> None:
    done = run("kills", "--help")
    assert done.code == 0
    assert "--kernel-log [NODE=]FILE|-" in done.out


def test_it_starts_without_what_is_slow(run: Run) -> None:
    code = (
        "import sys; from kubectl_qos.__main__ import main; main(['kills', '--demo', '-o', 'json']);"
        "slow = {'textual', 'rich', 'kubernetes', 'yaml', 'urllib3'} & set(sys.modules);"
        "assert not slow, slow"
    )
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()

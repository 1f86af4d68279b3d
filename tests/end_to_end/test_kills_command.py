"""`kills` of a cluster and of logs from pipes; the rest is in test_transcripts.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster_objects import node as node_object
from tests.cluster.cluster_objects import pod as pod_object
from tests.cluster.https_server import HttpsServer, Request
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import ObjectServer, status
from tests.cluster.serving import Serve
from tests.end_to_end.command import Run
from tests.end_to_end.stages import node_oom
from tests.host.kernel_logs import FORMS, recorded_log, rewritten

DIED = "2026-11-20T12:00:00Z"


@pytest.fixture
def dump(run: Run) -> Path:
    node_oom(run.home)
    return run.home / "dump.json"


def columns(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("   ") if cell.strip()]


def test_a_log_from_a_pipe_and_whose_it_is(run: Run, dump: Path) -> None:
    text = "\n".join(rewritten(recorded_log("global-A"), FORMS["journalctl -o json"]))
    done = run("kills", "-f", dump, "--kernel-log", "node1=-", given=text)
    assert [columns(line)[5] for line in done.lines[1:]] == ["certain"] * 5


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
    paths = [request.path for request in cluster.server.requests]
    assert EVENTS in paths
    assert NODE_EVENTS in paths
    assert not any("metrics" in path for path in paths), "usage is nothing to the dead"
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

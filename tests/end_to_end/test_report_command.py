"""`report`: that it says what `kills`, `next` and `fix` say; its text is in snapshots/text/transcripts."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from markdown_it import MarkdownIt

from kubectl_qos.cli import sources
from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.demo.source import LivingDemo
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.evidence import evidence_sentence
from kubectl_qos.qos.kills.analyze import find_kills
from tests.cluster.cluster_objects import node as node_object
from tests.cluster.cluster_objects import pod as pod_object
from tests.cluster.object_server import ObjectServer
from tests.end_to_end.command import Run
from tests.end_to_end.conftest import Live
from tests.host.kernel_logs import recorded_log

PARSER = MarkdownIt("commonmark").enable("table")


def values(run: Run, *words: str) -> Any:
    done = run(*words, "-o", "json")
    assert (done.code, done.err) == (0, "") or words[0] != "report"
    return json.loads(done.out)


@pytest.mark.parametrize(
    "about", [("node/worker-2",), ("pod/api-7d9c5b6f8-x2mzq", "-n", "shop"), ("deploy/api", "-n", "shop"), ()]
)
def test_every_statement_is_that_of_kills_next_and_fix(run: Run, about: tuple[str, ...]) -> None:
    report = values(run, "report", "--demo", *about)
    kills = values(run, "kills", "--demo", *about, "--since", "24h")["items"]
    fixes = values(run, "fix", "--demo", *about)
    assert report["kills"] == kills
    assert report["next"] == values(run, "next", "--demo", *about)["items"]
    assert (report["fixes"], report["unfixed"]) == (fixes["items"], fixes["unfixed"])
    assert sorted(place for death in report["deaths"] for place in death["kills"]) == list(range(len(kills)))
    ranks = values(run, "top", "-A", "--demo")["items"]
    for death in report["deaths"]:
        kill = kills[death["kills"][0]]
        assert all(rival in ranks for rival in death["rivals"])
        assert bool(death["rivals"]) == (kill["mechanism"] == "node")
        if death["fix"] is not None and kill["mechanism"] == "pod limit":
            pod = (f"pod/{kill['pod']}", "-n", kill["namespace"])
            assert death["fix"] in [
                {**one, "number": 1} for one in values(run, "fix", "--demo", *pod)["items"]
            ]
            assert death["fix"]["message"] in death["prevention"]
        if death["fix"] is not None and kill["mechanism"] == "node":
            assert death[("prevention")].startswith(
                "against that killer, on the node as it is now (kubectl qos fix"
            )
    text = run("report", "--demo", *about).out
    lines = " ".join(one.content for one in PARSER.parse(text) if one.type == "inline").replace("\\", "")
    said = [report["summary"], *(one["message"] for kill in kills for one in kill["evidence"])]
    said += [death[key] for death in report["deaths"] for key in ("others", "prevention") if death[key]]
    assert [one for one in said if one.replace("\\", "") not in lines] == []


def test_a_kernel_log_answers_without_a_cluster(run: Run) -> None:
    text = "\n".join(recorded_log("global-A"))
    page = run("report", "node/node1", "--kernel-log", "node1=-", given=text)
    assert (page.code, page.err) == (0, "")
    assert "From kernel logs alone" in page.out
    assert "5 OOM kills or evictions, killed by the kernel because the node ran out of memory." in page.out
    of_list = "he list of pods is missing: no kubeconfig found"
    assert f"## The situation now\n\nT{of_list}" in page.out, "nobody knows who dies next"
    other = run("report", "node/other", "--kernel-log", "node1=-", given=text)
    assert "No OOM kills or evictions found." in other.out
    of_pod = run("report", "pod/web", "--kernel-log", "node1=-", given=text)
    assert (of_pod.code, of_pod.out) == (1, ""), "a log does not name pods"
    of_none = run("report", "--demo", "-n", "none", "--kernel-log", "node1=-", given=text)
    assert of_none.err == 'Error from server (NotFound): namespaces "none" not found\n'


def test_a_kernel_log_of_years_ago(run: Run) -> None:
    killed = "Out of memory: Killed process 4711 (leaky) total-vm:9kB, anon-rss:8kB, file-rss:0kB"
    page = run("report", "--kernel-log", "-", given=f"[Tue Jun 22 10:00:00 2021] {killed}")
    assert "covering all known deaths" in page.out
    assert "1 OOM kill or eviction" in page.out
    assert "any pod on the node, but the kernel kills" in page.out


def test_a_pod_with_unknown_requests_has_no_fix_and_no_claim(run: Run) -> None:
    page = run(
        "report",
        "-f",
        "-",
        given="Name:     web-0\nNode:     n/10.0.0.1\nContainers:\n  a:\n    State:     Terminated\n"
        "      Reason:     OOMKilled\n      Exit Code:  137\n    Limits:\n      memory:  1Gi\n    Requests:\n"
        "      cpu:  1\n",
    )
    assert "the container's memory limit is 1Gi now" in page.out
    assert (
        "no change is offered: what was read does not show what all containers of the pod request" in page.out
    )


def test_a_job_whose_pod_was_killed_has_the_fix_of_that_pod(run: Run) -> None:
    found = values(run, "fix", "--demo", "job/etl-28930", "-n", "batch")
    assert found == values(run, "fix", "--demo", "pod/etl-28930-9xw2c")
    assert [one["when"] for one in found["items"]] == ["recreated"]
    succeeded = run("fix", "--demo", "pod/migrate-2026-11-tq8zn")
    assert succeeded.err == "error: pod migrate-2026-11-tq8zn has ended: its cgroup is gone\n"


def test_the_living_demo_after_its_kills(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    now = DEMO_TIME + timedelta(minutes=7)
    monkeypatch.setattr(sources, "_demo", lambda overrides, *_, **__: LivingDemo(overrides, now=lambda: now))
    report = values(run, "report", "--demo", "pod/importer-5f7b9c-2vtxk")
    demo = LivingDemo(now=lambda: now)
    known = [
        kill
        for kill in find_kills(demo.snapshot(Scope()), demo.event_list(None), demo.kernel_logs())
        if kill.pod.startswith("importer")
    ]
    assert len(known) == 3
    assert [kill["time"] for kill in report["kills"]] == [kill.time for kill in known]
    assert {kill["confidence"] for kill in report["kills"]} == {"certain"}
    (death,) = report["deaths"]
    assert death["kills"] == [0, 1, 2]
    assert "limits.memory" in death["prevention"]
    text = run("report", "--demo", "pod/importer-5f7b9c-2vtxk").out
    assert f"before that {known[1].time}, {known[2].time}." in text
    assert all(one in text.replace("\\", "") for one in map(evidence_sentence, known[0].diagnosis.evidence))


NASTY = "a | b `c` <script>alert(1)</script> [x](http://e) **d** \x1b[31m\u202e\n# e\n- f"


def nasty_dump(run: Run) -> None:
    """A cluster whose every text is meant to be something else on a page."""
    died = pod_object("web")
    end = {"exitCode": 137, "reason": NASTY, "finishedAt": "2026-11-20T11:00:00Z", "containerID": "x://1"}
    failed = {**end, "exitCode": 3, "finishedAt": "2026-11-20T11:30:00Z"}
    status = {"name": "app", "containerID": "x://2", "restartCount": 2}
    died["status"] = {
        "phase": "Running",
        "containerStatuses": [{**status, "state": {"terminated": failed}, "lastState": {"terminated": end}}],
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": NASTY, "message": NASTY}],
    }
    involved = {"kind": "Node", "name": "worker-1"}
    event = {"kind": "Event", "involvedObject": involved, "reason": "SystemOOM", "message": NASTY}
    event |= {"lastTimestamp": "2026-11-20T11:00:00Z", "type": "Warning"}
    items = [died, node_object(), event]
    (run.home / "dump.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))


def test_texts_of_a_server_are_only_text(run: Run) -> None:
    nasty_dump(run)
    done = run("report", "-f", "dump.json")
    assert done.code == 0, done.err
    assert not {"\x1b", "\u202e"} & set(done.out)
    tokens = [one for token in PARSER.parse(done.out) for one in (token, *(token.children or ()))]
    assert {"html_inline", "html_block", "link_open", "code_inline"}.isdisjoint(one.type for one in tokens)
    assert sum(one.type == "heading_open" for one in tokens) == done.out.count("\n#") + 1
    shown = [one.content for one in tokens if one.type == "text" and "<script>" in one.content]
    assert len(shown) >= 4
    page = run("report", "-f", "dump.json", "-o", "html").out
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_where_nothing_died_it_says_so_and_what_is_next(run: Run) -> None:
    nasty_dump(run)
    done = run("report", "-f", "dump.json", "--since", "1s")
    assert (done.code, "No OOM kills or evictions found." in done.out) == (0, True)
    assert "## Each death" not in done.out
    assert "## The situation now" in done.out


@pytest.mark.parametrize("about", [(), ("pod/web",), ("node/worker-1",)])
def test_a_cluster_whose_events_may_not_be_read(run: Run, live: Live, about: tuple[str, ...]) -> None:
    died = pod_object("web")
    end = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": f"{datetime.now(UTC):%FT%TZ}"}
    statuses = [{"name": "app", "lastState": {"terminated": end}}]
    died["status"] = {"phase": "Running", "containerStatuses": statuses}
    cluster = ObjectServer(pods=[died], nodes=[node_object()])
    cluster.forbidden = {
        f"/api/v1/{where}events" for where in ("", "namespaces/shop/", "namespaces/default/")
    }
    live(cluster, namespace="shop")
    done = run("report", *about)
    assert (done.code, done.err) == (0, "")
    title = {(): "namespace shop", ("pod/web",): "pod shop/web"}.get(about, "node worker-1")
    assert done.lines[0] == f"# Memory report: {title}"
    assert "1 OOM kill or eviction" in done.out
    assert "the list of events is missing: " in done.out
    assert "memory usage is missing: " in done.out

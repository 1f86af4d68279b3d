"""`--at` against real stores: one minute before each death of the made day its victim is the next one."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.cli.options import SourceOptions
from kubectl_qos.cli.sources import Past
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.metrics.prometheus import Prometheus
from kubectl_qos.metrics.series import UsageHistory
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport.client import connect
from tests.end_to_end.command import Run
from tests.metrics.conftest import Store
from tests.metrics.history import API_DIES, CACHE_DIES, CRUNCH_DIES, DAY, LEAK_FROM, THROTTLED
from tests.recordings.files import read


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def at(store: Store, second: int) -> list[str]:
    moment = datetime.fromtimestamp(store.begin + second, UTC)
    return ["--prometheus", store.url, "--at", f"{moment:%Y-%m-%dT%H:%M:%SZ}"]


def deaths(run: Run, store: Store, node: str, second: int) -> list[dict[str, Any]]:
    done = run("next", f"node/{node}", "-o", "json", *at(store, second))
    assert done.code == 0, done.err
    assert "THE PAST" in done.err
    document = json.loads(done.out)
    assert document["at"] == at(store, second)[-1]
    return list(document["items"])


@pytest.mark.parametrize(
    ("node", "second", "mechanism", "victim"),
    [
        ("worker-1", API_DIES, "pod limit", "api-0"),
        ("worker-2", CRUNCH_DIES, "node", "crunch"),
        ("worker-3", CACHE_DIES, "kubelet eviction", "cache"),
    ],
)
def test_a_minute_before_a_death_its_victim_is_next(
    run: Run, store: Store, node: str, second: int, mechanism: str, victim: str
) -> None:
    found = deaths(run, store, node, second - 60)
    by_killer = [death for death in found if death["mechanism"] == mechanism]
    assert by_killer[0]["pod"] == victim


def test_at_half_time_the_end_of_a_straight_leak_is_known(run: Run, store: Store) -> None:
    half = API_DIES // 2
    (death,) = [
        row
        for row in deaths(run, store, "worker-1", half)
        if (row["pod"], row["mechanism"]) == ("api-0", "pod limit")
    ]
    assert death["etaSeconds"] == pytest.approx(API_DIES - half, rel=0.1)
    done = run("next", "node/worker-1", "--usage=prometheus", "--stat=avg", "-o", "json", *at(store, half))
    (by_average,) = [
        one
        for one in json.loads(done.out)["items"]
        if one["mechanism"] == "pod limit" and one["pod"] == "api-0"
    ]
    assert by_average["distanceBytes"] > death["distanceBytes"]
    assert by_average["etaSeconds"] == death["etaSeconds"], "a time counts from the present usage"
    done = run("top", "-A", "--over", "12h", *at(store, half))
    assert "ETA assumes that memory keeps growing" in done.err
    (header, *rows) = done.lines
    assert {"PEAK", "P99", "GROWTH", "ETA"} <= set(header.split())
    (api,) = [row.split() for row in rows if "api-0" in row]
    assert "+150Mi/h" in api
    assert [row for row in rows if "db-0" in row and "~" in row] == []


def test_a_container_that_its_cpu_limit_holds_back(store: Store) -> None:
    client = Prometheus(connect(ConnectionOptions(server=store.url)), "the store")
    found = UsageHistory(client, 7200, "", store.begin + API_DIES - 60).read().history.containers
    throttled = {key[0][1]: round(one.throttled, 2) for key, one in found.items() if one.throttled}
    assert throttled == {"api-0": THROTTLED}


def test_after_a_restart_the_new_container_counts(run: Run, store: Store) -> None:
    """Its old cgroup stays in the store for five minutes."""
    done = run("top", "-A", "-o", "json", *at(store, API_DIES + 60))
    rows = {row["pod"]: row["memoryBytes"] for row in json.loads(done.out)["items"]}
    assert rows["api-0"] == LEAK_FROM


def test_the_kernel_chooses_another_where_no_process_holds_the_memory(run: Run, store: Store) -> None:
    done = run("next", "node/worker-3", *at(store, CACHE_DIES - 60))
    assert "kernel: node full, if one process holds" in done.out
    assert "if no process holds that much, kube-system/agent:app dies (kernel: node full" in done.err


@pytest.mark.parametrize(
    "words",
    [("top", "-A"), ("top", "nodes"), ("explain", "pod/db-0", "-n", "shop"), ("tree", "node/worker-1")],
)
def test_every_command_says_that_it_is_the_past(run: Run, store: Store, words: tuple[str, ...]) -> None:
    past = at(store, API_DIES)
    done = run(*words, "-o", "json", *past)
    assert done.code == 0
    assert done.err.startswith(f"THE PAST: the cluster at {past[-1]}, rebuilt from {store.url}")
    assert json.loads(done.out)["at"] == past[-1]


def test_what_is_not_in_the_store_is_listed(run: Run, store: Store) -> None:
    err = run("top", "-A", *at(store, API_DIES)).err
    assert "what no metric has is missing: volumes, pod-level resources" in err
    assert "the value of priority class web-high is missing: no metric has it (0 is assumed)" in err


def test_a_simulation_of_the_past(run: Run, store: Store) -> None:
    done = run("simulate", "node/worker-2", "--free", "1Gi", *at(store, CRUNCH_DIES - 60))
    assert "batch/crunch" in done.out
    assert "after 1 kill " in done.out
    later = run("simulate", "node/worker-2", "--free", "1Gi", *at(store, CRUNCH_DIES + 900))
    assert "after 2 kills" in later.out


def test_pressure_is_a_rate_of_two_minutes(run: Run, store: Store) -> None:
    """Of 10 s and of what is scraped less often there is none, which is said and not zero."""
    moment = at(store, API_DIES - 60)
    done = run("top", "-A", "-o", "wide", "--no-headers", *moment)
    cells = {
        line.split()[2]: [cell for cell in line.split() if cell in {"25.0%", "20.0%", "<none>"}]
        for line in done.lines
    }
    assert cells["api-0"][:2] == ["<none>", "20.0%"]
    assert "20.0%" not in cells["db-0"]
    assert "PSI60 is the mean of 2 minutes in Prometheus; PSI10 is unknown" in done.err
    values = json.loads(run("top", "-A", "--containers", "-o", "json", *moment).out)["items"]
    known = {row["pod"]: (row["psiSome10Percent"], row["psiSome60Percent"]) for row in values}
    assert known["api-0"] == (None, 25)
    assert known["db-0"] == (None, None)
    nodes = json.loads(run("top", "nodes", "-o", "json", *moment).out)["items"]
    assert {row["node"]: row["psiSome60Percent"] for row in nodes} == {
        "worker-1": 10,
        "worker-2": None,
        "worker-3": None,
    }
    said = " ".join(run("explain", "pod/api-0", "-n", "shop", *moment).out.split())
    assert "Pressure tasks waited, in the last 2 minutes, by Prometheus (PSI)" in said
    assert "pod memory 20.0% some, 10.0% all node memory 10.0% some, 5.0% all" in said
    assert "file 20Mi, shmem 8Mi, kernel" in said.partition("Memory by Prometheus app anon ")[2]
    (app,) = json.loads(run("explain", "pod/api-0", "-n", "shop", "-o", "json", *moment).out)["containers"]
    assert app["memory"]["shmemBytes"] == 8 << 20
    assert app["pressure"]["memory"]["some"]["avg60"] == 25
    said = " ".join(run("explain", "pod/front", "-n", "web", *moment).out.split())
    assert "Pressure <none> Prometheus has no pressure (PSI); kubelets report it from 1.34 on" in said


def test_before_the_first_sample_there_is_nothing(run: Run, store: Store) -> None:
    done = run("top", "-A", *at(store, -3600))
    assert (done.code, done.out) == (1, "")
    assert "has no kube_pod_info at" in done.err


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("2030-01-01T00:00:00Z", "is in the future"),
        ("yesterday", "is not a time"),
    ],
)
def test_a_time_that_is_none(run: Run, store: Store, text: str, problem: str) -> None:
    done = run("next", "--prometheus", store.url, f"--at={text}")
    assert done.code == 2
    assert problem in done.err


@pytest.mark.parametrize("ago", ["20h ago", "20h", "-20h"])
def test_ago_counts_by_the_clock_of_the_store(run: Run, store: Store, ago: str) -> None:
    done = run("top", "-A", "--prometheus", store.url, f"--at={ago}")
    assert done.code == 0, done.err


def test_kills_finds_deaths_that_no_status_has(run: Run, store: Store) -> None:
    past = ["kills", "-A", "--since", "25h", *at(store, CACHE_DIES + 3600)]
    done = run(*past, "-o", "json")
    assert done.code == 0, done.err
    found = {kill["pod"]: kill for kill in json.loads(done.out)["items"]}
    assert found.keys() == {"api-0", "crunch", "cache"}
    begin = datetime.fromtimestamp(store.begin, UTC).timestamp()
    for name, second in (("api-0", API_DIES), ("crunch", CRUNCH_DIES)):
        assert datetime.fromisoformat(found[name]["time"]).timestamp() == begin + second
    assert {name: (kill["mechanism"], kill["confidence"]) for name, kill in found.items()} == {
        "api-0": ("pod limit", "likely"),
        "crunch": ("OOM killer", "likely"),
        "cache": ("kubelet eviction", "likely"),
    }


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("top", "--demo", "--at", "2h"), 2, "--at and --demo cannot be used together: --demo replaces the"),
        (("top", "-f", "x", "--usage=prometheus"), 2, "--usage=prometheus and -f cannot be used together"),
        (("kills", "--demo", "--prometheus", "auto"), 2, "--prometheus and --demo cannot be used together"),
        (("top", "--at", "2h"), 1, "no kubeconfig found"),
        (("top", "--at", "tomorrow"), 2, "--at 'tomorrow' is not a time"),
        (("top", "--at", "-2h"), 1, "no kubeconfig found"),
        (("next", "--at", "2h", "--prometheus", "http://127.0.0.1:1"), 1, "127.0.0.1:1 was refused"),
        (("fix", "--at", "2h"), 2, "unknown flag: --at"),
        (("top", "--over", "0s"), 2, "is not a duration"),
    ],
)
def test_what_has_no_past(run: Run, words: tuple[str, ...], code: int, problem: str) -> None:
    done = run(*words)
    assert problem in done.err
    assert (done.code, done.out) == (code, "")


def test_the_track_of_the_slider_has_the_day_and_its_deaths(store: Store) -> None:
    options = SourceOptions(prometheus=store.url, connection=ConnectionOptions(context="none"))
    track = Past(options).track()
    assert track.end - track.begin <= DAY
    assert store.begin - 60 <= track.begin <= store.begin + 1000, "the store begins no earlier"
    assert {"worker-1", "worker-2", "worker-3"} == {*track.memory}
    at, used = track.memory["worker-1"][-1]
    assert (at, used) == pytest.approx((track.end, 3696 << 20)), "db-0, api-0 and what is no pod's"
    assert [(kill.pod, kill.diagnosis.mechanism.value) for kill in track.kills] == [
        ("api-0", "container limit"),
        ("crunch", "node"),
        ("cache", "kubelet eviction"),
    ]


def test_the_past_is_a_source_whose_lines_end_then(store: Store) -> None:
    past = Past(SourceOptions(prometheus=store.url, over_seconds=DAY // 4))
    at = datetime.fromtimestamp(store.begin + API_DIES - 60, UTC)
    snapshot = past.source(at).snapshot(Scope())
    line = snapshot.history.lines["shop", "api-0"]
    assert len(line) == 32
    assert list(line) == sorted(line), "a leak grows"
    assert line[-1] == pytest.approx(snapshot.usage["shop", "api-0"].working_set_bytes >> 10, rel=0.1)
    shown = past.source(at).past
    assert (shown.context, shown.at) == ("the store", at)
    assert shown.ago_seconds == pytest.approx(time.time() - at.timestamp(), abs=120), "stores lag"


def test_the_ui_without_a_terminal_lists_the_past(run: Run, store: Store) -> None:
    past = at(store, API_DIES - 60)
    done = run(*past, "-A")
    assert done.lines[1:] == run("top", "-A", *past).lines[1:]
    assert "THE PAST" in done.err
    refused = run(*past, "set", "pod/api-0", "--limits", "memory=1Gi")
    assert (refused.code, refused.out) == (2, "")
    assert "set does not support --at" in refused.err


def test_labels_select_what_kube_state_metrics_exports(run: Run, store: Store) -> None:
    done = run("top", "-A", "-l", "app.kubernetes.io/name=db", "-o", "name", *at(store, API_DIES))
    assert sorted(done.lines) == ["pod/db-0", "pod/db-1"]
    done = run("top", "nodes", "-l", "nodePool in (large)", "-o", "name", *at(store, API_DIES))
    assert done.lines == ["node/worker-3"]
    done = run("top", "-l", "tier=web", *at(store, API_DIES))
    assert (done.code, done.out) == (1, "")
    assert "has no label tier of pods or nodes at" in done.err
    assert "--metric-labels-allowlist" in done.err


def test_without_the_store_kernel_logs_are_the_only_past(run: Run, tmp_path: Path) -> None:
    """By the time of --at, which --since counts from."""
    log = tmp_path / "log"
    log.write_bytes(read("node-1.36/oom-global-A.dmesg.txt"))
    past = ("--at", "2026-11-20T15:00:00Z", "--prometheus", "http://127.0.0.1:1")
    done = run("kills", "-A", *past, "--kernel-log", f"node1={log}")
    assert done.code == 0, done.err
    assert "the list of pods is missing" in done.err
    assert len(done.lines) > 1
    assert run("kills", "-A", *past).code == run("top", "-A", *past).code == 1


def test_a_statistic_of_the_time_before_the_past(run: Run, store: Store) -> None:
    flags = ("--usage=prometheus", "--over", "13h", "-o", "json")
    done = run("top", "-A", *flags, *at(store, CRUNCH_DIES + 900))
    (crunch,) = [row for row in json.loads(done.out)["items"] if row["pod"] == "crunch"]
    assert crunch["memoryBytes"] == crunch["peakBytes"] > 3 << 30
    done = run("top", "-A", *at(store, CRUNCH_DIES + 900), *flags[-2:])
    (crunch,) = [row for row in json.loads(done.out)["items"] if row["pod"] == "crunch"]
    assert crunch["memoryBytes"] == 200 << 20


@pytest.mark.parametrize(
    ("node", "second", "mechanism", "victim", "prevention"),
    [
        ("worker-1", API_DIES, "pod limit", "api-0", "limits.memory 1Gi → "),
        ("worker-2", CRUNCH_DIES, "OOM killer", "crunch", ""),
        ("worker-3", CACHE_DIES, "kubelet eviction", "cache", "requests.memory 5Gi → "),
    ],
)
def test_a_report_has_the_state_a_minute_before_each_death(
    run: Run, store: Store, node: str, second: int, mechanism: str, victim: str, prevention: str
) -> None:
    past = ["report", f"node/{node}", "--since", "25h", *at(store, CACHE_DIES + 3600)]
    done = run(*past, "-o", "json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    (death,) = report["deaths"]
    assert report["kills"][death["kills"][0]]["mechanism"] == mechanism
    moment = datetime.fromisoformat(death["stateTime"]).timestamp() - store.begin
    assert second - 60 <= moment <= second
    before = death["before"]
    assert before["pod"] == victim
    top = json.loads(run("top", "-A", "--node", node, "-o", "json", *at(store, int(moment))).out)["items"]
    assert before == next(row for row in top if row["pod"] == victim)
    # Only a killer of the node chooses among its pods, and its victim is the first of them.
    assert [row["pod"] for row in death["rivals"]][:1] == [victim][: mechanism == "kubelet eviction"]
    assert prevention in (death["prevention"] or "")
    text = run(*past).out
    assert f"**A minute before, at {death['stateTime']}:** it used " in text

"""`top` from the outside: what is selected, how it is ordered and printed, and where each line goes."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_qos.present.pod_columns import BY_KEY
from tests.cluster.cluster_objects import metrics, node, pod
from tests.end_to_end.command import Done, Run

OBJECTS = [
    node("worker-1"),
    node("worker-2", memory="8Gi"),
    pod("web", request="1Gi", limit="2Gi", labels={"app": "web"}),
    pod("db", request="4Gi", limit="4Gi", labels={"app": "db"}),
    pod("batch", namespace="jobs", node="worker-2"),
    pod("waiting", namespace="jobs", node="", phase="Pending"),
    metrics("web", "1945Mi"),
    metrics("db", "1Gi"),
    metrics("batch", "300Mi", namespace="jobs"),
]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": OBJECTS}))
    return path


def names(done: Done) -> list[str]:
    assert done.code == 0, done.err
    return [row["pod"] for row in json.loads(done.out)["items"]]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("   ") if cell.strip()]


def test_the_table(run: Run, dump: Path) -> None:
    done = run("top", "-f", dump)
    assert done.code == 0
    said = r"MEMORY and RANK are by the working set from the metrics API, \S+ old; the kernel counts RSS.*\n"
    assert re.fullmatch(said, done.err)
    header, first, *_ = done.lines
    assert cells(header) == [
        *["RANK", "NAMESPACE", "POD", "NODE", "QOS", "OOM_ADJ", "OOM_SCORE", "MEMORY", "REQUEST"],
        *["LIMIT", "%LIMIT", "RESTARTS", "FLAGS"],
    ]
    assert cells(first) == [
        *["1", "shop", "web", "worker-1", "Burstable", "938", "1370", "1945Mi", "1024Mi", "2048Mi"],
        *["95%", "0", "NEAR-LIMIT OVER-REQUEST"],
    ]
    assert cells(done.lines[2])[:10] == [
        *["1", "jobs", "batch", "worker-2", "BestEffort", "1000", "1357", "300Mi", "<none>", "<none>"],
    ]
    assert done.lines[-1].startswith("-      jobs        waiting")
    assert all(line == line.rstrip() for line in done.lines)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["web", "batch", "db", "waiting"]),
        (["-A"], ["web", "batch", "db", "waiting"]),
        (["-n", "shop"], ["web", "db"]),
        (["-n", "jobs", "-A"], ["web", "batch", "db", "waiting"]),
        (["--namespace=jobs"], ["batch", "waiting"]),
        (["-l", "app=db"], ["db"]),
        (["-l", "app in (db, web)", "-n", "shop"], ["web", "db"]),
        (["--selector", "!app"], ["batch", "waiting"]),
        (["--node", "worker-1"], ["web", "db"]),
        (["--node", "worker-2", "-n", "shop"], []),
        (["db", "batch"], ["batch", "db"]),
        (["pod/db"], ["db"]),
        (["-n", "jobs", "--sort-by", "pod", "batch", "waiting"], ["batch", "waiting"]),
    ],
)
def test_what_is_selected(run: Run, dump: Path, arguments: list[str], expected: list[str]) -> None:
    assert names(run("top", "-f", dump, "-o", "json", *arguments)) == expected


def test_flags_may_stand_before_the_command(run: Run, dump: Path) -> None:
    assert names(run("-n", "jobs", "-f", dump, "top", "-o", "json")) == ["batch", "waiting"]


def test_without_a_command_and_a_terminal_it_is_top(run: Run, dump: Path) -> None:
    assert run("-f", dump).out == run("top", "-f", dump).out


def test_a_selection_keeps_its_rank_on_the_node(run: Run, dump: Path) -> None:
    done = run("top", "-f", dump, "-l", "app=db")
    assert cells(done.lines[1])[:3] == ["2", "shop", "db"]


def ascending(values: list[Any]) -> bool:
    known = [value for value in values if value is not None]
    return known == sorted(known) and values[len(known) :] == [None] * (len(values) - len(known))


def descending(values: list[Any]) -> bool:
    known = [value for value in values if value is not None]
    return known == sorted(known, reverse=True) and None not in values[: len(known)]


def by_class(values: list[Any]) -> bool:
    return ascending([("BestEffort", "Burstable", "Guaranteed").index(value) for value in values])


def ranked_first(values: list[Any]) -> bool:
    unknown = values.count(None)
    return unknown > 0 and set(values[-unknown:]) == {None}


def all_unknown(values: list[Any]) -> bool:
    """The metrics API does not know them."""
    return set(values) == {None}


def riskiest_first(values: list[Any]) -> bool:
    return descending([("none", "low", "medium", "high", "next").index(value) for value in values])


def flagged_first(values: list[Any]) -> bool:
    return all(values[: len([value for value in values if value])])


ORDERS: dict[str, Callable[[list[Any]], bool]] = {
    **dict.fromkeys(["namespace", "pod", "container", "node", "eviction", "age"], ascending),
    **dict.fromkeys(
        ["oom_score_adj", "oom_score", "memory", "request", "limit", "limit_percent", "restarts", "priority"],
        descending,
    ),
    "qos": by_class,
    "rss": all_unknown,
    "swap": all_unknown,
    "rank": ranked_first,
    "risk": riskiest_first,
    "flags": flagged_first,
}


@pytest.mark.parametrize(
    ("key", "flags"),
    [(key, flags) for key in BY_KEY for flags in ([], ["--containers"]) if flags or key != "container"],
)
def test_every_column_can_be_sorted_by(run: Run, key: str, flags: list[str]) -> None:
    done = run("top", "--demo", "-o", "json", "--sort-by", key, *flags)
    assert done.code == 0, done.err
    items = json.loads(done.out)["items"]
    assert len(items) >= 60
    assert ORDERS[key]([item[key] for item in items])


@pytest.mark.parametrize(
    ("name", "key"), [("OOM_ADJ", "oom_score_adj"), ("%limit", "limit_percent"), ("mem", "memory")]
)
def test_a_column_may_be_named_as_it_is_headed(run: Run, name: str, key: str) -> None:
    by_name = run("top", "--demo", "--sort-by", name)
    assert (by_name.code, by_name.out) == (0, run("top", "--demo", "--sort-by", key).out)


def test_a_column_that_is_sorted_by_is_shown(run: Run) -> None:
    assert "PRIORITY" in cells(run("top", "--demo", "--sort-by", "priority").lines[0])
    eviction = cells(run("top", "--demo", "--sort-by", "eviction").lines[0])
    assert eviction[0] == "EVICTION"
    assert "RANK" not in eviction


def test_all_formats_say_the_same(run: Run, dump: Path) -> None:
    from_json = json.loads(run("top", "-f", dump, "-o", "json").out)
    from_yaml = yaml.safe_load(run("top", "-f", dump, "-o", "yaml").out)
    assert from_json == from_yaml
    assert from_json["kind"] == "PodRanking"
    rows = list(csv.DictReader(run("top", "-f", dump, "-o", "csv").lines))
    assert [row["pod"] for row in rows] == [item["pod"] for item in from_json["items"]]
    assert rows[0]["memory"] == str(1945 << 20)
    assert rows[0]["flags"] == "NEAR-LIMIT OVER-REQUEST"
    assert list(rows[0]) == list(from_json["items"][0])
    wide = run("top", "-f", dump, "-o", "wide").lines
    assert len(cells(wide[0])) == len(rows[0].keys() - {"rss", "swap"})
    by_name = run("top", "-f", dump, "-o", "name").lines
    assert by_name == [f"pod/{item['pod']}" for item in from_json["items"]]


def test_no_headers(run: Run, dump: Path) -> None:
    lines = run("top", "-f", dump, "--no-headers").lines
    assert len(lines) == 4
    assert cells(lines[0])[0] == "1"


def test_a_row_for_each_container(run: Run, tmp_path: Path) -> None:
    two = pod("two", request="1")
    two["spec"]["containers"] = [
        {"name": "big", "resources": {"requests": {"memory": "2Gi"}}},
        {"name": "small", "resources": {"requests": {"memory": "1Gi"}}},
    ]
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"kind": "List", "items": [two, node("worker-1")]}))
    rows = json.loads(run("top", "-f", path, "--containers", "-o", "json").out)["items"]
    assert [(row["container"], row["rank"], row["oom_score_adj"]) for row in rows] == [
        ("small", 1, 938),
        ("big", 2, 875),
    ]


def test_without_usage_the_order_says_what_it_rests_on(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"kind": "List", "items": [pod("a"), node("worker-1")]}))
    done = run("top", "-f", path)
    assert done.code == 0
    assert done.err == "RANK is by oom_score_adj alone: memory usage is unknown\n"


def test_nodes_that_are_not_in_a_dump_can_be_assumed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(pod("a", request="1Gi")))
    unknown = run("top", "-f", path)
    assert cells(unknown.lines[1])[:5] == ["-", "shop", "a", "Burstable", "3..999"]
    assert "the memory capacity of worker-1 is unknown" in unknown.err
    assumed = run("top", "-f", path, "--node-memory", "16Gi")
    assert cells(assumed.lines[1])[:5] == ["1", "shop", "a", "Burstable", "938"]
    assert "unknown nodes are assumed to have 16Gi" in assumed.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-n", "none"], "No resources found in none namespace.\n"),
        (["-l", "app=none"], "No resources found\n"),
        (["--node", "none"], "No resources found\n"),
    ],
)
def test_nothing_found_is_no_error(run: Run, dump: Path, arguments: list[str], sentence: str) -> None:
    assert run("top", "-f", dump, *arguments) == Done(0, "", sentence)


@pytest.mark.parametrize("output", ["json", "yaml", "csv", "name"])
def test_nothing_found_is_still_readable_by_programs(run: Run, dump: Path, output: str) -> None:
    done = run("top", "-f", dump, "-n", "none", "-o", output)
    assert (done.code, done.err) == (0, "")
    read: dict[str, Callable[[str], object]] = {
        "json": lambda text: json.loads(text)["items"],
        "yaml": lambda text: yaml.safe_load(text)["items"],
        "csv": lambda text: text.splitlines()[1:],
        "name": lambda text: text.splitlines(),
    }
    assert read[output](done.out) == []


def test_a_name_that_is_not_there_is_told_beside_those_that_are(run: Run, dump: Path) -> None:
    done = run("top", "-f", dump, "db", "none")
    assert done.code == 1
    assert len(done.lines) == 2
    assert done.err.endswith('Error from server (NotFound): pods "none" not found\n')


def test_names_cannot_write_to_the_terminal(run: Run, tmp_path: Path) -> None:
    evil = pod("red\x1b[31m\nsecond\tline\x07\x9b2J\u202e", namespace="\x1b]0;title\x07")
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"kind": "List", "items": [evil, node("worker-1")]}))
    for output in ("wide", "csv", "name"):
        done = run("top", "-f", path, "-o", output)
        assert done.code == 0, done.err
        assert "red\\x1b[31m\\nsecond\\tline\\x07\\x9b2J\\x202e" in done.out
        assert done.out.replace("\n", "").isprintable()
    for output in ("json", "yaml"):
        text = run("top", "-f", path, "-o", output).out
        assert not set(text) & set("\x1b\x07\x9b\t")
        found = json.loads(text) if output == "json" else yaml.safe_load(text)
        assert found["items"][0]["pod"] == evil["metadata"]["name"]
    bad = pod("bad\x1b[31m", request="1Gx")
    path.write_text(json.dumps(bad))
    assert run("top", "-f", path).err.startswith(f"error: {path}: pod/bad\\x1b[31m: spec.containers[0]")


def test_a_terminal_without_unicode_gets_escapes_and_no_crash(run: Run, tmp_path: Path) -> None:
    differs = pod("a")
    differs["status"]["qosClass"] = "Guaranteed"
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"kind": "List", "items": [differs, node("worker-1")]}))
    done = run("top", "-f", path, variables={"PYTHONIOENCODING": "ascii"})
    assert done.code == 0, done.err
    assert "CLASS\\u2260SPEC" in done.out

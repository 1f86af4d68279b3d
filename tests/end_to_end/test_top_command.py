"""`top` from the outside: every order, and poor terminals; the rest is in test_transcripts.py."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_qos.present.pod_columns import BY_KEY
from tests.cluster.cluster_objects import node, pod
from tests.end_to_end.command import Run
from tests.end_to_end.stages import node_oom


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
    **dict.fromkeys(
        ["namespace", "pod", "container", "limit_container", "dies", "node", "eviction", "age"], ascending
    ),
    **dict.fromkeys(
        [
            "oom_score_adj",
            "oom_score",
            "memory",
            "frees",
            "request",
            "limit",
            "limit_percent",
            "restarts",
            "priority",
        ],
        descending,
    ),
    "qos": by_class,
    **dict.fromkeys(["rss", "swap", "psi10", "psi60", "peak", "p99", "growth", "eta"], all_unknown),
    "rank": ranked_first,
    "risk": riskiest_first,
    "flags": flagged_first,
}


@pytest.mark.parametrize(
    ("key", "flags"),
    [
        *((key, []) for key in BY_KEY if key != "container"),
        *((key, ["--containers"]) for key in ("container", "rank", "memory")),
    ],
)
def test_every_column_can_be_sorted_by(run: Run, key: str, flags: list[str]) -> None:
    done = run("top", "--demo", "-o", "json", "--sort-by", key, *flags)
    assert done.code == 0, done.err
    items = json.loads(done.out)["items"]
    assert len(items) >= 60
    values = [item[BY_KEY[key].field] for item in items]
    # Rows without a text come first, as the empty text; those of which nothing dies come last.
    is_text = (key != "dies" and any(isinstance(value, str) for value in values)) or key == "limit_container"
    assert ORDERS[key]([value or "" for value in values] if is_text else values)


def test_a_terminal_without_unicode_gets_ascii(run: Run, tmp_path: Path) -> None:
    differs = pod("a")
    differs["status"]["qosClass"] = "Guaranteed"
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"kind": "List", "items": [differs, node("worker-1")]}))
    done = run("top", "-f", path, variables={"PYTHONIOENCODING": "ascii"})
    assert done.code == 0, done.err
    assert "CLASS!SPEC" in done.out


@pytest.mark.parametrize(
    "words", ["top", "top nodes", "tree node/worker-2", "kills -o wide", "set --help", "top -o yaml"]
)
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_stream_that_is_not_utf8_gets_ascii_forms(run: Run, words: str, encoding: str) -> None:
    plain = run(*words.split(), "--demo", variables={"PYTHONIOENCODING": encoding})
    assert plain.code == 0, plain.err
    assert not re.search(r"\\[xuU]", plain.out + plain.err)
    usual = run(*words.split(), "--demo")
    assert [len(line) for line in plain.lines] == [len(line) for line in usual.lines]


def test_data_that_the_stream_lacks_is_escaped_so_that_it_parses_the_same(run: Run, tmp_path: Path) -> None:
    odd = pod("a")
    odd["metadata"]["namespace"] = "größe└😀"
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"kind": "List", "items": [odd, node("worker-1")]}))
    for format_, parsed in (("json", json.loads), ("yaml", yaml.safe_load)):
        plain = run("top", "-A", "-f", path, "-o", format_, variables={"PYTHONIOENCODING": "ascii"})
        assert "größe└😀" in str(parsed(plain.out)), plain
    table = run("top", "-A", "-f", path, variables={"PYTHONIOENCODING": "latin-1"})
    assert "größe+\\U0001f600" in table.out


@pytest.mark.parametrize(
    "words",
    [
        "top",
        "top --containers",
        "top nodes -o wide",
        "top -f dump.json --node-memory 16Gi",
        "kills -f dump.json --kernel-log global-A.log -o wide",
    ],
)
def test_sizes_have_the_unit_of_the_table_also_in_notes(run: Run, words: str) -> None:
    node_oom(run.home)
    done = run(*words.split(), *([] if "-f" in words.split() else ["--demo"]))
    assert done.code == 0, done.err
    # A part of a command to run is no quantity.
    found = re.findall(r"(?<![=\w])\d[\d.,]*([KMGT]i)\b", done.out + done.err)
    assert {*found} == {"Mi"}, done


def test_a_kubelet_that_never_evicts_has_no_eviction_order(run: Run) -> None:
    """The column ranked its pods as if it did."""
    done = run(
        "top", "--demo", "--node", "worker-2", "--sort-by", "eviction", "--assume", "evictionHard=none"
    )
    assert {line.split()[0] for line in done.lines[1:]} == {"never"}
    assert "no kubelet evicts for memory on worker-2: there is no memory.available threshold" in done.err
    items = json.loads(run("top", "--demo", "--assume", "evictionHard=none", "-o", "json").out)["items"]
    assert {item["evictionRank"] for item in items} == {None}

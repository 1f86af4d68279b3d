"""`top` from the outside: every order, and poor terminals; the rest is in test_transcripts.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.present.pod_columns import BY_KEY
from tests.cluster.cluster_objects import node, pod
from tests.end_to_end.command import Run


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
        ["namespace", "pod", "container", "limit_container", "node", "eviction", "age"], ascending
    ),
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


def test_a_terminal_without_unicode_gets_escapes_and_no_crash(run: Run, tmp_path: Path) -> None:
    differs = pod("a")
    differs["status"]["qosClass"] = "Guaranteed"
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"kind": "List", "items": [differs, node("worker-1")]}))
    done = run.process("top", "-f", path, variables={"PYTHONIOENCODING": "ascii"})
    assert done.code == 0, done.err
    assert "CLASS\\u2260SPEC" in done.out

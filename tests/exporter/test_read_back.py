"""What the exporter publishes, read back by `top` and `next --from-exporter`, is what they say themselves."""

import json
import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.analysis.node_table import build_node_rows
from kubectl_qos.analysis.pod_table import build_rows
from kubectl_qos.cli import exported as tables
from kubectl_qos.exporter.series import FAMILIES
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.metrics.prometheus import Sample
from kubectl_qos.present.next_death import deaths_on_nodes, killed_by
from tests.demo.living import Stepped
from tests.end_to_end.command import Run
from tests.exporter.scraping import exporter_of, parsed
from tests.metrics.test_series import Known

NOW, AGE, EVERYTHING = 1_795_000_000.0, 12, Scope()
TARGET = {"job": "kubectl-qos", "namespace": "monitoring", "pod": "qos-0", "container": "qos"}


def published(per_pod: int | None, instance: str = "10.0.0.9:9857", *, honors: bool = True) -> list[Sample]:
    """What a store has after a scrape that honors labels, or prefixes those that a target has too."""
    parts, _ = exporter_of(Stepped(), per_pod).exposition("text/plain")
    found = []
    for (name, labels), value in parsed(parts).items():
        own = {f"exported_{key}" if key in TARGET and not honors else key: text for key, text in labels}
        own |= {"__name__": name, "instance": instance}
        found.append(Sample(own if honors else {**TARGET, **own}, value))
    return found


class Scraped(Known):
    """A store that scraped exporters: by default each 12 seconds ago."""

    def __init__(self, samples: Iterable[Sample], ages: dict[str, int] | None = None) -> None:
        super().__init__([one for one in samples if math.isfinite(one.value)])
        self.ages = ages or {}

    def now(self) -> float:
        return NOW

    def query(self, expression: str, at: float | None = None) -> list[Sample]:
        found = super().query(expression, at)
        if not expression.startswith("timestamp("):
            return found
        return [Sample(one.labels, NOW - self.ages.get(one.labels["instance"], AGE)) for one in found]


From = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> From:
    """Run a command with --from-exporter against a store."""

    def start(store: Known, *words: str) -> Any:
        monkeypatch.setattr(tables, "open_any_store", lambda _: (store, None))
        return Run(tmp_path)(*words, "--from-exporter")

    return start


def items(done: Any) -> list[dict[str, Any]]:
    assert done.code == 0, done.err
    found: list[dict[str, Any]] = json.loads(done.out)["items"]
    return found


@pytest.mark.parametrize("honors", [True, False])
def test_pods_have_the_ranks_and_scores_of_top(run: From, honors: bool) -> None:
    done = run(Scraped(published(None, honors=honors)), "top", "-A", "-o", "json")
    snapshot = Stepped().snapshot(EVERYTHING)
    expected = [
        (row.node, row.pod.namespace, row.name, row.rank, row.score, row.adj, row.frees)
        for row in build_rows(snapshot, EVERYTHING).rows
        if row.rank is not None and row.node
    ]
    fields = ("node", "namespace", "pod", "rank", "oomScore", "oomScoreAdj", "freedBytes")
    found = items(done)
    assert sorted(tuple(row[one] for one in fields) for row in found) == sorted(expected)
    scores = [row["oomScore"] for row in found]
    assert scores == sorted(scores, reverse=True)
    assert {row["qosClass"] for row in found} == {row["requestBytes"] for row in found} == {None}


def test_nodes_and_next_deaths_are_those_of_the_commands(run: From) -> None:
    store, snapshot = Scraped(published(5)), Stepped().snapshot(EVERYTHING)
    rows = build_node_rows(snapshot, lambda *_: True).rows
    found = items(run(store, "top", "nodes", "-o", "json"))
    assert [row["node"] for row in found] == [row.name for row in rows]
    for one, row in zip(found, rows, strict=True):
        assert (one["pods"], one["capacityBytes"], one["worstBytes"]) == (
            row.memory.pods,
            row.capacity,
            row.memory.worst_bytes,
        )
        assert (one["usedBytes"], one["ownBytes"], one["toEvictionBytes"]) == (
            row.used_bytes,
            row.own,
            row.to_eviction,
        )
        assert row.victim is not None
        assert (one["kernelVictim"], one["victimOOMScore"]) == (
            "/".join(row.victim.key),
            row.victim.oom_score,
        )
        assert one["limitsBytes"] is one["requestsPercent"] is None
    deaths = deaths_on_nodes(snapshot, [row.name for row in rows]).rows
    found = items(run(store, "next", "-o", "json"))
    assert [
        (one["node"], one["namespace"], one["pod"], one["container"], one["mechanism"], one["distanceBytes"])
        for one in found
    ] == [
        (row.node, *row.death.key, row.death.container or None, row.death.mechanism, row.death.distance_bytes)
        for row in deaths
    ]
    assert {one["freedBytes"] for one in found} == {None}
    (header, *lines) = run(store, "top", "nodes").lines
    assert {line[header.index("PRESSURE") :].split()[0] for line in lines} == {"<unknown>"}
    killers = [re.split(r"  +", line)[3] for line in run(store, "next").lines[1:]]
    assert killers == [killed_by(row.death).split(" limit ")[0] + " limit" for row in deaths]
    assert "own limit" in killers


def test_without_the_nodes_own_memory_its_distances_are_upper_bounds(run: From) -> None:
    own = [one for one in published(5) if "own_memory" not in one.labels["__name__"]]
    lines = run(Scraped(own), "top", "nodes", "-o", "wide").lines[1:]
    assert lines
    assert all(re.search(r"at most \d+Mi", line) for line in lines)
    assert "at most" not in run(Scraped(published(5)), "top", "nodes", "-o", "wide").out


def test_the_first_line_says_whose_values_these_are(run: From) -> None:
    samples = published(2)
    silent = [
        one._replace(value=90.0) if one.labels["__name__"].endswith("stale_seconds") else one
        for one in samples
    ]
    done = run(Scraped(silent), "top", "-A")
    assert done.err.splitlines()[0] == (
        "FROM THE EXPORTER: exporter 10.0.0.9:9857 in the store, scraped 12s ago, when the API server had"
        " been silent for 90s; only the first 2 pods of each node's kill order are known"
    )
    (header, *rows) = done.lines
    assert header.split()[:4] == ["RANK", "NAMESPACE", "POD", "NODE"]
    nodes = [row.split()[3] for row in rows]
    assert {nodes.count(name) for name in nodes} == {2}
    assert all("<unknown>" in row and " 0 " not in row for row in rows)
    done = run(Scraped(published(None)), "next", "node/worker-2")
    assert "pods without a rank are not known" in done.err
    assert "silent" not in done.err
    assert done.lines[1].split()[0] == "worker-2"
    assert done.lines[1].split()[-1] == "<unknown>", "what its death frees is not published"


def test_of_two_replicas_the_one_that_was_scraped_last_counts(run: From) -> None:
    old = [
        one._replace(value=one.value + 7) if one.labels["__name__"].endswith("_kill_rank") else one
        for one in published(3, "a:9857")
    ]
    store = Scraped([*old, *published(3, "b:9857")], {"a:9857": 50, "b:9857": 5})
    done = run(store, "top", "-A", "-o", "json")
    assert {row["rank"] for row in items(done)} == {1, 2, 3}
    assert "2 exporters in the store, scraped 5s to 50s ago" in done.err


def test_what_is_selected_and_what_is_not_among_them(run: From) -> None:
    store = Scraped(published(5))
    every = items(run(store, "top", "-A", "-o", "json"))
    shop = items(run(store, "top", "-n", "shop", "-o", "json"))
    assert shop == [row for row in every if row["namespace"] == "shop"] != []
    one = every[3]
    (only,) = items(run(store, "top", f"pod/{one['pod']}", "-n", one["namespace"], "-o", "json"))
    assert only == one
    by_rank = [row["rank"] for row in items(run(store, "top", "-A", "-o", "json", "--sort-by", "rank"))]
    assert by_rank == sorted(by_rank)
    done = run(store, "top", "pod/nope", "-A")
    assert (done.code, done.out) == (1, "")
    assert 'pods "nope" not found' in done.err
    assert "only the first 5 pods of each node's kill order are known" in done.err
    done = run(store, "next", "node/nope")
    hint = "hint: kubectl qos top nodes --from-exporter lists those that the exporter has published"
    assert (done.code, done.err.splitlines()[2:]) == (1, [hint])
    assert run(store, "top", "node/nope").err.splitlines()[2:] == [hint]
    done = run(Scraped([]), "top", "-A")
    assert (done.code, done.out) == (1, "")
    assert "the store has no series of kubectl qos exporter" in done.err


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        ("top -w", "-w"),
        ("top -l app=web", "-l"),
        ("top deploy/web", "deployment/web"),
        ("top --demo", "--demo"),
        ("top --at 2h", "--at"),
        ("next -f x", "-f"),
        ("next deploy/web", "deployment/web"),
    ],
)
def test_what_is_not_published_is_refused(run: From, words: str, flag: str) -> None:
    done = run(Scraped([]), *words.split())
    assert (done.code, done.out) == (2, "")
    assert f"--from-exporter and {flag} cannot be used together" in done.err


def test_every_name_that_is_read_is_published() -> None:
    text = Path(str(tables.__file__)).read_text(encoding="utf-8")
    read = set(re.findall(r'"((?:node|pod)_\w+)', text)) | set(re.findall(r'f"(node_\w+) \{', text))
    read -= {"node_columns", "pod_columns"}
    assert read
    assert read <= {family.name for family in FAMILIES} | {"node_in_trouble"}

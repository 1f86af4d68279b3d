"""`can-i` as a person runs it: the table, the values, the exit code, and what it says on stderr."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_qos.k8s.rbac import TIERS
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import status
from tests.cluster.replay import Replay
from tests.cluster.reviewer import READER, Reviewer, reviewed_right
from tests.cluster.serving import Serve
from tests.end_to_end.command import Run
from tests.end_to_end.golden_text import assert_as_kept
from tests.end_to_end.test_process import with_modules

EVERYTHING = [
    f"{right.verb} {right.target}{place}"
    for tier in TIERS
    for right in tier.permissions
    for place in ("", " in shop")
]


def flags(serve: Serve, folder: Path, answer: Any, **options: Any) -> list[str]:
    """The flags that lead to a server, whose context is of the namespace shop."""
    config = kubeconfig(serve(answer), namespace="shop", **options)
    return ["--kubeconfig", str(write(folder / "config", config))]


def a_reader_with_usage() -> Reviewer:
    return Reviewer([*READER, "get pods", "list pods.metrics.k8s.io in shop"])


@pytest.mark.parametrize("output", ["", "wide"])
def test_the_tiers_of_a_reader(run: Run, serve: Serve, tmp_path: Path, output: str) -> None:
    done = run("can-i", *flags(serve, tmp_path, a_reader_with_usage()), *(["-o", output] if output else []))
    assert done.code == 0
    assert done.err == "hint: docs/rbac/cluster.yaml grants list,watch pods (all namespaces)\n"
    assert_as_kept(f"can-i-{output}".rstrip("-"), done.out)


def test_the_values_are_one_truth(run: Run, serve: Serve, tmp_path: Path) -> None:
    reader = flags(serve, tmp_path, a_reader_with_usage())
    found = json.loads(run("can-i", "-o", "json", *reader).out)
    assert yaml.safe_load(run("can-i", "-o", "yaml", *reader).out) == found
    assert found["namespace"] == "shop"
    assert [
        one["namespace"] for tier in found["items"] for one in tier["rights"] if "metrics" in one["group"]
    ] == [
        "shop",
        None,
    ]
    assert found["notes"] == ["hint: docs/rbac/cluster.yaml grants list,watch pods (all namespaces)"]
    assert {one["tier"]: one["allowed"] for one in found["items"]} == {
        "namespace": "yes",
        "cluster": "partly",
        "nodes": "no",
        "metrics": "partly",
        "workloads": "no",
        "events": "no",
        "kubelet": "no",
        "exec": "no",
        "policy": "no",
        "write": "no",
    }
    (kubelet,) = (one for one in found["items"] if one["tier"] == "kubelet")
    assert kubelet["caution"] == "DANGER"
    assert kubelet["rights"] == [
        {
            "verb": "get",
            "group": "",
            "resource": "nodes",
            "subresource": "proxy",
            "namespace": None,
            "optional": False,
            "allowed": False,
            "reason": None,
        }
    ]


@pytest.mark.parametrize("rights", [[], EVERYTHING, READER], ids=["nothing", "everything", "a reader"])
def test_the_table_fits_into_80_columns(run: Run, serve: Serve, tmp_path: Path, rights: list[str]) -> None:
    done = run("can-i", *flags(serve, tmp_path, Reviewer(rights)))
    assert [line.split()[0] for line in done.lines] == ["TIER", *(tier.name for tier in TIERS)]
    assert max(map(len, done.lines)) <= 80


def test_who_may_do_everything_is_told_nothing_more(run: Run, serve: Serve, tmp_path: Path) -> None:
    done = run("can-i", *flags(serve, tmp_path, Reviewer(EVERYTHING)))
    assert (done.code, done.err) == (0, "")
    assert [line.split()[1] for line in done.lines[1:]] == ["yes"] * len(TIERS)
    assert all(line.endswith("<none>") for line in done.lines[1:])


def test_what_is_dangerous_or_writes_is_never_recommended(run: Run, serve: Serve, tmp_path: Path) -> None:
    rights = [right for right in EVERYTHING if not re.search("proxy|exec|patch", right)]
    done = run("can-i", *flags(serve, tmp_path, Reviewer(rights)))
    assert (done.code, done.err) == (0, "")
    assert "kubelet settings, RSS (DANGER)   get nodes/proxy\n" in done.out
    assert "verify (DANGER)                  get,create pods/exec\n" in done.out
    assert "applying edits (WRITES)          patch pods/resize, 6 more\n" in done.out


@pytest.mark.parametrize(
    ("rights", "code", "missing"),
    [
        ([], 1, "get,list,watch pods"),
        (READER[1:], 1, "get pods"),
        (READER[:2], 0, "watch pods"),
        ([right.replace("shop", "web") for right in READER], 1, "get,list,watch pods"),
    ],
    ids=["nothing", "no get", "no watch", "elsewhere"],
)
def test_the_exit_code_is_that_of_the_first_tier(
    run: Run, serve: Serve, tmp_path: Path, rights: list[str], code: int, missing: str
) -> None:
    done = run("can-i", *flags(serve, tmp_path, Reviewer(rights)))
    assert done.code == code
    assert done.err == f"hint: docs/rbac/namespace.yaml grants {missing} (namespace shop)\n"


def test_the_hint_is_the_next_tier_where_it_is_missing(run: Run, serve: Serve, tmp_path: Path) -> None:
    rights = [right for right in EVERYTHING if "metrics" not in right and ".apps" not in right]
    done = run("can-i", *flags(serve, tmp_path, Reviewer(rights)))
    assert done.err == "hint: docs/rbac/metrics.yaml grants list pods.metrics.k8s.io (all namespaces)\n"


def test_a_right_that_is_not_known_is_not_called_missing(run: Run, serve: Serve, tmp_path: Path) -> None:
    reviewer = Reviewer(["get nodes"])
    reviewer.faults = dict.fromkeys(
        ["list nodes", "watch nodes", "get nodes/proxy"], status(500, "", "tired")
    )
    done = run("can-i", *flags(serve, tmp_path, reviewer))
    cells = {line.split()[0]: (line.split()[1], line.split("   ")[-1].strip()) for line in done.lines}
    assert cells["nodes"] == ("partly", "<unknown>")
    assert cells["kubelet"] == ("<unknown>", "<unknown>")
    assert cells["cluster"] == ("no", "get,list,watch pods")
    assert done.err.splitlines()[0] == "some permissions are <unknown>: Error from server: tired"
    assert len(done.err.splitlines()) == 2


def test_a_recorded_viewer(run: Run, serve: Serve, tmp_path: Path) -> None:
    """Of the recorded server only one right is known, so the others are not."""
    done = run("can-i", "-n", "rec", *flags(serve, tmp_path, Replay(), user={"token": "viewer"}))
    assert done.code == 1
    assert done.out.count("<unknown>") == 2 * len(TIERS)
    assert done.err.startswith(
        "some permissions are <unknown>: Error from server (NotFound): nothing was recorded"
    )


def test_the_namespace_asked_about(run: Run, serve: Serve, tmp_path: Path) -> None:
    server = serve(Reviewer(["get pods", "list pods", "watch pods"]))
    config = str(write(tmp_path / "config", kubeconfig(server, namespace="shop")))
    for words, code, where in (
        ([], 1, "namespace shop"),
        (["-n", "web"], 1, "namespace web"),
        (["-A"], 0, "all namespaces"),
        (["-A", "-n", "web"], 0, "all namespaces"),
    ):
        server.requests.clear()
        done = run("can-i", "--kubeconfig", config, "-o", "wide", *words)
        assert done.code == code
        assert where in done.lines[1]
        suffixes = {right.partition(" in ")[2] for right in map(reviewed_right, server.requests)}
        assert suffixes == {"", where.removeprefix("namespace ")} - {"all namespaces"}


def test_all_namespaces_are_asked_about_once(run: Run, serve: Serve, tmp_path: Path) -> None:
    nobody = flags(serve, tmp_path, Reviewer())
    rows = run("can-i", "-A", "-o", "wide", *nobody).lines
    different = [{(right.verb, right.target) for right in tier.permissions} for tier in TIERS]
    assert len(rows) == len(set(rows)) == 1 + sum(map(len, different))
    done = run("can-i", "-A", "-o", "json", *nobody)
    items = json.loads(done.out)["items"]
    assert sum(len(one["rights"]) for one in items) == len(rows) - 1
    assert {right["namespace"] for one in items for right in one["rights"]} == {None}
    assert done.err == "hint: docs/rbac/cluster.yaml grants get,list,watch pods (all namespaces)\n"


def test_reviews_that_are_refused(run: Run, serve: Serve, tmp_path: Path) -> None:
    refused = status(403, "Forbidden", "reviews are \x1b[31mforbidden")
    done = run("can-i", *flags(serve, tmp_path, lambda _: refused))
    assert done.code == 1
    assert [line.split()[1] for line in done.lines[1:]] == ["<unknown>"] * len(TIERS)
    assert done.err == (
        "some permissions are <unknown>: Error from server (Forbidden): reviews are \\x1b[31mforbidden\n"
    )
    found = json.loads(run("can-i", "-o", "json", *flags(serve, tmp_path, lambda _: refused)).out)
    assert found["notes"] == [
        "some permissions are <unknown>: Error from server (Forbidden): reviews are \x1b[31mforbidden"
    ]
    assert {one["allowed"] for one in found["items"]} == {"unknown"}
    assert {right["allowed"] for one in found["items"] for right in one["rights"]} == {None}


def test_reasons_cannot_act_on_the_terminal(run: Run, serve: Serve, tmp_path: Path) -> None:
    done = run("can-i", "-o", "wide", *flags(serve, tmp_path, Reviewer(reason="no\x1b[2J\nyes")))
    assert done.lines[1].endswith("no\\x1b[2J\\nyes")
    assert len(done.lines) == 1 + sum(len(tier.permissions) for tier in TIERS)


def test_a_server_that_is_gone(run: Run, tmp_path: Path) -> None:
    config = write(tmp_path / "config", kubeconfig("https://127.0.0.1:1"))
    done = run("can-i", "--kubeconfig", config)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("The connection to the server 127.0.0.1:1 was refused")


def test_nobody_in_particular(run: Run, serve: Serve, tmp_path: Path) -> None:
    denied = status(401, "Unauthorized", "Unauthorized")
    done = run("can-i", *flags(serve, tmp_path, lambda _: denied))
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[0] == "error: You must be logged in to the server (Unauthorized)"


@pytest.mark.parametrize("words", [["--demo"], ["-f", "x.yaml"]], ids=" ".join)
def test_what_is_no_cluster_cannot_be_asked(run: Run, words: list[str]) -> None:
    done = run("can-i", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err == "error: can-i asks a cluster, and neither --demo nor -f has one to ask\n"


def test_the_help_says_what_the_exit_code_means(run: Run) -> None:
    done = run("can-i", "--help")
    assert "Exit code 0 if pods can be read" in " ".join(done.out.split())
    assert "can-i" in run("--help").out
    assert run("__complete", "can").out.startswith("can-i\t")


def test_no_more_is_loaded_than_for_a_list(serve: Serve, tmp_path: Path) -> None:
    done = with_modules(tmp_path, "can-i", *flags(serve, tmp_path, Reviewer(READER)))
    assert done.returncode == 0
    assert set(done.stderr.splitlines()[-1].split()) & {"textual", "rich", "kubernetes"} == set()

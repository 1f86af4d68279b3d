"""`version` as a person runs it: ours, the server's, the kubelets', and what of them is supported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_qos import __version__
from tests.cluster.cluster_objects import node
from tests.cluster.https_server import Answer, Request
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import status
from tests.cluster.serving import Serve
from tests.end_to_end.command import Run
from tests.end_to_end.test_process import with_modules

OURS = [f"kubectl-qos {__version__}", "Supported Versions: Kubernetes 1.25 to 1.37"]
REFUSED = "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?\n"


class Server:
    """A server of this version whose nodes have these kubelets; None: they may not be listed."""

    def __init__(self, version: str, kubelets: list[str] | None) -> None:
        self.version = version
        self.kubelets = kubelets
        self.nodes: Answer | None = None

    def __call__(self, request: Request) -> Answer:
        if request.path == "/version":
            said = {
                "major": "1",
                "gitVersion": self.version,
                "platform": "linux/amd64",
                "goVersion": "go1.24",
            }
            return Answer(body=json.dumps(said).encode())
        assert request.path == "/api/v1/nodes"
        if self.nodes is not None:
            return self.nodes
        if self.kubelets is None:
            return status(403, "Forbidden", "nodes is forbidden")
        assert request.headers["accept"] == "application/json;as=Table;v=v1;g=meta.k8s.io"
        assert request.query == {"resourceVersion": "0", "includeObject": "None"}
        return table(self.kubelets)


def table(kubelets: list[str]) -> Answer:
    """The nodes as an API server prints them."""
    columns = ["Name", "Status", "Roles", "Age", "Version", "Internal-IP", "OS-Image", "Kernel-Version"]
    rows = [["n", "Ready", "<none>", "1d", version, "10.0.0.1", "Debian", "6.1"] for version in kubelets]
    said = {
        "kind": "Table",
        "columnDefinitions": [{"name": name, "type": "string"} for name in columns],
        "rows": [{"cells": row} for row in rows],
    }
    return Answer(body=json.dumps(said).encode())


def flags(serve: Serve, folder: Path, answer: Any) -> list[str]:
    return ["--kubeconfig", str(write(folder / "config", kubeconfig(serve(answer))))]


def test_the_flag_and_the_client_ask_nobody(run: Run) -> None:
    missing = {"KUBECONFIG": "/none"}
    assert run("--version", variables=missing) == (0, f"{OURS[0]}\n", "")
    for arguments in (["version", "--client"], ["version", "--client=true"]):
        assert run(*arguments, variables=missing) == (0, "\n".join(OURS) + "\n", "")


def test_all_versions(run: Run, serve: Serve, tmp_path: Path) -> None:
    kubelets = ["v1.9.1", "v1.33.2", "v1.36.0-eks-1", "v1.36.2", "v1.36.2"]
    done = run("version", *flags(serve, tmp_path, Server("v1.36.2", kubelets)))
    assert done.code == 0
    assert done.lines == [
        *OURS,
        "Server Version: v1.36.2 (linux/amd64)",
        "Kubelet Versions: 1.9 (1 node), 1.33 (1 node), 1.36 (3 nodes)",
    ]
    assert done.err == "a kubelet is 1.9, outside 1.25 to 1.37: the rules of 1.20 are assumed\n"


def test_nodes_that_may_not_be_listed_are_left_out(run: Run, serve: Serve, tmp_path: Path) -> None:
    done = run("version", *flags(serve, tmp_path, Server("v1.36.2", None)))
    assert done == (0, "\n".join([*OURS, "Server Version: v1.36.2 (linux/amd64)"]) + "\n", "")


@pytest.mark.parametrize(
    ("version", "note"),
    [
        ("v1.25.0", ""),
        ("v1.37.9+k3s1", ""),
        ("v1.38.0", "the server is 1.38, outside 1.25 to 1.37: the rules of 1.37 are assumed"),
        ("v1.19.4", "the server is 1.19, outside 1.25 to 1.37: the rules of 1.20 are assumed"),
        (
            "v1.24.1",
            (
                "the server is 1.24, outside 1.25 to 1.37: the rules of 1.24 are used, but not verified"
                " against Kubernetes' own code"
            ),
        ),
        (
            "\x1b[31mred",
            "the server is \\x1b[31mred, outside 1.25 to 1.37: not a known release of Kubernetes",
        ),
    ],
)
def test_what_is_assumed_outside_of_the_range(
    run: Run, serve: Serve, tmp_path: Path, version: str, note: str
) -> None:
    done = run("version", *flags(serve, tmp_path, Server(version, None)))
    assert (done.code, done.err) == (0, f"{note}\n" if note else "")
    assert "\x1b" not in done.out


def test_the_values_are_one_truth(run: Run, serve: Serve, tmp_path: Path) -> None:
    asked = flags(serve, tmp_path, Server("v1.38.0", ["v1.38.0"]))
    found = json.loads(run("version", "-o", "json", *asked).out)
    assert yaml.safe_load(run("version", "-o", "yaml", *asked).out) == found
    assert found == {
        "clientVersion": {"gitVersion": f"v{__version__}"},
        "supportedVersions": {"oldest": "1.25", "newest": "1.37"},
        "serverVersion": {
            "major": "1",
            "gitVersion": "v1.38.0",
            "platform": "linux/amd64",
            "goVersion": "go1.24",
        },
        "kubeletVersions": [{"version": "1.38", "nodes": 1}],
        "notes": [
            "the server is 1.38, outside 1.25 to 1.37: the rules of 1.37 are assumed",
            "a kubelet is 1.38, outside 1.25 to 1.37: the rules of 1.37 are assumed",
        ],
    }


def test_without_a_server_ours_is_printed_and_it_is_an_error(run: Run) -> None:
    done = run("version", "-s", "127.0.0.1:1")
    assert done == (1, "\n".join(OURS) + "\n", REFUSED)
    done = run("version", "-s", "127.0.0.1:1", "-o", "json")
    assert (done.code, done.err) == (1, REFUSED)
    assert "serverVersion" not in json.loads(done.out)


def test_without_a_kubeconfig_it_is_said_what_is_missing(run: Run) -> None:
    done = run("version")
    assert (done.code, done.lines) == (1, OURS)
    assert done.err.splitlines()[0] == "error: no kubeconfig found and this is not a pod"


def test_a_server_that_refuses_and_one_that_says_nothing(run: Run, serve: Serve, tmp_path: Path) -> None:
    denied = status(401, "Unauthorized", "Unauthorized")
    done = run("version", *flags(serve, tmp_path, lambda _: denied))
    assert (done.code, done.lines) == (1, OURS)
    assert done.err.startswith("error: You must be logged in to the server (Unauthorized)\n")
    silent = flags(serve, tmp_path, lambda _: Answer(delay_seconds=20))
    done = run("version", *silent, "--request-timeout", "200ms")
    assert (done.code, done.lines) == (1, OURS)
    assert "Client.Timeout exceeded while awaiting headers" in done.err


def test_nodes_that_are_no_table_are_an_error(run: Run, serve: Serve, tmp_path: Path) -> None:
    server = Server("v1.36.2", [])
    server.nodes = Answer(body=b"<html>")
    done = run("version", *flags(serve, tmp_path, server))
    assert (done.code, done.lines[2]) == (1, "Server Version: v1.36.2 (linux/amd64)")
    assert done.err.startswith("error: the server's answer for the table of /api/v1/nodes cannot be read: ")


def test_the_demo_and_files_have_nodes_alone(run: Run, tmp_path: Path) -> None:
    assert run("version", "--demo") == (
        0,
        "\n".join([*OURS, "Kubelet Versions: 1.34 (1 node), 1.36 (3 nodes)"]) + "\n",
        "",
    )
    (tmp_path / "x.json").write_text(json.dumps(node("a")))
    assert run("version", "-f", "x.json").lines == [*OURS, "Kubelet Versions: 1.36 (1 node)"]
    done = run("version", "-f", "none.json")
    assert (done.code, done.lines) == (1, OURS)
    assert "none.json" in done.err


def test_a_wrong_format(run: Run) -> None:
    done = run("version", "-o", "wide")
    assert (done.code, done.out) == (2, "")


def test_no_more_is_loaded_than_is_needed(serve: Serve, tmp_path: Path) -> None:
    done = with_modules(tmp_path, "version", *flags(serve, tmp_path, Server("v1.36.2", [])))
    assert done.returncode == 0
    assert set(done.stderr.splitlines()[-1].split()) & {"textual", "rich", "kubernetes"} == set()

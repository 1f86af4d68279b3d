"""`bug-report`: what is in it, that nothing fails, and that no name, path or secret is in it."""

from __future__ import annotations

import json
import platform
import stat
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos import __version__
from kubectl_qos.present.values import camel
from tests.cluster.cluster_objects import node, pod
from tests.cluster.https_server import Answer, Request
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import ObjectServer
from tests.cluster.plugins import gives, plugin
from tests.cluster.reviewer import review, reviewed_right
from tests.cluster.serving import Serve
from tests.end_to_end.command import Done, Run
from tests.end_to_end.terminal import Terminal

ISSUES = "https://github.com/kubectl-qos/kubectl-qos/issues/new"
LOOK = f"look through it before you post it at {ISSUES}\n"
COLUMNS = ["Name", "Version", "OS-Image", "Kernel-Version", "Container-Runtime"]


def facts(done: Done, section: str) -> dict[str, str]:
    """A section of the Markdown, as its lines say it."""
    assert (done.code, done.err) == (0, LOOK), done
    text = done.out.partition(f"### {section}\n\n```text\n")[2].partition("\n```")[0]
    return {
        name.rstrip(): value.strip() for name, _, value in (line.partition("  ") for line in text.split("\n"))
    }


class Server:
    """Objects, reviews that allow what is about pods, and nodes as a table."""

    def __init__(self, objects: ObjectServer) -> None:
        self.objects = objects

    def __call__(self, request: Request) -> Answer:
        if request.method == "POST":
            return review(allowed=" pods" in reviewed_right(request))
        if request.path == "/api/v1/nodes" and request.path not in self.objects.faults:
            names = [
                [one["metadata"]["name"], "v1.36.2", "Debian", "6.1", "crio://1"]
                for one in self.objects.nodes
            ]
            said = {
                "columnDefinitions": [{"name": name} for name in COLUMNS],
                "rows": [{"cells": row} for row in names],
            }
            return Answer(body=json.dumps(said).encode())
        return self.objects(request)


def test_of_the_demo(run: Run) -> None:
    done = run("bug-report", "--demo")
    assert done.out.startswith("### What happened\n")
    assert facts(done, "Cluster") == {
        "source": "the demo",
        "nodes": "4",
        "kubelets": "v1.34.9 (1 node), v1.36.2 (3 nodes)",
        "images": "Debian GNU/Linux 12 (bookworm) (4 nodes)",
        "kernels": "6.1.0-50-cloud-amd64 (4 nodes)",
        "runtimes": "containerd://2.3.4 (4 nodes)",
        "pods": "60",
    }
    ours = facts(done, "Installation")
    assert ours["kubectl-qos"].startswith(f"{__version__} (")
    assert ours["Python"] == f"{platform.python_implementation()} {platform.python_version()}"
    assert ours["system"].split()[1] == platform.release()
    assert "urllib3 " in ours["libraries"]
    assert ours["terminal"] == "LANG=C.UTF-8, no terminal, encoding utf-8"
    assert (ours["variables"], ours["settings"], ours["flags"]) == ("none set", "defaults", "--demo")


def test_json_has_the_same(run: Run) -> None:
    found = json.loads(run("bug-report", "--demo", "-o", "json").out)
    markdown = run("bug-report", "--demo")
    assert list(found["cluster"].values()) == list(facts(markdown, "Cluster").values())
    names = map(camel, facts(markdown, "Installation"))
    assert list(found["installation"]) == list(names)


def test_of_a_cluster(run: Run, serve: Serve, tmp_path: Path) -> None:
    objects = ObjectServer(pods=[pod(f"web-{number}") for number in range(3)], nodes=[node("a"), node("b")])
    config = write(tmp_path / "config", kubeconfig(serve(Server(objects)), namespace="shop"))
    found = facts(run("bug-report", "--kubeconfig", config), "Cluster")
    assert found == {
        "kubeconfig": "1 files, 1 clusters, 1 users, 1 contexts",
        "credentials": "a token",
        "impersonates": "no",
        "server address": "https, loopback",
        "trusts": "its own CA",
        "proxy": "no",
        "server": "v1.36.2",
        "rights": "namespace yes, cluster yes, nodes no, metrics yes, history no, workloads no, events no,"
        " logs yes, policy no, kubelet no, exec yes, write partly",
        "nodes": "2",
        "kubelets": "v1.36.2 (2 nodes)",
        "images": "Debian (2 nodes)",
        "kernels": "6.1 (2 nodes)",
        "runtimes": "crio://1 (2 nodes)",
        "pods": "3",
    }


def secret_world(serve: Serve, folder: Path) -> tuple[list[str], dict[str, str]]:
    """Flags and variables of a world in which every name begins with `zq`."""
    made = [pod(f"zqpod{number}", namespace="zqns") for number in range(2)]
    objects = ObjectServer(pods=made, nodes=[node("zqnode")])
    home = folder / "zqhome"
    home.mkdir()
    user = plugin(home, gives(token="admin"))
    user["exec"] |= {"args": ["zqarg"], "env": [{"name": "A", "value": "zqenv"}]}
    user |= {"as": "zqperson", "as-groups": ["zqgroup"]}
    config = write(
        home / "zqconfig",
        kubeconfig(serve(Server(objects)), user=user, namespace="zqns", context="zqcontext"),
    )
    settings = home / "zqsettings"
    settings.write_text("contexts:\n  zqother: {readonly: true}\nscope: {namespace: zqns}\nmouse: false\n")
    flags = ["--context", "zqcontext", "--cluster", "zqcontext-cluster", "--user", "zqcontext-user"]
    flags += [
        "-n",
        "zqns",
        "-l",
        "app=zqlabel",
        "--node",
        "zqnode",
        "--as",
        "zqperson",
        "--as-group",
        "zqgroup",
    ]
    flags += ["--token", "", "--request-timeout", "20s", "--usage", "summary", "-v", "0"]
    variables = {
        "KUBECONFIG": str(config),
        "KUBECTL_QOS_CONFIG": str(settings),
        "KUBECTL_QOS_STATE": str(home / "zqstate"),
        "HTTPS_PROXY": "http://zqme:zqword@zqproxy:3128",
    }
    return flags, variables


def test_no_name_is_in_it(run: Run, serve: Serve, tmp_path: Path) -> None:
    flags, variables = secret_world(serve, tmp_path)
    done = run("bug-report", *flags, variables=variables)
    ours, cluster = facts(done, "Installation"), facts(done, "Cluster")
    assert "zq" not in done.out
    assert str(tmp_path) not in done.out
    assert (cluster["credentials"], cluster["impersonates"]) == ("an exec plugin (plugin)", "yes")
    assert (cluster["pods"], cluster["nodes"]) == ("2", "1")
    assert ours["settings"] == "contexts, scope, mouse false"
    assert ours["variables"] == "KUBECONFIG, KUBECTL_QOS_CONFIG, KUBECTL_QOS_STATE, HTTPS_PROXY"
    given = ours["flags"].split()
    assert {"--usage=summary", "--v=0", "--request-timeout=20s"} <= set(given)
    assert {"--context=<redacted>", "--namespace=<redacted>", "--token=<redacted>"} <= set(given)


@pytest.mark.parametrize("fault", ["gone", "down", "forbidden", "nonsense", "no plugin", "no context"])
def test_no_name_is_in_it_whatever_fails(run: Run, serve: Serve, tmp_path: Path, fault: str) -> None:
    def answer(_: Request) -> Answer:
        if fault == "forbidden":
            said = {"kind": "Status", "reason": "Forbidden", "message": 'User "zqperson" cannot list zq'}
            return Answer(403, json.dumps(said).encode())
        return Answer(body=b"zqnonsense") if fault == "nonsense" else Answer(hangs_up=True)

    user: dict[str, Any] = {"token": "zqtoken"}
    if fault == "no plugin":
        user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}}
        user["exec"]["command"] = str(tmp_path / "zqfolder" / "plugin")
    server: Any = serve(answer) if fault != "down" else "https://127.0.0.1:1"
    config = kubeconfig(server, user=user, context="zqcontext", namespace="zqns")
    if fault == "no context":
        config["current-context"] = "zqother"
    path = write(tmp_path / "zqconfig", config)
    done = run("bug-report", "--kubeconfig", path)
    found = facts(done, "Cluster")
    assert "zq" not in done.out
    assert (
        found.get("server", found.get("connection"))
        == {
            "gone": "no answer (RemoteDisconnected)",
            "down": "no answer (ConnectionRefusedError)",
            "forbidden": "refused: 403 Forbidden",
            "nonsense": "failed (DecodeError)",
            "no plugin": "no answer (FileNotFoundError)",
            "no context": "failed (QosError)",
        }[fault]
    )


def test_without_any_kubeconfig(run: Run) -> None:
    done = run("bug-report")
    assert facts(done, "Cluster") == {
        "kubeconfig": "0 files, 0 clusters, 0 users, 0 contexts",
        "connection": "failed (QosError)",
    }


def test_a_settings_file_that_cannot_be_used(run: Run, tmp_path: Path) -> None:
    (tmp_path / "zq.yaml").write_text("zqsetting: [")
    variables = {"KUBECTL_QOS_CONFIG": str(tmp_path / "zq.yaml")}
    done = run("bug-report", "--demo", variables=variables)
    assert facts(done, "Installation")["settings"] == "the file cannot be used"
    (tmp_path / "zq.yaml").write_text("zqsetting: zqvalue")
    done = run("bug-report", "--demo", variables=variables)
    assert facts(done, "Installation")["settings"] == "an unknown one"
    assert "zq" not in done.out


def test_a_kubectl_that_is_broken(run: Run, tmp_path: Path) -> None:
    kubectl = tmp_path / "bin" / "kubectl"
    kubectl.parent.mkdir()
    kubectl.write_text("#!/bin/sh\necho zq\nexit 1\n")
    kubectl.chmod(kubectl.stat().st_mode | stat.S_IXUSR)
    done = run("bug-report", "--demo", variables={"PATH": str(kubectl.parent)})
    assert facts(done, "Installation")["kubectl"] == (
        "there, but it does not print its version (CalledProcessError)"
    )
    assert "zq" not in done.out
    done = run("bug-report", "--demo", variables={"PATH": str(tmp_path)})
    assert facts(done, "Installation")["kubectl"] == "not found"


def test_servers_cannot_leave_the_block(run: Run, tmp_path: Path) -> None:
    made = node("a")
    made["status"]["nodeInfo"] = {"kubeletVersion": "v1.36.0", "osImage": "x\n```\n<img>\x1b[2J"}
    (tmp_path / "x.json").write_text(json.dumps(made))
    done = run("bug-report", "-f", "x.json")
    assert facts(done, "Cluster")["images"] == "x\\n'''\\n<img>\\x1b[2J (1 node)"
    assert done.out.count("```") == 4


def test_in_a_terminal_its_size_is_said(tmp_path: Path) -> None:
    code, said = Terminal(tmp_path, "bug-report", "--demo").ended()
    assert code == 0
    assert "terminal at stdin, stdout, stderr, 0x0, encoding" in said


def test_what_makes_no_command_is_refused(run: Run) -> None:
    assert run("bug-report", "-o", "csv").code == 2

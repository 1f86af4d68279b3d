"""What is offered where: commands, flags, values; names are those of the demo."""

import argparse
from collections.abc import Iterator
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from kubectl_qos.cli.commands import COMMANDS
from kubectl_qos.cli.completion.completers import FLAGS, OPERANDS
from kubectl_qos.cli.main import build_parsers
from kubectl_qos.config.state import HistoryFile, history_path
from kubectl_qos.edit.edits import Edit, Side
from kubectl_qos.k8s.node_overrides import FIELDS, NodeOverride
from kubectl_qos.k8s.quantity import Quantity
from tests.cluster.kubeconfigs import write
from tests.completion.offers import directive, lines, values
from tests.entries import entry

DEMO_NODES = ["worker-1", "worker-2", "worker-3", "control-1"]


def test_commands_come_with_their_summaries() -> None:
    assert values("") == list(COMMANDS)
    assert lines("expl") == ["explain\twhy this class, score, cgroup values and eviction rank", ":4"]
    assert values("-n", "shop", "--demo", "ex") == ["explain", "exporter"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--vers"], ["--version"]),
        (["top", "--no"], ["--no-headers", "--node", "--node-memory"]),
        (["compare", "--to"], ["--to", "--token"]),
        (["top", "-A", "--all"], ["--all-contexts"]),
        (["set", "-c", "app", "--co"], ["--container", "--context"]),
        (["set", "--class", "guaranteed", "--class"], []),
        (["set", "--wait"], ["--wait"]),
        (["top", "--insecure"], ["--insecure-skip-tls-verify"]),
        (["explain", "-o"], ["-o"]),
        (["nonsense", "--"], []),
        (["top", "--", "--no"], []),
    ],
    ids=" ".join,
)
def test_flags(words: list[str], expected: list[str]) -> None:
    assert values(*words) == expected


def test_flags_come_only_behind_a_dash() -> None:
    assert not any(one.startswith("-") for one in values("top", "--demo", ""))
    assert {"-A", "--all-namespaces", "-o", "--output"} <= set(values("top", "-"))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["top", "-o", ""], ["wide", "json", "yaml", "csv", "name"]),
        (["top", "-o=c"], ["csv"]),
        (["top", "--output=c"], ["csv"]),
        (["top", "--min-risk", "n"], ["none", "next"]),
        (["tree", "--assume", "cgroupVersion="], ["cgroupVersion=1", "cgroupVersion=2"]),
        (["--usage="], ["metrics", "summary", "prometheus", "none"]),
        (["set", "--class", "g"], ["guaranteed"]),
        (["set", "--by", ""], ["in-place", "template"]),
        (["undo", "--dry-run="], ["none", "client", "server"]),
        (["set", "--wait="], ["true", "false"]),
        (["--demo="], ["true", "false"]),
        (["completion", ""], ["kubectl", "bash", "zsh", "fish", "powershell"]),
        (["completion", "bash", ""], []),
        (["compare", "--to", "1.2"], [f"1.{minor}" for minor in range(29, 19, -1)]),
        (["compare", "--assume", "cgroupV"], ["cgroupVersion="]),
        (["compare", "--assume", "cgroupVersion="], ["cgroupVersion=1", "cgroupVersion=2"]),
        (["compare", "--assume=cgroupV"], ["cgroupVersion="]),
        (["compare", "--assume=cgroupVersion="], []),
        (["--assume", "featureGates.MemoryQ"], ["featureGates.MemoryQoS="]),
        (["--assume", "featureGates.MemoryQoS=t"], ["featureGates.MemoryQoS=true"]),
        (["--assume", "memory="], []),
        (["--feature-gates", "MemoryQ"], ["MemoryQoS="]),
        (["--feature-gates", "NodeSwap=true,MemoryQ"], ["NodeSwap=true,MemoryQoS="]),
        (["--feature-gates", "NodeSwap=true,Node"], []),
        (["--feature-gates", "NodeSwap=true,MemoryQoS=f"], ["NodeSwap=true,MemoryQoS=false"]),
        (["--feature-gates=NodeSwap=true,MemoryQoS=f"], []),
        (["set", "--requests", ""], ["cpu=", "memory=", "ephemeral-storage="]),
        (["set", "--limits", "cpu=1,m"], ["cpu=1,memory="]),
        (["set", "--limits", "memory="], []),
        (["top", "--sort-by", "oom"], ["oom_score_adj", "oom_score"]),
        (["top", "--sort-by", "ev"], ["eviction"]),
        (["top", "nodes", "--sort-by", "to_"], ["to_eviction", "to_soft_eviction"]),
        (["kills", "--since", ""], []),
        (["web", "--port", ""], []),
        (["--token", ""], []),
    ],
    ids=" ".join,
)
def test_values_of_flags(words: list[str], expected: list[str]) -> None:
    assert values(*words) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["tree", "--demo", "node/worker"], ["node/worker-1", "node/worker-2", "node/worker-3"]),
        (["top", "--demo", "nodes", "worker-1", "worker-"], ["worker-2", "worker-3"]),
        (["top", "--demo", "--node", "worker-1", "db"], ["db-1"]),
        (["top", "--demo", "pod/db-0", "pod/db"], ["pod/db-1", "pod/db-2"]),
        (["top", "--demo", "db-0", "db"], ["db-1", "db-2"]),
        (["top", "--demo", "db-0", "po"], []),
        (["explain", "--demo", "d"], ["deployment/", "daemonset/"]),
        (["explain", "--demo", "po/db"], ["po/db-0", "po/db-1", "po/db-2"]),
        (["explain", "--demo", "pods", "db"], ["db-0", "db-1", "db-2"]),
        (["explain", "--demo", "po", "db-0", "db"], ["db-1", "db-2"]),
        (["explain", "--demo", "secret/"], []),
        (["set", "--demo", "pod/db-0", ""], []),
        (["set", "--demo", "pod", "db-0", ""], []),
        (["verify", "--demo", ""], ["pod/", "node/"]),
        (["simulate", "--demo", ""], ["node/"]),
        (["simulate", "--demo", "pod/"], []),
        (["kills", "--demo", "db"], ["db-0", "db-1", "db-2"]),
        (["--demo", "set", "pod/db-1", "-c", ""], ["a", "b"]),
        (["--demo", "set", "pod", "db-1", "--container="], ["a", "b"]),
        (["--demo", "set", "-c", ""], []),
        (["--demo", "set", "pod/db-0", "--outlive", "db"], ["db-0", "db-1", "db-2"]),
        (["--demo", "simulate", "--grow", ""], ["node=", "pod/"]),
        (["--demo", "simulate", "node/worker-1", "--grow", "pod/db"], ["pod/db-1="]),
        (["--demo", "simulate", "--grow", "pod/db-1="], []),
        (["--demo", "-n", "kube"], ["kube-system"]),
        (["--demo", "--namespace=kube"], ["kube-system"]),
        (["--demo", "--node="], DEMO_NODES),
        (["--demo", "top", "-l", ""], []),
    ],
    ids=" ".join,
)
def test_names(words: list[str], expected: list[str]) -> None:
    assert sorted(values(*words)) == sorted(expected)


def test_pods_say_where_they_are() -> None:
    assert lines("explain", "--demo", "pod/db-1") == ["pod/db-1\tworker-1", ":4"]


def test_pods_of_other_namespaces_are_not_offered() -> None:
    of_system = values("explain", "--demo", "-n", "kube-system", "pod/")
    assert of_system
    assert set(of_system).isdisjoint(values("explain", "--demo", "-n", "shop", "pod/"))
    assert set(of_system) < set(values("explain", "--demo", "-An", "shop", "pod/"))
    assert values("explain", "--demo", "-nkube-system", "pod/") == of_system
    assert values("explain", "--demo", "-n=kube-system", "pod/") == of_system


def test_names_come_from_the_files_that_are_given(tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    file.write_text(
        "\n---\n".join(
            f"kind: {kind}\nmetadata: {{name: {name}, namespace: shop}}\nspec: {spec}"
            for kind, name, spec in (
                ("Pod", "web-0", "{containers: [{name: web}], initContainers: [{name: setup}]}"),
                ("Deployment", "api", "{template: {spec: {containers: [{name: api}]}}}"),
            )
        )
    )
    assert values("explain", "-f", str(file), "pod/") == ["pod/web-0"]
    assert values("set", f"--filename={file}", "deploy/") == ["deploy/api"]
    assert values("set", "-f", str(file), "deploy/api", "-c", "") == ["api"]
    assert values("set", "-f", str(file), "pod/web-0", "-c", "") == ["web", "setup"]
    assert values("top", "-f", str(file), "-n", "") == ["shop"]
    assert values("explain", "-f", str(tmp_path / "none.yaml"), "pod/") == []


def test_standard_input_is_left_to_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    given = BytesIO(b"kind: Pod\nmetadata: {name: web-0}\nspec: {containers: [{name: web}]}")
    monkeypatch.setattr("sys.stdin", TextIOWrapper(given))
    assert values("explain", "-f", "-", "pod/") == []
    assert given.tell() == 0


def test_changes_that_can_be_undone_say_what_they_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECTL_QOS_STATE", str(tmp_path))
    history = HistoryFile(history_path())
    was, now = (Edit("web", Side.LIMITS, "memory", Quantity.parse(text)) for text in ("1Gi", "2Gi"))
    for id_, context in (("20261120-1f3a9c02", "prod"), ("20261121-77aa0b1c", "test")):
        history.put(entry(id=id_, at="2026-11-20T12:00:00Z", context=context, before=(was,), after=(now,)))
    newest, oldest, _ = lines("undo", "")
    assert newest.startswith("77aa0b1c\tshop/deployment/web: ")
    assert "1Gi" in newest
    assert "2Gi" in newest
    assert oldest.startswith("1f3a9c02\t")
    assert values("undo", "--context", "prod", "") == ["1f3a9c02"]
    assert values("undo", "1f3a9c02", "") == []


def test_contexts_are_completed_one_after_the_other(tmp_path: Path) -> None:
    named = [{"name": name} for name in ("prod-us", "dev", "prod-eu")]
    config = write(tmp_path / "config", {"kind": "Config", "contexts": named})
    flags = ("--kubeconfig", str(config), "next", "--contexts")
    assert values(*flags, "prod-") == ["prod-eu", "prod-us"]
    assert values(*flags, "prod-eu,") == ["prod-eu,dev", "prod-eu,prod-us"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-f", "x"], ["yaml", "yml", "json", ":8"]),
        (["simulate", "--what-if", ""], ["yaml", "yml", "json", ":8"]),
        (["verify", "--from-dump="], ["json", ":8"]),
        (["--kubeconfig", ""], [":0"]),
        (["kills", "--kernel-log", "worker-1="], [":0"]),
        (["host", "--proc-root", ""], [":16"]),
        (["web", "--address", ""], [":4"]),
    ],
    ids=" ".join,
)
def test_files_are_left_to_the_shell(words: list[str], expected: list[str]) -> None:
    assert lines(*words) == expected


def test_more_is_to_be_typed_behind_what_is_open() -> None:
    assert directive("set", "--limits", "mem") == ":6"
    assert directive("explain", "--demo", "deploy") == ":6"
    assert directive("explain", "--demo", "pod/db") == ":4"
    assert directive("compare", "--assume", "cgroupVersion=") == ":4"


def test_a_flag_that_may_lack_its_value_leaves_the_next_flag_alone() -> None:
    assert values("set", "--write", "--forc") == ["--force"]


def _with_values(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if action.nargs != 0 and not isinstance(action, argparse._SubParsersAction):
            yield action


def test_no_line_is_about_what_is_no_longer_there() -> None:
    parsers = build_parsers()
    known = [(name, one) for name, parser in parsers.items() for one in _with_values(parser)]
    assert set(FLAGS) <= {one.dest for _, one in known if one.option_strings}
    assert set(OPERANDS) <= {name for name, one in known if not one.option_strings}


MORE = {"runtime": "2.1.4", "ociRuntime": "1.3.0", "kubeletVersion": "36"} | dict.fromkeys(
    ("evictionHard", "evictionSoft", "kubeReserved", "systemReserved"), "1Gi"
)


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, field in FIELDS.items() for value in field.begins]
)
def test_offered_values_are_taken(key: str, value: str) -> None:
    whole = value + MORE.get(key, "")
    assert NodeOverride.parse(f"{key}={whole}")

"""Several clusters: which contexts are meant, how many are asked at once, and one plugin at the terminal."""

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.cluster.fleet import CLUSTERS_AT_ONCE, find_contexts, read_each
from kubectl_qos.errors import QosError, UsageError
from kubectl_qos.transport import ConnectionOptions, auth
from kubectl_qos.transport.kubeconfig import ResolvedContext
from tests.cluster.kubeconfigs import write

ARN = "arn:aws:eks:eu-1:1:cluster/[x]"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two kubeconfigs, of which the first one counts where both have a context."""
    names = {"b": ["prod-us", "dev"], "a": ["prod-eu", "dev", ARN]}
    paths = [
        write(tmp_path / file, {"kind": "Config", "contexts": [{"name": name} for name in contexts]})
        for file, contexts in names.items()
    ]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, paths)))


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (None, ["prod-us", "dev", "prod-eu", ARN]),
        (["prod-*"], ["prod-us", "prod-eu"]),
        (["prod-eu", "dev"], ["dev", "prod-eu"]),
        (["prod-?s", "*-us"], ["prod-us"]),
        ([ARN], [ARN]),
    ],
)
def test_contexts_are_in_the_order_of_the_kubeconfig(
    files: None, patterns: list[str] | None, expected: list[str]
) -> None:
    del files
    found = find_contexts(ConnectionOptions(namespace="shop"), patterns)
    assert list(found) == expected
    assert found[expected[0]] == ConnectionOptions(namespace="shop", context=expected[0])


@pytest.mark.parametrize(
    ("patterns", "sentence"),
    [
        (["prod-eu", "prod"], 'context "prod" does not exist'),
        (["prod-eu", "test-*"], 'no context matches "test-*"'),
        ([], "no context is named"),
    ],
)
def test_what_is_not_there_is_one_sentence_with_what_is(
    files: None, patterns: list[str], sentence: str
) -> None:
    del files
    with pytest.raises(UsageError) as caught:
        find_contexts(ConnectionOptions(), patterns)
    assert (str(caught.value), caught.value.hint) == (
        sentence,
        f"contexts are: prod-us, dev, prod-eu, {ARN}",
    )


def test_few_are_read_at_a_time_and_a_failure_is_a_value() -> None:
    """The first ones wait for one another, so all of them run at once, and no other has begun by then."""
    begun: list[str] = []
    full = threading.Barrier(CLUSTERS_AT_ONCE, lambda: most.append(len(begun)))
    most: list[int] = []
    names = [f"c{number}" for number in range(CLUSTERS_AT_ONCE * 2)]

    def work(name: str) -> str:
        begun.append(name)
        full.wait(10)
        if name == "c1":
            raise QosError("no route to host")
        return name.upper()

    answers = dict(read_each(names, work))
    assert most[0] == CLUSTERS_AT_ONCE
    assert str(answers.pop("c1")) == "no route to host"
    assert answers == {name: name.upper() for name in names if name != "c1"}


@pytest.mark.parametrize(
    ("mode", "has_terminal", "is_alone"),
    [("IfAvailable", True, True), ("Never", True, False), ("IfAvailable", False, False)],
)
def test_an_interactive_plugin_runs_alone(
    monkeypatch: pytest.MonkeyPatch, mode: str, has_terminal: bool, is_alone: bool
) -> None:
    held: list[bool] = []

    def run(*_: Any, **options: Any) -> subprocess.CompletedProcess[bytes]:
        held.append(auth._TERMINAL.locked())
        assert (options["stdin"] is None) == is_alone
        assert (options["stderr"] is None) == has_terminal, "nothing is printed over a screen"
        answer = {"kind": "ExecCredential", "apiVersion": auth.VERSIONS[0], "status": {"token": "admin"}}
        return subprocess.CompletedProcess([], 0, json.dumps(answer).encode())

    monkeypatch.setattr(os, "isatty", lambda _: True)
    monkeypatch.setattr(subprocess, "run", run)
    plugin = {"apiVersion": auth.VERSIONS[0], "command": "/bin/plugin", "interactiveMode": mode}
    context = ResolvedContext("prod", "default", {}, {"exec": plugin})
    assert auth.ExecPlugin(context, has_terminal=has_terminal).authorization() == "Bearer admin"
    assert held == [is_alone]
    assert not auth._TERMINAL.locked()

"""Work in a thread meanwhile: order, errors, and no thread that outlives its reader."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.cluster.background import CLUSTERS_AT_ONCE, Future, ahead, find_contexts, read_each, run_all
from kubectl_qos.errors import QosError, UsageError
from kubectl_qos.transport import ConnectionOptions, auth
from kubectl_qos.transport.kubeconfig import ResolvedContext
from tests.cluster.following import wait_for
from tests.cluster.kubeconfigs import write

PATIENCE_SECONDS = 5.0


def test_items_come_in_order() -> None:
    assert list(ahead(range(100))) == list(range(100))
    assert list(ahead([])) == []


def test_the_next_item_is_made_while_one_is_worked_on() -> None:
    made: list[int] = []
    taken: list[int] = []
    waiting: list[int] = []

    def items() -> Iterator[int]:
        for number in range(10):
            waiting.append(len(made) - len(taken))
            made.append(number)
            yield number

    reader = ahead(items())
    for number in range(10):
        taken.append(next(reader))
        wait_for(lambda number=number: len(made) >= min(number + 2, 10))  # type: ignore[misc]
    assert taken == made
    assert max(waiting) <= 2, "no more than one waits while one is made"


def test_an_error_comes_after_the_items_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    reader = ahead(items())
    assert next(reader) == 1
    with pytest.raises(ValueError, match="broken"):
        next(reader)


@pytest.mark.parametrize("fails", [False, True])
def test_a_reader_that_stops_early_or_fails_leaves_no_thread(fails: bool) -> None:
    threads: list[threading.Thread] = []

    def items() -> Iterator[int]:
        threads.append(threading.current_thread())
        yield from range(10)

    def read() -> None:
        for _ in ahead(items()):
            if fails:
                raise KeyboardInterrupt
            break

    with pytest.raises(KeyboardInterrupt) if fails else nullcontext():
        read()
    wait_for(lambda: not threads[0].is_alive())


def test_stopping_does_not_wait_for_the_item_on_its_way() -> None:
    may_end = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        may_end.wait(PATIENCE_SECONDS)
        yield 2

    reader = ahead(items())
    next(reader)
    started = time.monotonic()
    reader.close()  # type: ignore[attr-defined]
    assert time.monotonic() - started < PATIENCE_SECONDS / 2
    may_end.set()


def test_a_later_value_is_waited_for() -> None:
    may_end = threading.Event()

    def compute() -> int:
        may_end.wait(PATIENCE_SECONDS)
        return 7

    later = Future(compute)
    may_end.set()
    assert later.result() == 7
    assert later.result() == 7


def test_a_later_error_is_raised_where_the_value_is_read() -> None:
    def compute() -> int:
        raise ValueError("broken")

    later = Future(compute)
    with pytest.raises(ValueError, match="broken"):
        later.result()


def test_several_items_at_once_keep_their_own_errors() -> None:
    def work(number: int) -> int:
        if number % 2:
            raise QosError(f"odd: {number}")
        return number * 10

    outcomes = run_all(work, range(5), at_once=2)
    assert [outcome for outcome in outcomes.values() if not isinstance(outcome, QosError)] == [0, 20, 40]
    assert {number: str(outcomes[number]) for number in (1, 3)} == {1: "odd: 1", 3: "odd: 3"}
    with pytest.raises(ZeroDivisionError):
        run_all(lambda number: 1 // number, range(3), at_once=2)


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
        full.wait(120)
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

"""Only cluster/writer.py changes a cluster, never without a dry run, never without leave: by the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import kubectl_qos
from kubectl_qos.cluster.exec import SHELL
from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.cluster.live import LiveSource
from kubectl_qos.demo.source import LivingDemo
from kubectl_qos.errors import QosError
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport.client import REVIEWS, connect

ROOT = Path(kubectl_qos.__file__).parent
CONNECTION, WRITER, REVIEW = "transport/client.py", "cluster/writer.py", "cluster/kube_api.py"
EXEC = "cluster/exec.py"
MACHINE = "edit/apply_state.py"
POOLS = "transport/client.py"
WRITING_METHODS = {"POST", "PUT", "PATCH", "DELETE"}


@cache
def texts() -> dict[str, str]:
    """Every module of the product."""
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in ROOT.rglob("*.py")}


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(texts()[module])


def with_words(*words: str) -> Iterator[tuple[str, ast.Module]]:
    """The modules that have one of these words: to parse and walk all of them takes seconds."""
    return ((name, tree_of(name)) for name, text in texts().items() if any(word in text for word in words))


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Every call with the last part of its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            of = node.func
            yield (
                of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else "",
                node,
            )


def where_called(name: str) -> set[str]:
    return {module for module, tree in with_words(name) for called, _ in calls(tree) if called == name}


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_the_modules_are_there() -> None:
    assert {CONNECTION, WRITER, REVIEW, EXEC, POOLS} <= texts().keys()
    assert len(texts()) > 100


def test_only_the_writer_patches() -> None:
    assert where_called("patch") == {WRITER}
    assert [name for name, _ in calls(tree_of(WRITER))].count("patch") == 1


def test_only_the_writer_makes_dry_runs_and_writes() -> None:
    assert where_called("DryRunResult") == {WRITER}
    assert where_called("ApplyResult") == {WRITER}
    replaced = [
        call
        for name, call in calls(tree_of(WRITER))
        if name == "replace" and isinstance(call.args[0], ast.Name) and call.args[0].id == "dry_run_result"
    ]
    assert replaced == []


def test_every_write_takes_a_dry_run() -> None:
    """`_send` is called twice: for the dry run, and in `apply`, which takes only the result of that."""
    writer = next(
        node for node in ast.walk(tree_of(WRITER)) if isinstance(node, ast.ClassDef) and node.name == "Writer"
    )
    found = {
        method.name: [
            ast.unparse(keyword.value)
            for name, call in calls(method)
            if name == "_send"
            for keyword in call.keywords
            if keyword.arg == "dry_run"
        ]
        for method in writer.body
        if isinstance(method, ast.FunctionDef)
    }
    assert {name: values for name, values in found.items() if values} == {
        "dry_run": ["True"],
        "apply": ["False"],
    }
    apply = next(node for node in writer.body if isinstance(node, ast.FunctionDef) and node.name == "apply")
    first = apply.args.args[1]
    assert first.annotation is not None
    assert (first.arg, ast.unparse(first.annotation)) == ("dry_run_result", "DryRunResult")


def test_a_request_leaves_only_by_a_confirmed_send() -> None:
    """`Send` is made by the yes of a person alone, and only what carries it out has the writer apply."""
    assert where_called("Send") == {MACHINE}
    machine = next(
        node for node in tree_of(MACHINE).body if isinstance(node, ast.ClassDef) and node.name == "Apply"
    )
    makers = [
        node.name
        for node in machine.body
        if isinstance(node, ast.FunctionDef) and "Send" in {name for name, _ in calls(node)}
    ]
    assert makers == ["confirm"]
    senders = {
        module
        for module, tree in with_words("writer")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "apply" and "writer" in ast.unparse(node.value)
    }
    assert senders == {"cluster/driver.py"}


def test_no_other_module_names_a_method_that_changes() -> None:
    named = {
        (module, node.value)
        for module, tree in with_words(*WRITING_METHODS)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in WRITING_METHODS
    }
    assert named <= {
        (CONNECTION, "POST"),
        (CONNECTION, "PATCH"),
        (REVIEW, "POST"),
        ("edit/edits.py", "PATCH"),
    }


def test_only_the_connection_has_a_pool() -> None:
    """Whoever talks to a server goes through `Connection`."""
    importers = {
        module
        for module, tree in with_words("urllib3")
        if any(
            name.startswith("urllib3") and name.endswith(("Manager", "request")) for name in imported(tree)
        )
    }
    assert all(module.startswith("transport/") for module in importers)
    assert where_called("pool_manager") == {CONNECTION}


def test_only_one_module_switches_protocols() -> None:
    """A websocket can run commands, so it is not asked for in passing."""
    assert where_called("switch_protocols") == {EXEC}
    assert where_called("BoundedWebSocket") == {EXEC}
    assert where_called("read_container") == {"cli/verify_readers.py"}


def test_only_one_command_is_run_in_containers() -> None:
    """It does not come from outside: it is a constant, and its words are those of the request."""
    tree = tree_of(EXEC)
    queries = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.ListComp)]
    assert [query for query in queries if "command" in query] == ["[('command', word) for word in SHELL]"]
    assert ast.unparse(tree).count("'command'") == 1
    assert SHELL[:2] == ("sh", "-c")
    # No redirection of output, no further process.
    line = SHELL[2].replace("==>", "").replace("&& ", "").replace("$((", "")
    assert not any(sign in line for sign in (">", "`", "$(", " | ", "& "))


def test_the_sender_of_reviews_posts_nothing_else() -> None:
    requests = [
        [ast.unparse(argument) for argument in call.args]
        for name, call in calls(tree_of(REVIEW))
        if name == "request"
    ]
    assert [arguments for arguments in requests if arguments[0] != "'GET'"] == [["'POST'", "REVIEWS"]]


@pytest.mark.parametrize("path", ["/api/v1/namespaces/shop/pods/web", f"{REVIEWS}/x", "/"])
def test_a_question_cannot_change_anything(path: str) -> None:
    connection = connect(ConnectionOptions(server="http://127.0.0.1:1"))
    for method in ("POST", "PUT", "PATCH", "DELETE", "post", "patch", "HEAD", "OPTIONS", ""):
        with pytest.raises(QosError, match="is not sent: it could change something"):
            connection.request(method, path, body=b"{}")


def test_a_review_is_only_posted() -> None:
    connection = connect(ConnectionOptions(server="http://127.0.0.1:1"))
    for method in ("PUT", "PATCH", "DELETE"):
        with pytest.raises(QosError, match="is not sent"):
            connection.request(method, REVIEWS, body=b"{}")


def test_without_leave_nobody_gets_a_writer() -> None:
    connection = connect(ConnectionOptions(server="http://127.0.0.1:1"))
    with pytest.raises(QosError, match="read-only"):
        LiveSource(connection).writer()
    with pytest.raises(QosError, match="demo is read-only"):
        LivingDemo().writer()
    with pytest.raises(QosError, match="demo is no cluster"):
        DemoSource().writer()


def test_writers_are_made_only_where_leave_is_checked() -> None:
    assert where_called("Writer") == {"cluster/live.py"}
    assert where_called("Connection") == {CONNECTION}

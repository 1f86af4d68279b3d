from __future__ import annotations

from kubectl_qos.errors import ApiError, InputError, ServerUnreachable
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.tui.live import Answered, Refused, answer
from tests.tui.sources import ScriptedSource, demo, pod_named

FORBIDDEN = ApiError("Error from server (Forbidden): pods is forbidden", status=403, reason="Forbidden")


def test_an_answer_carries_facts_of_the_snapshot() -> None:
    found = answer(7, ScriptedSource(demo()), Scope(namespace="shop"), None)
    assert isinstance(found, Answered)
    assert found.generation == 7
    assert {row.pod.namespace for row in found.facts.rows.rows} == {"shop"}
    assert found.facts.notice == ""
    assert found.target is None


def test_where_the_cluster_is_forbidden_the_own_namespace_is_asked_for() -> None:
    def own_only(scope: Scope) -> Snapshot:
        if scope.namespace is None:
            raise FORBIDDEN
        return demo()

    source = ScriptedSource(own_only, default_namespace="shop")
    found = answer(1, source, Scope(), None)
    assert isinstance(found, Answered)
    assert [scope.namespace for scope in source.asked] == [None, "shop"]
    assert found.scope.namespace == "shop"
    assert {row.pod.namespace for row in found.facts.rows.rows} == {"shop"}
    assert found.facts.notice == f"only namespace shop is shown: {FORBIDDEN}"


def test_without_an_own_namespace_forbidden_is_the_answer() -> None:
    found = answer(1, ScriptedSource(FORBIDDEN), Scope(), None)
    assert isinstance(found, Refused)
    assert found.error is FORBIDDEN
    assert not found.fatal


def test_a_namespace_that_was_asked_for_is_not_replaced() -> None:
    source = ScriptedSource(FORBIDDEN, default_namespace="shop")
    found = answer(1, source, Scope(namespace="data"), None)
    assert isinstance(found, Refused)
    assert len(source.asked) == 1


def test_other_errors_are_not_asked_around() -> None:
    for error in (ServerUnreachable("no answer"), ApiError("no", status=401)):
        source = ScriptedSource(error, default_namespace="shop")
        found = answer(1, source, Scope(), None)
        assert isinstance(found, Refused)
        assert found.error is error
        assert len(source.asked) == 1


def test_a_defect_becomes_a_sentence_not_a_dead_thread() -> None:
    def broken(_: Scope) -> Snapshot:
        raise ZeroDivisionError("division by zero")

    found = answer(1, ScriptedSource(broken), Scope(), None)
    assert isinstance(found, Refused)
    assert str(found.error) == "unexpected ZeroDivisionError: division by zero"
    assert "defect" in found.error.hint


def test_the_pod_to_open_is_found_in_the_first_snapshot() -> None:
    found = answer(1, ScriptedSource(demo()), Scope(), lambda snapshot: pod_named(snapshot, "db-0"))
    assert isinstance(found, Answered)
    assert found.target is not None
    assert found.target.name == "db-0"


def test_a_pod_to_open_that_does_not_exist_ends_everything() -> None:
    def none(_: Snapshot) -> None:
        raise InputError('pods "x" not found')

    found = answer(1, ScriptedSource(demo()), Scope(), none)  # type: ignore[arg-type]
    assert isinstance(found, Refused)
    assert found.fatal

from __future__ import annotations

import pytest

from kubectl_qos.cluster.demo import DEMO_TIME
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.go_to import Destination, GoToTarget, completions, parse_target
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.view_model import ViewModel, build_view_model
from tests.tui.sources import demo


@pytest.fixture(scope="module")
def facts() -> ViewModel:
    return build_view_model(demo(), Scope(), DEMO_TIME)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("nodes", View(ListKind.NODES)),
        (" NODES ", View(ListKind.NODES)),
        ("cluster", View(ListKind.NODES)),
        ("node", View(ListKind.NODES)),
        ("node worker-2", View(node="worker-2")),
        ("nodes worker-2", View(node="worker-2")),
        ("ns", View(ListKind.NAMESPACES)),
        ("ns shop", View(namespace="shop")),
        ("pods", View()),
        ("pods all", View()),
        ("po  shop", View(namespace="shop")),
        ("workloads", View(ListKind.WORKLOADS)),
        ("wl shop", View(ListKind.WORKLOADS, namespace="shop")),
        ("containers shop", View(ListKind.CONTAINERS, namespace="shop")),
    ],
)
def test_lists(text: str, place: View, facts: ViewModel) -> None:
    assert parse_target(text, facts) == GoToTarget(Destination.LIST, place)


def test_other_places(facts: ViewModel) -> None:
    assert parse_target("help", facts) == GoToTarget(Destination.HELP)
    assert parse_target("q", facts) == GoToTarget(Destination.QUIT)
    assert parse_target("undo", facts) == GoToTarget(Destination.UNDO)
    assert parse_target("kills", facts) == GoToTarget(Destination.KILLS)
    assert parse_target("sim", facts) == GoToTarget(Destination.SIMULATION)
    assert parse_target("simulate worker-2", facts) == GoToTarget(Destination.SIMULATION, name="worker-2")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("kill", "there is no place 'kill'"),
        ("sim nope", "there is no node 'nope'"),
        ("node nope", "there is no node 'nope'"),
        ("pods nope", "there are no pods in namespace 'nope'"),
    ],
)
def test_places_that_are_not_there(text: str, sentence: str, facts: ViewModel) -> None:
    with pytest.raises(InputError, match=sentence):
        parse_target(text, facts)


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("", None),
        ("n", "nodes"),
        ("w", "workloads"),
        ("workloads t", "workloads team-a"),
        ("node w", "node worker-2"),
        ("node worker-1", None),
        ("pods s", "pods sandboxed"),
        ("pods sh", "pods shop"),
        ("und", "undo"),
        ("k", "kills"),
        ("si", "sim"),
        ("sim w", "sim worker-2"),
        ("zz", None),
    ],
)
def test_completion(text: str, full: str | None, facts: ViewModel) -> None:
    assert next(completions(text, facts), None) == full


def test_before_the_first_answer_only_the_words_are_known() -> None:
    assert not list(completions("node w", None))
    assert parse_target("pods", None) == GoToTarget(Destination.LIST, View())
    with pytest.raises(InputError, match="no node"):
        parse_target("node worker-2", None)

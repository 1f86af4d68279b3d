from __future__ import annotations

import pytest

from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.view import Destination, GoTo, ListKind, View, go_to_completions, parse_go_to
from kubectl_qos.tui.view_model import ViewModel, build_view_model
from tests.tui.sources import demo


@pytest.fixture(scope="module")
def view_model() -> ViewModel:
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
def test_lists(text: str, place: View, view_model: ViewModel) -> None:
    assert parse_go_to(text, view_model) == GoTo(Destination.LIST, place)


def test_other_destinations(view_model: ViewModel) -> None:
    assert parse_go_to("help", view_model) == GoTo(Destination.HELP)
    assert parse_go_to("q", view_model) == GoTo(Destination.QUIT)
    assert parse_go_to("undo", view_model) == GoTo(Destination.UNDO)
    assert parse_go_to("kills", view_model) == GoTo(Destination.KILLS)
    assert parse_go_to("sim", view_model) == GoTo(Destination.SIMULATION)
    assert parse_go_to("simulate worker-2", view_model) == GoTo(Destination.SIMULATION, name="worker-2")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("kill", 'unknown command "kill"'),
        ("sim nope", 'node "nope" not found'),
        ("node nope", 'node "nope" not found'),
        ("pods nope", 'namespace "nope" has no pods'),
    ],
)
def test_unknown_destinations(text: str, sentence: str, view_model: ViewModel) -> None:
    with pytest.raises(InputError, match=sentence):
        parse_go_to(text, view_model)


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
def test_completion(text: str, full: str | None, view_model: ViewModel) -> None:
    assert next(go_to_completions(text, view_model), None) == full


def test_before_the_first_answer_only_the_words_are_known() -> None:
    assert not list(go_to_completions("node w", None))
    assert parse_go_to("pods", None) == GoTo(Destination.LIST, View())
    with pytest.raises(InputError, match="not found"):
        parse_go_to("node worker-2", None)

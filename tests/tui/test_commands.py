from __future__ import annotations

import pytest

from kubectl_qos.cluster.demo import DEMO_TIME
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.commands import Goal, Place, completions, place_of
from kubectl_qos.tui.facts import Facts, facts_of
from kubectl_qos.tui.view import Kind, View
from tests.tui.sources import demo


@pytest.fixture(scope="module")
def facts() -> Facts:
    return facts_of(demo(), Scope(), DEMO_TIME)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("nodes", View(Kind.NODES)),
        (" NODES ", View(Kind.NODES)),
        ("cluster", View(Kind.NODES)),
        ("node", View(Kind.NODES)),
        ("node worker-2", View(node="worker-2")),
        ("nodes worker-2", View(node="worker-2")),
        ("ns", View(Kind.NAMESPACES)),
        ("ns shop", View(namespace="shop")),
        ("pods", View()),
        ("pods all", View()),
        ("po  shop", View(namespace="shop")),
        ("workloads", View(Kind.WORKLOADS)),
        ("wl shop", View(Kind.WORKLOADS, namespace="shop")),
        ("containers shop", View(Kind.CONTAINERS, namespace="shop")),
    ],
)
def test_lists(text: str, place: View, facts: Facts) -> None:
    assert place_of(text, facts) == Place(Goal.LIST, place)


def test_other_places(facts: Facts) -> None:
    assert place_of("help", facts) == Place(Goal.HELP)
    assert place_of("q", facts) == Place(Goal.QUIT)
    assert place_of("undo", facts) == Place(Goal.UNDO)
    assert place_of("kills", facts) == Place(Goal.KILLS)
    assert place_of("sim", facts) == Place(Goal.SIMULATION)
    assert place_of("simulate worker-2", facts) == Place(Goal.SIMULATION, name="worker-2")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("kill", "there is no place 'kill'"),
        ("sim nope", "there is no node 'nope'"),
        ("node nope", "there is no node 'nope'"),
        ("pods nope", "there are no pods in namespace 'nope'"),
    ],
)
def test_places_that_are_not_there(text: str, sentence: str, facts: Facts) -> None:
    with pytest.raises(InputError, match=sentence):
        place_of(text, facts)


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
def test_completion(text: str, full: str | None, facts: Facts) -> None:
    assert next(completions(text, facts), None) == full


def test_before_the_first_answer_only_the_words_are_known() -> None:
    assert not list(completions("node w", None))
    assert place_of("pods", None) == Place(Goal.LIST, View())
    with pytest.raises(InputError, match="no node"):
        place_of("node worker-2", None)

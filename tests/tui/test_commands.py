from __future__ import annotations

import pytest

from kubectl_qos.cluster.demo import DEMO_TIME
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.commands import Goal, Place, completed, place_of
from kubectl_qos.tui.facts import Facts, facts_of
from tests.tui.sources import demo


@pytest.fixture(scope="module")
def facts() -> Facts:
    return facts_of(demo(), Scope(), DEMO_TIME)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("nodes", Place(Goal.NODES)),
        (" NODES ", Place(Goal.NODES)),
        ("node", Place(Goal.NODES)),
        ("node worker-2", Place(Goal.NODE, "worker-2")),
        ("nodes worker-2", Place(Goal.NODE, "worker-2")),
        ("ns", Place(Goal.NAMESPACES)),
        ("ns shop", Place(Goal.PODS, "shop")),
        ("pods", Place(Goal.PODS)),
        ("pods all", Place(Goal.PODS)),
        ("po  shop", Place(Goal.PODS, "shop")),
        ("help", Place(Goal.HELP)),
        ("q", Place(Goal.QUIT)),
    ],
)
def test_places(text: str, place: Place, facts: Facts) -> None:
    found = place_of(text, facts)
    assert (found.goal, found.name) in {(place.goal, place.name), (place.goal, None)}
    assert found.name == place.name


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("kills", "there is no place 'kills'"),
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
        ("node w", "node worker-2"),
        ("node worker-1", None),
        ("pods s", "pods sandboxed"),
        ("pods sh", "pods shop"),
        ("zz", None),
    ],
)
def test_completion(text: str, full: str | None, facts: Facts) -> None:
    assert completed(text, facts) == full


def test_before_the_first_answer_only_the_words_are_known() -> None:
    assert completed("node w", None) is None
    assert place_of("pods", None) == Place(Goal.PODS)
    with pytest.raises(InputError, match="no node"):
        place_of("node worker-2", None)

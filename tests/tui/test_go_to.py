"""Where commands after `:` lead, how they are completed, and what is said of mistyped ones."""

from __future__ import annotations

import pytest

from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.go_to import LIST, GoTo, go_to_completions, parse_go_to
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.view_model import ViewModel, build_view_model
from tests.tui.sources import API, demo


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
        ("no", View(ListKind.NODES)),
        ("pods -A", View()),
        ("pods -n shop", View(namespace="shop")),
        ("pod", View()),
        ("pod shop", View(namespace="shop")),
        ("all", View()),
        ("next", View(ListKind.DEATHS)),
        ("deaths worker-2", View(ListKind.DEATHS, "worker-2")),
    ],
)
def test_lists(text: str, place: View, view_model: ViewModel) -> None:
    assert parse_go_to(text, view_model) == GoTo(LIST, place)


def test_other_destinations(view_model: ViewModel) -> None:
    assert parse_go_to("help", view_model) == GoTo("help")
    assert parse_go_to("q", view_model) == GoTo("q")
    assert parse_go_to("undo", view_model) == GoTo("undo")
    assert parse_go_to("kills", view_model) == GoTo("kills")
    assert parse_go_to("fix", view_model) == GoTo("fix")
    assert parse_go_to("sim", view_model) == GoTo("sim")
    assert parse_go_to("simulate worker-2", view_model) == GoTo("sim", name="worker-2")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("kill", 'unknown command "kill"'),
        ("sim nope", 'node "nope" not found'),
        ("node nope", 'node "nope" not found'),
        ("pods nope", 'namespace "nope" has no pods'),
        ("pod nope", 'pod "nope" not found'),
        ("all shop", "nothing can follow all"),
    ],
)
def test_unknown_destinations(text: str, sentence: str, view_model: ViewModel) -> None:
    with pytest.raises(InputError, match=sentence):
        parse_go_to(text, view_model)


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("", "pods"),
        ("n", "nodes"),
        ("depl", "deploy"),
        ("stateful", "statefulsets"),
        ("pod api", f"pod {API}"),
        ("explain crunch", "explain crunch-x2k9f"),
        ("pods -", "pods -A"),
        ("w", "workloads"),
        ("workloads t", "workloads team-a"),
        ("node w", "node worker-2"),
        ("node worker-1", None),
        ("pods s", "pods sandboxed"),
        ("pods sh", "pods shop"),
        ("und", "undo"),
        ("help", None),
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
    assert parse_go_to("pods", None) == GoTo(LIST, View())
    with pytest.raises(InputError, match="not found"):
        parse_go_to("node worker-2", None)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *((word, "Deployment") for word in ("deploy", "dp", "deployment", "deployments")),
        ("sts", "StatefulSet"),
        ("ds", "DaemonSet"),
        ("jobs", "Job"),
    ],
)
def test_workloads_of_a_kind(text: str, kind: str, view_model: ViewModel) -> None:
    assert parse_go_to(text, view_model) == GoTo(LIST, View(ListKind.WORKLOADS), filter=f"kind:={kind}")
    in_shop = parse_go_to(f"{text} shop", view_model)
    assert in_shop.view == View(ListKind.WORKLOADS, namespace="shop")


@pytest.mark.parametrize("name", [API, f"shop/{API}", "api-7d9c5b6f8-x"])
def test_a_pod_by_its_name_or_how_that_begins(name: str, view_model: ViewModel) -> None:
    for word in ("pod", "explain", "edit"):
        found = parse_go_to(f"{word} {name}", view_model)
        assert found.pod is not None
        assert found.pod.name == API
    assert parse_go_to("explain", view_model) == GoTo("explain")


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("deplyo", "deploy"),
        ("node worker2", "worker-2"),
        ("pods shpo", "shop"),
        ("pod cruch-x2k9f", "crunch-x2k9f"),
    ],
)
def test_what_is_near_a_mistyped_word_is_said(text: str, near: str, view_model: ViewModel) -> None:
    with pytest.raises(InputError) as raised:
        parse_go_to(text, view_model)
    assert raised.value.hint == f"did you mean {near}?"

"""A change as lines, for every pod and workload there is, and in every phase."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_qos.cluster.demo import DEMO_TIME, DemoSource
from kubectl_qos.edit.apply import Apply
from kubectl_qos.edit.edits import Edit, Side
from kubectl_qos.edit.preview import StrategyKind
from kubectl_qos.edit.related import RelatedObjects, pod_from_raw, pod_reference
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.kinds import WORKLOADS, pod_from_workload
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui import apply_lines
from kubectl_qos.tui.actions import Keys
from kubectl_qos.tui.edit_target import EditTarget, related_sections
from kubectl_qos.tui.view_model import ViewModel, build_view_model
from kubectl_qos.tui.widgets.text_view import TextLine
from tests.tui.sources import demo
from tests.tui.writers import around, deployment, memory

KEYS = Keys()
VALUES = (None, "0", "64Mi", "900Gi")


@pytest.fixture(scope="module")
def facts() -> ViewModel:
    return build_view_model(demo(), Scope(), DEMO_TIME)


def first_container(pod: Pod) -> str:
    return (*pod.containers, *pod.init_containers)[0].name


def begin(facts: ViewModel, pod: Pod, edits: list[Edit], related: RelatedObjects) -> tuple[Apply, EditTarget]:
    target = EditTarget(pod, facts, DemoSource())
    return Apply.begin(pod, edits, target.preview(edits), related)[0], target


def all_lines(state: Apply, target: EditTarget) -> list[TextLine]:
    apply_lines.state_findings(state, target)
    return [
        *apply_lines.change_lines(state),
        *apply_lines.answer_lines(state, target, KEYS),
        *apply_lines.request_lines(state, KEYS),
    ]


@pytest.mark.parametrize("text", VALUES)
@pytest.mark.parametrize("side", Side)
def test_lines_of_every_pod(facts: ViewModel, side: Side, text: str | None) -> None:
    quantity = None if text is None else Quantity.parse(text)
    for pod in facts.snapshot.pods:
        edit = Edit(first_container(pod), side, "memory", quantity)
        related = around(pod)
        state, target = begin(facts, pod, [edit], related)
        assert all(part.title for part in related_sections(state.preview, target, related))
        assert state.error is None
        for index in range(len(state.strategies)):
            state = state.choose(index)[0]
            assert all(line.text.isprintable() for line in all_lines(state, target))
            assert (apply_lines.blocked_sentence(state, KEYS) == "") == (state.blocked is None)


@pytest.mark.parametrize("kind", WORKLOADS)
def test_lines_of_every_kind_of_workload(facts: ViewModel, kind: str) -> None:
    raw: dict[str, Any] = {**deployment("shop", "api"), "kind": kind}
    if kind == "CronJob":
        raw["spec"] = {"jobTemplate": {"spec": raw["spec"]}}
    state, target = begin(facts, pod_from_workload(kind, raw), [memory("1Gi")], RelatedObjects(raw=raw))
    assert state.strategy is not None
    assert state.strategy.kind is (StrategyKind.NEVER if kind == "Job" else StrategyKind.TEMPLATE)
    assert (state.request is None) == (kind == "Job")
    assert all_lines(state, target)


def test_an_object_that_cannot_be_read_is_an_error(facts: ViewModel) -> None:
    with pytest.raises(QosError, match="the server's pod cannot be read"):
        pod_from_raw("Pod", {"spec": 1})
    assert EditTarget(pod_reference("Pod", "shop", "x"), facts, DemoSource()).others() == []

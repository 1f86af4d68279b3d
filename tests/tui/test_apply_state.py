"""The way of a change, of every pod there is: lines can be made of it, whatever it is."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_qos.cluster.demo import DEMO_TIME, DemoSource
from kubectl_qos.edit.edits import Edit, Side
from kubectl_qos.edit.preview import StrategyKind
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.kinds import WORKLOADS, pod_from_workload
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.apply_state import ApplyState
from kubectl_qos.tui.edit_target import EditTarget, pod_from_raw, related_sections, stub
from kubectl_qos.tui.view_model import ViewModel, build_view_model
from tests.tui.sources import demo, pod_named
from tests.tui.writers import around, deployment, memory

VALUES = (None, "0", "64Mi", "900Gi")


@pytest.fixture(scope="module")
def facts() -> ViewModel:
    return build_view_model(demo(), Scope(), DEMO_TIME)


def first_container(pod: Pod) -> str:
    return (*pod.containers, *pod.init_containers)[0].name


@pytest.mark.parametrize("text", VALUES)
@pytest.mark.parametrize("side", Side)
def test_lines_of_every_pod(facts: ViewModel, side: Side, text: str | None) -> None:
    source = DemoSource()
    quantity = None if text is None else Quantity.parse(text)
    for pod in facts.snapshot.pods:
        subject = EditTarget(pod, facts, source)
        edit = Edit(first_container(pod), side, "memory", quantity)
        found = subject.preview([edit])
        related = around(pod)
        assert all(part.title for part in related_sections(found, subject, related))
        standing = ApplyState(subject, [edit])
        standing.take(related)
        assert standing.error is None
        for number in range(len(standing.strategies)):
            standing.choose(number)
            lines = [*standing.change_lines(), *standing.answer_lines(), *standing.request_lines()]
            assert all(line.text.isprintable() for line in lines)
            standing.findings()
            assert bool(standing.why_not())


@pytest.mark.parametrize("kind", WORKLOADS)
def test_lines_of_every_kind_of_workload(facts: ViewModel, kind: str) -> None:
    raw: dict[str, Any] = {**deployment("shop", "api"), "kind": kind}
    if kind == "CronJob":
        raw["spec"] = {"jobTemplate": {"spec": raw["spec"]}}
    pod = pod_from_workload(kind, raw)
    standing = ApplyState(EditTarget(pod, facts, DemoSource()), [memory("1Gi")])
    standing.take(around_of(raw))
    assert standing.strategy.kind is (StrategyKind.NEVER if kind == "Job" else StrategyKind.TEMPLATE)
    assert (standing.request is None) == (kind == "Job")
    standing.answer_lines()
    standing.findings()


def around_of(raw: dict[str, Any]) -> Any:
    from kubectl_qos.edit.related import RelatedObjects

    return RelatedObjects(raw=raw)


def test_a_choice_is_kept_when_what_is_around_is_read_anew(facts: ViewModel) -> None:
    pod = pod_named(demo(), "api-7d9c5b6f8-x2mzq")
    standing = ApplyState(EditTarget(pod, facts, DemoSource()), [memory("1Gi")])
    assert not standing.choose(1)
    standing.take(around(pod))
    assert standing.choose(1)
    assert not standing.choose(3)
    standing.take(around(pod), anew=True)
    assert standing.strategy.kind is StrategyKind.TEMPLATE


def test_an_object_that_cannot_be_read_is_an_error(facts: ViewModel) -> None:
    with pytest.raises(QosError, match="the server's pod cannot be read"):
        pod_from_raw("Pod", {"spec": 1})
    assert EditTarget(stub("Pod", "shop", "x"), facts, DemoSource()).others() == []
    subject = EditTarget(pod_named(demo(), "api-7d9c5b6f8-x2mzq"), facts, DemoSource())
    standing = ApplyState(subject, [])
    standing.take(around_of({"spec": 1}), anew=True)
    assert standing.error is not None
    assert "it cannot be read" in standing.answer_lines()[0].text

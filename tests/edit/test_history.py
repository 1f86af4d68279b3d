"""Undo: what was written is undone to the letter, and what others did meanwhile is seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import structs

from kubectl_qos.demo.api import patched
from kubectl_qos.edit.edits import (
    POD_LEVEL,
    Edit,
    PatchRequest,
    Side,
    build_request,
    effective_edits,
    value_now,
)
from kubectl_qos.edit.history import Entry, ValueConflict, find_conflicts, undo_edits
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.kinds import pod_from_workload
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.quantity import Quantity
from tests.entries import entry_of

CONTAINERS = ("app", "side")
INIT = ("init",)
RESOURCES = ("cpu", "memory", "ephemeral-storage", "example.com/gpu")
KINDS = ("Pod", "Deployment", "CronJob")

quantities = st.sampled_from(["0", "1", "100m", "64Mi", "128Mi", "1Gi", "1500m", "0.5", "1e3", "2Ki"])
lists = st.dictionaries(st.sampled_from(RESOURCES), quantities, max_size=3)
resources = st.fixed_dictionaries({}, optional={"requests": lists, "limits": lists})
targets = st.tuples(
    st.sampled_from([*CONTAINERS, *INIT, POD_LEVEL]), st.sampled_from(list(Side)), st.sampled_from(RESOURCES)
)
changes = st.dictionaries(targets, st.none() | quantities, min_size=1, max_size=5)


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [{"name": name, "resources": draw(resources)} for name in CONTAINERS],
        "initContainers": [{"name": name, "resources": draw(resources)} for name in INIT],
        "volumes": [{"name": "data"}],
    }
    if draw(st.booleans()):
        spec["resources"] = draw(resources)
    metadata = {"name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": "5"}
    kind = draw(st.sampled_from(KINDS))
    if kind == "Deployment":
        spec = {"replicas": 2, "template": {"spec": spec}}
    if kind == "CronJob":
        spec = {"jobTemplate": {"spec": {"template": {"spec": spec}}}}
    return {"kind": kind, "metadata": metadata, "spec": spec}


def pod_of(raw: dict[str, Any]) -> Pod:
    return convert(raw, Pod) if raw["kind"] == "Pod" else pod_from_workload(raw["kind"], raw)


def sent(raw: dict[str, Any], edits: tuple[Edit, ...]) -> tuple[dict[str, Any], PatchRequest]:
    """The object after a request, as the server's own merge makes it."""
    request = build_request(raw, pod_of(raw), edits, in_place=False)
    patch = {key: value for key, value in request.body.items() if key != "metadata"}
    return patched(raw, patch), request


def values(raw: Any) -> Any:
    """Without maps that hold nothing, and quantities however they are written."""
    if isinstance(raw, dict):
        return {key: kept for key, value in raw.items() if (kept := values(value)) != {}}
    if isinstance(raw, list):
        return [values(one) for one in raw]
    return raw


def canonical(raw: dict[str, Any]) -> Any:
    text = values(raw)

    def walk(value: Any, parent: str = "") -> Any:
        if isinstance(value, dict):
            return {key: walk(one, key if parent != "quantities" else parent) for key, one in value.items()}
        if isinstance(value, list):
            return [walk(one) for one in value]
        try:
            return Quantity.parse(value) if isinstance(value, str) else value
        except QosError:
            return value

    return walk(text)


@given(objects(), changes)
def test_undo_of_apply_is_nothing(raw: dict[str, Any], change: dict[Any, str | None]) -> None:
    edits = effective_edits(
        pod_of(raw),
        [
            Edit(owner, side, resource, None if text is None else Quantity.parse(text))
            for (owner, side, resource), text in change.items()
        ],
    )
    assume(edits)
    after, request = sent(raw, edits)
    entry = entry_of(request)
    pod = pod_of(after)
    assert all(value_now(pod, edit) == edit.quantity for edit in edits)
    assert find_conflicts(entry, pod) == ()
    if all(old.quantity == new.quantity for old, new in zip(request.before, request.edits, strict=True)):
        return
    back, undone = sent(after, undo_edits(entry, pod))
    assert canonical(back) == canonical(raw)
    assert {edit.target for edit in undone.edits} <= {edit.target for edit in edits}
    assert find_conflicts(entry, pod_of(back)) == ()
    with pytest.raises(QosError, match="nothing to undo"):
        undo_edits(entry, pod_of(back))


def memory(text: str | None, side: Side = Side.REQUESTS) -> Edit:
    return Edit("app", side, "memory", None if text is None else Quantity.parse(text))


def held(**requests: str) -> Pod:
    return convert(
        {
            "kind": "Pod",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u-1"},
            "spec": {"containers": [{"name": "app", "resources": {"requests": requests}}]},
        },
        Pod,
    )


def written(*pairs: tuple[Edit, Edit]) -> Entry:
    pod = held()
    request = build_request({"metadata": {"uid": "u-1"}}, pod, [new for _, new in pairs], in_place=True)
    return replace(entry_of(request), before=tuple(old for old, _ in pairs))


def test_three_values_where_somebody_else_was() -> None:
    entry = written((memory("64Mi"), memory("96Mi")))
    (found,) = find_conflicts(entry, held(memory="100Mi"))
    values = map(Quantity.parse, ("64Mi", "96Mi", "100Mi"))
    assert found == ValueConflict(*memory(None).target, *values)
    assert undo_edits(entry, held(memory="100Mi")) == (memory("64Mi"),)
    (found,) = find_conflicts(entry, held())
    assert found.theirs is None
    assert find_conflicts(entry, held(memory="98304Ki")) == find_conflicts(entry, held(memory="64Mi")) == ()


def test_a_request_conflicts_with_everything_but_what_it_was_made_for() -> None:
    request = build_request({}, held(memory="64Mi"), [memory("96Mi")], in_place=True)
    assert find_conflicts(request, held(memory="64Mi")) == ()
    assert len(find_conflicts(request, held(memory="96Mi"))) == 1
    assert len(find_conflicts(request, held())) == 1


def test_only_what_is_not_back_yet_is_undone() -> None:
    cpu = Edit("app", Side.REQUESTS, "cpu", Quantity.parse("1"))
    entry = written((memory("64Mi"), memory("96Mi")), (structs.replace(cpu, quantity=None), cpu))
    assert undo_edits(entry, held(memory="64Mi", cpu="1")) == (structs.replace(cpu, quantity=None),)


def test_another_object_is_not_undone() -> None:
    entry = written((memory("64Mi"), memory("96Mi")))
    with pytest.raises(QosError, match="was deleted and recreated since the change"):
        undo_edits(replace(entry, uid="u-0"), held(memory="96Mi"))
    with pytest.raises(QosError, match="deleted and recreated"):
        undo_edits(entry, held(memory="96Mi"), uid="u-2")
    with pytest.raises(QosError, match=r"the change was made to pod/other in shop, not to pod/web"):
        undo_edits(replace(entry, name="other"), held(memory="96Mi"))


def test_a_container_that_is_gone_has_no_value() -> None:
    entry = written((memory("64Mi"), memory("96Mi")))
    other = structs.replace(memory("64Mi"), owner="gone")
    entry = replace(entry, before=(other,), after=(structs.replace(other, quantity=memory("96Mi").quantity),))
    (found,) = find_conflicts(entry, held())
    assert found.theirs is None

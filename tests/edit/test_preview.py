"""Previews: what they promise is what predicting the changed pod gives."""

from __future__ import annotations

import msgspec
import pytest

from kubectl_qos.cluster.files import pod_from_yaml
from kubectl_qos.edit.edits import (
    POD_LEVEL,
    Edit,
    Side,
    apply_edits,
    current_value,
    effective_edits,
    parse_quantity,
)
from kubectl_qos.edit.preview import NumberChange, StrategyKind, preview
from kubectl_qos.errors import InputError, QuantityError
from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup
from kubectl_qos.k8s.objects import Pod, resource_list
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.qos.qos_class import QosClass

GI = 1 << 30
SETUP = NodeSetup(
    Node(
        name="n1",
        memory_capacity_bytes=16 * GI,
        status_allocatable=resource_list({"cpu": "4", "memory": "15Gi"}),
    ),
    Kubelet(),
    Release.of("1.36"),
)


def pod(name: str, resources: str, **fields: str) -> Pod:
    more = "".join(f", {key}: {value}" for key, value in fields.items())
    return pod_from_yaml(
        f"kind: Pod\nmetadata: {{name: {name}, namespace: n, uid: u-{name}}}\n"
        f"spec: {{nodeName: n1, containers: [{{name: c, resources: {{{resources}}}}}]{more}}}\n"
        "status: {phase: Running}\n"
    )


def edit(side: Side, resource: str, text: str | None, owner: str = "c") -> Edit:
    return Edit(owner, side, resource, None if text is None else Quantity.parse(text))


MINE = pod("mine", "requests: {memory: 1Gi}")
OTHERS = [pod("low", "requests: {memory: 64Mi}"), pod("high", "requests: {memory: 4Gi}")]
USAGE = {("n", name): PodUsage.of_containers({"c": ContainerUsage(GI)}) for name in ("mine", "low", "high")}


def test_a_larger_request_moves_the_pod_behind_others() -> None:
    change = [edit(Side.REQUESTS, "memory", "6Gi")]
    found = preview(MINE, change, SETUP, OTHERS, USAGE)
    assert (found.effects.rank_before, found.effects.rank_after, found.effects.ranked) == (2, 3, 3)
    assert found.effects.passing == ((("n", "high"),), ())
    container = found.effects.containers[0]
    assert container.oom_score_adj == NumberChange(938, 625)
    assert container.oom_score.before is not None
    assert container.oom_score.after is not None
    assert container.oom_score.after < container.oom_score.before


def test_a_smaller_request_moves_it_forward() -> None:
    found = preview(OTHERS[1], [edit(Side.REQUESTS, "memory", "1Mi")], SETUP, [MINE, OTHERS[0]], USAGE)
    assert (found.effects.rank_before, found.effects.rank_after) == (3, 1)
    assert set(found.effects.passing[1]) == {("n", "mine"), ("n", "low")}


def test_the_files_that_change_are_named_with_both_values() -> None:
    found = preview(MINE, [edit(Side.LIMITS, "memory", "2Gi")], SETUP)
    changes = {
        (one.path.rpartition("/")[2], one.file): (one.before, one.after) for one in found.effects.files
    }
    assert changes == {
        ("kubepods-burstable-podu_mine.slice", "memory.max"): ("max", str(2 * GI)),
        ("cri-containerd-<id>.scope", "memory.max"): ("max", str(2 * GI)),
    }


def test_a_change_of_class_needs_a_new_pod() -> None:
    change = [edit(side, name, value) for side in Side for name, value in (("cpu", "1"), ("memory", "1Gi"))]
    found = preview(MINE, change, SETUP)
    assert (found.before.qos_class, found.after.qos_class) == (QosClass.BURSTABLE, QosClass.GUARANTEED)
    assert found.strategy_kind is StrategyKind.RECREATE
    assert found.effects.containers[0].oom_score_adj.after == -997


@pytest.mark.parametrize(
    ("kind", "release", "expected"),
    [
        ("Pod", "1.36", StrategyKind.IN_PLACE),
        ("Pod", "1.32", StrategyKind.RECREATE),
        ("Deployment", "1.36", StrategyKind.TEMPLATE),
        ("Job", "1.36", StrategyKind.NEVER),
    ],
)
def test_how_a_change_is_applied(kind: str, release: str, expected: StrategyKind) -> None:
    subject = msgspec.structs.replace(MINE, kind=kind)
    setup = NodeSetup(SETUP.node, SETUP.kubelet, Release.of(release))
    assert preview(subject, [edit(Side.REQUESTS, "memory", "2Gi")], setup).strategy_kind is expected


def test_a_static_pod_is_changed_in_its_file_only() -> None:
    mirror = pod_from_yaml(
        "kind: Pod\nmetadata: {name: s, annotations: {kubernetes.io/config.mirror: abc}}\n"
        "spec: {containers: [{name: c}]}\n"
    )
    assert preview(mirror, [edit(Side.REQUESTS, "cpu", "1")], SETUP).strategy_kind is StrategyKind.NEVER


def test_a_stored_class_does_not_outlive_a_new_pod() -> None:
    stored = msgspec.structs.replace(MINE, status=msgspec.structs.replace(MINE.status, qos_class="Burstable"))
    found = preview(stored, [edit(Side.REQUESTS, "memory", None)], SETUP)
    assert found.after.qos_class is QosClass.BEST_EFFORT


def test_what_a_server_would_refuse_is_said_in_its_words() -> None:
    change = [edit(Side.REQUESTS, "memory", "2Gi"), edit(Side.LIMITS, "memory", "1Gi")]
    refusals = preview(MINE, change, SETUP).refusals
    expected = 'Invalid value: "2Gi": must be less than or equal to memory limit of 1Gi'
    assert [str(one) for one in refusals] == [f"spec.containers[0].resources.requests: {expected}"]


def test_room_on_the_node_counts_the_others() -> None:
    found = preview(MINE, [edit(Side.REQUESTS, "memory", "11Gi")], SETUP, OTHERS)
    memory = next(one for one in found.node_fit if one.resource == "memory")
    assert memory.free == 15 * GI - 4 * GI - 64 * (1 << 20)
    assert memory.needed == 11 * GI
    assert not memory.fits
    assert next(one for one in found.node_fit if one.resource == "cpu").fits


def test_edits_that_change_nothing_are_dropped() -> None:
    assert effective_edits(MINE, [edit(Side.REQUESTS, "memory", "1Gi"), edit(Side.LIMITS, "cpu", None)]) == ()
    last = [edit(Side.REQUESTS, "memory", "2Gi"), edit(Side.REQUESTS, "memory", "3Gi")]
    assert [str(one.quantity) for one in effective_edits(MINE, last)] == ["3Gi"]


def test_pod_level_resources_are_edited_under_their_own_owner() -> None:
    changed = apply_edits(MINE, [edit(Side.LIMITS, "memory", "2Gi", owner=POD_LEVEL)])
    assert str(current_value(changed, POD_LEVEL, Side.LIMITS, "memory")) == "2Gi"
    assert changed.containers == MINE.containers


def test_a_container_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(InputError, match="container x is not valid for pod mine") as raised:
        apply_edits(MINE, [edit(Side.LIMITS, "cpu", "1", owner="x")])
    assert raised.value.hint == "its containers are: c"


@pytest.mark.parametrize("text", ["1x", "-1", "1 Gi", "1,5"])
def test_what_is_no_quantity_says_why(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(text)


def test_nothing_typed_means_nothing_set() -> None:
    assert parse_quantity("  ") is None

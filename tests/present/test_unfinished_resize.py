"""What is said of a pod while a resize is unfinished: the values in force, the desired ones, the reports."""

import dataclasses
import json
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace
from textual.widgets import Label

from kubectl_qos.__main__ import main
from kubectl_qos.analysis.pod_table import PodRow, build_rows
from kubectl_qos.k8s.kubelet import Kubelet
from kubectl_qos.k8s.objects import NodeObject, convert
from kubectl_qos.k8s.releases import Gate
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.effects import change_section
from kubectl_qos.present.explanation import explain_pod, text_lines
from kubectl_qos.present.reasons import resize_sentence, why_lines
from kubectl_qos.qos.prediction import predict_running
from kubectl_qos.tui.screens.fix_dialog import suggested_line
from tests.demo.living import IMPORTER, Stepped, limit
from tests.edit.test_when import PENDING, pod, used
from tests.qos.recorded import pods_c, setup_c
from tests.tui.sources import ScriptedSource, running

NOW = datetime(2026, 11, 1, tzinfo=UTC)
STATES = [
    ("conditions: [{type: PodResizePending, status: 'True', reason: Deferred}]", "a resize is Deferred: "),
    (
        "conditions: [{type: PodResizePending, status: 'True', reason: Infeasible}]",
        "a resize is Infeasible: ",
    ),
    ("conditions: [{type: PodResizeInProgress, status: 'True', reason: Error}]", "a resize failed (Error) "),
    ("conditions: [{type: PodResizeInProgress, status: 'True'}]", "a resize is in progress"),
    ("conditions: [{type: PodResizePending, status: 'True'}]", "a resize waits"),
    ("resize: Infeasible", "a resize is Infeasible:"),
    ("resize: InProgress", "a resize is in progress"),
    ("containerStatuses: [{name: c, allocatedResources: {memory: 1Gi}}]", "a resize waits for the kubelet"),
]


def row_of(snapshot: Snapshot, name: str) -> tuple[PodRow, list[str]]:
    rows = build_rows(snapshot, Scope())
    row = next(one for one in rows.rows if one.name == name)
    prediction = predict_running(row.pod, rows.nodes[row.node].setup)
    return row, list(why_lines(prediction, row, rows))


@pytest.mark.parametrize(("status", "sentence"), STATES)
def test_the_flag_says_what_the_kubelet_says(status: str, sentence: str) -> None:
    mine = pod("mine", "requests: {memory: 2Gi}", status)
    assert resize_sentence(mine).startswith(sentence)
    row, why = row_of(Snapshot((mine,)), "mine")
    assert "RESIZING" in row.flags
    assert f"RESIZING: {resize_sentence(mine)}" in why[-1]
    answer = change_section(mine, ()).answer
    assert answer == f"none: requests and limits already have these values, but {resize_sentence(mine)}"


@pytest.mark.parametrize(
    "status", ["resize: Infeasible", "containerStatuses: [{name: c, allocatedResources: {}}]"]
)
def test_what_only_a_kubelet_with_the_gate_reports_proves_the_gate(status: str) -> None:
    mine = pod("mine", "requests: {memory: 2Gi}", status)
    node = convert({"kind": "Node", "status": {"nodeInfo": {"kubeletVersion": "v1.30.2"}}}, NodeObject)
    nodes = {mine.node_name: node}
    for pods, is_on in (
        ((mine,), True),
        ((pod("mine", "requests: {memory: 2Gi}", "phase: Running"),), False),
    ):
        snapshot = Snapshot(pods, nodes=nodes)
        text = "\n".join(text_lines(explain_pod(pods[0], snapshot, NOW)))
        assert ("not in place on 1.30" in text) is not is_on
        assert ("gate InPlacePodVerticalScaling on (from a pod)" in " ".join(text.split())) is is_on
    kubelet = Kubelet(feature_gates={"InPlacePodVerticalScaling": False})
    stated = Snapshot((mine,), nodes=nodes, kubelets={mine.node_name: kubelet})
    assert not stated.setup(mine.node_name).release.enabled(Gate.IN_PLACE_RESIZE)


def test_a_resize_in_progress_does_not_change_the_class() -> None:
    """Allocated requests and limits in force differ for a moment; kubelets before 1.29 use the spec."""
    values, less = "{cpu: 800m, memory: 200Mi}", "{cpu: 700m, memory: 200Mi}"
    statuses = f"[{{name: c, allocatedResources: {values}, resources: {{limits: {less}, requests: {less}}}}}]"
    mine = pod("mine", f"limits: {values}", f"resize: InProgress, containerStatuses: {statuses}")
    node = convert({"kind": "Node", "status": {"nodeInfo": {"kubeletVersion": "v1.27.9"}}}, NodeObject)
    prediction = predict_running(mine, Snapshot((mine,), nodes={mine.node_name: node}).setup(mine.node_name))
    assert (prediction.qos_class.value, prediction.containers[0].oom_score_adj) == ("Guaranteed", -997)
    assert prediction.cgroup.files["cpu.max"] == "70000 100000"


def test_a_row_has_the_values_in_force_and_the_desired_ones() -> None:
    """R1, R2: REQUEST and LIMIT are those of the node."""
    rows = build_rows(Snapshot((PENDING,)), Scope())
    (row,) = rows.rows
    gi = 1 << 30
    assert (row.request, row.limit) == (gi, 2 * gi)
    assert row.desired == (8 * gi, 9 * gi)
    (container,) = build_rows(Snapshot((PENDING,)), Scope(), containers=True).rows
    assert container.desired == (8 * gi, 9 * gi)
    (settled,) = build_rows(Snapshot((pod("mine", "requests: {memory: 1Gi}"),)), Scope()).rows
    assert settled.desired == (None, None)


def test_the_recorded_pending_resize_is_explained() -> None:
    pods, setup = pods_c("pending-resize"), setup_c("pending-resize")
    mine = next(one for one in pods if one.name == "bu-over")
    found = explain_pod(mine, Snapshot(pods), NOW)
    section = next(one for one in found.sections if one.title == "Resize")
    assert section.answer == "a resize is Infeasible: it will not happen on this node"
    text = "\n".join(text_lines(found))
    assert "c requests.memory  100Mi → 300Mi  (desired)" in text
    assert "the kubelet says: " in text
    assert setup.node.memory_capacity_bytes


def test_what_would_come_of_it_is_said() -> None:
    node = convert({"metadata": {"name": "n1"}, "status": {"capacity": {"memory": "16Gi"}}}, NodeObject)
    high = pod("high", "requests: {memory: 4Gi}")
    snapshot = Snapshot((PENDING, high), {"n1": node}, used(PENDING, high))
    section = next(one for one in explain_pod(PENDING, snapshot, NOW).sections if one.title == "Resize")
    assert section.lines[-1].text == (
        "once the resize is done and the container restarts: c oom_score_adj 938 → 500, kill rank 1 → 2"
    )


def test_json_has_the_desired_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--demo", "-A", "-o", "json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert all({"desiredRequestBytes", "desiredLimitBytes"} <= item.keys() for item in items)


@pytest.mark.parametrize(
    ("to", "reason", "words"),
    [
        ("160Mi", "", "none: its unfinished resize gives it enough room once it is done"),
        (
            "160Mi",
            "Infeasible",
            "a resize is Infeasible: it will not happen on this node; container c: memory",
        ),
        ("125Mi", "", "a resize is in progress; container c: memory limit 125Mi → "),
    ],
)
def test_a_fix_waits_for_a_resize_that_is_enough(to: str, reason: str, words: str) -> None:
    demo = Stepped(5)
    demo.apply(demo.to("Pod", "data", IMPORTER, limit(to)))
    snapshot = demo.later(1)
    mine = demo.pod()
    (condition,) = mine.status.conditions or ()
    status = replace(mine.status, conditions=(replace(condition, reason=reason),))
    pods = [replace(one, status=status) if one is mine else one for one in snapshot.pods]
    assert words in suggested_line(dataclasses.replace(snapshot, pods=tuple(pods)), mine.node_name)[0]


RESIZING = (
    f"data/{IMPORTER}:c: own limit 98%, +2Mi: its unfinished resize gives it enough room once it is done"
)


async def test_the_fixes_of_others_say_so_too() -> None:
    demo = Stepped(5)
    demo.apply(demo.to("Pod", "data", IMPORTER, limit("160Mi")))
    async with running(ScriptedSource(demo.later(1)), "F", size=(150, 45)) as pilot:
        await pilot.seen("What to change")
        label = pilot.app.screen.query_one(Label)
        await pilot.until(lambda: "known from usage seen" in str(label.content))
        assert str(label.content).endswith("\n" + RESIZING)

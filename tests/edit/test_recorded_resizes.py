"""Resizes that a real node did: what the preview says of them, and what was in the cgroups afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pytest

from kubectl_qos.edit.findings import FindingCode, find_findings
from kubectl_qos.edit.preview import Preview, StrategyKind, preview
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.qos.prediction import Prediction, predict
from kubectl_qos.qos.resize import ResizeStatus
from tests.qos.corner import one
from tests.qos.recorded import setup_of
from tests.qos.test_resize import edits_of
from tests.recordings.files import read_json

SETUP: Final = NodeSetup.of(setup_of("systemd").node, setup_of("systemd").kubelet, "1.36")
ROUNDS: Final = read_json("node-1.36/resize-exchanges.json")
NOT_DONE: Final = {("allowed-1", "rz-hog"), ("allowed-1", "rz-defer")}
"""A limit below what is used, and a request for which there was no room."""


def resized() -> Iterator[Any]:
    """Every pod of a round of which the server accepted a resize: before, and the edits of all of them."""
    for part in ROUNDS[:3]:
        for name, before in part["before"].items():
            edits = [
                edit
                for exchange in part["exchanges"]
                if exchange["pod"] == name and exchange["response"]["status"] == 200
                for edit in edits_of(exchange["request"]["body"]["spec"])
            ]
            if edits:
                yield pytest.param(part["round"], name, before, edits, id=f"{part['round']}-{name}")


def after(round_: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(part for part in ROUNDS if part["round"] == round_)["after"][name]
    return found


def of_round(
    round_: str, name: str, usage: PodUsage | None = None, neighbours: tuple[Pod, ...] = ()
) -> Preview:
    [found] = [param.values for param in resized() if param.values[:2] == (round_, name)]
    pod = convert(found[2]["pod"], Pod)
    held = {(pod.namespace, pod.name): usage} if usage is not None else {}
    return preview(pod, found[3], SETUP, neighbours, held)


def differences(prediction: Prediction, measured: dict[str, Any]) -> tuple[list[str], Counter[str]]:
    """Every predicted file that is not what was measured, and how many were compared."""
    wrong, compared = [], Counter[str]()
    levels = [("pod", prediction.cgroup.files, measured["levels"]["pod"])]
    levels += [
        (found["name"], prediction.container(found["name"]).cgroup.files, found["cgroup"])
        for found in measured["containers"]
        if found["name"] != "POD"
    ]
    for level, files, real in levels:
        for name, value in files.items():
            compared[level] += 1
            if value != real[name].strip():
                wrong.append(f"{level} {name}: predicted {value}, measured {real[name].strip()}")
    return wrong, compared


@pytest.mark.parametrize(("round_", "name", "before", "edits"), resized())
def test_the_forecast_cgroup_values_are_the_measured_ones(
    round_: str, name: str, before: dict[str, Any], edits: list[Any]
) -> None:
    found = preview(convert(before["pod"], Pod), edits, SETUP)
    measured = after(round_, name)
    assert found.strategy_kind is StrategyKind.IN_PLACE
    done = found.before if (round_, name) in NOT_DONE else found.after
    wrong, compared = differences(done, measured)
    related = RelatedObjects(raw={"kind": "Pod", "metadata": {"name": name}})
    said = find_findings(found, related, StrategyKind.IN_PLACE, None)
    dropped = [one.subject.split()[-1] for one in said if one.code is FindingCode.WEIGHT_DROPS]
    assert [line.split(": ")[0] for line in wrong] == [f"{one} cpu.weight" for one in dropped]
    assert all(line.endswith("measured 1") for line in wrong)
    assert bool(dropped) is (name == "rz-pl")
    assert len(compared) == len(measured["containers"])
    assert min(compared.values()) >= 4


@pytest.mark.parametrize(("round_", "name", "before", "edits"), resized())
def test_the_pod_as_it_was_stored_says_the_same(
    round_: str, name: str, before: dict[str, Any], edits: list[Any]
) -> None:
    found = preview(convert(before["pod"], Pod), edits, SETUP)
    stored = convert(after(round_, name)["pod"], Pod)
    assert found.after.pod.spec.containers == stored.spec.containers
    assert found.after.pod.spec.init_containers == stored.spec.init_containers
    assert found.after.pod.spec.resources == stored.spec.resources
    assert found.after.qos_class.value == stored.status.qos_class
    expected = predict(stored, SETUP.node, kubelet=SETUP.kubelet, release=SETUP.release)
    assert found.after.cgroup.files == expected.cgroup.files


@pytest.mark.parametrize(("round_", "name", "before", "edits"), resized())
def test_only_a_restarted_container_has_the_new_oom_score_adj(
    round_: str, name: str, before: dict[str, Any], edits: list[Any]
) -> None:
    found = preview(convert(before["pod"], Pod), edits, SETUP)
    pids = {
        container["name"]: [process["pid"] for process in container["processes"]]
        for container in before["containers"]
    }
    for container in after(round_, name)["containers"]:
        if container["name"] == "POD" or not container["processes"]:
            continue
        restarted = container["name"] in found.restarts
        processes = container["processes"]
        assert ([process["pid"] for process in processes] != pids[container["name"]]) is restarted
        if restarted:
            expected = found.after.container(container["name"]).oom_score_adj
            assert {process["oom_score_adj"] for process in processes} == {expected}
        else:
            was = next(one for one in before["containers"] if one["name"] == container["name"])
            assert [process["oom_score_adj"] for process in processes] == [
                process["oom_score_adj"] for process in was["processes"]
            ]


def test_what_the_node_did_not_do_is_said_before() -> None:
    usage = PodUsage.of_containers({"c": ContainerUsage(105504768)})
    hog = of_round("allowed-1", "rz-hog", usage)
    [condition] = [
        look["conditions"][0]
        for look in ROUNDS[1]["condition_history"]
        if look["pod"] == "rz-hog" and look["conditions"] and "reason" in look["conditions"][0]
    ]
    related = RelatedObjects(raw={"kind": "Pod", "metadata": {"name": "rz-hog"}})
    found = find_findings(hog, related, StrategyKind.IN_PLACE, usage)
    texts = {finding.code: finding for finding in found}
    assert texts[FindingCode.RESIZE_NOT_DONE].text == condition["message"]
    assert texts[FindingCode.RESIZE_NOT_DONE].facts["answer"] is ResizeStatus.ERROR
    assert texts[FindingCode.LIMIT_BELOW_USAGE].facts["restarts"] is False


def test_a_request_without_room_is_deferred_in_the_kubelets_words() -> None:
    defer = of_round("allowed-1", "rz-defer", neighbours=(one("requests: {cpu: 1438m}"),))
    first = next(
        look["conditions"][0]
        for look in ROUNDS[1]["condition_history"]
        if look["pod"] == "rz-defer" and look["conditions"]
    )
    assert (defer.outcome.answer.value, defer.outcome.message) == (first["reason"], first["message"])

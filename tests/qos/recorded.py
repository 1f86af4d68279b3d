"""The recorded nodes as what was measured there, and what was predicted of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec

from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import Pod, json_decoder
from kubectl_qos.qos.prediction import Prediction, predict
from kubectl_qos.qos.verify.observed import Observed, ObservedContainer, ObservedProcess
from tests.qos.test_recorded_node import RECORDED, VARIANTS, setup

__all__ = ["VARIANTS", "Case", "case_of", "cases", "measured_of", "setup_of", "top_cgroups"]


class Case(NamedTuple):
    """One recorded pod: predicted, and measured."""

    prediction: Prediction
    measured: Observed


@cache
def setup_of(variant: str) -> NodeSetup:
    """The recorded node."""
    node, kubelet = setup(variant)
    return NodeSetup.of(node, kubelet)


@cache
def cases(variant: str) -> tuple[Case, ...]:
    """Each recorded pod that is on the node."""
    found = map(json.loads, (RECORDED / f"measured-{variant}.jsonl").read_text().splitlines())
    return tuple(case_of(variant, one) for one in found if one["pod"]["spec"].get("nodeName"))


def case_of(variant: str, found: Mapping[str, Any]) -> Case:
    """A recorded pod predicted on that node, and measured."""
    return Case(_predicted(found["pod"], setup_of(variant)), measured_of(found))


@cache
def top_cgroups(variant: str) -> Mapping[str, Mapping[str, str]]:
    """The directories above the pods, when the node was recorded."""
    found: Mapping[str, Mapping[str, str]] = json.loads((RECORDED / f"node-{variant}.json").read_bytes())[
        "top_cgroups"
    ]
    return found


def measured_of(found: Mapping[str, Any]) -> Observed:
    """A line of a recording as it would have been read on the node; the pause container is left out."""
    containers = {
        one["name"]: ObservedContainer(
            one["cgroup"],
            tuple(ObservedProcess(p["pid"], p["comm"], p["oom_score_adj"]) for p in one["processes"]),
            one["cgroup_path"],
        )
        for one in found["containers"]
        if one["name"] != "POD"
    }
    levels = (level for level in found["levels"].values() if level)
    return Observed(
        containers,
        {level["path"]: {name: text for name, text in level.items() if name != "path"} for level in levels},
    )


def _predicted(raw: Mapping[str, Any], node: NodeSetup) -> Prediction:
    pod = json_decoder(Pod).decode(msgspec.json.encode(raw))
    return predict(pod, node.node, kubelet=node.kubelet)

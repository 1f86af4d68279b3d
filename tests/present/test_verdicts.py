"""Verdicts in words: every topic has a line, one line, with nothing of a server's left raw."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_qos.edit.verdict import Topic, Verdict, Weight
from kubectl_qos.k8s.keepers import Keeper, KeeperKind
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.resource_quota import Charge
from kubectl_qos.present.verdicts import verdict_line, verdict_lines, verdict_part
from kubectl_qos.qos.resize import Answer

HOSTILE = "a\x1b[2J\nb"
CHARGE = Charge(HOSTILE, HOSTILE, Quantity.parse("1Gi"), Quantity.parse("512Mi"), Quantity.parse("2Gi"))
FACTS: dict[str, Any] = {
    "answer": Answer.DEFERRED,
    "asked": "Burstable",
    "becomes": "Guaranteed",
    "bound": True,
    "charge": CHARGE,
    "charges": (CHARGE,),
    "container": HOSTILE,
    "critical": True,
    "keeper": Keeper(KeeperKind.OPERATOR, HOSTILE, HOSTILE, HOSTILE),
    "kind": "Deployment",
    "left": 2,
    "limit": 1 << 30,
    "lowest": True,
    "made": 1,
    "name": HOSTILE,
    "new_pod": True,
    "priority": -1,
    "removed": True,
    "request": 1 << 20,
    "resource": HOSTILE,
    "resources": (HOSTILE,),
    "restarts": True,
    "side": "limits",
    "used": 1 << 29,
    "value": Quantity.parse("1"),
    "wanted": 3,
}


@pytest.mark.parametrize("topic", Topic)
def test_every_topic_is_one_harmless_line(topic: Topic) -> None:
    line = verdict_line(Verdict(Weight.WARNS, HOSTILE, HOSTILE, topic, FACTS))
    assert line.isprintable()
    assert line.startswith("a\\x1b[2J\\nb: ")
    assert len(line) > 40
    assert "None" not in line


@pytest.mark.parametrize("kind", KeeperKind)
@pytest.mark.parametrize("name", ["flux-system/shop", HOSTILE, ""])
def test_every_keeper_is_one_harmless_line(kind: KeeperKind, name: str) -> None:
    keeper = Keeper(kind, name, HOSTILE, HOSTILE)
    line = verdict_line(Verdict(Weight.WARNS, "x", "", Topic.KEEPER, {"keeper": keeper}))
    assert line.isprintable()
    assert "  " not in line


def test_how_to_pause_flux() -> None:
    keeper = Keeper(KeeperKind.FLUX_KUSTOMIZATION, "flux-system/apps", "label")
    line = verdict_line(
        Verdict(Weight.WARNS, "Flux Kustomization flux-system/apps", "", Topic.KEEPER, {"keeper": keeper})
    )
    assert line.endswith("to pause it: flux suspend kustomization apps -n flux-system")


def test_a_part_counts_and_leaves_out_what_the_preview_shows() -> None:
    shown = Verdict(Weight.REFUSES, "API server", "bad", Topic.INVALID, in_preview=True)
    warning = Verdict(
        Weight.WARNS, "node n", "", Topic.NO_ROOM_FOR_NEW_POD, {"resources": ("cpu",), "bound": False}
    )
    note = Verdict(Weight.TELLS, "priority", "", Topic.LOW_PRIORITY, {"priority": 0, "lowest": True})
    part = verdict_part([shown, warning, note, note])
    assert part is not None
    assert (part.title, part.answer, part.warns) == ("Verdicts", "1 warning, 2 notes", True)
    assert part.sentences == tuple(verdict_lines([shown, warning, note, note]))
    assert verdict_part([shown]) is None
    assert len(verdict_lines([shown], beside_preview=False)) == 1
    alone = verdict_part([note])
    assert alone is not None
    assert not alone.warns


def test_a_job_of_a_cron_job_is_not_a_rollout() -> None:
    stalls = Verdict(Weight.WARNS, "q", "", Topic.ROLLOUT_STALLS, {**FACTS, "kind": "CronJob", "left": 0})
    assert "the next job would stall after 1 of 3 new pods: each adds" in verdict_line(stalls)
    refused = Verdict(Weight.WARNS, "q", "no", Topic.NEW_PODS_REFUSED, {**FACTS, "kind": "CronJob"})
    assert verdict_line(refused) == "q: takes the template, then refuses the pods of the next job: no"

"""Verdicts in words: every topic has a line, one line, with nothing of a server's left raw."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_qos.edit.findings import Finding, FindingCode, Severity
from kubectl_qos.k8s.managers import Manager, ManagerKind
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.quota import QuotaCharge
from kubectl_qos.present.findings import finding_line, finding_lines, findings_section
from kubectl_qos.qos.resize import ResizeStatus

HOSTILE = "a\x1b[2J\nb"
CHARGE = QuotaCharge(HOSTILE, HOSTILE, Quantity.parse("1Gi"), Quantity.parse("512Mi"), Quantity.parse("2Gi"))
FACTS: dict[str, Any] = {
    "answer": ResizeStatus.DEFERRED,
    "asked": "Burstable",
    "becomes": "Guaranteed",
    "bound": True,
    "charge": CHARGE,
    "charges": (CHARGE,),
    "container": HOSTILE,
    "critical": True,
    "keeper": Manager(ManagerKind.OPERATOR, HOSTILE, HOSTILE, HOSTILE),
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


@pytest.mark.parametrize("topic", FindingCode)
def test_every_topic_is_one_harmless_line(topic: FindingCode) -> None:
    line = finding_line(Finding(Severity.WARNS, HOSTILE, HOSTILE, topic, FACTS))
    assert line.isprintable()
    assert line.startswith("a\\x1b[2J\\nb: ")
    assert len(line) > 40
    assert "None" not in line


@pytest.mark.parametrize("kind", ManagerKind)
@pytest.mark.parametrize("name", ["flux-system/shop", HOSTILE, ""])
def test_every_keeper_is_one_harmless_line(kind: ManagerKind, name: str) -> None:
    manager = Manager(kind, name, HOSTILE, HOSTILE)
    line = finding_line(Finding(Severity.WARNS, "x", "", FindingCode.MANAGER, {"keeper": manager}))
    assert line.isprintable()
    assert "  " not in line


def test_how_to_pause_flux() -> None:
    manager = Manager(ManagerKind.FLUX_KUSTOMIZATION, "flux-system/apps", "label")
    line = finding_line(
        Finding(
            Severity.WARNS,
            "Flux Kustomization flux-system/apps",
            "",
            FindingCode.MANAGER,
            {"keeper": manager},
        )
    )
    assert line.endswith("to pause it: flux suspend kustomization apps -n flux-system")


def test_a_part_counts_and_leaves_out_what_the_preview_shows() -> None:
    shown = Finding(Severity.REFUSES, "API server", "bad", FindingCode.INVALID, in_preview=True)
    warning = Finding(
        Severity.WARNS, "node n", "", FindingCode.NO_ROOM_FOR_NEW_POD, {"resources": ("cpu",), "bound": False}
    )
    note = Finding(Severity.TELLS, "priority", "", FindingCode.LOW_PRIORITY, {"priority": 0, "lowest": True})
    part = findings_section([shown, warning, note, note])
    assert part is not None
    assert (part.title, part.answer, part.warns) == ("Verdicts", "1 warning, 2 notes", True)
    assert part.sentences == tuple(finding_lines([shown, warning, note, note]))
    assert findings_section([shown]) is None
    assert len(finding_lines([shown], beside_preview=False)) == 1
    alone = findings_section([note])
    assert alone is not None
    assert not alone.warns


def test_a_job_of_a_cron_job_is_not_a_rollout() -> None:
    stalls = Finding(
        Severity.WARNS, "q", "", FindingCode.ROLLOUT_STALLS, {**FACTS, "kind": "CronJob", "left": 0}
    )
    assert "the next job would stall after 1 of 3 new pods: each adds" in finding_line(stalls)
    refused = Finding(Severity.WARNS, "q", "no", FindingCode.NEW_PODS_REFUSED, {**FACTS, "kind": "CronJob"})
    assert finding_line(refused) == "q: takes the template, then refuses the pods of the next job: no"

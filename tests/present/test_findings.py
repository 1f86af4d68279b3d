"""Findings in words: every code has one line, with everything of a server escaped."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_qos.edit.findings import Finding, FindingCode, Severity
from kubectl_qos.k8s.managers import Manager, ManagerKind, UtilizationTarget
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.quota import QuotaCharge
from kubectl_qos.present.findings import finding_line, findings_section
from kubectl_qos.qos.resize import ResizeStatus

HOSTILE = "a\x1b[2J\nb"
CHARGE = QuotaCharge(HOSTILE, HOSTILE, Quantity.parse("1Gi"), Quantity.parse("512Mi"), Quantity.parse("2Gi"))
FACTS: dict[str, Any] = {
    "answer": ResizeStatus.DEFERRED,
    "expected": "Burstable",
    "becomes": "Guaranteed",
    "bound": True,
    "charge": CHARGE,
    "charges": (CHARGE,),
    "container": HOSTILE,
    "containers": (HOSTILE,),
    "manager": Manager(ManagerKind.OPERATOR, HOSTILE, HOSTILE, HOSTILE),
    "kind": "Deployment",
    "left": 2,
    "limit": 1 << 30,
    "lowest": True,
    "made": 1,
    "allowed": 0,
    "missing": 1,
    "rollout": True,
    "over": "7d",
    "peak": 1 << 30,
    "name": HOSTILE,
    "new_pod": True,
    "priority": -1,
    "removed": True,
    "request": 1 << 20,
    "resource": HOSTILE,
    "resources": (HOSTILE,),
    "restarts": True,
    "side": "limits",
    "target": UtilizationTarget(HOSTILE, HOSTILE, HOSTILE, 70),
    "before": None,
    "after": Quantity.parse("1"),
    "alone": True,
    "used": 1 << 29,
    "value": Quantity.parse("1"),
    "total": 3,
}


@pytest.mark.parametrize("code", FindingCode)
def test_every_code_is_one_escaped_line(code: FindingCode) -> None:
    line = finding_line(Finding(Severity.WARNING, HOSTILE, code, HOSTILE, FACTS))
    assert line.isprintable()
    assert line.startswith("a\\x1b[2J\\nb: ")
    assert len(line) > 40
    assert "None" not in line


@pytest.mark.parametrize("kind", ManagerKind)
@pytest.mark.parametrize("name", ["flux-system/shop", HOSTILE, ""])
def test_every_manager_is_one_escaped_line(kind: ManagerKind, name: str) -> None:
    manager = Manager(kind, name, HOSTILE, HOSTILE)
    line = finding_line(Finding(Severity.WARNING, "x", FindingCode.MANAGER, facts={"manager": manager}))
    assert line.isprintable()
    assert "  " not in line


def test_how_to_pause_flux() -> None:
    manager = Manager(ManagerKind.FLUX_KUSTOMIZATION, "flux-system/apps", "label")
    line = finding_line(Finding(Severity.WARNING, "x", FindingCode.MANAGER, facts={"manager": manager}))
    assert line.endswith("to pause it: flux suspend kustomization apps -n flux-system")


def test_a_part_counts_and_leaves_out_what_the_preview_shows() -> None:
    shown = Finding(Severity.REFUSAL, "API server", FindingCode.INVALID, "bad", in_preview=True)
    warning = Finding(
        Severity.WARNING,
        "node n",
        FindingCode.NO_ROOM_FOR_NEW_POD,
        facts={"resources": ("cpu",), "bound": False},
    )
    note = Finding(Severity.NOTE, "priority", FindingCode.NODE_CRITICAL)
    part = findings_section([shown, warning, note, note])
    assert part is not None
    assert (part.title, part.answer, part.warns) == ("Findings", "1 warning, 2 notes", True)
    assert [line.text for line in part.lines] == list(map(finding_line, [warning, note, note]))
    assert findings_section([shown]) is None
    alone = findings_section([note])
    assert alone is not None
    assert not alone.warns


def test_a_job_of_a_cron_job_is_not_a_rollout() -> None:
    stalls = Finding(
        Severity.WARNING, "q", FindingCode.ROLLOUT_STALLS, facts={**FACTS, "kind": "CronJob", "left": 0}
    )
    assert "the next job would stall after 1 of 3 new pods: each adds" in finding_line(stalls)
    refused = Finding(Severity.WARNING, "q", FindingCode.NEW_PODS_REFUSED, "no", {**FACTS, "kind": "CronJob"})
    assert finding_line(refused) == "q: accepts the template, then refuses the pods of the next job: no"

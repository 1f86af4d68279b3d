"""The risk of a row of a table. What the levels are is qos/risk.py's affair."""

from __future__ import annotations

from kubectl_qos.present.rows import PodRow
from kubectl_qos.qos.ranking import has_processes
from kubectl_qos.qos.risk import Risk, risk


def risk_of(row: PodRow) -> Risk:
    """The level of a pod, or of a container: by its own rank and its pod's flags."""
    return risk(row.flags, row.rank, has_processes=has_processes(row.pod) and not row.ended)

"""The risk of rows: pods and containers, with processes and without."""

from __future__ import annotations

from kubectl_qos.cluster.files import pod_from_yaml
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.pod_columns import BY_KEY
from kubectl_qos.present.pod_rows import build_rows
from kubectl_qos.present.symbols import row_risk
from kubectl_qos.qos.flags import Risk
from tests.present.test_node_rows import node, pod

REQUEST = "{requests: {memory: 1Gi}}"
TWO = """\
kind: Pod
metadata: {name: two, namespace: n}
spec: {nodeName: n1, initContainers: [{name: i}], containers: [{name: a}]}
status:
  phase: Running
  initContainerStatuses: [{name: i, state: {terminated: {exitCode: 0}}}]
  containerStatuses: [{name: a, state: {running: {}}}]
"""


def risks(*texts: str, nodes: bool = True, containers: bool = False) -> dict[str, Risk]:
    pods = tuple(pod_from_yaml(text) for text in texts)
    found = Snapshot(pods=pods, nodes={"n1": node()} if nodes else {})
    rows = build_rows(found, Scope(), containers=containers).rows
    return {row.container or row.name: row_risk(row) for row in rows}


def text(name: str, node_name: str = "n1", phase: str = "Running") -> str:
    return (
        f"kind: Pod\nmetadata: {{name: {name}, namespace: n}}\nstatus: {{phase: {phase}}}\n"
        f"spec: {{nodeName: '{node_name}', containers: [{{name: c, resources: {REQUEST}}}]}}\n"
    )


def test_only_pods_with_processes_are_at_any_risk() -> None:
    found = risks(text("runs"), text("waits", "", "Pending"), text("ended", phase="Succeeded"))
    assert found == {"runs": Risk.NEXT, "waits": Risk.NONE, "ended": Risk.NONE}


def test_a_container_that_has_ended_is_at_none() -> None:
    assert risks(TWO, containers=True) == {"i": Risk.NONE, "a": Risk.NEXT}
    assert risks(TWO) == {"two": Risk.NEXT}


def test_where_nobody_knows_the_order_a_pod_that_runs_is_still_at_some() -> None:
    assert risks(text("runs"), nodes=False) == {"runs": Risk.LOW}


def test_the_column_says_the_word() -> None:
    found = Snapshot(pods=(pod("a"),), nodes={"n1": node()})
    assert BY_KEY["risk"].value(build_rows(found, Scope()).rows[0]) == "next"

"""The words of a comparison: what a row shows, and what a terminal must not get."""

from __future__ import annotations

from kubectl_qos.cluster.files import pod_from_yaml
from kubectl_qos.edit.compare import Comparison, compare
from kubectl_qos.k8s.kubelet import Node, NodeSetup
from kubectl_qos.k8s.node_overrides import NodeOverride, apply_overrides
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.present.comparison import comparison_subject, kubelet_parts, table

GI = 1 << 30
SETUP = NodeSetup.of(Node(name="n\x1b1", memory_capacity_bytes=16 * GI), release="1.36")
POD = pod_from_yaml(
    "kind: Pod\nmetadata: {name: p, namespace: d, uid: u}\n"
    "spec:\n  nodeName: n1\n"
    "  initContainers: [{name: side, restartPolicy: Always}]\n"
    "  containers: [{name: app, resources: {requests: {memory: 1Gi}}}]\n"
)


def older(used_by_app: int) -> Comparison:
    usage = {
        ("d", "p"): PodUsage.of_containers({"app": ContainerUsage(used_by_app), "side": ContainerUsage(0)})
    }
    return compare([POD], SETUP, apply_overrides(SETUP, [], "1.30"), usage)


def row(found: Comparison) -> list[str]:
    return [cell for cell in list(table(found.pods))[1].split("   ") if cell]


def test_a_row_shows_what_is_killed_first_before_and_after() -> None:
    assert row(older(0))[5:7] == ["938 → 999", "1291 → 1332"]


def test_where_that_container_stays_another_that_changes_is_named() -> None:
    assert row(older(8 * GI))[5:7] == ["side: 938 → 999", "side: 1291 → 1332"]


def test_names_cannot_write_to_the_terminal() -> None:
    found = compare([POD], SETUP, apply_overrides(SETUP, []))
    assert comparison_subject(found, [NodeOverride("cgroupRoot", "a\x1b[31m")]) == (
        "node n\\x1b1, kubelet 1.36, cgroupRoot=a\\x1b[31m"
    )


def test_a_kubelet_that_starts_is_not_mentioned() -> None:
    assert kubelet_parts(older(0)) == ()

from dataclasses import replace

import pytest
from msgspec import structs

from kubectl_qos.analysis.pod_table import build_rows
from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import NO_PSI, PsiData
from kubectl_qos.present.reasons import why_lines
from kubectl_qos.qos.prediction import predict


def why(name: str, snapshot: Snapshot | None = None, psi: PsiData = NO_PSI) -> list[str]:
    snapshot = snapshot or DemoSource().snapshot(Scope())
    rows = build_rows(snapshot, Scope())
    row = structs.replace(next(row for row in rows.rows if row.name.startswith(name)), psi=psi)
    setup = snapshot.setup(row.node)
    prediction = predict(row.pod, setup.node, kubelet=setup.kubelet, release=setup.release)
    return list(why_lines(prediction, row, rows))


def test_the_next_victim() -> None:
    reason, numbers, flags = why("api-7d9c5b6f8-x2mzq")
    assert reason == (
        "shop/api-7d9c5b6f8-x2mzq is Burstable, the kernel's next victim if worker-2 is full: rank 1 of"
        " 17, oom_score 1390"
    )
    assert numbers == "c: oom_score_adj 969 (1000 - 1000 × 512Mi / 16Gi = 969); the pod uses 1.9Gi of 2Gi"
    assert flags.split("; ") == [
        "PRIORITY: killed before a pod of lower priority",
        "NEAR-LIMIT: at 90% of a memory limit or above",
        "OVER-REQUEST: uses more than it requests",
    ]


def test_one_further_down_without_flags() -> None:
    assert why("crunch-") == [
        "batch/crunch-x2k9f is BestEffort, rank 2 of 17 on worker-2, oom_score 1383",
        "c: oom_score_adj 1000 (BestEffort pods get 1000); the pod uses 1.2Gi",
    ]


def test_what_a_death_frees_is_said_where_it_is_not_the_whole_pod() -> None:
    assert why("cart-6c7fd9b5d-9qj4t")[1].endswith("the pod uses 890Mi, its death frees 41Mi")


def test_pressure_speaks_from_one_percent_on() -> None:
    assert len(why("crunch-", psi=PsiData(avg60=0.9))) == 2
    assert why("crunch-", psi=PsiData(avg60=12.34))[2] == (
        "tasks waited for memory in 12.3% of the last minute (PSI)"
    )


def test_a_shared_rank_says_so() -> None:
    bare = replace(DemoSource().snapshot(Scope()), usage={}, node_usage={})
    assert ", rank 1 (shared) of 17 on worker-2, " in why("crunch-", bare)[0], "no victim without usage"
    assert ", rank 4 (shared) of 17 on worker-2, " in why("notebook-0", bare)[0]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("huge-0", ", not ranked: not on a node yet"), ("etl-", ", not ranked: no running process")],
)
def test_pods_without_a_rank_say_why(name: str, reason: str) -> None:
    assert why(name)[0].endswith(reason)


def test_unknown_capacity_and_usage() -> None:
    bare = replace(DemoSource().snapshot(Scope()), nodes={}, usage={}, node_usage={})
    first, second = why("api-7d9c5b6f8-x2mzq", bare)[:2]
    assert first.endswith(", rank unknown: the node's memory capacity is unknown")
    assert second == "c: oom_score_adj 3..999; usage unknown"


def test_the_container_that_decides_is_named() -> None:
    rows = build_rows(DemoSource().snapshot(Scope()), Scope())
    by_container = build_rows(DemoSource().snapshot(Scope()), Scope(), containers=True).rows
    for row in rows.rows:
        scores = {one.container: one.score or 0 for one in by_container if one.key[:2] == row.key[:2]}
        if row.rank is not None:
            worst = why(row.name)[1].partition(":")[0]
            assert scores[worst] == max(scores.values())

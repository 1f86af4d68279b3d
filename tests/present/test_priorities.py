"""Plans of priorities in words: the demo's rows, their patches, and what cannot be solved."""

from dataclasses import replace

import pytest

from kubectl_qos.analysis.fix_list import PriorityPlans, plans_of_nodes, with_refusals
from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.edit.related import RelatedObjects, parse_owner
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.quota import ResourceQuota
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.priorities import COLUMNS, lines, move_sentence, notes, patches
from kubectl_qos.present.values.fixes import priority_values

EVERYWHERE = Scope()


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return DemoSource().snapshot(EVERYWHERE)


@pytest.fixture(scope="module")
def found(snapshot: Snapshot) -> PriorityPlans:
    return plans_of_nodes(snapshot, ["worker-2"], EVERYWHERE)


def test_a_row_says_what_whom_it_outlives_and_when(found: PriorityPlans) -> None:
    row = found.rows[0]
    assert [column.value(row) for column in COLUMNS] == [
        1,
        "worker-2",
        "shop/deployment/api (2 pods)",
        100_000,
        (
            "data/importer-5f7b9c-2vtxk (priority 0) and 8 more, by the kernel;"
            " shop/cart-6c7fd9b5d-9qj4t (priority 0) and 1 more, by the kubelet"
        ),
        "c requests.memory 512Mi → 852Mi",
        "when recreated",
        "+680Mi for 2 pods of 1.6Gi free",
        "through deployment/api",
    ]
    assert move_sentence(row.move) == (
        "shop/api-7d9c5b6f8-k8vwl c requests.memory 512Mi → 852Mi, through deployment/api, when recreated"
    )


def test_the_order_of_pods_changes_no_word(snapshot: Snapshot) -> None:
    backwards = replace(snapshot, pods=snapshot.pods[::-1])
    one, other = (plans_of_nodes(some, list(snapshot.nodes), EVERYWHERE) for some in (snapshot, backwards))
    assert list(lines(other)) == list(lines(one))
    assert priority_values(other).items == priority_values(one).items


def test_the_patches_say_how_each_is_applied(found: PriorityPlans) -> None:
    container = {"name": "c", "resources": {"requests": {"memory": "852Mi"}}}
    assert next(patches(found)) == (
        "kubectl patch deployment api -n shop --patch-file FILE",
        {"spec": {"template": {"spec": {"containers": [container]}}}},
    )


def test_what_stays_is_said_with_its_reason(found: PriorityPlans) -> None:
    *_, first, second = notes(found)
    assert first == (
        "shop/api-7d9c5b6f8-x2mzq (priority 100000) still dies before batch/report-cron-28934-lw4pz"
        " (priority 0) and 7 more, by the kernel; shop/cart-6c7fd9b5d-9qj4t (priority 0) and 1 more, by the"
        " kubelet: its node, or the node of another pod of its workload, has no room for the request; lower"
        " requests of other pods there, or move one away"
    )
    assert second == (
        "data/db-0 (priority 500000) still dies before data/cache-0 (priority 100000), by the kernel: it is"
        " Guaranteed: its oom_score_adj is -997 whatever it requests; only using less memory helps"
    )


def test_how_much_is_solved(found: PriorityPlans, snapshot: Snapshot) -> None:
    assert next(notes(found)) == (
        "in 22 cases a pod dies before one of lower priority; these changes fix 11 of them"
    )
    assert list(notes(plans_of_nodes(snapshot, ["control-1"], EVERYWHERE))) == []


def test_a_request_far_above_usage_is_named(snapshot: Snapshot) -> None:
    """CoreDNS uses 38Mi; 1606Mi let it die after a pod of lower priority."""
    assert "far above usage: 1 (42 times); such a request only makes others die first" in notes(
        plans_of_nodes(snapshot, ["worker-1"], EVERYWHERE)
    )


def test_a_row_that_a_quota_refuses_says_so(found: PriorityPlans) -> None:
    """Its two pods of 340Mi more each; the quota of the namespace has room for one."""
    amounts = {"requests.memory": "1400Mi"}
    status = {"hard": amounts, "used": {"requests.memory": "1Gi"}}
    quota = convert({"metadata": {"name": "q"}, "spec": {"hard": amounts}, "status": status}, ResourceQuota)

    def read(pod: Pod) -> RelatedObjects:
        raw = {"kind": "Pod", "metadata": {"name": pod.name, "namespace": pod.namespace}}
        template = {"spec": {"containers": [{"name": one.name} for one in pod.containers]}}
        owner = {
            "kind": "Deployment",
            "apiVersion": "apps/v1",
            "metadata": {"name": "api", "namespace": pod.namespace},
            "spec": {"replicas": 2, "template": template},
        }
        return RelatedObjects(raw, owners=(parse_owner(owner),), quotas=(quota,))

    said = [text for text in notes(with_refusals(found, read)) if "ResourceQuota" in text]
    assert len(said) == 1
    assert said[0].startswith("1: ResourceQuota q: the rollout would stall after")
    assert not with_refusals(found, lambda _: None).refusals


def test_nothing_to_change_and_nothing_that_helps(snapshot: Snapshot) -> None:
    assert list(lines(plans_of_nodes(snapshot, ["control-1"], EVERYWHERE))) == [
        "nothing to change: no pod dies before one of lower priority"
    ]
    assert list(lines(plans_of_nodes(snapshot, ["worker-2"], Scope(namespace="data")))) == ["no change helps"]


def test_a_node_without_its_memory_is_named(snapshot: Snapshot) -> None:
    with pytest.raises(InputError, match="memory capacity of none is unknown"):
        plans_of_nodes(snapshot, ["none"], EVERYWHERE)
    both = plans_of_nodes(snapshot, ["none", "control-1"], EVERYWHERE)
    assert next(notes(both)).startswith("the memory capacity of none is unknown")

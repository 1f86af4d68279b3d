"""Plans of priorities in words: the demo's rows, their patches, and what cannot be solved."""

from __future__ import annotations

import pytest

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.priorities import (
    COLUMNS,
    Plans,
    lines,
    move_sentence,
    notes,
    patches,
    plans_of_nodes,
)

EVERYWHERE = Scope()


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return DemoSource().snapshot(EVERYWHERE)


@pytest.fixture(scope="module")
def found(snapshot: Snapshot) -> Plans:
    return plans_of_nodes(snapshot, ["worker-2"], EVERYWHERE)


def test_a_row_says_what_whom_it_outlives_and_when(found: Plans) -> None:
    row = found.rows[0]
    assert [column.value(row) for column in COLUMNS] == [
        1,
        "worker-2",
        "shop/api-7d9c5b6f8-k8vwl",
        100_000,
        "c requests.memory 512Mi → 820Mi",
        "kernel: data/importer-5f7b9c-2vtxk and 6 more; kubelet: shop/cart-6c7fd9b5d-9qj4t and 1 more",
        "when c restarts",
        "+308Mi of 1.6Gi free",
        "in place, undone by the next rollout of deployment/api",
    ]
    assert move_sentence(row.move) == (
        "shop/api-7d9c5b6f8-k8vwl c requests.memory 512Mi → 820Mi, in place, undone by the next rollout of"
        " deployment/api, when c restarts"
    )


def test_the_patches_say_how_each_is_applied(found: Plans) -> None:
    assert next(patches(found)) == (
        "kubectl patch pod api-7d9c5b6f8-k8vwl -n shop --subresource resize --patch-file FILE",
        {"spec": {"containers": [{"name": "c", "resources": {"requests": {"memory": "820Mi"}}}]}},
    )


def test_what_stays_is_said_with_its_reason(found: Plans) -> None:
    *_, first, second = notes(found)
    assert first == (
        "shop/api-7d9c5b6f8-x2mzq still dies before others (kernel: data/importer-5f7b9c-2vtxk and 4 more;"
        " kubelet: shop/cart-6c7fd9b5d-9qj4t and 1 more): its node has no room for the request"
    )
    assert second == (
        "data/db-0 still dies before others (kernel: data/cache-0): it is Guaranteed: its oom_score_adj is"
        " -997 whatever it requests"
    )


def test_how_much_is_solved_and_what_to_look_at_before_applying(found: Plans, snapshot: Snapshot) -> None:
    assert list(notes(found))[:3] == [
        "solves 14 of 22 inversions",
        "2: shop/api-7d9c5b6f8-x2mzq takes 81% of what worker-2 has free for requests",
        "1, 2: pods of shop/deployment/api, whose template has one value for all: take the largest there",
    ]
    of_coredns = plans_of_nodes(snapshot, ["worker-1"], Scope(namespace="kube-system"))
    assert list(notes(of_coredns))[1] == (
        "1: kube-system/coredns-6f6b679f8f-4bqjx requests 22 times as much as before"
    )
    assert list(notes(plans_of_nodes(snapshot, ["control-1"], EVERYWHERE))) == []


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

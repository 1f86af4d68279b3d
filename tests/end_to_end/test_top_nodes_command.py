"""`top nodes` and `top --min-risk`: every order, live clusters, and levels; the rest is in transcripts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubectl_qos.present.node_columns import DEFAULT_KEYS, NODE_COLUMNS
from tests.cluster.cluster_objects import metrics, node, pod
from tests.cluster.object_server import ObjectServer
from tests.cluster.test_kubelet_configs import recorded_configz
from tests.end_to_end.command import Done, Run
from tests.end_to_end.conftest import Live


def items(done: Done) -> list[dict[str, Any]]:
    assert done.code == 0, done.err
    found: list[dict[str, Any]] = json.loads(done.out)["items"]
    return found


DESCENDING = (
    *("pods", "guaranteed", "burstable", "best_effort", "used", "capacity", "used_percent", "requests"),
    *("allocatable", "requests_percent", "limits", "limits_percent", "unlimited", "worst", "worst_percent"),
    *("eviction", "soft_eviction", "victim_score", "victim_others", "eviction_configured"),
)


@pytest.mark.parametrize("key", NODE_COLUMNS)
def test_every_column_can_be_sorted_by(run: Run, key: str) -> None:
    field = NODE_COLUMNS[key].field
    found = [item[field] for item in items(run("top", "nodes", "--demo", "-o", "json", "--sort-by", key))]
    assert len(found) == 4
    if key == "next_death":
        # In the order of deaths.
        rows = items(run("top", "nodes", "--demo", "-o", "json", "--sort-by", key))
        of_next = [item["node"] for item in items(run("next", "--demo", "-o", "json"))]
        assert [row["node"] for row in rows] == of_next
        return
    known = [value for value in found if value is not None]
    assert known == sorted(known, reverse=key in DESCENDING)


def test_the_kubelets_configuration_is_read_where_it_is_shown(run: Run, live: Live) -> None:
    requested = "/api/v1/nodes/worker-1/proxy/configz"
    soft = recorded_configz(evictionSoft={"memory.available": "10%"})
    server = live(ObjectServer(pods=[pod("web")], nodes=[node()], metrics=[], others={requested: soft}))
    assert run("top").code == 0
    assert requested not in server.paths()
    (item,) = items(run("top", "nodes", "-o", "json"))
    assert (item["evictionConfigured"], item["evictionSoftBytes"]) == (True, 1717986944)


def test_the_next_death_is_that_of_next(run: Run, live: Live) -> None:
    hard = recorded_configz(evictionHard={"memory.available": "90%"})
    request = "/api/v1/nodes/worker-1/proxy/configz"
    used = [metrics("web", "1Gi")]
    live(ObjectServer(pods=[pod("web")], nodes=[node()], metrics=used, others={request: hard}))
    (_, row) = run("top", "nodes").lines
    (death, *_) = json.loads(run("next", "-o", "json").out)["items"]
    assert death["mechanism"] == "kubelet eviction"
    assert "shop/web, kubelet evicts" in row


def test_whoever_may_only_read_one_namespace_sees_its_part_of_the_nodes(run: Run, live: Live) -> None:
    pods = [pod("web", request="1Gi"), pod("hog", namespace="x", request="2Gi")]
    server = ObjectServer(pods=pods, nodes=[node()], metrics=[metrics("web", "100Mi")])
    server.forbidden = {"/api/v1/pods", "/apis/metrics.k8s.io/v1beta1/pods"}
    live(server)
    done = run("top", "nodes", "-n", "shop", "-o", "json")
    (item,) = items(done)
    assert (item["pods"], item["requestsBytes"]) == (1, 1 << 30)
    assert "the rest of these nodes' pods is missing" in done.err
    refused = run("top", "nodes", "-A")
    assert (refused.code, refused.out) == (1, "")
    assert "Forbidden" in refused.err


def test_the_help_explains_the_columns_and_the_levels(run: Run) -> None:
    done = run("top", "--help", variables={"COLUMNS": "200"})
    words = done.out.split()
    assert {NODE_COLUMNS[key].header for key in DEFAULT_KEYS[2:]} - {"PRESSURE"} <= set(words)
    assert (
        "low has processes, medium is flagged PRIORITY or OVER-REQUEST, high is flagged NEAR-LIMIT"
        in done.out
    )


RISKS = ["next", "high", "medium", "low", "none"]


def test_each_level_of_risk_shows_what_the_higher_ones_show_and_more(run: Run) -> None:
    everything = {item["pod"]: item for item in items(run("top", "--demo", "-o", "json"))}
    shown: list[str] = []
    for level in RISKS:
        found = items(run("top", "--demo", "-o", "json", "--min-risk", level))
        assert {item["risk"] for item in found if item["pod"] not in shown} == {level}
        assert set(shown) < {item["pod"] for item in found}
        assert all(item == everything[item["pod"]] for item in found), "ranks stay"
        shown = [item["pod"] for item in found]
    assert shown == list(everything)

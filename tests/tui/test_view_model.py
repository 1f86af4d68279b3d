from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest
from msgspec import structs

from kubectl_qos.analysis.pod_table import build_rows, is_at_risk
from kubectl_qos.analysis.trends import Trends
from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.cluster.source import Health
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.objects import Condition
from kubectl_qos.k8s.selectors import Selector
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import UsageOrigin
from kubectl_qos.qos.eviction import schedulable_bytes
from kubectl_qos.tui.actions import Keys
from kubectl_qos.tui.filters import RowFilter
from kubectl_qos.tui.lists.base import RowSelection
from kubectl_qos.tui.lists.panes import in_one_line, with_more
from kubectl_qos.tui.lists.pods import PodList
from kubectl_qos.tui.view import (
    FollowStatus,
    ListKind,
    RowCounts,
    View,
    empty_sentence,
    ended_pods,
    freshness,
    list_title,
    title_words,
)
from kubectl_qos.tui.view_model import (
    PodGroup,
    ViewModel,
    _in_order,
    build_view_model,
    namespaces_on,
    oldest_usage,
)
from kubectl_qos.tui.widgets.table import group_starts
from tests.tui.sources import demo


@pytest.fixture(scope="module")
def view_model() -> ViewModel:
    return build_view_model(demo(), Scope(), DEMO_TIME)


def group(view_model: ViewModel, key: str | None) -> PodGroup:
    return next(one for one in view_model.nodes if one.key == key)


def test_a_node_counts_its_pods_and_what_they_use(view_model: ViewModel) -> None:
    snapshot = view_model.snapshot
    pods = [pod for pod in snapshot.pods if pod.node_name == "worker-2"]
    used = sum(
        snapshot.usage[pod.namespace, pod.name].working_set_bytes
        for pod in pods
        if (pod.namespace, pod.name) in snapshot.usage
    )
    found = group(view_model, "worker-2")
    assert found.pods == len(pods) == found.guaranteed + found.burstable + found.best_effort
    assert found.used == used
    assert found.allocatable is not None
    assert found.allocatable == schedulable_bytes(snapshot.setup("worker-2").node)
    assert found.percent == 100 * used // found.allocatable
    assert (found.bad_conditions, found.in_danger) == ((), True), (
        "nearly full, without the kubelet's word for it"
    )


def test_all_nodes_come_first_then_the_fullest_then_no_node(view_model: ViewModel) -> None:
    keys = [one.key for one in view_model.nodes]
    assert keys[0] is None
    assert keys[-1] == ""
    percents = [one.percent for one in view_model.nodes[1:-1]]
    assert percents == sorted(percents, reverse=True, key=lambda percent: percent or 0)
    assert group(view_model, None).pods == 58, "two of the 60 have ended"
    assert group(view_model, None).allocatable == sum(one.allocatable or 0 for one in view_model.nodes[1:])


def test_rows_of_all_nodes_come_node_after_node(view_model: ViewModel) -> None:
    names = [group.key for group in view_model.nodes[1:] if group.pods or group.key in view_model.rows.nodes]
    assert [view_model.in_order[start].node for start in view_model.starts] == names
    assert list(view_model.starts) == group_starts(row.node for row in view_model.in_order)
    assert sorted(view_model.in_order, key=id) == sorted(view_model.rows.rows, key=id)


def test_a_node_that_is_not_ready_says_so() -> None:
    snapshot = demo()
    node = snapshot.nodes["worker-1"]
    conditions = (Condition(type="Ready", status="Unknown"), Condition(type="DiskPressure", status="True"))
    status = msgspec.structs.replace(node.status, conditions=conditions)
    ill = msgspec.structs.replace(node, status=status)
    found = build_view_model(replace(snapshot, nodes={**snapshot.nodes, "worker-1": ill}), Scope(), DEMO_TIME)
    assert group(found, "worker-1").bad_conditions == ("not-ready", "disk")


def test_usage_of_a_node_counts_pods_outside_the_scope(view_model: ViewModel) -> None:
    some = build_view_model(demo(), Scope(namespace="shop"), DEMO_TIME)
    assert group(some, "worker-2").pods < group(view_model, "worker-2").pods
    assert group(some, "worker-2").used == group(view_model, "worker-2").used


def test_unknown_capacity_and_usage_are_unknown_not_zero() -> None:
    bare = replace(demo(), nodes={}, usage={}, node_usage={})
    found = build_view_model(bare, Scope(), DEMO_TIME)
    for one in found.nodes:
        assert one.used is None
        assert one.percent is None


def test_namespaces_are_all_there_on_every_node(view_model: ViewModel) -> None:
    everywhere = namespaces_on(view_model, None)
    here = namespaces_on(view_model, "control-1")
    assert [one.key for one in everywhere] == [one.key for one in here]
    assert [one.pods for one in here] == [6, 0, 0, 5, 0, 1, 0, 0, 0]
    assert everywhere[0].pods == 58


@pytest.mark.parametrize("node", [None, "worker-2", "", "nope"])
@pytest.mark.parametrize("namespace", [None, "shop", "nope"])
def test_a_view_selects_what_a_scope_would(
    view_model: ViewModel, node: str | None, namespace: str | None
) -> None:
    scoped = build_rows(view_model.snapshot, Scope(node=node, namespace=namespace)).rows
    view = View(node=node, namespace=namespace)
    assert view.pod_rows(view_model) == scoped
    assert ended_pods(view, view_model, scoped) == sum(row.pod.is_terminal for row in scoped)


def test_a_filter_and_risk_narrow_a_view(view_model: ViewModel) -> None:
    view = View(filter=RowFilter.parse("log-"), at_risk=True)
    narrowed = RowSelection(PodList(Trends()), view.filter, view.at_risk, view_model.taken)
    shown = narrowed.selected(view.pod_rows(view_model))
    assert shown
    assert all(row.name.startswith("log-") and is_at_risk(row) for row in shown)


def test_a_row_leads_to_the_pod_as_it_is_stored(view_model: ViewModel) -> None:
    for row in view_model.rows.rows:
        stored = view_model.pod_of(row)
        assert stored in view_model.snapshot.pods
        assert stored.metadata == row.pod.metadata


def test_the_age_of_usage_is_that_of_the_oldest_sample(view_model: ViewModel) -> None:
    stamps = {usage.timestamp for usage in view_model.snapshot.usage.values()}
    oldest = oldest_usage(view_model)
    assert oldest is not None
    assert oldest.isoformat().replace("+00:00", "Z") == min(stamps)
    assert (
        oldest_usage(
            build_view_model(replace(view_model.snapshot, usage={}, node_usage={}), Scope(), DEMO_TIME)
        )
        is None
    )


def test_crumbs() -> None:
    assert (
        list_title(View(), RowCounts(60, 60), "RANK") == "all nodes / all namespaces  60 pods  in kill order"
    )
    view = View(node="worker-2", namespace="shop", filter=RowFilter.parse("!api"), at_risk=True)
    assert (
        list_title(view, RowCounts(1, 3), "MEMORY reversed")
        == "worker-2 / shop  1 of 3 pods  filter !api  only at risk  by MEMORY reversed"
    )
    ended = list_title(View(node="a"), RowCounts(60, 60, ended=2), "OOM_SCORE")
    assert ended == "a / all namespaces  58 pods, 2 ended  by OOM_SCORE"
    ended = list_title(View(node="a"), RowCounts(3, 60, ended=2), "OOM_SCORE")
    assert ended == "a / all namespaces  3 of 58 pods, 2 ended  by OOM_SCORE", "the same numbers"
    assert list_title(View(node="", namespace=""), RowCounts(1, 1), "RANK").startswith(
        "no node / no namespace  1 pod  "
    )


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("dies at +1Mi (own limit 9%), +2Mi (kernel: node", "dies at +1Mi (own limit 9%), +2Mi …"),
        ("c: adj 999 (1000 - 1000 × 4Mi / 16Gi = 1000, as", "c: adj 999 (1000 - 1000 × 4Mi / 16Gi = 1000, …"),
        ("c: adj 969 (1000 - 1); the pod uses 1Gi", "c: adj 969 (1000 - 1); the pod uses 1Gi …"),
        (
            "one word after another, up to the last of them all",
            "one word after another, up to the last of them …",
        ),
    ],
)
def test_what_is_cut_is_no_half_word_or_parenthesis(line: str, shown: str) -> None:
    assert with_more(line, 48) == shown


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            "data/importer-5f7b9c-2vtxk:c on worker-2 dies next: own limit 98%, +2Mi",
            "data/importer-5f7b9c-2vtxk:c on worker-2 dies next: own limit 98%, +2Mi",
        ),
        (
            "K why  2 deaths: importer-5f7b9c-2vtxk own limit, thumbs-28934-d5k8p kubelet evicts",
            "K why  2 deaths: importer…c-2vtxk own limit, thumbs-28934-d5k8p kubelet evicts",
        ),
        (
            "then  data/importer-5f7b9c-2vtxk:c on worker-2 dies in ~2 min: own limit 93%, +7Mi, as before",
            "then  data/import…9c-2vtxk:c on worker-2 dies in ~2 min: own limit 93%, +7Mi …",
        ),
        (
            "K  12:00:41 data/importer-5f7b9c-2vtxk:m killed by the kernel at the memory limit of all pods",
            "K  12:00:41 data/im…2vtxk:m killed by the kernel at the memory limit of all …",
        ),
        (
            "then  team-16/svc-129-69071aeb-47433821:main on ip-10-8-95-17.eu.internal dies at +142Mi: own",
            "then  team-16/svc-129-6…eb-47433821:main on ip-10-8-95-17… dies at +142Mi: own",
        ),
        (
            "F fix  none: the memory limit of the whole pod is still 60Mi (kubernetes#138760): any resize, …",
            "F fix  none: the memory limit of the whole pod is still 60Mi …",
        ),
    ],
)
def test_a_line_loses_its_last_clause_and_the_middle_of_a_name_first(line: str, shown: str) -> None:
    assert in_one_line(line, 78) == shown


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (90, "shop/api…-x2mzq:c dies next: kubepods limit, +687Mi, if one process holds 1733Mi, else a/b"),
        (78, "shop/api-7d9c5b6f8-x2mzq:c dies next: kubepods limit, +687Mi …  d explain"),
        (57, "shop/api-7…f8-x2mzq:c dies next: kubepods limit, +687Mi …"),
    ],
)
def test_a_condition_is_left_out_as_a_whole_with_the_key_that_shows_it(width: int, shown: str) -> None:
    line = (
        "shop/api-7d9c5b6f8-x2mzq:c dies next: kubepods limit, +687Mi, if one process holds 1733Mi, else a/b"
    )
    assert in_one_line(line, width, "d explain") == shown


@pytest.mark.parametrize(
    ("percents", "seconds", "order"),
    [
        ((93, 45, 36), 5, "worker-2 worker-1 worker-3"),
        ((50, 54, 36), 5, "worker-2 worker-1 worker-3"),
        ((50, 55, 36), 5, "worker-1 worker-2 worker-3"),
        ((50, 51, 36), 30, "worker-1 worker-2 worker-3"),
        ((50, 45, 50), 5, "worker-2 worker-3 worker-1"),
    ],
)
def test_nodes_change_places_at_five_points_or_after_half_a_minute(
    view_model: ViewModel, percents: tuple[int, ...], seconds: int, order: str
) -> None:
    names = ("worker-2", "worker-1", "worker-3")

    def groups(*shares: int) -> Sequence[PodGroup]:
        of_nodes = zip(names, shares, strict=True)
        return [PodGroup(name, 1, 0, 0, 1, used=share, allocatable=100) for name, share in of_nodes]

    now, since = groups(50, 45, 36), None
    for step in range(3):
        before = replace(view_model, nodes=(view_model.nodes[0], *now), unordered_since=since)
        now, since = _in_order(groups(*percents), DEMO_TIME + timedelta(seconds=step * seconds), before)
    assert " ".join(group.key or "" for group in now) == order


def test_the_title_says_whose_order_decides_in_as_many_words_as_fit() -> None:
    def title(width: int, *, by_eviction: bool = False) -> str:
        view = View(node="a", namespace="b", by_eviction=by_eviction)
        order = "EVICTION" if by_eviction else "RANK"
        return list_title(view, RowCounts(3, 3), order, eviction_key="E", width=width).removeprefix(
            "a / b  3 pods  "
        )

    whole = "in kill order; under memory pressure the kubelet's eviction order decides: E"
    assert [title(100), title(60), title(44)] == [
        whole,
        "in kill order; eviction decides: E",
        "in kill order; E: eviction",
    ]
    assert title(45, by_eviction=True) == "in eviction order, decides now"


def test_the_title_names_only_what_is_narrowed_down_where_little_fits() -> None:
    titles = (list_title(View(node=node), RowCounts(60, 60), "RANK", width=40) for node in (None, "worker-2"))
    assert [*titles] == ["60 pods  in kill order", "worker-2  60 pods  in kill order"]


@pytest.mark.parametrize(
    ("view", "sentence"),
    [
        (View(filter=RowFilter.parse("zzz")), "No pod matches zzz. esc shows all pods again."),
        (
            View(node="worker-3", namespace="nope"),
            "There are no pods in namespace nope on worker-3. tab goes to other panes.",
        ),
        (View(node="", at_risk=True), "No pod here is at risk. z shows all pods."),
    ],
)
def test_an_empty_table_says_what_shows_more(view_model: ViewModel, view: View, sentence: str) -> None:
    rows = view.pod_rows(view_model)
    assert not RowSelection(PodList(Trends()), view.filter, view.at_risk, view_model.taken).selected(rows)
    assert empty_sentence(view, view_model, "demo", len(rows), Keys()) == sentence


def test_an_empty_cluster_says_so() -> None:
    nothing = build_view_model(Snapshot(), Scope(selector=Selector()), DEMO_TIME)
    assert empty_sentence(View(), nothing, "prod", 0, Keys()) == "There are no pods in prod."


def test_without_usage_no_death_is_denied() -> None:
    unknown = build_view_model(replace(demo(), usage={}, node_usage={}), Scope(), DEMO_TIME)
    sentence = empty_sentence(View(kind=ListKind.DEATHS), unknown, "demo", 0, Keys())
    assert sentence == "No death is foreseen: memory usage is unknown."


def test_the_title_has_counts_versions_and_age(view_model: ViewModel) -> None:
    assert title_words("demo", view_model, DEMO_TIME) == [
        "kubectl qos",
        "demo",
        "4 nodes",
        "58 pods",
        "usage 12s old",
        "v1.34 to v1.36",
    ]
    bare = build_view_model(
        replace(view_model.snapshot, usage={}, node_usage={}, server_version="v1.33.1"), Scope(), DEMO_TIME
    )
    assert title_words("/x/y, " + "z" * 99, bare, DEMO_TIME)[1] == f"/x/y, {'z' * 20}…{'z' * 19}"
    assert title_words("demo", bare, DEMO_TIME)[2:] == ["4 nodes", "58 pods", "no usage", "v1.33.1"]
    by_kubelet = {
        key: msgspec.structs.replace(usage, origin=UsageOrigin.KUBELET_SUMMARY)
        for key, usage in view_model.snapshot.usage.items()
    }
    measured = build_view_model(replace(view_model.snapshot, usage=by_kubelet), Scope(), DEMO_TIME)
    assert title_words("demo", measured, DEMO_TIME)[-2] == "memory and swap 12s old"
    one = {"worker-1": view_model.snapshot.nodes["worker-1"]}
    same = build_view_model(replace(view_model.snapshot, nodes=one), Scope(), DEMO_TIME)
    assert title_words("demo", same, DEMO_TIME)[-1] == "v1.36.2", "those that have pods too"


def test_freshness(view_model: ViewModel) -> None:
    assert freshness(None, FollowStatus(is_live=True, loading=True)) == "loading …"
    assert freshness(view_model, FollowStatus(is_live=True), 4.9) == "live"
    assert freshness(view_model, FollowStatus(is_live=True), 12.3) == "live, 12 s behind"
    assert freshness(view_model, FollowStatus(is_live=True, paused=True)) == "paused"
    assert freshness(view_model, FollowStatus(is_live=False)) == "not live"
    stale = Health(QosError("x"), DEMO_TIME)
    assert freshness(view_model, FollowStatus(is_live=True, health=stale)) == "! stale since 12:00:00 UTC"
    assert freshness(None, FollowStatus(is_live=True, health=stale)) == "! no answer"
    forbidden = Health(ApiError("pods is forbidden", status=403))
    assert freshness(None, FollowStatus(is_live=True, health=forbidden)) == "! refused"
    retried = structs.replace(stale, retry_at=time.monotonic() + 7.5)
    assert (
        freshness(view_model, FollowStatus(is_live=True, health=retried))
        == "! stale since 12:00:00 UTC, retry in 8 s"
    )

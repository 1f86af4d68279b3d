"""A live cluster as a source: what is ranked against what, what is missing, and what is asked."""

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kubectl_qos.analysis.pod_table import PodRows, build_rows
from kubectl_qos.analysis.trends import Trends
from kubectl_qos.cluster.kube_api import UsageChoice
from kubectl_qos.cluster.live import MAX_NODES_ONE_BY_ONE, LiveSource
from kubectl_qos.errors import ApiError, InputError, ServerUnreachable
from kubectl_qos.k8s.selectors import Selector
from kubectl_qos.k8s.snapshot import Arrived, NodeOverrides, Scope, Snapshot
from kubectl_qos.present.list_notes import missing_sentence, pod_table_notes
from tests.cluster.cluster_objects import metrics, node, pod, system_oom, threshold
from tests.cluster.conftest import ConnectTo, PageSize
from tests.cluster.following import Follow, has, held
from tests.cluster.https_server import Answer, HttpsServer
from tests.cluster.object_server import ObjectServer
from tests.cluster.replay import answer_of, recorded
from tests.cluster.serving import Serve
from tests.cluster.watch_server import WatchServer

PODS = "/api/v1/pods"
SHOP_PODS = "/api/v1/namespaces/shop/pods"
METRICS = "/apis/metrics.k8s.io/v1beta1/pods"
NEW_METRICS = "/apis/metrics.k8s.io/v1/pods"
NODE_METRICS = "/apis/metrics.k8s.io/v1beta1/nodes"
SHOP_METRICS = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"
USAGE = {NEW_METRICS: 1, METRICS: 1, NODE_METRICS: 1}


class Cluster:
    """Objects, the server of them, and sources on it."""

    def __init__(self, serve: Serve, connect_to: ConnectTo, objects: ObjectServer) -> None:
        self.objects = objects
        self.server: HttpsServer = serve(objects)
        self._connect_to = connect_to

    def source(self, **options: Any) -> LiveSource:
        options = {"ids": False, "configz": False} | options
        return LiveSource(self._connect_to(self.server, namespace="shop"), **options)

    def rows(self, scope: Scope, **options: Any) -> PodRows:
        return build_rows(self.source(**options).snapshot(scope), scope)

    def requested(self) -> Counter[str]:
        """Each request once it has been made, path and query that matters."""
        return Counter(
            request.path + (f"?{fields}" if (fields := request.query.get("fieldSelector")) else "")
            for request in self.server.requests
        )


@pytest.fixture
def cluster(serve: Serve, connect_to: ConnectTo) -> Cluster:
    """Two nodes, two namespaces; the pod of the other namespace is the first to die on worker-1."""
    objects = ObjectServer(
        pods=[
            pod("web", request="1Gi"),
            pod("db", request="4Gi", limit="4Gi"),
            pod("hog", namespace="other"),
            pod("far", namespace="other", node="worker-2"),
            pod("waiting", node="", phase="Pending"),
        ],
        nodes=[node("worker-1"), node("worker-2", memory="8Gi")],
        metrics=[metrics("web", "2097152Ki"), metrics("hog", "1Mi", namespace="other")],
    )
    return Cluster(serve, connect_to, objects)


def ranks(rows: PodRows) -> dict[str, int | None]:
    return {row.name: row.rank for row in rows.rows}


def said(snapshot: Snapshot) -> list[str]:
    return [missing_sentence(one) for one in snapshot.missing]


def test_the_whole_cluster_is_listed_once(cluster: Cluster) -> None:
    snapshot = cluster.source().snapshot(Scope())
    assert len(snapshot.pods) == 5
    assert sorted(snapshot.nodes) == ["worker-1", "worker-2"]
    assert set(snapshot.usage) == {("shop", "web"), ("other", "hog")}
    assert snapshot.missing == ()
    assert cluster.requested() == {PODS: 1, **USAGE, "/api/v1/nodes": 1}


def test_events_of_nodes_say_when_memory_was_short_unless_only_ranks_are_needed(
    cluster: Cluster, follow: Follow
) -> None:
    events = "/api/v1/namespaces/default/events"
    cluster.objects.events = [system_oom("12:00:05"), threshold("12:00:07", "ephemeral-storage")]
    expected = {"worker-1": "2026-11-20T12:00:05Z"}
    assert cluster.source().snapshot(Scope()).shortages == {}
    source = cluster.source(configz=True)
    assert source.snapshot(Scope()).shortages == expected
    assert cluster.requested()[f"{events}?involvedObject.kind=Node,type=Warning"] == 1
    watched = WatchServer(pods=[pod("web")], metrics=[metrics("web", "1Mi")], events=[system_oom("12:00:05")])
    followed, _ = follow(watched, usage=UsageChoice.METRICS)
    followed.ever(lambda update: update.snapshot is not None and update.snapshot.shortages == expected)
    cluster.objects.forbidden.add(events)
    snapshot = source.snapshot(Scope())
    assert (snapshot.shortages, snapshot.missing) == ({}, ())


def test_a_field_that_is_null_is_absent_and_costs_nothing_else(
    cluster: Cluster, follow: Follow, serve: Serve, connect_to: ConnectTo
) -> None:
    """As Go writes a slice or a pointer that is nil."""
    pods, nodes, events = (
        [pod("web"), pod("db")],
        [node("worker-1"), node("worker-2")],
        [system_oom("12:00:05")],
    )
    pods[0]["spec"]["containers"][0]["resources"] = pods[0]["status"]["qosClass"] = None
    nodes[0]["status"]["nodeInfo"] = nodes[0]["metadata"]["resourceVersion"] = None
    samples: list[Any] = [{**metrics("web", "1Mi"), "containers": None}, metrics("db", "1.5e6")]
    whole: list[Any] = [{"metadata": {"name": "worker-1"}, "usage": None}]
    whole.append({"metadata": {"name": "worker-2"}, "usage": {"memory": "1Gi"}})
    events[0]["source"]["component"] = events[0]["metadata"]["labels"] = None
    objects: dict[str, Any] = {
        "pods": pods,
        "nodes": nodes,
        "metrics": samples,
        "node_metrics": whole,
        "events": events,
    }
    listed = Cluster(serve, connect_to, ObjectServer(**objects)).source(configz=True).snapshot(Scope())
    followed, _ = follow(WatchServer(**objects), usage=UsageChoice.METRICS)
    update = followed.ever(lambda update: has("web", "db")(update) and bool(held(update).usage))
    for snapshot in (listed, held(update)):
        assert sorted(pod.name for pod in snapshot.pods) == ["db", "web"]
        assert sorted(snapshot.nodes) == ["worker-1", "worker-2"]
        used = {key[1]: usage.working_set_bytes for key, usage in snapshot.usage.items()}
        assert used == {"db": 1_500_000}, "a sample without containers says nothing"
        assert snapshot.node_usage == {"worker-2": 1 << 30}
        assert snapshot.shortages == {"worker-1": "2026-11-20T12:00:05Z"}


def test_a_namespace_is_ranked_among_all_pods_of_its_nodes(cluster: Cluster) -> None:
    """hog uses next to nothing and requests nothing; web uses 2Gi and requests 1Gi of 16Gi."""
    alone = ranks(cluster.rows(Scope(namespace="shop")))
    assert alone == {"web": 1, "db": 3, "waiting": None}
    assert cluster.requested() == {
        SHOP_PODS: 1,
        f"{PODS}?spec.nodeName=worker-1": 1,
        **USAGE,
        "/api/v1/nodes/worker-1": 1,
    }


def test_many_nodes_are_requested_in_one_list(serve: Serve, connect_to: ConnectTo) -> None:
    names = [f"n{number}" for number in range(MAX_NODES_ONE_BY_ONE + 1)]
    objects = ObjectServer(
        pods=[
            *[pod(f"p-{name}", node=name) for name in names],
            pod("neighbour", namespace="other", node="n0"),
            pod("stranger", namespace="other", node="elsewhere"),
        ],
        nodes=[node(name) for name in [*names, "elsewhere"]],
        metrics=[],
    )
    cluster = Cluster(serve, connect_to, objects)
    snapshot = cluster.source().snapshot(Scope(namespace="shop"))
    assert {found.name for found in snapshot.pods} == {*[f"p-{name}" for name in names], "neighbour"}
    assert cluster.requested() == {SHOP_PODS: 1, PODS: 1, **USAGE, "/api/v1/nodes": 1}


def test_a_node_is_requested_alone(cluster: Cluster) -> None:
    snapshot = cluster.source().snapshot(Scope(node="worker-1"))
    assert {found.name for found in snapshot.pods} == {"web", "db", "hog"}
    assert cluster.requested() == {
        f"{PODS}?spec.nodeName=worker-1": 1,
        **USAGE,
        "/api/v1/nodes/worker-1": 1,
    }


def test_a_node_without_pods_is_there_all_the_same(cluster: Cluster) -> None:
    cluster.objects.nodes.append(node("spare"))
    assert "spare" in cluster.source().snapshot(Scope()).nodes
    assert list(cluster.source().snapshot(Scope(node="spare")).nodes) == ["spare"]


def test_the_newest_metrics_api_is_tried_first_and_the_older_one_remembered(cluster: Cluster) -> None:
    source = cluster.source()
    source.snapshot(Scope())
    source.snapshot(Scope())
    assert (cluster.requested()[NEW_METRICS], cluster.requested()[METRICS]) == (1, 2)


def test_whole_nodes_are_one_list_and_without_it_their_own_memory_is_unknown(cluster: Cluster) -> None:
    sample = {"metadata": {"name": "worker-1"}, "usage": {"cpu": "1", "memory": "3Gi"}}
    cluster.objects.node_metrics = [sample]
    snapshot = cluster.source().snapshot(Scope())
    assert snapshot.node_usage == {"worker-1": 3 << 30}
    assert snapshot.own_bytes("worker-1") == (3 << 30) - (2 << 30) - (1 << 20)
    assert snapshot.own_bytes("worker-2") is None
    cluster.objects.forbidden = {NODE_METRICS}
    denied = cluster.source().snapshot(Scope())
    assert (denied.usage, denied.node_usage, denied.missing) == (snapshot.usage, {}, ())


def test_a_node_and_a_namespace_still_rank_among_all(cluster: Cluster) -> None:
    rows = cluster.rows(Scope(node="worker-1", namespace="shop"))
    assert ranks(rows) == {"web": 1, "db": 3}


def test_a_selector_is_left_to_the_server(cluster: Cluster) -> None:
    cluster.objects.pods = [pod("hog", namespace="other", labels={"app": "x"}), pod("web")]
    scope = Scope(selector=Selector.parse("app=x"), selector_text="app=x")
    assert ranks(cluster.rows(scope)) == {"hog": 2}
    lists = [request for request in cluster.server.requests if request.path == PODS]
    assert [request.query.get("labelSelector") for request in lists] == ["app=x", None]


def test_one_name_is_requested_by_name(cluster: Cluster) -> None:
    scope = Scope(namespace="shop", names=frozenset({"web"}))
    assert ranks(cluster.rows(scope)) == {"web": 1}
    assert cluster.requested()[f"{SHOP_PODS}?metadata.name=web"] == 1
    assert cluster.requested()[SHOP_PODS] == 0


def test_without_usage_no_metrics_are_requested(cluster: Cluster) -> None:
    snapshot = cluster.source(usage=UsageChoice.NONE).snapshot(Scope())
    assert METRICS not in cluster.requested()
    (note,) = pod_table_notes(snapshot, build_rows(snapshot, Scope()))
    assert "is by oom_score_adj alone: memory usage is unknown" in note


def test_an_empty_namespace_is_one_request_and_the_version(cluster: Cluster) -> None:
    snapshot = cluster.source(usage=UsageChoice.NONE).snapshot(Scope(namespace="none"))
    assert (snapshot.pods, snapshot.missing) == ((), ())
    assert cluster.requested() == {"/api/v1/namespaces/none/pods": 1, "/version": 1}


def test_a_missing_right_to_list_the_cluster_is_reported(cluster: Cluster) -> None:
    cluster.objects.forbidden = {PODS}
    with pytest.raises(ApiError) as caught:
        cluster.source().snapshot(Scope())
    assert caught.value.status == 403
    assert caught.value.hint == "name a namespace that you may read with -n"


@pytest.mark.parametrize("scope", [Scope(namespace="shop"), Scope(namespace="shop", node="worker-1")])
def test_without_the_neighbours_the_rank_is_among_those_seen(cluster: Cluster, scope: Scope) -> None:
    cluster.objects.forbidden = {PODS}
    source = cluster.source()
    snapshot = source.snapshot(scope)
    shown = ranks(build_rows(snapshot, scope))
    assert (shown["web"], shown["db"]) == (1, 2)
    (sentence,) = said(snapshot)
    assert sentence == (
        "the rest of these nodes' pods is missing: Error from server (Forbidden): pods is forbidden:"
        ' User "viewer" cannot list resource "pods" in API group "" at the cluster scope'
        " (grant list on pods in all namespaces; until then ranks count only the pods shown)"
    )


def test_without_the_nodes_nothing_is_invented(cluster: Cluster) -> None:
    cluster.objects.forbidden = {"/api/v1/nodes/worker-1", "/api/v1/nodes/worker-2"}
    snapshot = cluster.source().snapshot(Scope(namespace="shop"))
    assert snapshot.nodes == {}
    assert snapshot.server_version == "v1.36.2"
    (sentence,) = said(snapshot)
    assert sentence.startswith("the nodes' memory capacity is missing: Error from server (Forbidden)")
    assert "(grant get and list on nodes; or give --node-memory 16Gi)" in sentence
    assert set(ranks(build_rows(snapshot, Scope(namespace="shop"))).values()) == {None}


def test_a_given_memory_is_used_for_nodes_that_may_not_be_read(cluster: Cluster) -> None:
    cluster.objects.forbidden = {"/api/v1/nodes/worker-1"}
    rows = cluster.rows(Scope(namespace="shop"), overrides=NodeOverrides(16 << 30))
    assert ranks(rows)["web"] == 1


def test_a_node_that_is_gone_does_not_hide_the_others(cluster: Cluster) -> None:
    del cluster.objects.nodes[1]
    snapshot = cluster.source().snapshot(Scope())
    assert list(snapshot.nodes) == ["worker-1"]
    assert snapshot.missing == ()
    assert ranks(build_rows(snapshot, Scope()))["web"] == 1


UNAVAILABLE = (
    "memory usage is missing: Metrics API not available"
    " (install metrics-server; without it the order is by oom_score_adj alone)"
)


@pytest.mark.parametrize("name", ["metrics-absent-404", "metrics-unavailable-503"])
def test_without_the_metrics_api_the_order_is_by_adj(cluster: Cluster, name: str) -> None:
    cluster.objects.faults[METRICS] = answer_of(recorded(name))
    snapshot = cluster.source().snapshot(Scope(namespace="shop"))
    rows = build_rows(snapshot, Scope(namespace="shop"))
    assert ranks(rows) == {"web": 2, "db": 3, "waiting": None}
    assert next(iter(pod_table_notes(snapshot, rows))) == UNAVAILABLE


def test_metrics_of_the_own_namespace_are_better_than_none(cluster: Cluster) -> None:
    cluster.objects.forbidden = {METRICS}
    snapshot = cluster.source().snapshot(Scope(namespace="shop"))
    assert set(snapshot.usage) == {("shop", "web")}
    (sentence,) = said(snapshot)
    assert sentence.startswith(
        "the memory usage of other namespaces is missing: Error from server (Forbidden)"
    )
    assert "(grant list on pods in the API group metrics.k8s.io in all namespaces)" in sentence


def test_metrics_that_may_not_be_read_at_all(cluster: Cluster) -> None:
    cluster.objects.forbidden = {METRICS, SHOP_METRICS}
    snapshot = cluster.source().snapshot(Scope(namespace="shop"))
    assert snapshot.usage == {}
    (sentence,) = said(snapshot)
    assert sentence.startswith("memory usage is missing: Error from server (Forbidden)")
    where = "in the namespace shop, or in all"
    assert f"(grant list on pods in the API group metrics.k8s.io {where})" in sentence


def everything_denied(cluster: Cluster) -> None:
    cluster.objects.forbidden = {PODS, METRICS, "/api/v1/nodes/worker-1"}


def nothing_but_pods(cluster: Cluster) -> None:
    cluster.objects.forbidden = {METRICS, SHOP_METRICS, "/api/v1/nodes/worker-1", "/version"}


@pytest.mark.parametrize("deny", [everything_denied, nothing_but_pods])
def test_several_missing_things_are_said_in_one_order(
    cluster: Cluster, deny: Callable[[Cluster], None]
) -> None:
    deny(cluster)
    snapshot = cluster.source().snapshot(Scope(namespace="shop"))
    whats = [one.what for one in snapshot.missing]
    order = ["the rest of", "the nodes", "memory usage", "the memory usage"]
    places = [next(place for place, word in enumerate(order) if what.startswith(word)) for what in whats]
    assert places == sorted(places)
    assert len(places) >= 2
    assert {found.name for found in snapshot.pods} >= {"web", "db", "waiting"}


def test_a_pod_that_vanishes_between_two_lists_is_still_shown_once(cluster: Cluster) -> None:
    def all_but_web(request: Any) -> Answer | None:
        without = ObjectServer(pods=[one for one in cluster.objects.pods if one["metadata"]["name"] != "web"])
        return without(request)

    cluster.objects.faults[PODS] = all_but_web
    snapshot = cluster.source().snapshot(Scope(namespace="shop"))
    assert Counter(found.name for found in snapshot.pods) == {"web": 1, "db": 1, "hog": 1, "waiting": 1}


@pytest.mark.parametrize("method", ["find", "raw"])
def test_a_pod_that_vanishes_between_list_and_read(cluster: Cluster, method: str) -> None:
    source = cluster.source()
    web = next(one for one in source.snapshot(Scope(namespace="shop")).pods if one.name == "web")
    assert source.raw(web)["metadata"]["uid"] == "uid-of-web"
    cluster.objects.pods = [one for one in cluster.objects.pods if one["metadata"]["name"] != "web"]
    with pytest.raises(ApiError) as caught:
        source.find("Pod", "shop", "web") if method == "find" else source.raw(web)
    assert str(caught.value) == 'Error from server (NotFound): pods "web" not found'
    assert (caught.value.status, caught.value.reason) == (404, "NotFound")


def test_a_workload_is_its_template(cluster: Cluster) -> None:
    template = {"spec": {"containers": [{"name": "app", "resources": {"requests": {"memory": "1Gi"}}}]}}
    path = "/apis/apps/v1/namespaces/shop/deployments/web"
    cluster.objects.others[path] = {
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": template},
    }
    source = cluster.source()
    found = source.find("Deployment", "shop", "web")
    assert (found.kind, found.name, str(found.containers[0].requests["memory"])) == (
        "Deployment",
        "web",
        "1Gi",
    )
    assert source.raw(found)["kind"] == "Deployment"
    with pytest.raises(InputError, match="Service has no pod template"):
        source.find("Service", "shop", "web")


def test_a_server_that_is_gone_is_no_empty_cluster(connect_to: ConnectTo) -> None:
    source = LiveSource(connect_to("https://127.0.0.1:1"))
    with pytest.raises(ServerUnreachable):
        source.snapshot(Scope())


def test_a_source_says_what_it_is(cluster: Cluster) -> None:
    source = cluster.source()
    assert (source.title, source.is_live, source.default_namespace) == ("test", True, "shop")
    assert source.now().tzinfo is not None


def test_the_first_pods_of_a_whole_cluster_are_shown_with_their_nodes(
    serve: Serve, connect_to: ConnectTo, page_size: PageSize
) -> None:
    page_size(1)
    pods = [pod(f"web-{number:02}", node=f"worker-{min(number, 7) // 2 + 1}") for number in range(17)]
    objects = ObjectServer(pods=pods, nodes=[node(f"worker-{number}") for number in (1, 2, 3, 4)])
    shown: list[tuple[int, list[str], int]] = []

    def show(snapshot: Snapshot, arrived: Arrived) -> bool:
        shown.append((len(snapshot.pods), sorted(snapshot.nodes), arrived.items))
        return len(shown) > 1  # The first time there is nothing to show.

    source = Cluster(serve, connect_to, objects).source(show_first=show)
    assert len(source.snapshot(Scope()).pods) == 17
    assert shown == [(2, ["worker-1"], 2), (4, ["worker-1", "worker-2"], 4)], (
        "nodes without pods are no empty nodes"
    )
    source.snapshot(Scope(namespace="shop"))
    assert len(shown) == 2


def test_nodes_that_may_not_be_read_hide_no_pods(cluster: Cluster) -> None:
    cluster.objects.forbidden = {"/api/v1/nodes"}
    snapshot = cluster.source(show_first=lambda *_: pytest.fail("shown")).snapshot(Scope())
    assert len(snapshot.pods) == 5
    assert said(snapshot)


def test_a_cluster_that_is_watched_for_a_while_says_what_grows(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        sample = metrics("web", f"{2048 + 60 * len(slept)}Mi")
        cluster.objects.metrics = [{**sample, "timestamp": f"2026-11-20T12:00:{15 * len(slept)}Z"}]

    monkeypatch.setattr("kubectl_qos.cluster.live.time", SimpleNamespace(sleep=sleep))
    snapshot = cluster.source(watch_seconds=20, add_growth=Trends().with_rates).snapshot(Scope())
    assert slept == [15, 5]
    keys = [pod.key for pod in snapshot.pods]
    assert snapshot.rates(keys) == {(("shop", "web"), "app"): pytest.approx(4 * 1024**2)}

"""`auto`: a store found among services and asked through the API server's service proxy, which only GETs."""

import json
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode

import pytest

from tests.cluster.https_server import Answer, Request
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import ObjectServer
from tests.cluster.serving import Serve
from tests.end_to_end.command import Run
from tests.metrics.conftest import Store
from tests.metrics.history import API_DIES, GI, MI
from tests.metrics.test_past import at, run

__all__ = ["run"]

OPERATED = {
    "metadata": {
        "name": "prometheus-operated",
        "namespace": "monitoring",
        "labels": {"operated-prometheus": "true"},
    },
    "spec": {"ports": [{"name": "web", "port": 9090}, {"name": "grpc", "port": 10901}]},
}
PROXY = "/api/v1/namespaces/monitoring/services/prometheus-operated:9090/proxy"


class ProxyingServer(ObjectServer):
    """An API server with services, one of which is a real store."""

    def __init__(self, store: str, services: list[dict[str, Any]], **objects: Any) -> None:
        super().__init__(**objects)
        self.upstream, self.services = store, services

    def __call__(self, request: Request) -> Answer:
        if request.path == "/api/v1/services" and request.path not in self.forbidden:
            return Answer(200, json.dumps({"items": self.services}).encode())
        if request.path.startswith(PROXY) and request.method == "GET":
            url = f"{self.upstream}{request.path.removeprefix(PROXY)}?{urlencode(request.query)}"
            try:
                return Answer(200, urllib.request.urlopen(url).read())
            except HTTPError as error:
                return Answer(error.code, error.read())
        return super().__call__(request)


def pod(namespace: str, name: str, node: str, memory: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"{name}-uid"},
        "spec": {"nodeName": node, "containers": [{"name": "app", "resources": memory}]},
        "status": {"phase": "Running"},
    }


@pytest.fixture
def cluster(serve: Serve, store: Store, tmp_path: Path) -> ProxyingServer:
    """The cluster as it is now, after the made day; the kubeconfig of the home leads to it."""
    api = {"requests": {"memory": "512Mi"}, "limits": {"memory": "1Gi"}}
    pods = [pod("shop", "api-0", "worker-1", api), pod("batch", "crunch", "worker-2", {})]
    server = ProxyingServer(
        store.url, [OPERATED], pods=pods, nodes=[_node(name) for name in ("worker-1", "worker-2")]
    )
    write(tmp_path / ".kube" / "config", kubeconfig(serve(server)))
    return server


def _node(name: str) -> dict[str, Any]:
    memory = {"memory": "8Gi", "cpu": "4"}
    return {
        "metadata": {"name": name},
        "status": {"capacity": memory, "allocatable": memory, "nodeInfo": {"kubeletVersion": "v1.36.2"}},
    }


def test_the_past_through_the_service_proxy(run: Run, cluster: ProxyingServer, store: Store) -> None:
    past = at(store, API_DIES - 60)[2:]
    done = run("next", "node/worker-1", "-o", "json", *past)
    assert done.code == 0, done.err
    assert "rebuilt from service monitoring/prometheus-operated" in done.err
    assert json.loads(done.out)["items"][0]["pod"] == "api-0"


def test_usage_is_a_statistic_of_a_time(run: Run, cluster: ProxyingServer) -> None:
    done = run("top", "-A", "--usage=prometheus", "--over", "25h", "--stat", "max", "-o", "json")
    assert done.code == 0, done.err
    rows = {row["pod"]: row for row in json.loads(done.out)["items"]}
    assert rows["api-0"]["memoryBytes"] == pytest.approx(GI, rel=0.01)
    assert rows["crunch"]["peakBytes"] > 3 * GI
    assert rows["crunch"]["p99Bytes"] < 3 * GI
    assert json.loads(done.out)["usage"]["origin"] == "Prometheus"
    average = run("top", "-A", "--usage=prometheus", "--over", "25h", "--stat", "avg", "-o", "json")
    rows = {row["pod"]: row for row in json.loads(average.out)["items"]}
    assert rows["crunch"]["memoryBytes"] < 300 * MI


def test_a_fix_takes_the_peak_as_evidence(run: Run, cluster: ProxyingServer) -> None:
    done = run("fix", "pod/api-0", "-n", "shop", "--usage=prometheus", "--over", "25h")
    assert "peak seen: 1019Mi" in done.out, done.err


def test_kills_finds_pods_that_are_gone(run: Run, cluster: ProxyingServer) -> None:
    done = run("kills", "-A", "--prometheus", "auto", "--since", "25h", "-o", "json")
    assert done.code == 0, done.err
    found = [(kill["pod"], kill["mechanism"], kill["confidence"]) for kill in json.loads(done.out)["items"]]
    assert found == [
        ("cache", "kubelet eviction", "likely"),
        ("crunch", "node", "possible"),
        ("api-0", "container limit", "likely"),
    ]


def test_without_a_store_the_rest_of_an_answer_stands(run: Run, cluster: ProxyingServer) -> None:
    cluster.services = []
    done = run("top", "-A", "--usage=prometheus")
    assert done.code == 0
    assert "api-0" in done.out
    assert "memory usage is missing: no service of this cluster is labelled" in done.err


@pytest.mark.parametrize("usage", ["--prometheus=auto", "--usage=prometheus"])
def test_set_warns_of_a_limit_below_the_peak(run: Run, cluster: ProxyingServer, usage: str) -> None:
    limit = ("--limits", "memory=600Mi", "-o", "json", "--over", "25h")
    done = run("set", "pod/api-0", "-n", "shop", *limit, usage)
    assert done.code == 0, done.err
    found = [one["message"] for one in json.loads(done.out)["findings"]]
    assert any("used 1019Mi at most in 25h, more than the new memory limit of 600Mi" in one for one in found)

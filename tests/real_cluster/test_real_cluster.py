"""What is promised of API servers, kept by a real one: `make test-cluster`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_qos.cluster.kube_api import UsageChoice
from kubectl_qos.cluster.live import LiveSource
from kubectl_qos.cluster.source import LIVE, Update
from kubectl_qos.k8s.rbac import TIERS
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport.client import connect
from tests.cluster.following import Followed, wait_for
from tests.real_cluster.conftest import Shop, collection

ROOT = Path(__file__).parents[2]


def test_pods_are_listed_as_stored(shop: Shop) -> None:
    for raw in shop.pod("small", "64Mi"), shop.pod("none"):
        shop.server.create(raw)
    shop.start_pods()
    assert sorted(shop.run("top", "-o", "name").lines) == ["pod/none", "pod/small"]
    rows = json.loads(shop.run("top", "-o", "json").out)["items"]
    classes = {row["pod"]: row["qosClass"] for row in rows}
    stored = {name: shop.read("Pod", name)["status"]["qosClass"] for name in classes}
    assert classes == stored == {"small": "Burstable", "none": "BestEffort"}


def test_a_resize_in_place_and_its_undo(shop: Shop) -> None:
    shop.server.create(shop.pod("web", "64Mi"))
    shop.start_pods()
    with shop.kubelet():
        done = shop.run("set", "pod/web", "--limits=memory=96Mi", "--requests=memory=96Mi", "--yes")
        assert (done.code, shop.memory("web")) == (0, "96Mi"), done.err
        done = shop.run("undo", "--yes")
        assert (done.code, shop.memory("web")) == (0, "64Mi"), done.err
    generation = shop.read("Pod", "web")["metadata"]["generation"]
    assert generation == 3, "each change is one resize, and a dry run none"


def test_a_resize_that_the_server_refuses(shop: Shop) -> None:
    shop.server.create(shop.pod("web", "64Mi"))
    shop.start_pods()
    words = ("set", "pod/web", "--requests=cpu=1,memory=64Mi", "--limits=cpu=1,memory=64Mi", "--yes")
    done = shop.run(*words)
    assert done.code == 1
    assert "Pod QOS Class may not change as a result of resizing" in done.out
    assert shop.read("Pod", "web")["metadata"]["generation"] == 1


def test_a_workload_and_its_undo(shop: Shop) -> None:
    shop.server.create(shop.deployment("web", "64Mi"))

    def requested() -> Any:
        spec = shop.read("Deployment", "web", "apps/v1")["spec"]["template"]["spec"]
        return spec["containers"][0]["resources"]["requests"]["memory"]

    done = shop.run("set", "deploy/web", "--requests=memory=32Mi", "--yes", "--wait=false")
    assert (done.code, requested()) == (0, "32Mi"), done.err
    done = shop.run("undo", "--yes", "--wait=false")
    assert (done.code, requested()) == (0, "64Mi"), done.err


def test_policies_refuse_what_people_write_and_let_controllers_go_on(shop: Shop) -> None:
    shop.server.create(shop.deployment("web", "512"))
    policies = list(yaml.safe_load_all(shop.run("check", "--to-policy").out))
    for raw in policies:
        shop.server.create(raw)
    try:
        naked, owned = shop.pod("naked", "512"), shop.pod("owned", "512")
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "1"}
        owned["metadata"]["ownerReferences"] = [owner]
        # A server begins to ask a new policy after a while.
        wait_for(lambda: shop.server.create(naked, is_tried=True).code == 403)
        wait_for(lambda: bool(shop.server.create(owned, is_tried=True).warnings))
        refused, warned = (shop.server.create(raw, is_tried=True) for raw in (naked, owned))
        assert warned.code == 201
        assert refused.message.partition("QOS")[2] in warned.message
        path = f"{collection(shop.deployment('web', ''))}/web"
        for change, code in (
            ({"spec": {"replicas": 2}}, 200),
            ({"spec": {"template": {"metadata": {"annotations": {"restarted": "now"}}}}}, 200),
            ({"spec": {"template": {"spec": {"priorityClassName": "system-node-critical"}}}}, 403),
        ):
            kind = "application/strategic-merge-patch+json"
            assert shop.server.request("PATCH", path, change, kind).code == code
        shop.server.create(shop.pod("good", "64Mi"))
        shop.start_pods()
        done = shop.run("set", "pod/good", "--limits=memory=768", "--requests=memory=768", "--yes")
        assert (done.code, shop.memory("good")) == (1, "64Mi")
        assert "ValidatingAdmissionPolicy 'kubectl-qos-" in done.err
    finally:
        for raw in policies:
            shop.server.request("DELETE", f"{collection(raw)}/{raw['metadata']['name']}")


def test_what_is_followed_survives_a_restart_of_the_server(shop: Shop) -> None:
    def has(*names: str) -> Callable[[Update], bool]:
        """Whether an update is live and has these pods, beside their neighbours of other namespaces."""

        def is_reached(update: Update) -> bool:
            pods = update.snapshot.pods if update.snapshot is not None else ()
            own = {pod.name for pod in pods if pod.namespace == shop.namespace}
            return update.health is LIVE and own == {*names}

        return is_reached

    shop.server.create(shop.pod("before"))
    connection = connect(ConnectionOptions(kubeconfig=str(shop.run.home / ".kube" / "config")))
    source = LiveSource(connection, usage=UsageChoice.NONE)
    followed = Followed(source.follow(Scope(namespace=shop.namespace)))
    try:
        followed.until(has("before"))
        shop.server.create(shop.pod("meanwhile"))
        followed.until(has("before", "meanwhile"))
        shop.server.stop()
        followed.until(lambda update: update.health.error is not None)
        shop.server.start()
        followed.until(has("before", "meanwhile"))
        shop.server.create(shop.pod("after"))
        followed.until(has("before", "meanwhile", "after"))
    finally:
        followed.end()


def test_rights(shop: Shop) -> None:
    """Each role of docs/rbac is stored, and makes its tier usable for who is bound to it."""

    def tiers() -> dict[str, bool]:
        items = json.loads(shop.run("can-i", "-A", "-o", "json").out)["items"]
        return {item["tier"]: item["access"] == "yes" for item in items}

    shop.run_as("somebody")
    assert not any(tiers().values())
    forbidden = shop.run("top")
    assert forbidden.code == 1
    assert 'User "somebody" cannot list resource "pods"' in forbidden.err
    for tier in TIERS:
        role = yaml.safe_load((ROOT / tier.file).read_text())
        shop.server.create(role)
        group = {"apiGroup": role["apiVersion"].partition("/")[0]}
        binding = {
            "apiVersion": role["apiVersion"],
            "kind": "ClusterRoleBinding",
            "metadata": role["metadata"],
            "roleRef": {**group, "kind": "ClusterRole", "name": role["metadata"]["name"]},
            "subjects": [{**group, "kind": "User", "name": "somebody"}],
        }
        shop.server.create(binding)
    wait_for(lambda: all(tiers().values()), state=lambda: str(tiers()))
    shop.server.create(shop.pod("web", "64Mi"))
    assert shop.run("top", "-o", "name").lines == ["pod/web"]
    shop.run_as("nobody")
    assert not any(tiers().values())


@pytest.mark.parametrize("name", ["a,b", "web=1", "none"])
def test_a_name_is_no_selector(shop: Shop, name: str) -> None:
    done = shop.run("top", name)
    assert done.err.splitlines()[0] == f'Error from server (NotFound): pods "{name}" not found'

"""What is promised of clusters, kept by a real one: `make test-cluster`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kubectl_qos.check.rules import RULES
from kubectl_qos.cluster.kube_api import UsageChoice
from kubectl_qos.cluster.live import LiveSource
from kubectl_qos.cluster.source import LIVE, Update
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.rbac import TIERS
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport.client import connect
from tests.check.test_rules import EXAMPLES
from tests.cluster.following import Followed, wait_for
from tests.real_cluster.clusters import SOON_SECONDS, OwnCluster, collection
from tests.real_cluster.conftest import Shop
from tests.real_cluster.kubelet import HOG

ROOT: Final = Path(__file__).parents[2]
RBAC: Final = "rbac.authorization.k8s.io"
TEMPLATES: Final = ("Deployment", "StatefulSet", "DaemonSet", "CronJob")
TO_96: Final = ("--limits=memory=96Mi", "--requests=memory=96Mi", "--yes")


def limits(shop: Shop, kind: str) -> set[str]:
    """The memory limits that an object, and each pod, has for its container."""
    spec = shop.read(kind, "web")["spec"]
    spec = spec.get("jobTemplate", {}).get("spec", spec)
    pods = [pod["spec"] for pod in shop.pods()] if kind != "CronJob" else []
    specs = [spec.get("template", {}).get("spec", spec), *pods]
    return {item["containers"][0]["resources"]["limits"]["memory"] for item in specs}


def limit(shop: Shop, kind: str) -> str:
    """The limit of `web` and all of its pods."""
    (memory,) = limits(shop, kind)
    return memory


def start(shop: Shop, kind: str, memory: str = "64Mi") -> None:
    """Create `web` of this kind, and wait for its pod."""
    shop.cluster.create(shop.workload(kind, "web", memory))
    shop.wait_until_they_run(0 if kind == "CronJob" else 1)


READS: Final = (
    *("top", "top -o wide", "top nodes", "next", "fix", "kills", "check", "report", "can-i", "version"),
    *("explain pod/web", "tree pod/web", "compare pod/web --to 1.37", "simulate node/NODE --all-at-limit"),
)


@pytest.mark.parametrize("words", READS)
def test_commands_that_read(shop: Shop, words: str) -> None:
    start(shop, "Pod")
    node = shop.read("Pod", "web")["spec"]["nodeName"]
    done = shop.run(*words.replace("NODE", node).split())
    assert done.code == 0, done.err


def test_pods_are_listed_as_stored(shop: Shop) -> None:
    for raw in shop.pod("small", "64Mi"), shop.pod("none"):
        shop.cluster.create(raw)
    shop.wait_until_they_run(2)
    assert sorted(shop.run("top", "-o", "name").lines) == ["pod/none", "pod/small"]
    rows = json.loads(shop.run("top", "-o", "json").out)["items"]
    classes = {row["pod"]: row["qosClass"] for row in rows}
    stored = {name: shop.read("Pod", name)["status"]["qosClass"] for name in classes}
    assert classes == stored == {"small": "Burstable", "none": "BestEffort"}


@pytest.mark.parametrize("kind", ["Pod", *TEMPLATES])
def test_a_change_its_dry_run_and_its_undo(shop: Shop, kind: str) -> None:
    start(shop, kind)
    generation = shop.read(kind, "web")["metadata"]["generation"]
    done = shop.run("set", f"{kind}/web", *TO_96, "--dry-run=server")
    assert (done.code, limit(shop, kind)) == (0, "64Mi"), done.err
    done = shop.run("set", f"{kind}/web", *TO_96)
    assert (done.code, limit(shop, kind)) == (0, "96Mi"), done.err
    done = shop.run("undo", "--yes")
    assert (done.code, limit(shop, kind)) == (0, "64Mi"), done.err
    changes = shop.read(kind, "web")["metadata"]["generation"] - generation
    assert changes == 2, "a change and its undo are one request each"
    assert shop.run("undo", "--list").lines[-1].endswith(" undone")


@pytest.mark.parametrize("kind", ["Pod", *TEMPLATES])
def test_a_fix_of_a_container_that_was_killed(shop: Shop, kind: str) -> None:
    shop.cluster.create(shop.workload(kind, "web", "32Mi", container=HOG))
    if kind == "CronJob":
        uid = shop.read(kind, "web")["metadata"]["uid"]
        job = shop.workload("Job", "web-29000000", "32Mi", container=HOG)
        owner = {"apiVersion": "batch/v1", "kind": kind, "name": "web", "uid": uid, "controller": True}
        job["metadata"]["ownerReferences"] = [owner]
        shop.cluster.create(job)
    shop.wait_until_they_run(1, restarts=1)
    done = shop.run("fix", f"{kind}/web", "--apply", "1", "--yes")
    assert done.code == 0, done.err
    assert Quantity.parse(limit(shop, kind)) > Quantity.parse("32Mi")


def test_a_change_that_does_not_hold(shop: Shop) -> None:
    """It is reverted in the middle of its rollout, while the controller writes the status."""
    raw = shop.workload("Deployment", "web", "64Mi", container=HOG)
    raw["spec"]["replicas"] = 3
    shop.cluster.create(raw)
    shop.wait_until_they_run(3)
    words = ("--limits=memory=40Mi", "--requests=memory=40Mi", "--yes", "--for=2m", "--undo-if=oom")
    done = shop.run("set", "deployment/web", *words)
    assert done.code == 3, done.err
    wait_for(lambda: limits(shop, "Deployment") == {"64Mi"}, SOON_SECONDS)


def test_a_job_has_a_template_that_stays(shop: Shop) -> None:
    start(shop, "Job")
    done = shop.run("set", "job/web", *TO_96)
    assert (done.code, limit(shop, "Job")) == (1, "64Mi")
    assert "recreate" in done.out + done.err


def test_a_resize_that_the_server_refuses(shop: Shop) -> None:
    start(shop, "Pod")
    generation = shop.read("Pod", "web")["metadata"]["generation"]
    done = shop.run("set", "pod/web", "--requests=cpu=1m", "--limits=cpu=1m", "--yes")
    assert done.code == 1
    assert "Pod QOS Class may not change as a result of resizing" in done.out
    assert shop.read("Pod", "web")["metadata"]["generation"] == generation


def test_a_quota(shop: Shop) -> None:
    start(shop, "Pod")
    quota = shop.object("ResourceQuota", "memory", "v1", spec={"hard": {"limits.memory": "80Mi"}})
    shop.cluster.create(quota)
    wait_for(lambda: "used" in shop.read("ResourceQuota", "memory", "v1")["status"])
    done = shop.run("set", "pod/web", *TO_96)
    assert (done.code, limit(shop, "Pod")) == (1, "64Mi")
    assert "exceeded quota: memory" in done.err


def test_a_limit_range(shop: Shop) -> None:
    item = {"type": "Container", "default": {"memory": "64Mi"}, "max": {"memory": "80Mi"}}
    shop.cluster.create(shop.object("LimitRange", "memory", "v1", spec={"limits": [item]}))
    shop.cluster.create(shop.pod("web"))
    shop.wait_until_they_run(1)
    (row,) = json.loads(shop.run("top", "-o", "json").out)["items"]
    assert (row["qosClass"], limit(shop, "Pod")) == ("Burstable", "64Mi")
    done = shop.run("set", "pod/web", *TO_96)
    assert (done.code, limit(shop, "Pod")) == (1, "64Mi")
    assert "maximum memory usage per Container is 80Mi" in done.err


def enforce_policies(shop: Shop, own: OwnCluster) -> tuple[str, str]:
    """Store what `check --to-policy` prints; return what the server says of a naked and an owned pod."""
    for raw in yaml.safe_load_all(shop.run("check", "--to-policy").out):
        shop.create_cluster_wide(raw)
    naked, owned = shop.pod("naked", "512"), shop.pod("owned", "512")
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "1"}
    owned["metadata"]["ownerReferences"] = [owner]
    # A server begins to ask a new policy after a while.
    wait_for(lambda: own.create(naked, is_tried=True).code == 403)
    wait_for(lambda: bool(own.create(owned, is_tried=True).warnings))
    refused, warned = (own.create(raw, is_tried=True) for raw in (naked, owned))
    assert warned.code == 201
    return refused.message, " ".join(warned.warnings)


def test_policies_refuse_what_people_write_and_let_controllers_go_on(shop: Shop, own: OwnCluster) -> None:
    start(shop, "Deployment", "512")
    own.create(shop.pod("good", "64Mi"))
    shop.wait_until_they_run(2)
    refused, warned = enforce_policies(shop, own)
    assert refused.partition("QOS")[2] in warned
    path = f"{collection(shop.object('Deployment', 'web'))}/web"
    for change, code in (
        ({"spec": {"replicas": 2}}, 200),
        ({"spec": {"template": {"metadata": {"annotations": {"restarted": "now"}}}}}, 200),
        ({"spec": {"template": {"spec": {"priorityClassName": "system-node-critical"}}}}, 403),
    ):
        assert own.patch(path, change, kind="strategic-merge").code == code
    done = shop.run("set", "pod/good", "--limits=memory=768", "--requests=memory=768", "--yes")
    memory = shop.read("Pod", "good")["spec"]["containers"][0]["resources"]["limits"]["memory"]
    assert (done.code, memory) == (1, "64Mi")
    assert "ValidatingAdmissionPolicy 'kubectl-qos-" in done.err


def complete(shop: Shop, text: str) -> dict[str, Any]:
    """An example in the shop's namespace, with the other fields that a server requires."""
    raw: dict[str, Any] = yaml.safe_load(text)
    raw["metadata"]["namespace"] = shop.namespace
    spec = raw["spec"]
    if raw["kind"] != "Pod":
        spec["selector"] = {"matchLabels": {"app": "web"}}
        spec["template"].setdefault("metadata", {})["labels"] = {"app": "web"}
        spec = spec["template"]["spec"]
    for container in [*spec.get("initContainers", ()), *spec["containers"]]:
        container.setdefault("image", "app")
    return raw


def test_policies_say_what_check_says(shop: Shop, own: OwnCluster) -> None:
    """For the examples of all rules; what is invalid the server refuses before it asks a policy."""
    enforce_policies(shop, own)
    with_policy = {name for name, rule in RULES.items() if not rule.no_policy}
    judged = set()
    for text in chain.from_iterable(EXAMPLES[rule].values() for rule in with_policy):
        raw = complete(shop, text)
        findings = json.loads(shop.run("check", "-", "-o", "json", given=json.dumps(raw)).out)["items"]
        found = {finding["rule"] for finding in findings}
        reply = own.create(raw, is_tried=True)
        if reply.code == 422:
            assert any(finding["level"] == "error" for finding in findings), reply.message
            continue
        said = set(re.findall(r"QOS\d{3}", " ".join([reply.message, *reply.warnings])))
        assert said == found & with_policy, (text, reply)
        judged |= said
    assert judged == with_policy


def test_what_is_followed(shop: Shop) -> None:
    followed = follow(shop)
    try:
        followed.until(has(shop))
        shop.cluster.create(shop.pod("web", "64Mi"))
        followed.until(has(shop, "web"))
        shop.cluster.request("DELETE", f"{collection(shop.pod('web'))}/web")
        followed.until(has(shop))
    finally:
        followed.end()


def test_what_is_followed_survives_a_restart_of_the_server(shop: Shop, own: OwnCluster) -> None:
    start(shop, "Pod")
    followed = follow(shop)
    try:
        followed.until(has(shop, "web"))
        own.stop()
        followed.until(lambda update: update.health.error is not None)
        own.start()
        followed.until(has(shop, "web"))
        own.create(shop.pod("after"))
        followed.until(has(shop, "after", "web"))
    finally:
        followed.end()


def follow(shop: Shop) -> Followed:
    connection = connect(ConnectionOptions(kubeconfig=str(shop.config)))
    return Followed(LiveSource(connection, usage=UsageChoice.NONE).follow(Scope(namespace=shop.namespace)))


def has(shop: Shop, *names: str) -> Callable[[Update], bool]:
    """Whether an update is live and has these pods, with their neighbours of other namespaces."""

    def is_reached(update: Update) -> bool:
        pods = update.snapshot.pods if update.snapshot is not None else ()
        own = {pod.name for pod in pods if pod.namespace == shop.namespace}
        return update.health is LIVE and own == {*names}

    return is_reached


def binding(
    shop: Shop, account: str, role: str, kind: str = "ClusterRoleBinding", **where: str
) -> dict[str, Any]:
    """What gives a service account a ClusterRole: everywhere, or `namespace=` in one."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": {"name": role, **where},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": shop.namespace}],
    }


@pytest.mark.parametrize(("role", "may_change"), [("view", False), ("edit", True)])
def test_the_roles_of_kubernetes(shop: Shop, role: str, may_change: bool) -> None:
    start(shop, "Deployment")
    shop.run_as(role)
    assert shop.run("top", "-o", "name").code == 1
    shop.cluster.create(binding(shop, role, role, "RoleBinding", namespace=shop.namespace))
    wait_for(lambda: shop.run("top", "-o", "name").code == 0, SOON_SECONDS)
    done = shop.run("set", "deploy/web", *TO_96)
    if may_change:
        assert (done.code, limit(shop, "Deployment")) == (0, "96Mi"), done.err
    else:
        assert (done.code, limit(shop, "Deployment")) == (1, "64Mi")
        assert 'cannot patch resource "deployments"' in done.err


def test_tiers(shop: Shop) -> None:
    """Each role of docs/rbac is stored, and makes its tier usable for who is bound to it."""

    def tiers() -> dict[str, bool]:
        items = json.loads(shop.run("can-i", "-A", "-o", "json").out)["items"]
        return {item["tier"]: item["access"] == "yes" for item in items}

    shop.run_as("somebody")
    assert not any(tiers().values())
    forbidden = shop.run("top")
    assert forbidden.code == 1
    who = f"system:serviceaccount:{shop.namespace}:somebody"
    assert f'User "{who}" cannot list resource "pods"' in forbidden.err
    for tier in TIERS:
        role = yaml.safe_load((ROOT / tier.file).read_text())
        role["metadata"]["name"] = f"{shop.namespace}-{tier.name}"
        shop.create_cluster_wide(role)
        shop.create_cluster_wide(binding(shop, "somebody", role["metadata"]["name"]))
    wait_for(lambda: all(tiers().values()), state=lambda: str(tiers()))
    shop.run_as("nobody")
    assert not any(tiers().values())


@pytest.mark.parametrize("name", ["a,b", "web=1", "none"])
def test_a_name_is_no_selector(shop: Shop, name: str) -> None:
    done = shop.run("top", name)
    assert done.err.splitlines()[0] == f'Error from server (NotFound): pods "{name}" not found'

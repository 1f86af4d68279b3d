"""The cluster of KUBECTL_QOS_TEST_KUBECONFIG, else programs of Kubernetes in PATH or KUBECTL_QOS_TEST_BIN."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import pytest

from tests.cluster.following import wait_for
from tests.end_to_end.command import Run
from tests.real_cluster.clusters import PROGRAMS, SOON_SECONDS, Cluster, OwnCluster, collection
from tests.real_cluster.kubelet import HOG, HOG_BYTES, Kubelet

PREFIX: Final = f"kubectl-qos-test-{token_hex(3)}"
_NUMBERS: Final = count(1)
PAUSE: Final = {"image": "registry.k8s.io/pause:3.10"}
# The first time it takes so much memory that a lower limit ends it, and from then on it sleeps.
SCRIPT: Final = (
    f"test -e /run/once || {{ touch /run/once; dd if=/dev/zero of=/dev/null bs={HOG_BYTES} count=1; }}; "
    "exec sleep 3600"
)
HUNGRY: Final = {
    "image": "registry.k8s.io/e2e-test-images/busybox:1.36.1-1",
    "command": ["sh", "-c", SCRIPT],
    "volumeMounts": [{"name": "run", "mountPath": "/run"}],
}
API_VERSIONS: Final = {"Pod": "v1", "Job": "batch/v1", "CronJob": "batch/v1"}


class Shop:
    """A namespace of its own, and the command with a kubeconfig that leads to it."""

    def __init__(self, cluster: Cluster, host: str, home: Path) -> None:
        self.cluster = cluster
        self.namespace = f"{PREFIX}-{next(_NUMBERS)}"
        self.run = Run(home)
        self._host = host
        self._cluster_wide: list[str] = []
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        self.run_as("")
        # A controller creates the account that a pod needs.
        wait_for(lambda: bool(self.read("ServiceAccount", "default")), SOON_SECONDS)

    def close(self) -> None:
        for path in [*self._cluster_wide, f"/api/v1/namespaces/{self.namespace}"]:
            self.cluster.request("DELETE", path)

    @property
    def config(self) -> Path:
        """The kubeconfig of the command."""
        return self.run.home / ".kube" / "config"

    def run_as(self, account: str) -> None:
        """Let the command be this service account from now on, or else who started the tests."""
        token = ""
        if account:
            raw = self.object("ServiceAccount", account, "v1")
            if not self.read("ServiceAccount", account):
                self.cluster.create(raw)
            path = f"{collection(raw)}/{account}/token"
            token = self.cluster.request("POST", path, {"spec": {}}).body["status"]["token"]
        self.cluster.write_config(self.config, self.namespace, token)

    def object(self, kind: str, name: str, version: str = "", **fields: Any) -> dict[str, Any]:
        version = version or API_VERSIONS.get(kind, "apps/v1")
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}

    def create_cluster_wide(self, raw: dict[str, Any]) -> None:
        """Create an object without a namespace, for this test only."""
        self.cluster.create(raw)
        self._cluster_wide.append(f"{collection(raw)}/{raw['metadata']['name']}")

    def pod(self, name: str, limit: str = "", *, container: str = "app") -> dict[str, Any]:
        """A pod of one container, whose requests are its limits."""
        amounts = {"memory": limit} if limit else {}
        spec = {
            "nodeSelector": {"kubernetes.io/hostname": self._host},
            "terminationGracePeriodSeconds": 1,
            "volumes": [{"name": "run", "emptyDir": {}}],
            "containers": [
                {
                    "name": container,
                    "resources": {"requests": amounts, "limits": amounts},
                    **(HUNGRY if container == HOG else PAUSE),
                }
            ],
        }
        return self.object("Pod", name, spec=spec)

    def workload(self, kind: str, name: str, limit: str, *, container: str = "app") -> dict[str, Any]:
        """A workload of one such pod, or that pod itself; no time of a CronJob comes."""
        pod = self.pod(name, limit, container=container)
        if kind == "Pod":
            return pod
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": pod["spec"]}
        if kind in {"Job", "CronJob"}:
            job = {"template": {**template, "spec": {**pod["spec"], "restartPolicy": "OnFailure"}}}
            spec = job if kind == "Job" else {"schedule": "0 0 30 2 *", "jobTemplate": {"spec": job}}
            return self.object(kind, name, spec=spec)
        more = {"serviceName": name} if kind == "StatefulSet" else {}
        spec = {"selector": {"matchLabels": labels}, "template": template, **more}
        return self.object(kind, name, spec=spec)

    def read(self, kind: str, name: str, version: str = "") -> dict[str, Any]:
        """An object as it is now; empty if there is none."""
        version = version or ("v1" if kind == "ServiceAccount" else "")
        reply = self.cluster.request("GET", f"{collection(self.object(kind, name, version))}/{name}")
        return reply.body if reply.code == 200 else {}

    def pods(self) -> list[dict[str, Any]]:
        """The pods that are not about to go."""
        items = self.cluster.items(f"/api/v1/namespaces/{self.namespace}/pods")
        return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]

    def wait_until_they_run(self, number: int, *, restarts: int = 0) -> None:
        """Wait for that many pods, all ready and restarted that often."""

        def states() -> list[tuple[bool, int]]:
            return [
                (status["ready"], status["restartCount"])
                for pod in self.pods()
                for status in pod["status"].get("containerStatuses", ())
            ]

        wait_for(lambda: states() == [(True, restarts)] * number, SOON_SECONDS, lambda: str(self.pods()))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if given := os.environ.get("KUBECTL_QOS_TEST_KUBECONFIG"):
        yield Cluster(Path(given).expanduser())
        return
    path = os.pathsep.join([os.environ.get("KUBECTL_QOS_TEST_BIN", ""), os.environ["PATH"]])
    programs = {name: shutil.which(name, path=path) for name in PROGRAMS}
    missing = [name for name, program in programs.items() if program is None]
    if missing:
        pytest.skip(
            f"{', '.join(missing)} not found: name their folder in KUBECTL_QOS_TEST_BIN,"
            " or a cluster: make test-cluster KUBECONFIG=FILE"
        )
    own = OwnCluster(tmp_path_factory.mktemp("cluster"), {name: str(programs[name]) for name in PROGRAMS})
    try:
        own.launch()
        yield own
    finally:
        own.close()


@pytest.fixture(scope="session")
def host(cluster: Cluster) -> Iterator[str]:
    """The hostname of a node that takes pods; in a cluster without nodes, of one that is played."""
    nodes = cluster.items("/api/v1/nodes")
    if not nodes:
        kubelet = Kubelet(cluster, PREFIX)
        kubelet.start()
        try:
            yield PREFIX
            if not isinstance(cluster, OwnCluster):
                wait_for(lambda: not _namespaces(cluster), SOON_SECONDS, lambda: str(_namespaces(cluster)))
        finally:
            kubelet.end()
        return
    for node in nodes:
        states = {state["type"]: state["status"] for state in node["status"]["conditions"]}
        labels = node["metadata"]["labels"]
        is_free = not node["spec"].get("taints") and not node["spec"].get("unschedulable")
        if states.get("Ready") == "True" and is_free and labels["kubernetes.io/os"] == "linux":
            yield labels["kubernetes.io/hostname"]
            return
    pytest.fail("no node is ready, runs Linux and is without taints: the tests need one")


def _namespaces(cluster: Cluster) -> list[str]:
    names = [item["metadata"]["name"] for item in cluster.items("/api/v1/namespaces")]
    return [name for name in names if name.startswith(PREFIX)]


@pytest.fixture
def shop(cluster: Cluster, host: str, tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(cluster, host, tmp_path)
    try:
        yield shop
    finally:
        shop.close()


@pytest.fixture
def own(cluster: Cluster, request: pytest.FixtureRequest) -> OwnCluster:
    """The cluster, for a test that may only run where nobody else has something."""
    if not isinstance(cluster, OwnCluster):
        pytest.skip(
            "it stops the API server or has policies for all namespaces: only in a cluster of its own"
        )
    return cluster

"""A cluster that can be changed, with a kubelet and a controller that do at once what they are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cluster.changing_server import ChangingServer, workload
from tests.cluster.cluster_objects import node, pod
from tests.cluster.https_server import HttpsServer
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.serving import Serve
from tests.end_to_end.command import Done, Run

SMALL = {"requests": {"memory": "64Mi"}, "limits": {"memory": "128Mi"}}


def settle(raw: dict[str, Any]) -> None:
    """The status of an object whose spec is done."""
    if raw["kind"] == "Pod":
        states = [
            {
                "name": one["name"],
                "state": {"running": {}},
                "resources": one["resources"],
                "allocatedResources": one["resources"].get("requests", {}),
            }
            for one in raw["spec"]["containers"]
        ]
        raw["status"] = {**raw["status"], "containerStatuses": states}
    elif raw["kind"] == "Deployment":
        count = raw["spec"]["replicas"]
        names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
        raw["status"] = {"observedGeneration": 99, **dict.fromkeys(names, count)}


class Cluster:
    """One node with the pods `alone` and `best` (BestEffort), and two like them of the Deployment `web`."""

    def __init__(self, serve: Serve, run: Run, *, context: str = "test", token: str = "admin") -> None:
        owned = pod("owned", request="64Mi", limit="128Mi")
        owned["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "uid-of-web-1"}
            | {"controller": True}
        ]
        owned_best = pod("owned-best")
        owned_best["metadata"]["ownerReferences"] = owned["metadata"]["ownerReferences"]
        self.objects = ChangingServer(
            pods=[pod("alone", request="64Mi", limit="128Mi"), owned, pod("best"), owned_best],
            nodes=[node("worker-1")],
            workloads=[
                workload("Deployment", "web", SMALL, replicas=2),
                workload("ReplicaSet", "web-1", SMALL, replicas=2, owner="Deployment/web"),
                workload("Job", "once", SMALL),
            ],
        )
        self.objects.mutate = settle
        self.server: HttpsServer = serve(self.objects)
        self.run = run
        self.use(context, token)

    def use(self, context: str = "test", token: str = "admin") -> None:
        """Another name for it, or another user."""
        config = kubeconfig(self.server, namespace="shop", context=context, user={"token": token})
        write(self.run.home / ".kube" / "config", config)

    def __call__(self, *arguments: str | Path) -> Done:
        return self.run(*arguments)

    def settings(self, text: str) -> None:
        path = self.run.home / ".config" / "kubectl-qos" / "config.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def memory(self, kind: str, name: str) -> Any:
        spec = self.objects.find(kind, name)["spec"]
        spec = spec if kind == "Pod" else spec["template"]["spec"]
        return spec["containers"][0]["resources"].get("requests", {}).get("memory")

    @property
    def sent(self) -> list[str]:
        """What was sent that is no question: `dry` or `real`, in order."""
        assert {request.method for request in self.server.requests} <= {"GET", "PATCH"}
        return ["dry" if request.query.get("dryRun") else "real" for request in self.objects.patches]

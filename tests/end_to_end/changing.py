"""A cluster that can be changed, with a kubelet and a controller that do at once what they have to."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from tests.cluster.changing_server import ChangingServer, Fault, once, reference, workload
from tests.cluster.cluster_objects import metrics, node, pod
from tests.cluster.https_server import HttpsServer, Request
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import status
from tests.cluster.serving import Serve

SMALL = {"requests": {"memory": "64Mi"}, "limits": {"memory": "128Mi"}}
QUOTA: Final = {
    "kind": "ResourceQuota",
    "metadata": {"name": "q", "namespace": "shop"},
    "spec": {"hard": {"requests.memory": "100Mi"}},
    "status": {"hard": {"requests.memory": "100Mi"}, "used": {"requests.memory": "90Mi"}},
}


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
    """One node with the pods `alone` and `best` (BestEffort), and two like them of the Deployment `web`.

    A transcript calls it as the program `server`: `sent` shows what came since the last time, `memory POD`
    what is stored; `set`, `recreate` and `delete` are changes of somebody else; `is HOW` says how it
    answers from now on; `new` is another one without any history, and `moved` another one with it.
    """

    def __init__(self, home: Path, serve: Serve, context: str = "test") -> None:
        self._home, self._serve, self._context = home, serve, context
        self._programs: Mapping[str, Callable[..., str | None]] = {
            "sent": self._sent,
            "memory": lambda *names: "".join(f"{name} {self.memory(name)}\n" for name in names),
            "set": self._set,
            "recreate": lambda name: self.objects.recreate(*_kind_and_name(name)),
            "delete": lambda name: self.objects.delete(*_kind_and_name(name)),
            "is": lambda how: self._behaviours[how](),
            "new": self._new,
            "moved": self._moved,
        }
        no = status(403, "Forbidden", 'pods "alone" is forbidden: exceeded quota: q')
        self._behaviours: Mapping[str, Callable[[], None]] = {
            "lost-at-the-write": lambda: self._fail(once(Fault(applies=False))),
            "refusing-the-write": lambda: self._fail(once(Fault(applies=False, answer=no))),
            "refusing": lambda: self._fail(lambda _: Fault(applies=False, answer=no)),
            "overtaken": lambda: self._fail(self._overtake),
            "capping": self._cap,
            "never-done": lambda: setattr(self.objects, "mutate", lambda _: None),
            "measured": lambda: setattr(self.objects, "metrics", [metrics("alone", "50Mi")]),
            "short-of-quota": lambda: self.objects.limits.append(QUOTA),
        }
        self._moved()

    def __call__(self, program: str, *words: str) -> str:
        return self._programs[program](*words) or ""

    def ids(self) -> dict[str, str]:
        """The ids of the changes in the history, as transcripts have them."""
        history = self._home / ".local/state/kubectl-qos/history.jsonl"
        entries = map(json.loads, history.read_text().splitlines() if history.exists() else ())
        found = dict.fromkeys(entry["id"] for entry in entries)
        return {id_: f"CHANGE-{number}" for number, id_ in enumerate(found, 1)}

    def everywhere_the_same(self, line: str) -> str:
        """Without ports, times, ages and ids."""
        for id_, name in self.ids().items():
            line = line.replace(id_, name).replace(id_.rpartition("-")[2], name)
        line = re.sub(r"(?<=CHANGE-\d   )\d+s +", "AGE   ", line)
        line = re.sub(r'(?<="time": )".*"', '"TIME"', line)
        line = re.sub(r"\S+(?= old: growth since then)", "AGE", line)
        line = re.sub(r"(?<=qos undo )[0-9a-f]{8}$", "CHANGE-0", line)
        return re.sub(r"127\.0\.0\.1:\d{4,}", "127.0.0.1:PORT", line)

    def memory(self, name: str) -> Any:
        """What the container of `pod/alone` requests."""
        spec = self.objects.find(*_kind_and_name(name))["spec"]
        spec = spec.get("template", {}).get("spec", spec)
        return spec["containers"][0]["resources"].get("requests", {}).get("memory")

    def sent(self) -> list[str]:
        """What was sent that is no question, in order."""
        assert {request.method for request in self.server.requests} <= {"GET", "PATCH"}
        return ["dry run" if request.query.get("dryRun") else "write" for request in self.objects.patches]

    def _sent(self) -> str:
        if not self.server.requests:
            return "nothing is requested\n"
        places = [request.path.rpartition("/shop/")[2] for request in self.objects.patches]
        bodies = [request.body.decode() for request in self.objects.patches]
        lines = [" ".join(row) for row in zip(self.sent(), places, bodies, strict=True)]
        self.server.requests.clear()
        self.objects.patches.clear()
        return "\n".join([*(lines or ["only read"]), ""])

    def _set(self, name: str, memory: str) -> None:
        kind, name = _kind_and_name(name)
        spec = {"containers": [{"name": "app", "resources": {"requests": {"memory": memory}}}]}
        self.objects.edit(kind, name, {"spec": spec if kind == "Pod" else {"template": {"spec": spec}}})

    def _fail(self, decide: Callable[[Request], Fault | None]) -> None:
        self.objects.fault = decide

    def _overtake(self, request: Request) -> None:
        """Somebody else sets the same value between the dry run and the write."""
        if not request.query.get("dryRun"):
            self._set("pod/alone", "70Mi")

    def _cap(self) -> None:
        def mutate(raw: dict[str, Any]) -> None:
            raw["spec"]["containers"][0]["resources"]["requests"]["memory"] = "80Mi"
            settle(raw)

        self.objects.mutate = mutate
        self.objects.warnings = ["a webhook was here"]

    def _new(self) -> None:
        state = self._home / ".local/state"
        shutil.rmtree(state) if state.is_dir() else state.unlink(missing_ok=True)
        (self._home / ".config/kubectl-qos/config.yaml").unlink(missing_ok=True)
        self._moved()

    def _moved(self) -> None:
        pods = [pod("alone", request="64Mi", limit="128Mi"), pod("owned", request="64Mi", limit="128Mi")]
        pods += [pod("best"), pod("owned-best")]
        for owned in pods[1::2]:
            owned["metadata"]["ownerReferences"] = [reference("ReplicaSet/web-1")]
            owned["metadata"]["labels"] = {"pod-template-hash": "1"}
        self.objects = ChangingServer(
            pods=pods,
            nodes=[node("worker-1")],
            workloads=[
                workload("Deployment", "web", SMALL, replicas=2),
                workload("ReplicaSet", "web-1", SMALL, replicas=2, owner="Deployment/web"),
                workload("Job", "once", SMALL),
            ],
        )
        self.objects.mutate = settle
        self.server: HttpsServer = self._serve(self.objects)
        config = kubeconfig(self.server, namespace="shop", context=self._context)
        config["contexts"].append({**config["contexts"][0], "name": "elsewhere"})
        write(self._home / ".kube" / "config", config)


def _kind_and_name(text: str) -> tuple[str, str]:
    kind, _, name = text.partition("/")
    return kind.capitalize(), name

"""A real API server with its etcd on loopback; what a kubelet and controllers do is played."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.cluster.certificates import Authority
from tests.cluster.cluster_objects import node
from tests.cluster.following import wait_for
from tests.cluster.kubeconfigs import inline, kubeconfig, write
from tests.end_to_end.command import Run

PROGRAMS: Final = ("etcd", "kube-apiserver")
USERS: Final = {"admin": "system:masters", "somebody": "people", "nobody": "people"}
SOON_SECONDS: Final = 60
_NUMBERS = count(1)


class Reply(NamedTuple):
    """What the server answers a request; `message` is that of its Status, or its warnings."""

    code: int
    body: dict[str, Any]
    warnings: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        return str(self.body.get("message", "")) or " ".join(self.warnings)


class ApiServer:
    """kube-apiserver with its etcd; `start` and `stop` are those of the API server alone."""

    def __init__(self, folder: Path, programs: Mapping[str, str]) -> None:
        self.port, client, peer = _free_ports(3)
        self._folder = folder
        self._authority = Authority()
        self._context = self._authority.trusted()
        certificate, key = self._authority.server("127.0.0.1").write(folder, "server")
        tokens = folder / "tokens.csv"
        tokens.write_text("".join(f'{name},{name},{name},"{group}"\n' for name, group in USERS.items()))
        etcd, peers = (f"http://127.0.0.1:{port}" for port in (client, peer))
        self._etcd = self._run(
            *(programs["etcd"], f"--data-dir={folder}/etcd", "--unsafe-no-fsync"),
            *(f"--listen-client-urls={etcd}", f"--advertise-client-urls={etcd}"),
            *(f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}"),
            f"--initial-cluster=default={peers}",
        )
        self._words = (
            *(programs["kube-apiserver"], f"--etcd-servers={etcd}", "--bind-address=127.0.0.1"),
            *(
                f"--secure-port={self.port}",
                f"--tls-cert-file={certificate}",
                f"--tls-private-key-file={key}",
            ),
            *(f"--service-account-key-file={certificate}", f"--service-account-signing-key-file={key}"),
            "--service-account-issuer=https://kubernetes.default.svc",
            *("--service-cluster-ip-range=10.0.0.0/16", f"--token-auth-file={tokens}"),
            # A controller would make the account that pods need.
            *("--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount"),
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Return once it is ready; the log is what a failure shows."""
        self._process = self._run(*self._words)
        wait_for(self._is_ready, SOON_SECONDS, (self._folder / "kube-apiserver.log").read_text)

    def stop(self) -> None:
        if self._process is not None:
            _end(self._process)
        self._process = None

    def close(self) -> None:
        self.stop()
        _end(self._etcd)

    def request(self, method: str, path: str, body: object = None, kind: str = "application/json") -> Reply:
        """Answer of a request by the administrator."""
        headers = {"Authorization": "Bearer admin", "Content-Type": kind}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=SOON_SECONDS) as answer:
                warnings = tuple(answer.headers.get_all("Warning") or ())
                return Reply(answer.status, json.loads(answer.read()), warnings)
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, json.loads(error.read()))

    def create(self, raw: Mapping[str, Any], *, is_tried: bool = False) -> Reply:
        """Create an object, in a dry run if it `is_tried`, whose answer may be a refusal."""
        path = f"{collection(raw)}?fieldValidation=Strict{'&dryRun=All' if is_tried else ''}"
        reply = self.request("POST", path, raw)
        assert is_tried or reply.code == 201, reply.message
        return reply

    def write_status(self, raw: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        path = f"{collection(raw)}/{raw['metadata']['name']}/status"
        reply = self.request("PATCH", path, {"status": status}, "application/merge-patch+json")
        assert reply.code == 200, reply.message

    def write_config(self, path: Path, user: str, namespace: str) -> None:
        """Write a kubeconfig of a user."""
        cluster = {"certificate-authority-data": inline(self._authority.certificate)}
        url = f"https://127.0.0.1:{self.port}"
        write(path, kubeconfig(url, user={"token": user}, cluster=cluster, namespace=namespace))

    def _is_ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            pytest.fail((self._folder / "kube-apiserver.log").read_text()[-2000:])
        try:
            url = f"https://127.0.0.1:{self.port}/readyz"
            urllib.request.urlopen(url, context=self._context, timeout=SOON_SECONDS).close()
        except OSError:
            return False
        return True

    def _run(self, program: str, *words: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{Path(program).name}.log").open("ab") as log:
            return subprocess.Popen([program, *words], stdout=log, stderr=log, cwd=self._folder)


def collection(raw: Mapping[str, Any]) -> str:
    """The path of an object's list."""
    version, kind, metadata = raw["apiVersion"], raw["kind"], raw["metadata"]
    plural = f"{kind.lower()}s" if not kind.endswith("y") else f"{kind.lower()[:-1]}ies"
    namespace = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"/{'apis' if '/' in version else 'api'}/{version}{namespace}/{plural}"


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(SOON_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_ports(number: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    try:
        return [listener.getsockname()[1] for listener in listeners]
    finally:
        for listener in listeners:
            listener.close()


class Shop:
    """A namespace of its own, and the command with a kubeconfig that leads to it."""

    def __init__(self, server: ApiServer, home: Path) -> None:
        self.server = server
        self.namespace = f"shop-{next(_NUMBERS)}"
        self._home = home
        metadata = {"name": self.namespace}
        server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        self.run_as("admin")
        self.run = Run(home)

    def run_as(self, user: str) -> None:
        """Let the command be this user from now on."""
        self.server.write_config(self._home / ".kube" / "config", user, self.namespace)

    def object(self, kind: str, name: str, version: str = "v1", **fields: Any) -> dict[str, Any]:
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}

    def pod(self, name: str, limit: str = "", **spec: Any) -> dict[str, Any]:
        """A pod on the node, with one container."""
        container = {"name": "app", "image": "app", "resources": {}}
        if limit:
            container["resources"] = {"requests": {"memory": limit}, "limits": {"memory": limit}}
        return self.object("Pod", name, spec={"nodeName": "worker-1", "containers": [container], **spec})

    def deployment(self, name: str, limit: str) -> dict[str, Any]:
        template = {"metadata": {"labels": {"app": name}}, "spec": self.pod(name, limit)["spec"]}
        del template["spec"]["nodeName"]
        selector = {"matchLabels": {"app": name}}
        spec = {"replicas": 1, "selector": selector, "template": template}
        return self.object("Deployment", name, "apps/v1", spec=spec)

    def read(self, kind: str, name: str, version: str = "v1") -> dict[str, Any]:
        return self.server.request("GET", f"{collection(self.object(kind, name, version))}/{name}").body

    def memory(self, name: str) -> Any:
        """The memory limit of a pod's container."""
        return self.read("Pod", name)["spec"]["containers"][0]["resources"]["limits"]["memory"]

    def start_pods(self) -> None:
        """Do what a kubelet does: pods run with the values that their spec has."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        for raw in self.server.request("GET", path).body["items"]:
            states = [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": "",
                    "restartCount": 0,
                    "ready": True,
                    "state": {"running": {}},
                    "resources": container["resources"],
                    "allocatedResources": container["resources"].get("requests", {}),
                }
                for container in raw["spec"]["containers"]
            ]
            status = {"phase": "Running", "containerStatuses": states, "conditions": []}
            status["observedGeneration"] = raw["metadata"]["generation"]
            self.server.write_status({**raw, "apiVersion": "v1", "kind": "Pod"}, status)

    @contextmanager
    def kubelet(self) -> Iterator[None]:
        """Do it again and again."""
        ending = threading.Event()

        def work() -> None:
            while not ending.wait(0.1):
                self.start_pods()

        worker = threading.Thread(target=work)
        worker.start()
        try:
            yield
        finally:
            ending.set()
            worker.join()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    path = os.pathsep.join([os.environ.get("KUBECTL_QOS_TEST_BIN", ""), os.environ["PATH"]])
    programs = {name: shutil.which(name, path=path) for name in PROGRAMS}
    missing = [name for name, program in programs.items() if program is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not found: name their folder in KUBECTL_QOS_TEST_BIN")
    started = ApiServer(tmp_path_factory.mktemp("server"), {name: str(programs[name]) for name in PROGRAMS})
    try:
        started.start()
        raw = node()
        started.create({**raw, "status": {}})
        started.write_status(raw, raw["status"])
        yield started
    finally:
        started.close()


@pytest.fixture
def shop(server: ApiServer, tmp_path: Path) -> Shop:
    return Shop(server, tmp_path)

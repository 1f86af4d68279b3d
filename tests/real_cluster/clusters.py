"""The cluster of these tests: one that somebody names, or programs of Kubernetes, started on loopback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from kubectl_qos.errors import QosError
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport.client import ApiRequest, connect
from kubectl_qos.transport.kubeconfig import resolve_context
from tests.cluster.certificates import Authority
from tests.cluster.following import wait_for
from tests.cluster.kubeconfigs import inline, kubeconfig, write

PROGRAMS: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
SOON_SECONDS: Final = 120
PATIENCE_SECONDS: Final = 5
"""For a program to end; an API server would wait a minute for whoever watches."""


class Reply(NamedTuple):
    """What the server answers a request; `message` is that of its Status."""

    code: int
    body: dict[str, Any]
    warnings: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


class Cluster:
    """The cluster of a kubeconfig's current context, as its user."""

    def __init__(self, path: Path) -> None:
        options = ConnectionOptions(kubeconfig=str(path))
        self._context = resolve_context(options)
        self._connection = connect(options)

    def close(self) -> None:
        """Leave it as it was."""

    def request(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> Reply:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json", "Content-Type": content_type}
        url = self._connection._url(path, ())
        response = self._connection._respond(ApiRequest(method, url, headers, data))
        text = response.read(decode_content=True)
        response.release_conn()
        answer = json.loads(text) if text.startswith(b"{") else {"message": text.decode()}
        return Reply(response.status, answer, tuple(response.headers.getlist("Warning")))

    def create(self, raw: Mapping[str, Any], *, is_tried: bool = False) -> Reply:
        """Create an object, in a dry run if it `is_tried`, whose answer may be a refusal."""
        path = f"{collection(raw)}?fieldValidation=Strict{'&dryRun=All' if is_tried else ''}"
        reply = self.request("POST", path, raw)
        assert is_tried or reply.code == 201, reply.message
        return reply

    def items(self, path: str) -> list[dict[str, Any]]:
        """What a list has."""
        reply = self.request("GET", path)
        assert reply.code == 200, reply.message
        items: list[dict[str, Any]] = reply.body["items"]
        return items

    def patch(self, path: str, body: Mapping[str, Any], *, kind: str = "merge") -> Reply:
        return self.request("PATCH", path, body, f"application/{kind}-patch+json")

    def write_config(self, path: Path, namespace: str, token: str = "") -> None:
        """Write a kubeconfig of its user, or of whose token this is."""
        user: dict[str, Any] = {"token": token} if token else dict(self._context.user)
        if plugin := user.get("exec"):
            # A plugin finds what it needs in the environment, of which a command of these tests has nothing.
            own = [{"name": name, "value": value} for name, value in os.environ.items()]
            user["exec"] = {**plugin, "env": [*own, *(plugin.get("env") or ())]}
        cluster = dict(self._context.cluster)
        write(path, kubeconfig(cluster["server"], user=user, cluster=cluster, namespace=namespace))


class OwnCluster(Cluster):
    """An API server, which `start` and `stop` are about, with etcd, controllers and a scheduler."""

    def __init__(self, folder: Path, programs: Mapping[str, str]) -> None:
        port, client, peer = _free_ports(3)
        self._folder = folder
        self._programs = programs
        authority = Authority()
        certificate, key = authority.server("127.0.0.1").write(folder, "server")
        tokens = folder / "tokens.csv"
        tokens.write_text('admin,admin,admin,"system:masters"\n')
        trust = {"certificate-authority-data": inline(authority.certificate)}
        config = write(folder / "config", kubeconfig(f"https://127.0.0.1:{port}", cluster=trust))
        super().__init__(config)
        etcd, peers = (f"http://127.0.0.1:{number}" for number in (client, peer))
        common = (f"--kubeconfig={config}", "--leader-elect=false", "--secure-port=0")
        self._arguments = {
            "etcd": (
                *(f"--data-dir={folder}/etcd", "--unsafe-no-fsync", f"--listen-client-urls={etcd}"),
                *(f"--advertise-client-urls={etcd}", f"--listen-peer-urls={peers}"),
                *(f"--initial-advertise-peer-urls={peers}", f"--initial-cluster=default={peers}"),
            ),
            "kube-apiserver": (
                *(f"--etcd-servers={etcd}", "--bind-address=127.0.0.1", f"--secure-port={port}"),
                *(f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}"),
                *(f"--service-account-key-file={certificate}", f"--service-account-signing-key-file={key}"),
                "--service-account-issuer=https://kubernetes.default.svc",
                *("--service-cluster-ip-range=10.0.0.0/16", f"--token-auth-file={tokens}"),
                "--authorization-mode=RBAC",
            ),
            "kube-controller-manager": (*common, f"--service-account-private-key-file={key}"),
            "kube-scheduler": common,
        }
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def launch(self) -> None:
        """Start everything."""
        self._run("etcd")
        self.start()
        self._run("kube-controller-manager")
        self._run("kube-scheduler")

    def start(self) -> None:
        """Return once it is ready; the log is what a failure shows."""
        self._run("kube-apiserver")
        wait_for(self._is_ready, SOON_SECONDS, self._log("kube-apiserver").read_text)

    def stop(self, name: str = "kube-apiserver") -> None:
        process = self._running.pop(name)
        process.terminate()
        try:
            process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def close(self) -> None:
        for name in list(self._running)[::-1]:
            self.stop(name)

    def _is_ready(self) -> bool:
        if self._running["kube-apiserver"].poll() is not None:
            pytest.fail(self._log("kube-apiserver").read_text()[-2000:])
        try:
            return self.request("GET", "/readyz").code == 200
        except QosError:
            return False

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _run(self, name: str) -> None:
        words = [self._programs[name], *self._arguments[name]]
        with self._log(name).open("ab") as log:
            self._running[name] = subprocess.Popen(words, stdout=log, stderr=log, cwd=self._folder)


def collection(raw: Mapping[str, Any]) -> str:
    """The path of an object's list."""
    version, kind, metadata = raw["apiVersion"], raw["kind"], raw["metadata"]
    plural = f"{kind.lower()}s" if not kind.endswith("y") else f"{kind.lower()[:-1]}ies"
    namespace = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"/{'apis' if '/' in version else 'api'}/{version}{namespace}/{plural}"


def _free_ports(number: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    try:
        return [listener.getsockname()[1] for listener in listeners]
    finally:
        for listener in listeners:
            listener.close()

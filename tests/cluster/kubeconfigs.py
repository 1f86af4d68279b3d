"""Kubeconfig files for the servers of these tests."""

import base64
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.https_server import HttpsServer


def kubeconfig(
    server: HttpsServer | str,
    *,
    user: dict[str, Any] | None = None,
    cluster: dict[str, Any] | None = None,
    namespace: str | None = None,
    context: str = "test",
) -> dict[str, Any]:
    """A kubeconfig with one context; the server's own CA is inline unless `cluster` says otherwise."""
    entry: dict[str, Any] = {"server": server if isinstance(server, str) else server.url}
    if cluster is not None:
        entry |= cluster
    elif isinstance(server, HttpsServer):
        entry["certificate-authority-data"] = inline(server.authority.certificate)
    of_context = {"cluster": f"{context}-cluster", "user": f"{context}-user"}
    if namespace is not None:
        of_context["namespace"] = namespace
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": f"{context}-cluster", "cluster": entry}],
        "users": [{"name": f"{context}-user", "user": {"token": "admin"} if user is None else user}],
        "contexts": [{"name": context, "context": of_context}],
    }


def write(path: Path, config: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(config))
    return path


def inline(data: bytes) -> str:
    """Bytes as `...-data` fields hold them."""
    return base64.b64encode(data).decode()

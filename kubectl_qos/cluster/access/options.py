"""What the command line says about a connection, and how it overrides a kubeconfig: by kubectl's rules.

Source: k8s.io/client-go/tools/clientcmd/client_config.go (getCluster, getAuthInfo) and overrides.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """The flags; None, an empty text and False are not given, as in client-go."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    cluster: str | None = None
    user: str | None = None
    server: str | None = None
    token: str | None = None
    username: str | None = None
    password: str | None = None
    as_user: str | None = None
    as_uid: str | None = None
    as_groups: tuple[str, ...] = ()
    certificate_authority: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None
    tls_server_name: str | None = None
    request_timeout: str | None = None
    insecure_skip_tls_verify: bool = False
    disable_compression: bool = False

    def on_cluster(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """A kubeconfig's cluster with the flags over it.

        What is said of trust replaces all that the kubeconfig says of it, and another server is not expected
        to have the name of the kubeconfig's.
        """
        changed = dict(entry)
        if self.insecure_skip_tls_verify or self.certificate_authority:
            for name in ("insecure-skip-tls-verify", "certificate-authority", "certificate-authority-data"):
                changed.pop(name, None)
        if self.server:
            changed.pop("tls-server-name", None)
        given = {
            "server": self.server,
            "certificate-authority": self.certificate_authority,
            "insecure-skip-tls-verify": self.insecure_skip_tls_verify,
            "tls-server-name": self.tls_server_name,
            "disable-compression": self.disable_compression,
        }
        return changed | {name: value for name, value in given.items() if value}

    def on_user(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """A kubeconfig's user with the flags over it.

        A token replaces a token file too, where client-go goes on reading the file and forgets the flag.
        """
        changed = dict(entry)
        if self.token:
            changed.pop("tokenFile", None)
        if self.client_certificate:
            changed.pop("client-certificate-data", None)
        if self.client_key:
            changed.pop("client-key-data", None)
        given = {
            "token": self.token,
            "username": self.username,
            "password": self.password,
            "client-certificate": self.client_certificate,
            "client-key": self.client_key,
            "as": self.as_user,
            "as-uid": self.as_uid,
            "as-groups": list(self.as_groups),
        }
        return changed | {name: value for name, value in given.items() if value}

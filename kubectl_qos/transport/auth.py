"""Authentication: tokens, token files, passwords, client certificates, impersonation.

Not here: running plugins (exec_plugin.py), renewing OIDC tokens (oidc.py).

Source: k8s.io/client-go/tools/clientcmd/client_config.go, transport/round_trippers.go and token_source.go.
"""

from __future__ import annotations

import base64
import re
import threading
import time
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote

from kubectl_qos.errors import QosError
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.exec_plugin import ExecPlugin
from kubectl_qos.transport.kubeconfig import Entry, ResolvedContext
from kubectl_qos.transport.tls import KeyPair, read_pem

FILE_SECONDS: Final = 60.0
"""How long the content of a file is used before the file is read again."""

_REMOVED_PROVIDERS: Final = {
    "gcp": (
        '"gke-gcloud-auth-plugin"',
        "https://cloud.google.com/blog/products/containers-kubernetes/kubectl-auth-changes-in-gke",
    ),
    "azure": (
        "https://github.com/Azure/kubelogin",
        "https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins",
    ),
}


class Credentials(Protocol):
    """What a connection sends of a user; used by several threads."""

    def authorization(self) -> str:
        """The Authorization header, empty for none; renewed if it has expired. Raises QosError."""

    def pair(self) -> KeyPair | None:
        """The client certificate. Raises QosError."""

    def renew(self, refused: str) -> bool:
        """Whether there are others to send to a server that answered 401 to this header. Raises QosError."""


def load_credentials(context: ResolvedContext, *, secure: bool) -> Credentials:
    """The credentials of the context's user; plugins run here for the first time. Raises QosError.

    Over plain HTTP none are sent and plugins are not run. A token, a password or a certificate, of the user
    entry or of flags, comes before a plugin.
    """
    user: Entry = context.user if secure else {}
    log.log(log.DECISIONS, f"credentials: {auth_method(user)}")
    static = _StaticCredentials(user)
    if user.get("exec") and not (static.authorization() or static.pair()):
        return ExecPlugin(context)
    provider = user.get("auth-provider")
    if provider is None:
        return static
    name = provider.get("name") or ""
    if name in _REMOVED_PROVIDERS:
        replacement, url = _REMOVED_PROVIDERS[name]
        raise QosError(
            f"The {name} auth plugin has been removed. Please use the {replacement} kubectl/client-go"
            f" credential plugin instead. See {url} for further details"
        )
    if name != "oidc":
        raise QosError(f'no Auth Provider found for name "{name}"')
    from kubectl_qos.transport.oidc import OidcTokens

    tokens = OidcTokens(context, static.pair())
    return static if static.authorization() else tokens


def auth_method(user: Entry) -> str:
    """The kinds of credentials in a user entry, in order of precedence; nothing of their content."""
    kinds = {
        "a token": user.get("token") or user.get("tokenFile"),
        "a password": user.get("username") or user.get("password"),
        "a client certificate": user.get("client-certificate") or user.get("client-certificate-data"),
        "an exec plugin": user.get("exec"),
        "an auth provider": user.get("auth-provider"),
    }
    return " and ".join(kind for kind, value in kinds.items() if value) or "none"


def impersonation_headers(user: Entry) -> list[tuple[str, str]]:
    """The headers by which a user acts as another one; names may repeat."""
    if not user.get("as"):
        return []
    headers = [("Impersonate-User", user["as"])]
    if user.get("as-uid"):
        headers.append(("Impersonate-Uid", user["as-uid"]))
    headers += [("Impersonate-Group", group or "") for group in user.get("as-groups") or ()]
    for key, values in (user.get("as-user-extra") or {}).items():
        # Servers unescape what the name of a header cannot hold.
        name = re.sub(r"[^-!#$&'*+.^_`|~0-9A-Za-z]+", lambda part: quote(part[0], safe=""), str(key))
        headers += [(f"Impersonate-Extra-{name}", value or "") for value in values or ()]
    return headers


class _StaticCredentials:
    """A token, a token file, a password or a client certificate; files are read again."""

    def __init__(self, user: Entry) -> None:
        self._user = user
        self._token = user.get("token") or ""
        self._lock = threading.Lock()
        self._read()
        self._read_at = time.monotonic()

    def authorization(self) -> str:
        with self._lock:
            self._read_again(FILE_SECONDS)
            if self._token:
                return f"Bearer {self._token}"
        name, password = self._user.get("username") or "", self._user.get("password") or ""
        if name or password:
            return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()
        return ""

    def pair(self) -> KeyPair | None:
        return self._pair

    def renew(self, refused: str) -> bool:
        """Whether the file holds another token by now."""
        with self._lock:
            self._read_again(0.0)
            return bool(self._token) and refused != f"Bearer {self._token}"

    def _read_again(self, seconds: float) -> None:
        if time.monotonic() - self._read_at > seconds:
            self._read_at = time.monotonic()
            try:
                self._read()
            except QosError:
                return  # a file that is being replaced: its last content is used

    def _read(self) -> None:
        user = self._user
        certificate = read_pem(user.get("client-certificate"), user.get("client-certificate-data"))
        key = read_pem(user.get("client-key"), user.get("client-key-data")) if certificate else None
        self._pair = KeyPair(certificate, key or b"") if certificate else None
        path = user.get("tokenFile")
        if path:
            try:
                self._token = _read_token(path)
            except QosError:
                # A token beside the file's name stands in for the file, as in client-go.
                if not self._token:
                    raise


def _read_token(path: str) -> str:
    try:
        token = Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise QosError(f"open {path}: {(getattr(error, 'strerror', None) or str(error)).lower()}") from None
    if not token:
        raise QosError(f'read empty token from file "{path}"')
    return token

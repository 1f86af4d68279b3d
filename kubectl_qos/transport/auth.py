"""Who we are to a server: tokens, token files, passwords, client certificates, plugins, impersonation.

Not here: how plugins are run (exec_plugin.py) and how OIDC tokens are renewed (oidc.py).

Source: k8s.io/client-go/tools/clientcmd/client_config.go, transport/round_trippers.go and token_source.go.
"""

from __future__ import annotations

import base64
import re
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote

from kubectl_qos.errors import QosError
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.exec_plugin import ExecCredential, ExecPlugin
from kubectl_qos.transport.kubeconfig import ResolvedContext
from kubectl_qos.transport.tls import KeyPair, read_pem

if TYPE_CHECKING:
    from kubectl_qos.transport.oidc import OidcTokens

FILE_SECONDS: Final = 60.0
"""How long what was read from a file is used before the file is read again."""

_REMOVED: Final = {
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
    """What a connection needs to know of a user; several threads may ask at once."""

    def authorization(self) -> str:
        """The Authorization header, empty for none; what has expired is renewed here. Raises QosError."""

    def pair(self) -> KeyPair | None:
        """The client certificate that goes with it. Raises QosError."""

    def renew(self, refused: str) -> bool:
        """Whether there is something else to show a server that answered 401 to this header."""


def load_credentials(target: ResolvedContext, *, secure: bool) -> Credentials:
    """The credentials of the target's user; plugins run here for the first time. Raises QosError.

    Over plain HTTP nobody is told who we are, and plugins are not run. A token, a password or a certificate
    of the user entry, or of the flags, comes before a plugin.
    """
    user = target.user if secure else {}
    log.log(log.DECISIONS, f"credentials: {auth_method(user)}")
    plain = PlainCredentials(user)
    if user.get("exec") and not (plain.authorization() or plain.pair()):
        return ExecCredentials(ExecPlugin(target))
    provider = user.get("auth-provider")
    if provider is None:
        return plain
    name = provider.get("name") or ""
    if name in _REMOVED:
        instead, where = _REMOVED[name]
        raise QosError(
            f"The {name} auth plugin has been removed. Please use the {instead} kubectl/client-go credential"
            f" plugin instead. See {where} for further details"
        )
    if name != "oidc":
        raise QosError(f'no Auth Provider found for name "{name}"')
    from kubectl_qos.transport.oidc import OidcTokens

    tokens = OidcTokens(target)
    return plain if plain.authorization() else OidcCredentials(tokens, plain)


def auth_method(user: Mapping[str, Any]) -> str:
    """By what a user entry says who we are, in the order in which it counts; nothing of what it is."""
    kinds = {
        "a token": user.get("token") or user.get("tokenFile"),
        "a password": user.get("username") or user.get("password"),
        "a client certificate": user.get("client-certificate") or user.get("client-certificate-data"),
        "an exec plugin": user.get("exec"),
        "an auth provider": user.get("auth-provider"),
    }
    return " and ".join(kind for kind, found in kinds.items() if found) or "none"


def impersonation(user: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The headers by which a user acts as another one; some may repeat."""
    if not user.get("as"):
        return []
    found = [("Impersonate-User", str(user["as"]))]
    if user.get("as-uid"):
        found.append(("Impersonate-Uid", str(user["as-uid"])))
    found += [("Impersonate-Group", str(group)) for group in user.get("as-groups") or ()]
    for key, values in (user.get("as-user-extra") or {}).items():
        # What no header's name may hold is escaped, and `%` with it; servers undo that.
        name = re.sub(r"[^-!#$&'*+.^_`|~0-9A-Za-z]+", lambda part: quote(part[0], safe=""), str(key))
        found += [(f"Impersonate-Extra-{name}", str(value)) for value in values or ()]
    return found


class PlainCredentials:
    """A token, a file with a token, a password, or a client certificate alone; files are read anew."""

    def __init__(self, user: Mapping[str, Any]) -> None:
        self._user = user
        self._token = user.get("token") or ""
        self._lock = threading.Lock()
        self._read()
        self._read_at = time.monotonic()

    def authorization(self) -> str:
        """A bearer token before a password."""
        with self._lock:
            self._read_again(FILE_SECONDS)
            if self._token:
                return f"Bearer {self._token}"
        name, password = self._user.get("username"), self._user.get("password")
        if name or password:
            return "Basic " + base64.b64encode(f"{name or ''}:{password or ''}".encode()).decode()
        return ""

    def pair(self) -> KeyPair | None:
        """The pair of the user entry, inline or as files."""
        return self._pair

    def renew(self, refused: str) -> bool:
        """A file may hold another token by now."""
        with self._lock:
            self._read_again(0.0)
            return bool(self._token) and refused != f"Bearer {self._token}"

    def _read_again(self, seconds: float) -> None:
        if time.monotonic() - self._read_at > seconds:
            self._read_at = time.monotonic()
            try:
                self._read()
            except QosError:
                # A file that is being replaced: what it held goes on being used.
                return

    def _read(self) -> None:
        certificate = read_pem(self._user, "client-certificate")
        key = read_pem(self._user, "client-key") if certificate else None
        self._pair = KeyPair(certificate, key or b"") if certificate else None
        path = self._user.get("tokenFile")
        if path:
            try:
                self._token = _token_in(path)
            except QosError:
                # A token beside the file's name stands in for it, as in client-go.
                if not self._token:
                    raise


class ExecCredentials:
    """What an exec plugin gives."""

    def __init__(self, plugin: ExecPlugin) -> None:
        self._plugin = plugin

    def authorization(self) -> str:
        """The plugin's token."""
        return _bearer(self._plugin.granted())

    def pair(self) -> KeyPair | None:
        """The plugin's certificate."""
        return self._plugin.granted().pair

    def renew(self, refused: str) -> bool:
        """Run the plugin once more, unless that has happened since."""
        granted = self._plugin.granted()
        if _bearer(granted) != refused:
            return True
        renewed = self._plugin.renew(granted)
        return (renewed.token, renewed.pair) != (granted.token, granted.pair)


class OidcCredentials:
    """An OpenID Connect token, with whatever certificate stands beside it."""

    def __init__(self, tokens: OidcTokens, plain: PlainCredentials) -> None:
        self._tokens = tokens
        self._plain = plain

    def authorization(self) -> str:
        """The id token."""
        return f"Bearer {self._tokens.id_token()}"

    def pair(self) -> KeyPair | None:
        """The certificate of the user entry."""
        return self._plain.pair()

    def renew(self, refused: str) -> bool:
        """A token that has not expired is the only one there is."""
        return f"Bearer {self._tokens.id_token()}" != refused


def _bearer(granted: ExecCredential) -> str:
    return f"Bearer {granted.token}" if granted.token else ""


def _token_in(path: str) -> str:
    try:
        token = Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise QosError(f"open {path}: {(getattr(error, 'strerror', None) or str(error)).lower()}") from None
    if not token:
        raise QosError(f'read empty token from file "{path}"')
    return token

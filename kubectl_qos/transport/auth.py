"""Authentication: tokens, token files, passwords, client certificates, impersonation, and exec plugins.

The first run of a plugin may use the terminal, as with kubectl. Later runs, and runs for another cluster in
the UI, get no standard input, because the UI has the terminal; their stderr becomes the hint of an error.

Source: k8s.io/client-go/tools/clientcmd/client_config.go, transport/round_trippers.go and token_source.go,
plugin/pkg/client/auth/exec/exec.go and rest/exec.go.
"""

import base64
import json
import os
import re
import shutil
import ssl
import subprocess
import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote

from kubectl_qos.errors import QosError, ServerUnreachable
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.kubeconfig import (
    DecodeError,
    Entry,
    ResolvedContext,
    decode_credential,
    interactive_mode,
)
from kubectl_qos.transport.tls import KeyPair, load_pair, read_pem

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
    """The credentials of a connection; used by several threads."""

    def authorization(self) -> str:
        """Return the Authorization header, "" without one; an expired one is renewed. Raises QosError."""

    def pair(self) -> KeyPair | None:
        """Return the client certificate. Raises QosError."""

    def renew(self, refused: str) -> bool:
        """Get new credentials after a 401 for the header `refused`. Return whether there are any.

        Raises QosError.
        """


def load_credentials(context: ResolvedContext, *, secure: bool, has_terminal: bool = True) -> Credentials:
    """Return the user's credentials: static ones, else a plugin's; none over plain HTTP. Raises QosError."""
    user: Entry = context.user if secure else {}
    log.log(log.DECISIONS, f"credentials: {auth_method(user)}")
    static = _StaticCredentials(user)
    if user.get("exec") and not (static.authorization() or static.pair()):
        return ExecPlugin(context, has_terminal=has_terminal)
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
    if name == "oidc" and static.authorization():
        return static
    if name == "oidc":
        raise QosError(
            'the auth provider "oidc" is not supported: it writes new tokens into the kubeconfig',
            hint="use an exec plugin, such as https://github.com/int128/kubelogin",
        )
    raise QosError(f'no Auth Provider found for name "{name}"')


def auth_method(user: Entry) -> str:
    """Return a text with the kinds of credentials in a user entry, in order of precedence."""
    kinds = {
        "a token": user.get("token") or user.get("tokenFile"),
        "a password": user.get("username") or user.get("password"),
        "a client certificate": user.get("client-certificate") or user.get("client-certificate-data"),
        "an exec plugin": user.get("exec"),
        "an auth provider": user.get("auth-provider"),
    }
    return " and ".join(kind for kind, value in kinds.items() if value) or "none"


def impersonation_headers(user: Entry) -> list[tuple[str, str]]:
    """Return the headers that impersonate another user; names may repeat."""
    if not user.get("as"):
        return []
    headers = [("Impersonate-User", user["as"])]
    if user.get("as-uid"):
        headers.append(("Impersonate-Uid", user["as-uid"]))
    headers += [("Impersonate-Group", group or "") for group in user.get("as-groups") or ()]
    for key, values in (user.get("as-user-extra") or {}).items():
        # Servers decode characters that a header's name cannot contain.
        name = re.sub(r"[^-!#$&'*+.^_`|~0-9A-Za-z]+", lambda part: quote(part[0], safe=""), str(key))
        headers += [(f"Impersonate-Extra-{name}", value or "") for value in values or ()]
    return headers


class _StaticCredentials:
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
        with self._lock:
            self._read_again(0.0)
            return bool(self._token) and refused != f"Bearer {self._token}"

    def _read_again(self, seconds: float) -> None:
        if time.monotonic() - self._read_at > seconds:
            self._read_at = time.monotonic()
            try:
                self._read()
            except QosError:
                return  # The file is probably being replaced: keep the last token.

    def _read(self) -> None:
        user = self._user
        certificate = read_pem(user, "client-certificate")
        key = read_pem(user, "client-key") if certificate else None
        self._pair = KeyPair(certificate, key or b"") if certificate else None
        path = user.get("tokenFile")
        if path:
            try:
                self._token = _read_token(path)
            except QosError:
                # While the token file cannot be read, the entry's `token` is used, as in client-go.
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


_GROUP: Final = "client.authentication.k8s.io"
VERSIONS: Final = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
_NO_VERSION: Final = f"{_GROUP}/__internal"
"""The version that client-go assumes for an exec plugin without an apiVersion."""
_INSTALL_HINT: Final = (
    "it looks like a client-go credential plugin that is not installed; see"
    " https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins"
)


_TERMINAL: Final = threading.Lock()
"""Held while a plugin may ask a person, so that with several clusters one asks at a time."""


@dataclass(frozen=True, slots=True)
class _Credential:
    authorization: str
    pair: KeyPair | None
    expires: datetime | None


class ExecPlugin:
    """Credentials by a plugin; one thread at a time runs it."""

    def __init__(self, context: ResolvedContext, *, has_terminal: bool = True) -> None:
        self._plugin = context.user["exec"]
        self._api_version = self._plugin["apiVersion"]
        self._cluster = context.cluster
        self._lock = threading.Lock()
        if self._api_version not in VERSIONS:
            raise QosError(f'exec plugin: invalid apiVersion "{self._api_version}"')
        self._credential = self._run(first=has_terminal)

    def authorization(self) -> str:
        """Return the plugin's token as a header. Raises ServerUnreachable."""
        with self._lock:
            return self._unexpired().authorization

    def pair(self) -> KeyPair | None:
        """Return the plugin's certificate. Raises ServerUnreachable."""
        with self._lock:
            return self._unexpired().pair

    def renew(self, refused: str) -> bool:
        """Run the plugin again, unless another thread did since. Return whether the credentials changed."""
        with self._lock:
            old = self._unexpired()
            if old.authorization == refused:
                self._credential = self._run(first=False)
            return (self._credential.authorization, self._credential.pair) != (refused, old.pair)

    def _unexpired(self) -> _Credential:
        expires = self._credential.expires
        if expires is not None and datetime.now(UTC) > expires:
            self._credential = self._run(first=False)
        return self._credential

    def _run(self, *, first: bool) -> _Credential:
        mode = interactive_mode(self._plugin)
        is_terminal = os.isatty(0)
        if mode == "Always" and not (first and is_terminal):
            problem = "unavailable: it is in use" if is_terminal else "not a terminal"
            raise _failed(f"exec plugin cannot support interactive mode: standard input is {problem}")
        interactive = mode != "Never" and first and is_terminal
        command = self._plugin["command"]
        if os.sep not in command and shutil.which(command) is None:
            hint = self._plugin.get("installHint") or _INSTALL_HINT
            raise _failed(f"exec: executable {command} not found", hint)
        began = time.monotonic()
        try:
            with _TERMINAL if interactive else nullcontext():
                done = subprocess.run(  # noqa: S603 - the owner of the kubeconfig chose the program
                    [command, *(self._plugin.get("args") or ())],
                    env=self._environment(interactive=interactive),
                    stdin=None if interactive else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=None if first else subprocess.PIPE,
                    check=False,
                )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise _failed(f"exec: fork/exec {command}: {reason.lower()}") from None
        duration = log.milliseconds(time.monotonic() - began)
        name = Path(command).name
        log.log(log.REQUESTS, f"exec plugin {name} ended with exit code {done.returncode} in {duration}")
        if done.returncode:
            stderr = (done.stderr or b"").decode(errors="replace").strip()
            above = "see its output above; if there is none, " if first else ""
            hint = f"its stderr: {stderr}" if stderr else f"{above}run {command} by hand"
            code = max(done.returncode, -1)
            raise _failed(f"exec: executable {command} failed with exit code {code}", hint)
        return _read_credential(done.stdout, self._api_version)

    def _environment(self, *, interactive: bool) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": interactive}
        if self._plugin.get("provideClusterInfo"):
            spec["cluster"] = _cluster_info(self._cluster)
        info = {"kind": "ExecCredential", "apiVersion": self._api_version, "spec": spec}
        variables = {entry["name"]: entry.get("value") or "" for entry in self._plugin.get("env") or ()}
        return {**os.environ, **variables, "KUBERNETES_EXEC_INFO": json.dumps(info)}


def _cluster_info(cluster: Entry) -> dict[str, Any]:
    names = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url", "disable-compression")
    info: dict[str, Any] = {name: value for name, value in cluster.items() if name in names and value}
    ca = read_pem(cluster, "certificate-authority")
    if ca:
        info["certificate-authority-data"] = base64.b64encode(ca).decode()
    extensions = {entry.get("name"): entry.get("extension") for entry in cluster.get("extensions") or ()}
    return info | {"config": extensions.get(f"{_GROUP}/exec")}


def _read_credential(output: bytes, api_version: str) -> _Credential:
    status = _read_status(output, api_version)
    token = status.get("token") or ""
    certificate, key = status.get("clientCertificateData") or "", status.get("clientKeyData") or ""
    if not (token or certificate or key):
        raise _failed("exec plugin didn't return a token or cert/key pair")
    if bool(certificate) != bool(key):
        raise _failed("exec plugin returned only certificate or key, not both")
    pair = KeyPair(certificate.encode(), key.encode()) if certificate else None
    if pair is not None:
        try:
            load_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), pair)
        except QosError as error:
            raise _failed(f"failed parsing client key/certificate: {error}") from None
    return _Credential(f"Bearer {token}" if token else "", pair, _parse_expiry(status))


def _read_status(output: bytes, api_version: str) -> Entry:
    try:
        document = decode_credential(output, (_NO_VERSION, *VERSIONS))
    except DecodeError as error:
        raise _failed(f"decoding stdout: {error}") from None
    version = document.get("apiVersion") or _NO_VERSION
    if version != api_version:
        raise _failed(
            f"exec plugin is configured to use API version {api_version}, plugin returned version {version}"
        )
    status: Entry | None = document.get("status")
    if status is None:
        raise _failed("exec plugin didn't return a status field")
    return status


def _parse_expiry(status: Entry) -> datetime | None:
    text = status.get("expirationTimestamp")
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is not None:
            return time
    except ValueError:
        pass
    raise _failed(f'decoding stdout: parsing time "{text}" as "2006-01-02T15:04:05Z07:00"')


def _failed(reason: str, hint: str = "") -> ServerUnreachable:
    return ServerUnreachable(
        f"Unable to connect to the server: getting credentials: {reason}", hint=" ".join(hint.split())
    )

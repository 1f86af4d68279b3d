"""Who we are to a server: tokens, token files, passwords, client certificates, plugins, impersonation.

The kubernetes package (180 ms and 20 MB to import) runs credential plugins and auth providers; everything
else is read straight from the kubeconfig's user entry.

Source: k8s.io/client-go/tools/clientcmd/client_config.go and transport/round_trippers.go.
"""

from __future__ import annotations

import base64
import binascii
import logging
import ssl
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from kubectl_qos.cluster.kubeconfig import Target
from kubectl_qos.errors import QosError

TOKEN_FILE_SECONDS: Final = 60.0
"""How long a token that was read from a file is used before the file is read again."""


class Credentials(Protocol):
    """What a connection needs to know of a user."""

    def authorization(self) -> str:
        """The Authorization header, empty for none; what has expired is renewed here."""

    def add_certificate(self, context: ssl.SSLContext) -> None:
        """Load the client certificate, if there is one, into a TLS context."""


def credentials_of(target: Target) -> Credentials:
    """The credentials of the target's user; plugins run here for the first time. Raises QosError."""
    user = target.user
    if user.get("exec") or user.get("auth-provider"):
        return _PluginCredentials(target)
    return _PlainCredentials(user)


def impersonation(user: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The headers by which a user acts as another one; some may repeat."""
    found = [("Impersonate-User", str(user["as"]))] if user.get("as") else []
    if user.get("as-uid"):
        found.append(("Impersonate-Uid", str(user["as-uid"])))
    found += [("Impersonate-Group", str(group)) for group in user.get("as-groups") or ()]
    for key, values in (user.get("as-user-extra") or {}).items():
        found += [(f"Impersonate-Extra-{key}", str(value)) for value in values]
    return found


class _PlainCredentials:
    """A token, a file with a token, a password, or a client certificate alone."""

    def __init__(self, user: Mapping[str, Any]) -> None:
        self._user = user
        self._token = str(user.get("token") or "")
        self._read_at: float | None = None
        if user.get("tokenFile"):
            self._read_token()

    def authorization(self) -> str:
        """A bearer token before a password."""
        if self._read_at is not None and time.monotonic() - self._read_at > TOKEN_FILE_SECONDS:
            self._read_token()
        if self._token:
            return f"Bearer {self._token}"
        name, password = self._user.get("username"), self._user.get("password")
        if name or password:
            return "Basic " + base64.b64encode(f"{name or ''}:{password or ''}".encode()).decode()
        return ""

    def add_certificate(self, context: ssl.SSLContext) -> None:
        """The pair of the user entry, inline or as files."""
        certificate = pem_of(self._user, "client-certificate")
        if certificate is not None:
            load_pair(context, certificate, pem_of(self._user, "client-key") or b"")

    def _read_token(self) -> None:
        path = self._user["tokenFile"]
        try:
            self._token = Path(path).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            if self._read_at is None:
                raise QosError(f"the token file cannot be read: {_cause(error, path)}") from None
        self._read_at = time.monotonic()


class _PluginCredentials:
    """What the kubernetes package gets from an exec plugin or an auth provider."""

    def __init__(self, target: Target) -> None:
        from kubernetes.client import Configuration
        from kubernetes.config import ConfigException
        from kubernetes.config.kube_config import KubeConfigLoader

        self._plugin = target.user.get("exec") or {}
        self._one_at_a_time = threading.Lock()
        self._configuration = Configuration()
        config = {
            "current-context": "one",
            "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
            "clusters": [{"name": "one", "cluster": target.cluster}],
            "users": [{"name": "one", "user": target.user}],
        }
        with self._failures_raised():
            try:
                KubeConfigLoader(config, config_base_path="").load_and_set(self._configuration)
            except (ConfigException, OSError, ValueError, KeyError, TypeError) as error:
                raise self._failure(str(error)) from None

    def authorization(self) -> str:
        """The plugin's token, asked for again once it has expired."""
        configuration = self._configuration
        if configuration.refresh_api_key_hook is not None:
            with self._one_at_a_time, self._failures_raised():
                configuration.refresh_api_key_hook(configuration)
        return str(configuration.api_key.get("BearerToken") or "")

    def add_certificate(self, context: ssl.SSLContext) -> None:
        """The plugin's certificate."""
        if self._configuration.cert_file:
            certificate = Path(self._configuration.cert_file).read_bytes()
            key = self._configuration.key_file
            load_pair(context, certificate, Path(key).read_bytes() if key else b"")

    @contextmanager
    def _failures_raised(self) -> Iterator[None]:
        """Raise what the package only logs: it would go on without credentials, and a 401 hide the reason."""
        failures: list[str] = []

        class Keep(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                failures.append(record.getMessage())

        handler = Keep(logging.ERROR)
        root = logging.getLogger()
        root.addHandler(handler)
        try:
            yield
        finally:
            root.removeHandler(handler)
        if failures:
            raise self._failure(failures[0])

    def _failure(self, why: str) -> QosError:
        command = self._plugin.get("command")
        hint = f"run {command} by hand to see what it says" if command else ""
        hint = str(self._plugin.get("installHint") or hint)
        return QosError(f"getting credentials: {' '.join(why.split())}", hint=" ".join(hint.split()))


def pem_of(entry: Mapping[str, Any], name: str) -> bytes | None:
    """The content of `NAME-data` or of the file NAME, None without either. Raises QosError."""
    inline, path = entry.get(f"{name}-data"), entry.get(name)
    try:
        if inline:
            return base64.b64decode(str(inline), validate=True)
        return Path(path).read_bytes() if path else None
    except binascii.Error:
        raise QosError(f"kubeconfig: {name}-data is not base64") from None
    except OSError as error:
        raise QosError(f"unable to read {name}: {_cause(error, str(path))}") from None


def load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a PEM pair, by way of a file because OpenSSL's reader takes nothing else. Raises QosError."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pair.pem"
        path.touch(mode=0o600)
        path.write_bytes(certificate + b"\n" + key)
        try:
            # An empty password, lest OpenSSL ask the terminal for that of an encrypted key.
            context.load_cert_chain(path, password="")
        except (ssl.SSLError, OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or str(error)
            raise QosError(f"the kubeconfig's client certificate or key cannot be used: {reason}") from None


def _cause(error: Exception, path: str) -> str:
    return f"open {path}: {(getattr(error, 'strerror', None) or str(error)).lower()}"

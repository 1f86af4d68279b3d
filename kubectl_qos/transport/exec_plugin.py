"""Exec plugins: programs that a kubeconfig names, run for a token or a certificate and again for new ones.

The first run may talk to a person, as with kubectl. Every later one happens while a screen is up or a list is
on its way, so it gets no standard input, and what it says to stderr is kept for its error's hint.

Source: k8s.io/client-go/plugin/pkg/client/auth/exec/exec.go and rest/exec.go.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kubectl_qos.errors import QosError, ServerUnreachable
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.go_decode import (
    EXEC_CREDENTIAL,
    NotYaml,
    WrongType,
    check,
    first_document,
    parse_api_version,
)
from kubectl_qos.transport.kubeconfig import ResolvedContext
from kubectl_qos.transport.tls import KeyPair, load_pair, read_pem
from kubectl_qos.transport.validation import interactive_mode

_GROUP: Final = "client.authentication.k8s.io"
VERSIONS: Final = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
_UNSAID: Final = f"{_GROUP}/__internal"
"""What client-go takes an answer without an apiVersion for."""
_NOT_INSTALLED: Final = (
    "it looks like a client-go credential plugin that is not installed; see"
    " https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins"
)


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """What a plugin gave; no `expires` holds until the server refuses it."""

    token: str
    pair: KeyPair | None
    expires: datetime | None


class ExecPlugin:
    """One plugin and what it gave last; several threads may ask, one at a time runs it."""

    def __init__(self, target: ResolvedContext) -> None:
        self._entry: Mapping[str, Any] = target.user["exec"]
        self._cluster = target.cluster
        self._lock = threading.Lock()
        if self._entry["apiVersion"] not in VERSIONS:
            raise QosError(f'exec plugin: invalid apiVersion "{self._entry["apiVersion"]}"')
        self._granted = self._run(first=True)

    def granted(self) -> ExecCredential:
        """What holds now; the plugin is run again once that has expired. Raises ServerUnreachable."""
        with self._lock:
            expires = self._granted.expires
            if expires is not None and datetime.now(UTC) > expires:
                self._granted = self._run(first=False)
            return self._granted

    def renew(self, refused: ExecCredential) -> ExecCredential:
        """What holds instead of what a server refused; run once, however many threads were refused."""
        with self._lock:
            if self._granted is refused:
                self._granted = self._run(first=False)
            return self._granted

    def _run(self, *, first: bool) -> ExecCredential:
        interactive = self._is_interactive(first=first)
        command = self._entry["command"]
        if os.sep not in command and shutil.which(command) is None:
            hint = self._entry.get("installHint") or _NOT_INSTALLED
            raise _failed(f"exec: executable {command} not found", hint)
        began = time.monotonic()
        try:
            done = subprocess.run(  # noqa: S603 - the kubeconfig's owner chose the program
                [command, *(self._entry.get("args") or ())],
                env=self._environment(interactive=interactive),
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if first else subprocess.PIPE,
                check=False,
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise _failed(f"exec: fork/exec {command}: {why.lower()}") from None
        took = log.milliseconds(time.monotonic() - began)
        name = Path(command).name
        log.log(log.REQUESTS, f"exec plugin {name} ended with exit code {done.returncode} in {took}")
        if done.returncode:
            said = (done.stderr or b"").decode(errors="replace").strip()
            hint = f"it says: {said}" if said else f"run {command} by hand to see what it says"
            code = max(done.returncode, -1)
            raise _failed(f"exec: executable {command} failed with exit code {code}", hint)
        return _granted(done.stdout, self._entry["apiVersion"])

    def _is_interactive(self, *, first: bool) -> bool:
        """Whether the plugin gets our standard input: a terminal's, and only while nothing else uses it."""
        mode = interactive_mode(self._entry)
        is_terminal = _stdin_is_terminal()
        if mode == "Always" and not (first and is_terminal):
            why = (
                "standard input is unavailable: it is in use"
                if is_terminal
                else "standard input is not a terminal"
            )
            raise _failed(f"exec plugin cannot support interactive mode: {why}")
        return mode != "Never" and first and is_terminal

    def _environment(self, *, interactive: bool) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": interactive}
        if self._entry.get("provideClusterInfo"):
            spec["cluster"] = _cluster_info(self._cluster)
        info = {"kind": "ExecCredential", "apiVersion": self._entry["apiVersion"], "spec": spec}
        given = {entry["name"]: entry.get("value") or "" for entry in self._entry.get("env") or ()}
        return {**os.environ, **given, "KUBERNETES_EXEC_INFO": json.dumps(info)}


def _stdin_is_terminal() -> bool:
    try:
        return os.isatty(0)
    except OSError:
        return False


def _cluster_info(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """What a plugin with provideClusterInfo learns; of the CA its content, wherever that stands."""
    names = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url", "disable-compression")
    found = {name: cluster[name] for name in names if cluster.get(name)}
    ca = read_pem(cluster, "certificate-authority")
    if ca:
        found["certificate-authority-data"] = base64.b64encode(ca).decode()
    extensions = {entry.get("name"): entry.get("extension") for entry in cluster.get("extensions") or ()}
    return found | {"config": extensions.get(f"{_GROUP}/exec")}


def _granted(output: bytes, wanted: str) -> ExecCredential:
    status = _status(output, wanted)
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
    return ExecCredential(token, pair, _time(status.get("expirationTimestamp")))


def _status(output: bytes, wanted: str) -> Mapping[str, Any]:
    """The status that a plugin printed, as JSON or as YAML. Raises ServerUnreachable."""
    try:
        try:
            document = json.loads(output)
        except ValueError:
            document = first_document(output)
        version = parse_api_version(document, "ExecCredential", (_UNSAID, *VERSIONS))
        check(document, EXEC_CREDENTIAL)
    except (NotYaml, WrongType) as error:
        raise _failed(f"decoding stdout: {error}") from None
    if version != wanted:
        raise _failed(
            f"exec plugin is configured to use API version {wanted}, plugin returned version {version}"
        )
    status: Mapping[str, Any] | None = document.get("status")
    if status is None:
        raise _failed("exec plugin didn't return a status field")
    return status


def _time(text: str | None) -> datetime | None:
    if not text:
        return None
    found: datetime | None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise _failed(f'decoding stdout: parsing time "{text}" as "2006-01-02T15:04:05Z07:00"')
    return found


def _failed(why: str, hint: str = "") -> ServerUnreachable:
    return ServerUnreachable(
        f"Unable to connect to the server: getting credentials: {why}", hint=" ".join(hint.split())
    )

"""The values of headers as they can be sent, as Go does it.

Source: golang.org/x/net/http/httpguts (ValidHeaderFieldValue) and net/http/transport.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubectl_qos.errors import QosError, ServerUnreachable
from kubectl_qos.transport.kubeconfig import ResolvedContext
from kubectl_qos.transport.proxy import proxy_problem, without_credentials

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def sendable(name: str, value: str) -> str:
    """The value in UTF-8, each byte as the character that Python's client makes that byte of.

    Raises ServerUnreachable for one that cannot be sent; Python's own error would repeat it, and it may be a
    token.
    """
    if _CONTROLS.search(value):
        why = f'net/http: invalid header field value for "{name}"'
        raise ServerUnreachable(f"Unable to connect to the server: {why}")
    return value.encode().decode("latin-1")


MODES: Final = ("Never", "IfAvailable", "Always")
_BETA: Final = "client.authentication.k8s.io/v1beta1"


def validate_context(target: ResolvedContext) -> None:
    """Raise QosError with the first thing that is wrong; the others are its notes."""
    found = [
        *_wrong_with_user(target.user, target.user_name),
        *_wrong_with_plugin(target.user, target.user_name),
        *_wrong_with_cluster(target.cluster, target.cluster_name),
    ]
    if not found:
        return
    error = QosError(found[0])
    for other in found[1:]:
        error.add_note(other)
    raise error


def interactive_mode(plugin: Mapping[str, Any]) -> str:
    """Whether an exec plugin may talk to a person; the beta API has a default, v1 none."""
    return plugin.get("interactiveMode") or ("IfAvailable" if plugin.get("apiVersion") == _BETA else "")


def _wrong_with_user(user: Mapping[str, Any], name: str) -> Iterator[str]:
    certificate = user.get("client-certificate"), user.get("client-certificate-data")
    key = user.get("client-key"), user.get("client-key-data")
    both = "are both specified for"
    if all(certificate):
        yield f"client-cert-data and client-cert {both} {name}. client-cert-data will override."
    if any(certificate) and all(key):
        yield f"client-key-data and client-key {both} {name}; client-key-data will override"
    if any(certificate) and not any(key):
        yield (
            f"client-key-data or client-key must be specified for {name} to use the clientCert"
            " authentication method."
        )
    if any(certificate):
        yield from _unreadable("client-cert", certificate[0], name)
        yield from _unreadable("client-key", key[0], name)
    if user.get("token") and (user.get("username") or user.get("password")):
        yield (
            f"more than one authentication method found for {name}; found [token basicAuth],"
            " only one is allowed"
        )
    if any(user.get(key) for key in ("as-uid", "as-groups", "as-user-extra")) and not user.get("as"):
        yield f"requesting uid, groups or user-extra for {name} without impersonating a user"


def _wrong_with_plugin(user: Mapping[str, Any], name: str) -> Iterator[str]:
    plugin = user.get("exec")
    if plugin is None:
        return
    purpose = f"must be specified for {name} to use exec authentication plugin"
    mode = interactive_mode(plugin)
    if user.get("auth-provider") is not None:
        yield f"authProvider cannot be provided in combination with an exec plugin for {name}"
    if not plugin.get("command"):
        yield f"command {purpose}"
    if not plugin.get("apiVersion"):
        yield f"apiVersion {purpose}"
    if not all((variable or {}).get("name") for variable in plugin.get("env") or ()):
        yield f"env variable name {purpose}"
    if not mode:
        yield f"interactiveMode {purpose}"
    elif mode not in MODES:
        yield f'invalid interactiveMode for {name}: "{mode}"'


def _wrong_with_cluster(cluster: Mapping[str, Any], name: str) -> Iterator[str]:
    proxy = cluster.get("proxy-url")
    trouble = proxy_problem(proxy) if proxy else ""
    if proxy and trouble:
        yield f'invalid \'proxy-url\' "{without_credentials(proxy)}" for cluster "{name}": {trouble}'
    authority = cluster.get("certificate-authority"), cluster.get("certificate-authority-data")
    if all(authority):
        yield (
            f"certificate-authority-data and certificate-authority are both specified for {name}."
            " certificate-authority-data will override."
        )
    yield from _unreadable("certificate-authority", authority[0], name)


def _unreadable(what: str, path: str | None, name: str) -> Iterator[str]:
    if not path:
        return
    try:
        with open(path, "rb"):  # noqa: PTH123 - a path as it was given, named as it was given
            pass
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        yield f"unable to read {what} {path} for {name} due to open {path}: {why}"

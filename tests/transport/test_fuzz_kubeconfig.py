"""Broken kubeconfigs: a connection, or one sentence that says what is wrong with the file."""

import base64
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_qos.errors import QosError
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport.client import connect
from kubectl_qos.transport.kubeconfig import entry_names, resolve_context

NAMES = st.sampled_from(["a", "b", "", "größe", "a/b", "x" * 300, "\x1b[31m", "1", "null"])
TEXTS = (
    NAMES
    | st.text(max_size=8)
    | st.sampled_from(
        [
            *(
                "https://127.0.0.1:6443",
                "http://[::1",
                "https://",
                "ftp://a",
                "127.0.0.1",
                "https://a:99999999/b?c#d",
            ),
            *(
                "/etc/hostname",
                "/",
                "none.pem",
                "socks5://127.0.0.1:1",
                "http://a:b@c",
                "client.authentication.k8s.io/v1",
            ),
            *(
                "Never",
                "true",
                base64.b64encode(b"-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----").decode(),
            ),
        ]
    )
)
SCALARS = TEXTS | st.none() | st.booleans() | st.integers() | st.floats()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
VALID: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "a",
    "preferences": {},
    "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:6443"}}],
    "users": [{"name": "a", "user": {"token": "x"}}],
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a", "namespace": "shop"}}],
}
PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1", "command": "none", "interactiveMode": "Never"}
FIELDS = {
    "clusters": (
        *("server", "certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify"),
        *("tls-server-name", "proxy-url", "disable-compression", "extensions"),
    ),
    "users": (
        *(
            "token",
            "tokenFile",
            "client-certificate",
            "client-certificate-data",
            "client-key",
            "client-key-data",
        ),
        *("username", "password", "as", "as-uid", "as-groups", "as-user-extra", "exec", "auth-provider"),
    ),
    "contexts": ("cluster", "user", "namespace", "extensions"),
}
PLUGINS = st.dictionaries(st.sampled_from([*PLUGIN, "args", "env", "provideClusterInfo"]), VALUES).map(
    lambda changed: PLUGIN | changed
)


@st.composite
def configs(draw: st.DrawFn) -> Any:
    """A valid kubeconfig with some fields of any value."""
    config = deepcopy(VALID)
    for kind, fields in FIELDS.items():
        entry = config[kind][0]
        for name in draw(st.lists(st.sampled_from(fields), max_size=2)):
            entry[kind[:-1]][name] = draw(PLUGINS if name == "exec" else VALUES)
        if draw(st.integers(0, 9)) == 0:
            config[kind] = draw(VALUES | st.just([entry, entry]) | st.just([entry | {"name": draw(VALUES)}]))
    if draw(st.integers(0, 5)) == 0:
        config[draw(st.sampled_from([*VALID, "x"]))] = draw(VALUES)
    return config


PIECES = st.text(max_size=6) | st.sampled_from(
    ["&a ", "*a ", "---\n", "!!binary ", "? ", "{" * 500, "- " * 500, "\t"]
)


@st.composite
def broken_kubeconfigs(draw: st.DrawFn) -> bytes:
    """A kubeconfig with any values, sometimes with text put in, in sometimes another encoding."""
    text = yaml.safe_dump(draw(configs()), allow_unicode=draw(st.booleans()))
    for place, piece in draw(st.lists(st.tuples(st.floats(0, 1), PIECES), max_size=2)):
        at = int(place * len(text))
        text = text[:at] + piece + text[at:]
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"]))
    return text.encode(encoding, "replace")


def read_any_kubeconfig(path: Path) -> bool:
    """Whether it makes a connection; none is opened."""
    options = ConnectionOptions(kubeconfig=str(path))
    refused = []
    for read in (resolve_context, entry_names, connect):
        try:
            read(options)
        except QosError as error:
            refused.append(str(error))
    assert all(refused)
    return not refused


@given(broken_kubeconfigs())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_broken_kubeconfig(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config").write_bytes(content)
    read_any_kubeconfig(tmp_path / "config")

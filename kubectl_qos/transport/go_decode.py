"""The types of kubeconfigs and exec credentials, and decoding that refuses what Go's refuses, in its words.

msgspec could check the types, but its errors name neither Go's struct nor its type, and not the same field
where several are wrong.

Source: encoding/json, sigs.k8s.io/yaml, k8s.io/client-go/tools/clientcmd/api/v1/types.go,
k8s.io/client-go/pkg/apis/clientauthentication/v1/types.go.
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_qos.yaml_loader import read_yaml


class Struct(NamedTuple):
    """Go's name of a struct, and the types of its fields: bytes are base64, `{str: type}` is a map."""

    name: str
    fields: Mapping[str, Any]


_EXTENSIONS: Final = [Struct("NamedExtension", {"name": str})]
_CLUSTER: Final = Struct(
    "Cluster",
    {
        **dict.fromkeys(("server", "tls-server-name", "certificate-authority", "proxy-url"), str),
        **dict.fromkeys(("insecure-skip-tls-verify", "disable-compression"), bool),
        "certificate-authority-data": bytes,
        "extensions": _EXTENSIONS,
    },
)
_EXEC: Final = Struct(
    "ExecConfig",
    {
        **dict.fromkeys(("command", "apiVersion", "installHint", "interactiveMode"), str),
        "args": [str],
        "env": [Struct("ExecEnvVar", {"name": str, "value": str})],
        "provideClusterInfo": bool,
    },
)
_USER: Final = Struct(
    "AuthInfo",
    {
        **dict.fromkeys(("client-certificate", "client-key", "token", "tokenFile"), str),
        **dict.fromkeys(("username", "password", "as", "as-uid"), str),
        **dict.fromkeys(("client-certificate-data", "client-key-data"), bytes),
        "as-groups": [str],
        "as-user-extra": {str: [str]},
        "auth-provider": Struct("AuthProviderConfig", {"name": str, "config": {str: str}}),
        "exec": _EXEC,
        "extensions": _EXTENSIONS,
    },
)
_CONTEXT: Final = Struct(
    "Context", {"cluster": str, "user": str, "namespace": str, "extensions": _EXTENSIONS}
)
KUBECONFIG: Final = Struct(
    "Config",
    {
        "preferences": Struct("Preferences", {"colors": bool, "extensions": _EXTENSIONS}),
        "clusters": [Struct("NamedCluster", {"name": str, "cluster": _CLUSTER})],
        "users": [Struct("NamedAuthInfo", {"name": str, "user": _USER})],
        "contexts": [Struct("NamedContext", {"name": str, "context": _CONTEXT})],
        "current-context": str,
        "extensions": _EXTENSIONS,
    },
)
_STATUS_FIELDS: Final = ("expirationTimestamp", "token", "clientCertificateData", "clientKeyData")
EXEC_CREDENTIAL: Final = Struct(
    "ExecCredential", {"status": Struct("ExecCredentialStatus", dict.fromkeys(_STATUS_FIELDS, str))}
)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*")


class GoDecodeError(ValueError):
    """A text that Go would not decode; the message is Go's."""


def first_document(text: bytes) -> Any:
    """The first YAML document, None for an empty text. Raises GoDecodeError."""
    import yaml

    try:
        document = read_yaml(text, first=True)
    except yaml.MarkedYAMLError as error:
        raise GoDecodeError(f"yaml: {_line_of(error)}{error.problem}") from None
    except yaml.reader.ReaderError as error:
        raise GoDecodeError(f"yaml: {error.reason}") from None
    except yaml.YAMLError as error:
        raise GoDecodeError(f"yaml: {' '.join(str(error).split())}") from None
    return document.value if document is not None else None


def _line_of(error: Any) -> str:
    """The line as go-yaml counts it: a parser's from zero, a scanner's from one, and never the first."""
    import yaml

    for mark in (error.problem_mark, error.context_mark):
        if mark is not None and mark.line:
            return f"line {mark.line + isinstance(error, yaml.scanner.ScannerError)}: "
    return ""


def parse_api_version(document: Any, kind: str, versions: Sequence[str]) -> str:
    """An object's apiVersion, the first of `versions` where it has none. Raises GoDecodeError."""
    problem = "couldn't get version/kind; json parse error: json: cannot unmarshal"
    document = {} if document is None else document
    if not isinstance(document, Mapping):
        raise GoDecodeError(f"{problem} {_json_type(document)} into Go value of type struct")
    for name in ("apiVersion", "kind"):
        value = document.get(name) or ""
        if not isinstance(value, str):
            raise GoDecodeError(f"{problem} {_json_type(value)} into Go struct field .{name} of type string")
    version, actual = document.get("apiVersion") or versions[0], document.get("kind") or kind
    if version not in versions or actual != kind:
        raise GoDecodeError(f'no kind "{actual}" is registered for version "{version}"')
    return str(version)


def check_type(value: Any, expected: Any, struct: str = "", path: tuple[str, ...] = ()) -> None:
    """Raise GoDecodeError for the first value, by name, that is neither of its type nor None."""
    if value is None:
        return
    if isinstance(expected, Struct) and isinstance(value, Mapping):
        for name in sorted(expected.fields):
            check_type(value.get(name), expected.fields[name], expected.name, (*path, name))
    elif isinstance(expected, list) and isinstance(value, list):
        for item in value:
            check_type(item, expected[0], struct, path)
    elif isinstance(expected, dict) and isinstance(value, Mapping):
        for item in value.values():
            check_type(item, expected[str], struct, path)
    elif expected is bytes and isinstance(value, str):
        decode_base64(value)
    elif expected not in (str, bool) or not isinstance(value, expected):
        field = f"{struct}.{'.'.join(path)} of type {_go_type(expected)}"
        raise GoDecodeError(f"json: cannot unmarshal {_json_type(value)} into Go struct field {field}")


def decode_base64(text: str) -> bytes:
    """The bytes of a text that may be broken into lines anywhere. Raises GoDecodeError."""
    joined = text.replace("\n", "").replace("\r", "")
    try:
        return base64.b64decode(joined, validate=True)
    except (binascii.Error, ValueError):
        match = _BASE64.match(joined)
        valid = match.end() if match else 0
        at = valid if valid < len(joined) and joined[valid] != "=" else valid // 4 * 4
        raise GoDecodeError(f"illegal base64 data at input byte {at}") from None


def _json_type(value: Any) -> str:
    types = {bool: "bool", int: "number", float: "number", dict: "object", list: "array"}
    return types.get(type(value), "string")


def _go_type(expected: Any) -> str:
    if isinstance(expected, Struct):
        return f"v1.{expected.name}"
    if isinstance(expected, list):
        return f"[]{_go_type(expected[0])}"
    if isinstance(expected, dict):
        return f"map[string]{_go_type(expected[str])}"
    return {str: "string", bool: "bool", bytes: "[]uint8"}[expected]

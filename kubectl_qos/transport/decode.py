"""Decode kubeconfigs and exec credentials: their YAML or JSON, and the types of the fields that are used.

Source: k8s.io/client-go/tools/clientcmd/api/v1/types.go and pkg/apis/clientauthentication/v1/types.go.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict

import msgspec

from kubectl_qos.yaml_loader import read_yaml

_Text = str | None
_Flag = bool | None
_Texts = list[str | None] | None


class DecodeError(ValueError):
    """A text that cannot be decoded."""


class _Extension(TypedDict, total=False):
    name: _Text
    extension: Any


_Cluster = TypedDict(
    "_Cluster",
    {
        "server": _Text,
        "tls-server-name": _Text,
        "certificate-authority": _Text,
        "certificate-authority-data": _Text,
        "insecure-skip-tls-verify": _Flag,
        "proxy-url": _Text,
        "disable-compression": _Flag,
        "extensions": list[_Extension | None] | None,
    },
    total=False,
)


class _Variable(TypedDict, total=False):
    name: _Text
    value: _Text


class _Exec(TypedDict, total=False):
    command: _Text
    args: _Texts
    env: list[_Variable | None] | None
    apiVersion: _Text
    installHint: _Text
    interactiveMode: _Text
    provideClusterInfo: _Flag


class _AuthProvider(TypedDict, total=False):
    name: _Text


_User = TypedDict(
    "_User",
    {
        "client-certificate": _Text,
        "client-certificate-data": _Text,
        "client-key": _Text,
        "client-key-data": _Text,
        "token": _Text,
        "tokenFile": _Text,
        "username": _Text,
        "password": _Text,
        "as": _Text,
        "as-uid": _Text,
        "as-groups": _Texts,
        "as-user-extra": dict[str, _Texts] | None,
        "auth-provider": _AuthProvider | None,
        "exec": _Exec | None,
    },
    total=False,
)


class _Context(TypedDict, total=False):
    cluster: _Text
    user: _Text
    namespace: _Text


class _NamedCluster(TypedDict, total=False):
    name: _Text
    cluster: _Cluster | None


class _NamedUser(TypedDict, total=False):
    name: _Text
    user: _User | None


class _NamedContext(TypedDict, total=False):
    name: _Text
    context: _Context | None


_Config = TypedDict(
    "_Config",
    {
        "kind": _Text,
        "apiVersion": _Text,
        "clusters": list[_NamedCluster | None] | None,
        "users": list[_NamedUser | None] | None,
        "contexts": list[_NamedContext | None] | None,
        "current-context": _Text,
    },
    total=False,
)


class _Status(TypedDict, total=False):
    expirationTimestamp: _Text
    token: _Text
    clientCertificateData: _Text
    clientKeyData: _Text


class _Credential(TypedDict, total=False):
    kind: _Text
    apiVersion: _Text
    status: _Status | None


_JSON_TYPES: Final = {
    "str": "a string",
    "bool": "a boolean",
    "int": "a number",
    "float": "a number",
    "array": "a list",
    "object": "a mapping",
}


def decode_kubeconfig(text: bytes) -> Mapping[str, Any]:
    """Decode the first document of a kubeconfig; an empty one has no fields. Raises DecodeError."""
    return _decode(text, _Config, "Config", ("v1",))


def decode_credential(text: bytes, versions: Sequence[str]) -> Mapping[str, Any]:
    """Decode what an exec plugin prints, of one of these API versions. Raises DecodeError."""
    return _decode(text, _Credential, "ExecCredential", versions)


def _decode(text: bytes, type_: Any, kind: str, versions: Sequence[str]) -> Mapping[str, Any]:
    value = _parse(text)
    try:
        document: Mapping[str, Any] = msgspec.convert({} if value is None else value, type_)
    except msgspec.ValidationError as wrong:
        raise DecodeError(_type_problem(str(wrong))) from None
    actual_kind, version = document.get("kind") or kind, document.get("apiVersion") or versions[0]
    if actual_kind != kind or version not in versions:
        raise DecodeError(f'no kind "{actual_kind}" is registered for version "{version}"')
    return document


def _parse(text: bytes) -> Any:
    import yaml

    try:
        return json.loads(text)  # which may be indented with tabs
    except (ValueError, RecursionError):
        pass
    try:
        document = read_yaml(text, first=True)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise DecodeError(f"yaml: {f'line {mark.line + 1}: ' if mark else ''}{error.problem}") from None
    except yaml.reader.ReaderError as error:
        raise DecodeError(f"yaml: {error.reason}") from None
    except yaml.YAMLError as error:
        raise DecodeError(f"yaml: {' '.join(str(error).split())}") from None
    return document.value if document is not None else None


def _type_problem(message: str) -> str:
    """Say a type error in words, without values: they may be secrets."""
    match = re.fullmatch(r"Expected `(\w+).*`, got `(\w+)`(?: - at `\$\.?(.*)`)?", message)
    if match is None:
        return message
    expected, actual = (_JSON_TYPES.get(name, name) for name in match.groups()[:2])
    return f"{match[3] or 'the document'} must be {expected}, not {actual}"

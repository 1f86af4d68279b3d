"""YAML, JSON and field types, read and refused as Go's decoders do it, for kubeconfigs and plugins."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any, Final, Union

DEEPEST: Final = 1_000
"""Kubernetes' own objects end at about 20."""
_BRACKETS: Final = re.compile(r"[\[{\]}]")
_INDENTED: Final = re.compile(rf"^[ ?-]{{{DEEPEST}}}", re.MULTILINE)


def is_too_deep(text: str, loader: Any) -> bool:
    """Whether something in it is nested deeper than DEEPEST, read by events, which need no stack.

    Texts that cannot be that deep, by their brackets and their indentation, are not read for it.
    """
    if not _may_be_deep(text):
        return False
    import yaml

    depth = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > DEEPEST:
                    return True
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError:
        return False  # whoever reads the values says where it is wrong
    return False


def _may_be_deep(text: str) -> bool:
    steps = (1 if bracket in "[{" else -1 for bracket in _BRACKETS.findall(text))
    return max(accumulate(steps), default=0) > DEEPEST or _INDENTED.search(text) is not None


class NotYaml(ValueError):
    """A text is no YAML; the message is go-yaml's."""


def first_document(text: bytes) -> Any:
    """The first document, None for an empty text. Raises NotYaml."""
    import yaml

    if is_too_deep(text.decode(errors="replace"), _loader()):
        raise NotYaml(f"yaml: exceeded max depth of {DEEPEST}")
    try:
        loader = _loader()(text)
        try:
            return loader.get_data() if loader.check_data() else None
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise NotYaml(f"yaml: {_line_of(error)}{error.problem}") from None
    except yaml.reader.ReaderError as error:
        raise NotYaml(f"yaml: {error.reason}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise NotYaml(f"yaml: {' '.join(str(error).split())}") from None


@cache
def _loader() -> Any:
    """The safe loader without dates, and with a plain value for every tag that it does not know."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        pass

    Loader.yaml_implicit_resolvers = {
        first: [pair for pair in pairs if not pair[0].endswith((":timestamp", ":value"))]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def plain(loader: Any, node: Any) -> Any:
        if isinstance(node, yaml.MappingNode):
            return loader.construct_mapping(node, deep=True)
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        return loader.construct_scalar(node)

    Loader.add_constructor(None, plain)
    return Loader


def _line_of(error: Any) -> str:
    """The line as go-yaml counts it: a parser's from zero, a scanner's from one, and never the first."""
    import yaml

    for mark in (error.problem_mark, error.context_mark):
        if mark is not None and mark.line:
            return f"line {mark.line + isinstance(error, yaml.scanner.ScannerError)}: "
    return ""


_BASE64 = re.compile(r"[A-Za-z0-9+/]*")


class WrongType(ValueError):
    """A value is not what its field holds; the message is Go's."""


@dataclass(frozen=True, slots=True)
class Struct:
    """An object with these fields; its name as Go's messages have it."""

    name: str
    fields: Mapping[str, Type]


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list with items of one type."""

    item: Type


@dataclass(frozen=True, slots=True)
class MapOf:
    """Names with values of one type."""

    value: Type


Type = Union[str, Struct, ListOf, MapOf]  # noqa: UP007 - evaluated when the module is read
TEXT: Final = "string"
FLAG: Final = "bool"
BYTES: Final = "[]uint8"

_EXTENSIONS = ListOf(Struct("NamedExtension", {"name": TEXT}))
_CLUSTER = Struct(
    "Cluster",
    {
        "server": TEXT,
        "tls-server-name": TEXT,
        "insecure-skip-tls-verify": FLAG,
        "certificate-authority": TEXT,
        "certificate-authority-data": BYTES,
        "proxy-url": TEXT,
        "disable-compression": FLAG,
        "extensions": _EXTENSIONS,
    },
)
_EXEC = Struct(
    "ExecConfig",
    {
        "command": TEXT,
        "args": ListOf(TEXT),
        "env": ListOf(Struct("ExecEnvVar", {"name": TEXT, "value": TEXT})),
        "apiVersion": TEXT,
        "installHint": TEXT,
        "provideClusterInfo": FLAG,
        "interactiveMode": TEXT,
    },
)
_USER = Struct(
    "AuthInfo",
    {
        "client-certificate": TEXT,
        "client-certificate-data": BYTES,
        "client-key": TEXT,
        "client-key-data": BYTES,
        "token": TEXT,
        "tokenFile": TEXT,
        "as": TEXT,
        "as-uid": TEXT,
        "as-groups": ListOf(TEXT),
        "as-user-extra": MapOf(ListOf(TEXT)),
        "username": TEXT,
        "password": TEXT,
        "auth-provider": Struct("AuthProviderConfig", {"name": TEXT, "config": MapOf(TEXT)}),
        "exec": _EXEC,
        "extensions": _EXTENSIONS,
    },
)
_CONTEXT = Struct("Context", {"cluster": TEXT, "user": TEXT, "namespace": TEXT, "extensions": _EXTENSIONS})
KUBECONFIG: Final = Struct(
    "Config",
    {
        "preferences": Struct("Preferences", {"colors": FLAG, "extensions": _EXTENSIONS}),
        "clusters": ListOf(Struct("NamedCluster", {"name": TEXT, "cluster": _CLUSTER})),
        "users": ListOf(Struct("NamedAuthInfo", {"name": TEXT, "user": _USER})),
        "contexts": ListOf(Struct("NamedContext", {"name": TEXT, "context": _CONTEXT})),
        "current-context": TEXT,
        "extensions": _EXTENSIONS,
    },
)
EXEC_CREDENTIAL: Final = Struct(
    "ExecCredential",
    {
        "status": Struct(
            "ExecCredentialStatus",
            {
                "expirationTimestamp": TEXT,
                "token": TEXT,
                "clientCertificateData": TEXT,
                "clientKeyData": TEXT,
            },
        )
    },
)


def parse_api_version(document: Any, kind: str, versions: Sequence[str]) -> str:
    """An object's apiVersion, the first of those that are known where it has none. Raises WrongType."""
    trouble = "couldn't get version/kind; json parse error: json: cannot unmarshal"
    document = {} if document is None else document
    if not isinstance(document, Mapping):
        raise WrongType(f"{trouble} {_kind_of(document)} into Go value of type struct")
    for name in ("apiVersion", "kind"):
        if not isinstance(document.get(name) or "", str):
            found = _kind_of(document[name])
            raise WrongType(f"{trouble} {found} into Go struct field .{name} of type string")
    version, found = document.get("apiVersion") or versions[0], document.get("kind") or kind
    if version not in versions or found != kind:
        raise WrongType(f'no kind "{found}" is registered for version "{version}"')
    return str(version)


def check(value: Any, wanted: Type, holder: str = "", path: tuple[str, ...] = ()) -> None:
    """Raise WrongType for the first value, in the order of names, that is not what its field holds."""
    if value is None:
        return
    if isinstance(wanted, Struct) and isinstance(value, Mapping):
        for name in sorted(wanted.fields):
            check(value.get(name), wanted.fields[name], wanted.name, (*path, name))
    elif isinstance(wanted, ListOf) and isinstance(value, list):
        for item in value:
            check(item, wanted.item, holder, path)
    elif isinstance(wanted, MapOf) and isinstance(value, Mapping):
        for item in value.values():
            check(item, wanted.value, holder, path)
    elif wanted == BYTES and isinstance(value, str):
        decoded(value)
    elif not (wanted == TEXT and isinstance(value, str)) and not (wanted == FLAG and isinstance(value, bool)):
        field = f"{holder}.{'.'.join(path)}"
        raise WrongType(
            f"json: cannot unmarshal {_kind_of(value)} into Go struct field {field} of type {_name(wanted)}"
        )


def decoded(text: str) -> bytes:
    """What base64 stands for, with lines broken anywhere. Raises WrongType in Go's words."""
    joined = text.replace("\n", "").replace("\r", "")
    try:
        return base64.b64decode(joined, validate=True)
    except (binascii.Error, ValueError):
        found = _BASE64.match(joined)
        good = found.end() if found else 0
        at = good if good < len(joined) and joined[good] != "=" else good // 4 * 4
        raise WrongType(f"illegal base64 data at input byte {at}") from None


def _kind_of(value: Any) -> str:
    """What JSON calls a value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, Mapping):
        return "object"
    return "array" if isinstance(value, list) else "string"


def _name(wanted: Type) -> str:
    if isinstance(wanted, Struct):
        return f"v1.{wanted.name}"
    if isinstance(wanted, ListOf):
        return f"[]{_name(wanted.item)}"
    return f"map[string]{_name(wanted.value)}" if isinstance(wanted, MapOf) else wanted

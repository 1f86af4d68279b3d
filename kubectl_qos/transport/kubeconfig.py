"""Find, decode and merge kubeconfig files, apply flags, and refuse contexts that client-go refuses.

The output of exec plugins is decoded here too. Types declare only the fields that are used.

Source: k8s.io/client-go/tools/clientcmd (loader.go, client_config.go, overrides.go, validation.go,
api/v1/types.go) and pkg/apis/clientauthentication/v1/types.go.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypedDict

import msgspec

from kubectl_qos.errors import QosError, UsageError
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.proxy import proxy_problem, without_credentials
from kubectl_qos.yaml_loader import read_yaml

DEFAULT_FILE: Final = Path("~/.kube/config")
_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_NO_CLUSTER_HINT: Final = "give --kubeconfig or set KUBECONFIG; --demo and -f FILE need no cluster"
_PATH_FIELDS: Final = {
    "clusters": ("certificate-authority",),
    "users": ("client-certificate", "client-key", "tokenFile"),
    "contexts": (),
}
"""The lists of a kubeconfig, and the fields of their entries that are paths relative to the file."""
_MAX_CHOICES: Final = 8
INTERACTIVE_MODES: Final = ("Never", "IfAvailable", "Always")
_V1BETA1: Final = "client.authentication.k8s.io/v1beta1"


Entry = Mapping[str, Any]
"""A cluster, a user or a context. The types of its fields are checked, and no value is None."""
_Entries = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ResolvedContext:
    """A context with its cluster and user, after flags were applied."""

    context: str
    namespace: str
    cluster: Entry
    user: Entry
    cluster_name: str = ""
    user_name: str = ""


@dataclass(slots=True)
class _MergedConfig:
    files: list[Path] = field(default_factory=list)
    current: str = ""
    entries: dict[str, _Entries] = field(default_factory=lambda: {kind: {} for kind in _PATH_FIELDS})


def resolve_context(options: ConnectionOptions) -> ResolvedContext:
    """Return the context of flags and kubeconfigs, else of this pod's service account. Raises QosError."""
    merged = _merge_files(options)
    context_name, cluster_name, user_name = _select_names(merged, options)
    cluster = _override_cluster(merged.entries["clusters"].get(cluster_name, {}), options)
    if not cluster.get("server"):
        address = os.environ.get("KUBERNETES_SERVICE_HOST") and os.environ.get("KUBERNETES_SERVICE_PORT")
        if address and (_SERVICE_ACCOUNT / "token").is_file():
            log.log(log.DECISIONS, "no server is named: using the service account of this pod")
            return _pod_context(options)
        if not os.environ.get("KUBERNETES_MASTER"):
            raise _no_server_error(merged, context_name, cluster_name, options)
        cluster["server"] = os.environ["KUBERNETES_MASTER"]
    user = _override_user(merged.entries["users"].get(user_name, {}), options)
    if user_name and not user and user_name not in merged.entries["users"]:
        raise QosError(f'context "{context_name}": user "{user_name}" does not exist in the kubeconfig')
    of_context = merged.entries["contexts"].get(context_name, {}).get("namespace")
    namespace = options.namespace or of_context or "default"
    origin = "--namespace" if options.namespace else "the context" if of_context else "default"
    log.log(log.DECISIONS, f'namespace "{namespace}" ({origin})')
    return ResolvedContext(context_name, namespace, cluster, user, cluster_name, user_name)


def entry_names(options: ConnectionOptions) -> dict[str, tuple[str, ...]]:
    """Return the sorted names of the `clusters`, `users` and `contexts` in the files. Raises QosError."""
    return {kind: tuple(sorted(entries)) for kind, entries in _merge_files(options).entries.items()}


def context_names(options: ConnectionOptions) -> tuple[str, ...]:
    """Return the contexts in the order of the files. Raises QosError."""
    return tuple(_merge_files(options).entries["contexts"])


def _override_cluster(entry: Entry, options: ConnectionOptions) -> dict[str, Any]:
    """Apply flags: those about CAs replace the entry's, and --server drops its tls-server-name."""
    trust = options.insecure_skip_tls_verify or options.certificate_authority
    replaced = {
        "certificate-authority": trust,
        "certificate-authority-data": trust,
        "insecure-skip-tls-verify": trust,
        "tls-server-name": options.server,
    }
    flags = {
        "server": options.server,
        "certificate-authority": options.certificate_authority,
        "insecure-skip-tls-verify": options.insecure_skip_tls_verify,
        "tls-server-name": options.tls_server_name,
        "disable-compression": options.disable_compression,
    }
    return _override(entry, replaced, flags)


def _override_user(entry: Entry, options: ConnectionOptions) -> dict[str, Any]:
    """Apply flags: --token also replaces a token file, which client-go would go on reading."""
    replaced = {
        "tokenFile": options.token,
        "client-certificate-data": options.client_certificate,
        "client-key-data": options.client_key,
    }
    # As for kubectl, each value of a key has its own flag.
    extra: dict[str, list[str]] = {}
    for key, equals, value in (word.partition("=") for word in options.as_user_extra):
        if not (key and equals):
            raise UsageError(f"--as-user-extra {key!r} has no value", hint="write --as-user-extra KEY=VALUE")
        extra.setdefault(key, []).append(value)
    flags = {
        "token": options.token,
        "username": options.username,
        "password": options.password,
        "client-certificate": options.client_certificate,
        "client-key": options.client_key,
        "as": options.as_user,
        "as-uid": options.as_uid,
        "as-groups": list(options.as_groups),
        "as-user-extra": extra,
    }
    return _override(entry, replaced, flags)


def _override(entry: Entry, replaced: Entry, flags: Entry) -> dict[str, Any]:
    kept = {name: value for name, value in entry.items() if not replaced.get(name)}
    return kept | {name: value for name, value in flags.items() if value}


def _select_names(merged: _MergedConfig, options: ConnectionOptions) -> tuple[str, str, str]:
    for kind, name, word in (
        ("users", options.user, "auth info"),
        ("contexts", options.context, "context"),
        ("clusters", options.cluster, "cluster"),
    ):
        if name and name not in merged.entries[kind]:
            raise QosError(f'{word} "{name}" does not exist', _choices(merged, kind))
    contexts = merged.entries["contexts"]
    context_name = options.context or merged.current
    if context_name and context_name not in contexts:
        why = f"context was not found for specified context: {context_name}"
        raise QosError(why, _choices(merged, "contexts"))
    context = contexts.get(context_name, {})
    cluster_name = options.cluster or context.get("cluster") or ""
    user_name = options.user or context.get("user") or ""
    origin = "--context" if options.context else "the kubeconfig"
    log.log(log.DECISIONS, f'context "{context_name}" ({origin})')
    log.log(log.DECISIONS, f'cluster "{cluster_name}" ({"--cluster" if options.cluster else "the context"})')
    log.log(log.DECISIONS, f'user "{user_name}" ({"--user" if options.user else "the context"})')
    return context_name, cluster_name, user_name


def _choices(merged: _MergedConfig, kind: str) -> str:
    names = list(merged.entries[kind])
    if not names:
        return f"the kubeconfig defines no {kind}"
    more = ", …" if len(names) > _MAX_CHOICES else ""
    return f"--{kind[:-1]} takes one of: {', '.join(names[:_MAX_CHOICES])}{more}"


def _no_server_error(
    merged: _MergedConfig, context_name: str, cluster_name: str, options: ConnectionOptions
) -> QosError:
    """Return an error that says why no server is known; kubectl would try localhost:8080 instead."""
    contexts, files = merged.entries["contexts"], merged.files
    if not files:
        listed = os.environ.get("KUBECONFIG", "") if not options.kubeconfig else ""
        return QosError(
            f"no kubeconfig found {f'at {listed}' if listed else 'and not running in a pod'}",
            _NO_CLUSTER_HINT,
        )
    if not cluster_name and not context_name:
        if contexts:
            return QosError("kubeconfig has no current-context", _choices(merged, "contexts"))
        return QosError(f"kubeconfig {', '.join(map(str, files))} defines no contexts", _NO_CLUSTER_HINT)
    where = f'context "{context_name}": ' if context_name else ""
    is_known = cluster_name in merged.entries["clusters"]
    problem = "has no server" if is_known else "does not exist in the kubeconfig"
    return QosError(f'{where}cluster "{cluster_name}" {problem}')


def _pod_context(options: ConnectionOptions) -> ResolvedContext:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    cluster = {"server": f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"}
    if (_SERVICE_ACCOUNT / "ca.crt").exists():
        cluster["certificate-authority"] = str(_SERVICE_ACCOUNT / "ca.crt")
    file = _SERVICE_ACCOUNT / "namespace"
    namespace = os.environ.get("POD_NAMESPACE") or (file.read_text().strip() if file.exists() else "")
    return ResolvedContext(
        context="in-cluster",
        namespace=options.namespace or namespace or "default",
        cluster=_override_cluster(cluster, options),
        user=_override_user({"tokenFile": str(_SERVICE_ACCOUNT / "token")}, options),
    )


def _merge_files(options: ConnectionOptions) -> _MergedConfig:
    if options.kubeconfig:
        paths = [options.kubeconfig]
        if not Path(options.kubeconfig).expanduser().exists():
            raise QosError(f"stat {options.kubeconfig}: no such file or directory", _NO_CLUSTER_HINT)
    else:
        paths = (os.environ.get("KUBECONFIG") or str(DEFAULT_FILE)).split(os.pathsep)
    merged = _MergedConfig()
    problems: list[str] = []
    for file in [Path(path).expanduser() for path in dict.fromkeys(paths) if path]:
        try:
            config = _read(file)
            log.log(log.DECISIONS, f"kubeconfig {file}: {'loaded' if config is not None else 'not found'}")
            if config is not None:
                merged.files.append(file)
                merged.current = merged.current or config.get("current-context") or ""
                for kind in _PATH_FIELDS:
                    for name, entry in _entries(config, kind, file).items():
                        merged.entries[kind].setdefault(name, entry)  # the first one counts
        except DecodeError as error:
            problems.append(f'error loading config file "{file}": {error}')
    if problems:
        raise _combined_error(problems)
    return merged


def _read(file: Path) -> Mapping[str, Any] | None:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        verb = "read" if isinstance(error, IsADirectoryError) else "open"
        raise DecodeError(f"{verb} {file}: {(error.strerror or str(error)).lower()}") from None
    return _decode(content, _Config, "Config", ("v1",))


def _entries(config: Mapping[str, Any], kind: str, file: Path) -> _Entries:
    entries: _Entries = {}
    for item in filter(None, config.get(kind) or ()):
        name = item.get("name") or ""
        if name in entries:
            raise DecodeError(f'{kind} has the name "{name}" twice')
        entry = {key: value for key, value in (item.get(kind[:-1]) or {}).items() if value is not None}
        for key in _PATH_FIELDS[kind]:
            if entry.get(key):
                entry[key] = os.path.normpath(file.absolute().parent / entry[key])
        command = (entry.get("exec") or {}).get("command") or ""
        if os.sep in command:
            entry["exec"] = {**entry["exec"], "command": os.path.normpath(file.absolute().parent / command)}
        entries[name] = entry
    return entries


def validate_context(context: ResolvedContext) -> None:
    """Raise QosError for the first problem that client-go refuses; its notes have the others."""
    problems = [
        *_user_problems(context.user, context.user_name),
        *_plugin_problems(context.user, context.user_name),
        *_cluster_problems(context.cluster, context.cluster_name),
    ]
    if problems:
        raise _combined_error(problems)


def _combined_error(problems: Sequence[str]) -> QosError:
    error = QosError(problems[0])
    for other in problems[1:]:
        error.add_note(other)
    return error


def interactive_mode(plugin: Entry) -> str:
    """Return the interactiveMode of an exec plugin, or its default in the beta API; v1 has no default."""
    return plugin.get("interactiveMode") or ("IfAvailable" if plugin.get("apiVersion") == _V1BETA1 else "")


def _user_problems(user: Entry, name: str) -> Iterator[str]:
    certificate = user.get("client-certificate"), user.get("client-certificate-data")
    key = user.get("client-key"), user.get("client-key-data")
    if all(certificate):
        yield (
            f"client-cert-data and client-cert are both specified for {name}. client-cert-data will override."
        )
    if any(certificate) and all(key):
        yield f"client-key-data and client-key are both specified for {name}; client-key-data will override"
    if any(certificate) and not any(key):
        yield (
            f"client-key-data or client-key must be specified for {name} to use the clientCert"
            " authentication method."
        )
    if any(certificate):
        yield from _file_problems("client-cert", certificate[0], name)
        yield from _file_problems("client-key", key[0], name)
    if user.get("token") and (user.get("username") or user.get("password")):
        yield (
            f"more than one authentication method found for {name}; found [token basicAuth],"
            " only one is allowed"
        )
    if (user.get("as-uid") or user.get("as-groups") or user.get("as-user-extra")) and not user.get("as"):
        yield f"requesting uid, groups or user-extra for {name} without impersonating a user"


def _plugin_problems(user: Entry, name: str) -> Iterator[str]:
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
    elif mode not in INTERACTIVE_MODES:
        yield f'invalid interactiveMode for {name}: "{mode}"'


def _cluster_problems(cluster: Entry, name: str) -> Iterator[str]:
    proxy = cluster.get("proxy-url") or ""
    problem = proxy_problem(proxy) if proxy else ""
    if problem:
        yield f'invalid \'proxy-url\' "{without_credentials(proxy)}" for cluster "{name}": {problem}'
    if cluster.get("certificate-authority") and cluster.get("certificate-authority-data"):
        yield (
            f"certificate-authority-data and certificate-authority are both specified for {name}."
            " certificate-authority-data will override."
        )
    yield from _file_problems("certificate-authority", cluster.get("certificate-authority"), name)


def _file_problems(what: str, path: str | None, name: str) -> Iterator[str]:
    if not path:
        return
    try:
        with open(path, "rb"):  # noqa: PTH123 - Path would change how the path is shown
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        yield f"unable to read {what} {path} for {name} due to open {path}: {reason}"


_Text = str | None
_Flag = bool | None
_Texts = list[str | None] | None


class DecodeError(ValueError):
    """A kubeconfig or a plugin's output that cannot be decoded."""


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


def decode_credential(text: bytes, versions: Sequence[str]) -> Mapping[str, Any]:
    """Decode the output of an exec plugin in one of these API versions. Raises DecodeError."""
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
        return json.loads(text)  # YAML would refuse tabs
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
    """Return a sentence about a type error without values, which may be secrets."""
    match = re.fullmatch(r"Expected `(\w+).*`, got `(\w+)`(?: - at `\$\.?(.*)`)?", message)
    if match is None:
        return message
    expected, actual = (_JSON_TYPES.get(name, name) for name in match.groups()[:2])
    return f"{match[3] or 'the document'} must be {expected}, not {actual}"

"""What the command line says about a connection, and how it overrides a kubeconfig: by kubectl's rules.

Source: k8s.io/client-go/tools/clientcmd/client_config.go (getCluster, getAuthInfo) and overrides.go.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kubectl_qos.errors import QosError
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.go_decode import (
    KUBECONFIG,
    NotYaml,
    WrongType,
    check,
    first_document,
    parse_api_version,
)


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """The flags; None, an empty text and False are not given, as in client-go."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    cluster: str | None = None
    user: str | None = None
    server: str | None = None
    token: str | None = None
    username: str | None = None
    password: str | None = None
    as_user: str | None = None
    as_uid: str | None = None
    as_groups: tuple[str, ...] = ()
    certificate_authority: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None
    tls_server_name: str | None = None
    request_timeout: str | None = None
    insecure_skip_tls_verify: bool = False
    disable_compression: bool = False

    def on_cluster(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """A kubeconfig's cluster with the flags over it.

        What is said of trust replaces all that the kubeconfig says of it, and another server is not expected
        to have the name of the kubeconfig's.
        """
        changed = dict(entry)
        if self.insecure_skip_tls_verify or self.certificate_authority:
            for name in ("insecure-skip-tls-verify", "certificate-authority", "certificate-authority-data"):
                changed.pop(name, None)
        if self.server:
            changed.pop("tls-server-name", None)
        given = {
            "server": self.server,
            "certificate-authority": self.certificate_authority,
            "insecure-skip-tls-verify": self.insecure_skip_tls_verify,
            "tls-server-name": self.tls_server_name,
            "disable-compression": self.disable_compression,
        }
        return changed | {name: value for name, value in given.items() if value}

    def on_user(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """A kubeconfig's user with the flags over it.

        A token replaces a token file too, where client-go goes on reading the file and forgets the flag.
        """
        changed = dict(entry)
        if self.token:
            changed.pop("tokenFile", None)
        if self.client_certificate:
            changed.pop("client-certificate-data", None)
        if self.client_key:
            changed.pop("client-key-data", None)
        given = {
            "token": self.token,
            "username": self.username,
            "password": self.password,
            "client-certificate": self.client_certificate,
            "client-key": self.client_key,
            "as": self.as_user,
            "as-uid": self.as_uid,
            "as-groups": list(self.as_groups),
        }
        return changed | {name: value for name, value in given.items() if value}


DEFAULT_FILE: Final = Path("~/.kube/config")
_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_NEEDS_NONE: Final = "give --kubeconfig or set KUBECONFIG; --demo and -f FILE need no cluster"
_PATHS: Final = {
    "clusters": ("certificate-authority",),
    "users": ("client-certificate", "client-key", "tokenFile"),
    "contexts": (),
}
"""The lists of a kubeconfig, and the fields in them that are paths beside the file."""
_GO_NAMES: Final = {"clusters": "Cluster", "users": "AuthInfo", "contexts": "Context"}


@dataclass(frozen=True, slots=True)
class ResolvedContext:
    """One context: the cluster and user that it names, flags included, with every path absolute.

    `user_file` is where the user entry stands, for credentials that must be written back.
    """

    context: str
    namespace: str
    cluster: Mapping[str, Any]
    user: Mapping[str, Any]
    cluster_name: str = ""
    user_name: str = ""
    user_file: Path | None = None


@dataclass(slots=True)
class _Merged:
    """All files as one: entries by name, the first of a name kept, and the first current-context."""

    entries: dict[str, dict[str, dict[str, Any]]] = field(
        default_factory=lambda: {name: {} for name in _PATHS}
    )
    user_files: dict[str, Path] = field(default_factory=dict)
    current: str = ""


def resolve_context(options: ConnectionOptions) -> ResolvedContext:
    """What a person means: a context of the kubeconfig, a pod's own account, or what the flags alone say.

    --kubeconfig counts, without it KUBECONFIG, then ~/.kube/config. Raises QosError for a file that cannot be
    used and for names that do not exist.
    """
    listed = _listed(options)
    found = _read_all(_files(options, listed))
    merged = _merge(found)
    names = _names(merged, options)
    _tell(names, options)
    cluster = options.on_cluster(merged.entries["clusters"].get(names["cluster"], {}))
    if not cluster.get("server"):
        if _is_in_pod():
            log.log(log.DECISIONS, "no server is named: it is that of this pod, by its own account")
            return _of_pod(options)
        if not os.environ.get("KUBERNETES_MASTER"):
            raise _without_server(merged, names, found, listed)
        cluster["server"] = os.environ["KUBERNETES_MASTER"]
    user = options.on_user(merged.entries["users"].get(names["user"], {}))
    if names["user"] and not user and names["user"] not in merged.entries["users"]:
        raise QosError(
            f'context "{names["context"]}": user "{names["user"]}" does not exist in the kubeconfig'
        )
    context = merged.entries["contexts"].get(names["context"], {})
    namespace = options.namespace or context.get("namespace") or "default"
    place = "--namespace" if options.namespace else "the context" if context.get("namespace") else "default"
    log.log(log.DECISIONS, f'namespace "{namespace}" ({place})')
    return ResolvedContext(
        context=names["context"],
        namespace=namespace,
        cluster=cluster,
        user=user,
        cluster_name=names["cluster"],
        user_name=names["user"],
        user_file=merged.user_files.get(names["user"]),
    )


def _tell(names: Mapping[str, str], options: ConnectionOptions) -> None:
    """Say in the log which context, cluster and user are meant, and who says so."""
    for what, given in (("context", options.context), ("cluster", options.cluster), ("user", options.user)):
        said_by = "the kubeconfig" if what == "context" else "the context"
        log.log(log.DECISIONS, f'{what} "{names[what]}" ({f"--{what}" if given else said_by})')


def entry_names(options: ConnectionOptions, entries: str) -> tuple[str, ...]:
    """The names of all `contexts`, `clusters` or `users`, by name.

    Raises QosError for a file that cannot be used.
    """
    return tuple(sorted(_merge(_read_all(_files(options, _listed(options)))).entries[entries]))


def count_entries(options: ConnectionOptions) -> dict[str, int]:
    """How many files there are, and how many clusters, users and contexts in them. Raises QosError."""
    found = _read_all(_files(options, _listed(options)))
    return {"files": len(found)} | {name: len(all_) for name, all_ in _merge(found).entries.items()}


def _listed(options: ConnectionOptions) -> str:
    """The files that the environment names, if it counts."""
    return "" if options.kubeconfig else os.environ.get("KUBECONFIG", "")


def _files(options: ConnectionOptions, listed: str) -> list[Path]:
    given = options.kubeconfig
    paths = [given] if given else listed.split(os.pathsep) if listed else [str(DEFAULT_FILE)]
    files = [Path(path).expanduser() for path in dict.fromkeys(paths) if path]
    if given and not files[0].exists():
        raise QosError(f"stat {given}: no such file or directory", hint=_NEEDS_NONE)
    return files


def _is_in_pod() -> bool:
    named = os.environ.get("KUBERNETES_SERVICE_HOST") and os.environ.get("KUBERNETES_SERVICE_PORT")
    return bool(named) and (_SERVICE_ACCOUNT / "token").is_file()


def _of_pod(options: ConnectionOptions) -> ResolvedContext:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    cluster = {"server": f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"}
    if (_SERVICE_ACCOUNT / "ca.crt").exists():
        cluster["certificate-authority"] = str(_SERVICE_ACCOUNT / "ca.crt")
    file = _SERVICE_ACCOUNT / "namespace"
    namespace = os.environ.get("POD_NAMESPACE") or (file.read_text().strip() if file.exists() else "")
    return ResolvedContext(
        context="in-cluster",
        namespace=options.namespace or namespace or "default",
        cluster=options.on_cluster(cluster),
        user=options.on_user({"tokenFile": str(_SERVICE_ACCOUNT / "token")}),
    )


def _read_all(files: Iterable[Path]) -> dict[Path, Mapping[str, Any]]:
    """What the files that are there hold. Raises QosError, with all that are unusable named in it."""
    found: dict[Path, Mapping[str, Any]] = {}
    unusable: list[QosError] = []
    for file in files:
        try:
            config = _read(file)
        except QosError as error:
            unusable.append(error)
        else:
            state = "loaded" if config is not None else "not found"
            log.log(log.DECISIONS, f"kubeconfig {file}: {state}")
            if config is not None:
                found[file] = config
    if unusable:
        for other in unusable[1:]:
            unusable[0].add_note(str(other))
        raise unusable[0]
    return found


def _read(file: Path) -> Mapping[str, Any] | None:
    """A file's content, None for a file that is not there. Raises QosError in kubectl's words."""
    try:
        config = first_document(file.read_bytes())
        parse_api_version(config, "Config", ["v1"])
        check(config, KUBECONFIG)
    except FileNotFoundError:
        return None
    except OSError as error:
        verb = "read" if isinstance(error, IsADirectoryError) else "open"
        raise _unusable(file, f"{verb} {file}: {(error.strerror or str(error)).lower()}") from None
    except (NotYaml, WrongType) as error:
        raise _unusable(file, str(error)) from None
    return config or {}


def _merge(found: Mapping[Path, Mapping[str, Any]]) -> _Merged:
    merged = _Merged()
    for file, config in found.items():
        merged.current = merged.current or config.get("current-context") or ""
        for of_list in _PATHS:
            entries = _entries(config, of_list, file)
            if of_list == "users":
                merged.user_files = dict.fromkeys(entries, file) | merged.user_files
            merged.entries[of_list] = entries | merged.entries[of_list]
    return merged


def _entries(config: Mapping[str, Any], of_list: str, file: Path) -> dict[str, dict[str, Any]]:
    """A file's entries by name, with paths taken from the file's own folder."""
    found: dict[str, dict[str, Any]] = {}
    for entry in config.get(of_list) or ():
        name = (entry or {}).get("name") or ""
        if name in found:
            go = _GO_NAMES[of_list]
            raise _unusable(
                file,
                f'error converting *[]Named{go} into *map[string]*api.{go}: duplicate name "{name}" in list',
            )
        content = {key: value for key, value in (entry.get(of_list[:-1]) or {}).items() if value is not None}
        for key in _PATHS[of_list]:
            if content.get(key):
                content[key] = _beside(file, content[key])
        command = (content.get("exec") or {}).get("command") or ""
        if os.sep in command:
            content["exec"] = {**content["exec"], "command": _beside(file, command)}
        found[name] = content
    return found


def _beside(file: Path, path: str) -> str:
    return os.path.normpath(file.absolute().parent / path)


def _names(merged: _Merged, options: ConnectionOptions) -> dict[str, str]:
    """The names of the context, cluster and user that are meant. Raises QosError for an unknown one."""
    contexts = merged.entries["contexts"]
    if options.user and options.user not in merged.entries["users"]:
        raise QosError(
            f'auth info "{options.user}" does not exist', hint=_choices("--user", merged.entries["users"])
        )
    name = options.context or merged.current
    if options.context and name not in contexts:
        raise QosError(f'context "{name}" does not exist', hint=_choices("--context", contexts))
    if options.cluster and options.cluster not in merged.entries["clusters"]:
        hint = _choices("--cluster", merged.entries["clusters"])
        raise QosError(f'cluster "{options.cluster}" does not exist', hint=hint)
    if name and name not in contexts:
        hint = _choices("--context", contexts)
        raise QosError(f"context was not found for specified context: {name}", hint=hint)
    context = contexts.get(name, {})
    return {
        "context": name,
        "cluster": options.cluster or context.get("cluster") or "",
        "user": options.user or context.get("user") or "",
    }


def _without_server(
    merged: _Merged, names: Mapping[str, str], found: Iterable[Path], listed: str
) -> QosError:
    """Why no server is known; kubectl would ask localhost:8080, where hardly anyone listens."""
    contexts = merged.entries["contexts"]
    if not any(True for _ in found):
        where = f"at {listed}" if listed else "and this is not a pod"
        return QosError(f"no kubeconfig found {where}", hint=_NEEDS_NONE)
    if not names["cluster"] and not names["context"]:
        if contexts:
            return QosError("kubeconfig has no current-context", hint=_choices("--context", contexts))
        return QosError(f"kubeconfig {', '.join(map(str, found))} defines no contexts", hint=_NEEDS_NONE)
    place = f'context "{names["context"]}": ' if names["context"] else ""
    missing = names["cluster"] not in merged.entries["clusters"]
    what = "does not exist in the kubeconfig" if missing else "has no server"
    return QosError(f'{place}cluster "{names["cluster"]}" {what}')


def _choices(flag: str, entries: Iterable[str]) -> str:
    names = list(entries)
    if not names:
        return "the kubeconfig defines no contexts" if flag == "--context" else "the kubeconfig defines none"
    return f"{flag} takes one of: {', '.join(names[:8])}{', …' if len(names) > 8 else ''}"


def _unusable(file: Path, why: str) -> QosError:
    return QosError(f'error loading config file "{file}": {why}')

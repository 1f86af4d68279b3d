"""Kubeconfig files, found, read and merged as kubectl does it: whoever names a thing first decides it.

The kubernetes package has a loader too, but of several files it takes the last current-context, looks for
the client certificate of one file beside another, and ignores impersonation; so files are read here, and
only credential plugins are left to it (credentials.py).

Source: k8s.io/client-go/tools/clientcmd/loader.go.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kubectl_qos.errors import QosError

DEFAULT_FILE: Final = Path("~/.kube/config")
_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_NEEDS_NONE: Final = "give --kubeconfig or set KUBECONFIG; --demo and -f FILE need no cluster"
_PATHS: Final = {
    "clusters": ("certificate-authority",),
    "users": ("client-certificate", "client-key", "tokenFile"),
    "contexts": (),
}
"""The lists of a kubeconfig, and the fields in them that are paths beside the file."""


@dataclass(frozen=True, slots=True)
class Target:
    """One context: the cluster and user entries that it names, with every path absolute."""

    context: str
    namespace: str
    cluster: Mapping[str, Any]
    user: Mapping[str, Any]


def target(given: str | None, context: str | None) -> Target:
    """The context that a person means.

    Args:
        given: --kubeconfig; without it KUBECONFIG counts, then ~/.kube/config, then a pod's own account.
        context: --context; without it current-context.

    Raises:
        QosError: a file that cannot be used, or no such context; the message names it.
    """
    listed = given or os.environ.get("KUBECONFIG") or ""
    paths = [given] if given else [path for path in listed.split(os.pathsep) if path] or [str(DEFAULT_FILE)]
    files = [Path(path).expanduser() for path in paths]
    if given and not files[0].exists():
        raise QosError(f"stat {given}: no such file or directory", hint=_NEEDS_NONE)
    found = [path for path in files if path.exists()]
    if not found:
        if not listed and _is_in_pod():
            return _of_pod()
        where = f"at {listed}" if listed else "and this is not a pod"
        raise QosError(f"no kubeconfig found {where}", hint=_NEEDS_NONE)
    return _pick(_merge(found), found, context)


def _is_in_pod() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ and (_SERVICE_ACCOUNT / "token").exists()


def _of_pod() -> Target:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    namespace = _SERVICE_ACCOUNT / "namespace"
    return Target(
        context="in-cluster",
        namespace=(namespace.read_text().strip() if namespace.exists() else "") or "default",
        cluster={
            "server": f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
            "certificate-authority": str(_SERVICE_ACCOUNT / "ca.crt"),
        },
        user={"tokenFile": str(_SERVICE_ACCOUNT / "token")},
    )


def _merge(files: list[Path]) -> dict[str, Any]:
    """All files as one: entries by name, the first of a name kept, and the first current-context."""
    merged: dict[str, Any] = {name: {} for name in _PATHS}
    for file in files:
        config = _read(file)
        merged.setdefault("current-context", config.get("current-context") or None)
        if merged["current-context"] is None:
            del merged["current-context"]
        for name, path_fields in _PATHS.items():
            for entry in config.get(name) or ():
                merged[name].setdefault(*_named(entry, name, path_fields, file))
    return merged


def _read(file: Path) -> Mapping[str, Any]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        config = yaml.load(file.read_bytes(), Loader=loader)  # noqa: S506 - a safe loader
    except OSError as error:
        raise _unusable(file, f"open {file}: {(error.strerror or str(error)).lower()}") from None
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise _unusable(file, f"yaml: {line}{error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise _unusable(file, " ".join(str(error).split())) from None
    if config is None:
        return {}
    if not isinstance(config, Mapping) or not all(
        isinstance(config.get(name) or [], list) for name in _PATHS
    ):
        raise _unusable(file, "it is not a kubeconfig")
    return config


def _named(entry: Any, of_list: str, path_fields: tuple[str, ...], file: Path) -> tuple[str, dict[str, Any]]:
    """An entry's name and its content, with paths taken from the file's own folder."""
    kind = of_list.removesuffix("s")
    name = entry.get("name") if isinstance(entry, Mapping) else None
    content = entry.get(kind) if name is not None else None
    if name is None or not isinstance(content or {}, Mapping):
        raise _unusable(file, f"an entry of {of_list} is not a name with a {kind}")
    content = dict(content or {})
    for key in path_fields:
        if content.get(key):
            content[key] = str(file.absolute().parent / str(content[key]))
    return str(name), content


def _pick(merged: Mapping[str, Any], files: list[Path], context: str | None) -> Target:
    wanted = context or merged.get("current-context")
    contexts = merged["contexts"]
    if not wanted:
        if not contexts:
            names = ", ".join(map(str, files))
            raise QosError(f"kubeconfig {names} defines no contexts", hint=_NEEDS_NONE)
        raise QosError("kubeconfig has no current-context", hint=_choices(contexts))
    if wanted not in contexts:
        raise QosError(f'context "{wanted}" does not exist', hint=_choices(contexts))
    chosen = contexts[wanted]
    cluster_name, user_name = str(chosen.get("cluster") or ""), str(chosen.get("user") or "")
    cluster = merged["clusters"].get(cluster_name)
    if cluster is None:
        raise QosError(f'context "{wanted}": cluster "{cluster_name}" does not exist in the kubeconfig')
    if not cluster.get("server"):
        raise QosError(f'context "{wanted}": cluster "{cluster_name}" has no server')
    if user_name and user_name not in merged["users"]:
        raise QosError(f'context "{wanted}": user "{user_name}" does not exist in the kubeconfig')
    return Target(
        context=wanted,
        namespace=chosen.get("namespace") or "default",
        cluster=cluster,
        user=merged["users"].get(user_name, {}),
    )


def _choices(contexts: Mapping[str, Any]) -> str:
    if not contexts:
        return "the kubeconfig defines no contexts"
    names = list(contexts)
    return f"--context takes one of: {', '.join(names[:8])}{', …' if len(names) > 8 else ''}"


def _unusable(file: Path, why: str) -> QosError:
    return QosError(f'error loading config file "{file}": {why}')

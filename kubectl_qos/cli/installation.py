"""What `bug-report` says of this installation and its terminal: no paths, no names, no secrets."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Final

from kubectl_qos import __version__
from kubectl_qos.config.paths import config_file
from kubectl_qos.config.settings import read_yaml
from kubectl_qos.errors import QosError

_LIBRARIES: Final = ("textual", "urllib3", "msgspec", "pyyaml", "platformdirs", "kubernetes", "textual-serve")
_VARIABLES: Final = (
    *("KUBECONFIG", "KUBECTL_QOS_CONFIG", "KUBECTL_QOS_STATE", "NO_COLOR", "FORCE_COLOR", "TMUX", "STY"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE"),
)
"""Of these only whether they are set."""
_OF_TERMINALS: Final = ("TERM", "COLORTERM", "TERM_PROGRAM", "LANG", "LC_ALL")
_PLAIN_SETTINGS: Final = frozenset({"theme", "view", "readonly", "refresh", "ascii", "motion", "mouse"})
"""Settings whose values name nothing of a cluster."""
_KUBECTL_SECONDS: Final = 5.0


def installation() -> dict[str, str]:
    """Versions, where it runs, and how it is set up."""
    return {
        "kubectl-qos": f"{__version__} ({_installed()})",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "libraries": ", ".join(_libraries()) or "none found",
        "kubectl": _kubectl(),
        "terminal": ", ".join(_terminal(os.environ)),
        "variables": ", ".join(name for name in _VARIABLES if os.environ.get(name)) or "none set",
        "settings": _settings(),
    }


def _installed() -> str:
    """How it came here."""
    if getattr(sys, "frozen", False):
        return "binary"
    try:
        found = metadata.distribution("kubectl-qos")
    except metadata.PackageNotFoundError:
        return "not installed"
    by = (found.read_text("INSTALLER") or "an unknown installer").strip()
    is_editable = '"editable": true' in (found.read_text("direct_url.json") or "")
    return f"{'editable' if is_editable else 'package'}, by {by}"


def _libraries() -> Iterator[str]:
    for name in _LIBRARIES:
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue


def _kubectl() -> str:
    """Its version, which it says without a kubeconfig."""
    path = shutil.which("kubectl")
    if path is None:
        return "not found"
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            [path, "version", "--client"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=_KUBECTL_SECONDS,
            env={**os.environ, "KUBECONFIG": os.devnull},
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"there, but it does not say its version ({type(error).__name__})"
    return done.stdout.decode(errors="replace").partition("\n")[0].removeprefix("Client Version: ")


def _terminal(variables: Mapping[str, str]) -> Iterator[str]:
    yield from (f"{name}={variables[name]}" for name in _OF_TERMINALS if variables.get(name))
    streams = {"stdin": sys.stdin, "stdout": sys.stdout, "stderr": sys.stderr}
    seen = [name for name, stream in streams.items() if stream is not None and stream.isatty()]
    yield f"terminal at {', '.join(seen)}" if seen else "no terminal"
    if seen:
        size = os.get_terminal_size(streams[seen[-1]].fileno())
        yield f"{size.columns}x{size.lines}"
    yield f"encoding {getattr(sys.stdout, 'encoding', None) or 'none'}"


def _settings() -> str:
    """The settings that are said, with the values of those that name nothing."""
    path = config_file()
    try:
        document = read_yaml(path) if path is not None else None
        if document is None:
            return "defaults"
        entries = document.entries("setting")
    except QosError:
        return "the file cannot be used"
    found = (
        f"{name} {value.text()}" if name in _PLAIN_SETTINGS and value.node.id == "scalar" else _name(name)
        for name, value in entries.items()
    )
    return ", ".join(found) or "defaults"


def _name(setting: str) -> str:
    """A setting whose value is not told; a name that is none of ours is not either."""
    return setting if setting in {"columns", "scope", "contexts", "keys"} else "an unknown one"

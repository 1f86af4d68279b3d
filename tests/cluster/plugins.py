"""Exec plugins for kubeconfigs: scripts that count how often they are run."""

import json
import stat
import sys
import textwrap
from pathlib import Path
from typing import Any

API_VERSION = "client.authentication.k8s.io/v1"


def plugin(folder: Path, code: str) -> dict[str, Any]:
    """A user entry with a plugin that runs this Python code; `count` is which run this is, from 1."""
    script = folder / "plugin"
    counted = f"""\
#!{sys.executable}
import json, os, sys
with open({str(folder / "calls")!r}, "a+") as calls:
    calls.write("x")
    calls.seek(0)
    count = len(calls.read())
"""
    script.write_text(counted + textwrap.dedent(code))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": API_VERSION, "command": str(script), "interactiveMode": "Never"}}


def calls(folder: Path) -> int:
    counted = folder / "calls"
    return len(counted.read_text()) if counted.exists() else 0


def gives(**status: Any) -> str:
    """Code that prints a credential; values are expressions where they begin with `=`."""
    found = json.dumps({"kind": "ExecCredential", "apiVersion": API_VERSION})
    fields = ", ".join(
        f"{name!r}: {value[1:] if isinstance(value, str) and value.startswith('=') else repr(value)}"
        for name, value in status.items()
    )
    return f"print(json.dumps({{**{found}, 'status': {{{fields}}}}}))"

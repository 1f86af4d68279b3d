"""Tests the wheel as users install it: in new environments, without the files of the checkout.

    python release/installed.py dist/kubectl_qos-0.1.0-py3-none-any.whl [PYTHON ...]

Without any PYTHON it tries each of 3.11 to 3.14 that is installed. The package index has to be reachable.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

MINORS: Final = (11, 12, 13, 14)
COMMANDS: Final = (
    ("--version",),
    ("--help",),
    ("version", "--client"),
    ("top", "--demo"),
    ("explain", "pod/prometheus-0", "-n", "monitoring", "--demo"),
    ("completion", "bash"),
    ("completion", "zsh"),
    ("__complete", ""),
)
DEVELOPMENT: Final = {
    "hatchling",
    "hypothesis",
    "mypy",
    "pyinstaller",
    "pytest",
    "ruff",
    "sphinx",
    "textual-serve",
}
ORIGINS: Final = """
import contextlib, io, sys
import kubectl_qos.tui.app
from kubectl_qos.__main__ import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    sys.argv = ["kubectl-qos", "top", "--demo"]
    main()
files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
print(*sorted(filter(None, files)), sep="\\n")
"""


class Failed(Exception):
    """A step failed."""


def run(folder: Path, *command: str | Path) -> str:
    """The output of a command, run in a folder with an environment that has only the settings of the index.

    Raises Failed with its output if it fails.
    """
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))}
    kept |= {name: os.environ[name] for name in ("SYSTEMROOT", "TEMP") if name in os.environ}
    environment = kept | {"HOME": str(folder), "PATH": os.defpath, "LANG": "C.UTF-8"}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        check=False,
        capture_output=True,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise Failed(
            f"{' '.join(map(str, command))} ended with {done.returncode}: {done.stderr or done.stdout}"
        )
    return done.stdout


def interpreters() -> Iterator[str]:
    """Each supported Python that is installed here, once for each minor version."""
    for minor in MINORS:
        name = f"python3.{minor}"
        managed = sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/{name}"))
        found = [str(path) for path in managed] or [path for path in [shutil.which(name)] if path]
        if found:
            yield found[-1]
        else:
            print(f"skipped: {name} is not installed")


def scripts_of(environment: Path) -> Path:
    """The folder of an environment's executables."""
    return environment / ("Scripts" if sys.platform == "win32" else "bin")


def check_commands(folder: Path, program: Path) -> None:
    """Raise Failed if a command of the installed program fails or prints nothing."""
    for arguments in COMMANDS:
        if not run(folder, program, *arguments).strip():
            raise Failed(f"{program.name} {' '.join(arguments)} printed nothing")
        print(f"    {program.name} {' '.join(arguments)}")
    completed = run(folder, program.with_name("kubectl_complete-qos"), "to")
    if not completed.startswith("top\t"):
        raise Failed(f"kubectl_complete-qos to: {completed!r}")
    print("    kubectl_complete-qos to")


def check_origins(folder: Path, python: Path) -> None:
    """Raise Failed if the program uses a file that is neither the environment's nor its Python's."""
    roots = run(
        folder, python, "-c", "import sys; print(sys.prefix, sys.base_prefix, sep='\\n')"
    ).splitlines()
    files = run(folder, python, "-c", ORIGINS).splitlines()
    if strange := [file for file in files if file != "<string>" and not file.startswith(tuple(roots))]:
        raise Failed(f"files from elsewhere are used: {', '.join(strange)}")
    print(f"    {len(files)} modules, all of the environment")


def check_wheel(wheel: Path, python: str) -> None:
    """Raise Failed if the wheel does not work in a new environment of that Python."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, environment = Path(temporary) / "empty", Path(temporary) / "environment"
        folder.mkdir()
        print(f"{run(folder, python, '--version').strip()}: pip install {wheel.name}")
        run(folder, python, "-m", "venv", environment)
        own, program = scripts_of(environment) / "python", scripts_of(environment) / "kubectl-qos"
        pip = (own, "-m", "pip", "--quiet", "--disable-pip-version-check")
        run(folder, *pip, "install", wheel)
        run(folder, *pip, "check")
        names = {line.split("==")[0].lower() for line in run(folder, *pip, "freeze").splitlines()}
        if unwanted := names & DEVELOPMENT:
            raise Failed(f"packages of development came along: {', '.join(sorted(unwanted))}")
        check_commands(folder, program)
        check_origins(folder, own)
        print("    pip install kubectl-qos[web]")
        run(folder, *pip, "install", f"{wheel}[web]")
        run(folder, own, "-c", "import kubectl_qos.web, textual_serve, aiohttp")
        run(folder, program, "web", "--help")


def check_uv_tool(wheel: Path) -> None:
    """Raise Failed if `uv tool install` does not install a working program."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        print(f"uv tool install {wheel.name}")
        uv = (sys.executable, "-m", "uv", "--quiet", "--no-config", "--cache-dir", folder / "cache")
        places = ("env", f"UV_TOOL_DIR={folder / 'tools'}", f"UV_TOOL_BIN_DIR={folder / 'bin'}")
        run(folder, *places, *uv, "tool", "install", "--python", sys.executable, wheel)
        check_commands(folder, folder / "bin" / "kubectl-qos")


def main(arguments: Sequence[str]) -> int:
    """Print each step; return 1 with a message at the first that fails."""
    wheel, *pythons = arguments
    try:
        for python in pythons or interpreters():
            check_wheel(Path(wheel).resolve(), python)
        check_uv_tool(Path(wheel).resolve())
    except Failed as failed:
        print(f"error: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

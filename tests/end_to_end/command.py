"""The command line, run in this process or in one of its own."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import pytest

from kubectl_qos import __main__ as program
from kubectl_qos.cli import output
from tests.contract import check_output

TIMEOUT_SECONDS = 60


class Done(NamedTuple):
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Nothing of the machine's own configuration but where programs are."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    return {**kept, "HOME": str(home), "LANG": "C.UTF-8", **(more or {})}


@contextmanager
def signals_arrive() -> Iterator[None]:
    """Processes started here get SIGINT and SIGHUP, also if tests in the background ignore them."""
    before = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGHUP)]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def command(*arguments: str | Path) -> list[str]:
    """The words that start it in a process of its own."""
    return [sys.executable, "-m", "kubectl_qos", *map(str, arguments)]


class Run:
    """Runs the command in a folder that is its home.

    A call runs `main` in this process, with the streams, environment and folder that a process of its own
    would have. `process` starts one, for what only a process shows: signals, encodings, imports at its start.
    """

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(
        self, *arguments: str | Path, given: str | bytes = b"", variables: Mapping[str, str] | None = None
    ) -> Done:
        """Run it to its end; `given` is its standard input."""
        words = [str(argument) for argument in arguments]
        with ExitStack() as stack:
            stdin, stdout, stderr = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
            stdin.write(_bytes(given))
            stdin.seek(0)
            encoding = (variables or {}).get("PYTHONIOENCODING", "utf-8")
            with _as_process(self.home, variables), _streams(stdin, stdout, stderr, encoding=encoding):
                code = _exit_code(words)
            done = Done(code, _text(stdout, encoding), _text(stderr, encoding))
        check_output(words, done.out)
        return done

    def process(
        self, *arguments: str | Path, given: str | bytes = b"", variables: Mapping[str, str] | None = None
    ) -> Done:
        """The same in a process of its own."""
        done = subprocess.run(
            command(*arguments),
            input=_bytes(given),
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
            cwd=self.home,
            env=environment(self.home, variables),
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def _exit_code(words: list[str]) -> int:
    try:
        return program.main(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)


@contextmanager
def _as_process(home: Path, variables: Mapping[str, str] | None) -> Iterator[None]:
    """The environment, folder and state that a new process has."""
    thresholds = gc.get_threshold()
    with pytest.MonkeyPatch.context() as patch:
        new = environment(home, variables)
        for name in os.environ.keys() - new.keys():
            patch.delenv(name)
        for name, value in new.items():
            patch.setenv(name, value)
        patch.chdir(home)
        patch.setattr(sys, "argv", [str(program.__file__)])
        patch.setattr(output, "_is_closed", False)
        try:
            yield
        finally:
            gc.enable()
            gc.unfreeze()
            gc.set_threshold(*thresholds)


@contextmanager
def _streams(*files: IO[bytes], encoding: str) -> Iterator[None]:
    """Descriptors 0 to 2 and the streams above them are these files."""
    names = ("stdin", "stdout", "stderr")
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [(os.dup(number), getattr(sys, name)) for number, name in enumerate(names)]
    try:
        for number, (name, file) in enumerate(zip(names, files, strict=True)):
            os.dup2(file.fileno(), number)
            stream = open(number, "r" if number == 0 else "w", encoding=encoding, closefd=False)  # noqa: SIM115
            stream.reconfigure(line_buffering=number == 2)
            setattr(sys, name, stream)
        yield
    finally:
        for number, (name, (descriptor, stream)) in enumerate(zip(names, kept, strict=True)):
            getattr(sys, name).close()
            setattr(sys, name, stream)
            os.dup2(descriptor, number)
            os.close(descriptor)


def _bytes(given: str | bytes) -> bytes:
    return given.encode() if isinstance(given, str) else given


def _text(file: IO[bytes], encoding: str) -> str:
    file.seek(0)
    return file.read().decode(encoding)

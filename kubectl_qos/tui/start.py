"""Start the terminal UI: read its settings, prepare the terminal, and run the app."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final

from textual import constants

from kubectl_qos.cluster.source import Source
from kubectl_qos.config import config_file, state_path
from kubectl_qos.config.settings import AllowedNames, UserSettings, read_settings
from kubectl_qos.config.state import HistoryFile, history_path, load_state, save_state
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.pod_columns import BY_KEY
from kubectl_qos.tui.actions import ACTIONS, TOGETHER
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.follower import FindPod
from kubectl_qos.tui.shell import NO_CONTEXTS, ContextSwitch
from kubectl_qos.tui.terminal import needs_ascii
from kubectl_qos.tui.themes import ANSI, COLOURS
from kubectl_qos.tui.view import ListKind


def settings() -> UserSettings:
    """Read the settings file. Raises InputError with its first mistake."""
    allowed = AllowedNames(
        columns=[key for key in BY_KEY if key != "container"] + ["trend"],
        themes=[*COLOURS, ANSI.name],
        starts=COLOURS,
        views=[kind.value for kind in ListKind if kind is not ListKind.CLUSTERS],
        actions={action.name: () if action.yields else action.keys for action in ACTIONS},
        active_together=[[group.name.lower() for group in together] for together in TOGETHER],
    )
    return read_settings(config_file(), allowed)


def start(  # noqa: PLR0913 - the parameters of the app
    source: Source,
    scope: Scope,
    settings: UserSettings,
    *,
    find: FindPod | None = None,
    notes: Sequence[str] = (),
    readonly: bool = False,
    keeps_history: bool = True,
    contexts: ContextSwitch = NO_CONTEXTS,
) -> int:
    """Run the UI until it is left; return the exit code.

    `scope` says which pods are read, `find` finds a pod whose edit screen is opened at once, `notes` are
    about the source. With `keeps_history` later runs can undo changes. Raises QosError if `find` finds no
    pod, or if there is no usable terminal.
    """
    _check_terminal(os.environ)
    _read_keys_from_terminal()
    _size_the_terminal()
    if "ESCDELAY" not in os.environ:
        constants.ESCAPE_DELAY = _ESCAPE_SECONDS  # type: ignore[misc]
    path = state_path("state.json")
    state = load_state(path)
    encoding = getattr(sys.__stderr__, "encoding", None)  # where Textual paints
    app = QosApp(
        source,
        scope,
        find=find,
        notes=notes,
        settings=settings,
        state=state,
        readonly=readonly,
        contexts=contexts,
        history=HistoryFile(history_path()) if keeps_history else HistoryFile(None, problem=""),
        ascii_only=needs_ascii(os.environ, encoding) if settings.ascii is None else settings.ascii,
    )
    with _leave_on_signals(app):
        _hang_up_with_terminal()
        refused = app.run(mouse=settings.mouse)
    if not app.is_web:
        save_state(path, app.state)
    if isinstance(refused, QosError):
        raise refused
    return app.return_code or 0


def _read_keys_from_terminal() -> None:
    """Read keys from the terminal itself: standard input may be the file that was read (`-f -`)."""
    if sys.__stdin__ is not None and sys.__stdin__.isatty():
        return
    try:
        os.dup2(os.open(os.ctermid(), os.O_RDONLY), 0)
    except (OSError, AttributeError):
        raise QosError(
            "the terminal UI needs a terminal for its keys", hint="kubectl qos top prints the ranking"
        ) from None


def _size_the_terminal() -> None:
    """Give a terminal without a size, such as a serial line, the usual size.

    Textual and rich assume different sizes for such a terminal, and would repaint it forever.
    """
    if sys.platform == "win32" or not os.isatty(0):
        return
    import termios

    if 0 in termios.tcgetwinsize(0):
        termios.tcsetwinsize(0, _USUAL_SIZE)


_ESCAPE_SECONDS: Final = 0.05
"""How long to wait for the rest of a sequence that begins with escape; Textual waits twice as long."""
_USUAL_SIZE: Final = (24, 80)
"""Rows and columns."""


def _check_terminal(environment: Mapping[str, str]) -> None:
    """Raise QosError for a terminal that cannot move its cursor, unless a driver paints elsewhere."""
    if environment.get("TERM") == "dumb" and "TEXTUAL_DRIVER" not in environment:
        raise QosError(
            "the terminal UI cannot be shown here: TERM=dumb says that the terminal cannot move its cursor",
            hint="kubectl qos top prints the ranking",
        )


@contextmanager
def _leave_on_signals(app: QosApp) -> Iterator[None]:
    """Restore the terminal and save the state on a signal, as `q` does."""

    def leave(number: int, _: FrameType | None) -> None:
        if number != signal.SIGTERM:
            # The terminal is gone, and a writer that fails would be waited for.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # the UI has not begun, or has ended
            raise SystemExit(128 + number) from None
        loop.call_soon_threadsafe(app.end, 128 + number)

    names = ("SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _hang_up_with_terminal() -> None:
    """End the UI when its terminal goes away, as SIGHUP does.

    Only the session that the terminal controls gets SIGHUP; other readers would read end of file forever.
    """
    if not hasattr(select, "poll") or not os.isatty(0):
        return
    terminal = select.poll()
    terminal.register(0, 0)

    def wait() -> None:
        if any(event & select.POLLHUP for _, event in terminal.poll()):
            os.kill(os.getpid(), signal.SIGHUP)

    threading.Thread(target=wait, name="hang-up", daemon=True).start()

"""Work in threads, whose results come back to the UI's thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from textual.message_pump import MessagePump

from kubectl_qos.errors import QosError

T = TypeVar("T")


def run_in_background(
    pump: MessagePump, work: Callable[[], T], then: Callable[[T | QosError], object]
) -> None:
    """Run work in a thread, and `then` with its result in the UI's thread, unless the pump is closed."""

    def run() -> None:
        result = attempt(work)
        with suppress(RuntimeError):  # the event loop is closed: the UI has ended
            pump.call_later(then, result)

    threading.Thread(target=run, name="qos-worker", daemon=True).start()


def attempt(work: Callable[[], T]) -> T | QosError:
    """Return the result of work in a thread, or its error."""
    try:
        return work()
    except QosError as error:
        return error
    except Exception as error:  # noqa: BLE001 - nothing else would show an exception of a thread
        return QosError(
            f"unexpected {type(error).__name__}: {error}",
            hint="this is a defect of kubectl-qos; kubectl qos top -v=9 shows where",
        )

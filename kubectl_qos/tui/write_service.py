"""Who may write where, what is under way, and the journal of it. Everything that writes goes through here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from textual.message_pump import MessagePump

from kubectl_qos.cluster.source import Source
from kubectl_qos.config.history_file import HistoryFile
from kubectl_qos.config.settings import Settings
from kubectl_qos.errors import QosError
from kubectl_qos.tui.follower import in_background
from kubectl_qos.tui.workers import ApplyDone, ApplyJob, run_apply

if TYPE_CHECKING:
    from kubectl_qos.cluster.writer import Writer
    from kubectl_qos.edit.apply import ApplyResult

Taker = Callable[["ApplyResult | QosError"], bool]
"""Takes the answer to a write; False where nobody is there any more to read it."""


class WriteService:
    """What screens ask before and while they write.

    Args:
        pump: the app, which gets the answers.
        settings: what the person's file says.
        journal: where writes are put down.
        readonly: whether the command line says that nothing is written.
    """

    def __init__(
        self, pump: MessagePump, settings: Settings, history: HistoryFile, *, readonly: bool
    ) -> None:
        self._pump = pump
        self._settings = settings
        self._readonly = readonly
        self._takers: dict[ApplyJob, Taker] = {}
        self.history = history

    def is_readonly(self, context: str) -> bool:
        """Whether everything that could change a cluster is out of reach."""
        return self._readonly or bool(self._settings.for_context(context).readonly)

    def writer_of(self, source: Source) -> Writer:
        """What writes to a source. Raises QosError with the sentence why nothing does."""
        if self.is_readonly(source.title):
            by = "--readonly" if self._readonly else f"your settings for {source.title}"
            raise QosError(f"nothing is written: {by} says read-only")
        return source.writer()

    def confirms_by_name(self, context: str) -> bool:
        """Whether the name of a context must be typed before anything is written to it."""
        return self._settings.for_context(context).confirm == "name"

    def send(self, job: ApplyJob, take: Taker) -> None:
        """Write what a person confirmed, in a thread."""
        self._takers[job] = take
        in_background(self._pump, partial(run_apply, job, self.history))

    def sent(self, message: ApplyDone) -> tuple[str, bool] | None:
        """Hand the answer on; without anybody who takes it, a sentence, and whether it is a bad one."""
        if self._takers.pop(message.job)(message.found):
            return None
        from kubectl_qos.edit.apply import UnknownOutcome

        name = message.job.name
        if isinstance(message.found, UnknownOutcome):
            return f"{name}: {message.found}", True
        if isinstance(message.found, QosError):
            return f"{name} was not changed: {message.found}", True
        return f"{name} was changed", False

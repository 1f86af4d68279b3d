"""Where a change stands that is about to land: its ways, what the server said of the chosen one, as lines.

Not here: keys, workers and dialogs (screens/landing.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kubectl_qos.cluster.writer import ConflictError, DryRunResult, Writer
from kubectl_qos.edit.edits import Edit, value_now
from kubectl_qos.edit.history import ValueConflict
from kubectl_qos.edit.patch import PatchRequest
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.edit.server_response import expected_response
from kubectl_qos.edit.strategy import Strategy, find_strategies
from kubectl_qos.errors import QosError
from kubectl_qos.present.apply import change_lines, expected_response_line, request_lines, strategy_title
from kubectl_qos.present.format import escape
from kubectl_qos.present.output import Section
from kubectl_qos.tui.actions import Keys
from kubectl_qos.tui.edit_target import REFUSED, EditTarget, finding_sections
from kubectl_qos.tui.widgets.strategies import accepted_lines, error_lines, sent_error_lines, table_lines
from kubectl_qos.tui.widgets.text_view import TextLine


class ApplyState:
    """One change; `ways` is empty until it is known what is around the object.

    Attributes:
        subject: whose change it is.
        preview: what it does.
        ways: in which it can land, the possible ones first.
        chosen: the number of one of them.
        writer: who would write it, or why nobody does.
        asking: the request whose dry run has no answer yet.
        then_apply: whether the question follows that answer.
        rehearsed: what the server accepted, of the chosen way.
        error: what went wrong last.
        keys: those that the lines mention.
    """

    def __init__(
        self, subject: EditTarget, edits: Iterable[Edit], conflicts: Sequence[ValueConflict] = ()
    ) -> None:
        self._edits = tuple(edits)
        self._conflicts = tuple(conflicts)
        self._related: RelatedObjects | None = None
        self.keys = Keys()
        self.subject = subject
        self.preview = subject.preview(self._edits)
        self.strategies: tuple[Strategy, ...] = ()
        self.chosen = 0
        self.writer: Writer | QosError = QosError("")
        self.asking: PatchRequest | None = None
        self.then_apply = False
        self.dry_run_result: DryRunResult | None = None
        self.error: QosError | None = None

    @property
    def strategy(self) -> Strategy:
        """The chosen one."""
        return self.strategies[self.chosen]

    @property
    def request(self) -> PatchRequest | None:
        """What would be sent."""
        return self.strategy.request if self.strategies else None

    @property
    def is_stale(self) -> bool:
        """Whether someone else changed the same values, so that a person has to decide."""
        return isinstance(self.error, ConflictError)

    def take(self, related: RelatedObjects, *, anew: bool = False) -> None:
        """What is around the object; `anew` makes the same change of the object as it is in there."""
        before = self.strategy.kind if self.strategies else None
        try:
            if anew:
                self.subject = self.subject.now(related.raw)
                self.preview = self.subject.preview(self._edits)
                self._conflicts = ()
            self.strategies = find_strategies(self.subject.pod, self._edits, self.preview, related)
        except QosError as error:
            self.error = error
            return
        self._related = related
        self.chosen = next(
            (place for place, strategy in enumerate(self.strategies) if strategy.kind is before), 0
        )

    def choose(self, number: int) -> bool:
        """Another way; False where it is the same one. What the server said of the other counts no more."""
        if not self.strategies or number % len(self.strategies) == self.chosen:
            return False
        self.chosen = number % len(self.strategies)
        self.forget()
        return True

    def forget(self) -> None:
        """What the server said, and what it was asked."""
        self.dry_run_result = self.error = self.asking = None
        self.then_apply = False

    def why_not(self) -> str:
        """Why nothing can be sent, empty where something can."""
        if not self.strategies:
            return "what is around it is not known yet" if self.error is None else str(self.error)
        if self.is_stale:
            return "someone else changed it: look again, or keep ours"
        if self.strategy.request is None:
            why = self.strategy.reason or "save the manifest, delete the pod and create it anew"
            return f"{strategy_title(self.strategy)}: {why}"
        if isinstance(self.writer, QosError):
            return f"{self.writer}; {self.keys.first('landing.patch')} shows the patch, to save it"
        return ""

    def change_lines(self) -> list[TextLine]:
        """The values before and after, and who else has changed them."""
        request, pod = self.request, self.subject.pod
        if request is not None:
            lines = change_lines(request.before, request.edits)
        else:
            before = [replace(edit, quantity=value_now(pod, edit)) for edit in self._edits]
            lines = change_lines(before, self._edits)
        found = [TextLine(f"  {line}") for line in lines]
        if self._conflicts:
            found.append(TextLine("! someone else has changed this since:", "wrong"))
            found += table_lines(self._conflicts)
        return found

    def answer_lines(self) -> list[TextLine]:
        """What is known of the chosen way, the newest alone."""
        if self.error is not None:
            if not self.strategies:
                return error_lines("it cannot be read", self.error)
            return sent_error_lines(self.error, self._remedies() if self.is_stale else ())
        if not self.strategies:
            return [TextLine("  reading what is around it: owners, LimitRanges, quotas …", "muted")]
        if self.asking is not None:
            after = ", then comes the question" if self.then_apply else ""
            return [TextLine(f"  dry run: asking {escape(self.subject.source.title)} …{after}", "muted")]
        if self.strategy.request is None:
            return []
        if isinstance(self.writer, QosError):
            return error_lines(
                "not from here",
                self.writer,
                [f"{self.keys.first('landing.patch')} shows the patch, to save it"],
            )
        if self.dry_run_result is not None:
            return accepted_lines(self.dry_run_result)
        key = self.keys.first("landing.dry_run")
        return [TextLine(f"  dry run: not asked yet; {key} asks the server", "muted"), *self._expected()]

    def _expected(self) -> list[TextLine]:
        """A refusal that can be told before the server is asked, and that no verdict tells."""
        if self._related is None or any(part.title == REFUSED for part in self.findings()):
            return []
        refused = expected_response(self.preview, self._related, self.strategy.kind, self.strategy.request)
        return [TextLine(f"! {expected_response_line(refused)}", "wrong")] if refused is not None else []

    def _remedies(self) -> list[str]:
        look, ours = self.keys.first("landing.look"), self.keys.first("landing.ours")
        return [
            f"{look}  look again: give ours up, and edit what is there now",
            f"{ours}  keep ours: the same change of what is there now, dry run first",
        ]

    def findings(self) -> tuple[Section, ...]:
        """What speaks against the chosen way; once the server has refused, that says it alone."""
        if self._related is None or not self.strategies:
            return ()
        found = finding_sections(self.preview, self.subject, self._related, self.strategy.kind)
        return tuple(part for part in found if self.error is None or part.title != REFUSED)

    def request_lines(self) -> list[TextLine]:
        """The exact request, or how the change lands without one."""
        if not self.strategies:
            return []
        if self.strategy.request is None:
            key = self.keys.first("landing.patch")
            return [TextLine(f"  {key} shows the patch and the manifest, to save them")]
        head, kind, *body = request_lines(self.strategy.request)
        return [TextLine(head, "answer"), TextLine(kind, "muted"), *map(TextLine, body)]

"""Where a change stands that is about to land: its ways, what the server said of the chosen one, as lines.

Not here: keys, workers and dialogs (screens/landing.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kubectl_qos.cluster.write import Rehearsed, Stale, Writer
from kubectl_qos.edit.change import Edit
from kubectl_qos.edit.forecast import forecast
from kubectl_qos.edit.landing import Way, ways
from kubectl_qos.edit.request import Request
from kubectl_qos.edit.surroundings import Surroundings
from kubectl_qos.edit.undo import Conflict, value_now
from kubectl_qos.errors import QosError
from kubectl_qos.present.amounts import escape
from kubectl_qos.present.diff import Part
from kubectl_qos.present.landing import change_lines, forecast_line, request_lines, way_title
from kubectl_qos.tui.actions import Keys
from kubectl_qos.tui.around import REFUSED, verdict_parts
from kubectl_qos.tui.change import Subject
from kubectl_qos.tui.widgets.answers import accepted_lines, error_lines, sent_error_lines, table_lines
from kubectl_qos.tui.widgets.document import TextLine


class Standing:
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

    def __init__(self, subject: Subject, edits: Iterable[Edit], conflicts: Sequence[Conflict] = ()) -> None:
        self._edits = tuple(edits)
        self._conflicts = tuple(conflicts)
        self._surroundings: Surroundings | None = None
        self.keys = Keys()
        self.subject = subject
        self.preview = subject.preview(self._edits)
        self.ways: tuple[Way, ...] = ()
        self.chosen = 0
        self.writer: Writer | QosError = QosError("")
        self.asking: Request | None = None
        self.then_apply = False
        self.rehearsed: Rehearsed | None = None
        self.error: QosError | None = None

    @property
    def way(self) -> Way:
        """The chosen one."""
        return self.ways[self.chosen]

    @property
    def request(self) -> Request | None:
        """What would be sent."""
        return self.way.request if self.ways else None

    @property
    def is_stale(self) -> bool:
        """Whether someone else changed the same values, so that a person has to decide."""
        return isinstance(self.error, Stale)

    def take(self, surroundings: Surroundings, *, anew: bool = False) -> None:
        """What is around the object; `anew` makes the same change of the object as it is in there."""
        before = self.way.landing if self.ways else None
        try:
            if anew:
                self.subject = self.subject.now(surroundings.raw)
                self.preview = self.subject.preview(self._edits)
                self._conflicts = ()
            self.ways = ways(self.subject.pod, self._edits, self.preview, surroundings)
        except QosError as error:
            self.error = error
            return
        self._surroundings = surroundings
        self.chosen = next((place for place, way in enumerate(self.ways) if way.landing is before), 0)

    def choose(self, number: int) -> bool:
        """Another way; False where it is the same one. What the server said of the other counts no more."""
        if not self.ways or number % len(self.ways) == self.chosen:
            return False
        self.chosen = number % len(self.ways)
        self.forget()
        return True

    def forget(self) -> None:
        """What the server said, and what it was asked."""
        self.rehearsed = self.error = self.asking = None
        self.then_apply = False

    def why_not(self) -> str:
        """Why nothing can be sent, empty where something can."""
        if not self.ways:
            return "what is around it is not known yet" if self.error is None else str(self.error)
        if self.is_stale:
            return "someone else changed it: look again, or keep ours"
        if self.way.request is None:
            why = self.way.reason or "save the manifest, delete the pod and create it anew"
            return f"{way_title(self.way)}: {why}"
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
            if not self.ways:
                return error_lines("it cannot be read", self.error)
            return sent_error_lines(self.error, self._remedies() if self.is_stale else ())
        if not self.ways:
            return [TextLine("  reading what is around it: owners, LimitRanges, quotas …", "muted")]
        if self.asking is not None:
            after = ", then comes the question" if self.then_apply else ""
            return [TextLine(f"  dry run: asking {escape(self.subject.source.title)} …{after}", "muted")]
        if self.way.request is None:
            return []
        if isinstance(self.writer, QosError):
            return error_lines(
                "not from here",
                self.writer,
                [f"{self.keys.first('landing.patch')} shows the patch, to save it"],
            )
        if self.rehearsed is not None:
            return accepted_lines(self.rehearsed)
        key = self.keys.first("landing.dry_run")
        return [TextLine(f"  dry run: not asked yet; {key} asks the server", "muted"), *self._expected()]

    def _expected(self) -> list[TextLine]:
        """A refusal that can be told before the server is asked, and that no verdict tells."""
        if self._surroundings is None or any(part.title == REFUSED for part in self.verdicts()):
            return []
        refused = forecast(self.preview, self._surroundings, self.way.landing, self.way.request)
        return [TextLine(f"! {forecast_line(refused)}", "wrong")] if refused is not None else []

    def _remedies(self) -> list[str]:
        look, ours = self.keys.first("landing.look"), self.keys.first("landing.ours")
        return [
            f"{look}  look again: give ours up, and edit what is there now",
            f"{ours}  keep ours: the same change of what is there now, dry run first",
        ]

    def verdicts(self) -> tuple[Part, ...]:
        """What speaks against the chosen way; once the server has refused, that says it alone."""
        if self._surroundings is None or not self.ways:
            return ()
        found = verdict_parts(self.preview, self.subject, self._surroundings, self.way.landing)
        return tuple(part for part in found if self.error is None or part.title != REFUSED)

    def request_lines(self) -> list[TextLine]:
        """The exact request, or how the change lands without one."""
        if not self.ways:
            return []
        if self.way.request is None:
            key = self.keys.first("landing.patch")
            return [TextLine(f"  {key} shows the patch and the manifest, to save them")]
        head, kind, *body = request_lines(self.way.request)
        return [TextLine(head, "answer"), TextLine(kind, "muted"), *map(TextLine, body)]

"""The state of a change as lines: its values, strategies, the server's answers, the request, the progress.

screens/apply.py has keys and dialogs, write_service.py executes commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from kubectl_qos.edit.apply_state import Apply, Blocked, ConflictError, Phase, UnknownOutcome
from kubectl_qos.edit.edits import PatchRequest, value_now
from kubectl_qos.edit.history import ValueConflict
from kubectl_qos.edit.server_response import expected_response
from kubectl_qos.edit.status import TrialPlan
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.present import changes as words
from kubectl_qos.present.format import duration, escape
from kubectl_qos.present.output import ARROW, Section
from kubectl_qos.present.preview import first_death
from kubectl_qos.tui.actions import Keys
from kubectl_qos.tui.edit_target import REFUSED, EditTarget, finding_sections
from kubectl_qos.tui.view_model import ViewModel, pod_named
from kubectl_qos.tui.widgets.text_view import TextLine, escape_lines, yaml_line


def error_lines(about: str, error: QosError, remedies: Sequence[str] = ()) -> list[TextLine]:
    """Return an error in its own words, the three values of a conflict, and its hint or the remedies."""
    status = f" ({error.status})" if isinstance(error, ApiError) else ""
    lines = [TextLine(f"! {about}: {escape_lines(str(error))}{status}", "wrong")]
    if isinstance(error, ConflictError):
        lines += _conflict_lines(error.conflicts)
    hints = [error.hint] if error.hint and not remedies else []
    return [*lines, *(TextLine(f"  {escape_lines(text)}") for text in (*hints, *remedies))]


def _request_error_lines(error: QosError, remedies: Sequence[str] = ()) -> list[TextLine]:
    """Return why a change was not sent or not made, or why that is unknown."""
    about = "outcome unknown" if isinstance(error, UnknownOutcome) else "not applied"
    return error_lines(about, error, remedies)


def _conflict_lines(conflicts: Iterable[ValueConflict]) -> list[TextLine]:
    return [TextLine(f"    {line}", "changed") for line in words.conflict_lines(conflicts)]


def blocked_sentence(state: Apply, keys: Keys) -> str:
    """Return why nothing can be sent, empty if something can."""
    match state.blocked:
        case None:
            return ""
        case Blocked.LOADING:
            return "still loading owners and quotas"
        case Blocked.CONFLICT:
            return "someone else changed it: reload, or keep mine"
        case Blocked.NO_REQUEST:
            assert state.strategy is not None
            why = state.strategy.reason or "save the manifest, delete the pod and recreate it"
            return f"{words.strategy_title(state.strategy)}: {why}"
        case Blocked.UNREADABLE:
            return str(state.error)
        case Blocked.READ_ONLY:
            return f"{state.read_only}; {keys.first('apply.patch')} shows the patch, to save it"


def change_lines(state: Apply) -> list[TextLine]:
    """Return the values before and after, and those that someone else has changed."""
    if state.request is not None:
        lines = words.change_lines(state.request.before, state.request.edits)
    else:
        before = [replace(edit, quantity=value_now(state.pod, edit)) for edit in state.edits]
        lines = words.change_lines(before, state.edits)
    text_lines = [TextLine(f"  {line}") for line in lines]
    if state.conflicts:
        text_lines.append(TextLine("! someone else has changed this since:", "wrong"))
        text_lines += _conflict_lines(state.conflicts)
    return text_lines


def answer_lines(state: Apply, target: EditTarget, keys: Keys) -> list[TextLine]:
    """Return the server's newest answer to the chosen strategy."""
    patch_remedy = f"{keys.first('apply.patch')} shows the patch, to save it"
    if state.error is not None:
        if not state.is_loaded:
            return error_lines("cannot be read", state.error)
        reload, keep = keys.first("apply.reload"), keys.first("apply.keep_mine")
        remedies = (
            f"{reload}  discard mine, reload",
            f"{keep}  keep mine: the same change of the object now, dry run first",
        )
        return _request_error_lines(state.error, remedies if state.has_conflict else ())
    if not state.is_loaded:
        return [TextLine("  loading related objects: owners, LimitRanges, quotas …", "muted")]
    if state.phase is Phase.DRY_RUN:
        after = ", confirmation follows" if state.confirms_next else ""
        return [TextLine(f"  dry run: waiting for {escape(target.source.title)} …{after}", "muted")]
    if state.request is None:
        return []
    if state.read_only is not None:
        return error_lines("cannot be applied", state.read_only, [patch_remedy])
    if state.accepted is not None:
        accepted = state.accepted
        first, *more = words.dry_run_lines(accepted.request, accepted.stored, accepted.warnings)
        return [TextLine(f"  {first}", "answer"), *(TextLine(f"  {line}", "changed") for line in more)]
    apply, dry_run = keys.first("apply.apply"), keys.first("apply.dry_run")
    next_keys = f"  {apply} applies it, after a dry run and a question; {dry_run} sends the dry run alone"
    return [TextLine(next_keys, "muted"), *_expected_lines(state)]


def _expected_lines(state: Apply) -> list[TextLine]:
    """Return the refusal that a server is expected to answer, unless a finding says the same."""
    if state.related is None or state.strategy is None:
        return []
    if any(section.title == REFUSED for section in state_findings(state)):
        return []
    refused = expected_response(state.preview, state.related, state.strategy.kind, state.request)
    return [TextLine(f"! {words.expected_response_line(refused)}", "wrong")] if refused is not None else []


def state_findings(state: Apply) -> tuple[Section, ...]:
    """Return the findings on the chosen strategy; without refusals once the server itself has refused."""
    left_out = {REFUSED} if state.error is not None else set()
    return tuple(section for section in finding_sections(state) if section.title not in left_out)


def request_lines(state: Apply, keys: Keys) -> list[TextLine]:
    """Return the exact request, or how to apply the change without one."""
    if state.strategy is None:
        return []
    if state.request is None:
        key = keys.first("apply.patch")
        return [TextLine(f"  {key} shows the patch and the manifest, to save them")]
    head, media_type, *body = words.request_lines(state.request)
    return [TextLine(head, "answer"), TextLine(media_type, "muted"), *map(yaml_line, body)]


def progress_lines(
    state: Apply, request: PatchRequest, context: str, seconds: int, keys: Keys
) -> Iterator[TextLine]:
    """Yield what was sent to a context `seconds` ago, what was seen of it, and what follows."""
    for line in words.change_lines(request.before, request.edits):
        yield TextLine(f"  {line}")
    if state.seen:
        yield TextLine("")
    effects = state.preview.effects_of(state.strategy.kind) if state.strategy is not None else None
    for status in state.seen:
        line = "accepted by the server"
        if status.progress is not None:
            line = words.progress_line(status.progress, effects, undoes=state.undoes)
        is_newest = status is state.seen[-1]
        mark, token = (">", "title") if is_newest else (" ", "muted")
        yield TextLine(f"{mark} {duration(status.seconds):>4}  {line}", token)
    if state.phase is Phase.FOLLOWING and state.error is not None:
        yield TextLine(f"! cannot check it now: {escape(str(state.error))}", "wrong")
    yield TextLine("")
    if state.phase is Phase.SENDING:
        yield TextLine(f"  sent to {escape(context)}, no answer yet, {duration(seconds)}")
    elif state.plan is not None and state.error is None:
        pass
    elif state.phase is Phase.FOLLOWING:
        yield from waiting_lines(state)
        yield TextLine(f"  watching it until it has settled, {duration(seconds)} so far", "muted")
    elif state.error is not None:
        yield from _request_error_lines(state.error)
    else:
        yield from _settled_lines(state, keys)


def _same(then: Pod, view_model: ViewModel) -> Pod | None:
    """Return the pod as it is now on its node, None if that is another pod."""
    now = pod_named(view_model, (then.namespace, then.name), then.node_name)
    return now if now is not None and now.metadata.uid == then.metadata.uid else None


def killed_lines(
    then: Pod, view_model: ViewModel | None, sent_at: datetime | None = None
) -> Iterator[TextLine]:
    """Yield what was killed of a pod on its node since `then`, and when, by a change that was sent."""
    now = _same(then, view_model) if view_model is not None else None
    if now is None:
        return
    if now.is_terminal and not then.is_terminal:
        reason = escape(now.status.reason or now.status.phase)
        yield TextLine(f"! the pod has ended meanwhile: {reason}", "wrong")
    before = {status.name: status.ends[:1] for status in then.status.every_container}
    for status in now.status.every_container:
        last = status.ends[:1]
        if last and last[0].reason == "OOMKilled" and last != before.get(status.name):
            when, ended = "meanwhile", parse_time(last[0].finished_at)
            if sent_at is not None and ended is not None:
                seconds = int((ended - sent_at).total_seconds())
                side = "before" if seconds < 0 else "after"
                when = f"{duration(abs(seconds))} {side} the change was sent"
            yield TextLine(f"! {escape(status.name)} was OOMKilled {when}", "wrong")


def death_lines(target: EditTarget, view_model: ViewModel) -> Iterator[TextLine]:
    """Yield the next death of a pod before its change was made, and as it is now; nothing of a workload."""
    node = target.pod.node_name
    then, later = target.view_model.deaths(node), view_model.deaths(node)
    if _same(target.pod, view_model) is not None and then is not None and later is not None:
        before, now = first_death(then.state, target.pod), first_death(later.state, target.pod)
        yield TextLine(f"  next death of it {before}{', as before' if before == now else f' {ARROW} {now}'}")


def plan_line(plan: TrialPlan) -> str:
    """Return how long a change is on trial, and what reverts it."""
    return f"for {duration(int(plan.seconds))}, and reverted at: {', '.join(plan.undo_if)}"


def waiting_lines(state: Apply) -> Iterator[TextLine]:
    """Say that the change waits for usage, which shrinking a limit needs."""
    if state.progress is not None and state.progress.waits_for_usage:
        yield TextLine(f"! {words.WAITS_FOR_USAGE}", "wrong")


def _settled_lines(state: Apply, keys: Keys) -> Iterator[TextLine]:
    if state.is_undone:
        return
    if not state.is_done:
        yield TextLine("! nothing more will happen by itself", "wrong")
    if not state.undoes:
        yield TextLine(f"  {keys.first('app.undo')} reverts it", "muted")
    elif state.is_done:
        yield TextLine("  the previous values are restored", "answer")

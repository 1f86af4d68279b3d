"""Changes as text for the command line and the terminal UI; text of servers is escaped."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from difflib import unified_diff
from itertools import chain, repeat
from typing import Final
from urllib.parse import urlencode

from kubectl_qos.edit.apply_state import Apply
from kubectl_qos.edit.edits import (
    CONTENT_TYPE,
    METHOD,
    Edit,
    FileEdit,
    PatchRequest,
    WriteBack,
    as_flags,
    value_now,
)
from kubectl_qos.edit.history import Entry, EntryState, ValueConflict
from kubectl_qos.edit.preview import Effects, Preview, StrategyKind
from kubectl_qos.edit.server_response import ServerRefusal
from kubectl_qos.edit.status import ContainerOutcome, Progress, Stage, Trial, TrialCondition
from kubectl_qos.edit.strategy import RECREATE_JOB, Strategy, revert_obstacle
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.present.effects import class_change, edits_text, later_sentence, rank_change, value_name
from kubectl_qos.present.findings import answer_sentence
from kubectl_qos.present.format import (
    NONE,
    UNKNOWN,
    age,
    binary,
    count,
    duration,
    escape,
    percent,
    quantity_text,
)
from kubectl_qos.present.output import ARROW, aligned, to_yaml

STRATEGY_NAMES: Final = {
    StrategyKind.IN_PLACE: "in place",
    StrategyKind.TEMPLATE: "through the owner's template",
    StrategyKind.RECREATE: "as a manifest",
    StrategyKind.NEVER: "impossible",
}


def strategy_title(strategy: Strategy) -> str:
    """Return the name of a strategy: `in place`, `through deployment/web`."""
    if strategy.kind is StrategyKind.TEMPLATE and strategy.request is not None:
        return f"through {escape(strategy.request.reference)}"
    return STRATEGY_NAMES[strategy.kind]


def strategy_effect(strategy: Strategy) -> str:
    """Say what else a strategy does, or why it is impossible."""
    if not strategy.is_possible:
        is_titled = strategy.kind is StrategyKind.NEVER
        return f"{'' if is_titled else 'not possible: '}{escape(strategy.reason)}"
    effect = "save the manifest, then delete and recreate the pod; nothing is sent"
    if strategy.kind is StrategyKind.IN_PLACE:
        names = ", ".join(map(escape, strategy.restarts))
        is_one = len(strategy.restarts) == 1
        who = f"container {names} restarts" if is_one else f"containers {names} restart"
        effect = who if names else "no container restarts"
    elif strategy.kind is StrategyKind.TEMPLATE:
        if strategy.pods is None:
            who = "its pods"
        else:
            who = count(strategy.pods, "pod") if strategy.pods else "no pods"
        effect = f"{who} {'is' if strategy.pods == 1 else 'are'} replaced"
    return f"{effect}; {escape(strategy.note)}" if strategy.note else effect


def strategy_lines(strategies: Iterable[Strategy]) -> list[str]:
    """List the strategies with their effects, or why they are impossible."""
    return aligned([(strategy_title(strategy), strategy_effect(strategy)) for strategy in strategies])


def request_lines(request: PatchRequest) -> list[str]:
    """Show the exact request: method and path with query, media type, and the body as YAML."""
    line = f"{METHOD} {escape(request.path)}?{urlencode(request.query(dry_run=False))}"
    body = to_yaml(request.body).rstrip("\n").split("\n")
    return [line, f"Content-Type: {CONTENT_TYPE}", "", *map(escape, body)]


def change_lines(before: Iterable[Edit], after: Iterable[Edit]) -> list[str]:
    """Show each value before and after: `app requests.memory 512Mi → 1Gi`."""
    old = {edit.target: quantity_text(edit.quantity) for edit in before}
    return [
        f"{value_name(*edit.target)} {old.get(edit.target, NONE)} {ARROW} {quantity_text(edit.quantity)}"
        for edit in after
    ]


def confirm_lines(
    context: str, server: str, request: PatchRequest, preview: Preview, strategy: Strategy
) -> list[str]:
    """Show the change that a person confirms: cluster, object, values and effects."""
    effects, node = preview.effects_of(strategy.kind), preview.after.setup.node.name
    changes = change_lines(request.before, request.edits)
    rank = rank_change(effects, f" on {escape(node)}" if node else "")
    rows = [
        ("cluster", f"{escape(context)}  {escape(server)}".rstrip()),
        ("namespace", escape(request.namespace) or NONE),
        ("object", escape(request.reference)),
        *(("" if number else "change", line) for number, line in enumerate(changes)),
        ("class", class_change(effects)),
        *([("kill rank", rank)] if rank != UNKNOWN else []),
        ("effect", strategy_effect(strategy)),
    ]
    if is_put_off(preview, strategy):
        rows.append(("! kubelet", answer_sentence(preview.outcome)))
    return aligned(rows)


def kubelet_caveat(preview: Preview, strategy: Strategy) -> str:
    """Return a suffix for the confirmation question; "" if the kubelet carries the change out at once."""
    answer = preview.outcome.answer.value
    return f" although the kubelet would answer {answer}" if is_put_off(preview, strategy) else ""


def is_put_off(preview: Preview, strategy: Strategy) -> bool:
    """Return whether the kubelet would not carry out a change in place at once."""
    return strategy.kind is StrategyKind.IN_PLACE and not preview.is_carried_out


def alternative(state: Apply, *, may_add_by: bool = False) -> str:
    """Say what to do if a pod cannot be changed in place; `may_add_by`: suggest a flag of `set` too."""
    where = f" -n {state.pod.namespace}" if state.pod.namespace else ""
    delete = f"kubectl delete pod {state.pod.name}{where}"
    templates = (strategy for strategy in state.strategies if strategy.kind is StrategyKind.TEMPLATE)
    template = next(templates, None)
    request = template.request if template is not None else None
    if template is not None and request is not None:
        flags = as_flags(request.edits)
        command = f"kubectl qos set {request.reference}{where} {flags[0] if len(flags) == 1 else '…'}"
        command += ", or add --by template" if may_add_by else ""
        return f"change its owner: {command}{'' if template.pods != 0 else f'; then {delete}'}"
    if template is not None and template.is_done:
        return f"{template.reason}; to get them in a new pod: {delete}"
    if template is not None and template.is_immutable:
        return f"{RECREATE_JOB} with these values" if state.strategy is not template else ""
    if state.strategy is not None and state.strategy.kind is StrategyKind.NEVER:
        return ""
    return recreate_hint(state.pod, state.edits)


def recreate_hint(pod: Pod, edits: Sequence[Edit]) -> str:
    """Say how to recreate a pod with other values: a command for each container, connected by pipes."""
    where = f" -n {pod.namespace}" if pod.namespace else ""
    targets = chain([f"pod/{pod.name}{where}"], repeat("-f -"))
    flags = zip(targets, as_flags(edits), strict=False)
    commands = [f"kubectl qos set {target} {values} -o manifest" for target, values in flags]
    return f"save the output of {' | '.join(commands)}, then delete and recreate the pod"


def unreverted_line(state: Apply) -> str:
    """Warn of an OOM kill that a trial cannot revert, and say what to do then; "" without one."""
    if state.plan is None or TrialCondition.OOM not in state.plan.undo_if or state.strategy is None:
        return ""
    why = revert_obstacle(state.preview, state.strategy)
    owned = any(strategy.kind is StrategyKind.TEMPLATE for strategy in state.strategies)
    then = "delete the pod, its owner creates a new one" if owned else "delete and recreate the pod"
    return f"! cannot revert while a container waits after an OOM kill: {why}; then {then}" if why else ""


def dry_run_lines(request: PatchRequest, stored: Iterable[Edit], warnings: Iterable[str]) -> list[str]:
    """Show the answer to a dry run: the values that would be stored differently, and warnings."""
    stored_values = {edit.target: edit.quantity for edit in stored}
    lines = ["dry run: the server accepts it"]
    for edit in request.edits:
        value = stored_values.get(edit.target, edit.quantity)
        if value != edit.quantity:
            differs = f"{quantity_text(value)}, not {quantity_text(edit.quantity)}"
            lines.append(f"! {value_name(*edit.target)} would be stored as {differs}")
    return lines + [f"! the server warns: {escape(warning)}" for warning in warnings]


def expected_response_line(refused: ServerRefusal) -> str:
    """Show a refusal that we expect the server to give."""
    return f"expected: the server refuses it: {escape(refused.message)} ({refused.status} {refused.reason})"


def progress_line(progress: Progress, effects: Effects | None = None, *, is_undo: bool = False) -> str:
    """Return the progress of a change: `rolling out: 1 of 3 pods: message`, or what waits for a restart."""
    if is_undo and progress.waits_for_usage:
        return revert_line(progress)
    words = ["waits for usage to fall" if progress.waits_for_usage else progress.stage.value]
    if progress.stage is Stage.DONE and effects is not None:
        words += filter(None, [later_sentence(effects)])
    if progress.done is not None and progress.total is not None:
        words.append(f"{progress.done} of {count(progress.total, 'pod')}")
    if progress.message:
        words.append(escape(progress.message))
    return ": ".join(words)


WAITS_FOR_USAGE: Final = (
    "the kubelet lowers the limit once usage is below it: free memory, or restart the container"
)


def revert_line(progress: Progress | None) -> str:
    """Return the progress of a revert: `it is reverted`, `reverting, deferred`."""
    if progress is None or progress.stage is Stage.DONE:
        return "reverting" if progress is None else "it is reverted"
    return f"reverting, {progress_line(progress)}"


def trial_words(trial: Trial) -> str:
    """Return what speaks against a change on trial: `app restarted 2 times, app was OOMKilled 3 times`."""
    words = []
    for name, outcomes in _by_container(trial):
        restarts = sum(outcome.restarts for outcome in outcomes)
        kills = sum(len(outcome.oom_runs) for outcome in outcomes)
        words += [f"{escape(name)} restarted {count(restarts, 'time')}"] if restarts else []
        words += [f"{escape(name)} was OOMKilled {count(kills, 'time')}"] if kills else []
    if trial.infeasible is not None:
        words.append(": ".join(filter(None, ["the kubelet answers Infeasible", escape(trial.infeasible)])))
    return ", ".join(words)


def trial_lines(trial: Trial) -> list[str]:
    """Return each container's peak against the new values: `app used at most 1Gi: 50% of its limit 2Gi`."""
    lines = []
    for name, outcomes in _by_container(trial):
        most = max(outcomes, key=lambda outcome: -1 if outcome.peak_bytes is None else outcome.peak_bytes)
        if most.peak_bytes is None:
            lines.append(f"{escape(name)}: memory usage is unknown")
            continue
        of = (("limit", most.limit_bytes), ("request", most.request_bytes))
        shares = [
            f"{percent(most.peak_bytes, size)} of its {what} {binary(size)}" for what, size in of if size
        ]
        among = f", the highest of {count(len(outcomes), 'pod')}" if len(outcomes) > 1 else ""
        used = f"{escape(name)} used at most {binary(most.peak_bytes)}{among}"
        lines.append(": ".join(filter(None, [used, ", ".join(shares)])))
    return lines


def trial_summary(trial: Trial) -> str:
    """Return the result of a trial in one line, for the change history."""
    return "; ".join([trial_words(trial) or "no restart, no OOM kill", *trial_lines(trial)])


def trial_entry(change: Apply, seconds: int) -> Entry:
    """Return the history entry of a change after that many seconds of a trial."""
    assert change.result is not None
    progress, trial = change.progress, change.trial
    state = EntryState.ACCEPTED
    if trial.seen:
        state = EntryState.FAILED
    elif change.is_done:
        state = EntryState.HELD if trial.outcomes else EntryState.DONE
    words = [trial_summary(trial)]
    if progress is not None and not change.is_done and not change.is_undone:
        words.append(progress_line(progress))
    return replace(change.result.entry, state=state, message=f"{duration(seconds)}: {'; '.join(words)}")


def unreverted(entry: Entry, error: Exception) -> Entry:
    """Return the history entry of a failed trial with why the change is not reverted."""
    return replace(entry, message=f"{entry.message}; it is not reverted: {error}")


def _by_container(trial: Trial) -> Iterator[tuple[str, list[ContainerOutcome]]]:
    outcomes = list(trial.outcomes.values())
    for name in dict.fromkeys(outcome.name for outcome in outcomes):
        yield name, [outcome for outcome in outcomes if outcome.name == name]


def conflict_lines(conflicts: Iterable[ValueConflict]) -> list[str]:
    """Show values that someone else changed as a three-way diff: before, ours, theirs."""
    rows = []
    for conflict in conflicts:
        values = map(quantity_text, (conflict.before, conflict.ours, conflict.theirs))
        rows.append((value_name(conflict.owner, conflict.side, conflict.resource), *values))
    return aligned([("", "before", "ours", "theirs"), *rows]) if rows else []


def entry_object(entry: Entry) -> str:
    """Return the changed object: `shop/deployment/web`."""
    return escape("/".join(filter(None, (entry.namespace, entry.reference))))


def entry_change(entry: Entry) -> str:
    """Return each value before and after, in one line."""
    return ", ".join(change_lines(entry.before, entry.after))


def entry_state(entry: Entry, undo: Entry | None = None) -> str:
    """Return the outcome, in the server's words if it refused; `undo` is the entry that reverts it."""
    words = entry.state.value
    if entry.state is EntryState.SENT:
        words = "unknown: sent, no answer recorded"
    if undo is not None:
        has_failed, how = entry.state is EntryState.FAILED, "reverting"
        if undo.state is EntryState.DONE:
            how = "reverted" if has_failed else "undone"
        elif undo.message.startswith("reverting"):
            how = escape(undo.message)
        words = f"{words}, {how}" if has_failed else how
    if entry.message:
        words += f": {escape(entry.message)}"
    return f"{words} (an undo)" if entry.undoes else words


def entry_when(entry: Entry, now: datetime) -> str:
    """Return the time in UTC, and how long ago that was."""
    try:
        at = datetime.fromisoformat(entry.at).astimezone(UTC)
    except ValueError:
        return escape(entry.at)
    return f"{at:%Y-%m-%d %H:%M:%S} UTC, {age(entry.at, now)} ago"


def write_back_lines(done: WriteBack, pod: Pod, *, dry_run: bool = False) -> list[str]:
    """Say what is or would be written to a working tree, and which values differed from the cluster's."""
    name = _written_name(done)
    if not done.edits:
        return [f"nothing is written: {name} already has these values in {escape(done.source)}"]
    places = ", ".join(map(escape, done.places))
    lines = [f"{name} {'would be' if dry_run else 'is'} changed in {places}", *_written_facts(done)]
    lines += kept_lines(done)
    for edit in done.edits:
        there, here = value_now(done.pod, edit), value_now(pod, edit)
        if there is not None and there != here:
            values = f"{quantity_text(there)} in {escape(done.source)}, {quantity_text(here)} in the cluster"
            lines.append(f"Warning: {value_name(*edit.target)} differed before: {values}")
    return lines


def kept_lines(done: WriteBack) -> Iterator[str]:
    """Yield the values of a working tree that are already higher than the change needs."""
    for edit in done.kept:
        there, wanted = quantity_text(value_now(done.pod, edit)), quantity_text(edit.quantity)
        value = f"{value_name(*edit.target)} {there} already, more than {wanted}"
        yield f"{escape(done.source)} has {value}: roll it out"


def diff_lines(files: Iterable[FileEdit]) -> Iterator[str]:
    """Yield a unified diff of files, as `git apply` takes it."""
    for name, before, after in files:
        old, new = (text.decode(errors="replace").splitlines() for text in (before, after))
        yield from map(
            escape, unified_diff(old, new, f"a/{name}" if before else "/dev/null", f"b/{name}", lineterm="")
        )


def commit_message(done: WriteBack) -> list[str]:
    """Return subject and body for `git commit`."""
    values = edits_text(done.pod, done.edits)
    subject = f"{_written_name(done)}: {values}"
    if len(subject) > 72:  # the length that git's own commands show
        subject = f"{_written_name(done)}: change requests and limits"
    places = ", ".join(map(escape, done.places))
    return [subject, "", f"{values}, in {places}.", *(f"{fact}." for fact in _written_facts(done))]


def _written_facts(done: WriteBack) -> Iterator[str]:
    by = f" of {done.by.kind} {escape(done.by.name)}" if done.by is not None else ""
    if done.is_built:
        yield f"{escape(done.source)}{by} builds as before except for these values"
    for folder, objects in done.others:
        yield f"{escape(folder)} changes too: {escape(objects)}"


def _written_name(done: WriteBack) -> str:
    where = f" in {escape(done.pod.namespace)}" if done.pod.namespace else ""
    return f"{done.pod.kind.lower()}/{escape(done.pod.name)}{where}"

"""Watching a change from the command line: what is checked, how often, and how it ends."""

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from kubectl_qos.cli import output
from kubectl_qos.cli.apply_shell import ApplyShell
from kubectl_qos.cli.options import ApplyOptions
from kubectl_qos.cli.sources import ResolvedSource
from kubectl_qos.config.settings import UserSettings
from kubectl_qos.edit.apply_state import Apply, Phase
from kubectl_qos.edit.edits import Side
from kubectl_qos.edit.preview import preview
from kubectl_qos.edit.related import QUOTAS, convert_all
from kubectl_qos.edit.status import Progress, Stage
from kubectl_qos.errors import ApiError, InputError, QosError, ServerUnreachable
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.qos.resize import ResizeStatus
from tests.tui.sources import ScriptedSource, demo, pod_named
from tests.tui.writers import CONTEXT, DONE, WAITING, memory

OPTIONS = ApplyOptions(yes=True)
ROLLING = Progress(Stage.ROLLING, settled=False, done=1, total=3)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses, which take no time; the clock goes by a second whenever it is read."""
    slept: list[float] = []
    seconds = itertools.count()
    clock = SimpleNamespace(sleep=slept.append, monotonic=lambda: float(next(seconds)))
    monkeypatch.setattr("kubectl_qos.cli.apply_shell.time", clock)
    return slept


def run(*checks: Progress | QosError, **options: Any) -> list[str]:
    """Change a pod and watch it; what was heard by the writer. Raises what the shell raises."""
    source = ScriptedSource(demo())
    source.scripted.looks = [*checks] or [DONE]
    snapshot = demo()
    pod = pod_named(snapshot, "api-")
    edits = [memory("1Gi")]
    effects = preview(pod, edits, snapshot.setup(pod.node_name))
    shell = ApplyShell(ResolvedSource(source, Scope()), OPTIONS._replace(**options), UserSettings())
    assert shell.load(Apply(pod, effects.edits, effects)).phase is Phase.READY
    try:
        shell.apply()
    finally:
        heard = [kind for kind, _ in source.scripted.heard]
        assert heard[:2] == ["dry run", "write"]
        assert heard[2:] == ["look"] * len(heard[2:])
    return heard[2:]


def test_progress_is_printed_where_it_changes(
    capsys: pytest.CaptureFixture[str], pauses: list[float]
) -> None:
    assert len(run(WAITING, WAITING, ServerUnreachable("no route"), ROLLING, DONE)) == 5
    printed = capsys.readouterr().out.splitlines()
    name = f"pod/{pod_named(demo(), 'api-').name}"
    lines = [line for line in printed if line.startswith(f"{name}: ")]
    assert lines == [
        f"{name}: waiting for the kubelet",
        f"{name}: rolling out: 1 of 3 pods",
        f"{name}: done: c keeps its oom_score_adj until a restart",
    ]
    assert pauses == pytest.approx([0.0, 0.3, 0.45, 0.675, 1.0125])


def test_without_waiting_nothing_is_checked() -> None:
    assert run(wait=False) == []


@pytest.mark.parametrize(
    ("checks", "sentence"),
    [
        ([WAITING, *[ServerUnreachable("no route")] * 3], "but its progress cannot be read: no route"),
        ([ApiError("forbidden", status=403)], "but its progress cannot be read: forbidden"),
        ([Progress(Stage.STUCK, settled=True, message="quota")], "but: not progressing: quota"),
    ],
)
def test_a_bad_end_is_an_error(checks: list[Progress | QosError], sentence: str) -> None:
    with pytest.raises(QosError, match=sentence):
        run(*checks, DONE)


def test_a_timeout_is_an_error_with_what_was_seen_last() -> None:
    with pytest.raises(QosError, match="it was changed, last status: waiting for the kubelet") as raised:
        run(WAITING, timeout_seconds=5)
    assert raised.value.hint == "the change goes on; kubectl qos explain shows its state"


def put_off(*around: dict[str, Any], **options: Any) -> ApplyShell:
    """A shell at work on a change that the kubelet would answer with Deferred, with quotas around it."""
    source, snapshot = ScriptedSource(demo()), demo()
    source.scripted.looks = [DONE]
    pod = pod_named(snapshot, "api-")
    neighbours = [one for one in snapshot.by_node()[pod.node_name] if one is not pod]
    effects = preview(
        pod, [memory("5Gi"), memory("6Gi", Side.LIMITS)], snapshot.setup(pod.node_name), neighbours
    )
    assert effects.outcome.answer is ResizeStatus.DEFERRED
    shell = ApplyShell(ResolvedSource(source, Scope()), OPTIONS._replace(**options), UserSettings())
    related = structs.replace(source.related(pod), quotas=tuple(convert_all([*around], QUOTAS)))
    shell.load(Apply(pod, effects.edits, effects), related)
    shell.apply()
    assert [kind for kind, _ in source.scripted.heard][:2] == (
        ["dry run"] if options.get("dry_run") else ["dry run", "write"]
    )
    return shell


def test_yes_does_not_apply_what_the_kubelet_puts_off() -> None:
    with pytest.raises(
        QosError, match=r"^pod/api-.* is not changed: the kubelet answers Deferred: "
    ) as raised:
        put_off()
    assert raised.value.exit_code == 1
    assert "--force" in raised.value.hint


def test_a_refusal_is_said_before_what_the_kubelet_puts_off() -> None:
    """--force would not help against it."""
    hard = {"hard": {"requests.memory": "4Gi"}}
    quota = {"kind": "ResourceQuota", "metadata": {"name": "mem", "namespace": "shop"}, "spec": hard}
    quota["status"] = {**hard, "used": {"requests.memory": "3Gi"}}
    with pytest.raises(
        InputError, match=r"a server would refuse this: ResourceQuota mem: .*exceeded quota"
    ) as raised:
        put_off(quota)
    assert not raised.value.hint


@pytest.mark.parametrize("options", [{"force": True}, {"dry_run": "server"}], ids=lambda one: next(iter(one)))
def test_force_applies_it_and_a_dry_run_shows_it(options: dict[str, Any]) -> None:
    put_off(**options)


def test_the_prompt_names_what_the_kubelet_puts_off(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    questions: list[str] = []

    def prompt(text: str) -> str:
        questions.append(text)
        return "yes"

    monkeypatch.setattr(output, "prompt", prompt)
    put_off(yes=False)
    assert questions == [f"Apply this to {CONTEXT} although the kubelet would answer Deferred? Type yes:"]
    confirmed = capsys.readouterr().err
    assert "! kubelet  answers Deferred: Node didn't have enough resource: memory" in confirmed
    assert "of 17 on worker-2 now; " in confirmed


@pytest.mark.parametrize("kept", [True, False])
def test_how_to_undo_is_said_only_where_the_history_is_kept(
    kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "state"
    state.touch() if not kept else state.mkdir()
    monkeypatch.setattr("kubectl_qos.cli.apply_shell.history_path", lambda: state / "history.jsonl")
    run(wait=False)
    notes = capsys.readouterr().err
    assert ("to undo it: kubectl qos undo" in notes) is kept
    assert ("the change history is kept for this run only" in notes) is not kept

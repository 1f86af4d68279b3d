from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.__main__ import main
from kubectl_qos.cluster.files import DEMO_FILE, DemoSource
from kubectl_qos.config.settings import UserSettings
from kubectl_qos.demo.source import LivingDemo
from kubectl_qos.errors import ApiError, InputError
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui import start as start_module
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.shell import ContextSwitch

KUBECONFIG = """
current-context: test
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts:
- {name: test, context: {cluster: c, user: u}}
- {name: prod, context: {cluster: c, user: u}}
"""


class Opened:
    """What the UI was opened with."""

    def __init__(self) -> None:
        self.source: Any = None
        self.scope = Scope()
        self.find: Any = None
        self.notes: Sequence[str] = ()
        self.settings = UserSettings()
        self.readonly = False
        self.keeps_history = True
        self.contexts: tuple[str, ...] = ()

    def __call__(
        self,
        source: Any,
        scope: Scope,
        settings: UserSettings,
        *,
        find: Any,
        notes: Sequence[str],
        readonly: bool,
        keeps_history: bool,
        contexts: ContextSwitch,
    ) -> int:
        self.keeps_history = keeps_history
        self.source, self.scope, self.find, self.notes = source, scope, find, notes
        self.settings, self.readonly, self.contexts = settings, readonly, contexts.names()
        return 0


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    found = Opened()
    monkeypatch.setattr(start_module, "start", found)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    return found


def test_no_command_opens_the_ui_on_everything(opened: Opened) -> None:
    assert main(["--demo"]) == 0
    assert isinstance(opened.source, LivingDemo)
    assert opened.source.writer().context == "demo"
    assert not opened.keeps_history, "a change of the demo ends with the process"
    assert opened.scope.namespace is None
    assert opened.find is None


def test_flags_narrow_the_scope(opened: Opened) -> None:
    assert main(["--demo", "-n", "shop", "--node", "worker-2", "-l", "app=x"]) == 0
    assert (opened.scope.namespace, opened.scope.node) == ("shop", "worker-2")
    assert opened.scope.selector_text == "app=x"


def test_settings_say_what_flags_do_not(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("scope: {namespace: shop, node: worker-1}\nrefresh: 5s\n")
    monkeypatch.setenv("KUBECTL_QOS_CONFIG", str(path))
    assert main(["--demo"]) == 0
    assert (opened.scope.namespace, opened.scope.node) == ("shop", "worker-1")
    assert main(["--demo", "-A"]) == 0
    assert (opened.scope.namespace, opened.scope.node) == (None, None)
    assert main(["--demo", "--node", "worker-2"]) == 0
    assert (opened.scope.namespace, opened.scope.node) == (None, "worker-2")


def test_read_only_comes_from_the_flag(opened: Opened) -> None:
    assert main(["--demo"]) == 0
    assert not opened.readonly
    assert main(["--demo", "--readonly"]) == 0
    assert opened.readonly


def test_contexts_are_those_of_the_kubeconfig(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["--demo"]) == 0
    assert not opened.contexts
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert main([]) == 0
    assert opened.contexts == ("prod", "test")
    assert opened.source.title == "test"
    assert main(["--server", "https://127.0.0.1:1"]) == 0
    assert not opened.contexts, "the server that was said would hold in every context"


def test_documents_that_cannot_be_read_are_noted(opened: Opened, tmp_path: Any) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("kind: Pod\nspec: {containers: []}\n")
    assert main(["-f", str(DEMO_FILE), "-f", str(bad)]) == 0
    error, warning = opened.notes
    assert "spec.containers: Required value" in error
    assert warning == "Warning: the answer leaves out what could not be read"


def test_edit_finds_its_pod_in_the_first_snapshot(opened: Opened) -> None:
    assert main(["edit", "pod/db-0", "--demo"]) == 0
    snapshot = DemoSource().snapshot(Scope())
    assert opened.find(snapshot).name == "db-0"
    assert main(["edit", "pod/nope", "--demo"]) == 0
    with pytest.raises(ApiError, match='pods "nope" not found'):
        opened.find(snapshot)


def test_edit_takes_one_target(opened: Opened, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["edit", "pod", "a", "b", "--demo"]) == 2
    assert "one pod or workload can be edited at a time" in capsys.readouterr().err
    assert opened.source is None


def test_edit_needs_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["edit", "pod/db-0", "--demo"]) == 2
    assert "standard output is not a terminal" in capsys.readouterr().err


def test_without_a_terminal_the_ranking_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--demo", "--node", "worker-2"]) == 0
    assert "api-7d9c5b6f8-x2mzq" in capsys.readouterr().out


def test_a_pod_that_is_not_there_is_the_error_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    error = InputError('pods "x" not found in demo')
    monkeypatch.setattr(start_module, "_read_keys_from_terminal", lambda: None)
    monkeypatch.setattr(QosApp, "run", lambda *_, **__: error)
    with pytest.raises(InputError, match="not found in demo"):
        start_module.start(DemoSource(), Scope(), UserSettings())

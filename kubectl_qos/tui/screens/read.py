"""Texts that are read from the source on demand: an object as YAML, and the log of a death."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from kubectl_qos.cluster.source import Source
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.kinds import WORKLOADS, Workload
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.present.format import age, escape
from kubectl_qos.present.output import to_yaml
from kubectl_qos.qos.kills.evidence import OOM_KILLED
from kubectl_qos.tui.actions import BindingGroup
from kubectl_qos.tui.background import run_in_background
from kubectl_qos.tui.screens.base import QosScreen
from kubectl_qos.tui.view import pod_name
from kubectl_qos.tui.widgets.text_view import (
    TextLine,
    TextScroll,
    TextView,
    escape_lines,
    layout_lines,
    yaml_line,
)

NOTHING: Final = "it is empty"


class SourceTextScreen(QosScreen, group=BindingGroup.READ):
    """A text from a server, read once in a thread; `file` is the name that saving it suggests."""

    AUTO_FOCUS = "TextScroll"

    def __init__(self, subject: str, file: str, read: Callable[[], str], *, at_end: bool = False) -> None:
        super().__init__()
        self._subject, self._file = subject, file
        self._read = read
        self._at_end = at_end
        self._text: str | None = None

    def compose_content(self) -> ComposeResult:
        yield Static(Content(self._subject), id="subject")
        with TextScroll():
            yield TextView(layout_lines([TextLine("reading …", "muted")]))

    def on_mount(self) -> None:
        run_in_background(self, self._read, self._take)

    def _take(self, text: str | QosError) -> None:
        if isinstance(text, QosError):
            problem = escape_lines("! " + text.with_hint("\n"))
            shown = [TextLine(line, "wrong") for line in problem.split("\n")]
        else:
            self._text = text
            look = yaml_line if self._file.endswith(".yaml") else TextLine
            shown = [look(escape(line)) for line in text.splitlines()] or [TextLine(NOTHING, "muted")]
        self.query_one(TextView).show(layout_lines(shown))
        if self._at_end:
            self.call_after_refresh(self.query_one(TextScroll).action_last)

    def action_copy(self) -> None:
        if self._text is None:
            self.qos.warn("there is nothing to copy")
        else:
            self.qos.copy(self._text, self._subject)

    def action_save(self) -> None:
        text = self._text
        if text is None:
            self.qos.warn("there is nothing to save")
        else:
            self.qos.save_as(self._subject, self._file, lambda _: text)


def yaml_screen(source: Source, pod: Pod) -> SourceTextScreen:
    """Return the object behind a pod, as the source has it now."""
    return SourceTextScreen(
        f"YAML of {pod_name(pod)}", f"{pod.name}.yaml", partial(_object_text, source, pod)
    )


def workload_screen(source: Source, workload: Workload, pod: Pod) -> SourceTextScreen:
    """Return a workload, or its pod if its kind cannot be read."""
    if workload.kind not in WORKLOADS:
        return yaml_screen(source, pod)

    def read() -> str:
        return _object_text(source, source.find(*workload))

    name = escape(f"{workload.kind.lower()} {workload.namespace}/{workload.name}")
    return SourceTextScreen(f"YAML of {name}", f"{workload.name}.yaml", read)


def node_screen(source: Source, name: str) -> SourceTextScreen:
    """Return a node, as the source has it now."""
    return SourceTextScreen(
        f"YAML of node {escape(name)}", f"{name}.yaml", lambda: _text(source.raw_node(name))
    )


def _object_text(source: Source, pod: Pod) -> str:
    return _text(source.raw(pod))


def _text(raw: Mapping[str, Any]) -> str:
    """Format an object without the managed fields, which kubectl leaves out too."""
    metadata = {key: value for key, value in raw.get("metadata", {}).items() if key != "managedFields"}
    return to_yaml({key: metadata if key == "metadata" else value for key, value in raw.items()})


def log_screen(source: Source, pod: Pod, container: str = "") -> SourceTextScreen:
    """Return the log of a container that has died, by default one that was OOMKilled. Raises QosError."""
    deaths = [
        (status, end)
        for status in pod.status.every_container
        for end in status.ends[:1]
        if end.exit_code and container in {"", status.name}
    ]
    if not deaths:
        what = f"container {container} of {pod_name(pod)} has not" if container else ""
        what = what or f"no container of {pod_name(pod)} has"
        raise QosError(f"{what} died: there is no log of a death")
    status, end = max(deaths, key=lambda death: (death[1].reason == OOM_KILLED, death[1].finished_at or ""))
    # A container that has not restarted: its current log is that of the death.
    is_previous = status.state is None or status.state.terminated is None
    subject = (
        f"last lines of container {escape(status.name)} of {pod_name(pod)}, "
        f"{escape(end.reason or 'ended')} {age(end.finished_at, source.now())} ago"
    )

    def read() -> str:
        return source.log(pod, status.name, is_previous=is_previous)

    return SourceTextScreen(subject, f"{pod.name}-{status.name}.log", read, at_end=True)

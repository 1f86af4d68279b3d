"""A change as a patch and as a manifest, to read, copy or save."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from kubectl_qos.cluster.source import Source, objects_of
from kubectl_qos.edit.patch import build_manifest, build_patch, kubectl_command
from kubectl_qos.edit.preview import Preview, StrategyKind
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.present.output import to_yaml
from kubectl_qos.tui.actions import BindingGroup
from kubectl_qos.tui.background import run_in_background
from kubectl_qos.tui.screens.base import QosScreen
from kubectl_qos.tui.widgets.text_view import TextScroll, TextView, escape_lines, paragraphs, yaml_layout


class PatchScreen(QosScreen, group=BindingGroup.PATCH):
    """The patch at first, the manifest by a key.

    The pod, or the template of a workload, is as stored. `saved` is called when a text was copied or saved.
    """

    AUTO_FOCUS = "TextScroll"

    def __init__(self, pod: Pod, preview: Preview, saved: Callable[[], None]) -> None:
        super().__init__()
        self._pod = pod
        self._preview = preview
        self._on_saved = saved
        self._patch = to_yaml(build_patch(pod, preview.edits))
        self._manifest: str | None = None
        self._shows_manifest = False

    def compose_content(self) -> ComposeResult:
        yield Static(id="what", markup=False)
        with TextScroll():
            yield TextView(id="text")

    def on_mount(self) -> None:
        """Show the patch; the manifest is read meanwhile, a server may take its time."""
        work = partial(_read_manifest, self.qos.source, self._pod, self._preview)
        run_in_background(self, work, self._take_manifest)
        self._show()

    def _take_manifest(self, manifest: str | QosError) -> None:
        if isinstance(manifest, QosError):
            self._shows_manifest = False
            self.qos.notify(f"there is no manifest: {manifest}", severity="warning")
        else:
            self._manifest = manifest
        self._show()

    def _show(self) -> None:
        strategy_kind = self._preview.strategy_kind
        name = f"{self._pod.kind.lower()} {self._pod.name}"
        lines = [f"{self._kind} of {name}, how to apply: {strategy_kind.value}"]
        if self._shows_manifest:
            lines.append("the whole object with the change, without what only a server fills in")
        elif strategy_kind is StrategyKind.RECREATE:
            lines.append("a server refuses this patch: save the manifest, delete the pod and create it again")
        elif strategy_kind is not StrategyKind.NEVER:
            lines.append(kubectl_command(self._pod, in_place=strategy_kind is StrategyKind.IN_PLACE))
        self.query_one("#what", Static).update(Content(escape_lines("\n".join(lines))))
        self.query_one(TextScroll).border_title = self._kind
        text = self.text
        waits = paragraphs((f"Asking {self.qos.source.title} …", ""))
        self.query_one("#text", TextView).show(waits if text is None else yaml_layout(escape_lines(text)))

    @property
    def _kind(self) -> str:
        return "manifest" if self._shows_manifest else "patch"

    @property
    def text(self) -> str | None:
        """Return the shown text, None while the manifest is on its way."""
        return self._manifest if self._shows_manifest else self._patch

    def action_other(self) -> None:
        self._shows_manifest = not self._shows_manifest
        self._show()

    def action_copy(self) -> None:
        if self.text is not None:
            self.qos.copy(self.text, f"the {self._kind}")
            self._on_saved()

    def action_save(self) -> None:
        text = self.text
        if text is not None:
            name = f"{self._pod.name or 'pod'}-{self._kind}.yaml"
            self.qos.save_as(f"the {self._kind}", name, lambda _: text, self._on_saved)


def _read_manifest(source: Source, pod: Pod, preview: Preview) -> str:
    """Return the whole object with the change. Raises QosError."""
    try:
        return to_yaml(build_manifest(objects_of(source).raw(pod), pod, preview.edits))
    except KeyError as error:
        raise QosError(str(error)) from None

"""What another release or setting of a pod's node would change for the pod, while it is typed."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input, Label, Static

from kubectl_qos.edit.compare import compare
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.node_overrides import NodeOverride, apply_overrides
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.present.effects import comparison_subject, kubelet_sections, node_sections, pod_sections
from kubectl_qos.present.format import escape
from kubectl_qos.present.output import Section, marked_lines
from kubectl_qos.present.reasons import missing_sentence
from kubectl_qos.tui.actions import BindingGroup, bindings
from kubectl_qos.tui.screens.base import QosScreen, TooSmall
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.footer import KeyFooter
from kubectl_qos.tui.widgets.sections import effects_layout
from kubectl_qos.tui.widgets.text_view import TextScroll, TextView, escape_lines
from kubectl_qos.tui.widgets.title_line import TitleLine

EXAMPLE = "1.37 cgroupVersion=1 featureGates.MemoryQoS=true memory=32Gi"


class CompareScreen(QosScreen):
    """A line for a release and settings, and what they change; of a pod as it was when this was opened."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.COMPARE)
    CSS_PATH = "compare.tcss"
    AUTO_FOCUS = "Input"
    rooms = (BindingGroup.COMPARE,)

    def __init__(self, pod: Pod, facts: ViewModel) -> None:
        super().__init__()
        snapshot = facts.snapshot
        self._pod = pod
        self._facts = facts
        self._setup = snapshot.setup(pod.node_name)
        self._pods = snapshot.by_node().get(pod.node_name, [])
        self._missing = [missing_sentence(missing) for missing in snapshot.missing]
        self._shown: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        """Whose node it is, the line, what is wrong with it, and what it changes."""
        name = f"{self._pod.namespace}/{self._pod.name}" if self._pod.namespace else self._pod.name
        node = self._setup.node.name or "its node"
        yield TitleLine()
        yield Static(
            Content(
                f"what if {escape(node)}, kubelet {self._setup.release}, were different? "
                f"{self._pod.kind.lower()} {escape(name)}{self.qos.as_of(self._facts)}"
            ),
            id="subject",
        )
        yield Input(placeholder=EXAMPLE, compact=True, id="settings")
        yield Label(id="reason", markup=False)
        with TextScroll(can_focus=False):
            yield TextView(lambda _: [])
        yield KeyFooter(show_command_palette=False, compact=True)
        yield TooSmall()

    def on_mount(self) -> None:
        """Nothing is different yet."""
        self.qos.show_title()
        self._show((Section("Type a release, settings, or both", f"such as {EXAMPLE}"),), "")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        words = event.value.split()
        if not words:
            self.on_mount()
            return
        try:
            settings = [NodeOverride.parse(word) for word in words if "=" in word]
            releases = [word for word in words if "=" not in word]
            after = apply_overrides(self._setup, settings, releases[-1] if releases else None)
        except QosError as error:
            hint = f"; {error.hint}" if error.hint else ""
            self._show(None, f"! {error}{hint}")
            return
        found = compare(self._pods, self._setup, after, self._facts.snapshot.usage)
        parts = (*kubelet_sections(found), *pod_sections(found.of(self._pod)), *node_sections(found))
        self._show(parts, comparison_subject(found, settings))

    def _show(self, parts: tuple[Section, ...] | None, words: str) -> None:
        """The parts, or what was shown before where nothing can be made of the line."""
        reason = self.query_one("#reason", Label)
        reason.set_class(parts is None, "wrong")
        reason.update(escape_lines(words))
        if parts is not None:
            self._shown = (words, *marked_lines(parts))
            self.query_one(TextView).show(effects_layout(parts, missing=self._missing))

    def action_page_up(self) -> None:
        """A page up."""
        self.query_one(TextScroll).action_page_up()

    def action_page_down(self) -> None:
        """A page down."""
        self.query_one(TextScroll).action_page_down()

    def action_copy(self) -> None:
        """What is shown, as text."""
        self.qos.copy("\n".join(self._shown), "what changes")

    def action_back(self) -> None:
        """Back to the pods."""
        self.dismiss()

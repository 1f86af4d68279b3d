"""About the node of a pod: its cgroups as a tree, and what another release or setting would change."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
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
from kubectl_qos.present.tree import TreeLine, file_lines, tree_lines, tree_notes, tree_subject
from kubectl_qos.qos.cgroup.tree import CgroupLevel, cgroup_tree
from kubectl_qos.tui.actions import BindingGroup
from kubectl_qos.tui.screens.base import QosScreen
from kubectl_qos.tui.view import pod_name
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets import text_view


class TreeScreen(QosScreen, group=BindingGroup.TREE):
    """The screen of `kubectl qos tree`, scrolled to the pod; it does not follow updates."""

    CSS_PATH = "tree.tcss"
    AUTO_FOCUS = "TextScroll"

    def __init__(self, pod: Pod, view_model: ViewModel) -> None:
        super().__init__()
        self._pod = pod
        self._view_model = view_model
        snapshot, node = view_model.snapshot, pod.node_name
        self._tree = cgroup_tree(snapshot.by_node().get(node, []), snapshot.setup(node))

    def compose_content(self) -> ComposeResult:
        yield Static(Content(tree_subject(self._tree) + self.qos.as_of(self._view_model)), id="subject")
        with text_view.TextScroll():
            yield text_view.TextView(self._layout)

    def on_mount(self) -> None:
        self.call_after_refresh(self._go_to_pod)

    def _go_to_pod(self) -> None:
        lines = tree_lines(self._tree, self.query_one(text_view.TextView).content_size.width)
        for number, line in enumerate(lines):
            directory = line.directory
            if directory is not None and directory.pod and directory.pod.metadata == self._pod.metadata:
                self.query_one(text_view.TextScroll).scroll_to(y=number, animate=False)
                break

    def _layout(self, width: int) -> list[text_view.TextLine]:
        lines = [text_view.TextLine(line.text, _token(line)) for line in tree_lines(self._tree, width)]
        notes = tree_notes([self._tree], self._view_model.snapshot.missing)
        texts = [text for note in notes for text in text_view.wrapped(note, width)]
        return [*lines, text_view.TextLine(""), *(text_view.TextLine(text, "muted") for text in texts)]

    def action_copy(self) -> None:
        lines = (line.text for line in tree_lines(self._tree))
        self.qos.copy("\n".join([tree_subject(self._tree), *lines]), "the tree")

    def action_export(self) -> None:
        text = "".join(f"{line}\n" for line in file_lines(self._tree))
        name = self._tree.setup.node.name or "node"
        self.qos.save_as("the cgroup files", f"{name}-cgroups.txt", lambda _: text)


def _token(line: TreeLine) -> str:
    if line.directory is None:
        return ""
    return "title" if line.directory.level is CgroupLevel.POD else "answer"


EXAMPLE = "1.37 cgroupVersion=1 featureGates.MemoryQoS=true memory=32Gi"


class CompareScreen(QosScreen, group=BindingGroup.COMPARE):
    """An input for a release and settings, and what they change; it does not follow updates."""

    CSS_PATH = "compare.tcss"
    AUTO_FOCUS = "Input"

    def __init__(self, pod: Pod, view_model: ViewModel) -> None:
        super().__init__()
        snapshot = view_model.snapshot
        self._pod = pod
        self._view_model = view_model
        self._setup = snapshot.setup(pod.node_name)
        self._pods = snapshot.by_node().get(pod.node_name, [])
        self._missing = [missing_sentence(missing) for missing in snapshot.missing]
        self._shown: tuple[str, ...] = ()

    def compose_content(self) -> ComposeResult:
        node = self._setup.node.name or "its node"
        yield Static(
            Content(
                f"what if {escape(node)}, kubelet {self._setup.release}, were different? "
                f"{pod_name(self._pod)}{self.qos.as_of(self._view_model)}"
            ),
            id="subject",
        )
        yield Input(placeholder=EXAMPLE, compact=True, id="settings")
        yield Label(id="reason", markup=False)
        with text_view.TextScroll(can_focus=False):
            yield text_view.TextView()

    def on_mount(self) -> None:
        self._show_example()

    def _show_example(self) -> None:
        self._show((Section("Type a release, settings, or both", f"such as {EXAMPLE}"),), "")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        words = event.value.split()
        if not words:
            self._show_example()
            return
        try:
            settings = [NodeOverride.parse(word) for word in words if "=" in word]
            releases = [word for word in words if "=" not in word]
            after = apply_overrides(self._setup, settings, releases[-1] if releases else None)
        except QosError as error:
            hint = f"; {error.hint}" if error.hint else ""
            self._show(None, f"! {error}{hint}")
            return
        comparison = compare(self._pods, self._setup, after, self._view_model.snapshot.usage)
        sections = (
            *kubelet_sections(comparison),
            *pod_sections(comparison.of(self._pod)),
            *node_sections(comparison),
        )
        self._show(sections, comparison_subject(comparison, settings))

    def _show(self, sections: tuple[Section, ...] | None, words: str) -> None:
        reason = self.query_one("#reason", Label)
        reason.set_class(sections is None, "wrong")
        reason.update(text_view.escape_lines(words))
        if sections is not None:
            self._shown = (words, *marked_lines(sections))
            self.query_one(text_view.TextView).show(text_view.effects_layout(sections, missing=self._missing))

    def action_copy(self) -> None:
        self.qos.copy("\n".join(self._shown), "what changes")

"""The cgroups of a node as a tree, with what kubelet and runtime write there."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from kubectl_qos.k8s.objects import Pod
from kubectl_qos.present.tree import TreeLine, file_lines, tree_lines, tree_notes, tree_subject
from kubectl_qos.qos.cgroup.tree import CgroupLevel, CgroupTree, cgroup_tree
from kubectl_qos.tui.actions import BindingGroup, bindings
from kubectl_qos.tui.screens.base import QosScreen, TooSmall
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.footer import KeyFooter
from kubectl_qos.tui.widgets.text_view import TextLine, TextScroll, TextView, wrapped
from kubectl_qos.tui.widgets.title_line import TitleLine


class TreeScreen(QosScreen):
    """`kubectl qos tree` of a pod's node, opened at the pod, as it was when the screen was opened."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.TREE)
    CSS_PATH = "tree.tcss"
    AUTO_FOCUS = "TextScroll"
    binding_groups = (BindingGroup.TREE,)

    def __init__(self, pod: Pod, facts: ViewModel) -> None:
        super().__init__()
        self._pod = pod
        self._facts = facts
        self._tree = _tree_of(pod, facts)

    def compose(self) -> ComposeResult:
        """Which node it is, then the tree and what there is to say about it."""
        yield TitleLine()
        yield Static(Content(tree_subject(self._tree) + self.qos.as_of(self._facts)), id="subject")
        with TextScroll():
            yield TextView(self._layout)
        yield KeyFooter(show_command_palette=False, compact=True)
        yield TooSmall()

    def on_mount(self) -> None:
        """The title of the moment, and the pod at the top."""
        self.qos.show_title()
        self.call_after_refresh(self._go_to_pod)

    def _go_to_pod(self) -> None:
        lines = tree_lines(self._tree, self.query_one(TextView).content_size.width)
        for number, line in enumerate(lines):
            found = line.directory
            if found is not None and found.pod is not None and found.pod.metadata == self._pod.metadata:
                self.query_one(TextScroll).scroll_to(y=number, animate=False)
                break

    def _layout(self, width: int) -> list[TextLine]:
        lines = [TextLine(line.text, _token(line)) for line in tree_lines(self._tree, width)]
        notes = [text for note in self._notes() for text in wrapped(note, width)]
        return [*lines, TextLine(""), *(TextLine(text, "muted") for text in notes)]

    def _notes(self) -> list[str]:
        return tree_notes([self._tree], self._facts.snapshot.missing)

    def action_copy(self) -> None:
        """The tree with its whole names, as text."""
        lines = (line.text for line in tree_lines(self._tree))
        self.qos.copy("\n".join([tree_subject(self._tree), *lines]), "the tree")

    def action_export(self) -> None:
        """Every file with its path and content, to a file."""
        text = "".join(f"{line}\n" for line in file_lines(self._tree))
        name = self._tree.setup.node.name or "node"
        self.qos.ask_and_save("the cgroup files", f"{name}-cgroups.txt", lambda _: text)

    def action_back(self) -> None:
        """Back to the pods."""
        self.dismiss()


def _tree_of(pod: Pod, facts: ViewModel) -> CgroupTree:
    snapshot = facts.snapshot
    return cgroup_tree(snapshot.by_node().get(pod.node_name, []), snapshot.setup(pod.node_name))


def _token(line: TreeLine) -> str:
    if line.directory is None:
        return ""
    return "title" if line.directory.level is CgroupLevel.POD else "answer"

"""The screens about one pod, by name; each is imported when it is opened for the first time."""

from __future__ import annotations

from kubectl_qos.k8s.objects import Pod
from kubectl_qos.tui.facts import Facts
from kubectl_qos.tui.history import Detail
from kubectl_qos.tui.screens.base import QosScreen


def detail_screen(detail: Detail, pod: Pod, facts: Facts) -> QosScreen:
    """A new screen of that kind."""
    if detail is Detail.EXPLAIN:
        from kubectl_qos.tui.screens.explain import ExplainScreen

        return ExplainScreen(pod, facts)
    if detail is Detail.EDIT:
        from kubectl_qos.tui.screens.edit import EditScreen

        return EditScreen(pod, facts)
    if detail is Detail.TREE:
        from kubectl_qos.tui.screens.tree import TreeScreen

        return TreeScreen(pod, facts)
    from kubectl_qos.tui.screens.compare import CompareScreen

    return CompareScreen(pod, facts)

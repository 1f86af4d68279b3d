"""The screens about one pod or node, or a list; each is imported when it is opened for the first time."""

from __future__ import annotations

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.present.pod_rows import PodRow
from kubectl_qos.tui.go_to import Detail
from kubectl_qos.tui.screens.base import QosScreen
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.view_model import ViewModel


def detail_screen(detail: Detail, pod: Pod, facts: ViewModel) -> QosScreen:
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


def simulation_screen(facts: ViewModel | None, node: str, pod: PodRow | None) -> QosScreen:
    """Who dies on a node as memory fills; on the fullest one where none is named.

    The pod is the one that grows where one does. Raises InputError where there is none.
    """
    from kubectl_qos.tui.screens.simulation import SimulationScreen

    node = node or next((group.key for group in _known(facts).nodes if group.key), "")
    if not node:
        raise InputError("there is no node whose memory could fill")
    key = (pod.pod.metadata.namespace, pod.name) if pod is not None and pod.node == node else None
    return SimulationScreen(node, _known(facts), key)


def kills_screen(facts: ViewModel | None, view: View) -> QosScreen:
    """What was killed in the namespace and on the node of a list. Raises InputError without facts."""
    from kubectl_qos.tui.screens.kills import KillsScreen

    is_of_all = view.kind in {ListKind.NODES, ListKind.NAMESPACES}
    node, namespace = (None, None) if is_of_all else (view.node, view.namespace)
    return KillsScreen(_known(facts), node=node, namespace=namespace)


def _known(facts: ViewModel | None) -> ViewModel:
    if facts is None:
        raise InputError("nothing is known before the cluster has answered")
    return facts

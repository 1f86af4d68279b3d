"""The names in the files of -f, or in the demo."""

from __future__ import annotations

import argparse

from kubectl_qos.cli.complete.place import Named, container_names
from kubectl_qos.cluster.demo import DEMO_FILE
from kubectl_qos.cluster.files import STANDARD_INPUT, FileSource
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Scope, Snapshot


class FileNames:
    """Names of the demo or of files."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options

    def of(self, kind: str, *, node: str | None, labels: bool) -> list[Named]:
        """All of them; labels are always there."""
        del labels
        snapshot = self._snapshot()
        if kind == "Namespace":
            return [Named(name) for name in sorted({pod.namespace for pod in snapshot.pods})]
        if kind == "Node":
            return [Named(name, "", one.metadata.labels or {}) for name, one in snapshot.nodes.items()]
        return [
            Named(pod.name, pod.node_name, pod.metadata.labels or {})
            for pod in snapshot.pods
            if pod.kind == kind and self._is_in_scope(pod) and node in {None, pod.node_name}
        ]

    def containers(self, kind: str, name: str) -> list[str]:
        """Of the first pod or workload of that name in scope."""
        for pod in self._snapshot().pods:
            if (pod.kind, pod.name) == (kind, name) and self._is_in_scope(pod):
                return container_names(pod)
        return []

    def _snapshot(self) -> Snapshot:
        given = getattr(self._options, "filename", [])
        if STANDARD_INPUT in given:
            # It is the shell's: what the command will be given there is not there yet.
            return Snapshot()
        recursive = getattr(self._options, "recursive", False)
        return FileSource(given or [str(DEMO_FILE)], recursive=recursive).snapshot(Scope())

    def _is_in_scope(self, pod: Pod) -> bool:
        namespace = getattr(self._options, "namespace", None)
        everywhere = getattr(self._options, "all_namespaces", False)
        return everywhere or namespace in {None, pod.namespace}

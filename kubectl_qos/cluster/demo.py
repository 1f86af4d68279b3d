"""The embedded demo cluster: four nodes and some sixty pods of every kind, with usage.

Made from recordings of a real node by tests/recordings/make_demo.py; always the same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kubectl_qos.cluster.files import FileSource
from kubectl_qos.cluster.source import Source
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import NO_OVERRIDES, NodeOverrides

if TYPE_CHECKING:
    from kubectl_qos.cluster.writer import Writer
    from kubectl_qos.edit.edits import Edit

DEMO_FILE: Final = Path(__file__).with_name("demo.json")
DEMO_TIME: Final = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
"""When the demo is frozen; ages are counted from it."""


class DemoSource(FileSource):
    """The demo: a file that looks like a cluster."""

    def __init__(self, overrides: NodeOverrides = NO_OVERRIDES) -> None:
        super().__init__([str(DEMO_FILE)], overrides=overrides)

    @property
    def title(self) -> str:
        """Its name."""
        return "demo"

    def now(self) -> datetime:
        """The demo's frozen time."""
        return DEMO_TIME

    def locations(self, pods: Collection[Pod]) -> list[str]:
        """Namespaces and names."""
        return Source.locations(self, pods)

    def change_file(self, pod: Pod, edits: Sequence[Edit]) -> str:
        """Raise QosError: the demo is always the same."""
        return Source.change_file(self, pod, edits)

    def writer(self) -> Writer:
        """Raise QosError: there is no cluster."""
        raise QosError("nothing is sent: the demo is no cluster", hint="name a context of your kubeconfig")

"""The cgroup files of a node, on v1, v2 or both.

Not here: what they should hold (qos/cgroup_values.py). Sources: Documentation/admin-guide/cgroup-v2.rst and
cgroup-v1/memory.rst.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kubectl_qos.host.procfs import Denied, read

CGROUP: Final = Path("/sys/fs/cgroup")

MEMORY_FILES: Final = {
    2: (
        "memory.max",
        "memory.high",
        "memory.min",
        "memory.low",
        "memory.current",
        "memory.swap.max",
        "memory.swap.current",
        "memory.oom.group",
        "memory.events",
    ),
    1: (
        "memory.limit_in_bytes",
        "memory.memsw.limit_in_bytes",
        "memory.usage_in_bytes",
        "memory.memsw.usage_in_bytes",
        "memory.swappiness",
        "memory.oom_control",
    ),
}
"""What decides which cgroup runs out, on which scale, and what dies there with the victim."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A mounted tree of cgroups that has a controller."""

    root: Path
    version: int

    def files(self, path: str, names: Iterable[str]) -> dict[str, str]:
        """Those of the named files that the cgroup has and that may be read."""
        found = {}
        for name in names:
            try:
                text = read(self.folder(path) / name)
            except Denied:
                continue
            if text is not None:
                found[name] = text.strip("\n")
        return found

    def every_file(self, path: str) -> dict[str, str]:
        """All files of a cgroup that may be read."""
        try:
            names = sorted(found.name for found in self.folder(path).iterdir())
        except OSError:
            return {}
        return self.files(path, names)

    def folder(self, path: str) -> Path:
        """Where a cgroup is; one outside of what this cgroup namespace sees (`/..`) is not below the root."""
        return self.root / path.strip("/")


def hierarchy(root: Path = CGROUP, controller: str = "memory") -> Hierarchy | None:
    """Where a controller is: on v1 it has a mount of its own, else it is on v2; None where it is nowhere."""
    for folder in (root / controller, root):
        if (folder / "cgroup.procs").exists() and not (folder / "cgroup.controllers").exists():
            return Hierarchy(folder, 1)
    for folder in (root, root / "unified"):
        if (folder / "cgroup.controllers").exists():
            return Hierarchy(folder, 2)
    return None


def above(path: str) -> list[str]:
    """A cgroup and all that it is in but the root, which has no limits: the topmost first."""
    if not path.startswith("/") or ".." in path.split("/"):
        return []
    parts = [part for part in path.split("/") if part]
    return ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]

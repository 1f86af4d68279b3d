"""The OCI runtime below containerd or CRI-O: what its version changes in a container's cgroup.

Sources: runc and its library opencontainers/cgroups (v0.0.3 came with runc 1.3.2), crun
(src/libcrun/cgroup-resources.c). No API tells which one a node has.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kubectl_qos.errors import InputError

_TEXT = re.compile(r"(?P<name>runc|crun)(?:[ -]v?(?P<version>\d+(?:\.\d+)*))?")
_QUADRATIC_SINCE = {"runc": (1, 3, 2), "crun": (1, 23)}


class OciRuntime(NamedTuple):
    """`runc` or `crun`, and its version; an empty one stands for a current version."""

    name: str = "runc"
    version: tuple[int, ...] = ()

    @staticmethod
    def parse(text: str) -> OciRuntime:
        """`runc`, `runc 1.2.5` or `crun-1.22`. Raises InputError for anything else."""
        found = _TEXT.fullmatch(text.strip())
        if found is None:
            raise InputError(
                f"{text!r} is no OCI runtime", hint="write runc or crun, and its version: crun-1.22"
            )
        version = found["version"]
        return OciRuntime(found["name"], tuple(map(int, version.split("."))) if version else ())

    def __str__(self) -> str:
        return " ".join([self.name, ".".join(map(str, self.version))]).strip()

    @property
    def has_quadratic_weight(self) -> bool:
        """Whether CPU shares become cpu.weight on the curve of 2025: since runc 1.3.2 and crun 1.23."""
        return not self.version or self.version >= _QUADRATIC_SINCE[self.name]

    @property
    def rounds_quota(self) -> bool:
        """Whether cpu.max has whole percents of a CPU under systemd: runc before 1.3.2 overwrites them."""
        return self.name == "crun" or self.has_quadratic_weight

    @property
    def has_process_cgroup(self) -> bool:
        """Whether processes are in a cgroup `container` below the scope (crun, systemd, cgroup v2)."""
        return self.name == "crun"


CURRENT_RUNC: Final = OciRuntime()
"""What nearly every node has, and so what is assumed."""

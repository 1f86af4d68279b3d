"""A row for each process of a node, in the order of qos/process_order.py."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kubectl_qos.qos.cgroup.names import PodCgroup, pod_cgroup
from kubectl_qos.qos.process_order import HostProcess, PodNames, RankedProcess, oom_group


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """A process with its rank and pod; `dying` is how many processes are killed together with it."""

    ranked: RankedProcess
    pod: PodCgroup | None
    named: PodNames | None
    dying: int

    @property
    def process(self) -> HostProcess:
        """The measured process."""
        return self.ranked.process

    @property
    def container(self) -> str:
        """The container's name, or its id where the name is unknown."""
        if self.pod is None:
            return ""
        names = self.named.containers if self.named else {}
        return names.get(self.pod.container_id) or self.pod.container_id


def build_process_rows(
    order: Iterable[RankedProcess], names: Mapping[str, PodNames], oom_groups: Collection[str]
) -> list[ProcessRow]:
    """A row for each process; `names` are by pod UID, `oom_groups` the cgroups that are killed as a whole."""
    processes = list(order)
    groups = [oom_group(row.process.cgroup, oom_groups) if row.spared is None else None for row in processes]
    rows = []
    for ranked, group in zip(processes, groups, strict=True):
        pod = pod_cgroup(ranked.process.cgroup)
        named = names.get(pod.pod_uid) if pod is not None else None
        dying = groups.count(group) if group is not None else int(ranked.spared is None)
        rows.append(ProcessRow(ranked, pod, named, dying))
    return rows

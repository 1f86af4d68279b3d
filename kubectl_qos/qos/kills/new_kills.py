"""Kills since an earlier snapshot of a followed cluster, with what earlier statuses said about them."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.qos.kills.analyze import AGREES_SECONDS, Kill, find_kills, seconds_apart
from kubectl_qos.qos.kills.report import KernelLog


def kills_since(
    before: Snapshot,
    snapshot: Snapshot,
    logs: Callable[[], Sequence[KernelLog]],
    node_events: Callable[[], EventList],
) -> list[Kill]:
    """Find the deaths that an earlier snapshot did not have, newest first.

    Deaths in pods show in their status. Deaths of host processes show in node events, which are read only if
    a node has been short of memory since then.
    """
    ended = _ended_since(before, snapshot)
    nodes = [node for node, time in snapshot.shortages.items() if before.shortages.get(node) != time]
    short = {node: parse_time(before.shortages.get(node, "")) for node in nodes}
    if not ended and not short:
        return []

    def is_new(kill: Kill) -> bool:
        time = parse_time(kill.time)
        if kill.pod:
            return kill.pod_uid in ended and (time is None or time.timestamp() > ended[kill.pod_uid])
        before_that = short.get(kill.node)
        is_process = kill.node in short and not kill.pod_uid
        return is_process and time is not None and (before_that is None or time > before_that)

    kills = find_kills(
        snapshot,
        node_events() if short else EventList(),
        logs(),
        is_included=lambda pod: pod.metadata.uid in ended or pod.node_name in short,
        outside_pods=bool(short),
    )
    return list(filter(is_new, kills))


def without_repeats(older: Iterable[Kill], newer: Sequence[Kill]) -> list[Kill]:
    """Drop kills known only by a node event if a newer kill of a pod is the same."""
    return [
        kill
        for kill in older
        if kill.pod
        or kill.report is None
        or not any(other.pod and seconds_apart(other, kill.report) is not None for other in newer)
    ]


def with_seen(kills: Iterable[Kill], seen: Sequence[Kill]) -> list[Kill]:
    """Replace kills that only a log still has by the same kills with their earlier status."""
    with_status = [kill for kill in seen if kill.exit_code is not None]
    return [
        kill if kill.exit_code is not None else next(filter(partial(_is_same, kill), with_status), kill)
        for kill in kills
    ]


def _ended_since(before: Snapshot, snapshot: Snapshot) -> dict[str, float]:
    """Return the UIDs of pods with new ends, and the time of the last earlier end."""
    nodes, ended = before.by_node(), dict[str, float]()
    for name, pods in snapshot.by_node().items():
        pods_before = nodes.get(name, ())
        if pods is pods_before:
            continue
        older = {pod.metadata.uid or pod.name: pod for pod in pods_before}
        for pod in pods:
            old = older.get(pod.metadata.uid or pod.name)
            if old is not None and old is not pod and _ends(pod) - _ends(old):
                ends = map(parse_time, (end for _, end in _ends(old)))
                ended[pod.metadata.uid] = max((end.timestamp() for end in ends if end), default=0.0)
    return ended


def _ends(pod: Pod) -> set[tuple[str, str]]:
    """Return the ended containers with their times; an ended pod adds ("", its reason)."""
    statuses = pod.status.every_container
    ends = {(status.name, end.finished_at or "") for status in statuses for end in status.ends}
    return ends | {("", pod.status.reason)} if pod.is_terminal else ends


def _is_same(kill: Kill, other: Kill) -> bool:
    times = parse_time(kill.time), parse_time(other.time)
    place = kill.namespace, kill.pod, kill.container
    if place != (other.namespace, other.pod, other.container) or not all(times):
        return False
    first, second = (time.timestamp() for time in times if time is not None)
    return abs(first - second) <= AGREES_SECONDS

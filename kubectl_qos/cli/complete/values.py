"""Candidates for the values of flags, a function for each sort of value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kubectl_qos.cli.complete.names import Names
from kubectl_qos.cli.complete.offer import EXTENSIONS, NOTHING, Candidate, Offer, offer
from kubectl_qos.cli.complete.position import Position
from kubectl_qos.cli.complete.targets import NODE, target_of
from kubectl_qos.k8s.kind_words import kind_of

Completer = Callable[[Position, Names], Offer]

_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_SWITCH: Final = ("true", "false")
SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "cgroupDriver": ("cgroupfs", "systemd"),
    "cgroupRoot": (),
    "cgroupsPerQOS": _SWITCH,
    "cpuCFSQuota": _SWITCH,
    "cpuCFSQuotaPeriod": (),
    "cpuManagerPolicy": ("none", "static"),
    "podPidsLimit": (),
    "memoryThrottlingFactor": (),
    "memoryReservationPolicy": ("None", "TieredReservation"),
    "memorySwap.swapBehavior": ("NoSwap", "LimitedSwap", "UnlimitedSwap"),
    "singleProcessOOMKill": _SWITCH,
    "cgroupVersion": ("1", "2"),
    "runtime": ("containerd://", "cri-o://", "docker://"),
    "ociRuntime": ("runc-", "crun-"),
    "runtimeOOMScoreAdj": (),
    "kernel": (),
    "memory": (),
    "swap": (),
    "pageSize": ("4Ki", "16Ki", "64Ki"),
}
"""The settings of k8s/settings.py but feature gates, with values or what values begin with."""


def free(at: Position, names: Names) -> Offer:
    """Nothing: only who types knows it."""
    del at, names
    return NOTHING


def only(directive: int) -> Completer:
    """What the shell itself completes: files or folders."""
    return lambda _at, _names: Offer(directive=directive)


def files_ending_in(*endings: str) -> Completer:
    """Files of these endings, and folders on the way to them."""
    found = Offer(tuple(map(Candidate, endings)), EXTENSIONS)
    return lambda _at, _names: found


def of_kind(kind: str) -> Completer:
    """The names of the objects of a kind."""
    return lambda _at, names: Offer(tuple(Candidate(one.name, one.about) for one in names.of(kind)))


def in_kubeconfig(entries: str) -> Completer:
    """The names of its `contexts`, `clusters` or `users`; no server is asked."""

    def complete(at: Position, names: Names) -> Offer:
        del names
        from kubectl_qos.cli.complete.server_names import kubeconfig_names

        return offer(kubeconfig_names(at.options, entries))

    return complete


def labels(at: Position, names: Names) -> Offer:
    """`KEY=`, and behind the sign the values that are in use, for the last of several."""
    kind = "Node" if _is_of_nodes(at) else "Pod"
    found: dict[str, set[str]] = {}
    for one in names.of(kind, labels=True):
        for key, value in one.labels.items():
            found.setdefault(key, set()).add(value)
    return _assignments({key: tuple(sorted(values)) for key, values in sorted(found.items())}, at.word)


def columns(at: Position, names: Names) -> Offer:
    """The columns of the table that is asked for."""
    del names
    if _is_of_nodes(at):
        from kubectl_qos.present.node_columns import NODE_COLUMNS

        return Offer(tuple(Candidate(key, column.help) for key, column in NODE_COLUMNS.items()))
    from kubectl_qos.present.columns import COLUMNS

    return Offer(tuple(Candidate(column.key, column.help) for column in COLUMNS))


def releases(at: Position, names: Names) -> Offer:
    """Every minor release whose rules are known."""
    del at, names
    from kubectl_qos.k8s.releases import NEWEST_MINOR, OLDEST_MINOR

    return offer(f"1.{minor}" for minor in range(NEWEST_MINOR, OLDEST_MINOR - 1, -1))


def settings(at: Position, names: Names) -> Offer:
    """`KEY=`, and behind the sign its values."""
    del names
    from kubectl_qos.k8s.releases import Gate
    from kubectl_qos.k8s.settings import FEATURE_GATES

    gates = {f"{FEATURE_GATES}{gate}": _SWITCH for gate in Gate}
    return _assignments({**SETTINGS, **gates}, at.word, separator="")


def gates(at: Position, names: Names) -> Offer:
    """`GATE=true` and `GATE=false`, for the last of several."""
    del names
    from kubectl_qos.k8s.releases import Gate

    return _assignments(dict.fromkeys(map(str, Gate), _SWITCH), at.word)


def resources(at: Position, names: Names) -> Offer:
    """`cpu=` and the like, for the last of several; what comes behind the sign only a person knows."""
    del names
    return _assignments(dict.fromkeys(_RESOURCES, ()), at.word)


def containers(at: Position, names: Names) -> Offer:
    """Those of the pod or workload that is changed."""
    target = target_of(at)
    return offer(names.containers(*target)) if target is not None else NOTHING


def growth(at: Position, names: Names) -> Offer:
    """`node=`, `pod/NAME=`, and behind a colon the pod's containers."""
    if "=" in at.word:
        return NOTHING
    pod, colon, _ = at.word.partition(":")
    if colon:
        found = names.containers("Pod", pod.removeprefix("pod/"))
        return offer(f"{pod}:{one}=" for one in found)
    if not at.word.startswith("pod/"):
        return offer(("node=", "pod/"))
    target = target_of(at)
    node = target[1] if target is not None and target[0] == NODE else None
    return Offer(tuple(Candidate(f"pod/{one.name}=", one.about) for one in names.of("Pod", node=node)))


def changes(at: Position, names: Names) -> Offer:
    """The ids of what was written, each with what it changed; those of --context alone where it is given."""
    del names
    from kubectl_qos.cli.land import short_id
    from kubectl_qos.config.journal import JournalFile, journal_file
    from kubectl_qos.present.journal import entry_change, entry_object

    context = getattr(at.options, "context", None)
    found = reversed(JournalFile(journal_file()).entries())
    return Offer(
        tuple(
            Candidate(short_id(one.id), f"{entry_object(one)}: {entry_change(one)}")
            for one in found
            if context in {None, one.context}
        )
    )


def _is_of_nodes(at: Position) -> bool:
    """Whether the table of nodes is asked for."""
    return bool(at.operands) and kind_of(at.operands[0].partition("/")[0]) == NODE


def _assignments(known: Mapping[str, tuple[str, ...]], word: str, *, separator: str = ",") -> Offer:
    """`KEY=` while the key is typed, then `KEY=VALUE`; before a separator stands what is complete."""
    before, comma, last = word.rpartition(separator) if separator else ("", "", word)
    key, equals, _ = last.partition("=")
    if not equals:
        done = {one.partition("=")[0] for one in before.split(",")}
        return offer(f"{before}{comma}{one}=" for one in known if one not in done)
    return offer(f"{before}{comma}{key}={value}" for value in known.get(key, ()))

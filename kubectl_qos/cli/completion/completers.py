"""Candidates for the values of flags, a function for each sort of value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kubectl_qos.cli.completion.directives import (
    EXTENSIONS,
    FILES,
    FOLDERS,
    NOTHING,
    Candidate,
    Completions,
    completions,
)
from kubectl_qos.cli.completion.names import NameSources
from kubectl_qos.cli.completion.parse import Position
from kubectl_qos.k8s.kinds import KINDS, parse_kind

Completer = Callable[[Position, NameSources], Completions]

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
"""The keys of k8s/node_overrides.py without feature gates, with values or what values begin with."""


def free(at: Position, names: NameSources) -> Completions:
    """Nothing: only who types knows it."""
    del at, names
    return NOTHING


def only(directive: int) -> Completer:
    """What the shell itself completes: files or folders."""
    return lambda _at, _names: Completions(directive=directive)


def files_ending_in(*endings: str) -> Completer:
    """Files of these endings, and folders on the way to them."""
    found = Completions(tuple(map(Candidate, endings)), EXTENSIONS)
    return lambda _at, _names: found


def names_of_kind(kind: str) -> Completer:
    """The names of the objects of a kind."""
    return lambda _at, names: Completions(tuple(Candidate(one.name, one.about) for one in names.of(kind)))


def in_kubeconfig(entries: str) -> Completer:
    """The names of its `contexts`, `clusters` or `users`; no server is asked."""

    def complete(at: Position, names: NameSources) -> Completions:
        del names
        from kubectl_qos.cli.completion.names import kubeconfig_names

        return completions(kubeconfig_names(at.options, entries))

    return complete


def labels(at: Position, names: NameSources) -> Completions:
    """`KEY=`, and behind the sign the values that are in use, for the last of several."""
    kind = "Node" if _is_of_nodes(at) else "Pod"
    found: dict[str, set[str]] = {}
    for one in names.of(kind, labels=True):
        for key, value in one.labels.items():
            found.setdefault(key, set()).add(value)
    return _assignments({key: tuple(sorted(values)) for key, values in sorted(found.items())}, at.word)


def columns(at: Position, names: NameSources) -> Completions:
    """The columns of the table that is asked for."""
    del names
    if _is_of_nodes(at):
        from kubectl_qos.present.node_columns import NODE_COLUMNS

        return Completions(tuple(Candidate(key, column.help) for key, column in NODE_COLUMNS.items()))
    from kubectl_qos.present.pod_columns import ALL_COLUMNS

    return Completions(tuple(Candidate(column.key, column.help) for column in ALL_COLUMNS))


def releases(at: Position, names: NameSources) -> Completions:
    """Every minor release whose rules are known."""
    del at, names
    from kubectl_qos.k8s.releases import NEWEST_MINOR, OLDEST_MINOR

    return completions(f"1.{minor}" for minor in range(NEWEST_MINOR, OLDEST_MINOR - 1, -1))


def settings(at: Position, names: NameSources) -> Completions:
    """`KEY=`, and behind the sign its values."""
    del names
    from kubectl_qos.k8s.node_overrides import FEATURE_GATES
    from kubectl_qos.k8s.releases import Gate

    gates = {f"{FEATURE_GATES}{gate}": _SWITCH for gate in Gate}
    return _assignments({**SETTINGS, **gates}, at.word, separator="")


def gates(at: Position, names: NameSources) -> Completions:
    """`GATE=true` and `GATE=false`, for the last of several."""
    del names
    from kubectl_qos.k8s.releases import Gate

    return _assignments(dict.fromkeys(map(str, Gate), _SWITCH), at.word)


def resources(at: Position, names: NameSources) -> Completions:
    """`cpu=` and the like, for the last of several; what comes behind the sign only a person knows."""
    del names
    return _assignments(dict.fromkeys(_RESOURCES, ()), at.word)


def containers(at: Position, names: NameSources) -> Completions:
    """Those of the pod or workload that is changed."""
    target = first_target(at)
    return completions(names.containers(*target)) if target is not None else NOTHING


def growth(at: Position, names: NameSources) -> Completions:
    """`node=`, `pod/NAME=`, and behind a colon the pod's containers."""
    if "=" in at.word:
        return NOTHING
    pod, colon, _ = at.word.partition(":")
    if colon:
        found = names.containers("Pod", pod.removeprefix("pod/"))
        return completions(f"{pod}:{one}=" for one in found)
    if not at.word.startswith("pod/"):
        return completions(("node=", "pod/"))
    target = first_target(at)
    node = target[1] if target is not None and target[0] == NODE else None
    return Completions(tuple(Candidate(f"pod/{one.name}=", one.about) for one in names.of("Pod", node=node)))


def changes(at: Position, names: NameSources) -> Completions:
    """The ids of what was written, each with what it changed; those of --context alone where it is given."""
    del names
    from kubectl_qos.cli.land import short_id
    from kubectl_qos.config.history_file import HistoryFile, history_path
    from kubectl_qos.present.apply import entry_change, entry_object

    context = getattr(at.options, "context", None)
    found = reversed(HistoryFile(history_path()).entries())
    return Completions(
        tuple(
            Candidate(short_id(one.id), f"{entry_object(one)}: {entry_change(one)}")
            for one in found
            if context in {None, one.context}
        )
    )


def _is_of_nodes(at: Position) -> bool:
    """Whether the table of nodes is asked for."""
    return bool(at.operands) and parse_kind(at.operands[0].partition("/")[0]) == NODE


def _assignments(known: Mapping[str, tuple[str, ...]], word: str, *, separator: str = ",") -> Completions:
    """`KEY=` while the key is typed, then `KEY=VALUE`; before a separator stands what is complete."""
    before, comma, last = word.rpartition(separator) if separator else ("", "", word)
    key, equals, _ = last.partition("=")
    if not equals:
        done = {one.partition("=")[0] for one in before.split(",")}
        return completions(f"{before}{comma}{one}=" for one in known if one not in done)
    return completions(f"{before}{comma}{key}={value}" for value in known.get(key, ()))


POD: Final = "Pod"
NODE: Final = "Node"
EVERY_TYPE: Final = tuple(KINDS)
WORKLOADS: Final = tuple(kind for kind in EVERY_TYPE if kind not in {POD, NODE})


class TargetCompleter:
    """Completes targets of some types; `bare` are pods without their type, `most` of them are taken."""

    def __init__(self, *types: str, bare: bool = False, most: int | None = 1) -> None:
        self._types = types
        self._bare = bare
        self._most = most

    def __call__(self, at: Position, names: NameSources) -> Completions:
        """A type with its slash, the names behind a slash, or those of a type that is a word of its own."""
        first = at.operands[0] if at.operands else ""
        kind = _kind_of(first, self._types)
        is_typed_apart = kind is not None
        if self._most is not None and len(at.operands) - is_typed_apart >= self._most:
            return NOTHING
        typed, slash, _ = at.word.partition("/")
        if is_typed_apart and kind is not None:
            found = _named(kind, "", names)
        elif slash:
            kind = _kind_of(typed, self._types)
            found = _named(kind, f"{typed}/", names) if kind is not None else iter(())
        else:
            found = self._beginnings(at, names)
        return Completions(tuple(one for one in found if one.value not in at.operands))

    def _beginnings(self, at: Position, names: NameSources) -> Iterator[Candidate]:
        """What a target may begin with; names with and without a type are not mixed."""
        if not self._bare or not at.operands or "/" in at.operands[0]:
            for one in self._types:
                yield Candidate(f"{KINDS[one].names[0]}/")
        if self._bare and "/" not in "".join(at.operands):
            yield from _named(POD, "", names)


def first_target(at: Position) -> tuple[str, str] | None:
    """The kind and the name of the first target among the words before, if it is one."""
    first, *rest = at.operands or ("",)
    typed, slash, name = first.partition("/")
    kind = parse_kind(typed)
    if not slash:
        name = rest[0] if rest else ""
    return (kind, name) if kind is not None and name else None


def _kind_of(word: str, types: tuple[str, ...]) -> str | None:
    kind = parse_kind(word)
    return kind if kind in types else None


def _named(kind: str, before: str, names: NameSources) -> Iterator[Candidate]:
    for one in names.of(kind):
        yield Candidate(before + one.name, one.about)


EVERY_COMMAND: Final[Mapping[str, Completer]] = {
    "namespace": names_of_kind("Namespace"),
    "node": names_of_kind("Node"),
    "selector": labels,
    "filename": files_ending_in("yaml", "yml", "json"),
    "kubeconfig": only(FILES),
    "context": in_kubeconfig("contexts"),
    "cluster": in_kubeconfig("clusters"),
    "user": in_kubeconfig("users"),
    "server": free,
    "token": free,
    "username": free,
    "password": free,
    "as_user": free,
    "as_uid": free,
    "as_groups": free,
    "certificate_authority": only(FILES),
    "client_certificate": only(FILES),
    "client_key": only(FILES),
    "tls_server_name": free,
    "request_timeout": free,
    "node_memory": free,
    "assume": settings,
    "feature_gates": gates,
    "verbosity": free,
}

OF_COMMAND: Final[Mapping[str, Mapping[str, Completer]]] = {
    "top": {
        "names": TargetCompleter(POD, NODE, bare=True, most=None),
        "sort_by": columns,
    },
    "explain": {"target": TargetCompleter(POD, *WORKLOADS, most=None)},
    "tree": {"target": TargetCompleter(*EVERY_TYPE)},
    "compare": {
        "target": TargetCompleter(*EVERY_TYPE),
        "to": releases,
        "settings": settings,
    },
    "edit": {"target": TargetCompleter(POD, *WORKLOADS)},
    "set": {
        "target": TargetCompleter(POD, *WORKLOADS),
        "requests": resources,
        "limits": resources,
        "containers": containers,
        "outlive": names_of_kind("Pod"),
        "rank_below": free,
        "timeout": free,
    },
    "undo": {"id": changes, "timeout": free},
    "kills": {
        "target": TargetCompleter(*EVERY_TYPE, bare=True, most=None),
        "kernel_logs": only(FILES),
        "since": free,
    },
    "simulate": {
        "target": TargetCompleter(NODE),
        "free": free,
        "grow": growth,
        "important": labels,
        "what_if": files_ending_in("yaml", "yml", "json"),
    },
    "verify": {
        "target": TargetCompleter(POD, NODE),
        "proc_root": only(FOLDERS),
        "cgroup_root": only(FOLDERS),
        "dump": files_ending_in("json"),
    },
    "host": {
        "proc_root": only(FOLDERS),
        "cgroup_root": only(FOLDERS),
        "from_dump": files_ending_in("json"),
    },
    "web": {"port": free, "address": free, "allow_hosts": free},
}


def completer(command: str, name: str) -> Completer:
    """What completes a flag or operand of a command. Raises KeyError where this table lacks it."""
    return OF_COMMAND.get(command, {}).get(name) or EVERY_COMMAND[name]

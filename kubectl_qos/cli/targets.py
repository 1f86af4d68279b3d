"""What the words of a command name: pods, workloads, nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from kubectl_qos.cli.sources import ResolvedSource
from kubectl_qos.errors import UsageError
from kubectl_qos.k8s.kinds import parse_kind
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Target:
    """A kind and a name as given on the command line."""

    kind: str
    name: str


def parse_targets(words: Sequence[str]) -> list[Target]:
    """`pod/a deploy/b` or `pod a b` as kinds and names. Raises UsageError in kubectl's words."""
    if any("/" in word for word in words):
        if not all("/" in word for word in words):
            raise UsageError(
                "there is no need to specify a resource type as a separate argument when passing "
                "arguments in resource/name form (e.g. 'kubectl qos explain pod/web-0')"
            )
        if any(word.count("/") > 1 for word in words):
            raise UsageError("arguments in resource/name form may not have more than one slash")
        return [_target(*word.split("/")) for word in words]
    if len(words) == 1:
        raise UsageError(
            "resource(s) were provided, but no name was specified",
            hint=f"for a pod of that name: pod/{words[0]}",
        )
    return [_target(words[0], name) for name in words[1:]] if words else []


def _target(kind: str, name: str) -> Target:
    found = parse_kind(kind)
    if found in {None, "Node"}:
        raise UsageError(
            f'the server doesn\'t have a resource type "{kind}" with pods',
            hint="pod, deployment, statefulset, daemonset, replicaset, job and cronjob have pods",
        )
    if not name:
        raise UsageError("resource(s) were provided, but no name was specified")
    return Target(found, name)


def reference(pod: Pod) -> str:
    """What a sentence calls a pod or workload: `deployment/web`."""
    return f"{pod.kind.lower()}/{pod.name}"


def top_kind(words: Sequence[str]) -> tuple[str, list[str]]:
    """`Pod` or `Node`, and the names of those to show, none for all; a word without a kind names a pod.

    `nodes`, `node/worker-1` and `nodes worker-1` are nodes, as in kubectl; a pod that is called nodes is
    `pod/nodes`. Raises UsageError.
    """
    if any("/" in word for word in words):
        found = [word.partition("/")[::2] for word in words if word.count("/") == 1]
        if len(found) != len(words):
            raise UsageError(
                "names with and without their type cannot be mixed",
                hint="write pod/web-0 pod/web-1, or pods web-0 web-1",
            )
        kinds = {_top_kind(kind) or _no_top_kind(kind) for kind, _ in found}
        if len(kinds) > 1:
            raise UsageError("pods and nodes are two tables", hint="ask for one of them at a time")
        if not all(name for _, name in found):
            raise UsageError("resource(s) were provided, but no name was specified")
        return kinds.pop(), [name for _, name in found]
    kind = _top_kind(words[0]) if words else None
    return (kind, list(words[1:])) if kind is not None else ("Pod", list(words))


def _top_kind(word: str) -> str | None:
    kind = parse_kind(word)
    return kind if kind in {"Pod", "Node"} else None


def _no_top_kind(word: str) -> NoReturn:
    raise UsageError(
        f'top shows pods and nodes, and "{word}" is neither',
        hint="pods of a workload are selected by their labels: -l app=web",
    )


def node_name(words: Sequence[str]) -> str | None:
    """The node that is asked for, None if it is something else. Raises UsageError."""
    first, *rest = words or [""]
    kind, slash, name = first.partition("/")
    if parse_kind(kind) != "Node":
        return None
    names = [name, *rest] if slash else rest
    if len(names) != 1 or not names[0]:
        raise UsageError("one node can be shown at a time", hint="write node/worker-1; without a name, all")
    return names[0]


def find_pod(target: Target, snapshot: Snapshot, wanted: ResolvedSource) -> Pod:
    """The pod of a target, or the template of a workload. Raises InputError or ApiError."""
    namespace = wanted.scope.namespace
    for pod in snapshot.pods:
        same_place = namespace is None or pod.namespace in {namespace, ""}
        if pod.kind == target.kind and pod.name == target.name and same_place:
            return pod
    return wanted.source.find(target.kind, namespace, target.name)

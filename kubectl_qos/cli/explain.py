"""`kubectl qos explain TYPE/NAME`: why this class, score, cgroup values and eviction rank."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kubectl_qos.cli import streams
from kubectl_qos.cli.sources import Asked, asked
from kubectl_qos.errors import EXIT_ERROR, InputError, UsageError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present.explanation import Explanation, as_values, explain_pod, text_lines
from kubectl_qos.present.structured import to_json, to_yaml

_SHORT = {
    "po": "Pod",
    "pod": "Pod",
    "pods": "Pod",
    "deploy": "Deployment",
    "deployment": "Deployment",
    "deployments": "Deployment",
    "sts": "StatefulSet",
    "statefulset": "StatefulSet",
    "statefulsets": "StatefulSet",
    "ds": "DaemonSet",
    "daemonset": "DaemonSet",
    "daemonsets": "DaemonSet",
    "rs": "ReplicaSet",
    "replicaset": "ReplicaSet",
    "replicasets": "ReplicaSet",
    "rc": "ReplicationController",
    "replicationcontroller": "ReplicationController",
    "job": "Job",
    "jobs": "Job",
    "cj": "CronJob",
    "cronjob": "CronJob",
    "cronjobs": "CronJob",
}


@dataclass(frozen=True, slots=True)
class Target:
    """A kind and a name as given on the command line."""

    kind: str
    name: str


def run(options: argparse.Namespace) -> int:
    """Print one explanation per pod; exit code 1 if a document was wanting."""
    targets = parse_targets(getattr(options, "target", []))
    files = getattr(options, "filename", None)
    if not targets and not files:
        raise UsageError(
            "You must provide one or more resources by argument or filename.",
            hint="kubectl qos explain pod/web-0, or kubectl qos explain -f pod.yaml",
        )
    wanted = asked(options)
    found = explanations(wanted, targets)
    output = getattr(options, "output", None)
    values = [as_values(one) for one in found]
    if output == "json":
        streams.out_text(to_json(values[0] if len(values) == 1 else {"kind": "List", "items": values}))
    elif output == "yaml":
        streams.out_text(to_yaml(values[0] if len(values) == 1 else {"kind": "List", "items": values}))
    else:
        for number, one in enumerate(found):
            if number:
                streams.out([""])
            streams.out(text_lines(one))
    streams.notes(f"error: {problem}" for problem in wanted.problems)
    return EXIT_ERROR if wanted.failed else 0


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
    found = _SHORT.get(kind.lower())
    if found is None:
        raise UsageError(
            f'the server doesn\'t have a resource type "{kind}" with pods',
            hint="pod, deployment, statefulset, daemonset, replicaset, job and cronjob have pods",
        )
    if not name:
        raise UsageError("resource(s) were provided, but no name was specified")
    return Target(found, name)


def explanations(wanted: Asked, targets: Sequence[Target]) -> list[Explanation]:
    """Each target explained, ranked among the pods of its node; without targets, every pod."""
    scope = wanted.scope
    if targets:
        scope = replace(scope, names=frozenset(target.name for target in targets))
    snapshot = wanted.source.snapshot(scope)
    pods = [find_pod(target, snapshot, wanted) for target in targets]
    if not targets:
        pods = [pod for pod in snapshot.pods if scope.matches(pod)]
        if not pods:
            raise InputError("no pods to explain", hint="look at the namespace and the selector")
    return [explain_pod(pod, snapshot, wanted.source.now()) for pod in pods]


def find_pod(target: Target, snapshot: Snapshot, wanted: Asked) -> Pod:
    """The pod of a target, or the template of a workload. Raises InputError or ApiError."""
    namespace = wanted.scope.namespace
    for pod in snapshot.pods:
        same_place = namespace is None or pod.namespace in {namespace, ""}
        if pod.kind == target.kind and pod.name == target.name and same_place:
            return pod
    source = wanted.source
    if source.is_live:
        from kubectl_qos.cluster.live import LiveSource

        if isinstance(source, LiveSource):
            where = namespace or source.default_namespace or "default"
            if target.kind == "Pod":
                return source.pod(where, target.name)
            return source.workload(target.kind, where, target.name)
    kind = target.kind.lower()
    raise InputError(
        f'{kind}s "{target.name}" not found in {source.title}',
        hint="kubectl qos top lists what there is" if snapshot.pods else "",
    )

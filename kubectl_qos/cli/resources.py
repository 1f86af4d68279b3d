"""Resolve TYPE/NAME arguments to pods, workloads and nodes, or to errors about missing ones.

Every command imports this module, also for its --help, so it imports slow ones inside of functions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_qos.cli import output
from kubectl_qos.errors import ApiError, InputError, QosError, UsageError, did_you_mean, first_few, nearest

if TYPE_CHECKING:
    import argparse

    from kubectl_qos.cli.sources import ResolvedSource
    from kubectl_qos.k8s.objects import Pod
    from kubectl_qos.k8s.quota import LimitRange
    from kubectl_qos.k8s.snapshot import Scope, Snapshot


class Reference(NamedTuple):
    """A pod or workload as it is named on the command line."""

    kind: str
    name: str

    def __str__(self) -> str:
        """Return `deployment/web`."""
        return f"{self.kind.lower()}/{self.name}"


def reference(pod: Pod) -> str:
    """Return the name of a pod or workload in a sentence: `deployment/web`."""
    return str(Reference(pod.kind, pod.name))


def take_namespace(options: argparse.Namespace) -> None:
    """Replace `NAMESPACE/POD:CONTAINER`, which tables print for a victim, by a pod and its --namespace.

    Raises UsageError for pods of several namespaces.
    """
    words = options.target if isinstance(options.target, list) else []
    for index, word in enumerate(words):
        place, colon, _ = word.partition(":")
        namespace, slash, pod = place.partition("/")
        if colon and slash and parse_kind(namespace) is None:
            given = vars(options).get("namespace") or namespace
            options.namespace = namespace
            if given != namespace:
                raise UsageError(
                    f"{word} is not in namespace {given}", "name pods of one namespace at a time"
                )
            words[index] = f"pod/{pod}"


def parse_references(
    words: Sequence[str], *, any_kind: bool = False, nodes: bool = False, hinted: str = ""
) -> list[Reference]:
    """Parse `pod/a deploy/b`, `pod a b` or `deploy,sts a` into kinds and names.

    A name without a kind is that of a pod, as for `kubectl logs`, or of the kind `hinted`. With `any_kind`
    unknown kinds are kept. Raises UsageError in kubectl's words.
    """
    if any("/" in word for word in words):
        if not all("/" in word for word in words):
            raise UsageError(
                "there is no need to specify a resource type as a separate argument when passing "
                "arguments in resource/name form (e.g. 'kubectl qos explain pod/web-0')"
            )
        if any(word.count("/") > 1 for word in words):
            raise UsageError("arguments in resource/name form may not have more than one slash")
        pairs = [word.split("/", 1) for word in words]
    elif len(words) == 1:
        if hinted or _parse_kinds(words[0]):
            between = " " if "," in words[0] else "/"
            hint = f"write {hinted}/{words[0]}" if hinted else f"write {words[0]}{between}NAME"
            raise UsageError(_NO_NAME, hint)
        pairs = [["pod", words[0]]]
    else:
        pairs = [[word, name] for name in words[1:] for word in words[0].split(",")]
    return [_parse_reference(word, name, any_kind=any_kind, nodes=nodes) for word, name in pairs]


def parse_kind(word: str) -> str | None:
    """Return the kind of a word such as `pods` or `deploy`; None for an unknown one."""
    from kubectl_qos.k8s import kinds

    return kinds.parse_kind(word)


def _parse_kinds(word: str) -> set[str]:
    """Return the kinds in a list such as `pods,nodes`; empty for any other word."""
    kinds = {parse_kind(name) for name in word.split(",")}
    return {kind for kind in kinds if kind is not None} if None not in kinds else set()


_NO_NAME: Final = "resource(s) were provided, but no name was specified"


def _parse_reference(word: str, name: str, *, any_kind: bool, nodes: bool) -> Reference:
    kind = parse_kind(word) or (word.lower() if any_kind else None)
    if kind == "Node" and not nodes:
        hint = f"who dies there: kubectl qos next node/{name}; fix, tree and report take nodes too"
        raise UsageError(f"a pod or workload is needed, not a node: node/{name}", hint)
    if kind is None:
        raise _unknown_kind(word, name)
    if not name:
        raise UsageError(_NO_NAME)
    return Reference(kind, name)


def _unknown_kind(word: str, name: str) -> UsageError:
    hint = "use pod, deployment, statefulset, daemonset, replicaset, job or cronjob"
    if word.lower() in {"namespace", "namespaces", "ns"} and name:
        hint = f"for all pods of a namespace: -n {name}"
    elif name:
        hint += f"; a pod of namespace {word} is pod/{name} -n {word}"
    return UsageError(f'the server doesn\'t have a resource type "{word}" with pods', hint)


def parse_references_or_names(words: Sequence[str]) -> list[Reference]:
    """Parse pods, nodes and workloads; a name without a kind is a pod, a kind alone gets an empty name.

    `nodes`, `node/worker-1` and `nodes worker-1` are nodes, as in kubectl; a pod that is called nodes is
    `pod/nodes`. Raises UsageError.
    """
    kinds = _parse_kinds(words[0]) if words else set()
    if "Node" in kinds and len(kinds) > 1:
        raise UsageError(*_TWO_TABLES)
    if len(words) == 1 and kinds in ({"Pod"}, {"Node"}):
        return [Reference(kinds.pop(), "")]
    if not kinds and not any("/" in word for word in words):
        return [Reference("Pod", name) for name in words]
    references = parse_references(words, nodes=True)
    if len({reference.kind == "Node" for reference in references}) > 1:
        raise UsageError(*_TWO_TABLES)
    return references


_TWO_TABLES: Final = ("pods and nodes cannot be shown in one table", "name only pods, or only nodes")


def parse_group(words: Sequence[str]) -> str | None:
    """Return `Namespace` or `Workload` if the only word is one such as `ns` or `workloads`, else None."""
    return _GROUPS.get(words[0].lower()) if len(words) == 1 else None


_GROUPS: Final = dict.fromkeys(("namespaces", "namespace", "ns"), "Namespace") | dict.fromkeys(
    ("workloads", "workload"), "Workload"
)


def parse_node(words: Sequence[str]) -> str | None:
    """Return the name of the node, or None if the words name no node. Raises UsageError."""
    first, *rest = words or [""]
    kind, slash, name = first.partition("/")
    if parse_kind(kind) != "Node":
        return None
    names = [name, *rest] if slash else rest
    if len(names) != 1 or not names[0]:
        raise UsageError("one node can be shown at a time", hint="write node/worker-1")
    return names[0]


def parse_node_or_reference(
    words: Sequence[str], too_many: str, *, any_kind: bool = False
) -> tuple[str | None, Reference | None]:
    """Return the named node, and the named pod or workload; one or both are None.

    Raises UsageError, with the sentence `too_many` for several names.
    """
    node = parse_node(words)
    references = [] if node is not None else parse_references(words, any_kind=any_kind)
    if len(references) > 1:
        raise UsageError(too_many)
    return node, references[0] if references else None


def find_pod(reference: Reference, snapshot: Snapshot, resolved: ResolvedSource) -> Pod:
    """Return the pod of a reference, or the template of a workload. Raises InputError or ApiError."""
    from kubectl_qos.k8s.kinds import is_named, kind_names

    namespace = resolved.scope.namespace
    for pod in snapshot.pods:
        in_scope = namespace is None or pod.namespace in {namespace, ""}
        if in_scope and is_named(pod, *reference):
            return pod
    try:
        return resolved.source.find(reference.kind, namespace, reference.name)
    except ApiError as error:
        if error.reason == "NotFound":
            own = {pod.kind.lower() for pod in snapshot.pods}
            if parse_kind(reference.kind) is None and own.isdisjoint(kind_names(reference.kind)):
                raise _unknown_kind(*reference) from None
            elsewhere = error.hint or f"kubectl qos top lists what there is in {resolved.source.title}"
            error.hint = _near_hint(reference, snapshot, namespace) or elsewhere
        raise


def _near_hint(missing: Reference, snapshot: Snapshot, namespace: str | None) -> str:
    """Return a hint that names the node, pod or workload that was most likely meant, or ""."""
    from kubectl_qos.k8s.kinds import find_workload

    name = missing.name
    if name in snapshot.nodes:
        return did_you_mean(f"node/{name}")
    references: dict[str, Reference] = {}
    for pod in snapshot.pods:
        if namespace in {None, pod.namespace}:
            workload = find_workload(pod)
            references[pod.name] = Reference(pod.kind, pod.name)
            references[workload.name] = Reference(workload.kind, workload.name)
    near = references.get(nearest(name, references, 0.8))
    # A deleted owner may have left pods that still name it.
    return did_you_mean(str(near) if near not in {None, missing} else "")


def find_members(
    reference: Reference, snapshot: Snapshot, resolved: ResolvedSource, *, ended: bool = False
) -> list[Pod]:
    """Return the pod of a reference, or a workload's pods on nodes. Raises InputError or ApiError.

    With `ended`, if none of them runs, return the last one that was OOMKilled or evicted.
    """
    placed = _pods_on_nodes(reference, snapshot, resolved)
    running = [pod for pod in placed if not pod.is_terminal]
    if running and reference.kind != "Pod":
        return running
    killed = [
        pod
        for pod in placed
        if pod.status.reason == "Evicted"
        or any(status.was_oom_killed for status in pod.status.every_container)
    ]
    if ended and killed and not running:
        return [max(killed, key=lambda pod: pod.metadata.creation_timestamp or "")]
    pod = find_pod(reference, snapshot, resolved)
    if reference.kind != "Pod":
        hint = f"kubectl qos explain {reference} predicts its pods, kubectl qos set {reference} changes them"
        raise InputError(f"{reference} has no pods on a node: no next death", hint=hint)
    require_cgroup(pod)
    return [pod]


def find_pods_or_template(reference: Reference, snapshot: Snapshot, resolved: ResolvedSource) -> list[Pod]:
    """Return the pod of a reference, or a workload's pods on nodes; without pods, the workload's template."""
    running = [pod for pod in _pods_on_nodes(reference, snapshot, resolved) if not pod.is_terminal]
    return running if running and reference.kind != "Pod" else [find_pod(reference, snapshot, resolved)]


def _pods_on_nodes(reference: Reference, snapshot: Snapshot, resolved: ResolvedSource) -> list[Pod]:
    from kubectl_qos.k8s.kinds import belongs_to

    namespace = resolved.scope.namespace
    pods = (pod for pod in snapshot.pods if pod.kind == "Pod" and pod.node_name)
    return [pod for pod in pods if namespace in {None, pod.namespace} and belongs_to(pod, *reference)]


def find_nodes(node: str | None, snapshot: Snapshot, scope: Scope, *, may_be_none: bool) -> list[str]:
    """Return the named node, or all nodes with pods in scope, or "" for pods on no node.

    Pods on no node are of use only if their usage is known, or if --node-memory gives them a node.

    Raises ApiError; raises InputError if there are none, unless `may_be_none`: a cluster can be empty.
    """
    if node is not None:
        require_node(node, snapshot)
        return [node]
    nodes = snapshot.nodes_of(scope)
    unplaced = [pod for pod in snapshot.pods if scope.matches(pod)] if not nodes else []
    has_usage = any(pod.key in snapshot.usage for pod in unplaced)
    if has_usage or (unplaced and snapshot.overrides.memory_bytes is not None):
        return [""]
    if not nodes and not may_be_none:
        from kubectl_qos.present.list_notes import NO_PODS_ON_NODES

        require_requests(snapshot)
        hint = "pods need spec.nodeName; --node-memory 16Gi puts the others on a node of that size"
        raise InputError(NO_PODS_ON_NODES, hint)
    return nodes


def require_requests(snapshot: Snapshot) -> None:
    """Raise InputError if the files have no pod with its spec."""
    if not snapshot.pods:
        hint = "kubectl get pods,nodes -A -o json has them; kubectl qos kills takes a status alone too"
        raise InputError("no pods whose requests are known", hint)


def limit_ranges_of(resolved: ResolvedSource) -> Sequence[LimitRange]:
    """Return the LimitRanges of files; those of a server have completed its pods already."""
    from kubectl_qos.cluster.files import FileSource

    if not isinstance(resolved.source, FileSource):
        return ()
    from kubectl_qos.edit.related import LIMIT_RANGES, convert_all

    return convert_all([*resolved.source.raw_objects("LimitRange")], LIMIT_RANGES)


def with_limit_ranges(
    resolved: ResolvedSource, scope: Scope
) -> tuple[Snapshot, dict[tuple[str, str, str], str]]:
    """Apply LimitRanges of files to pods that no server has stored.

    Return also the names of the LimitRanges that changed a pod, by its kind, namespace and name.
    """
    snapshot = resolved.source.snapshot(scope)
    ranges = () if all(pod.metadata.uid for pod in snapshot.pods) else limit_ranges_of(resolved)
    if not ranges:
        return snapshot, {}
    from dataclasses import replace

    from kubectl_qos.edit.server_response import as_created
    from kubectl_qos.k8s.validation import pod_refusals

    pods, names = [*snapshot.pods], {}
    for index, pod in enumerate(pods):
        if pod.metadata.uid:
            continue
        own = [limits for limits in ranges if limits.metadata.namespace == pod.namespace]
        if own:
            release = snapshot.setup(pod.node_name).release
            pods[index] = as_created(pod, own, release)
            if pods[index].annotations == pod.annotations:  # The LimitRanges changed nothing.
                continue
            text = ", ".join(limits.metadata.name for limits in own)
            for refusal in pod_refusals(pods[index], release)[:1]:
                text += f", with which the API server refuses it: {refusal}"
            names[pod.kind, pod.namespace, pod.name] = text
    return replace(snapshot, pods=tuple(pods)), names


def note_injectors(resolved: ResolvedSource, snapshot: Snapshot, pods: Iterable[Pod]) -> None:
    """Print which injectors would change the class of Guaranteed pods of manifests, as `check` does."""
    from kubectl_qos.cluster.files import FileSource
    from kubectl_qos.k8s.defaulting import default_pod
    from kubectl_qos.qos.qos_class import QosClass, computed_class

    def is_guaranteed(pod: Pod) -> bool:
        release = snapshot.setup(pod.node_name).release
        return computed_class(default_pod(pod, release), release) is QosClass.GUARANTEED

    source = resolved.source
    if not isinstance(source, FileSource):
        return
    pods = [pod for pod in pods if not pod.metadata.uid and is_guaranteed(pod)]
    if not pods:
        return
    from kubectl_qos.check.rule import Case, Context, Subject
    from kubectl_qos.check.rules.classes import Injected, namespace_injectors
    from kubectl_qos.cluster.documents import metadata_text
    from kubectl_qos.k8s.kinds import object_name
    from kubectl_qos.present.format import escape

    objects, names, rule = [*source.raw_objects()], ("namespace", "name"), Injected()
    context = Context(snapshot, injectors=namespace_injectors(objects))
    raws = {(raw.get("kind"), *(metadata_text(raw, name) for name in names)): raw for raw in objects}
    references: dict[str, list[str]] = {}
    for pod in pods:
        raw = raws.get((pod.kind, pod.namespace, object_name(pod)), {})
        case = Case(Subject(pod, raw), context, snapshot.setup(pod.node_name))
        for hit in rule.find(case) if raw else ():
            text = rule.message.format(**hit.facts)
            references.setdefault(text, []).append(case.subject.reference)
    output.notes(escape(f"{first_few(places)}: {text}") for text, places in references.items())


@contextmanager
def with_unreadable(snapshot: Snapshot) -> Iterator[None]:
    """If an error is raised inside, print first what could not be read: it may be the cause."""
    try:
        yield
    except InputError:
        from kubectl_qos.present.list_notes import missing_sentence, no_usage_reason

        if not snapshot.usage:
            output.note(no_usage_reason(snapshot))
        output.notes(missing_sentence(gap) for gap in snapshot.missing if "usage" not in gap.what)
        raise


def require_node(name: str, snapshot: Snapshot) -> None:
    """Raise ApiError (NotFound) if a snapshot has neither the node nor pods on it."""
    if name not in snapshot.nodes and not snapshot.by_node().get(name):
        raise _node_not_found(name, snapshot)


def _node_not_found(name: str, snapshot: Snapshot) -> ApiError:
    hint = did_you_mean(nearest(name, snapshot.nodes, 0.9)) or "kubectl qos top nodes lists them"
    return ApiError.not_found("nodes", name, hint=hint)


def require_places(resolved: ResolvedSource, snapshot: Snapshot, *, may_be_empty: bool = False) -> None:
    """Raise ApiError (NotFound) if the node or the namespace of the flags does not exist.

    No request is made if pods were found, or for the namespace of the context. `may_be_empty` accepts also
    a namespace that does not exist, as kubectl get does.
    """
    if any(map(resolved.scope.matches, snapshot.pods)):
        return
    node = resolved.scope.node
    if node is not None and not resolved.source.has("nodes", node):
        raise _node_not_found(node, snapshot)
    for error in () if may_be_empty else missing_namespace(resolved):
        raise error


def missing_namespace(resolved: ResolvedSource) -> tuple[ApiError, ...]:
    """Return an error if the namespace of the flags does not exist."""
    name = resolved.scope.namespace if resolved.has_namespace_flag else None
    exists = name is None or resolved.source.has("namespaces", name)
    return () if exists else (ApiError.not_found("namespaces", str(name)),)


def missing_workloads(workloads: Iterable[Reference], resolved: ResolvedSource) -> Iterator[QosError]:
    """Yield the error of each workload that cannot be found."""
    for workload in workloads:
        try:
            resolved.source.find(workload.kind, resolved.scope.namespace, workload.name)
        except QosError as error:
            yield error


def require_cgroup(pod: Pod) -> None:
    """Raise InputError for a pod that has ended."""
    if pod.is_terminal:
        raise InputError(f"pod {pod.name} has ended: its cgroup is gone")


def not_found(
    kinds: str, names: Iterable[str], existing_names: Iterable[str], nodes: Collection[str] = ()
) -> tuple[ApiError, ...]:
    """Return an error for each missing name; `kinds` is a plural such as pods, `nodes` are existing nodes."""
    existing = set(existing_names)
    return tuple(
        ApiError.not_found(kinds, name, hint=did_you_mean(f"node/{name}") if name in nodes else "")
        for name in names
        if name not in existing
    )

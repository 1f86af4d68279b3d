"""A bundle: one archive with everything that commands read from a cluster, so that others can repeat them.

`bundle.json` has the time, usage, kubelet configurations and kernel logs, `objects.json` a List of objects.
Objects have only the fields of our types: no environment, command, image, name of a secret, or annotation
that is not used. `Redactor` decides which texts and names stay.
"""

from __future__ import annotations

import io
import re
import tarfile
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import structs

from kubectl_qos.atomic_file import replace_file
from kubectl_qos.cluster.files import FileSource
from kubectl_qos.cluster.inputs import existing, is_url, read_path
from kubectl_qos.cluster.source import ReportScope, Source
from kubectl_qos.edit.related import AUTOSCALERS, LIMIT_RANGES, QUOTAS, SCALERS, RelatedKind
from kubectl_qos.errors import InputError, QosError, without_secrets
from kubectl_qos.k8s.events import NODE_EVENTS_NAMESPACE, Event, EventList
from kubectl_qos.k8s.kinds import WORKLOADS, find_workload
from kubectl_qos.k8s.kubelet import Kubelet
from kubectl_qos.k8s.objects import (
    ApiStruct,
    Json,
    JsonDecoder,
    ObjectMeta,
    Pod,
    PodTemplate,
    convert,
    nested,
)
from kubectl_qos.k8s.selectors import DisruptionBudget
from kubectl_qos.k8s.snapshot import Missing, NodeOverrides, Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerHistory, History, PodKey, PodUsage, Pressure
from kubectl_qos.qos.kills.evidence import MESSAGE_PATTERNS
from kubectl_qos.qos.kills.report import KernelLog
from kubectl_qos.version import __version__

VERSION: Final = 1
MAX_BYTES: Final = 16 << 20
MAX_UNPACKED_BYTES: Final = 64 << 20
"""Enough for about 40,000 pods. To open such a bundle takes less than 200 MB."""
_MAX_MEMBERS: Final = 16
_FACTS: Final = "bundle.json"
_OBJECTS: Final = "objects.json"
_MOST_WORKLOADS: Final = 100
_MOST_SECONDS: Final = 20.0
"""Owners and limits take some requests for each workload, so workloads and time are limited."""


class _Strategy(ApiStruct, frozen=True):
    """How pods are replaced; `rolling_update` has the nested fields."""

    type: str = ""
    rolling_update: _Strategy | None = None
    max_surge: int | str | None = None
    max_unavailable: int | str | None = None
    partition: int | None = None


class _WorkloadSpec(ApiStruct, frozen=True):
    replicas: int | None = None
    parallelism: int | None = None
    paused: bool | None = None
    strategy: _Strategy | None = None
    update_strategy: _Strategy | None = None
    template: PodTemplate | None = None
    job_template: _Workload | None = None


class _WorkloadStatus(ApiStruct, frozen=True):
    desired_number_scheduled: int | None = None


class _Workload(ApiStruct, frozen=True):
    api_version: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: _WorkloadSpec = _WorkloadSpec()
    status: _WorkloadStatus = _WorkloadStatus()


_AROUND: Final[tuple[RelatedKind[Any], ...]] = (LIMIT_RANGES, QUOTAS, AUTOSCALERS, SCALERS)
_TYPES: Final[Mapping[str, type[ApiStruct]]] = {
    **dict.fromkeys(WORKLOADS, _Workload),
    **{kind.kind: kind.item_type for kind in _AROUND},
    "PodDisruptionBudget": DisruptionBudget,
}
"""The kinds in a bundle other than pods, nodes and events."""


class _PodFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The measured usage of a pod: as shown, at present (if different), and over time."""

    namespace: str
    name: str
    usage: PodUsage | None = None
    now: PodUsage | None = None
    history: dict[str, ContainerHistory] = {}


class _Written(msgspec.Struct, frozen=True):
    """The fields that bundle.json has in every version."""

    version: int
    written_by: str = "a newer kubectl-qos"


class BundleFacts(_Written, frozen=True, kw_only=True):
    """bundle.json. `from_files`: the source was no cluster, so templates have ranks and budgets are known."""

    title: str
    report: ReportScope
    taken: Annotated[datetime, msgspec.Meta(tz=True)]
    from_files: bool
    namespace: str | None
    server_version: str
    at: str
    over: str
    stat: str
    pods: tuple[_PodFacts, ...]
    pressure: Mapping[str, Pressure]
    node_usage: Mapping[str, int]
    node_sampled: Mapping[str, str] = {}
    node_swap: Mapping[str, int]
    shortages: Mapping[str, str]
    kubelets: Mapping[str, Kubelet]
    overrides: NodeOverrides
    missing: tuple[Missing, ...]
    autoscalers_missing: tuple[Missing, ...]
    events_of_nodes: bool
    events_missing: Missing | None
    kernel_logs: tuple[KernelLog, ...]


_OF_SNAPSHOT: Final = (
    *("server_version", "at", "pressure", "node_usage", "node_sampled", "node_swap", "shortages", "kubelets"),
)
"""The facts that have the same names in the snapshot."""


class Contents(NamedTuple):
    """The content of a bundle: its facts, and its objects as plain JSON."""

    facts: BundleFacts
    objects: Sequence[Json]


def collect(
    source: Source,
    scope: Scope,
    kernel_logs: Sequence[KernelLog] = (),
    *,
    about: tuple[str, str] = ("Pod", ""),
    since_seconds: int | None = None,
) -> Contents:
    """Read everything that commands need about these pods, their nodes and neighbours. Raises QosError.

    The report is about `about` (kind and name) and the last `since_seconds`.
    """
    plain, taken, events = source.snapshot(scope), source.now(), source.event_list(scope.namespace)
    snapshot = source.with_autoscalers(plain, scope.namespace)
    nodes = {*snapshot.nodes_of(scope), scope.node}
    if scope == Scope():
        nodes |= snapshot.nodes.keys()
    pods = [pod for pod in snapshot.pods if pod.node_name in nodes or scope.matches(pod)]
    facts = BundleFacts(
        version=VERSION,
        written_by=f"kubectl-qos {__version__}",
        title=source.origin,
        report=ReportScope(
            about[1], scope.namespace, scope.node, scope.selector_text, since_seconds, about[0]
        ),
        taken=taken,
        from_files=source.is_from_files,
        namespace=scope.namespace or source.default_namespace,
        over=snapshot.history.over,
        stat=snapshot.history.stat,
        pods=tuple(_pod_facts(snapshot, pods)),
        overrides=snapshot.overrides,
        missing=plain.missing,
        autoscalers_missing=snapshot.missing[len(plain.missing) :],
        events_of_nodes=events.of_nodes,
        events_missing=events.missing,
        kernel_logs=tuple(structs.replace(log, first_line="") for log in kernel_logs),
        **{name: getattr(snapshot, name) for name in _OF_SNAPSHOT},
    )
    objects: list[tuple[str, ApiStruct]] = [
        *(("Pod", pod) for pod in pods if pod.kind == "Pod"),
        *(("Node", node) for node in snapshot.nodes.values() if node.name in nodes),
        *(("Event", event) for event in events.events if _is_in(scope, event.involved_object.namespace)),
        *_other_objects(source, snapshot, scope),
    ]
    return Contents(facts, [{"apiVersion": "v1", **_plain(raw), "kind": kind} for kind, raw in objects])


def _is_in(scope: Scope, namespace: object) -> bool:
    return scope.namespace is None or namespace in {None, "", scope.namespace}


def _other_objects(source: Source, snapshot: Snapshot, scope: Scope) -> Iterator[tuple[str, ApiStruct]]:
    """Yield the objects of other kinds that commands use, each once, with only the fields that they use."""
    raws = source.raw_objects() if isinstance(source, FileSource) else _around(source, snapshot, scope)
    seen = set()
    for raw in raws:
        kind, metadata = str(raw.get("kind")), nested(raw, "metadata")
        key = kind, str(metadata.get("namespace")), str(metadata.get("name"))
        if kind in _TYPES and key not in seen and _is_in(scope, metadata.get("namespace")):
            seen.add(key)
            with suppress(msgspec.ValidationError, QosError):
                yield kind, convert(raw, _TYPES[kind])


def _pod_facts(snapshot: Snapshot, pods: Iterable[Pod]) -> Iterator[_PodFacts]:
    history = snapshot.history
    by_pod: dict[PodKey, dict[str, ContainerHistory]] = {}
    for (pod, container), container_history in history.containers.items():
        by_pod.setdefault(pod, {})[container] = container_history
    for key in dict.fromkeys(pod.key for pod in pods):
        yield _PodFacts(*key, snapshot.usage.get(key), history.now.get(key), by_pod.get(key, {}))


def _around(source: Source, snapshot: Snapshot, scope: Scope) -> Iterator[Json]:
    """Yield the owners of the requested pods, and the objects that limit them."""
    pods = {find_workload(pod): pod for pod in reversed(snapshot.pods) if scope.matches(pod)}
    end = time.monotonic() + _MOST_SECONDS
    yield from ({"kind": AUTOSCALERS.kind, **_plain(autoscaler)} for autoscaler in snapshot.autoscalers)
    for workload in sorted(pods)[:_MOST_WORKLOADS]:
        if time.monotonic() > end:
            return
        with suppress(QosError):
            related = source.related(pods[workload])
            yield from (owner.raw for owner in related.owners)
            for kind in _AROUND:
                yield from ({"kind": kind.kind, **_plain(raw)} for raw in getattr(related, kind.field))


_plain = partial(msgspec.to_builtins, enc_hook=str)


def write_bundle(path: Path, contents: Contents, *, anonymize: bool = False) -> None:
    """Write the archive; equal contents give equal bytes. Raises InputError.

    With `anonymize`, each word in the names of objects has one substitute everywhere.
    """
    facts, objects = _plain(contents.facts), {"apiVersion": "v1", "kind": "List", "items": contents.objects}
    redacted = Redactor(names=anonymize)
    if anonymize:
        redacted([objects, facts])  # names may appear in messages
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, value in ((_FACTS, facts), (_OBJECTS, objects)):
            content = msgspec.json.format(msgspec.json.encode(redacted(value), order="sorted"), indent=1)
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    packer = zlib.compressobj(wbits=31)  # the gzip header has no time
    packed = packer.compress(archive.getbuffer()) + packer.flush()
    if len(packed) > MAX_BYTES or archive.tell() > MAX_UNPACKED_BYTES:
        raise InputError(f"{path}: the bundle is too large", hint="select less with -n or --node")
    try:
        replace_file(path, packed)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


class BundleSource(FileSource):
    """A bundle as a source, at the time when it was made. Raises InputError if it cannot be read.

    Usage and configz that the options turn off are not reported as missing, as with a cluster.
    """

    has_manifests = is_from_files = is_recording = False
    origin = ""
    _may_be_empty = True

    def __init__(self, path: str, *, configz: bool = True, **options: Any) -> None:
        self._path, self._configz = path, configz
        self._members = _read_members(path)
        self._facts = _read_facts(self._members[_FACTS], path)
        self.default_namespace = self._facts.namespace
        self.origin, self.report = self._facts.title, self._facts.report
        self.is_from_files = self._facts.from_files
        super().__init__([path], **options)
        own, stored = self._overrides, self._facts.overrides
        memory_bytes = own.memory_bytes or stored.memory_bytes
        self._overrides = NodeOverrides(memory_bytes, (*stored.settings, *own.settings))

    @property
    def title(self) -> str:
        """Return the file's name and the time of the bundle."""
        return f"{without_secrets(self._path)} at {self._facts.taken:%Y-%m-%d %H:%M:%S %Z}"

    def now(self) -> datetime:
        """Return the time when the bundle was made."""
        return self._facts.taken

    def snapshot(self, scope: Scope) -> Snapshot:
        """Return everything, whatever the scope."""
        facts, whole = self._facts, super().snapshot(scope)
        if not facts.from_files:
            whole = replace(whole, pods=tuple(pod for pod in whole.pods if pod.kind == "Pod"))
        by_pod = {(pod.namespace, pod.name): pod for pod in facts.pods} if self.has_usage else {}
        history = History(
            {(key, name): history for key, pod in by_pod.items() for name, history in pod.history.items()},
            {key: pod.now for key, pod in by_pod.items() if pod.now is not None},
            facts.over,
            facts.stat,
        )
        same = {name: getattr(facts, name) for name in _OF_SNAPSHOT}
        same |= {} if self.has_usage else {"pressure": {}, "node_usage": {}, "node_sampled": {}}
        same |= {} if self._configz else {"kubelets": {}}
        return replace(
            whole,
            usage={key: pod.usage for key, pod in by_pod.items() if pod.usage is not None},
            missing=tuple(gap for gap in facts.missing if self.has_usage or "memory usage" not in gap.what),
            history=history,
            **same,
        )

    def with_autoscalers(self, snapshot: Snapshot, namespace: str | None) -> Snapshot:
        """Add the autoscalers of the bundle, and why others are missing."""
        missing = (*snapshot.missing, *self._facts.autoscalers_missing)
        return replace(super().with_autoscalers(snapshot, namespace), missing=missing)

    def event_list(self, namespace: str | None) -> EventList:
        """Return the events that a cluster would list for a namespace: its own, and those of nodes."""
        facts, event_list = self._facts, super().event_list(namespace)

        def is_requested(event: Event) -> bool:
            place = event.metadata.namespace
            return place == namespace or (place == NODE_EVENTS_NAMESPACE and event.is_of_node)

        is_whole = namespace is None or facts.from_files
        events = event_list.events if is_whole else tuple(filter(is_requested, event_list.events))
        return EventList(events, facts.events_of_nodes, facts.events_missing)

    def kernel_logs(self) -> Sequence[KernelLog]:
        """Return the kernel logs in the bundle."""
        return self._facts.kernel_logs

    def _contents(self, problems: list[InputError] | None = None) -> Iterator[tuple[str, bytes]]:
        yield f"{self._path}: {_OBJECTS}", self._members[_OBJECTS]


def _read_members(path: str) -> dict[str, bytes]:
    """Return the files of an archive, which is never unpacked to disk. Raises InputError."""
    if not is_url(path) and existing(path).stat().st_size > MAX_BYTES:
        raise InputError(f"{path}: more than {MAX_BYTES >> 20} MiB")
    packed = b"".join(content for _, content in read_path(path, recursive=False))
    hint = "kubectl qos report --bundle FILE.tar.gz writes one"
    decoder = zlib.decompressobj(wbits=31)
    try:
        content = decoder.decompress(packed, MAX_UNPACKED_BYTES + 1)
    except zlib.error:
        what = "damaged" if packed.startswith(b"\x1f\x8b") else "not a bundle: not compressed by gzip"
        raise InputError(f"{path}: {what}", hint) from None
    if len(content) > MAX_UNPACKED_BYTES:
        raise InputError(f"{path}: more than {MAX_UNPACKED_BYTES >> 20} MiB when it is unpacked")
    if not decoder.eof:
        raise InputError(f"{path}: the archive is cut off", hint="copy it again")
    members: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
            for number, member in enumerate(tar):
                if number == _MAX_MEMBERS or not member.isreg() or member.issparse():
                    raise InputError(f"{path}: not a bundle: it contains more than plain files", hint)
                file = tar.extractfile(member)
                members[member.name] = file.read() if file is not None else b""
    except (tarfile.TarError, OSError, ValueError):
        raise InputError(f"{path}: not a bundle: no tar archive", hint) from None
    for name in (_FACTS, _OBJECTS):
        content = members.get(name, b"")
        if not content.startswith(b"{") or b"\n---" in content:
            raise InputError(f"{path}: not a bundle: {name} is {'no JSON' if content else 'missing'}", hint)
    return members


def _read_facts(content: bytes, path: str) -> BundleFacts:
    """Raise InputError if the facts are damaged or were written by a newer version."""
    try:
        written = msgspec.json.decode(content, type=_Written)
        if written.version <= VERSION:
            return JsonDecoder(BundleFacts).decode(content)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, QosError) as error:
        raise InputError(f"{path}: {_FACTS}: {' '.join(str(error).split())}") from None
    raise InputError(
        f"{path}: version {written.version} of bundles is newer than {VERSION}, which is read here",
        hint=f"update kubectl-qos: it was written by {written.written_by}",
    )


REDACTED: Final = "<redacted>"
_KNOWN_TEXTS: Final = re.compile(
    r"^(?:System OOM encountered|Memory cgroup out of memory|Out of memory: Kill|Attempting to reclaim memory"
    r"|Node \S+ status is now: |Node didn't have enough (?:resource|capacity)|cannot decrease memory limits"
    r"|In-place |Pod resize (?:started|completed|error|OutOf)|\d+/\d+ nodes are available: "
    r"|Successfully assigned |Stopping container |Container \S+ (?:resize requires restart$|failed \S+ probe)"
    r"|Container (?:created|started)$|Created container |Started container |Created? [Pp]od"
    r"|[Bb]ack-off \S+ ?restarting failed container|Back-off restarting failed container"
    r"|containers with (?:incomplete|unready) status: |kubelet (?:is posting|has) "
    r"|Pod was rejected: |Pod was terminated in response to |Preempted (?:by|in order to) |Eviction API: "
    r"|Scaled (?:up|down) replica set |Taint manager: |PodGC: "
    r"|\S+: preempting to accommodate a higher priority pod$)"
)
"""Beginnings of messages that Kubernetes composes of names and numbers."""


_LABELS: Final = frozenset({"labels", "matchLabels"})
_NAMES: Final = frozenset(
    {"name", "names", "namespace", "nodeName", "node", "priorityClassName", "runtimeClassName"}
    | {"title", "comm", "values", "container", "volumes", *_LABELS}
)
"""Keys whose values are names."""
_BY_NAME: Final = frozenset({"pressure", "node_usage", "node_sampled", "shortages", "kubelets", "history"})
"""Keys of objects whose keys are names."""
_NAMED_IN: Final = frozenset(
    {"what", "fieldPath", "uid", "group_kill", "oom_memcg", "task_memcg", "selector"}
)
_WORDS: Final = (
    "adj anon available back consumption default disk file for has insufficient is kernel kubelet larger"
    " monitor no nodehasinsufficientmemory nodehassufficientmemory nodenotready nodeready not off oom"
    " pgtables pid pressure process quantity ready request rss scheduler score shmem sufficient threshold"
    " total uid using victim vm was"
)
_PATTERNS: Final = (_KNOWN_TEXTS, *MESSAGE_PATTERNS)
_VOCABULARY: Final = {
    *re.findall("[a-z]+", " ".join([_WORDS, *(form.pattern.lower() for form in _PATTERNS)]))
}
"""The words that stay in messages."""
_ANNOTATION: Final = re.compile(r"api|file|http|Guaranteed|Burstable|BestEffort|[0-9a-fTZ.:+-]+")
"""Values of annotations that are no user's text."""
_UNCHANGED_WORDS: Final = (
    *("kube", "system", "default", "public", "node", "critical", "cluster", "memory", "container"),
    *("the", "log", "of"),
)
_WORD: Final = re.compile(r"[^\W_]+")
_NUMBER_AT_END: Final = re.compile(r"(?<=-)(?:\d{1,3}|\d{8})$", re.ASCII)
"""The ordinal of a StatefulSet's pod, or the time in the name of a CronJob's Job."""
_NAME_IN_TEXT: Final = re.compile(r"[^\W_]+(?:[-.][^\W_]+)*")


class Redactor:
    """Removes unknown messages from JSON, and replaces names if `names` is set.

    Each word of a name has a substitute, so `web-6c7f-x2k9f` still has the word of the label `6c7f`. Messages
    may have names that appear only later, so with `names` JSON has to be redacted twice.
    """

    def __init__(self, *, names: bool) -> None:
        self._words = {word: word for word in _UNCHANGED_WORDS}
        self._names: dict[str, str] | None = {} if names else None

    def __call__(self, value: Any, key: str = "") -> Any:
        """Redact a value with this key, or an item of a list with this key."""
        if isinstance(value, Mapping):
            of_labels = key in _LABELS
            return {
                self._key(name, key): self(inner, key if of_labels else name) for name, inner in value.items()
            }
        if isinstance(value, list | tuple):
            # A volume with only a name may be a secret's.
            return [
                self(inner, key)
                for inner in value
                if not (isinstance(inner, Mapping) and key == "volumes" and len(inner) == 1)
            ]
        return self._text(value, key) if isinstance(value, str) and value else value

    def _key(self, name: str, key: str) -> str:
        is_known = name.endswith("-hash") or "kubernetes.io/" in name
        return self._name(name) if key in _BY_NAME or (key in _LABELS and not is_known) else name

    def _text(self, text: str, key: str) -> str:
        if key == "message" and ("\n" in text.strip() or not any(form.search(text) for form in _PATTERNS)):
            return REDACTED
        if self._names is None:
            return text
        if key in {"why", "remedy"} or ("/" in key and not _ANNOTATION.fullmatch(text)):
            return REDACTED
        if key in {"message", "component", "reportingComponent"}:
            return _NAME_IN_TEXT.sub(self._unknown, text)
        if key in _NAMED_IN:
            return _NAME_IN_TEXT.sub(lambda match: (self._names or {}).get(match[0], match[0]), text)
        return self._name(text) if key in _NAMES else text

    def _name(self, name: str) -> str:
        if self._names is None:
            return name
        if name not in self._names:
            head = _NUMBER_AT_END.sub("", name)
            self._names[name] = _WORD.sub(self._word, head) + name[len(head) :]
        return self._names[name]

    def _unknown(self, match: re.Match[str]) -> str:
        words = re.split("[-.]", match[0].lower())
        is_known = all(word in _VOCABULARY or re.fullmatch(r"\d+[a-z]{0,2}", word) for word in words)
        return match[0] if is_known else self._name(match[0])

    def _word(self, match: re.Match[str]) -> str:
        return self._words.setdefault(match[0], f"x{len(self._words) - len(_UNCHANGED_WORDS) + 1}")

"""Subjects and context of a check, findings, and the words of the rules (rule_texts.yaml).

Not here: the rules (rules.py), and reading settings and manifests from files.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache, cached_property
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from kubectl_qos.check.settings import Exemption, Level, RuleId, Settings, matches, waiver
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kinds import Workload, dotted, find_workload, object_name, spec_path, template_path
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import EMPTY_RESOURCES, Json, Pod, ResourceList, ResourceRequirements, nested
from kubectl_qos.k8s.quota import LimitRange, ResourceQuota, with_limit_ranges
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.qos.qos_class import QosClass, computed_class
from kubectl_qos.qos.ranking import ContainerKind, container_kinds
from kubectl_qos.yaml_loader import read_yaml

POD_LEVEL: Final = "spec.resources"
"""Owner of findings about the pod-level resources."""
CLASS_MARK: Final = "kubectl-qos/class"
WAIVER_MARK: Final = "kubectl-qos/waive"
MARKS: Final = ("annotations", "labels")
_KIND_WORDS: Final = {
    ContainerKind.INIT: "init container",
    ContainerKind.SIDECAR: "sidecar",
    ContainerKind.APP: "container",
    ContainerKind.EPHEMERAL: "ephemeral container",
}


@dataclass(frozen=True, slots=True)
class Subject:
    """A pod or pod template to check."""

    pod: Pod
    raw: Json = field(default_factory=dict)
    """The object as written; {} for pods of a cluster."""
    duplicates: tuple[str, ...] = ()
    """Paths of fields that occur twice."""
    default_namespace: str = "default"
    settings: Settings = field(default_factory=Settings)
    is_alone: bool = False
    """Differs from other pods of its workload, for example in a limit after a resize."""

    @property
    def namespace(self) -> str:
        """Namespace of the pod, or the default namespace."""
        return self.pod.namespace or self.default_namespace

    @property
    def is_selected(self) -> bool:
        """Whether the settings select its namespace."""
        chosen = self.settings.namespaces
        return not chosen or matches(chosen, self.namespace)

    @property
    def kind_and_name(self) -> tuple[str, str]:
        """The object, or the workload of a running pod; the pod itself if it differs from its workload."""
        if self.is_alone:
            return self.pod.kind, self.pod.name
        workload = find_workload(self.pod)
        return workload.kind, object_name(self.pod) if workload.kind == self.pod.kind else workload.name

    def metadata(self) -> Iterator[Json]:
        """Yield the metadata of the template, then of the object."""
        yield nested(self.raw, *template_path(self.pod.kind), "metadata")
        yield nested(self.raw, "metadata")

    def mark(self, name: str) -> str | None:
        """Return the value of one of our annotations or labels: the template's, else the object's."""
        own = self.pod.annotations.required_class if name == CLASS_MARK else self.pod.annotations.waived
        labels: Mapping[str, str] = self.pod.metadata.labels or {}
        marks = (nested(metadata, side) for metadata in self.metadata() for side in MARKS)
        values = [own, labels.get(name), *(str(marked[name] or "") for marked in marks if name in marked)]
        return next((value for value in values if value is not None), None)

    def mark_path(self, name: str) -> str:
        """Return the path of that annotation or label in the object, or ""."""
        for owner in (template_path(self.pod.kind), ()):
            for side in MARKS:
                where = (*owner, "metadata", side)
                if name in nested(self.raw, *where):
                    return f"{dotted(where)}[{name}]"
        return ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that a subject violates."""

    rule: RuleId
    level: Level
    subject: Subject
    path: str
    """Path of the field in the object."""
    facts: Mapping[str, str]
    """Values for the placeholders of the rule's message."""
    owner: str = ""
    """Name of the container, or POD_LEVEL."""

    @property
    def key(self) -> tuple[str, ...]:
        """Identity in a baseline: stays the same when other lines of the file change."""
        kind, name = self.subject.kind_and_name
        field_ = re.sub(r"\[\d+\]", "", self.path)
        return (self.rule, self.subject.pod.namespace, kind, name, self.owner, field_)


@dataclass(frozen=True)
class Context:
    """Cluster objects and options that pods are checked with."""

    snapshot: Snapshot
    limit_ranges: Sequence[LimitRange] = ()
    quotas: Sequence[ResourceQuota] = ()
    injectors: Mapping[str, str | None] = field(default_factory=dict)
    """What adds containers to pods, by namespace."""
    config_maps: Mapping[tuple[str, str], Json] = field(default_factory=dict)
    """ConfigMaps by namespace and name."""
    after: Callable[[NodeSetup], NodeSetup] | None = None
    """Changes a node's setup to the release of --to."""
    _setups: dict[str, NodeSetup] = field(default_factory=dict)

    def setup(self, node: str) -> NodeSetup:
        """Return the setup of the pod's node."""
        if node not in self._setups:
            self._setups[node] = self.snapshot.setup(node)
        return self._setups[node]


class Hit(NamedTuple):
    """A violation of one pod; `level` overrides the rule's level."""

    rule: RuleId
    path: str
    facts: Mapping[str, str] = {}
    owner: str = ""
    level: Level | None = None


class ResourceOwner(NamedTuple):
    """A container or the pod, with its resources; `label` names it in messages."""

    name: str
    label: str
    path: str
    resources: ResourceRequirements
    kind: ContainerKind | None = None

    def amounts(self, side: str) -> ResourceList:
        """Return its requests or limits."""
        return getattr(self.resources, side) or EMPTY_RESOURCES


class Case:
    """A subject with cached values that several rules need."""

    def __init__(self, subject: Subject, context: Context) -> None:
        self.subject, self.context, self.settings = subject, context, subject.settings
        self.pod = subject.pod
        self.prefix = dotted(spec_path(self.pod))
        self.setup = context.setup(self.pod.node_name)
        self.release = self.setup.release
        self.is_stored = bool(self.pod.metadata.uid)

    @cached_property
    def workload(self) -> Workload:
        """Workload of the pod."""
        return find_workload(self.pod)

    @cached_property
    def alone(self) -> Subject:
        """The subject as one that differs from its workload."""
        return replace(self.subject, is_alone=True)

    @cached_property
    def defaulted(self) -> Pod:
        """The pod with the API server's defaults."""
        return default_pod(self.pod, self.release)

    @cached_property
    def limit_ranges(self) -> list[LimitRange]:
        """LimitRanges of its namespace."""
        return [item for item in self.context.limit_ranges if item.metadata.namespace == self.pod.namespace]

    @cached_property
    def created(self) -> Pod:
        """The pod as created: with defaults and LimitRanges."""
        return with_limit_ranges(self.defaulted, self.limit_ranges)

    @cached_property
    def qos(self) -> QosClass:
        """QoS class of the spec."""
        return computed_class(self.defaulted, self.release)

    @cached_property
    def created_class(self) -> QosClass:
        """QoS class after LimitRanges."""
        return computed_class(self.created, self.release) if self.limit_ranges else self.qos

    @cached_property
    def owners(self) -> list[ResourceOwner]:
        """Init, app and ephemeral containers, then the pod itself if it has resources."""
        kinds = {id(container): kind for container, kind in container_kinds(self.pod, self.release)}
        owners = [
            ResourceOwner(
                container.name,
                f"{_KIND_WORDS[kinds[id(container)]]} {container.name}".rstrip(),
                f"{self.prefix}.{list_}[{index}]",
                container.resources,
                kinds[id(container)],
            )
            for list_, containers in (
                ("initContainers", self.pod.init_containers),
                ("containers", self.pod.containers),
                ("ephemeralContainers", self.pod.ephemeral_containers),
            )
            for index, container in enumerate(containers)
        ]
        if self.defaulted.spec.resources is not None:
            owners.append(ResourceOwner(POD_LEVEL, POD_LEVEL, self.prefix, self.defaulted.spec.resources))
        return owners

    def forget_owners(self) -> None:
        """Free what only the rules of a single pod need."""
        vars(self).pop("owners", None)

    def hit(self, rule: RuleId, owner: ResourceOwner, field_: str = "", **facts: object) -> Hit:
        """Return a violation of one owner."""
        texts = {name: str(fact) for name, fact in facts.items()}
        path = f"{owner.path}.{field_}" if field_ else owner.path
        return Hit(rule, path, {"owner": owner.label, **texts}, owner.name)


class Selection(NamedTuple):
    """Findings that count, waived findings with reasons, and exceptions that are expired or waive nothing."""

    open: list[Finding]
    waived: list[tuple[Finding, str]]
    unused: list[Exemption]


def select(
    findings: Iterable[Finding],
    exceptions: Iterable[Exemption],
    today: date,
    baseline: Iterable[tuple[str, ...]] = (),
) -> Selection:
    """Split findings by waivers (annotations, exceptions), and drop those that a baseline has.

    `exceptions` are all exceptions; a finding is waived by those of its own settings.
    """
    selection, accepted = Selection([], [], list(exceptions)), Counter(baseline)
    for finding in findings:
        own = finding.subject.settings.exceptions
        covering = [exception for exception in own if _covers(exception, finding, today)]
        selection.unused[:] = [exception for exception in selection.unused if exception not in covering]
        reason = waiver(finding.subject.mark(WAIVER_MARK), finding.rule)
        reason = reason or next((exception.reason for exception in covering), "")
        if reason:
            selection.waived.append((finding, reason))
        elif accepted[finding.key]:
            accepted[finding.key] -= 1
        else:
            selection.open.append(finding)
    return selection


def _covers(exemption: Exemption, finding: Finding, today: date) -> bool:
    kind, name = finding.subject.kind_and_name
    return (
        not exemption.has_expired(today)
        and matches(exemption.rules, finding.rule)
        and matches([exemption.object], f"{kind.lower()}/{name}")
        and matches([exemption.namespace], finding.subject.namespace)
        and matches([exemption.container], finding.owner)
    )


class RuleText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words of a rule; `no_policy` says why CEL cannot express it."""

    title: str
    message: str
    why: str
    remedy: str
    parameter: str = ""
    no_policy: str = ""


@cache
def rule_texts() -> Mapping[RuleId, RuleText]:
    """Return the words of every rule, in the order of their ids."""
    document = read_yaml(Path(__file__).with_name("rule_texts.yaml").read_bytes())
    texts = msgspec.convert(document.value if document is not None else {}, dict[str, RuleText])
    return {rule: texts[rule] for rule in RuleId}

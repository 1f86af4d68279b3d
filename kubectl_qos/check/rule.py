"""The base class of the rules of `check`, the pods that they look at, their findings, and waivers.

Not here: the rules (rules/), and reading settings and manifests from files.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple

from kubectl_qos.check.settings import CheckSettings, Exemption, Level, matches, waiver
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kinds import dotted, find_workload, object_name, spec_path, template_path
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import EMPTY_RESOURCES, Json, Pod, ResourceList, ResourceRequirements, nested
from kubectl_qos.k8s.quota import LimitRange, ResourceQuota, with_limit_ranges
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.validation import Mistake, manifest_mistakes
from kubectl_qos.qos.qos_class import SPEC_RESOURCES, computed_class
from kubectl_qos.qos.ranking import ContainerKind, container_kinds

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
    settings: CheckSettings = field(default_factory=CheckSettings)
    is_alone: bool = False
    """Whether it differs from other pods of its workload, for example in a limit after a resize."""

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
        """The kind and name of the object, or of the workload that a pod belongs to unless it `is_alone`."""
        if self.is_alone:
            return self.pod.kind, self.pod.name
        workload = find_workload(self.pod)
        return workload.kind, object_name(self.pod) if workload.kind == self.pod.kind else workload.name

    @property
    def reference(self) -> str:
        """Its namespace, kind and name: `shop/deployment/web`."""
        kind, name = self.kind_and_name
        return "/".join(filter(None, (self.pod.namespace, kind.lower(), name)))

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
        """Return the path of an annotation or label of ours in the object, or ""."""
        for owner in (template_path(self.pod.kind), ()):
            for side in MARKS:
                where = (*owner, "metadata", side)
                if name in nested(self.raw, *where):
                    return f"{dotted(where)}[{name}]"
        return ""


@dataclass(frozen=True)
class Context:
    """Cluster objects and options that pods are checked with."""

    snapshot: Snapshot
    limit_ranges: Sequence[LimitRange] = ()
    quotas: Sequence[ResourceQuota] = ()
    injectors: Mapping[str, str | None] = field(default_factory=dict)
    """The injector that adds containers to the pods of each namespace."""
    config_maps: Mapping[tuple[str, str], Json] = field(default_factory=dict)
    """ConfigMaps by namespace and name."""
    after: Callable[[NodeSetup], NodeSetup] | None = None
    """Changes a node's setup to the release of --to."""


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

    def __init__(self, subject: Subject, context: Context, setup: NodeSetup) -> None:
        self.subject, self.context, self.settings = subject, context, subject.settings
        self.pod = subject.pod
        self.workload = find_workload(self.pod)
        self.prefix = dotted(spec_path(self.pod))
        spec: Any = subject.raw
        for key in spec_path(self.pod) if spec else ():
            spec = spec[key]
        self.spec: Json = spec  # As written, {} for pods of a cluster.
        self.setup, self.release = setup, setup.release
        self.is_stored = bool(self.pod.metadata.uid)
        self.is_refused = False  # Set when a rule that `refuses` has a finding.
        namespace, every = self.pod.namespace, context.limit_ranges
        ranges = tuple([item for item in every if item.metadata.namespace == namespace])
        self.limit_ranges = ranges
        self.defaulted = default_pod(self.pod, self.release)
        self.created = with_limit_ranges(self.defaulted, ranges)
        self.qos = computed_class(self.defaulted, self.release)
        self.created_class = computed_class(self.created, self.release) if ranges else self.qos

    @cached_property
    def alone(self) -> Subject:
        """The subject as one that differs from its workload."""
        return replace(self.subject, is_alone=True)

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
            owners.append(
                ResourceOwner(SPEC_RESOURCES, SPEC_RESOURCES, self.prefix, self.defaulted.spec.resources)
            )
        return owners

    @cached_property
    def mistakes(self) -> list[Mistake]:
        """The mistakes that strict validation finds in a manifest."""
        return [] if self.is_stored else list(manifest_mistakes(self.subject.raw, self.pod))

    def forget(self) -> None:
        """Free the values that only `find` needs, with the dict that holds them: pop would not shrink it."""
        needed = vars(self).keys() - {"owners", "mistakes"}
        self.__dict__ = {name: vars(self)[name] for name in needed}

    def hit(self, owner: ResourceOwner, field_: str = "", **facts: object) -> "Hit":
        """Return a violation of one owner."""
        texts = {name: str(fact) for name, fact in facts.items()}
        path = f"{owner.path}.{field_}" if field_ else owner.path
        return Hit(self, path, {"owner": owner.label, **texts}, owner.name)


class Hit(NamedTuple):
    """A violation of one pod; `level` overrides the rule's level."""

    case: Case
    path: str
    """Path of the field in the object."""
    facts: Mapping[str, str]
    """Values for the placeholders of the rule's message."""
    owner: str = ""
    """Name of the container, or SPEC_RESOURCES."""
    level: Level | None = None


class Parameter(NamedTuple):
    """A setting of one rule."""

    name: str
    type: Any
    form: str
    """The form of its value in words, for messages."""
    default: Any
    help: str
    values: Any = Any
    """The type of a mapping's values."""


class Rule:
    """The base of the rules in rules/: the texts of a rule, its search, and the same search in CEL."""

    id: ClassVar[str]
    level: ClassVar[Level]
    """Default level of its findings."""
    title: ClassVar[str]
    message: ClassVar[str]
    """A template with placeholders for the facts of a hit."""
    why: ClassVar[str]
    remedy: ClassVar[str]
    parameter: ClassVar[Parameter | None] = None
    no_policy: ClassVar[str] = ""
    """The reason why the rule has no expression in CEL; "" if it has one."""
    refuses: ClassVar[bool] = False
    """Whether the API server refuses objects that violate the rule."""

    def __init_subclass__(cls) -> None:
        for name in ("message", "why", "remedy"):
            setattr(cls, name, " ".join(getattr(cls, name).split()))

    def find(self, case: Case) -> Iterator[Hit]:
        """Yield the violations of a pod."""
        return iter(())

    def compare(self, cases: Sequence[Case]) -> Iterator[Hit]:
        """Yield violations that depend on other pods; called once, after `find` was called for every pod."""
        return iter(())

    def cel(self, settings: CheckSettings, spec: str) -> str:
        """Return a CEL list of the facts of violations, "" if CEL cannot express the rule.

        `spec` is the path of the pod's spec.
        """
        return ""

    def level_in(self, settings: CheckSettings) -> Level | None:
        """Return the level of its findings, None if it is off."""
        return settings.levels.get(self.id, self.level)

    def value_in(self, settings: CheckSettings) -> Any:
        """Return the value of its parameter."""
        return settings.parameters.get(self.id, self.parameter.default if self.parameter else None)


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """A rule that a subject violates."""

    rule: Rule
    level: Level
    subject: Subject
    path: str
    facts: Mapping[str, str]
    owner: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """The identity in a baseline, which does not change with other lines of the file."""
        kind, name = self.subject.kind_and_name
        field_ = re.sub(r"\[\d+\]", "", self.path)
        return (self.rule.id, self.subject.pod.namespace, kind, name, self.owner, field_)


class Selection(NamedTuple):
    """Findings that count, waived findings with reasons, and exceptions that expired or waive nothing."""

    open: list[RuleFinding]
    waived: list[tuple[RuleFinding, str]]
    unused: list[tuple[str, Exemption]]


def select(
    findings: Iterable[RuleFinding],
    exceptions: Iterable[tuple[str, Exemption]],
    today: date,
    baseline: Iterable[tuple[str, ...]] = (),
) -> Selection:
    """Separate waived findings (by annotations or exceptions) from open ones, and drop the baseline's.

    A finding is waived only by exceptions of its own settings; `exceptions` are those of all settings.
    """
    selection, accepted = Selection([], [], list(exceptions)), Counter(baseline)
    for finding in findings:
        own = finding.subject.settings.exceptions
        covering = [exception for exception in own if _covers(exception[1], finding, today)]
        selection.unused[:] = [exception for exception in selection.unused if exception not in covering]
        reason = waiver(finding.subject.mark(WAIVER_MARK), finding.rule.id)
        reason = reason or next((exemption.reason for _, exemption in covering), "")
        if reason:
            selection.waived.append((finding, reason))
        elif accepted[finding.key]:
            accepted[finding.key] -= 1
        else:
            selection.open.append(finding)
    return selection


def _covers(exemption: Exemption, finding: RuleFinding, today: date) -> bool:
    kind, name = finding.subject.kind_and_name
    return (
        not exemption.has_expired(today)
        and matches(exemption.rules, finding.rule.id)
        and matches([exemption.object], f"{kind.lower()}/{name}")
        and matches([exemption.namespace], finding.subject.namespace)
        and matches([exemption.container], finding.owner)
    )

"""The JSON documents of `check`, `verify`, `can-i` and `version`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from kubectl_qos.analysis.verification import CheckedValue, DriftReason, Unread, Verified
from kubectl_qos.check.rule import RuleFinding
from kubectl_qos.check.settings import Level
from kubectl_qos.k8s.rbac import TIERS, AccessReview, Permission
from kubectl_qos.present.check import Place, Report, sentence
from kubectl_qos.present.list_notes import Reviews, permission_notes, permissions
from kubectl_qos.present.measured import cause_sentence
from kubectl_qos.present.values import ClusterValues, Document, OfCluster, Values, copied
from kubectl_qos.present.values.changes import ObjectValues
from kubectl_qos.qos.cgroup.tree import CgroupLevel
from kubectl_qos.qos.reason import Confidence


class ProcessValues(Values, frozen=True):
    """A process that was read."""

    pid: int
    name: str | None
    oom_score: int | None


class CauseValues(Values, frozen=True):
    """What may have caused a difference."""

    reason: DriftReason
    confidence: Confidence
    message: str


class CheckValues(Values, frozen=True, kw_only=True):
    """A file of a cgroup, as computed and as measured; without a measured value the drift is unknown."""

    level: CgroupLevel
    container: str | None
    file: str
    computed: str | None
    measured: str | None
    drift: bool | None
    processes: tuple[ProcessValues, ...]
    cause: CauseValues | None


class VerifiedValues(Values, frozen=True, kw_only=True):
    """The checks of one pod; if `pod` is null, of the cgroups above the pods.

    `memoryEvents` are the counts of memory.events by container.
    """

    namespace: str | None
    pod: str | None
    checks: tuple[CheckValues, ...]
    unread: tuple[Unread, ...]
    memory_events: Mapping[str, Mapping[str, int]]


class VerificationValues(Document, frozen=True, kw_only=True, tag="Verification"):
    """Computed and measured values, side by side: `verify`."""

    drift_count: int
    items: tuple[VerifiedValues, ...]
    notes: tuple[str, ...]


class PermissionValues(Values, frozen=True):
    """A permission and its review; `namespace` null means all namespaces, `allowed` null is unknown."""

    verb: str
    group: str | None
    resource: str
    subresource: str | None
    namespace: str | None
    optional: bool
    allowed: bool | None
    message: str | None


class TierValues(Values, frozen=True, kw_only=True):
    """Permissions that belong together, and what they enable."""

    tier: str
    access: str
    gives: str
    caution: str | None
    granted_by: str
    permissions: tuple[PermissionValues, ...]


class TierListValues(Document, frozen=True, kw_only=True, tag="TierList"):
    """The user's permissions, in a namespace or in all: `can-i`."""

    namespace: str | None
    items: tuple[TierValues, ...]
    notes: tuple[str, ...]


class KubeletCount(Values, frozen=True):
    """How many nodes have a version of the kubelet."""

    version: str
    nodes: int


class NodeSoftwareValues(Values, frozen=True):
    """How many nodes run the same software."""

    kubelet_version: str
    os_image: str
    kernel_version: str
    container_runtime_version: str
    nodes: int


class VersionValues(Document, frozen=True, kw_only=True, tag="Version"):
    """Versions of kubectl-qos, of the server as it answers, and of what the nodes run: `version`."""

    client_version: dict[str, str]
    supported_versions: dict[str, str]
    server_version: dict[str, Any] | None
    kubelet_versions: tuple[KubeletCount, ...]
    node_software: tuple[NodeSoftwareValues, ...]
    notes: tuple[str, ...]


def verification_values(verified: Sequence[Verified], notes: Iterable[str]) -> VerificationValues:
    """Return all values, drift or not."""
    return VerificationValues(
        drift_count=sum(len(result.drift) for result in verified),
        items=tuple(
            VerifiedValues(
                namespace=result.pod.namespace if result.pod is not None else None,
                pod=result.pod.title if result.pod is not None else None,
                checks=tuple(map(_check_values, result.checks)),
                unread=result.unread,
                memory_events=result.events,
            )
            for result in verified
        ),
        notes=tuple(notes),
    )


def _check_values(check: CheckedValue) -> CheckValues:
    cause = check.cause
    return copied(
        CheckValues,
        check,
        drift=check.drift if check.measured is not None else None,
        processes=tuple(
            ProcessValues(process.pid, process.name or None, process.oom_score) for process in check.processes
        ),
        cause=CauseValues(cause.reason, cause.confidence, cause_sentence(cause)) if cause else None,
    )


def permission_values(reviews: Reviews, namespace: str | None) -> TierListValues:
    """Return the tiers with the review of each permission."""
    return TierListValues(
        namespace=namespace,
        items=tuple(
            TierValues(
                tier=tier.name,
                access=tier.level(reviews).value,
                gives=tier.gives,
                caution=tier.caution or None,
                granted_by=tier.file,
                permissions=tuple(
                    _permission_values(right, reviews[right], namespace)
                    for right in permissions(tier, namespace)
                ),
            )
            for tier in TIERS
        ),
        notes=tuple(permission_notes(reviews, namespace)),
    )


def _permission_values(
    permission: Permission, review: AccessReview, namespace: str | None
) -> PermissionValues:
    place, message = permission.namespace(namespace), review.reason or None
    return copied(PermissionValues, permission, namespace=place, allowed=review.allowed, message=message)


class RuleFindingValues(OfCluster, frozen=True, kw_only=True):
    """One finding; `rule` is its stable id, `path` the field, `reason` why it is waived, if it is."""

    rule: str
    title: str
    level: Level
    object: ObjectValues
    container: str | None
    path: str
    file: str
    line: int | None
    column: int | None
    text: str | None
    message: str
    reason: str | None


class ReadErrorValues(Values, frozen=True):
    """A document, or a cluster as a `file`, that could not be read."""

    file: str
    line: int | None
    column: int | None
    message: str


class FindingListValues(Document, frozen=True, kw_only=True, tag="FindingList"):
    """What is wrong with manifests or running pods: `check`."""

    items: tuple[RuleFindingValues, ...]
    waived: tuple[RuleFindingValues, ...]
    errors: tuple[ReadErrorValues, ...]
    notes: tuple[str, ...]
    clusters: tuple[ClusterValues, ...] | UnsetType = UNSET


def finding_list_values(
    report: Report, notes: tuple[str, ...], clusters: tuple[ClusterValues, ...] | None = None
) -> FindingListValues:
    """Return findings that count and waived ones; with several clusters each names its cluster."""
    of_fleet = clusters is not None
    return FindingListValues(
        items=tuple(_values(finding, place, None, of_fleet) for finding, place in report.findings),
        waived=tuple(_values(*waived, of_fleet) for waived in report.waived),
        errors=tuple(
            ReadErrorValues(place.file, place.line, place.column, message) for message, place in report.errors
        ),
        notes=notes,
        clusters=UNSET if clusters is None else clusters,
    )


def _values(finding: RuleFinding, place: Place, reason: str | None, of_fleet: bool) -> RuleFindingValues:
    pod, (kind, name) = finding.subject.pod, finding.subject.kind_and_name
    return RuleFindingValues(
        cluster=place.file if of_fleet else UNSET,
        rule=finding.rule.id,
        title=finding.rule.title,
        level=finding.level,
        object=ObjectValues(kind, pod.namespace or None, name, None),
        container=finding.owner or None,
        path=finding.path,
        file=place.file,
        line=place.line,
        column=place.column,
        text=place.text or None,
        message=sentence(finding),
        reason=reason,
    )

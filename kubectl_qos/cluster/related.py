"""What bears on a change of a pod or workload: the object, its owners, and what its namespace limits.

Everything but the object may be missing, and is then said to be. Not here: what follows from it (edit/).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from kubectl_qos.cluster.http import UNDECODABLE, RestClient, decode_body, decode_error
from kubectl_qos.cluster.pager import Future, Pager
from kubectl_qos.edit.related import OWNER, Owner, RelatedObjects
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.kinds import WORKLOADS, api_path, find_controller, path_segment, pod_from_workload
from kubectl_qos.k8s.limit_range import LimitRange
from kubectl_qos.k8s.managers import VerticalAutoscaler
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.quota import ResourceQuota
from kubectl_qos.k8s.snapshot import Missing

SECONDS: Final = 5.0
"""So long all of it together is waited for, the object itself aside."""
MOST_OWNERS: Final = 5

T = TypeVar("T")
Json = Mapping[str, Any]
_object = msgspec.json.Decoder(dict[str, Any])


class _RelatedKind(NamedTuple):
    """What is listed, as RBAC and as people name it, and where."""

    resource: str
    words: str
    group: str = "/api/v1"


_LIMIT_RANGES: Final = _RelatedKind("limitranges", "the LimitRanges")
_QUOTAS: Final = _RelatedKind("resourcequotas", "the ResourceQuotas")
_AUTOSCALERS: Final = _RelatedKind(
    "verticalpodautoscalers", "the VerticalPodAutoscalers", "/apis/autoscaling.k8s.io/v1"
)


def read_related(answers: RestClient, pod: Pod, *, seconds: float = SECONDS) -> RelatedObjects:
    """What a server has around a pod, or around the workload whose template `pod` is.

    Raises QosError where the object itself cannot be had.
    """
    answers = answers.impatient()
    until = time.monotonic() + seconds
    lists = _Lists(answers, pod.namespace)
    limit_ranges = lists.start(_LIMIT_RANGES, LimitRange)
    quotas = lists.start(_QUOTAS, ResourceQuota)
    autoscalers = lists.start(_AUTOSCALERS, VerticalAutoscaler)
    raw = _read(answers, pod.kind, pod.namespace, pod.name)
    chain = _Chain(answers, pod.namespace)
    owners = Future(lambda: chain.follow(raw))
    owners.wait(max(until - time.monotonic(), 0))
    return RelatedObjects(
        raw=raw,
        owners=tuple(chain.found),
        limit_ranges=lists.taken(_LIMIT_RANGES, limit_ranges, until),
        quotas=lists.taken(_QUOTAS, quotas, until),
        autoscalers=lists.taken(_AUTOSCALERS, autoscalers, until, may_be_unknown=True),
        missing=(*chain.missing, *(() if owners.is_done else (chain.late(seconds),)), *lists.missing),
    )


def parse_owner(raw: Json) -> Owner:
    """An owner with its template, if it is of a kind that is known to have one."""
    kind = str(raw.get("kind", ""))
    if kind not in WORKLOADS or not _is_of_kubernetes(kind, str(raw.get("apiVersion", ""))):
        return Owner(raw, None)
    try:
        return Owner(raw, pod_from_workload(kind, raw))
    except UNDECODABLE as error:
        raise decode_error(f"{kind.lower()}/{_name(raw)}", error) from None


class _Lists:
    """The lists of one namespace, asked for at once."""

    def __init__(self, answers: RestClient, namespace: str) -> None:
        self.missing: list[Missing] = []
        self._answers = answers
        self._namespace = namespace

    def start(self, kind: _RelatedKind, wanted: type[T]) -> Future[list[T]]:
        path = f"{kind.group}/namespaces/{path_segment(self._namespace)}/{kind.resource}"
        return Future(lambda: Pager(wanted).fetch(self._answers, path, {}, consistent=True).items)

    def taken(
        self, kind: _RelatedKind, later: Future[list[T]], until: float, *, may_be_unknown: bool = False
    ) -> tuple[T, ...]:
        """The items, none where they cannot be had in time, which is then missing."""
        later.wait(max(until - time.monotonic(), 0))
        what = f"{kind.words} of the namespace {self._namespace}"
        if not later.is_done:
            self.missing.append(Missing(what, "the server did not answer in time"))
            return ()
        try:
            return tuple(later.result())
        except ApiError as error:
            if may_be_unknown and error.status == HTTPStatus.NOT_FOUND:
                return ()
            self.missing.append(Missing(what, str(error), self._remedy(kind, error)))
        except QosError as error:
            self.missing.append(Missing(what, str(error)))
        return ()

    def _remedy(self, kind: _RelatedKind, error: ApiError) -> str:
        group = kind.group.split("/")[2] if kind.group.startswith("/apis") else ""
        return _remedy("list", kind.resource, group, self._namespace, error)


class _Chain:
    """The controllers above an object, the nearest first; what was found so far is there at any time."""

    def __init__(self, answers: RestClient, namespace: str) -> None:
        self.found: list[Owner] = []
        self.missing: list[Missing] = []
        self._answers = answers
        self._namespace = namespace
        self._next = ""

    def follow(self, raw: Json) -> None:
        """Read them one after the other, as far as that is possible."""
        reference = find_controller(raw)
        while reference is not None and len(self.found) < MOST_OWNERS:
            kind, name = str(reference.get("kind", "")), str(reference.get("name", ""))
            version = str(reference.get("apiVersion", ""))
            self._next = f"{kind.lower()}/{name}"
            if kind not in WORKLOADS or not _is_of_kubernetes(kind, version):
                # Where its resource is would take a discovery, and nothing of it is needed but its name.
                self.found.append(
                    Owner({"apiVersion": version, "kind": kind, "metadata": {"name": name}}, None)
                )
                return
            try:
                owner = _read(self._answers, kind, self._namespace, name)
                if reference.get("uid") not in {None, (owner.get("metadata") or {}).get("uid")}:
                    self._lost("another object has its name now: it was deleted and made anew")
                    return
                self.found.append(parse_owner(owner))
            except QosError as error:
                self._lost(str(error), self._remedy(kind, error))
                return
            reference = find_controller(owner)

    def late(self, seconds: float) -> Missing:
        """The one that is still waited for."""
        return Missing(f"{OWNER} {self._next}", f"the server did not answer within {seconds:g} seconds")

    def _lost(self, why: str, remedy: str = "") -> None:
        self.missing.append(Missing(f"{OWNER} {self._next}", why, remedy))

    def _remedy(self, kind: str, error: QosError) -> str:
        group = WORKLOADS[kind].group.split("/")[2] if WORKLOADS[kind].group.startswith("/apis") else ""
        return _remedy("get", f"{kind.lower()}s", group, self._namespace, error)


def _remedy(verb: str, resource: str, group: str, namespace: str, error: QosError) -> str:
    if not isinstance(error, ApiError) or error.status != HTTPStatus.FORBIDDEN:
        return ""
    return f"grant {verb} on {f'{resource}.{group}' if group else resource} in the namespace {namespace}"


def _read(answers: RestClient, kind: str, namespace: str, name: str) -> dict[str, Any]:
    """One object with its kind. Raises QosError."""
    what = f"{kind} {name}"
    raw = decode_body(_object, answers.whole(api_path(kind, namespace, name), {}), what)
    if _name(raw) != name:
        raise decode_error(what, ValueError(f"it is about {_name(raw) or 'something else'}"))
    return {"kind": kind, **raw}


def _is_of_kubernetes(kind: str, version: str) -> bool:
    """Whether a kind is the one of Kubernetes itself, whatever version of its group is named."""
    known = WORKLOADS[kind].group.removeprefix("/apis/").removeprefix("/api/")
    return not version or version.rpartition("/")[0] == known.rpartition("/")[0]


def _name(raw: Json) -> str:
    metadata = raw.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""


def related_in_files(raw: Json, objects: Sequence[Json], namespace: str) -> RelatedObjects:
    """The surroundings of one object among others of the same files; what is not there is not missed."""
    near = [one for one in objects if _metadata(one, "namespace") == namespace]
    return RelatedObjects(
        raw=raw,
        owners=tuple(_owners(raw, near)),
        limit_ranges=_decoded(near, "LimitRange", LimitRange),
        quotas=_decoded(near, "ResourceQuota", ResourceQuota),
        autoscalers=_decoded(near, "VerticalPodAutoscaler", VerticalAutoscaler),
    )


def _owners(raw: Json, near: Sequence[Json]) -> list[Owner]:
    found: list[Owner] = []
    reference = find_controller(raw)
    while reference is not None and len(found) < MOST_OWNERS:
        kind, name = reference.get("kind"), reference.get("name")
        owner = next((one for one in near if (one.get("kind"), _metadata(one, "name")) == (kind, name)), None)
        if owner is None:
            version = reference.get("apiVersion", "")
            found.append(Owner({"apiVersion": version, "kind": kind, "metadata": {"name": name}}, None))
            break
        try:
            found.append(parse_owner(owner))
        except QosError:
            found.append(Owner(owner, None))
        reference = find_controller(owner)
    return found


def _decoded(near: Sequence[Json], kind: str, wanted: type[T]) -> tuple[T, ...]:
    """The objects of a kind, without those that cannot be read."""
    found = []
    for raw in near:
        if raw.get("kind") == kind:
            try:
                found.append(convert(raw, wanted))
            except UNDECODABLE:
                continue
    return tuple(found)


def _metadata(raw: Json, name: str) -> str:
    metadata = raw.get("metadata")
    return str(metadata.get(name) or "") if isinstance(metadata, Mapping) else ""

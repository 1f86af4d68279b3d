"""What bears on a change of an object: its owners and its namespace's limits, or that they are missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Generic, TypeVar

from kubectl_qos.cluster.background import Future
from kubectl_qos.cluster.documents import metadata_text
from kubectl_qos.cluster.http import UNDECODABLE, RestClient, decode_error
from kubectl_qos.cluster.kube_api import list_path, read_object
from kubectl_qos.cluster.pager import Pager
from kubectl_qos.edit.related import OWNER, Owner, RelatedObjects
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.kinds import WORKLOADS, find_controller, pod_from_workload
from kubectl_qos.k8s.managers import VerticalAutoscaler
from kubectl_qos.k8s.objects import Json, Pod, convert
from kubectl_qos.k8s.quota import LimitRange, ResourceQuota
from kubectl_qos.k8s.snapshot import Missing

SECONDS: Final = 5.0
"""How long everything but the object itself is waited for."""
MAX_OWNERS: Final = 5

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _RelatedKind(Generic[T]):
    kind: str
    item_type: type[T]
    group: str = "/api/v1"
    optional: bool = False

    @property
    def resource(self) -> str:
        return f"{self.kind.lower()}s"


_LIMIT_RANGES: Final = _RelatedKind("LimitRange", LimitRange)
_QUOTAS: Final = _RelatedKind("ResourceQuota", ResourceQuota)
_AUTOSCALERS: Final = _RelatedKind(
    "VerticalPodAutoscaler", VerticalAutoscaler, "/apis/autoscaling.k8s.io/v1", optional=True
)


def read_related(client: RestClient, pod: Pod) -> RelatedObjects:
    """What a server has for a pod or a workload of that template. Raises QosError without the object."""
    client = client.without_retries()
    end = time.monotonic() + SECONDS
    lists = _Lists(client, pod.namespace, end)
    limit_ranges = lists.start(_LIMIT_RANGES)
    quotas = lists.start(_QUOTAS)
    autoscalers = lists.start(_AUTOSCALERS)
    raw = read_object(client, pod.kind, pod.namespace, pod.name)
    chain = _OwnerChain(client, pod.namespace)
    done = Future(lambda: chain.read(raw)).wait(end - time.monotonic())
    if not done:
        chain.miss(f"the server did not answer within {SECONDS:g} seconds")
    return RelatedObjects(
        raw=raw,
        owners=tuple(chain.owners),
        limit_ranges=lists.take(_LIMIT_RANGES, limit_ranges),
        quotas=lists.take(_QUOTAS, quotas),
        autoscalers=lists.take(_AUTOSCALERS, autoscalers),
        missing=(*chain.missing, *lists.missing),
    )


def related_in_files(raw: Json, objects: Sequence[Json], namespace: str) -> RelatedObjects:
    """The same of one object among those of its files, where nothing is reported missing."""
    near = [other for other in objects if metadata_text(other, "namespace") == namespace]
    by_name = {(str(other.get("kind")), metadata_text(other, "name")): other for other in reversed(near)}

    def read(reference: Json) -> Owner | None:
        other = by_name.get((str(reference.get("kind")), str(reference.get("name"))))
        try:
            return None if other is None else _parse_owner(other)
        except QosError:
            return Owner(other or {}, None)

    return RelatedObjects(
        raw=raw,
        owners=tuple(_walk_owners(raw, read)),
        limit_ranges=_convert_all(near, _LIMIT_RANGES),
        quotas=_convert_all(near, _QUOTAS),
        autoscalers=_convert_all(near, _AUTOSCALERS),
    )


class _Lists:
    def __init__(self, client: RestClient, namespace: str, end: float) -> None:
        self.missing: list[Missing] = []
        self._client = client
        self._namespace = namespace
        self._end = end

    def start(self, kind: _RelatedKind[T]) -> Future[list[T]]:
        path = list_path(kind.resource, self._namespace, kind.group)
        return Future(lambda: Pager(kind.item_type).list_all(self._client, path, {}, consistent=True).items)

    def take(self, kind: _RelatedKind[T], future: Future[list[T]]) -> tuple[T, ...]:
        what = f"the list of {kind.kind}s in the namespace {self._namespace}"
        if not future.wait(self._end - time.monotonic()):
            self.missing.append(Missing(what, "the server did not answer in time"))
            return ()
        try:
            return tuple(future.result())
        except QosError as error:
            if not (kind.optional and isinstance(error, ApiError) and error.status == HTTPStatus.NOT_FOUND):
                remedy = _remedy("list", kind.group, kind.resource, self._namespace, error)
                self.missing.append(Missing(what, str(error), remedy))
        return ()


class _OwnerChain:
    """The controllers above an object as a server has them; those found so far are there at any time."""

    def __init__(self, client: RestClient, namespace: str) -> None:
        self.owners: list[Owner] = []
        self.missing: list[Missing] = []
        self._client = client
        self._namespace = namespace
        self._kind = self._name = ""

    def read(self, raw: Json) -> None:
        try:
            for owner in _walk_owners(raw, self._read):
                self.owners.append(owner)
        except QosError as error:
            group = WORKLOADS[self._kind].group
            self.miss(str(error), _remedy("get", group, f"{self._kind.lower()}s", self._namespace, error))

    def miss(self, why: str, remedy: str = "") -> None:
        self.missing.append(Missing(f"{OWNER} {self._kind.lower()}/{self._name}", why, remedy))

    def _read(self, reference: Json) -> Owner | None:
        self._kind, self._name = str(reference.get("kind", "")), str(reference.get("name", ""))
        if not _is_workload(self._kind, str(reference.get("apiVersion", ""))):
            # Its path would take a discovery, and nothing of it is needed but its name.
            return None
        raw = read_object(self._client, self._kind, self._namespace, self._name)
        if reference.get("uid") not in {None, metadata_text(raw, "uid")}:
            raise QosError("another object has its name now: it was deleted and recreated")
        return _parse_owner(raw)


def _walk_owners(raw: Json, read: Callable[[Json], Owner | None]) -> Iterator[Owner]:
    """The controllers above an object, the nearest first; where `read` gives None, its name alone."""
    for _ in range(MAX_OWNERS):
        reference = find_controller(raw)
        if reference is None:
            return
        owner = read(reference)
        if owner is None:
            named = {"apiVersion": reference.get("apiVersion", ""), "kind": reference.get("kind")}
            yield Owner({**named, "metadata": {"name": reference.get("name")}}, None)
            return
        yield owner
        raw = owner.raw


def _parse_owner(raw: Json) -> Owner:
    kind = str(raw.get("kind", ""))
    if not _is_workload(kind, str(raw.get("apiVersion", ""))):
        return Owner(raw, None)
    try:
        return Owner(raw, pod_from_workload(kind, raw))
    except UNDECODABLE as error:
        raise decode_error(f"{kind.lower()}/{metadata_text(raw, 'name')}", error) from None


def _is_workload(kind: str, version: str) -> bool:
    """Whether a kind is the workload of Kubernetes itself, in any version of its API group."""
    if kind not in WORKLOADS:
        return False
    group = WORKLOADS[kind].group.removeprefix("/apis/").removeprefix("/api/")
    return not version or version.rpartition("/")[0] == group.rpartition("/")[0]


def _remedy(verb: str, group: str, resource: str, namespace: str, error: QosError) -> str:
    if not isinstance(error, ApiError) or error.status != HTTPStatus.FORBIDDEN:
        return ""
    name = f"{resource}.{group.split('/')[2]}" if group.startswith("/apis") else resource
    return f"grant {verb} on {name} in the namespace {namespace}"


def _convert_all(objects: Sequence[Json], kind: _RelatedKind[T]) -> tuple[T, ...]:
    readable = []
    for raw in objects:
        if raw.get("kind") == kind.kind:
            with suppress(*UNDECODABLE):
                readable.append(convert(raw, kind.item_type))
    return tuple(readable)

"""Read what a change of an object depends on: its owners and its namespace's limits."""

import time
from dataclasses import replace
from http import HTTPStatus
from typing import Final, TypeVar

from kubectl_qos.cluster.background import Future
from kubectl_qos.cluster.documents import metadata_text
from kubectl_qos.cluster.http import UNDECODABLE, Pager, RestClient, decode_error
from kubectl_qos.cluster.kube_api import list_path, read_object
from kubectl_qos.edit.related import (
    AUTOSCALERS,
    BUDGETS,
    LIMIT_RANGES,
    OWNER,
    QUOTAS,
    SCALERS,
    Owner,
    RelatedKind,
    RelatedObjects,
    is_workload,
    parse_owner,
    walk_owners,
)
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.kinds import WORKLOADS
from kubectl_qos.k8s.objects import Json, Pod
from kubectl_qos.k8s.snapshot import Missing, Snapshot

SECONDS: Final = 5.0
"""How long to wait for everything but the object itself."""

T = TypeVar("T")


def read_related(client: RestClient, pod: Pod) -> RelatedObjects:
    """Read the objects for a pod or a workload of that template. Raises QosError without the object."""
    client = client.without_retries()
    end = time.monotonic() + SECONDS
    lists = _Lists(client, pod.namespace, end)
    limit_ranges = lists.start(LIMIT_RANGES)
    quotas = lists.start(QUOTAS)
    autoscalers = lists.start(AUTOSCALERS)
    scalers = lists.start(SCALERS)
    budgets = lists.start(BUDGETS)
    raw = read_object(client, pod.kind, pod.namespace, pod.name)
    chain = _OwnerChain(client, pod.namespace)
    done = Future(lambda: chain.read(raw)).wait(end - time.monotonic())
    if not done:
        chain.miss(f"the server did not answer within {SECONDS:g} seconds")
    return RelatedObjects(
        raw=raw,
        owners=tuple(chain.owners),
        limit_ranges=lists.take(LIMIT_RANGES, limit_ranges),
        quotas=lists.take(QUOTAS, quotas),
        autoscalers=lists.take(AUTOSCALERS, autoscalers),
        scalers=lists.take(SCALERS, scalers),
        budgets=lists.take(BUDGETS, budgets),
        missing=(*chain.missing, *lists.missing),
    )


def read_autoscalers(client: RestClient, snapshot: Snapshot, namespace: str | None) -> Snapshot:
    """Add the VerticalPodAutoscalers of a namespace or of all, or that they are missing."""
    lists = _Lists(client.without_retries(), namespace, time.monotonic() + SECONDS)
    autoscalers = lists.take(AUTOSCALERS, lists.start(AUTOSCALERS))
    return replace(snapshot, autoscalers=autoscalers, missing=(*snapshot.missing, *lists.missing))


class _Lists:
    def __init__(self, client: RestClient, namespace: str | None, end: float) -> None:
        self.missing: list[Missing] = []
        self._client = client
        self._namespace = namespace
        self._end = end

    def start(self, kind: RelatedKind[T]) -> Future[list[T]]:
        path = list_path(kind.resource, self._namespace, kind.group)
        return Future(lambda: Pager(kind.item_type).list_all(self._client, path, {}, revision="").items)

    def take(self, kind: RelatedKind[T], future: Future[list[T]]) -> tuple[T, ...]:
        what = f"the list of {kind.kind}s {_where(self._namespace)}"
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
    """The controllers above an object, as read so far: they can be taken at any time."""

    def __init__(self, client: RestClient, namespace: str) -> None:
        self.owners: list[Owner] = []
        self.missing: list[Missing] = []
        self._client = client
        self._namespace = namespace
        self._kind = self._name = ""

    def read(self, raw: Json) -> None:
        try:
            for owner in walk_owners(raw, self._read):
                self.owners.append(owner)
        except QosError as error:
            group = WORKLOADS[self._kind].group
            self.miss(str(error), _remedy("get", group, f"{self._kind.lower()}s", self._namespace, error))

    def miss(self, why: str, remedy: str = "") -> None:
        self.missing.append(Missing(f"{OWNER} {self._kind.lower()}/{self._name}", why, remedy))

    def _read(self, reference: Json) -> Owner | None:
        self._kind, self._name = str(reference.get("kind", "")), str(reference.get("name", ""))
        if not is_workload(self._kind, str(reference.get("apiVersion", ""))):
            # Its path would take a discovery, and only its name is needed.
            return None
        raw = read_object(self._client, self._kind, self._namespace, self._name)
        if reference.get("uid") not in {None, metadata_text(raw, "uid")}:
            raise QosError("another object has its name now: it was deleted and recreated")
        try:
            return parse_owner(raw)
        except UNDECODABLE as error:
            raise decode_error(f"{self._kind.lower()}/{self._name}", error) from None


def _where(namespace: str | None) -> str:
    return "in all namespaces" if namespace is None else f"in the namespace {namespace}"


def _remedy(verb: str, group: str, resource: str, namespace: str | None, error: QosError) -> str:
    if not isinstance(error, ApiError) or error.status != HTTPStatus.FORBIDDEN:
        return ""
    name = f"{resource}.{group.split('/')[2]}" if group.startswith("/apis") else resource
    return f"grant {verb} on {name} {_where(namespace)}"

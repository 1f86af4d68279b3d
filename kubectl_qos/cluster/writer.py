"""The only module that changes a cluster: a dry run, then the same request once, put down before and after.

Nothing is sent twice by itself. Where it is not known whether a write was done, the object is looked at once,
and what is seen is said. Not here: what is sent (edit/request.py), how (access/changing.py).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final

import msgspec

from kubectl_qos.cluster.http import UNDECODABLE, RestClient, decode_body, decode_error
from kubectl_qos.cluster.patch import send_patch
from kubectl_qos.edit.edits import Edit, value_now
from kubectl_qos.edit.history import Entry, EntryState, HistoryStore, ValueConflict, find_conflicts
from kubectl_qos.edit.patch import PatchRequest
from kubectl_qos.edit.related import is_managed_by_us
from kubectl_qos.edit.status import Progress, check_progress, pod_from_object
from kubectl_qos.errors import ApiError, QosError, ServerUnreachable
from kubectl_qos.k8s.kinds import api_path
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.transport.client import Connection

Json = Mapping[str, Any]

_object = msgspec.json.Decoder(dict[str, Any])
_REHEARSE: Final = "look at it again, and rehearse the change again"


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """A request that the server has tried; made by `Writer.rehearse` alone.

    Attributes:
        request: with the version of the object that it was tried on.
        stored: the values at the request's targets as the server would store them; admission and defaulting
            may make others of them than were asked for.
        raw: the whole object as the server would store it.
        warnings: what the server warns of.
    """

    request: PatchRequest
    stored: tuple[Edit, ...]
    raw: Json
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """A write that was done: its entry in the journal, and the object as the server answered."""

    entry: Entry
    raw: Json
    request: PatchRequest


class ConflictError(QosError):
    """What would be changed is no longer what was looked at: nothing was changed."""

    def __init__(self, message: str, found: tuple[ValueConflict, ...] = (), hint: str = _REHEARSE) -> None:
        super().__init__(message, hint)
        self.conflicts = found


class UnknownOutcome(QosError):
    """The write may have happened, and may not; the sentence says what was seen since.

    `entry` is what the journal has of it.
    """

    def __init__(self, message: str, entry: Entry) -> None:
        super().__init__(message, "look at the object before anything else is done; nothing is sent again")
        self.entry = entry


class Writer:
    """Changes objects of one cluster, each change once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._answers = RestClient(connection, patient=False)

    @property
    def context(self) -> str:
        """The context's name."""
        return self._connection.context

    @property
    def server(self) -> str:
        """The server's host and port."""
        return self._connection.server

    def dry_run(self, request: PatchRequest) -> DryRunResult:
        """What the server would make of a request, which is tried on the object as it is now.

        Raises:
            Stale: the object is another one, or its values are not those that the request was made for.
            ApiError: the server would refuse it, in its words.
            QosError: the server did more than try.
        """
        fresh = self._fresh(request)
        request = replace(request, resource_version=_metadata(fresh, "resourceVersion"))
        try:
            answered = send_patch(self._connection, request, dry_run=True)
        except ApiError as error:
            raise self._explained(error, request) from None
        raw = _answer(request, answered.body, "the dry run of")
        version = _metadata(raw, "resourceVersion")
        if version != request.resource_version:
            raise QosError(
                f"the server did the dry run for real: {request.reference} has changed"
                f" (resourceVersion {request.resource_version}, now {version})",
                hint="something between here and the API server drops dryRun; nothing more is sent",
            )
        return DryRunResult(request, values_at_targets(request, raw), raw, answered.warnings)

    def write(self, dry_run_result: DryRunResult, history: HistoryStore, *, undoes: str = "") -> ApplyResult:
        """Do what was rehearsed, once, if the object is still the same.

        Raises:
            ApiError: the server refuses, in its words: nothing was changed.
            Stale: somebody else has changed the same values since the rehearsal: nothing was changed.
            QosError: the request did not leave, for want of a server or of credentials: nothing was changed.
            Unsure: it may have happened.
        """
        request = dry_run_result.request
        entry = self._entry(request, undoes)
        history.put(entry)
        try:
            answered = send_patch(self._connection, request, dry_run=False)
        except QosError as error:
            if _may_have_been_done(error):
                return self._looked_at(dry_run_result, entry, history, error)
            history.put(replace(entry, state=EntryState.REFUSED, message=str(error)))
            raise self._explained(error, request) from None
        try:
            raw = _answer(request, answered.body, "the change of")
            return self._done(request, raw, entry, history)
        except QosError as error:
            return self._looked_at(dry_run_result, entry, history, error)

    def progress(self, written: ApplyResult) -> Progress:
        """How far it has come, by one look. Raises QosError where the object cannot be had now."""
        try:
            now = self._object(written.request)
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            now = None
        try:
            return check_progress(written.request, written.raw, now)
        except UNDECODABLE as error:
            raise decode_error(written.request.reference, error) from None

    def _fresh(self, request: PatchRequest) -> Json:
        """The object as it is now. Raises Stale where it is not what was looked at."""
        raw = self._object(request)
        if _metadata(raw, "uid") != request.uid:
            raise ConflictError(_other_object(request))
        found = find_conflicts(request, _pod(request, raw))
        if found:
            raise ConflictError(
                f"{request.reference} was changed by someone else since it was looked at", found
            )
        return raw

    def _explained(self, error: QosError, request: PatchRequest) -> QosError:
        """The same; a refusal for another version (409) with what is known of that."""
        if not isinstance(error, ApiError) or error.status != HTTPStatus.CONFLICT:
            return error
        try:
            self._fresh(request)
        except ConflictError as stale:
            return ConflictError(f"{error}; {stale}", stale.conflicts)
        except QosError:
            return error
        error.hint = (
            f"the values are still what they were, but something else of the object changed: {_REHEARSE}"
        )
        return error

    def _looked_at(
        self, dry_run_result: DryRunResult, entry: Entry, history: HistoryStore, error: QosError
    ) -> ApplyResult:
        """The write after all, where it is seen to be done; else raises Unsure with what is seen."""
        request = dry_run_result.request
        raw, seen = self._seen(dry_run_result)
        if raw is not None:
            return self._done(request, raw, replace(entry, message=f"{error}; {seen}"), history)
        sentence = f"it is not known whether {request.reference} was changed: {error}; {seen}"
        unknown = replace(entry, state=EntryState.UNKNOWN, message=sentence)
        history.put(unknown)
        raise UnknownOutcome(sentence, unknown) from error

    def _seen(self, dry_run_result: DryRunResult) -> tuple[Json | None, str]:
        """What one look tells: the object if our write is in it, and a sentence."""
        request = dry_run_result.request
        try:
            raw = self._object(request)
            pod = _pod(request, raw)
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None, f"{request.reference} is not there any more"
            return None, f"looked at since, it cannot be seen: {error}"
        except QosError as error:
            return None, f"looked at since, it cannot be seen: {error}"
        if _metadata(raw, "uid") != request.uid:
            return None, _other_object(request)
        if _metadata(raw, "resourceVersion") == request.resource_version:
            return None, "looked at since, nothing has changed there so far"
        if any(value_now(pod, edit) != edit.quantity for edit in dry_run_result.stored):
            return None, "looked at since, the object has changed, but it does not have these values"
        if not is_managed_by_us(raw, request, dry_run_result.stored):
            return None, "looked at since, it has these values, but who wrote them cannot be told"
        return raw, "looked at since, it has these values, written by us"

    def _done(self, request: PatchRequest, raw: Json, entry: Entry, history: HistoryStore) -> ApplyResult:
        entry = replace(entry, state=EntryState.DONE, after=values_at_targets(request, raw))
        history.put(entry)
        return ApplyResult(entry, raw, request)

    def _entry(self, request: PatchRequest, undoes: str) -> Entry:
        return Entry(
            id=f"{time.time_ns():020d}-{secrets.token_hex(4)}",
            at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            context=self.context,
            server=self.server,
            kind=request.kind,
            namespace=request.namespace,
            name=request.name,
            uid=request.uid,
            subresource=request.subresource,
            before=request.before,
            after=request.edits,
            state=EntryState.SENT,
            undoes=undoes,
        )

    def _object(self, request: PatchRequest) -> Json:
        path = api_path(request.kind, request.namespace, request.name)
        return _decoded(request, self._answers.whole(path, {}), request.reference)


def values_at_targets(request: PatchRequest, raw: Json) -> tuple[Edit, ...]:
    """The values at a request's targets in an object. Raises QosError for what is no such object."""
    pod = _pod(request, raw)
    return tuple(replace(edit, quantity=value_now(pod, edit)) for edit in request.edits)


def _pod(request: PatchRequest, raw: Json) -> Pod:
    try:
        return pod_from_object(request, raw)
    except UNDECODABLE as error:
        raise decode_error(request.reference, error) from None


def _metadata(raw: Json, name: str) -> str:
    found = raw.get("metadata")
    return str(found.get(name) or "") if isinstance(found, Mapping) else ""


def _decoded(request: PatchRequest, body: bytes, what: str) -> Json:
    """An object of the request's kind and name. Raises QosError for anything else."""
    raw: dict[str, Any] = decode_body(_object, body, what)
    if raw.get("kind") != request.kind or _metadata(raw, "name") != request.name:
        raise decode_error(what, ValueError(f"it is about {raw.get('kind') or 'something else'}"))
    return raw


def _answer(request: PatchRequest, body: bytes, what: str) -> Json:
    """The object that a patch was answered with. Raises QosError for another one."""
    what = f"{what} {request.reference}"
    raw = _decoded(request, body, what)
    if _metadata(raw, "uid") != request.uid:
        raise decode_error(what, ValueError("it is about another object of that name"))
    return raw


def _may_have_been_done(error: QosError) -> bool:
    """A server, or a proxy before it, that fails or falls silent while it works may have done it already."""
    if isinstance(error, ServerUnreachable):
        return error.may_have_arrived
    return isinstance(error, ApiError) and (
        error.status >= HTTPStatus.INTERNAL_SERVER_ERROR or error.status == HTTPStatus.REQUEST_TIMEOUT
    )


def _other_object(request: PatchRequest) -> str:
    return f"{request.reference} is another object now: it was deleted and made anew"

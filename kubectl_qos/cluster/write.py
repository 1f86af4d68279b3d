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

from kubectl_qos.cluster.access.changing import change
from kubectl_qos.cluster.access.connection import Connection
from kubectl_qos.cluster.answers import UNDECODABLE, Answers, decoded, unreadable
from kubectl_qos.edit.change import Edit
from kubectl_qos.edit.following import pod_in, progress_of
from kubectl_qos.edit.journal import Entry, Journal, State
from kubectl_qos.edit.ownership import is_ours
from kubectl_qos.edit.progress import Progress
from kubectl_qos.edit.request import Request
from kubectl_qos.edit.undo import Conflict, conflicts, value_now
from kubectl_qos.errors import ApiError, QosError, ServerUnreachable
from kubectl_qos.k8s.kinds import path_of
from kubectl_qos.k8s.objects import Pod

Json = Mapping[str, Any]

_object = msgspec.json.Decoder(dict[str, Any])
_REHEARSE: Final = "look at it again, and rehearse the change again"


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """A request that the server has tried; made by `Writer.rehearse` alone.

    Attributes:
        request: with the version of the object that it was tried on.
        stored: the values at the request's targets as the server would store them; admission and defaulting
            may make others of them than were asked for.
        raw: the whole object as the server would store it.
        warnings: what the server warns of.
    """

    request: Request
    stored: tuple[Edit, ...]
    raw: Json
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """A write that was done: its entry in the journal, and the object as the server answered."""

    entry: Entry
    raw: Json
    request: Request


class Stale(QosError):
    """What would be changed is no longer what was looked at: nothing was changed."""

    def __init__(self, message: str, found: tuple[Conflict, ...] = (), hint: str = _REHEARSE) -> None:
        super().__init__(message, hint)
        self.conflicts = found


class Unsure(QosError):
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
        self._answers = Answers(connection, patient=False)

    @property
    def context(self) -> str:
        """The context's name."""
        return self._connection.context

    @property
    def server(self) -> str:
        """The server's host and port."""
        return self._connection.server

    def rehearse(self, request: Request) -> Rehearsed:
        """What the server would make of a request, which is tried on the object as it is now.

        Raises:
            Stale: the object is another one, or its values are not those that the request was made for.
            ApiError: the server would refuse it, in its words.
            QosError: the server did more than try.
        """
        fresh = self._fresh(request)
        request = replace(request, resource_version=_metadata(fresh, "resourceVersion"))
        try:
            answered = change(self._connection, request, dry_run=True)
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
        return Rehearsed(request, values_of(request, raw), raw, answered.warnings)

    def write(self, rehearsed: Rehearsed, journal: Journal, *, undoes: str = "") -> Written:
        """Do what was rehearsed, once, if the object is still the same.

        Raises:
            ApiError: the server refuses, in its words: nothing was changed.
            Stale: somebody else has changed the same values since the rehearsal: nothing was changed.
            QosError: the request did not leave, for want of a server or of credentials: nothing was changed.
            Unsure: it may have happened.
        """
        request = rehearsed.request
        entry = self._entry(request, undoes)
        journal.put(entry)
        try:
            answered = change(self._connection, request, dry_run=False)
        except QosError as error:
            if _may_have_been_done(error):
                return self._looked_at(rehearsed, entry, journal, error)
            journal.put(replace(entry, state=State.REFUSED, said=str(error)))
            raise self._explained(error, request) from None
        try:
            raw = _answer(request, answered.body, "the change of")
            return self._done(request, raw, entry, journal)
        except QosError as error:
            return self._looked_at(rehearsed, entry, journal, error)

    def progress(self, written: Written) -> Progress:
        """How far it has come, by one look. Raises QosError where the object cannot be had now."""
        try:
            now = self._object(written.request)
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            now = None
        try:
            return progress_of(written.request, written.raw, now)
        except UNDECODABLE as error:
            raise unreadable(written.request.reference, error) from None

    def _fresh(self, request: Request) -> Json:
        """The object as it is now. Raises Stale where it is not what was looked at."""
        raw = self._object(request)
        if _metadata(raw, "uid") != request.uid:
            raise Stale(_other_object(request))
        found = conflicts(request, _pod(request, raw))
        if found:
            raise Stale(f"{request.reference} was changed by someone else since it was looked at", found)
        return raw

    def _explained(self, error: QosError, request: Request) -> QosError:
        """The same; a refusal for another version (409) with what is known of that."""
        if not isinstance(error, ApiError) or error.status != HTTPStatus.CONFLICT:
            return error
        try:
            self._fresh(request)
        except Stale as stale:
            return Stale(f"{error}; {stale}", stale.conflicts)
        except QosError:
            return error
        error.hint = (
            f"the values are still what they were, but something else of the object changed: {_REHEARSE}"
        )
        return error

    def _looked_at(self, rehearsed: Rehearsed, entry: Entry, journal: Journal, error: QosError) -> Written:
        """The write after all, where it is seen to be done; else raises Unsure with what is seen."""
        request = rehearsed.request
        raw, seen = self._seen(rehearsed)
        if raw is not None:
            return self._done(request, raw, replace(entry, said=f"{error}; {seen}"), journal)
        sentence = f"it is not known whether {request.reference} was changed: {error}; {seen}"
        unknown = replace(entry, state=State.UNKNOWN, said=sentence)
        journal.put(unknown)
        raise Unsure(sentence, unknown) from error

    def _seen(self, rehearsed: Rehearsed) -> tuple[Json | None, str]:
        """What one look tells: the object if our write is in it, and a sentence."""
        request = rehearsed.request
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
        if any(value_now(pod, edit) != edit.quantity for edit in rehearsed.stored):
            return None, "looked at since, the object has changed, but it does not have these values"
        if not is_ours(raw, request, rehearsed.stored):
            return None, "looked at since, it has these values, but who wrote them cannot be told"
        return raw, "looked at since, it has these values, written by us"

    def _done(self, request: Request, raw: Json, entry: Entry, journal: Journal) -> Written:
        entry = replace(entry, state=State.DONE, after=values_of(request, raw))
        journal.put(entry)
        return Written(entry, raw, request)

    def _entry(self, request: Request, undoes: str) -> Entry:
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
            state=State.SENT,
            undoes=undoes,
        )

    def _object(self, request: Request) -> Json:
        path = path_of(request.kind, request.namespace, request.name)
        return _decoded(request, self._answers.whole(path, {}), request.reference)


def values_of(request: Request, raw: Json) -> tuple[Edit, ...]:
    """The values at a request's targets in an object. Raises QosError for what is no such object."""
    pod = _pod(request, raw)
    return tuple(replace(edit, quantity=value_now(pod, edit)) for edit in request.edits)


def _pod(request: Request, raw: Json) -> Pod:
    try:
        return pod_in(request, raw)
    except UNDECODABLE as error:
        raise unreadable(request.reference, error) from None


def _metadata(raw: Json, name: str) -> str:
    found = raw.get("metadata")
    return str(found.get(name) or "") if isinstance(found, Mapping) else ""


def _decoded(request: Request, body: bytes, what: str) -> Json:
    """An object of the request's kind and name. Raises QosError for anything else."""
    raw: dict[str, Any] = decoded(_object, body, what)
    if raw.get("kind") != request.kind or _metadata(raw, "name") != request.name:
        raise unreadable(what, ValueError(f"it is about {raw.get('kind') or 'something else'}"))
    return raw


def _answer(request: Request, body: bytes, what: str) -> Json:
    """The object that a patch was answered with. Raises QosError for another one."""
    what = f"{what} {request.reference}"
    raw = _decoded(request, body, what)
    if _metadata(raw, "uid") != request.uid:
        raise unreadable(what, ValueError("it is about another object of that name"))
    return raw


def _may_have_been_done(error: QosError) -> bool:
    """A server, or a proxy before it, that fails or falls silent while it works may have done it already."""
    if isinstance(error, ServerUnreachable):
        return error.may_have_arrived
    return isinstance(error, ApiError) and (
        error.status >= HTTPStatus.INTERNAL_SERVER_ERROR or error.status == HTTPStatus.REQUEST_TIMEOUT
    )


def _other_object(request: Request) -> str:
    return f"{request.reference} is another object now: it was deleted and made anew"

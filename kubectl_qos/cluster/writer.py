"""The only module that changes a cluster: a dry run, then the same request once, recorded before and after.

Nothing is done twice. If it is unknown whether a write was done, the object is read once to find out. A write
that is refused because only other parts of the object have changed is repeated, after a new dry run.
edit/edits.py makes the requests.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import structs

from kubectl_qos.cluster.documents import metadata_text
from kubectl_qos.cluster.http import UNDECODABLE, decode_body, decode_error, read_body
from kubectl_qos.cluster.kube_api import KubeApi, check_object, read_object
from kubectl_qos.edit.apply_state import (
    DRY_RUN_AGAIN,
    ApplyResult,
    ConflictError,
    DryRunResult,
    UnknownOutcome,
)
from kubectl_qos.edit.compare import scope_of_pods
from kubectl_qos.edit.edits import CONTENT_TYPE, Edit, PatchRequest, value_now
from kubectl_qos.edit.history import Entry, EntryState, HistoryStore, find_conflicts
from kubectl_qos.edit.related import decode_pod, is_managed_by_us
from kubectl_qos.edit.status import Progress, Stage, check_progress, with_scheduler_reason
from kubectl_qos.errors import ApiError, QosError, ServerUnreachable
from kubectl_qos.k8s.objects import Json, Pod
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.transport.client import Connection
from kubectl_qos.transport.net_errors import parse_warnings

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

_MAX_BYTES: Final = 16 << 20
"""Larger than any object: etcd's limit is 1.5 MiB."""
_TRIES: Final = 10
"""A controller writes the status of a workload that rolls out several times a second."""
_object = msgspec.json.Decoder(dict[str, Any])


class Writer:
    """Changes objects of one cluster, each change once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._api = KubeApi(connection, retries=False)

    @property
    def context(self) -> str:
        """Return the context's name."""
        return self._connection.context

    @property
    def server(self) -> str:
        """Return the server's host and port."""
        return self._connection.server

    def dry_run(self, request: PatchRequest) -> DryRunResult:
        """Return the server's answer to a dry run of a request on the present object.

        Raises ConflictError if the object or its values have changed, ApiError if the server refuses, and
        QosError if it did more than a dry run.
        """
        for tries_left in reversed(range(_TRIES)):
            current = self._read_unchanged(request)
            request = structs.replace(request, resource_version=metadata_text(current, "resourceVersion"))
            try:
                response, body = self._send(request, dry_run=True)
                break
            except ApiError as error:
                if error.status != HTTPStatus.CONFLICT or not tries_left:
                    raise self._explain(error, request) from None
        raw = _decode_answer(request, body, "the dry run of")
        version = metadata_text(raw, "resourceVersion")
        if version != request.resource_version:
            raise QosError(
                f"the server ignored dryRun: {request.reference} has changed"
                f" (resourceVersion {request.resource_version}, now {version})",
                hint="something between here and the API server drops dryRun; nothing more is sent",
            )
        warnings = parse_warnings(response.headers.getlist("Warning"))
        return DryRunResult(request, _values_at_targets(request, raw), raw, warnings)

    def apply(self, dry_run_result: DryRunResult, history: HistoryStore, *, undoes: str = "") -> ApplyResult:
        """Send the request of a dry run; the server takes it only if the object is still the same.

        Raises UnknownOutcome if it is unknown whether it was done. Nothing was changed after an ApiError
        (refused), a ConflictError (changed since the dry run) or another QosError (not sent).
        """
        entry = self._new_entry(dry_run_result.request, undoes)
        history.put(entry)
        for tries_left in reversed(range(_TRIES)):
            request = dry_run_result.request
            try:
                _, body = self._send(request, dry_run=False)
                break
            except QosError as error:
                if _may_have_been_done(error):
                    return self._find_out(dry_run_result, entry, history, error)
                try:
                    dry_run_result = self._dry_run_again(dry_run_result, error, tries_left)
                except QosError as refusal:
                    history.put(replace(entry, state=EntryState.REFUSED, message=str(error)))
                    raise refusal from None
        try:
            raw = _decode_answer(request, body, "the change of")
            return _record_accepted(request, raw, entry, history)
        except QosError as error:
            return self._find_out(dry_run_result, entry, history, error)

    def progress(self, result: ApplyResult, history: HistoryStore) -> Progress:
        """Read the progress, by one request; the end is recorded, unless the change is on trial.

        Raises QosError if the object cannot be read now.
        """
        try:
            now = self._read(result.request)
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            now = None
        try:
            progress = check_progress(result.request, result.raw, now)
            if now is not None and progress.stage in {Stage.ROLLING, Stage.STUCK}:
                pending = self._pending_pods(result.request, now)
                progress = with_scheduler_reason(progress, result.request, result.raw, pending)
        except UNDECODABLE as error:
            raise decode_error(result.request.reference, error) from None
        if progress.stage is Stage.OVERTAKEN:
            undos = [entry for entry in history.entries() if entry.undoes == result.entry.id]
            if any(undo.state is not EntryState.REFUSED for undo in undos):
                is_done = any(undo.state is EntryState.DONE for undo in undos)
                progress = structs.replace(progress, stage=Stage.UNDONE if is_done else Stage.REVERTING)
        if result.entry.state is EntryState.ON_TRIAL:
            return progress
        if progress.stage is Stage.DONE:
            history.put(replace(result.entry, state=EntryState.DONE))
        elif progress.settled and not progress.is_reverted:
            words = filter(None, [progress.stage.value, progress.message])
            history.put(replace(result.entry, message=": ".join(words)))
        return progress

    def _send(self, request: PatchRequest, *, dry_run: bool) -> tuple[BaseHTTPResponse, bytes]:
        body = msgspec.json.encode(request.body)
        response = self._connection.patch(request.path, request.query(dry_run=dry_run), body, CONTENT_TYPE)
        try:
            return response, read_body(response, self.server, _MAX_BYTES)
        except ServerUnreachable as error:
            error.may_have_arrived = True
            raise

    def _pending_pods(self, request: PatchRequest, workload: Json) -> list[Pod]:
        """Return the Pending pods of a workload; [] if they may not be listed."""
        scope = scope_of_pods(decode_pod(request.kind, workload), Scope(request.namespace))
        try:
            return self._api.pods(
                namespace=request.namespace,
                label_selector=scope.selector_text,
                field_selector="status.phase=Pending",
            )
        except ApiError:
            return []

    def _read(self, request: PatchRequest) -> Json:
        return read_object(self._api.client, request.kind, request.namespace, request.name)

    def _read_unchanged(self, request: PatchRequest) -> Json:
        raw = self._read(request)
        if metadata_text(raw, "uid") != request.uid:
            raise ConflictError(_recreated(request))
        conflicts = find_conflicts(request, _pod(request, raw))
        if conflicts:
            raise ConflictError(
                f"{request.reference} was changed by someone else since it was read", conflicts
            )
        return raw

    def _dry_run_again(self, result: DryRunResult, error: QosError, tries_left: int) -> DryRunResult:
        """Return the same change of the object as it is now. Raises the refusal unless that can help."""
        refusal = self._explain(error, result.request)
        if not tries_left or not isinstance(refusal, ApiError) or refusal.status != HTTPStatus.CONFLICT:
            raise refusal
        again = self.dry_run(result.request)
        if again.stored != result.stored:
            raise refusal
        return again

    def _explain(self, error: QosError, request: PatchRequest) -> QosError:
        if not isinstance(error, ApiError) or error.status != HTTPStatus.CONFLICT:
            return error
        try:
            self._read_unchanged(request)
        except ConflictError as conflict:
            return ConflictError(f"{error}; {conflict}", conflict.conflicts)
        except QosError:
            return error
        error.hint = f"the values are unchanged, but another part of the object changed: {DRY_RUN_AGAIN}"
        return error

    def _find_out(
        self, dry_run_result: DryRunResult, entry: Entry, history: HistoryStore, error: QosError
    ) -> ApplyResult:
        request = dry_run_result.request
        raw, seen = self._look_for_write(dry_run_result)
        if raw is not None:
            return _record_accepted(request, raw, replace(entry, message=f"{error}; {seen}"), history)
        sentence = f"it is not known whether {request.reference} was changed: {error}; {seen}"
        unknown = replace(entry, state=EntryState.UNKNOWN, message=sentence)
        history.put(unknown)
        raise UnknownOutcome(sentence, unknown) from error

    def _look_for_write(self, dry_run_result: DryRunResult) -> tuple[Json | None, str]:
        request = dry_run_result.request
        try:
            raw = self._read(request)
            pod = _pod(request, raw)
        except QosError as error:
            if isinstance(error, ApiError) and error.status == HTTPStatus.NOT_FOUND:
                return None, f"{request.reference} no longer exists"
            return None, f"it cannot be read now: {error}"
        if metadata_text(raw, "uid") != request.uid:
            return None, _recreated(request)
        if metadata_text(raw, "resourceVersion") == request.resource_version:
            return None, "the object has not changed so far"
        if any(value_now(pod, edit) != edit.quantity for edit in dry_run_result.stored):
            return None, "the object has changed since, but it does not have these values"
        if not is_managed_by_us(raw, request, dry_run_result.stored):
            return None, "the object has these values now, but it is unknown who wrote them"
        return raw, "the object now has these values, and this program wrote them"

    def _new_entry(self, request: PatchRequest, undoes: str) -> Entry:
        return Entry(
            id=f"{time.time_ns():020d}-{secrets.token_hex(4)}",
            at=self._api.client.now().isoformat(timespec="seconds").replace("+00:00", "Z"),
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


def _values_at_targets(request: PatchRequest, raw: Json) -> tuple[Edit, ...]:
    pod = _pod(request, raw)
    return tuple(structs.replace(edit, quantity=value_now(pod, edit)) for edit in request.edits)


def _record_accepted(request: PatchRequest, raw: Json, entry: Entry, history: HistoryStore) -> ApplyResult:
    entry = replace(entry, state=EntryState.ACCEPTED, after=_values_at_targets(request, raw))
    history.put(entry)
    return ApplyResult(entry, raw, request)


def _pod(request: PatchRequest, raw: Json) -> Pod:
    try:
        return decode_pod(request.kind, raw)
    except UNDECODABLE as error:
        raise decode_error(request.reference, error) from None


def _decode_answer(request: PatchRequest, body: bytes, what: str) -> Json:
    what = f"{what} {request.reference}"
    raw = decode_body(_object, body, what)
    check_object(raw, request.kind, request.name, what)
    if metadata_text(raw, "uid") != request.uid:
        raise decode_error(what, ValueError("it is about another object of that name"))
    return raw


def _may_have_been_done(error: QosError) -> bool:
    """Return whether a write may have been done although the server or a proxy failed or hung."""
    if isinstance(error, ServerUnreachable):
        return error.may_have_arrived
    return isinstance(error, ApiError) and (
        error.status >= HTTPStatus.INTERNAL_SERVER_ERROR or error.status == HTTPStatus.REQUEST_TIMEOUT
    )


def _recreated(request: PatchRequest) -> str:
    return f"{request.reference} is another object now: it was deleted and recreated"

"""A write that goes wrong: nothing is sent twice, and what is known of it is reported and recorded."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.cluster.writer import _TRIES, Writer
from kubectl_qos.edit.apply_state import ConflictError, DryRunResult, UnknownOutcome
from kubectl_qos.edit.edits import Edit
from kubectl_qos.edit.history import EntryState
from kubectl_qos.errors import ApiError, QosError, ServerUnreachable
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport.client import connect
from tests.cluster.changing_server import ChangingServer, Fault, once, refusing
from tests.cluster.conftest import ConnectTo
from tests.cluster.https_server import Answer, HttpsServer, Request
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import status
from tests.cluster.plugins import gives, plugin
from tests.cluster.serving import Serve
from tests.cluster.test_writer import History, deployment_request, memory, now_in, resize_request, serving

LOST = "Unable to connect to the server: EOF"
NOT_KNOWN = "it is not known whether deployment/web was changed: "


@dataclass
class Stage:
    """A server with a deployment, the dry run of a change of it, and a history."""

    server: ChangingServer
    running: HttpsServer
    writer: Writer
    dry_run_result: DryRunResult
    history: History

    def apply(self) -> None:
        self.writer.apply(self.dry_run_result, self.history)

    def unsure(self) -> str:
        with pytest.raises(UnknownOutcome) as caught:
            self.apply()
        assert self.history.states == [EntryState.SENT, EntryState.UNKNOWN]
        assert self.history.kept[-1].message == str(caught.value)
        assert caught.value.entry == self.history.kept[-1]
        assert self.writes == 1
        return str(caught.value)

    def refused(self, match: str, kind: type[QosError] = ApiError) -> Any:
        """The error of a write that changed nothing."""
        with pytest.raises(kind, match=match) as caught:
            self.apply()
        assert not isinstance(caught.value, UnknownOutcome)
        assert self.history.states == [EntryState.SENT, EntryState.REFUSED]
        return caught.value

    @property
    def writes(self) -> int:
        """How many patches came that were no dry runs."""
        return sum("dryRun" not in request.query for request in self.server.patches)

    @property
    def memory(self) -> str:
        return str(now_in(self.server, "Deployment", "web")["requests"]["memory"])


@pytest.fixture
def stage(serve: Serve, connect_to: ConnectTo) -> Stage:
    return staged(serve, connect_to)


def staged(serve: Serve, connect_to: ConnectTo, *edits: Edit) -> Stage:
    server = serving()
    running = serve(server)
    server.stop = running.stop
    writer = Writer(connect_to(running))
    return Stage(server, running, writer, writer.dry_run(deployment_request(server, *edits)), History())


def test_a_connection_lost_before_it_was_applied(stage: Stage) -> None:
    stage.server.fault = once(Fault(applies=False))
    assert stage.unsure() == f"{NOT_KNOWN}{LOST}; the object has not changed so far"
    assert stage.memory == "64Mi"


def test_a_connection_lost_after_it_was_applied(stage: Stage) -> None:
    stage.server.fault = once(Fault(applies=True))
    stage.apply()
    assert stage.history.states == [EntryState.SENT, EntryState.ACCEPTED]
    assert (
        stage.history.kept[-1].message
        == f"{LOST}; the object now has these values, and this program wrote them"
    )
    assert stage.memory == "96Mi"
    assert stage.writes == 1


@pytest.mark.parametrize("applies", [True, False])
def test_a_server_that_is_gone_since(stage: Stage, applies: bool) -> None:
    stage.server.fault = once(Fault(applies=applies, gone=True))
    said = stage.unsure()
    assert said.startswith(f"{NOT_KNOWN}{LOST}; it cannot be read now: ")
    assert stage.memory == ("96Mi" if applies else "64Mi")


def test_a_server_that_is_gone_before(stage: Stage) -> None:
    stage.running.stop()
    error = stage.refused("was refused", ServerUnreachable)
    assert stage.history.kept[-1].message == str(error)
    assert stage.writes == 0


def test_values_of_somebody_else_are_not_taken_for_ours(stage: Stage) -> None:
    """Lost before it was applied, and then somebody wrote the very same."""

    def meanwhile(request: Request) -> Fault | None:
        if "dryRun" not in request.query:
            stage.server.edit("Deployment", "web", stage.dry_run_result.request.patch)
            return Fault(applies=False)
        return None

    stage.server.fault = meanwhile
    assert "the object has these values now, but it is unknown who wrote them" in stage.unsure()


def test_another_change_meanwhile(stage: Stage) -> None:
    def meanwhile(request: Request) -> Fault | None:
        stage.server.edit("Deployment", "web", {"spec": {"replicas": 7}})
        return Fault(applies=False)

    stage.server.fault = meanwhile
    assert "the object has changed since, but it does not have these values" in stage.unsure()


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        ("delete", "deployment/web no longer exists"),
        ("recreate", "deployment/web is another object now: it was deleted and recreated"),
    ],
)
def test_an_object_that_went_with_the_answer(stage: Stage, happens: str, words: str) -> None:
    def meanwhile(request: Request) -> Fault | None:
        getattr(stage.server, happens)("Deployment", "web")
        return Fault(applies=False)

    stage.server.fault = meanwhile
    assert stage.unsure() == f"{NOT_KNOWN}{LOST}; {words}"


def test_a_removal_that_was_applied_and_lost(serve: Serve, connect_to: ConnectTo) -> None:
    stage = staged(serve, connect_to, memory(None))
    stage.server.fault = once(Fault(applies=True))
    with pytest.raises(UnknownOutcome, match="it is unknown who wrote them"):
        stage.apply()
    assert stage.history.states == [EntryState.SENT, EntryState.UNKNOWN]


@pytest.mark.parametrize("applies", [True, False])
@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, b'{"kind": "Deployment"', promised_bytes=500),
        Answer(200, b"<html>welcome</html>", "text/html"),
        Answer(200, b'{"kind":"Status","status":"Success"}'),
        Answer(200, b'{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","uid":"x"}}'),
        Answer(200, b""),
        Answer(500, b"oops", "text/plain"),
        Answer(502, b"bad gateway", "text/plain"),
        Answer(503, b"upstream reset", "text/plain", {"Retry-After": "0"}),
        Answer(504, b"", "text/plain"),
        Answer(408, b"", "text/plain"),
    ],
    ids=["cut off", "html", "status", "other", "empty", "500", "502", "503", "504", "408"],
)
def test_an_inconclusive_answer(stage: Stage, answer: Answer, applies: bool) -> None:
    stage.server.fault = once(Fault(applies, answer))
    if applies:
        stage.apply()
        assert stage.history.states == [EntryState.SENT, EntryState.ACCEPTED]
        assert stage.writes == 1
    else:
        assert stage.unsure().endswith("; the object has not changed so far")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (status(401, "Unauthorized", "Unauthorized"), "You must be logged in"),
        (
            Answer(422, b"{", promised_bytes=50),
            "Error from server (Invalid): the server rejected our request",
        ),
        (status(403, "Forbidden", "no"), "Error from server (Forbidden): no"),
        (status(422, "Invalid", "bad"), "Error from server (Invalid): bad"),
        (Answer(307, b"", headers={"Location": "/elsewhere"}), "Error from server"),
        (Answer(413, b"", "text/plain"), "Error from server"),
    ],
    ids=["401", "breaks off", "403", "422", "redirect", "too large"],
)
def test_a_refusal_is_final(stage: Stage, answer: Answer, said: str) -> None:
    stage.server.fault = once(refusing(answer, retry_after="0"))
    stage.refused(f"^{re.escape(said)}")
    assert stage.writes == 1
    assert stage.memory == "64Mi"


def test_a_retry_after_is_not_obeyed(stage: Stage) -> None:
    stage.server.fault = once(refusing(status(429, "TooManyRequests", "slow down"), retry_after="7"))
    error = stage.refused(r"^Error from server \(TooManyRequests\): slow down$")
    assert error.retry_after == 7
    assert stage.writes == 1


@pytest.mark.parametrize("times", [1, 3])
def test_an_object_of_which_another_part_changed_since_the_dry_run(stage: Stage, times: int) -> None:
    """As its status does while it rolls out: the change is tried again on what there is now."""
    stage.server.fault = changing(stage.server, times)
    stage.apply()
    assert (stage.memory, stage.writes) == ("96Mi", times + 1)
    assert stage.history.states == [EntryState.SENT, EntryState.ACCEPTED]


def test_an_object_that_changes_all_the_time(stage: Stage) -> None:
    stage.server.fault = changing(stage.server, 1000)
    error = stage.refused("the object has been modified")
    assert error.status == 409
    assert error.hint.startswith("the values are unchanged")
    assert (stage.memory, stage.writes) == ("64Mi", _TRIES)
    assert stage.history.states == [EntryState.SENT, EntryState.REFUSED]


def test_a_change_that_would_be_stored_otherwise_by_now(stage: Stage) -> None:
    """Nobody has confirmed what admission would make of it since."""

    def webhook(stored: dict[str, Any]) -> None:
        stored["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["memory"] = "128Mi"

    stage.server.edit("Deployment", "web", {"spec": {"replicas": 3}})
    stage.server.mutate = webhook
    assert stage.refused("the object has been modified").status == 409
    assert stage.writes == 1


def test_an_object_of_which_another_part_changes_before_a_dry_run(stage: Stage) -> None:
    stage.server.fault = changing(stage.server, 3, "All")
    stage.writer.dry_run(stage.dry_run_result.request)
    assert len(stage.server.patches) == 1 + 3 + 1
    assert stage.memory == "64Mi"


def changing(server: ChangingServer, times: int, dry_run: str | None = None) -> Callable[[Request], None]:
    """Before each of so many writes, or dry runs, somebody changes another part of the object."""
    numbers = iter(range(3, 3 + times))

    def change(request: Request) -> None:
        if request.query.get("dryRun") == dry_run and (number := next(numbers, 0)):
            server.edit("Deployment", "web", {"spec": {"replicas": number}})

    return change


def test_values_that_changed_since_the_dry_run(stage: Stage) -> None:
    patch: Any = {"spec": {"template": {"spec": {"containers": [{"name": "app", "resources": {}}]}}}}
    patch["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"memory": "70Mi"}}
    stage.server.edit("Deployment", "web", patch)
    (conflict,) = stage.refused(r"has been modified.*changed by someone else", ConflictError).conflicts
    assert [str(conflict.before), str(conflict.ours), str(conflict.theirs)] == ["64Mi", "96Mi", "70Mi"]


def test_an_object_recreated_since_the_dry_run(stage: Stage) -> None:
    stage.server.recreate("Deployment", "web")
    stage.refused("another object now", ConflictError)
    assert stage.memory == "64Mi"


def test_an_object_deleted_since_the_dry_run(stage: Stage) -> None:
    stage.server.delete("Deployment", "web")
    assert stage.refused(r'deployments.apps "web" not found').status == 404


def test_renewed_credentials_are_safe(serve: Serve, connect_to: ConnectTo, tmp_path: Path) -> None:
    """401 comes before anything is done, so what was not taken is sent again with what is."""
    server = serving()
    running = serve(server)
    user = plugin(tmp_path, gives(token="='admin' if count == 1 else 'renewed'"))
    writer = Writer(connect_to(running, user=user))
    dry_run_result = writer.dry_run(deployment_request(server))
    answers = [Answer(401, b"{}"), None]

    def expired(request: Request) -> Fault | None:
        answer = answers.pop(0) if answers else None
        return Fault(applies=False, answer=answer) if answer is not None else None

    server.fault = expired
    history = History()
    writer.apply(dry_run_result, history)
    assert history.states == [EntryState.SENT, EntryState.ACCEPTED]
    assert [request.body for request in server.patches[1:]] == [server.patches[0].body] * 2


def test_credentials_that_cannot_be_had_any_more(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> str:
        raise QosError("getting credentials: exec: executable login not found")

    monkeypatch.setattr(type(stage.writer._connection._credentials), "authorization", fails)
    stage.refused("getting credentials", QosError)
    assert stage.writes == 0


def test_a_server_that_falls_silent(serve: Serve, tmp_path: Any) -> None:
    server = serving()
    path = write(tmp_path / "config", kubeconfig(serve(server)))
    writer = Writer(connect(ConnectionOptions(kubeconfig=str(path), request_timeout="2s")))
    dry_run_result = writer.dry_run(deployment_request(server))
    history = History()
    server.fault = once(Fault(applies=False, answer=Answer(delay_seconds=20)))
    with pytest.raises(UnknownOutcome, match=r"Client.Timeout exceeded.*the object has not changed so far"):
        writer.apply(dry_run_result, history)
    assert history.states == [EntryState.SENT, EntryState.UNKNOWN]


def test_a_program_that_ends_in_between_leaves_what_it_sent(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kubectl_qos.cluster.writer.Writer._send", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stage.apply()
    assert stage.history.states == [EntryState.SENT]


FAULTS: list[Callable[[], Fault]] = [
    lambda: Fault(applies=False),
    lambda: Fault(applies=False, answer=Answer(500, b"oops", "text/plain")),
    lambda: Fault(applies=False, answer=status(422, "Invalid", "bad")),
    lambda: Fault(applies=False, answer=Answer(200, b"<html>", "text/html")),
    lambda: Fault(applies=False, answer=Answer(429, headers={"Retry-After": "0"})),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_dry_run_that_fails_is_not_repeated(connect_to: ConnectTo, fault: Callable[[], Fault]) -> None:
    server = serving()
    server.fault = lambda _: fault()
    writer = Writer(connect_to(server))
    with pytest.raises(QosError):
        writer.dry_run(resize_request(server))
    assert len(server.patches) == 1
    assert "dryRun" in server.patches[0].query

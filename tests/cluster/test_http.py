"""What a server refuses, in kubectl's words, and what is worth another try."""

from pathlib import Path

import pytest

from kubectl_qos.cli import output
from kubectl_qos.cluster.http import api_error, retry_after
from kubectl_qos.cluster.kube_api import KubeApi
from kubectl_qos.errors import ApiError
from kubectl_qos.present.format import escape
from tests.cluster.conftest import ConnectTo
from tests.cluster.https_server import Answer, Request
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.kubectl import needs_kubectl, said_by_kubectl
from tests.cluster.object_server import ObjectServer, status
from tests.cluster.replay import answer_of, exchanges
from tests.cluster.serving import Serve

PODS = "/api/v1/pods"
REFUSED = {
    **{
        exchange["name"]: answer_of(exchange)
        for exchange in exchanges()
        if exchange["response"]["status"] >= 400 and exchange["response"]["status"] != 422
    },
    "plain 404": Answer(404, b"404 page not found\n", "text/plain"),
    "plain 503": Answer(503, b"service unavailable\n", "text/plain"),
    "plain 500": Answer(500, b'etcd "said" no\n', "text/plain"),
    "plain 403": Answer(403, b"forbidden by a proxy\n", "text/plain"),
    "empty 502": Answer(502, b""),
    "empty 504": Answer(504, b""),
    "empty 429": Answer(429, b""),
    "empty 409": Answer(409, b""),
    "html 400": Answer(400, b"<html>bad</html>", "text/html"),
    "json 500": Answer(500, b'{"error": "other"}'),
    "teapot": Answer(418, b"", "text/plain"),
    "status without reason": status(500, "", "no preferred addresses found"),
    "status 401": status(401, "Unauthorized", "Unauthorized"),
}


def spoken(error: ApiError, capsys: pytest.CaptureFixture[str]) -> str:
    """The first line that a person sees of it."""
    output.print_error(error)
    return capsys.readouterr().err.splitlines()[0]


@needs_kubectl
@pytest.mark.parametrize("answer", REFUSED.values(), ids=REFUSED)
def test_refusals_read_as_in_kubectl(
    serve: Serve, tmp_path: Path, capsys: pytest.CaptureFixture[str], answer: Answer
) -> None:
    server = serve(lambda _: answer)
    said = said_by_kubectl(write(tmp_path / "kubeconfig", kubeconfig(server)), "get", "--raw", "/x")
    assert spoken(api_error(answer.status, answer.body, answer.content_type), capsys) == escape(said)


def test_a_refusal_cannot_write_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    answer = status(403, "Forbidden", "red \x1b[31m\nerror: a second line \x9b2J")
    assert (
        spoken(api_error(answer.status, answer.body), capsys)
        == "Error from server (Forbidden): red \\x1b[31m\\nerror: a second line \\x9b2J"
    )


def test_a_long_page_of_a_proxy_is_cut() -> None:
    error = api_error(403, b"<p>sorry</p>\n" * 1000, "text/html")
    assert str(error).startswith("Error from server (Forbidden): <p>sorry</p> <p>")
    assert len(str(error)) < 300


def test_a_redirect_is_not_followed(serve: Serve, connect_to: ConnectTo) -> None:
    """A token must not be carried to wherever a proxy points."""
    objects = ObjectServer()
    objects.faults[PODS] = Answer(302, headers={"Location": "/elsewhere"})
    server = serve(objects)
    with pytest.raises(ApiError, match="status code 302"):
        KubeApi(connect_to(server)).pods()
    assert server.paths() == [PODS]


@pytest.mark.parametrize("code", [429, 503])
def test_a_busy_server_is_retried_when_it_says_so(serve: Serve, connect_to: ConnectTo, code: int) -> None:
    objects = ObjectServer()
    busy = iter([Answer(code, headers={"Retry-After": "0"})] * 2)
    objects.faults[PODS] = lambda _: next(busy, None)
    server = serve(objects)
    assert KubeApi(connect_to(server)).pods() == []
    assert len(server.requests) == 3


def test_a_server_that_stays_busy_is_given_up(serve: Serve, connect_to: ConnectTo) -> None:
    def busy(_: Request) -> Answer:
        return Answer(429, headers={"Retry-After": "0"})

    server = serve(busy)
    with pytest.raises(ApiError, match="too many requests"):
        KubeApi(connect_to(server)).pods()
    assert len(server.requests) == 11


@pytest.mark.parametrize(
    ("code", "header", "seconds"),
    [
        (429, "1", 1.0),
        (503, "0", 0.0),
        (429, "", None),
        (429, "Wed, 21 Oct 2026 07:28:00 GMT", None),
        (503, "3600", None),
        (404, "1", None),
        (200, "1", None),
    ],
)
def test_when_to_retry(code: int, header: str, seconds: float | None) -> None:
    assert retry_after(code, {"Retry-After": header} if header else {}) == seconds

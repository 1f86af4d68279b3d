"""Names of live clusters: what is asked of a server, and what comes of one that answers badly or never."""

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.k8s.kinds import KINDS
from tests.cluster.https_server import Answer, HttpsServer
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.serving import Serve
from tests.completion.offers import SHORT_SECONDS, lines, values
from tests.completion.table_server import TableServer

POD = {
    "kind": "Pod",
    "metadata": {"name": "web-0", "namespace": "shop"},
    "spec": {"containers": [{"name": "web"}, {"name": "log"}], "initContainers": [{"name": "setup"}]},
}
ROWS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "/api/v1/namespaces": [{"Name": "shop", "Status": "Active"}, {"Name": "kube-system"}],
    "/api/v1/nodes": [
        {"Name": "worker-1", "Status": "Ready"},
        {"Name": "worker-2", "Status": "NotReady"},
    ],
    "/api/v1/namespaces/shop/pods": [
        {"Name": "web-0", "Status": "Running", "Node": "worker-1"},
        {"Name": "web-1", "Status": "Pending"},
    ],
    "/api/v1/pods": [{"Name": "web-0"}, {"Name": "coredns"}, {"Name": "web-0"}],
    "/apis/apps/v1/namespaces/shop/deployments": [{"Name": "api"}],
    "/apis/batch/v1/namespaces/shop/cronjobs": [{"Name": "nightly"}],
}
OBJECTS = {
    "/api/v1/namespaces/shop/pods/web-0": POD,
    "/apis/apps/v1/namespaces/shop/deployments/api": {
        "kind": "Deployment",
        "metadata": {"name": "api"},
        "spec": {"template": {"spec": {"containers": [{"name": "api"}]}}},
    },
}

TARGETS = [f"{kind.names[0]}/" for kind in KINDS.values()]
"""What `top` may begin with, without a cluster."""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config"


@pytest.fixture
def server(serve: Serve, config: Path) -> HttpsServer:
    started = serve(TableServer(ROWS, OBJECTS))
    write(config, kubeconfig(started, namespace="shop"))
    return started


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-n", ""], ["shop\tActive", "kube-system", ":4"]),
        (["--node", "worker-"], ["worker-1\tReady", "worker-2\tNotReady", ":4"]),
        (["explain", "pod/"], ["pod/web-0\tRunning, worker-1", "pod/web-1\tPending", ":4"]),
        (["top", "w"], ["web-0\tRunning, worker-1", "web-1\tPending", ":4"]),
        (["top", "no", "worker-2"], ["worker-2\tNotReady", ":4"]),
        (["explain", "-A", "pod/"], ["pod/web-0", "pod/coredns", ":4"]),
        (["explain", "-A", "-n", "shop", "pod/co"], ["pod/coredns", ":4"]),
        (["set", "deploy", ""], ["api", ":4"]),
        (["set", "cj/"], ["cj/nightly", ":4"]),
        (["set", "pod/web-0", "-c", ""], ["web", "log", "setup", ":4"]),
        (["set", "deploy/api", "-c", ""], ["api", ":4"]),
        (["simulate", "--grow", "pod/web-1"], ["pod/web-1=\tPending", ":6"]),
    ],
    ids=" ".join,
)
def test_one_small_request_is_sent(
    server: HttpsServer, config: Path, words: list[str], expected: list[str]
) -> None:
    assert lines("--kubeconfig", str(config), *words) == expected
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["explain", "--node", "worker-1", "pod/"],
        ["simulate", "-A", "node/worker-1", "--grow", "pod/"],
    ],
    ids=" ".join,
)
def test_pods_of_a_node_are_chosen_by_the_server(server: HttpsServer, config: Path, words: list[str]) -> None:
    assert lines("--kubeconfig", str(config), *words)
    (request,) = server.requests
    assert request.path == "/api/v1/pods"
    assert request.query["fieldSelector"] == "spec.nodeName=worker-1"


@pytest.mark.parametrize(
    "words",
    [[""], ["--"], ["top", "-o", ""], ["tree", ""], ["compare", "--to", ""], ["--context", ""]],
    ids=" ".join,
)
def test_what_is_known_without_a_server_is_not_requested(
    server: HttpsServer, config: Path, words: list[str]
) -> None:
    assert values("--kubeconfig", str(config), *words)
    assert not server.requests


def test_flags_name_the_server_and_the_user(server: HttpsServer, config: Path, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(server.authority.certificate)
    flags = ("-s", server.url, "--certificate-authority", str(tmp_path / "ca.crt"), "--token=mine")
    found = values("--kubeconfig", str(config), *flags, "--as=eve", "--as-group=a", "explain", "pod/web-1")
    assert found == ["pod/web-1"]
    (request,) = server.requests
    assert request.token == "mine"
    assert request.headers["impersonate-user"] == "eve"
    assert request.headers["impersonate-group"] == "a"


def test_names_of_a_kubeconfig(server: HttpsServer, config: Path) -> None:
    given = ("--kubeconfig", str(config))
    assert values(*given, "--context", "") == ["test"]
    assert values(*given, "--cluster=") == ["test-cluster"]
    assert values(*given, "--user", "test") == ["test-user"]
    assert not server.requests


@pytest.mark.parametrize(
    "answer",
    [
        Answer(401, b'{"kind":"Status"}'),
        Answer(403, b'{"kind":"Status","message":"no"}'),
        Answer(404, b"404 page not found\n", "text/plain"),
        Answer(429, b"later", headers={"Retry-After": "3600"}),
        Answer(500, b"\xff\x00"),
        Answer(200, b""),
        Answer(200, b"<html>log in</html>", "text/html"),
        Answer(200, b"[]"),
        Answer(200, b"null"),
        Answer(200, b'{"kind":"Table","columnDefinitions":[],"rows":[{"cells":[]}]}'),
        Answer(200, b'{"columnDefinitions":[{"name":"Name","format":"name"}],"rows":[{"cells":[[{}]]}]}'),
        Answer(200, b'{"columnDefinitions":[{"name":"Node"}],"rows":[{"cells":[null]},{"cells":7}]}'),
        Answer(200, b'{"rows":', promised_bytes=1000),
        Answer(hangs_up=True),
        Answer(raw=b"SSH-2.0-OpenSSH\r\n"),
        Answer(302, b"", headers={"Location": "https://127.0.0.1:1/"}),
    ],
    ids=lambda answer: f"{answer.status}-{answer.body[:12]!r}",
)
def test_a_bad_answer_leaves_what_is_known_without_it(serve: Serve, config: Path, answer: Answer) -> None:
    write(config, kubeconfig(serve(lambda _: answer)))
    assert lines("--kubeconfig", str(config), "top", "") == [*TARGETS, ":6"]
    assert lines("--kubeconfig", str(config), "explain", "pod/") == [":4"]
    assert lines("--kubeconfig", str(config), "set", "pod/a", "-c", "") == [":4"]


def test_a_server_is_requested_again_only_with_other_credentials(serve: Serve, config: Path) -> None:
    server = serve(lambda _: Answer(503, b"", headers={"Retry-After": "0"}))
    write(config, kubeconfig(server))
    assert values("--kubeconfig", str(config), "explain", "pod/") == []
    assert len(server.requests) == 1


def _never(_: object) -> Iterator[bytes]:
    while True:
        yield b" "


@pytest.mark.parametrize(
    "answer",
    [lambda _: Answer(delay_seconds=3600), lambda _: Answer(chunks=_never(None))],
    ids=["silent", "endless"],
)
def test_a_server_that_does_not_end_is_left_in_time(
    serve: Serve, config: Path, answer: Callable[[object], Answer]
) -> None:
    write(config, kubeconfig(serve(answer)))
    assert values("--kubeconfig", str(config), "top", "", seconds=SHORT_SECONDS) == TARGETS


def test_nobody_there(config: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        closed = one.getsockname()[1]
    write(config, kubeconfig(f"https://127.0.0.1:{closed}"))
    assert values("--kubeconfig", str(config), "top", "") == TARGETS


def test_a_listener_that_never_answers_is_left_in_time(config: Path) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as one:
        write(config, kubeconfig(f"https://127.0.0.1:{one.getsockname()[1]}"))
        found = values("--kubeconfig", str(config), "top", "", seconds=SHORT_SECONDS)
    assert found == TARGETS


@pytest.mark.parametrize("content", ["{", "a: [", "kind: Pod", "contexts: 7", "\x00", ""])
def test_a_broken_kubeconfig_leaves_what_is_known_without_it(config: Path, content: str) -> None:
    config.write_text(content)
    assert values("--kubeconfig", str(config), "top", "") == TARGETS
    assert values("--kubeconfig", f"{config}.none", "top", "") == TARGETS


@pytest.mark.parametrize(
    "name",
    [
        "a\tb",
        "a\nb",
        "a\n:1",
        "\x1b[31mred",
        "a\u202eb",
        "$(touch x)",
        "`id`",
        "a;b",
        "a'b",
        'a"b',
        "a\\b",
        "a*",
        "a&b",
        " a",
        "",
        "!1",
    ],
)
def test_names_that_a_shell_would_read_otherwise_are_left_out(serve: Serve, config: Path, name: str) -> None:
    rows = {"/api/v1/namespaces/default/pods": [{"Name": name}, {"Name": "web", "Status": f"x{name}"}]}
    write(config, kubeconfig(serve(TableServer(rows))))
    found = lines("--kubeconfig", str(config), "kills", "")
    assert [line.partition("\t")[0] for line in found[-2:]] == ["web", ":6"]
    assert all(line.replace("\t", "", 1).isprintable() for line in found)
    assert not any(line.startswith(name) for line in found if name)


@pytest.mark.parametrize("name", ["arn:aws:eks:eu:1/a", "me@there", "my own", "grün", ":4"])
def test_names_of_contexts_may_hold_much(config: Path, name: str) -> None:
    write(config, kubeconfig("https://127.0.0.1:1", context=name))
    assert lines("--kubeconfig", str(config), "--context", "") == [name, ":4"]

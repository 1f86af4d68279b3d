"""What -f and -k name: URLs within limits and only over https, and what kubectl kustomize builds."""

import gzip
import lzma
import sys
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path

import pytest

from kubectl_qos.cluster import inputs
from kubectl_qos.cluster.files import FileSource
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.snapshot import Scope
from tests.cluster.certificates import Authority
from tests.cluster.https_server import Answer, HttpsServer, Request
from tests.cluster.kubectl import needs_kubectl
from tests.end_to_end.command import Run

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

POD = b"kind: Pod\napiVersion: v1\nmetadata: {name: far}\nspec: {containers: [{name: a, image: x}]}\n"

Serve = Callable[[Callable[[Request], Answer]], HttpsServer]


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts a server whose CA is the machine's."""
    started: list[HttpsServer] = []

    def start(answer: Callable[[Request], Answer]) -> HttpsServer:
        authority = Authority()
        (tmp_path / "ca.crt").write_bytes(authority.certificate)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.crt"))
        monkeypatch.setenv("no_proxy", "*")
        started.append(HttpsServer(answer, tmp_path, authority).__enter__())
        return started[-1]

    yield start
    for server in started:
        server.__exit__(None, None, None)


def names(path: str) -> list[str]:
    return [pod.name for pod in FileSource([path]).snapshot(Scope()).pods]


def refusal(path: str) -> str:
    with pytest.raises(InputError) as caught:
        FileSource([path])
    return str(caught.value)


def test_a_manifest_is_read_from_a_url(serve: Serve) -> None:
    server = serve(lambda _: Answer(body=POD))
    assert names(f"{server.url}/pod.yaml") == ["far"]


def test_redirects_are_followed_within_https(serve: Serve) -> None:
    server = serve(
        lambda request: (
            Answer(body=POD) if request.path == "/new" else Answer(status=302, headers={"Location": "/new"})
        )
    )
    assert names(f"{server.url}/old") == ["far"]


@pytest.mark.parametrize("target", ["http://127.0.0.1/pod.yaml", "file:///etc/passwd", "ftp://127.0.0.1/x"])
def test_redirects_never_leave_https(serve: Serve, target: str) -> None:
    server = serve(lambda _: Answer(status=302, headers={"Location": target}))
    said = refusal(f"{server.url}/x")
    assert said.startswith("unable to read URL")
    assert target in said
    assert server.paths() == ["/x"]


def test_the_user_of_a_url_is_not_sent_where_it_redirects(serve: Serve) -> None:
    moved = Answer(status=302, headers={"Location": "/new"})
    server = serve(lambda request: Answer(body=POD) if request.path == "/new" else moved)
    assert names(server.url.replace("https://", "https://me:p%40ss@") + "/old") == ["far"]
    sent, redirected = server.requests
    assert sent.headers["authorization"] == "Basic bWU6cEBzcw=="
    assert "authorization" not in redirected.headers


@pytest.mark.parametrize(
    ("by", "pack"), [("gzip", gzip.compress), ("xz", lzma.compress), ("zstd", zstd.compress)]
)
def test_what_is_packed_is_unpacked(
    run: Run, monkeypatch: pytest.MonkeyPatch, by: str, pack: Callable[[bytes], bytes]
) -> None:
    (run.home / "pod.json.packed").write_bytes(pack(POD))
    (run.home / "cut").write_bytes(pack(POD)[:40])
    assert run("top", "-f", "pod.json.packed", "-o", "name").out == "pod/far\n"
    assert run("top", "-f", "cut").err == f"error: cut: damaged: {by} cannot unpack it\n"
    written = run("set", "-f", "pod.json.packed", "--limits", "memory=1Gi", "--write")
    assert "only plain UTF-8 is written" in written.err
    monkeypatch.setattr(inputs, "MAX_UNPACKED_BYTES", 9)
    assert "more than 0 GiB unpacked" in run("top", "-f", "pod.json.packed").err


def test_plain_http_is_refused_before_anything_is_sent() -> None:
    assert (
        refusal("http://127.0.0.1/x.yaml")
        == 'unable to read URL "http://127.0.0.1/x.yaml": only https is read'
    )


def test_an_error_is_in_the_words_of_kubectl(serve: Serve) -> None:
    url = f"{serve(lambda _: Answer(status=404)).url}/x.yaml"
    assert refusal(url) == f'unable to read URL "{url}", server reported 404 Not Found, status code=404'


def test_what_is_too_large_is_given_up(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"{serve(lambda _: Answer(body=POD * 20_000)).url}/x.yaml"
    monkeypatch.setattr(inputs, "MAX_URL_BYTES", 1 << 20)
    assert refusal(url) == f'unable to read URL "{url}": more than 1 MiB'


def test_what_never_ends_is_given_up(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"{serve(lambda _: Answer(chunks=repeat(b'# more'))).url}/x.yaml"
    monkeypatch.setattr(inputs, "URL_SECONDS", 1.0)
    assert refusal(url) == f'unable to read URL "{url}": not done in 1 seconds'


def test_a_certificate_that_nobody_trusts_is_refused(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"{serve(lambda _: Answer(body=POD)).url}/x.yaml"
    monkeypatch.delenv("SSL_CERT_FILE")
    assert "certificate verify failed" in refusal(url)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


@needs_kubectl
def test_a_kustomization_is_built_by_kubectl(run: Run) -> None:
    (run.home / "base").mkdir()
    (run.home / "base" / "pod.yaml").write_bytes(POD)
    (run.home / "base" / "kustomization.yaml").write_text("resources: [pod.yaml]\nnamePrefix: dev-\n")
    assert run("top", "-k", "base", "-o", "name").out == "pod/dev-far\n"
    assert run("set", "--kustomize", "base", "--limits", "memory=1Gi", "-o", "yaml").code == 0


@needs_kubectl
def test_a_folder_without_a_kustomization_is_refused_as_kubectl_does(run: Run) -> None:
    (run.home / "empty").mkdir()
    ended = run("explain", "-k", "empty")
    assert ended.code == 1
    assert ended.err.startswith("error: unable to find one of 'kustomization.yaml', 'kustomization.yml' or")


def test_without_kubectl_the_remedy_is_named(run: Run) -> None:
    ended = run("top", "-k", ".", variables={"PATH": str(run.home)})
    assert ended.code == 1
    assert ended.err.splitlines() == [
        "error: building a kustomization needs kubectl or kustomize, and neither is in PATH",
        "hint: install kubectl, or pipe the output of another build to -f -",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-f", "x", "-k", "y"], "error: only one of -f or -k can be specified"),
        (["-k", "y", "--demo"], "error: --demo and -k cannot be used together"),
        (
            ["--demo", "--context", "x"],
            "error: --context and --demo cannot be used together: --demo replaces the cluster",
        ),
        (
            ["-f", "x", "--kubeconfig", "y"],
            "error: --kubeconfig and -f cannot be used together: -f replaces the cluster",
        ),
    ],
)
def test_sources_that_exclude_each_other(run: Run, words: list[str], message: str) -> None:
    ended = run("top", *words)
    assert (ended.code, ended.err.splitlines()[0]) == (2, message)


def test_a_url_is_not_written(run: Run) -> None:
    ended = run("set", "-f", "https://127.0.0.1/x.yaml", "--limits", "memory=1Gi", "--write")
    assert ended.code == 2
    assert "--write" in ended.err

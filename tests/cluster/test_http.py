"""Lists in pages, and what a server refuses: in kubectl's words, and what is worth another try."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.cli import output
from kubectl_qos.cluster.http import PART_BYTES, PageItems, _meta, _unzipped, api_error, retry_after
from kubectl_qos.cluster.kube_api import KubeApi
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.objects import JsonDecoder
from kubectl_qos.k8s.snapshot import Arrived
from kubectl_qos.k8s.usage import usage_by_pod
from kubectl_qos.present.format import escape
from tests.cluster.cluster_objects import metrics, node, pod
from tests.cluster.conftest import ConnectTo, PageSize
from tests.cluster.https_server import Answer, Request
from tests.cluster.kubeconfigs import inline, kubeconfig, write
from tests.cluster.kubectl import SAMPLE, needs_kubectl, said_by_kubectl
from tests.cluster.object_server import ObjectServer, status
from tests.cluster.replay import Replay, answer_of, exchanges, recorded
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
@pytest.mark.parametrize("name", [*REFUSED][:: min(2, SAMPLE)])
def test_refusals_read_as_in_kubectl(
    serve: Serve, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    answer = REFUSED[name]
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


REC = "/api/v1/namespaces/rec/pods"


def names(found: Sequence[Any]) -> list[str]:
    return [one.metadata.name for one in found]


def recorded_names(name: str) -> list[str]:
    return [item["metadata"]["name"] for item in recorded(name)["response"]["body"]["items"]]


def test_a_recorded_list_is_decoded_whole(connect_to: ConnectTo) -> None:
    api = KubeApi(connect_to(Replay()))
    found = api.pods(namespace="rec")
    assert names(found) == recorded_names("pods-list-ns")
    assert len(found) == 8


def test_pages_give_the_same_as_one_list(serve: Serve, connect_to: ConnectTo, page_size: PageSize) -> None:
    objects = ObjectServer(pods=[pod(f"p{number:02}") for number in range(25)])
    server = serve(objects)
    api = KubeApi(connect_to(server))
    whole = api.pods()
    page_size(4)
    assert api.pods() == whole
    assert names(whole) == [f"p{number:02}" for number in range(25)]
    queries = [request.query for request in server.requests]
    assert [query["limit"] for query in queries] == ["500"] + ["4"] * 7
    assert len({query.get("continue") for query in queries[1:]}) == 7


def test_the_recorded_first_pages_are_continued_by_their_token(
    serve: Serve, connect_to: ConnectTo, page_size: PageSize
) -> None:
    page_size(3)
    server = serve(Replay())
    with pytest.raises(ApiError, match="nothing was recorded"):
        KubeApi(connect_to(server)).pods(namespace="rec")
    tokens = [request.query.get("continue") for request in server.requests]
    first, second = (
        recorded(name)["response"]["body"]["metadata"]["continue"]
        for name in ("pods-list-limit-page1", "pods-list-limit-page2")
    )
    assert tokens == [None, first, second]


def test_a_list_that_expires_is_requested_again_in_one_piece(
    serve: Serve, connect_to: ConnectTo, page_size: PageSize
) -> None:
    page_size(3)
    server = serve(Replay(without={"pods-list-limit-page2"}))
    found = KubeApi(connect_to(server)).pods(namespace="rec")
    assert names(found) == recorded_names("pods-list-ns")
    assert [sorted(request.query) for request in server.requests] == [
        ["limit", "resourceVersion"],
        ["continue", "limit"],
        ["resourceVersion"],
    ]


def test_an_expired_list_leaves_nothing_of_its_first_pages_behind(
    connect_to: ConnectTo, page_size: PageSize
) -> None:
    page_size(2)
    objects = ObjectServer(pods=[pod(f"p{number}") for number in range(9)])
    objects.expire_after = 2
    found = KubeApi(connect_to(objects)).pods()
    assert names(found) == [f"p{number}" for number in range(9)]


def test_an_answer_that_is_always_gone_ends_the_list(serve: Serve, connect_to: ConnectTo) -> None:
    objects = ObjectServer()
    objects.faults[PODS] = Answer(410, b"{}")
    server = serve(objects)
    with pytest.raises(ApiError) as caught:
        KubeApi(connect_to(server)).pods()
    assert caught.value.status == 410
    assert len(server.requests) == 2


def test_progress_counts_what_arrived_and_what_is_to_come(connect_to: ConnectTo, page_size: PageSize) -> None:
    page_size(2)
    objects = ObjectServer(pods=[pod(f"p{number}") for number in range(5)])
    seen: list[tuple[list[str], Arrived]] = []
    listed = KubeApi(connect_to(objects)).pods(
        progress=lambda pods, arrived: seen.append((names(pods), arrived))
    )
    assert [name for new, _ in seen for name in new] == names(listed), "each once"
    counts = [(arrived.items, arrived.total) for _, arrived in seen]
    assert list(dict.fromkeys(counts)) == [(1, None), (2, 5), (3, 5), (4, 5), (5, None)]
    sizes = [arrived.size_bytes for _, arrived in seen]
    assert sizes == sorted(sizes)
    assert sizes[-1] > sum(len(json.dumps(one, separators=(",", ":"))) for one in objects.pods) - 200


def test_a_recorded_label_selector(connect_to: ConnectTo) -> None:
    found = KubeApi(connect_to(Replay())).pods(namespace="rec", label_selector="app=guaranteed")
    assert names(found) == ["guaranteed"]


def test_selectors_arrive_as_they_were_written(connect_to: ConnectTo) -> None:
    objects = ObjectServer(
        pods=[
            pod("a", labels={"app": "web", "tier": "front"}),
            pod("b", labels={"app": "api", "tier": "back"}, node="worker-2"),
            pod("c", labels={"tier": "x y"}, node="worker-2"),
        ]
    )
    api = KubeApi(connect_to(objects))
    assert names(api.pods(label_selector="app in (web,api),tier!=back")) == ["a"]
    assert names(api.pods(label_selector="!app")) == ["c"]
    assert names(api.pods(field_selector="spec.nodeName=worker-2,metadata.name=b")) == ["b"]


def test_a_namespace_stays_one_segment_of_the_path(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(ObjectServer())
    assert KubeApi(connect_to(server)).pods(namespace="../nodes?x") == []
    assert server.paths() == ["/api/v1/namespaces/..%2Fnodes%3Fx/pods"]


def test_all_pages_come_over_one_connection(serve: Serve, connect_to: ConnectTo, page_size: PageSize) -> None:
    page_size(1)
    server = serve(ObjectServer(pods=[pod(f"p{number}") for number in range(9)]))
    KubeApi(connect_to(server)).pods()
    assert len(server.requests) == 9
    assert server.connections == 1


def test_large_pages_are_compressed_unless_the_kubeconfig_says_otherwise(
    serve: Serve, connect_to: ConnectTo
) -> None:
    padded = [pod(f"p{number}") | {"padding": "x" * 1000} for number in range(200)]
    server = serve(ObjectServer(pods=padded))
    assert len(KubeApi(connect_to(server)).pods()) == 200
    assert server.requests[-1].headers["accept-encoding"] == "gzip"
    plain = {"certificate-authority-data": inline(server.authority.certificate), "disable-compression": True}
    assert len(KubeApi(connect_to(server, cluster=plain)).pods()) == 200
    assert server.requests[-1].headers["accept-encoding"] == "identity"


@given(st.binary(max_size=2000), st.integers(1, 700))
def test_a_zipped_body_is_read_in_parts_whatever_their_size(text: bytes, size: int) -> None:
    zipped = gzip.compress(text)
    parts = [zipped[start : start + size] for start in range(0, len(zipped), size)]
    assert b"".join(_unzipped(iter(parts), "x")) == text
    with pytest.raises(QosError, match="breaks off"):
        list(_unzipped(iter([zipped[:-1]]), "x"))


def test_a_zipped_body_needs_no_room_for_all_of_it() -> None:
    parts = list(_unzipped(iter([gzip.compress(bytes(5 * PART_BYTES))]), "x"))
    assert max(map(len, parts)) <= PART_BYTES
    assert sum(map(len, parts)) == 5 * PART_BYTES


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (Answer(200, b'{"items": [', content_type="application/json"), "cannot be read: the list breaks off"),
        (
            Answer(200, b'{"items": [{"metadata": {"name": 7}}]}'),
            r"Expected `str`, got `int`.*metadata\.name",
        ),
        (
            Answer(200, b'{"items": [{"spec": {"containers": [{"resources": {"limits": {"cpu": "x"}}}]}}]}'),
            "quantities must match",
        ),
    ],
    ids=["cut off", "wrong type", "wrong quantity"],
)
def test_an_answer_that_is_no_list_is_named(connect_to: ConnectTo, answer: Answer, sentence: str) -> None:
    objects = ObjectServer()
    objects.faults[PODS] = answer
    with pytest.raises(QosError, match=sentence) as caught:
        KubeApi(connect_to(objects)).pods()
    assert "the server's answer for /api/v1/pods" in str(caught.value)
    assert "proxy" in caught.value.hint


def test_the_next_page_is_found_wherever_the_metadata_is(serve: Serve, connect_to: ConnectTo) -> None:
    last = json.dumps({"metadata": {}, "items": [pod("b")]}).encode()
    odd = json.dumps({"items": [pod("a")], "metadata": {"continue": 'quote " and \\ slash'}}).encode()
    objects = ObjectServer()
    objects.faults[PODS] = lambda request: Answer(body=last if "continue" in request.query else odd)
    server = serve(objects)
    assert names(KubeApi(connect_to(server)).pods()) == ["a", "b"]
    assert server.requests[1].query["continue"] == 'quote " and \\ slash'


def test_the_next_page_is_known_before_this_one_is_decoded() -> None:
    head = b'{"kind":"PodList","metadata":{"continue":"t"},"items":[ not decoded yet'
    assert _meta(head, head).continue_token == "t"


def test_a_server_that_never_gets_on_does_not_keep_us_for_ever(serve: Serve, connect_to: ConnectTo) -> None:
    objects = ObjectServer()
    objects.faults[PODS] = Answer(200, b'{"metadata": {"continue": "again"}, "items": []}')
    server = serve(objects)
    with pytest.raises(QosError, match="repeats its continue token"):
        KubeApi(connect_to(server)).pods()
    assert len(server.requests) == 2


def test_nodes_and_metrics(connect_to: ConnectTo, page_size: PageSize) -> None:
    page_size(2)
    objects = ObjectServer(
        nodes=[node(f"n{number}") for number in range(3)],
        metrics=[metrics("a", "2048Ki"), metrics("b", "5M", namespace="other"), metrics("c", "1.5Gi")],
    )
    api = KubeApi(connect_to(objects))
    assert names(api.nodes()) == ["n0", "n1", "n2"]
    usage = usage_by_pod(api.pod_metrics())
    assert {key: found.working_set_bytes for key, found in usage.items()} == {
        ("shop", "a"): 2 << 20,
        ("other", "b"): 5_000_000,
        ("shop", "c"): 3 << 29,
    }
    assert list(usage_by_pod(api.pod_metrics("other"))) == [("other", "b")]


def test_the_recorded_version_and_node(connect_to: ConnectTo) -> None:
    api = KubeApi(connect_to(Replay()))
    assert api.server_version() == recorded("version")["response"]["body"]["gitVersion"]
    capacity = api.node("node-00001").status.capacity
    assert capacity is not None
    assert str(capacity["memory"]) == recorded("node-get")["response"]["body"]["status"]["capacity"]["memory"]


def page(*items: object, spaces: str = "", metadata_last: bool = False) -> bytes:
    """A page as a server writes it, or as a proxy might rewrite it."""
    separators = (f",{spaces}", f":{spaces}")
    parts = {"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": list(items)}
    if metadata_last:
        parts["metadata"] = parts.pop("metadata")
    return json.dumps(parts, separators=separators).encode()


nested = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8) | st.just("metadata"), inner),
    max_leaves=8,
)
like_pods: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({"name": st.text()})},
    optional={"spec": nested, "items": nested, "status": st.just([{}, {"metadata": {}}, {"metadata": {}}])},
)


@given(st.lists(like_pods, max_size=4), st.integers(1, 300), st.sampled_from(["", " "]), st.booleans())
def test_a_page_is_cut_into_the_items_that_it_has(
    items: list[Any], size: int, spaces: str, metadata_last: bool
) -> None:
    """However it is written, wherever its parts break, whatever looks like the place between two items."""
    body = page(*items, spaces=spaces, metadata_last=metadata_last)
    cut: PageItems[Any] = PageItems(JsonDecoder(list[Any]), "x")
    found = [one for start in range(0, len(body), size) for one in cut.feed(body[start : start + size])]
    rest, meta = cut.close()
    assert found + rest == items
    assert meta.resource_version == "9"


def test_items_are_decoded_while_the_page_arrives() -> None:
    """So that a list in one piece, as the watch cache sends it, never needs room for its JSON."""
    body = page(*({"metadata": pod(f"p{number}")["metadata"]} for number in range(10)))
    cut: PageItems[Any] = PageItems(JsonDecoder(list[Any]), "x")
    assert len(cut.feed(body[: len(body) // 2])) in {4, 5}
    assert len(cut.feed(body[len(body) // 2 :])) in {4, 5}
    assert len(cut.close()[0]) == 1


@given(st.integers(0, 400))
def test_a_page_that_breaks_off_is_never_a_shorter_list(length: int) -> None:
    body = page(*(pod(f"p{number}") for number in range(3)))
    length = min(length, len(body) - 1)
    cut: PageItems[Any] = PageItems(JsonDecoder(list[Any]), "x")
    with pytest.raises(QosError):
        (cut.feed(body[:length]), cut.close())


def test_one_shot_lists_come_from_the_watch_cache(
    serve: Serve, connect_to: ConnectTo, page_size: PageSize
) -> None:
    page_size(2)
    server = serve(ObjectServer(pods=[pod(f"p{number}") for number in range(5)], nodes=[node("n")]))
    api = KubeApi(connect_to(server))
    api.pods()
    api.nodes()
    versions = [request.query.get("resourceVersion") for request in server.requests]
    assert versions == ["0", None, None, "0"], "a continue token names its own revision"

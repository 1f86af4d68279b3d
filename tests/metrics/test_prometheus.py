"""The client against answers made by hand: what is sent, what is read, and a sentence for every fault."""

import gzip
import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from kubectl_qos.errors import InputError, QosError, ServerUnreachable, UsageError
from kubectl_qos.metrics import prometheus
from kubectl_qos.metrics.prometheus import MAX_POINTS, Prometheus, Sample, parse_selector
from kubectl_qos.metrics.series import UsageHistory, read_now
from kubectl_qos.transport import StoreOptions
from kubectl_qos.transport.client import connect_store
from tests.cluster.https_server import Answer, HttpsServer, Request
from tests.cluster.serving import Serve
from tests.end_to_end.command import Run

StoreOf = Callable[..., tuple[Prometheus, HttpsServer]]
CADVISOR = "container_memory_working_set_bytes"


@pytest.fixture
def store_of(serve: Serve, tmp_path: Path) -> StoreOf:
    """A client of a server that answers so; the options are those of a store."""

    def start(
        answer: Answer | Callable[[Request], Answer],
        matchers: str = "",
        timeout: str | None = None,
        **options: Any,
    ) -> tuple[Prometheus, HttpsServer]:
        server = serve(answer if callable(answer) else lambda _: answer)
        ca = tmp_path / "ca.pem"
        ca.write_bytes(server.authority.certificate)
        url = options.pop("url", server.url)
        connection = connect_store(StoreOptions(url, ca_file=str(ca), **options), timeout)
        return Prometheus(connection, "the store", matchers), server

    return start


def vector(*results: tuple[dict[str, str], float | str], **more: Any) -> Answer:
    found = [{"metric": labels, "value": [1.5, str(value)]} for labels, value in results]
    return success({"resultType": "vector", "result": found}, **more)


def success(data: dict[str, Any], **more: Any) -> Answer:
    return Answer(200, json.dumps({"status": "success", "data": data, **more}).encode())


def refusal(status: int, kind: str, text: str) -> Answer:
    return Answer(status, json.dumps({"status": "error", "errorType": kind, "error": text}).encode())


def form(request: Request) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(request.body.decode()).items()}


def test_a_query_is_a_post_of_a_form(store_of: StoreOf) -> None:
    store, server = store_of(vector(({"a": "b"}, 2)))
    ((labels, value),) = store.query('up{x="ä"}', 12.5)
    assert (labels, value) == ({"a": "b"}, 2.0)
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/api/v1/query")
    assert form(request) == {"query": 'up{x="ä"}', "time": "12.500"}
    store.query("up")
    assert "time" not in form(server.requests[-1])


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        ({"token": "secret"}, "authorization", "Bearer secret"),
        ({"username": "ann", "password": "pw"}, "authorization", "Basic YW5uOnB3"),
        ({"org_id": "team-a"}, "x-scope-orgid", "team-a"),
    ],
)
def test_credentials(store_of: StoreOf, options: dict[str, str], name: str, value: str) -> None:
    store, server = store_of(vector(), **options)
    store.query("up")
    assert server.requests[0].headers[name] == value


def test_a_name_and_a_path_in_the_url(store_of: StoreOf, serve: Serve) -> None:
    store, server = store_of(vector())
    url = server.url.replace("https://", "https://ann:p%40w@") + "/prometheus/"
    store = Prometheus(connect_store(StoreOptions(url, insecure_skip_verify=True)), "the store")
    store.query("up")
    assert server.requests[0].path == "/prometheus/api/v1/query"
    assert server.requests[0].headers["authorization"] == "Basic YW5uOnBAdw=="


def test_a_range_has_no_more_points_than_a_server_allows(store_of: StoreOf) -> None:
    points = [[0, "1"], [60, "NaN"], [120, "3"]]
    store, server = store_of(
        success({"resultType": "matrix", "result": [{"metric": {"a": "b"}, "values": points}]})
    )
    (series,) = store.query_range("up", 0, 30 * 86_400, 1)
    assert list(series.points) == [(0, 1), (120, 3)]
    sent = form(server.requests[0])
    assert 30 * 86_400 / float(sent["step"]) < MAX_POINTS
    assert sent["nocache"] == "1", "VictoriaMetrics would go on beyond the end"


def test_only_queries_are_posted() -> None:
    connection = connect_store(StoreOptions("http://127.0.0.1:1"))
    with pytest.raises(QosError, match="is not sent: it is no query"):
        connection.query("/api/v1/admin/tsdb/delete_series", {})


def test_values_that_are_no_numbers_are_left_out(store_of: StoreOf) -> None:
    store, _ = store_of(vector(({"a": "1"}, "NaN"), ({"a": "2"}, "+Inf"), ({"a": "3"}, 3), ({"a": "4"}, "x")))
    assert [sample.value for sample in store.query("up")] == [3.0]


@pytest.mark.parametrize(
    ("answer", "sentence", "hint"),
    [
        (
            refusal(422, "execution", "query processing would load too many samples into memory"),
            "the store refuses the query (422 execution): query processing would load too many samples",
            "a shorter --over",
        ),
        (refusal(400, "bad_data", "parse error"), "refuses the query (400 bad_data): parse error", ""),
        (refusal(503, "timeout", "query timed out"), "refuses the query (503 timeout)", "a shorter --over"),
        (refusal(401, "", "no org id"), "the store refuses this user (401): no org id", "credentials"),
        (
            Answer(404, b"404 page not found"),
            "does not answer like Prometheus (404)",
            "leave /api/v1 out of the URL",
        ),
        (Answer(200, b"<html>login</html>"), "does not answer like Prometheus (200)", "leave /api/v1"),
        (Answer(200, b'{"a":' + b"[" * 9999), "does not answer like Prometheus (200)", "leave /api/v1"),
        (success({"result": [{"metric": 1}]}), "does not answer like Prometheus (200)", "leave /api/v1"),
    ],
)
def test_a_sentence_for_a_refusal(store_of: StoreOf, answer: Answer, sentence: str, hint: str) -> None:
    store, _ = store_of(answer)
    with pytest.raises(QosError) as raised:
        store.query("up")
    assert sentence in str(raised.value)
    assert hint in raised.value.hint


def test_a_store_that_is_down() -> None:
    store = Prometheus(connect_store(StoreOptions("http://127.0.0.1:1")), "the store")
    with pytest.raises(ServerUnreachable, match="refused"):
        store.query("up")


@pytest.mark.parametrize("is_zipped", [False, True], ids=["endless", "gzip bomb"])
def test_an_answer_is_read_up_to_a_bound(
    store_of: StoreOf, monkeypatch: pytest.MonkeyPatch, is_zipped: bool
) -> None:
    """An answer that has no end, and one of 64 MiB in 64 KiB."""
    monkeypatch.setattr(prometheus, "MAX_BYTES", 1 << 20)
    bomb = gzip.compress(b'{"data": "' + bytes(64 << 20))
    answer = (
        Answer(200, bomb, headers={"Content-Encoding": "gzip"})
        if is_zipped
        else Answer(chunks=repeat(b" " * 4096))
    )
    store, _ = store_of(answer)
    tracemalloc.start()
    with pytest.raises(QosError, match="the store answers with more than 1 MiB") as raised:
        store.query("up")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20
    assert "a shorter --over" in raised.value.hint


def test_a_zipped_answer(store_of: StoreOf) -> None:
    plain = vector(({"a": "b"}, 2))
    store, _ = store_of(replace(plain, body=gzip.compress(plain.body), headers={"Content-Encoding": "gzip"}))
    assert store.query("up") == [Sample({"a": "b"}, 2)]


def test_a_slow_store(store_of: StoreOf) -> None:
    store, _ = store_of(Answer(200, b"{", promised_bytes=10), timeout="1ms")
    with pytest.raises(ServerUnreachable):
        store.query("up")


def test_series_of_several_clusters_are_refused(store_of: StoreOf) -> None:
    store, _ = store_of(vector(({"cluster": "eu"}, 1), ({"cluster": "us"}, 1), ({}, 1)))
    with pytest.raises(InputError, match="several clusters: eu, us") as raised:
        store.query("up")
    assert raised.value.hint == "--prometheus-selector cluster=eu selects one"


def test_a_selector_becomes_matchers() -> None:
    assert parse_selector('cluster=prod, env == a"b') == 'cluster="prod",env="a\\"b"'
    for text in ("cluster", "cluster~eu", "=eu", "a-b=c"):
        with pytest.raises(UsageError, match="selects no series"):
            parse_selector(text)


def answers(**by_text: Answer) -> Callable[[Request], Answer]:
    """Answers by a word of the query, the first that is in it; else an empty vector."""

    def answer(request: Request) -> Answer:
        query = form(request)["query"]
        return next((found for word, found in by_text.items() if word in query), vector())

    return answer


def sample(labels: dict[str, str], value: float) -> tuple[dict[str, str], float]:
    return {"__name__": CADVISOR, **labels}, value


@pytest.mark.parametrize(
    "labels",
    [
        {"namespace": "shop", "pod": "web", "container": "app"},
        {
            "namespace": "monitoring",
            "pod": "ksm",
            "container": "ksm",
            "exported_namespace": "shop",
            "exported_pod": "web",
            "exported_container": "app",
        },
    ],
)
def test_labels_with_and_without_honor_labels(store_of: StoreOf, labels: dict[str, str]) -> None:
    pause = {**labels, "container": "POD", "exported_container": "POD"}
    whole = {"namespace": "shop", "pod": "web"}
    store, _ = store_of(
        answers(by=vector(sample(labels, 5), sample(labels, 7), sample(pause, 1), sample(whole, 9)))
    )
    (usage,) = read_now(store).by_pod.items()
    assert usage[0] == ("shop", "web")
    assert (usage[1].names, usage[1].working_set_bytes) == (("app",), 7)


@pytest.mark.parametrize(
    ("answer", "what", "why"),
    [
        (answers(), "memory usage", "has no container_memory_working_set_bytes"),
        (answers(by=refusal(422, "execution", "too many samples")), "memory usage", "too many samples"),
        (
            answers(
                vector=vector(({}, 9)),
                quantile=refusal(422, "execution", "too many samples"),
                by=vector(sample({"pod": "a", "container": "c"}, 1)),
            ),
            "the history of memory usage",
            "too many samples",
        ),
    ],
)
def test_what_is_missing_is_said_and_the_rest_stands(
    store_of: StoreOf, answer: Callable[[Request], Answer], what: str, why: str
) -> None:
    store, _ = store_of(answer)
    usage = UsageHistory(store, 3600, "max").read()
    assert usage.missing is not None
    assert usage.missing.what == what
    assert why in usage.missing.why
    assert bool(usage.by_pod) is (what != "memory usage")


def test_warnings_and_partial_answers_are_passed_on(store_of: StoreOf) -> None:
    memory = sample({"pod": "a", "container": "c"}, 1)

    def answer(request: Request) -> Answer:
        if request.path.endswith("query_range"):
            return success({"result": []}, warnings=["no StoreAPI matched"])
        return vector(memory, isPartial="rss" in form(request)["query"])

    store, _ = store_of(answer)
    missing = UsageHistory(store, 3600).read().missing
    assert missing is not None
    assert missing.why == ("the store warns: some of its storage nodes did not answer; no StoreAPI matched")


def test_the_clock_of_the_store_counts(store_of: StoreOf, tmp_path: Path) -> None:
    _, server = store_of(answers(**{"vector(time())": vector(({}, 1_600_000_000))}))
    settings = tmp_path / "settings.yaml"
    store = f"{{url: '{server.url}', insecure_skip_verify: true, org_id: a}}"
    settings.write_text(f"contexts:\n  '*': {{prometheus: {store}}}\n")
    run, variables = Run(tmp_path), {"KUBECTL_QOS_CONFIG": str(settings)}
    done = run("next", "--prometheus", server.url, "--at", "2026-01-01", variables=variables)
    assert done.code == 2
    assert "is in the future: by the clock of Prometheus it is 2020-09-13T12:26:40Z" in done.err
    done = run("next", "--prometheus", server.url, "--at", "1h", variables=variables)
    assert "s ahead of Prometheus, whose clock is used" in done.err
    assert "THE PAST: the cluster at 2020-09-13T11:26:40Z" in done.err
    assert server.requests[-1].headers["x-scope-orgid"] == "a"

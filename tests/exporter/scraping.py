"""Samples of an exposition, and an exporter without threads."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Thread

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from kubectl_qos.cluster.source import LIVE, Update
from kubectl_qos.exporter.collector import ClusterSamples, Exporter
from kubectl_qos.exporter.server import Server, WebConfigFile
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from tests.demo.living import Stepped

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def parsed(parts: Iterable[bytes], content_type: str = "text/plain") -> Samples:
    """The samples of an exposition by name and labels."""
    text = b"".join(parts)
    parse = parse_openmetrics if "openmetrics" in content_type else parse_text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parse(text.decode())
        for sample in family.samples
    }


def samples_of(samples: ClusterSamples) -> Samples:
    """Those of nodes and pods."""
    return parsed(text for _, text in samples.families())


def named(samples: Samples, name: str) -> list[tuple[Mapping[str, str], float]]:
    """The labels and values of one name, without the prefix."""
    return [(dict(labels), value) for (one, labels), value in samples.items() if one == f"kubectl_qos_{name}"]


def exporter_of(demo: Stepped, per_pod: int | None = 5, scope: Scope | None = None) -> Exporter:
    """An exporter that has seen the demo as it is now; nothing follows it."""
    exporter = Exporter(demo, scope or Scope(), per_pod)
    show(exporter, demo.snapshot(Scope()), scope)
    return exporter


def show(exporter: Exporter, snapshot: Snapshot, scope: Scope | None = None) -> None:
    """One update."""
    exporter.accept(Update(snapshot, scope or Scope(), LIVE, exporter._source.now()))


@contextmanager
def served(exporter: Exporter, web_config: str | None = None) -> Iterator[Server]:
    """A server at a free port of loopback."""
    server = Server("127.0.0.1", 0, exporter, WebConfigFile(web_config))
    thread = Thread(target=lambda: server.serve_forever(0.01), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.end()
        thread.join(5)

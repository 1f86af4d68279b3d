"""A real Prometheus scrapes the exporter, evaluates the rules, runs the dashboard's queries, and alerts."""

import json
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest
import yaml

from kubectl_qos.analysis.pod_table import build_rows
from kubectl_qos.exporter.collector import FAMILIES, KILLS, Exporter
from kubectl_qos.k8s.snapshot import Scope
from tests.demo.living import Stepped
from tests.exporter.scraping import exporter_of, served, show
from tests.exporter.test_deploy import DEPLOY, rules_text
from tests.exporter.test_server import HASH, PASSWORD

T = TypeVar("T")
PROMETHEUS, ALERTMANAGER = shutil.which("prometheus"), shutil.which("prometheus-alertmanager")
pytestmark = [
    pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not installed: make programs"),
    pytest.mark.skipif(
        ALERTMANAGER is None, reason="prometheus-alertmanager is not installed: make programs"
    ),
]
DOCUMENTATION = DEPLOY.parent / "docs" / "exporter.md"
SECONDS = 30.0
VARIABLES = {"$cluster": ".*", "$node": ".*", "$__rate_interval": "1m"}


class Stack(NamedTuple):
    """What runs, and the alerts that came."""

    url: str
    demo: Stepped
    exporter: Exporter
    alerts: list[dict[str, Any]]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The result of an instant query. Raises HTTPError for one that cannot be run."""
        words = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{words}", timeout=SECONDS) as response:
            answer = json.load(response)
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found


def eventually(look: Callable[[], T]) -> T:
    """What is found once it is there."""
    end = time.monotonic() + SECONDS
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def running(words: Sequence[str | Path], url: str) -> Iterator[None]:
    """A server that runs meanwhile, from when it is ready."""

    def is_ready() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=SECONDS) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    log = Path(words[1].partition("=")[2] if isinstance(words[1], str) else words[1]).with_suffix(".log")
    with log.open("wb") as file, subprocess.Popen(words, stdout=file, stderr=file) as process:
        try:
            eventually(is_ready)
            yield
        finally:
            process.kill()


@contextmanager
def receiver() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A webhook, and the alerts that it got."""
    got: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.extend(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["alerts"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=lambda: server.serve_forever(0.05), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/", got
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("prometheus")
    demo = Stepped()
    exporter = exporter_of(demo, None)
    web, rules, manager, config = (folder / f"{name}.yml" for name in ("web", "rules", "manager", "config"))
    web.write_text(yaml.safe_dump({"basic_auth_users": {"prometheus": HASH}}))
    groups = yaml.safe_load(rules_text())
    for group in groups["groups"]:
        for rule in group["rules"]:
            rule.pop("for", None)
    rules.write_text(yaml.safe_dump(groups))
    with ExitStack() as entered:
        server = entered.enter_context(served(exporter, str(web)))
        hook, alerts = entered.enter_context(receiver())
        route = {"receiver": "hook", "group_wait": "0s", "group_interval": "1s", "group_by": ["..."]}
        receivers = [{"name": "hook", "webhook_configs": [{"url": hook, "send_resolved": True}]}]
        manager.write_text(yaml.safe_dump({"route": route, "receivers": receivers}))
        alerting, serving = free_port(), free_port()
        documented = yaml.safe_load(
            re.findall(r"(?s)```yaml\n(rule_files.*?)```", DOCUMENTATION.read_text())[0]
        )
        scraped = {"targets": [f"127.0.0.1:{server.server_address[1]}"]}
        documented["scrape_configs"][0] |= {
            "basic_auth": {"username": "prometheus", "password": PASSWORD},
            "static_configs": [scraped],
        }
        config.write_text(
            yaml.safe_dump(
                {
                    "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                    **documented,
                    "rule_files": [str(rules)],
                    "alerting": {
                        "alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{alerting}"]}]}]
                    },
                }
            )
        )
        base = f"--storage.path={folder / 'manager'}", "--cluster.listen-address="
        address = f"127.0.0.1:{alerting}"
        words = [str(ALERTMANAGER), f"--config.file={manager}", *base, f"--web.listen-address={address}"]
        entered.enter_context(running(words, f"http://{address}"))
        address = f"127.0.0.1:{serving}"
        stored = f"--storage.tsdb.path={folder / 'tsdb'}"
        words = [str(PROMETHEUS), f"--config.file={config}", stored, f"--web.listen-address={address}"]
        entered.enter_context(running(words, f"http://{address}"))
        found = Stack(f"http://{address}", demo, exporter, alerts)
        eventually(lambda: found.query("count_over_time(up[1m]) >= 3 and up == 1"))
        yield found


def test_it_has_every_metric_and_the_ranks_of_top(stack: Stack) -> None:
    names = {one["metric"]["__name__"] for one in stack.query('{__name__=~"kubectl_qos_.*"}')}
    assert {family.sample_name for family in (*FAMILIES, KILLS)} <= names
    ranks = {
        (one["metric"]["node"], one["metric"]["namespace"], one["metric"]["pod"]): int(one["value"][1])
        for one in stack.query("kubectl_qos_pod_kill_rank")
    }
    rows = build_rows(stack.demo.snapshot(Scope()), Scope()).rows
    assert ranks == {(row.node, row.pod.namespace, row.name): row.rank for row in rows if row.rank}


def queries() -> list[str]:
    """Of the dashboard, and of its variables."""
    dashboard = json.loads((DEPLOY / "components/dashboard/dashboard.json").read_text())
    found = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(found) > 10
    for name, text in VARIABLES.items():
        found = [one.replace(name, text) for one in found]
    return found


@pytest.mark.parametrize("expression", queries())
def test_every_query_of_the_dashboard_has_an_answer(stack: Stack, expression: str) -> None:
    assert "$" not in expression
    assert stack.query(expression)


def test_every_record_has_a_value(stack: Stack) -> None:
    records = [
        rule["record"]
        for group in yaml.safe_load(rules_text())["groups"]
        for rule in group["rules"]
        if "record" in rule
    ]
    assert records
    for name in records:
        eventually(lambda name=name: stack.query(name))  # type: ignore[misc]


def test_an_alert_fires_and_resolves_through_alertmanager(stack: Stack) -> None:
    def came(status: str) -> list[dict[str, Any]]:
        return [
            one
            for one in stack.alerts
            if (one["labels"]["alertname"], one["status"]) == ("KubectlQosInversion", status)
        ]

    eventually(lambda: came("firing"))
    before = stack.demo.snapshot(Scope())
    show(stack.exporter, replace(before, pods=[pod for pod in before.pods if pod.node_name != "worker-1"]))
    resolved = eventually(lambda: came("resolved"))
    assert [one["labels"]["node"] for one in resolved] == ["worker-1"]
    assert resolved[0]["labels"]["severity"] == "info"
    assert "worker-1" in resolved[0]["annotations"]["summary"]

"""A Prometheus and a VictoriaMetrics with the made history, each started once."""

import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cluster.serving import ConnectTo, authority, connect_to, own_home, serve
from tests.metrics.history import DAY, exposition

__all__ = ["ConnectTo", "authority", "connect_to", "own_home", "serve"]

READY_SECONDS = 30


class Store(NamedTuple):
    """A store, and the Unix time at which its day begins."""

    url: str
    begin: int


@pytest.fixture(scope="session")
def begin() -> int:
    """Two minutes before now the day has ended, so that no sample is in the future."""
    return int(time.time()) // 60 * 60 - 120 - DAY


@pytest.fixture(scope="session", params=["prometheus", "victoria-metrics"])
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, begin: int
) -> Iterator[Store]:
    """Each of the real stores."""
    folder = tmp_path_factory.mktemp("store")
    start = {"prometheus": _prometheus, "victoria-metrics": _victoria}[request.param]
    with start(folder, begin) as url:
        yield Store(url, begin)


@contextmanager
def _prometheus(folder: Path, begin: int) -> Iterator[str]:
    _require("prometheus", "promtool")
    text = folder / "history.txt"
    with text.open("w") as file:
        file.writelines(exposition(begin))
        file.write("# EOF\n")
    words = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(folder / "data")]
    subprocess.run([*words, "--max-block-duration=24h"], check=True, capture_output=True)
    (folder / "prometheus.yml").touch()
    port = _free_port()
    options = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with _running(folder, "prometheus", *options, f"--web.listen-address=127.0.0.1:{port}"):
        url = f"http://127.0.0.1:{port}"
        _wait_for(f"{url}/-/ready")
        yield url


@contextmanager
def _victoria(folder: Path, begin: int) -> Iterator[str]:
    _require("victoria-metrics")
    port = _free_port()
    options = [
        f"-storageDataPath={folder}/data",
        f"-httpListenAddr=127.0.0.1:{port}",
        "-memory.allowedBytes=64MB",
    ]
    with _running(folder, "victoria-metrics", *options):
        url = f"http://127.0.0.1:{port}"
        _wait_for(f"{url}/health")
        body = "".join(exposition(begin, unit=1000)).encode()
        urllib.request.urlopen(f"{url}/api/v1/import/prometheus", body).read()
        urllib.request.urlopen(f"{url}/internal/force_flush").read()
        yield url


def _require(*programs: str) -> None:
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} is not installed: make programs")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def _running(folder: Path, *words: str) -> Iterator[None]:
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait(READY_SECONDS)


def _wait_for(url: str) -> None:
    """Until it answers; a refused connection answers at once, so a pause is between two attempts."""
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            urllib.request.urlopen(url).read()
        except (urllib.error.URLError, OSError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return

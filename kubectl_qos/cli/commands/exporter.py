"""`kubectl qos exporter`: predictions as metrics for Prometheus."""

from __future__ import annotations

import argparse
import gc
import signal
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_qos.cli import output
from kubectl_qos.cli.flags import parse_past_seconds, whole_number
from kubectl_qos.cli.sources import SourceNeeds, resolve_source
from kubectl_qos.errors import QosError, UsageError

if TYPE_CHECKING:
    from kubectl_qos.cli.options import SourceOptions

DEFAULT_LISTEN: Final = "127.0.0.1:9857"
DEFAULT_PER_POD: Final = 5
DEFAULT_MAX_STALE_SECONDS: Final = 300
_LAST_PORT: Final = 0xFFFF
DESCRIPTION: Final = (
    "Serve the next deaths, the kill order and past kills as metrics for Prometheus, for every namespace"
    " unless -n is given. Only reads the cluster. Needs pip install 'kubectl-qos[exporter]'."
)
EXAMPLES: Final = """\
examples:
  kubectl qos exporter --demo          # look at the metrics, on http://127.0.0.1:9857/metrics
  kubectl qos exporter --listen :9857  # in a cluster: deploy/ has the manifests
  kubectl qos exporter --shard 0/3     # a third of the nodes; two more processes have the others
"""


class Options(NamedTuple):
    """What is exported, and where it is served; `per_pod` is None for all pods."""

    source: SourceOptions
    listen: tuple[str, int]
    web_config_file: str | None
    per_pod: int | None
    max_stale: int
    shard: tuple[int, int] | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `exporter`."""
    parser.add_argument(
        "--listen",
        type=_parse_listen,
        default=_parse_listen(DEFAULT_LISTEN),
        metavar="HOST:PORT",
        help=f"the address to listen on (default: {DEFAULT_LISTEN}); :9857 listens on all addresses",
    )
    parser.add_argument(
        "--web.config.file",
        dest="web_config_file",
        metavar="FILE",
        help="TLS and basic authentication, as Prometheus' own exporters read them",
    )
    parser.add_argument(
        "--per-pod",
        type=_parse_per_pod,
        default=DEFAULT_PER_POD,
        metavar="N|all",
        help=f"metrics of the first N pods in each node's kill order (default: {DEFAULT_PER_POD})",
    )
    parser.add_argument(
        "--max-stale",
        type=parse_past_seconds,
        default=DEFAULT_MAX_STALE_SECONDS,
        metavar="DURATION",
        help="/readyz fails if the API server has not answered for this long (default: 5m)",
    )
    parser.add_argument(
        "--shard",
        type=_parse_shard,
        metavar="I/N",
        help="serve only shard I of N, counted from 0; each process holds only the pods of its shard",
    )


def _parse_listen(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdecimal()) or int(port) > _LAST_PORT:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an address: write HOST:PORT, or :PORT for all addresses"
        )
    return host.removeprefix("[").removesuffix("]"), int(port)


def _parse_per_pod(text: str) -> int | None:
    return None if text == "all" else whole_number("a number of pods: write 5, or all", 0)(text)


def _parse_shard(text: str) -> tuple[int, int]:
    parts = text.split("/")
    numbers = [int(part) for part in parts if part.isascii() and part.isdecimal() and len(part) <= 9]
    if text.count("/") == 1 and len(numbers) == 2 and numbers[0] < numbers[1]:
        return numbers[0], numbers[1]
    raise argparse.ArgumentTypeError(f"{text!r} is not a shard: write 0/3, 1/3 or 2/3 for three shards")


def run(options: Options) -> int:
    """Serve until SIGTERM, with exit code 0, or ctrl-c. Raises QosError."""
    from importlib.util import find_spec

    for package in ("prometheus_client", "bcrypt"):
        if find_spec(package) is None:
            raise QosError(
                f"kubectl qos exporter needs {package}; pip install 'kubectl-qos[exporter]' brings it"
            )
    if "-" in options.source.files:
        raise UsageError("exporter does not support -f -: standard input does not change")
    from kubectl_qos.exporter.collector import Exporter
    from kubectl_qos.exporter.server import Server, WebConfigFile
    from kubectl_qos.k8s.snapshot import Shard

    every_namespace = options.source.namespace is None
    source = options.source._replace(all_namespaces=every_namespace)
    shard = Shard(*options.shard) if options.shard is not None else None
    resolved = resolve_source(source, SourceNeeds(progress=False, ids="none", living_demo=True))
    scope = resolved.scope._replace(shard=shard)
    exporter = Exporter(resolved.source, scope, options.per_pod, options.max_stale)
    server = Server(*options.listen, exporter, WebConfigFile(options.web_config_file))
    output.notes(resolved.notes)
    gc.enable()
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    exporter.start()
    threading.Thread(target=server.serve_forever, name="qos-server", daemon=True).start()
    output.print_lines([f"Starting to serve on {server.url}"])
    try:
        ended.wait()
    finally:
        server.end()
        exporter.close()
    return 0

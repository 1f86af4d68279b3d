"""Connections by words of a command line, as a person writes them."""

from pathlib import Path

from kubectl_qos.cli.main import parse
from kubectl_qos.cli.options import SourceOptions, parse_options
from kubectl_qos.cli.sources import open_connection
from kubectl_qos.transport.client import Connection


def connected_by(kubeconfig: Path | str | None, *words: str) -> Connection:
    """What `kubectl qos top` would talk to."""
    where = ["--kubeconfig", str(kubeconfig)] if kubeconfig is not None else []
    return open_connection(parse_options(SourceOptions, parse(["top", *where, *words])))

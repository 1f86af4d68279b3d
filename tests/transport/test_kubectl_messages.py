"""What kubectl refuses before it sends a request is refused in its words; what it accepts is accepted.

The sentences are in kubectl_messages.yaml, so that they hold where kubectl is not installed, and are compared
with kubectl's own where it is.
"""

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from kubectl_qos.errors import QosError
from tests.cluster.commanding import connected_by
from tests.cluster.kubectl import SAMPLE, needs_kubectl, said_by_kubectl

SERVER = "https://127.0.0.1:1"
REFUSED = "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?"
ROWS = yaml.safe_load(Path(__file__).with_name("kubectl_messages.yaml").read_text(encoding="utf-8"))


class Case(NamedTuple):
    """Flags given with a kubeconfig, and the sentences of the error."""

    messages: list[str]
    flags: list[str]


def config(row: dict[str, Any]) -> str:
    """The kubeconfig of a row: as it says, or with one context `c`, cluster `cl` and user `u`."""
    if "config" in row:
        return str(row["config"])
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "cl", "cluster": {"server": SERVER, **row.get("cluster", {})}}],
            "users": [{"name": "u", "user": row.get("user", {"token": "t"})}],
            "contexts": [{"name": "c", "context": {"cluster": "cl", "user": "u"}}],
            **row.get("top", {}),
        }
    )


@pytest.fixture(params=ROWS, ids=[row["name"] for row in ROWS])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    """One case with its kubeconfig written to `config`."""
    row = request.param
    (tmp_path / "config").write_text(config(row))

    def here(texts: list[str]) -> list[str]:
        return [text.replace("{folder}", str(tmp_path)) for text in texts]

    return Case(here(row.get("messages", [REFUSED])), here(row.get("flags", [])))


def test_our_messages(case: Case, tmp_path: Path) -> None:
    with pytest.raises(QosError) as caught:
        connected_by(tmp_path / "config", *case.flags).request("GET", "/version")
    assert [str(caught.value), *getattr(caught.value, "__notes__", ())] == case.messages


@needs_kubectl
@pytest.mark.parametrize("case", ROWS[::SAMPLE], ids=[row["name"] for row in ROWS[::SAMPLE]], indirect=True)
def test_kubectls_messages(case: Case, tmp_path: Path) -> None:
    said = said_by_kubectl(tmp_path / "config", *case.flags, "get", "--raw", "/version")
    for sentence, theirs in zip(case.messages, sentences(said), strict=True):
        assert theirs.startswith(sentence)


def sentences(said: str) -> list[str]:
    """Each sentence of kubectl's, without what it puts before one or several."""
    lines = said.removeprefix("error: ").removeprefix("Error in configuration: ").splitlines()
    return [line.removeprefix("* ") for line in lines if line]

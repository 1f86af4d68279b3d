"""Who may write: commands that change something, unless a flag or the settings of the context forbid it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_qos.cli.options import SourceOptions
from kubectl_qos.cli.resources import resolve_source
from kubectl_qos.config.settings import ContextSettings, Settings
from kubectl_qos.errors import QosError
from kubectl_qos.transport import ConnectionOptions
from tests.cluster.kubeconfigs import kubeconfig, write

ANY = Settings()
NONE = Settings(readonly=True)
ALL_BUT_ONE = Settings(readonly=True, contexts={"maintenance": ContextSettings(readonly=False)})
PRODUCTION = Settings(contexts={"prod-*": ContextSettings(readonly=True)})


@pytest.mark.parametrize(
    ("may_write", "settings", "context", "expected"),
    [
        (False, ANY, "test", False),
        (True, ANY, "test", True),
        (True, None, "test", True),
        (True, NONE, "test", False),
        (True, ALL_BUT_ONE, "test", False),
        (True, ALL_BUT_ONE, "maintenance", True),
        (False, ALL_BUT_ONE, "maintenance", False),
        (True, PRODUCTION, "prod-1", False),
        (True, PRODUCTION, "test", True),
    ],
)
def test_who_may_write(
    tmp_path: Path, may_write: bool, settings: Settings | None, context: str, expected: bool
) -> None:
    config = write(tmp_path / "config", kubeconfig("https://127.0.0.1:1", context=context))
    options = SourceOptions(ConnectionOptions(kubeconfig=str(config)))
    source = resolve_source(options, may_write=may_write, settings=settings, progress=False).source
    if expected:
        assert source.writer().context == context
    else:
        with pytest.raises(QosError, match="read-only"):
            source.writer()


def test_the_settings_of_the_person_count_where_no_others_are_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("readonly: true\n")
    monkeypatch.setenv("KUBECTL_QOS_CONFIG", str(settings))
    config = write(tmp_path / "config", kubeconfig("https://127.0.0.1:1"))
    source = resolve_source(SourceOptions(ConnectionOptions(kubeconfig=str(config))), may_write=True).source
    with pytest.raises(QosError):
        source.writer()

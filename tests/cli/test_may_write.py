"""Who may write: commands that change something, unless a flag or the settings of the context forbid it."""

from pathlib import Path

import pytest

from kubectl_qos.cli.options import SourceOptions
from kubectl_qos.cli.sources import SourceNeeds, resolve_source
from kubectl_qos.config.settings import ContextSettings, UserSettings
from kubectl_qos.errors import QosError
from kubectl_qos.transport import ConnectionOptions
from tests.cluster.kubeconfigs import kubeconfig, write

ANY = UserSettings()
NONE = UserSettings(readonly=True)
ALL_BUT_ONE = UserSettings(readonly=True, contexts={"maintenance": ContextSettings(readonly=False)})
PRODUCTION = UserSettings(contexts={"prod-*": ContextSettings(readonly=True)})


@pytest.mark.parametrize(
    ("settings", "context", "expected"),
    [
        (None, "test", False),
        (ANY, "test", True),
        (NONE, "test", False),
        (ALL_BUT_ONE, "test", False),
        (ALL_BUT_ONE, "maintenance", True),
        (PRODUCTION, "prod-1", False),
        (PRODUCTION, "test", True),
    ],
)
def test_who_may_write(tmp_path: Path, settings: UserSettings | None, context: str, expected: bool) -> None:
    config = write(tmp_path / "config", kubeconfig("https://127.0.0.1:1", context=context))
    options = SourceOptions(ConnectionOptions(kubeconfig=str(config)))
    source = resolve_source(options, SourceNeeds(write_settings=settings, progress=False)).source
    if expected:
        assert source.writer().context == context
    else:
        with pytest.raises(QosError, match="read-only"):
            source.writer()


@pytest.mark.parametrize(("settings", "expected"), [(None, False), (ANY, True), (NONE, False)])
def test_the_demo_is_changed_by_the_same_rule(settings: UserSettings | None, expected: bool) -> None:
    needs = SourceNeeds(write_settings=settings, living_demo=True)
    source = resolve_source(SourceOptions(demo=True), needs).source
    if expected:
        assert source.writer().context == "demo"
    else:
        with pytest.raises(QosError, match="demo is read-only"):
            source.writer()


def test_commands_see_the_first_moment_of_the_demo() -> None:
    resolved = resolve_source(SourceOptions(demo=True))
    assert (resolved.source.is_live, resolved.changes_persist) == (False, False)
    with pytest.raises(QosError, match="demo is no cluster"):
        resolved.source.writer()

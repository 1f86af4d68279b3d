import sys
from pathlib import Path

import pytest

from kubectl_qos.config import config_file, state_dir, state_path


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBECTL_QOS_CONFIG", "KUBECTL_QOS_STATE", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.skipif(sys.platform != "linux", reason="the folders of Linux")
def test_the_folders_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert config_file() == Path("/home/ada/.config/kubectl-qos/config.yaml")
    assert state_dir() == Path("/home/ada/.local/state/kubectl-qos")
    assert state_path("state.json") == Path("/home/ada/.local/state/kubectl-qos/state.json")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/etc/ada")
    monkeypatch.setenv("XDG_STATE_HOME", "/var/ada")
    assert config_file() == Path("/etc/ada/kubectl-qos/config.yaml")
    assert state_dir() == Path("/var/ada/kubectl-qos")


def test_other_places_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("USERPROFILE", "/home/ada")
    monkeypatch.setenv("KUBECTL_QOS_CONFIG", "~/mine.yaml")
    monkeypatch.setenv("KUBECTL_QOS_STATE", "/tmp/here")
    assert config_file() == Path("/home/ada/mine.yaml")
    assert state_path("state.json") == Path("/tmp/here/state.json")


def test_empty_means_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECTL_QOS_CONFIG", "")
    monkeypatch.setenv("KUBECTL_QOS_STATE", "")
    assert config_file() is None
    assert state_dir() is None
    assert state_path("state.json") is None


def test_without_a_home_nothing_is_made_where_we_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_config_path", lambda *_, **__: Path("~/.config/kubectl-qos"))
    monkeypatch.setattr("platformdirs.user_state_path", lambda *_, **__: Path("~/.local/state/kubectl-qos"))
    assert config_file() is None
    assert state_path("state.json") is None


def test_a_home_of_someone_unknown_is_taken_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECTL_QOS_CONFIG", "~no-one-has-this-name/config.yaml")
    assert config_file() == Path("~no-one-has-this-name/config.yaml")

"""Kubeconfig files: found and merged as kubectl does, and each that cannot be used named in one sentence."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_qos.errors import QosError
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport import kubeconfig as kubeconfig_module
from kubectl_qos.transport.client import connect
from kubectl_qos.transport.kubeconfig import ResolvedContext
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.kubectl import needs_kubectl, said_by_kubectl

SERVER = "https://kube.example.com:6443"


def target(path: Path | None = None, context: str | None = None) -> ResolvedContext:
    given = None if path is None else str(path)
    return kubeconfig_module.resolve_context(ConnectionOptions(kubeconfig=given, context=context))


def refused(path: Path | None = None, context: str | None = None) -> QosError:
    with pytest.raises(QosError) as caught:
        target(path, context)
    return caught.value


def with_text(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_the_current_context_decides(tmp_path: Path) -> None:
    path = write(tmp_path / "config", kubeconfig(SERVER, namespace="shop"))
    assert target(path) == ResolvedContext(
        context="test",
        namespace="shop",
        cluster={"server": SERVER},
        user={"token": "admin"},
        cluster_name="test-cluster",
        user_name="test-user",
    )


def test_a_context_without_a_namespace_means_default(tmp_path: Path) -> None:
    path = write(tmp_path / "config", kubeconfig(SERVER))
    assert target(path).namespace == "default"


def test_a_requested_context_wins(tmp_path: Path) -> None:
    config = kubeconfig(SERVER, context="a")
    other = kubeconfig("https://b:1", context="b")
    for name in ("clusters", "users", "contexts"):
        config[name] += other[name]
    path = write(tmp_path / "config", config)
    assert target(path, "b").cluster["server"] == "https://b:1"
    assert target(path).cluster["server"] == SERVER


def test_the_default_file_is_read_without_any_flag() -> None:
    write(Path(os.environ["HOME"]) / ".kube" / "config", kubeconfig(SERVER))
    assert target().context == "test"


def test_the_environment_names_files_and_missing_ones_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "config", kubeconfig(SERVER))
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(["/nowhere", "", str(path)]))
    assert target().context == "test"


def test_of_two_files_the_first_to_name_a_thing_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = kubeconfig("https://first:1", context="a")
    del first["users"]
    second = kubeconfig("https://second:1", context="a", user={"token": "of second"})
    second["current-context"] = "b"
    second["contexts"].append({"name": "b", "context": {"cluster": "a-cluster", "user": "a-user"}})
    paths = [write(tmp_path / "1", first), write(tmp_path / "2", second)]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, paths)))
    found = target()
    assert (found.context, found.cluster["server"]) == ("a", "https://first:1")
    assert found.user == {"token": "of second"}
    assert target(None, "b").cluster["server"] == "https://first:1"


def test_a_first_file_without_a_current_context_leaves_it_to_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = kubeconfig("https://first:1", context="a")
    first["current-context"] = ""
    second = kubeconfig("https://second:1", context="b")
    paths = [write(tmp_path / "1", first), write(tmp_path / "2", second)]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, paths)))
    assert target().context == "b"


@needs_kubectl
def test_kubectl_merges_two_files_the_same_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = kubeconfig("https://first:1", context="a"), kubeconfig("https://second:1", context="b")
    second["clusters"][0]["name"] = "a-cluster"
    second["contexts"][0]["context"]["cluster"] = "a-cluster"
    paths = [write(tmp_path / "1", first), write(tmp_path / "2", second)]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, paths)))
    theirs = yaml.safe_load(said_by_kubectl(None, "config", "view", "--minify", "--raw"))
    found = target()
    assert theirs["current-context"] == found.context
    assert theirs["clusters"][0]["cluster"]["server"] == found.cluster["server"]
    with_b = yaml.safe_load(said_by_kubectl(None, "config", "view", "--minify", "--context", "b"))
    assert with_b["clusters"][0]["cluster"]["server"] == target(None, "b").cluster["server"]


def test_paths_are_relative_to_the_file_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kubeconfig(SERVER, cluster={"certificate-authority": "ca.crt"}, user={})
    del first["users"]
    user = {"client-certificate": "pki/me.crt", "client-key": "/abs/me.key", "tokenFile": "token"}
    second = kubeconfig(SERVER, user=user)
    paths = [write(tmp_path / "one" / "1", first), write(tmp_path / "two" / "2", second)]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, paths)))
    found = target()
    assert found.cluster["certificate-authority"] == str(tmp_path / "one" / "ca.crt")
    assert found.user == {
        "client-certificate": str(tmp_path / "two" / "pki" / "me.crt"),
        "client-key": "/abs/me.key",
        "tokenFile": str(tmp_path / "two" / "token"),
    }


BROKEN = {
    "[]": "the document must be a mapping, not a list",
    "kind: [": "yaml: line 2: did not find expected node content",
    "users:\n- a: b: c": "yaml: line 2: mapping values are not allowed in this context",
    "&top {a: [*top]}": "yaml: exceeded max depth of 200",
    "kind: 7": "kind must be a string, not a number",
    "clusters: {a: b}": "clusters must be a list, not a mapping",
    "users: [{user: {token: 1.5}}]": "users[0].user.token must be a string, not a number",
    "users: [~, {user: {as-user-extra: {a: b}}}]": (
        "users[1].user.as-user-extra[...] must be a list, not a string"
    ),
    "users: [{user: {exec: {args: [true]}}}]": "users[0].user.exec.args[0] must be a string, not a boolean",
    "users: [{user: {auth-provider: {name: [], config: 7}}}]": (
        "users[0].user.auth-provider.name must be a string, not a list"
    ),
    "clusters: [{cluster: {insecure-skip-tls-verify: 'true'}}]": (
        "clusters[0].cluster.insecure-skip-tls-verify must be a boolean, not a string"
    ),
    "clusters: [{name: a}, {name: b}, {name: a}]": 'clusters has the name "a" twice',
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_file(tmp_path: Path, text: str) -> None:
    path = with_text(tmp_path / "config", text)
    assert str(refused(path)) == f'error loading config file "{path}": {BROKEN[text]}'


def test_keys_that_belong_elsewhere_may_have_any_type(tmp_path: Path) -> None:
    """As for kubectl, which ignores them."""
    config = kubeconfig(SERVER, user={"exec": {"command": "x", "env": [{"name": "A", "of": [7]}]}})
    config["clusters"][0] |= {"user": "me", "context": ["a"]}
    config["users"][0] |= {"cluster": SERVER, "context": 7}
    config["contexts"][0] |= {"cluster": "test-cluster", "user": ["me"]}
    path = write(tmp_path / "config", config)
    assert target(path).cluster == {"server": SERVER}
    assert target(path).user["exec"]["env"][0]["name"] == "A"


@pytest.mark.parametrize("data", ["!!", "YWJjZA", "YWJj_-_-", "é"])
@pytest.mark.parametrize("name", ["certificate-authority", "client-certificate"])
def test_data_that_is_not_base64(tmp_path: Path, name: str, data: str) -> None:
    entry = {f"{name}-data": data, "client-key-data": "eA=="}
    config = kubeconfig(SERVER, cluster=entry, user=entry if name == "client-certificate" else None)
    with pytest.raises(QosError, match=f"^{name}-data is not valid base64$"):
        connect(ConnectionOptions(kubeconfig=str(write(tmp_path / "config", config))))


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(b"\xff\xfe\x00\x01")
    assert str(refused(path)).startswith(f'error loading config file "{path}": ')


@needs_kubectl
def test_a_folder_in_place_of_a_file_reads_as_in_kubectl(tmp_path: Path) -> None:
    assert f"error: {refused(tmp_path)}" == said_by_kubectl(tmp_path, "get", "--raw", "/x")


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    assert (
        str(refused(tmp_path)) == f'error loading config file "{tmp_path}": read {tmp_path}: is a directory'
    )


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "config", kubeconfig(SERVER))

    def denied(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    assert str(refused(path)) == f'error loading config file "{path}": open {path}: permission denied'


@needs_kubectl
def test_a_missing_file_reads_as_in_kubectl(tmp_path: Path) -> None:
    path = tmp_path / "none"
    error = refused(path)
    assert f"error: {error}" == said_by_kubectl(path, "get", "--raw", "/x")
    assert "--demo" in error.hint


@needs_kubectl
def test_an_unknown_context_reads_as_in_kubectl(tmp_path: Path) -> None:
    path = write(tmp_path / "config", kubeconfig(SERVER))
    error = refused(path, "other")
    assert f"error: {error}" == said_by_kubectl(path, "--context", "other", "get", "--raw", "/x")
    assert error.hint == "--context takes one of: test"


@pytest.mark.parametrize("text", ["", "---\n", "# nothing\n", "apiVersion: v1\nkind: Config\n"])
def test_an_empty_file_defines_no_contexts(tmp_path: Path, text: str) -> None:
    path = with_text(tmp_path / "config", text)
    assert str(refused(path)) == f"kubeconfig {path} defines no contexts"


def test_without_any_file() -> None:
    assert str(refused()) == "no kubeconfig found and not running in a pod"


def test_broken_files_of_the_environment_are_all_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [with_text(tmp_path / name, "[") for name in ("1", "2")]
    monkeypatch.setenv(
        "KUBECONFIG", os.pathsep.join(map(str, [paths[0], tmp_path / "gone", paths[1], paths[0]]))
    )
    error = refused()
    sentences = [str(error), *error.__notes__]
    why = "yaml: line 2: did not find expected node content"
    assert sentences == [f'error loading config file "{path}": {why}' for path in paths]


def test_files_of_the_environment_that_are_all_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    assert str(refused()) == "no kubeconfig found at /nowhere"


def change(config: dict[str, Any], what: str) -> None:
    if what == "no current-context":
        del config["current-context"]
    elif what == "no cluster":
        config["clusters"] = []
    elif what == "no user":
        config["users"] = None
    elif what == "no server":
        config["clusters"][0]["cluster"] = {}
    else:
        config["contexts"][0]["context"] = None


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("no current-context", "kubeconfig has no current-context"),
        ("no cluster", 'context "test": cluster "test-cluster" does not exist in the kubeconfig'),
        ("no user", 'context "test": user "test-user" does not exist in the kubeconfig'),
        ("no server", 'context "test": cluster "test-cluster" has no server'),
        ("empty context", 'context "test": cluster "" does not exist in the kubeconfig'),
    ],
)
def test_a_context_that_leads_nowhere(tmp_path: Path, what: str, sentence: str) -> None:
    config = kubeconfig(SERVER)
    change(config, what)
    assert str(refused(write(tmp_path / "config", config))) == sentence


def test_a_context_without_a_user_is_anonymous(tmp_path: Path) -> None:
    config = kubeconfig(SERVER)
    del config["contexts"][0]["context"]["user"]
    assert target(write(tmp_path / "config", config)).user == {}


def test_a_pod_uses_its_own_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in {"token": "secret\n", "ca.crt": "ca", "namespace": "shop\n"}.items():
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(kubeconfig_module, "_SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    found = target()
    assert (found.context, found.namespace) == ("in-cluster", "shop")
    assert found.cluster["server"] == "https://10.0.0.1:6443"
    assert found.user == {"tokenFile": str(tmp_path / "token")}
    monkeypatch.setenv("POD_NAMESPACE", "other")
    assert target().namespace == "other"
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    assert target().cluster["server"] == "https://[fd00::1]:6443"


def test_a_kubeconfig_comes_before_the_account_of_the_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("secret")
    monkeypatch.setattr(kubeconfig_module, "_SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    path = write(tmp_path / "config", kubeconfig(SERVER))
    assert target(path).context == "test"

"""What kubectl refuses before it asks anyone is refused in its words; what it takes is taken.

Each sentence stands here, so that it holds where kubectl is not installed, and is compared with kubectl's own
where it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from kubectl_qos.errors import QosError
from tests.cluster.commanding import connected_by
from tests.cluster.kubeconfigs import inline
from tests.cluster.kubectl import needs_kubectl, said_by_kubectl

SERVER = "https://127.0.0.1:1"
V1 = "client.authentication.k8s.io/v1"
PLUGIN = {"apiVersion": V1, "command": "false", "interactiveMode": "Never"}
ISSUER = {"idp-issuer-url": "https://127.0.0.1:1", "client-id": "me"}
REFUSED = "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?"


class Case(NamedTuple):
    """A kubeconfig, flags beside it, and what is said; `{folder}` is the kubeconfig's."""

    config: str
    said: tuple[str, ...]
    flags: tuple[str, ...] = ()


def config(
    cluster: Mapping[str, Any] | None = None, user: Mapping[str, Any] | str | None = None, **top: Any
) -> str:
    """A kubeconfig with one context `c`, cluster `cl` and user `u`."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "cl", "cluster": {"server": SERVER, **(cluster or {})}}],
            "users": [{"name": "u", "user": {"token": "t"} if user is None else user}],
            "contexts": [{"name": "c", "context": {"cluster": "cl", "user": "u"}}],
            **top,
        }
    )


def with_user(**user: Any) -> str:
    return config(user=user)


def with_plugin(**changes: Any) -> str:
    return config(user={"exec": {name: value for name, value in {**PLUGIN, **changes}.items() if value}})


def loading(why: str) -> tuple[str, ...]:
    return (f'error loading config file "{{folder}}/config": {why}',)


def unreadable(what: str, where: str) -> str:
    return f"couldn't get version/kind; json parse error: json: cannot unmarshal {what} into Go {where}"


def gone(what: str, name: str, owner: str) -> str:
    """A file beside the kubeconfig that is not there."""
    return (
        f"unable to read {what} {{folder}}/{name} for {owner} due to open {{folder}}/{name}:"
        " no such file or directory"
    )


def wrong_proxy(url: str, scheme: str) -> str:
    return (
        f'invalid \'proxy-url\' "{url}" for cluster "cl": unsupported scheme "{scheme}",'
        " must be http, https, or socks5"
    )


def of_type(what: str, field: str, kind: str) -> tuple[str, ...]:
    return loading(f"json: cannot unmarshal {what} into Go struct field {field} of type {kind}")


PLUGIN_NEEDS = "must be specified for u to use exec authentication plugin"
NO_KEY = "client-key-data or client-key must be specified for u to use the clientCert authentication method."
CA_TWICE = (
    "certificate-authority-data and certificate-authority are both specified for cl."
    " certificate-authority-data will override."
)
TIMEOUT_WORDS = (
    "Invalid timeout value. Timeout must be a single integer in seconds, or an integer followed by a"
    " corresponding time unit (e.g. 1s | 2m | 3h)"
)
CREDENTIALS = "Unable to connect to the server: getting credentials:"
PAIR = {"client-certificate-data": inline(b"x"), "client-key-data": inline(b"y")}

CASES = {
    # Files.
    "a list": Case("[]\n", loading(unreadable("array", "value of type struct"))),
    "a text": Case("just text\n", loading(unreadable("string", "value of type struct"))),
    "a number": Case("7\n", loading(unreadable("number", "value of type struct"))),
    "a colon": Case("a: b: c\n", loading("yaml: mapping values are not allowed in this context")),
    "a tab": Case("\tkind: Config\n", loading("yaml: found character that cannot start any token")),
    "an open bracket": Case("a: [\n", loading("yaml: line 1: did not find expected node content")),
    "an open bracket below": Case(
        "current-context: a\ncontexts:\n- name: [a\n",
        loading("yaml: line 3: did not find expected ',' or ']'"),
    ),
    "a bad escape": Case('a: b\nc: "\\q"\n', loading("yaml: line 2: found unknown escape character")),
    "a control character": Case("a: \x01\n", loading("yaml: control characters are not allowed")),
    "another kind": Case(config(kind="Pod"), loading('no kind "Pod" is registered for version "v1"')),
    "another version": Case(
        config(apiVersion="v2"), loading('no kind "Config" is registered for version "v2"')
    ),
    "clusters as a map": Case(
        config(clusters={"a": "b"}), of_type("object", "Config.clusters", "[]v1.NamedCluster")
    ),
    "users of text": Case(config(users=["x"]), of_type("string", "Config.users", "v1.NamedAuthInfo")),
    "a user of text": Case(
        config(users=[{"name": "u", "user": "x"}]),
        of_type("string", "NamedAuthInfo.users.user", "v1.AuthInfo"),
    ),
    "a name that is a number": Case(
        config(clusters=[{"name": 7}]), of_type("number", "NamedCluster.clusters.name", "string")
    ),
    "a token that is a number": Case(
        with_user(token=1.5), of_type("number", "AuthInfo.users.user.token", "string")
    ),
    "a token that is a truth": Case(
        with_user(token=True), of_type("bool", "AuthInfo.users.user.token", "string")
    ),
    "a truth that is a text": Case(
        config({"insecure-skip-tls-verify": "true"}),
        of_type("string", "Cluster.clusters.cluster.insecure-skip-tls-verify", "bool"),
    ),
    "groups that are a text": Case(
        with_user(**{"as-groups": "g"}), of_type("string", "AuthInfo.users.user.as-groups", "[]string")
    ),
    "extra that is no list": Case(
        with_user(**{"as-user-extra": {"a": "b"}}),
        of_type("string", "AuthInfo.users.user.as-user-extra", "[]string"),
    ),
    "arguments of numbers": Case(
        with_plugin(args=[1]), of_type("number", "ExecConfig.users.user.exec.args", "string")
    ),
    "an environment as a map": Case(
        with_plugin(env={"a": "b"}), of_type("object", "ExecConfig.users.user.exec.env", "[]v1.ExecEnvVar")
    ),
    "a provider's config of numbers": Case(
        with_user(**{"auth-provider": {"name": "oidc", "config": {"a": 1}}}),
        of_type("number", "AuthProviderConfig.users.user.auth-provider.config", "string"),
    ),
    "no base64": Case(
        config({"certificate-authority-data": "!!"}), loading("illegal base64 data at input byte 0")
    ),
    "base64 that ends early": Case(
        config({"certificate-authority-data": "YWJjZA"}), loading("illegal base64 data at input byte 4")
    ),
    "base64 for URLs": Case(
        config({"certificate-authority-data": "YWJj_-_-"}), loading("illegal base64 data at input byte 4")
    ),
    "a name twice": Case(
        config(clusters=[{"name": "cl"}, {"name": "cl"}]),
        loading(
            'error converting *[]NamedCluster into *map[string]*api.Cluster: duplicate name "cl" in list'
        ),
    ),
    # Clusters.
    "a CA that is not there": Case(
        config({"certificate-authority": "gone"}), (gone("certificate-authority", "gone", "cl"),)
    ),
    "a CA twice": Case(
        config({"certificate-authority": "config", "certificate-authority-data": inline(b"x")}), (CA_TWICE,)
    ),
    "a CA that is none": Case(
        config({"certificate-authority-data": inline(b"x")}),
        ("unable to load root certificates: unable to parse bytes as PEM block",),
    ),
    "a CA that nobody looks at": Case(
        config({"certificate-authority-data": inline(b"x"), "insecure-skip-tls-verify": True}),
        ("specifying a root certificates file with the insecure flag is not allowed",),
    ),
    "a proxy of another kind": Case(config({"proxy-url": "ftp://x"}), (wrong_proxy("ftp://x", "ftp"),)),
    "a proxy without a scheme": Case(
        config({"proxy-url": "proxy:3128"}), (wrong_proxy("proxy:3128", "proxy"),)
    ),
    "a proxy by socks5h": Case(
        config({"proxy-url": "socks5h://x"}), (wrong_proxy("socks5h://x", "socks5h"),)
    ),
    "a proxy that is no URL": Case(
        config({"proxy-url": "http://x:abc"}),
        ('invalid \'proxy-url\' "http://x:abc" for cluster "cl": could not parse: http://x:abc',),
    ),
    "a server of another kind": Case(
        config({"server": "ftp://127.0.0.1:1"}),
        ('Unable to connect to the server: unsupported protocol scheme "ftp"',),
    ),
    "a server with a space": Case(
        config({"server": "https://a b"}), ('host must be a URL or a host:port pair: "https://a b"',)
    ),
    "a server with a port of letters": Case(
        config({"server": "https://a:b"}), ('host must be a URL or a host:port pair: "https://a:b"',)
    ),
    # Users.
    "a token and a name": Case(
        with_user(token="t", username="a", password="b"),
        ("more than one authentication method found for u; found [token basicAuth], only one is allowed",),
    ),
    "a token file that is not there": Case(
        with_user(tokenFile="gone"), ("open {folder}/gone: no such file or directory",)
    ),
    "a certificate without its key": Case(with_user(**{"client-certificate-data": inline(b"x")}), (NO_KEY,)),
    "a certificate that is none": Case(
        with_user(**PAIR), ("tls: failed to find any PEM data in certificate input",)
    ),
    "certificate files that are not there": Case(
        with_user(**{"client-certificate": "gone", "client-key": "away"}),
        (gone("client-cert", "gone", "u"), gone("client-key", "away", "u")),
    ),
    "a certificate and a key twice": Case(
        with_user(**PAIR, **{"client-certificate": "config", "client-key": "config"}),
        (
            "client-cert-data and client-cert are both specified for u. client-cert-data will override.",
            "client-key-data and client-key are both specified for u; client-key-data will override",
        ),
    ),
    "groups without a user": Case(
        with_user(token="t", **{"as-groups": ["g"]}),
        ("requesting uid, groups or user-extra for u without impersonating a user",),
    ),
    "an unknown provider": Case(
        with_user(**{"auth-provider": {"name": "x"}}), ('no Auth Provider found for name "x"',)
    ),
    "a provider without an issuer": Case(
        with_user(**{"auth-provider": {"name": "oidc"}}), ("Must provide idp-issuer-url",)
    ),
    "a provider without a client": Case(
        with_user(**{"auth-provider": {"name": "oidc", "config": {"idp-issuer-url": "https://x"}}}),
        ("Must provide client-id",),
    ),
    "a provider without a token": Case(
        with_user(**{"auth-provider": {"name": "oidc", "config": ISSUER}}),
        ("Unable to connect to the server: No valid id-token, and cannot refresh without refresh-token",),
    ),
    "a provider with a bad token": Case(
        with_user(**{"auth-provider": {"name": "oidc", "config": {**ISSUER, "id-token": "abc"}}}),
        ("Unable to connect to the server: ID Token is not a valid JWT",),
    ),
    # Plugins, as far as they are not run.
    "an empty plugin": Case(
        config(user={"exec": {}}),
        (f"command {PLUGIN_NEEDS}", f"apiVersion {PLUGIN_NEEDS}", f"interactiveMode {PLUGIN_NEEDS}"),
    ),
    "a plugin without a mode": Case(with_plugin(interactiveMode=""), (f"interactiveMode {PLUGIN_NEEDS}",)),
    "a plugin of another mode": Case(
        with_plugin(interactiveMode="Now"), ('invalid interactiveMode for u: "Now"',)
    ),
    "a plugin of the alpha API": Case(
        with_plugin(apiVersion=f"{V1}alpha1"), (f'exec plugin: invalid apiVersion "{V1}alpha1"',)
    ),
    "a plugin with a nameless variable": Case(
        with_plugin(env=[{"value": "x"}]), (f"env variable name {PLUGIN_NEEDS}",)
    ),
    "a plugin and a provider": Case(
        config(user={"exec": PLUGIN, "auth-provider": {"name": "oidc"}}),
        ("authProvider cannot be provided in combination with an exec plugin for u",),
    ),
    "a plugin that fails": Case(
        with_plugin(), (f"{CREDENTIALS} exec: executable false failed with exit code 1",)
    ),
    "a plugin that is not there": Case(
        with_plugin(command="./gone"),
        (f"{CREDENTIALS} exec: fork/exec {{folder}}/gone: no such file or directory",),
    ),
    "a plugin that may not be run": Case(
        with_plugin(command="./config"),
        (f"{CREDENTIALS} exec: fork/exec {{folder}}/config: permission denied",),
    ),
    "a plugin that needs a person": Case(
        with_plugin(interactiveMode="Always"),
        (f"{CREDENTIALS} exec plugin cannot support interactive mode: standard input is not a terminal",),
    ),
    # Flags.
    "an unknown context": Case(config(), ('context "x" does not exist',), ("--context", "x")),
    "an unknown cluster": Case(config(), ('cluster "x" does not exist',), ("--cluster", "x")),
    "an unknown user": Case(config(), ('auth info "x" does not exist',), ("--user", "x")),
    "an unknown user of an unknown context": Case(
        config(), ('auth info "x" does not exist',), ("--user", "x", "--context", "x", "--cluster", "x")
    ),
    "an unknown current context": Case(
        config(contexts=[]), ("context was not found for specified context: c",)
    ),
    "a CA flag and trust in anyone": Case(
        config(),
        ("specifying a root certificates file with the insecure flag is not allowed",),
        ("--insecure-skip-tls-verify", "--certificate-authority", "{folder}/config"),
    ),
    "a CA flag that is not there": Case(
        config(),
        ("unable to read certificate-authority gone for cl due to open gone: no such file or directory",),
        ("--certificate-authority", "gone"),
    ),
    "a certificate flag alone": Case(
        config(),
        (NO_KEY, "unable to read client-cert gone for u due to open gone: no such file or directory"),
        ("--client-certificate", "gone"),
    ),
    "a name beside a token": Case(
        config(),
        ("more than one authentication method found for u; found [token basicAuth], only one is allowed",),
        ("--username", "a"),
    ),
    "a group alone": Case(
        config(),
        ("requesting uid, groups or user-extra for u without impersonating a user",),
        ("--as-group", "g"),
    ),
    "a timeout of letters": Case(config(), (TIMEOUT_WORDS,), ("--request-timeout", "soon")),
    "a timeout without a unit below zero": Case(config(), (TIMEOUT_WORDS,), ("--request-timeout=-1",)),
    "a timeout in days": Case(config(), (TIMEOUT_WORDS,), ("--request-timeout", "1d")),
    # What is taken: the server is asked, and is not there.
    "JSON": Case(json.dumps(yaml.safe_load(config())), (REFUSED,)),
    "a mark of byte order": Case("\ufeff" + config(), (REFUSED,)),
    "a key twice": Case(f"current-context: x\n{config()}", (REFUSED,)),
    "a second document": Case(f"{config()}---\nkind: Pod\n", (REFUSED,)),
    "an unknown tag": Case(f"a: !!python/object:os.system {{}}\n{config()}", (REFUSED,)),
    "no kind": Case(config(kind=None, apiVersion=None), (REFUSED,)),
    "a date for a token": Case(config().replace("token: t", "token: 2020-01-01"), (REFUSED,)),
    "yes for true": Case(
        config({"insecure-skip-tls-verify": True}).replace("verify: true", "verify: yes"), (REFUSED,)
    ),
    "unknown fields, extensions and preferences": Case(
        config(
            {"color": {"a": 1}, "extensions": [{"name": "x", "extension": {"a": 1}}]},
            preferences={"colors": True},
            extensions=[{"name": "x", "extension": 7}],
            more=[1],
        ),
        (REFUSED,),
    ),
    "a token beside its missing file": Case(with_user(token="t", tokenFile="gone"), (REFUSED,)),
    "a plugin beside a token": Case(config(user={"exec": PLUGIN, "token": "t"}), (REFUSED,)),
    "a server without a scheme": Case(config({"server": "127.0.0.1:1"}), (REFUSED,)),
    "a server with a path and a query": Case(config({"server": f"{SERVER}/k8s/c?x=1"}), (REFUSED,)),
    "a server flag for a cluster that is not there": Case(
        config(clusters=[]), (REFUSED,), ("--server", SERVER)
    ),
    "a server flag and a token without a kubeconfig": Case(
        "", (REFUSED,), ("--server", SERVER, "--token", "t")
    ),
    "a cluster and a user without a context": Case(
        config().replace("current-context: c", "current-context: ''"),
        (REFUSED,),
        ("--cluster", "cl", "--user", "u"),
    ),
    "trust in anyone over a CA": Case(
        config({"certificate-authority-data": inline(b"x")}), (REFUSED,), ("--insecure-skip-tls-verify=true",)
    ),
    "a token over a plugin": Case(with_plugin(), (REFUSED,), ("--token", "t")),
    "a token over a token file": Case(with_user(tokenFile="gone"), (REFUSED,), ("--token", "t")),
    "empty flags": Case(config(), (REFUSED,), ("--token", "", "--as", "", "--request-timeout", "")),
    "plain HTTP, where no credentials are sent": Case(
        config({"server": "http://127.0.0.1:1"}, {"exec": PLUGIN}), (REFUSED,)
    ),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    """One case with its kubeconfig written to `config`."""
    found = CASES[request.param]
    (tmp_path / "config").write_text(found.config)
    return Case(
        found.config,
        tuple(sentence.replace("{folder}", str(tmp_path)) for sentence in found.said),
        tuple(flag.replace("{folder}", str(tmp_path)) for flag in found.flags),
    )


def test_what_is_said(case: Case, tmp_path: Path) -> None:
    with pytest.raises(QosError) as caught:
        connected_by(tmp_path / "config", *case.flags).request("GET", "/version")
    assert (str(caught.value), *getattr(caught.value, "__notes__", ())) == case.said


@needs_kubectl
def test_what_kubectl_says(case: Case, tmp_path: Path) -> None:
    said = said_by_kubectl(tmp_path / "config", *case.flags, "get", "--raw", "/version")
    for sentence, theirs in zip(case.said, sentences(said), strict=True):
        assert theirs.startswith(sentence)


def sentences(said: str) -> list[str]:
    """Each sentence of kubectl's, without what it puts before one or several."""
    lines = said.removeprefix("error: ").removeprefix("Error in configuration: ").splitlines()
    return [line.removeprefix("* ") for line in lines if line]

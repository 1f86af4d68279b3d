"""The `oidc` auth provider: an id token, and a new one by the refresh token once it has expired.

Providers may accept a refresh token only once, so new tokens are written to the kubeconfig before they are
used, as kubectl does; a login would be lost otherwise.

Source: k8s.io/client-go/plugin/pkg/client/auth/oidc/oidc.go and tools/clientcmd/config.go (ModifyConfig).
"""

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from kubectl_qos.atomic_file import replace_file
from kubectl_qos.errors import QosError
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.go_decode import GoDecodeError, first_document
from kubectl_qos.transport.kubeconfig import ResolvedContext
from kubectl_qos.transport.net_errors import connection_error
from kubectl_qos.transport.pool import pool_manager
from kubectl_qos.transport.tls import KeyPair, tls_context

EARLY_SECONDS: Final = 10.0
"""A token counts as expired this long before its end, since clocks differ."""
_TIMEOUT_SECONDS: Final = 30.0
_MAX_SHOWN: Final = 80


class OidcTokens:
    """Credentials by an OpenID Connect provider; one thread at a time refreshes tokens."""

    def __init__(self, context: ResolvedContext, pair: KeyPair | None) -> None:
        self._config: dict[str, str] = dict(context.user["auth-provider"].get("config") or {})
        self._user_name = context.user_name
        self._file = context.user_file
        names = ("certificate-authority", "certificate-authority-data")
        self._trust = {name: self._config.get(f"idp-{name}") or "" for name in names}
        self._pair = pair
        self._lock = threading.Lock()
        for name in ("idp-issuer-url", "client-id"):
            if not self._config.get(name):
                raise QosError(f"Must provide {name}")

    def authorization(self) -> str:
        """An id token that is valid for a while, as a header. Raises ServerUnreachable."""
        with self._lock:
            token = self._config.get("id-token") or ""
            if not token or _expiry(token) <= time.time() + EARLY_SECONDS:
                token = self._refresh()
            return f"Bearer {token}"

    def pair(self) -> KeyPair | None:
        """The certificate of the user entry."""
        return self._pair

    def renew(self, refused: str) -> bool:
        """Whether the token has expired since, and was refreshed. Raises ServerUnreachable."""
        return self.authorization() != refused

    def _refresh(self) -> str:
        if not self._config.get("refresh-token"):
            raise connection_error("No valid id-token, and cannot refresh without refresh-token")
        response = self._exchange(self._token_endpoint())
        token = response.get("id_token")
        if not isinstance(token, str):
            raise connection_error(
                'token response did not contain an id_token, either the scope "openid" wasn\'t requested upon'
                " login, or the provider doesn't support id_tokens as part of the refresh response"
            )
        renewed = {**self._config, "id-token": token}
        if response.get("refresh_token"):
            renewed["refresh-token"] = str(response["refresh_token"])
        if self._file is not None:
            _persist(self._file, self._user_name, renewed)
        self._config = renewed
        log.log(log.REQUESTS, "oidc: the id token was refreshed")
        return token

    def _token_endpoint(self) -> str:
        url = f"{self._config['idp-issuer-url'].removesuffix('/')}/.well-known/openid-configuration"
        status, body = self._request("GET", url)
        if status != 200:
            raise connection_error(f"oidc: failed to query metadata endpoint {status}: {_shortened(body)}")
        endpoint = _object(body, "oidc: failed to decode provider discovery object").get("token_endpoint")
        if not isinstance(endpoint, str) or not endpoint:
            raise connection_error("oidc: discovery object doesn't contain a token_endpoint")
        return endpoint

    def _exchange(self, endpoint: str) -> dict[str, Any]:
        form = {"grant_type": "refresh_token", "refresh_token": self._config["refresh-token"]}
        name, secret = self._config["client-id"], self._config.get("client-secret") or ""
        basic = base64.b64encode(f"{quote(name, safe='')}:{quote(secret, safe='')}".encode()).decode()
        status, body = self._request("POST", endpoint, form, f"Basic {basic}")
        if not 200 <= status < 300:
            named = {**form, "client_id": name} | ({"client_secret": secret} if secret else {})
            status, body = self._request("POST", endpoint, named)
        if not 200 <= status < 300:
            raise connection_error(
                f"failed to refresh token: oauth2: cannot fetch token: {status}: {_shortened(body)}"
            )
        return _object(body, "failed to refresh token: oauth2: cannot parse json")

    def _request(
        self, method: str, url: str, form: Mapping[str, str] | None = None, authorization: str = ""
    ) -> tuple[int, bytes]:
        from urllib3 import Timeout
        from urllib3.exceptions import HTTPError

        headers = {"Content-Type": "application/x-www-form-urlencoded"} if form else {}
        if authorization:
            headers["Authorization"] = authorization
        logged = log.LoggedRequest(method, url, headers.items())
        try:
            # The provider is trusted by its own CA, or by the system's: never unverified.
            context = tls_context(self._trust, None) if url.startswith("https") else None
            response = pool_manager(url, context).request(
                method,
                url,
                body=urlencode(form) if form else None,
                headers=headers,
                retries=False,
                timeout=Timeout(_TIMEOUT_SECONDS),
            )
        except ValueError:
            # Its message may repeat what was parsed as a port, and is a password.
            raise connection_error(f"oidc: {log.masked_url(url)} is not a URL") from None
        except (HTTPError, OSError) as error:
            failure = connection_error(f"oidc: {' '.join(str(error).split())}")
            logged.failed(failure)
            raise failure from error
        logged.answered(response)
        return response.status, response.data


def _expiry(token: str) -> float:
    parts = token.split(".")
    if len(parts) != 3:
        raise connection_error("ID Token is not a valid JWT")
    try:
        payload = json.loads(base64.b64decode(parts[1] + "=" * (-len(parts[1]) % 4), altchars=b"-_"))
        return float(payload.get("exp") or 0)
    except (ValueError, TypeError, AttributeError) as error:
        raise connection_error(f"parsing claims: {error}") from None


def _persist(file: Path, user_name: str, config: Mapping[str, str]) -> None:
    import yaml

    try:
        real = file.resolve()
        with _locked(real):
            content = first_document(real.read_bytes())
            for entry in content["users"]:
                if entry["name"] == user_name:
                    entry["user"]["auth-provider"]["config"] = dict(config)
            text: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
            replace_file(real, text.encode(), keep_rights=True)
    except (OSError, GoDecodeError, KeyError, TypeError) as error:
        raise connection_error(f"could not persist new tokens: {error}") from None


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    lock = file.with_name(f"{file.name}.lock")
    lock.touch(mode=0o600, exist_ok=False)
    try:
        yield
    finally:
        lock.unlink()


def _object(body: bytes, problem: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except ValueError as error:
        raise connection_error(f"{problem}: {error}") from None


def _shortened(body: bytes) -> str:
    text = " ".join(body.decode(errors="replace").split())
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."

"""The `oidc` auth provider: an id token, and a new one by the refresh token once it has expired.

Providers may let a refresh token be used only once, so what they return is written to the kubeconfig before
it is used, as kubectl does it; a login would be lost otherwise.

Source: k8s.io/client-go/plugin/pkg/client/auth/oidc/oidc.go and tools/clientcmd/config.go (ModifyConfig).
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from kubectl_qos.errors import QosError, ServerUnreachable
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.client import pool
from kubectl_qos.transport.go_decode import NotYaml, first_document
from kubectl_qos.transport.kubeconfig import ResolvedContext
from kubectl_qos.transport.tls import tls_context

EARLY_SECONDS: Final = 10.0
"""So long before its end a token counts as expired, since clocks differ."""
_ANSWER_SECONDS: Final = 30.0


class OidcTokens:
    """One user's tokens; several threads may ask, one at a time refreshes."""

    def __init__(self, target: ResolvedContext) -> None:
        self._config: dict[str, str] = dict(target.user["auth-provider"].get("config") or {})
        self._user_name = target.user_name
        self._file = target.user_file
        self._lock = threading.Lock()
        for name in ("idp-issuer-url", "client-id"):
            if not self._config.get(name):
                raise QosError(f"Must provide {name}")

    def id_token(self) -> str:
        """A token that holds for a while. Raises ServerUnreachable."""
        with self._lock:
            token = self._config.get("id-token") or ""
            if token and _ends(token) > time.time() + EARLY_SECONDS:
                return token
            if not self._config.get("refresh-token"):
                raise _failed("No valid id-token, and cannot refresh without refresh-token")
            return self._refreshed()

    def _refreshed(self) -> str:
        answer = self._exchanged(self._token_endpoint())
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise _failed(
                'token response did not contain an id_token, either the scope "openid" wasn\'t requested upon'
                " login, or the provider doesn't support id_tokens as part of the refresh response"
            )
        renewed = {**self._config, "id-token": token}
        if answer.get("refresh_token"):
            renewed["refresh-token"] = str(answer["refresh_token"])
        if self._file is not None:
            _persist(self._file, self._user_name, renewed)
        self._config = renewed
        log.log(log.REQUESTS, "oidc: the id token was refreshed")
        return token

    def _token_endpoint(self) -> str:
        url = f"{self._config['idp-issuer-url'].removesuffix('/')}/.well-known/openid-configuration"
        status, body = self._asked("GET", url)
        if status != 200:
            raise _failed(f"oidc: failed to query metadata endpoint {status}: {_short(body)}")
        endpoint = _object(body, "oidc: failed to decode provider discovery object").get("token_endpoint")
        if not isinstance(endpoint, str) or not endpoint:
            raise _failed("oidc: discovery object doesn't contain a token_endpoint")
        return endpoint

    def _exchanged(self, endpoint: str) -> Mapping[str, Any]:
        """The answer for the refresh token: with the client's name in a header first, then in the form."""
        form = {"grant_type": "refresh_token", "refresh_token": self._config["refresh-token"]}
        name, secret = self._config["client-id"], self._config.get("client-secret") or ""
        basic = base64.b64encode(f"{quote(name, safe='')}:{quote(secret, safe='')}".encode()).decode()
        status, body = self._asked("POST", endpoint, form, {"Authorization": f"Basic {basic}"})
        if not 200 <= status < 300:
            named = {**form, "client_id": name} | ({"client_secret": secret} if secret else {})
            status, body = self._asked("POST", endpoint, named)
        if not 200 <= status < 300:
            raise _failed(f"failed to refresh token: oauth2: cannot fetch token: {status}: {_short(body)}")
        return _object(body, "failed to refresh token: oauth2: cannot parse json")

    def _asked(
        self,
        method: str,
        url: str,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        from urllib3 import Timeout
        from urllib3.exceptions import HTTPError

        encoded = {"Content-Type": "application/x-www-form-urlencoded"} if form else {}
        sent = {**encoded, **(headers or {})}
        asked = log.LoggedRequest(method, url, sent.items())
        try:
            # The provider is trusted by its own CA, or by the system's: never unverified.
            context = tls_context(self._trust(), None) if url.startswith("https") else None
            response = pool(url, context).request(
                method,
                url,
                body=urlencode(form) if form else None,
                headers=sent,
                retries=False,
                timeout=Timeout(_ANSWER_SECONDS),
            )
        except ValueError:
            # Its sentence may repeat what was taken for a port, and is a password.
            raise _failed(f"oidc: {log.shown_url(url)} is no URL") from None
        except (HTTPError, OSError) as error:
            why = _failed(f"oidc: {' '.join(str(error).split())}")
            asked.failed(why)
            raise why from error
        asked.answered(response)
        return response.status, response.data

    def _trust(self) -> dict[str, str]:
        names = ("certificate-authority", "certificate-authority-data")
        return {name: self._config.get(f"idp-{name}") or "" for name in names}


def _ends(token: str) -> float:
    """When an id token expires, in seconds since 1970. Raises ServerUnreachable for what is no token."""
    parts = token.split(".")
    if len(parts) != 3:
        raise _failed("ID Token is not a valid JWT")
    try:
        payload = json.loads(base64.b64decode(parts[1] + "=" * (-len(parts[1]) % 4), altchars=b"-_"))
        return float(payload.get("exp") or 0)
    except (ValueError, TypeError, AttributeError) as error:
        raise _failed(f"parsing claims: {error}") from None


def _persist(file: Path, user_name: str, config: Mapping[str, str]) -> None:
    """Write the tokens to the user entry that they came from. Raises ServerUnreachable."""
    try:
        real = file.resolve()
        with _locked(real):
            content = first_document(real.read_bytes())
            for entry in content["users"]:
                if entry["name"] == user_name:
                    entry["user"]["auth-provider"]["config"] = dict(config)
            _replace(real, content)
    except (OSError, NotYaml, KeyError, TypeError) as error:
        raise _failed(f"could not persist new tokens: {error}") from None


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Hold kubectl's own lock on a kubeconfig."""
    lock = file.with_name(f"{file.name}.lock")
    lock.touch(mode=0o600, exist_ok=False)
    try:
        yield
    finally:
        lock.unlink()


def _replace(file: Path, content: Any) -> None:
    """Put a file in another's place, whole and with the same rights, so that nobody reads half of it."""
    import yaml

    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=file.name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as written:
            yaml.safe_dump(content, written, sort_keys=False, allow_unicode=True)
        Path(name).chmod(file.stat().st_mode & 0o777)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _object(body: bytes, trouble: str) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except ValueError as error:
        raise _failed(f"{trouble}: {error}") from None
    if not isinstance(found, dict):
        raise _failed(f"{trouble}: it is not an object")
    return found


def _short(body: bytes) -> str:
    text = " ".join(body.decode(errors="replace").split())
    return text if len(text) <= 80 else f"{text[:80]}..."


def _failed(why: str) -> ServerUnreachable:
    return ServerUnreachable(f"Unable to connect to the server: {why}")

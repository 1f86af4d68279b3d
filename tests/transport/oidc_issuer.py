"""An OpenID provider, and tokens as it makes them."""

import base64
import json
import time
from urllib.parse import parse_qs

from tests.cluster.https_server import Answer, Request


def token(seconds: float, name: str = "me") -> str:
    """A token without a signature, which is nobody's business but the server's."""
    payload = json.dumps({"exp": int(time.time() + seconds), "sub": name}).encode()
    return f"e30.{base64.urlsafe_b64encode(payload).decode().rstrip('=')}.c2ln"


class Issuer:
    """An OpenID provider whose refresh tokens can be used once, unless `answers` says otherwise."""

    def __init__(self) -> None:
        self.url = ""
        self.good = "first"
        self.fresh = token(3600, "fresh")
        self.answers: dict[str, Answer] = {}
        self.only_by_form = False

    def __call__(self, request: Request) -> Answer:
        if request.path in self.answers:
            return self.answers[request.path]
        if request.path == "/.well-known/openid-configuration":
            return _json({"token_endpoint": f"{self.url}/token"})
        form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        basic = f"Basic {base64.b64encode(b'm%3Ae:s%20').decode()}"
        known = (
            (form.get("client_id"), form.get("client_secret")) == ("m:e", "s ")
            if self.only_by_form
            else request.headers.get("authorization") == basic
        )
        if not known or form["grant_type"] != "refresh_token" or form["refresh_token"] != self.good:
            return Answer(400, b'{"error":"invalid_grant"}')
        self.good = "second"
        return _json({"access_token": "a", "id_token": self.fresh, "refresh_token": self.good})


def _json(value: object) -> Answer:
    return Answer(body=json.dumps(value).encode())

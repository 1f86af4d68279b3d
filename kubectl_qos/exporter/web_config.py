"""The web configuration file of Prometheus' own exporters: TLS, basic authentication, response headers.

Source: github.com/prometheus/exporter-toolkit, docs/web-configuration.md. As there, the file and the
certificates are read again when they have changed. What is not supported is an error, never ignored.
"""

import hashlib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from kubectl_qos.errors import InputError, QosError, UsageError

_VERSIONS: Final = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_CLIENTS: Final = {
    "": ssl.CERT_NONE,
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
_TLS_FILES: Final = ("cert_file", "key_file", "client_ca_file")
_KEYS: Final[Mapping[str, frozenset[str]]] = {
    "tls_server_config": frozenset({*_TLS_FILES, "client_auth_type", "min_version", "max_version"}),
    "http_server_config": frozenset({"headers", "http2"}),
}
_BCRYPT: Final = ("$2a$", "$2b$", "$2y$")
_BCRYPT_BYTES: Final = 72
_UNKNOWN_USER: Final = "$2b$10$QOsUqBrXqJ0O7mr5yTpv2.uLDqi0.dEmQhrb4z.dYEDI2t6OlyAyS"
"""The hash of nobody's password: an unknown user takes as long to refuse as a known one."""


@dataclass(frozen=True)
class WebConfig:
    """The settings of one reading of the file; `checked` remembers which passwords were right."""

    tls: ssl.SSLContext | None = None
    users: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    checked: dict[bytes, bool] = field(default_factory=dict)

    def admits(self, user: str, password: str) -> bool:
        """Whether the password of a user is right."""
        import bcrypt

        known = self.users.get(user, _UNKNOWN_USER)
        key = hashlib.sha256(f"{user}\0{known}\0{password}".encode()).digest()
        if key not in self.checked:
            if len(self.checked) > 1000:  # somebody tries passwords
                self.checked.clear()
            is_right = bcrypt.checkpw(password.encode()[:_BCRYPT_BYTES], known.encode())
            self.checked[key] = is_right and user in self.users
        return self.checked[key]


class WebConfigFile:
    """A file that is read again when it has changed; without a path there is nothing to configure."""

    def __init__(self, path: str | None) -> None:
        self._path = Path(path) if path is not None else None
        self._files: tuple[Path, ...] = (self._path,) if self._path is not None else ()
        self._times = self._modified()
        self._config = self._read()

    def current(self) -> WebConfig:
        """What holds now: the last that could be read."""
        times = self._modified()
        if times != self._times:
            self._times = times
            try:
                self._config = self._read()
            except QosError:
                return self._config  # half written, perhaps: it is read again at its next change
            self._times = self._modified()
        return self._config

    def _modified(self) -> list[int]:
        return [path.stat().st_mtime_ns if path.exists() else 0 for path in self._files]

    def _read(self) -> WebConfig:
        if self._path is None:
            return WebConfig()
        try:
            raw = yaml.safe_load(self._path.read_text(encoding="utf-8"))
        except (OSError, UnicodeError, yaml.YAMLError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error).replace("\n", " ")
            raise InputError(f"{self._path}: {reason}") from None
        section = self._sections({} if raw is None else raw)
        users = {str(name): str(text) for name, text in section["basic_auth_users"].items()}
        for user, text in users.items():
            if not text.startswith(_BCRYPT):
                raise self._error(
                    f"the password of {user} is no bcrypt hash", "htpasswd -nBC 10 '' makes one"
                )
        headers = section["http_server_config"].get("headers") or {}
        tls = self._tls(section["tls_server_config"])
        return WebConfig(tls, users, {str(name): str(text) for name, text in headers.items()})

    def _sections(self, raw: Any) -> dict[str, dict[str, Any]]:
        names = (*_KEYS, "basic_auth_users")
        if not isinstance(raw, dict) or not all(isinstance(raw.get(name) or {}, dict) for name in names):
            raise self._error("the file and its sections must be mappings")
        sections = {name: raw.get(name) or {} for name in names}
        unknown = [str(key) for key in raw if key not in names]
        for name, keys in _KEYS.items():
            unknown += [f"{name}.{key}" for key in sections[name] if key not in keys]
        if unknown:
            raise self._error(f"{unknown[0]} is not supported", "docs/exporter.md has what is")
        return sections

    def _tls(self, raw: Mapping[str, Any]) -> ssl.SSLContext | None:
        if not raw:
            return None
        assert self._path is not None
        files = {name: self._path.parent / str(raw[name]) for name in _TLS_FILES if raw.get(name)}
        for name in _TLS_FILES[:2]:
            if name not in files:
                raise self._error(f"tls_server_config needs {name}")
        self._files = (self._path, *files.values())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self._choice(_VERSIONS, raw, "min_version", "TLS12")
        context.maximum_version = self._choice(_VERSIONS, raw, "max_version", "TLS13")
        try:
            context.load_cert_chain(files["cert_file"], files["key_file"])
            if "client_ca_file" in files:
                context.load_verify_locations(files["client_ca_file"])
        except (OSError, ssl.SSLError) as error:
            names = ", ".join(map(str, files.values()))
            raise self._error(f"the certificates cannot be used ({names}): {error}") from None
        context.verify_mode = self._choice(_CLIENTS, raw, "client_auth_type", "")
        if context.verify_mode is not ssl.CERT_NONE and "client_ca_file" not in files:
            raise self._error(f"client_auth_type {raw['client_auth_type']} needs client_ca_file")
        return context

    def _choice(self, known: Mapping[str, Any], raw: Mapping[str, Any], key: str, default: str) -> Any:
        text = str(raw.get(key) or default)
        if text not in known:
            raise self._error(f"{key} {text} is not supported", f"write {', '.join(filter(None, known))}")
        return known[text]

    def _error(self, sentence: str, hint: str = "") -> QosError:
        return UsageError(f"{self._path}: {sentence}", hint=hint)

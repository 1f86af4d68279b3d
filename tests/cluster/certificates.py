"""A certificate authority as many clusters have it: no key-usage extension and no key identifiers.

kubectl takes such a CA; Python >= 3.13 refuses it unless VERIFY_X509_STRICT is off.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """The pair as two files: certificate, key."""
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        certificate.write_bytes(self.certificate)
        key.write_bytes(self.key)
        return certificate, key


class Authority:
    """A CA that signs what it is asked to."""

    def __init__(self, name: str = "kubernetes", *, signed_by: Authority | None = None) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        issuer = signed_by or self
        built = _builder(self._name, issuer._name, self._key.public_key())
        built = built.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        signed = built.sign(issuer._key, hashes.SHA256())
        self.certificate = signed.public_bytes(serialization.Encoding.PEM)

    def trusted(self) -> ssl.SSLContext:
        """A client's context that trusts it, on each Python."""
        context = ssl.create_default_context(cadata=self.certificate.decode())
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context

    def server(self, *hosts: str) -> KeyPair:
        """A server's certificate for these names and addresses."""
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        return self._issue(_name("kube-apiserver"), ExtendedKeyUsageOID.SERVER_AUTH, [names])

    def client(self, user: str) -> KeyPair:
        """A client's certificate; its common name is the user."""
        return self._issue(_name(user), ExtendedKeyUsageOID.CLIENT_AUTH, [])

    def _issue(
        self, name: x509.Name, usage: x509.ObjectIdentifier, more: Sequence[x509.ExtensionType]
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        built = _builder(name, self._name, key.public_key())
        built = built.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        for extension in more:
            built = built.add_extension(extension, critical=False)
        signed = built.sign(self._key, hashes.SHA256())
        return KeyPair(
            signed.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
        )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + LIFE)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)

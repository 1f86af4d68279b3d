"""TLS contexts, exactly as strict as kubectl's: trusted CAs and client certificates.

Source: k8s.io/client-go/transport/transport.go (TLSConfigFor).
"""

import base64
import re
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kubectl_qos.errors import QosError
from kubectl_qos.transport.kubeconfig import Entry

ROOTS: Final = (
    Path("/etc/ssl/certs/ca-certificates.crt"),  # Debian, Gentoo, Arch
    Path("/etc/pki/tls/certs/ca-bundle.crt"),  # Fedora, RHEL
    Path("/etc/ssl/ca-bundle.pem"),  # SUSE
    Path("/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"),  # CentOS
    Path("/etc/ssl/cert.pem"),  # Alpine, macOS
)
"""The paths of the system's CAs, as Go knows them. Source: crypto/x509/root_linux.go."""

_CERTIFICATE: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A client certificate with its chain, and its key, both in PEM."""

    certificate: bytes
    key: bytes


def tls_context(cluster: Entry, pair: KeyPair | None) -> ssl.SSLContext:
    """Return a context for the cluster's server. Raises QosError for a CA or a key pair that cannot be used.

    Like Go it accepts an intermediate CA as a trust anchor, and CAs without a key-usage extension or
    authority key id; the latter are refused by VERIFY_X509_STRICT, the default from Python 3.13 on.
    """
    ca = read_pem(cluster, "certificate-authority")
    insecure = cluster.get("insecure-skip-tls-verify")
    if ca and insecure:
        raise QosError("specifying a root certificates file with the insecure flag is not allowed")
    context = _ca_context(ca) if ca else system_context()
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if pair is not None:
        load_pair(context, pair)
    return context


def _ca_context(ca: bytes) -> ssl.SSLContext:
    problem = "unable to load root certificates:"
    if b"-----BEGIN" not in ca:
        raise QosError(f"{problem} unable to parse bytes as PEM block")
    try:
        # Files may have text in any encoding around certificates, but Python reads only ASCII.
        return ssl.create_default_context(cadata=b"\n".join(_CERTIFICATE.findall(ca)).decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise QosError(f"{problem} no valid certificate authority data seen") from None


def system_context() -> ssl.SSLContext:
    """Return a context with the CAs of this machine, in the places where Go looks for them."""
    context = ssl.create_default_context()
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    paths = ssl.get_default_verify_paths()
    if paths.cafile is None and paths.capath is None:
        bundle = next((path for path in ROOTS if path.is_file()), None)
        if bundle is not None:
            context.load_verify_locations(bundle)
    return context


def read_pem(entry: Entry, name: str) -> bytes | None:
    """Return an entry's `NAME-data`, else the content of its file NAME, else None. Raises QosError."""
    path, data = entry.get(name), entry.get(f"{name}-data")
    try:
        if data:
            return base64.b64decode("".join(data.split()), validate=True)
    except ValueError:
        raise QosError(f"{name}-data is not valid base64") from None
    try:
        return Path(path).read_bytes() if path else None
    except OSError as error:
        raise QosError(f"open {path}: {(error.strerror or str(error)).lower()}") from None


def load_pair(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Load a PEM pair through a temporary file, because `ssl` reads only files. Raises QosError."""
    for what, pem in (("certificate", pair.certificate), ("key", pair.key)):
        if b"-----BEGIN" not in pem:
            raise QosError(f"tls: failed to find any PEM data in {what} input")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pair.pem"
        path.touch(mode=0o600)
        path.write_bytes(pair.certificate + b"\n" + pair.key)
        try:
            # With an empty password OpenSSL does not prompt for that of an encrypted key.
            context.load_cert_chain(path, password="")
        except (ssl.SSLError, OSError, ValueError) as error:
            raise QosError(f"tls: {_pair_problem(error, pair)}") from None


def _pair_problem(error: Exception, pair: KeyPair) -> str:
    reason = getattr(error, "reason", None) or str(error)
    if reason == "KEY_VALUES_MISMATCH":
        return "private key does not match public key"
    if b"ENCRYPTED" in pair.key:
        return "failed to parse private key: it is encrypted"
    words = reason.replace("_", " ").lower() if reason.isupper() else reason
    return f"the client certificate or its key cannot be used: {words}"

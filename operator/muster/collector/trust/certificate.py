"""Create the collector's certificate, and the certificate authority that signs it."""

import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BACKDATE = timedelta(hours=1)
"""A certificate is valid from this long before its creation, because nodes' clocks may be slow."""


@dataclass(frozen=True)
class Authority:
    """A certificate authority with its key, both in PEM. Times are Unix seconds."""

    certificate: str
    key: str
    made_at: float
    expires_at: float

    def __repr__(self) -> str:
        return f"Authority(made_at={self.made_at}, expires_at={self.expires_at})"  # keep the key out of logs


@dataclass(frozen=True)
class ServingCertificate:
    """A server's certificate with its key, and the certificate of the signing authority, all in PEM."""

    authority: str
    certificate: str
    key: bytes

    def __repr__(self) -> str:
        return "ServingCertificate(...)"  # keep the key out of logs


def issue_certificate(hosts: Sequence[str], now: float, lifetime_seconds: float) -> ServingCertificate:
    """Issue a certificate for `hosts` (names and IP addresses), from `now` (Unix seconds), by a new authority.

    The authority's key is dropped, so that it can't sign other certificates. Raises `ValueError` without a host.
    """
    return sign_certificate(make_authority(now, lifetime_seconds), hosts, now, lifetime_seconds)


def make_authority(now: float, lifetime_seconds: float) -> Authority:
    """Create a new authority, valid from `now` (Unix seconds)."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _make_ca_certificate(key, _make_period(now, now + lifetime_seconds))
    return Authority(_encode_certificate(certificate), _encode_key(key).decode("ascii"), now, now + lifetime_seconds)


def sign_certificate(
    authority: Authority, hosts: Sequence[str], now: float, lifetime_seconds: float
) -> ServingCertificate:
    """Issue a certificate for `hosts`, from `now` (Unix seconds). It does not outlive the authority.

    Raises `ValueError` without a host, and for an invalid authority.
    """
    if not hosts:
        raise ValueError("hosts: a serving certificate needs a name or an address")
    ca_certificate, ca_key = _read_authority(authority)
    key = ec.generate_private_key(ec.SECP256R1())
    period = _make_period(now, min(now + lifetime_seconds, authority.expires_at))
    certificate = _make_serving_certificate(key, ca_key, ca_certificate, hosts, period)
    return ServingCertificate(authority.certificate, _encode_certificate(certificate), _encode_key(key))


def check_authority(authority: Authority) -> None:
    """Raise `ValueError` unless certificate and key are PEM and belong together."""
    certificate, key = _read_authority(authority)
    if certificate.public_key() != key.public_key():
        raise ValueError("the key does not belong to the certificate")


def _read_authority(authority: Authority) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    certificate = x509.load_pem_x509_certificate(authority.certificate.encode())
    key = serialization.load_pem_private_key(authority.key.encode(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is not of an elliptic curve")
    return certificate, key


def make_server_context(certificate: ServingCertificate) -> ssl.SSLContext:
    """Return a TLS context with this certificate, for TLS 1.2 and later."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    # agents don't resume TLS sessions, so tickets would only cost time
    context.num_tickets = 0
    # Python reads keys only from files; this file is private to the user and is removed at once
    with tempfile.NamedTemporaryFile(prefix="muster-") as file:
        file.write(certificate.key + certificate.certificate.encode())
        file.flush()
        context.load_cert_chain(file.name)
    return context


def _make_ca_certificate(key: ec.EllipticCurvePrivateKey, period: tuple[datetime, datetime]) -> x509.Certificate:
    name = _make_name("muster collector CA")
    public = key.public_key()
    return (
        _make_builder(name, name, public, period)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_make_key_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _make_serving_certificate(
    key: ec.EllipticCurvePrivateKey,
    ca_key: ec.EllipticCurvePrivateKey,
    authority: x509.Certificate,
    hosts: Sequence[str],
    period: tuple[datetime, datetime],
) -> x509.Certificate:
    ca_identifier = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    issued_by = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ca_identifier)
    return (
        _make_builder(_make_name("muster collector"), authority.subject, key.public_key(), period)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_make_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_make_alternative_name(host) for host in hosts]), critical=False)
        .add_extension(issued_by, critical=False)
        .sign(ca_key, hashes.SHA256())
    )


def _make_builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, period: tuple[datetime, datetime]
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(period[0])
        .not_valid_after(period[1])
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _make_period(begin: float, end: float) -> tuple[datetime, datetime]:
    return datetime.fromtimestamp(begin, UTC) - BACKDATE, datetime.fromtimestamp(end, UTC)


def _make_name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _make_alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _make_key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _encode_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _encode_certificate(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")

"""The collector's certificate, and the authority of its own that agents trust alone."""

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
"""Nodes' clocks may be behind."""


@dataclass(frozen=True)
class ServingCertificate:
    """A server's certificate with its key, signed by an authority made for it alone. All PEM."""

    authority: str
    certificate: str
    key: bytes

    def __repr__(self) -> str:
        return "ServingCertificate(...)"  # the key must not get into a log


def issue(hosts: Sequence[str], now: float, lifetime_seconds: float) -> ServingCertificate:
    """A certificate for `hosts` (names and IP addresses), from `now` (Unix seconds).

    The authority's key is thrown away: nobody can make another. Raises `ValueError` without a host.
    """
    if not hosts:
        raise ValueError("hosts: a serving certificate needs a name or an address")
    moment = datetime.fromtimestamp(now, UTC)
    period = (moment - BACKDATE, moment + timedelta(seconds=lifetime_seconds))
    ca_key = ec.generate_private_key(ec.SECP256R1())
    key = ec.generate_private_key(ec.SECP256R1())
    authority = _authority(ca_key, period)
    certificate = _serving(key, ca_key, authority, hosts, period)
    return ServingCertificate(
        authority=_pem(authority),
        certificate=_pem(certificate),
        key=key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )


def server_context(certificate: ServingCertificate) -> ssl.SSLContext:
    """TLS 1.2 and later, with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Python reads keys from files only; this one is private to the user and gone at once
    with tempfile.NamedTemporaryFile(prefix="muster-") as file:
        file.write(certificate.key + certificate.certificate.encode())
        file.flush()
        context.load_cert_chain(file.name)
    return context


def _authority(key: ec.EllipticCurvePrivateKey, period: tuple[datetime, datetime]) -> x509.Certificate:
    name = _name("muster collector CA")
    public = key.public_key()
    return (
        _builder(name, name, public, period)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _serving(
    key: ec.EllipticCurvePrivateKey,
    ca_key: ec.EllipticCurvePrivateKey,
    authority: x509.Certificate,
    hosts: Sequence[str],
    period: tuple[datetime, datetime],
) -> x509.Certificate:
    ca_identifier = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    issued_by = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ca_identifier)
    return (
        _builder(_name("muster collector"), authority.subject, key.public_key(), period)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False)
        .add_extension(issued_by, critical=False)
        .sign(ca_key, hashes.SHA256())
    )


def _builder(
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


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
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


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")

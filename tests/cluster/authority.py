"""The cluster's certificates: one authority, created for each start."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE = dt.timedelta(days=30)
# Clocks may differ a little, and the cluster uses its certificates at once.
SLACK = dt.timedelta(minutes=5)


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs the cluster's certificates."""

    def __init__(self, now: dt.datetime) -> None:
        self._now = now
        self._key = ec.generate_private_key(ec.SECP256R1())
        name = common_name("muster-cluster")
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        self._certificate = (
            self._builder(name, name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def pair(self) -> Pair:
        """The authority's own pair; the controller manager signs with it, too."""
        return pair(self._certificate, self._key)

    def issue(self, name: str, organization: str = "", hosts: Sequence[str] = ()) -> Pair:
        """Issue a certificate for a client, and for a server at `hosts`."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(common_name(name, organization), self._certificate.subject, key.public_key())
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([host(each) for each in hosts]), critical=False)
        return pair(builder.sign(self._key, hashes.SHA256()), key)

    def _builder(
        self, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - SLACK)
            .not_valid_after(self._now + LIFE)
        )


def account_key() -> bytes:
    """Return the key that signs service accounts' tokens, PEM; RSA, as in clusters."""
    return private(rsa.generate_private_key(public_exponent=65537, key_size=2048))


def common_name(name: str, organization: str = "") -> x509.Name:
    """Kubernetes uses the common name as the user and the organization as the group."""
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def host(text: str) -> x509.GeneralName:
    """Return an address or a name."""
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    """Convert both to PEM."""
    return Pair(certificate.public_bytes(serialization.Encoding.PEM), private(key))


def private(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    """Convert a private key to PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )

"""Derive the credentials with which the agents of one attempt authenticate each other: a certificate and its key. Pure.

The same seed, job and attempt give the same bytes. So all agents get the same credentials, even if the operator
restarts between two Start commands. The signature is deterministic, too (RFC 6979).
"""

from dataclasses import replace
from datetime import UTC, datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from muster.api.spec.job import Job
from muster.core.failure_timeouts import get_fence_seconds
from muster_worker.contract.schema import Command, CommandKind, Credentials

SEED_BYTES = 32
"""The minimum length of the seed."""

_PURPOSE = b"muster gang credentials 1"
"""The context of the key derivation: other values from the same seed have other contexts. The number is a version."""

_PING_PURPOSE = b"muster ping key 1"

_PING_KEY_BYTES = 32
"""The length of an HMAC key with SHA-256."""

_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of P-256's group (FIPS 186-4, D.1.2.3): a private key is at least 1 and less than the order."""

_KEY_BYTES = 48
"""128 bits more than the order, so that the result modulo the order is practically uniform (FIPS 186-4, B.4.1)."""

_SERIAL_BYTES = 16
"""The length of the serial number. RFC 5280, 4.1.2.2 allows up to 20 bytes."""

_NOT_BEFORE, _NOT_AFTER = datetime(2000, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
"""The certificates don't expire (RFC 5280, 4.1.2.5): clocks may be wrong, and agents trust them only in one attempt."""


def add_credentials(job: Job, command: Command, seed: bytes) -> Command:
    """Add credentials to a Start command: a certificate for an MPI job, and a ping key for a job with fencing.

    Call this when a command is sent, so that facts, decisions and logs never contain the credentials.
    """
    if command.kind != CommandKind.START:
        return command
    if job.spec.launcher.chosen_launcher.runs_on_first_node:
        command = replace(command, credentials=derive_credentials(seed, command.job_uid, command.attempt))
    if get_fence_seconds(job):
        command = replace(command, ping_key=derive_ping_key(seed, command.job_uid, command.attempt))
    return command


def derive_ping_key(seed: bytes, job_uid: str, attempt: int) -> str:
    """Derive the key with which the agents of one attempt authenticate pings to each other, in hexadecimal.

    Raises `ValueError` for a seed that is too short.
    """
    return _derive_bytes(seed, _PING_PURPOSE, job_uid, attempt, _PING_KEY_BYTES).hex()


def _derive_bytes(seed: bytes, purpose: bytes, job_uid: str, attempt: int, length: int) -> bytes:
    if len(seed) < SEED_BYTES:
        raise ValueError(f"seed: at least {SEED_BYTES} bytes are required")
    # a uid contains no newline, so each attempt has a different context
    context = b"\n".join((purpose, str(attempt).encode(), job_uid.encode()))
    return HKDF(hashes.SHA256(), length, salt=None, info=context).derive(seed)


def derive_credentials(seed: bytes, job_uid: str, attempt: int) -> Credentials:
    """Derive the credentials of one attempt. Raises `ValueError` for a seed that is too short."""
    material = _derive_bytes(seed, _PURPOSE, job_uid, attempt, _KEY_BYTES + _SERIAL_BYTES)
    number = 1 + int.from_bytes(material[:_KEY_BYTES], "big") % (_ORDER - 1)
    key = ec.derive_private_key(number, ec.SECP256R1())
    certificate = _make_certificate(key, material[_KEY_BYTES:])
    return Credentials(
        certificate.public_bytes(serialization.Encoding.PEM).decode("ascii"),
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode("ascii"),
    )


def _make_certificate(key: ec.EllipticCurvePrivateKey, serial: bytes) -> x509.Certificate:
    # names are unique, so that no certificate can be taken for the issuer of another attempt's certificate
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"muster gang {serial.hex()}")])
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        # clear the first bit and set the last one: 4.1.2.2 requires a positive number
        .serial_number(int.from_bytes(serial, "big") >> 1 | 1)
        .not_valid_before(_NOT_BEFORE)
        .not_valid_after(_NOT_AFTER)
        # the certificate must be an authority: OpenSSL 1.1.1 treats a certificate as self-signed only if its key may
        # sign certificates, and OpenSSL 3's strict mode allows that only for authorities
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_KEY_USAGE, critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key, hashes.SHA256(), ecdsa_deterministic=True)
    )


_KEY_USAGE = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)

"""The credentials of a rank group's agents: the same for all of them, permanently, and different from any other
group's.
"""

import hashlib
import itertools
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.spec.job import Job
from muster.collector.trust.attempt_credentials import SEED_BYTES, add_credentials, derive_credentials
from muster_worker.contract import wire
from muster_worker.contract.schema import Command, CommandKind, Credentials
from support.searches import choose_example_count
from unit.core.builders import command, job, mpi_job

SEED = b"s" * SEED_BYTES
SEEDS = st.binary(min_size=SEED_BYTES, max_size=SEED_BYTES)
UIDS = st.uuids().map(str)
STARTS = st.integers(1, 10_000)

OWN = derive_credentials(SEED, "3a5c", 1)
OTHERS = {
    "another job's": derive_credentials(SEED, "3a5d", 1),
    "an earlier start's": derive_credentials(SEED, "3a5c", 0),
    "another operator's": derive_credentials(b"t" * SEED_BYTES, "3a5c", 1),
}


@settings(max_examples=choose_example_count(30), deadline=None)
@given(SEEDS, UIDS, STARTS)
def test_the_same_rank_group_has_the_same_bytes_always(seed: bytes, uid: str, start: int) -> None:
    current = derive_credentials(seed, uid, start)

    assert derive_credentials(seed, uid, start) == current
    certificate = x509.load_pem_x509_certificate(current.certificate.encode())
    assert load_pem_private_key(current.key.encode(), None).public_key() == certificate.public_key()
    certificate.verify_directly_issued_by(certificate)
    assert 0 < certificate.serial_number < 2**127


@settings(max_examples=choose_example_count(30), deadline=None)
@given(st.lists(st.tuples(SEEDS, UIDS, STARTS), min_size=2, max_size=4, unique=True))
def test_two_rank_groups_have_nothing_in_common(rank_groups: list[tuple[bytes, str, int]]) -> None:
    for one, other in itertools.combinations([derive_credentials(*rank_group) for rank_group in rank_groups], 2):
        assert one.key != other.key
        assert one.certificate != other.certificate


def test_a_release_of_a_library_changes_no_byte() -> None:
    """Agents with credentials from before an operator's upgrade accept those from after it."""
    value = hashlib.sha256((OWN.certificate + OWN.key).encode()).hexdigest()

    assert value == "2e5b9103e12ea822e75d11b6e7f94a6d15730bdd13a56ccc7ae8f384a985331c"


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes are required"):
        derive_credentials(SEED[1:], "3a5c", 1)


MPI_JOB = mpi_job()
START = command(CommandKind.START)


@pytest.mark.parametrize(
    ("asked", "told", "credentials"),
    [
        (MPI_JOB, START, derive_credentials(SEED, START.job_uid, START.attempt)),
        (job(), START, None),
        *((MPI_JOB, command(kind), None) for kind in (CommandKind.STOP, CommandKind.KILL, CommandKind.EXIT)),
    ],
    ids=["Start", "torchrun", "Stop", "Kill", "Exit"],
)
def test_only_start_of_an_mpi_job_has_some(asked: Job, told: Command, credentials: Credentials | None) -> None:
    left = add_credentials(asked, told, SEED)

    assert left == replace(told, credentials=credentials)
    assert wire.decode(Command, wire.encode(left)) == left
    assert "BEGIN" not in repr(left)
    assert "PRIVATE" not in repr(left.credentials)


VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


def context(
    protocol: ssl._SSLMethod, shown: Credentials | None, folder: Path, version: ssl.TLSVersion
) -> ssl.SSLContext:
    """As agents create theirs: it trusts the rank group's own certificate, and no other."""
    made = ssl.SSLContext(protocol)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_REQUIRED
    # the default of newer Pythons and of some distributions
    made.verify_flags |= ssl.VERIFY_X509_STRICT
    made.minimum_version = made.maximum_version = version
    made.load_verify_locations(cadata=OWN.certificate)
    if shown is not None:
        file = folder / f"{protocol.name}.pem"
        file.write_text(shown.key + shown.certificate)
        made.load_cert_chain(file)
    return made


def talk(client: ssl.SSLContext, server: ssl.SSLContext) -> bytes:
    """What the server receives from a client. Raises `ssl.SSLError` if one side refuses the other."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    caller = client.wrap_bio(back, there)
    called = server.wrap_bio(there, back, server_side=True)
    for step in itertools.cycle((caller.do_handshake, called.do_handshake)):
        try:
            step()
        except ssl.SSLWantReadError:
            continue
        if step == called.do_handshake:
            break
    # with TLS 1.3 a client completes its handshake before it learns that the server has refused it
    caller.do_handshake()
    caller.write(b"hello")
    return called.read()


@pytest.mark.parametrize("version", VERSIONS)
def test_agents_of_a_rank_group_take_each_other(version: ssl.TLSVersion, tmp_path: Path) -> None:
    client = context(ssl.PROTOCOL_TLS_CLIENT, OWN, tmp_path, version)
    server = context(ssl.PROTOCOL_TLS_SERVER, OWN, tmp_path, version)

    assert talk(client, server) == b"hello"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("shown", [None, *OTHERS.values()], ids=["none", *OTHERS])
def test_no_other_certificate_is_accepted(shown: Credentials | None, version: ssl.TLSVersion, tmp_path: Path) -> None:
    client = context(ssl.PROTOCOL_TLS_CLIENT, shown, tmp_path, version)
    server = context(ssl.PROTOCOL_TLS_SERVER, OWN, tmp_path, version)

    with pytest.raises(ssl.SSLError, match=r"CERTIFICATE_VERIFY_FAILED|PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        talk(client, server)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("shown", OTHERS.values(), ids=OTHERS)
def test_no_other_server_is_called(shown: Credentials, version: ssl.TLSVersion, tmp_path: Path) -> None:
    client = context(ssl.PROTOCOL_TLS_CLIENT, OWN, tmp_path, version)
    server = context(ssl.PROTOCOL_TLS_SERVER, shown, tmp_path, version)

    with pytest.raises(ssl.SSLCertVerificationError):
        talk(client, server)

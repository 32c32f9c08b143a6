import ssl
import time

import pytest

from muster.collector.trust.certificate import ServingCertificate, issue_certificate, make_server_context


def shake_hands(certificate: ServingCertificate, authority: str, host: str) -> None:
    """A TLS handshake in memory, as strict as Python 3.13's default."""
    client_context = ssl.create_default_context(cadata=authority)
    client_context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname=host)
    server = make_server_context(certificate).wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    client.write(b"done")
    assert server.read() == b"done"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "muster.example"])
def test_a_strict_client_trusts_the_certificate_for_its_hosts(host: str) -> None:
    certificate = issue_certificate(["127.0.0.1", "::1", "muster.example"], time.time(), 3600.0)

    shake_hands(certificate, certificate.authority, host)


def test_no_other_host_is_trusted() -> None:
    certificate = issue_certificate(["127.0.0.1"], time.time(), 3600.0)

    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(certificate, certificate.authority, "127.0.0.2")


def test_no_other_authority_is_trusted() -> None:
    mine, other = (issue_certificate(["127.0.0.1"], time.time(), 3600.0) for _ in range(2))

    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(mine, other.authority, "127.0.0.1")


def test_nodes_with_slow_clocks_trust_it_and_none_does_after_its_end() -> None:
    ahead = issue_certificate(["127.0.0.1"], time.time() + 1800.0, 3600.0)
    shake_hands(ahead, ahead.authority, "127.0.0.1")

    ended = issue_certificate(["127.0.0.1"], time.time() - 7200.0, 3600.0)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(ended, ended.authority, "127.0.0.1")


def test_the_key_is_not_shown() -> None:
    assert "PRIVATE" not in repr(issue_certificate(["localhost"], time.time(), 60.0))


def test_a_certificate_without_hosts_is_refused() -> None:
    with pytest.raises(ValueError, match="hosts"):
        issue_certificate([], time.time(), 60.0)

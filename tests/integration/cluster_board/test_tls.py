"""The TLS port of a cluster's board."""

import ssl
import time
from pathlib import Path

import aiohttp
import pytest

from fakes.review_server import ReviewServer
from muster.cli.web.served.tls import TlsFiles, make_context
from muster.collector.trust.certificate import ServingCertificate, issue_certificate
from support.board_server import serve_board
from support.free_port import free_port

HOST = "board.example.com"


def write_certificate(folder: Path) -> ServingCertificate:
    certificate = issue_certificate([HOST], time.time(), 3600.0)
    (folder / "tls.crt").write_text(certificate.certificate)
    (folder / "tls.key").write_bytes(certificate.key)
    return certificate


async def test_readers_come_in_with_tls_under_the_names_of_the_options(tmp_path: Path) -> None:
    trusted = ssl.create_default_context(cadata=write_certificate(tmp_path).authority)
    port = free_port()
    board = serve_board(tmp_path, f"--tls-dir={tmp_path}", f"--tls-host={HOST}", tls_port=port)
    server = ReviewServer({"t": "alice"}, {("alice", "team-a", "list")})
    async with server.serve(tmp_path), board, aiohttp.ClientSession() as session:
        url = f"https://127.0.0.1:{port}/api/jobs?namespace=team-a"
        expected = {(HOST, "t"): 200, (f"{HOST}:8444", "t"): 200, ("127.0.0.1", "t"): 421, (HOST, ""): 401}
        for (host, token), status in expected.items():
            headers = {"Host": host, "Authorization": f"Bearer {token}"}
            async with session.get(url, headers=headers, ssl=trusted, server_hostname=HOST) as response:
                assert response.status == status, (host, token)
        with pytest.raises(aiohttp.ClientError):
            await session.get(url.replace("https:", "http:"))


def test_a_renewed_certificate_is_loaded_into_the_context(tmp_path: Path) -> None:
    write_certificate(tmp_path)
    files = TlsFiles(tmp_path / "tls.crt", tmp_path / "tls.key")
    context, old = make_context(files), files.read()
    renewed = write_certificate(tmp_path)
    assert files.read() != old
    files.load_into(context)
    assert shake_hands(context, ssl.create_default_context(cadata=renewed.authority)) == "TLSv1.3"


def shake_hands(server_context: ssl.SSLContext, client_context: ssl.SSLContext) -> str | None:
    """Return the version on which a client that trusts its authority and the server agree."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context.wrap_bio(to_client, to_server, server_hostname=HOST)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return client.version()

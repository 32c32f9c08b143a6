"""Leaving a stream closes its connection, even if the server does not close it."""

import asyncio
import datetime as dt
import select
import socket
import ssl
from contextlib import aclosing
from pathlib import Path

from cluster.api_proxy import serving, write_kubeconfig
from cluster.authority import Authority
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.kinds import PODS

HOST = "127.0.0.1"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
LINE = b'{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "7"}}}\n'
CHUNK = f"{len(LINE):x}\r\n".encode() + LINE + b"\r\n"
AT_ONCE_SECONDS = 10.0
"""Well before asyncio would stop waiting for the TLS shutdown."""


def tell_once(listening: socket.socket, context: ssl.SSLContext) -> bool:
    """Return a watch whose server sends no TLS shutdown; whether its connection closes nevertheless."""
    accepted, _ = listening.accept()
    with context.wrap_socket(accepted, server_side=True) as connection:
        connection.recv(65536)
        connection.sendall(HEAD + CHUNK)
        ended = select.poll()
        ended.register(connection, select.POLLRDHUP)
        return bool(ended.poll(AT_ONCE_SECONDS * 1000))


async def test_a_watch_that_is_left_waits_for_no_farewell(tmp_path: Path) -> None:
    authority = Authority(dt.datetime.now(dt.UTC))
    context = serving(tmp_path, authority, HOST)
    with socket.create_server((HOST, 0)) as listening:
        telling = asyncio.create_task(asyncio.to_thread(tell_once, listening, context))
        server = f"https://{HOST}:{listening.getsockname()[1]}"
        write_kubeconfig(tmp_path / "kubeconfig", server, authority.pair.certificate)
        client = await Client.connect(str(tmp_path / "kubeconfig"))
        async with aclosing(client.watch(PODS, "here", resource_version="6")) as changes:
            assert (await anext(changes)).type == "BOOKMARK"
        assert await telling
        await client.close()

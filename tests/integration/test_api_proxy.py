"""Neither a client of the API server nor the tests' proxy leaves a connection open when it ends."""

import asyncio
import base64
import contextlib
import datetime as dt
import gc
import json
import socket
import threading
import warnings
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cluster.api_proxy import ApiProxy, serving
from cluster.authority import Authority
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.kinds import PODS

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b'{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7"}}}\n'
CHUNK = b"%x\r\n%s\r\n" % (len(EVENT), EVENT)


@dataclass
class BusyServer:
    """An API server that gets one request, and then neither sends nor reads anything.

    If `is_watch`, it starts a watch before, and continues it once.
    """

    kubeconfig: Path
    is_watch: bool
    asked: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)
    end: threading.Event = field(default_factory=threading.Event)


@contextlib.contextmanager
def busy_server(folder: Path, *, is_watch: bool) -> Iterator[BusyServer]:
    authority = Authority(dt.datetime.now(dt.UTC))
    server = BusyServer(folder / "kubeconfig", is_watch)
    context = serving(folder, authority, "127.0.0.1")

    def answer() -> None:
        with context.wrap_socket(listener.accept()[0], server_side=True) as connection:
            connection.recv(2**16)
            server.asked.set()
            if server.is_watch:
                connection.sendall(HEAD + CHUNK)
                server.go_on.wait()
                connection.sendall(CHUNK)
            server.end.wait()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer)
        thread.start()
        server.kubeconfig.write_text(config(f"https://127.0.0.1:{listener.getsockname()[1]}", authority))
        try:
            yield server
        finally:
            server.go_on.set()
            server.end.set()
            thread.join()


def config(server: str, authority: Authority) -> str:
    """With a client's certificate, like an administrator's."""

    def encoded(data: bytes) -> str:
        return base64.b64encode(data).decode()

    pair = authority.issue("administrator")
    user = {"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(pair.key)}
    cluster = {"server": server, "certificate-authority-data": encoded(authority.pair.certificate)}
    context = {"cluster": "busy", "user": "administrator"}
    return json.dumps(
        {
            "current-context": "busy",
            "contexts": [{"name": "busy", "context": context}],
            "clusters": [{"name": "busy", "cluster": cluster}],
            "users": [{"name": "administrator", "user": user}],
        }
    )


async def watch_and_leave(folder: Path, server: BusyServer) -> None:
    async with ApiProxy.serve(folder, server.kubeconfig) as proxy:
        client = await Client.connect(str(proxy.kubeconfig))
        changes = client.watch(PODS, "team", resource_version="1")
        assert (await anext(changes)).type == "BOOKMARK"
        await changes.aclose()
        await client.close()
        # The next data finds no watcher, and the proxy closes the watch.
        handlers = asyncio.all_tasks() - {asyncio.current_task()}
        server.go_on.set()
        await asyncio.wait(handlers)


async def ask_and_leave(kubeconfig: Path, server: BusyServer) -> None:
    client = await Client.connect(str(kubeconfig))
    request = asyncio.create_task(client.get(PODS, "team", "one"))
    await asyncio.to_thread(server.asked.wait)
    request.cancel()
    await asyncio.wait([request])
    await client.close()


async def ask_through_the_proxy_and_leave(folder: Path, server: BusyServer) -> None:
    async with ApiProxy.serve(folder, server.kubeconfig) as proxy:
        await ask_and_leave(proxy.kubeconfig, server)


def list_warnings(ended: Coroutine[None, None, None]) -> list[str]:
    """Run it in an event loop of its own; return the warnings of what it leaves."""
    gc.collect()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        asyncio.run(ended)
        gc.collect()
    return [str(each.message) for each in warned]


def test_a_watch_that_the_proxy_leaves_is_closed_at_once(tmp_path: Path) -> None:
    with busy_server(tmp_path, is_watch=True) as server:
        assert list_warnings(watch_and_leave(tmp_path, server)) == []


def test_a_request_that_a_client_cancels_is_closed_with_the_client(tmp_path: Path) -> None:
    with busy_server(tmp_path, is_watch=False) as server:
        assert list_warnings(ask_and_leave(server.kubeconfig, server)) == []


def test_a_request_that_the_proxy_cancels_is_closed_with_the_proxy(tmp_path: Path) -> None:
    with busy_server(tmp_path, is_watch=False) as server:
        assert list_warnings(ask_through_the_proxy_and_leave(tmp_path, server)) == []

"""The limits of one reader of a cluster's board, beside another reader."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from fakes.review_server import ReviewServer
from muster.cli.web.served.connections import MAX_PER_READER
from muster.cli.web.served.serve_board import STREAMS
from support.board_client import open_client, read_event
from support.board_server import serve_board

JOB: dict[str, Any] = {"metadata": {"name": "vit", "namespace": "a", "uid": "1", "resourceVersion": "1"}}
EVENTS = "/api/jobs/a.vit/events"


async def test_a_reader_with_too_many_pages_takes_nothing_from_others(tmp_path: Path) -> None:
    names = ("alice", "bob")
    rights = {(name, "a", verb) for name in names for verb in ("list", "get", "watch")}
    server = ReviewServer({name: name for name in names}, rights, [JOB])
    async with server.serve(tmp_path), serve_board(tmp_path) as url, AsyncExitStack() as stack:
        alice, bob = [await stack.enter_async_context(open_client(url, name)) for name in names]
        for _ in range(STREAMS.per_reader):
            stream = await stack.enter_async_context(alice.get(EVENTS))
            assert (await read_event(stream))["isFull"]
        assert await alice.read(EVENTS) == (503, "16 of your pages are open: close one\n")
        assert await alice.read_json("/api/jobs?namespace=a")
        async with bob.get(EVENTS) as stream:
            assert (await read_event(stream))["isFull"]

        # Connections that are not streams count, too: each of these clients keeps its own.
        for _ in range(MAX_PER_READER - STREAMS.per_reader):
            other = await stack.enter_async_context(open_client(url, "alice"))
            status, text = await other.read("/api/jobs?namespace=a")
        assert (status, text) == (503, "you have too many connections: close some pages\n")
        assert await bob.read_json("/api/jobs?namespace=a")

"""A write request is sent only while the process may: checked immediately before."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from fakes.api_client import api_client
from muster.clients.kubernetes.adaptive_limit import INITIAL_LIMIT
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import PODS, Object

POD: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}}


class Server:
    """Answers each request once `go` is set."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.go = asyncio.Event()
        self.busy = asyncio.Event()
        self.app = web.Application()
        self.app.router.add_route("*", "/{path:.*}", self._answer)

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.method)
        if len(self.asked) == INITIAL_LIMIT:
            self.busy.set()
        await self.go.wait()
        return web.json_response(POD)


async def change(client: Client, method: str) -> None:
    match method:
        case "POST":
            await client.create(PODS, "team", POD)
        case "PATCH":
            await client.merge(PODS, "team", "one", {})
        case "PUT":
            await client.replace(PODS, "team", "one", POD)
        case "DELETE":
            await client.delete(PODS, "team", "one")
        case _:
            await client.dry_run_create(PODS, "team", POD)


@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT", "DELETE", "dry run"])
async def test_no_change_is_sent_and_all_is_read(tmp_path: Path, method: str) -> None:
    server = Server()
    server.go.set()
    async with api_client(server.app, tmp_path) as client:
        bound = client.restrict_changes(lambda: False)
        with pytest.raises(ApiError, match="was not sent") as refused:
            await change(bound, method)
        assert (refused.value.reason, refused.value.is_temporary) == ("NotLeading", True)
        await bound.get(PODS, "team", "one")
        assert server.asked == ["GET"]
        # The other one's changes are independent.
        await change(client, method)
        assert len(server.asked) == 2


async def test_it_is_asked_after_the_wait_for_a_place(tmp_path: Path) -> None:
    server, leads = Server(), [True]
    async with api_client(server.app, tmp_path) as client:
        bound = client.restrict_changes(lambda: leads[0])
        reading = [asyncio.create_task(bound.get(PODS, "team", "one")) for _ in range(int(INITIAL_LIMIT))]
        changing = asyncio.create_task(change(bound, "POST"))
        await server.busy.wait()
        leads[0] = False
        server.go.set()
        with pytest.raises(ApiError, match="was not sent"):
            await changing
        await asyncio.gather(*reading)
        assert set(server.asked) == {"GET"}

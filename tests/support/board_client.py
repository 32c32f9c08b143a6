"""A client of the board's server, as the page is one."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

URL = re.compile(r"(http://127\.0\.0\.1:\d+)/#token=(\S+)")


@dataclass(frozen=True)
class BoardClient:
    """Sends requests to the board at `url` with `token` ("": without one)."""

    session: aiohttp.ClientSession
    url: str
    token: str

    def get(self, path: str, **headers: str) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Send a request."""
        authorization = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return self.session.get(f"{self.url}{path}", headers={**authorization, **headers})

    async def read(self, path: str) -> tuple[int, str]:
        """Return the status and the text of an answer."""
        async with self.get(path) as response:
            return response.status, await response.text()

    async def read_json(self, path: str) -> Any:
        """Return a successful answer."""
        status, text = await self.read(path)
        assert status == 200, text
        return json.loads(text)


@asynccontextmanager
async def open_client(url: str, token: str) -> AsyncIterator[BoardClient]:
    """Yield a client."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
        yield BoardClient(session, url, token)


async def read_event(response: aiohttp.ClientResponse) -> Any:
    """Return the next event of a stream, of at most some kilobytes; None at the end of the stream."""
    async for line in response.content:
        if line.startswith(b"data: "):
            return json.loads(line.removeprefix(b"data: "))
    return None

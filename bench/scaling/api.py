"""A bare client of the API server, which shares no code with the operator."""

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp

MAX_IN_FLIGHT = 64


@dataclass(frozen=True)
class Request:
    """A request to the API server."""

    method: str
    path: str
    body: Any = None


class Api:
    """Sends requests as the administrator."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def send(self, request: Request) -> Any:
        """Send one request; return the answer. Raises `RuntimeError` for an error other than 404."""
        kind = "merge-patch+json" if request.method == "PATCH" else "json"
        data = None if request.body is None else json.dumps(request.body)
        headers = {"Content-Type": f"application/{kind}"}
        async with self._session.request(request.method, request.path, data=data, headers=headers) as answer:
            text = await answer.text()
            if answer.status >= HTTPStatus.BAD_REQUEST and answer.status != HTTPStatus.NOT_FOUND:
                raise RuntimeError(f"{request.method} {request.path}: {answer.status} {text[:500]}")
            return json.loads(text)

    async def send_all(self, requests: Sequence[Request]) -> None:
        """Send requests, 64 at a time."""
        remaining = iter(requests)

        async def send_some() -> None:
            for request in remaining:
                await self.send(request)

        async with asyncio.TaskGroup() as group:
            for _ in range(MAX_IN_FLIGHT):
                group.create_task(send_some())

    async def list_items(self, path: str) -> list[Any]:
        """List objects."""
        objects: list[Any] = (await self.send(Request("GET", path)))["items"]
        return objects

    async def get_text(self, path: str) -> str:
        """Return the answer to a GET request as text."""
        async with self._session.get(path) as answer:
            return await answer.text()

    async def read(self, path: str) -> bytes:
        """Return the answer to a GET request."""
        async with self._session.get(path, timeout=aiohttp.ClientTimeout(total=None)) as answer:
            return await answer.read()

    async def _watch_lines(self, path: str) -> AsyncIterator[bytes]:
        """Yield the lines of a watch."""
        async with self._session.get(path, timeout=aiohttp.ClientTimeout(total=None)) as answer:
            incomplete_line = b""
            async for chunk in answer.content.iter_any():
                *complete_lines, incomplete_line = (incomplete_line + chunk).split(b"\n")
                for line in complete_lines:
                    yield line

    async def watch_changes(self, path: str) -> AsyncIterator[Any]:
        """Yield the changes of a watch, until the API server ends it."""
        async for line in self._watch_lines(path):
            change = json.loads(line)
            if change["type"] == "ERROR":
                return
            yield change

    async def follow(self, path: str) -> AsyncIterator[Any]:
        """Yield the changes of a watch. Start the watch again when the API server ends it."""
        while True:
            async for change in self.watch_changes(path):
                yield change


@asynccontextmanager
async def connect(url: str, keys: Path) -> AsyncIterator[Api]:
    """Yield a client with a connection for each request in flight. `keys` has the administrator's keys."""
    context = ssl.create_default_context(cafile=keys / "authority.crt")
    context.load_cert_chain(keys / "administrator.crt", keys / "administrator.key")
    # Watches need other connections.
    connector = aiohttp.TCPConnector(ssl=context, limit=MAX_IN_FLIGHT + 4)
    async with aiohttp.ClientSession(url, connector=connector) as session:
        yield Api(session)


@dataclass
class PodTimes:
    """The times at which pods with this prefix appeared and ran, on this process's clock."""

    prefix: str
    created: dict[str, float] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)
    deleted: int = 0
    restarts: int = 0
    has_changed: asyncio.Event = field(default_factory=asyncio.Event)

    def record(self, change: Any) -> None:
        """Record a change of a pod."""
        now, pod = time.monotonic(), change["object"]
        name = pod["metadata"]["name"]
        if not name.startswith(self.prefix):
            return
        self.created.setdefault(name, now)
        if pod["status"].get("phase") == "Running":
            self.running.setdefault(name, now)
        self.deleted += change["type"] == "DELETED"
        self.has_changed.set()

    async def watch(self, api: Api, namespace: str) -> None:
        """Watch pods until cancelled. If the API server ends the watch of a slow reader, start another watch."""
        while True:
            # A watch without a resource version begins with all existing pods.
            async for change in api.watch_changes(f"/api/v1/namespaces/{namespace}/pods?watch=1&timeoutSeconds=1800"):
                self.record(change)
            self.restarts += 1

    async def wait_for(self, pods: int) -> None:
        """Wait until this many pods run."""
        while len(self.running) < pods:
            self.has_changed.clear()
            await self.has_changed.wait()

"""A page of a browser, driven by the Chrome DevTools Protocol over a websocket."""

import asyncio
import base64
import itertools
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

_KEY_CODES = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35, "Tab": 9}


class Navigated(Exception):
    """The page has loaded another one meanwhile."""


@dataclass
class Page:
    """An open page. `errors` are the messages of its console: exceptions, and what its security policy refused."""

    socket: aiohttp.ClientWebSocketResponse
    errors: list[str] = field(default_factory=list)
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _answers: dict[int, asyncio.Future[dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    @asynccontextmanager
    async def open(cls, socket: aiohttp.ClientWebSocketResponse, width: int, height: int) -> "AsyncIterator[Page]":
        """Read the messages of `socket` while the `with` block runs."""
        page = cls(socket)
        reader = asyncio.create_task(page._read())
        try:
            for domain in ("Page", "Runtime", "Log"):
                await page.call(f"{domain}.enable")
            await page.resize(width, height)
            yield page
        finally:
            reader.cancel()

    async def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Call a method of the protocol, and return its result."""
        number = next(self._ids)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self.socket.send_json({"id": number, "method": method, "params": parameters})
        message = await asyncio.wait_for(answer, 60)
        if "navigated" in message.get("error", {}).get("message", ""):
            raise Navigated
        assert "error" not in message, message
        result: dict[str, Any] = message["result"]
        return result

    async def _read(self) -> None:
        async for message in self.socket:
            document = message.json()
            if "id" in document:
                self._answers.pop(document["id"]).set_result(document)
            elif document["method"] == "Runtime.exceptionThrown":
                details = document["params"]["exceptionDetails"]
                self.errors.append(str(details.get("exception", {}).get("description", details["text"])))
            elif document["method"] == "Log.entryAdded" and document["params"]["entry"]["level"] == "error":
                self.errors.append(document["params"]["entry"]["text"])

    async def resize(self, width: int, height: int) -> None:
        """Set the size of the window's content in CSS pixels."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def go_to(self, url: str) -> None:
        await self.call("Page.navigate", url=url)

    async def set_colour_scheme(self, scheme: str) -> None:
        """Set the scheme that the user prefers: "light" or "dark"."""
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    async def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; it may be a promise."""
        result = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def await_true(self, expression: str, seconds: float = 60) -> None:
        """Wait until the expression is true, at each frame that the page draws. The page may load another one."""
        until = time.monotonic() + seconds
        while not await self._is_true(expression):
            assert time.monotonic() < until, f"not true within {seconds} s: {expression}; {self.errors}"

    async def _is_true(self, expression: str) -> bool:
        frame = f"new Promise(next => requestAnimationFrame(() => next(!!({expression}))))"
        try:
            return bool(await self.evaluate(frame))
        except Navigated:
            return False

    async def press(self, key: str) -> None:
        """Press and release a key."""
        common: Mapping[str, object] = {"key": key, "windowsVirtualKeyCode": _KEY_CODES.get(key, ord(key[0].upper()))}
        await self.call("Input.dispatchKeyEvent", type="keyDown", **common)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    async def take_screenshot(self) -> bytes:
        """Return the visible part of the page as a PNG."""
        return base64.b64decode((await self.call("Page.captureScreenshot", format="png"))["data"])

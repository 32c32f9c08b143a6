"""A request's body in bounded memory and time."""

import asyncio

from aiohttp import web

from muster.ranks.refusal import Reason, Refused


async def read_body(request: web.BaseRequest, max_bytes: int, timeout_seconds: float) -> bytes:
    """The whole body. Raises `Refused`: Compressed, TooLarge (before reading, when the length is told), TooSlow."""
    # what a few bytes may inflate to has no bound, and reports are small
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise Refused(Reason.COMPRESSED)
    if request.content_length is not None and request.content_length > max_bytes:
        raise Refused(Reason.TOO_LARGE)
    try:
        async with asyncio.timeout(timeout_seconds):
            return await _read(request, max_bytes)
    except TimeoutError:
        raise Refused(Reason.TOO_SLOW) from None
    except web.RequestPayloadError:
        raise Refused(Reason.BAD_HTTP) from None


async def _read(request: web.BaseRequest, max_bytes: int) -> bytes:
    body = bytearray()
    while chunk := await request.content.readany():
        body += chunk
        if len(body) > max_bytes:
            raise Refused(Reason.TOO_LARGE)
    return bytes(body)

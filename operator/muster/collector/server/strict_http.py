"""A strict HTTP server for untrusted clients: small headers, no decompression, no access log."""

import asyncio
import logging
from http import HTTPStatus

from aiohttp import web

MAX_LINE_BYTES = 2048
MAX_HEADERS = 32
DEFAULT_READ_BUFFER_BYTES = 256 * 1024

NO_ACCESS_LOG = logging.Logger("muster.access", logging.CRITICAL + 1)  # noqa: LOG001 - independent of the logging configuration
"""A logger that drops all lines: a log line would cost as much as its request."""


class StrictConnection(web.RequestHandler):
    """An HTTP connection, as strict as aiohttp allows."""

    __slots__ = ()

    def __init__(
        self,
        server: web.Server,
        *,
        idle_seconds: float,
        linger_seconds: float,
        max_field_bytes: int,
        read_buffer_bytes: int = DEFAULT_READ_BUFFER_BYTES,
    ) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=idle_seconds,
            lingering_time=linger_seconds,
            access_log=NO_ACCESS_LOG,
            auto_decompress=False,
            max_line_size=MAX_LINE_BYTES,
            max_field_size=max_field_bytes,
            max_headers=MAX_HEADERS,
            read_bufsize=read_buffer_bytes,
        )

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = HTTPStatus.INTERNAL_SERVER_ERROR,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Log only muster's own errors: any pod can send malformed HTTP with any content."""
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return super().handle_error(request, status, exc, message)
        return self.make_malformed_response(status)

    def make_malformed_response(self, status: int, /) -> web.StreamResponse:
        """Return the response to malformed HTTP."""
        return web.Response(status=status)

import asyncio
import contextlib

import aiohttp
import pytest

from muster.controller.health import (
    MAX_CONNECTIONS,
    HealthCheck,
    get_failure_messages,
    open_listening_socket,
    serve_health,
)


@pytest.mark.parametrize(
    ("alive", "ready", "path", "code", "text"),
    [
        (True, True, "healthz", 200, "ok\n"),
        (True, True, "readyz", 200, "ok\n"),
        (True, False, "healthz", 200, "ok\n"),
        (True, False, "readyz", 503, "not ready\n"),
        (False, True, "healthz", 503, "not alive\n"),
        (True, True, "metrics", 404, None),
    ],
)
async def test_each_question_has_its_own_answer_and_says_what_is_wrong(
    *, alive: bool, ready: bool, path: str, code: int, text: str | None
) -> None:
    listening_socket = open_listening_socket("127.0.0.1", 0)
    port = listening_socket.getsockname()[1]
    is_alive, is_ready = HealthCheck("not alive", lambda: alive), HealthCheck("not ready", lambda: ready)
    async with (
        serve_health(
            listening_socket, lambda: get_failure_messages([is_alive]), lambda: get_failure_messages([is_ready])
        ),
        aiohttp.ClientSession() as asker,
        asker.get(f"http://127.0.0.1:{port}/{path}") as answer,
    ):
        assert answer.status == code
        assert text is None or await answer.text() == text


async def test_connections_that_ask_nothing_make_place_for_the_kubelet() -> None:
    listening_socket = open_listening_socket("127.0.0.1", 0)
    port = listening_socket.getsockname()[1]
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(serve_health(listening_socket, tuple, tuple))
        idle = []
        for _ in range(3 * MAX_CONNECTIONS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.callback(writer.close)
            writer.write(b"GET /hea")
            idle.append(reader)
        asker = await stack.enter_async_context(aiohttp.ClientSession())
        async with asyncio.timeout(5), asker.get(f"http://127.0.0.1:{port}/healthz") as answer:
            assert answer.status == 200
        with contextlib.suppress(ConnectionResetError):
            async with asyncio.timeout(5):
                assert await idle[0].read() == b""

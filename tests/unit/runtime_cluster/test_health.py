import socket

import aiohttp
import pytest

from muster.runtime.cluster.health import Check, serve_health


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
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    health = await serve_health(
        "127.0.0.1", port, [Check("not alive", lambda: alive)], [Check("not ready", lambda: ready)]
    )
    try:
        async with aiohttp.ClientSession() as asker, asker.get(f"http://127.0.0.1:{port}/{path}") as answer:
            assert answer.status == code
            assert text is None or await answer.text() == text
    finally:
        await health.cleanup()

"""The server of the board's page: who may read it, its headers, and its events."""

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from muster.backends.local.layout import FRAME_FILE
from muster.cli.board.frame import STATES, Frame, RankColumns
from muster.cli.board.frame_json import encode_frame
from muster.cli.web.access import Hosts, TokenAccess, make_token
from muster.cli.web.local_runs import MAX_LOG_BYTES, STALE_SECONDS, LocalRuns
from muster.cli.web.server import KEEP_ALIVE_SECONDS, SHUTDOWN_SECONDS, BoardServer
from support.board_client import read_event

RUNNING = STATES.index("Running")
FAILED = STATES.index("Failed")


@dataclass(frozen=True)
class Served:
    session: aiohttp.ClientSession
    url: str
    token: str

    def get(self, path: str, **headers: str) -> contextlib.AbstractAsyncContextManager[aiohttp.ClientResponse]:
        given = {"Authorization": f"Bearer {self.token}", **headers}
        return self.session.get(f"{self.url}{path}", headers=given)


@contextlib.asynccontextmanager
async def serve(folder: Path) -> AsyncIterator[Served]:
    access = TokenAccess(LocalRuns(folder), make_token())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        runner = web.AppRunner(BoardServer(access, Hosts(port)).build_app(), shutdown_timeout=SHUTDOWN_SECONDS)
        await runner.setup()
        await web.SockSite(runner, listener).start()
        try:
            async with aiohttp.ClientSession() as session:
                yield Served(session, f"http://127.0.0.1:{port}", access.token)
        finally:
            # No open stream delays the end.
            async with asyncio.timeout(KEEP_ALIVE_SECONDS / 3):
                await runner.cleanup()


def write_frame(folder: Path, *states: int, phase: str = "Running") -> None:
    folder.mkdir(exist_ok=True)
    columns = RankColumns(states, (0,) * len(states), (0,) * len(states))
    text = json.dumps(encode_frame(Frame("digits", phase, "", 1, 1, 2, columns)))
    new = folder / "new"
    new.write_text(text)
    new.rename(folder / FRAME_FILE)


@pytest.mark.parametrize("path", ["/api/jobs", "/api/jobs/digits/events", "/api/other"])
@pytest.mark.parametrize("authorization", ["", "Bearer ", "Bearer wrong", "Basic {token}", "{token}", "Bearer \u00e4"])
async def test_jobs_need_the_token(tmp_path: Path, path: str, authorization: str) -> None:
    write_frame(tmp_path / "digits", RUNNING)
    async with serve(tmp_path) as board:
        header = authorization.format(token=board.token)
        async with board.get(path, Authorization=header) as response:
            assert response.status == 401
            assert "digits" not in await response.text()


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "evil.example:{port}"])
@pytest.mark.parametrize("path", ["/", "/api/jobs"])
async def test_another_host_name_is_refused(tmp_path: Path, path: str, host: str) -> None:
    async with serve(tmp_path) as board:
        port = board.url.rpartition(":")[2]
        async with board.get(path, Host=host.format(port=port)) as response:
            assert response.status == 421
        async with board.get(path, Host=f"localhost:{port}") as response:
            assert response.status == 200


async def test_a_page_of_another_origin_is_refused(tmp_path: Path) -> None:
    async with serve(tmp_path) as board:
        for origin, status in {"http://evil.example": 403, "null": 403, board.url: 200}.items():
            async with board.get("/api/jobs", Origin=origin) as response:
                assert response.status == status, origin


async def test_a_request_with_a_body_is_refused(tmp_path: Path) -> None:
    async with serve(tmp_path) as board:
        headers = {"Authorization": f"Bearer {board.token}"}
        async with board.session.get(f"{board.url}/api/jobs", headers=headers, data=b"x") as response:
            assert response.status == 413


@pytest.mark.parametrize("path", ["/", "/main.js", "/api/jobs", "/missing", "/api/jobs/missing/events"])
async def test_each_answer_has_the_security_headers(tmp_path: Path, path: str) -> None:
    async with serve(tmp_path) as board, board.get(path) as response:
        policy = response.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';")
        assert "unsafe" not in policy
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert "Set-Cookie" not in response.headers
        assert "Server" not in response.headers


async def test_all_files_of_the_page_are_served_and_no_others(tmp_path: Path) -> None:
    names = [entry.name for entry in files("muster.cli.web").joinpath("static").iterdir()]
    async with serve(tmp_path) as board:
        for name in names:
            async with board.get(f"/{name}", Authorization="") as response:
                assert response.status == 200, name
        for path in ("/server.py", "/..%2Fserver.py", "/static/main.js"):
            async with board.get(path) as response:
                assert response.status == 404, path


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_the_board_is_read_only(tmp_path: Path, method: str) -> None:
    async with serve(tmp_path) as board:
        headers = {"Authorization": f"Bearer {board.token}"}
        async with board.session.request(method, f"{board.url}/api/jobs", headers=headers) as response:
            assert response.status == 405


async def test_the_newest_run_is_the_first_of_the_list(tmp_path: Path) -> None:
    write_frame(tmp_path / "digits-old", RUNNING, RUNNING, phase="Succeeded")
    os.utime(tmp_path / "digits-old" / FRAME_FILE, (1, 1))
    write_frame(tmp_path / "digits-new", RUNNING)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / FRAME_FILE).write_text("{")
    (tmp_path / "empty").mkdir()
    async with serve(tmp_path) as board, board.get("/api/jobs") as response:
        assert await response.json() == {
            "jobs": [
                {"key": "digits-new", "name": "digits", "title": "digits-new", "phase": "Running", "world": 1},
                {"key": "digits-old", "name": "digits", "title": "digits-old", "phase": "Succeeded", "world": 2},
            ]
        }


async def test_the_folder_of_one_run_is_a_list_of_one(tmp_path: Path) -> None:
    write_frame(tmp_path / "digits", RUNNING)
    assert [job.key for job in await LocalRuns(tmp_path / "digits").list_jobs()] == ["digits"]


async def test_a_stream_begins_with_a_frame_and_goes_on_with_changes(tmp_path: Path) -> None:
    write_frame(tmp_path / "digits", RUNNING, RUNNING, RUNNING)
    async with serve(tmp_path) as board, board.get("/api/jobs/digits/events") as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        first = await read_event(response)
        write_frame(tmp_path / "digits", RUNNING, FAILED, RUNNING)
        second = await read_event(response)
    assert (first["isFull"], second["isFull"]) == (True, False)
    assert second["columns"] == {"states": [1, 1, FAILED], "stepsBehind": [], "stepMicroseconds": []}


@pytest.mark.parametrize("key", ["missing", "..", "..%2Fdigits", "%2Fetc", "."])
async def test_a_stream_of_no_run_is_not_found(tmp_path: Path, key: str) -> None:
    write_frame(tmp_path / "digits", RUNNING)
    (tmp_path / "runs").mkdir()
    async with serve(tmp_path / "runs") as board, board.get(f"/api/jobs/{key}/events") as response:
        assert response.status == 404


@pytest.mark.parametrize(("phase", "has_notice"), [("Running", True), ("Failed", False), ("Succeeded", False)])
async def test_a_run_that_was_killed_has_a_notice(tmp_path: Path, phase: str, has_notice: bool) -> None:  # noqa: FBT001
    write_frame(tmp_path / "digits", RUNNING, phase=phase)
    runs = LocalRuns(tmp_path)
    assert (await runs.read_frame("digits")).notice == ""

    file = tmp_path / "digits" / FRAME_FILE
    old = file.stat().st_mtime - STALE_SECONDS - 1
    os.utime(file, (old, old))
    assert ("does not write" in (await runs.read_frame("digits")).notice) is has_notice


async def test_pipes_in_a_run_s_folder_block_no_other_run(tmp_path: Path) -> None:
    write_frame(tmp_path / "digits", RUNNING)
    (tmp_path / "digits" / "logs").mkdir()
    (tmp_path / "blocked").mkdir()
    for path in ("blocked/board.json", "digits/logs/digits-0.log"):
        os.mkfifo(tmp_path / path)
    runs = LocalRuns(tmp_path)
    assert [job.key for job in await runs.list_jobs()] == ["digits"]
    assert (await runs.read_rank("digits", 0)).last_lines == ()


async def test_the_output_of_a_rank_is_from_its_node_s_log(tmp_path: Path) -> None:
    write_frame(tmp_path / "digits", RUNNING, RUNNING, RUNNING)
    logs = tmp_path / "digits" / "logs"
    logs.mkdir()
    (logs / "digits-1.log").write_bytes(b"[rank 2] first" + b"x" * MAX_LOG_BYTES + b"\n[rank 2] last \xff\n")
    async with serve(tmp_path) as board:
        async with board.get("/api/jobs/digits/ranks/2") as response:
            assert await response.json() == {"lastLines": ["last \ufffd"], "stackLines": []}
        async with board.get("/api/jobs/digits/ranks/0") as response:
            assert await response.json() == {"lastLines": [], "stackLines": []}
        for path in ("digits/ranks/3", "digits/ranks/-1", "digits/ranks/x", "other/ranks/0"):
            async with board.get(f"/api/jobs/{path}") as response:
                assert response.status == 404, path
        async with board.get("/api/jobs/digits/ranks/2", Authorization="") as response:
            assert response.status == 401

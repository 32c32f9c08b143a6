"""`muster board` with the jobs of a real API server."""

import json
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from cluster.cli.told_jobs import FAILED, NAME, RUNNING, ToldJobs
from cluster.muster_command import Muster
from muster.cli.board.frame import STATES
from support.board_client import URL, BoardClient, open_client, read_event


@contextmanager
def served(muster: Muster, *options: str) -> Iterator[tuple[str, str]]:
    """Run `muster board`; the value is its URL and its token."""
    with muster.begin("board", *options) as process:
        assert process.stdout is not None
        try:
            printed = URL.match(process.stdout.readline())
            assert printed is not None
            yield printed[1], printed[2]
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0


@asynccontextmanager
async def opened(muster: Muster, *options: str) -> AsyncIterator[BoardClient]:
    with served(muster, *options) as (url, token):
        async with open_client(url, token) as board:
            yield board


async def test_a_board_shows_the_jobs_of_a_namespace_and_the_lines_of_a_rank(
    muster: Muster, told: ToldJobs, namespace: str
) -> None:
    told.create(RUNNING)
    told.pod(1, "echo '[rank 2] first'; echo '[rank 3] other'; echo '[rank 2] last'")
    told.pod_is(1, "Succeeded")
    context = json.loads(told.kubectl("config", "view", "--raw", "--output=json"))["current-context"]
    path = f"/api/jobs/{namespace}.{NAME}"
    async with opened(muster, "--namespace", namespace, "--context", context) as board:
        assert await board.read_json(f"{path}/ranks/2") == {"lastLines": ["first", "last"], "stackLines": []}
        assert await board.read_json(f"{path}/ranks/0") == {"lastLines": [], "stackLines": []}
        assert (await board.read(f"{path}/ranks/4"))[0] == 404
        async with board.get(f"{path}/events") as stream:
            first = await read_event(stream)
            assert (first["isFull"], first["name"], first["world"]) == (True, NAME, 4)
            assert first["columns"]["states"] == [0, 4, STATES.index("Running")]
            assert first["columns"]["stepsBehind"] == [0, 2, 0, 2, 1, 11, 3, 1, 0]
            told.tell(FAILED)
            while (event := await read_event(stream))["phase"] == "Running":
                assert event["columns"] == {"states": [], "stepsBehind": [], "stepMicroseconds": []}
            assert event["problems"][0]["end"] == "exit 3"
        told.delete()
        await until_listed(board)


async def until_listed(board: BoardClient, *keys: str) -> None:
    """Wait until the list has these jobs."""
    while [job["key"] for job in (await board.read_json("/api/jobs"))["jobs"]] != list(keys):
        pass


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--context", "elsewhere"), 'has no context "elsewhere"'),
        (("--namespace", "Team"), "is not a namespace's name"),
        (("--namespace", "team", "--dir", "runs"), "use either --dir"),
        (("--namespace", "team", "-A"), "use either --namespace or --all-namespaces"),
    ],
)
def test_what_a_board_can_t_show(muster: Muster, options: tuple[str, ...], said: str) -> None:
    done = muster("board", *options)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.usefixtures("crd")
def test_a_board_of_all_namespaces(muster: Muster) -> None:
    with served(muster, "--all-namespaces"):
        pass

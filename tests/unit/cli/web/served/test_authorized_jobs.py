"""What a reader of a cluster's board may see, and what the API server is asked about it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from fakes.review_server import ReviewServer
from muster.cli.web.job_frames import JobFrames
from muster.cli.web.served.authorized_jobs import AuthorizedJobs, Board
from muster.cli.web.served.namespace_watches import NamespaceWatches
from muster.cli.web.served.reviewer import KEEP_SECONDS, Reviewer, ReviewFailed
from muster.cli.web.source import JobNotFound, NotShown

RIGHTS = {("alice", "a", verb) for verb in ("list", "get", "watch")}


@dataclass
class Site:
    server: ReviewServer
    board: Board
    now: float = 100.0

    def open(self, namespace: str = "a") -> AuthorizedJobs:
        """Return the jobs for Alice."""
        return AuthorizedJobs(self.board, "alice's", namespace)


@asynccontextmanager
async def opened(folder: Path, *, shows_logs: bool = False, namespaces: tuple[str, ...] = ()) -> AsyncIterator[Site]:
    jobs = [
        {"metadata": {"name": name, "namespace": namespace, "resourceVersion": "1", "creationTimestamp": created}}
        for namespace, name, created in (
            ("a", "old", "2026-01-01T00:00:00Z"),
            ("a", "new", "2026-01-02T00:00:00Z"),
            ("b", "secret", "2026-01-01T00:00:00Z"),
        )
    ]
    server = ReviewServer({"alice's": "alice"}, set(RIGHTS), jobs)
    async with server.serve(folder) as client:
        site: Site
        reviewer = Reviewer(client, lambda: site.now)
        watches = NamespaceWatches(client, namespaces)
        site = Site(server, Board(reviewer, watches, JobFrames(client), shows_logs))
        try:
            yield site
        finally:
            await watches.close()


async def test_a_reader_sees_the_jobs_of_their_namespace(tmp_path: Path) -> None:
    async with opened(tmp_path) as site:
        jobs = site.open()
        assert [job.title for job in await jobs.list_jobs()] == ["a/new", "a/old"]
        assert (await jobs.read_frame("a.old")).name == "old"


async def refuse(jobs: AuthorizedJobs, key: str) -> str:
    with pytest.raises(JobNotFound) as caught:
        await jobs.read_frame(key)
    return str(caught.value)


async def test_a_job_that_may_not_be_seen_is_as_one_that_does_not_exist(tmp_path: Path) -> None:
    async with opened(tmp_path) as site:
        jobs = site.open()
        hidden, missing = await refuse(jobs, "b.secret"), await refuse(jobs, "b.missing")
        assert hidden.replace("secret", "missing") == missing
        assert missing.replace("namespace b", "namespace a") == await refuse(jobs, "a.missing")
        with pytest.raises(JobNotFound):
            await jobs.read_rank("b.secret", 0)


@pytest.mark.parametrize("namespace", ["b", "nowhere", "", "../a", "A", "a" * 300])
async def test_other_namespaces_are_not_listed(tmp_path: Path, namespace: str) -> None:
    async with opened(tmp_path) as site:
        with pytest.raises(NotShown, match="you may not list the distributedtrainingjobs"):
            await site.open(namespace).list_jobs()


@pytest.mark.parametrize("key", ["", "a", ".", "a.", ".old", "a/old", "a.Old", "../b.secret", "a." + "x" * 300])
async def test_what_is_no_job_s_key_is_not_asked_about(tmp_path: Path, key: str) -> None:
    async with opened(tmp_path) as site:
        assert await refuse(site.open(), key) == "there is no such job"
        assert site.server.asked == []


@pytest.mark.parametrize("missing", ["get", "watch"])
async def test_a_frame_needs_the_rights_to_get_and_to_watch(tmp_path: Path, missing: str) -> None:
    async with opened(tmp_path) as site:
        site.server.rights.remove(("alice", "a", missing))
        await refuse(site.open(), "a.old")


async def test_a_board_of_some_namespaces_shows_no_others(tmp_path: Path) -> None:
    async with opened(tmp_path, namespaces=("b",)) as site:
        await refuse(site.open(), "a.old")
        with pytest.raises(NotShown):
            await site.open().list_jobs()


async def test_answers_are_used_for_seconds_and_then_asked_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as site:
        jobs = site.open()
        for _ in range(3):
            await jobs.read_frame("a.old")
        rights = ["alice get distributedtrainingjobs in a", "alice watch distributedtrainingjobs in a"]
        assert site.server.asked == ["token alice's", *rights]

        site.server.rights.remove(("alice", "a", "get"))
        site.now += KEEP_SECONDS
        await refuse(jobs, "a.old")

        site.server.rights.add(("alice", "a", "get"))
        site.server.users.clear()
        site.now += KEEP_SECONDS
        await refuse(jobs, "a.old")


async def test_without_an_answer_nothing_is_shown(tmp_path: Path) -> None:
    async with opened(tmp_path) as site:
        site.server.is_broken = True
        with pytest.raises(NotShown, match="can't check tokens now: etcd is away"):
            await site.open().read_frame("a.old")
        site.server.is_broken = False
        await site.open().read_frame("a.old")


async def test_guessed_tokens_don_t_reach_the_api_server_without_bound(tmp_path: Path) -> None:
    async with opened(tmp_path) as site:
        reviewer = site.board.reviewer
        assert await reviewer.authenticate("alice's") is not None
        guesses = [reviewer.authenticate(f"guess {number}") for number in range(100)]
        results = await asyncio.gather(*guesses, return_exceptions=True)
        assert {str(each) for each in results} == {"None", "too many requests: try again in a second"}
        assert {type(each) for each in results} == {type(None), ReviewFailed}
        # two questions for each: for the board's audience, and for the API server's
        assert len([each for each in site.server.asked if "guess" in each]) < 120
        # whose token was valid is asked about again in time
        site.now += KEEP_SECONDS
        assert await reviewer.authenticate("alice's") is not None


@pytest.mark.parametrize("token", ["", "ä", "x" * 20_000])
async def test_what_is_no_token_is_not_asked_about(tmp_path: Path, token: str) -> None:
    async with opened(tmp_path) as site:
        assert await site.board.reviewer.authenticate(token) is None
        assert site.server.asked == []


async def test_questions_about_one_user_are_limited(tmp_path: Path) -> None:
    async with opened(tmp_path) as site:
        jobs = site.open()
        asked = [jobs.read_frame(f"b.job-{number}") for number in range(200)]
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(each) for each in results} == {JobNotFound, NotShown}
        assert len(site.server.asked) < 80


async def test_logs_need_the_board_s_option_and_the_reader_s_right(tmp_path: Path) -> None:
    async with opened(tmp_path) as site:
        with pytest.raises(NotShown, match="this board shows no logs: muster logs old --rank 3 -n a"):
            await site.open().read_rank("a.old", 3)
    async with opened(tmp_path, shows_logs=True) as site:
        with pytest.raises(NotShown, match="you may not get pods/log in the namespace a"):
            await site.open().read_rank("a.old", 0)
        site.server.rights.add(("alice", "a", "pods/log"))
        site.now += KEEP_SECONDS
        with pytest.raises(JobNotFound, match="old has no rank 0"):
            await site.open().read_rank("a.old", 0)

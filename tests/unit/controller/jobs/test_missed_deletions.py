import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from fakes.api_server import ApiServer, make_failure, served
from muster.clients.kubernetes.client import Listing
from muster.controller.jobs import missed_deletions
from muster.controller.jobs.missed_deletions import MissedDeletionFinder, find_deleted_jobs
from muster.objects.kubernetes.resource import read_resource
from unit.controller.cluster_resources import resource


@pytest.mark.parametrize(
    ("known", "listed", "as_of", "deleted"),
    [
        ([("a", 10)], ["a"], "50", ()),
        ([("a", 10), ("b", 20)], ["b"], "50", ("a",)),
        # created after the list
        ([("a", 60)], [], "50", ()),
        # as old as the list
        ([("a", 50)], [], "50", ("a",)),
        # in the list, and not yet reported by the watch
        ([], ["a"], "50", ()),
    ],
)
def test_what_is_known_and_not_there_has_vanished(
    known: list[tuple[str, int]], listed: list[str], as_of: str, deleted: tuple[str, ...]
) -> None:
    resources = [read_resource(resource(uid=uid, version=version)) for uid, version in known]
    assert find_deleted_jobs(resources, Listing(tuple(resource(uid=uid) for uid in listed), as_of)) == deleted


async def test_after_a_gap_the_missing_are_looked_for_until_the_api_server_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missed_deletions, "SETTLE_SECONDS", 0.01)
    monkeypatch.setattr(missed_deletions, "RETRY_SECONDS", 0.01)
    server = ApiServer({"metadata": {"resourceVersion": "50"}, "items": [resource(uid="a", version=10)]})
    server.mishaps = [lambda _: make_failure(500, "InternalError", "etcd")]
    items = tuple(read_resource(resource(uid=uid, version=20)) for uid in ("a", "b"))
    dropped: asyncio.Queue[str] = asyncio.Queue()
    watch_gap = asyncio.Event()
    async with served(server, tmp_path) as client:
        work = asyncio.create_task(
            MissedDeletionFinder(client, ("team",), lambda: items, dropped.put_nowait, watch_gap).run()
        )
        watch_gap.set()
        async with asyncio.timeout(5):
            assert await dropped.get() == "b"
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
    assert dropped.empty()

"""The frames of a cluster's jobs: when a job is read again, and how many are kept."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fakes.review_server import ReviewServer
from muster.cli.web import job_frames
from muster.cli.web.job_frames import JobFrames
from muster.cli.web.job_list import ListedJob, read_listed_job
from muster.cli.web.source import JobNotFound

STATUS: dict[str, Any] = {
    "phase": "Running",
    "message": "4 of 4 ranks run",
    "ranks": {"world": 4, "running": 4, "ready": "4/4", "byState": [{"state": "Running", "count": 4, "ranks": "0-3"}]},
    "conditions": [
        {
            "type": "Running",
            "status": "True",
            "reason": "Running",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
}


def make_job(name: str, version: str = "1", **status: object) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "a", "uid": name, "resourceVersion": version}
    return {"metadata": {**metadata, "creationTimestamp": "2026-01-01T00:00:00Z"}, "status": {**STATUS, **status}}


def listed(job: dict[str, Any]) -> ListedJob:
    return read_listed_job(job)


async def test_a_job_is_read_again_only_in_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_frames, "PAUSE_FACTOR", 0.0)
    server = ReviewServer(jobs=[make_job("vit")])
    async with server.serve(tmp_path) as client:
        frames = JobFrames(client)
        first = await frames.read(listed(server.jobs[0]))
        server.jobs[0] = make_job("vit", "2", message="3 of 4 ranks run")
        assert (await frames.read(listed(make_job("vit")))).frame.message == "4 of 4 ranks run"
        second = await frames.read(listed(server.jobs[0]))
        assert second.frame.message == "3 of 4 ranks run"
        assert second.frame.columns == first.frame.columns


async def test_pages_at_the_same_time_share_a_frame(tmp_path: Path) -> None:
    server = ReviewServer(jobs=[make_job("vit", completionTime="2026-01-01T01:00:00Z", phase="Succeeded")])
    server.jobs[0]["status"]["conditions"][0]["type"] = "Complete"
    async with server.serve(tmp_path) as client:
        frames = JobFrames(client)
        one, other = await asyncio.gather(*(frames.read(listed(server.jobs[0])) for _ in range(2)))
        assert one is other
        assert one.frame.elapsed_seconds == 3600


async def test_a_job_that_is_gone_and_a_cluster_that_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_frames, "PAUSE_FACTOR", 0.0)
    server = ReviewServer(jobs=[make_job("vit")])
    async with server.serve(tmp_path) as client:
        frames = JobFrames(client)
        await frames.read(listed(server.jobs[0]))
        server.is_broken = True
        kept = await frames.read(listed(make_job("vit", "2")))
        assert "the cluster doesn't answer: etcd is away" in kept.frame.notice
        assert kept.frame.world == 4
        server.is_broken = False
        with pytest.raises(JobNotFound, match="no job other in the namespace a"):
            await frames.read(listed(make_job("other")))


async def test_jobs_with_too_many_ranks_give_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_frames, "MAX_TOTAL_RANKS", 10)
    server = ReviewServer(jobs=[make_job(f"vit-{number}") for number in range(4)])
    async with server.serve(tmp_path) as client:
        frames = JobFrames(client)
        shown = [await frames.read(listed(job)) for job in server.jobs]
        again = [await frames.read(listed(job)) for job in reversed(server.jobs)]
    # The newest two are kept, until the others push them out.
    assert [one.job is other.job for one, other in zip(shown, reversed(again), strict=True)] == [
        False,
        False,
        True,
        True,
    ]


async def test_a_status_that_is_too_long_is_not_shown(tmp_path: Path) -> None:
    server = ReviewServer(jobs=[make_job("vit", message="x" * 300_000)])
    async with server.serve(tmp_path) as client:
        shown = await JobFrames(client).read(listed(server.jobs[0]))
    assert shown.frame.message.startswith("its status can't be read (status: ")
    assert shown.frame.world == 0

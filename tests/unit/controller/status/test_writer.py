"""The status is written only if the resource still has the version that the status was made from."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fakes.api_server import ApiServer, lose_response, make_failure, served
from muster.api.status.progress import Progress
from muster.api.status.status import Status
from muster.clients.kubernetes.client import Client
from muster.controller.status.write_budget import WriteBudget
from muster.controller.status.writer import (
    CROWDED_INTERVAL_SECONDS,
    PROGRESS_INTERVAL_SECONDS,
    SETTLE_SECONDS,
    JobNotFound,
    NotLeading,
    ResourceChanged,
    StatusWriter,
    StatusWriterDependencies,
)
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.resource import Resource, read_resource
from unit.controller.cluster_resources import resource


@dataclass
class Site:
    server: ApiServer
    client: Client
    budget: WriteBudget = field(default_factory=WriteBudget)
    now: float = 1000.0
    holds_lease: bool = True
    is_crowded: bool = False
    reports: list[tuple[str, str]] = field(default_factory=list)
    writes: int = 0

    def status_writer(self) -> StatusWriter:
        assert self.server.resource is not None
        desk = StatusWriterDependencies(
            self.client,
            self.budget,
            lambda: self.now,
            self.publish,
            lambda: self.holds_lease,
            lambda namespace: self.is_crowded and namespace == "team",
        )
        return StatusWriter(read_resource(self.server.resource), desk, self.count_write)

    def count_write(self) -> None:
        self.writes += 1

    def publish(self, _: Resource, before: Status, after: Status) -> None:
        self.reports.append((before.phase, after.phase))


@asynccontextmanager
async def site(folder: Path, **resource_fields: Any) -> AsyncIterator[Site]:
    server = ApiServer(dict(resource(**resource_fields)))
    async with served(server, folder) as client:
        yield Site(server, client)


def running(step: int) -> Status:
    return Status(phase="Running", message=f"step {step}", progress=Progress(step=step))


async def test_news_is_stored_when_write_returns(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        status_writer = here.status_writer()
        status_writer.begin_reconcile()
        await status_writer.write(Status(phase="Starting", message="two of two nodes are there"))
        assert here.server.status["phase"] == "Starting"
        assert here.server.patches[0]["metadata"] == {"resourceVersion": "100", "uid": "u-1"}
        assert status_writer.newest_resource.version == "101"
        assert here.reports == [("Pending", "Starting")]
        assert here.writes == 1


async def test_only_what_differs_is_sent_and_nothing_when_nothing_does(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        status_writer = here.status_writer()
        for status in (running(1), running(1), running(1).model_copy(update={"phase": "Stopping"})):
            status_writer.begin_reconcile()
            await status_writer.write(status)
        assert [patch["status"] for patch in here.server.patches][1:] == [{"phase": "Stopping"}]


async def test_progress_is_written_every_two_seconds_and_is_due_in_between(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        status_writer, began = here.status_writer(), here.now
        written = []
        for step in range(50):
            status_writer.begin_reconcile()
            await status_writer.write(running(step))
            written.append(here.server.status["progress"]["step"])
            here.now += 0.1
            assert status_writer.progress_due_at is None or status_writer.progress_due_at > began
        assert len(here.server.patches) == 3
        assert written[-1] == 40
        assert status_writer.progress_due_at == pytest.approx(began + 3 * PROGRESS_INTERVAL_SECONDS)


async def test_changes_shortly_after_the_first_one_are_written_with_it(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        status_writer = here.status_writer()
        status_writer.begin_reconcile()
        await status_writer.write(running(1))
        here.now += 10 * PROGRESS_INTERVAL_SECONDS
        for step in (2, 3, 4):
            status_writer.begin_reconcile()
            await status_writer.write(running(step))
            here.now += SETTLE_SECONDS / 2
        assert [patch["status"]["progress"]["step"] for patch in here.server.patches] == [1, 4]


async def test_progress_is_rare_while_other_requests_of_the_namespace_wait(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        status_writer = here.status_writer()
        here.is_crowded = True
        for step in range(2 * int(CROWDED_INTERVAL_SECONDS) + 1):
            status_writer.begin_reconcile()
            await status_writer.write(running(step))
            here.now += 1.0
        assert [patch["status"]["progress"]["step"] for patch in here.server.patches] == [0, 20, 40]
        status_writer.begin_reconcile()
        await status_writer.write(Status(phase="Failed", message="rank 3"))
        assert here.server.status["phase"] == "Failed"
        here.is_crowded = False
        here.now += PROGRESS_INTERVAL_SECONDS
        status_writer.begin_reconcile()
        await status_writer.write(Status(phase="Failed", message="rank 3", progress=Progress(step=41)))
        assert status_writer.progress_due_at == here.now + SETTLE_SECONDS


async def test_news_takes_the_progress_along_and_does_not_wait(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        status_writer = here.status_writer()
        for status in (running(1), running(2), Status(phase="Failed", message="rank 3", progress=Progress(step=2))):
            status_writer.begin_reconcile()
            await status_writer.write(status)
        assert (here.server.status["phase"], here.server.status["progress"]["step"]) == ("Failed", 2)
        assert status_writer.progress_due_at is None


async def test_progress_waits_for_its_turn_among_all_jobs(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        status_writer = here.status_writer()
        status_writer.begin_reconcile()
        await status_writer.write(running(1))
        here.now += PROGRESS_INTERVAL_SECONDS
        for _ in range(1000):
            here.budget.reserve(here.now, "team")
        status_writer.begin_reconcile()
        await status_writer.write(running(2))
        assert len(here.server.patches) == 1
        here.now += SETTLE_SECONDS
        await status_writer.write(running(2))
        assert status_writer.progress_due_at is not None
        assert status_writer.progress_due_at > here.now
        here.now = status_writer.progress_due_at
        await status_writer.write(running(3))
        assert here.server.status["progress"]["step"] == 3


async def test_a_job_that_may_not_write_yet_takes_no_turn_from_others(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        here.budget = WriteBudget(per_second=0.1)
        status_writer = here.status_writer()
        status_writer.begin_reconcile()
        await status_writer.write(running(1))
        status_writer.begin_reconcile()
        here.now += PROGRESS_INTERVAL_SECONDS / 2
        await status_writer.write(running(2))
        assert status_writer.progress_due_at == here.now + PROGRESS_INTERVAL_SECONDS / 2
        here.now = status_writer.progress_due_at
        others = here.budget.reserve(here.now, "team")
        await status_writer.write(running(2))
        assert status_writer.progress_due_at == others + 10.0


async def test_a_changed_resource_is_not_overwritten(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        status_writer = here.status_writer()
        status_writer.begin_reconcile()
        here.server.change(generation=2)
        with pytest.raises(ResourceChanged):
            await status_writer.write(running(1))
        assert here.server.status == {}
        assert status_writer.newest_resource.generation == 2
        # the next reconciliation uses the current version
        assert status_writer.begin_reconcile().generation == 2
        await status_writer.write(running(1))
        assert here.server.status["phase"] == "Running"


async def test_a_newer_version_heard_of_during_the_turn_ends_it_without_a_request(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        status_writer = here.status_writer()
        status_writer.begin_reconcile()
        assert status_writer.handle_change(resource(version=101, generation=2))
        with pytest.raises(ResourceChanged):
            await status_writer.write(running(1))
        assert here.server.patches == []


@pytest.mark.parametrize("version", [98, 100])
async def test_versions_that_are_known_or_older_are_passed_over(tmp_path: Path, version: int) -> None:
    async with site(tmp_path) as here:
        status_writer = here.status_writer()
        assert not status_writer.handle_change(resource(version=version, generation=7))
        assert status_writer.newest_resource.generation == 1


async def test_an_answer_that_was_lost_after_the_commit_costs_one_turn(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        status_writer = here.status_writer()
        status_writer.begin_reconcile()
        here.server.mishaps.append(lose_response)
        with pytest.raises(ApiError):
            await status_writer.write(running(1))
        status_writer.begin_reconcile()
        with pytest.raises(ResourceChanged):
            await status_writer.write(running(1))
        status_writer.begin_reconcile()
        await status_writer.write(running(1))
        assert len(here.server.patches) == 2
        assert here.server.status["phase"] == "Running"
        assert here.reports == [("Pending", "Running")]


async def test_a_write_is_reported_when_the_watch_sees_it_first(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        status_writer = here.status_writer()
        status_writer.begin_reconcile()
        here.server.mishaps.append(lose_response)
        with pytest.raises(ApiError):
            await status_writer.write(Status(phase="Succeeded"))
        assert here.server.resource is not None
        assert status_writer.handle_change(here.server.resource)
        for _ in range(2):
            status_writer.begin_reconcile()
            await status_writer.write(Status(phase="Succeeded"))
        assert here.reports == [("Pending", "Succeeded")]


async def test_a_failed_write_is_not_reported(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        status_writer = here.status_writer()
        status_writer.begin_reconcile()
        here.server.mishaps.append(lambda _: make_failure(500, "InternalError", "not now"))
        with pytest.raises(ApiError):
            await status_writer.write(Status(phase="Succeeded"))
        here.server.change(generation=2)
        assert here.server.resource is not None
        assert status_writer.handle_change(here.server.resource)
        status_writer.begin_reconcile()
        assert here.reports == []
        assert here.writes == 0


async def test_a_resource_of_the_same_name_made_anew_is_another_job(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        status_writer = here.status_writer()
        status_writer.begin_reconcile()
        here.server.resource = dict(resource(uid="u-2", version=200))
        with pytest.raises(JobNotFound):
            await status_writer.write(running(1))
        assert here.server.status == {}


async def test_a_deleted_resource_ends_the_writer(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        status_writer = here.status_writer()
        status_writer.begin_reconcile()
        here.server.resource = None
        with pytest.raises(JobNotFound):
            await status_writer.write(running(1))


async def test_what_the_server_does_not_take_is_the_turns_failure(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        status_writer = here.status_writer()
        status_writer.begin_reconcile()
        here.server.mishaps.append(lambda _: make_failure(429, "TooManyRequests", "later", **{"Retry-After": "3"}))
        with pytest.raises(ApiError) as refused:
            await status_writer.write(running(1))
        assert refused.value.retry_after == 3
        assert here.reports == []
        await status_writer.write(running(1))
        assert here.server.status["phase"] == "Running"


async def test_what_an_older_crd_does_not_keep_is_not_sent_again_and_again(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        here.server.unknown = ("attempt",)
        status_writer = here.status_writer()
        started = Status(phase="Running", attempt=1)
        for status in (started, started, started, started.model_copy(update={"phase": "Stopping"})):
            status_writer.begin_reconcile()
            await status_writer.write(status)
        assert len(here.server.patches) == 2
        assert here.server.status["phase"] == "Stopping"


async def test_no_turn_may_act_that_does_not_hold_the_lease(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        status_writer = here.status_writer()
        status_writer.begin_reconcile()
        await status_writer.write(running(1))
        here.holds_lease = False
        status_writer.begin_reconcile()
        # Nothing differs, so no request is sent.
        with pytest.raises(NotLeading):
            await status_writer.write(running(1))
        assert len(here.server.patches) == 1

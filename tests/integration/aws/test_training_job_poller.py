"""The poller with errors and unusual answers: through botocore, in virtual time."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest

from fakes.sagemaker_service import wire
from fakes.sagemaker_service.faults import Fault
from fakes.sagemaker_service.jobs import Jobs
from fakes.sagemaker_service.script import Stage
from fakes.sagemaker_service.service import Service
from fakes.sagemaker_site.site import Wire
from muster.clients.aws.client import Aws
from muster.clients.aws.training_job_poller import (
    FULL_LIST_SECONDS,
    LIST_SECONDS,
    TOLERATED_FAILURES,
    TrainingJobPoller,
    Watch,
)
from muster.objects.aws.access import AwsAccess
from muster.objects.aws.errors import AccessDenied, AwsError, Unavailable
from muster.objects.aws.listing import ListFilter, Page
from muster.objects.aws.training_job import TrainingJobDescription, TrainingJobSummary
from support import virtual_time
from support.training_job_requests import make_training_job_request

HERE = AwsAccess("us-west-2")
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
ENDLESS = (Stage("Starting", 5), Stage("Training"))
ONE_AND_A_HALF = 1.5 * LIST_SECONDS


@dataclass
class Site:
    """One region with its service, and a watcher."""

    service: Service
    aws: Aws
    reports: list[tuple[float, str]] = field(default_factory=list)

    @property
    def jobs(self) -> Jobs:
        return self.service.get_jobs(HERE.region)

    def create(self, name: str, **changes: object) -> None:
        self.jobs.create(make_training_job_request(name, **changes), self.service.now())

    def watch(self, name: str, since: datetime | None = None) -> Watch:
        clock = asyncio.get_running_loop().time
        return self.aws.get_poller(HERE).watch(
            name, since or self.service.now(), lambda: self.reports.append((clock(), name))
        )

    def tasks(self) -> list[str]:
        return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("poller")]

    def turn(self, name: str, *script: Stage) -> None:
        """Change the job's future states."""
        self.jobs.by_name[name].course.turn(script, self.service.now())


@cache
def shared_wire() -> Wire:
    """Return the connections of all tests: creating botocore clients takes long."""
    return Wire()


def at_a_site(test: Callable[[Site], Awaitable[None]]) -> Site:
    latency = random.Random(4)  # noqa: S311

    async def main() -> Site:
        loop = asyncio.get_running_loop()
        service = Service(lambda: BEGINNING + timedelta(seconds=loop.time()))
        service.get_jobs(HERE.region).script = lambda _request: ENDLESS
        aws = Aws(jitter=latency.random)
        aws._connections |= shared_wire().aws._connections
        shared_wire().handle = service.handle
        site = Site(service, aws)
        await test(site)
        await aws.close()
        return site

    return virtual_time.run(main(), lambda: latency.uniform(0.02, 0.2))


def secondary(watch: Watch) -> str:
    latest = watch.observation.latest
    return "" if latest is None else latest.secondary_status


def problem(watch: Watch) -> AwsError | None:
    return watch.problem


def test_a_job_is_found_before_and_after_it_is_created() -> None:
    async def test(site: Site) -> None:
        watch = site.watch("a-1")
        await asyncio.sleep(2)
        assert watch.observation.is_missing
        site.create("a-1")
        watch.describe_soon()
        await asyncio.sleep(1)
        assert (watch.observation.is_missing, secondary(watch)) == (False, "Starting")
        await asyncio.sleep(5 + ONE_AND_A_HALF)
        assert isinstance(watch.observation.latest, TrainingJobDescription)
        assert secondary(watch) == "Training"

    at_a_site(test)


def test_a_job_is_described_when_it_changed_and_not_again() -> None:
    async def test(site: Site) -> None:
        site.create("a-1")
        site.watch("a-1")
        await asyncio.sleep(FULL_LIST_SECONDS - 1)
        site.turn("a-1", Stage("Stopped", status="Stopped"))
        await asyncio.sleep(FULL_LIST_SECONDS)

    # When its watch began (it was listed at the same time), when it began to train, and when it ended.
    assert len(at_a_site(test).service.list_calls("DescribeTrainingJob")) == 4


def test_a_change_is_reported_once_unless_many_come_together() -> None:
    async def test(site: Site) -> None:
        for number in range(100):
            site.create(f"a-{number}")
            site.watch(f"a-{number}")
        await asyncio.sleep(120)
        site.reports.clear()
        site.turn("a-0", Stage("Uploading"))
        await asyncio.sleep(60)
        assert [name for _, name in site.reports] == ["a-0"]
        site.reports.clear()
        for number in range(100):
            site.turn(f"a-{number}", Stage("Interrupted"))
        changed = asyncio.get_running_loop().time()
        await asyncio.sleep(60)
        first = {name: at for at, name in reversed(site.reports)}
        assert len(first) == 100
        assert max(first.values()) - changed < ONE_AND_A_HALF
        assert 150 < len(site.reports) <= 200

    at_a_site(test)


def test_nothing_runs_without_watches() -> None:
    async def test(site: Site) -> None:
        site.create("a-1")
        for _ in range(2):
            watches = [site.watch("a-1"), site.watch("a-2")]
            await asyncio.sleep(ONE_AND_A_HALF)
            assert secondary(watches[0]) == "Training"
            assert site.tasks() == ["poller us-west-2"]
            for watch in watches:
                watch.close()
            await asyncio.sleep(1)
            assert site.tasks() == []
            asked = len(site.service.calls)
            await asyncio.sleep(10 * LIST_SECONDS)
            assert len(site.service.calls) == asked

    at_a_site(test)


def test_who_watches_anew_takes_over_what_is_known() -> None:
    async def test(site: Site) -> None:
        site.create("a-1")
        first = site.watch("a-1")
        await asyncio.sleep(LIST_SECONDS + ONE_AND_A_HALF)
        second = site.watch("a-1")
        first.close()
        assert secondary(second) == "Training"
        site.turn("a-1", Stage("Uploading"))
        await asyncio.sleep(ONE_AND_A_HALF)
        assert secondary(second) == "Uploading"

    at_a_site(test)


def test_an_older_job_is_followed_as_well() -> None:
    async def test(site: Site) -> None:
        site.create("old")
        await asyncio.sleep(3600)
        site.create("new")
        site.watch("new")
        await asyncio.sleep(60)
        watch = site.watch("old", BEGINNING)
        await asyncio.sleep(60)
        site.turn("old", Stage("Uploading"))
        await asyncio.sleep(ONE_AND_A_HALF)
        assert secondary(watch) == "Uploading"

    at_a_site(test)


def test_listings_go_back_no_further_than_the_oldest_job() -> None:
    async def test(site: Site) -> None:
        for number in range(500):
            site.create(f"theirs-{number}")
        await asyncio.sleep(3600)
        site.create("ours")
        site.watch("ours")
        await asyncio.sleep(10 * LIST_SECONDS)

    # One page each, although the account has five.
    assert len(at_a_site(test).service.list_calls("ListTrainingJobs")) <= 11


def test_a_missing_permission_is_reported_at_once_and_until_it_is_granted() -> None:
    async def test(site: Site) -> None:
        site.create("a-1")
        site.service.faults.chance = lambda operation: Fault.DENY if operation == "ListTrainingJobs" else None
        watch = site.watch("a-1")
        await asyncio.sleep(2)
        assert isinstance(problem(watch), AccessDenied)
        assert secondary(watch) == "Starting"
        site.service.faults.chance = lambda _operation: None
        value = len(site.reports)
        await asyncio.sleep(2 * ONE_AND_A_HALF)
        assert problem(watch) is None
        assert len(site.reports) > value

    at_a_site(test)


def test_a_lost_right_costs_few_requests() -> None:
    async def test(site: Site) -> None:
        site.service.faults.chance = lambda _operation: Fault.DENY
        site.watch("a-1")
        await asyncio.sleep(3600)

    calls = at_a_site(test).service.calls
    # Twice a minute at most, for each kind, and some at the beginning; four descriptions at a time.
    assert len(calls) < 60 * 2 * 5 + 50


def test_temporary_failures_are_not_reported() -> None:
    async def test(site: Site) -> None:
        site.create("a-1")
        site.service.faults.add("ListTrainingJobs", Fault.FAIL, TOLERATED_FAILURES)
        site.service.faults.add("DescribeTrainingJob", Fault.DROP, TOLERATED_FAILURES)
        watch = site.watch("a-1")
        for _ in range(100):
            await asyncio.sleep(0.5)
            assert problem(watch) is None
        assert secondary(watch) == "Training"

    at_a_site(test)


def test_a_lasting_outage_is_reported() -> None:
    async def test(site: Site) -> None:
        site.service.faults.chance = lambda _operation: Fault.DROP
        watch = site.watch("a-1")
        await asyncio.sleep(60)
        result = problem(watch)
        assert isinstance(result, Unavailable)
        assert "does not answer sagemaker:" in result.message

    at_a_site(test)


def test_others_who_use_up_the_quota_slow_the_poller_down_and_it_recovers() -> None:
    async def test(site: Site) -> None:
        site.create("a-1")
        watch = site.watch("a-1")
        await asyncio.sleep(60)
        site.service.faults.chance = lambda operation: Fault.THROTTLE if operation == "ListTrainingJobs" else None
        before = len(site.service.list_calls("ListTrainingJobs"))
        await asyncio.sleep(300)
        # Every 16 s at the end, not every half second.
        assert len(site.service.list_calls("ListTrainingJobs")) - before < 300 / 16 + 10
        assert problem(watch) is not None
        site.service.faults.chance = lambda _operation: None
        site.turn("a-1", Stage("Uploading"))
        await asyncio.sleep(16 + ONE_AND_A_HALF)
        assert (problem(watch), secondary(watch)) == (None, "Uploading")

    at_a_site(test)


def test_a_listing_with_an_expired_token_starts_again() -> None:
    async def test(site: Site) -> None:
        for number in range(250):
            site.create(f"a-{number}")
        # It's on the third page.
        watch = site.watch("a-0", BEGINNING)
        site.jobs.token_seconds = 0.1
        await asyncio.sleep(10)
        site.jobs.token_seconds = 5.0
        await asyncio.sleep(LIST_SECONDS + ONE_AND_A_HALF)
        assert problem(watch) is None
        assert secondary(watch) == "Training"

    at_a_site(test)


def test_a_listing_that_lags_takes_nothing_back_and_loses_nothing() -> None:
    async def test(site: Site) -> None:
        site.jobs.lag_seconds = 20.0
        site.create("a-1")
        watch = site.watch("a-1")
        visited: list[str] = []
        for second in range(400):
            if second == 100:
                site.turn("a-1", Stage("Uploading", 30), Stage("Completed", status="Completed"))
                watch.describe_soon()
            if second == 110:
                assert secondary(watch) == "Uploading"
            await asyncio.sleep(1)
            if secondary(watch) and (not visited or visited[-1] != secondary(watch)):
                visited.append(secondary(watch))
        assert visited == ["Starting", "Training", "Uploading", "Completed"]

    at_a_site(test)


def test_a_job_that_was_deleted_is_missed_in_the_end() -> None:
    async def test(site: Site) -> None:
        site.create("a-1")
        watch = site.watch("a-1")
        await asyncio.sleep(60)
        del site.jobs.by_name["a-1"]
        await asyncio.sleep(FULL_LIST_SECONDS + ONE_AND_A_HALF)
        assert watch.observation.is_missing

    at_a_site(test)


def test_a_failing_callback_does_not_affect_the_others() -> None:
    def fail() -> None:
        raise ValueError

    async def test(site: Site) -> None:
        for name in ("a-1", "a-2"):
            site.create(name)
        site.aws.get_poller(HERE).watch("a-1", BEGINNING, fail)
        watch = site.watch("a-2")
        await asyncio.sleep(LIST_SECONDS + ONE_AND_A_HALF)
        assert secondary(watch) == "Training"

    at_a_site(test)


@dataclass
class Mistaken:
    """Fails at the first call of each kind."""

    calls: list[str] = field(default_factory=list)

    async def list_page(self, since: ListFilter, next_token: str = "") -> Page:
        return Page((self._made("page", since, next_token),), "", None)

    async def describe(self, name: str) -> TrainingJobDescription:
        result = self._made("describe", name)
        return TrainingJobDescription(
            name, result.arn, result.status, "Described", result.created_at, result.modified_at
        )

    def _made(self, call: str, *_: object) -> TrainingJobSummary:
        self.calls.append(call)
        if self.calls.count(call) == 1:
            raise ZeroDivisionError
        return TrainingJobSummary("a-1", "arn", "InProgress", "Listed", BEGINNING, BEGINNING)


def test_a_mistake_of_musters_own_ends_no_poller(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> str:
        poller = TrainingJobPoller(Mistaken(), HERE, lambda: None, lambda: 0.5)
        watch = poller.watch("a-1", BEGINNING, lambda: None)
        task = asyncio.create_task(poller.run())
        await asyncio.sleep(2 * LIST_SECONDS)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return secondary(watch)

    assert virtual_time.run(main()) == "Described"
    assert caplog.text.count("unexpected error") == 2


def test_regions_have_a_pace_of_their_own() -> None:
    aws_accesses = [AwsAccess(region) for region in ("us-west-2", "us-east-1", "eu-west-1")]

    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        service = Service(lambda: BEGINNING + timedelta(seconds=loop.time()))
        aws = Aws()
        for aws_access in aws_accesses:
            wire.join(aws, aws_access, service)
        await asyncio.gather(
            *(aws.get_training_jobs(aws_access).list_page(ListFilter()) for aws_access in aws_accesses * 2)
        )
        await aws.close()
        return sorted(
            round((call.at - BEGINNING).total_seconds(), 1) for call in service.list_calls("ListTrainingJobs")
        )

    assert virtual_time.run(main()) == [0.0, 0.0, 0.0, 0.5, 0.5, 0.5]

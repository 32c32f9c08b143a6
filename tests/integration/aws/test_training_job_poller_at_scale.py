"""A thousand jobs, watched for some minutes: through botocore, with AWS' rate limits, in virtual time."""

import asyncio
import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from fakes.sagemaker_service import wire
from fakes.sagemaker_service.faults import Fault, share
from fakes.sagemaker_service.script import Script, Stage, draw_training
from fakes.sagemaker_service.service import RATES, Service
from muster.clients.aws.client import Aws
from muster.clients.aws.training_job_poller import LIST_SECONDS, Watch
from muster.objects.aws.access import AwsAccess
from support import virtual_time
from support.training_job_requests import make_training_job_request

HERE = AwsAccess("us-west-2")
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
JOBS = 1000
KNOWN_WITHIN = timedelta(seconds=1.5 * LIST_SECONDS)
MINUTES = 6

State = tuple[str, str]


@dataclass
class Diary:
    """The observed states of a job, with their times."""

    watch: Watch | None = None
    states: list[State] = field(default_factory=list)
    times: list[datetime] = field(default_factory=list)

    def note(self, clock: Callable[[], datetime]) -> None:
        assert self.watch is not None
        latest = self.watch.observation.latest
        if latest is not None:
            self.states.append((latest.status, latest.secondary_status))
            self.times.append(clock())

    def at(self, time: datetime) -> State | None:
        index = bisect_right(self.times, time)
        return self.states[index - 1] if index else None


def the_same_script(_draw: random.Random) -> Script:
    """Return jobs that all change at the same moment: the largest number of changes for a poller."""
    return (Stage("Starting", 70), Stage("Training", 200), Stage("Failed", status="Failed", failure_reason="so"))


async def follow(service: Service, script: Callable[[random.Random], Script]) -> dict[str, Diary]:
    draw = random.Random(3)  # noqa: S311
    start = service.now()
    jobs = service.get_jobs(HERE.region)
    jobs.script = lambda _request: script(draw)
    aws = Aws(jitter=draw.random)
    wire.join(aws, HERE, service)
    poller = aws.get_poller(HERE)
    diaries = {f"job-{number:04d}": Diary() for number in range(JOBS)}
    for name, diary in diaries.items():
        jobs.create(make_training_job_request(name), service.now())
        diary.watch = poller.watch(name, start, partial(diary.note, service.now))
    await asyncio.sleep(MINUTES * 60)
    await aws.close()
    return diaries


def followed(script: Callable[[random.Random], Script], failing: float) -> tuple[Service, dict[str, Diary]]:
    latency = random.Random(1)  # noqa: S311

    async def main() -> tuple[Service, dict[str, Diary]]:
        loop = asyncio.get_running_loop()
        service = Service(lambda: BEGINNING + timedelta(seconds=loop.time()))
        service.faults.chance = share(failing, 2, Fault.FAIL, Fault.FAIL_AFTER, Fault.DROP, Fault.DROP_AFTER)
        return service, await follow(service, script)

    return virtual_time.run(main(), lambda: latency.uniform(0.02, 0.4))


def late(service: Service, diaries: dict[str, Diary]) -> list[str]:
    """Changes that were not observed in time."""
    result = []
    end = BEGINNING + timedelta(minutes=MINUTES) - KNOWN_WITHIN
    for name, diary in diaries.items():
        stages = service.get_jobs(HERE.region).by_name[name].course.stages
        states = [(stage.status, stage.secondary) for _, stage in stages]
        for index, (began, _) in enumerate(stages):
            current = diary.at(began + KNOWN_WITHIN)
            if began < end and (current is None or states.index(current) < index):
                result.append(f"{name}: {states[index]} since {began:%H:%M:%S}, but known was {current}")
    return result


def most_within(seconds: int, times: Sequence[datetime]) -> int:
    """In any interval of this length, not only in those of full seconds."""
    width = timedelta(seconds=seconds, microseconds=-1)
    return max((bisect_right(times, time + width) - index for index, time in enumerate(times)), default=0)


# In `make test` the whole operator follows a hundred jobs (integration/sagemaker_life/test_many_jobs.py).
@pytest.mark.long
@pytest.mark.parametrize("failing", [0.0, 0.05])
@pytest.mark.parametrize("script", [draw_training, the_same_script])
def test_changes_are_known_within_one_and_a_half_intervals_and_no_quota_is_exceeded(
    script: Callable[[random.Random], Script], failing: float
) -> None:
    service, diaries = followed(script, failing)
    assert not late(service, diaries)
    lists = [call.at for call in service.list_calls("ListTrainingJobs")]
    assert most_within(1, lists) <= RATES["ListTrainingJobs"]
    # As AWS' limiters count, which allow bursts.
    descriptions = [call.at for call in service.list_calls("DescribeTrainingJob")]
    assert most_within(3, descriptions) <= 3 * RATES["DescribeTrainingJob"]
    assert not [call for call in service.calls if call.outcome == "ThrottlingException"]

"""Many jobs at once: each resource shows its state in time, and muster sends no more requests than AWS allows."""

import asyncio
import random
from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from fakes.sagemaker_service.faults import Fault, share
from fakes.sagemaker_service.script import draw_training
from fakes.sagemaker_service.service import RATES
from fakes.sagemaker_site.site import Site, Wire, make_spec
from muster.clients.aws.training_job_poller import LIST_SECONDS
from support import virtual_time

KNOWN_WITHIN = 1.5 * LIST_SECONDS
A_WHILE = (pytest.mark.long, pytest.mark.timeout(1200))

Seen = dict[str, list[tuple[float, tuple[str, str]]]]
"""The status of each resource, with its time."""

LOOKS_EVERY = 1.0
"""The test's polling interval, in seconds."""


def reason_of(site: Site, name: str) -> tuple[str, str] | None:
    """Status and secondary status in the current resource."""
    status = site.stored.kept[name].get("status", {})
    record = status.get("backend", {}).get("sagemaker", {})
    return (record["status"], record["secondaryStatus"]) if record.get("secondaryStatus") else None


async def watched(site: Site, names: Sequence[str]) -> Seen:
    """Return all statuses until all jobs are over."""
    seen: Seen = {name: [] for name in names}
    while True:
        for name, states in seen.items():
            state = reason_of(site, name)
            if state is not None and (not states or states[-1][1] != state):
                states.append((site.get_now(), state))
        if all(site.stored.kept[name].get("status", {}).get("phase") == "Succeeded" for name in names):
            return seen
        await asyncio.sleep(LOOKS_EVERY)


async def lived(wire: Wire, many: int, failing: float) -> tuple[Site, Seen]:
    """All jobs are applied at once, and succeed."""
    draw = random.Random(3)  # noqa: S311
    site = Site(wire)
    site.service.get_jobs().script = lambda _request: draw_training(draw)
    site.service.faults.chance = share(failing, 2, Fault.FAIL, Fault.FAIL_AFTER, Fault.DROP, Fault.DROP_AFTER)
    names = [f"job-{number:04d}" for number in range(many)]
    for name in names:
        site.stored.create(name, make_spec())
    site.begin()
    try:
        return site, await watched(site, names)
    finally:
        await site.close()


def late(site: Site, seen: Seen) -> list[str]:
    """Changes that were not observed in time."""
    result = []
    for job in site.service.get_jobs().by_name.values():
        name = job.name.rsplit("-", 2)[0]
        states = [(stage.status, stage.secondary) for _, stage in job.course.stages]
        for index, (began, _) in enumerate(job.course.stages):
            by_then = began.timestamp() + KNOWN_WITHIN + LOOKS_EVERY
            items = [state for at, state in seen[name] if at <= by_then]
            if not items or states.index(items[-1]) < index:
                result.append(f"{name}: {states[index]} since {began:%H:%M:%S}, its resource had {items[-1:]}")
    return result


def most_within(seconds: int, times: Sequence[datetime]) -> int:
    width = timedelta(seconds=seconds, microseconds=-1)
    return max((bisect_right(times, time + width) - index for index, time in enumerate(times)), default=0)


@pytest.mark.parametrize(("many", "failing"), [(40, 0.05), pytest.param(1000, 0.05, marks=A_WHILE)])
def test_resources_tell_in_time_what_becomes_of_many_jobs(wire: Wire, many: int, failing: float) -> None:
    latency = random.Random(1)  # noqa: S311
    site, seen = virtual_time.run(lived(wire, many, failing), lambda: latency.uniform(0.02, 0.4))
    assert len(site.service.get_jobs().by_name) == many
    assert late(site, seen) == []
    lists = [call.at for call in site.service.list_calls("ListTrainingJobs")]
    assert most_within(1, lists) <= RATES["ListTrainingJobs"]
    for operation, rate in RATES.items():
        # As AWS' limiters count, which allow bursts.
        assert most_within(3, [call.at for call in site.service.list_calls(operation)]) <= 3 * rate, operation

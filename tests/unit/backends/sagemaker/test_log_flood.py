"""A job that floods its log uses its own processor time, not the other jobs'."""

from __future__ import annotations

import asyncio

from muster.backends.sagemaker.log_follower import SLICE_LINES, SLICE_SECONDS, LogFollower
from muster.backends.sagemaker.rank_reports import LogSource
from muster.clients.aws.job_logs import LogEvent, LogPosition
from muster.objects.aws.access import AwsAccess
from support import virtual_time
from unit.core.builders import job

SLICES = 40


class Flood:
    """A log full of lines that may be a rank's, with more at each request."""

    def __init__(self) -> None:
        self.looks = 0

    async def read_new_lines(self, _: str, __: str, mark: LogPosition) -> tuple[list[LogEvent], LogPosition]:
        self.looks += 1
        return [LogEvent("vit-1/algo-1-1", 1.0, "[muster] {}")] * SLICES * SLICE_LINES, LogPosition(mark.since, "more")

    async def read_last_lines(self, _: str) -> list[LogEvent]:
        return []


def test_others_have_their_turn_while_a_full_log_is_read() -> None:
    async def run() -> None:
        flood = Flood()
        follower = LogFollower(lambda _: flood)
        follower.follow(LogSource(job(), 1, "vit-1", AwsAccess("us-west-2"), is_over=False), lambda: None)
        await asyncio.sleep((SLICES - 1.5) * SLICE_SECONDS)
        assert flood.looks == 1
        await asyncio.sleep(2 * SLICE_SECONDS)
        assert flood.looks == 2
        await follower.close()

    virtual_time.run(run())

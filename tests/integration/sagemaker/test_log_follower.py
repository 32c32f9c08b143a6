"""Growing logs of training jobs, read from a CloudWatch Logs (moto's)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import boto3
import pytest

from fakes import s3_server
from muster.api.config.sagemaker import AwsEndpoints
from muster.api.timestamps import format_timestamp
from muster.backends.sagemaker.log_follower import POLL_SECONDS, SETTLE_SECONDS, LogFollower
from muster.backends.sagemaker.rank_reports import LogSource
from muster.clients.aws.client import Aws
from muster.clients.aws.job_logs import LOG_GROUP, JobLogs
from muster.objects.aws.access import AwsAccess
from muster_worker.contract import log_line
from muster_worker.contract.log_line import Event, RankLine
from support import virtual_time
from unit.core.builders import UID, job

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_logs.type_defs import InputLogEventTypeDef

NAME = "digits-0123456789-1"
BEGAN = float(int(time.time()) - 600)


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    with s3_server.s3_server() as served:  # moto's AWS
        yield served


@pytest.fixture
def logs(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudWatchLogsClient]:
    for name, value in s3_server.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("logs", endpoint_url=url, region_name="us-east-1")
    client.create_log_group(logGroupName=LOG_GROUP)
    yield client
    client.delete_log_group(logGroupName=LOG_GROUP)
    client.close()


def put_lines(logs: CloudWatchLogsClient, stream: str, at: float, *lines: str) -> None:
    """Write lines, the first of which came `at` seconds after the job's start."""
    names = logs.describe_log_streams(logGroupName=LOG_GROUP, logStreamNamePrefix=stream)["logStreams"]
    if not names:
        logs.create_log_stream(logGroupName=LOG_GROUP, logStreamName=stream)
    events: list[InputLogEventTypeDef] = [
        {"timestamp": int((BEGAN + at + i / 100) * 1000), "message": line} for i, line in enumerate(lines)
    ]
    logs.put_log_events(logGroupName=LOG_GROUP, logStreamName=stream, logEvents=events)


def line(rank: int, at: float, event: str = Event.PROGRESS, step: int | None = None, code: int | None = None) -> str:
    ended_at = None if code is None else BEGAN + at
    host = f"algo-{rank // 2 + 1}"
    value = RankLine(event, host, rank, rank % 2, 4, at=BEGAN + at, started_at=BEGAN, step=step)
    return log_line.format_line(replace(value, ended_at=ended_at, exit_code=code))


def source(*, is_over: bool = False, has_failed: bool = False, has_reports: bool = True) -> LogSource:
    plain = job()
    metadata = plain.metadata.model_copy(update={"creation_timestamp": format_timestamp(BEGAN)})
    dated = plain.model_copy(update={"metadata": metadata})
    return LogSource(dated, 1, NAME, AwsAccess("us-east-1"), is_over, has_failed, has_reports)


class Recorder:
    """A follower's reports to its readers, and the number of requests to AWS."""

    def __init__(self, url: str) -> None:
        self.woken = 0
        self.asked: list[str] = []
        self._aws = Aws(AwsEndpoints(logs=url, sts=url))
        self.follower = LogFollower(self._logs_of)

    def follow(self, source: LogSource) -> None:
        self.follower.follow(source, self._wake)

    def steps(self) -> dict[int, tuple[str, int | None]]:
        agents = self.follower.get_agents(UID, 1)
        return {rank.report.rank: (rank.report.state, rank.report.step) for agent in agents for rank in agent.ranks}

    async def close(self) -> None:
        await self.follower.close()
        await self._aws.close()

    def _wake(self) -> None:
        self.woken += 1

    def _logs_of(self, aws_access: AwsAccess) -> JobLogs:
        send_request = partial(self._aws.send_request, aws_access, "logs")

        async def counted(operation: str, request: object) -> object:
            self.asked.append(operation)
            return await send_request(operation, request)  # type: ignore[arg-type]

        return JobLogs(counted)  # type: ignore[arg-type]


def run(url: str, scene: Callable[[Recorder], object]) -> None:
    async def main() -> None:
        value = Recorder(url)
        try:
            await scene(value)  # type: ignore[misc]
        finally:
            await value.close()

    virtual_time.run(main())


def test_ranks_are_heard_while_the_log_grows(url: str, logs: CloudWatchLogsClient) -> None:
    put_lines(logs, f"{NAME}/algo-1-1", 10, "Starting", line(0, 10, Event.STARTED), line(1, 10, step=3), "loss=0.5")
    put_lines(logs, f"{NAME}-other/algo-1-1", 10, line(2, 10, step=9))
    put_lines(logs, "digits-0123456789-10/algo-1-1", 10, line(3, 10, step=9))

    async def scene(value: Recorder) -> None:
        value.follow(source())
        value.follow(source())
        await asyncio.sleep(1)
        assert value.steps() == {0: ("Running", None), 1: ("Running", 3)}
        assert value.woken == 1
        assert value.asked == ["FilterLogEvents"]
        put_lines(logs, f"{NAME}/algo-2-1", 20, line(2, 20, step=7))
        put_lines(logs, f"{NAME}/algo-1-1", 21, line(1, 21, step=8))
        await asyncio.sleep(POLL_SECONDS)
        assert value.steps() == {0: ("Running", None), 1: ("Running", 8), 2: ("Running", 7)}
        assert not value.follower.is_complete(UID, 1)
        assert value.follower.get_agents(UID, 2) == ()

    run(url, scene)


def test_a_host_s_lines_that_come_late_are_heard(url: str, logs: CloudWatchLogsClient) -> None:
    put_lines(logs, f"{NAME}/algo-1-1", 100, line(0, 100, step=30))

    async def scene(value: Recorder) -> None:
        value.follow(source())
        await asyncio.sleep(1)
        put_lines(logs, f"{NAME}/algo-2-1", 80, line(2, 80, step=29))
        await asyncio.sleep(POLL_SECONDS)
        assert value.steps() == {0: ("Running", 30), 2: ("Running", 29)}

    run(url, scene)


def test_a_training_job_that_is_over_is_read_to_its_end(url: str, logs: CloudWatchLogsClient) -> None:
    put_lines(logs, f"{NAME}/algo-1-1", 10, *(line(rank, 10, step=3) for rank in range(4)))

    async def scene(value: Recorder) -> None:
        value.follow(source(is_over=True))
        await asyncio.sleep(1)
        put_lines(logs, f"{NAME}/algo-1-1", 11, *(line(rank, 11, Event.ENDED, 4, 0) for rank in range(4)))
        assert not value.follower.is_complete(UID, 1)
        await asyncio.sleep(SETTLE_SECONDS)
        assert value.follower.is_complete(UID, 1)
        assert set(value.steps().values()) == {("Exited", 4)}
        asked = len(value.asked)
        await asyncio.sleep(100)
        assert len(value.asked) == asked
        assert set(value.asked) == {"FilterLogEvents"}
        value.follower.forget(UID)
        assert value.steps() == {}

    run(url, scene)


def test_of_ranks_that_do_not_report_their_launcher_speaks(url: str, logs: CloudWatchLogsClient) -> None:
    put_lines(logs, f"{NAME}/algo-1-1", 10, "rank 3 goes", "[1,3]<stderr>:ValueError: boom")
    put_lines(
        logs,
        f"{NAME}/algo-1-1",
        11,
        "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD",
        "with errorcode 1.",
    )

    async def scene(value: Recorder) -> None:
        value.follow(source(has_reports=False))
        await asyncio.sleep(3 * POLL_SECONDS)
        assert value.asked == []
        value.follow(source(has_reports=False, is_over=True, has_failed=True))
        await asyncio.sleep(SETTLE_SECONDS + 1)
        assert value.steps() == {3: ("Exited", None)}
        assert sorted(set(value.asked)) == ["DescribeLogStreams", "GetLogEvents"]

    run(url, scene)


def test_a_log_that_is_not_there_is_waited_for(url: str, logs: CloudWatchLogsClient) -> None:
    logs.delete_log_group(logGroupName=LOG_GROUP)

    async def scene(value: Recorder) -> None:
        value.follow(source())
        await asyncio.sleep(1)
        logs.create_log_group(logGroupName=LOG_GROUP)
        put_lines(logs, f"{NAME}/algo-1-1", 10, line(0, 10, step=3))
        await asyncio.sleep(POLL_SECONDS)
        assert value.steps() == {0: ("Running", 3)}

    run(url, scene)


def test_another_attempt_is_another_log(url: str, logs: CloudWatchLogsClient) -> None:
    put_lines(logs, f"{NAME}/algo-1-1", 10, line(0, 10, step=3))

    async def scene(value: Recorder) -> None:
        value.follow(source())
        await asyncio.sleep(1)
        value.follow(replace(source(), attempt=2, name="digits-0123456789-2"))
        assert value.follower.get_agents(UID, 1) == ()
        await asyncio.sleep(1)
        assert value.follower.get_agents(UID, 2) == ()

    run(url, scene)

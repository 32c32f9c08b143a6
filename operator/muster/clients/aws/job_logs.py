"""A training job's logs in CloudWatch Logs: new lines that contain a text, and the last lines of its streams."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from muster.clients.aws.connection import Response
from muster.objects.aws import decode

GROUP = "/aws/sagemaker/TrainingJobs"
"""Log streams `<training job>/algo-<n>-<time>` (SageMaker developer guide, "CloudWatch Logs")."""

LATE_SECONDS = 30.0
"""Lines of one host may arrive this much later than newer lines of another host, so queries overlap by this time."""

MAX_PAGES = 10
"""Maximum pages of one query; a page has up to 10,000 events or 1 MB (API_FilterLogEvents)."""

MAX_TAILS = 16
MAX_STREAMS = 1000
TAIL_EVENTS = 2000


@dataclass(frozen=True)
class LogEvent:
    """A line of a log with its stream, and its time in Unix seconds."""

    stream: str
    at: float
    text: str


@dataclass(frozen=True)
class LogPosition:
    """The position after a query: `since` in milliseconds, `more` CloudWatch's token if more lines are available."""

    since: int
    more: str = ""


class JobLogs:
    """The logs in one place. `ask` sends an operation with its request. Methods raise AwsError and don't retry."""

    def __init__(self, ask: Callable[[str, Mapping[str, object]], Awaitable[Response]]) -> None:
        self._ask = ask

    async def new_lines(self, job: str, words: str, mark: LogPosition) -> tuple[list[LogEvent], LogPosition]:
        """Return the lines of a training job that contain `words`, from the position `mark`, and the next position.

        Some lines may occur twice.
        """
        events: list[LogEvent] = []
        token, latest = mark.more, mark.since
        for _ in range(MAX_PAGES):
            answer = await self._ask("FilterLogEvents", _request(job, words, mark.since, token))
            page = _events(answer, job)
            events += page
            latest = max([latest, *(int(event.at * 1000 - LATE_SECONDS * 1000) for event in page)])
            token = decode.text(answer, "nextToken")
            if not token:
                return events, LogPosition(latest)
        return events, LogPosition(mark.since, token)

    async def last_lines(self, job: str) -> list[LogEvent]:
        """Return the last lines of the training job's streams, for a limited number of hosts."""
        events: list[LogEvent] = []
        for stream in (await self._streams(job))[:MAX_TAILS]:
            request = {"logGroupName": GROUP, "logStreamName": stream, "limit": TAIL_EVENTS, "startFromHead": False}
            answer = await self._ask("GetLogEvents", request)
            events += [_event(stream, fields) for fields in decode.objects(answer, "events")]
        return events

    async def _streams(self, job: str) -> list[str]:
        names: list[str] = []
        token = ""
        while len(names) < MAX_STREAMS:
            request = {"logGroupName": GROUP, "logStreamNamePrefix": f"{job}/"}
            answer = await self._ask("DescribeLogStreams", request | ({"nextToken": token} if token else {}))
            names += [decode.text(fields, "logStreamName") for fields in decode.objects(answer, "logStreams")]
            token = decode.text(answer, "nextToken")
            if not token:
                break
        # the first host has mpirun's output for all hosts
        return sorted((name for name in names if name.startswith(f"{job}/")), key=_host_order_key)


def _host_order_key(stream: str) -> tuple[int, str]:
    number = stream.rpartition("/")[2].removeprefix("algo-").partition("-")[0]
    return (int(number) if number.isdigit() else MAX_STREAMS, stream)


def _request(job: str, words: str, since: int, more: str) -> dict[str, object]:
    request: dict[str, object] = {
        "logGroupName": GROUP,
        "logStreamNamePrefix": f"{job}/",
        "startTime": since,
        "filterPattern": f'"{words}"',
    }
    return request | ({"nextToken": more} if more else {})


def _events(answer: Response, job: str) -> list[LogEvent]:
    named = ((decode.text(fields, "logStreamName"), fields) for fields in decode.objects(answer, "events"))
    return [_event(stream, fields) for stream, fields in named if stream.startswith(f"{job}/")]


def _event(stream: str, fields: decode.Fields) -> LogEvent:
    timestamp = fields.get("timestamp")
    return LogEvent(stream, timestamp / 1000 if isinstance(timestamp, int) else 0.0, decode.text(fields, "message"))

"""Read a training job's logs in CloudWatch Logs: new lines that contain a text, and the last lines of its streams."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from muster.clients.aws.connection import Response
from muster.objects.aws import decode

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
"""The log group of all training jobs. Its streams are `<training job>/algo-<n>-<time>` (SageMaker developer guide)."""

LATE_SECONDS = 30.0
"""Queries overlap by this time, because lines of one host may arrive later than newer lines of another host."""

MAX_PAGES = 10
"""The maximum number of pages of a query. A page has up to 10,000 events or 1 MB (API_FilterLogEvents)."""

MAX_TAIL_STREAMS = 16
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
    """The position after a query: `since` in milliseconds, and CloudWatch's `next_token`."""

    since: int
    next_token: str = ""


class JobLogs:
    """The logs of the training jobs in one region, read with one role.

    `send_request(operation, request)` sends a request to CloudWatch Logs. Methods raise AwsError and don't retry.
    """

    def __init__(self, send_request: Callable[[str, Mapping[str, object]], Awaitable[Response]]) -> None:
        self._send_request = send_request

    async def read_new_lines(self, job: str, words: str, position: LogPosition) -> tuple[list[LogEvent], LogPosition]:
        """Return the lines of a training job after `position` that contain `words`, and the next position.

        Some lines may be returned again by the next call.
        """
        events: list[LogEvent] = []
        token, latest = position.next_token, position.since
        for _ in range(MAX_PAGES):
            response = await self._send_request("FilterLogEvents", _build_request(job, words, position.since, token))
            page = _parse_events(response, job)
            events += page
            latest = max([latest, *(int(event.at * 1000 - LATE_SECONDS * 1000) for event in page)])
            token = decode.read_text(response, "nextToken")
            if not token:
                return events, LogPosition(latest)
        return events, LogPosition(position.since, token)

    async def read_last_lines(self, job: str) -> list[LogEvent]:
        """Return the last lines of the training job's streams, for a limited number of hosts."""
        events: list[LogEvent] = []
        for stream in (await self._list_streams(job))[:MAX_TAIL_STREAMS]:
            request = {"logGroupName": LOG_GROUP, "logStreamName": stream, "limit": TAIL_EVENTS, "startFromHead": False}
            response = await self._send_request("GetLogEvents", request)
            events += [_parse_event(stream, fields) for fields in decode.read_structures(response, "events")]
        return events

    async def _list_streams(self, job: str) -> list[str]:
        names: list[str] = []
        token = ""
        while len(names) < MAX_STREAMS:
            request = {"logGroupName": LOG_GROUP, "logStreamNamePrefix": f"{job}/"}
            response = await self._send_request("DescribeLogStreams", request | ({"nextToken": token} if token else {}))
            names += [
                decode.read_text(fields, "logStreamName") for fields in decode.read_structures(response, "logStreams")
            ]
            token = decode.read_text(response, "nextToken")
            if not token:
                break
        # the first host has mpirun's output for all hosts
        return sorted((name for name in names if name.startswith(f"{job}/")), key=_get_host_order)


def _get_host_order(stream: str) -> tuple[int, str]:
    number = stream.rpartition("/")[2].removeprefix("algo-").partition("-")[0]
    return (int(number) if number.isdigit() else MAX_STREAMS, stream)


def _build_request(job: str, words: str, since: int, next_token: str) -> dict[str, object]:
    request: dict[str, object] = {
        "logGroupName": LOG_GROUP,
        "logStreamNamePrefix": f"{job}/",
        "startTime": since,
        "filterPattern": f'"{words}"',
    }
    return request | ({"nextToken": next_token} if next_token else {})


def _parse_events(response: Response, job: str) -> list[LogEvent]:
    by_stream = (
        (decode.read_text(fields, "logStreamName"), fields) for fields in decode.read_structures(response, "events")
    )
    return [_parse_event(stream, fields) for stream, fields in by_stream if stream.startswith(f"{job}/")]


def _parse_event(stream: str, fields: decode.Fields) -> LogEvent:
    timestamp = fields.get("timestamp")
    return LogEvent(
        stream, timestamp / 1000 if isinstance(timestamp, int) else 0.0, decode.read_text(fields, "message")
    )

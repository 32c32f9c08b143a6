"""The part of CloudWatch Logs that training jobs use: lines appear at their time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

TARGET = "Logs_20140328."


@dataclass(frozen=True)
class Line:
    """Written `at` (Unix seconds) to `<training job>/algo-<n>`."""

    stream: str
    at: float
    text: str


@dataclass
class Logs:
    """`now` returns Unix seconds."""

    now: Callable[[], float]
    lines: list[Line] = field(default_factory=list)

    def write(self, job: str, host: int, text: str, after: float = 0.0) -> None:
        """Write a line this many seconds from now."""
        self.lines.append(Line(f"{job}/algo-{host}-1795233600", self.now() + after, text))

    def answer(self, operation: str, request: Mapping[str, object]) -> dict[str, object]:
        """Return the answer to an operation."""
        there = [line for line in self.lines if line.at <= self.now()]
        if operation == "DescribeLogStreams":
            prefix = str(request["logStreamNamePrefix"])
            names = sorted({line.stream for line in there if line.stream.startswith(prefix)})
            return {"logStreams": [{"logStreamName": name} for name in names]}
        if operation == "GetLogEvents":
            return {"events": [_make_event(line) for line in there if line.stream == request["logStreamName"]]}
        since, words = request["startTime"], str(request["filterPattern"]).strip('"')
        assert operation == "FilterLogEvents"
        assert isinstance(since, int)
        prefix = str(request["logStreamNamePrefix"])
        result = [line for line in there if line.stream.startswith(prefix) and words in line.text]
        return {"events": [_make_event(line) for line in result if line.at * 1000 >= since]}


def _make_event(line: Line) -> dict[str, object]:
    return {"logStreamName": line.stream, "timestamp": int(line.at * 1000), "message": line.text}

"""The operator's log: one line for each important event, on standard error."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

LogFormat = Literal["plain", "json"]

_LIBRARIES = ("aiohttp", "asyncio", "kopf", "kubernetes")
"""muster drops the log records of these libraries below the level of warnings."""

_EXPECTED_WARNINGS = ("OS signals are ignored",)
"""kopf's warnings about intended behaviour, such as that only the main thread handles signals."""


_WEBHOOK_REFUSAL = " failed permanently: "
"""The text in kopf's log line for a job that the webhook rejects. The user has already seen the message."""


def start_log(log_format: LogFormat) -> None:
    """Start logging to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_PlainFormatter() if log_format == "plain" else _JsonFormatter())
    handler.addFilter(_should_log)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)


def _should_log(record: logging.LogRecord) -> bool:
    if not record.name.startswith("kopf."):
        return True
    message = record.getMessage()
    return not (message.startswith(_EXPECTED_WARNINGS) or _WEBHOOK_REFUSAL in message)


def _format_message(record: logging.LogRecord) -> str:
    message = record.getMessage()
    # kopf logs a stack trace in each of its layers, so log only its message.
    if record.exc_info is not None and not record.name.startswith("kopf."):
        message += "\n" + logging.Formatter().formatException(record.exc_info)
    return message


def _escape_lines(text: str) -> str:
    """Escape line ends and control characters, because users' text must not forge log lines or control a terminal."""
    lines = text.splitlines()
    return "\n    ".join(
        "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line) for line in lines
    )


def _format_time(record: logging.LogRecord) -> str:
    time = datetime.fromtimestamp(record.created, UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _PlainFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{_format_time(record)} {record.levelname:<7} {_escape_lines(_format_message(record))}"


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": _format_time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": _format_message(record),
        }
        return json.dumps(fields, ensure_ascii=False)

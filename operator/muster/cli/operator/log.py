"""The operator's log: one line for each important event, on standard error."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

LogFormat = Literal["plain", "json"]

_OTHERS = ("aiohttp", "asyncio", "kopf", "kubernetes")
"""Libraries of which only warnings are logged."""

_EXPECTED = ("OS signals are ignored",)
"""Warnings of kopf about intended behaviour: only the main thread handles signals."""


_ANSWERED = " failed permanently: "
"""kopf's log of a job that the webhook refuses: the user already has the message."""


def start_log(form: LogFormat) -> None:
    """Start logging to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Plain() if form == "plain" else _Json())
    handler.addFilter(_is_wanted)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in _OTHERS:
        logging.getLogger(name).setLevel(logging.WARNING)


def _is_wanted(record: logging.LogRecord) -> bool:
    if not record.name.startswith("kopf."):
        return True
    message = record.getMessage()
    return not (message.startswith(_EXPECTED) or _ANSWERED in message)


def _text(record: logging.LogRecord) -> str:
    message = record.getMessage()
    # kopf repeats the stack for each of its layers; its message is enough
    if record.exc_info is not None and not record.name.startswith("kopf."):
        message += "\n" + logging.Formatter().formatException(record.exc_info)
    return message


def _as_one(text: str) -> str:
    """Escape a text that may contain users' text: it must not look like other log lines, or control a terminal."""
    lines = text.splitlines()
    return "\n    ".join(
        "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line) for line in lines
    )


def _time(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Plain(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{_time(record)} {record.levelname:<7} {_as_one(_text(record))}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {"time": _time(record), "level": record.levelname, "logger": record.name, "message": _text(record)}
        return json.dumps(fields, ensure_ascii=False)

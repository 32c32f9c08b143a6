"""The operator's log: one line for each thing that matters, on standard error."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

LogFormat = Literal["plain", "json"]

_OTHERS = ("aiohttp", "asyncio", "kopf", "kubernetes")
"""Libraries that are heard only when they warn."""

_EXPECTED = ("OS signals are ignored",)
"""What kopf warns of and is meant so: signals are for the main thread."""


_ANSWERED = " failed permanently: "
"""What kopf calls its answer to a job that the webhook refuses: the user has the reason already."""


def start_log(form: LogFormat) -> None:
    """Log to standard error from now on."""
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
    # kopf shows the same stack once for each of its layers; the message says what there is to know.
    if record.exc_info is not None and not record.name.startswith("kopf."):
        message += "\n" + logging.Formatter().formatException(record.exc_info)
    return message


def _as_one(text: str) -> str:
    """A text that can't pass for other lines of the log, nor move a terminal: users' words may be quoted in it."""
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

"""A rank's error, and how to find it in the output: a Python traceback's exception, or a C++ program's abort. Pure.

An error may be followed by any number of lines, such as the farewell of an experiment tracker. So the agent reads each
line when it passes, and keeps the last error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Optional

MAX_ERROR_CHARS = 1024
"""Maximum length of an error. Its first line is the message; the others only show whether the rank lost a peer."""

MAX_LEAVES = 5
"""Maximum number of exceptions of an exception group in its error."""

MARKS = (b"Traceback (most recent call last):", b"terminate called", b"terminating ", b'  File "')
"""Each error begins with one of these, so that output without them needs no further reading."""

FRAME_MARKS = ("Exception raised from ", "frame #")
"""How torch's C++ stack traces begin, which follow the message of an error."""

_NAME = r"(?:(?:[^\W\d]\w*|<locals>)\.)*[^\W\d]\w*"
_RANK_PREFIX = re.compile(r"\[(?:rank|Rank )?\d+\]:\s?")
_HEADER = re.compile(r"(?P<prefix>.*?)(?P<group>\+ Exception Group )?Traceback \(most recent call last\):$")
_SYNTAX_HEADER = re.compile(r'(?P<prefix>)  File "[^"]*", line \d+$')
_EXCEPTION = re.compile(rf"(?P<name>{_NAME}(?:\([\w.]+\))?)(?::(?:\s|$)|$)")
_GROUP_TITLE = re.compile(rf"{_NAME}: .*\(\d+ sub-exceptions?\)$")
_GROUP_LINE = re.compile(r"\s*(?:\| ?(?P<text>.*)|(?P<ruler>\+[-+]+(?: (?:\d+|\.\.\.) -+)?))$")
_CHAIN = ("During handling of the above exception", "The above exception was the direct cause")
_ABORT = re.compile(r"terminate called after throwing an instance of '(?P<name>.+)'$")
_WHAT = re.compile(r"\s*what\(\):\s+(?P<text>.*)$")
_LIBCXX_ABORT = re.compile(r"(?:libc\+\+abi: )?terminating .*exception of type (?P<text>.+)$")
_LIBRARY_ERROR = re.compile(r"NCCL|Dist(?:Backend|Network|Store)Error|c10d|gloo", re.IGNORECASE)
"""Errors whose further lines say which peer was lost. Those of other errors may be anything."""


@dataclass(frozen=True)
class RankError:
    """A rank's own error, `age` seconds ago. The first line of `text` is its message.

    It is `uncaught` if no code of the rank's main thread has caught it. Otherwise the rank was handling it when it
    closed its process groups. It is `printed` if only the output has it: the rank may have handled it.
    """

    text: str
    age: float
    uncaught: bool = False
    printed: bool = False


class ErrorReader:
    """Reads a program's output line by line. `error` is the last error so far; "" without one.

    `is_abort` is set if it ended the program, because nothing catches an abort.
    """

    def __init__(self) -> None:
        self.error = ""
        self.is_abort = False
        self._prefix: Optional[str] = None  # of the lines of the current traceback; None outside of one
        self._leaves: Optional[List[str]] = None  # of the current exception group
        self._expects_leaf = False
        self._abort_name: Optional[str] = None
        self._may_continue = False

    @property
    def is_waiting(self) -> bool:
        """Whether an error has begun, so that the next lines have to be read even without one of `MARKS`."""
        return (
            self._prefix is not None or self._leaves is not None or self._abort_name is not None or self._may_continue
        )

    def feed(self, line: str) -> bool:
        """Read a line without its end. Returns whether it has changed `error`."""
        line = _RANK_PREFIX.sub("", line.rstrip(), count=1) if line.startswith("[") else line.rstrip()
        if self._leaves is not None and self._read_group_line(line):
            return True
        header = _HEADER.match(line) or (_SYNTAX_HEADER.match(line) if self._prefix is None else None)
        if header is not None and self._leaves is None:
            self._begin(header)
            return False
        if self._prefix is not None:
            return self._read_traceback_line(line, self._prefix)
        return self._read_abort_line(line) or self._continue_error(line)

    def _begin(self, header: re.Match[str]) -> None:
        self._may_continue, self._abort_name = False, None
        if header.groupdict().get("group"):
            self._prefix, self._leaves, self._expects_leaf = None, [], False
        else:
            self._prefix = header["prefix"]

    def _read_traceback_line(self, line: str, prefix: str) -> bool:
        if not line.startswith(prefix) and line.lstrip().startswith('File "'):
            prefix = self._prefix = ""  # of the header alone: "Original Traceback (most recent call last):"
        text = line[len(prefix) :]
        if not line.startswith(prefix) or not text or text[0].isspace():
            return False
        # A line of another process may come between.
        if not _names_exception(text):
            return False
        self._prefix, self.is_abort = None, False
        return self._set_error(text)

    def _read_group_line(self, line: str) -> bool:
        """Read a line of an exception group, whose exceptions are its leaves. Returns False at its end."""
        match = _GROUP_LINE.match(line)
        if match is None or self._leaves is None:
            self._leaves = None
            return False
        text = match["text"]
        if text is None:  # a ruler begins the next exception
            self._expects_leaf = True
        elif text.startswith(_CHAIN):  # the next exception replaces the one before
            del self._leaves[-1:]
        elif text.endswith("Traceback (most recent call last):"):
            self._expects_leaf = True
        elif self._expects_leaf and text and not text[0].isspace():
            self._expects_leaf = False
            if not _GROUP_TITLE.match(text) and _names_exception(text):
                self._leaves.append(text)
                self.is_abort = False
                more = ["…"] if len(self._leaves) > MAX_LEAVES else []
                self._set_error("; ".join(self._leaves[:MAX_LEAVES] + more))
        return True

    def _read_abort_line(self, line: str) -> bool:
        name, self._abort_name = self._abort_name, None
        what = _WHAT.match(line) if name is not None else None
        if what is not None:
            return self._set_error(f"{name}: {what['text']}")
        abort = _ABORT.match(line)
        if abort is not None:
            self.is_abort = self._set_error(abort["name"])
            self._abort_name, self._may_continue = abort["name"], False
            return True
        end = _LIBCXX_ABORT.match(line)
        if end is None:
            return False
        self.is_abort = self._set_error(end["text"])
        return True

    def _continue_error(self, line: str) -> bool:
        if not self._may_continue or not line or line.startswith(FRAME_MARKS):
            self._may_continue = False
            return False
        self._set_error(f"{self.error}\n{line}")
        return True

    def _set_error(self, text: str) -> bool:
        self.error = text if len(text) <= MAX_ERROR_CHARS else text[: MAX_ERROR_CHARS - 1] + "…"
        self._may_continue = bool(_LIBRARY_ERROR.search(text)) and len(text) < MAX_ERROR_CHARS
        return True


def find_error(output: str) -> str:
    """Return the last error in a whole output; "" without one."""
    reader = ErrorReader()
    for line in output.split("\n"):
        reader.feed(line)
    return reader.error


def _names_exception(text: str) -> bool:
    """Whether a line begins with the name of an exception: `ValueError: bad`, `struct.error: short`, `_queue.Empty`.

    A name without a capital letter and without a module is a program's: `wandb: Run summary`.
    """
    match = _EXCEPTION.match(text)
    return match is not None and ("." in match["name"] or match["name"] != match["name"].lower())

"""The pipes between the process that runs the user's SageMaker launch script and `muster import`.

One has the script's calls, warnings and questions to muster, the other one the answers.
"""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Collection, Mapping
from typing import TextIO

from .errors import UnsupportedOperation


class Recorder:
    """Writes records as lines of JSON, and reads the answers to questions.

    `scripts` are the names of the script's files or cells.
    """

    def __init__(self, out: TextIO, answers: TextIO, scripts: Collection[str]) -> None:
        self._out = out
        self._answers = answers
        self._scripts = frozenset(scripts)
        self._sent_warnings: set[tuple[str, str]] = set()
        # Scripts may start jobs concurrently, in threads.
        self._write_lock = threading.Lock()
        self._question_lock = threading.Lock()

    def send(self, kind: str, record: Mapping[str, object]) -> None:
        """Write one record, with the current line of the script."""
        line = json.dumps({"kind": kind, "location": self.locate_line(), **record}, allow_nan=False)
        with self._write_lock:
            self._out.write(line + "\n")
            self._out.flush()

    def warn(self, message: str) -> None:
        """Warn that the generated job does not do something that the script does, once for each line of the script."""
        if (self.locate_line(), message) not in self._sent_warnings:
            self._sent_warnings.add((self.locate_line(), message))
            self.send("warning", {"message": message})

    def ask(self, question: str, arguments: Mapping[str, object]) -> str:
        """Return muster's answer. Raises `UnsupportedOperation` with the reason if muster has no answer."""
        with self._question_lock:
            self.send("question", {"question": question, "arguments": arguments})
            answer = json.loads(self._answers.readline())
        if "text" not in answer:
            raise UnsupportedOperation(answer["problem"])
        return str(answer["text"])

    def locate_line(self) -> str:
        """Return the innermost line of the script on the stack, such as `launch.py:12`; "" if there is none."""
        frame = inspect.currentframe()
        while frame is not None and frame.f_code.co_filename not in self._scripts:
            frame = frame.f_back
        return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""

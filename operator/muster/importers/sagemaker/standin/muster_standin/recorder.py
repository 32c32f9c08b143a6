"""The pipes to the parent process: reports of the script, and answers to its questions."""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Collection, Mapping
from typing import TextIO

from .refused import Refused


class Recorder:
    """Writes records, one JSON object a line, and reads the answers to questions.

    `scripts` are the file names of the script's own code.
    """

    def __init__(self, out: TextIO, answers: TextIO, scripts: Collection[str]) -> None:
        self._out = out
        self._answers = answers
        self._scripts = frozenset(scripts)
        self._said: set[tuple[str, str]] = set()
        # scripts start jobs concurrently, in threads
        self._whole = threading.Lock()
        self._one_question = threading.Lock()

    def say(self, kind: str, record: Mapping[str, object]) -> None:
        """Write one record, with the current line of the script."""
        line = json.dumps({"kind": kind, "place": self.place(), **record}, allow_nan=False)
        with self._whole:
            self._out.write(line + "\n")
            self._out.flush()

    def warn(self, message: str) -> None:
        """Warn about something that the script does and the job doesn't; once for each line."""
        if (self.place(), message) not in self._said:
            self._said.add((self.place(), message))
            self.say("warning", {"message": message})

    def ask(self, question: str, about: Mapping[str, object]) -> str:
        """Return muster's answer. Raises `Refused` with muster's reason if it has none."""
        with self._one_question:
            self.say("question", {"question": question, "about": about})
            answer = json.loads(self._answers.readline())
        if "text" not in answer:
            raise Refused(answer["problem"])
        return str(answer["text"])

    def place(self) -> str:
        """`launch.py:12`: the script's innermost line; empty outside the script."""
        frame = inspect.currentframe()
        while frame is not None and frame.f_code.co_filename not in self._scripts:
            frame = frame.f_back
        return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""

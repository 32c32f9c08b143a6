"""The pipes to the parent process, for the script's reports and for answers to its questions."""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Collection, Mapping
from typing import TextIO

from .errors import Unsupported


class Recorder:
    """Writes records, one JSON object a line, and reads the answers to questions.

    `scripts` are the file names of the script.
    """

    def __init__(self, out: TextIO, answers: TextIO, scripts: Collection[str]) -> None:
        self._out = out
        self._answers = answers
        self._scripts = frozenset(scripts)
        self._said: set[tuple[str, str]] = set()
        # scripts start jobs concurrently, in threads
        self._whole = threading.Lock()
        self._one_question = threading.Lock()

    def send(self, kind: str, record: Mapping[str, object]) -> None:
        """Write one record, with the current line of the script."""
        line = json.dumps({"kind": kind, "place": self.place(), **record}, allow_nan=False)
        with self._whole:
            self._out.write(line + "\n")
            self._out.flush()

    def warn(self, message: str) -> None:
        """Report an action of the script that the job omits, once for each line."""
        if (self.place(), message) not in self._said:
            self._said.add((self.place(), message))
            self.send("warning", {"message": message})

    def ask(self, question: str, about: Mapping[str, object]) -> str:
        """Return muster's answer. Raises `Unsupported` with muster's reason if it has none."""
        with self._one_question:
            self.send("question", {"question": question, "about": about})
            answer = json.loads(self._answers.readline())
        if "text" not in answer:
            raise Unsupported(answer["problem"])
        return str(answer["text"])

    def place(self) -> str:
        """Return the innermost line of the script on the stack, as `launch.py:12`; "" if there is none."""
        frame = inspect.currentframe()
        while frame is not None and frame.f_code.co_filename not in self._scripts:
            frame = frame.f_back
        return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""

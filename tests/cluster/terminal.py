"""A command on its own terminal, as a user sees it."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from rich.text import Text

COLUMNS, LINES = 100, 24
PATIENCE_SECONDS = 120.0
CTRL_C = b"\x03"


@dataclass
class Terminal:
    """Use it in a `with`, which ends the command. Its output is read at once, so that it never waits for a reader."""

    command: Sequence[str]
    environment: Mapping[str, str]
    _said: bytes = b""
    _is_over: bool = False
    _news: threading.Condition = field(default_factory=threading.Condition)
    _keyboard: int = field(init=False)
    _process: "subprocess.Popen[bytes]" = field(init=False)
    _reader: threading.Thread = field(init=False)

    def __enter__(self) -> Self:
        self._keyboard, screen = pty.openpty()
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self._process = subprocess.Popen(
            # so that it gets Ctrl-C
            ["setsid", "--ctty", *self.command],
            env={**self.environment, "TERM": "xterm-256color"},
            stdin=screen,
            stdout=screen,
            stderr=screen,
        )
        os.close(screen)
        self._reader = threading.Thread(target=self._read, name="terminal")
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        os.close(self._keyboard)

    @property
    def text(self) -> str:
        """All output so far, one screen after the other, without colours."""
        return Text.from_ansi(self._said.decode("utf-8", "replace").replace("\r", "")).plain

    def until(self, is_shown: Callable[[str], bool]) -> None:
        """Read until a text is shown."""
        with self._news:
            self._news.wait_for(lambda: is_shown(self.text) or self._is_over, PATIENCE_SECONDS)
        assert is_shown(self.text), self.text

    def press(self, key: bytes) -> None:
        """Press a key."""
        os.write(self._keyboard, key)

    def end(self) -> int:
        """Read until the command ends, and return its exit code."""
        with self._news:
            assert self._news.wait_for(lambda: self._is_over, PATIENCE_SECONDS), self.text
        return self._process.wait(PATIENCE_SECONDS)

    def _read(self) -> None:
        while said := self._next():
            with self._news:
                self._said += said
                self._news.notify_all()
        with self._news:
            self._is_over = True
            self._news.notify_all()

    def _next(self) -> bytes:
        try:
            return os.read(self._keyboard, 2**16)
        except OSError:  # Linux's error once no process has the terminal open
            return b""

"""A command on a terminal of its own: what a person would see of it."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from rich.text import Text

COLUMNS, LINES = 100, 24
PATIENCE_SECONDS = 60.0
CTRL_C = b"\x03"


@dataclass
class Terminal:
    """Use it in a `with`; the command is gone afterwards."""

    command: Sequence[str]
    environment: Mapping[str, str]
    _said: bytes = b""
    _keyboard: int = field(init=False)
    _process: "subprocess.Popen[bytes]" = field(init=False)

    def __enter__(self) -> Self:
        self._keyboard, screen = pty.openpty()
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self._process = subprocess.Popen(
            self.command,
            env={**self.environment, "TERM": "xterm-256color"},
            stdin=screen,
            stdout=screen,
            stderr=screen,
            start_new_session=True,
            # so that Ctrl-C is for it
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - the test has no threads
        )
        os.close(screen)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._keyboard)

    @property
    def text(self) -> str:
        """All that it has shown, one screen after the other, without colours."""
        return Text.from_ansi(self._said.decode("utf-8", "replace").replace("\r", "")).plain

    def until(self, is_shown: Callable[[str], bool]) -> None:
        """Look on until something is shown."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_shown(self.text):
            assert time.monotonic() < deadline, self.text
            assert self._read(), self.text

    def press(self, key: bytes) -> None:
        """Press a key."""
        os.write(self._keyboard, key)

    def end(self) -> int:
        """Look on until it ends; its exit code."""
        while self._read():
            pass
        return self._process.wait(PATIENCE_SECONDS)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._keyboard], [], [], PATIENCE_SECONDS)
        assert ready, self.text
        try:
            said = os.read(self._keyboard, 2**16)
        except OSError:  # what Linux says when nobody has the terminal any more
            return False
        self._said += said
        return bool(said)

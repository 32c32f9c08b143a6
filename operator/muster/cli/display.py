"""Show a run: as a board on a terminal, as plain lines elsewhere. Both write to standard error only."""

from __future__ import annotations

import time
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.text import Text

from muster.cli.board.board import board
from muster.cli.board.rank_lines import OutputLine, coloured, uncoloured
from muster.cli.board.view import View, clock, metric_parts

_FRAME_SECONDS = 0.1
"""Seconds between two frames of the board: eyes are not faster, and drawing costs milliseconds."""

_FIRST_INTERVAL_SECONDS = 2.0
_LONGEST_INTERVAL_SECONDS = 60.0
_INTERVAL_GROWTH = 1.5
"""The time between two plain lines grows, unless the phase changes: the log of a long run should stay short."""


class Display(Protocol):
    """Shows a run while it lasts."""

    def show(self, view: View) -> None:
        """Show the current state."""
        ...

    def line(self, line: OutputLine) -> None:
        """Show a line of a rank's or launcher's output."""
        ...

    def note(self, text: str) -> None:
        """Show a sentence of muster's own."""
        ...

    def close(self, view: View | None) -> None:
        """End; `view` is the last state to show."""
        ...


class BoardDisplay:
    """A live board at the bottom of the terminal; lines and notes scroll above it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(
            console=console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="visible",
        )
        self._drawn = 0.0
        self._started = False

    def show(self, view: View) -> None:
        now = time.monotonic()
        if now - self._drawn >= _FRAME_SECONDS:
            self._drawn = now
            self._draw(view)

    def line(self, line: OutputLine) -> None:
        self._console.print(coloured(line), soft_wrap=True)

    def note(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)

    def close(self, view: View | None) -> None:
        if view is not None:
            self._draw(view)
        if self._started:
            self._live.stop()

    def _draw(self, view: View) -> None:
        if not self._started:
            self._live.start()
            self._started = True
        width, height = self._console.size
        self._live.update(board(view, width, height), refresh=True)


class LineDisplay:
    """Writes a line when the phase changes, and less often when only the message does."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._said = ("", "")
        self._shown_at = 0.0
        self._interval = 0.0

    def show(self, view: View) -> None:
        now = time.monotonic()
        new = (view.status.phase, view.status.message)
        if new[0] != self._said[0]:
            self._interval = 0.0
        if new != self._said and now - self._shown_at >= self._interval:
            self._said, self._shown_at = new, now
            self._interval = min(
                _LONGEST_INTERVAL_SECONDS, max(_FIRST_INTERVAL_SECONDS, self._interval * _INTERVAL_GROWTH)
            )
            self._write(plain_line(view))

    def line(self, line: OutputLine) -> None:
        self._write(uncoloured(line))

    def note(self, text: str) -> None:
        self._write(text)

    def close(self, view: View | None) -> None:
        if view is not None and (view.status.phase, view.status.message) != self._said:
            self._write(plain_line(view))

    def _write(self, text: str) -> None:
        self._console.out(text, highlight=False)


def display_on(console: Console) -> Display:
    """A board if the terminal can draw one; an Emacs shell, a log with forced colours and a file get lines."""
    # not `is_terminal`, because FORCE_COLOR sets it as well
    return BoardDisplay(console) if console.file.isatty() and not console.is_dumb_terminal else LineDisplay(console)


def plain_line(view: View) -> str:
    """Describe the run in one line: `0:12 Running: 4 of 4 ranks run; step 120, 3.4 steps/s (loss 0.31)`."""
    metrics = ", ".join(metric_parts(view.status))
    message = f": {view.status.message}" if view.status.message else ""
    return f"{clock(view.elapsed)} {view.status.phase}{message}{f' ({metrics})' if metrics else ''}"

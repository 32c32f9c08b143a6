"""Show a run on standard error, as a board on a terminal and otherwise as lines."""

from __future__ import annotations

import sys
import time
from typing import IO, Protocol, cast

from rich.console import Console
from rich.live import Live
from rich.text import Text

from muster.cli.board.board import draw_board
from muster.cli.board.rank_lines import OutputLine, format_coloured, format_plain
from muster.cli.board.view import View, format_completion, format_elapsed, format_metrics
from muster.cli.standard_error import StandardError

_FRAME_SECONDS = 0.1
"""The minimum time between two updates of the board."""

_FIRST_INTERVAL_SECONDS = 2.0
_LONGEST_INTERVAL_SECONDS = 60.0
_INTERVAL_GROWTH = 1.5
"""The interval between two plain lines grows until the phase changes, so that the log of a long run stays short."""


class Display(Protocol):
    """Shows a run until it ends."""

    def show(self, view: View) -> None:
        """Show the current state."""
        ...

    def show_line(self, line: OutputLine) -> None:
        """Show a line of output of a rank or a launcher."""
        ...

    def show_note(self, text: str) -> None:
        """Show a message of muster."""
        ...

    def close(self, view: View | None) -> None:
        """Show the last state `view`, and close the display."""
        ...


class BoardDisplay:
    """A live board at the bottom of the terminal. Lines and notes scroll above the board."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(
            console=console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="visible",
        )
        self._drawn_at = 0.0
        self._started = False

    def show(self, view: View) -> None:
        now = time.monotonic()
        if now - self._drawn_at >= _FRAME_SECONDS:
            self._drawn_at = now
            self._draw(view)

    def show_line(self, line: OutputLine) -> None:
        self._console.print(format_coloured(line), soft_wrap=True)

    def show_note(self, text: str) -> None:
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
        self._live.update(draw_board(view, width, height), refresh=True)


class LineDisplay:
    """Writes a line when the phase changes, and less often when only the message changes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last_summary = ("", "")
        self._shown_at = 0.0
        self._interval = 0.0

    def show(self, view: View) -> None:
        now = time.monotonic()
        current = (view.status.phase, view.status.message)
        if current[0] != self._last_summary[0]:
            self._interval = 0.0
        if current != self._last_summary and now - self._shown_at >= self._interval:
            self._last_summary, self._shown_at = current, now
            self._interval = min(
                _LONGEST_INTERVAL_SECONDS, max(_FIRST_INTERVAL_SECONDS, self._interval * _INTERVAL_GROWTH)
            )
            self._write(format_summary(view))

    def show_line(self, line: OutputLine) -> None:
        self._write(format_plain(line))

    def show_note(self, text: str) -> None:
        self._write(text)

    def close(self, view: View | None) -> None:
        if view is not None and (view.status.phase, view.status.message) != self._last_summary:
            self._write(format_summary(view))

    def _write(self, text: str) -> None:
        self._console.out(text, highlight=False)


def open_display(console: Console) -> Display:
    """Return a board for a terminal that can draw it, and lines for others, such as files and Emacs shells."""
    # Don't use `is_terminal`, because FORCE_COLOR also sets it.
    return BoardDisplay(console) if console.file.isatty() and not console.is_dumb_terminal else LineDisplay(console)


def open_stderr_display() -> Display:
    """Open a display on standard error."""
    return open_display(Console(file=cast(IO[str], StandardError(sys.stderr)), highlight=False))


def format_summary(view: View) -> str:
    """Describe the run in one line: `0:12 Running: 4 of 4 ranks run; step 120, 3.4 steps/s (loss 0.31)`."""
    metrics = ", ".join((*format_completion(view.status), *format_metrics(view.status)))
    message = f": {view.status.message}" if view.status.message else ""
    return f"{format_elapsed(view.elapsed_seconds)} {view.status.phase}{message}{f' ({metrics})' if metrics else ''}"

"""Write a run's newest frame to its folder, where `muster board` reads it."""

from __future__ import annotations

import json
import time
from pathlib import Path

from muster.cli.board.frame import build_frame
from muster.cli.board.frame_json import encode_frame
from muster.cli.board.metric_curves import MetricCurves, add_values, read_values
from muster.cli.board.view import View
from muster.cli.errors import format_os_error


class FrameFile:
    """The file of a run's frame, with the history of its metrics.

    Each write replaces the file, so that a reader never sees a part of a frame.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._curves = MetricCurves()
        self._is_failing = False

    def write(self, view: View) -> str | None:
        """Write the frame. Return the problem, once, if it can't be written: the run goes on without it."""
        self._curves = add_values(self._curves, view.elapsed_seconds, read_values(view.status))
        frame = build_frame(view, time.time(), self._curves)
        temporary = self._path.with_suffix(".new")
        try:
            temporary.write_text(json.dumps(encode_frame(frame), separators=(",", ":")), encoding="utf-8")
            temporary.replace(self._path)
        except OSError as error:
            problem = None if self._is_failing else f"muster board can't show this run: {format_os_error(error)}"
            self._is_failing = True
            return problem
        self._is_failing = False
        return None

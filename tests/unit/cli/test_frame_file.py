"""The file with a run's frame."""

import json
import math
from pathlib import Path

from muster.api.status.progress import Progress
from muster.api.status.status import Status
from muster.cli.board.view import View
from muster.cli.run.frame_file import FrameFile

VIEW = View("digits", 2, Status(phase="Running"), 1.0)


def test_a_write_replaces_the_frame(tmp_path: Path) -> None:
    path = tmp_path / "board.json"
    path.write_text("old")
    assert FrameFile(path).write(VIEW) is None
    assert json.loads(path.read_text())["phase"] == "Running"
    assert [entry.name for entry in tmp_path.iterdir()] == ["board.json"]


def test_the_metrics_of_each_write_are_points_of_curves(tmp_path: Path) -> None:
    file = FrameFile(tmp_path / "board.json")
    for seconds, loss in enumerate((3.0, 2.0, math.inf)):
        progress = Progress(metrics={"loss": loss}, steps_per_second=4.0)
        file.write(View("digits", 2, Status(phase="Running", progress=progress), float(seconds)))
    assert json.loads((tmp_path / "board.json").read_text())["curves"] == [
        {"name": "loss", "seconds": [0.0, 1.0], "values": [3.0, 2.0]},
        {"name": "steps/s", "seconds": [0.0, 2.0], "values": [4.0, 4.0]},
    ]


def test_a_problem_is_reported_once_until_a_write_succeeds(tmp_path: Path) -> None:
    file = FrameFile(tmp_path / "missing" / "board.json")
    assert "No such file or directory" in (file.write(VIEW) or "")
    assert file.write(VIEW) is None
    (tmp_path / "missing").mkdir()
    assert file.write(VIEW) is None
    (tmp_path / "missing" / "board.json").unlink()
    (tmp_path / "missing").rmdir()
    assert file.write(VIEW) is not None

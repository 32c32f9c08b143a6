"""The page of `muster board` in a real Chromium, with a real run of 2 x 2 ranks."""

import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from integration.run.muster_run import OUT, sh, start, write_job
from muster.cli.board.frame import STATES, Frame, RankColumns, RankProblem
from muster.cli.board.frame_json import encode_frame
from muster.cli.board.metric_curves import MetricCurve
from muster.cli.board.time_line import EndedAttempt, LostSeconds, TimeLine
from support import chromium
from support.board_page import serve_board

HTML = "<img src=x onerror=document.title=1>"
LAST_LINE = "step 88: loss 0.312"

SCREENSHOTS = os.environ.get("MUSTER_SCREENSHOTS")
"""A folder for screenshots, for the docs."""


def save_screenshot(name: str, picture: bytes) -> None:
    if SCREENSHOTS is not None:
        (Path(SCREENSHOTS) / name).write_bytes(picture)


@pytest.mark.long
@pytest.mark.skipif(not chromium.can_download(), reason="Chromium is downloaded with apt-get")
async def test_a_killed_rank_is_red_with_its_signal_within_two_seconds(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    profile = tmp_path_factory.mktemp("profile")
    job = write_job(tmp_path, sh(f"echo '{LAST_LINE}' >&2; echo $$ > {OUT}/pid-$RANK; exec sleep 600"), name="digits")
    started = start(tmp_path, job)
    started.await_files("pid-*", 4)

    async with serve_board(started.folder) as url, chromium.open_page(profile, height=700) as page:
        await page.go_to(url)
        await page.await_true("document.getElementById('legend').innerText.trim() === '4 Running'")
        save_screenshot("board-running.png", await page.take_screenshot())
        assert "token" not in await page.evaluate("location.href")

        os.kill(int((started.folder / "output" / "pid-2").read_text()), signal.SIGKILL)
        killed_at = time.monotonic()
        await page.await_true("document.getElementById('legend').innerText.includes('1 Failed')")
        seconds = time.monotonic() - killed_at
        row = await page.evaluate("document.querySelector('#problems tr').innerText.split('\\t')")
        assert row == ["2", "digits-1", "Failed", "signal 9", LAST_LINE]
        await page.evaluate("document.getElementById('cells').focus()")
        await page.press("f")
        await page.await_true(
            "document.getElementById('rank').innerText.startsWith('Rank 2 on digits-1: Failed · signal 9')"
        )
        red, green, blue = await page.evaluate(FIRST_RED_PIXEL)
        assert red > 2 * max(green, blue)
        assert seconds < 2

        await page.press("ArrowRight")
        await page.await_true("document.getElementById('rank').innerText.startsWith('Rank 3 on digits-1')")
        await page.set_colour_scheme("dark")
        await page.await_true("getComputedStyle(document.body).backgroundColor === 'rgb(20, 23, 27)'")
        await page.press("f")
        await page.await_true("document.getElementById('rank').innerText.startsWith('Rank 2')")
        save_screenshot("board-failed-dark.png", await page.take_screenshot())
        await page.set_colour_scheme("light")
        await page.evaluate("document.getElementById('cells').blur()")
        started.wait()
        await page.await_true("document.getElementById('phase').innerText === 'Failed'")
        save_screenshot("board-failed.png", await page.take_screenshot())

        assert page.errors == []


FIRST_RED_PIXEL = """(() => {
  const canvas = document.getElementById("cells");
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  for (let at = 0; at < data.data.length; at += 4) {
    const [red, green, blue] = data.data.subarray(at, at + 3);
    if (red > 2 * Math.max(green, blue)) {
      return [red, green, blue];
    }
  }
  return [0, 0, 0];
})()"""


@pytest.mark.long
@pytest.mark.skipif(not chromium.can_download(), reason="Chromium is downloaded with apt-get")
async def test_the_history_of_a_run_and_the_output_of_a_rank(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    write_history(tmp_path)
    profile = tmp_path_factory.mktemp("profile")
    async with serve_board(tmp_path) as url, chromium.open_page(profile, height=1240) as page:
        await page.go_to(url)
        await page.await_true("document.querySelectorAll('#time-line rect').length === 5")
        titles = await page.evaluate("[...document.querySelectorAll('#time-line title')].map(e => e.textContent)")
        assert titles == [
            "Attempt 1: 4 min 0 s",
            "Time lost: 12 s",
            "Attempt 2: 5 min 48 s",
            "Time lost: 30 s",
            "Attempt 3: 4 min 30 s",
        ]
        lost = await page.evaluate("[...document.querySelectorAll('#lost li')].map(e => e.textContent)")
        assert lost == ["productive: 13 min 0 s of 15 min 0 s that count", "failures: 42 s", "hangs: 1 min 18 s"]
        names = await page.evaluate("[...document.querySelectorAll('#curves figcaption')].map(e => e.textContent)")
        assert names == ["loss 0.1984", "steps/s 3.4"]

        await page.evaluate("document.getElementById('cells').focus()")
        await page.press("End")
        await page.await_true("document.getElementById('lines').textContent === 'step 40\\n<b>step 41</b>'")
        assert "train.py" in await page.evaluate("document.getElementById('stack').innerText")
        save_screenshot("board-history.png", await page.take_screenshot())
        await page.set_colour_scheme("dark")
        await page.await_true("getComputedStyle(document.body).backgroundColor === 'rgb(20, 23, 27)'")
        save_screenshot("board-history-dark.png", await page.take_screenshot())

        write_frame(tmp_path, replace(HISTORY, problems=(RankProblem(30, "Failed", "exit 1", HTML),)))
        await page.await_true("document.querySelectorAll('#problems tr').length === 1")
        assert HTML in await page.evaluate("document.getElementById('problems').innerText")
        assert await page.evaluate("document.images.length") == 0
        assert page.errors == []


_BEHIND = tuple(3 if rank == 31 else 0 for rank in range(32))
_COLUMNS = RankColumns(
    (STATES.index("Running"),) * 32, _BEHIND, tuple(120_000 + 2000 * (rank % 8) for rank in range(32))
)
_SECONDS = tuple(range(0, 900, 10))
HISTORY = Frame(
    name="vit",
    phase="Running",
    message="32 of 32 ranks run; step 2841, 3.4 steps/s",
    elapsed_seconds=900,
    attempt=3,
    procs_per_node=8,
    columns=_COLUMNS,
    at=100_900,
    step=2841,
    percent=57,
    time_line=TimeLine(
        (
            EndedAttempt(1, 100_240, "RankKilled", "Rank 7 on vit-0 was killed by SIGKILL", 12.0),
            EndedAttempt(2, 100_600, "Hung", "Rank 31 on vit-3 completes no step", 30.0),
        ),
        780.0,
        900.0,
        (LostSeconds("failures", 42.0), LostSeconds("hangs", 78.0)),
    ),
    curves=(
        MetricCurve("loss", _SECONDS, tuple(2.0 / (1 + second / 98) for second in _SECONDS)),
        MetricCurve("steps/s", _SECONDS, tuple(3.4 + 0.2 * (second % 70 > 50) for second in _SECONDS)),
    ),
)


def write_frame(folder: Path, frame: Frame) -> None:
    """Replace the frame of the run."""
    new, file = folder / "new", folder / frame.name / "board.json"
    new.write_text(json.dumps(encode_frame(frame)), encoding="utf-8")
    new.replace(file)
    # A time in the future, because nothing writes it again.
    os.utime(file, (time.time() + 3600,) * 2)


def write_history(folder: Path) -> None:
    """Write the files of a run of 32 ranks in its third attempt, and of its last node's log."""
    (folder / "vit" / "logs").mkdir(parents=True)
    write_frame(folder, HISTORY)
    (folder / "vit" / "logs" / "vit-3.log").write_text(
        "[rank 31] step 40\n[rank 30] step 41\n[rank 31] <b>step 41</b>\n"
        "[muster] rank 31 has completed no step for 300 s\n"
        "[muster] rank 31 | Thread 0x7f (most recent call first):\n"
        '[muster] rank 31 |   File "train.py", line 88 in forward\n',
        encoding="utf-8",
    )


@pytest.mark.long
@pytest.mark.skipif(not chromium.can_download(), reason="Chromium is downloaded with apt-get")
async def test_a_failed_rank_of_100000_is_circled(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    world, failed = 100_000, 61_234
    states = [STATES.index("Running")] * world
    states[failed] = STATES.index("Failed")
    columns = RankColumns(tuple(states), (0,) * world, (520_000,) * world)
    frame = Frame("large", "Running", "", 0, 1, procs_per_node=8, columns=columns)
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "board.json").write_text(json.dumps(encode_frame(frame)), encoding="utf-8")

    async with serve_board(tmp_path) as url, chromium.open_page(tmp_path_factory.mktemp("profile")) as page:
        await page.go_to(url)
        await page.await_true("document.getElementById('legend').innerText.includes('99,999 Running')")
        width, height = await page.evaluate(RED_SIZE)
        assert 10 < width < 20
        assert 10 < height < 20

        await page.evaluate("document.getElementById('cells').focus()")
        await page.press("f")
        await page.await_true(
            "document.getElementById('rank').innerText.startsWith('Rank 61234 on large-7654: Failed')"
        )
        assert page.errors == []


RED_SIZE = """(() => {
  const canvas = document.getElementById("cells");
  const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const columns = [];
  const rows = [];
  for (let at = 0; at < data.length; at += 4) {
    if (data[at] > 2 * Math.max(data[at + 1], data[at + 2])) {
      columns.push((at / 4) % width);
      rows.push(Math.floor(at / 4 / width));
    }
  }
  return [columns, rows].map((values) => Math.max(...values) - Math.min(...values) + 1);
})()"""

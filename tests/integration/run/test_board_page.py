"""The page of `muster board` in a real Chromium, with a real run of 2 x 2 ranks."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from integration.run.muster_run import MUSTER, OUT, sh, start, write_job
from support import chromium

HTML = "<img src=x onerror=document.title=1>"

SCREENSHOTS = os.environ.get("MUSTER_SCREENSHOTS")
"""A folder for screenshots, for the docs."""


@contextlib.asynccontextmanager
async def serve(folder: Path) -> AsyncIterator[str]:
    """Start `muster board`; the value is its URL."""
    process = await asyncio.create_subprocess_exec(
        *(MUSTER, "board", "--dir", str(folder)), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield (await asyncio.wait_for(process.stdout.readline(), 60)).decode().strip()
    finally:
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0


def save_screenshot(name: str, picture: bytes) -> None:
    if SCREENSHOTS is not None:
        (Path(SCREENSHOTS) / name).write_bytes(picture)


@pytest.mark.long
@pytest.mark.skipif(not chromium.can_download(), reason="Chromium is downloaded with apt-get")
async def test_a_killed_rank_is_red_with_its_signal_within_two_seconds(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    profile = tmp_path_factory.mktemp("profile")
    job = write_job(tmp_path, sh(f"echo '{HTML}' >&2; echo $$ > {OUT}/pid-$RANK; exec sleep 600"), name="digits")
    started = start(tmp_path, job)
    started.await_files("pid-*", 4)

    async with serve(started.folder) as url, chromium.open_page(profile, height=620) as page:
        await page.go_to(url)
        await page.await_true("document.getElementById('legend').innerText.trim() === '4 Running'")
        save_screenshot("board-running.png", await page.take_screenshot())
        assert "token" not in await page.evaluate("location.href")

        os.kill(int((started.folder / "output" / "pid-2").read_text()), signal.SIGKILL)
        killed_at = time.monotonic()
        await page.await_true("document.getElementById('legend').innerText.includes('1 Failed')")
        seconds = time.monotonic() - killed_at
        row = await page.evaluate("document.querySelector('#problems tr').innerText.split('\\t')")
        assert row == ["2", "digits-1", "Failed", "signal 9", HTML]
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

        assert await page.evaluate("document.images.length") == 0
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

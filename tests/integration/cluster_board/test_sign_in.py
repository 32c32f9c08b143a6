"""The page of a cluster's board in a real Chromium: a reader signs in with a token, and sees 100,000 ranks."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from fakes.review_server import ReviewServer
from muster.api.status.progress import Progress
from muster.api.status.status import Condition, NodeCounts, RankDetail, RankStatus, StateRange, Status
from muster.api.timestamps import format_timestamp
from muster.api.yaml.serialise import serialise_status
from support import chromium
from support.board_server import serve_board

STARTED = format_timestamp(time.time() - 5025)
WORLD = 100_000
FAILED = 61_234
STATUS = Status(
    phase="Running",
    attempt=1,
    message="Rank 61234 on vit-7654 was killed by SIGKILL; muster stops the others",
    conditions=(Condition(type="Running", status="True", reason="Running", last_transition_time=STARTED),),
    nodes=NodeCounts(desired=12_500, ready=12_500),
    ranks=RankStatus(
        world=WORLD,
        running=WORLD - 1,
        ready=f"{WORLD - 1}/{WORLD}",
        by_state=(
            StateRange(state="Running", count=WORLD - 1, ranks=f"0-{FAILED - 1},{FAILED + 1}-{WORLD - 1}"),
            StateRange(state="Failed", count=1, ranks=str(FAILED)),
        ),
        details=(RankDetail(rank=FAILED, node=7654, state="Failed", signal=9, reason="Killed", message="step 88"),),
    ),
    progress=Progress(step=88, steps_per_second=0.5),
    start_time=STARTED,
)
JOB: dict[str, Any] = {
    "metadata": {
        "name": "vit",
        "namespace": "team-a",
        "uid": "1",
        "resourceVersion": "1",
        "creationTimestamp": STARTED,
    },
    "status": serialise_status(STATUS),
}


def save_screenshot(name: str, picture: bytes) -> None:
    if "MUSTER_SCREENSHOTS" in os.environ:
        Path(os.environ["MUSTER_SCREENSHOTS"], name).write_bytes(picture)


@pytest.mark.long
@pytest.mark.skipif(not chromium.can_download(), reason="Chromium is downloaded with apt-get")
async def test_a_reader_signs_in_and_sees_their_job(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    rights = {("alice", "team-a", verb) for verb in ("list", "get", "watch")}
    server = ReviewServer({"alices-token": "alice"}, rights, [JOB])
    profile = tmp_path_factory.mktemp("profile")
    async with server.serve(tmp_path), serve_board(tmp_path) as url, chromium.open_page(profile, height=900) as page:
        await page.go_to(f"{url}/#namespace=team-a")
        await page.await_true("!document.getElementById('sign-in').hidden")
        assert await page.evaluate("document.getElementById('namespace').value") == "team-a"
        await page.await_true("document.getElementById('connection').innerText === 'enter a token of the cluster'")
        await page.evaluate(
            "document.getElementById('token').value = 'alices-token'; document.querySelector('#sign-in button').click()"
        )
        await page.await_true("document.getElementById('legend').innerText.includes('99,999 Running')")
        assert await page.evaluate("document.getElementById('job-name').innerText") == "vit"
        assert await page.evaluate("document.getElementById('jobs').selectedOptions[0].text") == "team-a/vit · Running"
        assert "alices-token" not in await page.evaluate("location.href + document.documentElement.outerHTML")

        await page.evaluate("document.getElementById('cells').focus()")
        await page.press("f")
        await page.await_true("document.getElementById('lines').innerText.includes('muster logs vit --rank 61234')")
        save_screenshot("board-cluster.png", await page.take_screenshot())

        await page.evaluate("location.hash = '#namespace=team-c'")
        await page.await_true("document.getElementById('namespace').value === 'team-c'")
        # Another namespace: nothing of the old one is left on the page.
        await page.evaluate(
            "document.getElementById('namespace').value = 'team-b'; document.querySelector('#sign-in button').click()"
        )
        await page.await_true("document.getElementById('connection').innerText.startsWith('you may not list')")
        assert "vit" not in await page.evaluate("document.body.innerText")
        # Only the refusals, which the browser lists too.
        assert [error for error in page.errors if "Failed to load resource" not in error] == []

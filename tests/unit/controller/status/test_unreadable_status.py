"""The operator takes no action on a job with an unreadable status, reports that, and continues once it can read it."""

from pathlib import Path
from typing import Any

import pytest

from unit.controller.jobs.test_jobs import idle
from unit.controller.worlds import Site, site


def edit(here: Site, **status: Any) -> None:
    """Another client edits the status, and the operator observes it."""
    assert here.server.resource is not None
    here.server.resource["status"] = {**here.server.status, **status}
    here.server.change()
    here.hear()


def said(here: Site) -> dict[str, Any]:
    (stalled,) = (entry for entry in here.server.status["conditions"] if entry["type"] == "Stalled")
    return dict(stalled)


@pytest.mark.parametrize("before", [False, True], ids=["at first sight", "in its life"])
async def test_it_is_left_alone_and_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, before: bool
) -> None:
    async with site(tmp_path) as here:
        if before:
            here.hear()
            await idle(here)
        turns, actions = here.world.turns.get("vit", 0), len(here.world.applied)
        edit(here, startTime="yesterday", attempt=1, progress={"step": 7})
        await idle(here)
        for _ in range(3):
            here.jobs.wake("u-1")
        await idle(here)
        assert (here.world.turns.get("vit", 0), len(here.world.applied)) == (turns, actions)
        assert (said(here)["status"], said(here)["reason"]) == ("True", "StatusUnreadable")
        assert 'status.startTime: found "yesterday"' in here.server.status["message"]
        # the existing values are still there
        assert here.server.status["startTime"] == "yesterday"
        assert here.server.status["progress"] == {"step": 7}
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [text.startswith("team/vit: status.startTime") for text in warnings] == [True]


async def test_it_goes_on_once_it_is_corrected(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        edit(here, startTime="yesterday", attempt=1)
        assert await idle(here) == 0
        edit(here, startTime="2026-11-21T04:05:19Z")
        await here.world.turn(1)
        await idle(here)
        assert said(here)["status"] == "False"
        assert here.server.status["startTime"] == "2026-11-21T04:05:19Z"

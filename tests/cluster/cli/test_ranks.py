"""`muster ranks` and `muster wait`, against statuses that the tests write."""

import json
import re

from cluster.cli.told_jobs import COMPLETE, FAILED, NAME, REFUSED, RUNNING, SUSPENDED, ToldJobs
from cluster.muster_command import Muster
from cluster.terminal import CTRL_C


def test_a_running_job(muster: Muster, told: ToldJobs) -> None:
    told.create(RUNNING)
    shown_once(muster)
    ctrl_c_leaves_the_board(muster)
    ranks = json.loads(muster("ranks", NAME, "-o", "json").stdout)["ranks"]
    assert [rank["step"] for rank in ranks] == [131, 131, 120, 131]


def shown_once(muster: Muster) -> None:
    """The output is no terminal."""
    done = muster("ranks", NAME)
    header, message, _, titles, *rows = [line.rstrip() for line in done.stdout.splitlines()]
    assert re.fullmatch(r"told  Running  [\d:]+  ·  ranks 4/4  ·  step 120  ·  3.4 steps/s  ·  loss 0.25", header)
    assert message == RUNNING.message
    assert titles == "RANK  NODE    STATE      STEP  BEHIND"
    assert rows[0] == "   0  told-0  ● Running   131       -"
    assert rows[2] == "   2  told-1  ● Running   120      11"
    assert (done.returncode, done.stderr) == (0, "")


def ctrl_c_leaves_the_board(muster: Muster) -> None:
    with muster.on_terminal("ranks", NAME) as terminal:
        terminal.until(lambda text: "Running" in text)
        terminal.press(CTRL_C)
        assert terminal.end() == 130
        assert "Traceback" not in terminal.text
        assert "Aborted" not in terminal.text


def test_a_live_board_follows_the_job_to_its_end(muster: Muster, told: ToldJobs) -> None:
    told.create()
    with muster.on_terminal("ranks", NAME) as terminal:
        terminal.until(lambda text: "muster's operator has not processed it yet" in text)
        told.tell(REFUSED)
        terminal.until(lambda text: REFUSED.message in text)
        told.tell(SUSPENDED)
        terminal.until(lambda text: SUSPENDED.message in text)
        told.tell(RUNNING)
        terminal.until(lambda text: "● Running   120      11" in text)
        told.tell(FAILED)
        assert terminal.end() == 0
        assert "told  Failed  1:12" in terminal.text
        assert "✘ Failed      -       -  exit 3 · ValueError: no" in terminal.text


def test_a_job_that_is_deleted_meanwhile(muster: Muster, told: ToldJobs, namespace: str) -> None:
    told.create(RUNNING)
    with muster.on_terminal("ranks", NAME) as terminal, muster.begin("wait", NAME) as waiting:
        assert waiting.stderr is not None
        assert "Running: 4 of 4 ranks run" in waiting.stderr.readline()
        terminal.until(lambda text: "Running" in text)
        told.delete()
        assert terminal.end() == 0
        assert f"{namespace}/told was deleted" in terminal.text
        assert f"{namespace}/told was deleted\n" in waiting.communicate(timeout=60)[1]
        assert waiting.returncode == 1


def test_waiting_ends_with_the_job_and_its_exit_code_says_how(muster: Muster, told: ToldJobs) -> None:
    told.create(RUNNING)
    late = muster("wait", NAME, "--timeout", "0.5")
    assert late.returncode == 124
    assert "has not ended after 0.5 s" in late.stderr
    told.tell(REFUSED)
    refused = muster("wait", NAME)
    assert (refused.returncode, refused.stderr.partition(" ")[2]) == (1, f"Refused: {REFUSED.message}\n")
    told.tell(FAILED)
    failed = muster("wait", NAME, "-o", "json")
    assert (failed.returncode, failed.stderr) == (1, f"1:12 Failed: {FAILED.message}\n")
    assert json.loads(failed.stdout)["status"]["ranks"]["details"][0]["exitCode"] == 3
    told.tell(COMPLETE)
    assert muster("wait", NAME).returncode == 0

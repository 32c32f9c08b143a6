"""The example classifier, 2x2 with torchrun, as its users see it train."""

import re

import pytest

from cluster.digits.trained import EPOCHS, NAME, Trained
from cluster.ended_job import succeeded

LAST_STEP = 45 * EPOCHS


def test_it_reaches_complete(trained: Trained) -> None:
    status = trained.resource["status"]
    assert (status["phase"], succeeded(status), status["attempt"]) == ("Succeeded", "4/4", 1)
    assert status["progress"]["step"] == LAST_STEP
    assert status["progress"]["metrics"]["accuracy"] > 0.95
    assert "condition met" in trained.kubectl_wait


def test_the_status_has_no_field_that_says_nothing(trained: Trained) -> None:
    status = trained.resource["status"]
    fields = [*status.values(), *status["ranks"].values(), *status["progress"].values()]
    assert not [value for value in fields if value in ([], {}, "", None)]


def test_while_it_runs_kubectl_shows_all_ranks_and_a_growing_step(trained: Trained) -> None:
    running = [row for row in trained.rows if row.phase == "Running" and row.ranks == "4/4"]
    steps = [int(row.step) for row in running if row.step]
    assert len(set(steps)) > 3
    assert steps == sorted(steps)


def test_the_board_shows_every_rank_from_the_start_to_the_end(trained: Trained) -> None:
    for rank in range(4):
        node = f"{NAME}-{rank // 2}"
        assert re.search(rf"^ +{rank}  {node}  ● Running +\d+ +[\d-]", trained.terminal, re.MULTILINE)
        assert re.search(rf"^ +{rank}  {node}  ✔ Succeeded +{LAST_STEP} +-$", trained.terminal, re.MULTILINE)
    assert "All 4 ranks succeeded" in trained.terminal
    assert "PID" not in trained.terminal


def test_waiting_tells_what_happens_and_ends_well(trained: Trained) -> None:
    assert trained.waited.returncode == 0
    assert "Running: " in trained.waited.stderr
    assert "Succeeded: All 4 ranks succeeded" in trained.waited.stderr


def test_a_followed_log_is_the_whole_log_of_its_rank(trained: Trained) -> None:
    lines = trained.followed.splitlines()
    assert {line.split("] ")[0] for line in lines} == {"[rank 0"}
    assert f"epoch={EPOCHS - 1} step={LAST_STEP} accuracy=" in lines[-1]
    assert trained.muster("logs", NAME, "--rank", "0").stdout == trained.followed


@pytest.mark.parametrize("command", ["ranks", "wait"])
def test_what_is_over_is_told_at_once(trained: Trained, command: str) -> None:
    done = trained.muster(command, NAME)
    assert done.returncode == 0
    assert "Succeeded" in done.stdout + done.stderr

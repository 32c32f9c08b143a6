"""The attempts and the lost time on the board's page."""

from muster.api.status.goodput import FAILURE, START, Goodput, LostTime
from muster.api.status.restarts import RestartRecord, Restarts
from muster.api.status.status import Status
from muster.cli.board.rank_output import MAX_LAST_LINES, RankOutput, read_rank_output
from muster.cli.board.time_line import EndedAttempt, LostSeconds, TimeLine, build_time_line

RECORD = RestartRecord(
    attempt=1, reason="RankKilled", message="Rank 2 was killed", counts_as="Failure", at="1970-01-01T00:01:40Z"
)


def test_a_job_without_restarts_has_an_empty_time_line() -> None:
    assert build_time_line(Status()) == TimeLine()


def test_attempts_have_their_ends_and_the_time_has_its_causes() -> None:
    history = (RECORD.model_copy(update={"seconds_lost": 2.5}), RECORD.model_copy(update={"attempt": 2, "at": "soon"}))
    lost = (
        LostTime(cause=START, seconds=3.04, device_seconds=12.0),
        LostTime(cause=FAILURE, seconds=0.0, device_seconds=0.0),
        LostTime(cause="Later", seconds=1.0, device_seconds=4.0),
    )
    status = Status(
        restarts=Restarts(total=2, failures=2, disruptions=0, replacement=0, history=history),
        goodput=Goodput(productive_seconds=10.0, total_seconds=14.04, lost=lost),
    )
    assert build_time_line(status) == TimeLine(
        (
            EndedAttempt(1, 100.0, "RankKilled", "Rank 2 was killed", 2.5),
            EndedAttempt(2, 0.0, "RankKilled", "Rank 2 was killed"),
        ),
        10.0,
        14.0,
        (LostSeconds("start", 3.0), LostSeconds("Later", 1.0)),
    )


def test_the_output_of_a_rank_is_its_last_lines_and_its_last_stack() -> None:
    log = [
        *(f"[rank 1] line {number}" for number in range(MAX_LAST_LINES + 1)),
        "[rank 0] of another rank",
        "[muster] rank 1 has completed no step for 9 s",
        "[muster] rank 1 |   File train.py, line 3",
        "[rank 1] \x1b[31mred\x1b[0m",
    ]
    output = read_rank_output("digits-0", 1, log)
    assert output.last_lines == (*(f"line {number}" for number in range(2, MAX_LAST_LINES + 1)), "red")
    assert output.stack_lines == ("has completed no step for 9 s", "  File train.py, line 3")
    assert read_rank_output("digits-0", 2, log) == RankOutput()

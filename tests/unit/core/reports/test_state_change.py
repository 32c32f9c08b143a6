"""Which reports reconcile a job at once, and which can wait until progress may be written."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from muster.core.reports.merge import merge_report
from muster.core.reports.state_change import has_state_changed
from muster_worker.contract.schema import (
    AgentPhase,
    AgentProblem,
    LauncherEnd,
    MetricValue,
    RankReport,
    RankState,
    Report,
)
from muster_worker.contract.trainer_status import TrainerStatus
from unit.core.reports.rank_reports import T0

RANK = RankReport(0, 0, RankState.RUNNING, pid=7, started_age=5.0, step=3, step_age=0.5, last_lines=("loss 0.3",))
FAILED_RANK = replace(RANK, state=RankState.EXITED, ended_age=1.0, exit_code=1, last_lines=("first",))
MAX_GAP_SECONDS = 10.0

Edit = Callable[[Report], Report]


def make_report(rank: RankReport) -> Report:
    return Report("uid", 0, 0, 1, 1, AgentPhase.RUNNING, "10.0.0.1", 29500, ranks=(rank,))


def edit_rank(**fields: object) -> Edit:
    return lambda report: replace(report, ranks=(replace(report.ranks[0], **fields),))  # type: ignore[arg-type]


def edit(**fields: object) -> Edit:
    return lambda report: replace(report, **fields)  # type: ignore[arg-type]


PROGRESS = {
    "a heartbeat": edit(),
    "a step": edit_rank(step=4, step_age=0.1, first_step_age=4.0, busy_seconds=0.2, mean_steps_per_second=2.0),
    "the trainer's progress": edit_rank(total_steps=9, trainer_status=TrainerStatus(0.1, percent=5)),
    "memory": edit_rank(rss_bytes=2**30),
    "an output line": edit_rank(last_lines=("loss 0.2",)),
    "a phase of the script": edit_rank(phase="eval", phase_ended_age=0.1),
    "a metric": edit(metrics=(MetricValue("loss", 0.2, 0, 0.1),)),
}
STATES = {
    "a rank's end": edit_rank(state=RankState.EXITED, ended_age=0.1, exit_code=1),
    "a rank's process": edit_rank(pid=8),
    "a hang": edit_rank(activity="all_reduce"),
    "the reason why no step is counted": edit_rank(no_step_reason="NotPython"),
    "the agent's phase": edit(phase=AgentPhase.STOPPING),
    "the next attempt": edit(attempt=2),
    "the next pod": edit(replacement=1),
    "the launcher's end": edit(launcher=LauncherEnd("torchrun", 0.1, exit_code=1)),
    "a signal to the agent": edit(terminated_age=0.1),
    "a problem": edit(problem=AgentProblem("NoPort", "no free port")),
    "another address": edit(address="10.0.0.2"),
    "more ranks": lambda report: replace(report, ranks=(*report.ranks, replace(RANK, rank=1, local_rank=1))),
}


def is_urgent(next_report: Edit) -> bool:
    first = make_report(RANK)
    before = merge_report(None, first, T0)
    after = merge_report(before, replace(next_report(first), sequence=2), T0 + 1.0)
    return has_state_changed(before, after, MAX_GAP_SECONDS)


@pytest.mark.parametrize("next_report", PROGRESS.values(), ids=PROGRESS)
def test_progress_can_wait(next_report: Edit) -> None:
    assert not is_urgent(next_report)


@pytest.mark.parametrize("next_report", STATES.values(), ids=STATES)
def test_a_state_cannot(next_report: Edit) -> None:
    assert is_urgent(next_report)


def test_the_first_report_and_the_one_that_ends_a_silence_cannot_wait() -> None:
    first = make_report(RANK)
    before = merge_report(None, first, T0)
    after = merge_report(before, replace(first, sequence=2), T0 + MAX_GAP_SECONDS + 1.0)
    assert has_state_changed(None, before, MAX_GAP_SECONDS)
    assert has_state_changed(before, after, MAX_GAP_SECONDS)


def test_later_output_of_an_ended_rank_cannot_wait_as_it_may_name_another_cause() -> None:
    first = make_report(FAILED_RANK)
    before = merge_report(None, first, T0)
    after = merge_report(before, replace(edit_rank(last_lines=("first", "second"))(first), sequence=2), T0 + 1.0)
    assert has_state_changed(before, after, MAX_GAP_SECONDS)

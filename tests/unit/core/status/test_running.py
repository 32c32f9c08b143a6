"""The status of a job that runs or starts."""

import dataclasses

import pytest

from muster.api.spec.job import Metric
from muster.api.status.progress import Progress
from muster.api.status.status import Condition, RankDetail, Status
from muster.core.facts import JobFacts, NodeFacts, RankFacts
from muster.core.problem import Problem
from muster_worker.contract.schema import AgentPhase, CommandKind
from unit.core.builders import (
    START,
    T0,
    agent,
    command,
    compute_status,
    exited_rank,
    facts,
    job,
    missing_node,
    node,
    rank,
    ready_node,
    running_node,
    starting_rank,
    with_spec,
)


def rank_without_steps(number: int, reason: str) -> RankFacts:
    current = rank(number)
    return dataclasses.replace(current, report=dataclasses.replace(current.report, no_step_reason=reason))


def rank_at_step(seconds: float, step: int, number: int) -> RankFacts:
    return rank(number, step=step, highest_step_at=START + seconds)


def with_problem(current: NodeFacts) -> NodeFacts:
    problem = Problem("SidecarFailed", "container logs failed with exit code 3")
    return dataclasses.replace(current, process=dataclasses.replace(current.process, problem=problem))


SIDECAR_MESSAGE = "digits-0: container logs failed with exit code 3"
STARTED_NODE = node(0, agent(0, AgentPhase.READY), sent_command=command(CommandKind.START))

CASES = (
    (
        facts(missing_node(0), missing_node(1)),
        "Pending",
        "0 of 2 nodes are ready: digits-0 and digits-1 do not exist yet",
    ),
    (facts(ready_node(0), missing_node(1)), "Pending", "1 of 2 nodes is ready: digits-1 does not exist yet"),
    (facts(ready_node(0), node(1)), "Starting", "1 of 2 nodes is ready: digits-1 has not reported"),
    (facts(ready_node(0), ready_node(1)), "Starting", "All 2 nodes are ready; the ranks are about to start"),
    (
        facts(with_problem(ready_node(0)), ready_node(1)),
        "Starting",
        f"All 2 nodes are ready; the ranks are about to start; {SIDECAR_MESSAGE}",
    ),
    (facts(STARTED_NODE, running_node(1)), "Starting", "The ranks start: 0 of 4 run"),
    (facts(with_problem(STARTED_NODE), running_node(1)), "Starting", f"The ranks start: 0 of 4 run; {SIDECAR_MESSAGE}"),
    (
        facts(running_node(0, rank(0), starting_rank(1)), running_node(1, rank(2))),
        "Running",
        "2 of 4 ranks run; 2 starting (1,3)",
    ),
    (
        facts(
            running_node(0, rank_at_step(9, 120, 0), rank_at_step(9, 120, 1)),
            running_node(1, rank_at_step(9, 121, 2), rank_at_step(9, 120, 3)),
        ),
        "Running",
        "4 of 4 ranks run; step 120",
    ),
    (
        facts(
            running_node(0, rank_at_step(9, 135, 0), rank_at_step(9, 120, 1)),
            running_node(1, rank_at_step(9, 130, 2), rank_at_step(9, 133, 3)),
        ),
        "Running",
        "4 of 4 ranks run; step 120; rank 1 is 15 steps behind",
    ),
    (
        facts(running_node(0, rank(0), exited_rank(1, 3, exit_code=0)), running_node(1, rank(2), rank(3))),
        "Running",
        "3 of 4 ranks run; 1 done (1)",
    ),
    (
        facts(
            running_node(0, rank_without_steps(0, "NotPython"), rank(1)),
            running_node(1, rank_without_steps(2, "NotPython"), rank(3)),
        ),
        "Running",
        "4 of 4 ranks run; no step count (not Python)",
    ),
    (
        facts(running_node(0, rank(0), rank(1), reported_at=9), running_node(1, rank(2), rank(3), reported_at=-6)),
        "Running",
        "2 of 4 ranks run; 2 unknown: digits-1 has not reported since 2025-11-21T04:04:59Z",
    ),
)


@pytest.mark.parametrize(("job_facts", "phase", "message"), CASES, ids=[message for *_, message in CASES])
def test_the_message_of_a_job_that_has_not_ended(job_facts: JobFacts, phase: str, message: str) -> None:
    status = compute_status(job(), Status(), job_facts, START + 10)

    assert (status.phase, status.message) == (phase, message)


def test_there_is_no_progress_before_the_first_step_of_any_rank() -> None:
    """A process that imports torch has the optimizer's hook, and may never take a step."""
    idle = facts(
        running_node(0, rank_at_step(9, 0, 0), rank_at_step(9, 0, 1)),
        running_node(1, rank_at_step(9, 0, 2), rank_at_step(9, 0, 3)),
    )
    after_first_step = facts(
        running_node(0, rank_at_step(9, 0, 0), rank_at_step(9, 0, 1)),
        running_node(1, rank_at_step(9, 1, 2), rank_at_step(9, 1, 3)),
    )
    failed = facts(
        running_node(0, exited_rank(0, 9, exit_code=3, step=0), rank_at_step(9, 0, 1)),
        running_node(1, rank_at_step(9, 0, 2), rank_at_step(9, 0, 3)),
    )

    idle_status, first_step_status, failed_status = (
        compute_status(job(), Status(), job_facts, START + 10) for job_facts in (idle, after_first_step, failed)
    )

    assert (idle_status.progress, idle_status.message) == (None, "4 of 4 ranks run")
    assert first_step_status.progress is not None
    assert first_step_status.progress.step == 0
    assert "step" not in failed_status.message
    assert failed_status.ranks is not None
    assert {detail.step for detail in failed_status.ranks.details} == {None}


def test_ranks_of_a_silent_node_are_unknown_and_not_running() -> None:
    current = facts(running_node(0, rank(0), rank(1), reported_at=9), running_node(1, rank(2), rank(3), reported_at=-6))

    status = compute_status(job(), Status(), current, START + 10)

    assert status.ranks is not None
    assert status.nodes is not None
    assert (status.ranks.running, status.ranks.ready) == (2, "2/4")
    assert [(entry.state, entry.count, entry.ranks) for entry in status.ranks.by_state] == [
        ("Running", 2, "0-1"),
        ("Unknown", 2, "2-3"),
    ]
    assert (status.nodes.desired, status.nodes.ready) == (2, 1)


def test_the_message_of_a_job_with_one_node_has_no_count() -> None:
    one_node_job = job(nodes=1)
    assert (
        compute_status(one_node_job, Status(), facts(missing_node(0)), START).message == "digits-0 does not exist yet"
    )
    assert (
        compute_status(one_node_job, Status(), facts(ready_node(0)), START).message
        == "The node is ready; the ranks are about to start"
    )


def test_the_status_does_not_mention_a_rank_that_imports_torch() -> None:
    current = facts(
        running_node(0, rank_without_steps(0, "NoTorch"), rank_without_steps(1, "NotHooked")),
        running_node(1, rank(2), rank(3)),
    )

    status = compute_status(job(), Status(), current, START + 1)
    assert status.ranks is not None
    assert status.ranks.details == ()
    assert "no step count" not in status.message


def test_the_details_have_one_rank_for_each_reason_without_a_step_count() -> None:
    current = facts(
        running_node(0, rank_without_steps(0, "NotPython"), rank_without_steps(1, "NotPython")),
        running_node(1, rank(2), rank_without_steps(3, "PythonIsolated")),
    )

    status = compute_status(job(), Status(), current, START + 1)

    assert status.ranks is not None
    assert status.ranks.details == (
        RankDetail(
            rank=0,
            node=0,
            state="Running",
            reason="NotPython",
            message="its optimizer's steps can't be counted",
            pid=1000,
        ),
        RankDetail(
            rank=3,
            node=1,
            state="Running",
            reason="PythonIsolated",
            message="its optimizer's steps can't be counted",
            pid=1003,
        ),
    )


def status_with_progress(step: int, seconds: float, steps_per_second: float | None) -> Status:
    timestamp = f"2025-11-21T04:05:{5 + seconds:06.3f}Z"
    return Status(progress=Progress(step=step, steps_per_second=steps_per_second, at=timestamp))


@pytest.mark.parametrize(
    ("previous", "step", "stepped_at", "heard", "steps_per_second"),
    [
        (Status(), 100, 20.0, 20.0, None),
        (status_with_progress(100, 10, None), 134, 20.0, 20.0, 3.4),
        (status_with_progress(100, 10, 3.4), 100, 10.0, 10.0, 3.4),
        # The last ten seconds have the weight 1 - 1/e.
        (status_with_progress(100, 10, 1.0), 150, 20.0, 20.0, 3.53),
        # There was no step for 20 s: the rate is at most one step in that time.
        (status_with_progress(100, 10, 3.4), 100, 10.0, 30.0, 0.05),
        # A late report of an earlier step.
        (status_with_progress(100, 10, 3.4), 90, 9.0, 9.0, 3.4),
    ],
)
def test_the_steps_per_second(
    previous: Status, step: int, stepped_at: float, heard: float, steps_per_second: float | None
) -> None:
    current = facts(running_node(0, rank_at_step(stepped_at, step, 0), reported_at=heard))

    status = compute_status(job(1, 1), previous, current, START + heard)

    assert status.progress is not None
    assert (status.progress.step, status.progress.steps_per_second) == (step, steps_per_second)


def test_there_are_no_steps_per_second_after_all_ranks_have_ended() -> None:
    current = facts(running_node(0, exited_rank(0, 9, exit_code=0, step=150)))

    status = compute_status(job(1, 1), status_with_progress(140, 2, 3.4), current, START + 10)

    assert status.progress is not None
    assert (status.progress.step, status.progress.steps_per_second) == (150, None)
    assert status.message == "No rank runs; step 150; 1 done (0)"


@pytest.mark.parametrize(("difference", "slowest"), [(22, None), (50, 1), (0, 0)])
def test_step_counts_of_two_nodes_are_compared_at_the_same_time(difference: int, slowest: int | None) -> None:
    current = facts(
        running_node(0, rank_at_step(20, 100 + difference, 0), reported_at=20),
        running_node(1, rank_at_step(15, 100, 1), reported_at=15),
    )

    status = compute_status(job(2, 1), status_with_progress(95, 10, 4.0), current, START + 20)

    assert status.progress is not None
    assert status.progress.slowest_rank == slowest


def test_metrics_are_the_latest_values_of_all_nodes() -> None:
    first = agent(0, AgentPhase.RUNNING, (rank(0),), metrics=[("loss", 0.5, 0, 9.0), ("accuracy", 0.9, 0, 5.0)])
    second = agent(1, AgentPhase.RUNNING, (rank(1),), metrics=[("loss", 0.4, 1, 9.5), ("accuracy", 0.8, 1, 5.0)])
    current = facts(node(0, first), node(1, second))

    status = compute_status(job(2, 1), Status(), current, START + 10)

    assert status.progress is not None
    assert status.progress.metrics == {"accuracy": 0.9, "loss": 0.4}


def test_metrics_of_the_spec_come_first_and_omitted_metrics_are_counted() -> None:
    a_job = with_spec(job(1, 1), metrics=(Metric(name="zeta", regex="z=(.*)"),))
    values = [("zeta", 1.0, 0, 9.0), *((f"m{number:02}", 0.5, 0, 9.0) for number in range(70))]
    current = facts(node(0, agent(0, AgentPhase.RUNNING, (rank(0),), metrics=values)))

    progress = compute_status(a_job, Status(), current, START + 10).progress

    assert progress is not None
    assert list(progress.metrics) == ["zeta", *(f"m{number:02}" for number in range(63))]
    assert progress.metrics_left_out == 7


def conditions_by_type(status: Status) -> dict[str, Condition]:
    return {entry.type: entry for entry in status.conditions}


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    waiting = compute_status(job(), Status(), facts(missing_node(0), missing_node(1)), T0)
    started = compute_status(job(), waiting, facts(running_node(0, rank(0)), running_node(1, rank(2))), START)
    later = compute_status(
        job(), started, facts(running_node(0, rank(0), rank(1)), running_node(1, rank(2), rank(3))), START + 9
    )

    assert [entry.type for entry in later.conditions] == [
        "Accepted",
        "Scheduled",
        "Running",
        "Reconciling",
        "Stalled",
        "Suspended",
        "Complete",
        "Failed",
    ]
    assert conditions_by_type(later)["Accepted"].last_transition_time == "2025-11-21T04:05:00Z"
    assert conditions_by_type(later)["Running"].last_transition_time == "2025-11-21T04:05:05Z"
    assert conditions_by_type(later)["Running"].message == "4 of 4 ranks run"
    assert conditions_by_type(later)["Failed"].last_transition_time == "2025-11-21T04:05:00Z"
    assert {entry.observed_generation for entry in later.conditions} == {3}
    assert later.observed_generation == 3
    assert later.start_time == "2025-11-21T04:05:05Z"
    assert later.completion_time is None


def test_the_column_ranks_counts_running_ranks_in_every_phase() -> None:
    waiting = facts(missing_node(0), missing_node(1))
    half_done = facts(running_node(0, exited_rank(0, 9, exit_code=0)), running_node(1, rank(1)))
    failed = facts(running_node(0, exited_rank(0, 9, exit_code=7)), running_node(1, rank(1)))
    succeeded = facts(
        *(node(number, agent(number, AgentPhase.ENDED, (exited_rank(number, 9, exit_code=0),))) for number in range(2))
    )

    statuses = [
        compute_status(job(2, 1), Status(), job_facts, START + 10)
        for job_facts in (waiting, half_done, failed, succeeded)
    ]

    ranks = [
        (status.phase, status.ranks.running, status.ranks.ready) for status in statuses if status.ranks is not None
    ]
    assert ranks == [("Pending", 0, "0/2"), ("Running", 1, "1/2"), ("Stopping", 1, "1/2"), ("Succeeded", 0, "0/2")]


def test_the_status_of_an_ended_job_does_not_change() -> None:
    succeeded = facts(node(0, agent(0, AgentPhase.ENDED, (exited_rank(0, 9, exit_code=0, step=50),))))
    end_status = compute_status(job(1, 1), Status(), succeeded, START + 10)

    assert (end_status.phase, end_status.message) == ("Succeeded", "The rank succeeded at step 50")
    assert conditions_by_type(end_status)["Complete"].status == "True"
    assert conditions_by_type(end_status)["Complete"].reason == "AllRanksSucceeded"
    assert end_status.completion_time == "2025-11-21T04:05:15Z"
    assert compute_status(job(1, 1), end_status, facts(missing_node(0)), START + 999) == end_status


def test_the_message_of_a_passed_deadline_names_its_field() -> None:
    startup_status = compute_status(job(startup=10), Status(), facts(ready_node(0), node(1)), T0 + 11)
    deadline_status = compute_status(
        job(deadline=60),
        Status(),
        facts(*(running_node(n, rank(2 * n), rank(2 * n + 1), reported_at=50) for n in (0, 1))),
        T0 + 61,
    )

    assert (
        startup_status.message
        == "Not all nodes were ready within startupTimeoutSeconds (10 s): digits-1 has not reported"
    )
    assert (
        deadline_status.message == "Stopped because activeDeadlineSeconds (60 s) has passed; 4 ranks were still running"
    )
    assert (startup_status.phase, deadline_status.phase) == ("Stopping", "Stopping")

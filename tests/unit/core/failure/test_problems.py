"""Problems of nodes: those that appear only with time, the suspected node, and which message is used."""

from dataclasses import replace

import pytest

from muster.api.status.status import Status
from muster.core.decide import find_requeue_time
from muster.core.facts import JobFacts, NodeFacts, Problem
from muster.core.inference import infer
from muster.core.judge import judge
from muster_worker.contract.schema import AgentPhase, CommandKind
from unit.core.builders import (
    START,
    T0,
    agent,
    command,
    compute_status,
    exited_process,
    exited_rank,
    facts,
    finished_node,
    job,
    missing_node,
    node,
    rank,
    rank_without_peer,
    ready_node,
    running_node,
    stopped_node,
    stopped_rank,
    with_sigterm,
)

OOM = Problem("OOMKilled", "container trainer ran out of memory; its limit is 50Mi")


def problems(current: JobFacts, now: float, previous: Status | None = None) -> list[str | None]:
    inferred = infer(job(), previous or Status(), current, now)
    return [entry.process.problem.reason if entry.process.problem else None for entry in inferred.nodes]


def with_problem(current: NodeFacts, reason: str, message: str) -> NodeFacts:
    return replace(current, process=replace(current.process, problem=Problem(reason, message)))


@pytest.mark.parametrize(
    ("known", "seconds", "expected"),
    [
        (facts(node(0), ready_node(1)), 29.9, [None, None]),
        (facts(node(0), ready_node(1)), 30.0, ["AgentUnreachable", None]),
        (facts(with_problem(node(0), "SidecarFailed", "x"), missing_node(1)), 30.0, ["SidecarFailed", None]),
        # An operator that has just started has received no reports yet.
        (replace(facts(node(0), node(1)), collector_started_at=T0 + 100), 129.0, [None, None]),
        (replace(facts(node(0), node(1)), collector_started_at=T0 + 100), 130.0, ["AgentUnreachable"] * 2),
    ],
)
def test_an_agent_that_is_not_heard_is_unreachable(known: JobFacts, seconds: float, expected: list[str | None]) -> None:
    assert problems(known, T0 + seconds) == expected


def test_the_time_alone_wakes_for_it() -> None:
    current = facts(node(0), node(1))

    assert find_requeue_time(job(), current, judge(job(), Status(), current, T0), T0) == T0 + 30


def test_an_unreachable_agent_ends_nothing_and_is_reported_with_a_remedy() -> None:
    status = compute_status(job(), Status(), facts(node(0), ready_node(1)), T0 + 31)

    assert status.phase == "Starting"
    assert "digits-0: its agent has run for 30 s without a report; look for a NetworkPolicy" in status.message


def test_who_held_most_memory_is_suspected() -> None:
    ranks = [
        replace(entry, report=replace(entry.report, rss_bytes=held * 2**20))
        for entry, held in ((rank(2), 12), (rank(3), 412))
    ]
    killed = node(
        1, agent(1, AgentPhase.RUNNING, ranks), exited_process(9, signal=9, problem=OOM), command(CommandKind.START)
    )
    current = facts(stopped_node(0, rank_without_peer(0, 9.1), rank_without_peer(1, 9.1)), killed)

    status = compute_status(job(), Status(), current, START + 20)

    assert status.message == (
        "digits-1: container trainer ran out of memory; its limit is 50Mi; rank 3 used the most memory: 412 MiB; "
        "2 others were cut off"
    )
    failed = next(entry for entry in status.conditions if entry.type == "Failed")
    assert failed.reason == "OOMKilled"
    assert status.ranks is not None
    assert {(entry.rank, entry.state, entry.reason) for entry in status.ranks.details} >= {
        (2, "Failed", "OOMKilled"),
        (3, "Failed", "OOMKilled"),
    }


def test_a_rank_that_the_kernel_killed_for_its_memory() -> None:
    killed = exited_rank(3, 9, signal=9, step=1200, reason="OOMKilled")
    killed = replace(killed, report=replace(killed.report, rss_bytes=412 * 2**20))
    current = facts(
        stopped_node(0, stopped_rank(0, 10, "all_reduce"), stopped_rank(1, 10, "all_reduce")),
        stopped_node(1, stopped_rank(2, 10, "all_reduce"), killed),
    )

    status = compute_status(job(), Status(), current, START + 20)

    assert status.message == (
        "Rank 3 on digits-1 was OOM-killed at step 1200: it held 412 MiB; 3 others were in all_reduce"
    )


@pytest.mark.parametrize(
    ("held", "why"),
    [
        (412 * 2**20, "it held 412 MiB, and the limit of its container is 512Mi: raise spec.resources.limits.memory"),
        (None, "the limit of its container is 512Mi: raise spec.resources.limits.memory"),
    ],
)
def test_the_limit_that_a_killed_rank_met_is_named(held: int | None, why: str) -> None:
    killed = exited_rank(1, 9, signal=9, reason="OOMKilled")
    killed = replace(killed, report=replace(killed.report, rss_bytes=held))
    node = stopped_node(1, killed)
    limited = replace(node, process=replace(node.process, memory_limit="512Mi"))

    status = compute_status(job(2, 1), Status(), facts(stopped_node(0, stopped_rank(0, 10)), limited), START + 20)

    assert status.message.startswith(f"Rank 1 on digits-1 was OOM-killed: {why}; ")


@pytest.mark.parametrize("reason", ["Evicted", "PodDeleted", "Preempted"])
def test_the_problem_names_the_cause_of_a_pods_deletion(reason: str) -> None:
    taken = with_sigterm(
        with_problem(finished_node(0, stopped_rank(0, 1.0), stopped_rank(1, 1.0)), reason, "machine-1 evicted it"), 1.0
    )
    current = facts(taken, stopped_node(1, rank_without_peer(2, 1.1), rank_without_peer(3, 1.1)))

    status = compute_status(job(), Status(), current, START + 20)

    failed = next(entry for entry in status.conditions if entry.type == "Failed")
    assert (failed.reason, status.message) == (reason, "digits-0: machine-1 evicted it; 2 others were cut off")


def test_a_pod_that_vanished_has_the_backends_reason() -> None:
    current = facts(with_problem(missing_node(0), "PodDeleted", "a user deleted it"), running_node(1, rank(2), rank(3)))

    assert judge(job(), Status(), current, START + 9).reason == "PodDeleted"


def test_a_restarted_operator_lets_a_running_gang_speak() -> None:
    ongoing = Status(attempt=1, start_time="2025-11-21T04:05:05Z", phase="Running", message="all 4 ranks run")
    current = replace(facts(node(0), node(1)), collector_started_at=START + 3600)

    early = compute_status(job(), ongoing, current, START + 3601)
    late = compute_status(job(), early, current, START + 3631)

    # An operator with less information does not replace the report.
    assert early == ongoing.model_copy(update={"observed_generation": 3})
    assert late.phase == "Running"
    assert late.message.startswith("0 of 4 ranks run; 4 unknown: digits-0 and digits-1 have not reported yet; ")
    assert (late.attempt, late.start_time) == (1, ongoing.start_time)


def test_a_restarted_operator_names_no_root_cause_before_all_have_reported() -> None:
    cut_off, failed = (
        running_node(0, rank_without_peer(0, 1.1), rank(1)),
        running_node(1, exited_rank(2, 1.0, exit_code=7), rank(3)),
    )
    ongoing = Status(attempt=1, start_time="2025-11-21T04:05:05Z", phase="Running")
    stopping = compute_status(job(), ongoing, facts(cut_off, failed), START + 2)
    heard_one = replace(facts(cut_off, node(1)), collector_started_at=START + 3)

    after = compute_status(job(), stopping, heard_one, START + 4)

    assert (stopping.phase, stopping.message.startswith("Rank 2 ")) == ("Stopping", True)
    assert after == stopping


def test_ranks_that_fell_silent_before_they_ran_do_not_run() -> None:
    starting = Status(attempt=1, start_time="2025-11-21T04:05:05Z", phase="Starting")
    silent = facts(running_node(0, heard=-60.0), running_node(1, heard=-60.0))

    assert compute_status(job(), starting, silent, START + 5).phase == "Starting"
    ran = starting.model_copy(update={"phase": "Running"})
    assert compute_status(job(), ran, silent, START + 5).phase == "Running"

"""Problems of nodes: those that appear after some time, the suspected node, and the message in the status."""

from dataclasses import replace

import pytest

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.fact_completion import complete_facts
from muster.core.facts import JobFacts, LauncherFacts, NodeFacts
from muster.core.judge import judge
from muster.core.outcome import Verdict
from muster.core.problem import Problem
from muster_worker.contract.schema import AgentPhase, CommandKind
from unit.core.builders import (
    START,
    T0,
    agent,
    command,
    compute_status,
    exited_launcher,
    exited_process,
    exited_rank,
    facts,
    finished_node,
    job,
    missing_node,
    mpi_job,
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


def problem_reasons(job_facts: JobFacts, now: float, previous: Status | None = None) -> list[str | None]:
    completed = complete_facts(job(), previous or Status(), job_facts, now)
    return [entry.process.problem.reason if entry.process.problem else None for entry in completed.nodes]


def with_problem(current: NodeFacts, reason: str, message: str) -> NodeFacts:
    return replace(current, process=replace(current.process, problem=Problem(reason, message)))


@pytest.mark.parametrize(
    ("job_facts", "seconds", "expected"),
    [
        (facts(node(0), ready_node(1)), 29.9, [None, None]),
        (facts(node(0), ready_node(1)), 30.0, ["AgentUnreachable", None]),
        (facts(with_problem(node(0), "SidecarFailed", "x"), missing_node(1)), 30.0, ["SidecarFailed", None]),
        # An operator that has just started has received no reports yet.
        (replace(facts(node(0), node(1)), collector_started_at=T0 + 100), 129.0, [None, None]),
        (replace(facts(node(0), node(1)), collector_started_at=T0 + 100), 130.0, ["AgentUnreachable"] * 2),
    ],
)
def test_an_agent_without_a_report_is_unreachable_after_30_s(
    job_facts: JobFacts, seconds: float, expected: list[str | None]
) -> None:
    assert problem_reasons(job_facts, T0 + seconds) == expected


def test_an_unreachable_agent_does_not_end_the_job_and_its_message_has_a_remedy() -> None:
    status = compute_status(job(), Status(), facts(node(0), ready_node(1)), T0 + 31)

    assert status.phase == "Starting"
    assert "digits-0: its agent has run for 30 s without a report; look for a NetworkPolicy" in status.message


def test_the_message_of_an_oom_kill_names_the_rank_with_most_memory() -> None:
    ranks = [
        replace(entry, report=replace(entry.report, rss_bytes=mebibytes * 2**20))
        for entry, mebibytes in ((rank(2), 12), (rank(3), 412))
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


def test_the_message_names_an_oom_killed_rank_and_its_memory() -> None:
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
    ("rss_bytes", "sentence"),
    [
        (412 * 2**20, "it held 412 MiB, and the limit of its container is 512Mi: raise spec.resources.limits.memory"),
        (None, "the limit of its container is 512Mi: raise spec.resources.limits.memory"),
    ],
)
def test_the_message_of_an_oom_killed_rank_names_the_memory_limit(rss_bytes: int | None, sentence: str) -> None:
    killed = exited_rank(1, 9, signal=9, reason="OOMKilled")
    killed = replace(killed, report=replace(killed.report, rss_bytes=rss_bytes))
    node = stopped_node(1, killed)
    limited = replace(node, process=replace(node.process, memory_limit="512Mi"))

    status = compute_status(job(2, 1), Status(), facts(stopped_node(0, stopped_rank(0, 10)), limited), START + 20)

    assert status.message.startswith(f"Rank 1 on digits-1 was OOM-killed: {sentence}; ")


@pytest.mark.parametrize("reason", ["Evicted", "PodDeleted", "Preempted"])
def test_the_problem_names_the_cause_of_a_pods_deletion(reason: str) -> None:
    deleted_node = with_sigterm(
        with_problem(finished_node(0, stopped_rank(0, 1.0), stopped_rank(1, 1.0)), reason, "machine-1 evicted it"), 1.0
    )
    current = facts(deleted_node, stopped_node(1, rank_without_peer(2, 1.1), rank_without_peer(3, 1.1)))

    status = compute_status(job(), Status(), current, START + 20)

    failed = next(entry for entry in status.conditions if entry.type == "Failed")
    assert (failed.reason, status.message) == (reason, "digits-0: machine-1 evicted it; 2 others were cut off")


DONE = (exited_rank(0, 9, exit_code=0), exited_rank(1, 9, exit_code=0))
TORCHRUN_STOPPED = exited_launcher(10.5, signal=9, stopped=True)


@pytest.mark.parametrize(
    ("current_job", "launcher", "reason"),
    [
        # mpirun needs the daemon of the deleted node.
        (mpi_job(), None, "PodDeleted"),
        (mpi_job(), exited_launcher(10.5, 137, name="mpirun", stopped=True), "PodDeleted"),
        # torchrun waited for its peers.
        (job(), TORCHRUN_STOPPED, "PodDeleted"),
        # Without a launcher, or after its end, the node was not needed: muster stopped node 1 for another cause.
        (job(), None, "RanksLost"),
        (job(), exited_launcher(9.5, 0), "RanksLost"),
    ],
    ids=["mpi daemon", "mpirun", "torchrun", "direct", "torchrun had ended"],
)
def test_a_deleted_pod_whose_ranks_had_ended_is_a_failure_if_others_needed_it(
    current_job: Job, launcher: LauncherFacts | None, reason: str
) -> None:
    deleted = with_sigterm(
        with_problem(finished_node(0, *DONE, launcher=launcher), "PodDeleted", "a user did it"), 10.0
    )
    stopped = stopped_node(1, stopped_rank(2, 10.3), stopped_rank(3, 10.3))

    assert judge(current_job, Status(), facts(deleted, stopped), START + 20).reason == reason


def test_a_deleted_pod_is_no_failure_if_all_ranks_have_succeeded() -> None:
    deleted = with_sigterm(
        with_problem(finished_node(0, *DONE, launcher=TORCHRUN_STOPPED), "PodDeleted", "a user did it"), 10.0
    )
    others = finished_node(1, exited_rank(2, 9, exit_code=0), exited_rank(3, 9, exit_code=0))

    assert judge(job(), Status(), facts(deleted, others), START + 20).verdict is Verdict.SUCCEEDED


def test_a_missing_pod_has_the_reason_of_its_problem() -> None:
    current = facts(with_problem(missing_node(0), "PodDeleted", "a user deleted it"), running_node(1, rank(2), rank(3)))

    assert judge(job(), Status(), current, START + 9).reason == "PodDeleted"


def test_a_new_operator_waits_for_the_reports_of_a_running_gang() -> None:
    running_status = Status(attempt=1, start_time="2025-11-21T04:05:05Z", phase="Running", message="all 4 ranks run")
    current = replace(facts(node(0), node(1)), collector_started_at=START + 3600)

    early = compute_status(job(), running_status, current, START + 3601)
    late = compute_status(job(), early, current, START + 3631)

    # An operator without reports does not replace the status.
    assert early == running_status.model_copy(update={"observed_generation": 3})
    assert late.phase == "Running"
    assert late.message.startswith("0 of 4 ranks run; 4 unknown: digits-0 and digits-1 have not reported yet; ")
    assert (late.attempt, late.start_time) == (1, running_status.start_time)


def test_a_new_operator_keeps_the_root_cause_until_all_nodes_have_reported() -> None:
    first_node, second_node = (
        running_node(0, rank_without_peer(0, 1.1), rank(1)),
        running_node(1, exited_rank(2, 1.0, exit_code=7), rank(3)),
    )
    running_status = Status(attempt=1, start_time="2025-11-21T04:05:05Z", phase="Running")
    stopping = compute_status(job(), running_status, facts(first_node, second_node), START + 2)
    one_report = replace(facts(first_node, node(1)), collector_started_at=START + 3)

    after = compute_status(job(), stopping, one_report, START + 4)

    assert (stopping.phase, stopping.message.startswith("Rank 2 ")) == ("Stopping", True)
    assert after == stopping


def test_ranks_whose_agents_are_silent_keep_the_phase() -> None:
    starting_status = Status(attempt=1, start_time="2025-11-21T04:05:05Z", phase="Starting")
    silent = facts(running_node(0, reported_at=-60.0), running_node(1, reported_at=-60.0))

    assert compute_status(job(), starting_status, silent, START + 5).phase == "Starting"
    running_status = starting_status.model_copy(update={"phase": "Running"})
    assert compute_status(job(), running_status, silent, START + 5).phase == "Running"

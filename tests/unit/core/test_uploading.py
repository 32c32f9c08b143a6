"""Nodes whose ranks have ended and whose files are being uploaded to S3."""

from dataclasses import replace

import pytest

from muster.api.spec.data import Output
from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.actions import KillNode, SendCommand
from muster.core.decide import decide
from muster.core.facts import AgentFacts, JobFacts
from muster.core.judge import judge
from muster.core.outcome import Verdict
from muster.core.status.summarise import summarise
from muster_worker.contract.schema import AgentPhase, AgentProblem, CommandKind
from unit.core.builders import (
    START,
    agent,
    command,
    exited_launcher,
    exited_process,
    exited_rank,
    facts,
    job,
    mpi_job,
    node,
    rank,
    running_node,
    running_process,
    with_spec,
)

SUCCEEDED_RANKS = (exited_rank(0, 9, exit_code=0), exited_rank(1, 9, exit_code=0))
LATE = START + 100_000
ACCESS_DENIED = AgentProblem("S3AccessDenied", "spec.output.s3: s3:PutObject on s3://data/out/m is denied")


def with_output(a_job: Job) -> Job:
    return with_spec(a_job, output=Output(s3="s3://data/out"))


JOB = with_output(job(nodes=1))


def agent_in(phase: str, problem: AgentProblem | None = None) -> AgentFacts:
    current = agent(0, phase, SUCCEEDED_RANKS)
    return replace(current, report=replace(current.report, problem=problem))


def facts_in(phase: str, problem: AgentProblem | None = None) -> JobFacts:
    return facts(node(0, agent_in(phase, problem), running_process()))


def test_a_job_has_not_ended_before_its_results_are_uploaded() -> None:
    current = facts_in(AgentPhase.UPLOADING)
    outcome = judge(JOB, Status(), current, LATE)
    assert outcome.verdict is Verdict.UNDECIDED
    assert decide(JOB, current, outcome, LATE, 1) == ()
    status = summarise(JOB, Status(), current, outcome, (), LATE)
    assert status.phase == "Running"
    assert status.message.endswith("2 done (0-1); digits-0 uploads files to S3")


def test_a_job_succeeds_after_its_results_are_uploaded() -> None:
    outcome = judge(JOB, Status(), facts_in(AgentPhase.ENDED), LATE)
    assert (outcome.verdict, outcome.is_idle) == (Verdict.SUCCEEDED, True)


def test_a_failed_upload_fails_the_job_with_its_message() -> None:
    current = facts_in(AgentPhase.ENDED, ACCESS_DENIED)
    outcome = judge(JOB, Status(), current, LATE)
    assert (outcome.verdict, outcome.reason) == (Verdict.FAILED, "S3AccessDenied")
    assert "s3:PutObject on s3://data/out/m is denied" in summarise(JOB, Status(), current, outcome, (), LATE).message


def test_a_failed_rank_is_the_root_cause_rather_than_a_failed_upload() -> None:
    current = agent(0, AgentPhase.ENDED, (exited_rank(0, 9, exit_code=7), exited_rank(1, 9.5, exit_code=0)))
    current = replace(current, report=replace(current.report, problem=ACCESS_DENIED))
    outcome = judge(JOB, Status(), facts(node(0, current, running_process())), LATE)
    assert outcome.failure is not None
    assert (outcome.failure.first.rank, outcome.failure.first.exit_code) == (0, 7)


def test_a_node_that_is_lost_during_its_upload_fails_the_job() -> None:
    lost = facts(node(0, agent_in(AgentPhase.UPLOADING), exited_process(20, signal=9)))
    assert judge(JOB, Status(), lost, LATE).verdict is Verdict.FAILED
    assert judge(job(nodes=1), Status(), lost, LATE).verdict is Verdict.SUCCEEDED


@pytest.mark.parametrize(("kind", "kill_count"), [(CommandKind.STOP, 0), (CommandKind.KILL, 1)])
def test_only_kill_ends_an_agent_that_uploads(kind: str, kill_count: int) -> None:
    uploading_node = node(0, agent_in(AgentPhase.UPLOADING), running_process())
    current = facts(replace(uploading_node, command=command(kind, 2.0), command_sent_at=START + 10))
    job_past_deadline = with_spec(JOB, active_deadline_seconds=1)
    outcome = judge(job_past_deadline, Status(), current, LATE)
    actions = decide(job_past_deadline, current, outcome, LATE, 1)
    assert sum(isinstance(action, KillNode) for action in actions) == kill_count


def test_mpi_nodes_get_stop_while_they_upload() -> None:
    a_job = with_output(mpi_job())
    uploading_agent = agent(
        0, AgentPhase.UPLOADING, SUCCEEDED_RANKS, launcher=exited_launcher(9, exit_code=0, name="mpirun")
    )
    running_agent = agent(1, AgentPhase.RUNNING, (exited_rank(2, 9, exit_code=0), exited_rank(3, 9, exit_code=0)))
    current = facts(node(0, uploading_agent, running_process()), node(1, running_agent, running_process()))
    outcome = judge(a_job, Status(), current, LATE)
    assert (outcome.verdict, outcome.is_idle) == (Verdict.SUCCEEDED, False)
    commands = [action for action in decide(a_job, current, outcome, LATE, 1) if isinstance(action, SendCommand)]
    assert {(action.nodes, action.command.kind) for action in commands} == {((0, 1), CommandKind.STOP)}
    message = summarise(a_job, Status(), current, outcome, (), LATE).message
    assert message == "All 4 ranks succeeded; digits-0 uploads files to S3"


def test_the_message_of_a_running_job_does_not_mention_an_upload() -> None:
    current = facts(running_node(0, rank(0), rank(1)))
    outcome = judge(JOB, Status(), current, START + 1)
    assert "S3" not in summarise(JOB, Status(), current, outcome, (), START + 1).message

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
)

GOOD = (exited_rank(0, 9, exit_code=0), exited_rank(1, 9, exit_code=0))
LATE = START + 100_000
DENIED = AgentProblem("S3AccessDenied", "spec.output.s3: s3:PutObject on s3://data/out/m is denied")


def kept(base: Job) -> Job:
    spec = base.spec.model_copy(update={"output": Output(s3="s3://data/out")})
    return base.model_copy(update={"spec": spec})


JOB = kept(job(nodes=1))


def agent_in(phase: str, problem: AgentProblem | None = None) -> AgentFacts:
    current = agent(0, phase, GOOD)
    return replace(current, report=replace(current.report, problem=problem))


def facts_in(phase: str, problem: AgentProblem | None = None) -> JobFacts:
    return facts(node(0, agent_in(phase, problem), running_process()))


def test_a_job_is_not_over_before_its_results_are_kept() -> None:
    current = facts_in(AgentPhase.UPLOADING)
    outcome = judge(JOB, Status(), current, LATE)
    assert outcome.verdict is Verdict.UNDECIDED
    assert decide(JOB, current, outcome, LATE, 1) == ()
    status = summarise(JOB, Status(), current, outcome, (), LATE)
    assert status.phase == "Running"
    assert status.message.endswith("2 done (0-1); digits-0 uploads files to S3")


def test_it_succeeded_once_they_are() -> None:
    outcome = judge(JOB, Status(), facts_in(AgentPhase.ENDED), LATE)
    assert (outcome.verdict, outcome.is_idle) == (Verdict.SUCCEEDED, True)


def test_what_can_not_be_kept_fails_the_job_in_words() -> None:
    current = facts_in(AgentPhase.ENDED, DENIED)
    outcome = judge(JOB, Status(), current, LATE)
    assert (outcome.verdict, outcome.reason) == (Verdict.FAILED, "S3AccessDenied")
    assert "s3:PutObject on s3://data/out/m is denied" in summarise(JOB, Status(), current, outcome, (), LATE).message


def test_a_rank_that_failed_is_to_blame_before_what_could_not_be_kept() -> None:
    current = agent(0, AgentPhase.ENDED, (exited_rank(0, 9, exit_code=7), exited_rank(1, 9.5, exit_code=0)))
    current = replace(current, report=replace(current.report, problem=DENIED))
    outcome = judge(JOB, Status(), facts(node(0, current, running_process())), LATE)
    assert outcome.failure is not None
    assert (outcome.failure.first.rank, outcome.failure.first.exit_code) == (0, 7)


def test_a_node_that_is_lost_while_it_keeps_has_lost_the_results() -> None:
    lost = facts(node(0, agent_in(AgentPhase.UPLOADING), exited_process(20, signal=9)))
    assert judge(JOB, Status(), lost, LATE).verdict is Verdict.FAILED
    assert judge(job(nodes=1), Status(), lost, LATE).verdict is Verdict.SUCCEEDED


@pytest.mark.parametrize(("kind", "kills"), [(CommandKind.STOP, 0), (CommandKind.KILL, 1)])
def test_who_keeps_is_not_taken_for_hung(kind: str, kills: int) -> None:
    mine = node(0, agent_in(AgentPhase.UPLOADING), running_process())
    current = facts(replace(mine, command=command(kind, 2.0), command_sent_at=START + 10))
    late = JOB.model_copy(update={"spec": JOB.spec.model_copy(update={"active_deadline_seconds": 1})})
    outcome = judge(late, Status(), current, LATE)
    actions = decide(late, current, outcome, LATE, 1)
    assert sum(isinstance(action, KillNode) for action in actions) == kills


def test_nodes_of_an_mpi_world_keep_theirs_in_peace() -> None:
    world = kept(mpi_job())
    done = agent(0, AgentPhase.UPLOADING, GOOD, launcher=exited_launcher(9, exit_code=0, name="mpirun"))
    other = agent(1, AgentPhase.RUNNING, (exited_rank(2, 9, exit_code=0), exited_rank(3, 9, exit_code=0)))
    current = facts(node(0, done, running_process()), node(1, other, running_process()))
    outcome = judge(world, Status(), current, LATE)
    assert (outcome.verdict, outcome.is_idle) == (Verdict.SUCCEEDED, False)
    value = [action for action in decide(world, current, outcome, LATE, 1) if isinstance(action, SendCommand)]
    assert {(action.nodes, action.command.kind) for action in value} == {((0, 1), CommandKind.STOP)}
    message = summarise(world, Status(), current, outcome, (), LATE).message
    assert message == "All 4 ranks succeeded; digits-0 uploads files to S3"


def test_a_job_that_runs_is_not_said_to_keep_anything() -> None:
    current = facts(running_node(0, rank(0), rank(1)))
    outcome = judge(JOB, Status(), current, START + 1)
    assert "S3" not in summarise(JOB, Status(), current, outcome, (), START + 1).message

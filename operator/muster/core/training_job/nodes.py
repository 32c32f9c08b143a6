"""A training job's instances as the job's nodes: what SageMaker says of all of them, and ranks of themselves."""

from dataclasses import replace

from muster.api.spec.job import Job
from muster.core.facts import AgentFacts, JobFacts, NodeFacts, Problem, ProcessFacts, ProcessState, RankFacts
from muster.core.training_job.ends import bad_end
from muster.core.training_job.facts import COMPLETED, TrainingFacts, TrainingJob
from muster.core.training_job.hosts import node_names
from muster.core.world import procs_per_node, rank_nodes
from muster_worker.contract.schema import AgentPhase, RankReport, RankState, Report


def as_job_facts(job: Job, facts: TrainingFacts, training: TrainingJob | None, attempt: int) -> JobFacts:
    """The facts as any job has them, so that its ranks are judged and told of as everywhere.

    `training` is the present attempt's; None while there is none.
    """
    agents = {agent.report.node: agent for agent in facts.agents} if training is not None else {}
    end = training if training is not None and training.is_over and facts.is_heard_out else None
    nodes = []
    for node, name in enumerate(node_names(job.spec)):
        agent = agents.get(node)
        process = _standing(training, agent) if end is None else _ended(end)
        if end is not None and end.has_trained:
            agent = _heard_out(job, node, end, agent, attempt)
        nodes.append(NodeFacts(node, name, process, agent))
    return JobFacts(facts.created_at, tuple(nodes), facts.heartbeat_seconds)


def _standing(training: TrainingJob | None, agent: AgentFacts | None) -> ProcessFacts:
    """A node of a training job that is not over, or of whose end its ranks' last words are still missing."""
    if training is None:
        return ProcessFacts(ProcessState.MISSING)
    # What its ranks say reaches muster before SageMaker's own word, or after it.
    runs = training.is_at_work or (training.is_asked_to_end and training.has_trained) or agent is not None
    state = ProcessState.RUNNING if runs else ProcessState.WAITING
    return ProcessFacts(state, started_at=training.started_at, scheduled_at=_placed_at(training))


def _ended(training: TrainingJob) -> ProcessFacts:
    is_good = training.status == COMPLETED
    return ProcessFacts(
        ProcessState.EXITED,
        exit_code=0 if is_good else None,
        started_at=training.started_at,
        ended_at=training.ended_at,
        scheduled_at=_placed_at(training),
        problem=None if is_good else _problem(training),
    )


def _placed_at(training: TrainingJob) -> float | None:
    if not training.has_instances:
        return None
    return training.started_at if training.started_at is not None else training.created_at


def _problem(training: TrainingJob) -> Problem:
    end = bad_end(training)
    return Problem(end.reason, end.message)


def _heard_out(job: Job, node: int, training: TrainingJob, agent: AgentFacts | None, attempt: int) -> AgentFacts:
    """The node as it would have reported its end: no process of it is left, and SageMaker says what became of all."""
    procs = procs_per_node(job) if node < rank_nodes(job) else 0
    at = training.ended_at if training.ended_at is not None else training.created_at
    by_key = {rank.report.rank: rank for rank in (agent.ranks if agent is not None else ())}
    for local in range(procs):
        number = node * procs + local
        # It ran; nothing else is known.
        by_key.setdefault(number, RankFacts(RankReport(number, local, RankState.RUNNING)))
    ranks = tuple(_ended_well(rank, at) if training.status == COMPLETED else rank for _, rank in sorted(by_key.items()))
    reports = tuple(rank.report for rank in ranks)
    if agent is None:
        report = Report(job.metadata.uid, node, 0, attempt, 0, AgentPhase.ENDED, ranks=reports)
        return AgentFacts(report, heard_at=at, ranks=ranks)
    return replace(agent, report=replace(agent.report, phase=AgentPhase.ENDED, ranks=reports), ranks=ranks)


def _ended_well(rank: RankFacts, at: float) -> RankFacts:
    # SageMaker completes a training job when all of its containers ended with exit code 0.
    if rank.report.state == RankState.EXITED:
        return rank
    return replace(rank, report=replace(rank.report, state=RankState.EXITED, exit_code=0), ended_at=at)

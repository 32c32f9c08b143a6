"""Derive the current attempt and the nodes of a job on SageMaker from the observed facts.

The nodes come from SageMaker's description of the training job and from the ranks' reports.
"""

from dataclasses import dataclass, replace

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.facts import (
    AgentFacts,
    JobFacts,
    NodeFacts,
    ProcessFacts,
    ProcessState,
    RankFacts,
)
from muster.core.problem import Problem
from muster.core.training_job.attempt_state import AttemptState, find_attempt_state
from muster.core.training_job.ends import classify_training_failure
from muster.core.training_job.facts import COMPLETED, TrainingFacts, TrainingJob
from muster.core.training_job.hosts import list_node_names
from muster.core.training_job.problems import add_job_problems
from muster.core.world import count_nodes_with_ranks, get_procs_per_node
from muster_worker.contract.schema import AgentPhase, RankReport, RankState, Report


@dataclass(frozen=True)
class TrainingState:
    """The observed facts, the current attempt, and the nodes as facts that all backends share."""

    facts: TrainingFacts
    attempt_state: AttemptState
    nodes: JobFacts


def derive_training_state(job: Job, previous: Status, training_facts: TrainingFacts, now: float) -> TrainingState:
    """Derive the attempt, the nodes and the problems at `now` (Unix seconds).

    `previous` is the result of `add_unrecorded_attempt`.
    """
    attempt_state = find_attempt_state(job, previous, training_facts, now)
    current = None if attempt_state.is_next else training_facts.training
    nodes = _build_job_facts(job, training_facts, current, attempt_state.attempt)
    return TrainingState(training_facts, attempt_state, add_job_problems(nodes, training_facts, attempt_state))


def _build_job_facts(job: Job, facts: TrainingFacts, training: TrainingJob | None, attempt: int) -> JobFacts:
    """Convert the facts to `JobFacts`, so that the code for other backends can use them.

    `training` is the training job of the current attempt; None before it exists.
    """
    agents = {agent.report.node: agent for agent in facts.agents} if training is not None else {}
    end = training if training is not None and training.is_over and facts.has_all_reports else None
    nodes = []
    for node, name in enumerate(list_node_names(job.spec)):
        agent = agents.get(node)
        process = _build_running_process(training, agent) if end is None else _build_ended_process(end)
        if end is not None and end.has_trained:
            agent = _complete_report(job, node, end, agent, attempt)
        nodes.append(NodeFacts(node, name, process, agent))
    return JobFacts(facts.created_at, tuple(nodes), facts.heartbeat_seconds)


def _build_running_process(training: TrainingJob | None, agent: AgentFacts | None) -> ProcessFacts:
    """Return a node's process while the training job runs or its last reports are missing."""
    if training is None:
        return ProcessFacts(ProcessState.MISSING)
    # Reports of ranks may arrive before or after SageMaker's status changes.
    runs = training.is_running or (training.is_ending and training.has_trained) or agent is not None
    state = ProcessState.RUNNING if runs else ProcessState.WAITING
    return ProcessFacts(state, started_at=training.started_at, scheduled_at=_find_scheduled_time(training))


def _build_ended_process(training: TrainingJob) -> ProcessFacts:
    is_success = training.status == COMPLETED
    return ProcessFacts(
        ProcessState.EXITED,
        exit_code=0 if is_success else None,
        started_at=training.started_at,
        ended_at=training.ended_at,
        scheduled_at=_find_scheduled_time(training),
        problem=None if is_success else _build_problem(training),
    )


def _find_scheduled_time(training: TrainingJob) -> float | None:
    if not training.has_instances:
        return None
    return training.started_at if training.started_at is not None else training.created_at


def _build_problem(training: TrainingJob) -> Problem:
    end = classify_training_failure(training)
    return Problem(end.reason, end.message)


def _complete_report(job: Job, node: int, training: TrainingJob, agent: AgentFacts | None, attempt: int) -> AgentFacts:
    """Complete the node's last report with the result in SageMaker's description, because all processes have ended."""
    procs = get_procs_per_node(job) if node < count_nodes_with_ranks(job) else 0
    at = training.ended_at if training.ended_at is not None else training.created_at
    ranks_by_number = {rank.report.rank: rank for rank in (agent.ranks if agent is not None else ())}
    for local in range(procs):
        number = node * procs + local
        # The rank has run, and no report describes it.
        ranks_by_number.setdefault(number, RankFacts(RankReport(number, local, RankState.RUNNING)))
    ranks = tuple(
        _mark_as_succeeded(rank, at) if training.status == COMPLETED else rank
        for _, rank in sorted(ranks_by_number.items())
    )
    reports = tuple(rank.report for rank in ranks)
    if agent is None:
        report = Report(job.metadata.uid, node, 0, attempt, 0, AgentPhase.ENDED, ranks=reports)
        return AgentFacts(report, last_report_at=at, ranks=ranks)
    return replace(agent, report=replace(agent.report, phase=AgentPhase.ENDED, ranks=reports), ranks=ranks)


def _mark_as_succeeded(rank: RankFacts, at: float) -> RankFacts:
    # SageMaker completes a training job only if all containers exit with code 0.
    if rank.report.state == RankState.EXITED:
        return rank
    return replace(rank, report=replace(rank.report, state=RankState.EXITED, exit_code=0), ended_at=at)

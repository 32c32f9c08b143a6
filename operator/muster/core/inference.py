"""What follows from facts before a decision: old reports left out, termination messages read, problems named. Pure."""

from dataclasses import replace

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.attempts import current_attempt, was_started
from muster.core.facts import JobFacts, NodeFacts, ProcessState
from muster.core.failure.lost_nodes import without_lost
from muster.core.failure.problems import POD_DELETED, with_problem
from muster.core.failure.termination_log import with_termination_message


def infer(job: Job, previous: Status, facts: JobFacts, now: float) -> JobFacts:
    """The facts as judge, decide and summarise want them, at `now` (Unix seconds).

    What agents of an earlier start said, and what they were told, is the past of a job that was suspended meanwhile.
    """
    attempt = current_attempt(previous)
    started = was_started(previous)
    former = 0 if started else previous.attempt
    there = (without_lost(node, facts, previous, now, started=started) for node in facts.nodes)
    counted = (_counted(_without_removal(node, former), previous.attempt) for node in there)
    nodes = (_present(node, attempt, started=started) for node in counted)
    heard = (with_termination_message(job, node) for node in nodes)
    return replace(facts, nodes=tuple(with_problem(node, facts, now) for node in heard))


def _counted(node: NodeFacts, starts: int) -> NodeFacts:
    """A node that every start of the gang had a process of: one that saw none of them knows it from their number."""
    process = node.process
    if process.state is not ProcessState.MISSING or process.replacement >= starts - 1:
        return node
    return replace(node, process=replace(process, replacement=starts - 1))


def _without_removal(node: NodeFacts, former: int) -> NodeFacts:
    """A node whose pod of one of the `former` starts went with the suspension: muster deleted it, or the one before."""
    process = node.process
    if process.state is not ProcessState.MISSING or not 0 <= process.replacement < former:
        return node
    if process.problem is None or process.problem.reason != POD_DELETED:
        return node
    return replace(node, process=replace(process, problem=None))


def _present(node: NodeFacts, attempt: int, *, started: bool) -> NodeFacts:
    # The attempt has not started, so no agent has reported or received anything.
    if node.process.state is ProcessState.MISSING and not started:
        return node if node.agent is None and node.command is None else _without_past(node)
    agent, command = node.agent, node.command
    if agent is not None and 0 < agent.report.attempt < attempt:
        return _without_past(node)
    if command is not None and command.attempt < attempt:
        return replace(node, command=None, commanded_at=None)
    return node


def _without_past(node: NodeFacts) -> NodeFacts:
    return replace(node, agent=None, command=None, commanded_at=None)

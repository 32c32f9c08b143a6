"""Decide which stops are graceful, and at which call of `muster_worker.stopping()` all ranks stop."""

from dataclasses import replace

from muster.core.facts import JobFacts, NodeFacts, ProcessState
from muster.core.failure.ends import STRAGGLER, EndKind
from muster.core.failure.failure import Failure
from muster.core.failure.secondary_failures import find_external_stop_time
from muster.core.membership.members import find_node
from muster.core.outcome import Outcome
from muster_worker.contract.schema import AgentPhase, Command, CommandKind

UNKNOWN_STOP_CALL_NUMBER = 0
"""The number while a node has not reported its own number, or if no rank calls `stopping()`."""


def is_graceful(facts: JobFacts, outcome: Outcome) -> bool:
    """Whether the ranks get their whole grace period: nothing failed, a node is being drained, or a rank is slow."""
    failure = outcome.failure
    return failure is None or failure.reason == STRAGGLER or _is_node_stop(facts, failure)


def find_stop_call_number(facts: JobFacts, outcome: Outcome) -> int | None:
    """Return the number of the call at which all ranks stop; None if the stop isn't graceful.

    This is the highest number that a node has reported. The ranks of each node wait in the call that their node has
    reported, so the numbers don't change, and every leader finds the same one.
    """
    if not is_graceful(facts, outcome):
        return None
    calls = [_get_stop_call_number(node) for node in facts.nodes]
    if any(call is None and _may_ranks_still_run(node) for node, call in zip(facts.nodes, calls, strict=True)):
        return UNKNOWN_STOP_CALL_NUMBER
    return max((call for call in calls if call is not None), default=UNKNOWN_STOP_CALL_NUMBER)


def add_stop_call_number(command: Command, node: NodeFacts, stop_call_number: int | None) -> Command:
    """Make a Stop command graceful, or convert it to StopAt once the number is known. Keep other commands."""
    if command.kind != CommandKind.STOP or stop_call_number is None:
        return command
    if stop_call_number == UNKNOWN_STOP_CALL_NUMBER or not _get_stop_call_number(node):
        return replace(command, is_graceful=True)
    return replace(command, kind=CommandKind.STOP_AT, is_graceful=True, stop_call=stop_call_number)


def _may_ranks_still_run(node: NodeFacts) -> bool:
    agent = node.current_agent
    has_no_ranks = agent is not None and agent.report.phase in (AgentPhase.READY, AgentPhase.UPLOADING)
    return not (node.is_idle or has_no_ranks)


def _get_stop_call_number(node: NodeFacts) -> int | None:
    agent = node.current_agent
    return None if agent is None else agent.report.stop_call


def _is_node_stop(facts: JobFacts, failure: Failure) -> bool:
    """Whether something other than muster stops a node and gives its ranks their whole grace period."""
    node = find_node(facts, failure.first.node)
    if failure.first.kind is not EndKind.AGENT or find_external_stop_time(node) is None:
        return False
    # After a deletion without a grace period the pod does not exist, and the other ranks can't continue.
    return node.process.state is ProcessState.RUNNING or node.has_ended

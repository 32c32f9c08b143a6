"""Describe in one sentence which nodes are not ready, and why."""

from muster.api.plurals import describe_share
from muster.core.facts import JobFacts, NodeFacts, ProcessState
from muster.core.failure.problems import NODE_SILENT
from muster.core.status.problems import MAX_NAMES, group_problems
from muster.core.status.views import StatusInput


def _is_silent(node: NodeFacts) -> bool:
    problem = node.process.problem
    return problem is not None and problem.reason == NODE_SILENT


def describe_waiting(status_input: StatusInput) -> str:
    """Describe how many nodes are ready, and what the others wait for."""
    facts, world = status_input.facts, len(status_input.views)
    ready = sum(node.is_ready and not _is_silent(node) for node in facts.nodes)
    if ready == len(facts.nodes):
        subject = f"All {ready} nodes are ready" if ready > 1 else "The node is ready"
        return append_problems(
            f"{subject}; {'the rank is' if world == 1 else 'the ranks are'} about to start", status_input
        )
    if len(facts.nodes) == 1:
        return _describe_missing(facts)
    return f"{describe_share(ready, len(facts.nodes), 'node', 'is ready', 'are ready')}{join_missing(facts)}"


def join_missing(facts: JobFacts) -> str:
    """Append the nodes that are not ready to another sentence: after a semicolon if their text has a colon."""
    has_problem = any(node.process.problem is not None and not node.is_ready for node in facts.nodes)
    return f"{'; ' if has_problem else ': '}{_describe_missing(facts)}"


def _describe_missing(facts: JobFacts) -> str:
    """Describe which nodes are not ready, and why."""
    waiting = [node for node in facts.nodes if not node.is_ready or _is_silent(node)]
    without_problem = [node for node in waiting if node.process.problem is None]
    missing = [node for node in without_problem if node.process.state is ProcessState.MISSING]
    unscheduled = [
        node for node in without_problem if node.process.state is ProcessState.WAITING and not node.is_scheduled
    ]
    starting = [node for node in without_problem if node.process.state is ProcessState.WAITING and node.is_scheduled]
    running_nodes = [
        node for node in without_problem if node.process.state in (ProcessState.RUNNING, ProcessState.EXITED)
    ]
    unreported = [node for node in running_nodes if node.current_agent is None]
    busy = [node for node in running_nodes if node.current_agent is not None]
    parts = [entry.sentence for entry in group_problems(waiting, len(facts.nodes))]
    parts += [
        f"{join_names(nodes)} {one if len(nodes) == 1 else many}"
        for nodes, one, many in (
            (missing, "does not exist yet", "do not exist yet"),
            (unscheduled, "waits to be scheduled", "wait to be scheduled"),
            (starting, "is starting", "are starting"),
            (unreported, "has not reported", "have not reported"),
            (busy, "is not ready", "are not ready"),
        )
        if nodes
    ]
    return "; ".join(parts) if parts else "the last became ready too late"


def append_problems(text: str, status_input: StatusInput) -> str:
    """Append the problems of the nodes to another sentence."""
    # A problem of the whole job keeps the ranks from starting although all nodes are ready.
    if status_input.facts.problem is not None:
        return status_input.facts.problem.message
    return "; ".join([text, *(entry.sentence for entry in status_input.shared_problems)])


def join_names(nodes: list[NodeFacts]) -> str:
    """Join the nodes' names: "a, b and 3 more"."""
    names = [node.name for node in nodes[:MAX_NAMES]]
    more = len(nodes) - len(names)
    if more:
        return f"{', '.join(names)} and {more} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

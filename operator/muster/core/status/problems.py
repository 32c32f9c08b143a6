"""Problems of nodes as sentences: nodes with the same problem share one."""

from collections.abc import Iterable
from dataclasses import dataclass

from muster.core.facts import NodeFacts, Problem
from muster.core.failure.problems import (
    FETCHING_FILES,
    POD_DELETED,
    PREEMPTED,
    QUOTA_EXCEEDED,
    SCHEDULING_GATED,
    UNSCHEDULABLE,
)
from muster.core.failure.rank_output import clean, error_signature
from muster.core.training_job.problems import CAPACITY_REASONS, SERVICE_REASONS

MAX_NAMES = 3
"""Names of nodes in a sentence before it counts the rest."""

MAX_CHARS = 600
"""The limit of a problem's text in a message."""

TRANSIENT_REASONS = frozenset(
    (
        *(UNSCHEDULABLE, SCHEDULING_GATED, QUOTA_EXCEEDED, POD_DELETED, PREEMPTED, FETCHING_FILES),
        *(*CAPACITY_REASONS, *SERVICE_REASONS),
    )
)
"""Problems that may end without a user: the cluster grows, other jobs end, a pod is recreated, AWS recovers."""


@dataclass(frozen=True)
class SharedProblem:
    """A problem and the nodes that share it, in order; `of` is the job's number of nodes."""

    problem: Problem
    nodes: tuple[NodeFacts, ...]
    of: int

    @property
    def is_transient(self) -> bool:
        """Whether it may end without a user's action."""
        # A pod that is being deleted is either replaced, or its job ends.
        return self.problem.reason in TRANSIENT_REASONS or all(node.process.is_terminating for node in self.nodes)

    @property
    def sentence(self) -> str:
        """The nodes, the problem, and what to do."""
        message = clean(self.problem.message, limit=MAX_CHARS)
        if self.problem.shortage and self.of > 1:
            return f"{len(self.nodes)} of {self.of} nodes: {self.problem.shortage} ({self.nodes[0].name}: {message})"
        return f"{named([node.name for node in self.nodes])}: {message}"


def shared_problems(nodes: Iterable[NodeFacts], of: int) -> tuple[SharedProblem, ...]:
    """Group the nodes' problems; `of` is the job's number of nodes. Problems that need a user come first."""
    groups: dict[tuple[str, str], list[NodeFacts]] = {}
    first: dict[tuple[str, str], Problem] = {}
    for node in nodes:
        problem = node.process.problem
        if problem is not None:
            # Ignore numbers in messages, because they differ between pods and nodes.
            key = (problem.reason, problem.shortage or error_signature((problem.message,)))
            first.setdefault(key, problem)
            groups.setdefault(key, []).append(node)
    shared = (SharedProblem(first[key], tuple(members), of) for key, members in groups.items())
    return tuple(sorted(shared, key=lambda entry: (entry.is_transient, entry.nodes[0].node)))


def named(names: list[str]) -> str:
    """Nodes as the subject of a sentence: "vit-1", "3 nodes (vit-0, vit-1, vit-2)"."""
    if len(names) == 1:
        return names[0]
    more = len(names) - MAX_NAMES
    return f"{len(names)} nodes ({', '.join(names[:MAX_NAMES])}{f' and {more} more' if more > 0 else ''})"

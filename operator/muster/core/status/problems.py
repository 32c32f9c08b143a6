"""Problems of nodes as sentences: many nodes with the same one are told once."""

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
from muster.core.failure.rank_output import clean, likeness
from muster.core.training_job.problems import CAPACITY_REASONS, SERVICE_REASONS

MAX_NAMES = 3
"""Names of nodes in a sentence before it says how many more."""

MAX_CHARS = 600
"""A problem in a message: what it is, and what to do."""

PASSING = frozenset(
    (
        *(UNSCHEDULABLE, SCHEDULING_GATED, QUOTA_EXCEEDED, POD_DELETED, PREEMPTED, FETCHING_FILES),
        *(*CAPACITY_REASONS, *SERVICE_REASONS),
    )
)
"""What ends by itself: a cluster grows, others' jobs end, a pod is made anew, data arrives, AWS answers again."""


@dataclass(frozen=True)
class SharedProblem:
    """A problem and the nodes that have it, in order, of so many that the job has."""

    problem: Problem
    nodes: tuple[NodeFacts, ...]
    of: int

    @property
    def passes(self) -> bool:
        """Whether it may end without a person."""
        # A pod that goes either gets a successor or ends the job, and then that is told.
        return self.problem.reason in PASSING or all(node.process.is_leaving for node in self.nodes)

    @property
    def sentence(self) -> str:
        """Who has it, what it is, and what to do."""
        message = clean(self.problem.message, limit=MAX_CHARS)
        if self.problem.lacks and self.of > 1:
            return f"{len(self.nodes)} of {self.of} nodes: {self.problem.lacks} ({self.nodes[0].name}: {message})"
        return f"{named([node.name for node in self.nodes])}: {message}"


def shared_problems(nodes: Iterable[NodeFacts], of: int) -> tuple[SharedProblem, ...]:
    """The problems of these nodes, of `of` that the job has: those first that a person has to solve, else in order."""
    groups: dict[tuple[str, str], list[NodeFacts]] = {}
    first: dict[tuple[str, str], Problem] = {}
    for node in nodes:
        problem = node.process.problem
        if problem is not None:
            # They differ in the numbers of pods and machines, and the scheduler counts anew for each pod.
            key = (problem.reason, problem.lacks or likeness((problem.message,)))
            first.setdefault(key, problem)
            groups.setdefault(key, []).append(node)
    shared = (SharedProblem(first[key], tuple(members), of) for key, members in groups.items())
    return tuple(sorted(shared, key=lambda entry: (entry.passes, entry.nodes[0].node)))


def named(names: list[str]) -> str:
    """Nodes as the subject of a sentence: "vit-1", "3 nodes (vit-0, vit-1, vit-2)"."""
    if len(names) == 1:
        return names[0]
    more = len(names) - MAX_NAMES
    return f"{len(names)} nodes ({', '.join(names[:MAX_NAMES])}{f' and {more} more' if more > 0 else ''})"

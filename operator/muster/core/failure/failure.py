"""Who failed first, and how: the root cause among many ranks that ended one after another.

When a rank dies its peers fail about 0.1 s later, because a connection to it is gone, and torchrun ends its siblings.
Those ends are secondary failures. The cause is the first end that is not one.
"""

from dataclasses import dataclass
from functools import cached_property

from muster.api.spec.job import Job
from muster.core.facts import JobFacts
from muster.core.failure import rank_output
from muster.core.failure.ends import End, Subject, rank_ends
from muster.core.failure.mpi_ends import follows_early_end, mpi_causes
from muster.core.failure.secondary_failures import is_secondary, possible_causes
from muster.core.world import is_mpi, world_size

WINDOW_SECONDS = 5.0
"""A secondary failure may be seen so long before its cause: a raising rank closes its connections before it is gone,
and interpreters, CUDA contexts and core dumps take seconds to leave. Clocks, merged by ages, differ by milliseconds."""


@dataclass(frozen=True)
class Failure:
    """`root_causes` failed the same way, first one first. `early` ended with exit code 0 while others relied on them.

    `at` is when the failure first showed, in Unix seconds: that may be in one of its secondary failures.
    """

    at: float
    root_causes: tuple[End, ...]
    early: tuple[End, ...] = ()

    @property
    def first(self) -> End:
        """The end that broke the job."""
        return self.root_causes[0]

    @property
    def reason(self) -> str:
        """The failure as one CamelCase word."""
        return self.first.why

    def is_root_cause(self, rank: int, node: int) -> bool:
        """Whether this rank is one of the root causes."""
        return (rank, node) in self._root_causes

    def left_early(self, rank: int, node: int) -> bool:
        """Whether this rank ended with exit code 0 while others relied on it."""
        return (rank, node) in self._early

    @cached_property
    def lost_nodes(self) -> frozenset[int]:
        """The nodes that failed as a whole, with all their ranks."""
        return frozenset(end.node for end in self.root_causes if end.subject is not Subject.RANK)

    @cached_property
    def _root_causes(self) -> frozenset[tuple[int | None, int]]:
        return frozenset((end.rank, end.node) for end in self.root_causes)

    @cached_property
    def _early(self) -> frozenset[tuple[int | None, int]]:
        return frozenset((end.rank, end.node) for end in self.early)


def find_failure(job: Job, facts: JobFacts, *, started: bool) -> Failure | None:
    """The job's failure, or None while nothing failed. More facts may name an earlier one.

    `started` says that the gang was told to start.
    """
    causes = mpi_causes if is_mpi(job) else possible_causes
    ends = causes(job, facts, started=started)
    if not ends:
        return None
    root_cause, at = _root_cause(facts, ends), ends[0].at
    if not is_secondary(root_cause) and not follows_early_end(job, facts, root_cause):
        return Failure(at, _alike(facts, root_cause, ends))
    # All ranks failed with the same error, so they lost an outside service and not a peer.
    alike = _alike(facts, root_cause, ends)
    if root_cause.subject is Subject.RANK and len({end.rank for end in alike}) == world_size(job) > 1:
        return Failure(at, alike)
    # An interpreter that leaves closes its connections first, and is gone after the peers that miss them.
    early = tuple(end for end in rank_ends(facts) if end.is_good and end.at <= root_cause.at + WINDOW_SECONDS)
    return Failure(at, (root_cause,), early)


def _root_cause(facts: JobFacts, ends: tuple[End, ...]) -> End:
    first = ends[0]
    # The first end that does not follow from another one, though a secondary failure may be seen a little before its
    # cause.
    for end in ends:
        if not is_secondary(end) and end.earliest <= first.at + WINDOW_SECONDS:
            return end
    # All speak of a lost peer. One that told of its own error was overtaken by the stop while it was still leaving.
    for end in rank_ends(facts):
        if end.stopped and end.at <= first.at + WINDOW_SECONDS and _confesses(end):
            return end
    # The failed peer was not seen (it ended with 0, or was cut off): then the first that noticed stands for the
    # failure.
    return first


def _confesses(end: End) -> bool:
    ended_badly = end.exit_code != 0
    return ended_badly and rank_output.names_exception(end.lines) and not rank_output.names_a_peer(end.lines)


def _alike(facts: JobFacts, root_cause: End, ends: tuple[End, ...]) -> tuple[End, ...]:
    """The root cause, and all that ended the same way."""
    words = rank_output.likeness(root_cause.lines)
    # Exit code 1 without a word is how anything ends.
    if not words and root_cause.exit_code == 1:
        return (root_cause,)
    kind = _kind(root_cause)
    others = [end for end in ends if _kind(end) == kind]
    # The stop met some of them on their way out.
    others += [end for end in rank_ends(facts) if end.stopped and _confesses(end)]
    return (root_cause, *(end for end in others if end != root_cause and rank_output.likeness(end.lines) == words))


def _kind(end: End) -> tuple[Subject, int | None, int | None, str | None]:
    return (end.subject, end.exit_code, end.signal, end.reason)

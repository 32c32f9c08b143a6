"""Find the root cause among many ranks that ended one after another.

When a rank dies, its peers fail about 0.1 s later because their connections close, and torchrun stops the node's other
ranks. These ends are secondary failures. The root cause is the first end that is not a secondary failure.
"""

from dataclasses import dataclass
from functools import cached_property

from muster.api.spec.job import Job
from muster.core.facts import JobFacts
from muster.core.failure.ends import End, EndKind, list_rank_ends
from muster.core.failure.mpi_root_cause import find_mpi_causes, follows_exit_without_finalize, is_root_cause_uncertain
from muster.core.failure.secondary_failures import find_possible_causes, is_secondary
from muster.core.world import compute_world_size, is_mpi

WINDOW_SECONDS = 5.0
"""A secondary failure may appear this much earlier than its cause.

A failing rank closes its connections before it exits, and interpreters, CUDA contexts and core dumps take seconds to
finish. Clock differences are only milliseconds. The time of an error that the rank itself recorded needs no window.
"""

TEARDOWN_SECONDS = 60.0
"""A rank that has raised an error and does not exit for this long has failed: a thread keeps it from exiting. An atexit
function that uploads files takes seconds.
"""

CAUSE_SECONDS = 1.0
"""The ranks are not stopped for this long if all failures are lost connections.

The rank that closed them is probably about to exit. A stop would end it first, and its exit code would be lost.
"""


@dataclass(frozen=True)
class Failure:
    """A failure of the job. `root_causes` are ends with the same error, ordered by time.

    `early_exits` are ranks that exited with code 0 while other ranks still needed them. `at` is the time of the first
    failure, including secondary failures (Unix seconds). `is_uncertain` is set while a missing report may show an
    earlier root cause.
    """

    at: float
    root_causes: tuple[End, ...]
    early_exits: tuple[End, ...] = ()
    is_uncertain: bool = False

    @property
    def first(self) -> End:
        """The root cause that ended first."""
        return self.root_causes[0]

    @property
    def reason(self) -> str:
        """The reason of the failure, as a CamelCase word."""
        return self.first.failure_reason

    def is_root_cause(self, rank: int, node: int) -> bool:
        """Whether this rank is one of the root causes."""
        return (rank, node) in self._root_cause_keys

    def has_exited_early(self, rank: int, node: int) -> bool:
        """Whether this rank is one of the early exits."""
        return (rank, node) in self._early_exit_keys

    @cached_property
    def failed_nodes(self) -> frozenset[int]:
        """The nodes that failed as a whole."""
        return frozenset(end.node for end in self.root_causes if end.kind is not EndKind.RANK)

    @cached_property
    def _root_cause_keys(self) -> frozenset[tuple[int | None, int]]:
        return frozenset((end.rank, end.node) for end in self.root_causes)

    @cached_property
    def _early_exit_keys(self) -> frozenset[tuple[int | None, int]]:
        return frozenset((end.rank, end.node) for end in self.early_exits)


def find_failure(job: Job, facts: JobFacts, *, has_started: bool) -> Failure | None:
    """Return the job's failure; None if there is none. Later reports may show an earlier root cause.

    `has_started` is set once the nodes received the start command.
    """
    causes = find_mpi_causes if is_mpi(job) else find_possible_causes
    ends = causes(job, facts, has_started=has_started)
    if not ends:
        return None
    root_cause, at = _find_root_cause(facts, ends), ends[0].failed_at
    is_uncertain = is_root_cause_uncertain(job, facts, root_cause)
    same_errors = _find_same_errors(root_cause, ends)
    if not is_secondary(root_cause) and not follows_exit_without_finalize(job, facts, root_cause):
        return Failure(at, same_errors, is_uncertain=is_uncertain)
    # All ranks failed with the same error, so they lost an external service, not a peer.
    if root_cause.kind is EndKind.RANK and len({end.rank for end in same_errors}) == compute_world_size(job) > 1:
        return Failure(at, same_errors, is_uncertain=is_uncertain)
    # A rank's process exits after its connections close, so peers may fail first.
    early = tuple(end for end in list_rank_ends(facts) if end.is_success and end.at <= root_cause.at + WINDOW_SECONDS)
    return Failure(at, (root_cause,), early, is_uncertain)


def find_cause_deadline(job: Job, facts: JobFacts, failure: Failure) -> float | None:
    """Return until when the root cause of a failure may still appear (Unix seconds); None if it can't.

    mpirun ends all ranks by itself, so a later stop would show no more.
    """
    end = failure.first
    if end.is_running and not is_mpi(job):
        # If another rank has ended because of it, nothing is gained by waiting.
        has_peer_ended = any(not each.is_success for each in list_rank_ends(facts))
        return None if has_peer_ended else end.failed_at + TEARDOWN_SECONDS
    if is_mpi(job) or end.kind is not EndKind.RANK or failure.early_exits:
        return None
    if not (is_secondary(end) and end.mentions_lost_peer):
        return None
    # Ranks that were stopped don't show the cause.
    if any(node.has_end_command for node in facts.nodes):
        return None
    may_exit = any(not rank.has_exited for node in facts.nodes if not node.has_ended for rank in node.ranks)
    return failure.at + CAUSE_SECONDS if may_exit else None


def _find_root_cause(facts: JobFacts, ends: tuple[End, ...]) -> End:
    first = ends[0]
    # Take the first end that is not secondary, within the window after the first failure.
    for end in ends:
        if not is_secondary(end) and (end.has_own_error or end.earliest <= first.failed_at + WINDOW_SECONDS):
            return end
    # All failures are lost connections. Prefer a rank that printed its own error but was stopped before it exited.
    for end in list_rank_ends(facts):
        has_printed = end.stopped and end.is_printed and not end.mentions_lost_peer
        if has_printed and end.exit_code != 0 and end.at <= first.at + WINDOW_SECONDS:
            return end
    # The cause was not observed: its rank exited with code 0, or its node is unreachable. Use the first failure.
    return first


def _find_same_errors(root_cause: End, ends: tuple[End, ...]) -> tuple[End, ...]:
    """Return the root cause, and all other ends with the same error."""
    signature = root_cause.error_signature
    # Exit code 1 without output is too common to compare.
    if not signature and root_cause.exit_code == 1:
        return (root_cause,)
    kind = _describe_kind(root_cause)
    # Ranks with the same error end in other ways if muster stops them before they exit.
    others = [end for end in ends if end != root_cause and (end.has_own_error or _describe_kind(end) == kind)]
    return (root_cause, *(end for end in others if end.error_signature == signature))


def _describe_kind(end: End) -> tuple[EndKind, int | None, int | None, str | None]:
    return (end.kind, end.exit_code, end.signal, end.reason)

"""What ended in an MPI world by itself, and what because mpirun ends all ranks once one of them has failed.

Open MPI sends the others SIGTERM and, 1 s later, SIGKILL; Hydra (MPICH, Intel MPI) SIGKILL at once, to their wrappers,
too. So of ranks that a signal ended only the first can be a cause, and mpirun's own end only when no rank explains it.
"""

import itertools
import signal
from collections.abc import Iterable

from muster.api.spec.job import Job
from muster.core.facts import JobFacts
from muster.core.failure import rank_output
from muster.core.failure.ends import End, Subject, in_order, launcher_end, rank_ends
from muster.core.failure.secondary_failures import is_secondary, outside_ends
from muster.core.world import is_mpi
from muster_worker.contract.schema import EndReason

SKEW_SECONDS = 0.25
"""By so much an end may seem earlier than another node's, which it follows from: reports take their time."""

MOMENT_SECONDS = 0.005
"""Of two things on one machine: less is no order."""

EARLY_SECONDS = 0.5
"""Hydra kills what is left within milliseconds. With more, who is killed while others finish would be their victim."""

CLEANUP_SECONDS = 5.0
"""So long mpirun takes at most to end the ranks that are left."""

MPI_ERR_UNKNOWN = 14
"""Open MPI's mpi.h; a rank that its error handler ends has the error's class as its exit code."""

_CLEANUP = (signal.SIGTERM, signal.SIGKILL)


def mpi_causes(job: Job, facts: JobFacts, *, started: bool) -> tuple[End, ...]:
    """The ends that can be the cause of an MPI job's failure, first one first."""
    bad = tuple(end for end in rank_ends(facts) if not end.is_good and not end.stopped)
    # In another world than the job's nothing was run, and all else follows from that.
    mismatched = tuple(end for end in bad if end.reason == EndReason.WORLD_SIZE_MISMATCH)
    if mismatched:
        return mismatched
    outside = outside_ends(job, facts, started=started)
    own, killed, launcher = _own(bad), _killed(bad), _launcher_cause(facts, bad)
    # Ranks that lose their mpirun may fail in words of their own.
    if launcher is not None and launcher.signal is not None:
        own = ()
    value = tuple(end.at for end in own if not is_secondary(end))
    if value:
        return in_order([*own, *outside, *(end for end in killed if end.at < value[0] - SKEW_SECONDS)])
    # It ended its ranks because it failed itself, or a node was gone.
    if launcher is not None:
        return _as_early_as_may_be([launcher, *outside])
    if killed or outside:
        return _as_early_as_may_be([*killed, *outside])
    # The reason why mpirun ended them is unknown: the first that noticed stands for the failure.
    return (tuple(end for end in bad if _lost_its_peer(end)) or bad)[:1]


def _as_early_as_may_be(ends: Iterable[End]) -> tuple[End, ...]:
    """The ends in order: mpirun's and its victims' may follow from the loss of a node that showed later."""
    return tuple(sorted(in_order(ends), key=lambda end: end.earliest))


def launcher_has_ended(job: Job, facts: JobFacts) -> bool:
    """Whether the job's mpirun is over: other nodes' shares don't end by themselves, and wait for a word."""
    return is_mpi(job) and launcher_end(facts.nodes[0]) is not None


def may_be_overtaken(job: Job, facts: JobFacts, end: End) -> bool:
    """Whether the end that counts as the cause looks like mpirun's clean-up, and more may be heard of what came first.

    A rank is named once that can't change any more: the next sentence would take it back.
    """
    if not is_mpi(job) or end.subject is not Subject.RANK or not (_is_victim(end) or _lost_its_peer(end)):
        return False
    return not _all_have_told(facts)


def is_secondary_failure(job: Job, end: End) -> bool:
    """Whether an end that isn't the cause of the job's failure looks like a secondary failure of it."""
    return is_secondary(end) or (is_mpi(job) and (_is_victim(end) or _lost_its_peer(end)))


def follows_early_end(job: Job, facts: JobFacts, end: End) -> bool:
    """Whether the rank ended because another one had, with exit code 0 and without MPI_Finalize."""
    if not is_mpi(job) or end.subject is not Subject.RANK or not (_is_victim(end) or _lost_its_peer(end)):
        return False
    return any(other.is_good and 0.0 <= end.at - other.at <= EARLY_SECONDS for other in rank_ends(facts))


def _lost_its_peer(end: End) -> bool:
    """Whether Open MPI 5 seems to have ended the rank over a closed connection: mpirun has the words about it."""
    return not end.lines and end.exit_code == MPI_ERR_UNKNOWN


def _is_victim(end: End) -> bool:
    """Whether mpirun's clean-up looks like that."""
    lost = end.reason == EndReason.WRAPPER_LOST
    return lost or (end.reason is None and end.signal in _CLEANUP)


def _own(bad: tuple[End, ...]) -> tuple[End, ...]:
    """The ends that have a reason of their own, right or wrong."""
    aborted = tuple(end for end in bad if rank_output.calls_abort(end.lines))
    # Hydra may kill the rank that called MPI_Abort together with all others.
    if aborted and aborted[0].at <= bad[0].at + CLEANUP_SECONDS:
        return aborted
    return tuple(end for end in bad if not _is_victim(end) and not _lost_its_peer(end))


def _killed(bad: tuple[End, ...]) -> tuple[End, ...]:
    """The first rank that was killed, if one was: mpirun had no reason yet."""
    killed = (end for end in bad if _is_victim(end) and not is_secondary(end))
    return tuple(itertools.islice(killed, 1))


def _launcher_cause(facts: JobFacts, bad: tuple[End, ...]) -> End | None:
    """mpirun's own end, when nothing else explains it."""
    launcher = launcher_end(facts.nodes[0])
    if launcher is None or launcher.is_good or _was_stopped(facts):
        return None
    # The rank that it fails for may be another node's, which hasn't told yet.
    if not _all_have_told(facts):
        return None
    return None if bad and _is_explained(launcher, bad) else launcher


def _all_have_told(facts: JobFacts) -> bool:
    return all(node.has_ended or node.is_gone for node in facts.nodes)


def _is_explained(launcher: End, bad: tuple[End, ...]) -> bool:
    """Whether mpirun ended because a rank did.

    The first line that fits says it:

    mpirun                                          explained when
    was killed                                      a rank had failed well before
    says that it ends over a rank                   always
    ended with the first rank's exit code or signal always
    carried a rank's MPI_Abort                      never: that rank stands in its words alone
    anything else                                   the first rank's end is a kill, and came before mpirun's
    """
    # Ranks die with an mpirun that is killed, or after it.
    if launcher.signal is not None:
        return bad[0].at < launcher.at - SKEW_SECONDS
    if rank_output.names_a_rank(launcher.lines) or _passes_on(launcher, bad[0]):
        return True
    # A rank that printed through mpirun called it; Hydra killed that one with the others, in any order.
    if rank_output.calls_abort(launcher.lines):
        return False
    # Only Hydra kills first, and it may crash when it does.
    return bad[:1] == _killed(bad) and bad[0].at < launcher.at - MOMENT_SECONDS


def _was_stopped(facts: JobFacts) -> bool:
    """Whether muster had begun to stop the gang when mpirun ended."""
    agent = facts.nodes[0].current_agent
    return agent is not None and agent.launcher is not None and agent.launcher.end.stopped


def _passes_on(launcher: End, first: End) -> bool:
    """Whether mpirun ended with the rank's exit code or signal, as each implementation passes them on."""
    if first.exit_code is not None:
        return launcher.exit_code == first.exit_code
    # mpirun passed the signal on to its ranks.
    if first.signal is None or first.signal == signal.SIGTERM:
        return False
    return launcher.exit_code in (first.signal, 128 + first.signal)

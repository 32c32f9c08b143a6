"""Find the cause of an MPI job's failure, although mpirun kills all ranks once one has failed.

Open MPI sends the other ranks SIGTERM and, 1 s later, SIGKILL. Hydra (MPICH, Intel MPI) sends SIGKILL at once, also to
their wrappers. So only the first killed rank can be a cause. mpirun itself is a cause only if no rank explains its end.
"""

import itertools
import signal
from collections.abc import Iterable

from muster.api.spec.job import Job
from muster.core.facts import JobFacts
from muster.core.failure import rank_output
from muster.core.failure.ends import End, EndKind, build_launcher_end, list_rank_ends, sort_ends
from muster.core.failure.secondary_failures import find_node_failures, is_secondary
from muster.core.world import is_mpi
from muster_worker.contract.schema import EndReason

REPORT_DELAY_SECONDS = 0.25
"""An end may seem this much earlier than its cause on another node, because the cause's report may arrive later."""

RELIABLE_ORDER_SECONDS = 0.005
"""The order of two events on one node is not reliable if they are closer than this."""

HYDRA_KILL_SECONDS = 0.5
"""Hydra kills the remaining ranks within this time. It needs only milliseconds, and a longer window would include
unrelated kills.
"""

CLEANUP_SECONDS = 5.0
"""mpirun takes at most this long to end the remaining ranks."""

MPI_ERR_UNKNOWN = 14
"""The error class in Open MPI's mpi.h. Open MPI's error handler exits with the error class as the exit code."""

_CLEANUP_SIGNALS = (signal.SIGTERM, signal.SIGKILL)


def find_mpi_causes(job: Job, facts: JobFacts, *, has_started: bool) -> tuple[End, ...]:
    """Return the ends that can be the root cause of an MPI job's failure, ordered by time."""
    failures = tuple(end for end in list_rank_ends(facts) if end.has_own_error or not (end.is_success or end.stopped))
    # A world of the wrong size causes all other failures.
    mismatched = tuple(end for end in failures if end.reason == EndReason.WORLD_SIZE_MISMATCH)
    if mismatched:
        return mismatched
    external = find_node_failures(job, facts, has_started=has_started)
    own, killed, launcher = (
        _find_own_failures(failures),
        _find_first_killed(failures),
        _find_launcher_cause(facts, failures),
    )
    # Ranks that lose mpirun may fail with their own errors.
    if launcher is not None and launcher.signal is not None:
        own = ()
    own_times = tuple(end.failed_at for end in own if not is_secondary(end))
    if own_times:
        return sort_ends([*own, *external, *(end for end in killed if end.at < own_times[0] - REPORT_DELAY_SECONDS)])
    # mpirun ended its ranks because it failed itself, or because a node was lost.
    if launcher is not None:
        return _sort_by_earliest_time([launcher, *external])
    if killed or external:
        return _sort_by_earliest_time([*killed, *external])
    # The cause is unknown: use the first rank that failed.
    return (tuple(end for end in failures if _has_lost_peer(end)) or failures)[:1]


def _sort_by_earliest_time(ends: Iterable[End]) -> tuple[End, ...]:
    """Sort ends by their earliest possible time: a lost node is detected late, after mpirun has killed its ranks."""
    return tuple(sorted(sort_ends(ends), key=lambda end: end.earliest))


def is_root_cause_uncertain(job: Job, facts: JobFacts, end: End) -> bool:
    """Whether `end`, the root cause so far, may be only a rank that mpirun killed or that lost its peer.

    A report that has not arrived yet may contain an earlier failure.

    Messages name the root cause only when later reports can't change it.
    """
    if not is_mpi(job) or end.kind is not EndKind.RANK or not (_looks_killed_by_mpirun(end) or _has_lost_peer(end)):
        return False
    return not _have_all_reported(facts)


def is_secondary_failure(job: Job, end: End) -> bool:
    """Whether an end other than the root cause looks like a secondary failure."""
    return is_secondary(end) or (is_mpi(job) and (_looks_killed_by_mpirun(end) or _has_lost_peer(end)))


def follows_exit_without_finalize(job: Job, facts: JobFacts, end: End) -> bool:
    """Whether the rank failed because another rank exited with code 0 but without MPI_Finalize."""
    if not is_mpi(job) or end.kind is not EndKind.RANK or not (_looks_killed_by_mpirun(end) or _has_lost_peer(end)):
        return False
    # The peer closed a lost connection: the rank may notice that shortly before the peer's exit, or some seconds later.
    # A kill may have other causes, so its time window is shorter.
    earliest, latest = (-REPORT_DELAY_SECONDS, CLEANUP_SECONDS) if _has_lost_peer(end) else (0.0, HYDRA_KILL_SECONDS)
    return any(other.is_success and earliest <= end.at - other.at <= latest for other in list_rank_ends(facts))


def _has_lost_peer(end: End) -> bool:
    """Whether Open MPI 5 probably ended the rank after a lost connection, for which only mpirun prints a message."""
    return not end.lines and end.exit_code == MPI_ERR_UNKNOWN


def _looks_killed_by_mpirun(end: End) -> bool:
    """Whether the end looks like mpirun's clean-up."""
    if end.has_own_error:
        return False
    lost = end.reason == EndReason.WRAPPER_LOST
    return lost or (end.reason is None and end.signal in _CLEANUP_SIGNALS)


def _find_own_failures(failures: tuple[End, ...]) -> tuple[End, ...]:
    """Return the ends that neither mpirun nor a lost peer explains."""
    aborted = tuple(end for end in failures if rank_output.contains_abort(end.lines))
    # Hydra may kill the rank that called MPI_Abort together with the others.
    if aborted and aborted[0].at <= failures[0].at + CLEANUP_SECONDS:
        return aborted
    return tuple(end for end in failures if not _looks_killed_by_mpirun(end) and not _has_lost_peer(end))


def _find_first_killed(failures: tuple[End, ...]) -> tuple[End, ...]:
    """Return the first killed rank, which mpirun had no reason to kill; () without a killed rank."""
    killed = (end for end in failures if _looks_killed_by_mpirun(end) and not is_secondary(end))
    return tuple(itertools.islice(killed, 1))


def _find_launcher_cause(facts: JobFacts, failures: tuple[End, ...]) -> End | None:
    """Return the end of mpirun; None if a rank explains it."""
    launcher = build_launcher_end(facts.nodes[0])
    if launcher is None or launcher.is_success or _was_launcher_stopped(facts):
        return None
    # A node that has not reported its end yet may have the rank that explains mpirun's end.
    if not _have_all_reported(facts):
        return None
    return None if failures and _is_explained(launcher, failures) else launcher


def _have_all_reported(facts: JobFacts) -> bool:
    return all(node.has_ended or node.has_no_agent for node in facts.nodes)


def _is_explained(launcher: End, failures: tuple[End, ...]) -> bool:
    """Whether mpirun ended because a rank failed. The first row that matches decides.

    mpirun                                          ended because of a rank
    was killed                                      if a rank had failed well before
    reports that a rank made it end                 always
    ended with the first rank's exit code or signal always
    printed a rank's MPI_Abort message              treated as no: only its output names that rank
    anything else                                   if the first rank was killed before mpirun ended
    """
    # The ranks die with a killed mpirun.
    if launcher.signal is not None:
        return failures[0].at < launcher.at - REPORT_DELAY_SECONDS
    if rank_output.mentions_failed_rank(launcher.lines) or _has_same_exit(launcher, failures[0]):
        return True
    # The rank that called MPI_Abort is unknown, because Hydra killed all ranks in any order.
    if rank_output.contains_abort(launcher.lines):
        return False
    # This is Hydra, because Open MPI prints which rank made it end. Hydra kills the ranks before it ends itself. It may
    # crash meanwhile, so that its exit code shows no rank's failure.
    return failures[:1] == _find_first_killed(failures) and failures[0].at < launcher.at - RELIABLE_ORDER_SECONDS


def _was_launcher_stopped(facts: JobFacts) -> bool:
    """Whether muster had begun to stop the ranks when mpirun ended."""
    agent = facts.nodes[0].current_agent
    return agent is not None and agent.launcher is not None and agent.launcher.end.stopped


def _has_same_exit(launcher: End, first: End) -> bool:
    """Whether mpirun ended with the rank's exit code or signal, as Open MPI or Hydra passes it on."""
    if first.exit_code is not None:
        return launcher.exit_code == first.exit_code
    # mpirun itself sends SIGTERM to its ranks, so this signal does not show that the rank failed first.
    if first.signal is None or first.signal == signal.SIGTERM:
        return False
    return launcher.exit_code in (first.signal, 128 + first.signal)

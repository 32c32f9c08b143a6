"""Describe a failure: the rank that failed first, how, where, at which step, and the activities of other ranks."""

import signal
from collections import Counter

from muster.api.plurals import pluralize
from muster.api.spec.job import Job
from muster.core.failure import rank_output
from muster.core.failure.ends import NODE_LOST, NODE_STOPPED, End, Subject
from muster.core.failure.failure import Failure
from muster.core.failure.problems import OOM_KILLED
from muster.core.judge import WORLD_SIZE_MISMATCH
from muster.core.status.problems import MAX_CHARS as MAX_PROBLEM_CHARS
from muster.core.status.problems import named
from muster.core.status.ranges import ranges
from muster.core.status.views import (
    FAILED,
    PENDING,
    RUNNING,
    STARTING,
    STOPPED,
    SUCCEEDED,
    UNKNOWN,
    RankView,
)
from muster.core.world import is_mpi, procs_per_node, rank_nodes, world_size
from muster_worker.contract.schema import MAX_ACTIVITY_CHARS, EndReason

MAX_ACTIVITIES = 3
"""The most kinds of activities in a sentence."""

MAX_RANGE_CHARS = 60
"""The most characters for ranks in a sentence; the status has all of them in byState."""

_WORLD_SIZE_TEXT = "the job asks for"
"""Part of an agent's or rank wrapper's sentence about a wrong world size."""

CUT_OFF = "cut off"
STOPPED_TEXT = "stopped"
STILL_RUNNING = "still running"
_STATE_TEXTS = {
    SUCCEEDED: "done",
    PENDING: "not started",
    STARTING: "not started yet",
    FAILED: "failing too",
    UNKNOWN: "unknown",
}

_IDLE = frozenset((*_STATE_TEXTS.values(), CUT_OFF, STOPPED_TEXT, STILL_RUNNING))

_CRASHES = frozenset((signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGSYS))


def failure_sentence(job: Job, failure: Failure, views: tuple[RankView, ...]) -> str:
    """Describe `failure` in one sentence without a full stop."""
    sentence = _early_exit(failure) if failure.early else _root_causes(job, failure)
    # mpirun runs the ranks of all nodes, so its own node's ranks count as others, too.
    counts_own_node = is_mpi(job) and failure.first.subject is Subject.LAUNCHER
    others = describe_other_ranks(views, "rank") if counts_own_node else describe_other_ranks(_others(failure, views))
    return f"{sentence}; {others}" if others else sentence


def describe_other_ranks(views: tuple[RankView, ...], noun: str = "other") -> str:
    """Describe the activities of other ranks: "3 others were in all_reduce, 1 in backward"; "" for none."""
    if not views:
        return ""
    activities = Counter(_activity_of(view) for view in views)
    parts = sorted(activities.items(), key=lambda item: (item[0] in _IDLE, -item[1], item[0]))
    shown = parts[:MAX_ACTIVITIES]
    rest = sum(count for _, count in parts[MAX_ACTIVITIES:])
    texts = [f"{count} {activity}" for activity, count in shown] + ([f"{rest} elsewhere"] if rest else [])
    activity, count = shown[0]
    was = "was" if count == 1 else "were"
    return ", ".join([f"{count} {noun}{'' if count == 1 else 's'} {was} {activity}", *texts[1:]])


def describe_requested_world(job: Job) -> str:
    """The requested world: "The job asked for 4 ranks (2 nodes x 2)"."""
    nodes = pluralize(rank_nodes(job), "node")
    return f"The job asked for {pluralize(world_size(job), 'rank')} ({nodes} x {procs_per_node(job)})"


def _root_causes(job: Job, failure: Failure) -> str:
    first = failure.first
    if first.reason == WORLD_SIZE_MISMATCH:
        return _wrong_world_size(job, failure)
    if first.subject is Subject.RANK:
        return _ranks(job, failure)
    if first.subject is Subject.LAUNCHER:
        return _launchers(job, failure)
    if first.subject is Subject.NODE:
        return f"{_nodes(failure)} can't work: {rank_output.error_line(first.lines)}"
    return _agent(failure)


def _wrong_world_size(job: Job, failure: Failure) -> str:
    """Describe a world size that differs from the job's, on a rank or on a node."""
    first = failure.first
    sentence = rank_output.error_text(first.lines)
    # A sentence with both world sizes is complete.
    if _WORLD_SIZE_TEXT in sentence:
        return sentence
    if first.subject is Subject.NODE:
        return f"{describe_requested_world(job)}, but on {_nodes(failure)} {sentence}"
    return f"{describe_requested_world(job)}, but rank {first.rank} on {first.node_name} has another world size"


def _ranks(job: Job, failure: Failure) -> str:
    first, count = failure.first, len({end.rank for end in failure.root_causes})
    line = _error(job, first)
    if count == 1:
        sentence = f"Rank {first.rank} on {first.node_name} {_how_it_failed(first)}{_at_step(first)}"
        return f"{sentence}: {line}" if line else sentence
    world = world_size(job)
    ranks = ranges((end.rank for end in failure.root_causes if end.rank is not None), MAX_RANGE_CHARS)
    subject_text, which = (f"All {world} ranks", "") if count == world else (f"{count} ranks", f" ({ranks})")
    if not line:
        how_all = _how_it_failed(first).replace("was ", "were ", 1)
        return f"{subject_text} {how_all}{which}, rank {first.rank} on {first.node_name} first{_at_step(first)}"
    code = f" with exit code {first.exit_code}" if first.exit_code not in {None, 1} else ""
    return f"{subject_text} failed the same way{code}{which}: {line}"


def _launchers(job: Job, failure: Failure) -> str:
    first = failure.first
    name = rank_output.clean(first.name, limit=64)
    line = _error(job, first)
    if len(failure.root_causes) > 1:
        return f"{name} failed the same way on {_nodes(failure)}: {line or _how_it_failed(first)}"
    sentence = f"{name} on {first.node_name} {_how_it_failed(first)}"
    return f"{sentence}: {line}" if line else sentence


def _agent(failure: Failure) -> str:
    end = failure.first
    subject_text = _nodes(failure)
    # A sentence from Kubernetes about the pod is complete.
    if end.lines:
        return f"{subject_text}: {rank_output.clean(end.lines[0], limit=MAX_PROBLEM_CHARS)}"
    if end.reason == NODE_STOPPED:
        return f"{end.node_name} was stopped, but not by muster"
    if end.reason == NODE_LOST:
        return f"{end.node_name} was removed, but not by muster"
    how = _how_it_failed(end) if end.exit_code != 0 else "left with exit code 0 before its ranks"
    return f"The agent on {end.node_name} {how}"


def _early_exit(failure: Failure) -> str:
    first, early = failure.first, failure.early[0]
    more = len(failure.early) - 1
    also = f" and {more} more" if more else ""
    sentence = f"Rank {early.rank} on {early.node_name}{also} ended early with exit code 0{_at_step(early)}"
    activity = first.activity or rank_output.collective(first.lines)
    activity_text = _with_preposition(rank_output.clean(activity, limit=MAX_ACTIVITY_CHARS)) if activity else ""
    where = f" {activity_text}" if activity_text else ""
    subject = f"rank {first.rank}" if first.subject is Subject.RANK else rank_output.clean(first.name, limit=64)
    line = rank_output.error_line(first.lines)
    then = f"{subject} on {first.node_name} then {_how_it_exited(first)}{where}"
    return f"{sentence}; {then}: {line}" if line else f"{sentence}; {then}"


def _how_it_failed(end: End) -> str:
    """Describe how a root cause ended, where exit code and signal alone would mislead."""
    if end.reason in (EndReason.COMMAND_NOT_FOUND, EndReason.COMMAND_NOT_EXECUTABLE):
        return "could not start"
    if end.reason == EndReason.WRAPPER_LOST:
        return "was lost with the process that watched it"
    if end.reason == OOM_KILLED:
        return "was OOM-killed"
    if end.signal is not None and rank_output.calls_abort(end.lines):
        return "called MPI_Abort"
    # The rank failed by itself, and the signal arrived during its exit.
    if end.stopped and end.signal is not None:
        return "failed"
    return _how_it_exited(end)


def _how_it_exited(end: End) -> str:
    """Describe the exit code or signal: "failed with exit code 7", "was killed by SIGKILL"."""
    if end.signal is not None:
        return (
            f"crashed with {_signal(end.signal)}" if end.signal in _CRASHES else f"was killed by {_signal(end.signal)}"
        )
    if end.exit_code is None:
        return "was lost"
    return "ended early with exit code 0" if end.exit_code == 0 else f"failed with exit code {end.exit_code}"


def _error(job: Job, end: End) -> str:
    if is_mpi(job) and end.subject is Subject.LAUNCHER:
        return rank_output.error_text(end.lines)
    line = rank_output.error_line(end.lines)
    program = rank_output.clean(job.spec.command[0], limit=128)
    if end.reason == EndReason.COMMAND_NOT_FOUND:
        return line if program in line else f"{program} was not found"
    if end.reason == EndReason.COMMAND_NOT_EXECUTABLE:
        return line if program in line else f"{program} is not executable"
    if end.reason == OOM_KILLED and (end.rss_bytes or end.memory_limit):
        return _memory(end)
    # A process that was killed could not print the reason.
    has_own_output = end.stopped or end.signal == signal.SIGABRT or rank_output.calls_abort(end.lines)
    if end.signal is not None and not has_own_output:
        return ""
    return line


def _memory(end: End) -> str:
    memory_text = f"it held {end.rss_bytes / 2**20:,.0f} MiB" if end.rss_bytes else ""
    if not end.memory_limit:
        return memory_text
    limit = f"the limit of its container is {end.memory_limit}: raise spec.resources.limits.memory"
    return f"{memory_text}, and {limit}" if memory_text else limit


def _at_step(end: End) -> str:
    # A count of 0 means that steps are not counted, as in a script without an optimizer.
    return f" at step {end.step}" if end.step else ""


def _nodes(failure: Failure) -> str:
    return named([name for _, name in sorted({(end.node, end.node_name) for end in failure.root_causes})])


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _others(failure: Failure, views: tuple[RankView, ...]) -> tuple[RankView, ...]:
    # Ranks of a failed node ended with it, so they are no other ranks.
    return tuple(
        view
        for view in views
        if not failure.is_root_cause(view.rank, view.node.node)
        and not failure.exited_early(view.rank, view.node.node)
        and view.node.node not in failure.lost_nodes
    )


def _with_preposition(activity: str) -> str:
    """Put a preposition before an activity: "in all_reduce", "at train.py:27 in main"; "loading data" needs none."""
    if ":" in activity:
        return f"at {activity}"
    return activity if activity.split(" ", maxsplit=1)[0].endswith("ing") else f"in {activity}"


def _activity_of(view: RankView) -> str:
    if view.activity is not None and view.state in (STOPPED, FAILED):
        return _with_preposition(view.activity)
    if view.state == RUNNING:
        return STILL_RUNNING
    if view.state == STOPPED and view.end is not None and rank_output.blames_peer(view.end.lines):
        return CUT_OFF
    return _STATE_TEXTS.get(view.state, STOPPED_TEXT)

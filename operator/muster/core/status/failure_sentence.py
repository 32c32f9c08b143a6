"""Describe a failure in one sentence: which rank failed first, where, how, and what the other ranks were doing."""

import signal
from collections import Counter

from muster.api.plurals import pluralize
from muster.api.spec.job import Job
from muster.core.failure import rank_output
from muster.core.failure.ends import NODE_LOST, NODE_STOPPED, STRAGGLER, End, EndKind
from muster.core.failure.failure import Failure
from muster.core.failure.problems import OOM_KILLED
from muster.core.outcome import WORLD_SIZE_MISMATCH
from muster.core.status.problems import MAX_CHARS as MAX_PROBLEM_CHARS
from muster.core.status.problems import join_node_names
from muster.core.status.rank_ranges import format_ranges
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
from muster.core.steps.hangs import HUNG
from muster.core.world import compute_world_size, count_nodes_with_ranks, get_procs_per_node, is_mpi
from muster_worker.contract.schema import MAX_ACTIVITY_CHARS, EndReason

MAX_ACTIVITIES = 3
"""The maximum number of different activities in a sentence."""

MAX_RANGE_CHARS = 60
"""The maximum length of the list of ranks in a sentence. The status lists all ranks in byState."""

_WORLD_SIZE_TEXT = "the job asks for"
"""A part of the message of agents and rank wrappers about a wrong world size."""

_CUT_OFF = "cut off"
_STOPPED_TEXT = "stopped"
_STILL_RUNNING = "still running"
_STATE_TEXTS = {
    SUCCEEDED: "done",
    PENDING: "not started",
    STARTING: "not started yet",
    FAILED: "failing too",
    UNKNOWN: "unknown",
}

_END_TEXTS_BY_REASON = {
    EndReason.COMMAND_NOT_FOUND: "could not start",
    EndReason.COMMAND_NOT_EXECUTABLE: "could not start",
    EndReason.WRAPPER_LOST: "{was} lost with the process that watched {it}",
    OOM_KILLED: "{was} OOM-killed",
    HUNG: "hung",
    STRAGGLER: "{was} slower than the others",
}
"""How one rank or several ended: `{was}` is "was" or "were", `{it}` "it" or "them"."""

_IDLE_TEXTS = frozenset((*_STATE_TEXTS.values(), _CUT_OFF, _STOPPED_TEXT, _STILL_RUNNING))

_CRASH_SIGNALS = frozenset((signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGSYS))


def describe_job_failure(job: Job, failure: Failure, views: tuple[RankView, ...]) -> str:
    """Describe `failure` in one sentence without a full stop."""
    sentence = _describe_early_exit(failure) if failure.early_exits else _describe_root_causes(job, failure)
    # mpirun starts the ranks of all nodes, so the ranks of its own node count as other ranks, too.
    counts_own_node = is_mpi(job) and failure.first.kind is EndKind.LAUNCHER
    if counts_own_node:
        others = describe_other_ranks(views, "rank")
    else:
        others = describe_other_ranks(_find_other_ranks(failure, views))
    return f"{sentence}; {others}" if others else sentence


def describe_other_ranks(views: tuple[RankView, ...], noun: str = "other") -> str:
    """Describe the activities of other ranks: "3 others were in all_reduce, 1 in backward"; "" for none."""
    if not views:
        return ""
    activities = Counter(_describe_activity(view) for view in views)
    parts = sorted(activities.items(), key=lambda item: (item[0] in _IDLE_TEXTS, -item[1], item[0]))
    shown = parts[:MAX_ACTIVITIES]
    rest = sum(count for _, count in parts[MAX_ACTIVITIES:])
    texts = [f"{count} {activity}" for activity, count in shown] + ([f"{rest} elsewhere"] if rest else [])
    activity, count = shown[0]
    was = "was" if count == 1 else "were"
    return ", ".join([f"{count} {noun}{'' if count == 1 else 's'} {was} {activity}", *texts[1:]])


def describe_requested_world(job: Job) -> str:
    """Describe the requested world: "The job asked for 4 ranks (2 nodes x 2)"."""
    nodes = pluralize(count_nodes_with_ranks(job), "node")
    return f"The job asked for {pluralize(compute_world_size(job), 'rank')} ({nodes} x {get_procs_per_node(job)})"


def _describe_root_causes(job: Job, failure: Failure) -> str:
    first = failure.first
    if first.reason == WORLD_SIZE_MISMATCH:
        return _describe_wrong_world_size(job, failure)
    if first.kind is EndKind.RANK:
        return _describe_ranks(job, failure)
    if first.kind is EndKind.LAUNCHER:
        return _describe_launchers(job, failure)
    if first.kind is EndKind.NODE:
        return f"{_join_failed_nodes(failure)} can't work: {rank_output.find_error_line(first.lines)}"
    return _describe_agent(failure)


def _describe_wrong_world_size(job: Job, failure: Failure) -> str:
    """Describe a rank or a node with another world size than the job's."""
    first = failure.first
    sentence = rank_output.find_error_text(first.lines)
    # The message already names both world sizes.
    if _WORLD_SIZE_TEXT in sentence:
        return sentence
    if first.kind is EndKind.NODE:
        return f"{describe_requested_world(job)}, but on {_join_failed_nodes(failure)} {sentence}"
    return f"{describe_requested_world(job)}, but rank {first.rank} on {first.node_name} has another world size"


def _describe_ranks(job: Job, failure: Failure) -> str:
    first, count = failure.first, len({end.rank for end in failure.root_causes})
    line = _describe_observation(first) or _find_error_text(job, first)
    if count == 1:
        sentence = f"Rank {first.rank} on {first.node_name} {_describe_failed_end(first)}{_describe_step(first)}"
        return f"{sentence}: {line}" if line else sentence
    world = compute_world_size(job)
    ranks = format_ranges((end.rank for end in failure.root_causes if end.rank is not None), MAX_RANGE_CHARS)
    subject_text, rank_numbers = (f"All {world} ranks", "") if count == world else (f"{count} ranks", f" ({ranks})")
    if not line:
        how_they_ended = _describe_failed_end(first, was="were")
        first_text = f"rank {first.rank} on {first.node_name} first{_describe_step(first)}"
        return f"{subject_text} {how_they_ended}{rank_numbers}, {first_text}"
    code = f" with exit code {first.exit_code}" if first.exit_code not in {None, 1} else ""
    return f"{subject_text} failed the same way{code}{rank_numbers}: {line}"


def _describe_launchers(job: Job, failure: Failure) -> str:
    first = failure.first
    name = rank_output.sanitize_line(first.name, limit=64)
    line = _find_error_text(job, first)
    if len(failure.root_causes) > 1:
        return f"{name} failed the same way on {_join_failed_nodes(failure)}: {line or _describe_failed_end(first)}"
    sentence = f"{name} on {first.node_name} {_describe_failed_end(first)}"
    return f"{sentence}: {line}" if line else sentence


def _describe_agent(failure: Failure) -> str:
    end = failure.first
    subject_text = _join_failed_nodes(failure)
    # The text is Kubernetes' message about the pod.
    if end.lines:
        return f"{subject_text}: {rank_output.sanitize_line(end.lines[0], limit=MAX_PROBLEM_CHARS)}"
    if end.reason == NODE_STOPPED:
        return f"{end.node_name} was stopped, but not by muster"
    if end.reason == NODE_LOST:
        return f"{end.node_name} was removed, but not by muster"
    how = _describe_failed_end(end) if end.exit_code != 0 else "left with exit code 0 before its ranks"
    return f"The agent on {end.node_name} {how}"


def _describe_early_exit(failure: Failure) -> str:
    first, early = failure.first, failure.early_exits[0]
    more = len(failure.early_exits) - 1
    also = f" and {more} more" if more else ""
    sentence = f"Rank {early.rank} on {early.node_name}{also} ended early with exit code 0{_describe_step(early)}"
    activity = first.activity or rank_output.find_collective(first.lines)
    activity_text = add_preposition(rank_output.sanitize_line(activity, limit=MAX_ACTIVITY_CHARS)) if activity else ""
    where = f" {activity_text}" if activity_text else ""
    subject = f"rank {first.rank}" if first.kind is EndKind.RANK else rank_output.sanitize_line(first.name, limit=64)
    line = first.error_line
    then = f"{subject} on {first.node_name} then {_describe_exit(first)}{where}"
    return f"{sentence}; {then}: {line}" if line else f"{sentence}; {then}"


def _describe_failed_end(end: End, was: str = "was") -> str:
    """Describe how a root cause ended. Its exit code or signal alone may mislead. `was` is "were" for several ranks."""
    if end.reason in _END_TEXTS_BY_REASON:
        return _END_TEXTS_BY_REASON[end.reason].format(was=was, it="it" if was == "was" else "them")
    if end.is_running:
        return "has not exited since its error"
    if end.signal is not None and rank_output.contains_abort(end.lines):
        return "called MPI_Abort"
    # The rank failed by itself, and a signal ended it during its exit.
    was_stopped = end.stopped or end.signal == signal.SIGTERM
    if (end.stopped and end.signal is not None) or (end.has_own_error and was_stopped):
        return "failed"
    return _describe_exit(end, was)


def _describe_exit(end: End, was: str = "was") -> str:
    """Describe the exit code or signal: "failed with exit code 7", "was killed by SIGKILL"."""
    if end.signal is not None:
        name = _get_signal_name(end.signal)
        return f"crashed with {name}" if end.signal in _CRASH_SIGNALS else f"{was} killed by {name}"
    if end.exit_code is None:
        return f"{was} lost"
    return "ended early with exit code 0" if end.exit_code == 0 else f"failed with exit code {end.exit_code}"


def _find_error_text(job: Job, end: End) -> str:
    if is_mpi(job) and end.kind is EndKind.LAUNCHER:
        return rank_output.find_error_text(end.lines)
    line = end.error_line
    program = rank_output.sanitize_line(job.spec.command[0], limit=128)
    if end.reason == EndReason.COMMAND_NOT_FOUND:
        return line if program in line else f"{program} was not found"
    if end.reason == EndReason.COMMAND_NOT_EXECUTABLE:
        return line if program in line else f"{program} is not executable"
    if end.reason == OOM_KILLED and (end.rss_bytes or end.memory_limit):
        return _describe_memory(end)
    # A killed process could not print why it ended.
    has_own_output = end.stopped or end.error or end.signal == signal.SIGABRT or rank_output.contains_abort(end.lines)
    if end.signal is not None and not has_own_output:
        return ""
    return line


def _describe_observation(end: End) -> str:
    """Describe why muster stops a rank that still runs; "" for a rank that ended by itself."""
    if end.reason == STRAGGLER:
        return end.lines[0]
    return _describe_hang(end) if end.reason == HUNG else ""


def _describe_hang(end: End) -> str:
    line, *collectives = end.lines
    if end.activity:
        line += f" and was {add_preposition(rank_output.sanitize_line(end.activity, limit=MAX_ACTIVITY_CHARS))}"
    return "; ".join((line, *(rank_output.sanitize_line(text) for text in collectives)))


def _describe_memory(end: End) -> str:
    memory_text = f"it held {end.rss_bytes / 2**20:,.0f} MiB" if end.rss_bytes else ""
    if not end.memory_limit:
        return memory_text
    limit = f"the limit of its container is {end.memory_limit}: raise spec.resources.limits.memory"
    return f"{memory_text}, and {limit}" if memory_text else limit


def _describe_step(end: End) -> str:
    # A count of 0 means that steps are not counted, as in a script without an optimizer.
    return f" at step {end.step}" if end.step else ""


def _join_failed_nodes(failure: Failure) -> str:
    return join_node_names([name for _, name in sorted({(end.node, end.node_name) for end in failure.root_causes})])


def _get_signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _find_other_ranks(failure: Failure, views: tuple[RankView, ...]) -> tuple[RankView, ...]:
    # The ranks of a failed node ended with it.
    return tuple(
        view
        for view in views
        if not failure.is_root_cause(view.rank, view.node.node)
        and not failure.has_exited_early(view.rank, view.node.node)
        and view.node.node not in failure.failed_nodes
    )


def add_preposition(activity: str) -> str:
    """Put a preposition before an activity: "in all_reduce", "at train.py:27 in main". "loading data" needs none."""
    if activity.startswith("stopped by "):
        return activity
    if ":" in activity:
        return f"at {activity}"
    return activity if activity.split(" ", maxsplit=1)[0].endswith("ing") else f"in {activity}"


def _describe_activity(view: RankView) -> str:
    if view.activity is not None and view.state in (RUNNING, STOPPED, FAILED):
        return add_preposition(view.activity)
    if view.state == RUNNING:
        return _STILL_RUNNING
    if view.state == STOPPED and view.end is not None and view.end.mentions_lost_peer:
        return _CUT_OFF
    return _STATE_TEXTS.get(view.state, _STOPPED_TEXT)

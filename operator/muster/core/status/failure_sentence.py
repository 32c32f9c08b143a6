"""The sentence about a failure: who failed first, how, where, at which step, and what the others were doing."""

import signal
from collections import Counter

from muster.api.amounts import amount
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

_ASKED = "the job asks for"
"""Part of an agent's or rank wrapper's sentence about a wrong world size."""

CUT_OFF = "cut off"
HALTED = "stopped"
STILL_RUNNING = "still running"
_STANDING = {
    SUCCEEDED: "done",
    PENDING: "not started",
    STARTING: "not started yet",
    FAILED: "failing too",
    UNKNOWN: "unknown",
}

_IDLE = frozenset((*_STANDING.values(), CUT_OFF, HALTED, STILL_RUNNING))

_CRASHES = frozenset((signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGSYS))


def failure_sentence(job: Job, failure: Failure, views: tuple[RankView, ...]) -> str:
    """Describe `failure` in one sentence without a full stop."""
    sentence = _early(failure) if failure.early else _root_causes(job, failure)
    # mpirun runs the ranks of all nodes, so its own node's ranks count as others, too.
    with_all = is_mpi(job) and failure.first.subject is Subject.LAUNCHER
    others = bystanders(views, "rank") if with_all else bystanders(_others(failure, views))
    return f"{sentence}; {others}" if others else sentence


def bystanders(views: tuple[RankView, ...], noun: str = "other") -> str:
    """Describe what the other ranks were doing: "3 others were in all_reduce, 1 in backward"; "" for none."""
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


def asked_for(job: Job) -> str:
    """The requested world: "The job asked for 4 ranks (2 nodes x 2)"."""
    nodes = amount(rank_nodes(job), "node")
    return f"The job asked for {amount(world_size(job), 'rank')} ({nodes} x {procs_per_node(job)})"


def _root_causes(job: Job, failure: Failure) -> str:
    first = failure.first
    if first.reason == WORLD_SIZE_MISMATCH:
        return _other_world(job, failure)
    if first.subject is Subject.RANK:
        return _ranks(job, failure)
    if first.subject is Subject.LAUNCHER:
        return _launchers(job, failure)
    if first.subject is Subject.NODE:
        return f"{_nodes(failure)} can't work: {rank_output.telling_line(first.lines)}"
    return _agent(failure)


def _other_world(job: Job, failure: Failure) -> str:
    """The world size of a node's ranks, or of a node without ranks, differs from the job's."""
    first = failure.first
    sentence = rank_output.telling_paragraph(first.lines)
    # A sentence with both world sizes is complete.
    if _ASKED in sentence:
        return sentence
    if first.subject is Subject.NODE:
        return f"{asked_for(job)}, but on {_nodes(failure)} {sentence}"
    return f"{asked_for(job)}, but rank {first.rank} on {first.node_name} has another world size"


def _ranks(job: Job, failure: Failure) -> str:
    first, count = failure.first, len({end.rank for end in failure.root_causes})
    line = _why(job, first)
    if count == 1:
        value = f"Rank {first.rank} on {first.node_name} {_how(first)}{_at_step(first)}"
        return f"{value}: {line}" if line else value
    world = world_size(job)
    ranks = ranges((end.rank for end in failure.root_causes if end.rank is not None), MAX_RANGE_CHARS)
    who, which = (f"All {world} ranks", "") if count == world else (f"{count} ranks", f" ({ranks})")
    if not line:
        how_all = _how(first).replace("was ", "were ", 1)
        return f"{who} {how_all}{which}, rank {first.rank} on {first.node_name} first{_at_step(first)}"
    code = f" with exit code {first.exit_code}" if first.exit_code not in {None, 1} else ""
    return f"{who} failed the same way{code}{which}: {line}"


def _launchers(job: Job, failure: Failure) -> str:
    first = failure.first
    name = rank_output.clean(first.name, limit=64)
    line = _why(job, first)
    if len(failure.root_causes) > 1:
        return f"{name} failed the same way on {_nodes(failure)}: {line or _how(first)}"
    value = f"{name} on {first.node_name} {_how(first)}"
    return f"{value}: {line}" if line else value


def _agent(failure: Failure) -> str:
    end = failure.first
    who = _nodes(failure)
    # A sentence from Kubernetes about the pod is complete.
    if end.lines:
        return f"{who}: {rank_output.clean(end.lines[0], limit=MAX_PROBLEM_CHARS)}"
    if end.reason == NODE_STOPPED:
        return f"{end.node_name} was stopped, but not by muster"
    if end.reason == NODE_LOST:
        return f"{end.node_name} was removed, but not by muster"
    how = _how(end) if end.exit_code != 0 else "left with exit code 0 before its ranks"
    return f"The agent on {end.node_name} {how}"


def _early(failure: Failure) -> str:
    first, early = failure.first, failure.early[0]
    more = len(failure.early) - 1
    also = f" and {more} more" if more else ""
    value = f"Rank {early.rank} on {early.node_name}{also} ended early with exit code 0{_at_step(early)}"
    activity = first.activity or rank_output.collective(first.lines)
    while_doing = _doing_what(rank_output.clean(activity, limit=MAX_ACTIVITY_CHARS)) if activity else ""
    where = f" {while_doing}" if while_doing else ""
    subject = f"rank {first.rank}" if first.subject is Subject.RANK else rank_output.clean(first.name, limit=64)
    line = rank_output.telling_line(first.lines)
    then = f"{subject} on {first.node_name} then {_how_it_exited(first)}{where}"
    return f"{value}; {then}: {line}" if line else f"{value}; {then}"


def _how(end: End) -> str:
    """Describe how a root cause ended, also if exit code and signal alone would mislead."""
    if end.reason in (EndReason.COMMAND_NOT_FOUND, EndReason.COMMAND_NOT_EXECUTABLE):
        return "could not start"
    if end.reason == EndReason.WRAPPER_LOST:
        return "was lost with the process that watched it"
    if end.reason == OOM_KILLED:
        return "was OOM-killed"
    if end.signal is not None and rank_output.calls_abort(end.lines):
        return "called MPI_Abort"
    # It failed by itself; the signal reached it while it was exiting.
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


def _why(job: Job, end: End) -> str:
    if is_mpi(job) and end.subject is Subject.LAUNCHER:
        return rank_output.telling_paragraph(end.lines)
    line = rank_output.telling_line(end.lines)
    program = rank_output.clean(job.spec.command[0], limit=128)
    if end.reason == EndReason.COMMAND_NOT_FOUND:
        return line if program in line else f"{program} was not found"
    if end.reason == EndReason.COMMAND_NOT_EXECUTABLE:
        return line if program in line else f"{program} is not executable"
    if end.reason == OOM_KILLED and (end.rss_bytes or end.memory_limit):
        return _memory(end)
    # A process that was killed could not print the reason.
    own_word = end.stopped or end.signal == signal.SIGABRT or rank_output.calls_abort(end.lines)
    if end.signal is not None and not own_word:
        return ""
    return line


def _memory(end: End) -> str:
    held = f"it held {end.rss_bytes / 2**20:,.0f} MiB" if end.rss_bytes else ""
    if not end.memory_limit:
        return held
    limit = f"the limit of its container is {end.memory_limit}: raise spec.resources.limits.memory"
    return f"{held}, and {limit}" if held else limit


def _at_step(end: End) -> str:
    # 0 means that no step was counted, as in a script that never calls its optimizer's step.
    return f" at step {end.step}" if end.step else ""


def _nodes(failure: Failure) -> str:
    return named([name for _, name in sorted({(end.node, end.node_name) for end in failure.root_causes})])


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _others(failure: Failure, views: tuple[RankView, ...]) -> tuple[RankView, ...]:
    # Ranks of a failed node ended with it: they are not bystanders.
    return tuple(
        view
        for view in views
        if not failure.is_root_cause(view.rank, view.node.node)
        and not failure.left_early(view.rank, view.node.node)
        and view.node.node not in failure.lost_nodes
    )


def _doing_what(activity: str) -> str:
    """An activity after "was": in a collective, at a line of the script (train.py:27 in main), or "loading data"."""
    if ":" in activity:
        return f"at {activity}"
    return activity if activity.split(" ", maxsplit=1)[0].endswith("ing") else f"in {activity}"


def _activity_of(view: RankView) -> str:
    if view.activity is not None and view.state in (STOPPED, FAILED):
        return _doing_what(view.activity)
    if view.state == RUNNING:
        return STILL_RUNNING
    if view.state == STOPPED and view.end is not None and rank_output.names_a_peer(view.end.lines):
        return CUT_OFF
    return _STANDING.get(view.state, HALTED)

"""The status' message: one sentence."""

from muster.api.plurals import capitalize, describe_share, pluralize
from muster.api.spec.job import Job
from muster.api.status.progress import Progress
from muster.api.timestamps import format_timestamp
from muster.api.validation.rules.mpi.rules import is_mpirun
from muster.core.facts import JobFacts
from muster.core.failure import rank_output
from muster.core.failure.failure import Failure
from muster.core.failure.problems import NODE_SILENT, POD_DELETED
from muster.core.membership.members import find_node
from muster.core.outcome import (
    DEADLINE_EXCEEDED,
    NETWORK_MISMATCH,
    STARTUP_TIMEOUT,
    STOP_REQUESTED,
    WORLD_SIZE_MISMATCH,
    Outcome,
    Verdict,
)
from muster.core.status.elastic import describe_missing_nodes
from muster.core.status.failure_sentence import (
    MAX_RANGE_CHARS,
    describe_job_failure,
    describe_other_ranks,
    describe_requested_world,
)
from muster.core.status.hang import describe_hang
from muster.core.status.network import summarise_check
from muster.core.status.problems import MAX_NAMES
from muster.core.status.progress import count_steps_behind
from muster.core.status.rank_ranges import format_ranges
from muster.core.status.restarts import describe_request
from muster.core.status.straggler_record import describe_stragglers
from muster.core.status.truncate import truncate_message
from muster.core.status.views import NOT_EXITED, PENDING, RUNNING, STARTING, SUCCEEDED, UNKNOWN, RankView, StatusInput
from muster.core.status.waiting_sentence import append_problems, describe_waiting, join_missing, join_names
from muster.core.steps.started_ranks import find_started_ranks
from muster.core.world import is_mpi
from muster_worker.contract.schema import AgentPhase

_NO_STEP_TEXTS = {
    "NotPython": "not Python",
    "PythonIsolated": "Python that ignores its environment",
    "NotHooked": "Python without muster's hook",
    "NoTorch": "torch is not imported",
    "TorchTooOld": "torch is older than 2.0",
}
"""The texts of the agents' reasons. The message shows a newer agent's reason unchanged."""


def describe_status(status_input: StatusInput, progress: Progress | None) -> str:
    """Describe the current state, or how the job ended, in one line of at most `MAX_BYTES`."""
    parts = [_describe_state(status_input, progress), *_describe_dropped_lines(status_input.facts)]
    return truncate_message("; ".join(parts))


def _describe_state(status_input: StatusInput, progress: Progress | None) -> str:
    if status_input.outcome.verdict is Verdict.SUSPENDED:
        return _describe_suspension(status_input)
    if status_input.outcome.is_decided:
        return describe_end(status_input, progress)
    # A refusal can only prevent a start.
    if status_input.facts.refusal is not None and not status_input.outcome.has_started:
        return status_input.facts.refusal.message
    if any(view.state not in (PENDING, STARTING) for view in status_input.views):
        return describe_running(status_input, progress)
    if any(view.state == STARTING for view in status_input.views):
        start = (
            f"The ranks start: 0 of {len(status_input.views)} run" if len(status_input.views) > 1 else "The rank starts"
        )
        return append_problems(start, status_input)
    waiting = status_input.release_message or describe_waiting(status_input)
    last, attempt = status_input.previous.last_restart, status_input.outcome.attempt
    # After a suspension the last restart is the reason for an earlier attempt.
    return f"{last.message}; attempt {attempt}: {waiting}" if last and last.attempt == attempt - 1 else waiting


def describe_end(status_input: StatusInput, progress: Progress | None) -> str:
    """Describe how a job ended, or is about to end."""
    outcome, world = status_input.outcome, len(status_input.views)
    if outcome.failure is not None:
        return _describe_failure(status_input, outcome.failure) + _describe_next_attempt(outcome)
    if outcome.verdict is Verdict.SUCCEEDED:
        subject = f"All {world} ranks" if world > 1 else "The rank"
        return "; ".join([f"{subject} succeeded{_describe_step(progress)}", *_describe_uploads(status_input.facts)])
    if outcome.reason == WORLD_SIZE_MISMATCH:
        return _describe_world_size_mismatch(status_input.job, status_input.facts)
    if outcome.reason == NETWORK_MISMATCH:
        return outcome.message
    if outcome.reason == STARTUP_TIMEOUT:
        seconds = status_input.job.spec.startup_timeout_seconds
        subject = "Not all nodes were ready" if status_input.job.spec.nodes > 1 else "The node was not ready"
        return f"{subject} within startupTimeoutSeconds ({seconds} s){join_missing(status_input.facts)}"
    return f"{_describe_stop(status_input, progress)}; {describe_other_ranks(status_input.views, 'rank')}"


def _describe_next_attempt(outcome: Outcome) -> str:
    """Describe which attempt follows the failure, or why none does."""
    if outcome.restart is not None:
        return f"; attempt {outcome.attempt + 1} follows (restart {outcome.restart.budget_text})"
    return f"; not restarted: {outcome.no_restart_reason}" if outcome.no_restart_reason else ""


def _describe_failure(status_input: StatusInput, failure: Failure) -> str:
    if failure.is_uncertain:
        return _describe_uncertain_failure(status_input.views)
    return describe_job_failure(status_input.job, failure, status_input.views)


def _describe_uncertain_failure(views: tuple[RankView, ...]) -> str:
    """Describe that ranks have ended while their order is still unknown."""
    failed = sum(view.end is not None and not view.end.is_success for view in views)
    text = capitalize(describe_share(failed, len(views), "rank", "was killed or failed", "were killed or failed"))
    return f"{text}; the first one is known once all nodes have ended"


def _describe_suspension(status_input: StatusInput) -> str:
    if status_input.outcome.is_idle:
        return "Suspended: set spec.suspend to false to start the job again"
    return f"Being suspended; {describe_other_ranks(status_input.views, 'rank')}"


def _describe_stop(status_input: StatusInput, progress: Progress | None) -> str:
    request = status_input.facts.stop_request
    if status_input.outcome.is_restart_requested:
        why = describe_request(status_input.outcome.restart)
        return f"{why}{_describe_step(progress)}; attempt {status_input.outcome.attempt + 1} follows"
    if status_input.outcome.reason == STOP_REQUESTED and request is not None:
        return f"Stopped by {rank_output.sanitize_line(request.by, limit=64)}{_describe_step(progress)}"
    if status_input.outcome.reason == DEADLINE_EXCEEDED:
        seconds = status_input.job.spec.active_deadline_seconds
        return f"Stopped{_describe_step(progress)} because activeDeadlineSeconds ({seconds} s) has passed"
    if status_input.outcome.reason == POD_DELETED:
        return "The pod that failed was deleted before the job had ended"
    if len(status_input.views) == 1:
        return "The node ended, but its rank did not report how"
    nodes, whose = ("All nodes", "the") if status_input.job.spec.nodes > 1 else ("The node", "its")
    return f"{nodes} ended, but not all of {whose} {len(status_input.views)} ranks reported how"


def _describe_world_size_mismatch(job: Job, facts: JobFacts) -> str:
    ranks = find_started_ranks(job, facts)
    rank_numbers = f" ({format_ranges(ranks, MAX_RANGE_CHARS)})" if ranks else ""
    when = " when mpirun ended with exit code 0" if is_mpi(job) else ""
    requested = describe_requested_world(job)
    text = f"{requested}, {len(ranks) or 'none'} {'was' if len(ranks) == 1 else 'were'} seen{rank_numbers}{when}"
    # muster observes ranks without its wrapper only while they run, and may miss those that end soon.
    unwrapped = is_mpi(job) and not ranks and is_mpirun(job.spec.command[0])
    return f"{text}; if they ran, remove mpirun from spec.command, so that muster starts it" if unwrapped else text


def describe_running(status_input: StatusInput, progress: Progress | None) -> str:
    """Describe what the ranks do once some have started."""
    views = status_input.views
    parts = [capitalize(describe_share(_count_ranks(views, RUNNING), len(views), "rank", "runs", "run"))]
    missing = describe_missing_nodes(status_input)
    if missing:
        parts.append(missing)
    if progress is not None and progress.step is not None:
        hang = status_input.outcome.hang
        speed = (
            f", {progress.steps_per_second:g} steps/s" if progress.steps_per_second is not None and hang is None else ""
        )
        parts.append(f"step {progress.step}{speed}")
        if hang is not None:
            parts.append(describe_hang(hang))
        elif progress.slowest_rank is not None:
            behind = count_steps_behind(status_input)[progress.slowest_rank]
            parts.append(f"rank {progress.slowest_rank} is {pluralize(behind, 'step')} behind")
        stragglers = status_input.outcome.stragglers
        if hang is None and stragglers is not None:
            parts.append(describe_stragglers(stragglers))
    else:
        parts.extend(_describe_missing_step_counts(views))
    for state, text in ((STARTING, "starting"), (SUCCEEDED, "done")):
        ranks = [view.rank for view in views if view.state == state]
        if ranks:
            parts.append(f"{len(ranks)} {text} ({format_ranges(ranks, MAX_RANGE_CHARS)})")
    parts.extend((*_describe_failing_rank(views), *_describe_uploads(status_input.facts)))
    check = summarise_check(status_input.facts.nodes) if status_input.job.spec.network.check else None
    if check is not None and check.slow:
        more = f" and {check.slow_count - MAX_NAMES} more" if check.slow_count > MAX_NAMES else ""
        names = [find_node(status_input.facts, slow.node).name for slow in check.slow[:MAX_NAMES]]
        parts.append(f"slow network: {', '.join(names)}{more}")
    unknown = _count_ranks(views, UNKNOWN)
    if unknown:
        parts.append(f"{unknown} unknown: {_describe_silence(status_input)}")
    shared = status_input.shared_problems
    # The text about unknown ranks already names the silent nodes.
    parts.extend(entry.sentence for entry in shared if not unknown or entry.problem.reason != NODE_SILENT)
    return "; ".join(parts)


def _describe_uploads(facts: JobFacts) -> list[str]:
    """Describe the nodes that upload results to S3."""
    agents = ((node, node.current_agent) for node in facts.nodes)
    busy = [node for node, agent in agents if agent is not None and agent.report.phase == AgentPhase.UPLOADING]
    return [f"{join_names(busy)} {'uploads' if len(busy) == 1 else 'upload'} files to S3"] if busy else []


def _describe_dropped_lines(facts: JobFacts) -> list[str]:
    """Describe the nodes whose log has gaps. The log says how many lines each of them has."""
    agents = ((node, node.current_agent) for node in facts.nodes)
    nodes = [node for node, agent in agents if agent is not None and agent.report.dropped_lines]
    return [f"lines are missing in the log of {join_names(nodes)}, because it was read too slowly"] if nodes else []


def _describe_missing_step_counts(views: tuple[RankView, ...]) -> list[str]:
    reasons = sorted({view.no_step_reason for view in views if view.no_step_reason})
    return [f"no step count ({_NO_STEP_TEXTS.get(reasons[0], reasons[0])})"] if reasons else []


def _describe_failing_rank(views: tuple[RankView, ...]) -> list[str]:
    failing = [view for view in views if view.reason == NOT_EXITED]
    # A rank that lost a peer is not the cause.
    failing.sort(key=lambda view: rank_output.mentions_lost_peer((view.error_line,)))
    return [f"rank {view.rank} has not exited since its error: {view.error_line}" for view in failing[:1]]


def _describe_silence(status_input: StatusInput) -> str:
    silent = [node for node in status_input.facts.nodes if status_input.facts.is_silent(node, status_input.now)]
    unreported = [node for node in status_input.facts.nodes if node.has_no_report]
    if unreported and not silent:
        return f"{join_names(unreported)} {'has' if len(unreported) == 1 else 'have'} not reported yet"
    if not silent:
        alone = _count_ranks(status_input.views, UNKNOWN) == 1
        return f"{'its node' if alone else 'their nodes'} ended without a report about {'it' if alone else 'them'}"
    last_report_at = min(node.agent.last_report_at for node in silent if node.agent is not None)
    have = "has" if len(silent) == 1 else "have"
    return f"{join_names(silent)} {have} not reported since {format_timestamp(last_report_at)}"


def _describe_step(progress: Progress | None) -> str:
    return f" at step {progress.step}" if progress is not None and progress.step is not None else ""


def _count_ranks(views: tuple[RankView, ...], state: str) -> int:
    return sum(view.state == state for view in views)

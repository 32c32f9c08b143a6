"""The status' conditions, which follow Kubernetes' API conventions."""

from dataclasses import dataclass

from muster.api.plurals import capitalize, describe_share
from muster.api.status.status import RESTARTING, RESUMED, STOPPING, SUSPENDED, SUSPENDING, Condition, Status
from muster.api.timestamps import format_timestamp
from muster.core.edited_source import describe_source
from muster.core.failure.problems import NODE_SILENT
from muster.core.gang_release import GANG_RELEASED
from muster.core.outcome import Outcome, Verdict
from muster.core.problem import Problem
from muster.core.status.hang import describe_hang
from muster.core.status.problems import TRANSIENT_REASONS, SharedProblem, group_problems
from muster.core.status.progress import select_ranks_with_steps
from muster.core.status.truncate import truncate_message
from muster.core.status.views import NOT_REPORTED, RUNNING, STARTING, UNKNOWN, StatusInput
from muster.core.steps.hangs import HUNG, Hang

ACCEPTED = "Accepted"
"""The condition that shows whether the operator runs the current spec."""

RECONCILING = "Reconciling"
"""The condition that is True until the job has a result, or is suspended (kstatus: "In Progress")."""

NODES_NOT_PLACED = "NodesNotPlaced"
"""The reason while pods wait to be scheduled without a known problem, which is normal for some time."""

VALID_WITH_REMARKS = "ValidWithRemarks"
"""The reason of a valid spec that has fields without effect."""

NO_PROBLEM_KNOWN = "NoProblemKnown"
"""The reason while the ranks run and neither the agents nor the cluster reports a problem."""

WAITING = "Waiting"
"""The reason while the job waits for resources, a node, files or a report. It needs no action by a user."""

NO_RECENT_STEP = "NoRecentStep"
"""The reason while a rank completes no step for some minutes: it may evaluate, write a checkpoint, or hang."""

NO_STEP_SECONDS = 300.0
"""The condition has the reason NoRecentStep after this time without a completed step."""

_RESULTS = {Verdict.SUCCEEDED: "succeeded", Verdict.FAILED: "failed", Verdict.STOPPED: "was stopped"}


@dataclass(frozen=True)
class ConditionState:
    """A condition without its transition time, which depends on the previous status."""

    type: str
    is_true: bool
    reason: str
    message: str


def build_conditions(status_input: StatusInput, phase: str, message: str) -> tuple[Condition, ...]:
    """Build the conditions Accepted, Scheduled, Running, Reconciling, Stalled, Suspended, Complete, Failed.

    Reconciling is before Stalled, because kstatus takes the first of the two that is True.

    A transition time changes only with the condition's status. Complete and Failed become True only when no process of
    the job runs, so that the devices are free for the next job.
    """
    outcome = status_input.outcome
    states = (
        _build_accepted_condition(status_input),
        _build_scheduled_condition(status_input),
        _build_running_condition(status_input, phase, message),
        _build_reconciling_condition(status_input, phase),
        _build_stalled_condition(status_input, message),
        _build_suspended_condition(status_input),
        _build_final_condition("Complete", (Verdict.SUCCEEDED,), outcome, message),
        _build_final_condition("Failed", (Verdict.FAILED, Verdict.STOPPED), outcome, message),
    )
    generation = status_input.job.metadata.generation
    return tuple(make_condition(status_input.previous, state, generation, status_input.now) for state in states)


def make_condition(previous: Status, state: ConditionState, generation: int, now: float) -> Condition:
    """Build the condition at `now` (Unix seconds). It keeps its transition time if `previous` has the same status."""
    status = "True" if state.is_true else "False"
    before = next((entry for entry in previous.conditions if entry.type == state.type), None)
    since = before.last_transition_time if before is not None and before.status == status else ""
    return Condition(
        type=state.type,
        status=status,
        reason=state.reason,
        message=state.message,
        last_transition_time=since or format_timestamp(now),
        observed_generation=generation,
    )


def find_refusal_before_start(status_input: StatusInput) -> Problem | None:
    """Return the problem that prevents muster from creating pods; None once the job has started."""
    outcome = status_input.outcome
    return None if outcome.has_started or outcome.is_decided else status_input.facts.refusal


def _build_accepted_condition(status_input: StatusInput) -> ConditionState:
    refusal = find_refusal_before_start(status_input)
    if refusal is not None:
        return ConditionState(ACCEPTED, False, refusal.reason, truncate_message(refusal.message))
    facts = status_input.facts
    warnings = (*facts.warnings, *describe_source(status_input.outcome.source, facts.requested_source))
    if warnings:
        return ConditionState(
            ACCEPTED, True, VALID_WITH_REMARKS, truncate_message(f"The resource is valid; {'; '.join(warnings)}")
        )
    return ConditionState(ACCEPTED, True, "Valid", "The resource is valid")


def _build_scheduled_condition(status_input: StatusInput) -> ConditionState:
    outcome, nodes = status_input.outcome, status_input.facts.nodes
    if outcome.verdict is Verdict.SUSPENDED and outcome.is_idle:
        return ConditionState("Scheduled", False, SUSPENDED, "No node of the job is scheduled")
    release_message = status_input.release_message
    if release_message is not None:
        return ConditionState("Scheduled", False, GANG_RELEASED, truncate_message(release_message))
    unscheduled = tuple(node for node in nodes if not node.is_scheduled)
    # All nodes were scheduled before the start, even if some are lost now.
    if outcome.has_started or not unscheduled:
        text = "The node is scheduled" if len(nodes) == 1 else "All nodes are scheduled"
        return ConditionState("Scheduled", True, "AllNodesPlaced", text)
    problem = status_input.facts.problem
    if problem is not None:
        return ConditionState("Scheduled", False, problem.reason, truncate_message(problem.message))
    shared = group_problems(unscheduled, len(nodes))
    if shared:
        return ConditionState("Scheduled", False, shared[0].problem.reason, _join_sentences(shared))
    text = capitalize(
        describe_share(len(unscheduled), len(nodes), "node", "is not scheduled yet", "are not scheduled yet")
    )
    return ConditionState("Scheduled", False, NODES_NOT_PLACED, text)


def _build_running_condition(status_input: StatusInput, phase: str, message: str) -> ConditionState:
    if phase == "Running":
        return ConditionState("Running", True, phase, message)
    running = sum(view.state == RUNNING for view in status_input.views)
    text = (
        capitalize(describe_share(running, len(status_input.views), "rank", "runs", "run"))
        if running
        else "No rank runs"
    )
    return ConditionState("Running", False, phase, f"{text}: the job's phase is {phase}")


def _build_reconciling_condition(status_input: StatusInput, phase: str) -> ConditionState:
    """Build the condition that tells GitOps tools whether the job is still on its way to a result."""
    outcome, refusal = status_input.outcome, find_refusal_before_start(status_input)
    if refusal is not None:
        return ConditionState(RECONCILING, False, refusal.reason, "The job doesn't start")
    if outcome.is_decided and outcome.is_idle:
        return ConditionState(RECONCILING, False, phase, f"The job's phase is {phase}: nothing of it runs")
    return ConditionState(RECONCILING, True, phase, f"The job's phase is {phase}")


def _build_stalled_condition(status_input: StatusInput, message: str) -> ConditionState:
    outcome, refusal = status_input.outcome, find_refusal_before_start(status_input)
    if refusal is not None:
        return ConditionState("Stalled", True, refusal.reason, truncate_message(refusal.message))
    if outcome.verdict in (Verdict.FAILED, Verdict.STOPPED) and outcome.is_idle:
        return ConditionState("Stalled", True, outcome.reason, message)
    problem = status_input.facts.problem
    if problem is not None and problem.reason not in TRANSIENT_REASONS:
        return ConditionState("Stalled", True, problem.reason, truncate_message(problem.message))
    shared = status_input.shared_problems
    # After the job's end, only silent agents matter.
    lasting = tuple(entry for entry in shared if not entry.is_transient and _is_relevant(outcome, entry))
    if lasting:
        return ConditionState("Stalled", True, lasting[0].problem.reason, _join_sentences(lasting))
    if outcome.hang is not None and not outcome.is_decided:
        return ConditionState("Stalled", True, HUNG, truncate_message(_describe_hang_and_step(outcome.hang)))
    return ConditionState("Stalled", False, *_describe_not_stalled(status_input))


def _describe_hang_and_step(hang: Hang) -> str:
    sentence, steps = capitalize(describe_hang(hang)), [rank.step for rank in hang.ranks if rank.step is not None]
    return f"{sentence}; the last step was {min(steps)}" if steps else sentence


def _describe_not_stalled(status_input: StatusInput) -> tuple[str, str]:
    """Return the reason and the message of the condition Stalled while it is False."""
    if status_input.outcome.is_decided:
        return _describe_end(status_input.outcome)
    wait = _describe_wait(status_input)
    if wait:
        return WAITING, wait
    last_step = _find_oldest_step(status_input)
    if last_step is not None and status_input.now >= last_step[0] + NO_STEP_SECONDS:
        highest_step_at, step = last_step
        text = f"At least one rank has completed no step since {format_timestamp(highest_step_at)}"
        return NO_RECENT_STEP, f"{text} (its last one was step {step})"
    return NO_PROBLEM_KNOWN, "No problem is known"


def _describe_end(outcome: Outcome) -> tuple[str, str]:
    if outcome.verdict is Verdict.SUSPENDED:
        return (SUSPENDED, "The job is suspended") if outcome.is_idle else (SUSPENDING, "The job is being suspended")
    if outcome.verdict is Verdict.RESTARTING:
        return RESTARTING, "muster restarts the ranks"
    if outcome.verdict is Verdict.SUCCEEDED and outcome.is_idle:
        return "Complete", "The job succeeded"
    return STOPPING, "muster is stopping the rest of the job"


def _describe_wait(status_input: StatusInput) -> str:
    """Describe what the job waits for; "" if it doesn't wait."""
    nodes, shared = status_input.facts.nodes, status_input.shared_problems
    if status_input.facts.problem is not None:
        return status_input.facts.problem.message
    if shared:
        return "; ".join(entry.sentence for entry in shared)
    if not status_input.outcome.has_started:
        placed, ready = sum(node.is_scheduled for node in nodes), sum(node.is_ready for node in nodes)
        return f"Scheduled nodes: {placed} of {len(nodes)}; ready: {ready} of {len(nodes)}"
    unknown = any(view.state == UNKNOWN and view.reason != NOT_REPORTED for view in status_input.views)
    if unknown or any(view.state == STARTING for view in status_input.views):
        running = sum(view.state == RUNNING for view in status_input.views)
        return f"Ranks known to run: {running} of {len(status_input.views)}"
    return ""


def _find_oldest_step(status_input: StatusInput) -> tuple[float, int] | None:
    """Return the time and the number of the last step, for the rank whose last step is oldest."""
    # Without a collector the step comes from a log, which contains it only occasionally.
    if not status_input.job.spec.traits.has_collector:
        return None
    running = (view.facts for view in select_ranks_with_steps(status_input.views) if view.state == RUNNING)
    stepping = [facts for facts in running if facts is not None and facts.first_step_at is not None]
    steps = ((facts.highest_step_at, facts.report.step or 0) for facts in stepping if facts.highest_step_at is not None)
    return min(steps, default=None)


def _is_relevant(outcome: Outcome, shared: SharedProblem) -> bool:
    return not outcome.is_decided or (not outcome.is_idle and shared.problem.reason == NODE_SILENT)


def _join_sentences(shared: tuple[SharedProblem, ...]) -> str:
    return truncate_message("; ".join(entry.sentence for entry in shared))


def _build_suspended_condition(status_input: StatusInput) -> ConditionState:
    outcome, previous = status_input.outcome, status_input.previous
    if outcome.verdict is Verdict.SUSPENDED:
        if outcome.is_idle:
            return ConditionState(SUSPENDED, True, SUSPENDED, "Nothing of the job runs until spec.suspend is false")
        return ConditionState(SUSPENDED, False, SUSPENDING, "muster stops the ranks and deletes their pods")
    before = next((entry for entry in previous.conditions if entry.type == SUSPENDED), None)
    if previous.is_suspended or (before is not None and before.reason == RESUMED):
        return ConditionState(SUSPENDED, False, RESUMED, "The job was suspended and has been resumed")
    return ConditionState(SUSPENDED, False, "NotSuspended", "spec.suspend is not true")


def _build_final_condition(
    condition_type: str, verdicts: tuple[Verdict, ...], outcome: Outcome, message: str
) -> ConditionState:
    if outcome.verdict in (Verdict.UNDECIDED, Verdict.SUSPENDED, Verdict.RESTARTING):
        return ConditionState(condition_type, False, "NotOver", "The job has not ended")
    if outcome.verdict not in verdicts:
        return ConditionState(condition_type, False, f"Not{condition_type}", f"The job {_RESULTS[outcome.verdict]}")
    if not outcome.is_idle:
        return ConditionState(condition_type, False, STOPPING, "muster is stopping the remaining ranks")
    return ConditionState(condition_type, True, outcome.reason, message)

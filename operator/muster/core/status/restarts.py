"""The status' record of restarts: which attempts ended, why, and how much time each restart cost."""

from muster.api.spec.failure_policy import MAX_HISTORY
from muster.api.status.restarts import (
    MAX_COUNT,
    MAX_MEMBERS_CHARS,
    MAX_NODE_NAME_CHARS,
    MAX_REASON_CHARS,
    NO_RESTARTS,
    RestartRecord,
    Restarts,
)
from muster.api.timestamps import format_timestamp_milliseconds, parse_timestamp, parse_untrusted_timestamp
from muster.core.disruption import will_end
from muster.core.facts import NodeFacts, ProcessFacts, ProcessState
from muster.core.failure import rank_output
from muster.core.failure.ends import STRAGGLER
from muster.core.failure.failure import Failure, find_failure
from muster.core.failure.secondary_failures import is_secondary
from muster.core.membership.avoided_nodes import find_avoided_nodes
from muster.core.membership.members import find_node
from muster.core.outcome import Verdict
from muster.core.restarts import RESIZED, RESTART_REQUESTED, Restart, RestartBudget
from muster.core.status.attempt_steps import find_attempt_steps
from muster.core.status.failure_sentence import describe_job_failure
from muster.core.status.views import RUNNING, SUCCEEDED, RankView, StatusInput

REQUEST_MESSAGE = "A user has requested a restart"
"""The message of a restart without a failure."""

_MAX_MESSAGE_CHARS = 300
"""The maximum length of each of up to 32 messages in a status."""


def describe_request(restart: Restart | None) -> str:
    """Describe why the ranks stop without a failure."""
    if restart is None or not restart.resize_reason:
        return REQUEST_MESSAGE
    return f"The number of nodes changes: {restart.resize_reason}"


def build_restarts(status_input: StatusInput) -> Restarts | None:
    """Return the record of the job's restarts, with a new restart once an attempt is over and another follows."""
    outcome, before = status_input.outcome, status_input.previous.restarts
    if outcome.is_restart_due and outcome.restart:
        return _add_restart(status_input, before or NO_RESTARTS, outcome.restart)
    if before is None:
        return None
    record = _shorten_backoff(status_input, _add_recovery_time(status_input, before))
    record = _add_steps_lost(status_input, record)
    has_started = outcome.has_started and outcome.verdict is not Verdict.RESTARTING
    return record.model_copy(update={"is_pending": False}) if has_started or status_input.starts_ranks else record


def _shorten_backoff(status_input: StatusInput, before: Restarts) -> Restarts:
    """Record that the next attempt may start earlier, because a user has requested a restart."""
    last = status_input.outcome.last_restart
    if last is None or before.not_before is None or parse_untrusted_timestamp(before.not_before) <= last.not_before:
        return before
    return before.model_copy(update={"not_before": format_timestamp_milliseconds(last.not_before)})


def _add_restart(status_input: StatusInput, before: Restarts, restart: Restart) -> Restarts:
    nodes = status_input.facts.nodes
    replacement = max(before.replacement, *(node.process.replacement + 1 for node in nodes))
    history = _limit_history((*before.history, _make_record(status_input, restart)))
    return Restarts(
        total=min(MAX_COUNT, before.total + 1),
        failures=min(MAX_COUNT, before.failures + (restart.counts_as is RestartBudget.FAILURE)),
        disruptions=min(MAX_COUNT, before.disruptions + (restart.counts_as is RestartBudget.DISRUPTION)),
        replacement=min(MAX_COUNT, replacement),
        is_pending=True,
        not_before=format_timestamp_milliseconds(status_input.now + restart.backoff_seconds),
        history=history,
        avoided_nodes=find_avoided_nodes(history),
    )


def _make_record(status_input: StatusInput, restart: Restart) -> RestartRecord:
    nodes, policy = status_input.facts.nodes, status_input.job.spec.failure_policy
    in_place = policy is None or policy.restart_scope == "InPlace"
    failure = status_input.outcome.failure
    straggler_node = failure.first.node if failure is not None and failure.reason == STRAGGLER else None
    replaced = sum(_needs_new_pod(node) or node.node == straggler_node for node in nodes)
    record = RestartRecord(
        attempt=status_input.outcome.attempt,
        reason=RESIZED if restart.resize_reason else RESTART_REQUESTED,
        message=_describe_planned_restart(status_input, restart),
        counts_as=restart.counts_as.value,
        members=_record_members(status_input),
        replaced_pods=replaced if in_place else len(nodes),
        at=format_timestamp_milliseconds(restart.failed_at),
        script_step=find_attempt_steps(status_input).script_step,
    )
    return record if failure is None else record.model_copy(update=_describe_failure(status_input, failure))


def _describe_planned_restart(status_input: StatusInput, restart: Restart) -> str:
    """Describe why muster stopped the ranks, and which rank failed meanwhile."""
    text, job = describe_request(restart), status_input.job
    failure = find_failure(job, status_input.facts, has_started=True)
    if failure is None or is_secondary(failure.first):
        return text
    sentence = rank_output.sanitize_line(
        describe_job_failure(job, failure, status_input.views), limit=_MAX_MESSAGE_CHARS
    )
    return f"{text}; while the ranks stopped: {sentence}"


def _record_members(status_input: StatusInput) -> str | None:
    members = status_input.previous.members
    return members if members is None or len(members) <= MAX_MEMBERS_CHARS else None


def _describe_failure(status_input: StatusInput, failure: Failure) -> dict[str, object]:
    """Return the fields of a record that describe the failure."""
    first, sentence = failure.first, describe_job_failure(status_input.job, failure, status_input.views)
    return {
        "reason": failure.reason[:MAX_REASON_CHARS],
        "message": rank_output.sanitize_line(sentence, limit=_MAX_MESSAGE_CHARS),
        "rank": first.rank,
        "node": first.node,
        "node_name": _get_node_name(find_node(status_input.facts, first.node).process),
        "step": first.step or None,
    }


def _needs_new_pod(node: NodeFacts) -> bool:
    """Whether the node's pod has ended, or something other than muster ends it."""
    agent = node.current_agent
    is_stopped = will_end(node) or (agent is not None and agent.terminated_at is not None)
    return is_stopped or node.process.state is not ProcessState.RUNNING


def _get_node_name(process: ProcessFacts) -> str | None:
    return None if process.kube_node is None else process.kube_node[:MAX_NODE_NAME_CHARS]


def _limit_history(history: tuple[RestartRecord, ...]) -> tuple[RestartRecord, ...]:
    """Limit the history to `MAX_HISTORY` records. First drop the oldest record that counts against no budget."""
    if len(history) <= MAX_HISTORY:
        return history
    uncounted = (index for index, record in enumerate(history[:-1]) if record.counts_as == RestartBudget.NOTHING)
    drop_index = next(uncounted, 0)
    return (*history[:drop_index], *history[drop_index + 1 :])


def _add_recovery_time(status_input: StatusInput, before: Restarts) -> Restarts:
    """Add the time that the last restart cost, once all ranks run again."""
    last = status_input.previous.last_restart
    if last is None or last.seconds_lost is not None:
        return before
    try:
        failed_at = parse_timestamp(last.at)
    except ValueError:
        return before  # a user has edited the time
    if not all(_has_run_since(view, failed_at) for view in status_input.views):
        return before
    starts = (view.facts.started_at for view in status_input.views if view.facts is not None)
    running_since = max((at for at in starts if at is not None), default=status_input.now)
    seconds = round(max(0.0, running_since - failed_at), 3)
    return _replace_last(before, last.model_copy(update={"seconds_lost": seconds}))


def _has_run_since(view: RankView, failed_at: float) -> bool:
    """Whether the rank runs or succeeded, or has failed again: the first report of a short attempt may show its end."""
    if view.state in (RUNNING, SUCCEEDED):
        return True
    started_at = view.facts.started_at if view.facts is not None else None
    return started_at is not None and started_at > failed_at


def _add_steps_lost(status_input: StatusInput, record: Restarts) -> Restarts:
    """Add the steps that the last failure cost, once the script of the current attempt has reported a step."""
    if status_input.previous.last_restart is None or not record.history or not status_input.outcome.has_started:
        return record
    last, resumed_at = record.history[-1], find_attempt_steps(status_input).resumed_at_step
    if last.script_step is None or resumed_at is None:
        return record
    return _replace_last(record, last.model_copy(update={"steps_lost": max(0, last.script_step - resumed_at)}))


def _replace_last(restarts: Restarts, last: RestartRecord) -> Restarts:
    return restarts.model_copy(update={"history": (*restarts.history[:-1], last)})

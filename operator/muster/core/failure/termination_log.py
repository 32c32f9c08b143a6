"""Read the agent's result from its pod's termination log, and use it like a report."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace

from muster.api.document import JSON
from muster.api.spec.job import Job
from muster.core.facts import AgentFacts, LauncherFacts, NodeFacts, ProcessState, RankFacts
from muster.core.termination_message import TerminationMessage
from muster.core.world import get_procs_per_node
from muster_worker.contract.error_text import MAX_ERROR_CHARS, RankError
from muster_worker.contract.schema import (
    MAX_LAST_LINES,
    MAX_LINE_CHARS,
    AgentPhase,
    AgentProblem,
    LauncherEnd,
    RankReport,
    RankState,
    Report,
)

_MAX_TEXT_CHARS = 64
_WORD = re.compile(rf"[A-Za-z][A-Za-z0-9]{{0,{_MAX_TEXT_CHARS - 1}}}")


def read_termination_message(text: str) -> TerminationMessage | None:
    """Parse the agent's termination message; None for other text, because the user's code can also write this file."""
    try:
        value: JSON = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    uid, node, replacement, attempt = (
        value.get("jobUid"),
        *(_read_count(value, key) for key in ("node", "replacement", "attempt")),
    )
    if not isinstance(uid, str) or node is None or replacement is None or attempt is None:
        return None
    return TerminationMessage(
        job_uid=uid,
        node=node,
        replacement=replacement,
        attempt=attempt,
        ranks=_read_count(value, "ranks") or 0,
        succeeded=_read_count(value, "succeeded") or 0,
        terminated=value.get("terminated") is True,
        problem=_read_problem(value),
        launcher=_read_launcher(value.get("launcher")),
        first_failure=_read_first_failure(value.get("firstFailure")),
    )


def add_termination_message(job: Job, node: NodeFacts) -> NodeFacts:
    """Return the node with facts from the termination log, if the agent's last report was lost."""
    termination = node.process.termination_message
    if termination is None or node.process.state is not ProcessState.EXITED or node.has_ended:
        return node
    if (termination.job_uid, termination.node, termination.replacement) != (
        job.metadata.uid,
        node.node,
        node.process.replacement,
    ):
        return node
    # No attempt had begun, so the message has no more information than the agent's exit code.
    if termination.attempt == 0 and termination.problem is None:
        return node
    return replace(node, agent=_make_agent_facts(job, node, termination))


def _make_agent_facts(job: Job, node: NodeFacts, termination: TerminationMessage) -> AgentFacts:
    agent, process = node.current_agent, node.process
    last_report_at = agent.last_report_at if agent is not None else (process.started_at or 0.0)
    at = process.ended_at if process.ended_at is not None else last_report_at
    ranks = _complete_ranks(job, node, termination, at)
    report = Report(
        job_uid=termination.job_uid,
        node=termination.node,
        replacement=termination.replacement,
        attempt=termination.attempt,
        sequence=agent.report.sequence if agent is not None else 0,
        phase=AgentPhase.ENDED,
        ranks=tuple(rank.report for rank in ranks),
        launcher=termination.launcher,
        problem=termination.problem,
    )
    terminated_at = agent.terminated_at if agent is not None else None
    if terminated_at is None and termination.terminated:
        terminated_at = at
    return AgentFacts(
        report=report,
        last_report_at=max(last_report_at, at),
        ranks=ranks,
        metrics=agent.metrics if agent is not None else (),
        launcher=_build_launcher_facts(agent, termination, at),
        terminated_at=terminated_at,
    )


def _build_launcher_facts(agent: AgentFacts | None, termination: TerminationMessage, at: float) -> LauncherFacts | None:
    if agent is not None and agent.launcher is not None:
        return agent.launcher
    return LauncherFacts(termination.launcher, at) if termination.launcher is not None else None


def _complete_ranks(job: Job, node: NodeFacts, termination: TerminationMessage, at: float) -> tuple[RankFacts, ...]:
    reported_ranks = node.ranks
    ranks = {facts.report.rank: facts for facts in reported_ranks}
    procs, failure = get_procs_per_node(job), termination.first_failure
    # Launchers number the ranks of each node consecutively.
    for local in range(min(termination.ranks, procs) if not reported_ranks else 0):
        number = node.node_rank * procs + local
        ranks[number] = RankFacts(RankReport(number, local, RankState.RUNNING))
    if failure is not None and (failure.rank not in ranks or not ranks[failure.rank].has_exited):
        local = max(0, failure.rank - node.node_rank * procs)
        error_at = None if failure.error is None else at
        ranks[failure.rank] = RankFacts(replace(failure, local_rank=local), ended_at=at, error_at=error_at)
    unfinished = [number for number, facts in ranks.items() if not facts.has_exited]
    known_successes = sum(facts.report.exit_code == 0 and not facts.report.stopped for facts in ranks.values())
    # The message has only the number of successes, which identifies no rank unless all remaining ranks succeeded.
    if unfinished and termination.succeeded - known_successes == len(unfinished):
        for number in unfinished:
            report = replace(ranks[number].report, state=RankState.EXITED, exit_code=0)
            ranks[number] = replace(ranks[number], report=report, ended_at=at)
    return tuple(ranks[number] for number in sorted(ranks))


def _read_problem(value: Mapping[str, JSON]) -> AgentProblem | None:
    message = value.get("problem")
    if not isinstance(message, str):
        return None
    return AgentProblem(_read_word(value.get("problemReason")) or "NodeProblem", message[:MAX_LINE_CHARS])


def _read_launcher(value: JSON) -> LauncherEnd | None:
    if not isinstance(value, dict):
        return None
    return LauncherEnd(
        name=_read_short_text(value.get("name")) or "launcher",
        age=0.0,
        exit_code=_read_count(value, "exitCode"),
        signal=_read_count(value, "signal"),
        reason=_read_word(value.get("reason")),
        last_lines=_read_last_lines(value.get("lastLines")),
        stopped=value.get("stopped") is True,
    )


def _read_first_failure(value: JSON) -> RankReport | None:
    rank = _read_count(value, "rank") if isinstance(value, dict) else None
    if not isinstance(value, dict) or rank is None:
        return None
    return RankReport(
        rank=rank,
        local_rank=0,
        state=RankState.EXITED,
        exit_code=_read_count(value, "exitCode"),
        signal=_read_count(value, "signal"),
        stopped=value.get("stopped") is True,
        reason=_read_word(value.get("reason")),
        last_lines=_read_last_lines(value.get("lastLines")),
        step=_read_count(value, "step"),
        error=_read_error(value.get("error")),
    )


def _read_error(value: JSON) -> RankError | None:
    return RankError(value[:MAX_ERROR_CHARS], 0.0, printed=True) if isinstance(value, str) and value else None


def _read_count(value: Mapping[str, JSON], key: str) -> int | None:
    result = value.get(key)
    return result if isinstance(result, int) and not isinstance(result, bool) and 0 <= result < 2**31 else None


def _read_short_text(value: JSON) -> str | None:
    return value[:_MAX_TEXT_CHARS] if isinstance(value, str) and value else None


def _read_word(value: JSON) -> str | None:
    # The status contains the reason unchanged, and terminals would execute control characters.
    return value if isinstance(value, str) and _WORD.fullmatch(value) is not None else None


def _read_last_lines(value: JSON) -> tuple[str, ...]:
    lines = value if isinstance(value, list) else []
    return tuple(line[:MAX_LINE_CHARS] for line in lines if isinstance(line, str))[-MAX_LAST_LINES:]

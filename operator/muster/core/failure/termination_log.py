"""What an agent left in its pod's termination log: read, and told as if the agent had reported it."""

import json
from collections.abc import Mapping
from dataclasses import replace

from muster.api.document import JSON
from muster.api.spec.job import Job
from muster.core.facts import AgentFacts, LauncherFacts, NodeFacts, ProcessState, RankFacts, TerminationMessage
from muster.core.world import procs_per_node
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

_MAX_WORD = 64


def read_termination_message(text: str) -> TerminationMessage | None:
    """The summary that `text` holds; None for anything else: who runs in a pod may write there what he likes."""
    try:
        value: JSON = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    uid, node, replacement, attempt = (
        value.get("jobUid"),
        *(_count(value, key) for key in ("node", "replacement", "attempt")),
    )
    if not isinstance(uid, str) or node is None or replacement is None or attempt is None:
        return None
    return TerminationMessage(
        job_uid=uid,
        node=node,
        replacement=replacement,
        attempt=attempt,
        ranks=_count(value, "ranks") or 0,
        succeeded=_count(value, "succeeded") or 0,
        terminated=value.get("terminated") is True,
        problem=_problem(value),
        launcher=_launcher(value.get("launcher")),
        first_failure=_first_failure(value.get("firstFailure")),
    )


def with_termination_message(job: Job, node: NodeFacts) -> NodeFacts:
    """The node as its agent's last report would have told of it, had anybody heard that."""
    word = node.process.termination_message
    if word is None or node.process.state is not ProcessState.EXITED or node.has_ended:
        return node
    if (word.job_uid, word.node, word.replacement) != (job.metadata.uid, node.node, node.process.replacement):
        return node
    # Nothing had begun: that the agent has left says it all.
    if word.attempt == 0 and word.problem is None:
        return node
    return replace(node, agent=_agent(job, node, word))


def _agent(job: Job, node: NodeFacts, word: TerminationMessage) -> AgentFacts:
    agent, process = node.current_agent, node.process
    heard_at = agent.heard_at if agent is not None else (process.started_at or 0.0)
    at = process.ended_at if process.ended_at is not None else heard_at
    before = agent.ranks if agent is not None else ()
    ranks = _ranks(job, before, word, at)
    report = Report(
        job_uid=word.job_uid,
        node=word.node,
        replacement=word.replacement,
        attempt=word.attempt,
        sequence=agent.report.sequence if agent is not None else 0,
        phase=AgentPhase.ENDED,
        ranks=tuple(rank.report for rank in ranks),
        launcher=word.launcher,
        problem=word.problem,
    )
    terminated_at = agent.terminated_at if agent is not None else None
    if terminated_at is None and word.terminated:
        terminated_at = at
    return AgentFacts(
        report=report,
        heard_at=max(heard_at, at),
        ranks=ranks,
        metrics=agent.metrics if agent is not None else (),
        launcher=_launcher_facts(agent, word, at),
        terminated_at=terminated_at,
    )


def _launcher_facts(agent: AgentFacts | None, word: TerminationMessage, at: float) -> LauncherFacts | None:
    if agent is not None and agent.launcher is not None:
        return agent.launcher
    return LauncherFacts(word.launcher, at) if word.launcher is not None else None


def _ranks(job: Job, known: tuple[RankFacts, ...], word: TerminationMessage, at: float) -> tuple[RankFacts, ...]:
    ranks = {facts.report.rank: facts for facts in known}
    procs, failure = procs_per_node(job), word.first_failure
    # Launchers number a node's ranks from its first one on.
    for local in range(min(word.ranks, procs) if not known else 0):
        number = word.node * procs + local
        ranks[number] = RankFacts(RankReport(number, local, RankState.RUNNING))
    if failure is not None and (failure.rank not in ranks or not ranks[failure.rank].has_exited):
        local = max(0, failure.rank - word.node * procs)
        ranks[failure.rank] = RankFacts(replace(failure, local_rank=local), ended_at=at)
    open_ends = [number for number, facts in ranks.items() if not facts.has_exited]
    told_good = sum(facts.report.exit_code == 0 and not facts.report.stopped for facts in ranks.values())
    # Which of several succeeded isn't said; that all did, is.
    if open_ends and word.succeeded - told_good == len(open_ends):
        for number in open_ends:
            report = replace(ranks[number].report, state=RankState.EXITED, exit_code=0)
            ranks[number] = replace(ranks[number], report=report, ended_at=at)
    return tuple(ranks[number] for number in sorted(ranks))


def _problem(value: Mapping[str, JSON]) -> AgentProblem | None:
    message = value.get("problem")
    if not isinstance(message, str):
        return None
    return AgentProblem(_word(value.get("problemReason")) or "NodeProblem", message[:MAX_LINE_CHARS])


def _launcher(value: JSON) -> LauncherEnd | None:
    if not isinstance(value, dict):
        return None
    return LauncherEnd(
        name=_word(value.get("name")) or "launcher",
        age=0.0,
        exit_code=_count(value, "exitCode"),
        signal=_count(value, "signal"),
        reason=_word(value.get("reason")),
        last_lines=_lines(value.get("lastLines")),
        stopped=value.get("stopped") is True,
    )


def _first_failure(value: JSON) -> RankReport | None:
    rank = _count(value, "rank") if isinstance(value, dict) else None
    if not isinstance(value, dict) or rank is None:
        return None
    return RankReport(
        rank=rank,
        local_rank=0,
        state=RankState.EXITED,
        exit_code=_count(value, "exitCode"),
        signal=_count(value, "signal"),
        stopped=value.get("stopped") is True,
        reason=_word(value.get("reason")),
        last_lines=_lines(value.get("lastLines")),
        step=_count(value, "step"),
    )


def _count(value: Mapping[str, JSON], key: str) -> int | None:
    result = value.get(key)
    return result if isinstance(result, int) and not isinstance(result, bool) and 0 <= result < 2**31 else None


def _word(value: JSON) -> str | None:
    return value[:_MAX_WORD] if isinstance(value, str) and value else None


def _lines(value: JSON) -> tuple[str, ...]:
    lines = value if isinstance(value, list) else []
    return tuple(line[:MAX_LINE_CHARS] for line in lines if isinstance(line, str))[-MAX_LAST_LINES:]

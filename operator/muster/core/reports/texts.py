"""Measure the texts in agents' facts, and drop them to save memory.

A rank's report has up to eight output lines of 512 characters, which take up to 16 KiB. Its state, codes and times
take a few bytes.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace

from muster.core.facts import AgentFacts
from muster_worker.contract.schema import RankReport

MAX_TRUNCATED_CHARS = 64
"""The maximum length of reasons, activities and phases after `drop_texts`."""


def measure_texts(agent: AgentFacts) -> int:
    """Return the memory that the texts of an agent's facts take."""
    return sum(map(sys.getsizeof, _list_texts(agent)))


def drop_texts(agent: AgentFacts) -> AgentFacts:
    """Return the facts without the ranks' last lines, collectives and metrics, which only users read."""
    launcher = agent.launcher
    if launcher is not None:
        launcher = replace(launcher, end=replace(launcher.end, last_lines=()))
    return replace(
        agent,
        report=replace(
            agent.report,
            ranks=tuple(map(_drop_rank_texts, agent.report.ranks)),
            metrics=(),
            launcher=None if launcher is None else launcher.end,
        ),
        ranks=tuple(replace(facts, report=_drop_rank_texts(facts.report)) for facts in agent.ranks),
        metrics=(),
        launcher=launcher,
    )


def _list_texts(agent: AgentFacts) -> Iterator[str]:
    # Most rank reports are the same objects in both lists: count each object once.
    for rank in {
        id(report): report for report in (*agent.report.ranks, *(facts.report for facts in agent.ranks))
    }.values():
        yield from rank.last_lines
        yield from filter(None, (rank.reason, rank.no_step_reason, rank.activity, rank.phase))
        for entry in rank.collectives:
            yield from filter(None, (entry.group, entry.operation, entry.pending_operation))
    for metric in agent.metrics:
        yield metric.value.name
    if agent.launcher is not None:
        yield from agent.launcher.end.last_lines


def _drop_rank_texts(rank: RankReport) -> RankReport:
    return replace(
        rank,
        last_lines=(),
        collectives=(),
        reason=_truncate(rank.reason),
        no_step_reason=_truncate(rank.no_step_reason),
        activity=_truncate(rank.activity),
        phase=_truncate(rank.phase),
    )


def _truncate(text: str | None) -> str | None:
    return text if text is None else text[:MAX_TRUNCATED_CHARS]

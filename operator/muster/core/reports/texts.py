"""Measure the memory of agents' facts, and drop texts to save memory.

A rank's report has up to eight output lines of 512 characters, which take up to 16 KiB. Its state, codes and times
take less than a kibibyte.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace

from muster.core.facts import AgentFacts
from muster_worker.contract.schema import RankReport

MAX_TRUNCATED_CHARS = 64
"""The maximum length of reasons, activities, phases and errors after `drop_texts`."""


MAX_TRUNCATED_BYTES = sys.getsizeof("\U0001f600" * MAX_TRUNCATED_CHARS)

AGENT_BYTES = 2500
RANK_BYTES = 900
COLLECTIVE_BYTES = 300
METRIC_BYTES = 300
"""The memory of the facts about an agent, a rank, a collective and a metric, without their texts (CPython 3.11)."""


def measure_facts(agent: AgentFacts) -> int:
    """Return the memory that an agent's facts take at least, also after `drop_texts`."""
    report, figures = agent.report, agent.report.figures
    texts = [report.interface_why, None if figures is None else figures.problem]
    texts += [] if report.problem is None else [report.problem.message]
    texts += [text for link in report.links for text in (link.interface, link.address)]
    words = (word for facts in agent.ranks for word in _list_words(facts.report))
    return (
        AGENT_BYTES
        + RANK_BYTES * len(agent.ranks)
        + sum(map(sys.getsizeof, filter(None, texts)))
        + sum(min(MAX_TRUNCATED_BYTES, sys.getsizeof(word)) for word in words)
    )


def measure_texts(agent: AgentFacts) -> int:
    """Return the memory that the texts of an agent's facts take, and what else `drop_texts` drops."""
    collectives = sum(len(rank.collectives) for rank in _list_rank_reports(agent))
    return (
        sum(map(sys.getsizeof, _list_texts(agent))) + COLLECTIVE_BYTES * collectives + METRIC_BYTES * len(agent.metrics)
    )


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
    for rank in _list_rank_reports(agent):
        yield from rank.last_lines
        yield from _list_words(rank)
        for entry in rank.collectives:
            yield from filter(None, (entry.group, entry.operation, entry.pending_operation))
    for metric in agent.metrics:
        yield metric.value.name
    if agent.launcher is not None:
        yield from agent.launcher.end.last_lines


def _list_rank_reports(agent: AgentFacts) -> Iterable[RankReport]:
    # Most rank reports are the same objects in both lists: count each object once.
    return {id(report): report for report in (*agent.report.ranks, *(facts.report for facts in agent.ranks))}.values()


def _list_words(rank: RankReport) -> Iterator[str]:
    error = None if rank.error is None else rank.error.text
    yield from filter(None, (rank.reason, rank.no_step_reason, rank.activity, rank.phase, error))


def _drop_rank_texts(rank: RankReport) -> RankReport:
    return replace(
        rank,
        last_lines=(),
        collectives=(),
        reason=_truncate(rank.reason),
        no_step_reason=_truncate(rank.no_step_reason),
        activity=_truncate(rank.activity),
        phase=_truncate(rank.phase),
        error=rank.error and replace(rank.error, text=rank.error.text[:MAX_TRUNCATED_CHARS]),
    )


def _truncate(text: str | None) -> str | None:
    return text if text is None else text[:MAX_TRUNCATED_CHARS]

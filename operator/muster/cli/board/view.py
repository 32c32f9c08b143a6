"""The content of the board as rows, from the job's status and its observed facts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from muster.api.spec.limits import MAX_NODES_WITH_SPARES
from muster.api.status.rules import MAX_RANKS
from muster.api.status.status import RankDetail, Status
from muster.core.membership.member_text import parse_members
from muster.core.status.steps_behind import compare_step_counts, read_step_count

if TYPE_CHECKING:
    from muster.core.facts import JobFacts
    from muster_worker.contract.schema import RankReport

_RANGE = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7}))?")


@dataclass(frozen=True)
class View:
    """The state of the job `name` at one time. `last_lines` has each rank's last line."""

    name: str
    procs_per_node: int
    status: Status
    elapsed_seconds: float
    facts: JobFacts | None = None
    last_lines: Mapping[int, str] = field(default_factory=dict)
    notice: str = ""


@dataclass(frozen=True)
class RankRow:
    """A rank as a line of the board. `behind` is the number of steps that a running rank is behind the fastest.

    `memory` is its resident memory in bytes; None for a rank that doesn't run.
    """

    rank: int
    node: str
    state: str
    pid: int | None
    memory: int | None
    step: int | None
    behind: int | None
    note: str


@dataclass(frozen=True)
class NodeRow:
    """A node as a line of the board: how many of its ranks are in each state."""

    node: str
    states: Mapping[str, int]
    step: int | None
    behind: int | None


def make_rank_rows(view: View) -> tuple[RankRow, ...]:
    """Return a row for every rank, in order."""
    states = read_rank_states(view.status)
    reports = get_rank_reports(view.facts)
    steps = {rank: report.step for rank, report in reports.items()} if view.facts else read_rank_steps(view.status)
    if not any(steps.values()):
        # all ranks at step 0: the training does not use torch optimizers
        steps = {}
    behind = _compute_steps_behind(view, states) if view.facts else find_slowest_behind(view.status, steps)
    notes = _make_rank_notes(view)
    members = read_members(view.status)
    rows = []
    for rank in range(read_world(view.status)):
        report = reports.get(rank)
        rows.append(
            RankRow(
                rank=rank,
                node=f"{view.name}-{find_node(members, rank // view.procs_per_node)}",
                state=states.get(rank, "Unknown"),
                pid=report.pid if report else None,
                memory=report.rss_bytes if report else None,
                step=steps.get(rank),
                behind=behind.get(rank),
                note=notes.get(rank, ""),
            )
        )
    return tuple(rows)


def read_members(status: Status) -> Sequence[int]:
    """Return the nodes of the attempt in the order of their node ranks; empty if the status has no such list."""
    return parse_members(status.members or "", MAX_NODES_WITH_SPARES) or ()


def find_node(members: Sequence[int], node_rank: int) -> int:
    """Return the node with this node rank: the same number, unless the status lists the attempt's members."""
    return members[node_rank] if node_rank < len(members) else node_rank


def make_node_rows(rows: tuple[RankRow, ...]) -> tuple[NodeRow, ...]:
    """Summarize the rows by node, for jobs with more ranks than fit on a screen."""
    grouped: dict[str, list[RankRow]] = {}
    for row in rows:
        grouped.setdefault(row.node, []).append(row)
    result = []
    for node, members in grouped.items():
        states: dict[str, int] = {}
        for row in members:
            states[row.state] = states.get(row.state, 0) + 1
        steps = [row.step for row in members if row.step is not None]
        behind = [row.behind for row in members if row.behind is not None]
        result.append(NodeRow(node, states, min(steps, default=None), max(behind, default=None)))
    return tuple(result)


def read_rank_states(status: Status) -> dict[int, str]:
    """Return each rank's state, from the ranges in the status."""
    return {rank: state for ranks, state in read_state_ranges(status) for rank in ranks}


def read_state_ranges(status: Status) -> Iterator[tuple[range, str]]:
    """Yield consecutive ranks and their state, of at most MAX_RANKS ranks: a user may have written billions."""
    count = 0
    for entry in status.ranks.by_state if status.ranks is not None else ():
        for ranks in _read_ranges(entry.ranks):
            count += len(ranks)
            if count > MAX_RANKS:
                return
            yield ranks, entry.state


def read_rank_steps(status: Status) -> dict[int, int | None]:
    """Return the steps of the slowest ranks, from the ranges in the status."""
    if status.ranks is None:
        return {}
    entries = ((ranks, entry.step) for entry in status.ranks.by_step for ranks in _read_ranges(entry.ranks))
    return dict(islice(((rank, step) for ranks, step in entries for rank in ranks), MAX_RANKS))


def find_slowest_behind(status: Status, steps: Mapping[int, int | None]) -> Mapping[int, int]:
    """Return how many steps the slowest rank is behind; the status has no times for the steps of other ranks."""
    slowest = status.progress.slowest_rank if status.progress else None
    step = steps.get(slowest) if slowest is not None else None
    furthest = max((step for step in steps.values() if step is not None), default=0)
    return {slowest: furthest - step} if slowest is not None and step is not None and furthest > step else {}


def _read_ranges(ranges: str) -> Iterator[range]:
    for part in ranges.split(","):
        # a truncated list ends with an ellipsis
        ends = _RANGE.fullmatch(part)
        if ends is not None:
            yield range(int(ends[1]), int(ends[2] or ends[1]) + 1)


def read_world(status: Status) -> int:
    """Return the number of ranks, at most MAX_RANKS: a user may have edited it."""
    return min(max(status.ranks.world, 0), MAX_RANKS) if status.ranks else 0


def get_rank_reports(facts: JobFacts | None) -> dict[int, RankReport]:
    """Return the newest report about each rank."""
    nodes = facts.nodes if facts else ()
    return {rank.report.rank: rank.report for node in nodes if node.agent for rank in node.agent.ranks}


def _compute_steps_behind(view: View, states: Mapping[int, str]) -> Mapping[int, int]:
    pace = view.status.progress.steps_per_second if view.status.progress else None
    agents = [node.agent for node in view.facts.nodes if node.agent] if view.facts else []
    counts = (read_step_count(rank, agent.last_report_at) for agent in agents for rank in agent.ranks)
    running = (count for count in counts if count is not None and states.get(count.rank) == "Running")
    return compare_step_counts(running, pace)


def _make_rank_notes(view: View) -> dict[int, str]:
    """Return the note of each rank: how it ended, else its metrics, else its last line."""
    notes = dict(view.last_lines)
    for rank, metrics in _get_rank_metrics(view.facts).items():
        notes[rank] = "  ".join(f"{name} {format_number(value)}" for name, value in sorted(metrics.items()))
    for detail in view.status.ranks.details if view.status.ranks else ():
        notes[detail.rank] = _make_detail_note(detail)
    return notes


def _make_detail_note(detail: RankDetail) -> str:
    # muster stopped the rank: show what the rank was doing
    if detail.state == "Stopped" and detail.activity:
        return f"was in {detail.activity}"
    cause = f"signal {detail.signal}" if detail.signal is not None else ""
    cause = f"exit {detail.exit_code}" if detail.exit_code is not None else cause
    return " · ".join(part for part in (cause, detail.message or detail.reason) if part)


def _get_rank_metrics(facts: JobFacts | None) -> dict[int, dict[str, float]]:
    result: dict[int, dict[str, float]] = {}
    for node in facts.nodes if facts else ():
        for metric in node.agent.metrics if node.agent else ():
            result.setdefault(metric.value.rank, {})[metric.value.name] = metric.value.value
    return result


def format_number(value: float) -> str:
    """Format a metric's value with four significant digits."""
    return f"{value:.4g}"


def format_mebibytes(count: int) -> str:
    """Format an amount of memory: 412 MiB, 1,536 MiB."""
    return f"{count / 2**20:,.0f} MiB"


def format_elapsed(seconds: float) -> str:
    """Format elapsed time: 4:07 or 1:04:07."""
    minutes, remainder = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{remainder:02}" if hours else f"{minutes}:{remainder:02}"


def format_pace(status: Status) -> tuple[str, ...]:
    """Format the step, the speed, the percentage and the remaining time."""
    progress = status.progress
    if progress is None:
        return ()
    parts = [f"step {progress.step}"] if progress.step is not None else []
    if progress.steps_per_second is not None:
        parts.append(f"{format_number(progress.steps_per_second)} steps/s")
    return (*parts, *format_completion(status))


def format_completion(status: Status) -> tuple[str, ...]:
    """Format the percentage and the remaining time: 42 %, 1:04:07 left."""
    progress = status.progress
    if progress is None or progress.percent is None:
        return ()
    remaining = progress.estimated_remaining_seconds
    # the job has ended, or is about to end
    left = (f"{format_elapsed(remaining)} left",) if remaining else ()
    return (f"{progress.percent} %", *left)


def format_metrics(status: Status) -> tuple[str, ...]:
    """Format the metrics."""
    metrics = status.progress.metrics if status.progress else {}
    return tuple(f"{name} {format_number(value)}" for name, value in sorted(metrics.items()))

"""Build the summary of a run: the last lines of the root cause, and paths. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.api.status.status import Status
from muster.backends.local.layout import RunLayout
from muster.cli.board.goodput_lines import format_goodput
from muster.cli.board.rank_lines import strip_control_sequences
from muster.cli.board.restart_lines import format_restarts
from muster.core.facts import JobFacts, NodeFacts
from muster.core.membership.members import find_node
from muster_worker.contract.mpi import Mpi


@dataclass(frozen=True)
class RootCause:
    """The process whose last lines explain a failure. `process` is a name such as "rank 3" or "torchrun"."""

    process: str
    node: int
    last_lines: Sequence[str]


def is_complete(status: Status) -> bool:
    """Whether the job is Complete, which exit code 0 requires."""
    return any(entry.type == "Complete" and entry.status == "True" for entry in status.conditions)


def find_root_cause(status: Status, facts: JobFacts) -> RootCause | None:
    """Return the first failed rank, or the failed launcher, or the agent with a problem; None if there is none."""
    launcher = _find_failed_launcher(facts)
    for detail in status.ranks.details if status.ranks else ():
        if detail.state == "Failed":
            lines = _get_last_lines(find_node(facts, detail.node), detail.rank)
            # An mpirun in the user's command prints the ranks' output on its own node.
            if not lines and launcher is not None and launcher.process in Mpi.RUNNERS:
                return launcher
            return RootCause(f"rank {detail.rank}", detail.node, lines)
    if launcher is not None:
        return launcher
    for node in facts.nodes:
        if node.agent is not None and node.agent.report.problem is not None:
            return RootCause("its agent", node.node, (node.agent.report.problem.message,))
    return None


def _find_failed_launcher(facts: JobFacts) -> RootCause | None:
    for node in facts.nodes:
        launcher = node.agent.launcher if node.agent else None
        if launcher is not None and launcher.end.exit_code != 0:
            return RootCause(launcher.end.name, node.node, launcher.end.last_lines)
    return None


def summarize_run(status: Status, facts: JobFacts, layout: RunLayout, base: Path) -> list[str]:
    """Return the lines that follow the run's message. Paths below `base` are relative to it."""
    history = [f"  {line}" for line in (*format_restarts(status), *format_goodput(status))]
    if is_complete(status):
        return [
            *history,
            f"  model and output  {_format_path(layout.model, base)}, {_format_path(layout.output, base)}",
            f"  logs              {_format_path(layout.folder / 'logs', base)}",
            f"  resource          {_format_path(layout.resource, base)}",
        ]
    lines = history
    root_cause = None if _was_stopped(status) else find_root_cause(status, facts)
    if root_cause is not None:
        if root_cause.last_lines:
            lines.append(f"  last lines of {root_cause.process} on {layout.get_node_name(root_cause.node)}:")
            lines += [f"  | {strip_control_sequences(line)}" for line in root_cause.last_lines]
        lines.append(f"  its log   {_format_path(layout.get_node(root_cause.node).log, base)}")
    else:
        lines.append(f"  logs      {_format_path(layout.folder / 'logs', base)}")
    lines.append(f"  resource  {_format_path(layout.resource, base)}")
    return lines


def _was_stopped(status: Status) -> bool:
    return any(entry.type == "Failed" and entry.reason == "StopRequested" for entry in status.conditions)


def _get_last_lines(node: NodeFacts, rank: int) -> tuple[str, ...]:
    ranks = node.agent.ranks if node.agent else ()
    return next((entry.report.last_lines for entry in ranks if entry.report.rank == rank), ())


def _format_path(path: Path, base: Path) -> str:
    return str(path.relative_to(base) if path.is_relative_to(base) else path)

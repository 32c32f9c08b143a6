"""Prints the README's picture as an SVG. It shows the board of `make demo` at two moments.

The numbers are from a real run in which rank 2 was killed with `kill -9`. The code of the board draws the picture.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

from muster.api.status.progress import Progress
from muster.api.status.status import RankDetail, RankStatus, StateRange, Status
from muster.cli.board.board import draw_board
from muster.cli.board.view import View
from muster.core.facts import AgentFacts, JobFacts, MetricFacts, NodeFacts, ProcessFacts, ProcessState, RankFacts
from muster_worker.contract.schema import MetricValue, RankReport, Report

WIDTH, HEIGHT = 104, 24
PROCS = 2
PIDS = (24973, 24975, 24976, 24974)
MEMORY = (314 * 2**20, 309 * 2**20, 311 * 2**20, 312 * 2**20)
METRICS = {"accuracy": 0.9725, "loss": 0.01264}

SVG = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""rich's template for SVG files, without the fonts that a browser would download."""


def main() -> None:
    """Print both moments in one picture."""
    console = Console(
        file=io.StringIO(), record=True, width=WIDTH, height=HEIGHT, force_terminal=True, legacy_windows=False
    )
    console.print(draw_board(_build_running_view(), WIDTH, HEIGHT))
    console.print(Text("\n$ kill -9 24976\n", style="dim"))
    console.print(draw_board(_build_killed_view(), WIDTH, HEIGHT))
    sys.stdout.write(console.export_svg(title="make demo", theme=SVG_EXPORT_THEME, code_format=SVG, unique_id="board"))


def _build_running_view() -> View:
    status = Status(
        phase="Running",
        message="4 of 4 ranks run; step 194, 19 steps/s",
        ranks=RankStatus(
            world=4, running=4, ready="4/4", by_state=(StateRange(state="Running", count=4, ranks="0-3"),)
        ),
        progress=Progress(step=194, steps_per_second=19.0, metrics=METRICS),
    )
    return View("digits", PROCS, status, 22, _build_facts((195, 194, 195, 196), MEMORY))


def _build_killed_view() -> View:
    status = Status(
        phase="Failed",
        message="Rank 2 on digits-1 was killed by SIGKILL at step 211; 3 others were in backward",
        ranks=RankStatus(
            world=4,
            running=0,
            ready="0/4",
            by_state=(
                StateRange(state="Failed", count=1, ranks="2"),
                StateRange(state="Stopped", count=3, ranks="0-1,3"),
            ),
            details=(
                RankDetail(rank=2, node=1, state="Failed", signal=9, reason="RankKilled"),
                *(_build_stopped_rank(rank) for rank in (0, 1, 3)),
            ),
        ),
        progress=Progress(step=211, metrics=METRICS),
    )
    return View("digits", PROCS, status, 24, _build_facts((211, 211, 211, 211), (None,) * 4))


def _build_stopped_rank(rank: int) -> RankDetail:
    return RankDetail(
        rank=rank,
        node=rank // PROCS,
        state="Stopped",
        signal=15,
        reason="StoppedByMuster",
        activity="backward",
    )


def _build_facts(steps: Sequence[int], memory: Sequence[int | None]) -> JobFacts:
    nodes = []
    for node in range(len(steps) // PROCS):
        ranks = range(node * PROCS, (node + 1) * PROCS)
        reports = tuple(
            RankReport(rank, rank % PROCS, "Running", pid=PIDS[rank], step=steps[rank], rss_bytes=memory[rank])
            for rank in ranks
        )
        metrics = tuple(
            MetricFacts(MetricValue(name, value, 0, 0.0), 0.0) for name, value in METRICS.items() if node == 0
        )
        report = Report("uid", node, 0, 1, 1, "Running", ranks=reports)
        agent = AgentFacts(report, 0.0, tuple(RankFacts(entry) for entry in reports), metrics)
        nodes.append(NodeFacts(node, f"digits-{node}", ProcessFacts(ProcessState.RUNNING), agent))
    return JobFacts(0.0, tuple(nodes), heartbeat_seconds=5.0)


if __name__ == "__main__":
    main()

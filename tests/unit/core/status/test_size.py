"""The size of a status is limited for any number of ranks and any texts."""

from dataclasses import replace

import pytest

from muster.api.status.status import Status
from muster.core.facts import MetricFacts, NodeFacts, RankFacts
from muster_worker.contract.schema import AgentPhase, CommandKind, MetricValue, RankReport, RankState
from unit.core.builders import START, agent, command, compute_status, facts, job, node

MAX_BYTES = 64 * 1024
"""The API server accepts 1.5 MiB, but each watcher receives the whole status with every change."""

PROCS = 100
LINES = ("é" * 512,) * 8


def unique_rank(number: int) -> RankFacts:
    """Return a rank whose step, exit code and end time differ from those of the others."""
    has_ended = number % 2 == 1
    return RankFacts(
        RankReport(
            number,
            number % PROCS,
            RankState.EXITED if has_ended else RankState.RUNNING,
            pid=number,
            exit_code=number % 7 if has_ended else None,
            last_lines=LINES,
            step=number * 7,
            activity="ü" * 120,
            no_step_reason="x" * 64,
        ),
        started_at=START,
        ended_at=START + number / 1000 if has_ended else None,
        highest_step_at=START,
    )


def unique_node(number: int) -> NodeFacts:
    ranks = [unique_rank(number * PROCS + local) for local in range(PROCS)]
    current = agent(number, AgentPhase.RUNNING, ranks)
    names = (f"{'ö' * 50}{index}" for index in range(200 if number == 0 else 0))
    metrics = tuple(MetricFacts(MetricValue(name, 0.1, 0, 0.0), START) for name in names)
    return node(number, replace(current, metrics=metrics), sent_command=command(CommandKind.START))


@pytest.mark.parametrize("nodes", [100, pytest.param(1000, marks=pytest.mark.long)])
def test_many_thousand_ranks_give_a_small_status(nodes: int) -> None:
    current = facts(*(unique_node(number) for number in range(nodes)))

    status = compute_status(job(nodes, PROCS), Status(), current, START + 10)

    assert status.ranks is not None
    assert status.ranks.world == nodes * PROCS
    assert sum(entry.count for entry in status.ranks.by_state) == nodes * PROCS
    assert [entry.step for entry in status.ranks.by_step] == [14 * index for index in range(16)]
    assert len(status.model_dump_json(by_alias=True).encode()) < MAX_BYTES

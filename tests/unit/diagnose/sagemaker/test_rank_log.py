"""A training job's log as its ranks' reports. SageMaker's toolkit and its launchers wrote the logs: 2 hosts of 2 ranks,
of which rank 3 fails. Logs in `reporting` have `[muster]` lines, logs in `silent` have none.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.core.facts import AgentFacts, JobFacts, NodeFacts, ProcessFacts, ProcessState
from muster.core.failure.failure import find_failure
from muster.diagnose.sagemaker.rank_log import LogLine, RankGroup, RankLog
from muster_worker.contract import log_line
from muster_worker.contract.log_line import Event, RankLine
from muster_worker.contract.schema import AgentPhase, RankState
from muster_worker.contract.trainer_status import TrainerStatus
from unit.core.builders import job, mpi_job

LOGS = Path(__file__).parent / "logs"
BEGAN = datetime(2026, 11, 21, 20, 0, tzinfo=UTC).timestamp()
RANK_GROUP = RankGroup("3a5c", attempt=2, nodes=2, procs_per_node=2, created_at=BEGAN, has_launcher=True)


def read(*names: str, at: float = BEGAN + 3600) -> RankLog:
    log = RankLog(RANK_GROUP)
    for name in names:
        log.feed(LogLine(f"job/{name}", at, text) for text in (LOGS / name).read_text().splitlines())
    return log


def facts_of(log: RankLog) -> JobFacts:
    """Return the facts of the job when all of its containers have ended."""
    agents = {agent.report.node: agent for agent in log.list_agents()}
    exited = ProcessFacts(ProcessState.EXITED, ended_at=BEGAN + 3700)
    nodes = (NodeFacts(node, f"algo-{node + 1}", exited, over(agents[node])) for node in (0, 1) if node in agents)
    return JobFacts(BEGAN, tuple(nodes), 60.0)


def over(agent: AgentFacts) -> AgentFacts:
    return replace(agent, report=replace(agent.report, phase=AgentPhase.ENDED))


@pytest.mark.parametrize("kind", ["reporting", "silent"])
@pytest.mark.parametrize(
    ("how", "exit_code", "number", "words"),
    [("kill", None, 9, ""), ("exit", 3, None, ""), ("abort", 5, None, ""), ("raise", 1, None, "ValueError: boom")],
)
def test_mpirun_s_first_failure(kind: str, how: str, exit_code: int | None, number: int | None, words: str) -> None:
    facts = facts_of(read(f"openmpi4-{how}-{kind}.log"))
    failure = find_failure(mpi_job(), facts, has_started=True)
    assert failure is not None
    assert (failure.first.rank, failure.first.exit_code, failure.first.signal) == (3, exit_code, number)
    assert words in "\n".join(failure.first.lines)


@pytest.mark.parametrize("kind", ["reporting", "silent"])
@pytest.mark.parametrize(
    ("how", "exit_code", "number", "words"), [("kill", None, 9, ""), ("raise", 1, None, "ValueError: no such image")]
)
def test_torchrun_s_first_failure(kind: str, how: str, exit_code: int | None, number: int | None, words: str) -> None:
    facts = facts_of(read(f"torchrun-{how}-{kind}-algo-1.log", f"torchrun-{how}-{kind}-algo-2.log"))
    failure = find_failure(job(), facts, has_started=True)
    assert failure is not None
    assert (failure.first.rank, failure.first.exit_code, failure.first.signal) == (3, exit_code, number)
    assert words in "\n".join(failure.first.lines)
    assert {end.rank for end in failure.root_causes} == {3}


def line(rank: int, at: float, event: str = Event.PROGRESS, **more: object) -> str:
    value = RankLine(event, f"algo-{rank // 2 + 1}", rank, rank % 2, 4, at=BEGAN + at, started_at=BEGAN + 1)
    return log_line.format_line(replace(value, **more))  # type: ignore[arg-type]  # the fields of a line


def fed(*texts: str, rank_group: RankGroup = RANK_GROUP, at: float = BEGAN + 100) -> RankLog:
    log = RankLog(rank_group)
    log.feed(LogLine("job/algo-1-1", at, text) for text in texts)
    return log


def ranks(log: RankLog) -> dict[int, tuple[str, int | None]]:
    return {
        rank.report.rank: (rank.report.state, rank.report.step) for agent in log.list_agents() for rank in agent.ranks
    }


def test_lines_are_what_agents_would_report() -> None:
    log = fed(
        line(0, 1, Event.STARTED, pid=7),
        line(0, 9, step=40, stepped_at=BEGAN + 8, first_stepped_at=BEGAN + 4, metrics={"loss": 0.5}),
        line(1, 10, Event.ENDED, ended_at=BEGAN + 9.5, exit_code=0),
    )
    (agent,) = log.list_agents()
    first, second = agent.ranks
    assert (agent.report.job_uid, agent.report.attempt, agent.report.phase) == ("3a5c", 2, "Running")
    assert (first.report.state, first.report.step, first.highest_step_at) == (RankState.RUNNING, 40, BEGAN + 8)
    assert first.first_step_at == BEGAN + 4
    assert (second.report.state, second.report.exit_code, second.ended_at) == (RankState.EXITED, 0, BEGAN + 9.5)
    assert agent.last_report_at == BEGAN + 10
    assert [(metric.value.name, metric.value.value, metric.value.rank) for metric in agent.metrics] == [
        ("loss", 0.5, 0)
    ]


def test_a_line_has_the_progress_of_rank_0() -> None:
    status = TrainerStatus(age=2.0, percent=40, step=40, total_steps=100)
    log = fed(
        line(0, 9, step=4, stepped_at=BEGAN + 8, total_steps=50, mean_steps_per_second=2.0, trainer_status=status),
        line(1, 9, trainer_status=status),
        line(0, 10, step=5, trainer_status=replace(status, percent=101)),
        line(0, 10, step=5, trainer_status=replace(status, total_steps=0)),
    )
    ((rank,),) = (agent.ranks for agent in log.list_agents())
    report = rank.report
    assert (report.trainer_status, rank.trainer_status_at) == (status, BEGAN + 7)
    assert (report.step, report.total_steps, report.mean_steps_per_second) == (4, 50, 2.0)


def test_a_node_all_of_whose_ranks_have_ended_has_ended() -> None:
    log = fed(*(line(rank, 10, Event.ENDED, ended_at=BEGAN + 9, exit_code=0) for rank in (2, 3)))
    (agent,) = log.list_agents()
    assert (agent.report.node, agent.report.phase) == (1, AgentPhase.ENDED)


lines = st.builds(
    line,
    st.integers(0, 3),
    st.floats(1, 50),
    st.sampled_from([Event.STARTED, Event.PROGRESS]),
    step=st.none() | st.integers(0, 9),
)


@given(st.lists(lines, max_size=12), st.lists(lines, max_size=3))
def test_lines_may_come_twice(texts: list[str], again: list[str]) -> None:
    once, twice = fed(*texts, *again), fed(*texts, *again, *again)
    assert once.list_agents() == twice.list_agents()


def test_of_one_start_an_end_is_an_end_and_a_new_start_begins_anew() -> None:
    ended = line(0, 20, Event.ENDED, ended_at=BEGAN + 19, signal=9, step=5)
    assert ranks(fed(ended, line(0, 21, step=6))) == {0: (RankState.EXITED, 5)}
    again = line(0, 60, Event.STARTED).replace(f'"started_at":{BEGAN + 1}', f'"started_at":{BEGAN + 59}')
    assert ranks(fed(ended, again)) == {0: (RankState.RUNNING, None)}
    assert ranks(fed(again, ended)) == {0: (RankState.RUNNING, None)}


def test_a_line_that_was_cut_in_two_is_put_together() -> None:
    text = line(0, 9, step=40)
    log = RankLog(RANK_GROUP)
    log.feed([LogLine("job/algo-1-1", BEGAN + 9, text[:50]), LogLine("job/algo-2-1", BEGAN + 9, "other")])
    assert ranks(log) == {}
    log.feed([LogLine("job/algo-1-1", BEGAN + 9, text[50:])])
    assert ranks(log) == {0: (RankState.RUNNING, 40)}


def test_mpirun_s_tag_in_the_middle_of_a_line_is_none_of_it() -> None:
    text = line(3, 9, step=40)
    tagged = f"[1,0]<stdout>:[1,mpirank:3,algo-2]<stdout>:{text[:60]}[1,3]<stdout>:{text[60:]}"
    assert ranks(fed(tagged)) == {3: (RankState.RUNNING, 40)}


@pytest.mark.parametrize(
    "text",
    [
        line(0, 9, host="x" * 300),
        line(0, 9, step=-1),
        line(0, 9, total_steps=-1),
        line(0, 9, Event.ENDED, exit_code=0, signal=9),
        line(0, 9, Event.ENDED, exit_code=256),
        line(0, 9, Event.ENDED, signal=65),
        line(0, 9, Event.ENDED, exit_code=1, reason="x"),
        line(0, 9, Event.ENDED),
        line(0, 9, "exploded"),
        line(0, 9).replace('"rank":0', '"rank":4'),
        line(0, 9).replace('"rank":0', '"rank":-1'),
        line(0, 9).replace('"rank":0', '"rank":99999999999'),
        "  rank      : 4 (local_rank: 0)\n  exitcode  : 1 (pid: 7)",
        "mpirun noticed that process rank 4 with PID 0 on node algo-3 exited on signal 9 (Killed).",
        "mpirun noticed that process rank 1 with PID 0 on node algo-1 exited on signal 99 (Unknown).",
    ],
)
def test_what_no_rank_of_this_job_can_say_counts_as_not_said(text: str) -> None:
    assert ranks(fed(*text.split("\n"))) == {}


@pytest.mark.parametrize("at", [-1e9, 1e9])
def test_a_clock_that_is_far_off_counts_as_the_log_s_own(at: float) -> None:
    log = fed(line(0, at, Event.ENDED, exit_code=1, ended_at=BEGAN + at))
    ((rank,),) = (agent.ranks for agent in log.list_agents())
    assert rank.ended_at == BEGAN + 100
    assert log.list_agents()[0].last_report_at == BEGAN + 100


def test_ranks_of_another_world_are_a_problem() -> None:
    log = fed(line(0, 9, world=2))
    assert [agent.report.problem and agent.report.problem.message for agent in log.list_agents()] == [
        "ranks were given a world of 2"
    ]
    alone = fed(line(0, 9, world=2), rank_group=replace(RANK_GROUP, has_launcher=False))
    assert [agent.report.problem for agent in alone.list_agents()] == [None]


def test_the_end_that_only_a_launcher_tells_is_the_rank_s() -> None:
    log = fed(
        line(3, 9, step=40),
        "mpirun noticed that process rank 3 with PID 77 on node algo-2 exited on signal 9 (Killed).",
    )
    ((rank,),) = (agent.ranks for agent in log.list_agents())
    assert (rank.report.signal, rank.report.step, rank.ended_at) == (9, 40, BEGAN + 100)


def bulk(texts: Iterable[str]) -> RankLog:
    log = RankLog(RANK_GROUP)
    log.feed(LogLine(f"job/algo-{index}", BEGAN + 1, text) for index, text in enumerate(texts))
    return log


def test_what_is_remembered_is_bounded() -> None:
    cut = line(0, 9)[:60]
    log = bulk(cut for _ in range(10_000))
    assert len(log._partial_lines) <= 4096
    noisy = bulk(f"[1,{index}]<stderr>:{'x' * 9000}" for index in range(10_000))
    assert len(noisy.list_agents()) == 2
    assert all(not rank.report.last_lines for agent in noisy.list_agents() for rank in agent.ranks)

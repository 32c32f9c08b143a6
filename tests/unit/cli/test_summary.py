"""The lines that `muster run` prints at the end of a failed run."""

import pytest

from muster.api.status.status import RankDetail, RankStatus, Status
from muster.cli.run.summary import RootCause, find_root_cause
from muster.core.facts import AgentFacts, JobFacts, LauncherFacts, NodeFacts, ProcessFacts, ProcessState, RankFacts
from muster_worker.contract.schema import LauncherEnd, RankReport, Report

DETAIL = RankDetail(rank=1, node=1, state="Failed", reason="RankFailed")
FAILED = Status(phase="Failed", ranks=RankStatus(world=2, running=0, ready="0/2", details=(DETAIL,)))


def node(index: int, *lines: str, launcher: LauncherEnd | None = None) -> NodeFacts:
    rank = RankReport(index, 0, "Ended", exit_code=1, last_lines=lines)
    report = Report("uid", index, 0, 1, 1, "Ended", ranks=(rank,))
    ended = None if launcher is None else LauncherFacts(launcher, 1.0)
    agent = AgentFacts(report, 0.0, (RankFacts(rank),), launcher=ended)
    return NodeFacts(index, f"vit-{index}", ProcessFacts(ProcessState.EXITED), agent)


@pytest.mark.parametrize(
    ("lines", "launcher", "expected"),
    [
        (("ValueError: a",), "mpirun", RootCause("rank 1", 1, ("ValueError: a",))),
        ((), "mpirun", RootCause("mpirun", 0, ("ValueError: b",))),
        ((), "torchrun", RootCause("rank 1", 1, ())),
    ],
)
def test_a_rank_without_a_word_may_have_spoken_through_mpirun(
    lines: tuple[str, ...], launcher: str, expected: RootCause
) -> None:
    end = LauncherEnd(launcher, 0.0, exit_code=1, last_lines=("ValueError: b",))
    facts = JobFacts(0.0, (node(0, launcher=end), node(1, *lines)), heartbeat_seconds=5.0)
    assert find_root_cause(FAILED, facts) == expected

"""Failures while no operator runs: the next one restarts the ranks once, in the pods that are left."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from cluster.reasons import machine
from cluster.reasons.stage import Stage
from cluster.reasons.test_restarts import SAYS_ATTEMPT, SHAPE, history, runs, uids


@contextmanager
def operator_away(stage: Stage) -> Iterator[None]:
    """Kill the operator, and start it again at the end."""
    stage.operator.signal(signal.SIGKILL)
    try:
        yield
    finally:
        stage.operator.start()


def starts(stage: Stage, pod: str, attempt: int) -> int:
    """Return how many ranks of the pod have started in this attempt."""
    return stage.jobs.log(pod).count(f"attempt {attempt}")


def test_a_failed_rank_a_deleted_pod_and_a_dead_leader_cost_one_restart(stage: Stage) -> None:
    stage.apply("all", SAYS_ATTEMPT, **SHAPE)
    runs(stage, "all", 1)
    before = uids(stage, "all")
    pod = stage.started_pod("all", 0)
    with operator_away(stage):
        machine.kill(machine.rank(pod, 0))
        stage.jobs.run("delete", "pod", "all-1-0", "--wait=false")
    after = runs(stage, "all", 2)
    assert len(history(after.status)) == 1
    stage.until(lambda: set(uids(stage, "all")) == {"all-0-0", "all-1-1"})
    assert uids(stage, "all")["all-0-0"] == before["all-0-0"]
    stage.until(lambda: [starts(stage, name, 2) for name in ("all-0-0", "all-1-1")] == [2, 2])
    status = stage.jobs.status("all")
    assert (status["attempt"], status["restarts"]["total"]) == (2, 1)

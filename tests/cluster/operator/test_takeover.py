"""Changes of the leader while jobs run."""

import signal
import time
from collections.abc import Callable

from cluster.ended_job import succeeded
from cluster.operator.cluster_jobs import Jobs
from cluster.operator.operator_process import OperatorProcess, Replicas
from cluster.say import say
from cluster.waiting import PAUSE_SECONDS

KILLED_SECONDS = 60.0
STOPPED_SECONDS = 12.0
"""Less than the 15 s after which a Lease expires that its holder has not released."""

EXIT_SECONDS = 30.0

SOME_TIME = "import time; time.sleep(25)"


def pair(operators: Replicas) -> tuple[OperatorProcess, OperatorProcess]:
    """Return a leader and a standby."""
    leader = operators.start()
    until(lambda: leader.leads, KILLED_SECONDS)
    return leader, operators.start()


def until(what: Callable[[], object], seconds: float) -> None:
    """Wait until `what()` is true."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s"
        time.sleep(PAUSE_SECONDS)


def test_a_killed_leader_is_followed_and_its_jobs_go_on(operators: Replicas, jobs: Jobs) -> None:
    leader, other = pair(operators)
    jobs.apply("long", SOME_TIME)
    jobs.wait("long", "jsonpath={.status.phase}=Running")
    assert leader.signal(signal.SIGKILL) == -signal.SIGKILL
    jobs.apply("new")
    until(lambda: jobs.status("new").get("conditions"), KILLED_SECONDS)
    assert other.leads
    jobs.wait("new", "condition=Complete")
    jobs.wait("long", "condition=Complete")
    status = jobs.status("long")
    assert (status["attempt"], succeeded(status)) == (1, "4/4")
    assert {"pod/long-0-0", "pod/long-1-0"} == jobs.children("long", "pods")


def test_a_stopped_leader_hands_over_at_once(operators: Replicas, jobs: Jobs) -> None:
    leader, other = pair(operators)
    began = time.monotonic()
    assert leader.signal(signal.SIGTERM) == 0
    assert time.monotonic() - began < EXIT_SECONDS
    jobs.apply("new")
    until(lambda: other.leads, STOPPED_SECONDS)
    until(lambda: jobs.status("new").get("conditions"), STOPPED_SECONDS)
    assert "Traceback" not in leader.said


def test_a_job_applied_while_no_operator_runs_is_run_by_the_next_one(operators: Replicas, jobs: Jobs) -> None:
    jobs.apply("early")
    operators.start()
    jobs.wait("early", "condition=Complete")


START_SECONDS = 60.0
"""From the apply to a running rank, including the pods' start. The refusals of a standby once took as long in addition.
"""


def test_agents_find_the_leader_at_once_although_another_waits(operators: Replicas, jobs: Jobs) -> None:
    pair(operators)
    for name in ("one", "two", "three"):
        began = time.monotonic()
        jobs.apply(name, SOME_TIME)
        jobs.wait(name, "jsonpath={.status.phase}=Running")
        took = time.monotonic() - began
        say(f"start beside a standby: {took:.1f} s")
        assert took < START_SECONDS
    assert "NotLeader" not in "".join(operator.said for operator in operators.started)

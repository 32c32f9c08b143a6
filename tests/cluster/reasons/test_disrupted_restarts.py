"""Jobs with a failure policy whose pods or machines are taken away: each costs one pod, and the others stay."""

from pathlib import Path

import pytest

from cluster.reasons import machine
from cluster.reasons.stage import Stage, template
from cluster.reasons.test_after_the_start import send_eviction
from cluster.reasons.test_lost_node import LOST, NODE_LOST_SECONDS, SHORT_CUT_SECONDS, is_silent, placed
from cluster.reasons.test_restarts import SAYS_ATTEMPT, history, runs, uids
from cluster.reasons.timeline import ObservedChange
from cluster.say import say
from muster.api.spec.failure_policy import DEFAULT_FENCE_SECONDS, FENCE_MARGIN_SECONDS

POLICY = {"maxDisruptions": 3}
HOOK_SECONDS = 10
SLOW_HOOK = {"preStop": {"exec": {"command": ["sleep", str(HOOK_SECONDS)]}}}
"""The kubelet sends SIGTERM only after this hook."""

FENCED_SECONDS = DEFAULT_FENCE_SECONDS + FENCE_MARGIN_SECONDS
STARTED_SECONDS = 60.0
"""The time for a pod to start and for its ranks to run."""


def test_an_evicted_pod_ends_the_attempt_before_it_dies(stage: Stage) -> None:
    slow = template({"lifecycle": SLOW_HOOK}, terminationGracePeriodSeconds=HOOK_SECONDS + 2)
    stage.apply("drained", SAYS_ATTEMPT, nodes=2, procsPerNode=1, failurePolicy=POLICY, template=slow)
    runs(stage, "drained", 1)
    before = uids(stage, "drained")
    stage.started_pod("drained", 1)
    evicted_at = stage.now()
    send_eviction(stage, "drained-1-0")
    stopping = stage.timeline.first(lambda seen: is_in_phase(seen, "drained", "Stopping"))
    after = runs(stage, "drained", 2)
    say(f"drained: Stopping {stopping.at - evicted_at:.1f} s, running {after.at - evicted_at:.1f} s after the eviction")

    assert stopping.at - evicted_at < HOOK_SECONDS
    assert history(after.status) == [(1, "Evicted", "Disruption", 1)]
    stage.until(lambda: "drained-1-0" not in uids(stage, "drained"))
    left = uids(stage, "drained")
    assert set(left) == {"drained-0-0", "drained-1-1"}
    assert left["drained-0-0"] == before["drained-0-0"]


# Other tests' pods on the lost machine would not start meanwhile.
@pytest.mark.alone
@pytest.mark.timeout(300)
def test_a_cut_of_20_s_restarts_nothing(stage: Stage) -> None:
    stage.apply("shaken", SAYS_ATTEMPT, **placed(failurePolicy=POLICY))
    runs(stage, "shaken", 1)
    before = uids(stage, "shaken")
    cut_at = stage.now()
    with machine.lost(LOST):
        stage.timeline.first(is_silent("shaken", "True", cut_at), SHORT_CUT_SECONDS)
        stage.until(lambda: stage.now() >= cut_at + SHORT_CUT_SECONDS)
    healed_at = stage.now()
    back = stage.timeline.first(is_silent("shaken", "False", healed_at))
    assert (back.status["phase"], back.status["attempt"]) == ("Running", 1)
    assert "restarts" not in back.status
    assert uids(stage, "shaken") == before
    stage.jobs.run("delete", "dtj/shaken", "--wait=false")


@pytest.mark.alone
@pytest.mark.timeout(400)
def test_a_node_that_is_cut_off_stops_its_ranks_before_it_is_replaced(stage: Stage) -> None:
    stage.apply("parted", SAYS_ATTEMPT, **placed(failurePolicy=POLICY))
    runs(stage, "parted", 1)
    before = uids(stage, "parted")
    pod = stage.started_pod("parted", 1)
    assert pod["spec"]["nodeName"] == LOST
    lost_rank = machine.rank(pod, 1)
    stage.until(lambda: "other nodes answer" in stage.jobs.log("parted-1-0"))
    cut_at = stage.now()
    with machine.lost(LOST):
        stage.until(lambda: not _exists(lost_rank))
        fenced_at = stage.now()
        say(f"parted: the ranks of the lost node ended {fenced_at - cut_at:.1f} s after the cut")
        assert fenced_at - cut_at < FENCED_SECONDS
        after = runs(stage, "parted", 2)
        say(f"parted: attempt 2 runs {after.at - cut_at:.1f} s after the cut")
        assert fenced_at < after.at < cut_at + NODE_LOST_SECONDS + STARTED_SECONDS
        assert history(after.status) == [(1, "NodeLost", "Disruption", 1)]
        left = uids(stage, "parted")
        assert left["parted-0-0"] == before["parted-0-0"]
        assert "parted-1-1" in left
    stage.until(lambda: set(uids(stage, "parted")) == {"parted-0-0", "parted-1-1"})
    stage.kubectl.wait("condition=Ready", f"node/{LOST}")
    stage.jobs.run("delete", "dtj/parted", "--wait=false")


def _exists(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


def is_in_phase(seen: ObservedChange, name: str, phase: str) -> bool:
    return seen.kind == "Job" and seen.name == name and seen.status.get("phase") == phase

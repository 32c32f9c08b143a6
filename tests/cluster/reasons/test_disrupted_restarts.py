"""A job with a failure policy whose pod is evicted: it costs one pod, and the others stay."""

from cluster.reasons.stage import Stage, template
from cluster.reasons.test_after_the_start import send_eviction
from cluster.reasons.test_restarts import SAYS_ATTEMPT, history, runs, uids
from cluster.reasons.timeline import ObservedChange
from cluster.say import say

POLICY = {"maxDisruptions": 3}
HOOK_SECONDS = 10
SLOW_HOOK = {"preStop": {"exec": {"command": ["sleep", str(HOOK_SECONDS)]}}}
"""The kubelet sends SIGTERM only after this hook."""


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


def is_in_phase(seen: ObservedChange, name: str, phase: str) -> bool:
    return seen.kind == "Job" and seen.name == name and seen.status.get("phase") == phase

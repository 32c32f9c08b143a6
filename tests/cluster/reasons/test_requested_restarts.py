"""Restarts, suspensions and resumes that a user requests, with the operator and real pods."""

import json
import time

from cluster.muster_command import Muster
from cluster.reasons.stage import Stage
from cluster.reasons.test_restarts import SAYS_ATTEMPT, history, runs, uids
from cluster.say import say
from muster.api.names import RESTART_ANNOTATION

SHAPE: dict[str, object] = {"nodes": 2, "procsPerNode": 2}
REQUESTED = (1, "RestartRequested", "Nothing", 0)


def command(stage: Stage) -> Muster:
    return Muster(stage.kubectl.kubeconfig, stage.namespace)


def started_once(stage: Stage, name: str, *attempts: int) -> None:
    """Each rank has printed its line once in each of these attempts."""
    for node in range(2):
        lines = [f"rank {rank} attempt {attempt}" for rank in (2 * node, 2 * node + 1) for attempt in attempts]
        log = stage.jobs.wait_for_log(f"{name}-{node}-0", *lines)
        assert all(log.count(line) == 1 for line in lines)


def restart(stage: Stage, name: str) -> float:
    """Run `muster restart` to its end; return its seconds."""
    began = time.monotonic()
    done = command(stage)("restart", name)
    seconds = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    assert f"{stage.namespace}/{name} runs again (" in done.stderr
    say(f"{name}: {done.stderr.splitlines()[-1]}; the command took {seconds:.2f} s")
    return seconds


def test_a_restart_costs_no_pod_and_no_budget(stage: Stage) -> None:
    stage.apply("anew-by-user", SAYS_ATTEMPT, **SHAPE)
    runs(stage, "anew-by-user", 1)
    before = uids(stage, "anew-by-user")
    restart(stage, "anew-by-user")
    after = runs(stage, "anew-by-user", 2)

    assert uids(stage, "anew-by-user") == before
    assert history(after.status) == [REQUESTED]
    restarts = after.status["restarts"]
    assert (restarts["total"], restarts["failures"], restarts["disruptions"]) == (1, 0, 0)
    started_once(stage, "anew-by-user", 2)
    restart(stage, "anew-by-user")
    assert [entry[1] for entry in history(runs(stage, "anew-by-user", 3).status)] == ["RestartRequested"] * 2
    # Any text is a request.
    patch = {"metadata": {"annotations": {RESTART_ANNOTATION: "\u0000\U0001f4a5'\"}{" + 100_000 * "x"}}}
    stage.jobs.run("patch", "dtj/anew-by-user", "--type=merge", "--patch-file=/dev/stdin", stdin=json.dumps(patch))
    after = runs(stage, "anew-by-user", 4)
    assert history(after.status)[-1] == (3, "RestartRequested", "Nothing", 0)
    assert len(after.status["restartRequest"]["value"]) == 64


def test_an_operator_that_is_killed_after_the_request_restarts_once(stage: Stage) -> None:
    stage.apply("asked", SAYS_ATTEMPT, **SHAPE)
    runs(stage, "asked", 1)
    stage.operator.end()
    asked = command(stage)("restart", "asked", "--no-wait")
    assert (asked.returncode, asked.stderr) == (0, f"{stage.namespace}/asked will be restarted\n")
    stage.operator.start()
    after = runs(stage, "asked", 2)
    assert history(after.status) == [REQUESTED]
    # Ranks that are stopped at once might not come to their first line.
    started_once(stage, "asked", 2)
    # the same in the middle: the status has the request, and the ranks are being stopped
    assert command(stage)("restart", "asked", "--no-wait").returncode == 0
    stage.timeline.first(
        lambda seen: (
            seen.kind == "Job"
            and seen.name == "asked"
            and "stoppingSince" in (seen.status.get("restartRequest") or {})
            and seen.status["attempt"] == 2
        )
    )
    stage.operator.end()
    stage.operator.start()
    assert [entry[0] for entry in history(runs(stage, "asked", 3).status)] == [1, 2]
    started_once(stage, "asked", 2, 3)


def test_suspend_and_resume_with_an_operator_killed_between(stage: Stage) -> None:
    stage.apply("rests", SAYS_ATTEMPT, **SHAPE)
    runs(stage, "rests", 1)
    muster = command(stage)
    assert muster("suspend", "rests", "--no-wait").returncode == 0
    stage.operator.end()
    stage.operator.start()
    suspended = muster("suspend", "rests")
    assert suspended.returncode == 0
    assert f"{stage.namespace}/rests is suspended (" in suspended.stderr
    assert uids(stage, "rests") == {}
    denied = muster("restart", "rests")
    assert "is suspended; `muster resume rests` starts its ranks" in denied.stderr
    done = muster("resume", "rests")
    assert done.returncode == 0, done.stderr
    assert f"{stage.namespace}/rests is resumed (" in done.stderr
    after = runs(stage, "rests", 2)
    assert set(uids(stage, "rests")) == {"rests-0-1", "rests-1-1"}
    assert "restarts" not in after.status

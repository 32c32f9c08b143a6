"""Statuses edited by a user: a job never runs again, and the operator reports an unreadable status and takes no
action.
"""

import json
import signal
import time
from typing import Any

import pytest

from cluster.operator.cluster_jobs import FOREVER, OK, Jobs
from cluster.operator.site import Site
from muster.api.timestamps import parse_timestamp

RUNNING = "jsonpath={.status.phase}=Running"
STARTED = "jsonpath={.status.attempt}=1"
STALLED = "condition=Stalled=True"
ONE = {"nodes": 1, "procsPerNode": 1}


def edit(jobs: Jobs, name: str, **status: Any) -> None:
    """Write into the job's status; None deletes a field."""
    patch = json.dumps({"status": status})
    jobs.run("patch", f"dtj/{name}", "--subresource=status", "--type=merge", "--patch", patch)


def condition(status: Any, kind: str) -> Any:
    return next(entry for entry in status["conditions"] if entry["type"] == kind)


def pods(jobs: Jobs, name: str) -> set[str]:
    """Return the uids of the job's pods."""
    listed = json.loads(jobs.run("get", "pods", f"--selector=muster.dev/job={name}", "--output=json"))
    return {item["metadata"]["uid"] for item in listed["items"]}


def another_life(jobs: Jobs, name: str) -> None:
    """Wait for the whole life of another job: in that time the operator has reconciled all other jobs."""
    jobs.apply(name, OK, **ONE)
    jobs.wait(name, "condition=Complete")


@pytest.fixture(scope="module")
def lives(fields_site: Site) -> Jobs:
    """Jobs that are over or run: all at once, because each takes seconds."""
    jobs = fields_site.jobs
    for name in ("lost-time", "lost-count", "lost-all", "bad-time", "nap"):
        jobs.apply(name, FOREVER, **ONE)
    for name in ("over-bad-end", "over-no-end", "over-bad-count"):
        jobs.apply(name, OK, **ONE, cleanPodPolicy="All")
    for name in ("lost-time", "lost-count", "lost-all", "bad-time", "nap"):
        jobs.wait(name, RUNNING)
    for name in ("over-bad-end", "over-no-end", "over-bad-count"):
        jobs.wait(name, "condition=Complete")
    jobs.run("wait", "pods", "--selector=muster.dev/job in (over-bad-end,over-no-end,over-bad-count)", "--for=delete")
    return jobs


LOST: dict[str, dict[str, None]] = {
    "lost-time": {"startTime": None},
    "lost-count": {"attempt": None},
    "lost-all": {"startTime": None, "attempt": None, "phase": None, "conditions": None},
}


def test_a_start_that_was_taken_out_of_the_status_is_known_again(lives: Jobs) -> None:
    before = {name: (lives.status(name), pods(lives, name)) for name in LOST}
    edited = time.time()
    for name, lost in LOST.items():
        edit(lives, name, **lost)
    for name in LOST:
        lives.wait(name, STARTED)
        lives.wait(name, "jsonpath={.status.startTime}")
        lives.wait(name, RUNNING)
    another_life(lives, "after-lost")
    for name, (former, made) in before.items():
        status = lives.status(name)
        assert (status["phase"], status["ranks"]["running"], status["attempt"]) == ("Running", 1, 1)
        # The ranks report their own start times: after the operator has written its own, and before the edit.
        assert parse_timestamp(former["startTime"]) <= parse_timestamp(status["startTime"]) <= edited
        assert pods(lives, name) == made


def test_a_time_that_is_none_is_told_of_and_the_ranks_run_on_until_it_is_corrected(lives: Jobs) -> None:
    before, made = lives.status("bad-time"), pods(lives, "bad-time")
    edit(lives, "bad-time", startTime="yesterday")
    lives.wait("bad-time", STALLED)
    status = lives.status("bad-time")
    assert condition(status, "Stalled")["reason"] == "StatusUnreadable"
    assert 'status.startTime: found "yesterday"; a time such as' in status["message"]
    assert "kubectl edit --subresource=status" in status["message"]
    assert status["startTime"] == "yesterday"
    lives.kubectl.wait("create", *events(lives, "bad-time", "StatusUnreadable"), f"--namespace={lives.namespace}")
    # the operator carries out later changes
    lives.patch("bad-time", suspend=True)
    another_life(lives, "after-bad-time")
    assert pods(lives, "bad-time") == made
    edit(lives, "bad-time", startTime=before["startTime"])
    lives.wait("bad-time", "condition=Suspended")


def events(jobs: Jobs, name: str, reason: str) -> list[str]:
    """Return the job's events of a reason; waits for the first."""
    chosen = f"--field-selector=involvedObject.name={name},reason={reason}"
    deadline = time.monotonic() + 60
    while not (result := jobs.run("get", "events", chosen, "--output=name").split()):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return result


BROKEN = {
    "over-bad-end": ({"status": "true"}, '].status: found "true" of Complete'),
    "over-no-end": ({"status": "False"}, "status.conditions: the phase is Succeeded and Complete isn't True"),
}


def test_an_end_that_can_t_be_read_is_told_of_and_nothing_runs_again(lives: Jobs) -> None:
    ends = {name: lives.status(name)["conditions"] for name in BROKEN}
    for name, (changes, _) in BROKEN.items():
        broken = [{**entry, **changes} if entry["type"] == "Complete" else entry for entry in ends[name]]
        # A start time would show that the job ran, so remove it too.
        edit(lives, name, conditions=broken, startTime=None, attempt=None)
    for name, (_, says) in BROKEN.items():
        lives.wait(name, STALLED)
        assert says in lives.status(name)["message"]
    another_life(lives, "after-broken")
    for name, conditions in ends.items():
        assert pods(lives, name) == set()
        edit(lives, name, conditions=conditions)
    another_life(lives, "after-repaired")
    for name in BROKEN:
        status = lives.status(name)
        assert (status["phase"], condition(status, "Complete")["status"]) == ("Succeeded", "True")
        assert pods(lives, name) == set()


def test_a_count_below_zero_is_told_of_also_by_the_next_operator(lives: Jobs, fields_site: Site) -> None:
    edit(lives, "over-bad-count", attempt=-1, conditions=None, startTime=None)
    lives.wait("over-bad-count", STALLED)
    assert "status.attempt: found -1; a whole number from 0 is expected" in lives.status("over-bad-count")["message"]
    fields_site.operators.started[-1].signal(signal.SIGTERM)
    fields_site.operators.start()
    another_life(lives, "after-restart")
    assert pods(lives, "over-bad-count") == set()


def test_a_suspended_job_without_its_start_time_is_started_once_more_and_no_more(lives: Jobs) -> None:
    lives.patch("nap", suspend=True)
    lives.wait("nap", "condition=Suspended")
    lives.patch("nap", suspend=False)
    lives.wait("nap", RUNNING)
    made = pods(lives, "nap")
    edit(lives, "nap", startTime=None)
    lives.wait("nap", "jsonpath={.status.startTime}")
    another_life(lives, "after-nap")
    status = lives.status("nap")
    assert (status["phase"], status["attempt"], pods(lives, "nap")) == ("Running", 2, made)

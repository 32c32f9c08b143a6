"""Deadlines, grace periods and cleanup times on a real cluster."""

from collections.abc import Iterator

import pytest

from cluster.fields.side_by_side import condition, sleeper, template, wait_for_deletion
from cluster.operator.cluster_jobs import OK, Jobs
from cluster.operator.site import Site

ONE = {"nodes": 1, "procsPerNode": 1}
LATE = "fields.test/late"
SAVING_SECONDS = 11
"""Less than the pods' grace period, more than the default one."""

SAVES = f"""
import signal, sys, time
def save(*_):
    time.sleep({SAVING_SECONDS})
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("trains", flush=True)
while True:
    time.sleep(0.05)
"""
SLOW = template(initContainers=[{**sleeper("slow")}])
WITH_SIDECAR = template(containers=[sleeper("side")])


@pytest.fixture(scope="module")
def timed(fields_site: Site) -> Iterator[Jobs]:
    """Yield all jobs of this module."""
    jobs = fields_site.jobs
    late = template(nodeSelector={LATE: jobs.namespace})
    jobs.apply("patient", OK, **ONE, template=late, startupTimeoutSeconds=3)
    jobs.apply("slow", OK, **ONE, template=SLOW, startupTimeoutSeconds=3)
    jobs.apply("saves", SAVES, **ONE, template=template(grace=60))
    jobs.apply("out-of-time", SAVES, **ONE, template=template(grace=60))
    jobs.apply("side-running", OK, **ONE, template=WITH_SIDECAR)
    jobs.apply("side-all", OK, **ONE, template=WITH_SIDECAR, cleanPodPolicy="All")
    jobs.apply("side-none", OK, **ONE, template=WITH_SIDECAR, cleanPodPolicy="None")
    jobs.apply("tidy", OK, **ONE, cleanPodPolicy="None", ttlSecondsAfterFinished=2)
    yield jobs
    jobs.kubectl("label", "nodes", "--all", f"{LATE}-")


def test_the_startup_deadline_counts_from_the_placement(timed: Jobs) -> None:
    timed.wait("slow", "condition=Failed")
    assert condition(timed, "slow", "Failed")["reason"] == "StartupTimeout"
    # Both were created together, and this one could not be scheduled.
    assert condition(timed, "patient", "Failed")["status"] == "False"
    assert condition(timed, "patient", "Scheduled")["reason"] == "Unschedulable"
    timed.patch("patient", startupTimeoutSeconds=600)
    timed.kubectl("label", "nodes", "--all", f"{LATE}={timed.namespace}")
    timed.wait("patient", "condition=Complete")


def test_a_sidecar_that_never_ends_keeps_no_job_from_its_end(timed: Jobs) -> None:
    for name in ("side-running", "side-all", "side-none"):
        timed.wait(name, "condition=Complete")
    wait_for_deletion(timed, "pod/side-running-0-0", "pod/side-all-0-0")
    phase = timed.run("get", "pod/side-none-0-0", "--output=jsonpath={.status.phase}")
    assert phase == "Running"


def test_the_resource_goes_with_all_of_it_when_its_time_is_over(timed: Jobs) -> None:
    wait_for_deletion(timed, "dtj/tidy", "pod/tidy-0-0", "service/tidy-muster", "configmap/tidy-muster")


def test_ranks_that_are_suspended_or_out_of_time_get_the_time_that_they_were_given(timed: Jobs) -> None:
    for name in ("saves", "out-of-time"):
        timed.wait(name, "jsonpath={.status.phase}=Running")
    with timed.kubectl.begin("logs", "--follow", "saves-0-0", f"--namespace={timed.namespace}") as following:
        assert following.stdout is not None
        while "trains" not in following.stdout.readline():
            assert following.poll() is None
        timed.patch("saves", suspend=True)
        timed.patch("out-of-time", activeDeadlineSeconds=1)
        timed.wait("saves", "condition=Suspended")
        assert "saved" in following.stdout.read()
    timed.wait("out-of-time", "condition=Failed")
    assert condition(timed, "out-of-time", "Failed")["reason"] == "DeadlineExceeded"
    assert "saved" in timed.log("out-of-time-0-0")
    assert timed.status("out-of-time")["ranks"]["byState"] == [{"state": "Stopped", "count": 1, "ranks": "0"}]

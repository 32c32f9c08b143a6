"""Scrapes of operators that run jobs on a real cluster."""

import urllib.request

from cluster.installed.awaited import until
from cluster.operator.cluster_jobs import FOREVER, Jobs
from cluster.operator.operator_process import OperatorProcess, Replicas
from support.scraped_metrics import Scrape, parse_scrape

FAILS_ONCE = (
    "import os, sys, time; time.sleep(3); "
    "sys.exit(7 if (os.environ['MUSTER_ATTEMPT'], os.environ['RANK']) == ('1', '1') else 0)"
)


def scrape(replica: OperatorProcess) -> Scrape:
    with urllib.request.urlopen(f"http://127.0.0.1:{replica.metrics_port}/metrics", timeout=10) as response:
        return parse_scrape(response.read().decode())


LEAD_SECONDS = 60.0


def test_a_restart_and_an_end_are_counted_by_the_leader(operators: Replicas, jobs: Jobs) -> None:
    leader = operators.start()
    until(lambda: leader.leads, LEAD_SECONDS)
    standby = operators.start()
    jobs.apply("flaky", FAILS_ONCE, failurePolicy={"maxRestarts": 2})
    jobs.apply("long", FOREVER)
    jobs.wait("flaky", "condition=Complete")
    jobs.wait("long", "jsonpath={.status.ranks.running}=4")
    assert jobs.status("flaky")["attempt"] == 2
    seen, here = scrape(leader), {"namespace": jobs.namespace, "backend": "Kubernetes"}
    assert seen.get_value("muster_leader") == 1
    assert (
        seen.get_value("muster_jobs", phase="Succeeded", **here)
        == seen.get_value("muster_jobs", phase="Running", **here)
        == 1
    )
    assert seen.get_value("muster_ranks", **here) == seen.get_value("muster_ranks", state="Running", **here) == 4
    assert seen.get_value("muster_job_restarts_total", **here) == 1
    assert seen.get_value("muster_job_restarts_total", reason="RankFailed", **here) == 1
    assert seen.get_value("muster_jobs_ended_total", phase="Succeeded", reason="AllRanksSucceeded", **here) == 1
    for name, count, most in (
        ("muster_job_start_seconds", 2, 120),
        ("muster_failure_detection_seconds", 1, 10),
        ("muster_failure_recovery_seconds", 1, 60),
    ):
        seconds = seen.get_value(f"{name}_sum", backend="Kubernetes")
        assert seen.get_value(f"{name}_count", backend="Kubernetes") == count
        assert seconds is not None
        assert 0 < seconds < most
    created = seen.get_value("muster_api_requests_total", verb="create", resource="pods", code="201")
    # Dry runs count, too.
    assert created is not None
    assert created >= 4
    assert seen.get_value("muster_reconciles_total", result="Bug") == 0
    resting = scrape(standby)
    assert (resting.get_value("muster_leader"), resting.get_value("muster_jobs")) == (0, None)
    assert resting.get_value("muster_api_requests_total", verb="watch", resource="pods", code="200")
    # The agents found the leader at once: the standby refused none of them.
    assert "NotLeader" not in leader.said + standby.said

"""Deletions by different users at different times: no objects remain, and none is created again."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.operator.cluster_jobs import FOREVER, Jobs
from cluster.operator.operator_process import OperatorProcess
from cluster.operator.site import Site, new_site
from cluster.shared import Cluster

RUNNING = "jsonpath={.status.phase}=Running"


@pytest.fixture
def doomed_site(cluster: Cluster, tmp_path: Path) -> Iterator[Site]:
    """Yield a site that loses a namespace: without the chart's permissions for it, no operator can start any more."""
    with new_site(cluster, "doomed", tmp_path) as made:
        yield made


def one_rank(jobs: Jobs, name: str, script: str = FOREVER, **spec: object) -> None:
    jobs.apply(name, script, **{"nodes": 1, "procsPerNode": 1, **spec})


def another_lives(jobs: Jobs, name: str) -> None:
    """Wait for the whole life of a job: enough time for an object to be created again, and a sign that the operator
    works.
    """
    one_rank(jobs, name, "pass")
    jobs.wait(name, "condition=Complete")


def test_a_job_that_is_deleted_while_no_operator_runs(operator: OperatorProcess, site: Site) -> None:
    jobs = site.jobs
    for name in ("orphan", "ended"):
        one_rank(jobs, name, FOREVER if name == "orphan" else "pass", cleanPodPolicy="None")
    jobs.wait("orphan", RUNNING)
    jobs.wait("ended", "condition=Complete")
    children = jobs.children("orphan") | jobs.children("ended")
    assert len(children) == 6
    operator.signal(signal.SIGTERM)
    jobs.run("delete", "dtj", "orphan", "ended")
    jobs.kubectl.wait("delete", *children, f"--namespace={site.namespace}")
    site.operators.start()
    another_lives(jobs, "after-orphan")
    assert jobs.children("orphan") | jobs.children("ended") == set()
    assert "Traceback" not in site.said


def test_a_namespace_that_is_deleted_while_its_jobs_run(doomed_site: Site) -> None:
    site = doomed_site
    operator, doomed = site.operators.start(), Jobs(site.kubectl, site.second)
    for name in ("doomed", "doomed-too"):
        one_rank(doomed, name)
    one_rank(doomed, "doomed-waits", resources={"requests": {"cpu": "640"}})
    one_rank(doomed, "doomed-ended", "pass")
    for name in ("doomed", "doomed-too"):
        doomed.wait(name, RUNNING)
    doomed.wait("doomed-ended", "condition=Complete")
    site.kubectl("delete", "namespace", site.second, "--wait=false")
    site.kubectl.wait("delete", f"namespace/{site.second}")
    another_lives(site.jobs, "after-doomed")
    assert operator.runs
    assert "Traceback" not in operator.said


def test_children_that_are_deleted_while_the_job_runs(operator: OperatorProcess, site: Site) -> None:
    # Its pods have mounted their volumes: Service and ConfigMap are created again only for pods that will start.
    jobs = site.jobs
    one_rank(jobs, "bare")
    jobs.wait("bare", RUNNING)
    jobs.started_pod("bare-0-0")
    jobs.run("delete", "service/bare-muster", "configmap/bare-muster")
    another_lives(jobs, "after-bare")
    assert jobs.children("bare") == {"pod/bare-0-0"}
    assert jobs.status("bare")["phase"] == "Running"
    # a new start needs them again
    jobs.patch("bare", suspend=True)
    jobs.wait("bare", "condition=Suspended")
    jobs.patch("bare", suspend=False)
    jobs.wait("bare", RUNNING)
    assert jobs.children("bare") == {"pod/bare-0-1", "service/bare-muster", "configmap/bare-muster"}
    jobs.run("delete", "dtj", "bare", "--wait=false")
    assert "Traceback" not in operator.said


def test_a_job_that_ran_never_runs_again_after_a_deletion(operator: OperatorProcess, site: Site) -> None:
    jobs = site.jobs
    one_rank(jobs, "done", "pass", cleanPodPolicy="None")
    one_rank(jobs, "broken", "raise SystemExit(3)", cleanPodPolicy="None")
    one_rank(jobs, "stopped", cleanPodPolicy="None")
    jobs.wait("done", "condition=Complete")
    jobs.wait("broken", "condition=Failed")
    jobs.wait("stopped", RUNNING)
    before = {name: jobs.status(name) for name in ("done", "broken")}
    jobs.run("delete", *(jobs.children("done") | jobs.children("broken")))
    another_lives(jobs, "after-done")
    operator.signal(signal.SIGTERM)
    # the whole namespace, while no operator runs
    jobs.run("delete", *jobs.children("stopped"), "--grace-period=1")
    restarted = site.operators.start()
    jobs.wait("stopped", "condition=Failed")
    another_lives(jobs, "after-restart")
    for name, status in before.items():
        assert jobs.status(name) == status
        assert jobs.children(name) == set()
    assert jobs.children("stopped") == set()
    assert jobs.status("stopped")["attempt"] == 1
    assert "Traceback" not in restarted.said

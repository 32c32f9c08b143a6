"""A job's life on a real cluster, from `kubectl apply` to its end."""

import json

from cluster.ended_job import succeeded
from cluster.operator.cluster_jobs import FOREVER, Jobs
from cluster.operator.operator_process import OperatorProcess
from cluster.operator.site import Site

RUNNING = "jsonpath={.status.phase}=Running"


def events(jobs: Jobs, name: str) -> list[str]:
    """Return the reasons of the job's events, in the order of their reports."""
    listed = json.loads(jobs.run("get", "events", f"--field-selector=involvedObject.name={name}", "--output=json"))
    value = sorted(listed["items"], key=lambda event: (event["firstTimestamp"], event["metadata"]["creationTimestamp"]))
    return [event["reason"] for event in value if event["involvedObject"]["kind"] == "DistributedTrainingJob"]


def test_jobs_complete_and_are_deleted_with_their_children(operator: OperatorProcess, site: Site) -> None:
    """Two jobs at once, because each waits most of the time."""
    site.jobs.apply("hello")
    site.jobs.apply("gone", FOREVER)
    completed(operator, site.jobs, "hello")
    deleted(operator, site.jobs, "gone")


def completed(operator: OperatorProcess, jobs: Jobs, name: str) -> None:
    jobs.wait(name, "condition=Complete")
    resource = jobs.resource(name)
    status = resource["status"]
    assert (status["phase"], status["attempt"], succeeded(status)) == ("Succeeded", 1, "4/4")
    assert {f"pod/{name}-0-0", f"pod/{name}-1-0"} == jobs.children(name, "pods")
    jobs.wait_for_log(f"{name}-1-0", "rank 3 of 4")
    # no state of libraries in the user's resource
    assert "finalizers" not in resource["metadata"]
    assert set(resource["metadata"].get("annotations", {})) <= {"kubectl.kubernetes.io/last-applied-configuration"}
    assert set(events(jobs, name)) >= {"Started", "Completed"}
    assert f"{name}: Succeeded: " in operator.said


def deleted(operator: OperatorProcess, jobs: Jobs, name: str) -> None:
    jobs.wait(name, RUNNING)
    children = jobs.children(name)
    assert len(children) == 4
    jobs.run("delete", f"dtj/{name}", "--wait=true")
    jobs.kubectl.wait("delete", *children, f"--namespace={jobs.namespace}")
    # the whole life of another job is enough time for an object to be created again
    jobs.apply("next", nodes=1, procsPerNode=1)
    jobs.wait("next", "condition=Complete")
    assert jobs.children(name) == set()
    assert f"{name}: the resource was deleted" in operator.said

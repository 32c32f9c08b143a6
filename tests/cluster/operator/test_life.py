"""A job's life on a real cluster, from `kubectl apply` to its end."""

import json

from cluster.ended_job import succeeded
from cluster.operator.cluster_jobs import FOREVER, Jobs
from cluster.operator.operator_process import OperatorProcess

RUNNING = "jsonpath={.status.phase}=Running"


def events(jobs: Jobs, name: str) -> list[str]:
    """Return the reasons of the job's events, in the order of their reports."""
    listed = json.loads(jobs.run("get", "events", f"--field-selector=involvedObject.name={name}", "--output=json"))
    value = sorted(listed["items"], key=lambda event: (event["firstTimestamp"], event["metadata"]["creationTimestamp"]))
    return [event["reason"] for event in value if event["involvedObject"]["kind"] == "DistributedTrainingJob"]


def test_a_job_completes_on_all_its_ranks(process_operator: OperatorProcess, jobs: Jobs) -> None:
    jobs.apply("hello")
    jobs.wait("hello", "condition=Complete")
    resource = jobs.resource("hello")
    status = resource["status"]
    assert (status["phase"], status["attempt"], succeeded(status)) == ("Succeeded", 1, "4/4")
    assert {"pod/hello-0-0", "pod/hello-1-0"} == jobs.children("hello", "pods")
    assert "rank 3 of 4" in jobs.log("hello-1-0")
    # no state of libraries in the user's resource
    assert "finalizers" not in resource["metadata"]
    assert set(resource["metadata"].get("annotations", {})) <= {"kubectl.kubernetes.io/last-applied-configuration"}
    assert set(events(jobs, "hello")) >= {"Started", "Completed"}
    assert "hello: Succeeded: " in process_operator.said


def test_a_suspended_job_gives_up_its_pods_and_starts_anew(process_operator: OperatorProcess, jobs: Jobs) -> None:
    jobs.apply("nap", FOREVER)
    jobs.wait("nap", RUNNING)
    jobs.patch("nap", suspend=True)
    jobs.wait("nap", "condition=Suspended")
    assert jobs.children("nap", "pods") == set()
    status = jobs.status("nap")
    assert (status["phase"], "startTime" in status) == ("Suspended", False)
    jobs.patch("nap", suspend=False)
    jobs.wait("nap", RUNNING)
    status = jobs.status("nap")
    assert status["attempt"] == 2
    assert {"pod/nap-0-1", "pod/nap-1-1"} == jobs.children("nap", "pods"), process_operator.said


def test_a_deleted_job_takes_its_children_along_and_nothing_comes_back(
    process_operator: OperatorProcess, jobs: Jobs
) -> None:
    jobs.apply("gone", FOREVER)
    jobs.wait("gone", RUNNING)
    children = jobs.children("gone")
    assert len(children) == 4
    jobs.run("delete", "dtj/gone", "--wait=true")
    jobs.kubectl.wait("delete", *children, f"--namespace={jobs.namespace}")
    # the whole life of another job is enough time for an object to be created again
    jobs.apply("next")
    jobs.wait("next", "condition=Complete")
    assert jobs.children("gone") == set()
    assert "gone: the resource was deleted" in process_operator.said


def test_what_only_muster_sees_is_wrong_is_refused_in_the_status(process_operator: OperatorProcess, jobs: Jobs) -> None:
    jobs.apply("bad", metrics=[{"name": "loss", "regex": "loss=("}])
    jobs.wait("bad", "condition=Accepted=False")
    status = jobs.status("bad")
    accepted = next(each for each in status["conditions"] if each["type"] == "Accepted")
    assert "spec.metrics[0].regex" in accepted["message"]
    assert jobs.children("bad") == set()
    jobs.patch("bad", metrics=[{"name": "loss", "regex": "loss=(.*)"}])
    jobs.wait("bad", "condition=Complete")
    assert "Traceback" not in process_operator.said

"""A job whose pods wait for Kueue, on a cluster without Kueue: the test admits the job as Kueue does."""

import json

from cluster.operator.cluster_jobs import Jobs

GATE = "kueue.x-k8s.io/admission"
LIFT = json.dumps([{"op": "remove", "path": "/spec/schedulingGates"}])


def test_a_job_starts_when_its_group_of_pods_is_admitted(jobs: Jobs) -> None:
    jobs.apply("queued", queue={"kueue": "team-a"})
    jobs.wait("queued", "condition=Scheduled=False")
    jobs.wait("queued", "jsonpath={.status.conditions[?(@.type=='Scheduled')].reason}=SchedulingGated")
    status = jobs.status("queued")
    assert status["phase"] == "Queued"
    assert "Kueue does not manage the pods of namespace" in status["message"]
    pods = json.loads(jobs.run("get", "pods", "--selector=muster.dev/job=queued", "--output=json"))["items"]
    for pod in pods:
        labels, annotations = pod["metadata"]["labels"], pod["metadata"]["annotations"]
        assert labels["kueue.x-k8s.io/queue-name"] == "team-a"
        assert annotations["kueue.x-k8s.io/pod-group-total-count"] == "2"
        assert pod["spec"]["schedulingGates"] == [{"name": GATE}]
    assert len({pod["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"] for pod in pods}) == 1
    for pod in pods:
        jobs.run("patch", f"pod/{pod['metadata']['name']}", "--type=json", f"--patch={LIFT}")
    jobs.wait("queued", "condition=Complete")

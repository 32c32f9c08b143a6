"""Two operators share the jobs of a namespace: each job has one of them, also while the number of shards changes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.helm import Helm
from cluster.operator.cluster_jobs import FOREVER, Jobs, manifest
from cluster.operator.operator_process import Replicas, account, replicas
from cluster.shared import WAIT_SECONDS, Kubectl, SharedCluster
from muster.core.shard import Shard

NAMES = tuple(f"job-{number}" for number in range(16))
RUNNING = "jsonpath={.status.phase}=Running"
SUSPENDED = "jsonpath={.status.phase}=Suspended"
OBSERVED = "jsonpath={.status.observedGeneration}=2"
FIRST, SECOND = Shard(0, 2), Shard(1, 2)


@pytest.fixture
def operators(
    shared_cluster: SharedCluster, crd: None, kubectl: Kubectl, helm: Helm, namespace: str, tmp_path: Path
) -> Iterator[Replicas]:
    """Yield operators with the rights and Services of two shards, not started yet."""
    del shared_cluster, crd  # pods of another cluster can't reach this machine
    rights = account(kubectl, helm, namespace, tmp_path, shards=2)
    with replicas(kubectl, rights, namespace, tmp_path, shards=2) as none_yet:
        yield none_yet


def shards_of(jobs: Jobs) -> dict[str, int]:
    """Wait until all jobs are suspended, and return the shards that their statuses name."""
    jobs.run("wait", "dtj", *NAMES, f"--for={SUSPENDED}", f"--timeout={WAIT_SECONDS}s")
    items = json.loads(jobs.run("get", "dtj", "--output=json"))["items"]
    return {item["metadata"]["name"]: item["status"].get("shard", 0) for item in items}


def suspend_all(jobs: Jobs) -> None:
    items = [manifest(name, FOREVER, nodes=1, procsPerNode=1, suspend=True) for name in NAMES]
    jobs.run("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def test_each_shard_runs_its_jobs_and_one_that_ran_before_stays_in_its_shard(operators: Replicas, jobs: Jobs) -> None:
    only = operators.start()
    jobs.apply("early", FOREVER, nodes=1, procsPerNode=1)
    jobs.wait("early", RUNNING)
    only.end()
    first, second = operators.start(FIRST), operators.start(SECOND)
    suspend_all(jobs)
    shards = shards_of(jobs)
    assert set(shards.values()) == {0, 1}
    for index in (0, 1):
        name = next(name for name in NAMES if shards[name] == index)
        jobs.patch(name, suspend=False)
        # The pod has found its shard's collector, which knows the rank's state.
        jobs.wait(name, RUNNING)
        labels = json.loads(jobs.run("get", f"pod/{name}-0-0", "--output=json"))["metadata"]["labels"]
        assert labels.get("muster.dev/shard") == ("1" if index else None)
    leases = json.loads(jobs.run("get", "lease", "muster", "muster-1", "--output=json"))["items"]
    assert len({lease["spec"]["holderIdentity"] for lease in leases}) == 2
    assert "shard" not in jobs.status("early")
    jobs.patch("early", suspend=True)
    jobs.wait("early", SUSPENDED)
    assert "early" not in second.said
    assert "Traceback" not in first.said + second.said


def test_two_operators_that_both_want_a_new_job_agree(operators: Replicas, jobs: Jobs) -> None:
    # As during an upgrade from one shard to two: the old operator wants all jobs, the new one half of them.
    suspend_all(jobs)
    old, new = operators.start(), operators.start(SECOND)
    before = shards_of(jobs)
    jobs.run("patch", "dtj", *NAMES, "--type=merge", '--patch={"spec": {"startupTimeoutSeconds": 100}}')
    jobs.run("wait", "dtj", *NAMES, f"--for={OBSERVED}", f"--timeout={WAIT_SECONDS}s")
    assert shards_of(jobs) == before
    assert "Traceback" not in old.said + new.said


def test_a_job_of_a_missing_shard_is_logged_and_continues_when_the_shard_is_back(
    operators: Replicas, jobs: Jobs
) -> None:
    suspend_all(jobs)
    second = operators.start(SECOND)
    items = json.loads(jobs.run("get", "dtj", "--output=json"))["items"]
    own = [each["metadata"]["name"] for each in items if SECOND.has_job(each["metadata"]["uid"], {})]
    jobs.run("wait", "dtj", *own, f"--for={SUSPENDED}", f"--timeout={WAIT_SECONDS}s")
    second.end()
    only = operators.start()
    # The operator handles changes in their order, so it has read all jobs before this one.
    jobs.apply("late", FOREVER, nodes=1, procsPerNode=1, suspend=True)
    jobs.wait("late", SUSPENDED)
    assert shards_of(jobs) == {name: int(name in own) for name in (*NAMES, "late")}
    assert (
        f"{jobs.namespace}/{own[0]} is not reconciled: it belongs to shard 1 of an earlier configuration" in only.said
    )
    operators.start(SECOND)
    jobs.patch(own[0], startupTimeoutSeconds=100)
    jobs.wait(own[0], OBSERVED)

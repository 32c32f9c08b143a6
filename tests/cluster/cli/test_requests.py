"""`muster suspend`, `resume` and `restart`, against statuses that the tests write."""

from pathlib import Path

from cluster.cli.test_access import config_of
from cluster.cli.told_jobs import NAME, RUNNING, ToldJobs
from cluster.muster_command import Muster
from cluster.shared import Kubectl

COMMANDS = ("suspend", "resume", "restart")


def test_a_missing_job_missing_rights_and_an_operator_that_does_nothing(
    kubectl: Kubectl, muster: Muster, told: ToldJobs, tmp_path: Path
) -> None:
    for command in COMMANDS:
        done = muster(command, "nosuch")
        assert done.returncode == 2
        assert "there is no DistributedTrainingJob nosuch in the namespace" in done.stderr
    told.create(RUNNING)
    where = f"--namespace={told.namespace}"
    kubectl("create", "role", "reader", "--verb=get", "--resource=distributedtrainingjobs.muster.dev", where)
    kubectl("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={told.namespace}:default", where)
    token = kubectl("create", "token", "default", where).strip()
    reader = Muster(config_of(kubectl, tmp_path, token), told.namespace)
    for command in ("suspend", "restart"):
        done = reader(command, NAME)
        assert done.returncode == 2
        assert done.stderr.startswith("muster: the cluster denies the request: ")
        assert 'cannot patch resource "distributedtrainingjobs"' in done.stderr
    late = muster("suspend", NAME, "--timeout", "0.5")
    assert late.returncode == 124
    assert late.stderr.endswith(f"{told.namespace}/{NAME} will be suspended later\n")

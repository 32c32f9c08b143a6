"""`muster suspend`, `resume` and `restart`, against statuses that the tests write."""

from pathlib import Path

from cluster.cli.test_access import config_of
from cluster.cli.told_jobs import COMPLETE, JOB, NAME, RUNNING, SUSPENDED, ToldJobs
from cluster.muster_command import Muster
from cluster.shared import Kubectl
from muster.api.names import RESTART_ANNOTATION
from muster.api.status.restarts import RestartRequest

COMMANDS = ("suspend", "resume", "restart")

RUNS = RUNNING.model_copy(update={"observed_generation": 9})
"""The status after the operator has seen every change of the spec."""


def stored(told: ToldJobs, path: str) -> str:
    return told.kubectl("get", JOB, f"--namespace={told.namespace}", f"--output=jsonpath={{{path}}}")


def requested(told: ToldJobs) -> str:
    return stored(told, f".metadata.annotations.{RESTART_ANNOTATION.replace('.', chr(92) + '.')}")


def test_suspend_and_resume_wait_until_it_is_done(muster: Muster, told: ToldJobs) -> None:
    told.create(RUNNING)
    with muster.begin("suspend", NAME) as suspending:
        assert suspending.stderr is not None
        assert "4 of 4 ranks run" in suspending.stderr.readline()
        told.kubectl.wait("jsonpath={.spec.suspend}=true", JOB, f"--namespace={told.namespace}")
        told.tell(SUSPENDED)
        assert f"{told.namespace}/{NAME} is suspended (" in suspending.communicate(timeout=60)[1]
        assert suspending.returncode == 0
    with muster.begin("resume", NAME) as resuming:
        assert resuming.stderr is not None
        assert SUSPENDED.message in resuming.stderr.readline()
        told.tell(RUNS)
        assert f"{told.namespace}/{NAME} is resumed (" in resuming.communicate(timeout=60)[1]
        assert resuming.returncode == 0
    assert stored(told, ".spec.suspend") == "false"


def test_restart_waits_for_its_own_request(muster: Muster, told: ToldJobs) -> None:
    told.create(RUNNING)
    with muster.begin("restart", NAME) as restarting:
        assert restarting.stderr is not None
        assert "4 of 4 ranks run" in restarting.stderr.readline()
        for value in ("of somebody else", requested(told)):
            told.tell(RUNS.model_copy(update={"restart_request": RestartRequest(value=value)}))
        assert f"{told.namespace}/{NAME} runs again (" in restarting.communicate(timeout=60)[1]
        assert restarting.returncode == 0


def test_only_the_request_is_sent_if_wanted(muster: Muster, told: ToldJobs) -> None:
    told.create(RUNNING)
    done = muster("restart", NAME, "--no-wait")
    assert (done.returncode, done.stderr) == (0, f"{told.namespace}/{NAME} will be restarted\n")
    assert requested(told)
    late = muster("suspend", NAME, "--timeout", "0.5")
    assert late.returncode == 124
    assert late.stderr.endswith(f"{told.namespace}/{NAME} will be suspended later\n")


def test_what_can_t_be_done_is_said(muster: Muster, told: ToldJobs) -> None:
    told.create(COMPLETE)
    done = muster("restart", NAME)
    assert (done.returncode, done.stdout) == (2, "")
    assert "has ended (Succeeded), so it can't be restarted; delete it and apply it again" in done.stderr
    assert not requested(told)


def test_a_job_that_does_not_exist_and_rights_that_lack(
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

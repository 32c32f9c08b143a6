"""`muster logs`, with pods that the tests create."""

from cluster.cli.told_jobs import COMPLETE, NAME, RUNNING, SUSPENDED, ToldJobs
from cluster.muster_command import Muster

NODE_0 = "echo '[rank 0] loss=1'; echo '[rank 1] loss=2'; echo '[torchrun] hello'"
NODE_1 = """
echo '[rank 2] loss=3'
while [ ! -e /tmp/go ]; do sleep 0.1; done
# The container's end would kill the touch that kubectl waits for.
while grep --quiet --no-messages --line-regexp touch /proc/[0-9]*/comm; do sleep 0.1; done
echo '[rank 3] last'
"""


def test_lines_by_rank(muster: Muster, told: ToldJobs) -> None:
    told.create(RUNNING)
    told.pod(0, NODE_0)
    told.pod(1, NODE_1)
    told.pod_is(0, "Succeeded")
    told.pod_is(1, "Running")
    all_of_them = muster("logs", NAME)
    assert all_of_them.stdout == ("[rank 0] loss=1\n[rank 1] loss=2\n[told-0-0 torchrun] hello\n[rank 2] loss=3\n")
    assert muster("logs", NAME, "--rank", "1").stdout == "[rank 1] loss=2\n"
    assert muster("logs", NAME, "--tail", "1").stdout == "[told-0-0 torchrun] hello\n[rank 2] loss=3\n"
    other = muster("logs", NAME, "--rank", "4")
    assert (other.returncode, other.stderr) == (2, "muster: --rank 4: the job has ranks 0 to 3\n")


def test_following_ends_with_the_job_and_misses_nothing(muster: Muster, told: ToldJobs) -> None:
    told.create(SUSPENDED)
    with muster.begin("logs", NAME, "-f", "--rank", "2", "--rank", "3") as following:
        assert following.stdout is not None
        assert following.stderr is not None
        assert following.stderr.readline() == f"{SUSPENDED.message}\n"
        told.pod(1, NODE_1)
        told.tell(RUNNING)
        assert following.stdout.readline() == "[rank 2] loss=3\n"
        told.kubectl("exec", f"{NAME}-1-0", f"--namespace={told.namespace}", "--", "touch", "/tmp/go")  # noqa: S108
        assert following.stdout.readline() == "[rank 3] last\n"
        told.tell(COMPLETE)
        assert following.communicate(timeout=60)[0] == ""
        assert following.returncode == 0


def test_pods_that_wait_or_are_gone(muster: Muster, told: ToldJobs) -> None:
    told.create(RUNNING)
    none = muster("logs", NAME)
    assert none.returncode == 2
    assert f"told has no pods: {RUNNING.message}" in none.stderr
    # no machine has room for it
    told.pod(0, "true", cpu="1000")
    waiting = muster("logs", NAME)
    assert (waiting.returncode, waiting.stdout) == (0, "")
    assert waiting.stderr == f"{RUNNING.message}\n[told-0-0] no log yet: the pod is Pending\n"
    told.tell(COMPLETE)
    # a pod that never started doesn't block the command with --follow
    assert muster("logs", NAME, "-f").returncode == 0
    told.kubectl("delete", f"pod/{NAME}-0-0", f"--namespace={told.namespace}")
    gone = muster("logs", NAME)
    assert "told has no pods any more: muster deleted them when it had ended (spec.cleanPodPolicy)" in gone.stderr

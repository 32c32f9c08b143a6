"""`muster list` and `muster top` on a real API server."""

import json

from cluster.cli.told_jobs import FAILED, NAME, RUNNING, ToldJobs
from cluster.muster_command import Muster
from cluster.terminal import CTRL_C


def test_the_jobs_of_a_namespace_and_of_all(muster: Muster, told: ToldJobs, namespace: str) -> None:
    told.create(RUNNING)
    done = muster("list")
    assert (done.returncode, done.stderr) == (0, "")
    title, line = done.stdout.splitlines()
    assert title.split() == [
        *("NAME", "BACKEND", "PHASE", "RANKS", "ATTEMPT", "RESTARTS", "PERCENT", "REMAINING", "AGE", "MESSAGE")
    ]
    assert line.split()[:6] == [NAME, "Kubernetes", "Running", "4/4", "0", "0"]
    assert line.endswith(RUNNING.message)
    everywhere = muster("list", "-A", "--namespace", namespace)
    assert everywhere.returncode == 2
    assert "use either --namespace or --all-namespaces" in everywhere.stderr


def test_the_live_jobs(muster: Muster, told: ToldJobs) -> None:
    told.create(RUNNING)
    with muster.on_terminal("top") as terminal:
        terminal.until(lambda text: "1 job: 1 running" in text)
        told.tell(FAILED)
        terminal.until(lambda text: "1 job: 1 failed" in text)
        told.delete()
        terminal.until(lambda text: "0 jobs" in text)
        terminal.press(CTRL_C)
        assert terminal.end() == 0


def test_data(muster: Muster, told: ToldJobs) -> None:
    told.create(RUNNING)
    listed = json.loads(muster("list", "-o", "json").stdout)
    (job,) = listed["items"]
    assert job["status"]["phase"] == "Running"
    assert json.loads(
        told.kubectl("get", "--namespace", told.namespace, "-f", "-", "-o", "json", stdin=json.dumps(listed))
    )
    ranks = json.loads(muster("ranks", NAME, "-o", "json").stdout)["ranks"]
    assert [rank["step"] for rank in ranks] == [131, 131, 120, 131]
    told.tell(FAILED)
    done = muster("wait", NAME, "-o", "json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["status"]["ranks"]["details"][0]["exitCode"] == 3

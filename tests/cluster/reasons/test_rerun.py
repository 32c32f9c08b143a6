"""`muster rerun` with the operator and real pods: edited code in the same pods."""

import time
from pathlib import Path

from cluster.operator.cluster_jobs import FOREVER
from cluster.reasons.stage import Stage, template
from cluster.reasons.test_requested_restarts import command
from cluster.reasons.test_restarts import history, runs, uids
from cluster.say import say

SAYS_CODE = f"""
import os
print("rank", os.environ["RANK"], "attempt", os.environ["MUSTER_ATTEMPT"], "runs", {{code!r}}, flush=True)
{FOREVER}
"""
OWN = ["sh", "-c", 'test -f train.py && exec python3 train.py; exec python3 -c "$0"', SAYS_CODE.format(code="its own")]
RESTRICTED = template(
    {"securityContext": {"readOnlyRootFilesystem": True, "runAsUser": 1234, "allowPrivilegeEscalation": False}}
)


def edited(folder: Path, code: str) -> Path:
    (folder / "train.py").write_text(SAYS_CODE.format(code=code), encoding="ascii")
    return folder


def rerun(stage: Stage, name: str, *options: str) -> None:
    began = time.monotonic()
    done = command(stage)("rerun", name, *options)
    assert done.returncode == 0, done.stderr
    say(f"{name}: {done.stderr.splitlines()[-1]}; the command took {time.monotonic() - began:.2f} s")


def sources(stage: Stage, name: str) -> set[str]:
    names = stage.jobs.run("get", "configmaps", f"--selector=muster.dev/job={name},muster.dev/source", "--output=name")
    return {entry.removeprefix("configmap/") for entry in names.split()}


def accepted(stage: Stage, name: str) -> str:
    path = '{.status.conditions[?(@.type=="Accepted")].message}'
    return stage.jobs.run("get", f"dtj/{name}", f"--output=jsonpath={path}")


def test_the_same_pods_run_edited_code_and_then_their_own(stage: Stage, tmp_path: Path) -> None:
    stage.apply("edited", command=OWN, nodes=2, procsPerNode=2, template=RESTRICTED)
    runs(stage, "edited", 1)
    before = uids(stage, "edited")
    for attempt, code in ((2, "an edit"), (3, "another edit")):
        rerun(stage, "edited", "--source", str(edited(tmp_path, code)))
        status = runs(stage, "edited", attempt).status
        assert sources(stage, "edited") == {status["source"]["configMap"]}
        for node in range(2):
            ranks = (2 * node, 2 * node + 1)
            lines = [f"rank {rank} attempt {attempt} runs {code}" for rank in ranks]
            stage.jobs.wait_for_log(f"edited-{node}-0", *lines)
    assert "not the code of the spec" in accepted(stage, "edited")
    # A pod that replaces another one gets the code, too.
    stage.jobs.run("patch", "dtj/edited", "--type=merge", '--patch={"spec":{"suspend":true}}')
    stage.jobs.wait("edited", "jsonpath={.status.phase}=Suspended")
    stage.jobs.run("patch", "dtj/edited", "--type=merge", '--patch={"spec":{"suspend":false}}')
    runs(stage, "edited", 4)
    assert before.keys() != uids(stage, "edited").keys() or before != uids(stage, "edited")
    for node in range(2):
        stage.jobs.wait_for_log(f"edited-{node}-1", "attempt 4 runs another edit")
    rerun(stage, "edited", "--original")
    last = runs(stage, "edited", 5).status
    assert "source" not in last
    assert [entry[1] for entry in history(last)] == ["RestartRequested"] * 3
    assert sources(stage, "edited") == set()

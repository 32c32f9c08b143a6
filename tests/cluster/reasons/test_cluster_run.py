"""`muster run --on cluster` with the operator and real pods: the code, the output, Ctrl-C, and another round."""

import json
from pathlib import Path

from cluster.operator.cluster_jobs import FOREVER, manifest
from cluster.reasons.stage import A_SHARE, Stage
from cluster.reasons.test_requested_restarts import command
from cluster.reasons.test_rerun import sources
from cluster.terminal import CTRL_C

NAME = "from-here"
SAYS_CODE = """
import os
print("rank", os.environ["RANK"], "runs", {code!r}, flush=True)
"""


def written(folder: Path, code: str, more: str = "") -> list[str]:
    """Write the code and the job, and return the command."""
    source = folder / "code"
    source.mkdir(exist_ok=True)
    (source / "train.py").write_text(SAYS_CODE.format(code=code) + more, encoding="ascii")
    job = manifest(NAME, nodes=2, procsPerNode=1, resources=A_SHARE, command=["python3", "train.py"])
    (folder / "job.yaml").write_text(json.dumps(job), encoding="ascii")
    return ["run", "--on", "cluster", "-f", str(folder / "job.yaml"), "--source", str(source)]


def test_two_rounds_from_a_folder(stage: Stage, tmp_path: Path) -> None:
    stage.applied.append(NAME)
    muster = command(stage)
    first = muster(*written(tmp_path, "the first round"))
    assert first.returncode == 0, first.stderr
    lines = first.stderr.splitlines()
    assert {"[rank 0] rank 0 runs the first round", "[rank 1] rank 1 runs the first round"} <= {*lines}

    words = written(tmp_path, "the second round", FOREVER)
    refused = muster(*words)
    assert refused.returncode == 2
    assert "(Succeeded: " in refused.stderr
    assert "--replace deletes it" in refused.stderr

    with muster.on_terminal(*words, "--replace") as terminal:
        terminal.until(lambda text: "rank 1 runs the second round" in text and f"{NAME}  Running" in text)
        assert len(sources(stage, NAME)) == 1
        terminal.press(CTRL_C)
        assert terminal.end() == 130
        assert f"{stage.namespace}/{NAME} is suspended" in terminal.text.replace("\n", "")
    described = muster("describe", NAME)
    assert described.returncode == 0, described.stderr
    assert described.stdout.startswith(f"{NAME}  {stage.namespace}  Kubernetes  Suspended\n")

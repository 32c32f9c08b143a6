"""`muster run` of a job with a slow rank: a rule of the failure policy replaces its node, and the job completes."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from integration.run.muster_run import run, write_job

TRAIN = """
import os, time, torch, torch.distributed as dist
import muster_worker
torch.set_num_threads(1)
rank, attempt = int(os.environ["RANK"]), os.environ["MUSTER_ATTEMPT"]
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(2000 if attempt == "1" else 3):
    if rank == 1 and attempt == "1":
        time.sleep(0.5)
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if muster_worker.stopping():
        break
"""


# A straggler is one for a minute before muster replaces it.
@pytest.mark.long
def test_the_node_of_a_straggler_is_replaced(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    rule = {"action": "Restart", "reasons": ["Straggler"]}
    policy = {"maxRestarts": 1, "rules": [rule]}
    job = write_job(tmp_path, ["python", str(script)], procsPerNode=1, failurePolicy=policy)
    ended = run(tmp_path, job, "-o", "json", env={"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"})
    status: dict[str, Any] = json.loads(ended.stdout)["status"]

    assert (ended.wait(), status["phase"], status["attempt"]) == (0, "Succeeded", 2), status["message"] + ended.stderr
    (record,) = status["restarts"]["history"]
    assert (record["reason"], record["rank"], record["node"], record["replacedPods"]) == ("Straggler", 1, 1, 1)
    assert "times the median" in record["message"]
    assert "stragglers" not in status
    assert ended.left() == []

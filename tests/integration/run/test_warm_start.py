"""Ranks with the real torch, forked by the fork server: they train, fail and start again."""

import json
import sys
from pathlib import Path

import pytest

from integration.run.muster_run import run, write_job

TRAIN = """
import sys
was_imported = "torch" in sys.modules
import os, signal
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
layer = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(3):
    layer(torch.rand(2, 4)).sum().backward()
    optimizer.step()
print("imported before:", was_imported, flush=True)
dist.barrier()
if os.environ["MUSTER_ATTEMPT"] == "1" and os.environ["RANK"] == "1":
    os.kill(os.getpid(), signal.SIGKILL)
dist.destroy_process_group()
"""


@pytest.mark.parametrize("launcher", ["torchrun", pytest.param("direct", marks=pytest.mark.long)])
@pytest.mark.parametrize("warm_start", ["Auto", pytest.param("Off", marks=pytest.mark.long)])
def test_ranks_train_again_after_a_failure(tmp_path: Path, launcher: str, warm_start: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    job = write_job(
        tmp_path,
        [sys.executable, str(script)],
        nodes=1,
        launcher={launcher: {}},
        failurePolicy={"maxRestarts": 1},
        warmStart=warm_start,
    )
    ended = run(tmp_path, job, "-o", "json")
    status = json.loads(ended.stdout)["status"]
    log = (ended.folder / "logs" / "tiny-0.log").read_text()
    assert (ended.wait(), status["phase"], status["restarts"]["failures"]) == (0, "Succeeded", 1), log
    assert status["progress"]["step"] == 3
    assert log.count(f"imported before: {warm_start == 'Auto'}") == 4
    assert "fork server" not in log
    assert "imports torch itself" not in log
    assert ended.left() == []


@pytest.mark.long
def test_a_script_that_sets_a_variable_before_the_import_starts_plainly(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import os\nos.environ['OMP_NUM_THREADS'] = '3'\nimport torch")
    job = write_job(tmp_path, [sys.executable, str(script)], nodes=1, launcher={"torchrun": {}})
    ended = run(tmp_path, job)
    log = (ended.folder / "logs" / "tiny-0.log").read_text()
    assert ended.wait() == 0, log
    assert "train.py sets OMP_NUM_THREADS before it imports torch; set it in spec.env instead" in log

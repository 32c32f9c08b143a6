"""The percentage and the remaining time of real trainings, as `muster run` shows them."""

import json
import os
import re
import sys
import time
from pathlib import Path

import pytest
import yaml

from integration.run.muster_run import OnTerminal, run, start, start_on_terminal, write_job
from muster_dev.paths import ROOT
from support.progress_samples import Sample, check_samples, find_lightning, find_transformers

SHOWN = re.compile(r"·  (\d+) %(?:  ·  (?:(\d+):)?(\d+):(\d\d) left)?")
EXAMPLE = ROOT / "training" / "examples" / "transformers"


def follow(shown: OnTerminal, seconds: float) -> tuple[list[Sample], float]:
    """Return what the board showed over time, and when the trainer's first log line appeared."""
    samples: list[Sample] = []
    first_log_at, text, until = 0.0, "", time.time() + seconds
    while time.time() < until:
        try:
            text += os.read(shown.terminal, 65536).decode("utf-8", "replace")
        except OSError:
            break  # the run ended and closed its side
        at = time.time()
        if not first_log_at and "'loss':" in text:
            first_log_at = at
        for match in SHOWN.finditer(text):
            hours, minutes, rest = match[2], match[3], match[4]
            remaining = None if rest is None else int(hours or 0) * 3600 + int(minutes) * 60 + int(rest)
            samples.append(Sample(at, int(match[1]), remaining))
        text = text[-200:] if not SHOWN.search(text[-200:]) else ""
    return samples, first_log_at


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.timeout(900)
def test_an_unchanged_trainer_script_shows_its_progress(tmp_path: Path) -> None:
    job = yaml.safe_load((EXAMPLE / "job.yaml").read_text(encoding="utf-8"))
    job["spec"]["command"] = [sys.executable, str(EXAMPLE / "train.py")]
    job["spec"]["hyperparameters"]["output_dir"] = str(tmp_path / "model")
    variables = {"PYTHONPATH": find_transformers(), "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}
    job["spec"]["env"] = [{"name": name, "value": value} for name, value in variables.items()]
    path = tmp_path / "job.yaml"
    path.write_text(json.dumps(job))
    shown = start_on_terminal(tmp_path, path)
    samples, first_log_at = follow(shown, 600)
    assert shown.started.wait() == 0
    assert first_log_at
    check_samples(samples, first_log_at)


LIGHTNING = """
import os, time, torch
PACKAGE as lightning

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        time.sleep(0.02)
        return self.layer(batch[0]).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)

data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(400, 4)), batch_size=4)
options = dict(accelerator="cpu", devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False)
lightning.Trainer(max_epochs=3, accumulate_grad_batches=2, **options).fit(Model(), data)
"""


@pytest.mark.long
@pytest.mark.parametrize("package", ["import lightning.pytorch", "import pytorch_lightning"])
def test_an_unchanged_lightning_script_shows_its_progress(tmp_path: Path, package: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(LIGHTNING.replace("PACKAGE", package))
    env = [{"name": "PYTHONPATH", "value": find_lightning()}, {"name": "CUDA_VISIBLE_DEVICES", "value": ""}]
    job = write_job(tmp_path, [sys.executable, str(script)], nodes=1, procsPerNode=1, env=env)
    done = run(tmp_path, job, "-o", "yaml")
    progress = yaml.safe_load(done.stdout)["status"]["progress"]
    assert (progress["step"], progress["percent"], progress["estimatedRemainingSeconds"]) == (150, 100, 0)


def test_a_total_from_the_script_and_from_the_job(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import muster_worker, os, sys, time\n"
        "for step in range(1, 41):\n"
        "    time.sleep(0.1)\n"
        "    total = {'total_steps': 40} if sys.argv[1] == 'script' else {}\n"
        "    muster_worker.report(step=step, **total)\n"
    )
    started = []
    for source in ("script", "job"):
        fields = {"totalSteps": 40} if source == "job" else {}
        job = write_job(tmp_path, [sys.executable, str(script), source], name=source, nodes=1, **fields)
        started.append(start(tmp_path, job, "-o", "yaml"))
    for done in started:
        done.wait()
        progress = yaml.safe_load(done.stdout)["status"]["progress"]
        assert (progress["step"], progress["percent"], progress["estimatedRemainingSeconds"]) == (40, 100, 0)
        assert re.search(r"\d+ %, 0:0\d left", done.stderr)

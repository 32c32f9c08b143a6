"""Provide muster's start script as a channel, as in SDK 3. Pure."""

import shlex

from muster.api.spec.job import Job
from muster.api.spec.sagemaker.launch import START_SCRIPT, Launch
from muster.render.sagemaker.request.start_script import make_start_files
from muster_worker.sagemaker.arguments import to_arguments

DRIVERS_CHANNEL = "sm_drivers"
"""The channel of SDK 3's start script (sagemaker/train/constants.py, SDK 3.27.0)."""

_PROGRAM = "sm_train.sh"
_FOLDER = f"/opt/ml/input/data/{DRIVERS_CHANNEL}"

START_PROGRAM = f"{_FOLDER}/{_PROGRAM}"
"""The path of the container's command, as in SDK 3."""

_SCRIPT = """\
#!/bin/bash
set -e
mkdir -p /opt/ml/code
cd /opt/ml/code
for archive in /opt/ml/input/data/code/*.tar.gz; do
  if [ -f "$archive" ]; then tar -xzf "$archive"; fi
done
if [ -f requirements.txt ]; then python3 -m pip install -r requirements.txt; fi
exec python3 {script} {arguments}
"""
"""The script of the command. It installs requirements.txt like SageMaker's toolkit."""


def make_driver_files(job: Job, launch: Launch) -> dict[str, bytes]:
    """Return the channel's files by name."""
    arguments = shlex.join(to_arguments(job.spec.hyperparameters))
    program = _SCRIPT.format(script=f"{_FOLDER}/{START_SCRIPT}", arguments=arguments)
    return {_PROGRAM: program.encode(), **make_start_files(job, launch)}

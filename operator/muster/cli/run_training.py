"""`muster run --local` of a SageMaker job: the request that muster would send, carried out on this machine."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, cast

from rich.console import Console

from muster.api.problems import InvalidResource
from muster.api.spec import Job
from muster.api.timestamps import to_seconds
from muster.backends.local.devices import machine_gpus
from muster.backends.local.environment import MissingVariable
from muster.backends.local.folder_lock import FolderInUse, own_folder
from muster.backends.local.folders import MissingFolder, find_folders
from muster.backends.local.layout import RunLayout
from muster.backends.local.scratch import Scratch
from muster.backends.local.session import Machine
from muster.backends.local.training_host import CodeFile, Training
from muster.backends.sagemaker.as_it_runs import as_it_runs
from muster.backends.sagemaker.image_facts import image_facts
from muster.backends.sagemaker.request.render import request
from muster.backends.sagemaker.request.setting import Setting
from muster.cli.display import display_on
from muster.cli.job_file import read_job
from muster.cli.options import RunOptions, check_ranks
from muster.cli.problem import BadInput, system_problem
from muster.cli.run import FAILED, SCRATCH, Run, finish, folder_of, machine_of, resolved_job, with_uid
from muster.cli.standard_error import StandardError
from muster.plan.world import world_size
from muster.runtime.training_session import TrainingRun, open_training, training_of

TOOLKIT = "sagemaker-training==5.1.4 sagemaker-pytorch-training==3.0.0"
"""The container toolkit that a run here was tried with."""

_LOOK = "import importlib.util as u, sys; sys.exit(any(u.find_spec(name) is None for name in sys.argv[1:]))"

NOWHERE = Setting(region="us-east-1", account="000000000000", training_job="local")
"""Where the request would be sent: nothing of it matters here."""


def run_training(options: RunOptions, source: Path | None) -> int:
    """Run the job and show it; the exit code. `source` is the folder of its code, where the job doesn't hold it.

    Raises `BadInput` before anything was started.
    """
    job = _as_created(with_uid(read_job(options.file)))
    if job.spec.backend != "SageMaker":
        raise BadInput("--local is for jobs of backend SageMaker; others run on this machine without it")
    gpus = machine_gpus(os.environ, Path("/dev"))
    try:
        resolved = as_it_runs(resolved_job(job, len(gpus)), NOWHERE.region)
        check_ranks(options.ranks, world_size(resolved))
        folders = find_folders(job, options.inputs, options.checkpoint)
        training = training_of(resolved, request(resolved, NOWHERE, image_facts()), _code(job, source))
    except InvalidResource as refused:
        raise BadInput("; ".join(map(str, refused.problems))) from None
    except (MissingFolder, MissingVariable) as error:
        raise BadInput(str(error)) from None
    display = display_on(Console(file=cast(IO[str], StandardError(sys.stderr)), highlight=False))
    try:
        machine = machine_of(display, gpus)
        python = _python(machine, training)
        folder = folder_of(options, job)
        with own_folder(folder), Scratch(SCRATCH) as scratch:
            layout = RunLayout(folder, scratch.folder, job.metadata.name)
            run = Run(resolved, layout, display, options)
            what = TrainingRun(resolved, training, layout, machine, folders, python)
            turn = asyncio.run(run.run(partial(open_training, what)))
        return finish(run, job, turn)
    except FolderInUse as error:
        raise BadInput(f"{error}; choose another with --dir") from None
    except OSError as error:
        display.close(None)
        display.note(f"muster: {system_problem(error)}")
        return FAILED


def _as_created(job: Job) -> Job:
    now = to_seconds(datetime.now(UTC).timestamp())
    return job.model_copy(update={"metadata": job.metadata.model_copy(update={"creation_timestamp": now})})


def _code(job: Job, folder: Path | None) -> Mapping[str, CodeFile]:
    """The files of the job's code."""
    if folder is not None:
        if not folder.is_dir():
            raise BadInput(f"--source {folder}: it is no folder")
        files = (path for path in sorted(folder.rglob("*")) if path.is_file())
        return {str(path.relative_to(folder)): _file(path) for path in files}
    inline = job.spec.source.inline if job.spec.source is not None else None
    if inline is None:
        raise BadInput("the job's code is not in its file; give its folder with --source DIR")
    return {path: CodeFile(text.encode("utf-8")) for path, text in inline.files.items()}


def _file(path: Path) -> CodeFile:
    return CodeFile(path.read_bytes(), executable=os.access(path, os.X_OK))


def _python(machine: Machine, training: Training) -> str:
    """The Python that stands for the training image: the one that `python` means to the user, with the toolkit."""
    path = machine.environment.get("PATH", os.defpath)
    python = shutil.which("python", path=path) or shutil.which("python3", path=path)
    framework = training.module.partition(".")[0]
    modules = ["sagemaker_training", *([framework] if framework else [])]
    command = [python or "python", "-c", _LOOK, *modules]
    if python is None or subprocess.run(command, env=dict(machine.environment), check=False).returncode != 0:
        raise BadInput(
            "a training job runs here by SageMaker's own container toolkit, in the Python of your training, and"
            f" {python or 'python'} hasn't got it: pip install {TOOLKIT}"
        )
    return python

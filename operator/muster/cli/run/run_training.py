"""Run a SageMaker job's request on this machine: `muster run --local`."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job
from muster.api.spec.sagemaker.launch import choose_distribution
from muster.api.timestamps import format_timestamp
from muster.backends.local.devices import find_machine_gpus
from muster.backends.local.environment import MissingVariable
from muster.backends.local.folder_lock import lock_folder
from muster.backends.local.folders import MissingFolder, find_folders
from muster.backends.local.layout import RunLayout
from muster.backends.local.rendezvous_port import PortTaken, reserve_rendezvous_port
from muster.backends.local.scratch import Scratch
from muster.backends.local.session import Machine
from muster.backends.local.storage import (
    download_inputs,
    drop_downloaded_channels,
    get_code_folder,
    list_downloaded_folders,
    make_local_plan,
)
from muster.backends.local.toolkit.host import CodeFile
from muster.cli.display import open_stderr_display
from muster.cli.errors import BadInput
from muster.cli.job_file import read_job
from muster.cli.options import RunOptions, check_ranks
from muster.cli.run.displayed_run import DisplayedRun, finish_run, run_or_report
from muster.cli.run.local_job import (
    SCRATCH,
    choose_folder,
    prepare_machine,
    remove_remote_storage,
    resolve_job,
    set_uid,
)
from muster.core.world import compute_world_size
from muster.engine.toolkit_session import ToolkitRun, build_training, find_framework_module, open_toolkit
from muster.render.sagemaker.apply_defaults import apply_defaults
from muster.render.sagemaker.image_facts import load_image_facts
from muster.render.sagemaker.job_warnings import list_kubernetes_fields
from muster.render.sagemaker.rank_reports import PROGRAM
from muster.render.sagemaker.request.render import render_request
from muster.render.sagemaker.request.settings import RequestSettings
from muster.render.sagemaker.request.training_request import TrainingRequest
from muster.render.storage.storage_plan import StoragePlan

TOOLKIT = "sagemaker-training==5.1.4 sagemaker-pytorch-training==3.0.0"
"""The versions of the toolkit that muster's tests use."""

_CHECK_MODULES = "import importlib.util as u, sys; sys.exit(any(u.find_spec(name) is None for name in sys.argv[1:]))"

PLACEHOLDERS = RequestSettings(region="us-east-1", account="000000000000", training_job_name="local")
"""Placeholders for the region and the account, which a local run does not use."""


def run_training(options: RunOptions, source: Path | None) -> int:
    """Run the job and show it; return the exit code. `source` is the folder of the code; by default `spec.source`.

    Raises `BadInput` before it starts a process. Files for S3 remain in the run's folder.
    """
    job = _simulate_creation(set_uid(read_job(options.file, options.template_files)))
    if job.spec.backend != "SageMaker":
        raise BadInput("--local works only with backend: SageMaker; run this job without it")
    if source is not None and not source.is_dir():
        raise BadInput(f"--source {source}: not a folder")
    gpus = find_machine_gpus(os.environ, Path("/dev"))
    try:
        resolved_job = apply_defaults(remove_remote_storage(resolve_job(job, len(gpus)), options), PLACEHOLDERS.region)
        check_ranks(options.ranks, compute_world_size(resolved_job))
        training_request = _render_request(resolved_job)
        plan = _plan_storage(resolved_job, options, source)
        folders = find_folders(drop_downloaded_channels(job, plan), options.inputs, options.checkpoint)
    except InvalidResource as error:
        raise BadInput("; ".join(map(str, error.problems))) from None
    except (MissingFolder, MissingVariable) as error:
        raise BadInput(str(error)) from None
    display = open_stderr_display()
    for note in _describe_unused_fields(job):
        display.show_note(note)

    def work() -> int:
        machine, folder = prepare_machine(display, gpus), choose_folder(options, job)
        python = _find_python(machine, resolved_job)
        with lock_folder(folder), _reserve_port_if_used(resolved_job), Scratch(SCRATCH) as scratch:
            layout = RunLayout(folder, scratch.folder, job.metadata.name)
            if plan is not None:
                download_inputs(plan, layout, display.show_note)
            training = build_training(resolved_job, training_request, _read_code(source or get_code_folder(layout)))
            all_folders = replace(folders, downloads=list_downloaded_folders(plan, layout))
            run = DisplayedRun(resolved_job, layout, display, options)
            toolkit_run = ToolkitRun(resolved_job, training, layout, machine, all_folders, python)
            result = asyncio.run(run.run(partial(open_toolkit, toolkit_run)))
        return finish_run(run, job, result)

    return run_or_report(display, work)


def _describe_unused_fields(job: Job) -> tuple[str, ...]:
    fields = list_kubernetes_fields(job.spec)
    return (f"ignored here, because they are for Kubernetes: {', '.join(fields)}",) if fields else ()


@contextmanager
def _reserve_port_if_used(job: Job) -> Iterator[None]:
    """Reserve the toolkit's port if the ranks use it for their rendezvous. Raises `BadInput`."""
    distribution = choose_distribution(job.spec)
    is_torch = distribution is not None and distribution.torch_distributed is not None
    launcher = job.spec.launcher.chosen_launcher
    if not is_torch and (launcher.command_starts_ranks or launcher.runs_on_first_node):
        yield
        return
    try:
        with reserve_rendezvous_port():
            yield
    except PortTaken as error:
        raise BadInput(str(error)) from None


def _render_request(job: Job) -> TrainingRequest:
    """Return the request. Raises `InvalidResource`, and `BadInput` for a job that the toolkit can't run."""
    groups = job.spec.sagemaker.instance_groups if job.spec.sagemaker is not None else ()
    if len(groups) > 1:
        names = ", ".join(group.name for group in groups)
        raise BadInput(f"--local supports one instance type, and this job has sagemaker.instanceGroups {names}")
    training_request = render_request(job, PLACEHOLDERS, load_image_facts())
    if PROGRAM not in training_request.hyperparameters:
        raise BadInput(
            "--local runs only programs that SageMaker's toolkit starts, and the toolkit does not start this job:"
            " set spec.sagemaker.framework to the image's framework, with start: Auto, or run it as a job of backend"
            " Kubernetes"
        )
    return training_request


def _plan_storage(job: Job, options: RunOptions, source: Path | None) -> StoragePlan | None:
    """Return the storage plan for data and code, without the job's output and checkpoints in S3."""
    local_job = job.model_copy(
        update={
            "spec": job.spec.model_copy(
                update={"output": None, "checkpoint": None, **({} if source is None else {"source": None})}
            )
        }
    )
    return make_local_plan(local_job, options.inputs)


def _simulate_creation(job: Job) -> Job:
    now = format_timestamp(datetime.now(UTC).timestamp())
    return job.model_copy(update={"metadata": job.metadata.model_copy(update={"creation_timestamp": now})})


def _read_code(folder: Path) -> Mapping[str, CodeFile]:
    """Return the files of the job's code; {} if the folder does not exist."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): _read_code_file(path) for path in files}


def _read_code_file(path: Path) -> CodeFile:
    return CodeFile(path.read_bytes(), executable=os.access(path, os.X_OK))


def _find_python(machine: Machine, job: Job) -> str:
    """Return the user's `python`, which runs instead of the training image. Raises `BadInput` without the toolkit."""
    path = machine.environment.get("PATH", os.defpath)
    python = shutil.which("python", path=path) or shutil.which("python3", path=path)
    framework = find_framework_module(job).partition(".")[0]
    modules = ["sagemaker_training", *([framework] if framework else [])]
    command = [python or "python", "-c", _CHECK_MODULES, *modules]
    if python is None or subprocess.run(command, env=dict(machine.environment), check=False).returncode != 0:
        raise BadInput(
            "--local runs a training job with SageMaker's container toolkit, in your own Python, and"
            f" {python or 'python'} lacks it: pip install {TOOLKIT}"
        )
    return python
